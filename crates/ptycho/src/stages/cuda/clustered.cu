// The Fourier step in one kernel for frames of 128 x 128 doubles: a cluster of 2^CL blocks holds a frame in registers, 16 values a
// thread. State and order of values are those of columns.cu. Of clusters of two blocks of 512 threads an H200 holds 66, of four,
// two a multiprocessor, 62. Transforms go in four passes with exchanges of register bits for bits of the thread between them:
//   x = 8 x1 + x0,                  kx = k1 + 16 k0;
//   y = 64 ya + 4 yc + rank,        ky = ky0 + 2 kc + 32 kd;
//   pass 1: x1 to k1; pass 2: x0 to k0 and ya to ky0; pass 3: yc to kc; pass 4: rank to kd.
// Exchange 1 lies within a warp, exchange 2 within a block (with CL = 1 within either half of it), exchange 3 within the cluster.
// Each is its own inverse. Bytes a pixel: e 16 + 16, exit 16, magnitude 4; probe and object come from the cache.

#include "clustered_transform.cu"

template <class T> __device__ __forceinline__ T all_lanes(T value) {
#pragma unroll
    for (int d = WARP / 2; d > 0; d /= 2) value += __shfl_xor_sync(FULL_WARP, value, d);
    return value;
}

// A frame's misfits, in all of its threads, in one order.
__device__ __forceinline__ real2 cluster_misfits(real2 sum, const Shared& s) {
    const Place p;
    sum = make_real2(all_lanes(sum.x), all_lanes(sum.y));
    const int block = p.thread % WARP;
    if (block < BLOCKS) send(remote(shared_address(s.misfits + p.warp()), block), sum);
    cluster_arrive();
    cluster_wait();
    sum = s.misfits[p.thread % WARP];
    return make_real2(all_lanes(sum.x), all_lanes(sum.y));
}

// Views from `first` on. Grid: persistent clusters.
extern "C" __global__ void __launch_bounds__(THREADS, CL)
    project(Model model, C* waves, C* exits, const float* mag, const real2* weight, real* errors, u32 first, u32 count,
            Constraint rule, real scale) {
    extern __shared__ C everything[];
    const Shared s(everything);
    if (threadIdx.x < NX) s.roots[threadIdx.x] = root_of<-1, NX>(threadIdx.x);
    __syncthreads();
    const u32 groups = gridDim.x >> CL;
    u32 i = blockIdx.x >> CL;
    if (i < count) fetch_view(s, model, first + i), wait_copies(), fetch_storage(s, model), wait_copies();
    __syncthreads();
    for (; i < count; i += groups) {
        const u32 n = first + i;
        const u64 frame = (u64)n * (NX * NY);
        C v[VALUES];
        {
            const Place p;
            // Rows of this block at the detector, two at a time.
            if (p.thread < NY / 2 / BLOCKS) {
                const u64 rows = frame + (p.thread * BLOCKS + p.block) * (2 * NX);
                expect(waves + rows, 2 * NX * sizeof(C)), expect(mag + rows, 2 * NX * sizeof(float));
            }
            const View view = s.views[p.thread / RANK];
            const Storage storage = s.storages[p.thread / RANK];
            const C* probe = model.probe + (u64)view.probe * (NX * NY) + p.in_real();
            const C* object = model.object + storage.offset + (u64)(view.row + p.y()) * storage.width + view.col + p.x();
#pragma unroll
            for (int r = 0; r < VALUES; ++r) v[r] = probe[8 * r] * object[8 * r];
        }
        forward(v, s);
        if (i + groups < count) fetch_view(s, model, n + groups);
        const Place p;
        const float* magnitudes = mag + frame + p.at_detector();
        float m[VALUES];
#pragma unroll
        for (int r = 0; r < VALUES; ++r) m[r] = __ldcs(magnitudes + row_beyond(r) * NX);
        take_from_ranks(v, s);
        C* e = p.slot_of(s.room);
        C* wave = waves + frame + p.at_detector();
#pragma unroll
        for (int r = 0; r < VALUES; ++r) copy_ahead(e + r * 16, wave + row_beyond(r) * NX);
        forward_over_ranks(v, s);
        real2 sum = make_real2(0, 0);
        real q[VALUES];
        wait_copies();
#pragma unroll
        for (int r = 0; r < VALUES; ++r) {
            const real root = root_of_power(power(v[r] * (rule.c * scale) + e[r * 16] * (1 - rule.c)));
            sum = sum + misfit_of_root(power(v[r]) * (scale * scale), root, m[r]);
            q[r] = ratio_of_root(root, m[r]);
        }
        if (i + groups < count) fetch_storage(s, model);
        const real2 weighed = weight[n];
        sum = cluster_misfits(sum, s);
        const real error = sum.y * weighed.x;
        Blend blend = blend_of(rule, relaxation_of(rule, error, weighed));
        blend.g *= scale, blend.g_ratio *= scale;
        real change = 0;
#pragma unroll
        for (int r = 0; r < VALUES; ++r) {
            const C old = e[r * 16];
            const C now = v[r] * fma(blend.g_ratio, q[r], blend.g) + old * fma(blend.e_ratio, q[r], blend.e);
            change += power(now - old);
            __stcs(wave + row_beyond(r) * NX, now);
            v[r] = now * scale;
        }
        change = all_lanes(change);
        if (p.thread % WARP == 0) send(remote(shared_address(s.changes + p.warp()), 0), change);
        if (p.block == 0 && p.thread == 0) errors[3 * (u64)n] = error, errors[3 * (u64)n + 1] = sum.x / (NX * NY);
        cluster_ready();
        inverse(v, s);
        {
            const Place p;
            C* exit = exits + frame + p.in_real();
#pragma unroll
            for (int r = 0; r < VALUES; ++r) exit[8 * r] = v[r];
            if (p.block == 0 && p.thread < WARP) {
                change = all_lanes(s.changes[p.thread]);
                if (p.thread == 0) errors[3 * (u64)n + 2] = change / (NX * NY);
            }
        }
    }
}
