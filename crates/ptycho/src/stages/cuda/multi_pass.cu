// The Fourier step for frames of any shape, in pieces around a library's transforms, on a group of frames at a time. Same formulae and same state as project.cu, but everything in natural order.
// A frame is shared by many blocks: its error must be known before it is constrained, so that this takes two launches.

#include "constrain.cu"

// P O of all modes of `count` views, from `first` on. Grid: (pixels of a frame / 256, count * MODES).
extern "C" __global__ void spread(Model model, C* exits, u32 first) {
    let_next_kernel_start(), wait_for_previous_kernel();
    const u32 pixel = blockIdx.x * blockDim.x + threadIdx.x, n = first + blockIdx.y / MODES, k = blockIdx.y % MODES;
    if (pixel >= NX * NY) return;
    const View view = model.views[n];
    const C p = model.probe[((u64)(SHIFTED ? n : view.probe) * PROBES + k / OBJECTS) * (NX * NY) + pixel];
    const C o =
        model.object[patch_of(model, view, k % OBJECTS) + (u64)(pixel / NX) * model.storages[view.object].width + pixel % NX];
    exits[((u64)n * MODES + k) * (NX * NY) + pixel] = p * o;
}

// values[i] *= factor[i % period] (or its conjugate) * scale. With `shifts` (views see the probe between pixels) the frames of the views, number
// list[..] or first + .., go back by what the probe was shifted in them; with `axis` 0 (rows) or 1 the derivative by the position of that is added,
// of `still`. Grid: as many threads as values.
extern "C" __global__ void apply_transfer(C* values, const C* factor, u64 count, u32 period, u32 conjugate, real scale,
                                          const real2* shifts, const u32* list, u32 first, const C* still, i32 axis) {
    let_next_kernel_start(), wait_for_previous_kernel();
    u64 i = thread_index();
    if (i >= count) return;
    const u32 pixel = i % period, slot = i / period / MODES;
    C value = values[i] * scale;
    if (axis >= 0) {
        const real k = axis ? frequency_of(pixel % NX, NX) / NX : frequency_of(pixel / NX, NY) / NY;
        value = value + make_real2(-still[i].y, still[i].x) * (real(6.283185307179586) * k * scale);
    }
    C phase = factor ? factor[pixel] : make_real2(1, 0);
    if (shifts) phase = phase * conj(ramp(shifts[list ? list[slot] : first + slot], pixel));
    values[i] = value * (conjugate ? conj(phase) : phase);
}

// A frame's sum number `which` of `each` over its `parts` parts, in one order, in thread 0.
template <int THREADS> __device__ __forceinline__ real total(const real* sums, u32 n, u32 parts, int each, int which) {
    __shared__ real scratch[THREADS / WARP];
    real sum = 0;
    for (u32 part = threadIdx.x; part < parts; part += THREADS) sum += __ldcg(sums + ((u64)n * parts + part) * each + which);
    return block_reduce<Sum<real>>(sum, scratch);
}

// A block's part of a frame's misfits, to its slot in `sums` [views][PARTS][2].
template <int THREADS> __device__ __forceinline__ void put_misfit(real2 sum, real* sums, u32 n, u32 part) {
    __shared__ real scratch[2][THREADS / WARP];
    sum.x = block_reduce<Sum<real>>(sum.x, scratch[0]);
    sum.y = block_reduce<Sum<real>>(sum.y, scratch[1]);
    real* to = sums + ((u64)n * PARTS + part) * 2;
    if (threadIdx.x == 0) to[0] = sum.x, to[1] = sum.y;
}

// Relaxation of a frame whose misfits are known, in all threads.
template <int THREADS>
__device__ __forceinline__ real relaxation_from_sums(const real* sums, const real2* weight, u32 n, Constraint rule) {
    __shared__ real pull;
    const real error = total<THREADS>(sums, n, PARTS, 2, 1);
    if (threadIdx.x == 0) pull = relaxation_of(rule, error * weight[n].x, weight[n]);
    __syncthreads();
    return pull;
}

