// Fourier transforms of N values in a thread's registers, N of factors up to 13: by radix 4, 2 and primes, their roots known to the compiler.

#include "model.cu"

// cos and sin of 2 pi k / N.
template <int N> struct Roots {
    real c[N], s[N];
    __device__ constexpr Roots() : c(), s() {
        for (int k = 0; k < N; ++k) {
            const double x = 6.283185307179586 * (2 * k > N ? k - N : k) / N;  // within pi: 26 terms leave 1e-16
            double even = 1, odd = x, cosine = 1, sine = x;
            for (int i = 2; i < 27; i += 2) {
                even *= -x * x / ((i - 1) * i), odd *= -x * x / (i * (i + 1));
                cosine += even, sine += odd;
            }
            c[k] = real(cosine), s[k] = real(sine);
        }
    }
};

// a exp(SIGN 2 pi i k / N); the same in all threads.
template <int SIGN, int N> __device__ __forceinline__ C turned(C a, int k) {
    constexpr Roots<N> roots;
    if (k == 0) return a;
    if (2 * k == N) return make_real2(-a.x, -a.y);
    if (4 * k == N) return make_real2(-SIGN * a.y, SIGN * a.x);
    if (4 * k == 3 * N) return make_real2(SIGN * a.y, -SIGN * a.x);
    const real c = roots.c[k], s = SIGN * roots.s[k];
    return make_real2(a.x * c - a.y * s, a.x * s + a.y * c);
}

// A prime number of values, or four.
template <int SIGN, int P> __device__ __forceinline__ void prime(C* v) {
    if constexpr (P == 2) {
        const C a = v[0], b = v[1];
        v[0] = a + b, v[1] = a - b;
    } else if constexpr (P == 4) {
        const C a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = turned<SIGN, 4>(v[1] - v[3], 1);
        v[0] = a + c, v[1] = b + d, v[2] = a - c, v[3] = b - d;
    } else {
        // Values j and P - j: their sum goes with cosines, their difference with sines.
        constexpr int H = P / 2;
        constexpr Roots<P> roots;
        C sum[H + 1], difference[H + 1], all = v[0];
#pragma unroll
        for (int j = 1; j <= H; ++j) sum[j] = v[j] + v[P - j], difference[j] = v[j] - v[P - j], all = all + sum[j];
        const C first = v[0];
        v[0] = all;
#pragma unroll
        for (int k = 1; k <= H; ++k) {
            C even = first, odd = make_real2(0, 0);
#pragma unroll
            for (int j = 1; j <= H; ++j) even = even + sum[j] * roots.c[j * k % P], odd = odd + difference[j] * roots.s[j * k % P];
            const C aside = make_real2(-SIGN * odd.y, SIGN * odd.x);
            v[k] = even + aside, v[P - k] = even - aside;
        }
    }
}

__device__ constexpr int first_factor(int n) {
    if (n % 4 == 0) return 4;
    for (int p = 2; p * p <= n; ++p)
        if (n % p == 0) return p;
    return n;
}

// v to its transform, in natural order and without a factor.
template <int SIGN, int N> __device__ __forceinline__ void transform(C* v) {
    if constexpr (N > 1) {
        constexpr int P = first_factor(N), M = N / P;
        if constexpr (M == 1) {
            prime<SIGN, P>(v);
        } else {
            C part[P][M];
#pragma unroll
            for (int r = 0; r < M; ++r) {
                C t[P];
#pragma unroll
                for (int p = 0; p < P; ++p) t[p] = v[p * M + r];
                prime<SIGN, P>(t);
#pragma unroll
                for (int k = 0; k < P; ++k) part[k][r] = turned<SIGN, N>(t[k], k * r % N);
            }
#pragma unroll
            for (int k = 0; k < P; ++k) {
                transform<SIGN, M>(part[k]);
#pragma unroll
                for (int j = 0; j < M; ++j) v[k + P * j] = part[k][j];
            }
        }
    }
}

// exp(SIGN 2 pi i k / N) for 0 <= k < N: of doubles from a table, since to compute them takes as long as the transform.
template <int N> __device__ const Roots<N> ROOTS;
template <int SIGN, int N> __device__ __forceinline__ C root_of(int k) {
    if constexpr (sizeof(real) == 8) return make_real2(ROOTS<N>.c[k], SIGN * ROOTS<N>.s[k]);
    C w;
    sincospi(SIGN * (real(2) / N) * real(2 * k > N ? k - N : k), &w.y, &w.x);
    return w;
}

// v[k] *= exp(SIGN 2 pi i k r / N) for k < A, r < N / A: of roots whose k is a power of two, multiplied.
template <int SIGN, int A, int N> __device__ __forceinline__ void twist(C* v, int r) {
    C low[4], high = make_real2(1, 0);
    low[1] = root_of<SIGN, N>(A > 1 ? r : 0), low[2] = root_of<SIGN, N>(A > 2 ? 2 * r : 0), low[3] = low[1] * low[2];
    const C four = root_of<SIGN, N>(A > 4 ? 4 * r : 0), eight = root_of<SIGN, N>(A > 8 ? 8 * r : 0),
            sixteen = root_of<SIGN, N>(A > 16 ? 16 * r : 0);
#pragma unroll
    for (int k = 1; k < A; ++k) {
        if (k % 4 == 0) {
            high = k & 4 ? four : make_real2(1, 0);
            if (k & 8) high = k & 4 ? high * eight : eight;
            if (k & 16) high = k & 12 ? high * sixteen : sixteen;
        }
        v[k] = v[k] * (k < 4 ? low[k] : k % 4 ? high * low[k % 4] : high);
    }
}
