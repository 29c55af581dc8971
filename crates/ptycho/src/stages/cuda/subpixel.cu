// Probes between pixels: a view sees S(d) P = F^-1 exp(-2 pi i k d / n) F P with d what its whole pixels leave over, and what it says of the probe
// goes back by S(-d). Transforms in natural order, without a factor.

#include "batches.cu"

// Transforms of the shifted modes of the batch's views to `to` [views][P][NY * NX], or with `axis` 0 (rows) or 1 of their derivative by the position.
// Grid: (CHUNKS, views of the batch, PROBES).
extern "C" __global__ void __launch_bounds__(TEAM)
    tilt(Model model, Batch batch, const real2* shifts, const C* spectra, C* to, i32 axis) {
    const u32 n = view_number(batch, blockIdx.y);
    const real2 by = shifts[n];
    const C* from = spectra + ((u64)model.views[n].probe * PROBES + blockIdx.z) * (NX * NY);
    EACH_PIXEL(pixel) {
        C value = from[pixel] * ramp(by, pixel) * (real(1) / (NX * NY));
        if (axis >= 0) {
            const real k = axis ? frequency_of(pixel % NX, NX) / NX : frequency_of(pixel / NX, NY) / NY;
            value = make_real2(-value.y, value.x) * (-real(6.283185307179586) * k);
        }
        to[((u64)blockIdx.y * PROBES + blockIdx.z) * (NX * NY) + pixel] = value;
    }
}

// sum_o conj(O) psi of the batch's views to `to`, psi those in the batch's work, or with `rest` what P O leaves of them (P as the views see it).
// Grid: (CHUNKS, views of the batch, PROBES).
extern "C" __global__ void __launch_bounds__(TEAM) probe_numerator(Model model, Batch batch, u32 rest, C* to) {
    const View view = model.views[view_number(batch, blockIdx.y)];
    const C* probe = model.probe + ((u64)probe_number(batch, view, blockIdx.y) * PROBES + blockIdx.z) * (NX * NY);
    EACH_PIXEL(pixel) {
        C sum = make_real2(0, 0);
        for (u32 o = 0; o < OBJECTS; ++o) {
            const C object = patch_value(model, view, o, pixel, -1);
            C psi = work_of(batch, blockIdx.y, blockIdx.z * OBJECTS + o)[pixel];
            if (rest) psi = psi - probe[pixel] * object;
            sum = sum + conj(object) * psi;
        }
        to[((u64)blockIdx.y * PROBES + blockIdx.z) * (NX * NY) + pixel] = sum;
    }
}

// Transforms `back` of the batch's views, shifted back, times `scale`, added in their order to `sums` [parts][sets][P][NY * NX], part s of views s, s
// + parts, .., `before` of which were added before; |O|^2 to `norms` [parts][sets][NY * NX] unless that is null. Sums go on where they stopped, so
// that batches make no difference. Grid: (pixels / TEAM, sets, parts).
extern "C" __global__ void __launch_bounds__(TEAM) gather_shifted_back(Model model, Batch batch, const real2* shifts, const C* back,
                                                                       u32 count, real scale, u32 before, C* sums, real* norms) {
    const u32 set = blockIdx.z * gridDim.y + blockIdx.y;
    EACH_PIXEL(pixel) {
        C sum[PROBES];
        real norm = norms && before ? norms[(u64)set * (NX * NY) + pixel] : 0;
#pragma unroll
        for (int p = 0; p < PROBES; ++p) sum[p] = before ? sums[((u64)set * PROBES + p) * (NX * NY) + pixel] : make_real2(0, 0);
        for (u32 i = (blockIdx.z + gridDim.z - before % gridDim.z) % gridDim.z; i < count; i += gridDim.z) {
            const u32 n = view_number(batch, i);
            const View view = model.views[n];
            if (view.probe != blockIdx.y) continue;
            const C phase = conj(ramp(shifts[n], pixel)) * scale;
#pragma unroll
            for (int p = 0; p < PROBES; ++p) sum[p] = sum[p] + phase * back[((u64)i * PROBES + p) * (NX * NY) + pixel];
            for (u32 o = 0; norms && o < OBJECTS; ++o) norm += power(patch_value(model, view, o, pixel, -1));
        }
#pragma unroll
        for (int p = 0; p < PROBES; ++p) sums[((u64)set * PROBES + p) * (NX * NY) + pixel] = sum[p];
        if (norms) norms[(u64)set * (NX * NY) + pixel] = norm;
    }
}

