// Histogram of u32 keys into bins + 1 counts (the last one for keys >= bins); with weights, their sums.
// Bytes a key: 4, with weights 8. Launch: any number of blocks of any size; `in_shared` with (bins + 1) counts of
// dynamic shared memory: u32 each, or u64 with weights.

template <bool WEIGHTED> struct Count {
    typedef u32 type;
};
template <> struct Count<true> {
    typedef u64 type;
};

template <bool WEIGHTED> __global__ void in_shared(const u32* keys, const u32* weights, u64 n, u32 bins, u64* counts) {
    extern __shared__ u64 room[];
    typedef typename Count<WEIGHTED>::type T;
    T* mine = reinterpret_cast<T*>(room);
    for (u32 b = threadIdx.x; b <= bins; b += blockDim.x) mine[b] = T(0);
    __syncthreads();
    // A block sees fewer than 2^32 keys: the launch has a block for each 2^20 of them at least.
    for (u64 i = thread_index(); i < n; i += thread_count())
        atomicAdd(mine + least(keys[i], bins), WEIGHTED ? T(weights[i]) : T(1));
    __syncthreads();
    for (u32 b = threadIdx.x; b <= bins; b += blockDim.x)
        if (mine[b] != T(0)) atomicAdd(counts + b, u64(mine[b]));
}

template <bool WEIGHTED> __global__ void in_global(const u32* keys, const u32* weights, u64 n, u32 bins, u64* counts) {
    for (u64 i = thread_index(); i < n; i += thread_count())
        atomicAdd(counts + least(keys[i], bins), WEIGHTED ? u64(weights[i]) : 1ull);
}
