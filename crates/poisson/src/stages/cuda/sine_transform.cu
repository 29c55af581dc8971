// The transform of a line of sines.cu in shared memory.

#include "common.cu"

struct alignas(2 * sizeof(real)) Complex {
    real x, y;
};
__device__ __forceinline__ Complex operator+(Complex a, Complex b) { return {a.x + b.x, a.y + b.y}; }
__device__ __forceinline__ Complex operator-(Complex a, Complex b) { return {a.x - b.x, a.y - b.y}; }
__device__ __forceinline__ Complex operator*(Complex a, Complex b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }
// Times -i.
__device__ __forceinline__ Complex times_minus_i(Complex a) { return {a.y, -a.x}; }

// DFTs of R points that lie STEP apart in `v`, in place.
template <int R, int STEP> __device__ __forceinline__ void dft(Complex* v) {
    if constexpr (R == 2) {
        Complex a = v[0], b = v[STEP];
        v[0] = a + b, v[STEP] = a - b;
    } else {
        constexpr int H = R / 2;
        Complex even[H], odd[H];
#pragma unroll
        for (int q = 0; q < H; q++) even[q] = v[2 * q * STEP], odd[q] = v[(2 * q + 1) * STEP];
        dft<H, 1>(even), dft<H, 1>(odd);
        const real half = real(0.70710678118654752440);
#pragma unroll
        for (int q = 0; q < H; q++) {
            Complex w = odd[q];
            if (4 * q == R) w = times_minus_i(w);
            if (8 * q == R) w = {half * (w.x + w.y), half * (w.y - w.x)};
            if (8 * q == 3 * R) w = {half * (w.y - w.x), -half * (w.x + w.y)};
            v[q * STEP] = even[q] + w, v[(q + H) * STEP] = even[q] - w;
        }
    }
}

// Points 1 .. R-1 of R, STEP apart, times the powers of w, each a product of two that are half as high.
template <int R, int STEP> __device__ __forceinline__ void twiddle(Complex w, Complex* v) {
    Complex power[R];
    power[1] = w;
#pragma unroll
    for (int r = 2; r < R; r++) power[r] = power[r / 2] * power[r - r / 2];
#pragma unroll
    for (int r = 1; r < R; r++) v[r * STEP] = v[r * STEP] * power[r];
}

// A line in shared memory: a gap after every eight points keeps the threads of a pass in different banks.
__device__ __forceinline__ int spot(int i) { return i + (i >> 3); }

// The last pass, of radix R: point t + m n/8 lands where it was.
template <int R> __device__ __forceinline__ void last_pass(int n, int t, const Complex* __restrict__ roots, Complex* v) {
#pragma unroll
    for (int i = 0; i < 8 / R; i++) {
        twiddle<R, 8 / R>(roots[t + i * (n / 8)], v + i);
        dft<R, 8 / R>(v + i);
    }
}

// The odd continuation of z_0 .. z_N given by `load(j)`, which is zero at both ends, transformed: point t + m n/8 of Z in v[m].
// Thread t of n/8, all of a block together; roots: exp(-2 pi i k / n). The line may hold what `load` reads.
template <class Load> __device__ __forceinline__ void odd_transform(int n, int t, const Complex* __restrict__ roots, Complex* line,
                                                                    Complex* v, Load load) {
#pragma unroll
    for (int r = 0; r < 4; r++) {
        v[r] = load(t + r * (n / 8));
        Complex mirror = load(n / 2 - t - r * (n / 8));
        v[4 + r] = {-mirror.x, -mirror.y};
    }
    dft<8, 1>(v);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 8; r++) line[spot(8 * t + r)] = v[r];
    __syncthreads();
    int s = 8, left = n / 8;
    for (; left > 8; s *= 8, left /= 8) {
        const int low = t & (s - 1), step = n / (8 * s) * low;
#pragma unroll
        for (int r = 0; r < 8; r++) v[r] = line[spot(t + r * (n / 8))];
        twiddle<8, 1>(roots[step], v);
        dft<8, 1>(v);
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 8; r++) line[spot((t - low) * 8 + low + r * s)] = v[r];
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 8; r++) v[r] = line[spot(t + r * (n / 8))];
    if (left == 8) last_pass<8>(n, t, roots, v);
    else if (left == 4) last_pass<4>(n, t, roots, v);
    else last_pass<2>(n, t, roots, v);
}
