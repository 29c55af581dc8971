// Ramps in Fourier space that shift a frame in registers by parts of a pixel.

#include "step.cu"

// Values of the ramps of a view, in shared memory before that of the frame. Must agree with program.rs.
#define RAMPS (NX + NY)

// exp(-2 pi i k d / n) along x, then along y: a ramp is their product.
__device__ __forceinline__ void put_ramps(C* ramps, float2 by) {
    for (u32 i = threadIdx.x; i < RAMPS; i += THREADS) {
        const float turns = i < NX ? frequency_of(i, NX) * by.y / NX : frequency_of(i - NX, NY) * by.x / NY;
        sincospif(-2 * turns, &ramps[i].y, &ramps[i].x);
    }
}

// At value `r` of a thread in the order of the transform: `order_in` of program.rs.
__device__ __forceinline__ C ramp_at(const C* ramps, int r, const ThreadContext& thread) {
    const int q = r >> CL << CL | thread.block, above = r & (BLOCKS - 1);
    const int kx = (thread.lane & ((1 << XR) - 1)) + ((thread.warp + (q >> WB << WB)) << XR);
    const int ky = (thread.lane >> XR) + (((q & (WARPS - 1)) + (above << WB)) << YR);
    return ramps[kx] * ramps[NX + ky];
}

// The probe as a view shifted by `by` sees it, from its transform `spectrum`. All threads come here, the exchange may be in use by others before.
__device__ __forceinline__ void shifted_probe(C* v, const C* spectrum, float2 by, C* ramps, const ThreadContext& thread, C* wide) {
    put_ramps(ramps, by);
    take_pairs(v, spectrum + thread.block * (32 * THREADS));
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 32; ++r) v[r] = v[r] * (ramp_at(ramps, r, thread) * (1.0f / (NX * NY)));
    inverse(v, thread, wide);
}
