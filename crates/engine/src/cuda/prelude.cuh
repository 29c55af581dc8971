// Stands before every program: types, reductions over a warp and a block, barriers, Philox. No include is needed.
#pragma once

typedef signed char i8;
typedef unsigned char u8;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

// Offset of a field of a type as a constant. NVRTC has no `offsetof`, and not all of its versions have GCC's builtin.
#ifdef __CUDACC__
#define ZL_OFFSET(field, ...) __INTADDR__(&((__VA_ARGS__*)0)->field)
#else
#define ZL_OFFSET(field, ...) __builtin_offsetof(__VA_ARGS__, field)
#endif

#define WARP 32
#define FULL_WARP 0xffffffffu

// Thread index over a grid of one dimension; 64 bits, since fields have more than 2^32 values.
__device__ __forceinline__ u64 thread_index() { return u64(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ __forceinline__ u64 thread_count() { return u64(gridDim.x) * blockDim.x; }
__device__ __forceinline__ u32 lane_index() { return threadIdx.x & (WARP - 1); }

template <class T> __device__ __forceinline__ T least(T a, T b) { return b < a ? b : a; }
template <class T> __device__ __forceinline__ T greatest(T a, T b) { return a < b ? b : a; }

// Operations of a reduction: what joins two values, and what changes nothing. Minimum and maximum keep a NaN, so that
// a broken value cannot hide: `!(a < b)` is true when either is NaN, and a + b then is NaN.
template <class T> struct Limits;
template <> struct Limits<float> {
    static __device__ float low() { return -__int_as_float(0x7f800000); }
    static __device__ float high() { return __int_as_float(0x7f800000); }
};
template <> struct Limits<double> {
    static __device__ double low() { return -__longlong_as_double(0x7ff0000000000000ll); }
    static __device__ double high() { return __longlong_as_double(0x7ff0000000000000ll); }
};
template <> struct Limits<u32> {
    static __device__ u32 low() { return 0; }
    static __device__ u32 high() { return 0xffffffffu; }
};
template <> struct Limits<u64> {
    static __device__ u64 low() { return 0; }
    static __device__ u64 high() { return 0xffffffffffffffffull; }
};
template <class T> struct Sum {
    static __device__ T zero() { return T(0); }
    static __device__ T join(T a, T b) { return a + b; }
};
template <class T> struct Min {
    static __device__ T zero() { return Limits<T>::high(); }
    static __device__ T join(T a, T b) { return a != a || a < b ? a : b; }
};
template <class T> struct Max {
    static __device__ T zero() { return Limits<T>::low(); }
    static __device__ T join(T a, T b) { return a != a || a > b ? a : b; }
};

// The value of all lanes joined, in lane 0; a fixed tree, so the same sum every time.
template <class Op, class T> __device__ __forceinline__ T warp_reduce(T value) {
#pragma unroll
    for (int d = WARP / 2; d > 0; d /= 2) value = Op::join(value, __shfl_down_sync(FULL_WARP, value, d));
    return value;
}

// The value of all threads of a block of one dimension joined, in thread 0. `scratch`: shared, one value a warp.
// Every thread must come here, and blockDim.x is a multiple of 32.
template <class Op, class T> __device__ __forceinline__ T block_reduce(T value, T* scratch) {
    value = warp_reduce<Op>(value);
    __syncthreads();
    if (lane_index() == 0) scratch[threadIdx.x / WARP] = value;
    __syncthreads();
    if (threadIdx.x < WARP) {
        value = threadIdx.x < blockDim.x / WARP ? scratch[threadIdx.x] : Op::zero();
        value = warp_reduce<Op>(value);
    }
    return value;
}

// Inclusive sum over the lanes of a warp.
template <class T> __device__ __forceinline__ T warp_scan(T value) {
#pragma unroll
    for (int d = 1; d < WARP; d *= 2) {
        T below = __shfl_up_sync(FULL_WARP, value, d);
        if (lane_index() >= d) value += below;
    }
    return value;
}

// All blocks of a cooperative launch wait for each other. `state`: one u32 of global memory, 0 before the first use and
// never reset. The arrivals of a round add up to 2^31: its top bit turns over once all are there, its low bits are 0 again.
__device__ __forceinline__ void grid_barrier(u32* state) {
    const u32 top = 0x80000000u;
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
        u32 others = gridDim.x * gridDim.y * gridDim.z - 1;
        bool first = blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0;
        __threadfence();
        u32 before = atomicAdd(state, first ? top - others : 1u);
        volatile u32* now = state;
        while (((*now ^ before) & top) == 0) {}
        __threadfence();
    }
    __syncthreads();
}

// With `Launch::early`: waits for the kernel ahead, and lets the kernel behind start. Nothing on older devices.
__device__ __forceinline__ void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Philox4x32-10: see rng.rs, whose numbers these are.
__device__ __forceinline__ uint4 philox(uint4 c, uint2 k) {
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        u32 a_high = __umulhi(0xD2511F53u, c.x), a_low = 0xD2511F53u * c.x;
        u32 b_high = __umulhi(0xCD9E8D57u, c.z), b_low = 0xCD9E8D57u * c.z;
        c = make_uint4(b_high ^ c.y ^ k.x, b_low, a_high ^ c.w ^ k.y, a_low);
        k.x += 0x9E3779B9u;
        k.y += 0xBB67AE85u;
    }
    return c;
}

__device__ __forceinline__ uint4 philox_draw(u32 purpose, u64 seed, u64 step, u64 index) {
    u32 high = (u32(step >> 32) & 0xffffu) | (purpose << 16);
    return philox(make_uint4(u32(index), u32(index >> 32), u32(step), high), make_uint2(u32(seed), u32(seed >> 32)));
}

__device__ __forceinline__ float uniform_f32(u32 word) { return float(word >> 8) * (1.0f / 16777216.0f); }
__device__ __forceinline__ float open_f32(u32 word) { return (float(word >> 9) + 0.5f) * (1.0f / 8388608.0f); }
__device__ __forceinline__ double uniform_f64(u32 high, u32 low) {
    return double(((u64(high) << 32) | low) >> 11) * (1.0 / 9007199254740992.0);
}
__device__ __forceinline__ double open_f64(u32 high, u32 low) {
    return (double(((u64(high) << 32) | low) >> 12) + 0.5) * (1.0 / 4503599627370496.0);
}
