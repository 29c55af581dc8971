// Numbers of the particles, and how they become integers.

#include "real.cuh"
#include "shapes.cuh"
#include "integers.cuh"

typedef REAL real;

#if WIDE
typedef long long fixed;
#define MAGIC 6755399441055744.0  // 1.5 * 2^52: adding and taking it off rounds to an integer
__device__ __forceinline__ fixed word(real x) { return __double_as_longlong(x); }
__device__ __forceinline__ real from_word(fixed bits) { return __longlong_as_double(bits); }
// In two halves: shared memory adds 32 bits by itself, 64 only in a loop that tries until nobody comes between. What the sum was is known to nobody.
__device__ __forceinline__ void shared_add(fixed* at, fixed v) {
    u32 *words = reinterpret_cast<u32*>(at), low = u32(v), before = atomicAdd(words, low);
    atomicAdd(words + 1, u32(u64(v) >> 32) + u32(before + low < before));
}
#else
typedef int fixed;
#define MAGIC 12582912.0f  // 1.5 * 2^23
__device__ __forceinline__ fixed word(real x) { return __float_as_int(x); }
__device__ __forceinline__ real from_word(fixed bits) { return __int_as_float(bits); }
__device__ __forceinline__ fixed shared_add(fixed* at, fixed v) { return atomicAdd(at, v); }
#endif

// A sum and a product of their own: never fused with each other, so that they are the same wherever they are written. Where two
// products meet in a sum, which of them is fused is the compiler's choice, and not the same for all sizes of tiles.
#if WIDE
__device__ __forceinline__ real plus(real a, real b) { return __dadd_rn(a, b); }
__device__ __forceinline__ real times(real a, real b) { return __dmul_rn(a, b); }
#else
__device__ __forceinline__ real plus(real a, real b) { return __fadd_rn(a, b); }
__device__ __forceinline__ real times(real a, real b) { return __fmul_rn(a, b); }
#endif

// The nearest integer, ties to even, so that -x gives the negative. |x| < MAGIC / 3.
__device__ __forceinline__ real whole(real x) { return plus(x, real(MAGIC)) - real(MAGIC); }
// The integer in x = i + MAGIC, and the nearest one to x: no conversion, whose unit is slow.
__device__ __forceinline__ fixed shifted(real x) { return word(x) - word(real(MAGIC)); }
__device__ __forceinline__ fixed to_fixed(real x) { return shifted(plus(x, real(MAGIC))); }
// The number of an integer, likewise.
__device__ __forceinline__ real real_of(fixed i) { return from_word(i + word(real(MAGIC))) - real(MAGIC); }
