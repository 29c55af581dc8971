// The exchanges between the passes of dft.cu.

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
