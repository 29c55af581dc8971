// The likelihood of the frames: its gradient as waves behind the sample, and its expansion along a direction (formulae: noise.cu).
// Grid as in project.cu. Transforms: 2 a mode for the gradient, 3 for the line. Values of a view are summed in doubles.

#include "view_sums.cu"
#include "noise.cu"

typedef LineSearchArgument LineSearch;

// Waves of the gradient to `exits`, values to `values` [views][BLOCKS][2] (the second is nothing), brightness to `factors`.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    gradient(Model model, C* exits, const float* mag, double* values, float* factors, LineSearch search) {
    extern __shared__ __align__(128) char shared[];
    __shared__ double room[2 * WARPS];
    C* big = (C*)shared;
    const FrameContext context = frame_context(big + 32 * THREADS, CL ? blockIdx.x & (BLOCKS - 1) : 0);
    const ThreadContext& thread = context.thread;
    const float scale = SCALE;
    const u64 mine = (u64)thread.block * 32 * THREADS;
    float4* power_of = (float4*)big + threadIdx.x;  // intensities, then what waves are multiplied by
    for (u32 n = blockIdx.x >> CL; n < search.views; n += gridDim.x >> CL) {
        const View view = view_at(model, n);
        const float* magnitudes = mag + (u64)n * (NX * NY) + mine;
        C v[32];
        for (int k = 0; k < MODES; ++k) {
            product(v, model, view, k, thread, scale);
            propagate(v, model.near, thread, 0);
            add_powers(power_of, v, k == 0);
            if (MODES > 1) put_pairs(exits + ((u64)n * MODES + k) * (NX * NY) + mine, v);
        }
        float factor = 1;
        if (search.floating) {
            float2 sums = make_float2(0, 0);
#pragma unroll
            for (int r = 0; r < 32; r += 4) {
                float4 i = power_of[(r >> 2) * THREADS], m = magnitudes_at(magnitudes, r);
                sums = sums + brightness(i.x, m.x) + brightness(i.y, m.y) + brightness(i.z, m.z) + brightness(i.w, m.w);
            }
            sums = reduce_all(sums, context);
            factor = sums.x / sums.y;
            if (!(fabsf(factor) < 1e37f)) factor = 1;
            else if (NOISE == 2) factor *= factor;
        }
        const float weight = scale * (search.left_out ? 1.0f : factor);
        float value = 0;
#pragma unroll
        for (int r = 0; r < 32; r += 4) {
            float4 i = power_of[(r >> 2) * THREADS], m = magnitudes_at(magnitudes, r);
            float2 a = value_and_slope(i.x * factor, m.x), b = value_and_slope(i.y * factor, m.y);
            float2 c = value_and_slope(i.z * factor, m.z), d = value_and_slope(i.w * factor, m.w);
            value += a.x + b.x + c.x + d.x;
            power_of[(r >> 2) * THREADS] = make_float4(a.y * weight, b.y * weight, c.y * weight, d.y * weight);
        }
        write_sums(value, 0, values + 2 * BLOCKS * (u64)n, room, thread);
        if (threadIdx.x == 0 && thread.block == 0) factors[n] = factor;
        for (int k = 0; k < MODES; ++k) {
            C* frame = exits + ((u64)n * MODES + k) * (NX * NY);
            if (MODES > 1) take_pairs(v, frame + mine);
#pragma unroll
            for (int r = 0; r < 32; r += 4) {
                float4 q = power_of[(r >> 2) * THREADS];
                v[r] = v[r] * q.x, v[r + 1] = v[r + 1] * q.y, v[r + 2] = v[r + 2] * q.z, v[r + 3] = v[r + 3] * q.w;
            }
            propagate_back(v, model.near, thread, 0);
            keep(frame, v, thread);
        }
    }
}

