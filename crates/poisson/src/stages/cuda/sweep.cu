// sweep: one red-black sweep on A u = f in one pass, from `u` into `u_new`. Plane. Launch as descend.
// Reads 2 words and writes 1 per unknown; about 20 flops.
//
// At step j: row j of u and row j-1 of f are read, row j-1 has its red nodes relaxed, row j-2 its black ones.

#include "march.cu"

extern "C" __global__ __launch_bounds__(32 * WARPS) void sweep(Level l, const wide* __restrict__ u, const wide* __restrict__ f,
                                                               wide* __restrict__ u_new, wide omega, int height) {
    int strip = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (strip * OWN >= l.x.n) return;
    int x = strip * OWN + 4 * (lane - 1);
    int begin = first_row(l, height), end = min(begin + height, l.y.end);
    Columns<wide> m(l, x);
    bool owner = lane > 0 && lane < 31 && x < (l.x.periodic ? l.x.n : l.pitch);

    typedef Stream<4, 8, wide> Rows;
    __shared__ __align__(16) char shared[WARPS * 2 * Rows::space];
    char* space = shared + threadIdx.x / 32 * 2 * Rows::space;
    Rows solution(u, l, x, space), rhs(f, l, x, space + Rows::space);
    let_next_kernel_start();
    wait_for_previous_kernel();
    wide U[4][4] = {}, F[4][4] = {};
    Across<wide> Y[4] = {}, y_next = across<wide>(l, begin - 2);
#pragma unroll
    for (int a = 0; a < 7; a++) solution.fetch(begin - 2 + a, a), rhs.fetch(begin - 2 + a, a), commit_fetches();
    int phase = 0;
    for (int base = begin - 2; base < end + 2; base += 4, phase ^= 4) {
#pragma unroll
        for (int p = 0; p < 4; p++) {
            const int j = base + p, p1 = (p + 3) % 4, p2 = (p + 2) % 4, p3 = (p + 1) % 4;
            wait_for_fetches<6>();
            const int next = (phase + p + 7) % 8;
            solution.take(phase + p, U[p]), rhs.take(phase + p, F[p]);
            if (j + 7 < end + 2) solution.fetch(j + 7, next), rhs.fetch(j + 7, next);
            commit_fetches();
            Y[p] = y_next;
            y_next = across<wide>(l, j + 1);
            // Bands begin at even rows: row j-1 has the other parity than p, and so have its red columns.
            relax_row(m, Y[p1], !(p & 1), omega, U[p2], U[p1], U[p], F[p1]);
            relax_row(m, Y[p2], !(p & 1), omega, U[p3], U[p2], U[p1], F[p2]);
            if (owner && j - 2 >= begin && j - 2 < end) write4(u_new + (long long)(j - 2) * l.pitch + x, U[p2]);
        }
    }
}

// two_sweeps: two sweeps in one pass, with the same arithmetic. Reads 2 words and writes 1 per unknown for both.
// At step j: row j is read, rows j-1 and j-2 have their first sweep, rows j-3 and j-4 their second one. Each half-sweep
// spoils one more column and row of the halo, which has four.
extern "C" __global__ __launch_bounds__(32 * WARPS) void two_sweeps(Level l, const wide* __restrict__ u, const wide* __restrict__ f,
                                                                    wide* __restrict__ u_new, wide omega, int height) {
    int strip = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (strip * OWN >= l.x.n) return;
    int x = strip * OWN + 4 * (lane - 1);
    int begin = first_row(l, height), end = min(begin + height, l.y.end);
    Columns<wide> m(l, x);
    bool owner = lane > 0 && lane < 31 && x < (l.x.periodic ? l.x.n : l.pitch);

    typedef Stream<4, 6, wide> Rows;
    __shared__ __align__(16) char shared[WARPS * 2 * Rows::space];
    char* space = shared + threadIdx.x / 32 * 2 * Rows::space;
    Rows solution(u, l, x, space), rhs(f, l, x, space + Rows::space);
    let_next_kernel_start();
    wait_for_previous_kernel();
    wide U[6][4] = {}, F[6][4] = {};
    Across<wide> Y[6] = {}, y_next = across<wide>(l, begin - 4);
#pragma unroll
    for (int a = 0; a < 5; a++) solution.fetch(begin - 4 + a, a), rhs.fetch(begin - 4 + a, a), commit_fetches();
    for (int base = begin - 4; base < end + 4; base += 6) {
#pragma unroll
        for (int p = 0; p < 6; p++) {
            const int j = base + p, p1 = (p + 5) % 6, p2 = (p + 4) % 6, p3 = (p + 3) % 6, p4 = (p + 2) % 6, p5 = (p + 1) % 6;
            const bool odd = !(p & 1);
            wait_for_fetches<4>();
            solution.take(p, U[p]), rhs.take(p, F[p]);
            if (j + 5 < end + 4) solution.fetch(j + 5, (p + 5) % 6), rhs.fetch(j + 5, (p + 5) % 6);
            commit_fetches();
            Y[p] = y_next;
            y_next = across<wide>(l, j + 1);
            relax_row(m, Y[p1], odd, omega, U[p2], U[p1], U[p], F[p1]);
            relax_row(m, Y[p2], odd, omega, U[p3], U[p2], U[p1], F[p2]);
            relax_row(m, Y[p3], odd, omega, U[p4], U[p3], U[p2], F[p3]);
            relax_row(m, Y[p4], odd, omega, U[p5], U[p4], U[p3], F[p4]);
            if (owner && j - 4 >= begin && j - 4 < end) write4(u_new + (long long)(j - 4) * l.pitch + x, U[p4]);
        }
    }
}
