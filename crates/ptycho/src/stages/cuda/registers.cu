// A frame's way into registers and out of them, and sums over the threads that share it.

// What a block needs beside its values: its thread context, and shared memory for sums.
struct Desk {
  ThreadContext thread;
  float2* scratch; // WARPS
  float2* others;  // BLOCKS
  float* told;     // WARPS * BLOCKS
  u64* gate;
};

// Bytes of shared memory behind `big`: must agree with program.rs.
#define DESK (WARPS * PART * 4 + TABLES * 8 + WARPS * 8 + BLOCKS * 8 + WARPS * BLOCKS * 4 + 8)

__device__ __forceinline__ Desk desk_of(void* room, int block) {
  Desk desk;
  float* all = (float*)room;
  C* tables = (C*)(all + WARPS * PART);
  desk.scratch = tables + TABLES;
  desk.others = desk.scratch + WARPS;
  desk.gate = (u64*)(desk.others + BLOCKS);
  desk.told = (float*)(desk.gate + 1);
  desk.thread = thread_context(all, tables, block);
  return desk;
}

// P O of mode p * OBJECTS + o in a thread's registers.
__device__ __forceinline__ void product(C* v, const Model& model, const View& view, int k, const ThreadContext& thread, float scale) {
  const C* probe = model.probe + ((u64)view.probe * PROBES + k / OBJECTS) * (NX * NY);
  const C* object = model.object + patch_of(model, view, k % OBJECTS);
  const u32 width = model.storages[view.object].width;
#pragma unroll
  for (int r = 0; r < 32; ++r) {
    int x = (r & ((1 << XR) - 1)) * 32 + thread.lane, y = row_of(thread, r);
    v[r] = probe[y * NX + x] * object[(u64)y * width + x] * scale;
  }
}

// The same added to what is there.
__device__ __forceinline__ void add_product(C* v, const Model& model, const View& view, int k, const ThreadContext& thread, float scale) {
  const C* probe = model.probe + ((u64)view.probe * PROBES + k / OBJECTS) * (NX * NY);
  const C* object = model.object + patch_of(model, view, k % OBJECTS);
  const u32 width = model.storages[view.object].width;
#pragma unroll
  for (int r = 0; r < 32; ++r) {
    int x = (r & ((1 << XR) - 1)) * 32 + thread.lane, y = row_of(thread, r);
    v[r] = v[r] + probe[y * NX + x] * object[(u64)y * width + x] * scale;
  }
}

__device__ __forceinline__ void keep(C* frame, const C* v, const ThreadContext& thread) {
#pragma unroll
  for (int r = 0; r < 32; ++r) frame[row_of(thread, r) * NX + (r & ((1 << XR) - 1)) * 32 + thread.lane] = v[r];
}

// The same for waves that are not to stay in the cache.
__device__ __forceinline__ void keep_last(C* frame, const C* v, const ThreadContext& thread) {
#pragma unroll
  for (int r = 0; r < 32; ++r) __stcs(frame + row_of(thread, r) * NX + (r & ((1 << XR) - 1)) * 32 + thread.lane, v[r]);
}

__device__ __forceinline__ void fill(C* v, const C* frame, const ThreadContext& thread) {
#pragma unroll
  for (int r = 0; r < 32; ++r) v[r] = frame[row_of(thread, r) * NX + (r & ((1 << XR) - 1)) * 32 + thread.lane];
}

__device__ __forceinline__ float2 across(float2 value, int lanes) {
#pragma unroll
  for (int d = lanes / 2; d > 0; d /= 2) {
    value.x += __shfl_xor_sync(FULL_WARP, value.x, d);
    value.y += __shfl_xor_sync(FULL_WARP, value.y, d);
  }
  return value;
}

// The sum over all threads of a frame, for all of them; in a fixed order.
__device__ __forceinline__ float2 everywhere(float2 value, const Desk& desk) {
  value = across(value, WARP);
  if (WB > 0) {
    if (desk.thread.lane == 0) desk.scratch[desk.thread.warp] = value;
    __syncthreads();
    value = across(desk.scratch[desk.thread.lane & (WARPS - 1)], WARPS);
  }
  if (CL == 0) return value;
  if (threadIdx.x < BLOCKS) send(remote(shared_address(desk.others + desk.thread.block), threadIdx.x), value);
  cluster_arrive();
  cluster_wait();
  value = desk.others[0];
#pragma unroll
  for (int b = 1; b < BLOCKS; ++b) value = value + desk.others[b];
  return value;
}

// The greatest value over all threads of a frame, for all of them.
__device__ __forceinline__ float highest(float value, const Desk& desk) {
#pragma unroll
  for (int d = WARP / 2; d > 0; d /= 2) value = fmaxf(value, __shfl_xor_sync(FULL_WARP, value, d));
  if (WB > 0) {
    if (desk.thread.lane == 0) desk.scratch[desk.thread.warp].x = value;
    __syncthreads();
    value = desk.scratch[desk.thread.lane & (WARPS - 1)].x;
#pragma unroll
    for (int d = WARPS / 2; d > 0; d /= 2) value = fmaxf(value, __shfl_xor_sync(FULL_WARP, value, d));
    __syncthreads();
  }
  if (CL == 0) return value;
  if (threadIdx.x < BLOCKS) send(remote(shared_address(desk.others + desk.thread.block), threadIdx.x), make_float2(value, 0));
  cluster_arrive();
  cluster_wait();
#pragma unroll
  for (int b = 0; b < BLOCKS; ++b) value = fmaxf(value, desk.others[b].x);
  cluster_arrive();
  cluster_wait();
  return value;
}

// A third sum takes its time: every warp tells its part to the first block before a transform, and that block has it after.
__device__ __forceinline__ void tell(float value, const Desk& desk) {
  value = across(make_float2(value, 0), WARP).x;
  float* target = desk.told + desk.thread.block * WARPS + desk.thread.warp;
  if (desk.thread.lane == 0) {
    if (CL == 0) *target = value;
    else send(remote(shared_address(target), 0), value);
  }
}

__device__ __forceinline__ void report(float* errors, float likelihood, float fourier, const Desk& desk) {
  if (threadIdx.x >= WARP || desk.thread.block != 0) return;
  __syncwarp();
  float2 sum = make_float2(0, 0);
  for (int i = desk.thread.lane; i < WARPS * BLOCKS; i += WARP) sum.x += desk.told[i];
  sum = across(sum, WARP);
  if (desk.thread.lane == 0) errors[0] = fourier, errors[1] = likelihood, errors[2] = sum.x / (NX * NY);
}
