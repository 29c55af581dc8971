// The residual of a solution where it lies: its norms, and a sweep of damped Jacobi on it.
// A block takes a tile of columns (x and the middle axis) and walks ROW_STEPS rows along the last axis with three rows
// in registers. The formulae are those of `physics`. Bytes: u and f once, and `to` once where it is written.

#include "split.cu"
#include "field.cuh"

enum { NORMS, RELAX, NORMS_AND_COPY };

// The node next to `i`, or -1 where there is none: Dirichlet values are in f already.
__device__ long long beside(const Field& field, int axis, unsigned i, int step) {
    unsigned n = field.n[axis];
    if (step < 0 ? i > 0 : i + 1 < n) return (long long)i + step;
    int side = step < 0 ? field.lo[axis] : field.hi[axis];
    return side == 0 ? -1 : side == 1 ? (long long)i - step : step < 0 ? n - 1 : 0;
}

// NORMS: sums of r^2 and u^2, weighted by control volumes, and the largest |r|, a block each into `partial`.
// RELAX: `to` = u + omega r / diagonal. NORMS_AND_COPY: the norms, and `to` = u. Systems that are not `active` are left.
extern "C" __global__ void __launch_bounds__(256)
    residual(const real* u, const real* f, real* to, const __grid_constant__ Field field, int what, double omega, const u8* active,
             double* partial) {
    __shared__ double scratch[8];
    if (!active[blockIdx.y]) return;
    unsigned tile = blockIdx.x, tx = tile % field.tiles[0], ty = tile / field.tiles[0] % field.tiles[1],
             tz = tile / field.tiles[0] / field.tiles[1];
    unsigned x = tx * TILE_X + threadIdx.x % TILE_X, q = ty * (256 / TILE_X) + threadIdx.x / TILE_X;
    unsigned from = tz * ROW_STEPS, end = min(from + ROW_STEPS, field.n[2]);
    double r2 = 0, u2 = 0, most = 0;
    if (x < field.n[0] && q < field.n[1]) {
        const u64 base = blockIdx.y * field.system + field.first;
        long long w = beside(field, 0, x, -1), e = beside(field, 0, x, 1), s = beside(field, 1, q, -1), t = beside(field, 1, q, 1);
        double diagonal = 0, share = 1, hx = field.weight[0], hm = field.weight[1], hl = field.weight[2];
        for (int a = 0; a < 3; ++a) diagonal += 2 * field.weight[a];
        if ((x == 0 && field.lo[0] == 1) || (x + 1 == field.n[0] && field.hi[0] == 1)) share *= 0.5;
        if (MIDDLE && ((q == 0 && field.lo[1] == 1) || (q + 1 == field.n[1] && field.hi[1] == 1))) share *= 0.5;
        const real* column = u + base + q * field.middle;
        long long below = beside(field, 2, from, -1);
        double previous = below < 0 ? 0.0 : (double)column[below * field.last + x], now = column[from * field.last + x];
#pragma unroll 4
        for (unsigned l = from; l < end; ++l) {
            const real* row = column + l * field.last;
            long long above = beside(field, 2, l, 1);
            double next = above < 0 ? 0.0 : (double)column[above * field.last + x];
            double west = w < 0 ? 0.0 : (double)row[w], east = e < 0 ? 0.0 : (double)row[e];
            double sum =
                physics::second_difference(now, west, east, hx, hx) + physics::second_difference(now, previous, next, hl, hl);
            if (MIDDLE) {
                const real* plane = u + base + l * field.last + x;
                double south = s < 0 ? 0.0 : (double)plane[s * field.middle], north = t < 0 ? 0.0 : (double)plane[t * field.middle];
                sum += physics::second_difference(now, south, north, hm, hm);
            }
            u64 at = base + q * field.middle + l * field.last + x;
            double r = physics::residual((double)f[at], sum);
            if (what == RELAX) {
                to[at] = (real)physics::relax(now, r, omega / diagonal);
            } else {
                double v = (l == 0 && field.lo[2] == 1) || (l + 1 == field.n[2] && field.hi[2] == 1) ? 0.5 * share : share;
                r2 += v * r * r;
                u2 += v * now * now;
                most = Max<double>::join(most, fabs(r));
                if (what == NORMS_AND_COPY) to[at] = (real)now;
            }
            previous = now;
            now = next;
        }
    }
    if (what == RELAX) return;
    r2 = block_reduce<Sum<double>>(r2, scratch);
    u2 = block_reduce<Sum<double>>(u2, scratch);
    most = block_reduce<Max<double>>(most, scratch);
    if (threadIdx.x == 0) {
        double* own = partial + 3 * ((u64)blockIdx.y * gridDim.x + blockIdx.x);
        own[0] = r2;
        own[1] = u2;
        own[2] = most;
    }
}

// The sums of the blocks of each system, always in the same order. One block of 256 a system; `norms` is the host's memory.
extern "C" __global__ void finish(const double* partial, unsigned blocks, const u8* active, double volume, double* norms) {
    __shared__ double scratch[8];
    if (!active[blockIdx.x]) return;
    partial += 3 * (u64)blockIdx.x * blocks;
    double r2 = 0, u2 = 0, most = 0;
    for (unsigned b = threadIdx.x; b < blocks; b += 256) {
        r2 += partial[3 * b];
        u2 += partial[3 * b + 1];
        most = Max<double>::join(most, partial[3 * b + 2]);
    }
    r2 = block_reduce<Sum<double>>(r2, scratch);
    u2 = block_reduce<Sum<double>>(u2, scratch);
    most = block_reduce<Max<double>>(most, scratch);
    if (threadIdx.x == 0) {
        norms[3 * blockIdx.x] = sqrt(r2 / volume);
        norms[3 * blockIdx.x + 1] = most;
        norms[3 * blockIdx.x + 2] = sqrt(u2 / volume);
    }
}

// To and from the caller's doubles, `n` of them.
extern "C" __global__ void from_double(const double* from, real* to, u64 n) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) to[i] = (real)from[i];
}
extern "C" __global__ void to_double(const real* from, double* to, u64 n) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) to[i] = (double)from[i];
}
