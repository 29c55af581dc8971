// (sigma g)max of the cells, which attempts bring up to date.

#include "gas.cu"

#define EVIDENCE 2000.0f
#define FALL 0.9f
#define MARGIN 1.05f

// Asks for what is kept of the cells of a tile, of which one pair after the other is looked at later.
__device__ __forceinline__ void ask_for_majorants(const Gas& gas, u32 tile) {
    if (SCHEME == 0 || threadIdx.x % TEAM > 0) return;
    auto ask_for = [](const float* number) { asm volatile("prefetch.global.L2 [%0];" ::"l"(number)); };
    for (u32 slot = threadIdx.x / TEAM; slot < CELLS; slot += THREADS / TEAM) {
        u64 at = u64(tile) * CELLS + slot;
        ask_for(gas.rate + at);
        for (u32 p = 0; p < PAIRS; p++) {
            ask_for(gas.sigma_g_max + p * gas.stride + at);
            ask_for(gas.seen + p * gas.stride + at);
            ask_for(gas.attempts + p * gas.stride + at);
        }
    }
}

// The largest of what the threads of a cell have seen.
__device__ __forceinline__ float largest_seen(u32 slot, u32 lane, float seen) {
#if TEAMS
    // Positive numbers are ordered as their words are.
    __shared__ u32 most[CELLS];
    if (lane == 0) most[slot] = 0;
    __syncthreads();
    seen = warp_reduce<Max<float>>(seen);
    if (lane_index() == 0) atomicMax(most + slot, __float_as_uint(seen));
    __syncthreads();
    seen = __uint_as_float(most[slot]);
#endif
#pragma unroll
    for (u32 k = TEAMS ? 0 : LANES / 2; k > 0; k /= 2) seen = fmaxf(seen, __shfl_xor_sync(FULL_WARP, seen, k));
    return seen;
}

// Raises (sigma g)max of a pair and cell to what has been seen, or lowers it where enough attempts have seen less.
__device__ __forceinline__ void adapt(const Gas& gas, u64 kept, float sigma_g_max, u32 attempts, float seen) {
    float count = gas.attempts[kept] + float(attempts);
    seen = fmaxf(seen, gas.seen[kept]);
    if (seen > sigma_g_max) {
        gas.sigma_g_max[kept] = seen;
    } else if (count >= EVIDENCE) {
        gas.sigma_g_max[kept] = fminf(fmaxf(sigma_g_max * FALL, seen * MARGIN), sigma_g_max);
        seen = count = 0.0f;
    }
    gas.seen[kept] = seen;
    gas.attempts[kept] = count;
}
