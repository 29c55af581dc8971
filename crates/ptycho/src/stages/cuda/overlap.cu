// The overlap constraint: object, then probes, until the probes rest; in one launch whose blocks wait for each other.
// Grid: as many blocks of TEAM threads as the device holds, cooperative. Bytes a pixel and mode and pass: 16.

__device__ __forceinline__ float2 block_sum(float2 value, float2* scratch) {
  value.x = warp_reduce<Sum<float>>(value.x), value.y = warp_reduce<Sum<float>>(value.y);
  __syncthreads();
  if (lane_index() == 0) scratch[threadIdx.x / WARP] = value;
  __syncthreads();
  float2 sum = scratch[0];
  for (int c = 1; c < CREWS; ++c) sum = sum + scratch[c];
  return sum;
}

extern "C" __global__ void __launch_bounds__(TEAM, CROWD) overlap(Model model, const C* exits, Sums sums, Update update) {
  __shared__ float4 room[CREWS * TILE_ROWS * WARP];
  __shared__ float2 scratch[CREWS];
  const u32 groups = (NX * NY / 2 + TEAM - 1) / TEAM;
  u32 pass = 0;
  for (bool rest = false; pass < update.most && !rest; ++pass) {
    if (update.object && (pass > 0 || !update.probe_first || !update.probe)) {
      // Backwards: the waves of the last views are still in the second-level cache.
      for (u32 t = blockIdx.x; t < sums.tile_count; t += gridDim.x) update_tile(model, exits, sums, sums.tile_count - 1 - t, update, room);
      grid_barrier(sums.barrier);
    }
    if (!update.probe) {
      rest = true;
      continue;
    }
    for (u32 w = blockIdx.x; w < sums.part_count * groups; w += gridDim.x) {
      u32 pixel = (w % groups * TEAM + threadIdx.x) * 2;
      if (pixel < NX * NY) sum_probe(model, exits, sums, w / groups, pixel);
    }
    grid_barrier(sums.barrier);
    for (u32 set = 0; set < sums.sets; ++set) {
      float2 change = make_float2(0, 0);
      for (u32 w = thread_index(); w < NX * NY; w += thread_count()) change = change + update_probe(model, sums, set, w);
      change = block_sum(change, scratch);
      if (threadIdx.x == 0) sums.changes[set * gridDim.x + blockIdx.x] = change;
    }
    grid_barrier(sums.barrier);
    float moved = 0;
    for (u32 set = 0; set < sums.sets; ++set) {
      float2 change = make_float2(0, 0);
      for (u32 b = threadIdx.x; b < gridDim.x; b += TEAM) change = change + sums.changes[set * gridDim.x + b];
      change = block_sum(change, scratch);
      moved += change.x / fmaxf(change.y, 1e-37f);
    }
    rest = moved < update.tolerance * update.tolerance * float(sums.sets);
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) *sums.passes = pass;
}
