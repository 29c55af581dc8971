// Rows of u = P u_{l+1}. The window: 80 coarse columns from 8 west of the strip's first, rows J-4 .. J+3 for fine row
// 2J or 2J+1; the coarse nodes of any fine node in the strip and its halo lie in it.

#include "march.cu"

struct Interpolated {
    static constexpr int WIDTH = 80, MARGIN = 8, RAW = 4, RING = 8;
    static constexpr int space = (RAW * WIDTH + RING * 128 + 2 * RING) * sizeof(wide);

    const wide *field, *u;  // of the coarse level; of this one, for the values on held nodes
    wide *raw, *ring, *edge;
    const Level &l, &c;
    int x, lane, held;     // the lane's first column and its held one, or -1
    int first;             // the first column, wrapped
    bool edges;            // a lane of the warp has a held column
    int at[2], column[2];  // places in the window of the odd columns' four nodes; columns that are asked for
    wide w[8];

    __device__ __forceinline__ Interpolated(const Level& l, const Level& c, const wide* field, const wide* u, int x, char* shared)
        : field(field), u(u), l(l), c(c), x(x), lane(threadIdx.x % 32) {
        raw = reinterpret_cast<wide*>(shared);
        ring = raw + RAW * WIDTH + 4 * lane;
        edge = raw + RAW * WIDTH + RING * 128;
        const int start = (x - 4 * lane) / 2 - MARGIN;
#pragma unroll
        for (int o = 0; o < 2; o++) {
            int I = start + 2 * lane + 64 * o;
            column[o] = c.x.periodic ? (I < 0 ? I + c.x.n : I % c.x.n) : min(max(I, 0), c.pitch - 2);
        }
#pragma unroll
        for (int q = 0; q < RING; q++) ring[128 * q] = ring[128 * q + 1] = ring[128 * q + 2] = ring[128 * q + 3] = 0;
#pragma unroll
        for (int o = 0; o < 2; o++) {
            int i = x + 2 * o + 1, turns = 0;
            if (l.x.periodic) {
                turns = i < 0 ? -1 : i >= l.x.n ? 1 : 0;
                i -= turns * l.x.n;
                i = min(i, l.x.n - 1);
            } else {
                i = min(max(i, 0), l.x.n - 1);
            }
            at[o] = min(max(l.x.base[i] + turns * c.x.n - start, 0), WIDTH - 4);
#pragma unroll
            for (int a = 0; a < 4; a++) w[4 * o + a] = l.x.cubic[4 * i + a];
        }
        held = -1;
        for (int q = 0; q < 4; q++) {
            int i = x + q;
            if (!l.x.periodic && ((i == 0 && l.x.first) || (i == l.x.n - 1 && l.x.last < l.x.n))) held = q;
        }
        edges = __any_sync(~0u, held >= 0);
        edge += x + held == 0 ? 0 : RING;
        first = !l.x.periodic ? x : x < 0 ? x + l.x.n : x % l.x.n;
    }
    // Asks for coarse row J, two columns a lane, and for 16 more.
    __device__ __forceinline__ void fetch(int J) const {
        int slot = J & (RAW - 1);
        J = c.y.periodic ? (J < 0 ? J + c.y.n : J >= c.y.n ? J - c.y.n : J) : J;
        const wide* row = field + (long long)min(max(J, 0), c.y.n - 1) * c.pitch;
        copy_async<2 * sizeof(wide), false>(raw + slot * WIDTH + 2 * lane, row + column[0]);
        if (2 * lane + 64 < WIDTH) copy_async<2 * sizeof(wide), false>(raw + slot * WIDTH + 2 * lane + 64, row + column[1]);
    }
    // Coarse rows from `J` up to `end`, which are waited for.
    __device__ __forceinline__ void begin(int J, int end) {
        for (; J < end; J += RAW) {
            int stop = min(J + RAW, end);
            for (int q = J; q < stop; q++) fetch(q);
            commit_fetches();
            wait_for_fetches<0>();
            __syncwarp();
            for (int q = J; q < stop; q++) along(q);
            __syncwarp();
        }
    }
    // Asks for the held value of row j.
    __device__ __forceinline__ void fetch_edge(int j) const {
        if (!edges || held < 0) return;
        int row = l.y.periodic ? (j < 0 ? j + l.y.n : j >= l.y.n ? j - l.y.n : j) : min(max(j, 0), l.y.n - 1);
        copy_async<sizeof(wide), false>(edge + (j & (RING - 1)), u + (long long)row * l.pitch + x + held);
    }
    // Coarse row J, interpolated along x, into the ring. All lanes' copies must have arrived.
    __device__ __forceinline__ void along(int J) {
        const wide *row = raw + (J & (RAW - 1)) * WIDTH, *a = row + at[0], *b = row + at[1];
        wide* out = ring + 128 * (J & (RING - 1));
        out[0] = row[2 * lane + MARGIN];
        out[1] = w[0] * a[0] + w[1] * a[1] + w[2] * a[2] + w[3] * a[3];
        out[2] = row[2 * lane + MARGIN + 1];
        out[3] = w[4] * b[0] + w[5] * b[1] + w[6] * b[2] + w[7] * b[3];
    }
    // Row j of u; `odd`: j is.
    __device__ __forceinline__ void across(int j, bool odd, wide* out) const {
        int row = unsigned(j) < unsigned(l.y.n) ? j : wrapped(l.y, j);
        if (!l.y.periodic && (row < l.y.first || row >= l.y.last)) {
#pragma unroll
            for (int q = 0; q < 4; q++) out[q] = u[(long long)row * l.pitch + min(max(first + q, 0), l.pitch - 1)];
            return;
        }
        if (!odd) {
            // An even node has a coarse one under it.
            const wide* r = ring + 128 * ((j >> 1) & (RING - 1));
#pragma unroll
            for (int q = 0; q < 4; q++) out[q] = r[q];
        } else {
            const int base = __ldg(l.y.base + row) + (l.y.periodic ? (j < 0 ? -c.y.n : j >= l.y.n ? c.y.n : 0) : 0);
            const wide* wy = l.y.cubic + 4 * row;
            wide w[4] = {__ldg(wy), __ldg(wy + 1), __ldg(wy + 2), __ldg(wy + 3)};
            out[0] = out[1] = out[2] = out[3] = 0;
#pragma unroll
            for (int t = 0; t < 4; t++)
#pragma unroll
                for (int q = 0; q < 4; q++) out[q] += w[t] * ring[128 * (base + t & (RING - 1)) + q];
        }
        if (edges && held >= 0) {
            wide v = edge[j & (RING - 1)];
#pragma unroll
            for (int q = 0; q < 4; q++) out[q] = q == held ? v : out[q];
        }
    }
};
