// Engines that go from view to view in a given order (ePIE, rPIE, SDR): one frame at a time, since every view starts from what the one
// before it left. With psi the exit wave as in project.cu and D its difference from P O,
//   O += s_o conj(P) D / ((1 - t_o) max |P|^2 + t_o |P|^2),  P += s_p conj(O) D / ((1 - t_p) max |O|^2 + t_p |O|^2) with the new O.
//
// Grid: one block or one cluster, persistent; every thread keeps its part of the probe in shared memory. Transforms: 2 a view.

#include "step.cu"
#include "pie.cu"

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    sequence(Model model, C* waves, const float* mag, const float2* weight, float* errors, const u32* order, u32 count,
             Constraint rule, PieStep step) {
    extern __shared__ __align__(128) char shared[];
    C* big = (C*)shared;
    C* probe = big + (WIDE ? 32 * THREADS : 0) + threadIdx.x;  // value r at r * THREADS
    const FrameContext context = frame_context(big + (WIDE ? 64 : 32) * THREADS, CL ? blockIdx.x & (BLOCKS - 1) : 0);
    const ThreadContext& thread = context.thread;
    const float scale = SCALE;
    const u64 mine = (u64)thread.block * 32 * THREADS;
    C* wide = WIDE ? big : 0;
    u32 set = 0xffffffffu;
    float brightest = 0;
    // The first thing that goes to other blocks is a sum, which waits for nobody: they must have begun.
    if (CL > 0) {
        cluster_arrive();
        cluster_wait();
    }
    for (u32 i = 0; i < count; ++i) {
        const u32 n = order[i];
        const View view = model.views[n];
        const u32 width = model.storages[view.object].width;
        C* patch = model.object + patch_of(model, view, 0);
        C v[32];
        C* wave = waves + (u64)n * (NX * NY) + mine;
        if (threadIdx.x == 0 && i + 1 < count) {
            const u64 next = (u64)order[i + 1] * (NX * NY) + mine;
            if (step.keep) expect(waves + next, 32 * THREADS * 8);
            expect(mag + next, 32 * THREADS * 4);
        }
        if (view.probe != set) {
            float most = 0;
#pragma unroll
            for (int r = 0; r < 32; ++r) {
                int pixel = row_of(thread, r) * NX + (r & ((1 << XR) - 1)) * 32 + thread.lane;
                if (set != 0xffffffffu) model.probe[(u64)set * (NX * NY) + pixel] = probe[r * THREADS];
                C p = model.probe[(u64)view.probe * (NX * NY) + pixel];
                if (i && step.support) p = p * step.support[pixel];  // as the step of any view has left all probes
                probe[r * THREADS] = p;
                most = fmaxf(most, power(p));
            }
            set = view.probe;
            brightest = highest(most, context);
        }
#pragma unroll
        for (int r = 0; r < 32; ++r)
            v[r] = probe[r * THREADS] * (patch[row_of(thread, r) * width + (r & ((1 << XR) - 1)) * 32 + thread.lane] * scale);
        propagate(v, model.near, thread, wide);
        float2 sums = make_float2(0, 0);
        float4* held = (float4*)thread.all + threadIdx.x;
#pragma unroll
        for (int r = 0; r < 32; r += 4) {
            float4 m = magnitudes_at(mag + (u64)n * (NX * NY) + mine, r);
            float2 f = estimates(both(v, r), step.keep ? pair(wave, r) : both(v, r), rule.c),
                   h = estimates(both(v, r + 2), step.keep ? pair(wave, r + 2) : both(v, r + 2), rule.c);
            sums = sums + misfit(power(v[r]), f.x, m.x) + misfit(power(v[r + 1]), f.y, m.y) + misfit(power(v[r + 2]), h.x, m.z) +
                   misfit(power(v[r + 3]), h.y, m.w);
            held[(r >> 2) * THREADS] = ratios(f, h, m);
        }
        sums = reduce_all(sums, context);
        const Blend blend = blend_of(rule, relaxation_of(rule, sums.y * weight[n].x, weight[n]));
        float change = 0;
#pragma unroll
        for (int r = 0; r < 32; r += 2) {
            float4 q = held[(r >> 2) * THREADS];
            change += advance(v, both(v, r), step.keep ? pair(wave, r) : both(v, r), step.keep ? wave : 0, r,
                              r & 2 ? make_float2(q.z, q.w) : make_float2(q.x, q.y), blend, scale);
        }
        publish(change, context);
        propagate_back(v, model.near, thread, wide);
        float most = 0;
#pragma unroll
        for (int r = 0; r < 32; ++r) {
            C* target = patch + row_of(thread, r) * width + (r & ((1 << XR) - 1)) * 32 + thread.lane;
            C p = probe[r * THREADS], o = *target;
            v[r] = v[r] - p * o;
            if (step.object) {
                o = clipped(o + conj(p) * v[r] * pie_weight(step.object_step, step.object_mix, brightest, power(p)), step.low,
                            step.high);
                *target = o;
            }
            most = fmaxf(most, power(o));
        }
        const float clearest = highest(most, context);
        if (step.probe) {
            most = 0;
#pragma unroll
            for (int r = 0; r < 32; ++r) {
                C o = patch[row_of(thread, r) * width + (r & ((1 << XR) - 1)) * 32 + thread.lane], p = probe[r * THREADS];
                p = p + conj(o) * v[r] * pie_weight(step.probe_step, step.probe_mix, clearest, power(o));
                if (step.support) p = p * step.support[row_of(thread, r) * NX + (r & ((1 << XR) - 1)) * 32 + thread.lane];
                probe[r * THREADS] = p;
                most = fmaxf(most, power(p));
            }
            brightest = highest(most, context);
        }
        report(errors + 3 * (u64)n, sums.x / (NX * NY), sums.y * weight[n].x, context);
    }
#pragma unroll
    for (int r = 0; r < 32; ++r)
        if (set != 0xffffffffu)
            model.probe[(u64)set * (NX * NY) + row_of(thread, r) * NX + (r & ((1 << XR) - 1)) * 32 + thread.lane] =
                probe[r * THREADS];
}
