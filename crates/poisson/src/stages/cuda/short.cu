// As Plain but for the last unknown of an axis that is not periodic, whose intervals may differ: levels below an odd number
// of intervals, and a high end with a derivative.

#include "plain.cu"

template <class T, int N> struct Short {
    static constexpr bool plain = true;
    T west[4], east[4], inside_y, south, north;  // weights; `south` and `north` of the last row
    T pre[4], post[4], pre_last[4], post_last[4], remains;
    int at[N] = {}, first_row, last_row;  // rows in the slots

    __device__ __forceinline__ Short(const Level& l, int x, int, T omega_pre, T omega_post) {
        Columns<T> m(l, x);
        Across<T> y = across<T>(l, l.y.last - 1);
        inside_y = weights<T>(l.y)[2 * (l.y.n / 2)], south = y.south, north = y.north;
        first_row = l.y.first, last_row = l.y.last - 1, remains = omega_pre - T(1);
#pragma unroll
        for (int c = 0; c < 4; c++) {
            T end = m.divided(c, south + north);
            west[c] = m.west[c], east[c] = m.east[c];
            pre[c] = omega_pre * m.inverse[c], post[c] = omega_post * m.inverse[c];
            pre_last[c] = omega_pre * end, post_last[c] = omega_post * end;
        }
    }
    __device__ __forceinline__ void enter(int p, int j) { at[p] = j; }
    __device__ __forceinline__ bool inside(int j) const { return j >= first_row && j <= last_row; }
    __device__ __forceinline__ bool unknown(int c) const { return pre[c] != T(0); }
    __device__ __forceinline__ bool end(int p) const { return at[p] == last_row; }
    __device__ __forceinline__ void start(int p, bool odd, const T* r, T* here) const {
#pragma unroll
        for (int c = 0; c < 4; c++) here[c] = (c & 1) == odd ? -(end(p) ? pre_last[c] : pre[c]) * r[c] : T(0);
    }
    // A v - r at a column.
    __device__ __forceinline__ T defect(int p, int c, T beside, const T* south_row, const T* here, const T* north_row,
                                        const T* r) const {
        T v = here[c], w = (c == 0 ? beside : here[(c + 3) & 3]) - v, e = (c == 3 ? beside : here[(c + 1) & 3]) - v;
        T s = end(p) ? south : inside_y, n = end(p) ? north : inside_y;
        return west[c] * w + (east[c] * e + (s * (south_row[c] - v) + (n * (north_row[c] - v) - r[c])));
    }
    __device__ __forceinline__ void first(int p, int j, bool odd, const T* south, T* here, const T* north, const T* r,
                                          T* left) const {
        T beside = odd ? from_east(here[0]) : from_west(here[3]);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int c = 2 * h + odd;
            T d = defect(p, c, beside, south, here, north, r);
            if (inside(j)) here[c] = (end(p) ? pre_last[c] : pre[c]) * d;
            left[h] = remains * d;
        }
    }
    __device__ __forceinline__ void relax(int p, int j, bool odd, const T* south, T* here, const T* north, const T* r) const {
        T beside = odd ? from_east(here[0]) : from_west(here[3]);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int c = 2 * h + odd;
            T d = defect(p, c, beside, south, here, north, r);
            if (inside(j)) here[c] += (end(p) ? post_last[c] : post[c]) * d;
        }
    }
    __device__ __forceinline__ void residual(int p, bool odd, const T* south, const T* here, const T* north, const T* r,
                                             const T* left, T* out) const {
        T beside = odd ? from_east(here[0]) : from_west(here[3]);
#pragma unroll
        for (int h = 0; h < 2; h++)
            out[2 * h + odd] = -defect(p, 2 * h + odd, beside, south, here, north, r), out[2 * h + !odd] = left[h];
    }
};
