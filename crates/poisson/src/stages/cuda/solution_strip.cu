// A strip of solution.cu's passes.
//
// At step j row j of u enters, row j-1 has its red nodes relaxed and j-2 its black ones; the next cycle's sweep follows on
// rows j-3 and j-4, and row j-5 has its residual restricted. Where no cycle ends, all that is two rows earlier, or one with
// norms, which are those of row j-1 before anything moves. Every second band goes downwards, so that neighbours read the rows
// that they share at the same time: their steps count rows in a mirror.

#include "on_solution.cu"

// END: a cycle ends, with NORMS or without; BEGIN: one begins. HALO: lanes of it on each side.
template <class Source, bool END, bool BEGIN, bool NORMS, int HALO, class Below>
__device__ __forceinline__ void solution_strip(const Level& l, const Level& coarse, const real* u, const Below* below,
                                               const real* __restrict__ f, real* u_new, real* rc, const Norms& norms, real pre,
                                               real post, int height) {
    // Rows behind the one that enters: the next sweep's red nodes, what is stored, what is restricted or has its norms.
    constexpr int OWNED = 128 - 8 * HALO,
                  NEXT = END     ? 3
                         : NORMS ? 2
                                 : 1,
                  NORM = END ? 3 : 1, STORE = BEGIN ? NEXT + 1 : 3, LAST = BEGIN ? NEXT + 2 : 3;
    int strip = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    int columns = BEGIN ? 2 * coarse.x.n : l.x.n, rows = BEGIN ? 2 * coarse.y.n : l.y.n;
    if (strip * OWNED >= columns) return;
    int x = strip * OWNED + 4 * (lane - HALO), begin = first_row(l, height), end = min(begin + height, rows);
    const int way = Source::BOTH_WAYS && begin / height % 2 ? -1 : 1, mirror = way > 0 ? 0 : begin + (end + 1) / 2 * 2 - 2;
    OnSolution<real> a(l, x, pre, post);
    bool inner = lane >= HALO && lane < 32 - HALO, owner = inner && x < (l.x.periodic ? l.x.n : l.pitch);
    bool coarse_owner = inner && x / 2 < coarse.pitch;
    Restriction<real> restriction(coarse, x, a);
    // Columns that count in the norms.
    real keep[4];
#pragma unroll
    for (int c = 0; c < 4; c++) keep[c] = owner && a.unknown(c) && x + c < l.x.n ? real(1) : real(0);

    typedef Stream<4, 6, real> Rows;
    constexpr int space = Rows::space + Source::space;
    __shared__ __align__(16) char shared[WARPS * space];
    char* mine = shared + threadIdx.x / 32 * space;
    Rows rhs(f, l, x, mine);
    Source source(l, coarse, u, below, x, way, mine + Rows::space);
    let_next_kernel_start();
    wait_for_previous_kernel();

    real U[6][4] = {}, F[6][4] = {}, left_post[2] = {}, left[2] = {}, peak = 0;
    double squares = 0, u_squares = 0, mean = 0;
    const int first = begin - (LAST + 2) / 2 * 2, stop = end + LAST;
    auto row_of = [&](int j) { return mirror + way * j; };
    // A row, or what stands for it beyond the ends.
    auto offset = [&](int row) { return (long long)(unsigned(row) < unsigned(l.y.n) ? row : wrapped(l.y, row)) * l.pitch; };
    // Step j takes row j of u and row j-1 of f.
    long long before = offset(row_of(first - 1));
    auto fetch = [&](int j, int slot) {
        long long here = offset(row_of(j));
        source.fetch(here, row_of(j), slot), rhs.fetch_at(before, slot), commit_fetches();
        before = here;
    };
    source.fetch_first(row_of(first)), commit_fetches();
#pragma unroll
    for (int p = 0; p < 5; p++) fetch(first + p, p);
    wait_for_fetches<5>();
    source.take_first();
    for (int base = first; base < stop; base += 6) {
#pragma unroll
        for (int p = 0; p < 6; p++) {
            const int j = base + p, p1 = (p + 5) % 6, next = (p + 6 - NEXT) % 6;
            const bool odd = (p + NEXT) & 1;  // the columns of all half-sweeps of this step: rows alternate as the colours do
            real kept[2] = {U[p][odd], U[p][2 + odd]}, d[2], dn[2];
            wait_for_fetches<4>();
            source.take(row_of(j), p, U[p]), rhs.take(p, F[p1]);
            fetch(j + 5, p1);
            // Of the row in a slot at one colour; the row before the last one in the ring is `kept`.
            auto defect_at = [&](int slot, bool odd, real* out) {
                const int n = (slot + 1) % 6, s = (slot + 5) % 6;
                real north[2] = {U[n][odd], U[n][2 + odd]}, south[2] = {U[s][odd], U[s][2 + odd]};
                a.defect(odd, s == p ? kept : south, U[slot], north, F[slot], out);
            };
            auto defect = [&](int slot, real* out) { defect_at(slot, odd, out); };
            if (END) {
                defect(p1, d);
                a.move(a.inside(row_of(j - 1)), odd, a.post, d, U[p1]);
                defect((p + 4) % 6, d);
                a.move(a.inside(row_of(j - 2)), odd, a.post, d, U[(p + 4) % 6]);
            }
            if (NORMS && !END) defect_at(p1, !odd, left_post), defect_at(p1, odd, d);
            else defect(next, dn);
            if (NORMS) {
                // At the end row j-3 is done: its black nodes keep `left_post`, its red ones have what the next sweep takes off.
                const int row = row_of(j - NORM), slot = (p + 6 - NORM) % 6;
                const real *ours = END ? dn : d, *others = left_post, sign = END ? real(1) : real(-1);
                if (row >= begin && row < end && a.inside(row)) {
                    double rr = 0, uu = 0, r1 = 0;
                    real res[4];
#pragma unroll
                    for (int c = 0; c < 4; c++) {
                        res[c] = keep[c] * ((c & 1) == odd ? -ours[c / 2] : sign * others[c / 2]);
                        peak = fmax(peak, fabs(res[c]));
                        double r = res[c], v = keep[c] * U[slot][c];
                        rr += r * r, uu += v * v, r1 += r;
                    }
                    squares += rr, u_squares += uu, mean += r1;
                }
            }
            if (NORMS && !END) defect(next, dn);
            if (END) left_post[0] = a.remains_post * d[0], left_post[1] = a.remains_post * d[1];
            if (BEGIN) {
                const int black = (next + 5) % 6;
                a.move(a.inside(row_of(j - NEXT)), odd, a.pre, dn, U[next]);
                defect(black, d);
                a.move(a.inside(row_of(j - NEXT - 1)), odd, a.pre, d, U[black]);
            }
            const int stored = row_of(j - STORE);
            if (owner && stored >= begin && stored < min(end, l.y.n))
                write4(u_new + (long long)stored * l.pitch + x, U[(p + 6 - STORE) % 6]);
            if (BEGIN) {
                // Row j-LAST: its black nodes keep `left`.
                real res[4];
                defect((p + 6 - LAST) % 6, dn);
                res[odd] = -dn[0], res[2 + odd] = -dn[1], res[!odd] = left[0], res[2 + !odd] = left[1];
                left[0] = a.remains * d[0], left[1] = a.remains * d[1];
                const int row = row_of(j - LAST);
                real out[2];
                restriction.row(row, way, odd, a.inside(row), res, out);
                if (odd && coarse_owner && j - LAST > begin && j - LAST < end)
                    *reinterpret_cast<Two<real>*>(rc + (long long)((row - way) / 2) * coarse.pitch + x / 2) =
                        Two<real>{out[0], out[1]};
            }
        }
    }
    if (NORMS) {
        double volume = double(l.x.volume[l.x.n / 2]) * l.y.volume[l.y.n / 2];
        int strips = (columns + OWNED - 1) / OWNED;
        Partial total = warp_total({volume * squares, double(peak), volume * u_squares, volume * mean});
        // Joining them here would take registers from the loop of the longest pass: its results, one a warp, are left to `norms`.
        if (END && BEGIN) {
            if (lane == 0) norms.partials[blockIdx.y * strips + strip] = total;
        } else join_norms(total, min(WARPS, strips - int(blockIdx.x) * WARPS), norms);
    }
}
