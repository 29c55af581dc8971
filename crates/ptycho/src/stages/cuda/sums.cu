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

// conj(P) exit and |P|^2 summed over the visits of tile `t`, for object mode `o`: value `row` of lane `x` in warp 0 of the block.
__device__ __forceinline__ void gather(const Model& model, const C* exits, const Sums& sums, const Tile& tile, int o, C* numerator,
                                       real* weight, real4* room) {
    const int lane = lane_index(), crew = threadIdx.x / WARP;
#pragma unroll
    for (int t = 0; t < TILE_ROWS; ++t) numerator[t] = make_real2(0, 0), weight[t] = 0;
    for (u32 base = tile.begin; base < tile.end; base += TEAM) {
        // A lane reads the visit that its crew comes to in turn `lane`.
        u32 at = base + lane * CREWS + crew;
        Visit mine = at < tile.end ? sums.visits[at] : Visit{0xffffffffu, 0};
#pragma unroll 2
        for (int turn = 0; turn < WARP; ++turn) {
            u32 n = __shfl_sync(FULL_WARP, mine.view, turn);
            i32 corner = __shfl_sync(FULL_WARP, mine.corner, turn);
            if (n == 0xffffffffu) break;
            add_visit(model, exits, 0, n, corner, o, numerator, weight);
        }
    }
#pragma unroll
    for (int t = 0; t < TILE_ROWS; ++t)
        room[(crew * TILE_ROWS + t) * WARP + lane] = make_real4(numerator[t].x, numerator[t].y, weight[t], 0);
    __syncthreads();
    if (crew < TILE_ROWS) {
        real4 sum = room[crew * WARP + lane];
        for (int c = 1; c < CREWS; ++c) {
            real4 next = room[(c * TILE_ROWS + crew) * WARP + lane];
            sum.x += next.x, sum.y += next.y, sum.z += next.z;
        }
        numerator[0] = make_real2(sum.x, sum.y), weight[0] = sum.z;
    }
    __syncthreads();
}

__device__ __forceinline__ void update_tile(const Model& model, const C* exits, const Sums& sums, u32 t, const Update& update,
                                            real4* room) {
    const Tile tile = sums.tiles[t];
    const Storage storage = model.storages[tile.storage];
    for (int o = 0; o < OBJECTS; ++o) {
        C numerator[TILE_ROWS];
        real weight[TILE_ROWS];
        gather(model, exits, sums, tile, o, numerator, weight, room);
        int row = tile.row + threadIdx.x / WARP, col = tile.col + lane_index();
        if (threadIdx.x < TILE_ROWS * WARP && row < storage.height && col < storage.width) {
            C* target = model.object + storage.offset + ((u64)o * storage.height + row) * storage.width + col;
            C sum = *target * update.object_inertia + numerator[0];
            real over = update.object_inertia + weight[0];
            if (over > 0) *target = clipped(sum * (1 / over), update.low, update.high);
        }
    }
}
