// Full multigrid: the right-hand side and the boundary values, a level down. Plane, both axes coarsened; full_restrict is
// launched as descend.

#include "march.cu"

// full_restrict: f_{l+1} = R f_l. Reads 1 word and writes 1/4 per unknown.
extern "C" __global__ __launch_bounds__(32 * WARPS) void full_restrict(Level l, Level coarse, const wide* __restrict__ f,
                                                                       wide* __restrict__ fc, int height) {
    int strip = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (strip * OWN >= 2 * coarse.x.n) return;
    int x = strip * OWN + 4 * (lane - 1);
    int begin = first_row(l, height), end = min(begin + height, 2 * coarse.y.n);
    wide fx[6];
#pragma unroll
    for (int q = 0; q < 6; q++) fx[q] = coarse.x.full[3 * (x / 2) + q];
    bool owner = lane > 0 && lane < 31 && x / 2 < coarse.pitch;
    typedef Stream<4, 8, wide> Rows;
    __shared__ __align__(16) char shared[WARPS * Rows::space];
    Rows rows(f, l, x, shared + threadIdx.x / 32 * Rows::space);
    let_next_kernel_start();
    wait_for_previous_kernel();
    // Weights of row j = 2J, or 2J+1, which is also 2(J+1)-1, are read a step ahead.
    const real* fy = coarse.y.full + 3 * (begin / 2 - 1);
    wide sum[2] = {}, next[2] = {fy[1], fy[3]}, share[2];
#pragma unroll
    for (int a = 0; a < 7; a++) rows.fetch(begin - 2 + a, a), commit_fetches();
    int phase = 0;
    for (int base = begin - 2; base < end; base += 4, phase ^= 4) {
#pragma unroll
        for (int p = 0; p < 4; p++) {
            const int j = base + p;
            wide r[4];
            wait_for_fetches<6>();
            rows.take(phase + p, r);
            if (j + 7 < end) rows.fetch(j + 7, (phase + p + 7) % 8);
            commit_fetches();
            share[0] = next[0], share[1] = next[1];
            fy = coarse.y.full + 3 * ((j + 1) >> 1);
            next[0] = __ldg(fy + (p % 2 ? 1 : 2)), next[1] = __ldg(fy + 3);
            wide beside = from_west(r[3]);
            wide c0 = physics::three(fx[0], beside, fx[1], r[0], fx[2], r[1]);
            wide c1 = physics::three(fx[3], r[1], fx[4], r[2], fx[5], r[3]);
            if (p % 2 == 0) {
                sum[0] += share[0] * c0;
                sum[1] += share[0] * c1;
            } else {
                if (owner && j > begin && j < end) {
                    Two<wide> both = {sum[0] + share[0] * c0, sum[1] + share[0] * c1};
                    *reinterpret_cast<Two<wide>*>(fc + (long long)(j >> 1) * coarse.pitch + x / 2) = both;
                }
                sum[0] = share[1] * c0;
                sum[1] = share[1] * c1;
            }
        }
    }
}

