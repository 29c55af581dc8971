// The current of a path with quadratic shapes (Esirkepov 2001): the whole path at once, nodes up to two away from the nearest
// one. Each value is rounded to the unit q / (4 K), so charge is conserved to that rounding.

#if ORDER == 2
__device__ __forceinline__ void spread(real* w, const Weights<real>& q, int shift) {
#pragma unroll
    for (int k = 0; k < 5; k++) {
        // Entry 2 + shift is the nearest node.
        w[k] = k == shift + 1 ? q.below : k == shift + 2 ? q.middle : k == shift + 3 ? q.above : real(0);
    }
}

// The path from (s, t) to (s1, t1), which is measured in the cell (di, dj) away; `n` is the lower left node of the first cell.
__device__ __forceinline__ void deposit_path(const Sums& j, int n, real s, real t, real s1, real t1, int di, int dj, real qz, const Unit& u) {
    const real half = real(0.5);
    real right0 = nearest(s), upper0 = nearest(t), right1 = nearest(s1), upper1 = nearest(t1), x0[5], x1[5], y0[5], y1[5];
    spread(x0, quadratic(s + (half - right0)), 0);
    spread(y0, quadratic(t + (half - upper0)), 0);
    spread(x1, quadratic(s1 + (half - right1)), di + int(right1) - int(right0));
    spread(y1, quadratic(t1 + (half - upper1)), dj + int(upper1) - int(upper0));
    n += int(right0) - 2 + (int(upper0) - 2) * JX;
    real flow = real(4) * u.k;
    int z = z_sums(qz, u);
    // Running sums along each axis: Jx(i + 1/2) = Jx(i - 1/2) - W(i).
    real column[5] = {0, 0, 0, 0, 0};
#pragma unroll
    for (int y = 0; y < 5; y++) {
        real row = 0;
#pragma unroll
        for (int x = 0; x < 5; x++) {
            row -= flow * esirkepov_along(x0[x], x1[x], y0[y], y1[y]);
            column[x] -= flow * esirkepov_along(y0[y], y1[y], x0[x], x1[x]);
            real across = qz * esirkepov_across(x0[x], x1[x], y0[y], y1[y]);
            fixed ix = to_fixed(row), iy = to_fixed(column[x]), iz = to_fixed(across);
            if (x < 4 && ix != 0) put(j, n + y * JX + x, ix);
            if (y < 4 && iy != 0) put(j, JN + n + y * JX + x, iy);
            if (iz != 0) put(j, z + n + y * JX + x, iz);
        }
    }
}

// A particle that an absorbing wall has taken, at v in cell `n`, still has weight at the corners next to the wall inside. Its path
// goes on into the wall until that has become zero, in the middle of the first cell behind it. `di`, `dj`: outwards, 0 inside.
__device__ __noinline__ void vanish(const Sums& j, int n, real s, real t, int di, int dj, const Unit& u) {
    real s1 = real(di) * s < real(0) ? real(0) : s, t1 = real(dj) * t < real(0) ? real(0) : t;
    deposit_path(j, n, s, t, s1, t1, 0, 0, real(0), u);
}
#endif
