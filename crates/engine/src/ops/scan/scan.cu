// Running sums in three launches over tiles of THREADS * ITEMS values: tile_sums, scan_sums (one block), scan_tiles.
// Bytes per value: sizeof(T) read twice and written once. Launch: one block of THREADS a tile.

constexpr u32 TILE = THREADS * ITEMS;

// Values lie in the tile as item j of thread t at t * ITEMS + j; they come and go through shared memory, so that
// neighbouring threads touch neighbouring words of global memory.
template <class T> __device__ __forceinline__ void load_tile(const T* x, u64 n, u64 start, T* room, T (&value)[ITEMS]) {
    for (u32 j = 0; j < ITEMS; ++j) {
        u32 k = j * THREADS + threadIdx.x;
        room[k] = start + k < n ? x[start + k] : T(0);
    }
    __syncthreads();
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) value[j] = room[threadIdx.x * ITEMS + j];
    __syncthreads();
}

// Exclusive sum over the threads of the block; `total` gets the sum of all in every thread.
template <class T> __device__ __forceinline__ T block_scan(T mine, T* warps, T& total) {
    T sum = warp_scan(mine);
    if (lane_index() == WARP - 1) warps[threadIdx.x / WARP] = sum;
    __syncthreads();
    T before = T(0);
    total = T(0);
#pragma unroll
    for (u32 w = 0; w < THREADS / WARP; ++w) {
        if (w < threadIdx.x / WARP) before += warps[w];
        total += warps[w];
    }
    __syncthreads();
    return before + sum - mine;
}

template <class T> __global__ void __launch_bounds__(THREADS) tile_sums(const T* x, u64 n, T* sums) {
    __shared__ T scratch[THREADS / WARP];
    u64 start = u64(blockIdx.x) * TILE;
    T sum = T(0);
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) {
        u64 i = start + j * THREADS + threadIdx.x;
        if (i < n) sum += x[i];
    }
    sum = block_reduce<Sum<T>>(sum, scratch);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// One block walks over the tiles' sums, TILE at a time, and leaves the total behind them.
template <class T> __global__ void __launch_bounds__(THREADS) scan_sums(T* sums, u32 tiles) {
    __shared__ T room[TILE];
    __shared__ T warps[THREADS / WARP];
    T carry = T(0);
    for (u64 start = 0; start < tiles; start += TILE) {
        T value[ITEMS], sum = T(0), total;
        load_tile(sums, u64(tiles), start, room, value);
#pragma unroll
        for (u32 j = 0; j < ITEMS; ++j) sum += value[j];
        T running = carry + block_scan(sum, warps, total);
        carry += total;
#pragma unroll
        for (u32 j = 0; j < ITEMS; ++j) {
            u64 i = start + threadIdx.x * ITEMS + j;
            if (i < tiles) sums[i] = running;
            running += value[j];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[tiles] = carry;
}

// `x` and `out` may be the same. With `behind`, the total goes to out[n].
template <class T> __global__ void __launch_bounds__(THREADS)
    scan_tiles(const T* x, T* out, u64 n, const T* sums, u32 inclusive, u32 behind) {
    __shared__ T room[TILE];
    __shared__ T warps[THREADS / WARP];
    u64 start = u64(blockIdx.x) * TILE;
    T value[ITEMS], sum = T(0), total;
    load_tile(x, n, start, room, value);
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) sum += value[j];
    T running = sums[blockIdx.x] + block_scan(sum, warps, total);
#pragma unroll
    for (u32 j = 0; j < ITEMS; ++j) {
        T next = running + value[j];
        room[threadIdx.x * ITEMS + j] = inclusive ? next : running;
        running = next;
    }
    __syncthreads();
    for (u32 j = 0; j < ITEMS; ++j) {
        u32 k = j * THREADS + threadIdx.x;
        if (start + k < n) out[start + k] = room[k];
    }
    if (behind && blockIdx.x == 0 && threadIdx.x == 0) out[n] = sums[gridDim.x];
}
