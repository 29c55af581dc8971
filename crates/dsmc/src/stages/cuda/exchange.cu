// The exchange between tiles: how many each will have (layout), which slots they come from (place, deliver). Cost: four bytes a
// leaver, some reads a tile. What comes by a way comes in the order of the lists, what comes from afar in the order of its slots.

#include "afar.cu"
#include "gather.cu"
#include "sides.cu"
#include "turns.cu"

// Four numbers of a list, 0 behind its end.
__device__ __forceinline__ uint4 four(const u32* list, u32 at, u32 end) {
    if (at + 4 <= end) return *reinterpret_cast<const uint4*>(list + at);
    return {at < end ? list[at] : 0, at + 1 < end ? list[at + 1] : 0, at + 2 < end ? list[at + 2] : 0, 0};
}
__device__ __forceinline__ void put_four(u32* list, u32 at, u32 end, uint4 v) {
    if (at + 4 <= end) {
        *reinterpret_cast<uint4*>(list + at) = v;
        return;
    }
    if (at < end) list[at] = v.x;
    if (at + 1 < end) list[at + 1] = v.y;
    if (at + 2 < end) list[at + 2] = v.z;
}

// One block of 1024: the regions of the next columns. Of small gases it counts the step from `before` to `clock`, and a second block
// finds meanwhile how many are injected, where that does not depend on the gas.
extern "C" __global__ void __launch_bounds__(1024) layout(const __grid_constant__ Store st, const __grid_constant__ Domain d,
                                                          const __grid_constant__ Inflow in, const u64* before, u64* clock) {
    __shared__ u32 sums[32], carry;
    in_turn();
    if (halted(st)) return;
    if (blockIdx.x > 0) {
        tally(d, st, in, *before + 1);
        return;
    }
    if (!RECORDED && threadIdx.x < CLASSES) st.turns[TURNS + threadIdx.x] = 0;
    if (threadIdx.x == 0) {
        carry = 0;
        if (RECORDED) st.counters->special = 0;
        if (clock) *clock = *before + 1;
    }
    __syncthreads();
    for (u32 from = 0; from < st.count; from += 4 * 1024) {
        u32 tile = from + threadIdx.x * 4;
        const uint4 none{}, near = four(st.near_in, tile, st.count), far = four(st.far_in, tile, st.count),
                            stay = four(st.stay, tile, st.count);
        uint4 n{stay.x + near.x + far.x, stay.y + near.y + far.y, stay.z + near.z + far.z, stay.w + near.w + far.w};
        put_four(st.near_n, tile, st.count, near);
        put_four(st.far_n, tile, st.count, far);
        put_four(st.near_in, tile, st.count, none);
        put_four(st.far_in, tile, st.count, none);
        put_four(st.filled, tile, st.count, none);
        u32 most = greatest(greatest(n.x, n.y), greatest(n.z, n.w)), sum = n.x + n.y + n.z + n.w;
        if (most > INDEX) atomicMax(&st.counters->fullest, most);
        u32 scan = warp_scan(sum), warp = threadIdx.x / 32;
        if (lane_index() == 31) sums[warp] = scan;
        __syncthreads();
        if (warp == 0) sums[lane_index()] = warp_scan(sums[lane_index()]);
        __syncthreads();
        u32 at = carry + (warp ? sums[warp - 1] : 0) + scan - sum;
        __syncthreads();
        if (threadIdx.x == 0) carry += sums[31];
        put_four(st.next_first, tile, st.count, {at, at + n.x, at + n.x + n.y, at + n.x + n.y + n.z});
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        st.next_first[st.count] = carry;
        if (WEIGHTED && carry > st.capacity) st.counters->refused += carry - st.capacity;
    }
}

#if !RECORDED
__device__ __forceinline__ void put_far(const Store& st, u32 slot, u32 beyond) {
    if (st.now.key[slot] == GONE) return;
    u32 tile = goals(st.next)[slot];
    if (PARTS && tile == NONE) return;
    // Of those from other parts it stands in the list, which has no leavers there.
    u32 n = !WEIGHTED ? 1u : PARTS && slot >= beyond ? st.list[slot] : copies_of(st.next)[slot];
    u32 at = st.next_first[tile] + st.near_n[tile] + atomicAdd(st.filled + tile, n);
    for (u32 k = 0; k < n; k++) arrivals(st)[at + k] = slot;
}

// Those that go far, injected particles, and behind these what comes from other parts' tiles that are not beside, into the slots of their
// tiles, in no order; and tiles into the list of those that are begun first.
extern "C" __global__ void __launch_bounds__(256) place(const __grid_constant__ Store st) {
    in_turn();
    if (halted(st)) return;
    list_full_tiles(st);
    u32 begin = st.first[st.count], beyond = begin + st.counters->fresh, special = st.counters->special;
    for (u64 k = thread_index(); k < u64(special) + beyond - begin + st.counters->far; k += thread_count())
        put_far(st, k < special ? wanderer(st, st.next, u32(k)).y : begin + u32(k - special), beyond);
}

// A block of 256 a tile: the slots of those that come from neighbours; then those from afar are ordered.
extern "C" __global__ void __launch_bounds__(256, 8) deliver(const __grid_constant__ Store st) {
    __shared__ u32 buffer[SORTED];
    in_turn();
    if (halted(st)) return;
    if (blockIdx.x == 0 && threadIdx.x == 0) st.counters->special = 0;
    u32 tile = own_tile(st, blockIdx.x), near = st.near_n[tile], far = st.far_n[tile], base = st.next_first[tile];
    if (near > 0) from_neighbours(st, Lists(st, tile), base);
    order_afar(st, tile, arrivals(st) + base + near, far, buffer);
}
#endif
