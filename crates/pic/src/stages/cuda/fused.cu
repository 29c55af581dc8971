// `Real::mul_add` of the formulae, fused by name: where the compiler may choose which of two products in a sum it fuses, programs
// for other tiles or pages give other last bits.

namespace zl {
__device__ __forceinline__ float mul_add(float x, float a, float b) { return ::fmaf(x, a, b); }
__device__ __forceinline__ double mul_add(double x, double a, double b) { return ::fma(x, a, b); }
}  // namespace zl
