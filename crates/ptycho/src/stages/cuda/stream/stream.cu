// Sums over views block by block, for frames that are not all on the device at once: what sums.cu adds up in one go, in the same order, so
// that the bits are the same.

#include "probe_sums.cu"

// Place of a value of the sums of tiles' sections, [sums][OBJECTS][3][TILE_ROWS * WARP]: real part, imaginary part and weight.
__device__ __forceinline__ real* section_sum(real* all, u32 place, int o) {
    return all + ((u64)place * OBJECTS + o) * (3 * TILE_ROWS * WARP) + threadIdx.x;
}

// conj(P) exit and |P|^2 of the block's views. Where the sum of a section is complete it goes to `sections`, or updates the tile, or is written to `to`
// if there is one, if the tile has no other. `exits` begins with view `first`; `held` [slots][OBJECTS][CREWS][TILE_ROWS][WARP]. Grid: touches of the
// block.
extern "C" __global__ void __launch_bounds__(TEAM, CROWD)
    object_part(Model model, const C* exits, u32 first, Sums sums, const TileRange* touches, C* held, real* held_weights,
                real* sections, Update update, C* to) {
    __shared__ real4 room[CREWS * TILE_ROWS * WARP];
    const TileRange touch = touches[blockIdx.x];
    const int lane = lane_index(), crew = threadIdx.x / WARP;
    // Visits go round the crews from the section's first one on, wherever the block begins.
    const u32 start = touch.begin + (crew + CREWS - touch.crew) % CREWS;
    for (int o = 0; o < OBJECTS; ++o) {
        C numerator[TILE_ROWS];
        real weight[TILE_ROWS];
        const u64 mine = (((u64)touch.slot * OBJECTS + o) * CREWS + crew) * (TILE_ROWS * WARP) + lane;
#pragma unroll
        for (int t = 0; t < TILE_ROWS; ++t) {
            numerator[t] = touch.state & 1 ? make_real2(0, 0) : held[mine + t * WARP];
            weight[t] = touch.state & 1 ? 0.0f : held_weights[mine + t * WARP];
        }
        add_visits(model, exits, first, sums.visits, start, touch.end, o, numerator, weight);
        if (!(touch.state & 2)) {
#pragma unroll
            for (int t = 0; t < TILE_ROWS; ++t) held[mine + t * WARP] = numerator[t], held_weights[mine + t * WARP] = weight[t];
            continue;
        }
        const real4 sum = sum_crews(numerator, weight, room);
        if (!(touch.state & 4)) {
            put_sum(model, sums.tiles[touch.tile], o, sum, update, to);
        } else if (crew < TILE_ROWS) {
            real* kept = section_sum(sections, touch.place, o);
            kept[0] = sum.x, kept[TILE_ROWS * WARP] = sum.y, kept[2 * TILE_ROWS * WARP] = sum.z;
        }
    }
}

// Adds up the sums of tiles' sections in their order. Grid: tiles; blocks of TILE_ROWS * WARP.
extern "C" __global__ void __launch_bounds__(TILE_ROWS* WARP)
    join_sections(Model model, Sums sums, const SectionedTile* tiles, const u32* places, real* sections, Update update, C* to) {
    const SectionedTile joined = tiles[blockIdx.x];
    for (int o = 0; o < OBJECTS; ++o) {
        real4 sum;
        for (u32 k = joined.begin; k < joined.end; ++k) {
            const real* kept = section_sum(sections, places[k], o);
            const real4 next = make_real4(kept[0], kept[TILE_ROWS * WARP], kept[2 * TILE_ROWS * WARP], 0);
            sum = k == joined.begin ? next : added(sum, next);
        }
        put_sum(model, sums.tiles[joined.tile], o, sum, update, to);
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
