// The Fourier step in one kernel for frames of 128 x 128 doubles: a cluster of 2^CL blocks holds a frame in registers, 16 values a thread. State and order
// of values are those of columns.cu. Clusters of two blocks of 512 threads: of four, two a multiprocessor, an H200 holds 62, of two 66. Transforms go in four passes with exchanges of register bits for bits of the thread between them:
//   x = 8 x1 + x0,                  kx = k1 + 16 k0;
//   y = 64 ya + 4 yc + rank,        ky = ky0 + 2 kc + 32 kd;
//   pass 1: x1 to k1; pass 2: x0 to k0 and ya to ky0; pass 3: yc to kc; pass 4: rank to kd.
// Exchange 1 lies within a warp, exchange 2 within a block (with CL = 1 within either half of it), exchange 3 within the cluster.
// Each is its own inverse. Bytes a pixel: e 16 + 16, exit 16, magnitude 4; probe and object come from the cache.

#include "hopper.cu"
#include "multi_pass.cu"
#include "twisted.cu"

#define VALUES 16
#define THREADS (1024 >> CL)
#define BLOCKS (1 << CL)
#define FRAME_WARPS (BLOCKS * THREADS / WARP)
// Threads of a rank, of which a block has 4 / BLOCKS.
#define RANK 256

// Place of a thread in its frame, made anew for every part of the way: what the compiler derives from one that it has seen before waits in
// registers, of which there are none.
struct Place {
    int thread, lane, block, rank, team;  // team: 16 lanes that exchange with 15 other such

    __device__ __forceinline__ Place() {
#ifdef __CUDA_ARCH__
        asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
#else
        thread = threadIdx.x;
#endif
        lane = thread % 16, block = blockIdx.x & (BLOCKS - 1), rank = thread / RANK << CL | block, team = thread % RANK / 16;
    }
    // Slot of its value 0 in the room, among those of its team; value r lies 16 r further.
    __device__ __forceinline__ C* slot_of(C* room) const { return room + (thread - lane) * VALUES + lane; }
    // Of value 0 in real space, where value r lies 8 r further along; and at the detector.
    __device__ __forceinline__ int x() const { return lane & 7; }
    __device__ __forceinline__ int y() const { return 64 * (lane >> 3) + 4 * team + rank; }
    __device__ __forceinline__ int ky0() const { return team >> 3; }
    __device__ __forceinline__ int in_real() const { return y() * NX + x(); }
    __device__ __forceinline__ int warp() const { return block * (THREADS / WARP) + thread / WARP; }  // in the frame
    __device__ __forceinline__ int at_detector() const { return (ky0() + 2 * rank) * NX + (team & 7) * 16 + lane; }
};

// Shared memory of a block.
struct Shared {
    C* room;           // VALUES * THREADS: exchanges, and e between
    C* roots;          // NX: exp(-2 pi i k / NX)
    real2* misfits;    // FRAME_WARPS: of all warps of the frame
    View* views;       // of every rank's threads: the view to come
    Storage* storages; // and its object
    real* changes;     // FRAME_WARPS: as misfits, in the first block

    __device__ __forceinline__ Shared(C* all) {
        room = all, roots = room + VALUES * THREADS, misfits = roots + NX, views = (View*)(misfits + FRAME_WARPS);
        storages = (Storage*)(views + THREADS / RANK), changes = (real*)(storages + THREADS / RANK);
    }
};

// Row of value r at the detector, counted from that of value 0.
__device__ __forceinline__ constexpr int row_beyond(int r) { return 8 * (r / 4) + 32 * (r % 4); }

// Value r of lane l becomes value l of lane r, in the slots of a team. They turn around so that neither way two lanes come to one bank.
__device__ __forceinline__ void across_lanes(C* v, C* room) {
    const Place p;
    C* own = room + (p.thread - p.lane) * VALUES;
    __syncwarp();
#pragma unroll
    for (int r = 0; r < VALUES; ++r) own[r * 16 + (p.lane ^ r)] = v[r];
    __syncwarp();
    own += p.lane * 16;
#pragma unroll
    for (int r = 0; r < VALUES; ++r) v[r] = own[p.lane ^ r];
}

// The threads of a rank wait for each other.
__device__ __forceinline__ void rank_barrier() {
#ifdef __CUDA_ARCH__
    asm volatile("barrier.sync %0, %1;" ::"r"(1 + Place().thread / RANK), "n"(RANK) : "memory");
#else
    __syncthreads();
#endif
}

