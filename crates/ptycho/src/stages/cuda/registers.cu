// A frame's way into registers and out of them, and sums over the threads that share it.

#include "frame.cu"

// State of a block besides its values: the thread context, and shared memory for sums.
struct FrameContext {
    ThreadContext thread;
    float2* scratch;   // WARPS
    float2* others;    // BLOCKS
    float* published;  // WARPS * BLOCKS
    u64* barrier;
};

// Bytes of shared memory behind `big`: must agree with program.rs.
#define FRAME_CONTEXT (WARPS * PART * 4 + TABLES * 8 + WARPS * 8 + BLOCKS * 8 + WARPS * BLOCKS * 4 + 8)

__device__ __forceinline__ FrameContext frame_context(void* room, int block) {
    FrameContext context;
    float* all = (float*)room;
    C* tables = (C*)(all + WARPS * PART);
    context.scratch = tables + TABLES;
    context.others = context.scratch + WARPS;
    context.barrier = (u64*)(context.others + BLOCKS);
    context.published = (float*)(context.barrier + 1);
    context.thread = thread_context(all, tables, block);
    return context;
}

// P O of mode p * OBJECTS + o in a thread's registers.
__device__ __forceinline__ void product(C* v, const Model& model, const View& view, int k, const ThreadContext& thread,
                                        float scale) {
    const C* probe = model.probe + ((u64)view.probe * PROBES + k / OBJECTS) * (NX * NY);
    const C* object = model.object + patch_of(model, view, k % OBJECTS);
    const u32 width = model.storages[view.object].width;
#pragma unroll
    for (int r = 0; r < 32; ++r) {
        int x = (r & ((1 << XR) - 1)) * 32 + thread.lane, y = row_of(thread, r);
        v[r] = probe[y * NX + x] * object[(u64)y * width + x] * scale;
    }
}

// Values times the object's patch, which may be read before what is stored earlier.
__device__ __forceinline__ void times_object(C* v, const Model& model, const View& view, int o, const ThreadContext& thread,
                                             float scale) {
    const C* object = model.object + patch_of(model, view, o);
    const u32 width = model.storages[view.object].width;
#pragma unroll
    for (int r = 0; r < 32; ++r)
        v[r] = v[r] * __ldg(object + (u64)row_of(thread, r) * width + (r & ((1 << XR) - 1)) * 32 + thread.lane) * scale;
}

// Adds the product to the values.
__device__ __forceinline__ void add_product(C* v, const Model& model, const View& view, int k, const ThreadContext& thread,
                                            float scale) {
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

// Variant for waves that are not to stay in the cache.
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
__device__ __forceinline__ float2 reduce_all(float2 value, const FrameContext& context) {
    value = across(value, WARP);
    if (WB > 0) {
        if (context.thread.lane == 0) context.scratch[context.thread.warp] = value;
        __syncthreads();
        value = across(context.scratch[context.thread.lane & (WARPS - 1)], WARPS);
    }
    if (CL == 0) return value;
    if (threadIdx.x < BLOCKS) send(remote(shared_address(context.others + context.thread.block), threadIdx.x), value);
    cluster_arrive();
    cluster_wait();
    value = context.others[0];
#pragma unroll
    for (int b = 1; b < BLOCKS; ++b) value = value + context.others[b];
    return value;
}

// The greatest value over all threads of a frame, for all of them.
__device__ __forceinline__ float highest(float value, const FrameContext& context) {
#pragma unroll
    for (int d = WARP / 2; d > 0; d /= 2) value = fmaxf(value, __shfl_xor_sync(FULL_WARP, value, d));
    if (WB > 0) {
        if (context.thread.lane == 0) context.scratch[context.thread.warp].x = value;
        __syncthreads();
        value = context.scratch[context.thread.lane & (WARPS - 1)].x;
#pragma unroll
        for (int d = WARPS / 2; d > 0; d /= 2) value = fmaxf(value, __shfl_xor_sync(FULL_WARP, value, d));
        __syncthreads();
    }
    if (CL == 0) return value;
    if (threadIdx.x < BLOCKS)
        send(remote(shared_address(context.others + context.thread.block), threadIdx.x), make_float2(value, 0));
    cluster_arrive();
    cluster_wait();
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b) value = fmaxf(value, context.others[b].x);
    cluster_arrive();
    cluster_wait();
    return value;
}

// A third sum takes its time: every warp tells its part to the first block before a transform, and that block has it after.
__device__ __forceinline__ void publish(float value, const FrameContext& context) {
    value = across(make_float2(value, 0), WARP).x;
    float* target = context.published + context.thread.block * WARPS + context.thread.warp;
    if (context.thread.lane == 0) {
        if (CL == 0) *target = value;
        else send(remote(shared_address(target), 0), value);
    }
}

__device__ __forceinline__ void report(float* errors, float likelihood, float fourier, const FrameContext& context) {
    if (threadIdx.x >= WARP || context.thread.block != 0) return;
    __syncwarp();
    float2 sum = make_float2(0, 0);
    for (int i = context.thread.lane; i < WARPS * BLOCKS; i += WARP) sum.x += context.published[i];
    sum = across(sum, WARP);
    if (context.thread.lane == 0) errors[0] = fourier, errors[1] = likelihood, errors[2] = sum.x / (NX * NY);
}
