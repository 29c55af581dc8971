// Edges of the bins of a histogram.

#include "bins.cuh"

// Lower edge and width of the first bin of an axis, set to `edges`: as given where there are no extents of `blocks` blocks, else from
// the least to the greatest of them with a little air, as the host's `padded_range` has it bit for bit. One block.
extern "C" __global__ void __launch_bounds__(256)
    edges(const double* extents, u32 blocks, const __grid_constant__ Bins b, double* edges) {
    __shared__ double scratch[8];
    double low = Limits<double>::high(), high = Limits<double>::low();
    for (u32 k = threadIdx.x; k < blocks; k += blockDim.x) {
        low = fmin(low, extents[2 * k]);
        high = fmax(high, extents[2 * k + 1]);
    }
    low = block_reduce<Min<double>>(low, scratch);
    high = block_reduce<Max<double>>(high, scratch);
    if (threadIdx.x) return;
    double from = b.from, spacing = b.spacing;
    if (blocks) {
        double all = high - low, to = 1;
        from = 0;
        if (all > 0) {
            double air = __dmul_rn(0.05, all);
            from = __dadd_rn(low, -air);
            to = __dadd_rn(high, air);
        } else if (all == 0) {
            double air = fmax(fabs(low), 1e-6);
            from = low - air;
            to = low + air;
        }
        spacing = (to - from) / double(b.count);
    }
    edges[0] = from;
    edges[1] = spacing;
}
