// A strip of ascend.cu's passes.
//
// At step j: row j starts (red), j-1 black, j-2 gets P e_{l+1}, j-3 red, j-4 black and done; u of row j-4 is corrected,
// and row j-5 has its residual.

#include "ascend_row.cu"

template <bool CORRECT, class A, bool CARRY = false>
__device__ __forceinline__ void ascend_strip(const Level& l, const Level& coarse, const real* __restrict__ r,
                                             const real* __restrict__ ec, real* __restrict__ e, Correct o, real omega_pre,
                                             real omega_post, int height) {
    int warp = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    int strips = (l.x.n + OWN - 1) / OWN;
    if (warp >= strips) return;
    int x = warp * OWN + 4 * (lane - 1);
    int begin = first_row(l, height), end = min(begin + height, l.y.n);
    A a(l, x, begin - 4, omega_pre, omega_post);
    // Interpolation to the odd columns 1 and 3; even columns lie on coarse nodes.
    const real* line = l.x.line + 2 * x;
    real lx[4] = {__ldg(line + 2), __ldg(line + 3), __ldg(line + 6), __ldg(line + 7)};
    bool covered = coarse.x.periodic || (x >= 0 && x / 2 < coarse.pitch);
    bool owner = lane > 0 && lane < 31 && x < (l.x.periodic ? l.x.n : l.pitch);

    typedef Stream<4, 6, real> Rows;
    typedef Stream<2, 3, real> CoarseRows;
    typedef Stream<4, 6, wide> WideRows;
    constexpr int space = Rows::space + CoarseRows::space + (CORRECT ? (CARRY ? 1 : 2) * WideRows::space : 0);
    __shared__ __align__(16) char shared[WARPS * space];
    char* mine = shared + threadIdx.x / 32 * space;
    Rows residual(r, l, x, mine);
    CoarseRows correction(ec, coarse, x / 2, mine += Rows::space);
    WideRows solution(CORRECT ? o.u : nullptr, l, x, mine += CoarseRows::space),
        rhs(CORRECT && !CARRY ? o.f : nullptr, l, x, mine + WideRows::space);

    real R[6][4] = {}, E[6][4] = {}, C[4] = {}, peak = 0;
    wide U[3][4] = {};
    double squares = 0, u_squares = 0, mean = 0;
    real left[2];
    // Weights of a row are read a step ahead.
    real l_next[2] = {}, ly[2];
    Across<wide> wy = {l.y.ww[2 * (l.y.n / 2)], l.y.ww[2 * (l.y.n / 2)]}, wy_next = {};
    double vy, vy_next = 0;
    // The finest grid is uniform but for ends with a derivative, whose neighbour is mirrored. Columns that are so.
    wide wx = l.x.ww[2 * (l.x.n / 2)];
    bool low = !A::plain && x == 0 && l.x.first == 0 && !l.x.periodic;
    int high = !A::plain && l.x.last == l.x.n && !l.x.periodic ? l.x.n - 1 - x : -1;
    // Control volumes are halved there; 0 where a column is no unknown.
    float vx[4];
#pragma unroll
    for (int c = 0; c < 4; c++) vx[c] = !a.unknown(c) || x + c >= l.x.n ? 0.0f : (low && c == 0) || c == high ? 0.5f : 1.0f;
    // These weights as factors, for a plain operator.
    wide keep[4] = {wide(vx[0]), wide(vx[1]), wide(vx[2]), wide(vx[3])};
    bool whole = vx[0] + vx[1] + vx[2] + vx[3] == 4.0f;

    let_next_kernel_start();
    wait_for_previous_kernel();
    const int stop = end + (CORRECT ? 5 : 4);
    // Step j takes row j of r, every second step row (j-1)/2 of e_{l+1}, row j-4 of u and row j-5 of f.
    auto fetch = [&](int j, int p) {
        residual.fetch(j + 5, (p + 5) % 6);
        if (p % 2) correction.fetch((j + 3) / 2, (p + 4) / 2 % 3);
        if (CORRECT && !CARRY) solution.fetch(j, (p + 4) % 6), rhs.fetch(j - 1, (p + 4) % 6);
        if (CARRY) solution.fetch(j - 1, (p + 4) % 6);
        commit_fetches();
    };
#pragma unroll
    for (int p = 1; p < 6; p++) fetch(begin - 10 + p, p);
    for (int base = begin - 4; base < stop; base += 6) {
#pragma unroll
        for (int p = 0; p < 6; p++) {
            const int j = base + p, p1 = (p + 5) % 6, p2 = (p + 4) % 6, p3 = (p + 3) % 6, p4 = (p + 2) % 6, p5 = (p + 1) % 6;
            const int parity = p & 1;
            wait_for_fetches<3>();
            residual.take(p, R[p]);
            fetch(j, p);
            a.enter(p, j);
            ly[0] = l_next[0], ly[1] = l_next[1], vy = vy_next;
            l_next[0] = __ldg(l.y.line + 2 * (j - 1)), l_next[1] = __ldg(l.y.line + 2 * (j - 1) + 1);
            if (CORRECT) {
                if (!A::plain) wy = wy_next, wy_next = across<wide>(l, j - 4);
                vy_next = __ldg(l.y.volume + j - 4);
            }
            a.start(p, parity, R[p], E[p]);
            a.first(p1, j - 1, parity, E[p2], E[p1], E[p], R[p1], left);

            // Row j-2 = 2J lies on coarse row J, which is in C from the row before; 2J+1 between C and the next one.
            if (parity == 0) {
#pragma unroll
                for (int c = 0; c < 4; c++) E[p2][c] += C[c];
            } else {
                real got[2];
                correction.take(p / 2, got);
                add_between(got, covered, lx, ly, C, E[p2]);
            }
            a.relax(p3, j - 3, !parity, E[p4], E[p3], E[p2], R[p3]);
            a.relax(p4, j - 4, !parity, E[p5], E[p4], E[p3], R[p4]);

            if (!CORRECT) {
                if (owner && j - 4 >= begin && j - 4 < end) write4(e + (long long)(j - 4) * l.pitch + x, E[p4]);
            } else {
                const int u0 = p % 3, u1 = (p + 2) % 3, u2 = (p + 1) % 3, row = j - 5;
                // Carried on, U holds the correction, and f is the residual before.
                wide f[4], u_row[4];
                if (CARRY) solution.take(p, u_row);
                else solution.take(p, U[u0]), rhs.take(p, f);
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    if (CARRY) U[u0][c] = wide(E[p4][c]), f[c] = wide(R[p5][c]);
                    else U[u0][c] += o.down * wide(E[p4][c]);
                }
                wide west = from_west(U[u1][3]), east = from_east(U[u1][0]), res[4];
                bool row_unknown = row >= l.y.first && row < l.y.last;
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    wide u = U[u1][c], w = c == 0 ? west : U[u1][(c + 3) & 3], q = c == 3 ? east : U[u1][(c + 1) & 3];
                    if (c == 0 && low) w = q;
                    if (c == high) q = w;
                    wide au = wx * ((w - u) + (q - u)) + (wy.south * (U[u2][c] - u) + wy.north * (U[u0][c] - u));
                    if (A::plain) res[c] = keep[c] * (f[c] - au);
                    else res[c] = vx[c] != 0.0f ? f[c] - au : wide(0);
                    if (!row_unknown) res[c] = 0;
                }
                if (owner && row >= begin && row < end) {
#pragma unroll
                    for (int c = 0; c < 4; c++) u_row[c] = CARRY ? u_row[c] + o.down * U[u1][c] : U[u1][c];
                    write4(o.u_new + (long long)row * l.pitch + x, u_row);
                    real out[4];
#pragma unroll
                    for (int c = 0; c < 4; c++) {
                        out[c] = CARRY ? real(res[c]) : real(o.ascend_finest * res[c]);
                        peak = fmax(peak, fabs(out[c]));
                    }
                    RowNorms norms = row_norms<A::plain>(res, u_row, keep, vx, whole);
                    if (row_unknown) squares += vy * norms.rr, u_squares += vy * norms.uu, mean += vy * norms.r1;
                    if (o.r_new) write4(o.r_new + (long long)row * l.pitch + x, out);
                }
            }
        }
    }
    if (CORRECT) {
        double hx = l.x.volume[l.x.n / 2];
        if (CARRY) squares *= double(o.down) * double(o.down), mean *= double(o.down);
        Partial total = warp_total({hx * squares, double(peak) / double(o.ascend_finest), hx * u_squares, hx * mean});
        if (o.r_new) join_norms(total, min(WARPS, strips - int(blockIdx.x) * WARPS), o.norms);
    }
}
