// The tridiagonal systems along the last axis (line.rs), for the modes of all parts at once.
// Rows 2p and 2p + 1 are the parts of one complex value, so a line of x carries two rows.

#include "segments.cu"

// MODES neighbouring modes a block, SEGMENTS segments of LENGTH rows each, all rows in registers: read once, written once.
// The multipliers wait in shared memory (where it is large enough), so that two blocks of 512 fit on a multiprocessor and hide each other's barriers.
extern "C" __global__ void __launch_bounds__(MODES* SEGMENTS, WAITING ? 1024 / (MODES * SEGMENTS) : 1)
    lines(const __grid_constant__ Modes modes, const double* outer, unsigned outer_count, const double* inner) {
    __shared__ real as[MODES * SEGMENTS / 32 * MODES], bs[MODES * SEGMENTS / 32 * MODES];
    unsigned c = threadIdx.x % MODES, r0 = threadIdx.x / MODES * LENGTH;
    unsigned mode = blockIdx.x * MODES + c, places = modes.at[modes.count] * modes.outer;
    const Line line = line_at(modes, min(mode, places - 1));
    double delta = outer[line.outer % outer_count] + inner[line.mode], theta = 2.0 * asinh(0.5 * sqrt(delta));
#if WAITING
    extern __shared__ double2 waiting[];
    real* v = (real*)waiting + threadIdx.x;
#define V(i) v[(i) * MODES * SEGMENTS]
#else
    real v[LENGTH];
#define V(i) v[i]
#endif
    real g[LENGTH];
#if PERIODIC
#pragma unroll
    for (int i = 0; i < LENGTH; ++i) g[i] = r0 + i < ROWS ? row_of(line, r0 + i + 1) : (real)0;
#else
#pragma unroll
    for (int i = 0; i < LENGTH; i += 2) {
        Z pair = r0 + i < ROWS ? line.first[((r0 + i) >> 1) * line.plane] : none();
        g[i] = pair.x;
        g[i + 1] = r0 + i + 1 < ROWS ? pair.y : (real)0;
    }
#endif
    double d = r0 > 0 ? before(r0, theta) : 1.0;
    real a = 1, b = 0;
#pragma unroll
    for (int i = 0; i < LENGTH; ++i) {
        unsigned r = r0 + i;
        if (r >= ROWS) continue;
        bool last = HI_NEUMANN && r + 1 == ROWS, first = LO_NEUMANN && r == 0;
        double m = first ? 1.0 / (1.0 + 0.5 * delta) : last ? 1.0 / (0.5 * delta + d) : 1.0 / (1.0 + delta + d);
        if (last && LO_NEUMANN && delta == 0.0) m = 1e-30;
        d = first ? 0.5 * delta * m : (delta + d) * m;
        real own = last || d >= 0.5 ? (real)m : (real)-d;
        V(i) = own;
        if (first || last) g[i] *= (real)0.5;
        b = times(own, g[i] + b);
        a = times(own, a);
    }
    real carry = carried(a, b, false, as, bs);
    a = 1;
    b = 0;
#pragma unroll
    for (int i = 0; i < LENGTH; ++i) {
        if (r0 + i < ROWS) carry = g[i] = times(V(i), g[i] + carry);
    }
#pragma unroll
    for (int i = LENGTH - 1; i >= 0; --i) {
        if (r0 + i < ROWS) {
            b = times(V(i), b) + g[i];
            a = times(V(i), a);
        }
    }
    carry = carried(a, b, true, as, bs);
#pragma unroll
    for (int i = LENGTH - 1; i >= 0; --i) {
        if (r0 + i < ROWS) carry = g[i] = times(V(i), carry) + g[i];
    }
#if PERIODIC
    // Node 0 through its Green's function cosh((n/2 - j) theta) / cosh(n theta / 2).
#pragma unroll
    for (int i = 0; i < LENGTH; ++i) {
        if (r0 + i == 0) as[c] = g[i];
        if (r0 + i == ROWS - 1) bs[c] = g[i];
    }
    __syncthreads();
    double n = ROWS + 1, pivot = 2.0 * sinh(theta) * tanh(0.5 * n * theta);
    double zero = delta > 0.0 ? ((double)row_of(line, 0) + as[c] + bs[c]) / pivot : 0.0;
    double there = zero / (1.0 + exp(-n * theta)), back = there * exp(-(n - 1.0 - r0) * theta);
    there *= exp(-(r0 + 1.0) * theta);
    double down = exp(-theta), up = exp(theta);
#pragma unroll
    for (int i = 0; i < LENGTH; ++i) {
        g[i] += (real)(there + back);
        there *= down;
        back *= up;
    }
    __syncthreads();  // node 0 is read by all threads before the first one writes it
    if (r0 == 0 && mode < places) row_of(line, 0) = (real)zero;
#endif
    if (mode >= places) return;
#if PERIODIC
#pragma unroll
    for (int i = 0; i < LENGTH; ++i) {
        if (r0 + i < ROWS) row_of(line, r0 + i + 1) = g[i];
    }
#else
#pragma unroll
    for (int i = 0; i < LENGTH; i += 2) {
        if (r0 + i < ROWS) line.first[((r0 + i) >> 1) * line.plane] = {g[i], r0 + i + 1 < ROWS ? g[i + 1] : (real)0};
    }
#endif
}

// The constant mode of a singular problem: takes the weighted mean off its line and writes it down, as it was before
// anything was taken off. Blocks of 256, one a system; its mode is `step` places of the part from the one of the system before.
extern "C" __global__ void centre(Z* part, u64 plane, u64 first, u64 step, double* means) {
    __shared__ double sums[8];
    __shared__ double mean;
    const Line line = {part + first + blockIdx.x * step, plane, 0, 0};
    const unsigned rows = ROWS + PERIODIC;
    double sum = 0.0;
    for (unsigned r = threadIdx.x; r < rows; r += 256) {
        double weight = !PERIODIC && (r == 0 || r + 1 == rows) ? 0.5 : 1.0;
        sum += weight * row_of(line, r);
    }
    sum = block_reduce<Sum<double>>(sum, sums);
    if (threadIdx.x == 0) means[blockIdx.x] = mean = sum / (PERIODIC ? rows : rows - 1);
    __syncthreads();
    for (unsigned r = threadIdx.x; r < rows; r += 256) row_of(line, r) -= (real)mean;
}
