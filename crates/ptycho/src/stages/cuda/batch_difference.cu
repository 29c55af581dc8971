// Engines that go from view to view, in pieces: what the constraint changes of the waves of a batch, and the errors of its views.

#include "batches.cu"

// From waves P O at the detector to (psi - P O) there, psi as the rule says; three sums for the errors. `waves`: the exit waves that are kept, or null.
extern "C" __global__ void __launch_bounds__(TEAM) difference(Batch batch, C* waves, Constraint rule) {
    const u32 n = view_number(batch, blockIdx.y);
    const Blend blend = blend_of(rule, 0);
    real sums[3] = {0, 0, 0};
    EACH_COUNTED(pixel) {
        const real m = magnitude(batch, n, pixel);
        real model = 0, estimate = 0;
        EACH_PART(part) {
            const u32 at = pixel_of(pixel, part);
            const C* kept = waves ? waves + (u64)n * MODES * (NX * NY) + (batch.wave_order ? batch.wave_order[at] : at) : 0;
            for (u32 k = 0; k < MODES; ++k) {
                const C g = work_of(batch, blockIdx.y, k)[at] * scale_of(batch), e = kept ? kept[k * (NX * NY)] : g;
                model += power(g), estimate += power(g * rule.c + e * (1 - rule.c));
            }
        }
        const real2 both = misfit(model, estimate, m);
        const real q = ratio(estimate, m), by_g = fma(blend.g_ratio, q, blend.g), by_e = fma(blend.e_ratio, q, blend.e);
        sums[0] += both.x, sums[1] += both.y;
        EACH_PART(part) {
            const u32 at = pixel_of(pixel, part);
            C* kept = waves ? waves + (u64)n * MODES * (NX * NY) + (batch.wave_order ? batch.wave_order[at] : at) : 0;
            for (u32 k = 0; k < MODES; ++k) {
                C* target = work_of(batch, blockIdx.y, k) + at;
                const C g = *target * scale_of(batch), e = kept ? kept[k * (NX * NY)] : g, now = g * by_g + e * by_e;
                sums[2] += power(now - e);
                if (kept) kept[k * (NX * NY)] = now;
                *target = (now - g) * scale_of(batch);
            }
        }
    }
    put_sums(batch, sums);
}

// Errors of the views in `batch.list` from the sums of `chunks` blocks each. A thread a view.
extern "C" __global__ void __launch_bounds__(TEAM)
    view_errors(Batch batch, u32 chunks, u32 count, const real2* weight, real* errors) {
    const u64 i = thread_index();
    if (i >= count) return;
    double sums[3] = {0, 0, 0};
    for (u64 c = i * chunks; c < (i + 1) * chunks; ++c) {
        for (int s = 0; s < 3; ++s) sums[s] += batch.sums[3 * c + s];
    }
    const u32 n = batch.list[i];
    errors[3 * (u64)n] = real(sums[1] * weight[n].x), errors[3 * (u64)n + 1] = real(sums[0] / (MX * MY));
    errors[3 * (u64)n + 2] = real(sums[2] / (NX * NY));
}
