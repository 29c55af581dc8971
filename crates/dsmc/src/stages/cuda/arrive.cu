// Slots of `now` that hold the arrivals of a tile: those from neighbours by way and in the order of their lists, then those from afar in the
// order of their slots. Of small gases (RECORDED) the pass over a tile looks for them itself; of others `deliver` has done so (exchange.cu).

#include "common.cu"

// Rounds of a warp over a neighbour's lists whose entries are asked for at once.
#define AHEAD 4

// By the whole block, a warp a way. `base` is the region's begin.
__device__ __forceinline__ void from_neighbours(const Store& st, u32 tile, u32 base) {
  u32 lane = lane_index(), origin = lane < 9 && lane != 4 ? neighbour(st, tile, lane, -1) : NONE;
  // Each warp counts what comes before its own: lane w by way w.
  u32 coming = origin != NONE ? st.old_near[origin * 9 + lane] : 0, before = base + warp_scan(coming) - coming;
  for (u32 turn = threadIdx.x / 32; turn < 8; turn += blockDim.x / 32) {
    u32 way = turn < 4 ? turn : turn + 1, at = __shfl_sync(FULL_WARP, before, way), from = __shfl_sync(FULL_WARP, origin, way);
    if (__shfl_sync(FULL_WARP, coming, way) == 0) continue;
    u32 begin = st.first[from], part = list_part(st.first[from + 1] - begin), ends[LISTS];
    u32 behind = warp_scan(lane < LISTS ? st.old_left[from * LISTS + lane] : 0);
#pragma unroll
    for (u32 w = 0; w < LISTS; w++) ends[w] = __shfl_sync(FULL_WARP, behind, w);
    for (u32 k0 = lane; k0 - lane < ends[LISTS - 1]; k0 += 32 * AHEAD) {
      u32 entries[AHEAD];
#pragma unroll
      for (u32 r = 0; r < AHEAD; r++) {
        u32 k = k0 + 32 * r, to = k;
#pragma unroll
        for (u32 w = 0; w + 1 < LISTS; w++)
          if (k >= ends[w]) to = (w + 1) * part + k - ends[w];
        entries[r] = k < ends[LISTS - 1] ? __ldcg(st.old_list + begin + to) : 0xffffffffu;
      }
#pragma unroll
      for (u32 r = 0; r < AHEAD; r++) {
        bool mine = entries[r] >> 28 == way;
        u32 all = __ballot_sync(FULL_WARP, mine);
        if (mine) arrivals(st)[at + __popc(all & ((1u << lane) - 1))] = begin + (entries[r] & INDEX);
        at += __popc(all);
      }
    }
  }
}

// Ascending, whole block: compares only ever put the smaller one first, so that a length between powers of two needs no padding.
__device__ __forceinline__ void sort_block(u32* x, u32 n) {
  u32 whole = 1;
  while (whole < n) whole *= 2;
  for (u32 size = 2; size <= whole; size *= 2)
    for (u32 apart = size / 2; apart > 0; apart /= 2) {
      __syncthreads();
      for (u32 k = threadIdx.x; k < whole / 2; k += blockDim.x) {
        u32 low = k / apart * 2 * apart + k % apart;
        u32 high = apart == size / 2 ? low ^ (size - 1) : low + apart;
        if (high < n && x[high] < x[low]) {
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

// Takes them down, by the whole block, into `list` (`buffer` has as much or is not used) and in order.
__device__ __forceinline__ void from_afar(const Store& st, u32 tile, u32* list, u32 n, u32* buffer, bool fits) {
  __shared__ u32 taken;
  u32 *to = fits ? buffer : list, *chain = st.chains + tile * THREADS + threadIdx.x, next = *chain;
  if (threadIdx.x == 0) taken = 0;
  if (next) *chain = 0;
  __syncthreads();
  while (next) {
    u32 slot = next - 1, times = WEIGHTED ? st.link[st.capacity + slot] : 1, at = atomicAdd(&taken, times);
    next = st.link[slot];
    for (u32 k = 0; k < times; k++) to[at + k] = slot;
  }
  __syncthreads();
  if (n > 1) sort_block(to, n);
  if (fits)
    for (u32 k = threadIdx.x; k < n; k += THREADS) list[k] = buffer[k];
}
#endif
