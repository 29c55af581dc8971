// Who of the tiles' leavers flies in `trace_flights`: one behind the other, so that flights are shared out evenly however many a tile has.

#include "sides.cu"

#if !RECORDED
#define ROWS 4
#define LONG 256u  // entries of lists that a block works on together

// Puts those of a tile's lists who are FAR or PENDING behind the others, of a warp; lane w has the length of list w and the number of these in it.
__device__ __forceinline__ void gather_from(const Store& st, u32 tile, u32 length, u32 some) {
    const u32 lane = lane_index(), below = (1u << lane) - 1;
    u32 all = warp_reduce<Sum<u32>>(some), at = lane == 0 && all ? atomicAdd(&st.counters->special, all) : 0;
    at = __shfl_sync(FULL_WARP, at, 0);
    u32 base = st.next_first[tile], part = list_part(st.next_first[tile + 1] - base);
    // Lists with any, one behind the other: many entries are asked for at once.
    u32 ends = warp_scan(some > 0 ? length : 0), end = __shfl_sync(FULL_WARP, ends, 31);
    for (u32 k0 = lane; k0 - lane < end; k0 += 32 * ROWS) {
        u32 entries[ROWS];
#pragma unroll
        for (u32 r = 0; r < ROWS; r++) {
            u32 k = k0 + 32 * r;
            entries[r] = 0;
            if (k - lane >= end) continue;
            u32 place = place_in_list(ends, part, k);
            if (k < end) entries[r] = st.list[base + place];
        }
#pragma unroll
        for (u32 r = 0; r < ROWS; r++) {
            bool wanders = entries[r] >> 28 >= FAR;
            u32 these = __ballot_sync(FULL_WARP, wanders);
            if (wanders) set_wanderer(st, st.now, at + __popc(these & below), tile, base + (entries[r] & INDEX), entries[r] >> 28);
            at += __popc(these);
        }
    }
}

// A warp a tile, or a block one with long lists. The first warps have a link to another part each; before them one block (`counting`, or none)
// finds how many particles are injected.
extern "C" __global__ void __launch_bounds__(256)
    gather(const __grid_constant__ Store st, const __grid_constant__ Domain d, const __grid_constant__ Inflow in, u32 counting,
           const uint3* links, u32 linked) {
    __shared__ u32 full[8];
    in_turn();
    if (halted(st)) return;
    if (blockIdx.x < counting) {
        tally(d, st, in, step_of(d.step));
        return;
    }
    const u32 warp = u32(thread_index() / 32) - 8 * counting, tile = warp - linked, lane = lane_index();
    if (lane == 0) full[threadIdx.x / 32] = NONE;
#if PARTS
    if (warp < linked) send_near(st, links[warp], warp);
#endif
    if (warp >= linked && tile < st.count) {
        u32 some = lane < LISTS ? st.special[tile * LISTS + lane] : 0, length = lane < LISTS ? st.left[tile * LISTS + lane] : 0;
        u32 end = warp_reduce<Sum<u32>>(some > 0 ? length : 0);
        if (__shfl_sync(FULL_WARP, end, 0) <= LONG) {
            gather_from(st, tile, length, some);
        } else if (lane == 0) {
            full[threadIdx.x / 32] = tile;
        }
    }
    __syncthreads();
    for (u32 k = 0; k < 8; k++)
        for (u32 w = threadIdx.x / 32; full[k] != NONE && w < LISTS; w += 8) {
            u32 at = full[k] * LISTS + w;
            gather_from(st, full[k], lane == w ? st.left[at] : 0, lane == w ? st.special[at] : 0);
        }
}
#endif
