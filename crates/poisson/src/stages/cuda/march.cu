// Marching: a warp owns a strip of 120 columns and walks along y with everything in registers. A lane holds 4 columns;
// neighbours in x come by shuffles, neighbours in y from rings of rows. Lanes 0 and 31 are halo and are computed twice.
// The stages of a pass follow each other a row apart, so that each row is read once and written once.

#include "stream.cu"

template <class T> __device__ __forceinline__ T from_west(T v) { return __shfl_up_sync(~0u, v, 1); }
template <class T> __device__ __forceinline__ T from_east(T v) { return __shfl_down_sync(~0u, v, 1); }

__device__ __forceinline__ float reciprocal(float v) { return __fdividef(1.0f, v); }
__device__ __forceinline__ double reciprocal(double v) { return 1.0 / v; }

// The weights of a lane's columns, and the inverse diagonal for the rows of the interior (others divide again).
template <class T> struct Columns {
    T west[4], east[4], inverse[4], inner;

    __device__ __forceinline__ Columns(const Level& l, int x) {
        const T *w = weights<T>(l.x) + 2 * x, *y = weights<T>(l.y) + (l.y.n / 2) * 2;
        inner = y[0] + y[1];
#pragma unroll
        for (int c = 0; c < 4; c++) {
            west[c] = __ldg(w + 2 * c);
            east[c] = __ldg(w + 2 * c + 1);
            inverse[c] = divided(c, inner);
        }
    }
    // 1 / diagonal, and 0 where the node is no unknown: one of its axes then has no weights.
    __device__ __forceinline__ T divided(int c, T across) const {
        T along = west[c] + east[c];
        return along > T(0) && across > T(0) ? reciprocal(along + across) : T(0);
    }
};

// Weights of a row: south, north.
template <class T> struct Across {
    T south, north;
};
template <class T> __device__ __forceinline__ Across<T> across(const Level& l, int j) {
    const T* w = weights<T>(l.y) + 2 * j;
    return {__ldg(w), __ldg(w + 1)};
}

// A v at the columns of one colour (`odd`: columns 1 and 3) of a row, as weighted differences to the centre.
template <class T> __device__ __forceinline__ void operator_row(const Columns<T>& m, Across<T> y, bool odd, const T* south,
                                                                const T* here, const T* north, T* out) {
    T beside = odd ? from_east(here[0]) : from_west(here[3]);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int c = 2 * h + odd;
        T w = c == 0 ? beside : here[(c + 3) & 3], e = c == 3 ? beside : here[(c + 1) & 3];
        out[h] = physics::second_difference(here[c], w, e, m.west[c], m.east[c]) +
                 physics::second_difference(here[c], south[c], north[c], y.south, y.north);
    }
}

// Over-relaxation of the columns of one colour of a row: v += omega / diagonal (A v - r).
template <class T> __device__ __forceinline__ void relax_row(const Columns<T>& m, Across<T> y, bool odd, T omega, const T* south,
                                                             T* here, const T* north, const T* r) {
    T av[2];
    operator_row(m, y, odd, south, here, north, av);
    bool regular = y.south + y.north == m.inner;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int c = 2 * h + odd;
        T inverse = regular ? m.inverse[c] : m.divided(c, y.south + y.north);
        here[c] = physics::relax(here[c], physics::residual(r[c], av[h]), omega * inverse);
    }
}

// r - A v at all columns of a row.
template <class T> __device__ __forceinline__ void residual_row(const Columns<T>& m, Across<T> y, const T* south, const T* here,
                                                                const T* north, const T* r, T* out) {
    T even[2], odd[2];
    operator_row(m, y, false, south, here, north, even);
    operator_row(m, y, true, south, here, north, odd);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        out[2 * h] = physics::residual(r[2 * h], even[h]);
        out[2 * h + 1] = physics::residual(r[2 * h + 1], odd[h]);
    }
}

// The first half-sweep from zero: red columns take -omega r / diagonal, the others 0.
template <class T>
__device__ __forceinline__ void start_row(const Columns<T>& m, Across<T> y, bool odd, T omega, const T* r, T* here) {
    bool regular = y.south + y.north == m.inner;
#pragma unroll
    for (int c = 0; c < 4; c++) {
        T inverse = regular ? m.inverse[c] : m.divided(c, y.south + y.north);
        here[c] = (c & 1) == odd ? -omega * r[c] * inverse : T(0);
    }
}

// R on the way: residuals come in row by row, red or black alike. Weights of a row are read a step ahead.
template <class T> struct Restriction {
    const T* weights;
    T fx[6], f_next[2] = {}, sum[2] = {};

    // Weights of the lane's two coarse columns, x/2 and x/2 + 1; none where a fine column is no unknown of `a`.
    template <class A> __device__ __forceinline__ Restriction(const Level& coarse, int x, const A& a) : weights(coarse.y.full) {
#pragma unroll
        for (int q = 0; q < 6; q++) fx[q] = coarse.x.full[3 * (x / 2) + q];
        fx[0] = __shfl_up_sync(~0u, a.unknown(3), 1) ? fx[0] : T(0);
        fx[1] = a.unknown(0) ? fx[1] : T(0);
        fx[2] = a.unknown(1) ? fx[2] : T(0), fx[3] = a.unknown(1) ? fx[3] : T(0);
        fx[4] = a.unknown(2) ? fx[4] : T(0);
        fx[5] = a.unknown(3) ? fx[5] : T(0);
    }
    // Row j with residual `res`, whether it is `odd`, and the next one by `way`; after an odd one `out` is the coarse row
    // behind it.
    __device__ __forceinline__ void row(int j, int way, bool odd, bool inside, const T* res, T* out) {
        T f[2] = {inside ? f_next[0] : T(0), inside ? f_next[1] : T(0)};
        // Row 2J, or 2J+1, which is also 2(J+1)-1.
        const T* next = weights + 3 * ((j + way) >> 1);
        f_next[0] = __ldg(next + (odd ? 1 : way > 0 ? 2 : 3)), f_next[1] = __ldg(next + (way > 0 ? 3 : 2));
        T beside = from_west(res[3]);
        T c0 = physics::three(fx[0], beside, fx[1], res[0], fx[2], res[1]);
        T c1 = physics::three(fx[3], res[1], fx[4], res[2], fx[5], res[3]);
        if (!odd) {
            sum[0] += f[0] * c0, sum[1] += f[0] * c1;
        } else {
            out[0] = sum[0] + f[0] * c0, out[1] = sum[1] + f[0] * c1;
            sum[0] = f[1] * c0, sum[1] = f[1] * c1;
        }
    }
};
