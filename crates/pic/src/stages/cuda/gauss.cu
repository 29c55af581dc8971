// Diagnostics of the fields on the device: div E - rho at all corners (gauss.rs), and the work of E on J.

#include "current.cu"
#include "gauss.cuh"

#define DENSITY 8  // charge has the place and the mirror images of Jz

// The charge of a species at the corners, from integer sums of deposits with guards.
extern "C" __global__ void __launch_bounds__(256)
    charge_of(const __grid_constant__ YeeGrid l, const long long* sums, double unit, double* to) {
    Node p = node(l);
    if (!p.inside) return;
    long long sum = sums[p.at];
    u32 xs = sources_of(l, DENSITY, 0, p.i) | 32u, ys = sources_of(l, DENSITY, 1, p.j) | 32u;
    // Bit 5 is the node itself.
    if (xs != 32u || ys != 32u) {
        sum = 0;
        for (u32 b = ys; b; b &= b - 1) {
            int y = __ffs(b) - 1, j = y == 5 ? p.j : guard(y, l.cells[1]);
            for (u32 a = xs; a; a &= a - 1) {
                int x = __ffs(a) - 1, i = x == 5 ? p.i : guard(x, l.cells[0]);
                sum += sums[(j + BELOW) * l.pitch + i + BELOW];
            }
        }
    }
    double value = unit * double(sum);
    if (on_wall(l, 0, p.i)) value *= 2;
    if (on_wall(l, 1, p.j)) value *= 2;
    to[p.at] = value;
}
extern "C" __global__ void __launch_bounds__(256)
    smooth_charge(const __grid_constant__ YeeGrid l, const __grid_constant__ Taps taps, const double* from, double* to) {
    Node p = node(l);
    if (p.inside) to[p.at] = filtered(l, taps, from, DENSITY, p, 0);
}
// Charge and its magnitude, of all species.
extern "C" __global__ void __launch_bounds__(256)
    sum_charge(const __grid_constant__ YeeGrid l, const double* one, double* rho, double* all) {
    Node p = node(l);
    if (!p.inside) return;
    rho[p.at] += one[p.at];
    all[p.at] += fabs(one[p.at]);
}

// Sums of the squares of Ex and Ey over the cell, and the largest charge: three of each row, a block a row.
extern "C" __global__ void __launch_bounds__(256)
    check_scale(const __grid_constant__ YeeGrid l, const double* all, double* partial) {
    __shared__ double scratch[8];
    double x = 0, y = 0, most = 0;
    for (int i = threadIdx.x; i < l.nodes[0]; i += 256) {
        u64 at = u64(blockIdx.x + BELOW) * l.pitch + i + BELOW;
        double ex = l.e[0][at] * l.inverse[0], ey = l.e[1][at] * l.inverse[1];
        x += ex * ex;
        y += ey * ey;
        most = fmax(most, all[at]);
    }
    x = block_reduce<Sum<double>>(x, scratch);
    y = block_reduce<Sum<double>>(y, scratch);
    most = block_reduce<Max<double>>(most, scratch);
    if (threadIdx.x == 0) {
        partial[3 * blockIdx.x] = x;
        partial[3 * blockIdx.x + 1] = y;
        partial[3 * blockIdx.x + 2] = most;
    }
}

#include "corners.cuh"

// `ChargeErrors` of the host: no corner was seen before where the limit is negative.
struct ChargeErrors {
    double most, change, limit;
};
__device__ __forceinline__ ChargeErrors join(ChargeErrors a, ChargeErrors b) {
    ChargeErrors s = a;
    s.most = a.most != a.most || a.most > b.most ? a.most : b.most;
    if (b.limit >= 0 && (a.limit < 0 || b.change * a.limit > a.change * b.limit || b.change != b.change)) {
        s.change = b.change;
        s.limit = b.limit;
    }
    return s;
}
extern "C" __global__ void __launch_bounds__(256) check_charge(const __grid_constant__ YeeGrid l, const __grid_constant__ Corners c,
                                                               const __grid_constant__ Rounding<double> of, double* partial) {
    __shared__ ChargeErrors all[256];
    ChargeErrors seen = {0, 0, -1};
    u64 width = u64(c.range[1] - c.range[0]), count = width * u64(c.range[3] - c.range[2]);
    for (u64 n = thread_index(); n < count; n += thread_count()) {
        int i = c.range[0] + int(n % width), j = c.range[2] + int(n / width);
        long long row = (long long)(j + BELOW) * l.pitch, at = row + i + BELOW, k = row + (i + BELOW + c.turn) % l.pitch;
        double right = l.e[0][at] * l.inverse[0], left = l.e[0][at - 1] * l.inverse[0];
        double upper = l.e[1][at] * l.inverse[1], lower = l.e[1][at - l.pitch] * l.inverse[1];
        Corner<double> was = {c.base[k], c.forget[i] ? 0.0 : c.variance[k], 0.0, 0.0};
        Corner<double> now = check_corner(right, left, upper, lower, c.rho[at], c.all[at], was, of);
        c.base[k] = now.base;
        c.variance[k] = now.variance;
        seen = join(seen, ChargeErrors{now.change, now.change, now.limit});
    }
    all[threadIdx.x] = seen;
    for (int half = 128; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) all[threadIdx.x] = join(all[threadIdx.x], all[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) {
        partial[3 * blockIdx.x] = all[0].most;
        partial[3 * blockIdx.x + 1] = all[0].change;
        partial[3 * blockIdx.x + 2] = all[0].limit;
    }
}

// Adds `factor` times the sum of E J over the nodes, without `count` columns of sheets: a block a row, each to a sum of its own.
extern "C" __global__ void __launch_bounds__(256)
    power(const __grid_constant__ YeeGrid l, const u32* columns, u32 count, double factor, double* work) {
    __shared__ double scratch[8];
    wait_for_previous_kernel();
    let_next_kernel_start();
    const int j = blockIdx.x;
    double sum = 0;
    for (int c = 0; c < 3; c++) {
        bool half[2] = {halfway(c, 0), halfway(c, 1)};
        int nx = half[0] ? l.cells[0] : l.nodes[0], ny = half[1] ? l.cells[1] : l.nodes[1];
        if (j >= ny) continue;
        for (int i = threadIdx.x; i < nx; i += 256) {
            long long at = (long long)(j + BELOW) * l.pitch + i + BELOW;
            double weight = 1;
            // A wall corner stands for half a cell.
            if (!half[0] && on_wall(l, 0, i)) weight *= 0.5;
            if (!half[1] && on_wall(l, 1, j)) weight *= 0.5;
            for (u32 s = 0; s < count; s++)
                if (columns[s] == u32(i)) weight = 0;
            sum += weight * double(l.e[c][at]) * double(l.j[c][at]);
        }
    }
    sum = block_reduce<Sum<double>>(sum, scratch);
    if (threadIdx.x == 0) work[blockIdx.x] += factor * sum;
}
