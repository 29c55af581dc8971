// Helpers that text emitted by `#[device]` calls, in namespace `zl`: each is the C++ form of a Rust operation of the
// same meaning. Also compiles as plain C++17, so that emitted text can be tested without a GPU.
#ifndef ZL_REAL_CUH
#define ZL_REAL_CUH
#ifndef __CUDACC__
#include <cmath>
#include <cstring>
#ifndef __device__
#define __device__
#endif
#endif

namespace zl {
#define ZL_F1(name, f, d)                                                                                                          \
    __device__ inline float name(float x) { return f(x); }                                                                         \
    __device__ inline double name(double x) { return d(x); }
#define ZL_F2(name, f, d)                                                                                                          \
    __device__ inline float name(float x, float y) { return f(x, y); }                                                             \
    __device__ inline double name(double x, double y) { return d(x, y); }
ZL_F1(sqrt, ::sqrtf, ::sqrt)
ZL_F1(abs, ::fabsf, ::fabs)
ZL_F1(floor, ::floorf, ::floor)
ZL_F1(ceil, ::ceilf, ::ceil)
ZL_F1(exp, ::expf, ::exp)
ZL_F1(ln, ::logf, ::log)
ZL_F1(sin, ::sinf, ::sin)
ZL_F1(cos, ::cosf, ::cos)
ZL_F2(powf, ::powf, ::pow)
ZL_F2(copysign, ::copysignf, ::copysign)
// `f32::min` and `f64::max` of the standard library: the other one where one is not a number.
ZL_F2(fmin, ::fminf, ::fmin)
ZL_F2(fmax, ::fmaxf, ::fmax)
#undef ZL_F1
#undef ZL_F2
template <typename T> __device__ inline T fmin(T x, T y) { return x < y ? x : y; }
template <typename T> __device__ inline T fmax(T x, T y) { return x > y ? x : y; }
__device__ inline int abs(int x) { return x < 0 ? -x : x; }
__device__ inline long long abs(long long x) { return x < 0 ? -x : x; }
__device__ inline float fma(float x, float a, float b) { return ::fmaf(x, a, b); }
__device__ inline double fma(double x, double a, double b) { return ::fma(x, a, b); }

template <typename T> __device__ inline T recip(T x) { return T(1) / x; }
template <typename T> __device__ inline T recip_sqrt(T x) { return recip(sqrt(x)); }
// `Real::mul_add`: two roundings on the CPU; fused where the compiler of the GPU fuses.
template <typename T> __device__ inline T mul_add(T x, T a, T b) { return x * a + b; }
// `Real::min`, `Real::max`, and those of integers: the second where the comparison does not hold.
template <typename T> __device__ inline T min(T x, T y) { return x < y ? x : y; }
template <typename T> __device__ inline T max(T x, T y) { return x > y ? x : y; }
template <typename T> __device__ inline T select(bool mask, T a, T b) { return mask ? a : b; }

// The bits of a number, and the number with such bits.
#ifdef __CUDACC__
__device__ inline unsigned long long to_bits(double x) { return (unsigned long long)__double_as_longlong(x); }
__device__ inline double from_bits(unsigned long long x) { return __longlong_as_double((long long)x); }
#else
inline unsigned long long to_bits(double x) {
    unsigned long long bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
inline double from_bits(unsigned long long bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
#endif

// A literal of the type of `x`.
template <typename T, typename V> __device__ inline T like(T, V v) { return T(v); }

// Operations whose C++ form depends on whether the operand is a truth value.
template <typename T> __device__ inline T inv(T x) { return ~x; }
template <> __device__ inline bool inv(bool x) { return !x; }
template <typename T> __device__ inline T bit_and(T x, T y) { return T(x & y); }
template <typename T> __device__ inline T bit_or(T x, T y) { return T(x | y); }
template <typename T> __device__ inline T bit_xor(T x, T y) { return T(x ^ y); }

// Signed overflow is undefined in C++: wrap in the unsigned type.
__device__ inline unsigned int wrap(unsigned int x) { return x; }
__device__ inline unsigned int wrap(int x) { return (unsigned int)x; }
__device__ inline unsigned long long wrap(unsigned long long x) { return x; }
__device__ inline unsigned long long wrap(long long x) { return (unsigned long long)x; }
template <typename T> __device__ inline T wrapping_add(T x, T y) { return T(wrap(x) + wrap(y)); }
template <typename T> __device__ inline T wrapping_sub(T x, T y) { return T(wrap(x) - wrap(y)); }
template <typename T> __device__ inline T wrapping_mul(T x, T y) { return T(wrap(x) * wrap(y)); }
template <typename T> __device__ inline bool is_multiple_of(T x, T y) { return y == T(0) ? x == T(0) : x % y == T(0); }
template <typename T> __device__ inline T rem_euclid(T x, T y) {
    T r = x % y;
    return r < T(0) ? (y < T(0) ? r - y : r + y) : r;
}

// `as` from a real to an integer. The conversions of the GPU saturate as Rust's do; those of C++ must be kept in range.
// (One that is not a number becomes 0 in Rust, and on the GPU 0 or the least integer.)
template <typename I> __device__ inline I limit(bool);
template <> __device__ inline int limit<int>(bool top) { return top ? 2147483647 : -2147483647 - 1; }
template <> __device__ inline unsigned int limit<unsigned int>(bool top) { return top ? 4294967295u : 0u; }
template <> __device__ inline long long limit<long long>(bool top) {
    return top ? 9223372036854775807ll : -9223372036854775807ll - 1;
}
template <> __device__ inline unsigned long long limit<unsigned long long>(bool top) {
    return top ? 18446744073709551615ull : 0ull;
}
template <typename I, typename T> __device__ inline I truncate(T x) {
#ifndef __CUDACC__
    if (x != x) return I(0);
    if (x <= T(limit<I>(false))) return limit<I>(false);
    if (x >= T(limit<I>(true))) return limit<I>(true);
#endif
    return I(x);
}
template <typename I> __device__ inline I cast(float x) { return truncate<I>(x); }
template <typename I> __device__ inline I cast(double x) { return truncate<I>(x); }
template <typename I> __device__ inline I cast(bool x) { return I(x); }
template <typename I> __device__ inline I cast(int x) { return I(x); }
template <typename I> __device__ inline I cast(unsigned int x) { return I(x); }
template <typename I> __device__ inline I cast(long long x) { return I(x); }
template <typename I> __device__ inline I cast(unsigned long long x) { return I(x); }
}  // namespace zl
#endif
