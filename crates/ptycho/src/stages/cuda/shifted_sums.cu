// Sums over views for probes between pixels. Bytes a pixel of a view and probe mode: 8 for each object mode, and 8 for what P O leaves;
// objects come from the cache. One transform.

#include "shifted.cu"

// Sums over views of what their waves say of the probes: transforms of sum_o conj(O) psi, with REST of what P O leaves of psi (P as the views see it),
// shifted back, to `sums` [parts][sets][PROBES][NY * NX]; |O|^2 to `norms` [parts][sets][NY * NX]. Part s has the views s, s + parts, .. of all, `before`
// of which were added before: sums go on where they stopped, so that blocks of frames make no difference. Sums stay in shared memory meanwhile, |O|^2 in
// registers.
template <bool REST> __device__ __forceinline__ void add_views_back(C* room, const Model& model, const C* exits,
                                                                    const float2* shifts, u32 count, u32 before, C* sums,
                                                                    float* norms) {
    float4* sum = (float4*)room + threadIdx.x;  // values r and r + 1 at (r / 2) * THREADS
    C* ramps = room + 32 * THREADS;
    const FrameContext context = shifted_context(ramps + 2 * RAMPS);
    const ThreadContext& thread = context.thread;
    wait_for_previous_kernel();
    const u32 parts = gridDim.x >> CL, part = blockIdx.x >> CL, mode = blockIdx.y, set = blockIdx.z;
    const u64 slot = (u64)part * gridDim.z + set;
    C* to = sums + (slot * PROBES + mode) * (NX * NY) + thread.block * (32 * THREADS);
    float norm[32];
#pragma unroll
    for (int r = 0; r < 32; ++r)
        norm[r] = before ? norms[slot * (NX * NY) + row_of(thread, r) * NX + (r & ((1 << XR) - 1)) * 32 + thread.lane] : 0;
#pragma unroll
    for (int r = 0; r < 32; r += 2) sum[(r >> 1) * THREADS] = before ? pair(to, r) : make_float4(0, 0, 0, 0);
    u32 turn = 0;
    for (u32 n = (part + parts - before % parts) % parts; n < count; n += parts) {
        const View view = model.views[n];
        if (view.probe != set) continue;
        // Two, in turns: some still read those of the view before.
        C* own = ramps + (turn ^= 1) * RAMPS;
        put_ramps(own, shifts[n]);
        if (threadIdx.x == 0 && n + parts < count && model.views[n + parts].probe == set) {
            const u64 next = ((u64)(n + parts) * PROBES + mode) * (NX * NY), mine = thread.block * (32 * THREADS);
            for (u32 o = 0; o < OBJECTS; ++o) expect(exits + (next * OBJECTS + o * (NX * NY)) + mine, 32 * THREADS * 8);
            if (REST) expect(model.probe + next + mine, 32 * THREADS * 8);
        }
        C v[32];
#pragma unroll 1
        for (int o = 0; o < OBJECTS; ++o) {
            const C* object = model.object + patch_of(model, view, o);
            const C* wave = exits + ((u64)n * MODES + mode * OBJECTS + o) * (NX * NY);
            const C* probe = model.probe + ((u64)n * PROBES + mode) * (NX * NY);
            const u32 width = model.storages[view.object].width;
#pragma unroll
            for (int r = 0; r < 32; ++r) {
                const int x = (r & ((1 << XR) - 1)) * 32 + thread.lane, y = row_of(thread, r);
                const C a = object[(u64)y * width + x];
                C psi = __ldcs(wave + y * NX + x);
                if (REST) psi = psi - probe[y * NX + x] * a;
                norm[r] += power(a);
                v[r] = o ? v[r] + conj(a) * psi : conj(a) * psi;
            }
        }
        forward(v, thread, 0);
#pragma unroll
        for (int r = 0; r < 32; ++r) v[r] = v[r] * conj(ramp_at(own, r, thread));
#pragma unroll
        for (int r = 0; r < 32; r += 2) {
            const float4 old = sum[(r >> 1) * THREADS];
            sum[(r >> 1) * THREADS] = make_float4(old.x + v[r].x, old.y + v[r].y, old.z + v[r + 1].x, old.w + v[r + 1].y);
        }
    }
#pragma unroll
    for (int r = 0; r < 32; r += 2) ((float4*)to)[(r >> 1) * THREADS + threadIdx.x] = sum[(r >> 1) * THREADS];
    if (mode) return;
#pragma unroll
    for (int r = 0; r < 32; ++r)
        norms[slot * (NX * NY) + row_of(thread, r) * NX + (r & ((1 << XR) - 1)) * 32 + thread.lane] = norm[r];
}

// Grid of both: (parts * BLOCKS, PROBES, sets).
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    gather_back(Model model, const C* exits, const float2* shifts, u32 count, u32 before, C* sums, float* norms) {
    extern __shared__ __align__(128) char shared[];
    add_views_back<false>((C*)shared, model, exits, shifts, count, before, sums, norms);
}
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    gather_rest_back(Model model, const C* exits, const float2* shifts, u32 count, u32 before, C* sums, float* norms) {
    extern __shared__ __align__(128) char shared[];
    add_views_back<true>((C*)shared, model, exits, shifts, count, before, sums, norms);
}
