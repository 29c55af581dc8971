// Turns of a block: the units that it works on one after the other.

#include "lists.cu"
#include "settle.cu"

// Before they are needed, particles are asked into the L2 cache, a page by one lane: without it 13 % slower when cold.
__device__ __forceinline__ void ask_for(const Store& st, const PageList& list, u32 k) {
#if __CUDA_ARCH__ >= 900
    if (k % PAGE == 0 && k + AHEAD < list.plain) {
        u32 page = __shfl_sync(FULL_WARP, list.mine, (k + AHEAD) >> SHIFT);
        if (lane_index() == 0)
            asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(slot_at(st, page, 0).page), "r"(PAGE_BYTES));
    }
#endif
}
// Unit of turn `swap_pages`: helpers first, which have the heavy ones.
__device__ __forceinline__ u32 unit_at(const Store& st, u32 helping, u32 turn) {
    return turn < helping ? st.units + turn : turn - helping;
}

// Turn `swap_pages`, by a warp: what each warp reads of its unit, and its tile; where there is nothing, no more than that.
__device__ __forceinline__ void look_up(const Domain& d, const Store& st, ParticleStream* streams, Tile& tile, u32 helping, u32 all,
                                        u32 turn) {
    if (turn >= all) return;
    const u32 unit = unit_at(st, helping, turn);
    ParticleStream found = stream_of(st, unit);
    if (lane_index() < WARPS) streams[lane_index()] = found;
    if (lane_index() == 0) tile = tile_of(d, st, unit, found.whole);
}

// After turn `swap_pages`, by a warp, whose `then` is the next turn.
__device__ __forceinline__ void next_turn(const Domain& d, const Store& st, ParticleStream* streams, const ParticleStream& stream,
                                          Tile& tile, u32 helping, u32 all, u32 then) {
    const ParticleStream was = stream;
    __syncwarp();
    look_up(d, st, streams, tile, helping, all, __shfl_sync(FULL_WARP, then, 0));
    // Pages for a quarter more than came now, and for a sixteenth of the unit at least.
    if (was.whole) prepare(st, was.unit, was.inbox, max(was.arrived + was.arrived / 4 + WARP, was.whole / 16));
    if (lane_index() == 0) find_heavy(st, was.unit, was.whole);
}

// Energy and momentum of the particles of a block.
__device__ __forceinline__ void write_moments(double* to, double energy, const double* momentum, double* scratch) {
    double sums[4] = {energy, momentum[0], momentum[1], momentum[2]};
    for (int c = 0; c < 4; c++) {
        double sum = block_reduce<Sum<double>>(sums[c], scratch);
        if (threadIdx.x == 0) to[c] = sum;
    }
}
