// The current of a path in integers: charge is conserved exactly, whatever the order of the additions.
//
// A place (s, t) in a cell is rounded to a = round(K s), b = round(K t), K = 2^k, and c = round(4 a b / K). In units of
// q / (4 K) the corners of the cell carry K + 2a + 2b + c (upper right), K + 2a - 2b - c (lower right), K - 2a + 2b - c and
// K - 2a - 2b + c. On a border, |a| = K/2, c = +-2b exactly, so that the two cells agree. A path within the cell then has the
// currents 2 da -+ xi in x (lower, upper row) and 2 db -+ eta in y (left, right column) with xi + eta = dc: the changes of
// the four corners, exactly, for any xi. Villasenor and Buneman's (1992) is xi = 4 da (b0 + b1) / 2K, here rounded.

struct Point {
    real a, b, c;
};
// What K is for a particle: with weights, K w as an even integer.
struct Unit {
    real k, half, four, two;  // K, K/2, 4/K, 2/K
};
__device__ __forceinline__ Point point(real s, real t, const Unit& u) {
    Point p;
    p.a = whole(s * u.k);
    p.b = whole(t * u.k);
    p.c = whole(p.a * p.b * u.four);
    return p;
}

#define JX (TX + 1 + 2 * MARGIN)
#define JY (TY + 1 + 2 * MARGIN)
#define JN (JX * JY)

// A sum that would leave 32 bits is carried to the array in global memory at once.
struct Sums {
    fixed* near;      // [3][JN] in shared memory
    long long* far;   // [3][length]
    long long length, corner;
    int pitch, sign;
};
__device__ __noinline__ void carry(long long* corner, int pitch, int n, long long v) {
    int y = n / JX, x = n - y * JX;
    atomicAdd((u64*)(corner + (long long)y * pitch + x), u64(v));
}
// Whether the sum of a and b left 32 bits: in the sign.
__device__ __forceinline__ int overflow(int a, int b) {
    int sum = int(u32(a) + u32(b));
    return (a ^ sum) & (b ^ sum);
}
__device__ __forceinline__ void carry_over(const Sums& j, int component, int n, fixed before, fixed v) {
#if !WIDE
    if (overflow(before, v) < 0) carry(j.far + component * j.length + j.corner, j.pitch, n, j.sign * ((v > 0 ? 1ll : -1ll) << 32));
#endif
}
__device__ __forceinline__ void put(const Sums& j, int component, int n, fixed v) {
    carry_over(j, component, n, shared_add(j.near + component * JN + n, v), v);
}

// One piece of a path, from p at (s0, t0) to q at (s1, t1); `qz` is 4 K v_z times its part of the step; `n` the lower left node.
__device__ __forceinline__ void deposit(const Sums& j, int n, const Point& p, const Point& q, real s0, real t0, real s1, real t1, real qz,
                                        const Unit& u) {
    real da = q.a - p.a, db = q.b - p.b;
    real xi = whole(da * (p.b + q.b) * u.two), eta = (q.c - p.c) - xi;
    da += da;
    db += db;
    Currents<real> z = segment_current(s0, t0, s1, t1, real(0), real(0), qz);
    const int component[8] = {0, 0, 1, 1, 2, 2, 2, 2}, away[8] = {0, JX, 0, 1, 0, 1, JX, JX + 1};
    fixed v[8] = {to_fixed(da - xi), to_fixed(da + xi), to_fixed(db - eta), to_fixed(db + eta),
                  to_fixed(z.z00), to_fixed(z.z10), to_fixed(z.z01), to_fixed(z.z11)};
    fixed before[8];  // read only where sums are carried
#pragma unroll
    for (int k = 0; k < 8; k++) before[k] = shared_add(j.near + component[k] * JN + n + away[k], v[k]);
#if !WIDE
    // One branch for all eight.
    int any = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) any |= overflow(before[k], v[k]);
    if (any < 0) {
#pragma unroll
        for (int k = 0; k < 8; k++) carry_over(j, component[k], n + away[k], before[k], v[k]);
    }
#endif
}

#if ORDER == 1
// The path from (s, t) by (dx, dy) cells, cut at the borders that it crosses into at most three pieces; `n` the lower left
// node of the first cell.
__device__ __forceinline__ void deposit_crossing(const Sums& j, int n, real s, real t, real dx, real dy, real qz, const Unit& u) {
    const real half = real(0.5);
    real s1 = plus(s, dx), t1 = plus(t, dy), cx = crossed(s1), cy = crossed(t1);
    Point p = point(s, t, u);
    while (true) {
        real fx = cx != real(0) ? border(s, s1 - s, cx) : real(2), fy = cy != real(0) ? border(t, t1 - t, cy) : real(2);
        bool x_first = cx != real(0) && fx <= fy, y_first = !x_first && cy != real(0);
        real f = x_first ? fx : y_first ? fy : real(1);
        real se = s1, te = t1;
        if (x_first) {
            se = half * cx;
            te = least(greatest(t + f * (t1 - t), -half), half);
        }
        if (y_first) {
            te = half * cy;
            se = least(greatest(s + f * (s1 - s), -half), half);
        }
        Point q = point(se, te, u);
        deposit(j, n, p, q, s, t, se, te, qz * f, u);
        if (!x_first && !y_first) break;
        // On into the neighbour, where the same place has the other sign.
        qz *= real(1) - f;
        s = x_first ? -se : se;
        t = x_first ? te : -te;
        p = {x_first ? -q.a : q.a, x_first ? q.b : -q.b, -q.c};
        n += x_first ? int(cx) : int(cy) * JX;
        s1 -= x_first ? cx : real(0);
        t1 -= x_first ? real(0) : cy;
        cx = x_first ? real(0) : cx;
        cy = x_first ? cy : real(0);
    }
}

// Paths that cross a border, a tenth of all in a warm plasma, wait in a queue of the warp until 32 of them fill all lanes.
#define QUEUE 64
struct Waiting {
    int n[QUEUE];
    real s[QUEUE], t[QUEUE], dx[QUEUE], dy[QUEUE], qz[QUEUE], k[WEIGHTED ? QUEUE : 1];
};
__device__ __forceinline__ void deposit_waiting(const Sums& j, const Waiting& w, int at, const Unit& u) {
    deposit_crossing(j, w.n[at], w.s[at], w.t[at], w.dx[at], w.dy[at], w.qz[at],
                     WEIGHTED ? Unit{w.k[at * WEIGHTED], real(0.5) * w.k[at * WEIGHTED], real(4) / w.k[at * WEIGHTED], real(2) / w.k[at * WEIGHTED]} : u);
}
#endif
