// Smoothing of objects, a support of probes in Fourier space, and what a pass of the overlap loop is judged by where these make it stop between.

#include "model.cu"

// One axis of a Gaussian, mirrored at the edges (which count twice): weights[0 .. reach] of one side, the middle first.
extern "C" __global__ void __launch_bounds__(TEAM)
    smooth(const C* from, C* to, u32 height, u32 width, const real* weights, u32 reach, u32 axis) {
    const i64 n = axis ? width : height, stride = axis ? 1 : width;
    for (u64 i = thread_index(); i < (u64)height * width; i += thread_count()) {
        const i64 at = axis ? i % width : i / width;
        const C* line = from + (i64)i - at * stride;
        C sum = line[at * stride] * weights[0];
        for (i64 d = 1; d <= reach; ++d) {
            i64 low = (at - d) % (2 * n), high = (at + d) % (2 * n);
            low = low < 0 ? low + 2 * n : low;
            low = low < n ? low : 2 * n - 1 - low, high = high < n ? high : 2 * n - 1 - high;
            sum = sum + (line[low * stride] + line[high * stride]) * weights[d];
        }
        to[i] = sum;
    }
}

// values[i] times where[i % (NX * NY)] and `scale`.
extern "C" __global__ void __launch_bounds__(TEAM) veil(C* values, const real* where, u64 count, real scale) {
    for (u64 i = thread_index(); i < count; i += thread_count()) values[i] = values[i] * (where[i % (NX * NY)] * scale);
}

// Squared change and square of each set of probes, two sums a block, to `sums` [sets][blocks][2]. Grid: (blocks, sets).
extern "C" __global__ void __launch_bounds__(TEAM) compare(const C* probe, const C* before, double* sums) {
    __shared__ double scratch[TEAM / WARP];
    const u64 first = (u64)blockIdx.y * PROBES * (NX * NY);
    double change = 0, all = 0;
    for (u64 i = thread_index(); i < PROBES * NX * NY; i += thread_count()) {
        change += power(probe[first + i] - before[first + i]), all += power(probe[first + i]);
    }
    change = block_reduce<Sum<double>>(change, scratch), all = block_reduce<Sum<double>>(all, scratch);
    if (threadIdx.x == 0)
        sums[((u64)blockIdx.y * gridDim.x + blockIdx.x) * 2] = change,
                                                          sums[((u64)blockIdx.y * gridDim.x + blockIdx.x) * 2 + 1] = all;
}
