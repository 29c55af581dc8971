// Frames and waves as they are kept and as kernels take them.

#include "bins.cu"

// Magnitudes in the kernels' order from counts of 16 bits (all bits: nothing was measured) or from magnitudes. Grid: (pixels / TEAM, frames).
extern "C" __global__ void __launch_bounds__(TEAM) from_counts(const unsigned short* raw, const u32* order, float* mag) {
    const u32 i = blockIdx.x * TEAM + threadIdx.x;
    if (i >= MX * MY) return;
    const u64 frame = (u64)blockIdx.y * (MX * MY);
    const u32 counts = raw[frame + (order ? order[i] : i)];
    mag[frame + i] = counts == 0xffff ? -1.0f : __fsqrt_rn(float(counts));
}
extern "C" __global__ void __launch_bounds__(TEAM) from_magnitudes(const float* raw, const u32* order, float* mag) {
    const u32 i = blockIdx.x * TEAM + threadIdx.x;
    if (i >= MX * MY) return;
    const u64 frame = (u64)blockIdx.y * (MX * MY);
    mag[frame + i] = raw[frame + (order ? order[i] : i)];
}

#if !DOUBLE
// Waves to half precision and back, both parts of a value in one word; values beyond its range stay at its end.
extern "C" __global__ void __launch_bounds__(TEAM) narrow(const C* waves, u32* half_precision, u64 count) {
    for (u64 i = thread_index(); i < count; i += thread_count()) {
        C v = waves[i];
        u32 word;
        v.x = fabsf(v.x) > 65504.0f ? copysignf(65504.0f, v.x) : v.x, v.y = fabsf(v.y) > 65504.0f ? copysignf(65504.0f, v.y) : v.y;
        asm("{ .reg .b16 a, b; cvt.rn.f16.f32 a, %1; cvt.rn.f16.f32 b, %2; mov.b32 %0, {a, b}; }"
            : "=r"(word)
            : "f"(v.x), "f"(v.y));
        half_precision[i] = word;
    }
}
extern "C" __global__ void __launch_bounds__(TEAM) widen(const u32* half_precision, C* waves, u64 count) {
    for (u64 i = thread_index(); i < count; i += thread_count()) {
        C v;
        asm("{ .reg .b16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b; }"
            : "=f"(v.x), "=f"(v.y)
            : "r"(half_precision[i]));
        waves[i] = v;
    }
}
#endif
