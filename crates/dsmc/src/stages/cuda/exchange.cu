// The exchange between tiles: how many each will have (layout), which slots they come from (place, deliver). Cost: four bytes a
// leaver, some reads a tile. What comes by a way comes in the order of the lists, what comes from afar in the order of its slots.

// One block of 1024: the regions of the next columns. `clock`: counts steps where launches are recorded.
extern "C" __global__ void __launch_bounds__(1024) layout(const __grid_constant__ Store st, u64* clock) {
  __shared__ u32 sums[32], carry;
  const u32 EACH = 4;
  in_turn();
  if (threadIdx.x == 0) {
    carry = 0;
    if (clock) ++*clock;
  }
  __syncthreads();
  for (u32 from = 0; from < st.count; from += EACH * 1024) {
    u32 n[EACH], sum = 0;
#pragma unroll
    for (u32 k = 0; k < EACH; k++) {
      u32 tile = from + threadIdx.x * EACH + k;
      n[k] = 0;
      if (tile < st.count) {
        u32 near = st.near_in[tile], far = st.far_in[tile];
        st.near_n[tile] = near;
        st.far_n[tile] = far;
        st.near_in[tile] = st.far_in[tile] = 0;
        st.filled[tile] = 0;
        n[k] = st.stay[tile] + near + far;
        if (n[k] > INDEX) atomicMax(&st.counters->fullest, n[k]);
      }
      sum += n[k];
    }
    u32 scan = warp_scan(sum), warp = threadIdx.x / 32;
    if (lane_index() == 31) sums[warp] = scan;
    __syncthreads();
    if (warp == 0) sums[lane_index()] = warp_scan(sums[lane_index()]);
    __syncthreads();
    u32 at = carry + (warp ? sums[warp - 1] : 0) + scan - sum;
    __syncthreads();
    if (threadIdx.x == 0) carry += sums[31];
#pragma unroll
    for (u32 k = 0; k < EACH; k++) {
      u32 tile = from + threadIdx.x * EACH + k;
      if (tile < st.count) st.next_first[tile] = at;
      at += n[k];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) st.next_first[st.count] = carry;
}

// `entry` is where its tile is listed.
__device__ __forceinline__ void put_far(const Store& st, u32 slot, u32 entry) {
  u32 tile = goals(st.next)[entry], n = WEIGHTED ? copies_of(st.next)[entry] : 1u;
  u32 at = st.next_first[tile] + st.near_n[tile] + atomicAdd(st.filled + tile, n);
  for (u32 k = 0; k < n; k++) arrivals(st)[at + k] = slot;
}

// A warp a list, and behind them FRESH warps for what came in: those that go far into the places of their tiles, in no order.
extern "C" __global__ void __launch_bounds__(256) place(const __grid_constant__ Store st, u32 fresh_warps) {
  in_turn();
  u32 warp = u32(thread_index() / 32);
  if (warp < st.count * LISTS) {
    if (st.special[warp] == 0) return;
    u32 tile = warp / LISTS, begin = st.first[tile], n = st.first[tile + 1] - begin;
    u32 at = begin + warp % LISTS * list_part(n), length = st.left[warp];
    for (u32 k = lane_index(); k < length; k += 32) {
      u32 entry = st.list[at + k];
      if (entry >> 28 == FAR) put_far(st, begin + (entry & INDEX), at + k);
    }
    return;
  }
  u32 begin = st.first[st.count], fresh = st.counters->fresh;
  for (u32 k = (warp - st.count * LISTS) * 32 + lane_index(); k < fresh; k += fresh_warps * 32)
    if (st.list[begin + k] >> 28 == FAR) put_far(st, begin + k, begin + k);
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

#define SORTED 1024

// A block of 256 a tile, a warp a way: the slots of those that come from neighbours; then those from afar are ordered. Of small gases one more block
// finds meanwhile how many come in.
extern "C" __global__ void __launch_bounds__(256) deliver(const __grid_constant__ Store st, const __grid_constant__ Domain d, const __grid_constant__ Inflow in) {
  __shared__ u32 room[SORTED];
  in_turn();
#if RECORDED
  if (blockIdx.x == st.count) {
    tally(st, d, in);
    return;
  }
#endif
  u32 tile = blockIdx.x, near = st.near_n[tile], far = st.far_n[tile], base = st.next_first[tile];
  if (near > 0) {
    u32 number = threadIdx.x / 32, way = number < 4 ? number : number + 1;
    int x = int(tile % st.tiles[0]), y = int(tile / st.tiles[0]);
    // Each warp counts what comes before its own: lane w by way w.
    u32 origin = lane_index() < 9 && lane_index() != 4 ? neighbour(st, x, y, lane_index(), -1) : NONE;
    u32 coming = origin != NONE ? st.near[origin * 9 + lane_index()] : 0;
    u32 at = base + __shfl_sync(FULL_WARP, warp_scan(coming) - coming, way), from = __shfl_sync(FULL_WARP, origin, way);
    if (__shfl_sync(FULL_WARP, coming, way) > 0) {
      u32 begin = st.first[from], part = list_part(st.first[from + 1] - begin);
      u32 own = lane_index() < LISTS ? st.left[from * LISTS + lane_index()] : 0, behind = warp_scan(own);
      u32 total = __shfl_sync(FULL_WARP, behind, 31);
      for (u32 k0 = 0; k0 < total; k0 += 32) {
        u32 k = k0 + lane_index(), number = 0, before = 0;
#pragma unroll
        for (u32 w = 0; w + 1 < LISTS; w++) {
          u32 end = __shfl_sync(FULL_WARP, behind, w);
          if (k >= end) {
            number = w + 1;
            before = end;
          }
        }
        u32 entry = k < total ? st.list[begin + number * part + k - before] : 0xffffffffu;
        bool mine = entry >> 28 == way;
        u32 all = __ballot_sync(FULL_WARP, mine);
        if (mine) arrivals(st)[at + __popc(all & ((1u << lane_index()) - 1))] = begin + (entry & INDEX);
        at += __popc(all);
      }
    }
  }
  if (far < 2) return;
  u32* list = arrivals(st) + base + near;
  if (far > SORTED) {
    sort_block(list, far);
    return;
  }
  for (u32 k = threadIdx.x; k < far; k += 256) room[k] = list[k];
  sort_block(room, far);
  for (u32 k = threadIdx.x; k < far; k += 256) list[k] = room[k];
}
