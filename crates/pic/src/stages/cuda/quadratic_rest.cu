// The current of any path with quadratic shapes, also to another nearest node and into a wall (quadratic.cu has the rest).

#include "quadratic.cu"

#if ORDER == 2
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

// Deposits any path: four nodes of each axis. FAR: into global memory.
template <bool FAR> __device__ __forceinline__ void deposit_any(const Sums& j, const Path& w, const Unit& u) {
    const Ends e = ends_of(w);
    const int n = e.n - (e.cx < 0) - (e.cy < 0) * JX;
    fixed change[4][4] = {};
    collect(change, charges_of(e.x0, e.y0, u), e.cx < 0, e.cy < 0, -1);
    collect(change, charges_of(e.x1, e.y1, u), e.cx > 0, e.cy > 0, 1);
    Axis ax = axis_of(e.x0, e.cx < 0), bx = axis_of(e.x1, e.cx > 0), ay = axis_of(e.y0, e.cy < 0), by = axis_of(e.y1, e.cy > 0);
    // Into shared memory one by one, into global memory at the end in a loop.
    int sums[FAR ? 40 : 1], count = 0;
    fixed values[FAR ? 40 : 1];
    auto add = [&](int at, fixed v) {
        if (FAR) {
            sums[count] = at;
            values[count++] = v;
        } else {
            fixed *const to[1] = {j.near + at}, one[1] = {v};
            put(j, to, one);
        }
    };
    const real half = real(0.5), third = real(1.0 / 3.0), sixth = real(1.0 / 6.0);
    fixed left[3] = {0, 0, 0};
#pragma unroll
    for (int x = 0; x < 4; x++) {
        // Of all rows, exactly.
        fixed flux = change[x][3], before = 0;
        real flow = real_of(flux);
#pragma unroll
        for (int y = 0; y < 4; y++) {
            fixed a = x == 3 ? 0 : y == 3 ? flux : shifted(fma(flow, half * (ay.up_to[y % 3] + by.up_to[y % 3]), real(MAGIC)));
            if (x < 3) add(n + y * JX + x, before - a);
            before = a;
            if (y == 3) continue;
            fixed b = change[x][y] - a;
            add(JN + n + y * JX + x, left[y] - b);
            left[y] = b;
        }
    }
    real qz = w.qz;
    const int z = z_sums(qz, u);
#pragma unroll
    for (int y = 0; y < 4; y++) {
        real first = qz * fma(ay.w[y], third, by.w[y] * sixth), second = qz * fma(by.w[y], third, ay.w[y] * sixth);
#pragma unroll
        for (int x = 0; x < 4; x++) add(z + n + y * JX + x, to_fixed(fma(ax.w[x], first, bx.w[x] * second)));
    }
#pragma unroll 1
    for (int k = 0; k < count; k++)
        if (values[k]) carry(j, sums[k], values[k]);
}
__device__ __forceinline__ void deposit_rest(const Sums& j, const Path& w, const Unit& u) { deposit_any<false>(j, w, u); }

// A particle that an absorbing wall has taken, at v in cell `n`, still has weight at the corners next to the wall inside. Its path
// goes on into the wall until that has become zero, in the middle of the first cell behind it. `di`, `dj`: outwards, 0 inside.
__device__ __noinline__ void vanish(Sums j, int n, real s, real t, int di, int dj, Unit u) {
    real s1 = real(di) * s < real(0) ? real(0) : s, t1 = real(dj) * t < real(0) ? real(0) : t;
    deposit_any<true>(j, Path{s, t, s1, t1, real(0), n}, u);
}
#endif
