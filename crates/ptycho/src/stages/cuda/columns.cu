// All that happens to the columns of a frame in one kernel: transforms, constraint and back, values in registers meanwhile. Blocks of a frame wait for each
// other in between, until its error is known; passes are two, and a thread is in each of them at most once.

#include "multi_pass.cu"
#include "tiles.cu"

// Blocks take their tiles in the order in which they begin: those that are waited for have begun, if the device holds those of one frame at once.
__device__ __forceinline__ u32 ticket(u32* turns, u32 first) {
    __shared__ u32 mine;
    if (threadIdx.x == 0) mine = atomicAdd(turns + 2 * first, 1u);
    __syncthreads();
    return mine;
}

// All blocks of view `n` have written what they wrote before.
__device__ __forceinline__ void frame_barrier(u32* turns, u32 n) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(turns + 2 * n + 1, 1u);
        while (*(volatile u32*)(turns + 2 * n + 1) < PARTS) {}
        __threadfence();
    }
    __syncthreads();
}

// One wave a view. Grid: (PARTS * views of the group). `turns`: two numbers a view, 0 before: tiles of a group that are taken, at its first view, and blocks
// of a view that have come.
extern "C" __global__ void __launch_bounds__(COLUMN_THREADS, COLUMN_BLOCKS)
    columns(C* waves, C* exits, const float* mag, const real2* weight, real* sums, real* changes, u32* turns, u32 first,
            Constraint rule, real scale) {
    let_next_kernel_start(), wait_for_previous_kernel();
    extern __shared__ C room[];
    __shared__ real scratch[COLUMN_THREADS / WARP];
    typedef Axis<YB, YA, 1, COLUMNS, COLUMN_THREADS, true> Back;
    const u32 own = ticket(turns, first), n = first + own / PARTS, part = own % PARTS;
    const int line = threadIdx.x % COLUMNS, i = threadIdx.x / COLUMNS;
    const bool inside = part * COLUMNS + line < NX, active = inside && i < YA;
    const u64 at = (u64)n * (NX * NY) + part * COLUMNS + (inside ? line : 0), here = at + (u64)(i < YA ? i : 0) * NX;
    if (i < YB) {
        C v[YA];
#pragma unroll
        for (int a = 0; a < YA; ++a) v[a] = exits[at + (u64)(i + a * YB) * NX];
        transform<-1, YA>(v);
        twist<-1, YA, NY>(v, i);
#pragma unroll
        for (int k = 0; k < YA; ++k) room[Column::slot(line, k * Column::PITCH + i)] = v[k];
    }
    __syncthreads();
    // g / scale at rows i + j YA; threads beyond them keep others company.
    C v[YB];
#pragma unroll
    for (int j = 0; j < YB; ++j) v[j] = room[Column::slot(line, (i < YA ? i : 0) * Column::PITCH + j)];
    transform<-1, YB>(v);
    __syncthreads();
    // The room is free until the way back: e waits there, and the ratios of magnitudes in registers.
    C* held = room + (i < YA ? threadIdx.x : 0);
    real2 sum = make_real2(0, 0);
    real q[YB];
    EACH_EIGHTH(YB, j0) {
        C e[8];
        float m[8];
        EACH_OF_EIGHT(YB, j0, j)
        e[j - j0] = __ldcs(waves + here + (u64)(j * YA) * NX), m[j - j0] = __ldcs(mag + here + (u64)(j * YA) * NX);
        EACH_OF_EIGHT(YB, j0, j) {
            const C g = v[j] * scale;
            const real estimate = power(g * rule.c + e[j - j0] * (1 - rule.c));
            if (active) sum = sum + misfit(power(g), estimate, m[j - j0]);
            q[j] = ratio(estimate, m[j - j0]);
            if (i < YA) held[j * (COLUMNS * YA)] = e[j - j0];
        }
    }
    put_misfit<COLUMN_THREADS>(sum, sums, n, part);
    frame_barrier(turns, n);
    const Blend blend = blend_of(rule, relaxation_from_sums<COLUMN_THREADS>(sums, weight, n, rule));
    real change = 0;
#pragma unroll
    for (int j = 0; j < YB; ++j) {
        const C g = v[j] * scale, old = held[j * (COLUMNS * YA)];
        const C now = g * fma(blend.g_ratio, q[j], blend.g) + old * fma(blend.e_ratio, q[j], blend.e);
        if (active) change += power(now - old), __stcs(waves + here + (u64)(j * YA) * NX, now);
        v[j] = now * scale;
    }
    __syncthreads();
    if (i < YA) {
        transform<1, YB>(v);
        twist<1, YB, NY>(v, i);
#pragma unroll
        for (int k = 0; k < YB; ++k) room[Back::slot(line, k * Back::PITCH + i)] = v[k];
    }
    __syncthreads();
    if (i < YB) {
        C w[YA];
#pragma unroll
        for (int j = 0; j < YA; ++j) w[j] = room[Back::slot(line, i * Back::PITCH + j)];
        transform<1, YA>(w);
#pragma unroll
        for (int j = 0; j < YA; ++j)
            if (inside) exits[at + (u64)(i + j * YB) * NX] = w[j];
    }
    change = block_reduce<Sum<real>>(change, scratch);
    if (threadIdx.x == 0) changes[(u64)n * PARTS + part] = change;
}
