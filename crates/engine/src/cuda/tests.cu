// Kernels of the tests of engine::cuda. Any launch that covers n threads; BLOCK threads a block where sums are made.

template <class T> __global__ void scale(T* x, T a, u64 n) {
    wait_for_previous_kernel();
    u64 i = thread_index();
    if (i < n) x[i] *= a;
    let_next_kernel_start();
}

// Sums BLOCK values a block, by way of the last bytes of dynamic shared memory.
extern "C" __global__ void block_sums(const float* x, float* sums, u32 shared_bytes) {
    extern __shared__ float room[];
    __shared__ float scratch[BLOCK / WARP];
    float* last = room + shared_bytes / sizeof(float) - BLOCK;
    last[threadIdx.x] = x[thread_index()];
    __syncthreads();
    float sum = block_reduce<Sum<float>>(last[BLOCK - 1 - threadIdx.x], scratch);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void philox_words(uint4* words, u32 purpose, u64 seed, u64 step, u64 first, u64 n) {
    u64 i = thread_index();
    if (i < n) words[i] = philox_draw(purpose, seed, step, first + i);
}

// In every round each block adds one, meets the others and must see all of them.
extern "C" __global__ void meet(u32* tickets, u32* counts, u32* wrong, u32 rounds) {
    for (u32 round = 0; round < rounds; ++round) {
        if (threadIdx.x == 0) atomicAdd(counts + round, 1);
        grid_barrier(tickets);
        if (threadIdx.x == 0 && ((volatile u32*)counts)[round] != gridDim.x) atomicAdd(wrong, 1);
    }
}

extern "C" __global__ void flag(u32* host) {
    *host += 1;
    __threadfence_system();
}
