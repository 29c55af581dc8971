// eliminate: the bottom level between its products along x: for every mode of x the system along y, which is tridiagonal,
// e = (A_y - lambda)^-1 r. Plane, y not periodic. Launch: blocks of 8 warps, a warp a column; a lane has LINE rows.
// A lane writes its rows by its own last one and that of the lane before; the 32 last ones are found by cyclic reduction.
// What depends on the matrix alone is made while the kernel ahead still runs. Time is latency.
//
// Source: Wang, ACM Trans. Math. Softw. 7 (1981); Hockney, J. ACM 12 (1965).

#include "march.cu"

constexpr int LINE = 9;  // 288 rows

#include "elimination.cuh"

extern "C" __global__ __launch_bounds__(256) void eliminate(Elimination o) {
    const int column = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32, row = LINE * lane;
    let_next_kernel_start();
    const bool inside = column < o.columns;
    const real value = inside ? o.values[column] : real(1);
    // Row i is g + b v(last row of the lane before) + c v(i + 1); g comes later, from r times `scale`.
    real b[LINE], c[LINE], scale[LINE], down[LINE];
#pragma unroll
    for (int i = 0; i < LINE; i++) {
        int j = row + i;
        bool unknown = j >= o.first && j < o.last;
        real south = unknown ? o.weights[2 * j] : real(0), north = unknown ? o.weights[2 * j + 1] : real(0);
        real diagonal = unknown ? south + north + value : real(1), before = i ? c[i - 1] : real(0);
        real inverse = real(1) / (diagonal - south * before);
        scale[i] = unknown ? -inverse : real(0);
        down[i] = south * inverse;
        b[i] = i ? down[i] * b[i - 1] : down[i];
        c[i] = north * inverse;
    }
    // Upwards: row i is G + B v(lane before) + C v(own last row).
    real B[LINE], C[LINE];
    B[LINE - 1] = 0, C[LINE - 1] = 1;
#pragma unroll
    for (int i = LINE - 2; i >= 0; i--) B[i] = b[i] + c[i] * B[i + 1], C[i] = c[i] * C[i + 1];
    // Last rows: x = p + q x(lane - d) + s x(lane + d).
    const real ahead = lane < 31 ? c[LINE - 1] : real(0);
    real q[6], s[6], k[6];
    k[0] = real(1) / (real(1) - ahead * from_east(B[0]));
    q[0] = lane ? k[0] * b[LINE - 1] : real(0), s[0] = k[0] * ahead * from_east(C[0]);
#pragma unroll
    for (int t = 0; t < 5; t++) {
        int d = 1 << t;
        real qw = __shfl_up_sync(~0u, q[t], d), sw = __shfl_up_sync(~0u, s[t], d);
        real qe = __shfl_down_sync(~0u, q[t], d), se = __shfl_down_sync(~0u, s[t], d);
        k[t + 1] = real(1) / (real(1) - q[t] * sw - s[t] * qe);
        q[t + 1] = k[t + 1] * q[t] * qw, s[t + 1] = k[t + 1] * s[t] * se;
    }
    wait_for_previous_kernel();

    real g[LINE];
#pragma unroll
    for (int i = 0; i < LINE; i++)
        g[i] = inside && row + i >= o.first && row + i < o.last ? scale[i] * o.r[(long long)(row + i) * o.pitch + column] : real(0);
#pragma unroll
    for (int i = 1; i < LINE; i++) g[i] += down[i] * g[i - 1];
    real last = g[LINE - 1];
    g[LINE - 1] = 0;
#pragma unroll
    for (int i = LINE - 2; i >= 0; i--) g[i] += c[i] * g[i + 1];
    real p = k[0] * (last + ahead * from_east(g[0]));
#pragma unroll
    for (int t = 0; t < 5; t++) {
        int d = 1 << t;
        real west = __shfl_up_sync(~0u, p, d), east = __shfl_down_sync(~0u, p, d);
        p = k[t + 1] * (p + q[t] * west + s[t] * east);
    }
    real west = from_west(p);
    if (lane == 0) west = 0;
#pragma unroll
    for (int i = 0; i < LINE; i++)
        if (inside && row + i >= o.first && row + i < o.last)
            o.e[(long long)(row + i) * o.pitch + column] = g[i] + B[i] * west + C[i] * p;
}
