// Types of all kernels of the gas. A tile has CELLS = 2^(SX + SY) cells and a region of slots of the columns; a particle's key is
// its cell in the tile times SPECIES plus its species. Regions lie one behind the other, in the order of tiles, without room between.

#include "real.cuh"

typedef unsigned short u16;
#if VIBRATES > 1
typedef u32 Level;  // a byte each mode
#else
typedef u16 Level;
#endif
#define CELLS (1u << (SX + SY))
#define KEYS (CELLS * SPECIES)
#define LISTS (THREADS / 32)  // lists of leavers of a tile, one a warp, each of its own part of the slots
#define LEFT 0x8000u          // bit of a key: this slot is not the tile's any more
#define GONE 0xffffu          // key of a slot whose particle left the domain
#define INDEX 0x0fffffffu
static_assert(KEYS < 0x7fff, "keys have 15 bits");

// Direction of a leaver: 0 to 8 the neighbour (dy + 1) * 3 + dx + 1, or
enum Direction : u32 { FAR = 9, PENDING = 10 };  // any other tile, by `goal`; not yet known

#include "store.cuh"

// More lists lie in columns that hold nothing yet or nothing more: by region of `next` the slots of `now` from which particles come,
// until the pass over the tile writes there; and from the end of the pass over all tiles, which turns `now` into `next`, to the exchange of the next
// step, by slot the tiles of those that go far, and `wanderers` (of gases that are not small).
__device__ __forceinline__ u32* arrivals(const Store& st) { return reinterpret_cast<u32*>(st.next.vx); }
__device__ __forceinline__ u32* goals(const Columns& unused) { return reinterpret_cast<u32*>(unused.vz); }

// Number of copies of each leaver that is FAR, where cells have weights: beside its tile.
__device__ __forceinline__ u32* copies_of(const Columns& unused) { return reinterpret_cast<u32*>(unused.vy); }

// Number k of those that are FAR or PENDING: tile, with FREE where nothing can be hit, and slot.
#define FREE 0x80000000u
__device__ __forceinline__ void set_wanderer(const Store& st, const Columns& unused, u32 k, u32 tile, u32 slot, u32 way) {
    uint2 one{way == FAR ? tile | FREE : tile, slot};
#if RECORDED
    st.wanderers[k] = one;
#else
    reinterpret_cast<u32*>(unused.x)[k] = one.x;
    reinterpret_cast<u32*>(unused.y)[k] = one.y;
#endif
}
__device__ __forceinline__ uint2 wanderer(const Store& st, const Columns& unused, u32 k) {
#if RECORDED
    return st.wanderers[k];
#else
    return {reinterpret_cast<u32*>(unused.x)[k], reinterpret_cast<u32*>(unused.y)[k]};
#endif
}

// Slots of a list of a region of n slots: whole warps.
__device__ __forceinline__ u32 list_part(u32 n) { return (n + 32 * LISTS - 1) / (32 * LISTS) * 32; }

// Layers of a cell that is so full that it is a tile: LAYERS tiles share it, one behind the other, and its particles: those of a
// layer collide with each other, as often as if they were all. A particle that changes cell changes to the next layer, so that layers mix.
// Coordinates of a tile in the tiling, and the tile at coordinates and any number of a layer.
// Of a run in parts the store has the tiles of its part's box and a ring of empty ones around it, which stand for those of other parts:
// coordinates count from the corner of the domain, numbers from that of the ring.
#if PARTS
#define FIRST_TILE(axis) st.lower[axis]
#else
#define FIRST_TILE(axis) 0
#endif
__device__ __forceinline__ int2 tile_coordinates(const Store& st, u32 tile) {
    return {int(tile / LAYERS % st.tiles[0]) + FIRST_TILE(0), int(tile / LAYERS / st.tiles[0]) + FIRST_TILE(1)};
}
__device__ __forceinline__ u32 tile_at(const Store& st, int x, int y, u32 layer) {
    return u32((y - FIRST_TILE(1)) * st.tiles[0] + x - FIRST_TILE(0)) * LAYERS + layer % LAYERS;
}
// True for coordinates of a tile of this part.
__device__ __forceinline__ bool owns(const Store& st, int x, int y) {
    return !PARTS || (x >= st.own[0] && x < st.own[2] && y >= st.own[1] && y < st.own[3]);
}
// Tile number `k` of this part's, and the number of a tile in the whole domain.
__device__ __forceinline__ u32 own_tile(const Store& st, u32 k) {
#if PARTS
    u32 width = u32(st.own[2] - st.own[0]), at = k / LAYERS;
    return tile_at(st, st.own[0] + int(at % width), st.own[1] + int(at / width), k % LAYERS);
#else
    return k;
#endif
}
__device__ __forceinline__ u32 number_in_domain(const Store& st, u32 tile) {
#if PARTS
    int2 at = tile_coordinates(st, tile);
    return u32(at.y * st.all + at.x) * LAYERS + tile % LAYERS;
#else
    return tile;
#endif
}