struct Weighted {
    real x, y, z;
};

// The parts of the sums, in one order, to the first one; `values` of the sums and `weights` of the norms a part. Grid: (values / WARP).
extern "C" __global__ void __launch_bounds__(TEAM) add_parts(C* sums, real* norms, u32 parts, u64 values, u64 weights) {
    wait_for_previous_kernel();
    __shared__ Weighted room[TEAM / WARP][WARP];
    const u32 crew = threadIdx.x / WARP, lane = lane_index();
    const u64 i = (u64)blockIdx.x * WARP + lane;
    Weighted sum = {0, 0, 0};
#pragma unroll 4
    for (u32 s = crew; s < parts; s += TEAM / WARP) {
        const C value = i < values ? sums[s * values + i] : make_real2(0, 0);
        sum.x += value.x, sum.y += value.y, sum.z += i < weights ? norms[s * weights + i] : 0;
    }
    room[crew][lane] = sum;
    __syncthreads();
    if (crew || i >= values) return;
    for (u32 c = 1; c < TEAM / WARP; ++c) sum.x += room[c][lane].x, sum.y += room[c][lane].y, sum.z += room[c][lane].z;
    sums[i] = make_real2(sum.x, sum.y);
    if (i < weights) norms[i] = sum.z;
}

// Probes get their steps over the weight; what lies outside of the support is lost. Grid: (CHUNKS, sets).
extern "C" __global__ void __launch_bounds__(TEAM)
    step_subpixel(C* probe, const C* sums, const real* norms, const real* inertia, const real* support) {
    const u64 first = (u64)blockIdx.y * PROBES * (NX * NY);
    EACH_PIXEL(pixel) {
        const real weight = inertia[blockIdx.y] + norms[(u64)blockIdx.y * (NX * NY) + pixel],
                   inside = support ? support[pixel] : 1.0f;
        for (u32 p = 0; p < PROBES; ++p) {
            const u64 at = first + p * (NX * NY) + pixel;
            const C step = weight > 0 ? sums[at] * (1 / weight) : make_real2(0, 0);
            probe[at] = (probe[at] + step) * inside;
        }
    }
}

// The greatest |P|^2 that each view of the batch sees. Grid: (CHUNKS, views of the batch).
extern "C" __global__ void __launch_bounds__(TEAM) brightest_seen(const C* probe, word* to) {
    real most = 0;
    EACH_PIXEL(pixel) {
        real norm = 0;
        for (u32 p = 0; p < PROBES; ++p) norm += power(probe[((u64)blockIdx.y * PROBES + p) * (NX * NY) + pixel]);
        most = fmax(most, norm);
    }
    put_greatest(most, to + blockIdx.y);
}

// Waves at the detector go with their probes: view n by `by[n]`. Grid: (CHUNKS, views, MODES).
extern "C" __global__ void __launch_bounds__(TEAM) shift_waves(Batch batch, const real2* by, C* waves) {
    const u32 n = view_number(batch, blockIdx.y);
    C* wave = waves + ((u64)n * MODES + blockIdx.z) * (NX * NY);
    EACH_PIXEL(pixel) {
        C* value = wave + (batch.wave_order ? batch.wave_order[pixel] : pixel);
        *value = *value * ramp(by[n], pixel);
    }
}
