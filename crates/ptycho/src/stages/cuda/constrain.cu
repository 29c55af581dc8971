// The Fourier constraint at a pixel, where project.cu says what the letters mean.

#include "bins.cu"

#define GUARD real(1e-10)  // added to magnitudes in denominators

typedef ConstraintArgument<real> Constraint;

// Square roots and quotients of what is not negative. Those of doubles by a step of third order from an estimate of 20 bits: to two units in the
// last place, without the branches that the last bit takes. `chosen` is no branch either: the compiler would have one pixel wait for another.
#if DOUBLE && defined(__CUDA_ARCH__)
__device__ __forceinline__ real root_of_power(real x) {
    real y;
    const int high = max(__double2hiint(x), 0x03c00000);  // 1e-290, of which the estimate is finite
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(__hiloint2double(high, 0)));
    const real root = x * y, rest = fma(-root, y, 1.0);
    return fma(root * rest, fma(0.375, rest, 0.5), root);
}
__device__ __forceinline__ real quotient(real x, real by) {
    real y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(by));
    const real rest = fma(-by, y, 1.0);
    return x * fma(fma(rest, rest, rest), y, y);
}
__device__ __forceinline__ real chosen(bool first, real a, real b) {
    real c;
    asm("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %3, 0;\n\tselp.f64 %0, %1, %2, p;\n\t}" : "=d"(c) : "d"(a), "d"(b), "r"((u32)first));
    return c;
}
#else
__device__ __forceinline__ real root_of_power(real x) { return sqrt(x); }
__device__ __forceinline__ real quotient(real x, real by) { return x / by; }
__device__ __forceinline__ real chosen(bool first, real a, real b) { return first ? a : b; }
#endif

// A pixel's part of E_LL and E_F: intensity of the model, root of that of the estimate, measured magnitude (negative where there is none).
__device__ __forceinline__ real2 misfit_of_root(real model, real root, float m) {
    // Chosen before and not after: a branch here would have the loads of one pixel wait for those of the last.
    const bool none = m < 0;
    const real s = none ? 0.0f : m, d = (none ? 0.0f : model) - s * s, off = (none ? 0.0f : root) - s;
    return make_real2(quotient(d * d, s * s + 1), off * off);
}
__device__ __forceinline__ real2 misfit(real model, real estimate, float m) {
    return misfit_of_root(model, root_of_power(m < 0 ? 0.0f : estimate), m);
}

// Measured over estimated magnitude; 1 where nothing was measured. f is multiplied by pull + (1 - pull) times this, where `pull` is 0 if
// magnitudes are taken over and 1 if nothing is to change. Not a number never comes of it: f is 0 where the estimate is.
__device__ __forceinline__ real ratio_of_root(real root, float m) {
    return chosen(m < 0, 1, quotient(m < 0 ? 0.0f : m, root + GUARD));  // GUARD added as on the CPU
}
__device__ __forceinline__ real ratio(real estimate, float m) {
#if DOUBLE
    return ratio_of_root(root_of_power(estimate), m);
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
