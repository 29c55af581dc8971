// Sums over views without weights, and operations on arrays as long as probe and object.

#include "probe_sums.cu"
#include "atomic.cu"

// conj(P) exit over all views to `to`, shaped as the objects. Grid: any number of blocks of TEAM.
extern "C" __global__ void __launch_bounds__(TEAM, CROWD) object_sums(Model model, const C* exits, Sums sums, C* to) {
    __shared__ real4 room[CREWS * TILE_ROWS * WARP];
    for (u32 t = blockIdx.x; t < sums.tile_count; t += gridDim.x) {
        const Tile tile = sums.tiles[t];
        for (int o = 0; o < OBJECTS; ++o) put_sum(model, tile, o, gather(model, exits, sums, tile, o, room), Update(), to);
    }
}

// Variant by atomic additions to zeroed sums. Grid: any number of blocks of TEAM.
extern "C" __global__ void __launch_bounds__(TEAM) object_adds(Model model, const C* exits, Sums sums, C* to) {
    for (u32 w = blockIdx.x; w < sums.views * STRIPS; w += gridDim.x) scatter<false>(model, exits, sums, to, w);
}

// conj(O) exit over the views of each part. Grid: (pixels / PAIR / TEAM, parts).
extern "C" __global__ void __launch_bounds__(TEAM, CROWD) probe_parts(Model model, const C* exits, Sums sums) {
    u32 pixel = (blockIdx.x * TEAM + threadIdx.x) * PAIR;
    if (pixel < NX * NY) sum_probe(model, exits, sums, blockIdx.y, pixel);
}

// And over the parts, to `to`, shaped as the probes. Grid: (pixels / TEAM, sets).
extern "C" __global__ void __launch_bounds__(TEAM) probe_sums(Sums sums, C* to) {
    const u32 pixel = blockIdx.x * TEAM + threadIdx.x, set = blockIdx.y;
    if (pixel >= NX * NY) return;
    for (int q = 0; q < PROBES; ++q) {
        C sum = make_real2(0, 0);
        for (u32 b = sums.first_bundle[set]; b < sums.first_bundle[set + 1]; ++b) {
            C of_bundle = make_real2(0, 0);
            for (u32 p = sums.bundles[b]; p < sums.bundles[b + 1]; ++p)
                of_bundle = of_bundle + sums.numerators[((u64)p * PROBES + q) * (NX * NY) + pixel];
            sum = sum + of_bundle;
        }
        to[((u64)set * PROBES + q) * (NX * NY) + pixel] = sum;
    }
}

// Re <a, b>: a sum a block to `to`. Blocks of TEAM.
extern "C" __global__ void __launch_bounds__(TEAM) dot(const C* a, const C* b, u64 n, double* to) {
    __shared__ double scratch[CREWS];
    double sum = 0;
    for (u64 i = thread_index(); i < n; i += thread_count()) sum += double(a[i].x) * b[i].x + double(a[i].y) * b[i].y;
    sum = block_reduce<Sum<double>>(sum, scratch);
    if (threadIdx.x == 0) to[blockIdx.x] = sum;
}

// to = s to + f from; a factor of 0 takes nothing, not even what is not finite.
extern "C" __global__ void __launch_bounds__(TEAM) combine(C* to, const C* from, u64 n, real s, real f) {
    for (u64 i = thread_index(); i < n; i += thread_count()) {
        C kept = s == 0 ? make_real2(0, 0) : to[i] * s;
        to[i] = f == 0 ? kept : kept + from[i] * f;
    }
}

// 2 a sum |d|^2 over the differences d of neighbours in one layer, its derivative added to `gradient`; or with `along` the first and second
// order. Sums a block to `to` [blocks][2].
extern "C" __global__ void __launch_bounds__(TEAM)
    neighbours(const C* object, const C* along, C* gradient, u32 height, u32 width, real a, double* to) {
    __shared__ double scratch[CREWS];
    double first = 0, second = 0;
    for (u64 i = thread_index(); i < (u64)height * width; i += thread_count()) {
        const u32 y = i / width, x = i % width;
        const C here = object[i];
        C slope = make_real2(0, 0);
        for (int side = 0; side < 4; ++side) {
            const bool there = side == 0 ? x + 1 < width : side == 1 ? y + 1 < height : side == 2 ? x > 0 : y > 0;
            if (!there) continue;
            const u64 j = side == 0 ? i + 1 : side == 1 ? i + width : side == 2 ? i - 1 : i - width;
            const C d = object[j] - here;
            slope = slope - d;
            if (side > 1) continue;
            if (along) {
                const C h = along[j] - along[i];
                first += 4.0 * a * (double(d.x) * h.x + double(d.y) * h.y),
                    second += 2.0 * a * (double(h.x) * h.x + double(h.y) * h.y);
            } else {
                first += 2.0 * a * (double(d.x) * d.x + double(d.y) * d.y);
            }
        }
        if (gradient) gradient[i] = gradient[i] + slope * (2 * a);
    }
    first = block_reduce<Sum<double>>(first, scratch);
    __syncthreads();
    second = block_reduce<Sum<double>>(second, scratch);
    if (threadIdx.x == 0) to[2 * blockIdx.x] = first, to[2 * blockIdx.x + 1] = second;
}
