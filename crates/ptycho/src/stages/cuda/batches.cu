// Operations that any engine needs on frames of any shape and any number of modes, in pieces around a library's transforms, on a batch of views at a
// time: everything in natural order, but for magnitudes and waves that lie as the kernels in registers left them (`mag_order`, `wave_order`).
// Grids: (CHUNKS, views of the batch) of TEAM threads; `multiply`: (CHUNKS, views of the batch, MODES).

#include "constrain.cu"

__device__ __forceinline__ real scale_of(const Batch& batch) { return real(batch.scale); }
__device__ __forceinline__ u32 view_number(const Batch& batch, u32 i) { return batch.list ? batch.list[i] : batch.first + i; }
__device__ __forceinline__ real magnitude(const Batch& batch, u32 n, u32 pixel) {
    return batch.mag[(u64)n * (MX * MY) + (batch.mag_order ? batch.mag_order[pixel] : pixel)];
}
__device__ __forceinline__ C* work_of(const Batch& batch, u32 i, u32 k) { return batch.work + ((u64)i * MODES + k) * (NX * NY); }
// Number of the probe that view `i` of the batch sees: of its set, or where views see it between pixels (SHIFTED) its own, in the order of the
// batch's list or of all views.
__device__ __forceinline__ u32 probe_number(const Batch& batch, const View& view, u32 i) {
    return !SHIFTED ? view.probe : batch.list ? i : batch.first + i;
}
#define EACH_PIXEL(pixel) for (u32 pixel = blockIdx.x * TEAM + threadIdx.x; pixel < NX * NY; pixel += gridDim.x * TEAM)
#define EACH_COUNTED(pixel) for (u32 pixel = blockIdx.x * TEAM + threadIdx.x; pixel < MX * MY; pixel += gridDim.x * TEAM)

// The greatest of values that are not negative, over all blocks: their bits have the same order.
__device__ __forceinline__ void put_greatest(real value, word* to) {
    __shared__ real scratch[TEAM / WARP];
    value = block_reduce<Max<real>>(value, scratch);
    if (threadIdx.x == 0) atomicMax(to, bits_of(value));
}

// Sums of a block, in doubles, to its slot.
template <int COUNT> __device__ __forceinline__ void put_sums(const Batch& batch, const real (&value)[COUNT]) {
    __shared__ double scratch[TEAM / WARP];
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        double sum = block_reduce<Sum<double>>(double(value[i]), scratch);
        if (threadIdx.x == 0) batch.sums[((u64)blockIdx.y * gridDim.x + blockIdx.x) * COUNT + i] = sum;
    }
}

// A pixel of the object's patch, or with `axis` 0 (rows) or 1 its central difference, one-sided at the edges of the object.
__device__ __forceinline__ C patch_value(const Model& model, const View& view, u32 o, u32 pixel, i32 axis) {
    const Storage storage = model.storages[view.object];
    const u32 y = pixel / NX, x = pixel % NX;
    const C* here = model.object + patch_of(model, view, o) + (u64)y * storage.width + x;
    if (axis < 0) return *here;
    const u32 at = axis ? view.col + x : view.row + y, end = axis ? storage.width : storage.height,
              stride = axis ? 1 : storage.width;
    const u32 low = at > 0, high = at + 1 < end;
    return (here[high * stride] - here[-(i64)(low * stride)]) * (1.0f / real(greatest(low + high, 1u)));
}

// work = P O of the first pair of arrays, and of the second if `both`.
extern "C" __global__ void __launch_bounds__(TEAM) multiply(Model model, Model other, Batch batch, u32 both, i32 axis) {
    const u32 i = blockIdx.y, k = blockIdx.z;
    const View view = model.views[view_number(batch, i)];
    const u64 probe = ((u64)probe_number(batch, view, i) * PROBES + k / OBJECTS) * (NX * NY);
    EACH_PIXEL(pixel) {
        C value = model.probe[probe + pixel] * patch_value(model, view, k % OBJECTS, pixel, axis);
        if (both) value = value + other.probe[probe + pixel] * patch_value(other, view, k % OBJECTS, pixel, axis);
        work_of(batch, i, k)[pixel] = value;
    }
}

// Intensities at the detector to `power`.
extern "C" __global__ void __launch_bounds__(TEAM) intensity(Batch batch) {
    EACH_COUNTED(pixel) {
        real sum = 0;
        EACH_PART(part) {
            const u32 at = pixel_of(pixel, part);
            for (u32 k = 0; k < MODES; ++k) sum += power(work_of(batch, blockIdx.y, k)[at]);
        }
        batch.power[(u64)blockIdx.y * (MX * MY) + pixel] = sum * scale_of(batch) * scale_of(batch);
    }
}

// Summed squared deviations of the magnitudes to `sums`.
extern "C" __global__ void __launch_bounds__(TEAM) deviation(Batch batch) {
    const u32 n = view_number(batch, blockIdx.y);
    real sum[1] = {0};
    EACH_COUNTED(pixel) {
        const real i = batch.power[(u64)blockIdx.y * (MX * MY) + pixel];
        sum[0] += misfit(i, i, magnitude(batch, n, pixel)).y;
    }
    put_sums(batch, sum);
}

// Re <waves, other waves> of all modes to `to` [views][MY * MX]: half of what intensities change by.
extern "C" __global__ void __launch_bounds__(TEAM) change(Batch batch, const C* other, real* to) {
    EACH_COUNTED(pixel) {
        real sum = 0;
        EACH_PART(part) {
            const u32 at = pixel_of(pixel, part);
            for (u32 k = 0; k < MODES; ++k) {
                const C a = work_of(batch, blockIdx.y, k)[at], b = other[((u64)blockIdx.y * MODES + k) * (NX * NY) + at];
                sum += a.x * b.x + a.y * b.y;
            }
        }
        to[(u64)blockIdx.y * (MX * MY) + pixel] = sum * scale_of(batch) * scale_of(batch);
    }
}

// Derivatives of the squared deviation by the position, as `slope` of positions.cu: five sums.
extern "C" __global__ void __launch_bounds__(TEAM) slopes(Batch batch, const real* down, const real* across) {
    const u32 n = view_number(batch, blockIdx.y);
    real sums[5] = {0, 0, 0, 0, 0};
    EACH_COUNTED(pixel) {
        const u64 at = (u64)blockIdx.y * (MX * MY) + pixel;
        const real m = magnitude(batch, n, pixel), i = batch.power[at];
        if (m < 0 || !(i > 0)) continue;
        const real size = sqrt(i), y = down[at] / size, x = across[at] / size, off = 2 * (size - m);
        sums[0] += off * y, sums[1] += off * x, sums[2] += 2 * y * y, sums[3] += 2 * x * x, sums[4] += 2 * y * x;
    }
    put_sums(batch, sums);
}
