// Rows of P u_{l+1} by cubics where the unknowns of this level have equal intervals: a node between two coarse ones takes
// (9 (b + c) - a - d) / 16. Beyond an end stands the value of the cubic through the last four nodes, which makes the same formula
// that through them. Of a coarse level with a shorter last interval one node an axis takes its weights from the tables.
// Coarse rows come as a window of 72 columns from 4 west of the strip's first; four of them, interpolated along x, are kept.

#include "march.cu"

struct CubicSource {
    static constexpr int MARGIN = 4, WIDTH = 64 + 2 * MARGIN, SLOTS = 6, EDGES = 8, NONE = -(1 << 20);
    static constexpr int space = (SLOTS * WIDTH + 2 * EDGES) * sizeof(wide);
    static constexpr bool BOTH_WAYS = true;
    const Level &l, &c;
    const wide *field, *u;  // of the coarse level; of this one, for the values on held nodes
    wide *window, *edge, R[4][4];
    int x, lane, way, column[2];  // columns to fetch
    int held, odd_x, odd_y;       // the lane's held column or -1; the nodes with weights of their own
    bool edges;                   // the warp comes near a held column

    __device__ __forceinline__ CubicSource(const Level& l, const Level& c, const wide* u, const wide* below, int x, int way,
                                           char* shared)
        : l(l), c(c), field(below), u(u), x(x), lane(threadIdx.x % 32), way(way) {
        window = reinterpret_cast<wide*>(shared);
        edge = window + SLOTS * WIDTH;
        const int first = (x - 4 * lane) / 2 - MARGIN;
#pragma unroll
        for (int o = 0; o < 2; o++) {
            int I = first + 2 * lane + 64 * o;
            column[o] = c.x.periodic ? (I < 0 ? I + c.x.n : I % c.x.n) : min(max(I, 0), c.pitch - 2);
        }
        held = -1;
        for (int q = 0; q < 4 && !l.x.periodic; q++)
            if ((x + q == 0 && l.x.first) || (x + q == l.x.n - 1 && l.x.last < l.x.n)) held = q;
        odd_x = !l.x.periodic && l.x.n % 2 == 0 ? l.x.n - 3 : NONE;
        odd_y = !l.y.periodic && l.y.n % 2 == 0 ? l.y.n - 3 : NONE;
        edges = __any_sync(~0u, !l.x.periodic && (x <= 0 || x + 8 > l.x.n));
        edge += x + held == 0 ? 0 : EDGES;
#pragma unroll
        for (int q = 0; q < 16; q++) R[q / 4][q % 4] = 0;
    }
    __device__ __forceinline__ int row_of(int J) const {
        return c.y.periodic ? (J < 0 ? J + c.y.n : J >= c.y.n ? J - c.y.n : J) : min(max(J, 0), c.y.n - 1);
    }
    // Fetches coarse row J, two columns a lane, and 8 more.
    __device__ __forceinline__ void fetch_coarse(int J, int slot) const {
        const wide* row = field + (long long)row_of(J) * c.pitch;
        copy_async<2 * sizeof(wide), false>(window + slot * WIDTH + 2 * lane, row + column[0]);
        if (lane < MARGIN) copy_async<2 * sizeof(wide), false>(window + slot * WIDTH + 64 + 2 * lane, row + column[1]);
    }
    // A coarse row in the window, interpolated along x.
    __device__ __forceinline__ void along(const wide* row, wide* out) const {
        const Two<wide>* two = reinterpret_cast<const Two<wide>*>(row) + MARGIN / 2 + lane;
        const Two<wide> west = two[-1], here = two[0], east = two[1];
        wide a = west.v[1], d = east.v[0], e = east.v[1];
        const wide b = here.v[0], q = here.v[1];
        if (edges) {
            const int high = l.x.n % 2 ? l.x.n - 1 : NONE;
            if (x == 0) a = ghost(b, q, d, e);
            if (x + 2 == high) d = ghost(q, b, a, west.v[0]);
            if (x + 4 == high) e = ghost(d, q, b, a);
        }
        out[0] = b, out[1] = middle(a, b, q, d), out[2] = q, out[3] = middle(b, q, d, e);
        if (edges) {
            const wide* w = l.x.cubic + 4 * odd_x;
            if (x + 1 == odd_x) out[1] = weighed(w, a, b, q, d);
            if (x + 3 == odd_x) out[3] = weighed(w, b, q, d, e);
        }
    }
    static __device__ __forceinline__ wide middle(wide a, wide b, wide c, wide d) {
        return wide(0.5625) * (b + c) - wide(0.0625) * (a + d);
    }
    static __device__ __forceinline__ wide ghost(wide a, wide b, wide c, wide d) { return wide(4) * (a + c) - (wide(6) * b + d); }
    static __device__ __forceinline__ wide weighed(const wide* w, wide a, wide b, wide c, wide d) {
        return w[0] * a + w[1] * b + w[2] * c + w[3] * d;
    }
    // Before the even row 2 J: the coarse rows J-1, J, J+1 by `way`.
    __device__ __forceinline__ void fetch_first(int first) const {
#pragma unroll
        for (int q = 0; q < 3; q++) fetch_coarse(first / 2 + way * (q - 1), 3 + q);
    }
    __device__ __forceinline__ void take_first() {
        __syncwarp();
#pragma unroll
        for (int q = 0; q < 3; q++) along(window + (3 + q) * WIDTH, R[q + 1]);
    }
    // The coarse row two ahead of an even row, and the held value of the row.
    __device__ __forceinline__ void fetch(long long offset, int j, int slot) const {
        if (edges && held >= 0) copy_async<sizeof(wide), false>(edge + (j & (EDGES - 1)), u + offset + x + held);
        if (slot % 2 == 0) fetch_coarse(j / 2 + 2 * way, slot / 2);
    }
    __device__ __forceinline__ void next(int J, int slot) {
        const int ahead = J + 2 * way, end = way > 0 ? c.y.n : -1, start = way > 0 ? 0 : c.y.n - 1;
        wide N[4];
        along(window + slot * WIDTH, N);
#pragma unroll
        for (int q = 0; q < 4; q++) {
            if (!c.y.periodic && ahead == end) N[q] = ghost(R[3][q], R[2][q], R[1][q], R[0][q]);
            R[0][q] = R[1][q], R[1][q] = R[2][q], R[2][q] = R[3][q], R[3][q] = N[q];
        }
        if (!c.y.periodic && J == start) {
            // The row after the one ahead is needed once; it does not come through the window.
            wide F[4];
            fetch_coarse(J + 3 * way, 3 + slot), commit_fetches(), wait_for_fetches<0>();
            __syncwarp();
            along(window + (3 + slot) * WIDTH, F);
#pragma unroll
            for (int q = 0; q < 4; q++) R[0][q] = ghost(R[1][q], R[2][q], R[3][q], F[q]);
        }
    }
    __device__ __forceinline__ void take(int j, int slot, wide* out) {
        __syncwarp();
        if (slot % 2 == 0) next(j / 2, slot / 2);
        if (!l.y.periodic && unsigned(j - l.y.first) >= unsigned(l.y.last - l.y.first)) {
            const wide* row = u + (long long)min(max(j, 0), l.y.n - 1) * l.pitch;
#pragma unroll
            for (int q = 0; q < 4; q++) out[q] = row[l.x.periodic ? wrap(x) + q : min(max(x + q, 0), l.pitch - 1)];
        } else if (slot % 2 && j == odd_y) {
            const wide* w = l.y.cubic + 4 * j;
#pragma unroll
            for (int q = 0; q < 4; q++)
                out[q] = way > 0 ? weighed(w, R[0][q], R[1][q], R[2][q], R[3][q]) : weighed(w, R[3][q], R[2][q], R[1][q], R[0][q]);
        } else {
#pragma unroll
            for (int q = 0; q < 4; q++) out[q] = slot % 2 ? middle(R[0][q], R[1][q], R[2][q], R[3][q]) : R[1][q];
        }
        if (edges) {
            const wide v = edge[j & (EDGES - 1)];
#pragma unroll
            for (int q = 0; q < 4; q++) out[q] = q == held ? v : x + q < l.x.n ? out[q] : wide(0);
        }
    }
    __device__ __forceinline__ int wrap(int i) const { return i < 0 ? i + l.x.n : i % l.x.n; }
};
