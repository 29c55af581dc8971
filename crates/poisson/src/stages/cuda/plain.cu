// A level's operator along the rows of a strip, as the passes of a cycle need it, in two forms with the same methods:
// General reads the weights of every row; Plain knows that all unknowns have the same weights, the two of an axis being
// equal (no end with a derivative, no shorter interval at the end), and takes less than half of the instructions.
// N: rows of the ring that a pass keeps.

#include "march.cu"

template <class T, int N> struct General {
    static constexpr bool plain = false;
    const Level& l;
    Columns<T> m;
    T pre, post;
    Across<T> Y[N] = {}, next;  // weights of a row are read a step ahead

    __device__ __forceinline__ General(const Level& l, int x, int begin, T pre, T post)
        : l(l), m(l, x), pre(pre), post(post), next(across<T>(l, begin)) {}
    // Row j comes into slot p.
    __device__ __forceinline__ void enter(int p, int j) { Y[p] = next, next = across<T>(l, j + 1); }
    __device__ __forceinline__ bool inside(int) const { return true; }
    __device__ __forceinline__ bool unknown(int c) const { return m.inverse[c] != T(0); }
    // The red half-sweep from zero on row j in slot p, whose red columns are the `odd` ones.
    __device__ __forceinline__ void start(int p, bool odd, const T* r, T* here) const { start_row(m, Y[p], odd, pre, r, here); }
    // The black half-sweep after it; `left`: see residual.
    __device__ __forceinline__ void first(int p, int, bool odd, const T* south, T* here, const T* north, const T* r, T*) const {
        relax_row(m, Y[p], odd, pre, south, here, north, r);
    }
    // A half-sweep after the coarse correction.
    __device__ __forceinline__ void relax(int p, int, bool odd, const T* south, T* here, const T* north, const T* r) const {
        relax_row(m, Y[p], odd, post, south, here, north, r);
    }
    // r - A v after the first sweep on a row whose red columns are the `odd` ones. Right where inside() and unknown() are.
    __device__ __forceinline__ void residual(int p, bool, const T* south, const T* here, const T* north, const T* r, const T*,
                                             T* out) const {
        residual_row(m, Y[p], south, here, north, r, out);
    }
};

template <class T, int N> struct Plain {
    static constexpr bool plain = true;
    T wx, wy, remains;
    T pre[4], post[4];  // factor over the diagonal; 0 off the unknowns
    int begin;
    unsigned count;  // rows of unknowns

    __device__ __forceinline__ Plain(const Level& l, int x, int, T omega_pre, T omega_post) {
        wx = weights<T>(l.x)[2 * (l.x.n / 2)], wy = weights<T>(l.y)[2 * (l.y.n / 2)];
        Columns<T> m(l, x);
#pragma unroll
        for (int c = 0; c < 4; c++) pre[c] = omega_pre * m.inverse[c], post[c] = omega_post * m.inverse[c];
        remains = omega_pre - T(1);
        begin = l.y.periodic ? -(1 << 30) : l.y.first;
        count = l.y.periodic ? ~0u : l.y.last - l.y.first;
    }
    __device__ __forceinline__ void enter(int, int) {}
    __device__ __forceinline__ bool inside(int j) const { return unsigned(j - begin) < count; }
    __device__ __forceinline__ bool unknown(int c) const { return pre[c] != T(0); }
    // Residuals are zero off the unknowns.
    __device__ __forceinline__ void start(int, bool odd, const T* r, T* here) const {
#pragma unroll
        for (int c = 0; c < 4; c++) here[c] = (c & 1) == odd ? -pre[c] * r[c] : T(0);
    }
    // Neighbours of the column `c` in x, the one in the next lane being `beside`.
    static __device__ __forceinline__ T west(int c, const T* here, T beside) { return c == 0 ? beside : here[(c + 3) & 3]; }
    static __device__ __forceinline__ T east(int c, const T* here, T beside) { return c == 3 ? beside : here[(c + 1) & 3]; }
    __device__ __forceinline__ void first(int, int j, bool odd, const T* south, T* here, const T* north, const T* r,
                                          T* left) const {
        T beside = odd ? from_east(here[0]) : from_west(here[3]);
        bool in = inside(j);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int c = 2 * h + odd;
            T defect = wx * (west(c, here, beside) + east(c, here, beside)) + (wy * (south[c] + north[c]) - r[c]);
            if (in) here[c] = pre[c] * defect;
            left[h] = remains * defect;
        }
    }
    __device__ __forceinline__ void relax(int, int j, bool odd, const T* south, T* here, const T* north, const T* r) const {
        T beside = odd ? from_east(here[0]) : from_west(here[3]);
        bool in = inside(j);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int c = 2 * h + odd;
            T v = here[c], dx = (west(c, here, beside) + east(c, here, beside)) - T(2) * v, dy = (south[c] + north[c]) - T(2) * v;
            T defect = wx * dx + (wy * dy - r[c]);
            if (in) here[c] = v + post[c] * defect;
        }
    }
    // Black nodes came last: relaxation by omega leaves (1 - omega) of their residual, which is `left`.
    __device__ __forceinline__ void residual(int, bool odd, const T* south, const T* here, const T* north, const T* r,
                                             const T* left, T* out) const {
        T beside = odd ? from_east(here[0]) : from_west(here[3]);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int c = 2 * h + odd;
            T v = here[c], dx = (west(c, here, beside) + east(c, here, beside)) - T(2) * v, dy = (south[c] + north[c]) - T(2) * v;
            out[c] = r[c] - wy * dy - wx * dx;
            out[2 * h + !odd] = left[h];
        }
    }
};
