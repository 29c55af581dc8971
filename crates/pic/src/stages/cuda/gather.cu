// The fields of a tile in shared memory, and their values at a particle.
//
// Linear shapes: for each component and each of its lattice cells the four coefficients of
// F = c0 + x c1 + y (c2 + x c3), one 16-byte word: six loads a particle. Fields come scaled by alpha = q dt / 2m.

struct Fields {
    const real* f[6];         // Ex, Ey, Ez, Bx, By, Bz over all nodes with guards
    const real* external[6];  // added to them; null where there is none
};
struct Six {
    real ex, ey, ez, bx, by, bz;
};

#if ORDER == 1
#define QX (TX + 1)
#define QN (QX * (TY + 1))
#define FIELD_BYTES (6 * QN * 4 * sizeof(real))

// Lattice cells -1 .. nx - 1 of each axis, `corner` that of (-1, -1). Reads 24 values a cell, mostly from the cache. A thread has
// all components of its cell; in tiles that end early the last ones are read again.
__device__ __forceinline__ void load_fields(Quad* q, const Fields& f, real alpha, long long corner, int pitch, int nx, int ny) {
#pragma unroll 1
    for (int k = threadIdx.x; k < QN; k += BLOCK) {
        int y = k / QX, x = k - y * QX;
        long long at = corner + min(y, ny) * pitch + min(x, nx);
#pragma unroll 3
        for (int c = 0; c < 6; c++) {
            const real *own = f.f[c] + at, *external = f.external[c];
            real f00 = own[0], f10 = own[1], f01 = own[pitch], f11 = own[pitch + 1];
            if (external) {
                external += at;
                f00 += external[0];
                f10 += external[1];
                f01 += external[pitch];
                f11 += external[pitch + 1];
            }
            f00 = times(alpha, f00);
            f10 = times(alpha, f10);
            f01 = times(alpha, f01);
            f11 = times(alpha, f11);
            q[c * QN + k] = Quad{f00, f10 - f00, f01 - f00, (f11 - f01) - (f10 - f00)};
        }
    }
}
__device__ __forceinline__ real at_place(const Quad* at, int c, real x, real y) {
    Quad v = at[c * QN];
    return (v.x + x * v.y) + y * (v.z + x * v.w);
}
__device__ __forceinline__ Six gather(const Quad* q, int x, int y, real s, real t) {
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
#define FIELD_BYTES (6 * QN * sizeof(real))

// A component of the fields, times alpha.
struct Component {
    const real *own, *external;
    real alpha;
    __device__ __forceinline__ Component(const Fields& f, int c, real alpha) : own(f.f[c]), external(f.external[c]), alpha(alpha) {}
    __device__ __forceinline__ real operator()(long long at) const { return times(alpha, external ? own[at] + external[at] : own[at]); }
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
__device__ __forceinline__ Six gather(const real* q, int x, int y, real s, real t) {
    // The nearest corner, and the middle of the cell, where half-staggered values sit.
    real right = nearest(s), upper = nearest(t);
    int n = (y + 1) * QX + x + 1, nx = n + int(right), ny = n + int(upper) * QX, nxy = nx + int(upper) * QX;
    Weights<real> sc = quadratic(s + (real(0.5) - right)), tc = quadratic(t + (real(0.5) - upper)), sh = quadratic(s), th = quadratic(t);
    return {at_place(q, 0, ny, sh, tc), at_place(q, 1, nx, sc, th), at_place(q, 2, nxy, sc, tc),
            at_place(q, 3, nx, sc, th), at_place(q, 4, ny, sh, tc), at_place(q, 5, n, sh, th)};
}
#define MARGIN 2
typedef real Cached;
#endif
