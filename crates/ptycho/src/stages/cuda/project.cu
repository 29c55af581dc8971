// One iteration of difference map or RAAR on the exit waves. With P O the product of probe and object and e = F exit,
//   g = F(P O),  f = c g + (1 - c) e,  e <- (1 - a - b) e + a g + b f M,  exit = F* e,
// where M makes |f| the measured magnitude, or brings it nearer as the bound on power says. This is the usual form with one transform
// less, since F is linear, and the errors come along: E_LL from g, E_F from f, E_ex from the change of e (F is unitary).
//
// Grid: persistent; a block (or a cluster of 2^CL) does a frame at a time. Transforms: 2 a mode. Bytes a pixel and mode: e 8 + 8, exit 8
// (and 4 of magnitudes); with several modes 16 + 8 more for all but the last, since g waits in the exit wave's buffer until all modes are known.
// They are taken up again from the last one, whose g is still in registers, so that what was written last comes from the cache.

#include "begin.cu"

// Pairs of e that are asked for at once: as many as there are registers for, or what shared memory gives at once.
#define AHEAD (FETCH ? 16 : 4)

#define AT_ONCE (FETCH ? 4 : 8)

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    project(Model model, C* waves, C* exits, const float* mag, const float2* weight, float* errors, u32 first, u32 count,
            Constraint rule) {
    extern __shared__ __align__(128) char shared[];
    C* big = (C*)shared;  // the wave to come, or a wide exchange, or intensities of two kinds
    C* ramps = big + BIG;
    const FrameContext context = frame_context(ramps + (SHIFTED ? RAMPS : 0), CL ? blockIdx.x & (BLOCKS - 1) : 0);
    const ThreadContext& thread = context.thread;
    const float scale = SCALE;
    const u32 groups = gridDim.x >> CL;
    const u64 mine = (u64)thread.block * 32 * THREADS;
    C* wide = WIDE ? big : 0;
#if FETCH
    if (threadIdx.x == 0) {
        init_barrier(context.barrier);
        if (blockIdx.x < count) fetch(big, waves + (u64)(first + blockIdx.x) * (NX * NY), NX * NY * 8, context.barrier);
    }
    __syncthreads();
#endif
    u32 phase = 0;
    for (u32 i = blockIdx.x >> CL; i < count; i += groups) {
        const u32 n = first + i;
        const View view = view_at(model, n);
        const float* magnitudes = mag + (u64)n * (NX * NY) + mine;
        C v[32];
        [[maybe_unused]] float4* held = (float4*)context.thread.all + threadIdx.x;  // ratios, while the exchange rests
        float2 sums = make_float2(0, 0);
        float change = 0;
#if MODES == 1
        C* wave = waves + (u64)n * (NX * NY) + mine;
        const C* old = FETCH ? big : wave;
        if (threadIdx.x == 0) expect(magnitudes, 32 * THREADS * 4);
        if (CL > 0 && threadIdx.x == 0) expect(wave, 32 * THREADS * 8);
        seen_product(v, model, view, n, 0, ramps, thread, wide, scale);
        propagate(v, model.near, thread, wide);
        float4 measured[8];
        if (FETCH) wait_barrier(context.barrier, phase), phase ^= 1;
        all_magnitudes(measured, magnitudes);  // not before the gate, through which they would have to be kept
#pragma unroll
        for (int s = 0; s < 32; s += 2 * AHEAD) {
            float4 e[AHEAD];
            some_pairs<AHEAD>(e, old, s, false);
#pragma unroll
            for (int j = 0; j < AHEAD; j += 2) {
                const int r = s + 2 * j;
                float4 m = measured[r >> 2];
                float2 f = estimates(both(v, r), e[j], rule.c), h = estimates(both(v, r + 2), e[j + 1], rule.c);
                sums = sums + misfit(power(v[r]), f.x, m.x) + misfit(power(v[r + 1]), f.y, m.y) +
                       misfit(power(v[r + 2]), h.x, m.z) + misfit(power(v[r + 3]), h.y, m.w);
                held[(r >> 2) * THREADS] = ratios(f, h, m);
            }
        }
        sums = reduce_all(sums, context);
        const Blend blend = blend_of(rule, relaxation_of(rule, sums.y * weight[n].x, weight[n]));
#pragma unroll
        for (int s = 0; s < 32; s += 2 * AT_ONCE) {
            float4 e[AT_ONCE];
            some_pairs<AT_ONCE>(e, old, s, !FETCH);
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                const int r = s + 2 * j;
                float4 q = held[(r >> 2) * THREADS];
                change +=
                    advance(v, both(v, r), e[j], wave, r, r & 2 ? make_float2(q.z, q.w) : make_float2(q.x, q.y), blend, scale);
            }
        }
        publish(change, context);
#if FETCH
        __syncthreads();
        if (threadIdx.x == 0 && i + groups < count) fetch(big, waves + (u64)(n + groups) * (NX * NY), NX * NY * 8, context.barrier);
#endif
        propagate_back(v, model.near, thread, wide);
        keep(exits + (u64)n * (NX * NY), v, thread);
#else
        float4* seen = (float4*)big + threadIdx.x;  // intensities of the model
        float4* meant = seen + 8 * THREADS;         // of the estimate, then the ratios
        for (int k = 0; k < MODES; ++k) {
            const u64 frame = ((u64)n * MODES + k) * (NX * NY) + mine;
            seen_product(v, model, view, n, k, ramps, thread, wide, scale);
            propagate(v, model.near, thread, wide);
#pragma unroll
            for (int s = 0; s < 32; s += 8) {
                float4 e[4];
                // The waves of the last two modes may still be in the cache when they come up again.
                some_pairs<4>(e, waves + frame, s, k + 2 < MODES);
#pragma unroll
                for (int r = s; r < s + 8; r += 4) {
                    float2 f = estimates(both(v, r), e[(r - s) / 2], rule.c),
                           h = estimates(both(v, r + 2), e[(r - s) / 2 + 1], rule.c);
                    if (k < MODES - 1) {
                        ((float4*)(exits + frame))[(r >> 1) * THREADS + threadIdx.x] = both(v, r);
                        ((float4*)(exits + frame))[(r >> 1) * THREADS + THREADS + threadIdx.x] = both(v, r + 2);
                    }
                    float4 old = make_float4(0, 0, 0, 0), before = old;
                    if (k > 0) old = seen[(r >> 2) * THREADS], before = meant[(r >> 2) * THREADS];
                    seen[(r >> 2) * THREADS] =
                        make_float4(old.x + power(v[r]), old.y + power(v[r + 1]), old.z + power(v[r + 2]), old.w + power(v[r + 3]));
                    meant[(r >> 2) * THREADS] = make_float4(before.x + f.x, before.y + f.y, before.z + h.x, before.w + h.y);
                }
            }
        }
        float4 measured[8];
        all_magnitudes(measured, magnitudes);
#pragma unroll
        for (int r = 0; r < 32; r += 4) {
            float4 s = seen[(r >> 2) * THREADS], f = meant[(r >> 2) * THREADS], m = measured[r >> 2];
            sums = sums + misfit(s.x, f.x, m.x) + misfit(s.y, f.y, m.y) + misfit(s.z, f.z, m.z) + misfit(s.w, f.w, m.w);
            meant[(r >> 2) * THREADS] = ratios(make_float2(f.x, f.y), make_float2(f.z, f.w), m);
        }
        sums = reduce_all(sums, context);
        const Blend blend = blend_of(rule, relaxation_of(rule, sums.y * weight[n].x, weight[n]));
        for (int k = MODES - 1; k >= 0; --k) {
            const u64 frame = ((u64)n * MODES + k) * (NX * NY);
            if (k < MODES - 1) take_pairs_last(v, exits + frame + mine);
#pragma unroll
            for (int s = 0; s < 32; s += 2 * AT_ONCE) {
                float4 e[AT_ONCE];
                some_pairs<AT_ONCE>(e, waves + frame + mine, s, true);
#pragma unroll
                for (int j = 0; j < AT_ONCE; ++j) {
                    const int r = s + 2 * j;
                    float4 q = meant[(r >> 2) * THREADS];
                    change += advance(v, both(v, r), e[j], waves + frame + mine, r,
                                      r & 2 ? make_float2(q.z, q.w) : make_float2(q.x, q.y), blend, scale);
                }
            }
            if (k == 0) publish(change, context);
            propagate_back(v, model.near, thread, wide);
            keep_last(exits + frame, v, thread);
        }
#endif
        report(errors + 3 * (u64)n, sums.x / (NX * NY), sums.y * weight[n].x, context);
    }
}
