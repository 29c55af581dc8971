// The operator and the relaxation of solution.cu's passes.

#include "plain.cu"

// Plain, with differences to the centre: u is much larger than its defect.
template <class T> struct OnSolution : Plain<T, 6> {
    T remains_post;
    __device__ __forceinline__ OnSolution(const Level& l, int x, T pre, T post)
        : Plain<T, 6>(l, x, 0, pre, post), remains_post(post - T(1)) {}
    // A v - f at the columns of one colour of a row; of the rows beside it only those columns.
    __device__ __forceinline__ void defect(bool odd, const T* south, const T* here, const T* north, const T* f, T* out) const {
        T beside = odd ? from_east(here[0]) : from_west(here[3]);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int c = 2 * h + odd;
            T v = here[c], dx = (this->west(c, here, beside) - v) + (this->east(c, here, beside) - v);
            out[h] = this->wx * dx + (this->wy * ((south[h] - v) + (north[h] - v)) - f[c]);
        }
    }
    static __device__ __forceinline__ void move(bool in, bool odd, const T* factor, const T* defect, T* here) {
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (in) here[2 * h + odd] += factor[2 * h + odd] * defect[h];
    }
};