// Misfits of the views from `first` on, and the ratios of magnitudes to `ratios` [views of the group][MY * MX].
// `exits`: g times 1 / scale. Grid: (PARTS, views of the group).
extern "C" __global__ void __launch_bounds__(TEAM)
    measure(const C* waves, const C* exits, const float* mag, real* ratios, real* sums, u32 first, Constraint rule, real scale) {
    let_next_kernel_start(), wait_for_previous_kernel();
    const u32 n = first + blockIdx.y;
    const C* wave = waves + (u64)n * MODES * (NX * NY);
    const C* exit = exits + (u64)n * MODES * (NX * NY);
    real2 sum = make_real2(0, 0);
#pragma unroll 2
    for (u32 pixel = blockIdx.x * TEAM + threadIdx.x; pixel < MX * MY; pixel += PARTS * TEAM) {
        const float m = mag[(u64)n * (MX * MY) + pixel];
        real model = 0, estimate = 0;
        EACH_PART(part) {
            const u32 i = pixel_of(pixel, part);
#pragma unroll 4
            for (int k = 0; k < MODES; ++k) {
                const C g = exit[k * (NX * NY) + i] * scale;
                model += power(g);
                estimate += power(g * rule.c + wave[k * (NX * NY) + i] * (1 - rule.c));
            }
        }
        sum = sum + misfit(model, estimate, m);
        ratios[(u64)blockIdx.y * (MX * MY) + pixel] = ratio(estimate, m);
    }
    put_misfit<TEAM>(sum, sums, n, blockIdx.x);
}

// The constraint: g / scale comes in `exits` and the new e goes out. Grid: (CHANGES, views of the group).
extern "C" __global__ void __launch_bounds__(TEAM)
    constrain(C* waves, C* exits, const real* ratios, const real2* weight, const real* sums, real* changes, u32 first,
              Constraint rule, real scale) {
    let_next_kernel_start(), wait_for_previous_kernel();
    __shared__ real scratch[TEAM / WARP];
    const u32 n = first + blockIdx.y;
    C* wave = waves + (u64)n * MODES * (NX * NY);
    C* exit = exits + (u64)n * MODES * (NX * NY);
    const Blend blend = blend_of(rule, relaxation_from_sums<TEAM>(sums, weight, n, rule));
    real change = 0;
    for (u32 pixel = blockIdx.x * TEAM + threadIdx.x; pixel < MX * MY; pixel += CHANGES * TEAM) {
        const real q = ratios[(u64)blockIdx.y * (MX * MY) + pixel];
        const real g = fma(blend.g_ratio, q, blend.g) * scale, e = fma(blend.e_ratio, q, blend.e);
        EACH_PART(part) {
            const u32 i = pixel_of(pixel, part);
            for (int k = 0; k < MODES; ++k) {
                const C old = wave[k * (NX * NY) + i], now = exit[k * (NX * NY) + i] * g + old * e;
                change += power(now - old);
                wave[k * (NX * NY) + i] = now;
                exit[k * (NX * NY) + i] = now * scale;
            }
        }
    }
    change = block_reduce<Sum<real>>(change, scratch);
    if (threadIdx.x == 0) changes[(u64)n * CHANGES + blockIdx.x] = change;
}

// Errors of all views from their sums; `turns`, two numbers a view, become 0. Grid: (views).
extern "C" __global__ void __launch_bounds__(TEAM)
    frame_errors(const real* sums, const real* changes, const real2* weight, real* errors, u32* turns) {
    let_next_kernel_start(), wait_for_previous_kernel();
    const u32 n = blockIdx.x;
    const real model = total<TEAM>(sums, n, PARTS, 2, 0), fourier = total<TEAM>(sums, n, PARTS, 2, 1),
               change = total<TEAM>(changes, n, CHANGES, 1, 0);
    if (threadIdx.x) return;
    turns[2 * n] = turns[2 * n + 1] = 0;
    errors[3 * (u64)n] = fourier * weight[n].x, errors[3 * (u64)n + 1] = model / (MX * MY),
               errors[3 * (u64)n + 2] = change / (NX * NY);
}
