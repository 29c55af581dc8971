// The flights that hit something: sides of the domain, bodies, cells of another weight. A thread a particle, in double precision: they are
// few.

#include "arrive.cu"
#include "copies.cu"
#include "send.cu"

// Sends what lies in a slot to a tile, as so many; NONE if it went to another part.
__device__ __forceinline__ void goes_to(const Store& st, u32 tile, u32 slot, u32 copies) {
#if RECORDED
    hang(st, tile, slot, copies);
#else
    goals(st.now)[slot] = tile;
    if (WEIGHTED) copies_of(st.now)[slot] = copies;
#endif
}

// Writes a particle that has flown into a slot of `next`, on its way to the tile where it arrived, as so many. `number` is its number
// in its tile or among the injected ones, `rank` its place in the order of those from afar.
__device__ __forceinline__ void arrive_at(const Store& st, const Geometry& g, const Flight& f, u32 species, const Motion& a,
                                          u32 slot, u32 copies, u32 number, u64 rank) {
    float2 offset = stored_offset(g, f);
    st.next.x[slot] = offset.x;
    st.next.y[slot] = offset.y;
    st.next.vx[slot] = float(a.v[0]);
    st.next.vy[slot] = float(a.v[1]);
    st.next.vz[slot] = float(a.v[2]);
    if (ROTATES) st.next.rotation[slot] = float(a.rotation);
    if (VIBRATES) st.next.level[slot] = Level(a.level);
    st.next.key[slot] = u16(key_of(f.cell[0], f.cell[1], species) | LEFT);
    // By the golden ratio: all layers get as many.
    u32 layer = LAYERS == 1 ? 0 : __umulhi(number * 0x9e3779b1u, LAYERS), tile = tile_of(st, f.cell[0], f.cell[1], layer);
    goes_to(st, tile, slot, copies);
#if PARTS
    if (tile == NONE) {
        send_far(st, f.cell[0], f.cell[1], layer, slot, copies, rank);
        return;
    }
#endif
    atomicAdd(st.far_in + tile, copies);
}

// A leaver that may hit something, or goes far.
__device__ __forceinline__ void wander_one(const Store& st, const Domain& d, const Geometry& g, uint2 one) {
    u32 tile = one.x & ~FREE, slot = one.y, index = slot - st.next_first[tile];
    u32 key = st.next.key[slot] & ~LEFT, species = key % SPECIES, cell = key / SPECIES;
    Flight f{};
    int2 origin = tile_coordinates(st, tile);
    const u64 item = u64(number_in_domain(st, tile)) << 28 | index;
    f.cell[0] = origin.x << SX | int(cell & ((1 << SX) - 1));
    f.cell[1] = origin.y << SY | int(cell >> SX);
    if (one.x & FREE) {
        float x = st.next.x[slot], y = st.next.y[slot];
        int2 by = glide(d.path, st.next.vx[slot], st.next.vy[slot], x, y);
        st.next.x[slot] = x;
        st.next.y[slot] = y;
        for (int k = 0; k < 2; k++) f.cell[k] += k ? by.y : by.x;
        st.next.key[slot] = u16(key_of(f.cell[0], f.cell[1], species) | LEFT);
        u32 to = tile_of(st, f.cell[0], f.cell[1], tile + 1);
        goes_to(st, to, slot, 1);
#if PARTS
        if (to == NONE) send_far(st, f.cell[0], f.cell[1], tile + 1, slot, 1, item);
#endif
        return;
    }
    f.offset[0] = st.next.x[slot];
    f.offset[1] = st.next.y[slot];
    Motion a{{st.next.vx[slot], st.next.vy[slot], st.next.vz[slot]},
             ROTATES ? st.next.rotation[slot] : 0.0f,
             VIBRATES ? u32(st.next.level[slot]) : 0u};
    Stream u(WALL, d.seed, step_of(d.step), item << 10);
    double weight = weight_at(st, d, f.cell);
    bool stays = trace(d, g, f, species, a, weight, 1.0, u, st.counters);
    u32 copies = stays ? copies_at(st, d, f, weight, slot, u) : 0;
    if (copies) {
        arrive_at(st, g, f, species, a, slot, copies, index, item);
    } else {
        st.next.key[slot] = u16(GONE);
        if (!stays) atomicAdd(&st.counters->removed, 1ull);
    }
}

// All of them, by warp number `warp` of `warps`. Of a small gas each warp has few, so that those of a warp, which all go their own way, do not
// wait for each other; of others it has those that stand together, which go through the same cells.
__device__ __forceinline__ void wander(const Store& st, const Domain& d, const Geometry& g, u32 warp, u32 warps) {
    u32 n = st.counters->special, k = RECORDED ? lane_index() * warps + warp : warp * 32 + lane_index();
    // The first one of a small gas is asked for before their number is known.
    uint2 one = RECORDED && k < st.capacity ? wanderer(st, st.now, k) : uint2{};
    for (bool first = RECORDED; k < n; k += 32 * warps, first = false) {
        if (!first) one = wanderer(st, st.now, k);
        wander_one(st, d, g, one);
    }
}
