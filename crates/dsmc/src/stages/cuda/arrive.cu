// Slots of `now` that hold the arrivals of a tile: those from neighbours by way and in the order of their lists, then those from afar in the
// order of their slots. Of small gases (RECORDED) the pass over a tile looks for them itself; of others `deliver` has done so (exchange.cu).

#include "common.cu"

// Rounds of a warp over a neighbour's lists whose entries are asked for at once.
#define AHEAD 4

// Place among a region's slots of entry k of its lists, one behind the other. By a whole warp, of which lane w has the end of list w.
__device__ __forceinline__ u32 place_in_list(u32 ends, u32 part, u32 k) {
    u32 w = 0, before = 0;
#pragma unroll
    for (u32 half = LISTS / 2; half > 0; half /= 2) {
        u32 end = __shfl_sync(FULL_WARP, ends, w + half - 1);
        if (k >= end) w += half, before = end;
    }
    return w * part + k - before;
}

// Numbers of the lists of neighbours, of a warp: lane w has the neighbour from which particles come by way w and how many, and the length
// of list w of the neighbour of the warp's way.
struct Lists {
    u32 origin, coming, begin, end, length;
    __device__ __forceinline__ Lists(const Store& st, u32 tile) {
        u32 lane = lane_index();
        origin = lane < 9 && lane != 4 ? neighbour(st, tile, lane, -1) : NONE;
        coming = origin != NONE ? st.old_near[origin * 9 + lane] : 0;
        look(st, threadIdx.x / 32);
    }
    __device__ __forceinline__ void look(const Store& st, u32 turn) {
        u32 lane = lane_index(), from = __shfl_sync(FULL_WARP, origin, way_of(turn)), known = from != NONE;
        begin = known ? st.first[from] : 0;
        end = known ? st.first[from + 1] : 0;
        length = known && lane < LISTS ? st.old_left[from * LISTS + lane] : 0;
    }
    static __device__ __forceinline__ u32 way_of(u32 turn) { return turn < 4 ? turn : turn + 1; }
};

// By the whole block, a warp a way. `base` is the region's begin.
__device__ __forceinline__ void from_neighbours(const Store& st, Lists lists, u32 base) {
    // Each warp counts what comes before its own: lane w by way w.
    u32 lane = lane_index(), before = base + warp_scan(lists.coming) - lists.coming;
    for (u32 turn = threadIdx.x / 32; turn < 8; turn += blockDim.x / 32) {
        u32 way = Lists::way_of(turn), at = __shfl_sync(FULL_WARP, before, way), begin = lists.begin,
            part = list_part(lists.end - begin), ends = lists.length;
        if (turn + blockDim.x / 32 < 8) lists.look(st, turn + blockDim.x / 32);
        u32 coming = __shfl_sync(FULL_WARP, lists.coming, way);
        if (coming == 0) continue;
        // Lane w has the end of list w where they stand one behind the other.
        ends = warp_scan(ends);
        u32 all_of_them = __shfl_sync(FULL_WARP, ends, 31);
#if PARTS
        u32 from = __shfl_sync(FULL_WARP, lists.origin, way);
        int2 origin = tile_coordinates(st, from);
        if (!owns(st, origin.x, origin.y)) {
            // They came in this order.
            u32 first = st.link_first[from * 9 + way];
            for (u32 k = lane; k < coming; k += 32) arrivals(st)[at + k] = first + k;
            continue;
        }
#endif
        for (u32 k0 = lane; k0 - lane < all_of_them; k0 += 32 * AHEAD) {
            u32 entries[AHEAD];
#pragma unroll
            for (u32 r = 0; r < AHEAD; r++) {
                u32 k = k0 + 32 * r;
                entries[r] = NONE;
                if (k - lane >= all_of_them) continue;
                u32 place = place_in_list(ends, part, k);
                if (k < all_of_them) entries[r] = __ldcg(st.old_list + begin + place);
            }
#pragma unroll
            for (u32 r = 0; r < AHEAD; r++) {
                if (k0 - lane + 32 * r >= all_of_them) continue;
                bool mine = entries[r] >> 28 == way;
                u32 all = __ballot_sync(FULL_WARP, mine);
                if (mine) arrivals(st)[at + __popc(all & ((1u << lane) - 1))] = begin + (entries[r] & INDEX);
                at += __popc(all);
            }
        }
    }
}

