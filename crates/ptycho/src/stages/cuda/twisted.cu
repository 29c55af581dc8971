// Fourier transforms of 2^n values in a thread's registers together with the factors that come between two passes, v[x] u^x in place of v[x]: at
// no cost, since a butterfly takes six operations with any factor.

#include "radix.cu"

__device__ constexpr int reversed_bits(int i, int n) { return n == 1 ? 0 : (i & 1) * (n / 2) + reversed_bits(i >> 1, n / 2); }

// a, b <- a + w b, a - w b.
__device__ __forceinline__ void butterfly(C& a, C& b, C w) {
    const C sum = make_real2(fma(-w.y, b.y, fma(w.x, b.x, a.x)), fma(w.y, b.x, fma(w.x, b.y, a.y)));
    b = make_real2(fma(real(2), a.x, -sum.x), fma(real(2), a.y, -sum.y)), a = sum;
}

// Roots of unity of order 128 as the compiler knows them, w = exp(SIGN 2 pi i k / 128): no factor where there is none.
template <int SIGN> struct KnownRoots {
    __device__ __forceinline__ void join(C& a, C& b, int k) const {
        constexpr Roots<128> roots;
        k &= 127;
        if (k % 32) {
            butterfly(a, b, make_real2(roots.c[k], SIGN * roots.s[k]));
        } else {
            const C w = turned<SIGN, 128>(b, k);
            b = a - w, a = a + w;
        }
    }
};

// Roots of that order from a table.
template <int SIGN> struct TableRoots {
    const C* table;  // exp(-2 pi i k / 128)

    __device__ __forceinline__ void join(C& a, C& b, int k) const {
        const C w = table[k & 127];
        butterfly(a, b, SIGN < 0 ? w : conj(w));
    }
};

// v to its transform over x of v[x] u^x with u = exp(SIGN 2 pi i e / 128), in natural order.
template <int N, class Known> __device__ __forceinline__ void twisted(C* v, const Known& roots, int e) {
    C t[N];
#pragma unroll
    for (int i = 0; i < N; ++i) t[i] = v[reversed_bits(i, N)];
#pragma unroll
    for (int m = 1; m < N; m *= 2) {
#pragma unroll
        for (int j = 0; j < m; ++j) {
#pragma unroll
            for (int k = 0; k < N; k += 2 * m) roots.join(t[k + j], t[k + j + m], e * (N / 2 / m) + j * (64 / m));
        }
    }
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = t[i];
}
