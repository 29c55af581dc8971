// The exchanges between the passes of dft.cu, and the transform of a frame.

#include "dft.cu"

__device__ __forceinline__ float& component(C& v, bool second) { return second ? v.y : v.x; }

// Exchange 1, its own inverse: value r of lane l becomes value l of lane r.
__device__ __forceinline__ void across_lanes(C* v, const ThreadContext& thread) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int r = 0; r < 32; ++r) thread.part[r * 33 + thread.lane] = component(v[r], half);
        __syncwarp();
#pragma unroll
        for (int r = 0; r < 32; ++r) component(v[r], half) = thread.part[thread.lane * 33 + r];
        __syncwarp();
    }
}

// Exchange 2: from value r of warp w to value i << WB | w of warp r & (WARPS - 1), i = r >> WB; and back. A warp's own part is read
// or written by it alone; the barriers keep others from it meanwhile.
template <bool FORWARD> __device__ __forceinline__ void across_warps(C* v, const ThreadContext& thread) {
    if (WB == 0) return;
    float* mine = thread.part + thread.lane;
    float* column = thread.all + thread.warp * 32 + thread.lane;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if (!FORWARD || half) __syncthreads();
#pragma unroll
        for (int r = 0; r < 32; ++r)
            (FORWARD ? mine[r * 32] : column[(r & (WARPS - 1)) * PART + (r >> WB) * 32 * WARPS]) = component(v[r], half);
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 32; ++r)
            component(v[r], half) = FORWARD ? column[(r & (WARPS - 1)) * PART + (r >> WB) * 32 * WARPS] : mine[r * 32];
    }
    if (FORWARD && CL == 0) __syncthreads();  // a cluster's blocks wait for each other anyway
    else __syncwarp();
}

// One component of the values that go to the blocks of a cluster, and of those that came.
__device__ __forceinline__ void send_half(C* v, const ThreadContext& thread, bool second) {
    const unsigned base = shared_address(thread.all + thread.block * (32 / BLOCKS) * THREADS + threadIdx.x);
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b) {
        const unsigned there = remote(base, b);
#pragma unroll
        for (int m = 0; m < 32 / BLOCKS; ++m) send(there + m * THREADS * 4, component(v[m << CL | b], second));
    }
}
__device__ __forceinline__ void read_half(C* v, const ThreadContext& thread, bool second) {
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b) {
#pragma unroll
        for (int m = 0; m < 32 / BLOCKS; ++m)
            component(v[m << CL | b], second) = thread.all[(b * (32 / BLOCKS) + m) * THREADS + threadIdx.x];
    }
}

// Both components, two values at a time.
__device__ __forceinline__ void send_pairs(const C* v, const ThreadContext& thread, C* wide) {
    const unsigned base = shared_address((float4*)wide + thread.block * (16 / BLOCKS) * THREADS + threadIdx.x);
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b) {
        const unsigned there = remote(base, b);
#pragma unroll
        for (int m = 0; m < 32 / BLOCKS; m += 2) {
            const C p = v[m << CL | b], q = v[(m + 1) << CL | b];
            send(there + m * THREADS * 8, make_float4(p.x, p.y, q.x, q.y));
        }
    }
}
__device__ __forceinline__ void read_pairs(C* v, const C* wide) {
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b) {
#pragma unroll
        for (int m = 0; m < 32 / BLOCKS; m += 2) {
            const float4 g = ((const float4*)wide)[(b * (16 / BLOCKS) + m / 2) * THREADS + threadIdx.x];
            v[m << CL | b] = make_float2(g.x, g.y), v[(m + 1) << CL | b] = make_float2(g.z, g.w);
        }
    }
}

// Exchange 3: from value m << CL | b of block c to value m << CL | c of block b; its own inverse. Every block has said that it is
// `ready`. `wide`: shared memory for 32 values a thread, which nothing else uses; without it the halves go through the exchange one after the
// other.
__device__ __forceinline__ void across_blocks(C* v, const ThreadContext& thread, C* wide) {
    if (CL == 0) return;
#pragma unroll
    for (int half = 0; half < (wide ? 1 : 2); ++half) {
        if (half) cluster_ready();
        cluster_wait();
        if (wide) send_pairs(v, thread, wide);
        else send_half(v, thread, half);
        cluster_arrive();
        cluster_wait();
        if (wide) read_pairs(v, wide);
        else read_half(v, thread, half);
    }
}

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
