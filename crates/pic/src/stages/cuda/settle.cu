// settle: what becomes of a particle that leaves its tile: another tile, the sides of the domain.

// A tile of a unit: its first cell, its cells, and which part of it.
struct Tile {
    int x, y, nx, ny;
    u32 part;
};
__device__ __forceinline__ Tile tile_of(const Domain& d, const Store& st, u32 unit) {
    Tile t;
    unit = owner_of(st, unit);
    if (unit == NONE) unit = 0;  // any: nobody is there
    u32 number = unit / st.parts;
    t.part = unit - number * st.parts;
    t.x = int(number) % d.tiles[0] * TX;
    t.y = int(number) / d.tiles[0] * TY;
    t.nx = min(TX, d.cells[0] - t.x);
    t.ny = min(TY, d.cells[1] - t.y);
    return t;
}
__device__ __forceinline__ bool outside(const Tile& t, int x, int y) { return u32(x) >= u32(t.nx) || u32(y) >= u32(t.ny); }

// Particle `p` has left its tile for cell (x, y), counted from the tile's first: into the outbox of the block, which is emptied in
// time (see `advance`). Until then `unit` and `cell` of a record are the cell in the domain.
__device__ __forceinline__ void leave(const Store& st, const Tile& t, u32* outgoing, Slot& p, int x, int y) {
    p.cell = u32(t.y + y);
    st.outbox[u64(blockIdx.x) * OUT + atomicAdd(outgoing, 1u)] = record(u32(t.x + x), p);
}

// All of a block's outbox, between two barriers: into the inboxes, also of the same unit where a wall sends a particle back.
__device__ __forceinline__ void settle(const Domain& d, const Store& st, const Walls& walls, const Tile& t, const Sums& j, const Push& push, u32 n, bool teams) {
    for (u32 k = threadIdx.x; k < n; k += BLOCK) {
        Record r = st.outbox[u64(blockIdx.x) * OUT + k];
        int x = int(r.unit), y = int(r.cell);
        if (x < 0 || x >= d.cells[0] || y < 0 || y >= d.cells[1]) {
            real weight = WEIGHTED ? r.v[4 + WEIGHTED] : real(1);
#if ORDER == 2
            int di = x < 0 ? -1 : int(x >= d.cells[0]), dj = y < 0 ? -1 : int(y >= d.cells[1]), node = (y - t.y + MARGIN) * JX + x - t.x + MARGIN;
#endif
            if (!meet_walls(d, walls, st.counters, x, y, r.v, weight)) {
#if ORDER == 2
                vanish(j, node, r.v[0], r.v[1], di, dj, unit_of(push, weight));
#endif
                continue;
            }
        }
        int tx = x / TX, ty = y / TY;
        r.unit = u32(ty * d.tiles[0] + tx) * st.parts + t.part;
        if (teams) r.unit = member_of(st, r.unit, u32(bits(r.v[0])));
        r.cell = u32(x - tx * TX) | u32(y - ty * TY) << 8;
        post(st, r);
    }
}
