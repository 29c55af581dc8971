// The order in which blocks take tiles. Those with more particles than fit into shared memory come first, the fullest before the others, so
// that nobody waits for them at the end: as many as there is room for, then all tiles as they lie. Not of small gases, whose tiles are all
// worked on at once.

#include "common.cu"

// `turns` has room for as many tiles in each class, and behind them how many of each there are.
#define ROOM (TURNS / CLASSES)
__device__ __forceinline__ u32 class_of(u32 n, u32 full) { return n > 8 * full ? 0 : n > 4 * full ? 1 : n > 2 * full ? 2 : 3; }

// By the whole grid, a thread a tile.
__device__ __forceinline__ void list_full_tiles(const Store& st) {
    for (u64 tile = thread_index(); tile < st.count; tile += thread_count()) {
        u32 n = st.next_first[tile + 1] - st.next_first[tile];
        if (n <= st.full) continue;
        u32 which = class_of(n, st.full), at = atomicAdd(st.turns + TURNS + which, 1u);
        if (at < ROOM) st.turns[which * ROOM + at] = u32(tile);
    }
}

// The tile of a block; NONE where the list is shorter.
__device__ __forceinline__ u32 tile_in_turn(const Store& st) {
    u32 k = blockIdx.x;
    if (k >= TURNS) return own_tile(st, k - TURNS);
    return k % ROOM < st.turns[TURNS + k / ROOM] ? st.turns[k] : NONE;
}

// True for a tile with n particles in its own place which the list has too. By the whole block.
__device__ __forceinline__ bool was_first(const Store& st, u32 tile, u32 n) {
    if (blockIdx.x < TURNS || n <= st.full) return false;
    bool listed = false;
    for (u32 k = threadIdx.x; k < TURNS; k += blockDim.x)
        listed = listed || (k % ROOM < st.turns[TURNS + k / ROOM] && st.turns[k] == tile);
    return __syncthreads_or(listed);
}
