// The likelihood for frames of any shape: as likelihood.cu, in pieces.

#include "batches.cu"
#include "noise.cu"

// Two sums whose ratio is the brightness that fits a frame best.
extern "C" __global__ void __launch_bounds__(TEAM) brighten(Batch batch) {
    const u32 n = view_number(batch, blockIdx.y);
    real sums[2] = {0, 0};
    EACH_COUNTED(pixel) {
        real2 both = brightness(batch.power[(u64)blockIdx.y * (MX * MY) + pixel], magnitude(batch, n, pixel));
        sums[0] += both.x, sums[1] += both.y;
    }
    put_sums(batch, sums);
}

// Brightness of the batch's views from the sums of `chunks` blocks each. A thread a view.
extern "C" __global__ void __launch_bounds__(TEAM) view_brightness(Batch batch, u32 chunks, u32 count, real* factors) {
    const u64 i = thread_index();
    if (i >= count) return;
    double up = 0, down = 0;
    for (u32 c = 0; c < chunks; ++c) up += batch.sums[(i * chunks + c) * 2], down += batch.sums[(i * chunks + c) * 2 + 1];
    real factor = real(up / down);
    if (!(fabs(factor) < real(1e37))) factor = 1;
    else if (NOISE == 2) factor *= factor;
    factors[view_number(batch, i)] = factor;
}

// The value; intensities become what waves are multiplied by.
extern "C" __global__ void __launch_bounds__(TEAM) weigh(Batch batch, const real* factors, u32 left_out) {
    const u32 n = view_number(batch, blockIdx.y);
    const real factor = factors[n], weight = scale_of(batch) * scale_of(batch) * (left_out ? 1.0f : factor);
    real sum[1] = {0};
    EACH_COUNTED(pixel) {
        const real2 both = value_and_slope(batch.power[(u64)blockIdx.y * (MX * MY) + pixel] * factor, magnitude(batch, n, pixel));
        sum[0] += both.x;
        EACH_PART(part) {
            const u32 at = pixel_of(pixel, part);
            for (u32 k = 0; k < MODES; ++k) {
                C* wave = work_of(batch, blockIdx.y, k) + at;
                *wave = *wave * (both.y * weight);
            }
        }
    }
    put_sums(batch, sum);
}

// First and second order of the value, where `first` and `second` [views][MODES][NY * NX] are the orders of the waves.
extern "C" __global__ void __launch_bounds__(TEAM) bend(Batch batch, const C* first, const C* second, const real* factors) {
    const u32 n = view_number(batch, blockIdx.y);
    const real factor = factors[n], scale = scale_of(batch) * scale_of(batch) * factor;
    real sums[2] = {0, 0};
    EACH_COUNTED(pixel) {
        const real m = magnitude(batch, n, pixel), i = batch.power[(u64)blockIdx.y * (MX * MY) + pixel] * factor;
        real once = 0, twice = 0;
        EACH_PART(part) {
            for (u32 k = 0; k < MODES; ++k) {
                const u64 at = ((u64)blockIdx.y * MODES + k) * (NX * NY) + pixel_of(pixel, part);
                const C a = batch.work[at], b = first[at], c = second[at];
                once += 2 * (a.x * b.x + a.y * b.y), twice += power(b) + 2 * (a.x * c.x + a.y * c.y);
            }
        }
        once *= scale, twice *= scale;
        const real slope = value_and_slope(i, m).y;
        sums[0] += slope * once, sums[1] += slope * twice + curvature(i, m) * once * once;
    }
    put_sums(batch, sums);
}
