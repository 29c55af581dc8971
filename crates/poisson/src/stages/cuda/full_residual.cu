// Full multigrid: the solution of the level below interpolated, and its residual. Plane, both axes coarsened; launch as
// descend.

#include "interpolated.cu"

// full_residual: u_l = P u_{l+1} by cubics on the unknowns, r = f - A u. In float, bytes per unknown: reads 5, writes 8.
// At step j: row j of u, and row j-1 of r.
extern "C" __global__ __launch_bounds__(32 * WARPS) void full_residual(Level l, Level coarse, const wide* __restrict__ uc, wide* u,
                                                                       const wide* __restrict__ f, real* __restrict__ r,
                                                                       wide ascend_finest, int height) {
    int strip = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (strip * OWN >= l.x.n) return;
    int x = strip * OWN + 4 * (lane - 1);
    int begin = first_row(l, height), end = min(begin + height, l.y.n);
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
                out[c] = row_unknown && m.inverse[c] != wide(0) ? real(ascend_finest * (here[c] - (c & 1 ? odd : even)[c / 2]))
                                                                : real(0);
            }
            if (owner && j >= begin && j < end) write4(u + (long long)j * l.pitch + x, U[p]);
            if (owner && j > begin && j < stop) write4(r + (long long)(j - 1) * l.pitch + x, out);
        }
    }
}
