// The arrays that all kernels share: complex values, frames of NX * NY with pixel 0 on the optical axis, MODES = PROBES * OBJECTS of them a
// view.

// Numbers: of single precision, or with DOUBLE of double; whole numbers of the same size; two and four together.
#if DOUBLE
typedef double real;
typedef double2 real2;
struct alignas(16) real4 {
    double x, y, z, w;
};
typedef u64 word;
__device__ __forceinline__ word bits_of(real x) { return (word)__double_as_longlong(x); }
__device__ __forceinline__ real from_bits(word x) { return __longlong_as_double((i64)x); }
#else
typedef float real;
typedef float2 real2;
typedef float4 real4;
typedef u32 word;
__device__ __forceinline__ word bits_of(real x) { return (word)__float_as_int(x); }
__device__ __forceinline__ real from_bits(word x) { return __int_as_float((i32)x); }
#endif
__device__ __forceinline__ real2 make_real2(real x, real y) { return {x, y}; }
__device__ __forceinline__ real4 make_real4(real x, real y, real z, real w) { return {x, y, z, w}; }

typedef real2 C;
__device__ __forceinline__ C operator+(C a, C b) { return make_real2(a.x + b.x, a.y + b.y); }
__device__ __forceinline__ C operator-(C a, C b) { return make_real2(a.x - b.x, a.y - b.y); }
__device__ __forceinline__ C operator*(C a, real s) { return make_real2(a.x * s, a.y * s); }
__device__ __forceinline__ C operator*(C a, C b) { return make_real2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
__device__ __forceinline__ C conj(C a) { return make_real2(a.x, -a.y); }
__device__ __forceinline__ real power(C a) { return a.x * a.x + a.y * a.y; }

#include "arguments.cuh"
typedef StorageArgument Storage;
typedef ModelArgument Model;

// View `n`; where views see the probe between pixels (SHIFTED) every view has a probe of its own.
__device__ __forceinline__ View view_at(const Model& model, u32 n) {
    View view = model.views[n];
    if (SHIFTED) view.probe = n;
    return view;
}

__device__ __forceinline__ u64 patch_of(const Model& model, const View& view, int mode) {
    const Storage s = model.storages[view.object];
    return s.offset + ((u64)mode * s.height + view.row) * s.width + view.col;
}

// The magnitude brought into a range, phase kept; low < 0: none.
__device__ __forceinline__ C clipped(C value, real low, real high) {
    real size = sqrt(power(value));
    if (low < 0 || (size >= low && size <= high)) return value;
    return size > 0 ? value * ((size < low ? low : high) / size) : make_real2(low, 0);
}

// exp(-2 pi i k d / n) of both axes at a pixel of Fourier space.
__device__ __forceinline__ real frequency_of(u32 i, u32 n) { return i < (n + 1) / 2 ? real(i) : real(i) - real(n); }
__device__ __forceinline__ C ramp(real2 by, u32 pixel) {
    C value;
    sincospi(-2 * (frequency_of(pixel / NX, NY) * by.x / NY + frequency_of(pixel % NX, NX) * by.y / NX), &value.y, &value.x);
    return value;
}
