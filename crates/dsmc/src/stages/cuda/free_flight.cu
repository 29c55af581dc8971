// The flight of a tile's particles where nothing can be hit.

#include "advance.cu"

// Position to which particle i of the tile comes, its new key, and the way that it takes: NONE for those that stay in the tile.
// Those that go far stay where they are, as the ones that may hit something: mirror.cu or `trace_flights` moves them.
__device__ __forceinline__ u32 fly_one(const Store& st, const Pass& p, u32 tile, int2 corner, u32 key, float vx, float vy, float& x,
                                       float& y, u32& to, u32& goal) {
    u32 cell = key / SPECIES, species = key % SPECIES;
    float nx = x, ny = y;
    int2 d = glide(p.step, vx, vy, nx, ny);
    int lx = int(cell & ((1 << SX) - 1)) + d.x, ly = int(cell >> SX) + d.y, gx = corner.x + lx, gy = corner.y + ly;
    to = key;
    bool far = max(abs(d.x), abs(d.y)) >= FARTHEST;
#if BODIES
    far = far || max(abs(d.x), abs(d.y)) >= int(p.reach[u64(tile) * CELLS + cell]);
#endif
    if (far || gx < 0 || gy < 0 || gx >= st.cells[0] || gy >= st.cells[1]) return PENDING;
#if WEIGHTED
    // Particles to be doubled or removed.
    if (p.weights[u64(number_in_domain(st, tile)) * CELLS + cell] != p.weights[cell_in_domain(st, gx, gy)]) return PENDING;
#endif
    int tx = (gx >> SX) - (corner.x >> SX), ty = (gy >> SY) - (corner.y >> SY);
    if (abs(tx) > 1 || abs(ty) > 1) {
        goal = tile_of(st, gx, gy, tile + 1);
        return FAR;
    }
    x = nx;
    y = ny;
    if (u32(lx) < 1u << SX && u32(ly) < 1u << SY) {
        to = u32(ly << SX | lx) * SPECIES + species;
        return NONE;
    }
    to = key_of(gx, gy, species);
    return u32((ty + 1) * 3 + tx + 1);
}
