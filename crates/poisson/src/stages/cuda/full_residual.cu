// Full multigrid: the solution of the level below interpolated, and its residual. Plane, both axes coarsened; launch as
// descend.

// Rows of u = P u_{l+1}. The window: 80 coarse columns from 8 west of the strip's first, rows J-4 .. J+3 for fine row
// 2J or 2J+1; the coarse nodes of any fine node in the strip and its halo lie in it.
struct Interpolated {
    static constexpr int WIDTH = 80, MARGIN = 8, RAW = 4, RING = 8;
    static constexpr int space = (RAW * WIDTH + RING * 128 + 2 * RING) * sizeof(wide);

    const wide *field, *u;  // of the coarse level; of this one, for the values on held nodes
    wide *raw, *ring, *edge;
    const Level &l, &c;
    int x, lane, held;      // the lane's first column and its held one, or -1
    int first;              // the first column, wrapped
    bool edges;             // a lane of the warp has a held column
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

// full_residual: u_l = P u_{l+1} by cubics on the unknowns, r = f - A u. In float, bytes per unknown: reads 5, writes 8.
// At step j: row j of u, and row j-1 of r.
extern "C" __global__ __launch_bounds__(32 * WARPS) void full_residual(Level l, Level coarse, const wide* __restrict__ uc, wide* u,
                                                                       const wide* __restrict__ f, real* __restrict__ r, wide ascend_finest,
                                                                       int height) {
    int strip = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (strip * OWN >= l.x.n) return;
    int x = strip * OWN + 4 * (lane - 1);
    int begin = blockIdx.y * height, end = min(begin + height, l.y.n);
    Columns<wide> m(l, x);
    int columns = l.x.periodic ? 4 : l.x.n - x;
    bool owner = lane > 0 && lane < 31 && x < (l.x.periodic ? l.x.n : l.pitch);

    typedef Stream<4, 8, wide> Rows;
    constexpr int space = Rows::space + Interpolated::space;
    __shared__ __align__(16) char shared[WARPS * space];
    char* mine = shared + threadIdx.x / 32 * space;
    Rows rhs(f, l, x, mine);
    Interpolated solution(l, coarse, uc, u, x, mine + Rows::space);
    let_next_kernel_start();
    wait_for_previous_kernel();
    wide U[4][4] = {};
    const int first = begin - 2, J0 = begin / 2 - 1, stop = end + 1;
    Across<wide> Y, y_next = across<wide>(l, first - 1);
    solution.begin(J0 - 2, J0 + 3);
    // Step j takes row j-1 of f, the held value of row j, and at even j coarse row j/2 + 3.
    auto fetch = [&](int j, int p) {
        if (j < stop) {
            rhs.fetch(j - 1, j & 7);
            solution.fetch_edge(j);
            if (p % 2 == 0) solution.fetch(j / 2 + 3);
        }
        commit_fetches();
    };
#pragma unroll
    for (int a = 0; a < 6; a++) fetch(first + a, a);
    for (int base = first; base < stop; base += 4) {
#pragma unroll
        for (int p = 0; p < 4; p++) {
            const int j = base + p, p1 = (p + 3) % 4, p2 = (p + 2) % 4;
            wait_for_fetches<5>();
            __syncwarp();
            if (p % 2 == 0) solution.along(j / 2 + 3);
            wide here[4], even[2], odd[2];
            rhs.take(j & 7, here);
            solution.across(j, p & 1, U[p]);
            fetch(j + 6, p + 6);
            Y = y_next, y_next = across<wide>(l, j);
            operator_row(m, Y, false, U[p2], U[p1], U[p], even);
            operator_row(m, Y, true, U[p2], U[p1], U[p], odd);
            bool row_unknown = Y.south + Y.north > wide(0);
            real out[4];
#pragma unroll
            for (int c = 0; c < 4; c++) {
                if (c >= columns) U[p][c] = 0;
                out[c] = row_unknown && m.inverse[c] != wide(0) ? real(ascend_finest * (here[c] - (c & 1 ? odd : even)[c / 2])) : real(0);
            }
            if (owner && j >= begin && j < end) write4(u + (long long)j * l.pitch + x, U[p]);
            if (owner && j > begin && j < stop) write4(r + (long long)(j - 1) * l.pitch + x, out);
        }
    }
}
