// ascend: e = one red-black sweep on A e = r from zero (made again, not stored), e += P e_{l+1}, one red-black sweep.
// Plane, both axes coarsened. Launch as descend. ascend reads 5 B and writes 4 B per unknown in float.
// ascend_correct goes on: u += e, and on level 0 r = f - A u and its norms; mixed 33 B per unknown, about 100 flops.
// Without `r_new` neither f nor the weights of `wide` matter.
// ascend_carry does not read f: the new residual is r - A e, made in `wide`, with the rounding of r in it and not that
// of f - A u. Mixed 25 B per unknown; in float 17 instead of 21.

#include "ascend_strip.cu"

extern "C" __global__ __launch_bounds__(32 * WARPS) void ascend(Level l, Level coarse, const real* r, const real* ec, real* e,
                                                                real omega_pre, real omega_post, int height) {
    ascend_strip<false, General<real, 6>>(l, coarse, r, ec, e, Correct{}, omega_pre, omega_post, height);
}
extern "C" __global__ __launch_bounds__(32 * WARPS) void ascend_plain(Level l, Level coarse, const real* r, const real* ec, real* e,
                                                                      real omega_pre, real omega_post, int height) {
    ascend_strip<false, Plain<real, 6>>(l, coarse, r, ec, e, Correct{}, omega_pre, omega_post, height);
}
extern "C" __global__ __launch_bounds__(32 * WARPS) void ascend_short(Level l, Level coarse, const real* r, const real* ec, real* e,
                                                                      real omega_pre, real omega_post, int height) {
    ascend_strip<false, Short<real, 6>>(l, coarse, r, ec, e, Correct{}, omega_pre, omega_post, height);
}

// 168 registers let 12 warps live on a multiprocessor instead of 8; double precision needs more than that.
#define ASCEND_BOUNDS __launch_bounds__(32 * WARPS, sizeof(real) == 4 ? 12 / WARPS : 1)
#define ASCEND_ARGUMENTS                                                                                                           \
    Level l, Level coarse, const real *r, const real *ec, const wide *u, const wide *f, wide *u_new, real *r_new, Norms norms,     \
        wide ascend_finest, wide down, real omega_pre, real omega_post, int height
#define ASCEND_CORRECT(OPERATOR, CARRY)                                                                                            \
    Correct o = {u, f, u_new, r_new, norms, ascend_finest, down};                                                                  \
    ascend_strip<true, OPERATOR<real, 6>, CARRY>(l, coarse, r, ec, nullptr, o, omega_pre, omega_post, height)
extern "C" __global__ ASCEND_BOUNDS void ascend_correct(ASCEND_ARGUMENTS) { ASCEND_CORRECT(General, false); }
extern "C" __global__ ASCEND_BOUNDS void ascend_correct_plain(ASCEND_ARGUMENTS) { ASCEND_CORRECT(Plain, false); }
extern "C" __global__ ASCEND_BOUNDS void ascend_carry_plain(ASCEND_ARGUMENTS) { ASCEND_CORRECT(Plain, true); }