// The tile on the way from a tile, or (by sign -1) the one from which arrivals at it come by that way; NONE at the edge of the domain.
#define NONE 0xffffffffu
__device__ __forceinline__ u32 neighbour(const Store& st, u32 tile, u32 way, int sign) {
    int2 at = tile_coordinates(st, tile);
    at.x += sign * (int(way % 3) - 1);
    at.y += sign * (int(way / 3) - 1);
    int x = at.x - FIRST_TILE(0), y = at.y - FIRST_TILE(1);
    return x >= 0 && x < st.tiles[0] && y >= 0 && y < st.tiles[1] ? tile_at(st, at.x, at.y, tile % LAYERS + LAYERS + sign) : NONE;
}

// Numbers of an average beside a side that follows the gas within: `MovingAverage::numbers` of walls/subsonic.rs.
#define MOVING (6 + (SPECIES > 1 ? SPECIES : 0))

// Tile and key of a particle in a cell of the grid: NONE where it is another part's.
__device__ __forceinline__ u32 tile_of(const Store& st, int x, int y, u32 layer) {
    return owns(st, x >> SX, y >> SY) ? tile_at(st, x >> SX, y >> SY, layer) : NONE;
}
__device__ __forceinline__ u32 key_of(int x, int y, u32 species) {
    return u32((y & ((1 << SY) - 1)) << SX | (x & ((1 << SX) - 1))) * SPECIES + species;
}
// Index of a cell of the grid among those of all tiles of the domain.
__device__ __forceinline__ u64 cell_in_domain(const Store& st, int x, int y) {
    int all = PARTS ? st.all : st.tiles[0];
    return u64((y >> SY) * all + (x >> SX)) * CELLS + key_of(x, y, 0) / SPECIES;
}

// The lattice of flights that hit something, by cell, and their longest path in cells: geometry/lattice.rs.
#define BITS 24
#define ONE (i64(1) << BITS)
#define LONGEST 16.0

// Free flight: moves an offset into its new cell, and returns by how many cells that is, at most FARTHEST. Rounded as it stands, so that
// all programs find the same.
#define FARTHEST 30000
#define BELOW_ONE 0.99999994f  // the largest offset in a cell
__device__ __forceinline__ int2 glide(const float* step, float vx, float vy, float& x, float& y) {
    float px = __fadd_rn(__fmul_rn(vx, step[0]), x), py = __fadd_rn(__fmul_rn(vy, step[1]), y), fx = floorf(px), fy = floorf(py);
    x = fminf(px - fx, BELOW_ONE);
    y = fminf(py - fy, BELOW_ONE);
    return {int(fminf(fmaxf(fx, -float(FARTHEST)), float(FARTHEST))), int(fminf(fmaxf(fy, -float(FARTHEST)), float(FARTHEST)))};
}

// True if more copies were made than there is room for, with cell weights: nothing goes on, and the host finds it.
__device__ __forceinline__ bool halted(const Store& st) {
    return WEIGHTED && *reinterpret_cast<const volatile u32*>(&st.counters->refused) > 0;
}

// Waits for the kernel ahead: a kernel is there before that one has ended.
__device__ __forceinline__ void in_turn() {
    let_next_kernel_start();
    wait_for_previous_kernel();
}
