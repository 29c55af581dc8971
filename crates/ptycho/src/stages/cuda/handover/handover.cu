// Data that parts of a run send: values of tiles, one behind the other, [tiles][OBJECTS][TILE_ROWS][WARP], sums of bundles, and waves of batches.

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

// Waves of a batch in its order, [views][MODES * NY * NX], from those part by part, in which each view has its place: the `count` ones of this part,
// which lie by themselves, begin at place `first`. Grid: (any, views).
extern "C" __global__ void __launch_bounds__(TEAM)
    waves_in(const C* own, const C* told, const u32* places, u32 first, u32 count, C* all) {
    const u32 place = places[blockIdx.y];
    const bool here = place - first < count;
    const C* from = here ? own + (u64)(place - first) * (MODES * NX * NY) : told + (u64)place * (MODES * NX * NY);
    C* to = all + (u64)blockIdx.y * (MODES * NX * NY);
    for (u32 i = blockIdx.x * TEAM + threadIdx.x; i < MODES * NX * NY; i += gridDim.x * TEAM) to[i] = from[i];
}
