// Threads of a cluster in their frame, their shared memory, and the exchanges between them (clustered.cu).

#include "hopper.cu"
#include "multi_pass.cu"

#define VALUES 16
#define THREADS (1024 >> CL)
#define BLOCKS (1 << CL)
#define FRAME_WARPS (BLOCKS * THREADS / WARP)
// Threads of a rank, of which a block has 4 / BLOCKS.
#define RANK 256

// Place of a thread in its frame, made anew for every part of the way: what the compiler derives from one that it has seen before
// waits in registers, of which there are none.
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
    C* room;            // VALUES * THREADS: exchanges, and e between
    C* roots;           // NX: exp(-2 pi i k / NX)
    real2* misfits;     // FRAME_WARPS: of all warps of the frame
    View* views;        // of every rank's threads: the view to come
    Storage* storages;  // and its object
    real* changes;      // FRAME_WARPS: as misfits, in the first block

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

// A view on its way before it is needed, then its object, which must have come when the threads of a rank next wait for each other:
// loads that depend on one another take as long as a transform.
__device__ __forceinline__ void fetch_view(const Shared& s, const Model& model, u32 n) {
    const Place p;
    if (p.thread % RANK == 0) copy_ahead(s.views + p.thread / RANK, model.views + n);
}
__device__ __forceinline__ void fetch_storage(const Shared& s, const Model& model) {
    const Place p;
    if (p.thread % RANK == 0) copy_ahead(s.storages + p.thread / RANK, model.storages + s.views[p.thread / RANK].object);
}
