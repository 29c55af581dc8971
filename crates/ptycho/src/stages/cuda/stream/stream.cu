// Sums over views block by block, for frames that are not all on the device at once: what sums.cu adds up in one go, in the same order, so
// that the bits are the same.

#include "probe_sums.cu"

// Visits go round the warps from a tile's first one on, wherever a block of frames begins: the first one of this warp.
__device__ __forceinline__ u32 first_visit(const TileRange& touch, const Tile& tile) {
    const u32 crew = threadIdx.x / WARP;
    return touch.begin + (crew + CREWS - (touch.begin - tile.begin) % CREWS) % CREWS;
}

// conj(P) exit and |P|^2 of the block's views, of `count` touches of tiles; a tile that is complete is updated, or written to `to` if there is one. `exits`
// begins with view `first`; `held` [slots][OBJECTS][CREWS][TILE_ROWS][WARP]. Grid: any number of blocks.
extern "C" __global__ void __launch_bounds__(TEAM, CROWD)
    object_part(Model model, const C* exits, u32 first, Sums sums, const TileRange* touches, u32 count, C* held, real* held_weights,
                Update update, C* to) {
    __shared__ real4 room[CREWS * TILE_ROWS * WARP];
    if (blockIdx.x >= count) return;
    TileRange touch = touches[blockIdx.x];
    Tile tile = sums.tiles[touch.tile];
    Visit mine = own_visit(sums, first_visit(touch, tile), touch.end);
    for (u32 i = blockIdx.x; i < count; i += gridDim.x) {
        const Storage storage = model.storages[tile.storage];
        const int row = tile.row + threadIdx.x / WARP, col = tile.col + lane_index();
        TileRange after;
        Tile coming;
#pragma unroll
        for (int o = 0; o < OBJECTS; ++o) {
            C numerator[TILE_ROWS];
            real weight[TILE_ROWS];
            const u64 own = (((u64)touch.slot * OBJECTS + o) * CREWS + threadIdx.x / WARP) * (TILE_ROWS * WARP) + lane_index();
#pragma unroll
            for (int t = 0; t < TILE_ROWS; ++t) {
                numerator[t] = touch.state & 1 ? make_real2(0, 0) : held[own + t * WARP];
                weight[t] = touch.state & 1 ? 0.0f : held_weights[own + t * WARP];
            }
            add_visits(model, exits, first, sums, first_visit(touch, tile), touch.end, mine, o, numerator, weight);
            // What comes next is loaded meanwhile: each load waits for the one before it.
            if (o == OBJECTS - 1) after = touches[i + gridDim.x < count ? i + gridDim.x : i];
            if (!(touch.state & 2)) {
#pragma unroll
                for (int t = 0; t < TILE_ROWS; ++t) held[own + t * WARP] = numerator[t], held_weights[own + t * WARP] = weight[t];
                if (o == OBJECTS - 1) coming = sums.tiles[after.tile];
                continue;
            }
            put_rows(numerator, weight, room);
            __syncthreads();
            if (o == OBJECTS - 1) coming = sums.tiles[after.tile];
            if (threadIdx.x < TILE_ROWS * WARP && row < storage.height && col < storage.width) {
                const real4 sum = added(room);
                const u64 pixel = storage.offset + ((u64)o * storage.height + row) * storage.width + col;
                if (to) to[pixel] = make_real2(sum.x, sum.y);
                else update_object(model, update, pixel, sum);
            }
            __syncthreads();
        }
        touch = after, tile = coming, mine = own_visit(sums, first_visit(touch, tile), touch.end);
    }
}

// conj(O) exit and |O|^2 of the block's views, added to the sums of the parts. Grid: (pixels / PAIR / TEAM, pieces of the block).
extern "C" __global__ void __launch_bounds__(TEAM, CROWD)
    probe_part(Model model, const C* exits, u32 first, Sums sums, const PartRange* batches) {
    const u32 pixel = (blockIdx.x * TEAM + threadIdx.x) * PAIR;
    if (pixel >= NX * NY) return;
    const PartRange piece = batches[blockIdx.y];
    const bool fresh = piece.state & 1;
    C numerator[PAIR * PROBES];
    real2 weight = make_real2(0, 0);
#if PAIR == 1
    if (!fresh) weight.x = sums.weights[(u64)piece.part * (NX * NY) + pixel];
#else
    if (!fresh) weight = *(real2*)(sums.weights + (u64)piece.part * (NX * NY) + pixel);
#endif
#pragma unroll
    for (int q = 0; q < PROBES; ++q) {
        const C* kept = sums.numerators + ((u64)piece.part * PROBES + q) * (NX * NY) + pixel;
#if PAIR == 1
        numerator[q] = fresh ? make_real2(0, 0) : *kept;
#else
        real4 old = fresh ? make_real4(0, 0, 0, 0) : *(const real4*)kept;
        numerator[2 * q] = make_real2(old.x, old.y), numerator[2 * q + 1] = make_real2(old.z, old.w);
#endif
    }
    add_views(model, exits, first, sums.listed, piece.begin, piece.end, pixel, numerator, weight);
    keep_part(sums, piece.part, pixel, numerator, weight);
}

// The squared relative change of the probes that `overlap` ends its loop by, from what it has left of `blocks` blocks. Grid: 1.
extern "C" __global__ void __launch_bounds__(TEAM) change(Sums sums, u32 blocks, real* to) {
    __shared__ real2 scratch[CREWS];
    real moved = 0;
    for (u32 set = 0; set < sums.sets; ++set) {
        real2 change = make_real2(0, 0);
        for (u32 b = threadIdx.x; b < blocks; b += TEAM) change = change + sums.changes[set * blocks + b];
        change = block_sum(change, scratch);
        moved += change.x / fmax(change.y, real(1e-37));
    }
    if (threadIdx.x == 0) *to = moved;
}
