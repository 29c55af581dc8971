// Models of noise at a pixel. NOISE: 0 Gaussian, 1 Poisson, 2 Euclid.

#define FLOOR 1e-6f  // added to the modelled counts under Poisson's noise, as PtyPy does

// The value at a pixel of modelled intensity i and measured magnitude m, and its derivative by the intensity.
__device__ __forceinline__ float2 value_and_slope(float i, float m) {
    if (m < 0) return make_float2(0, 0);
    float counts = m * m;
    if (NOISE == 0) {
        float off = i - counts, w = 1 / (1 + counts);
        return make_float2(w * off * off, 2 * w * off);
    }
    if (NOISE == 1) {
        i += FLOOR;
        return make_float2(i - counts * logf(i) + lgammaf(counts + 1), 1 - counts / i);
    }
    float size = sqrtf(i), off = size - m;
    return make_float2(off * off, size > 0 ? off / size : 0.0f);
}

// The part of the second derivative that goes with the square of the intensity's first order.
__device__ __forceinline__ float curvature(float i, float m) {
    if (m < 0) return 0;
    if (NOISE == 0) return 1 / (1 + m * m);
    if (NOISE == 1) return 0.5f * (m * m) / ((i + FLOOR) * (i + FLOOR));
    return i > 0 ? m / (4 * i * sqrtf(i)) : 0.0f;
}

// Two sums whose ratio is the brightness that fits a frame best (its root, for NOISE 2).
__device__ __forceinline__ float2 brightness(float i, float m) {
    if (m < 0) return make_float2(0, 0);
    if (NOISE == 0) return make_float2(i * m * m / (1 + m * m), i * i / (1 + m * m));
    if (NOISE == 1) return make_float2(m * m, i);
    return make_float2(sqrtf(i) * m, i);
}
