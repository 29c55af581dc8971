// Misfit of views at other positions, and its gradient: no update. Grid as in project.cu. Transforms: 1 a mode for `trial`, 3 for `slope`.
// Bytes a pixel: 4 (the magnitude); probe and object come from the caches.

#include "step.cu"

// Mean squared deviation of the magnitudes of every view, where `model.views` says that it looks.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    trial(Model model, const float* mag, const float2* weight, float* errors, u32 views) {
    extern __shared__ __align__(128) char shared[];
    C* big = (C*)shared;
    const FrameContext context = frame_context(big + 32 * THREADS, CL ? blockIdx.x & (BLOCKS - 1) : 0);
    const ThreadContext& thread = context.thread;
    float4* power_of = (float4*)big + threadIdx.x;
    for (u32 n = blockIdx.x >> CL; n < views; n += gridDim.x >> CL) {
        const View view = model.views[n];
        const float* magnitudes = mag + (u64)n * (NX * NY) + (u64)thread.block * 32 * THREADS;
        float2 sums = make_float2(0, 0);
        for (int k = 0; k < MODES; ++k) {
            C v[32];
            product(v, model, view, k, thread, SCALE);
            propagate(v, model.near, thread, 0);
#pragma unroll
            for (int r = 0; r < 32; r += 4) {
                float4 i = k > 0 ? power_of[(r >> 2) * THREADS] : make_float4(0, 0, 0, 0);
                i = make_float4(i.x + power(v[r]), i.y + power(v[r + 1]), i.z + power(v[r + 2]), i.w + power(v[r + 3]));
                if (k < MODES - 1) {
                    power_of[(r >> 2) * THREADS] = i;
                } else {
                    float4 m = magnitudes_at(magnitudes, r);
                    sums.y += misfit(i.x, i.x, m.x).y + misfit(i.y, i.y, m.y).y + misfit(i.z, i.z, m.z).y + misfit(i.w, i.w, m.w).y;
                }
            }
        }
        sums = reduce_all(sums, context);
        if (threadIdx.x == 0 && thread.block == 0) errors[n] = sums.y * weight[n].x;
    }
}

// P times the object's central difference along an axis (0: rows), one-sided at the edges of the object.
__device__ __forceinline__ void steep_product(C* v, const Model& model, const View& view, int k, int axis,
                                              const ThreadContext& thread, float scale) {
    const C* probe = model.probe + ((u64)view.probe * PROBES + k / OBJECTS) * (NX * NY);
    const C* object = model.object + patch_of(model, view, k % OBJECTS);
    const Storage storage = model.storages[view.object];
    const u32 stride = axis ? 1 : storage.width;
#pragma unroll
    for (int r = 0; r < 32; ++r) {
        const int x = (r & ((1 << XR) - 1)) * 32 + thread.lane, y = row_of(thread, r);
        const u32 at = axis ? view.col + x : view.row + y, end = axis ? storage.width : storage.height;
        const u32 low = at > 0, high = at + 1 < end;
        const C* here = object + (u64)y * storage.width + x;
        v[r] = probe[y * NX + x] * (here[high * stride] - here[-(i64)(low * stride)]) * (scale / float(greatest(low + high, 1u)));
    }
}

// Derivatives of the summed squared deviation of the magnitudes by the position of every view, a pixel: y, x, and Gauss and Newton's yy, xx and yx,
// to `values` [views][BLOCKS][5]. `planes`: room for 96 floats a thread of the grid.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    slope(Model model, const float* mag, float* planes, double* values, u32 views) {
    extern __shared__ __align__(128) char shared[];
    __shared__ double room[5 * WARPS];
    C* big = (C*)shared;
    const FrameContext context = frame_context(big + 32 * THREADS, CL ? blockIdx.x & (BLOCKS - 1) : 0);
    const ThreadContext& thread = context.thread;
    C* held = big + threadIdx.x;  // the wave of a mode
    float4* sum_of =
        (float4*)planes + (u64)blockIdx.x * (24 * THREADS) + threadIdx.x;  // intensities, and what they change by over two
    for (u32 n = blockIdx.x >> CL; n < views; n += gridDim.x >> CL) {
        const View view = model.views[n];
        for (int k = 0; k < MODES; ++k) {
#pragma unroll 1
            for (int axis = -1; axis < 2; ++axis) {
                C v[32];
                if (axis < 0) product(v, model, view, k, thread, SCALE);
                else steep_product(v, model, view, k, axis, thread, SCALE);
                propagate(v, model.near, thread, 0);
#pragma unroll
                for (int r = 0; r < 32; r += 4) {
                    float part[4];
#pragma unroll
                    for (int q = 0; q < 4; ++q) {
                        if (axis < 0) held[(r + q) * THREADS] = v[r + q];
                        const C g = held[(r + q) * THREADS];
                        part[q] = g.x * v[r + q].x + g.y * v[r + q].y;
                    }
                    float4* target = sum_of + ((axis + 1) * 8 + (r >> 2)) * THREADS;
                    float4 old = k > 0 ? *target : make_float4(0, 0, 0, 0);
                    *target = make_float4(old.x + part[0], old.y + part[1], old.z + part[2], old.w + part[3]);
                }
            }
        }
        float sums[5] = {0, 0, 0, 0, 0};
        for (int r = 0; r < 32; r += 4) {
            const float4 i4 = sum_of[(r >> 2) * THREADS], y4 = sum_of[(8 + (r >> 2)) * THREADS],
                         x4 = sum_of[(16 + (r >> 2)) * THREADS];
            const float4 m4 = magnitudes_at(mag + (u64)n * (NX * NY) + (u64)thread.block * 32 * THREADS, r);
            const float i[4] = {i4.x, i4.y, i4.z, i4.w}, dy[4] = {y4.x, y4.y, y4.z, y4.w}, dx[4] = {x4.x, x4.y, x4.z, x4.w};
            const float m[4] = {m4.x, m4.y, m4.z, m4.w};
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                if (m[q] < 0 || !(i[q] > 0)) continue;
                const float size = sqrtf(i[q]), y = dy[q] / size, x = dx[q] / size, off = 2 * (size - m[q]);
                sums[0] += off * y, sums[1] += off * x, sums[2] += 2 * y * y, sums[3] += 2 * x * x, sums[4] += 2 * y * x;
            }
        }
#pragma unroll
        for (int i = 0; i < 5; ++i) {
            double sum = sums[i];
#pragma unroll
            for (int d = WARP / 2; d > 0; d /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, d);
            if (thread.lane == 0) room[5 * thread.warp + i] = sum;
        }
        __syncthreads();
        if (threadIdx.x < 5) {
            double sum = 0;
            for (int w = 0; w < WARPS; ++w) sum += room[5 * w + threadIdx.x];
            values[((u64)n * BLOCKS + thread.block) * 5 + threadIdx.x] = sum;
        }
        __syncthreads();
    }
}
