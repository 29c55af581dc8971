// Fourier transforms of one frame held in registers: 32 values a thread, by radix 2 to 32 in registers with exchanges between.
//
// NX = 2^LX by NY = 2^LY values, NX at least 32; 2^CL blocks of a cluster share a frame. Bits of an index in a thread's 32 values, before:
//   x = xr * 32 + lane, y = yr * SLOW + s with s = warp << CL | block; register r = yr << XR | xr.
// After the forward transform (which is left in this order; the inverse comes back from it): see `order` of program.rs.
// Exchange 1 lies within a warp, exchange 2 within a block, exchange 3 within a cluster, the last only for CL > 0.
// No scale: forward and inverse together multiply by NX * NY.

#include "hopper.cu"

#define XR (LX - 5)
#define YR (10 - LX)
#define WB (LY - YR - CL)
#define WARPS (1 << WB)
#define THREADS (WARP << WB)
#define BLOCKS (1 << CL)
#define SLOW (1 << (WB + CL))
// Floats of a warp's part of the exchange: 32 rows of 33, so that rows and columns both lie in different banks.
#define PART 1056
// The last exchange of a cluster has shared memory of its own where no intensities wait there.
#ifndef NARROW
#define NARROW 0
#endif
#define WIDE (CL > 0 && MODES == 1 && !NARROW)
// Values before the desk: must agree with program.rs.
#define BIG (FETCH || WIDE || MODES > 1 ? 32 * THREADS : 0)

// cos(2 pi k / 32) for k = 0 .. 8.
__device__ constexpr float quarter(int k) {
    return k == 0   ? 1.0f
           : k == 1 ? 0.98078528040323044913f
           : k == 2 ? 0.92387953251128675613f
           : k == 3 ? 0.83146961230254523708f
           : k == 4 ? 0.70710678118654752440f
           : k == 5 ? 0.55557023301960222474f
           : k == 6 ? 0.38268343236508977173f
           : k == 7 ? 0.19509032201612826785f
                    : 0.0f;
}
__device__ constexpr float cosine(int k) { return k <= 8 ? quarter(k) : -quarter(16 - k); }  // k <= 16
__device__ constexpr float sine(int k) { return k <= 8 ? quarter(8 - k) : quarter(k - 8); }  // k <= 16
__device__ constexpr int reversed(int i, int n) { return n == 1 ? 0 : (i & 1) * (n / 2) + reversed(i >> 1, n / 2); }

// a, b <- a + w b, a - w b with w = exp(SIGN 2 pi i k / n).
template <int SIGN, int K, int N> __device__ __forceinline__ void butterfly(C& a, C& b) {
    [[maybe_unused]] constexpr float c = cosine(K * 32 / N), s = SIGN * sine(K * 32 / N);
    C sum, difference;
    if constexpr (K == 0) {
        sum = a + b, difference = a - b;
    } else if constexpr (4 * K == N) {
        C t = make_float2(-SIGN * b.y, SIGN * b.x);
        sum = a + t, difference = a - t;
    } else {
        sum.x = fmaf(-s, b.y, fmaf(c, b.x, a.x));
        sum.y = fmaf(s, b.x, fmaf(c, b.y, a.y));
        difference.x = fmaf(s, b.y, fmaf(-c, b.x, a.x));
        difference.y = fmaf(-s, b.x, fmaf(-c, b.y, a.y));
    }
    a = sum, b = difference;
}

// One level: pairs M apart, then the next.
template <int SIGN, int N, int M, int I> struct Level {
    static __device__ __forceinline__ void run(C* t) {
        constexpr int j = I % M, k = (I / M) * 2 * M;
        butterfly<SIGN, j, 2 * M>(t[k + j], t[k + j + M]);
        Level<SIGN, N, M, I + 1>::run(t);
    }
};
template <int SIGN, int N, int M> struct Level<SIGN, N, M, N / 2> {
    static __device__ __forceinline__ void run(C* t) { Level<SIGN, N, 2 * M, 0>::run(t); }
};
// N / 2 pairs and M = N: done. Both specialisations would match N = 1.
template <int SIGN, int N> struct Level<SIGN, N, N, 0> {
    static __device__ __forceinline__ void run(C*) {}
};

// v[FIRST + STRIDE * i], i < N, to its transform in natural order.
template <int SIGN, int N, int STRIDE> __device__ __forceinline__ void dft(C* v) {
    if constexpr (N > 1) {
        C t[N];
#pragma unroll
        for (int i = 0; i < N; ++i) t[i] = v[STRIDE * reversed(i, N)];
        Level<SIGN, N, 1, 0>::run(t);
#pragma unroll
        for (int i = 0; i < N; ++i) v[STRIDE * i] = t[i];
    }
}

// exp(-2 pi i k / n).
__device__ __forceinline__ C root(int k, int n) {
    float s, c;
    sincospif(-2.0f * float(k) / float(n), &s, &c);
    return make_float2(c, s);
}

// Index of a thread in its frame, and the factors that go with it for the whole run of a kernel.
struct ThreadContext {
    int lane, warp, block;
    float* part;     // this warp's part of the exchange
    float* all;      // the whole exchange: WARPS * PART floats, shared
    const C* table;  // exp(-2 pi i s ky / NY) for ky < 2^YR, of this warp, shared
    const C* slow;   // exp(-2 pi i block kw / SLOW) for kw < WARPS, shared
    C along;         // exp(-2 pi i lane / NX)
};

// Values of the tables of a block, and their making; all threads come here.
#define TABLES ((WARPS << YR) + WARPS)
__device__ __forceinline__ ThreadContext thread_context(float* all, C* tables, int block) {
    ThreadContext thread = {(int)lane_index(), (int)threadIdx.x / WARP, block};
    thread.part = all + thread.warp * PART;
    thread.all = all;
    thread.table = tables + (thread.warp << YR);
    thread.slow = tables + (WARPS << YR);
    thread.along = root(thread.lane, NX);
    if (thread.lane < (1 << YR)) tables[(thread.warp << YR) + thread.lane] = root((thread.warp << CL | block) * thread.lane, NY);
    if (threadIdx.x < WARPS) tables[(WARPS << YR) + threadIdx.x] = root(block * threadIdx.x, SLOW);
    __syncthreads();
    return thread;
}