// Value r of team t becomes value t of team r. From here on a thread has slots of its own in the room.
__device__ __forceinline__ void across_teams(C* v, C* room) {
    const Place p;
    C* others = room + p.thread / RANK * (RANK * VALUES) + p.team * 16 + p.lane;
    rank_barrier();
#pragma unroll
    for (int r = 0; r < VALUES; ++r) others[r * RANK] = v[r];
    rank_barrier();
#pragma unroll
    for (int r = 0; r < VALUES; ++r) v[r] = p.slot_of(room)[r * 16];
}

// Value 4 m + q of rank c becomes value 4 m + c of rank q. All threads have said that they are `cluster_ready`.
__device__ __forceinline__ void send_to_ranks(const C* v, const Shared& s) {
    const Place p;
    cluster_wait();
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        if (q == p.rank) continue;
        C* to = s.room + ((q >> CL) * RANK + p.team * 16) * VALUES + p.rank * 16 + p.lane;
        const unsigned there = remote(shared_address(to), q & (BLOCKS - 1));
#pragma unroll
        for (int m = 0; m < VALUES / 4; ++m) send(there + m * 64 * (u32)sizeof(C), v[4 * m + q]);
    }
    cluster_arrive();
}
__device__ __forceinline__ void take_from_ranks(C* v, const Shared& s) {
    const Place p;
    cluster_wait();
#pragma unroll
    for (int r = 0; r < VALUES; ++r)
        if (r % 4 != p.rank) v[r] = p.slot_of(s.room)[r * 16];
}

// A view on its way before it is needed, then its object, which must have come when the threads of a rank next wait for each other: loads that depend
// on one another take as long as a transform.
__device__ __forceinline__ void fetch_view(const Shared& s, const Model& model, u32 n) {
    const Place p;
    if (p.thread % RANK == 0) copy_ahead(s.views + p.thread / RANK, model.views + n);
}
__device__ __forceinline__ void fetch_storage(const Shared& s, const Model& model) {
    const Place p;
    if (p.thread % RANK == 0) copy_ahead(s.storages + p.thread / RANK, model.storages + s.views[p.thread / RANK].object);
}

// Forward until the ranks' values are on their way.
__device__ __forceinline__ void forward(C* v, const Shared& s) {
    const TableRoots<-1> table = {s.roots};
    twisted<16>(v, KnownRoots<-1>(), 0);
    across_lanes(v, s.room);
    const int k1 = Place().lane;
    twisted<8>(v, table, k1), twisted<8>(v + 8, table, k1);
#pragma unroll
    for (int r = 0; r < 8; ++r) {
        const C a = v[r], b = v[r + 8];
        v[r] = a + b, v[r + 8] = a - b;
    }
    across_teams(v, s.room);
    cluster_ready();
    if (Place().ky0()) twisted<16>(v, KnownRoots<-1>(), 4);
    else twisted<16>(v, KnownRoots<-1>(), 0);
    send_to_ranks(v, s);
}
// The rest of it.
__device__ __forceinline__ void forward_over_ranks(C* v, const Shared& s) {
    const TableRoots<-1> table = {s.roots};
    const Place p;
    const int first = p.ky0() + 2 * p.rank;
#pragma unroll
    for (int m = 0; m < 4; ++m) twisted<4>(v + 4 * m, table, first + 8 * m);
}
__device__ __forceinline__ void inverse(C* v, const Shared& s) {
    const TableRoots<1> table = {s.roots};
#pragma unroll
    for (int m = 0; m < 4; ++m) twisted<4>(v + 4 * m, KnownRoots<1>(), 0);
    send_to_ranks(v, s);
    take_from_ranks(v, s);
    const int rank = Place().rank;
    if (rank == 0) twisted<16>(v, KnownRoots<1>(), 0);
    else if (rank == 1) twisted<16>(v, KnownRoots<1>(), 2);
    else if (rank == 2) twisted<16>(v, KnownRoots<1>(), 4);
    else twisted<16>(v, KnownRoots<1>(), 6);
    wait_copies();  // of what `fetch_storage` asked for
    across_teams(v, s.room);
    {
        const Place p;
        const C w = conj(s.roots[4 * p.team + p.rank]);
#pragma unroll
        for (int r = 0; r < 8; ++r) butterfly(v[r], v[r + 8], w);
    }
    twisted<8>(v, KnownRoots<1>(), 0), twisted<8>(v + 8, KnownRoots<1>(), 0);
    across_lanes(v, s.room);
    twisted<16>(v, table, Place().x());
}

template <class T> __device__ __forceinline__ T all_lanes(T value) {
#pragma unroll
    for (int d = WARP / 2; d > 0; d /= 2) value += __shfl_xor_sync(FULL_WARP, value, d);
    return value;
}