// full_restrict_two: f_{l+1} = R f_l and f_{l+2} = R f_{l+1} in one pass, no axis periodic. Launch as full_restrict, strips of 124
// columns and bands of whole quadruples over four times the nodes of level l+2. Reads 1 word and writes 5/16 per unknown.
// A node weighs its western neighbour, its own and its eastern one, which a lane has itself but for the first: no halo in the east.
extern "C" __global__ __launch_bounds__(32 * WARPS) void full_restrict_two(Level l, Level coarse, Level next,
                                                                           const wide* __restrict__ f, wide* __restrict__ fc,
                                                                           wide* __restrict__ fn, int height) {
    constexpr int OWNED = 124;
    int strip = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (strip * OWNED >= 4 * next.x.n) return;
    int x = strip * OWNED + 4 * (lane - 1);
    int begin = first_row(l, height), end = min(begin + height, 4 * next.y.n);
    wide fx[6], nx[3];
#pragma unroll
    for (int q = 0; q < 6; q++) fx[q] = coarse.x.full[3 * (x / 2) + q];
#pragma unroll
    for (int q = 0; q < 3; q++) nx[q] = next.x.full[3 * (x / 4) + q];
    const bool owner = lane > 0 && x / 2 < coarse.pitch, next_owner = lane > 0 && x / 4 < next.pitch;
    typedef Stream<4, 8, wide> Rows;
    __shared__ __align__(16) char shared[WARPS * Rows::space];
    Rows rows(f, l, x, shared + threadIdx.x / 32 * Rows::space);
    let_next_kernel_start();
    wait_for_previous_kernel();
    wide sum[2] = {}, sum_next = 0;
#pragma unroll
    for (int a = 0; a < 7; a++) rows.fetch(begin - 4 + a, a), commit_fetches();
    int phase = 0;
    for (int base = begin - 4; base < end; base += 4, phase ^= 4) {
        // Of rows base .. base + 3, coarse ones base / 2 and base / 2 + 1 and the next one base / 4; the weights of those behind them.
        const int J = base >> 1, K = base >> 2;
        const real *fy = coarse.y.full + 3 * J, *ny = next.y.full + 3 * K;
        const wide share[4] = {__ldg(fy + 1), __ldg(fy + 2), __ldg(fy + 4), __ldg(fy + 5)},
                   after[2] = {__ldg(fy + 3), __ldg(fy + 6)};
#pragma unroll
        for (int p = 0; p < 4; p++) {
            const int j = base + p;
            wide r[4];
            wait_for_fetches<6>();
            rows.take(phase + p, r);
            if (j + 7 < end) rows.fetch(j + 7, (phase + p + 7) % 8);
            commit_fetches();
            wide beside = from_west(r[3]);
            wide c0 = physics::three(fx[0], beside, fx[1], r[0], fx[2], r[1]);
            wide c1 = physics::three(fx[3], r[1], fx[4], r[2], fx[5], r[3]);
            wide out[2] = {sum[0] + share[p] * c0, sum[1] + share[p] * c1};
            if (p % 2 == 0) {
                sum[0] = out[0], sum[1] = out[1];
                continue;
            }
            sum[0] = after[p / 2] * c0, sum[1] = after[p / 2] * c1;
            const bool inside = j > begin && j < end;
            if (owner && inside && (j >> 1) < coarse.y.n)
                *reinterpret_cast<Two<wide>*>(fc + (long long)(j >> 1) * coarse.pitch + x / 2) = Two<wide>{out[0], out[1]};
            wide d = physics::three(nx[0], from_west(out[1]), nx[1], out[0], nx[2], out[1]);
            if (p == 1) {
                sum_next += __ldg(ny + 1) * d;
            } else {
                wide v = sum_next + __ldg(ny + 2) * d;
                if (next_owner && inside) fn[(long long)K * next.pitch + x / 4] = v;
                sum_next = __ldg(ny + 3) * d;
            }
        }
    }
}

// full_edges: values on held nodes of a coarse level, those of the fine nodes under them. A thread a node of the four sides.
extern "C" __global__ void full_edges(Level l, Level coarse, const wide* u, wide* uc) {
    int q = blockIdx.x * blockDim.x + threadIdx.x, nx = coarse.x.n, ny = coarse.y.n;
    let_next_kernel_start();
    wait_for_previous_kernel();
    if (q >= 2 * (nx + ny)) return;
    int side = q < 2 * nx ? q / nx : 2 + (q - 2 * nx) / ny, t = q < 2 * nx ? q % nx : (q - 2 * nx) % ny;
    int i = side < 2 ? t : side == 2 ? 0 : nx - 1, j = side < 2 ? (side ? ny - 1 : 0) : t;
    if (!unknown(coarse, i, j, 0)) uc[at(coarse, i, j, 0)] = u[at(l, l.x.child[i], l.y.child[j], 0)];
}
