// The Fourier constraint at a pixel, where project.cu says what the letters mean.

#include "bins.cu"

#define GUARD real(1e-10)  // added to magnitudes in denominators

typedef ConstraintArgument<real> Constraint;

// Square roots and quotients of what is not negative. Those of doubles by Newton's steps from an estimate of 20 bits: to two units in the last
// place, without the branches that the last bit takes.
#if DOUBLE && defined(__CUDA_ARCH__)
__device__ __forceinline__ real root_of_power(real x) {
    real y;
    const real above = x + 1e-290;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(above));
    for (int i = 0; i < 2; ++i) y = y * fma(-0.5 * above * y, y, 1.5);
    return x * y;
}
__device__ __forceinline__ real quotient(real x, real by) {
    real y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(by));
    for (int i = 0; i < 2; ++i) y = fma(fma(-by, y, 1.0), y, y);
    return x * y;
}
#else
__device__ __forceinline__ real root_of_power(real x) { return sqrt(x); }
__device__ __forceinline__ real quotient(real x, real by) { return x / by; }
#endif

// A pixel's part of E_LL and E_F: intensities of the model and of the estimate, measured magnitude (negative where there is none).
__device__ __forceinline__ real2 misfit(real model, real estimate, real m) {
    // Chosen before and not after: a branch here would have the loads of one pixel wait for those of the last.
    const bool none = m < 0;
    const real s = none ? 0.0f : m, d = (none ? 0.0f : model) - s * s, off = root_of_power(none ? 0.0f : estimate) - s;
    return make_real2(quotient(d * d, s * s + 1), off * off);
}

// Measured over estimated magnitude; 1 where nothing was measured. f is multiplied by pull + (1 - pull) times this, where `pull` is 0 if
// magnitudes are taken over and 1 if nothing is to change. Not a number never comes of it: f is 0 where the estimate is.
__device__ __forceinline__ real ratio(real estimate, real m) {
#if DOUBLE
    return m < 0 ? 1.0 : quotient(m, root_of_power(estimate) + GUARD);  // GUARD added as on the CPU
#else
    return m < 0 ? 1.0f : m * rsqrt(estimate + 1e-20f);
#endif
}

// `error` of a frame; its weight: one over the pixels that count, and the variance of their moduli.
__device__ __forceinline__ real relaxation_of(Constraint rule, real error, real2 weight) {
    const real bound = fma(rule.noise, weight.y, rule.bound);
    return bound < 0 ? 0.0f : error <= bound ? 1.0f : sqrt(bound / error);
}

// e after the constraint is a real multiple of g and one of e.
struct Blend {
    real g, g_ratio, e, e_ratio;
};
__device__ __forceinline__ Blend blend_of(Constraint rule, real pull) {
    Blend blend = {rule.a + rule.b * rule.c * pull, rule.b * rule.c * (1 - pull),
                   (1 - rule.a - rule.b) + rule.b * (1 - rule.c) * pull, rule.b * (1 - rule.c) * (1 - pull)};
    return blend;
}
