// `Real::mul_add` of the formulae, fused by name: where the compiler may choose which of two products in a sum it fuses, programs
// for other tiles or pages give other last bits.

#include "real.cuh"

namespace zl {
__device__ __forceinline__ float mul_add(float x, float a, float b) { return ::fmaf(x, a, b); }
__device__ __forceinline__ double mul_add(double x, double a, double b) { return ::fma(x, a, b); }
// Named too: a reciprocal of a square root becomes one instruction in some programs and two in others, with other last bits.
template <> __device__ inline float recip<float>(float x) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
}  // namespace zl
