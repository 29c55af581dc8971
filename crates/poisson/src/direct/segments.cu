// A system's place, its multipliers in closed form, and what goes from segment to segment of its rows.

#include "split.cu"
#include "modes.cuh"

// A system: its first value, and the distance from row pair to row pair.
struct Line {
    Z* first;
    u64 plane;
    unsigned outer, mode;
};

__device__ Line line_at(const Modes& modes, unsigned place) {
    unsigned k = 0;
    while (k + 1 < modes.count && place >= modes.at[k + 1] * modes.outer) ++k;
    unsigned width = modes.at[k + 1] - modes.at[k], own = place - modes.at[k] * modes.outer;
    return {modes.part[k] + own, (u64)width * modes.outer, own / width, modes.at[k] + own % width};
}

__device__ real& row_of(const Line& line, unsigned row) { return ((real*)(line.first + (row >> 1) * line.plane))[row & 1]; }

// v > 0: the multiplier itself; v <= 0: the multiplier less 1, where that keeps more digits.
__device__ real times(real v, real s) { return v > 0 ? v * s : fma(v, s, s); }

// 1 - m of the row before r0 (line.rs: d), in closed form.
__device__ double before(unsigned r0, double theta) {
    double step = -expm1(-theta);
    if (LO_NEUMANN) return step * -expm1(-(2.0 * r0 - 1.0) * theta) / (1.0 + exp(-2.0 * r0 * theta));
    if (theta == 0.0) return 1.0 / (r0 + 1.0);
    return step * (1.0 + exp(-(2.0 * r0 + 1.0) * theta)) / -expm1(-2.0 * (r0 + 1.0) * theta);
}

// Maps x -> a x + b of the segments composed along them: each thread gets what the segments ahead of it make of 0.
// Within a warp by shuffles, from warp to warp through shared memory.
__device__ real carried(real a, real b, bool backward, real* as, real* bs) {
    const unsigned warps = MODES * SEGMENTS / 32, c = threadIdx.x % MODES, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned rank = backward ? 31 - lane : lane;
#pragma unroll
    for (unsigned reach = MODES; reach < 32; reach *= 2) {
        real ahead_a = backward ? __shfl_down_sync(FULL_WARP, a, reach) : __shfl_up_sync(FULL_WARP, a, reach);
        real ahead_b = backward ? __shfl_down_sync(FULL_WARP, b, reach) : __shfl_up_sync(FULL_WARP, b, reach);
        if (rank >= reach) {
            b = fma(a, ahead_b, b);
            a = a * ahead_a;
        }
    }
    if (rank >= 32 - MODES) {
        as[warp * MODES + c] = a;
        bs[warp * MODES + c] = b;
    }
    __syncthreads();
    real carry = 0;
    if (!backward) {
        for (unsigned w = 0; w < warp; ++w) carry = fma(as[w * MODES + c], carry, bs[w * MODES + c]);
    } else {
        for (unsigned w = warps; w-- > warp + 1;) carry = fma(as[w * MODES + c], carry, bs[w * MODES + c]);
    }
    __syncthreads();
    real ahead_a = backward ? __shfl_down_sync(FULL_WARP, a, MODES % 32) : __shfl_up_sync(FULL_WARP, a, MODES % 32);
    real ahead_b = backward ? __shfl_down_sync(FULL_WARP, b, MODES % 32) : __shfl_up_sync(FULL_WARP, b, MODES % 32);
    return rank >= MODES ? fma(ahead_a, carry, ahead_b) : carry;
}
