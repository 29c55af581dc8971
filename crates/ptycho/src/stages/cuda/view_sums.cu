// Sums over the pixels of a view, in doubles.

#include "step.cu"

__device__ __forceinline__ double across_warp(double value) {
#pragma unroll
    for (int d = WARP / 2; d > 0; d /= 2) value += __shfl_xor_sync(FULL_WARP, value, d);
    return value;
}

// Adds up what the warps of a block have; blocks of a cluster write one behind the other.
__device__ __forceinline__ void write_sums(double a, double b, double* to, double* room, const ThreadContext& thread) {
    a = across_warp(a), b = across_warp(b);
    if (thread.lane == 0) room[2 * thread.warp] = a, room[2 * thread.warp + 1] = b;
    __syncthreads();
    if (threadIdx.x < 2) {
        double sum = 0;
        for (int w = 0; w < WARPS; ++w) sum += room[2 * w + threadIdx.x];
        to[2 * thread.block + threadIdx.x] = sum;
    }
    __syncthreads();
}
