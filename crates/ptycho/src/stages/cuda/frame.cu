// The transform of a frame: the passes of dft.cu and the factors between them.

#include "exchanges.cu"

// Factors between pass 1 and pass 2: exp(SIGN 2 pi i (lane kx / NX + s ky / NY)).
template <int SIGN> __device__ __forceinline__ void twiddle(C* v, const ThreadContext& thread) {
    C along = SIGN < 0 ? thread.along : conj(thread.along), t = along;
#pragma unroll
    for (int x = 1; x < (1 << XR); ++x) {
#pragma unroll
        for (int y = 0; y < (1 << YR); ++y) v[y << XR | x] = v[y << XR | x] * t;
        t = t * along;
    }
#pragma unroll
    for (int y = 1; y < (1 << YR); ++y) {
        C u = thread.table[y];
        if (SIGN > 0) u = conj(u);
#pragma unroll
        for (int x = 0; x < (1 << XR); ++x) v[y << XR | x] = v[y << XR | x] * u;
    }
}

// Factors between pass 3 and pass 4: exp(SIGN 2 pi i block kw / SLOW).
template <int SIGN> __device__ __forceinline__ void twiddle_blocks(C* v, const ThreadContext& thread) {
    if constexpr (CL > 0) {
#pragma unroll
        for (int k = 1; k < WARPS; ++k) {
            C u = thread.slow[k];
            if (SIGN > 0) u = conj(u);
#pragma unroll
            for (int i = 0; i < 32 / WARPS; ++i) v[i << WB | k] = v[i << WB | k] * u;
        }
    }
}

template <int SIGN> __device__ __forceinline__ void pass_one(C* v) {
    if (SIGN < 0) {
#pragma unroll
        for (int y = 0; y < (1 << YR); ++y) dft<SIGN, 1 << XR, 1>(v + (y << XR));
    }
#pragma unroll
    for (int x = 0; x < (1 << XR); ++x) dft<SIGN, 1 << YR, 1 << XR>(v + x);
    if (SIGN > 0) {
#pragma unroll
        for (int y = 0; y < (1 << YR); ++y) dft<SIGN, 1 << XR, 1>(v + (y << XR));
    }
}
template <int SIGN> __device__ __forceinline__ void pass_three(C* v) {
#pragma unroll
    for (int i = 0; i < 32 / WARPS; ++i) dft<SIGN, WARPS, 1>(v + i * WARPS);
}
template <int SIGN> __device__ __forceinline__ void pass_four(C* v) {
#pragma unroll
    for (int m = 0; m < 32 / BLOCKS; ++m) dft<SIGN, BLOCKS, 1>(v + m * BLOCKS);
}

__device__ __forceinline__ void forward(C* v, const ThreadContext& thread, C* wide) {
    if (CL > 0 && wide) cluster_ready();
    pass_one<-1>(v);
    twiddle<-1>(v, thread);
    across_lanes(v, thread);
    dft<-1, 32, 1>(v);
    across_warps<true>(v, thread);
    if (CL > 0 && !wide) cluster_ready();
    pass_three<-1>(v);
    twiddle_blocks<-1>(v, thread);
    across_blocks(v, thread, wide);
    if (CL > 0 && !wide) __syncthreads();
    pass_four<-1>(v);
}

__device__ __forceinline__ void inverse(C* v, const ThreadContext& thread, C* wide) {
    if (CL > 0) cluster_ready();
    pass_four<1>(v);
    across_blocks(v, thread, wide);
    twiddle_blocks<1>(v, thread);
    pass_three<1>(v);
    across_warps<false>(v, thread);
    dft<1, 32, 1>(v);
    across_lanes(v, thread);
    twiddle<1>(v, thread);
    pass_one<1>(v);
}

// Before the transform, along y; x is (r & (2^XR - 1)) * 32 + lane. Where values lie after it: `order` of program.rs.
__device__ __forceinline__ int row_of(const ThreadContext& thread, int r) {
    return (r >> XR) * SLOW + (thread.warp << CL | thread.block);
}

// Fresnel's kernel (its conjugate for SIGN < 0) on values in the order of the transform.
template <int SIGN> __device__ __forceinline__ void apply_transfer(C* v, const C* near, const ThreadContext& thread) {
#pragma unroll
    for (int r = 0; r < 32; r += 2) {
        float4 k = __ldg((const float4*)near + (thread.block * 16 + (r >> 1)) * THREADS + threadIdx.x);
        v[r] = v[r] * make_float2(k.x, SIGN * k.y), v[r + 1] = v[r + 1] * make_float2(k.z, SIGN * k.w);
    }
}

// To the detector and back, SCALE short of unitary. In the near field both ways begin and end in real space, and a thread's values lie
// at the detector where they lie in the sample; what other warps have put into the exchange by then is waited for.
#define SCALE (NEAR ? 1.0f / (float(NX) * float(NY)) : rsqrtf(float(NX) * float(NY)))
__device__ __forceinline__ void propagate(C* v, const C* near, const ThreadContext& thread, C* wide) {
    forward(v, thread, wide);
    if constexpr (NEAR) {
        apply_transfer<1>(v, near, thread);
        inverse(v, thread, wide);
        __syncthreads();
    }
}
__device__ __forceinline__ void propagate_back(C* v, const C* near, const ThreadContext& thread, C* wide) {
    if constexpr (NEAR) {
        __syncthreads();
        forward(v, thread, wide);
        apply_transfer<-1>(v, near, thread);
    }
    inverse(v, thread, wide);
}
