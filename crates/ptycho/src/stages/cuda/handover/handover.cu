// Values of tiles, one behind the other as parts of a run send them: [tiles][OBJECTS][TILE_ROWS][WARP].

#include "sums.cu"

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
