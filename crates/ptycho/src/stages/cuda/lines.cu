// Transforms of lines of values through shared memory, a tile of lines a block, in two or three passes.

#include "radix.cu"

// Lines of A * B * D values, LINES of them a block; ACROSS: neighbouring lines are neighbours in memory. A pass of radix A, one of B, one of D.
template <int A_, int B_, int D_, int LINES_, int THREADS_, bool ACROSS_> struct Axis {
    static constexpr int A = A_, B = B_, D = D_, N = A * B * D, REST = B * D, PITCH = REST | 1, LINES = LINES_, THREADS = THREADS_;
    static constexpr int LAST = D > 1 ? D : B, STEP = N / LAST;
    // An odd pitch: what is A apart lies in different banks.
    static __device__ __forceinline__ int slot(int line, int i) { return ACROSS_ ? i * LINES + line : line * (A * PITCH) + i; }
    static __device__ __forceinline__ int line(int i, int each) { return ACROSS_ ? i % LINES : i / each; }
    static __device__ __forceinline__ int inner(int i, int each) { return ACROSS_ ? i / LINES : i % each; }
};
typedef Axis<XA, XB, XD, ROWS, ROW_THREADS, false> Row;
typedef Axis<YA, YB, YD, COLUMNS, COLUMN_THREADS, true> Column;

// Transforms of a block's lines. `load(v, line, i)`: v[a] = value i + a REST of the line; `store(v, line, i)`: v[j] is value i + j STEP.
template <class X, int SIGN, class Load, class Store> __device__ __forceinline__ void lines(C* room, Load load, Store store) {
#pragma unroll 1
    for (int i = threadIdx.x; i < X::LINES * X::REST; i += X::THREADS) {
        const int line = X::line(i, X::REST), rest = X::inner(i, X::REST);
        C v[X::A];
        load(v, line, rest);
        transform<SIGN, X::A>(v);
        twist<SIGN, X::A, X::N>(v, rest);
#pragma unroll
        for (int k = 0; k < X::A; ++k) room[X::slot(line, k * X::PITCH + rest)] = v[k];
    }
    __syncthreads();
    if constexpr (X::D > 1) {
#pragma unroll 1
        for (int i = threadIdx.x; i < X::LINES * X::A * X::D; i += X::THREADS) {
            const int line = X::line(i, X::A * X::D), inner = X::inner(i, X::A * X::D),
                      first = inner % X::A * X::PITCH + inner / X::A;
            C v[X::B];
#pragma unroll
            for (int b = 0; b < X::B; ++b) v[b] = room[X::slot(line, first + b * X::D)];
            transform<SIGN, X::B>(v);
            twist<SIGN, X::B, X::REST>(v, inner / X::A);
#pragma unroll
            for (int b = 0; b < X::B; ++b) room[X::slot(line, first + b * X::D)] = v[b];
        }
        __syncthreads();
    }
#pragma unroll 1
    for (int i = threadIdx.x; i < X::LINES * X::STEP; i += X::THREADS) {
        const int line = X::line(i, X::STEP), inner = X::inner(i, X::STEP),
                  first = inner % X::A * X::PITCH + inner / X::A * X::LAST;
        C v[X::LAST];
#pragma unroll
        for (int j = 0; j < X::LAST; ++j) v[j] = room[X::slot(line, first + j)];
        transform<SIGN, X::LAST>(v);
        store(v, line, inner);
    }
}

// Arguments of `load` and `store`: numbers of the values in `v`, and of what is stored in its line.
#define EACH_LOADED(X, a) _Pragma("unroll") for (int a = 0; a < X::A; ++a)
#define EACH_STORED(X, j) _Pragma("unroll") for (int j = 0; j < X::LAST; ++j)
#define STORED(X, i, j) ((i) + (j) * X::STEP)
#define EACH_EIGHTH(count, i0) _Pragma("unroll") for (int i0 = 0; i0 < (count); i0 += 8)
#define EACH_OF_EIGHT(count, i0, i) _Pragma("unroll") for (int i = i0; i < (i0 + 8 < (count) ? i0 + 8 : (count)); ++i)
