// The Fourier constraint at a pixel, where project.cu says what the letters mean.

#include "bins.cu"

struct Constraint {
    float a, b, c, bound, noise;  // bound < 0: none; a frame is let through that and the part `noise` of what photons make
};

// A pixel's part of E_LL and E_F: intensities of the model and of the estimate, measured magnitude (negative where there is none).
__device__ __forceinline__ float2 misfit(float model, float estimate, float m) {
    // Chosen before and not after: a branch here would have the loads of one pixel wait for those of the last.
    const bool none = m < 0;
    const float s = none ? 0.0f : m, d = (none ? 0.0f : model) - s * s, off = sqrtf(none ? 0.0f : estimate) - s;
    return make_float2(d * d / (s * s + 1), off * off);
}

// Measured over estimated magnitude; 1 where nothing was measured. f is multiplied by pull + (1 - pull) times this, where `pull` is 0 if
// magnitudes are taken over and 1 if nothing is to change. Not a number never comes of it: f is 0 where the estimate is.
__device__ __forceinline__ float ratio(float estimate, float m) { return m < 0 ? 1.0f : m * rsqrtf(estimate + 1e-20f); }

// `error` of a frame; its weight: one over the pixels that count, and the variance of their moduli.
__device__ __forceinline__ float relaxation_of(Constraint rule, float error, float2 weight) {
    const float bound = fmaf(rule.noise, weight.y, rule.bound);
    return bound < 0 ? 0.0f : error <= bound ? 1.0f : sqrtf(bound / error);
}

// e after the constraint is a real multiple of g and one of e.
struct Blend {
    float g, g_ratio, e, e_ratio;
};
__device__ __forceinline__ Blend blend_of(Constraint rule, float pull) {
    Blend blend = {rule.a + rule.b * rule.c * pull, rule.b * rule.c * (1 - pull),
                   (1 - rule.a - rule.b) + rule.b * (1 - rule.c) * pull, rule.b * (1 - rule.c) * (1 - pull)};
    return blend;
}
