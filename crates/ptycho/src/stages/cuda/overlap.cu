// The overlap constraint: object, then probes, until the probes rest; in one launch whose blocks wait for each other.
// Grid: as many blocks of TEAM threads as the device holds, cooperative. Bytes a pixel and mode and pass: 16. ATOMIC: the object's sums are those of
// atomic.cu.

#include "probe_sums.cu"
#include "atomic.cu"

extern "C" __global__ void __launch_bounds__(TEAM, CROWD) overlap(Model model, const C* exits, Sums sums, Update update) {
    [[maybe_unused]] __shared__ real4 room[ATOMIC ? 1 : CREWS * TILE_ROWS * WARP];
    __shared__ real2 scratch[CREWS];
    const u32 groups = (NX * NY / PAIR + TEAM - 1) / TEAM;
    u32 pass = 0;
    for (bool rest = false; pass < update.most && !rest; ++pass) {
        if (update.object && (pass > 0 || !update.probe_first || !update.probe)) {
            // Backwards: the waves of the last views are still in the second-level cache.
#if ATOMIC
            for (u32 w = blockIdx.x; w < sums.views * STRIPS; w += gridDim.x)
                scatter<true>(model, exits, sums, 0, sums.views * STRIPS - 1 - w);
            grid_barrier(sums.barrier);
            for (u64 i = thread_index(); i < sums.values; i += thread_count()) update_object_value(model, sums, i, update);
#else
            for (u32 t = blockIdx.x; t < sums.tile_count; t += gridDim.x) {
                const Tile tile = sums.tiles[sums.tile_count - 1 - t];
                for (int o = 0; o < OBJECTS; ++o) put_sum(model, tile, o, gather(model, exits, sums, tile, o, room), update, 0);
            }
#endif
            grid_barrier(sums.barrier);
        }
        if (!update.probe) {
            rest = true;
            continue;
        }
        for (u32 w = blockIdx.x; w < sums.part_count * groups; w += gridDim.x) {
            u32 pixel = (w % groups * TEAM + threadIdx.x) * PAIR;
            if (pixel < NX * NY) sum_probe(model, exits, sums, w / groups, pixel);
        }
        grid_barrier(sums.barrier);
        for (u32 set = 0; set < sums.sets; ++set) {
            real2 change = make_real2(0, 0);
            for (u32 w = thread_index(); w < NX * NY; w += thread_count()) change = change + update_probe(model, sums, set, w);
            change = block_sum(change, scratch);
            if (threadIdx.x == 0) sums.changes[set * gridDim.x + blockIdx.x] = change;
        }
        grid_barrier(sums.barrier);
        real moved = 0;
        for (u32 set = 0; set < sums.sets; ++set) {
            real2 change = make_real2(0, 0);
            for (u32 b = threadIdx.x; b < gridDim.x; b += TEAM) change = change + sums.changes[set * gridDim.x + b];
            change = block_sum(change, scratch);
            moved += change.x / fmax(change.y, real(1e-37));
        }
        rest = moved < update.tolerance * update.tolerance * real(sums.sets);
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) *sums.passes = pass;
}
