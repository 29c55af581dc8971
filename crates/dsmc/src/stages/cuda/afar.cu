// The order of what comes to a tile from afar, by slots, where tiles do not look for it themselves.

#include "arrive.cu"

#if !RECORDED
#define SORTED 4096u  // numbers for which a block has room
#define OTHERS 1024u  // and those of slots of other regions among them
#define PLAIN 32u     // so many are sorted as they are

// Most come from the tile's own region, cells of surfaces before all, and each of its slots comes once at most: a bit each says which do. By the
// whole block; false, with nothing changed, where the region or the rest is too large.
__device__ __forceinline__ bool order_by_bits(const Store& st, u32 tile, u32* list, u32 n, u32* words) {
    __shared__ u32 others, before, sums[8];
    const u32 begin = st.first[tile], end = st.first[tile + 1], size = (end - begin + 31) / 32;
    if (WEIGHTED || size > SORTED - OTHERS) return false;
    u32* rest = words + SORTED - OTHERS;
    if (threadIdx.x == 0) others = before = 0;
    for (u32 k = threadIdx.x; k < size; k += blockDim.x) words[k] = 0;
    __syncthreads();
    for (u32 k = threadIdx.x; k < n; k += blockDim.x) {
        u32 slot = list[k], bit = slot - begin;
        if (bit < end - begin) {
            atomicOr(words + bit / 32, 1u << bit % 32);
        } else {
            u32 at = atomicAdd(&others, 1u);
            if (at < OTHERS) rest[at] = slot;
        }
    }
    __syncthreads();
    if (others > OTHERS) return false;
    if (others > 1) sort_block(st, rest, others);
    const u32 beyond = PARTS ? st.first[st.count] + st.counters->fresh : 0;
    for (u32 k = threadIdx.x; k < others; k += blockDim.x)
        if (is_before(st, rest[k], begin, beyond)) atomicAdd(&before, 1u);
    const u32 each = (size + blockDim.x - 1) / blockDim.x, first = threadIdx.x * each, last = least(first + each, size);
    u32 count = 0;
    for (u32 w = first; w < last; w++) count += __popc(words[w]);
    u32 scan = warp_scan(count);
    if (lane_index() == 31) sums[threadIdx.x / 32] = scan;
    __syncthreads();
    u32 at = before + scan - count;
    for (u32 w = 0; w < threadIdx.x / 32; w++) at += sums[w];
    for (u32 w = first; w < last; w++)
        for (u32 bits = words[w]; bits; bits &= bits - 1) list[at++] = begin + 32 * w + __ffs(bits) - 1;
    for (u32 k = threadIdx.x; k < others; k += blockDim.x) list[k < before ? k : n - others + k] = rest[k];
    return true;
}

// By a whole block of 256; `buffer` has room for SORTED.
__device__ __forceinline__ void order_afar(const Store& st, u32 tile, u32* list, u32 n, u32* buffer) {
    if (n < 2 || (n > PLAIN && order_by_bits(st, tile, list, n, buffer))) return;
    if (n > SORTED) {
        sort_block(st, list, n);
        return;
    }
    __syncthreads();
    for (u32 k = threadIdx.x; k < n; k += blockDim.x) buffer[k] = list[k];
    sort_block(st, buffer, n);
    for (u32 k = threadIdx.x; k < n; k += blockDim.x) list[k] = buffer[k];
}
#endif
