// Models of noise at a pixel. NOISE: 0 Gaussian, 1 Poisson, 2 Euclid.

#define FLOOR real(1e-6)  // added to the modelled counts under Poisson's noise, as PtyPy does

// The value at a pixel of modelled intensity i and measured magnitude m, and its derivative by the intensity.
__device__ __forceinline__ real2 value_and_slope(real i, real m) {
    if (m < 0) return make_real2(0, 0);
    real counts = m * m;
    if (NOISE == 0) {
        real off = i - counts, w = 1 / (1 + counts);
        return make_real2(w * off * off, 2 * w * off);
    }
    if (NOISE == 1) {
        i += FLOOR;
        return make_real2(i - counts * log(i) + lgamma(counts + 1), 1 - counts / i);
    }
    real size = sqrt(i), off = size - m;
    return make_real2(off * off, size > 0 ? off / size : 0.0f);
}

// The part of the second derivative that goes with the square of the intensity's first order.
__device__ __forceinline__ real curvature(real i, real m) {
    if (m < 0) return 0;
    if (NOISE == 0) return 1 / (1 + m * m);
    if (NOISE == 1) return 0.5f * (m * m) / ((i + FLOOR) * (i + FLOOR));
    return i > 0 ? m / (4 * i * sqrt(i)) : 0.0f;
}

// Two sums whose ratio is the brightness that fits a frame best (its root, for NOISE 2).
__device__ __forceinline__ real2 brightness(real i, real m) {
    if (m < 0) return make_real2(0, 0);
    if (NOISE == 0) return make_real2(i * m * m / (1 + m * m), i * i / (1 + m * m));
    if (NOISE == 1) return make_real2(m * m, i);
    return make_real2(sqrt(i) * m, i);
}
