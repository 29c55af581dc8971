// settle: what becomes of a particle that leaves its tile: another tile, the sides of the domain.

#include "walls.cu"
#include "quadratic_rest.cu"
#include "team.cu"

__device__ __forceinline__ Tile tile_of(const Domain& d, const Store& st, u32 unit, u32 whole = 0) {
    Tile t;
    t.whole = whole;
    unit = owner_of(st, unit);
    if (unit == NONE) unit = 0;  // any: nobody is there
    u32 number = unit / st.parts;
    t.part = unit - number * st.parts;
    t.x = first_cell(d, int(number) % d.tiles[0]);
    t.y = int(number) / d.tiles[0] * TY;
    t.nx = min(TX, d.cells[0] - t.x);
    t.ny = min(TY, d.cells[1] - t.y);
    t.low = max(0, -t.x);
    return t;
}
// A particle that goes to the part of the run above this one (`end` 1) or below it: column `x`, for part `part` of a tile's units.
#define SLAB_HEADER 16  // bytes in front of the records: how many there are
__device__ __noinline__ void depart(const Store& st, int end, Record r, int x, u32 part) {
    u8* slab = st.away[end];
    u32 k = atomicAdd(reinterpret_cast<u32*>(slab), 1u);
    if (k >= st.away_room) {
        atomicAdd(&st.counters->lost, 1u);
        return;
    }
    r.unit = u32(x);
    r.cell = part;
    reinterpret_cast<Record*>(slab + SLAB_HEADER)[k] = r;
}
__device__ __forceinline__ bool outside(const Tile& t, int x, int y) {
    return (u32(x - t.low) >= u32(t.nx - t.low)) | (u32(y) >= u32(t.ny));
}

// Number `k` of what the warps have together, `n` of each: of which warp, and its number there.
__device__ __forceinline__ u32 warp_of(const u32* n, u32& k) {
    u32 warp = 0;
    while (k >= n[warp]) k -= n[warp++];
    return warp;
}
__device__ __forceinline__ u32 sum_of(const u32* n) {
    u32 sum = 0;
#pragma unroll
    for (u32 warp = 0; warp < WARPS; warp++) sum += n[warp];
    return sum;
}

// The lanes `who` of a warp have particles `p` that are in cell (x, y), counted from the tile's first: into its outbox, which is emptied in time
// (see `advance`): where it could not take another round after this one, `k`, the warp stops. Until then `unit` and `cell` of a record are the cell
// in the domain.
__device__ __forceinline__ void leave(const Store& st, const Tile& t, u32& sent, ParticleStream& s, u32 who, ParticleValues p,
                                      int x, int y, u32 k) {
    u32 first = sent, all = first + __popc(who);
    if (who >> lane_index() & 1) {
        p.cell = u32(t.y + y);
        st.outbox[u64(blockIdx.x * WARPS + threadIdx.x / WARP) * OUT + first + __popc(who & below())] = record(u32(t.x + x), p);
    }
    __syncwarp();
    if (lane_index() == 0) {
        sent = all;
        if (all > OUT - WARP) s.stop = min(s.stop, k + WARP);
    }
    __syncwarp();
}

// All outboxes of a block, `sent` records in those of its warps, between two barriers: into the inboxes, also of the same unit where a wall
// sends a particle back. The last warp has other work then and comes last.
__device__ __forceinline__ void settle(const Domain& d, const Store& st, const Walls& walls, const Tile& t, const Sums& j,
                                       const Push& push, const u32* sent, bool teams) {
    const u32 all = sum_of(sent);
    for (u32 k = (2 * BLOCK - WARP - 1 - threadIdx.x) % BLOCK; k < all; k += BLOCK) {
        u32 at = k, warp = warp_of(sent, at);
        Record r = st.outbox[u64(blockIdx.x * WARPS + warp) * OUT + at];
        int x = int(r.unit), y = int(r.cell);
        if (x < 0 || x >= d.cells[0] || y < 0 || y >= d.cells[1]) {
            real weight = WEIGHTED ? r.v[4 + WEIGHTED] : real(1);
#if ORDER == 2
            // Outwards of the whole domain.
            int di = x < 0 ? -1 : int(x >= d.cells[0]), dj = d.row + y < 0 ? -1 : int(d.row + y >= d.height),
                node = (y - t.y + MARGIN) * JX + x - t.x + MARGIN;
#endif
            if (!meet_walls(d, walls, st.counters, x, y, r.v, weight)) {
#if ORDER == 2
                vanish(j, node, r.v[0], r.v[1], di, dj, unit_of(push, weight));
#endif
                continue;
            }
            if (y < 0 || y >= d.cells[1]) {
                depart(st, y >= 0, r, x, t.part);
                continue;
            }
        }
        int tx = tile_column(d, x), ty = y / TY;
        r.unit = u32(ty * d.tiles[0] + tx) * st.parts + t.part;
        if (teams) r.unit = member_of(st, r.unit, u32(bits(r.v[0])));
        r.cell = u32(x) | u32(y - ty * TY) << 8;
        post(st, r);
    }
}
