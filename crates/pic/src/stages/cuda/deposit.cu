// The current of a path in integers: charge is conserved exactly, whatever the order of the additions.
//
// A place (s, t) in a cell is rounded to a = round(K s), b = round(K t), K = 2^k, and c = round(4 a b / K). In units of
// q / (4 K) the corners of the cell carry K + 2a + 2b + c (upper right), K + 2a - 2b - c (lower right), K - 2a + 2b - c and
// K - 2a - 2b + c. On a border, |a| = K/2, c = +-2b exactly, so that the two cells agree. A path within the cell then has the
// currents 2 da -+ xi in x (lower, upper row) and 2 db -+ eta in y (left, right column) with xi + eta = dc: the changes of
// the four corners, exactly, for any xi. Villasenor and Buneman's (1992) is xi = 4 da (b0 + b1) / 2K, here rounded.
//
// The current in z is bound to nothing; slow particles add to sums of their own in units 2^FINE times as fine, so that it is as
// exact for them as for fast ones: K/2 and 32 K for 1.

#include "sums.cu"

struct Point {
    real a, b;
    fixed ia, ib, ic;
};
// Charge unit K of a particle: with weights, K w as an even integer, that of a light one rounded at random (integers.rs).
typedef UnitOf<real> Unit;

#include "push.cuh"
typedef PushOf<real> Push;

#if WEIGHTED
__device__ __forceinline__ Unit unit_of(const Push& p, real w) { return unit_weighted(p.unit[0], w, real(int(bits(w) & 255))); }
#else
__device__ __forceinline__ Unit unit_of(const Push& p, real) { return {p.unit[0], p.unit[1], p.unit[2]}; }
#endif

__device__ __forceinline__ Point point(real s, real t, const Unit& u) {
    Point p;
    real a = fma(s, u.k, real(MAGIC)), b = fma(t, u.k, real(MAGIC));
    p.a = a - real(MAGIC);
    p.b = b - real(MAGIC);
    p.ia = shifted(a);
    p.ib = shifted(b);
    p.ic = shifted(fma(times(p.a, u.four), p.b, real(MAGIC)));
    return p;
}

// 4 K v_z in the units of the sums that it belongs to, and where they are.
__device__ __forceinline__ int z_sums(real& qz, const Unit& u) {
#if !WIDE
    bool slow = fabsf(qz) < u.k * real(4.0 / (1 << FINE));
    qz *= slow ? real(1 << (FINE - 1)) : real(0.5);
    return slow ? 3 * JN : 2 * JN;
#else
    return 2 * JN;
#endif
}

// The most that a particle adds to one sum.
#define BOUNDED (!CHECKED && !WIDE)
__device__ __forceinline__ real most_of(real dx, real dy, real qz, const Unit& u) {
#if BOUNDED
    z_sums(qz, u);
    return fmaxf(real(4) * u.k * fmaxf(fabsf(dx), fabsf(dy)), fabsf(qz));
#else
    return 0;
#endif
}

// Adds to sums.
template <int N> __device__ __forceinline__ void put(const Sums& j, fixed* const (&at)[N], const fixed (&v)[N]) {
#if CHECKED
    fixed before[N];
#pragma unroll
    for (int k = 0; k < N; k++) before[k] = shared_add(at[k], v[k]);
    // One branch for all of them.
    int any = 0;
#pragma unroll
    for (int k = 0; k < N; k++) any |= overflow(before[k], v[k]);
    if (any < 0) {
#pragma unroll
        for (int k = 0; k < N; k++)
            if (overflow(before[k], v[k]) < 0) carry_over(j, int(at[k] - j.near), v[k]);
    }
#else
#pragma unroll
    for (int k = 0; k < N; k++) shared_add(at[k], v[k]);
#endif
}

// One piece of a path, from p at (s0, t0) to q at (s1, t1); `qz` is 4 K v_z times its part of the step; `n` the lower left node.
__device__ __forceinline__ void deposit(const Sums& j, int n, const Point& p, const Point& q, real s0, real t0, real s1, real t1,
                                        real qz, const Unit& u) {
    real da = q.a - p.a;
    fixed xi = shifted(fma(times(da, u.two), p.b + q.b, real(MAGIC))), eta = (q.ic - p.ic) - xi;
    fixed along = 2 * (q.ia - p.ia), up = 2 * (q.ib - p.ib);
    int z = z_sums(qz, u);
    Currents<real> w = segment_current(s0, t0, s1, t1, real(0), real(0), real(1));
    auto part = [&](real weight) { return shifted(fma(qz, weight, real(MAGIC))); };
    fixed *xy = j.near + n, *zz = xy + z;
    fixed* const at[8] = {xy, xy + JX, xy + JN, xy + JN + 1, zz, zz + 1, zz + JX, zz + JX + 1};
    fixed v[8] = {along - xi, along + xi, up - eta, up + eta, part(w.z00), part(w.z10), part(w.z01), part(w.z11)};
    put(j, at, v);
}

// A path from (s, t) to (s1, t1), both in units of cells about the centre of the one that it begins in, whose lower left node is `n`.
struct Path {
    real s, t, s1, t1, qz;
    int n;
};
#if ORDER == 1
// Deposits a path within a cell. The others wait: false.
__device__ __forceinline__ bool deposit_near(const Sums& j, const Path& w, const Unit& u) {
    if (whole(w.s1) != real(0) || whole(w.t1) != real(0)) return false;
    deposit(j, w.n, point(w.s, w.t, u), point(w.s1, w.t1, u), w.s, w.t, w.s1, w.t1, w.qz, u);
    return true;
}
// Deposits a path up to the first border that it crosses, which becomes the rest of it: in the neighbour the same place has the other
// sign, and its rounded numbers have, too. Tells whether the rest crosses a border.
__device__ __forceinline__ bool deposit_first(const Sums& j, Path& w, const Unit& u) {
    const real half = real(0.5);
    real cx = whole(w.s1), cy = whole(w.t1);
    real fx = cx != real(0) ? border(w.s, w.s1 - w.s, cx) : real(2), fy = cy != real(0) ? border(w.t, w.t1 - w.t, cy) : real(2);
    bool x_first = fx <= fy;
    real f = x_first ? fx : fy;
    real se = x_first ? half * cx : least(greatest(fma(f, w.s1 - w.s, w.s), -half), half);
    real te = x_first ? least(greatest(fma(f, w.t1 - w.t, w.t), -half), half) : half * cy;
    deposit(j, w.n, point(w.s, w.t, u), point(se, te, u), w.s, w.t, se, te, w.qz * f, u);
    w.qz *= real(1) - f;
    w.s = x_first ? -se : se;
    w.t = x_first ? te : -te;
    w.n += x_first ? int(cx) : int(cy) * JX;
    w.s1 -= x_first ? cx : real(0);
    w.t1 -= x_first ? real(0) : cy;
    return whole(w.s1) != real(0) || whole(w.t1) != real(0);
}
// Deposits all of a path that crosses two borders at most.
__device__ __forceinline__ void deposit_rest(const Sums& j, Path w, const Unit& u) {
    if (deposit_first(j, w, u)) deposit_first(j, w, u);
    deposit(j, w.n, point(w.s, w.t, u), point(w.s1, w.t1, u), w.s, w.t, w.s1, w.t1, w.qz, u);
}
#endif
