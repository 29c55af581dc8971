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

__device__ __forceinline__ real4 added(real4 a, real4 b) { return make_real4(a.x + b.x, a.y + b.y, a.z + b.z, 0); }

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

// Adds visits `begin`, `begin` + CREWS, .. before `end`; the same for all lanes.
__device__ __forceinline__ void add_visits(const Model& model, const C* exits, u32 first, const Visit* visits, u32 begin, u32 end,
                                           int o, C* numerator, real* weight) {
    for (u32 base = begin; base < end; base += TEAM) {
        // A lane reads the visit that its crew comes to in turn `lane`.
        u32 at = base + lane_index() * CREWS;
        Visit mine = at < end ? visits[at] : Visit{0xffffffffu, 0};
#pragma unroll 2
        for (int turn = 0; turn < WARP; ++turn) {
            u32 n = __shfl_sync(FULL_WARP, mine.view, turn);
            i32 corner = __shfl_sync(FULL_WARP, mine.corner, turn);
            if (n == 0xffffffffu) break;
            add_visit(model, exits, first, n, corner, o, numerator, weight);
        }
    }
}

// Sum over the crews of what each has: value `row` of lane `x` to warp `row` of the block. All threads call this.
__device__ __forceinline__ real4 sum_crews(const C* numerator, const real* weight, real4* room) {
    const int lane = lane_index(), crew = threadIdx.x / WARP;
#pragma unroll
    for (int t = 0; t < TILE_ROWS; ++t)
        room[(crew * TILE_ROWS + t) * WARP + lane] = make_real4(numerator[t].x, numerator[t].y, weight[t], 0);
    __syncthreads();
    real4 sum = make_real4(0, 0, 0, 0);
    if (crew < TILE_ROWS) {
        sum = room[crew * WARP + lane];
        for (int c = 1; c < CREWS; ++c) sum = added(sum, room[(c * TILE_ROWS + crew) * WARP + lane]);
    }
    __syncthreads();
    return sum;
}

// conj(P) exit and |P|^2 summed over the visits of a tile, section by section, for object mode `o`: value `row` of lane `x` to warp `row` of the
// block.
__device__ __forceinline__ real4 gather(const Model& model, const C* exits, const Sums& sums, const Tile& tile, int o,
                                        real4* room) {
    const u32 crew = threadIdx.x / WARP;
    // Of the sections before. Few tiles have such: in registers or shared memory it would cost all of them the room of probes in the cache.
    volatile real before[3];
    u32 begin = tile.begin;
    for (u32 k = 0;; ++k) {
        const u32 end = k < tile.cuts ? sums.cuts[tile.cut + k] : tile.end;
        C numerator[TILE_ROWS];
        real weight[TILE_ROWS];
#pragma unroll
        for (int t = 0; t < TILE_ROWS; ++t) numerator[t] = make_real2(0, 0), weight[t] = 0;
        add_visits(model, exits, 0, sums.visits, begin + crew, end, o, numerator, weight);
        real4 sum = sum_crews(numerator, weight, room);
        if (k) sum = added(make_real4(before[0], before[1], before[2], 0), sum);
        if (k == tile.cuts) return sum;
        before[0] = sum.x, before[1] = sum.y, before[2] = sum.z;
        begin = end;
    }
}

// Takes a sum over all views, at `row` and column `lane` of a tile, to the object, or to `to` if there is one.
__device__ __forceinline__ void put_sum(const Model& model, const Tile& tile, int o, real4 sum, const Update& update, C* to) {
    const Storage storage = model.storages[tile.storage];
    const int row = tile.row + threadIdx.x / WARP, col = tile.col + lane_index();
    if (threadIdx.x >= TILE_ROWS * WARP || row >= storage.height || col >= storage.width) return;
    const u64 pixel = storage.offset + ((u64)o * storage.height + row) * storage.width + col;
    if (to) {
        to[pixel] = make_real2(sum.x, sum.y);
        return;
    }
    C* target = model.object + pixel;
    C all = *target * update.object_inertia + make_real2(sum.x, sum.y);
    real over = update.object_inertia + sum.z;
    if (over > 0) *target = clipped(all * (1 / over), update.low, update.high);
}
