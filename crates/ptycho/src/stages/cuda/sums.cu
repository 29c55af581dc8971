// Sums over views: of the object, gathered tile by tile from a list of the views that touch it, and of the probes (probe_sums.cu), in parts that
// are added up afterwards. Every sum has one order, so results do not depend on the order of blocks.
//
// Bytes a pixel and mode of a frame: 8 each (the exit wave); probe and object come from the caches.

#include "model.cu"

// TEAM threads a block; a tile is 32 columns wide and TILE_ROWS high, at most TEAM / 32.
#define CREWS (TEAM / WARP)

typedef SumsArgument Sums;
typedef UpdateArgument<real> Update;

// Four numbers past the first-level cache, and at their last use.
#if DOUBLE
__device__ __forceinline__ real4 from_cache(const real4* from) {
    const C low = __ldcg((const C*)from), high = __ldcg((const C*)from + 1);
    return {low.x, low.y, high.x, high.y};
}
__device__ __forceinline__ real4 last_use(const real4* from) {
    const C low = __ldcs((const C*)from), high = __ldcs((const C*)from + 1);
    return {low.x, low.y, high.x, high.y};
}
#else
__device__ __forceinline__ real4 from_cache(const real4* from) { return __ldcg(from); }
__device__ __forceinline__ real4 last_use(const real4* from) { return __ldcs(from); }
#endif

// sum += conj(a) b.
__device__ __forceinline__ void add_overlap(C& sum, C a, C b) {
    sum.x = fma(a.x, b.x, fma(a.y, b.y, sum.x));
    sum.y = fma(a.x, b.y, fma(-a.y, b.x, sum.y));
}

// Contribution of view `n` with its corner there to a tile's rows at this lane's column, for object mode `o`; `exits` begins with view `first`.
__device__ __forceinline__ void add_visit(const Model& model, const C* exits, u32 first, u32 n, i32 corner, int o, C* numerator,
                                          real* weight) {
    const int x = (int)lane_index() - (short)(corner & 0xffff), y = -(corner >> 16);
    const C* probe = model.probe + (SHIFTED ? (u64)n : SETS > 1 ? (u64)model.views[n].probe : 0) * (PROBES * NX * NY) + x;
    const C* exit = exits + ((u64)(n - first) * MODES + o) * (NX * NY) + x;
#pragma unroll
    for (int p = 0; p < PROBES; ++p) {
#pragma unroll
        for (int t = 0; t < TILE_ROWS; ++t) {
            if ((u32)x < NX && (u32)(y + t) < NY) {
                C a = probe[p * (NX * NY) + (y + t) * NX], e = __ldcs(exit + p * (OBJECTS * NX * NY) + (y + t) * NX);
                add_overlap(numerator[t], a, e);
                weight[t] += power(a);
            }
        }
    }
}

// Visit that this lane reads for its warp, which adds `at`, at + CREWS, .. before `end`; none beyond.
#define NO_VIEW 0xffffffffu
__device__ __forceinline__ Visit own_visit(const Sums& sums, u32 at, u32 end) {
    at += lane_index() * CREWS;
    return at < end ? sums.visits[at] : Visit{NO_VIEW, 0};
}

// Adds the visits of this warp; `mine` is the first one that this lane reads of them.
__device__ __forceinline__ void add_visits(const Model& model, const C* exits, u32 first, const Sums& sums, u32 at, u32 end,
                                           Visit mine, int o, C* numerator, real* weight) {
    for (;;) {
#pragma unroll 2
        for (int turn = 0; turn < WARP; ++turn) {
            u32 n = __shfl_sync(FULL_WARP, mine.view, turn);
            i32 corner = __shfl_sync(FULL_WARP, mine.corner, turn);
            if (n == NO_VIEW) break;
            add_visit(model, exits, first, n, corner, o, numerator, weight);
        }
        at += TEAM;
        if (at >= end) return;
        mine = own_visit(sums, at, end);
    }
}

// Puts the sums of this warp where `added` finds those of all.
__device__ __forceinline__ void put_rows(const C* numerator, const real* weight, real4* room) {
#pragma unroll
    for (int t = 0; t < TILE_ROWS; ++t)
        room[(threadIdx.x / WARP * TILE_ROWS + t) * WARP + lane_index()] = make_real4(numerator[t].x, numerator[t].y, weight[t], 0);
}

// Row `threadIdx.x / WARP` of the sums of all warps: of those threads that have one.
__device__ __forceinline__ real4 added(const real4* room) {
    real4 sum = room[threadIdx.x];
    for (int c = 1; c < CREWS; ++c) {
        real4 next = room[c * TILE_ROWS * WARP + threadIdx.x];
        sum.x += next.x, sum.y += next.y, sum.z += next.z;
    }
    return sum;
}

// A tile at work, and the first visit that this lane reads.
struct TileWork {
    Tile tile;
    Visit mine;
};

__device__ __forceinline__ TileWork work_of(const Sums& sums, const Tile& tile) {
    return {tile, own_visit(sums, tile.begin + threadIdx.x / WARP, tile.end)};
}

// Calls `take(sum, pixel, o)` with conj(P) exit and |P|^2 summed over the visits of a tile for each of its pixels and each object mode. Gives the work on
// tile `next`, which is loaded meanwhile: each load waits for the one before it.
template <class Take> __device__ __forceinline__ TileWork gather(const Model& model, const C* exits, const Sums& sums,
                                                                 const TileWork& work, const Tile* next, real4* room, Take take) {
    const Tile& tile = work.tile;
    const Storage storage = model.storages[tile.storage];
    const int row = tile.row + threadIdx.x / WARP, col = tile.col + lane_index();
    TileWork coming;
#pragma unroll
    for (int o = 0; o < OBJECTS; ++o) {
        C numerator[TILE_ROWS];
        real weight[TILE_ROWS];
#pragma unroll
        for (int t = 0; t < TILE_ROWS; ++t) numerator[t] = make_real2(0, 0), weight[t] = 0;
        add_visits(model, exits, 0, sums, tile.begin + threadIdx.x / WARP, tile.end, work.mine, o, numerator, weight);
        Tile after;
        if (o == OBJECTS - 1) after = *next;
        put_rows(numerator, weight, room);
        __syncthreads();
        if (o == OBJECTS - 1) coming = work_of(sums, after);
        if (threadIdx.x < TILE_ROWS * WARP && row < storage.height && col < storage.width)
            take(added(room), storage.offset + ((u64)o * storage.height + row) * storage.width + col, o);
        __syncthreads();
    }
    return coming;
}

__device__ __forceinline__ void update_object(const Model& model, const Update& update, u64 pixel, real4 sum) {
    C* target = model.object + pixel;
    const C value = *target * update.object_inertia + make_real2(sum.x, sum.y);
    const real over = update.object_inertia + sum.z;
    if (over > 0) *target = clipped(value * (1 / over), update.low, update.high);
}

// The objects from the sums of all tiles. Backwards: the waves of the last views are still in the second-level cache.
__device__ __forceinline__ void update_tiles(const Model& model, const C* exits, const Sums& sums, const Update& update,
                                             real4* room) {
    const Tile* last = sums.tiles + sums.tile_count - 1;
    if (blockIdx.x >= sums.tile_count) return;
    TileWork work = work_of(sums, *(last - blockIdx.x));
    for (u32 t = blockIdx.x; t < sums.tile_count; t += gridDim.x) {
        const u32 next = t + gridDim.x < sums.tile_count ? t + gridDim.x : t;
        work = gather(model, exits, sums, work, last - next, room,
                      [&](real4 sum, u64 pixel, int) { update_object(model, update, pixel, sum); });
    }
}
