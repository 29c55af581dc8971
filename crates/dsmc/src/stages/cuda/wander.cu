// The flights that hit something: sides of the domain, bodies, cells of another weight. A thread a particle, in double precision: they are
// few.

#include "arrive.cu"
#include "trajectory.cu"

// Number weight of a particle in a cell, over the model's weight.
__device__ __forceinline__ double weight_at(const Store& st, const Domain& d, const int* cell) {
  return WEIGHTED ? double(d.weights[u64(tile_of(st, cell[0], cell[1], 0)) * CELLS + key_of(cell[0], cell[1], 0) / SPECIES]) : 1.0;
}

// Number of copies of a particle of number weight `weight` where it arrives: `Places::put` of stages/cpu/fly.rs. Copies are not
// each other's nearest-neighbour partners.
__device__ __forceinline__ u32 copies_at(const Store& st, const Domain& d, const Flight& f, double weight, u32 slot, Stream& u) {
  u32 n = 1;
#if WEIGHTED
  double here = weight_at(st, d, f.cell);
  if (here != weight) {
    n = u32(weight / here + u.open());
    if (n == 0) atomicAdd(&st.counters->dropped, 1ull);
    if (n > 1) atomicAdd(&st.counters->copied, u64(n - 1));
    if (TAGGED && n > 1 && st.next.tag[slot] == 0) st.next.tag[slot] = u.word() | 1;
  }
#endif
  return n;
}

// Sends what lies in a slot to a tile, as so many; `entry` is where its tile is listed.
__device__ __forceinline__ void goes_to(const Store& st, u32 tile, u32 slot, u32 entry, u32 copies) {
#if RECORDED
  hang(st, tile, slot, copies);
#else
  goals(st.now)[entry] = tile;
  if (WEIGHTED) copies_of(st.now)[entry] = copies;
#endif
}

// Writes a particle that has flown into a slot of `next`, on its way to the tile where it arrived, as so many; `entry` is where its tile
// is listed.
__device__ __forceinline__ void arrive_at(const Store& st, const Geometry& g, const Flight& f, u32 species, const Motion& a, u32 slot, u32 entry,
                                          u32 copies) {
  float2 offset = stored_offset(g, f);
  st.next.x[slot] = offset.x;
  st.next.y[slot] = offset.y;
  st.next.vx[slot] = float(a.v[0]);
  st.next.vy[slot] = float(a.v[1]);
  st.next.vz[slot] = float(a.v[2]);
  if (ROTATES) st.next.rotation[slot] = float(a.rotation);
  if (VIBRATES) st.next.level[slot] = Level(a.level);
  st.next.key[slot] = u16(key_of(f.cell[0], f.cell[1], species) | LEFT);
  u32 tile = tile_of(st, f.cell[0], f.cell[1], slot);
  goes_to(st, tile, slot, entry, copies);
  atomicAdd(st.far_in + tile, copies);
}

// A leaver that may hit something, or goes far. `at` is its index in the list.
__device__ __forceinline__ void wander_one(const Store& st, const Domain& d, const Geometry& g, u32 tile, u32 base, u32 at) {
  u32 entry = st.list[at], index = entry & INDEX, slot = base + index;
  u32 key = st.next.key[slot] & ~LEFT, species = key % SPECIES, cell = key / SPECIES;
  Flight f{};
  int2 origin = tile_coordinates(st, tile);
  f.cell[0] = origin.x << SX | int(cell & ((1 << SX) - 1));
  f.cell[1] = origin.y << SY | int(cell >> SX);
  if (entry >> 28 == FAR) {
    float x = st.next.x[slot], y = st.next.y[slot];
    int2 by = glide(d.path, st.next.vx[slot], st.next.vy[slot], x, y);
    st.next.x[slot] = x;
    st.next.y[slot] = y;
    st.next.key[slot] = u16(key_of(f.cell[0] + by.x, f.cell[1] + by.y, species) | LEFT);
    goes_to(st, tile_of(st, f.cell[0] + by.x, f.cell[1] + by.y, tile + 1), slot, at, 1);
    return;
  }
  f.offset[0] = st.next.x[slot];
  f.offset[1] = st.next.y[slot];
  Motion a{{st.next.vx[slot], st.next.vy[slot], st.next.vz[slot]}, ROTATES ? st.next.rotation[slot] : 0.0f, VIBRATES ? u32(st.next.level[slot]) : 0u};
  Stream u(WALL, d.seed, step_of(d.step), (u64(tile) << 28 | index) << 10);
  double weight = weight_at(st, d, f.cell);
  bool stays = trace(d, g, f, species, a, weight, 1.0, u, st.counters);
  u32 copies = stays ? copies_at(st, d, f, weight, slot, u) : 0;
  if (copies) {
    arrive_at(st, g, f, species, a, slot, at, copies);
    if (!RECORDED) st.list[at] = FAR << 28 | index;
  } else {
    st.next.key[slot] = u16(GONE);
    if (!RECORDED) st.list[at] = LOST << 28 | index;
    if (!stays) atomicAdd(&st.counters->removed, 1ull);
  }
}

// All of them, by warp number `warp` of `warps`: of a small gas each warp has few, so that those of a warp, which all go their own way, do
// not wait for each other.
__device__ __forceinline__ void wander(const Store& st, const Domain& d, const Geometry& g, u32 warp, u32 warps) {
#if RECORDED
  for (u32 k = lane_index() * warps + warp, n = st.counters->special; k < n; k += 32 * warps) {
    uint2 one = st.wanderers[k];
    wander_one(st, d, g, one.x, st.next_first[one.x], one.y);
  }
#else
  if (warp >= st.count * LISTS || st.special[warp] == 0) return;
  u32 tile = warp / LISTS, base = st.next_first[tile], n = st.next_first[tile + 1] - base;
  u32 begin = base + warp % LISTS * list_part(n), length = st.left[warp];
  for (u32 k = lane_index(); k < length; k += 32) {
    u32 way = st.list[begin + k] >> 28;
    if (way == PENDING || way == FAR) wander_one(st, d, g, tile, base, begin + k);
  }
#endif
}
