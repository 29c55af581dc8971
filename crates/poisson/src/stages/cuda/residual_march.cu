// marching_residual: r = f - A u and its norms. Plane; launch as descend. Reads 2 words and writes 1 of `real` per unknown.
// At step j: row j of u and row j-1 of f are read, row j-1 has its residual.

#include "march.cu"

extern "C" __global__ __launch_bounds__(32 * WARPS) void marching_residual(Level l, const wide* __restrict__ u,
                                                                           const wide* __restrict__ f, real* __restrict__ r,
                                                                           wide ascend_finest, Norms norms, int height) {
    int strips = (l.x.n + OWN - 1) / OWN, strip = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (strip >= strips) return;
    int x = strip * OWN + 4 * (lane - 1);
    int begin = first_row(l, height), end = min(begin + height, l.y.n), stop = end + 1;
    Columns<wide> m(l, x);
    bool owner = lane > 0 && lane < 31 && x < (l.x.periodic ? l.x.n : l.pitch);
    // Lengths of the control volumes, 0 where a column is no unknown.
    double vx[4];
#pragma unroll
    for (int c = 0; c < 4; c++) vx[c] = m.inverse[c] != wide(0) && x + c < l.x.n ? double(l.x.volume[x + c]) : 0.0;

    typedef Stream<4, 8, wide> Rows;
    __shared__ __align__(16) char shared[WARPS * 2 * Rows::space];
    char* space = shared + threadIdx.x / 32 * 2 * Rows::space;
    Rows solution(u, l, x, space), rhs(f, l, x, space + Rows::space);
    let_next_kernel_start();
    wait_for_previous_kernel();
    wide U[4][4] = {};
    Across<wide> y, y_next = across<wide>(l, begin - 3);
    double v, v_next = 0, squares = 0, u_squares = 0, mean = 0;
    real peak = 0;
    auto fetch = [&](int j, int slot) {
        if (j < stop) solution.fetch(j, slot), rhs.fetch(j - 1, slot);
        commit_fetches();
    };
#pragma unroll
    for (int a = 0; a < 7; a++) fetch(begin - 2 + a, a);
    int phase = 0;
    for (int base = begin - 2; base < stop; base += 4, phase ^= 4) {
#pragma unroll
        for (int p = 0; p < 4; p++) {
            const int j = base + p, p1 = (p + 3) % 4, p2 = (p + 2) % 4;
            wait_for_fetches<6>();
            wide here[4], even[2], odd[2];
            solution.take(phase + p, U[p]), rhs.take(phase + p, here);
            fetch(j + 7, (phase + p + 7) % 8);
            y = y_next, v = v_next;
            y_next = across<wide>(l, j), v_next = __ldg(l.y.volume + j);
            operator_row(m, y, false, U[p2], U[p1], U[p], even);
            operator_row(m, y, true, U[p2], U[p1], U[p], odd);
            bool counts = owner && j > begin && j<stop, unknown = y.south + y.north> wide(0);
            if (counts) {
                real out[4];
                double rr = 0, uu = 0, sum = 0;
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    wide res = unknown && m.inverse[c] != wide(0) ? here[c] - (c & 1 ? odd : even)[c / 2] : wide(0);
                    out[c] = real(ascend_finest * res);
                    // A NaN must not vanish in fmax: it turns into infinity.
                    peak = out[c] == out[c] ? fmax(peak, fabs(out[c])) : real(__longlong_as_double(0x7ff0000000000000LL));
                    double d = res, w = U[p1][c];
                    rr += vx[c] * d * d, uu += vx[c] * w * w, sum += vx[c] * d;
                }
                if (unknown) squares += v * rr, u_squares += v * uu, mean += v * sum;
                write4(r + (long long)(j - 1) * l.pitch + x, out);
            }
        }
    }
    Partial total = warp_total({squares, double(peak) / double(ascend_finest), u_squares, mean});
    join_norms(total, min(WARPS, strips - int(blockIdx.x) * WARPS), norms);
}
