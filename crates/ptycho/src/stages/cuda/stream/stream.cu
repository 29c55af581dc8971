// Sums over views block by block, for frames that are not all on the device at once: what sums.cu adds up in one go, in the same order, so
// that the bits are the same.

#include "probe_sums.cu"

// conj(P) exit and |P|^2 of the block's views; a tile that is complete is updated, or written to `to` if there is one. `exits` begins with view
// `first`; `held` [slots][OBJECTS][CREWS][TILE_ROWS][WARP]. Grid: touches of the block.
extern "C" __global__ void __launch_bounds__(TEAM, CROWD)
    object_part(Model model, const C* exits, u32 first, Sums sums, const TileRange* touches, C* held, real* held_weights,
                Update update, C* to) {
    __shared__ real4 room[CREWS * TILE_ROWS * WARP];
    const TileRange touch = touches[blockIdx.x];
    const Tile tile = sums.tiles[touch.tile];
    const Storage storage = model.storages[tile.storage];
    const int lane = lane_index(), crew = threadIdx.x / WARP;
    // Visits go round the crews from the tile's first one on, wherever the block begins.
    const u32 start = touch.begin + (crew + CREWS - (touch.begin - tile.begin) % CREWS) % CREWS;
    for (int o = 0; o < OBJECTS; ++o) {
        C numerator[TILE_ROWS];
        real weight[TILE_ROWS];
        const u64 mine = (((u64)touch.slot * OBJECTS + o) * CREWS + crew) * (TILE_ROWS * WARP) + lane;
#pragma unroll
        for (int t = 0; t < TILE_ROWS; ++t) {
            numerator[t] = touch.state & 1 ? make_real2(0, 0) : held[mine + t * WARP];
            weight[t] = touch.state & 1 ? 0.0f : held_weights[mine + t * WARP];
        }
        for (u32 base = start; base < touch.end; base += TEAM) {
            u32 at = base + lane * CREWS;
            Visit mine = at < touch.end ? sums.visits[at] : Visit{0xffffffffu, 0};
#pragma unroll 2
            for (int turn = 0; turn < WARP; ++turn) {
                u32 n = __shfl_sync(FULL_WARP, mine.view, turn);
                i32 corner = __shfl_sync(FULL_WARP, mine.corner, turn);
                if (n == 0xffffffffu) break;
                add_visit(model, exits, first, n, corner, o, numerator, weight);
            }
        }
        if (!(touch.state & 2)) {
#pragma unroll
            for (int t = 0; t < TILE_ROWS; ++t) held[mine + t * WARP] = numerator[t], held_weights[mine + t * WARP] = weight[t];
            continue;
        }
#pragma unroll
        for (int t = 0; t < TILE_ROWS; ++t)
            room[(crew * TILE_ROWS + t) * WARP + lane] = make_real4(numerator[t].x, numerator[t].y, weight[t], 0);
        __syncthreads();
        int row = tile.row + crew, col = tile.col + lane;
        if (crew < TILE_ROWS && row < storage.height && col < storage.width) {
            real4 all = room[crew * WARP + lane];
            for (int c = 1; c < CREWS; ++c) {
                real4 next = room[(c * TILE_ROWS + crew) * WARP + lane];
                all.x += next.x, all.y += next.y, all.z += next.z;
            }
            const u64 pixel = storage.offset + ((u64)o * storage.height + row) * storage.width + col;
            if (to) {
                to[pixel] = make_real2(all.x, all.y);
            } else {
                C* target = model.object + pixel;
                C sum = *target * update.object_inertia + make_real2(all.x, all.y);
                real over = update.object_inertia + all.z;
                if (over > 0) *target = clipped(sum * (1 / over), update.low, update.high);
            }
        }
        __syncthreads();
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
