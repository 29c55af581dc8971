// The fields of a tile in shared memory, and their values at a particle.
//
// Linear shapes: for each component and each of its grid cells the four coefficients of
// F = c0 + x c1 + y (c2 + x c3), one 16-byte word: six loads a particle. Fields come scaled by alpha = q dt / 2m.

#include "common.cu"
#include "fields.cuh"

struct FieldValues {
    real ex, ey, ez, bx, by, bz;
};
// All of it has been made before what follows.
__device__ __forceinline__ void settled(FieldValues& f) {
#if WIDE
    asm volatile("" : "+d"(f.ex), "+d"(f.ey), "+d"(f.ez), "+d"(f.bx), "+d"(f.by), "+d"(f.bz));
#else
    asm volatile("" : "+f"(f.ex), "+f"(f.ey), "+f"(f.ez), "+f"(f.bx), "+f"(f.by), "+f"(f.bz));
#endif
}

#if ORDER == 1
#define QX (TX + 1)
#define QN (QX * (TY + 1))
#define FIELD_BYTES (6 * QN * 4 * sizeof(real))

// Threads that share a column of a component's cells, and cells of it that a thread takes at a time.
#define COLUMNS (6 * QX)
#define SHARES (BLOCK < COLUMNS ? 1 : BLOCK / COLUMNS)
#define STRETCH ((TY + SHARES) / SHARES)
#define PIECE (STRETCH < 9 ? STRETCH : 9)

// Cells `first` to `first` + PIECE - 1 of a column, with nodes up to number `most`. All is asked for before the first is needed. PLAIN: there
// is nothing to add, and the tile is whole.
template <bool PLAIN> __device__ __forceinline__ void load_piece(Quad* to, const real* own, const real* external, real alpha,
                                                                 int first, int most, int pitch) {
    real left[PIECE + 1], right[PIECE + 1];
#pragma unroll
    for (int r = 0; r <= PIECE; r++) {
        const real* at = own + (long long)(PLAIN ? r : min(first + r, most) - first) * pitch;
        left[r] = at[0];
        right[r] = at[1];
        if (!PLAIN && external) {
            left[r] += external[at - own];
            right[r] += external[at - own + 1];
        }
    }
#pragma unroll
    for (int r = 0; r <= PIECE; r++) {
        left[r] = times(alpha, left[r]);
        right[r] = times(alpha, right[r]) - left[r];
        if (r && first + r <= TY + 1)
            to[(r - 1) * QX] = Quad{left[r - 1], right[r - 1], left[r] - left[r - 1], right[r] - right[r - 1]};
    }
}
// Grid cells -1 .. nx - 1 of each axis, `corner` that of (-1, -1). A thread goes up a column of cells, so that it reads two values for
// each of them, not four. What lies above a tile that ends early is read again.
__device__ __forceinline__ void load_fields(Quad* q, const Fields& f, real alpha, long long corner, int pitch, int nx, int ny) {
    for (int k = threadIdx.x; k < COLUMNS * SHARES; k += BLOCK) {
        int share = k / COLUMNS, column = k - share * COLUMNS, c = column / QX, x = column - c * QX;
#pragma unroll 1
        for (int first = share * STRETCH; first < min((share + 1) * STRETCH, TY + 1); first += PIECE) {
            long long at = corner + min(x, nx) + (long long)first * pitch;
            const real *own = f.f[c] + at, *external = f.external[c];
            Quad* to = q + c * QN + first * QX + x;
            // Nodes up to two above the tile's are there.
            if (external == nullptr && ny == TY && first + PIECE <= TY + 3)
                load_piece<true>(to, own, nullptr, alpha, first, ny + 1, pitch);
            else load_piece<false>(to, own, external ? external + at : nullptr, alpha, first, ny + 1, pitch);
        }
    }
}
__device__ __forceinline__ real at_place(const Quad* at, int c, real x, real y) {
    Quad v = at[c * QN];
    return (v.x + x * v.y) + y * (v.z + x * v.w);
}
__device__ __forceinline__ FieldValues gather(const Quad* q, int x, int y, real s, real t) {
    // On a half-staggered axis the node below is that of the cell before for particles in the lower half.
    int hx = s < real(0), hy = t < real(0);
    const Quad *n = q + ((y + 1) * QX + x + 1), *nx = n - hx, *ny = n - hy * QX, *nxy = ny - hx;
    real ws = s + real(0.5), wt = t + real(0.5), hs = s + real(hx), ht = t + real(hy);
    return {at_place(nx, 0, hs, wt), at_place(ny, 1, ws, ht), at_place(n, 2, ws, wt),
            at_place(ny, 3, ws, ht), at_place(nx, 4, hs, wt), at_place(nxy, 5, hs, ht)};
}
#define MARGIN 1
typedef Quad Cached;
#else
// Quadratic shapes: nine values of each component; nodes -1 .. nx + 1.
#define QX (TX + 3)
#define QN (QX * (TY + 3))
// The sums behind are read four words at a time.
#define FIELD_BYTES ((6 * QN * sizeof(real) + 15) / 16 * 16)

// A component of the fields, times alpha.
struct Component {
    const real *own, *external;
    real alpha;
    __device__ __forceinline__ Component(const Fields& f, int c, real alpha) : own(f.f[c]), external(f.external[c]), alpha(alpha) {}
    __device__ __forceinline__ real operator()(long long at) const {
        return times(alpha, external ? own[at] + external[at] : own[at]);
    }
};
__device__ __forceinline__ void load_fields(real* q, const Fields& f, real alpha, long long corner, int pitch, int nx, int ny) {
    for (int k = threadIdx.x; k < 6 * QN; k += BLOCK) {
        int c = k / QN, r = k - c * QN, y = r / QX, x = r - y * QX;
        if (x < nx + 3 && y < ny + 3) q[k] = Component(f, c, alpha)(corner + y * pitch + x);
    }
}
__device__ __forceinline__ real three(const Weights<real>& w, real below, real middle, real above) {
    return fma(w.above, above, fma(w.middle, middle, times(w.below, below)));
}
__device__ __forceinline__ real at_place(const real* q, int c, int n, const Weights<real>& x, const Weights<real>& y) {
    const real* f = q + c * QN + n;
    real below = three(x, f[-QX - 1], f[-QX], f[-QX + 1]);
    real middle = three(x, f[-1], f[0], f[1]);
    real above = three(x, f[QX - 1], f[QX], f[QX + 1]);
    return three(y, below, middle, above);
}
__device__ __forceinline__ FieldValues gather(const real* q, int x, int y, real s, real t) {
    // The nearest corner, and the middle of the cell, where half-staggered values sit.
    real right = nearest(s), upper = nearest(t);
    int n = (y + 1) * QX + x + 1, nx = n + int(right), ny = n + int(upper) * QX, nxy = nx + int(upper) * QX;
    Weights<real> sc = quadratic(s + (real(0.5) - right)), tc = quadratic(t + (real(0.5) - upper)), sh = quadratic(s),
                  th = quadratic(t);
    return {at_place(q, 0, ny, sh, tc), at_place(q, 1, nx, sc, th), at_place(q, 2, nxy, sc, tc),
            at_place(q, 3, nx, sc, th), at_place(q, 4, ny, sh, tc), at_place(q, 5, n, sh, th)};
}
#define MARGIN 2
typedef real Cached;
#endif