// A frame's misfits, in all of its threads, in one order.
__device__ __forceinline__ real2 cluster_misfits(real2 sum, const Shared& s) {
    const Place p;
    sum = make_real2(all_lanes(sum.x), all_lanes(sum.y));
    const int block = p.thread % WARP;
    if (block < BLOCKS) send(remote(shared_address(s.misfits + p.warp()), block), sum);
    cluster_arrive();
    cluster_wait();
    sum = s.misfits[p.thread % WARP];
    return make_real2(all_lanes(sum.x), all_lanes(sum.y));
}

// Views from `first` on. Grid: persistent clusters.
extern "C" __global__ void __launch_bounds__(THREADS, CL)
    project(Model model, C* waves, C* exits, const float* mag, const real2* weight, real* errors, u32 first, u32 count,
            Constraint rule, real scale) {
    extern __shared__ C everything[];
    const Shared s(everything);
    if (threadIdx.x < NX) s.roots[threadIdx.x] = root_of<-1, NX>(threadIdx.x);
    __syncthreads();
    const u32 groups = gridDim.x >> CL;
    u32 i = blockIdx.x >> CL;
    if (i < count) fetch_view(s, model, first + i), wait_copies(), fetch_storage(s, model), wait_copies();
    __syncthreads();
    for (; i < count; i += groups) {
        const u32 n = first + i;
        const u64 frame = (u64)n * (NX * NY);
        C v[VALUES];
        {
            const Place p;
            // Rows of this block at the detector, two at a time.
            if (p.thread < NY / 2 / BLOCKS) {
                const u64 rows = frame + (p.thread * BLOCKS + p.block) * (2 * NX);
                expect(waves + rows, 2 * NX * sizeof(C)), expect(mag + rows, 2 * NX * sizeof(float));
            }
            const View view = s.views[p.thread / RANK];
            const Storage storage = s.storages[p.thread / RANK];
            const C* probe = model.probe + (u64)view.probe * (NX * NY) + p.in_real();
            const C* object = model.object + storage.offset + (u64)(view.row + p.y()) * storage.width + view.col + p.x();
#pragma unroll
            for (int r = 0; r < VALUES; ++r) v[r] = probe[8 * r] * object[8 * r];
        }
        forward(v, s);
        if (i + groups < count) fetch_view(s, model, n + groups);
        const Place p;
        const float* magnitudes = mag + frame + p.at_detector();
        float m[VALUES];
#pragma unroll
        for (int r = 0; r < VALUES; ++r) m[r] = __ldcs(magnitudes + row_beyond(r) * NX);
        take_from_ranks(v, s);
        C* e = p.slot_of(s.room);
        C* wave = waves + frame + p.at_detector();
#pragma unroll
        for (int r = 0; r < VALUES; ++r) copy_ahead(e + r * 16, wave + row_beyond(r) * NX);
        forward_over_ranks(v, s);
        real2 sum = make_real2(0, 0);
        real q[VALUES];
        wait_copies();
#pragma unroll
        for (int r = 0; r < VALUES; ++r) {
            const real root = root_of_power(power(v[r] * (rule.c * scale) + e[r * 16] * (1 - rule.c)));
            sum = sum + misfit_of_root(power(v[r]) * (scale * scale), root, m[r]);
            q[r] = ratio_of_root(root, m[r]);
        }
        if (i + groups < count) fetch_storage(s, model);
        const real2 weighed = weight[n];
        sum = cluster_misfits(sum, s);
        const real error = sum.y * weighed.x;
        Blend blend = blend_of(rule, relaxation_of(rule, error, weighed));
        blend.g *= scale, blend.g_ratio *= scale;
        real change = 0;
#pragma unroll
        for (int r = 0; r < VALUES; ++r) {
            const C old = e[r * 16];
            const C now = v[r] * fma(blend.g_ratio, q[r], blend.g) + old * fma(blend.e_ratio, q[r], blend.e);
            change += power(now - old);
            __stcs(wave + row_beyond(r) * NX, now);
            v[r] = now * scale;
        }
        change = all_lanes(change);
        if (p.thread % WARP == 0) send(remote(shared_address(s.changes + p.warp()), 0), change);
        if (p.block == 0 && p.thread == 0) errors[3 * (u64)n] = error, errors[3 * (u64)n + 1] = sum.x / (NX * NY);
        cluster_ready();
        inverse(v, s);
        {
            const Place p;
            C* exit = exits + frame + p.in_real();
#pragma unroll
            for (int r = 0; r < VALUES; ++r) exit[8 * r] = v[r];
            if (p.block == 0 && p.thread < WARP) {
                change = all_lanes(s.changes[p.thread]);
                if (p.thread == 0) errors[3 * (u64)n + 2] = change / (NX * NY);
            }
        }
    }
}