#if PARTS
// Order of particles that come from afar as one part has it, by their slots there. `beyond` is the first slot of those of other parts: where
// they would lie among the slots of this part, and their order there, lie in columns not in use (receive.cu).
__device__ __forceinline__ u32* places(const Columns& unused) { return reinterpret_cast<u32*>(unused.vy); }
__device__ __forceinline__ u64 rank_of(const Columns& unused, u32 slot) {
    return u64(reinterpret_cast<u32*>(unused.x)[slot]) << 32 | reinterpret_cast<u32*>(unused.y)[slot];
}
__device__ __forceinline__ bool is_before(const Store& st, u32 a, u32 b, u32 beyond) {
    if (a < beyond && b < beyond) return a < b;
    u32 pa = a < beyond ? a : places(st.next)[a], pb = b < beyond ? b : places(st.next)[b];
    if (a < beyond) return pa < pb;
    if (b < beyond) return pa <= pb;
    return pa != pb ? pa < pb : rank_of(st.next, a) < rank_of(st.next, b);
}
#else
__device__ __forceinline__ bool is_before(const Store&, u32 a, u32 b, u32) { return a < b; }
#endif

// Ascending, whole block: compares only ever put the smaller one first, so that a length between powers of two needs no padding.
__device__ __forceinline__ void sort_block(const Store& st, u32* x, u32 n) {
    const u32 beyond = PARTS ? st.first[st.count] + st.counters->fresh : 0;
    u32 whole = 1;
    while (whole < n) whole *= 2;
    for (u32 size = 2; size <= whole; size *= 2)
        for (u32 apart = size / 2; apart > 0; apart /= 2) {
            __syncthreads();
            for (u32 k = threadIdx.x; k < whole / 2; k += blockDim.x) {
                u32 low = k / apart * 2 * apart + k % apart;
                u32 high = apart == size / 2 ? low ^ (size - 1) : low + apart;
                if (high < n && is_before(st, x[high], x[low], beyond)) {
                    u32 t = x[low];
                    x[low] = x[high];
                    x[high] = t;
                }
            }
        }
    __syncthreads();
}

#if RECORDED
// A tile's arrivals from afar hang on chains, one for each thread of its block: a chain is one more than a slot, 0 at its end, and `link` of the slot
// goes on. In any order, since they are sorted. Of cells of weights the second half of `link` says how often each comes.
__device__ __forceinline__ void hang(const Store& st, u32 tile, u32 slot, u32 copies) {
    if (WEIGHTED) st.link[st.capacity + slot] = copies;
    st.link[slot] = atomicExch(st.chains + tile * THREADS + slot % THREADS, slot + 1);
}

// Takes them down, a thread the chain that begins with `next`, into `list` (`buffer` has as much or is not used) and in order.
__device__ __forceinline__ void from_afar(const Store& st, u32 tile, u32 next, u32* list, u32 n, u32* buffer, bool fits) {
    __shared__ u32 taken;
    u32* to = fits ? buffer : list;
    if (threadIdx.x == 0) taken = 0;
    if (next) st.chains[tile * THREADS + threadIdx.x] = 0;
    __syncthreads();
    while (next) {
        u32 slot = next - 1, times = WEIGHTED ? st.link[st.capacity + slot] : 1, at = atomicAdd(&taken, times);
        next = st.link[slot];
        for (u32 k = 0; k < times; k++) to[at + k] = slot;
    }
    __syncthreads();
    if (n > 1) sort_block(st, to, n);
    if (fits)
        for (u32 k = threadIdx.x; k < n; k += THREADS) list[k] = buffer[k];
}
#endif
