// Right-hand sides and solutions in the caller's memory on the device: dense, C order, x fastest.

#include "extent.cuh"

// f = rhs + added - shift, and over the unknowns the sums of v f and v f^2, with v the share of a whole control volume, and the largest
// |f|; the last value counts numbers of rhs, sides included, that are not finite. `added` and `f` may be null; `f` may be `rhs`.
// A block leaves 4 values in `partial`. Bytes: rhs once, added and f once where they are.
extern "C" __global__ void __launch_bounds__(256)
    source(const double* rhs, const double* added, double shift, double* f, const __grid_constant__ Extent box, double* partial) {
    __shared__ double scratch[8];
    double sum = 0, square = 0, most = 0, none = 0;
    const u64 count = box.nodes[0] * box.nodes[1] * box.nodes[2];
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += (u64)gridDim.x * blockDim.x) {
        u64 place[3] = {at % box.nodes[0], at / box.nodes[0] % box.nodes[1], at / box.nodes[0] / box.nodes[1]};
        double given = rhs[at], value = (added ? given + added[at] : given) - shift, share = 1;
        if (!isfinite(given)) none += 1;
        if (f) f[at] = value;
        for (int d = 0; d < 3; ++d) {
            if (place[d] < box.lo[d] || place[d] >= box.hi[d]) share = 0;
            if (box.half_lo[d] && place[d] == box.lo[d]) share *= 0.5;
            if (box.half_hi[d] && place[d] + 1 == box.hi[d]) share *= 0.5;
        }
        if (share > 0) {
            sum += share * value;
            square += share * value * value;
            most = Max<double>::join(most, fabs(value));
        }
    }
    sum = block_reduce<Sum<double>>(sum, scratch);
    square = block_reduce<Sum<double>>(square, scratch);
    most = block_reduce<Max<double>>(most, scratch);
    none = block_reduce<Sum<double>>(none, scratch);
    if (threadIdx.x == 0) {
        double* own = partial + 4 * (u64)blockIdx.x;
        own[0] = sum;
        own[1] = square;
        own[2] = most;
        own[3] = none;
    }
}
