// Sums over views for the probes: of parts, of bundles of parts, and of the bundles in their order.

#include "sums.cu"

// PAIR neighbouring pixels are a thread's: `pair` of program.rs.

// conj(O) exit and |O|^2 of PAIR neighbouring pixels, over the listed views `begin .. end`; `exits` begins with view `first`.
__device__ __forceinline__ void add_views(const Model& model, const C* exits, u32 first, const u32* listed, u32 begin, u32 end,
                                          u32 pixel, C* numerator, real2& weight) {
    const int x = pixel % NX, y = pixel / NX;
#pragma unroll(PROBES > 1 && PROBES <= 4 || PAIR == 1 ? 8 : 4)
    for (u32 j = begin; j < end; ++j) {
        const u32 n = listed[j];
        const View view = model.views[n];
        const Storage storage = model.storages[view.object];
        const C* exit = exits + (u64)(n - first) * MODES * (NX * NY) + pixel;
#pragma unroll
        for (int o = 0; o < OBJECTS; ++o) {
            const C* object =
                model.object + storage.offset + ((u64)o * storage.height + view.row + y) * storage.width + view.col + x;
            C a = object[0];
            weight.x += power(a);
#if PAIR == 1
#pragma unroll
            for (int q = 0; q < PROBES; ++q) add_overlap(numerator[q], a, __ldcs(exit + (q * OBJECTS + o) * (NX * NY)));
#else
            C b = object[1];
            weight.y += power(b);
#pragma unroll
            for (int q = 0; q < PROBES; ++q) {
                real4 e = last_use((const real4*)exit + (q * OBJECTS + o) * (NX * NY / 2));
                add_overlap(numerator[2 * q], a, make_real2(e.x, e.y));
                add_overlap(numerator[2 * q + 1], b, make_real2(e.z, e.w));
            }
#endif
        }
    }
}

// The sums of part `p` at PAIR neighbouring pixels, kept from one block of frames to the next.
__device__ __forceinline__ void keep_part(const Sums& sums, u32 p, u32 pixel, const C* numerator, real2 weight) {
#if PAIR == 1
#pragma unroll
    for (int q = 0; q < PROBES; ++q) sums.numerators[((u64)p * PROBES + q) * (NX * NY) + pixel] = numerator[q];
    sums.weights[(u64)p * (NX * NY) + pixel] = weight.x;
#else
#pragma unroll
    for (int q = 0; q < PROBES; ++q) {
        const C* a = numerator + 2 * q;
        *(real4*)(sums.numerators + ((u64)p * PROBES + q) * (NX * NY) + pixel) = make_real4(a[0].x, a[0].y, a[1].x, a[1].y);
    }
    *(real2*)(sums.weights + (u64)p * (NX * NY) + pixel) = weight;
#endif
}

// Sums of one part over PAIR neighbouring pixels: a thread each.
__device__ __forceinline__ void sum_probe(const Model& model, const C* exits, const Sums& sums, u32 p, u32 pixel) {
    const Part part = sums.parts[p];
    C numerator[PAIR * PROBES];
    real2 weight = make_real2(0, 0);
#pragma unroll
    for (int q = 0; q < PAIR * PROBES; ++q) numerator[q] = make_real2(0, 0);
    add_views(model, exits, 0, sums.listed, part.begin, part.end, pixel, numerator, weight);
    keep_part(sums, p, pixel, numerator, weight);
}

// Sums over the parts of bundle `b` at one pixel; gives that of the weights.
__device__ __forceinline__ real sum_bundle(const Sums& sums, u32 b, u32 pixel, C* numerator) {
    real weight = 0;
#pragma unroll
    for (int q = 0; q < PROBES; ++q) numerator[q] = make_real2(0, 0);
#pragma unroll 4
    for (u32 p = sums.bundles[b]; p < sums.bundles[b + 1]; ++p) {
        weight += sums.weights[(u64)p * (NX * NY) + pixel];
#pragma unroll
        for (int q = 0; q < PROBES; ++q) numerator[q] = numerator[q] + sums.numerators[((u64)p * PROBES + q) * (NX * NY) + pixel];
    }
    return weight;
}

// New probes at one pixel of one set, all modes; squared change and square since the last test.
__device__ __forceinline__ real2 update_probe(const Model& model, const Sums& sums, u32 set, u32 pixel) {
    const real inertia = sums.inertia[set];
    real weight = inertia;
    C numerator[PROBES];
    C* target = model.probe + (u64)set * PROBES * (NX * NY) + pixel;
#pragma unroll
    for (int q = 0; q < PROBES; ++q) numerator[q] = target[q * (NX * NY)] * inertia;
    for (u32 b = sums.first_bundle[set]; b < sums.first_bundle[set + 1]; ++b) {
        C of_bundle[PROBES];
        weight += sum_bundle(sums, b, pixel, of_bundle);
#pragma unroll
        for (int q = 0; q < PROBES; ++q) numerator[q] = numerator[q] + of_bundle[q];
    }
    real2 change = make_real2(0, 0);
    const real inside = sums.support ? sums.support[pixel] : 1.0f;
#pragma unroll
    for (int q = 0; q < PROBES; ++q) {
        // Without weight and inertia a probe stays.
        C now = (weight > 0 ? numerator[q] * (1 / weight) : target[q * (NX * NY)]) * inside;
        C* before = sums.before + ((u64)set * PROBES + q) * (NX * NY) + pixel;
        change = change + make_real2(power(now - *before), power(now));
        *before = now;
        target[q * (NX * NY)] = now;
    }
    return change;
}

// The sum over a block, for all its threads.
__device__ __forceinline__ real2 block_sum(real2 value, real2* scratch) {
    value.x = warp_reduce<Sum<real>>(value.x), value.y = warp_reduce<Sum<real>>(value.y);
    __syncthreads();
    if (lane_index() == 0) scratch[threadIdx.x / WARP] = value;
    __syncthreads();
    real2 sum = scratch[0];
    for (int c = 1; c < CREWS; ++c) sum = sum + scratch[c];
    return sum;
}
