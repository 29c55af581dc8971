// relax: smoothing for any grid, one thread a node, from one field into another, so that two nodes of one colour that
// touch across the seam of a periodic axis of odd length both see old values. Launch: blocks of 32 x 4 threads over
// (x, y, z). Reads 2 words and writes 1 per node and half-sweep; about 14 flops.

#include "march.cu"

#define NODE                                                                                                                       \
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = l.y.begin + blockIdx.y * blockDim.y + threadIdx.y;                          \
    int k = wrapped(l.z, l.z.begin + int(blockIdx.z));                                                                             \
    if (i >= l.x.n || j >= l.y.end) return;                                                                                        \
    j = wrapped(l.y, j);                                                                                                           \
    long long o = at(l, i, j, k)

// A v as weighted differences to the centre, and the diagonal of A.
template <class T> struct Applied {
    T av, diagonal;
};
template <class T, class F> __device__ __forceinline__ Applied<T> apply(const Level& l, int i, int j, int k, F value) {
    const T *x = weights<T>(l.x) + 2 * i, *y = weights<T>(l.y) + 2 * j;
    T c = value(i, j, k);
    T av = physics::second_difference(c, value(wrapped(l.x, i - 1), j, k), value(wrapped(l.x, i + 1), j, k), x[0], x[1]);
    av += physics::second_difference(c, value(i, wrapped(l.y, j - 1), k), value(i, wrapped(l.y, j + 1), k), y[0], y[1]);
    T diagonal = (x[0] + x[1]) + (y[0] + y[1]);
    if (l.z.n > 1) {
        const T* z = weights<T>(l.z) + 2 * k;
        av += physics::second_difference(c, value(i, j, wrapped(l.z, k - 1)), value(i, j, wrapped(l.z, k + 1)), z[0], z[1]);
        diagonal += z[0] + z[1];
    }
    return {av, diagonal};
}

#define RED 0
#define BLACK 1
#define ALL 2

__device__ __forceinline__ bool has_colour(int colour, int i, int j, int k) { return colour == ALL || ((i + j + k) & 1) == colour; }

// out = v + omega / diagonal (A v - f) on the nodes of one colour, v elsewhere.
template <class T> __device__ __forceinline__ void relax_node(const Level& l, const T* v, const T* f, T* out, T omega, int colour) {
    NODE;
    T here = v[o];
    if (unknown(l, i, j, k) && has_colour(colour, i, j, k)) {
        Applied<T> a = apply<T>(l, i, j, k, [&](int p, int q, int s) { return v[at(l, p, q, s)]; });
        here = physics::relax(here, physics::residual(f[o], a.av), omega * reciprocal(a.diagonal));
    }
    out[o] = here;
}
extern "C" __global__ void relax_e(Level l, const real* v, const real* f, real* out, real omega, int colour) {
    relax_node(l, v, f, out, omega, colour);
}
extern "C" __global__ void relax_u(Level l, const wide* v, const wide* f, wide* out, wide omega, int colour) {
    relax_node(l, v, f, out, omega, colour);
}

__device__ __forceinline__ real across_sum(const Axis& a, int i) { return a.w[2 * i] + a.w[2 * i + 1]; }

// The weighted red neighbours of a black node along an axis after the first half-sweep. `others`: the other axes' part
// of the diagonal, which the neighbours share; across an odd seam the neighbour is black and still zero.
__device__ __forceinline__ real red_pair(const Axis& a, int i, long long step, real others, real omega, const real* r) {
    real sum = 0;
    for (int side = 0; side < 2; side++) {
        int p = wrapped(a, i + 2 * side - 1);
        bool red = (p - i) & 1 && p >= a.first && p < a.last;
        if (red) sum -= a.w[2 * i + side] * omega * r[(p - i) * step] * reciprocal(across_sum(a, p) + others);
    }
    return sum;
}

// The first red-black sweep from zero: red nodes are -omega r / diagonal, which the black ones compute for themselves.
// Reads 1 word and writes 1 per node.
extern "C" __global__ void relax_zero(Level l, const real* __restrict__ r, real* __restrict__ e, real omega) {
    NODE;
    real out = 0;
    if (unknown(l, i, j, k)) {
        real cx = across_sum(l.x, i), cy = across_sum(l.y, j), cz = l.z.n > 1 ? across_sum(l.z, k) : real(0);
        real sum = -r[o];
        if ((i + j + k) & 1) {
            sum += red_pair(l.x, i, 1, cy + cz, omega, r + o) + red_pair(l.y, j, l.pitch, cx + cz, omega, r + o);
            if (l.z.n > 1) sum += red_pair(l.z, k, l.plane, cx + cy, omega, r + o);
        }
        out = omega * sum * reciprocal(cx + cy + cz);
    }
    e[o] = out;
}

// A relaxation of all nodes plus `momentum` times the last change, which `before` remembers: Chebyshev's recurrence.
// `out` may be `before`.
template <class T>
__device__ __forceinline__ void momentum_node(const Level& l, const T* v, const T* f, const T* before, T* out, T step, T momentum) {
    NODE;
    T here = v[o];
    if (unknown(l, i, j, k)) {
        Applied<T> a = apply<T>(l, i, j, k, [&](int p, int q, int s) { return v[at(l, p, q, s)]; });
        // The first sweep has no last change.
        T last = momentum != T(0) ? before[o] : here;
        here = physics::relax_with_momentum(here, physics::residual(f[o], a.av), step * reciprocal(a.diagonal), momentum, last);
    }
    out[o] = here;
}
extern "C" __global__ void momentum_e(Level l, const real* v, const real* f, const real* before, real* out, real step,
                                      real momentum) {
    momentum_node(l, v, f, before, out, step, momentum);
}
extern "C" __global__ void momentum_u(Level l, const wide* v, const wide* f, const wide* before, wide* out, wide step,
                                      wide momentum) {
    momentum_node(l, v, f, before, out, step, momentum);
}
