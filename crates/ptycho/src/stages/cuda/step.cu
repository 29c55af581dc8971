// Operations of threads on values in registers between two transforms. Loads and stores go by 16 bytes: waves lie in pairs of a thread's
// values, magnitudes in fours.

#include "registers.cu"
#include "constrain.cu"

__device__ __forceinline__ float4 magnitudes_at(const float* mag, int r) {
    return __ldcs((const float4*)mag + (r >> 2) * THREADS + threadIdx.x);
}

__device__ __forceinline__ float4 ratios(float2 f, float2 h, float4 m) {
    return make_float4(ratio(f.x, m.x), ratio(f.y, m.y), ratio(h.x, m.z), ratio(h.y, m.w));
}

// Values r and r + 1 of a frame in the order of the transform.
__device__ __forceinline__ float4 pair(const C* wave, int r) { return ((const float4*)wave)[(r >> 1) * THREADS + threadIdx.x]; }

// Last use.
__device__ __forceinline__ float4 pair_last(const C* wave, int r) {
    return __ldcs((const float4*)wave + (r >> 1) * THREADS + threadIdx.x);
}

__device__ __forceinline__ float4 both(const C* v, int r) { return make_float4(v[r].x, v[r].y, v[r + 1].x, v[r + 1].y); }

// e of values r and r + 1 after the constraint, times `scale` to `v`; gives the sum of the squared changes.
__device__ __forceinline__ float advance(C* v, float4 g, float4 e, C* wave, int r, float2 q, Blend blend, float scale) {
    float gx = fmaf(blend.g_ratio, q.x, blend.g), gy = fmaf(blend.g_ratio, q.y, blend.g);
    float ex = fmaf(blend.e_ratio, q.x, blend.e), ey = fmaf(blend.e_ratio, q.y, blend.e);
    float4 now = make_float4(gx * g.x + ex * e.x, gx * g.y + ex * e.y, gy * g.z + ey * e.z, gy * g.w + ey * e.w);
    if (wave) __stcs((float4*)wave + (r >> 1) * THREADS + threadIdx.x, now);
    v[r] = make_float2(now.x, now.y) * scale;
    v[r + 1] = make_float2(now.z, now.w) * scale;
    return power(make_float2(now.x - e.x, now.y - e.y)) + power(make_float2(now.z - e.z, now.w - e.w));
}

__device__ __forceinline__ float2 estimates(float4 g, float4 e, float c) {
    C f = make_float2(g.x, g.y) * c + make_float2(e.x, e.y) * (1 - c),
      h = make_float2(g.z, g.w) * c + make_float2(e.z, e.w) * (1 - c);
    return make_float2(power(f), power(h));
}

// All values of a thread to a wave in the order of the transform, and back.
__device__ __forceinline__ void put_pairs(C* wave, const C* v) {
#pragma unroll
    for (int r = 0; r < 32; r += 2) ((float4*)wave)[(r >> 1) * THREADS + threadIdx.x] = both(v, r);
}
__device__ __forceinline__ void take_pairs(C* v, const C* wave) {
#pragma unroll
    for (int r = 0; r < 32; r += 2) {
        float4 g = pair(wave, r);
        v[r] = make_float2(g.x, g.y), v[r + 1] = make_float2(g.z, g.w);
    }
}

// Last use.
__device__ __forceinline__ void take_pairs_last(C* v, const C* wave) {
#pragma unroll
    for (int r = 0; r < 32; r += 2) {
        float4 g = pair_last(wave, r);
        v[r] = make_float2(g.x, g.y), v[r + 1] = make_float2(g.z, g.w);
    }
}

// COUNT pairs of a wave from value `r` on, all asked for before the first is needed. Stores wait for what was loaded before them and loads
// are not moved past stores, so that pair by pair every load waits for the one before it.
template <int COUNT> __device__ __forceinline__ void some_pairs(float4* e, const C* wave, int r, bool last) {
#pragma unroll
    for (int j = 0; j < COUNT; ++j) {
        if (last) e[j] = pair_last(wave, r + 2 * j);
        else e[j] = pair(wave, r + 2 * j);
    }
}

// All magnitudes of a thread.
__device__ __forceinline__ void all_magnitudes(float4* m, const float* mag) {
#pragma unroll
    for (int r = 0; r < 32; r += 4) m[r >> 2] = magnitudes_at(mag, r);
}

// Intensities of a mode, added to those of the modes before it.
__device__ __forceinline__ void add_powers(float4* power_of, const C* v, bool first) {
#pragma unroll
    for (int r = 0; r < 32; r += 4) {
        float4 old = first ? make_float4(0, 0, 0, 0) : power_of[(r >> 2) * THREADS];
        power_of[(r >> 2) * THREADS] =
            make_float4(old.x + power(v[r]), old.y + power(v[r + 1]), old.z + power(v[r + 2]), old.w + power(v[r + 3]));
    }
}
