// Data that parts of a run send: values of tiles, one behind the other, [tiles][OBJECTS][TILE_ROWS][WARP], and sums of bundles.

#include "probe_sums.cu"

// Calls `carry(at, slot)` with the place of this thread's value of each layer among the objects' and among those of the listed tiles. Grid: tiles.
template <typename Carry>
__device__ __forceinline__ void each_value(const Model& model, const Sums& sums, const u32* list, Carry carry) {
    const Tile tile = sums.tiles[list[blockIdx.x]];
    const Storage storage = model.storages[tile.storage];
    const int t = threadIdx.x / WARP, lane = lane_index(), row = tile.row + t, col = tile.col + lane;
    if (t >= TILE_ROWS || row >= storage.height || col >= storage.width) return;
    for (int o = 0; o < OBJECTS; ++o)
        carry(storage.offset + ((u64)o * storage.height + row) * storage.width + col,
              (((u64)blockIdx.x * OBJECTS + o) * TILE_ROWS + t) * WARP + lane);
}

extern "C" __global__ void __launch_bounds__(TEAM) tiles_out(Model model, Sums sums, const u32* list, const C* values, C* packed) {
    each_value(model, sums, list, [&](u64 at, u64 slot) { packed[slot] = values[at]; });
}

extern "C" __global__ void __launch_bounds__(TEAM) tiles_in(Model model, Sums sums, const u32* list, C* values, const C* packed) {
    each_value(model, sums, list, [&](u64 at, u64 slot) { values[at] = packed[slot]; });
}

// Sums for the probes of bundles from number `first` on, to `numerators` [bundles][PROBES][NY * NX] and `weights` [bundles][NY * NX]. Grid:
// (pixels / TEAM, bundles).
extern "C" __global__ void __launch_bounds__(TEAM) bundle_sums(Sums sums, u32 first, C* numerators, real* weights) {
    const u32 pixel = blockIdx.x * TEAM + threadIdx.x, b = first + blockIdx.y;
    if (pixel >= NX * NY) return;
    C sum[PROBES];
    weights[(u64)b * (NX * NY) + pixel] = sum_bundle(sums, b, pixel, sum);
    for (int q = 0; q < PROBES; ++q) numerators[((u64)b * PROBES + q) * (NX * NY) + pixel] = sum[q];
}
