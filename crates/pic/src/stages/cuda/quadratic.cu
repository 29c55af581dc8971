// The current of a path with quadratic shapes in integers, the whole path at once: charge is conserved exactly, as with linear ones.
//
// The charge of a particle is 4 K units (deposit.cu). Rounded are, from its place alone, what the outer nodes of each axis have and what
// the four outer corners have; all else is differences, so that any two places have the same sum, and mirror images mirrored charges.
// With Q the charge below and left of a face in x and one in y, a path has the currents -dA/dy in x and -dB/dx in y, A + B = Q1 - Q0:
// the change of each node, exactly, for any A that comes to the whole of Q1 - Q0 at the top and to nothing at the right end. Here A is the flux
// through all rows times their mean part, as Esirkepov (2001) has it, rounded.

#if ORDER == 2
// Charges of a particle at the nodes below and above the nearest of each axis, and at the corners of these: first x, then y.
struct Charges {
    fixed all, x_below, x_above, y_below, y_above, below_below, below_above, above_below, above_above;
};
__device__ __forceinline__ Charges charges_of(const Weights<real>& x, const Weights<real>& y, const Unit& u) {
    real all = real(4) * u.k, below = times(all, x.below), above = times(all, x.above);
    auto rounded = [](real a, real b) { return shifted(fma(a, b, real(MAGIC))); };
    return {to_fixed(all),
            rounded(all, x.below), rounded(all, x.above), rounded(all, y.below), rounded(all, y.above),
            rounded(below, y.below), rounded(below, y.above), rounded(above, y.below), rounded(above, y.above)};
}
// Charge of the node `a` columns and `b` rows from the nearest.
__device__ __forceinline__ fixed charge_at(const Charges& c, int a, int b) {
    fixed below = b < 0 ? c.below_below : c.below_above, above = b < 0 ? c.above_below : c.above_above, row = b < 0 ? c.y_below : c.y_above;
    if (b == 0) {
        below = c.x_below - c.below_below - c.below_above;
        above = c.x_above - c.above_below - c.above_above;
        row = c.all - c.y_below - c.y_above;
    }
    return a < 0 ? below : a > 0 ? above : row - below - above;
}

// Four nodes of an axis have all that a path touches: the first is below the lower one of its two nearest nodes. `late`: the nearest
// node is the upper one of the two.
struct Axis {
    real w[4], up_to[3];  // weights; their sums up to each face
};
__device__ __forceinline__ Axis axis_of(const Weights<real>& q, bool late) {
    real most = real(1) - q.above;
    return {{late ? real(0) : q.below, late ? q.below : q.middle, late ? q.middle : q.above, late ? q.above : real(0)},
            {late ? real(0) : q.below, late ? q.below : most, late ? most : real(1)}};
}
// Q at the faces of those nodes, the last of which is behind them.
__device__ __forceinline__ void collect(fixed (*q)[4], const Charges& c, bool late_x, bool late_y, int sign) {
    fixed own[3][3] = {{c.below_below, c.x_below - c.below_above, c.x_below},
                       {c.y_below - c.above_below, c.all - c.x_above - c.y_above + c.above_above, c.all - c.x_above},
                       {c.y_below, c.all - c.y_above, c.all}};
#pragma unroll
    for (int x = 0; x < 4; x++) {
        fixed column[3];
#pragma unroll
        for (int y = 0; y < 3; y++) column[y] = late_x ? (x ? own[x - (x > 0)][y] : 0) : own[x < 2 ? x : 2][y];
#pragma unroll
        for (int y = 0; y < 4; y++) q[x][y] += sign * (late_y ? (y ? column[y - (y > 0)] : 0) : column[y < 2 ? y : 2]);
    }
}

// The path from (s, t) to (s1, t1), which is measured in the cell (di, dj) away; `n` is the lower left node of the first cell.
__device__ __forceinline__ void deposit_path(const Sums& j, int n, real s, real t, real s1, real t1, int di, int dj, real qz, const Unit& u) {
    const real half = real(0.5);
    real right0 = nearest(s), upper0 = nearest(t), right1 = nearest(s1), upper1 = nearest(t1);
    Weights<real> x0 = quadratic(s + (half - right0)), x1 = quadratic(s1 + (half - right1));
    Weights<real> y0 = quadratic(t + (half - upper0)), y1 = quadratic(t1 + (half - upper1));
    int cx = di + int(right1) - int(right0), cy = dj + int(upper1) - int(upper0);
    n += int(right0) - 1 - (cx < 0) + (int(upper0) - 1 - (cy < 0)) * JX;
    fixed change[4][4] = {};
    collect(change, charges_of(x0, y0, u), cx < 0, cy < 0, -1);
    collect(change, charges_of(x1, y1, u), cx > 0, cy > 0, 1);
    Axis ax = axis_of(x0, cx < 0), bx = axis_of(x1, cx > 0), ay = axis_of(y0, cy < 0), by = axis_of(y1, cy > 0);
    // A path from one node to the next, which few are, has a fourth row or column.
    auto add = [&](int at, fixed v, bool always) {
        if (always || v != 0) put(j, at, v);
    };
    fixed left[3] = {0, 0, 0};
#pragma unroll
    for (int x = 0; x < 4; x++) {
        // Of all rows, exactly.
        fixed flux = change[x][3], before = 0;
        real flow = real_of(flux);
#pragma unroll
        for (int y = 0; y < 4; y++) {
            fixed a = x == 3 ? 0 : y == 3 ? flux : shifted(fma(flow, half * (ay.up_to[y % 3] + by.up_to[y % 3]), real(MAGIC)));
            if (x < 3) add(n + y * JX + x, before - a, x < 2 && y < 3);
            before = a;
            if (y == 3) continue;
            fixed b = change[x][y] - a;
            add(JN + n + y * JX + x, left[y] - b, x < 3 && y < 2);
            left[y] = b;
        }
    }
    const real third = real(1.0 / 3.0), sixth = real(1.0 / 6.0);
    int z = z_sums(qz, u);
#pragma unroll
    for (int y = 0; y < 4; y++) {
        real first = qz * fma(ay.w[y], third, by.w[y] * sixth), second = qz * fma(by.w[y], third, ay.w[y] * sixth);
#pragma unroll
        for (int x = 0; x < 4; x++) add(z + n + y * JX + x, to_fixed(fma(ax.w[x], first, bx.w[x] * second)), x < 3 && y < 3);
    }
}

// A particle that an absorbing wall has taken, at v in cell `n`, still has weight at the corners next to the wall inside. Its path
// goes on into the wall until that has become zero, in the middle of the first cell behind it. `di`, `dj`: outwards, 0 inside.
__device__ __noinline__ void vanish(const Sums& j, int n, real s, real t, int di, int dj, const Unit& u) {
    real s1 = real(di) * s < real(0) ? real(0) : s, t1 = real(dj) * t < real(0) ? real(0) : t;
    deposit_path(j, n, s, t, s1, t1, 0, 0, real(0), u);
}
#endif
