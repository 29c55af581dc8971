// Probes between pixels where a frame stays in registers: what subpixel.cu does around a library's transforms, without the ways through memory. Without
// a wide exchange. Transforms of probes and of their sums (`spectra`, `sums`) lie in the order of the transform.
//
// A frame and a block (or a cluster of 2^CL) at a time. Bytes a pixel of a view and probe mode: `shift_probes` 8, for one transform; spectra come from the
// cache.

#include "ramps.cu"

__device__ __forceinline__ FrameContext shifted_context(void* room) {
    return frame_context(room, CL ? blockIdx.x & (BLOCKS - 1) : 0);
}

// Transforms of probes. Grid: (BLOCKS, PROBES, sets).
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) transform_probes(const C* probe, C* spectra) {
    extern __shared__ __align__(128) char shared[];
    const FrameContext context = shifted_context((C*)shared + RAMPS);
    const u64 frame = (u64)(blockIdx.z * PROBES + blockIdx.y) * (NX * NY);
    C v[32];
    fill(v, probe + frame, context.thread);
    forward(v, context.thread, 0);
    put_pairs(spectra + frame + context.thread.block * (32 * THREADS), v);
}

// The modes that the views see, `count` of them, to `to` [views][PROBES][NY * NX]. Grid: persistent.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    shift_probes(Model model, const C* spectra, const float2* shifts, C* to, u32 count) {
    extern __shared__ __align__(128) char shared[];
    C* ramps = (C*)shared;
    const FrameContext context = shifted_context(ramps + RAMPS);
    const ThreadContext& thread = context.thread;
    for (u32 i = blockIdx.x >> CL; i < count * PROBES; i += gridDim.x >> CL) {
        const u32 n = i / PROBES, p = i % PROBES;
        C v[32];
        shifted_probe(v, spectra + ((u64)model.views[n].probe * PROBES + p) * (NX * NY), shifts[n], ramps, thread, 0);
        keep(to + (u64)i * (NX * NY), v, thread);
    }
}

#define PIXEL(r) (row_of(thread, r) * NX + ((r) & ((1 << XR) - 1)) * 32 + thread.lane)

// Sums of a set back from their transforms: in place without `probe`, in natural order. With it probes make the step that they say, over inertia and norms, and
// lose what lies outside of the support; `before` are the new probes, `spectra` their transforms, `changes` [sets][PROBES] their squared change since
// `before` and their square. Grid: (BLOCKS, PROBES, sets).
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    end_sums(C* sums, const float* norms, const float* inertia, const float* support, C* probe, C* before, C* spectra,
             float2* changes) {
    extern __shared__ __align__(128) char shared[];
    const FrameContext context = shifted_context((C*)shared + RAMPS);
    wait_for_previous_kernel();
    const ThreadContext& thread = context.thread;
    const u32 set = blockIdx.z, mode = set * PROBES + blockIdx.y;
    const u64 frame = (u64)mode * (NX * NY);
    C v[32];
    take_pairs(v, sums + frame + thread.block * (32 * THREADS));
#pragma unroll
    for (int r = 0; r < 32; ++r) v[r] = v[r] * (1.0f / (NX * NY));
    inverse(v, thread, 0);
    if (!probe) {
        keep(sums + frame, v, thread);
        return;
    }
    // All is read before anything is written: no load is moved past a store.
    float2 change = make_float2(0, 0);
#pragma unroll
    for (int r = 0; r < 32; ++r) {
        const float weight = inertia[set] + norms[(u64)set * (NX * NY) + PIXEL(r)];
        v[r] = weight > 0 ? v[r] * (1 / weight) : make_float2(0, 0);
    }
#pragma unroll
    for (int r = 0; r < 32; ++r) v[r] = probe[frame + PIXEL(r)] + v[r];
    if (support) {
#pragma unroll
        for (int r = 0; r < 32; ++r) v[r] = v[r] * support[PIXEL(r)];
    }
#pragma unroll
    for (int r = 0; r < 32; ++r) change = change + make_float2(power(v[r] - before[frame + PIXEL(r)]), power(v[r]));
    keep(probe + frame, v, thread);
    keep(before + frame, v, thread);
    change = reduce_all(change, context);
    if (threadIdx.x == 0 && thread.block == 0) changes[mode] = change;
    __syncthreads();
    forward(v, thread, 0);
    put_pairs(spectra + frame + thread.block * (32 * THREADS), v);
}
