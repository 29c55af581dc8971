// The current of a path with quadratic shapes in integers, the whole path at once: charge is conserved exactly, as with linear ones.
//
// The charge of a particle is 4 K units (deposit.cu). Rounded are, from its place alone, what the outer nodes of each axis have and what
// the four outer corners have; all else is differences, so that any two places have the same sum, and mirror images mirrored charges.
// With Q the charge below and left of a face in x and one in y, a path has the currents -dA/dy in x and -dB/dx in y, A + B = Q1 - Q0:
// the change of each node, exactly, for any A that comes to the whole of Q1 - Q0 at the top and to nothing at the right end. Here A is the flux
// through all rows times their mean part, as Esirkepov (2001) has it, rounded.

#include "deposit.cu"

#if ORDER == 2
// Charges of a particle at the nodes below and above the nearest of each axis, and at the corners of these: first x, then y.
struct Charges {
    fixed all, x_below, x_above, y_below, y_above, below_below, below_above, above_below, above_above;
};
__device__ __forceinline__ Charges charges_of(const Weights<real>& x, const Weights<real>& y, const Unit& u) {
    real all = real(4) * u.k, below = times(all, x.below), above = times(all, x.above);
    auto rounded = [](real a, real b) { return shifted(fma(a, b, real(MAGIC))); };
    return {to_fixed(all),           rounded(all, x.below),   rounded(all, x.above),
            rounded(all, y.below),   rounded(all, y.above),   rounded(below, y.below),
            rounded(below, y.above), rounded(above, y.below), rounded(above, y.above)};
}
// Charge of the node `a` columns and `b` rows from the nearest.
__device__ __forceinline__ fixed charge_at(const Charges& c, int a, int b) {
    fixed below = b < 0 ? c.below_below : c.below_above, above = b < 0 ? c.above_below : c.above_above,
          row = b < 0 ? c.y_below : c.y_above;
    if (b == 0) {
        below = c.x_below - c.below_below - c.below_above;
        above = c.x_above - c.above_below - c.above_above;
        row = c.all - c.y_below - c.y_above;
    }
    return a < 0 ? below : a > 0 ? above : row - below - above;
}

// A path as the weights of its ends about the nearest nodes, and how far the nearest node moves; `n` is below and left of the first.
struct Ends {
    Weights<real> x0, y0, x1, y1;
    int n, cx, cy;
};
__device__ __forceinline__ Ends ends_of(const Path& w) {
    const real half = real(0.5);
    // The end in its own cell, as the next step finds it.
    real di = whole(w.s1), dj = whole(w.t1), s1 = w.s1 - di, t1 = w.t1 - dj;
    real right0 = nearest(w.s), upper0 = nearest(w.t), right1 = nearest(s1), upper1 = nearest(t1);
    return {quadratic(w.s + (half - right0)),
            quadratic(w.t + (half - upper0)),
            quadratic(s1 + (half - right1)),
            quadratic(t1 + (half - upper1)),
            w.n + int(right0) - 1 + (int(upper0) - 1) * JX,
            int(di + (right1 - right0)),
            int(dj + (upper1 - upper0))};
}

// Deposits a path about the same nearest node, nearly all. The others wait: false.
__device__ __forceinline__ bool deposit_near(const Sums& j, const Path& w, const Unit& u) {
    Ends e = ends_of(w);
    if (e.cx || e.cy) return false;
    const real half = real(0.5);
    Charges c = charges_of(e.x1, e.y1, u), was = charges_of(e.x0, e.y0, u);
    fixed right = was.x_above - c.x_above, top = was.y_above - c.y_above;
    // Changes of Q at the faces right of the first two nodes, and top of these.
    fixed flux[2] = {c.x_below - was.x_below, right}, bottom = c.y_below - was.y_below;
    fixed change[2][2] = {{c.below_below - was.below_below, flux[0] - (c.below_above - was.below_above)},
                          {bottom - (c.above_below - was.above_below), right + top + (c.above_above - was.above_above)}};
    real lower = half * (e.y0.below + e.y1.below), upper = half * ((real(1) - e.y0.above) + (real(1) - e.y1.above));
    fixed *to = j.near + e.n, vx[6], vy[6], vz[9], left[2] = {0, 0};
    fixed *x[6], *y[6], *z[9];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        real flow = real_of(flux[k]);
        fixed a[2] = {shifted(fma(flow, lower, real(MAGIC))), shifted(fma(flow, upper, real(MAGIC)))};
        vx[3 * k] = -a[0];
        vx[3 * k + 1] = a[0] - a[1];
        vx[3 * k + 2] = a[1] - flux[k];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            fixed b = change[k][r] - a[r];
            vy[3 * r + k] = left[r] - b;
            left[r] = b;
        }
#pragma unroll
        for (int r = 0; r < 3; r++) x[3 * k + r] = to + r * JX + k;
    }
    vy[2] = left[0] - bottom;
    vy[5] = left[1] - top;
    real qz = w.qz;
    const int slow = z_sums(qz, u);
    const real rows0[3] = {e.y0.below, e.y0.middle, e.y0.above}, rows1[3] = {e.y1.below, e.y1.middle, e.y1.above};
    const real columns0[3] = {e.x0.below, e.x0.middle, e.x0.above}, columns1[3] = {e.x1.below, e.x1.middle, e.x1.above};
#pragma unroll
    for (int k = 0; k < 9; k++) {
        const int r = k / 3, column = k % 3;
        const real third = real(1.0 / 3.0), sixth = real(1.0 / 6.0);
        real first = qz * fma(rows0[r], third, rows1[r] * sixth), second = qz * fma(rows1[r], third, rows0[r] * sixth);
        vz[k] = to_fixed(fma(columns0[column], first, columns1[column] * second));
        z[k] = to + slow + r * JX + column;
        if (r < 2) y[k % 6] = to + JN + r * JX + column;
    }
    put(j, x, vx);
    put(j, y, vy);
    put(j, z, vz);
    return true;
}
#endif
