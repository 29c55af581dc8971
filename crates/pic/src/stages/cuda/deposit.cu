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

struct Point {
    real a, b;
    fixed ia, ib, ic;
};
// What K is for a particle: with weights, K w as an even integer.
struct Unit {
    real k, four, two;  // K, 4/K, 2/K
};
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

#define JX (TX + 1 + 2 * MARGIN)
#define JY (TY + 1 + 2 * MARGIN)
#define JN (JX * JY)

// In shared memory: x, y, z, and z of slow particles; in global memory x, y and z, z in fine units.
struct Sums {
    fixed* near;      // [COMPONENTS][JN]
    long long* far;   // [3][length]
    long long length, corner;
    int pitch, sign;
};
#if WIDE
#define FINE 0
#define COMPONENTS 3
#else
#define FINE 6
#define COMPONENTS 4
#endif

// What sum `k` of shared memory has come to, into global memory.
__device__ __noinline__ void carry(const Sums& j, int k, long long v) {
    int c = k / JN, n = k - c * JN, y = n / JX, x = n - y * JX;
    if (c == 2) v *= 1 << FINE;
    atomicAdd((u64*)(j.far + min(c, 2) * j.length + j.corner + (long long)y * j.pitch + x), u64(v * j.sign));
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

#if CHECKED
// A sum that would leave 32 bits is carried to the array in global memory at once.
__device__ __forceinline__ void carry_over(const Sums& j, int k, fixed v) { carry(j, k, (v > 0 ? 1ll : -1ll) << 32); }
// Whether the sum of a and b left 32 bits: in the sign.
__device__ __forceinline__ int overflow(int a, int b) {
    int sum = int(u32(a) + u32(b));
    return (a ^ sum) & (b ^ sum);
}
#else
// Sums of 32 bits run over nowhere: a particle adds at most 4 K times the part of a cell that light passes to a sum of x or y, and
// 2 K to one of z. Once in SCAN rounds of a block all sums of 2^28 and more are emptied; what the particles of SCAN rounds and
// those that waited, fewer than 256, add until the next time is less than 7 x 2^28 (see `Kind::scan`).
__device__ __forceinline__ void relieve(const Sums& j) {
#if !WIDE
    static_assert(BLOCK <= 256, "more particles a round than SCAN counts on");
    __syncthreads();
#pragma unroll 1
    for (int k = threadIdx.x; k < COMPONENTS * JN; k += BLOCK) {
        fixed v = j.near[k];
        if (v >= 1 << 28 || v <= -(1 << 28)) {
            carry(j, k, v);
            j.near[k] = 0;
        }
    }
    __syncthreads();
#endif
}
#endif
__device__ __forceinline__ void put(const Sums& j, int at, fixed v) {
    fixed before = shared_add(j.near + at, v);
#if CHECKED
    if (overflow(before, v) < 0) carry_over(j, at, v);
#endif
}

// One piece of a path, from p at (s0, t0) to q at (s1, t1); `qz` is 4 K v_z times its part of the step; `n` the lower left node.
__device__ __forceinline__ void deposit(const Sums& j, int n, const Point& p, const Point& q, real s0, real t0, real s1, real t1, real qz,
                                        const Unit& u) {
    real da = q.a - p.a;
    fixed xi = shifted(fma(times(da, u.two), p.b + q.b, real(MAGIC))), eta = (q.ic - p.ic) - xi;
    fixed along = 2 * (q.ia - p.ia), up = 2 * (q.ib - p.ib);
    int z = z_sums(qz, u);
    Currents<real> w = segment_current(s0, t0, s1, t1, real(0), real(0), real(1));
    auto part = [&](real weight) { return shifted(fma(qz, weight, real(MAGIC))); };
    fixed *xy = j.near + n, *zz = xy + z;
    fixed* const at[8] = {xy, xy + JX, xy + JN, xy + JN + 1, zz, zz + 1, zz + JX, zz + JX + 1};
    fixed v[8] = {along - xi, along + xi, up - eta, up + eta, part(w.z00), part(w.z10), part(w.z01), part(w.z11)};
#if CHECKED
    fixed before[8];
#pragma unroll
    for (int k = 0; k < 8; k++) before[k] = shared_add(at[k], v[k]);
    // One branch for all eight.
    int any = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) any |= overflow(before[k], v[k]);
    if (any < 0) {
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (overflow(before[k], v[k]) < 0) carry_over(j, int(at[k] - j.near), v[k]);
    }
#else
#pragma unroll
    for (int k = 0; k < 8; k++) shared_add(at[k], v[k]);
#endif
}

#if ORDER == 1
// The path from (s, t) by (dx, dy) cells, cut at the borders that it crosses into at most three pieces; `n` the lower left
// node of the first cell.
__device__ __forceinline__ void deposit_crossing(const Sums& j, int n, real s, real t, real dx, real dy, real qz, const Unit& u) {
    const real half = real(0.5);
    real s1 = plus(s, dx), t1 = plus(t, dy), cx = whole(s1), cy = whole(t1);
    Point p = point(s, t, u);
    while (true) {
        real fx = cx != real(0) ? border(s, s1 - s, cx) : real(2), fy = cy != real(0) ? border(t, t1 - t, cy) : real(2);
        bool x_first = cx != real(0) && fx <= fy, y_first = !x_first && cy != real(0);
        real f = x_first ? fx : y_first ? fy : real(1);
        real se = s1, te = t1;
        if (x_first) {
            se = half * cx;
            te = least(greatest(fma(f, t1 - t, t), -half), half);
        }
        if (y_first) {
            te = half * cy;
            se = least(greatest(fma(f, s1 - s, s), -half), half);
        }
        Point q = point(se, te, u);
        deposit(j, n, p, q, s, t, se, te, qz * f, u);
        if (!x_first && !y_first) break;
        // On into the neighbour, where the same place has the other sign.
        qz *= real(1) - f;
        s = x_first ? -se : se;
        t = x_first ? te : -te;
        p = {x_first ? -q.a : q.a, x_first ? q.b : -q.b, x_first ? -q.ia : q.ia, x_first ? q.ib : -q.ib, -q.ic};
        n += x_first ? int(cx) : int(cy) * JX;
        s1 -= x_first ? cx : real(0);
        t1 -= x_first ? real(0) : cy;
        cx = x_first ? real(0) : cx;
        cy = x_first ? cy : real(0);
    }
}
#endif