// Coefficients of the first and second order along `along`, to `values` [views][BLOCKS][2]. `exits` is overwritten.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    line(Model model, Model along, C* exits, const float* mag, double* values, const float* factors, LineSearch search) {
    extern __shared__ __align__(128) char shared[];
    __shared__ double room[2 * WARPS];
    C* big = (C*)shared;
    const FrameContext context = frame_context(big + 32 * THREADS, CL ? blockIdx.x & (BLOCKS - 1) : 0);
    const ThreadContext& thread = context.thread;
    const float scale = SCALE;
    const u64 mine = (u64)thread.block * 32 * THREADS;
    float4* zeroth = (float4*)big + threadIdx.x;  // intensities
    float4* first = zeroth + 8 * THREADS;         // and what they change by, to first order
    Model mixed = along;
    mixed.object = model.object;
    for (u32 n = blockIdx.x >> CL; n < search.views; n += gridDim.x >> CL) {
        const View view = view_at(model, n);
        const float* magnitudes = mag + (u64)n * (NX * NY) + mine;
        const float factor = factors[n];
        C v[32];
        double b1 = 0, b2 = 0;
        for (int k = 0; k < MODES; ++k) {
            product(v, model, view, k, thread, scale);
            propagate(v, model.near, thread, 0);
            add_powers(zeroth, v, k == 0);
            put_pairs(exits + ((u64)n * MODES + k) * (NX * NY) + mine, v);
        }
        for (int k = 0; k < MODES; ++k) {
            const float4* slot = (const float4*)(exits + ((u64)n * MODES + k) * (NX * NY) + mine) + threadIdx.x;
#pragma unroll 1
            for (int order = 2; order > 0; --order) {
                // dP dO is of second order, P dO + dP O of first.
                if (order == 2) {
                    product(v, along, view, k, thread, scale);
                } else {
                    product(v, mixed, view, k, thread, scale);
                    Model other = model;
                    other.object = along.object;
                    add_product(v, other, view, k, thread, scale);
                }
                propagate(v, model.near, thread, 0);
                float part = 0;
#pragma unroll
                for (int r = 0; r < 32; r += 4) {
                    float4 i = zeroth[(r >> 2) * THREADS], m = magnitudes_at(magnitudes, r), f = slot[(r >> 1) * THREADS],
                           h = slot[(r >> 1) * THREADS + THREADS];
                    float4 dot = make_float4(f.x * v[r].x + f.y * v[r].y, f.z * v[r + 1].x + f.w * v[r + 1].y,
                                             h.x * v[r + 2].x + h.y * v[r + 2].y, h.z * v[r + 3].x + h.w * v[r + 3].y);
                    float4 slope = make_float4(value_and_slope(i.x * factor, m.x).y, value_and_slope(i.y * factor, m.y).y,
                                               value_and_slope(i.z * factor, m.z).y, value_and_slope(i.w * factor, m.w).y);
                    if (order == 2) {
                        part += slope.x * dot.x + slope.y * dot.y + slope.z * dot.z + slope.w * dot.w;
                    } else {
                        float4 old = k > 0 ? first[(r >> 2) * THREADS] : make_float4(0, 0, 0, 0);
                        first[(r >> 2) * THREADS] =
                            make_float4(old.x + 2 * dot.x, old.y + 2 * dot.y, old.z + 2 * dot.z, old.w + 2 * dot.w);
                        part += 0.5f * (slope.x * power(v[r]) + slope.y * power(v[r + 1]) + slope.z * power(v[r + 2]) +
                                        slope.w * power(v[r + 3]));
                    }
                }
                b2 += 2.0 * double(part) * factor;
            }
        }
        float line = 0, bend = 0;
#pragma unroll
        for (int r = 0; r < 32; r += 4) {
            float4 i = zeroth[(r >> 2) * THREADS], m = magnitudes_at(magnitudes, r), d = first[(r >> 2) * THREADS];
            i = make_float4(i.x * factor, i.y * factor, i.z * factor, i.w * factor),
            d = make_float4(d.x * factor, d.y * factor, d.z * factor, d.w * factor);
            line += value_and_slope(i.x, m.x).y * d.x + value_and_slope(i.y, m.y).y * d.y + value_and_slope(i.z, m.z).y * d.z +
                    value_and_slope(i.w, m.w).y * d.w;
            bend += curvature(i.x, m.x) * d.x * d.x + curvature(i.y, m.y) * d.y * d.y + curvature(i.z, m.z) * d.z * d.z +
                    curvature(i.w, m.w) * d.w * d.w;
        }
        b1 += line, b2 += bend;
        write_sums(b1, b2, values + 2 * BLOCKS * (u64)n, room, thread);
    }
}
