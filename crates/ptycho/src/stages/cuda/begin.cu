// The products of probe and object that a frame begins with.

#include "ramps.cu"

// Waves from probe and object, or from the exit waves that are there. Grid as above.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) begin(Model model, C* waves, C* exits, u32 views, u32 from_exits) {
    extern __shared__ __align__(128) char shared[];
    C* big = (C*)shared;
    const FrameContext context = frame_context(big + BIG, CL ? blockIdx.x & (BLOCKS - 1) : 0);
    const ThreadContext& thread = context.thread;
    C* wide = WIDE ? big : 0;
    for (u32 i = blockIdx.x >> CL; i < views * MODES; i += gridDim.x >> CL) {
        C v[32];
        if (from_exits) fill(v, exits + (u64)i * (NX * NY), thread);
        else product(v, model, view_at(model, i / MODES), i % MODES, thread, 1);
        if (!from_exits) keep(exits + (u64)i * (NX * NY), v, thread);
        propagate(v, model.near, thread, wide);
        const float scale = SCALE;
#pragma unroll
        for (int r = 0; r < 32; r += 2)
            ((float4*)(waves + (u64)i * (NX * NY)))[(thread.block * 16 + (r >> 1)) * THREADS + threadIdx.x] =
                make_float4(v[r].x * scale, v[r].y * scale, v[r + 1].x * scale, v[r + 1].y * scale);
    }
}

// P O of mode `k` of view `n`; where views see probes between pixels these are shifted on the way, and kept for the sums.
__device__ __forceinline__ void seen_product(C* v, const Model& model, const View& view, u32 n, int k, C* ramps,
                                             const ThreadContext& thread, C* wide, float scale) {
    if (SHIFTED && model.spectra && k % OBJECTS == 0) {
        shifted_probe(v, model.spectra + ((u64)model.views[n].probe * PROBES + k / OBJECTS) * (NX * NY), model.shifts[n], ramps,
                      thread, wide);
        keep(model.probe + ((u64)n * PROBES + k / OBJECTS) * (NX * NY), v, thread);
        times_object(v, model, view, 0, thread, scale);
        return;
    }
    product(v, model, view, k, thread, scale);
}
