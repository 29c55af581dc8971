// A block a tile: its particles and those that come are put in order in shared memory (or, where they do not fit, in the region that
// they are written to), collide, are sampled, fly, and are written back with their new keys; leavers are listed. Particles that may
// hit something are left where they are for `trace_flights`. Cost: 22 bytes read and 22 written a particle without internal modes, 80
// (BRIEF) or 160 a cell and species that is sampled.

#include "hit.cu"

#define WARPS (THREADS / 32)

#if BRIEF
typedef float Average;  // of the last few samples
#else
typedef double Average;
#endif

struct Pass {
  float step[2];        // cells per velocity along each axis: dt / h, 0 where there is no axis
  u32 stride, unused;   // tiles * KEYS
  const u8* reach;      // by tile and cell; geometry/mod.rs
  Average* sums;        // [KEPT][tile][key]
  const double* factor; // 2 k/m by species, then 2 k theta/m of each mode by species
  const u32* follow_first;   // faces of sides that follow the gas within, by tile; one more than tiles
  const uint2* follow;       // cell in the tile, number of the face
  const double* memory;      // by face
  double* moving;            // MOVING numbers a face
  const double* mass;        // by species
  const float* weights;      // by tile and cell, where they differ: molecules of a particle
};

static_assert(sizeof(Pass) == PASS_BYTES, "as arguments.rs has it");

__device__ __forceinline__ Sorted sorted_in(char* shared) {
  float* f = reinterpret_cast<float*>(shared);
  Sorted s{f, f + CAPACITY, f + 2 * CAPACITY, f + 3 * CAPACITY, f + 4 * CAPACITY, f + 5 * CAPACITY, nullptr, nullptr, nullptr, nullptr};
  f += (5 + ROTATES) * CAPACITY;
  s.order = s.tag = reinterpret_cast<u32*>(f);  // never both
  f += (SCHEME == 3 || TAGGED) * CAPACITY;
  s.level = reinterpret_cast<Level*>(f);
  s.key = reinterpret_cast<u16*>(s.level + (VIBRATES > 0) * CAPACITY);
  return s;
}
__device__ __forceinline__ Sorted sorted_at(const Store& st, u32 base) {
  const Columns& c = st.next;
  return {c.x + base, c.y + base, c.vx + base, c.vy + base, c.vz + base, ROTATES ? c.rotation + base : nullptr, VIBRATES ? c.level + base : nullptr,
          c.key + base, st.list + base, TAGGED ? c.tag + base : nullptr};
}

// Slots of `now` from which the candidates of a tile come: its own region, then arrivals.
struct Source {
  u32 begin, own, all, base;
  const u32* arrive;
};
__device__ __forceinline__ u32 raw_key(const Store& st, const Source& from, u32 k, u32& slot) {
  if (k >= from.all) return NONE;
  slot = k < from.own ? from.begin + k : from.arrive[k - from.own];
  u32 key = st.now.key[slot];
  if (k >= from.own) return key & ~LEFT;
  return key & LEFT ? NONE : key;
}

// Rounds of a warp over the candidates of a tile that fits, whose own region may have holes.
#define KEEP ((CAPACITY + CAPACITY / 8 + THREADS - 1) / THREADS)

__device__ __forceinline__ void copy_to(const Store& st, const Sorted& s, u32 slot, u32 to, u32 key) {
  s.x[to] = st.now.x[slot];
  s.y[to] = st.now.y[slot];
  s.vx[to] = st.now.vx[slot];
  s.vy[to] = st.now.vy[slot];
  s.vz[to] = st.now.vz[slot];
  s.key[to] = u16(key);
  if (ROTATES) s.rotation[to] = st.now.rotation[slot];
  if (VIBRATES) s.level[to] = st.now.level[slot];
  if (TAGGED) s.tag[to] = st.now.tag[slot];
}

// Orders the candidates by key, equal ones as they stood: each warp counts its part, and then writes it behind those before it. Where
// the tile fits, keys and their ranks stay in registers in between.
template <bool FITS>
__device__ __forceinline__ void order(const Store& st, const Source& from, const Sorted& s, u32* start, u32 (*counts)[KEYS]) {
  __shared__ u32 sums[WARPS];
  const u32 warp = threadIdx.x / 32, lane = lane_index(), below = (1u << lane) - 1;
  const u32 part = (from.all + THREADS - 1) / THREADS * 32, begin = warp * part, end = least(begin + part, from.all);
  u32 kept[FITS ? KEEP : 1];
  for (u32 k = threadIdx.x; k < WARPS * KEYS; k += THREADS) counts[0][k] = 0;
  __syncthreads();
  // The rank of a key among those of its warp, with the count of the key so far.
  auto rank_of = [&](u32 key) {
    u32 alike = __match_any_sync(FULL_WARP, key), rank = 0;
    if (key != NONE) rank = counts[warp][key] + __popc(alike & below);
    __syncwarp();
    if (key != NONE && !(alike & below)) counts[warp][key] = rank + __popc(alike);
    __syncwarp();
    return rank;
  };
  if (FITS) {
    u32 slot;
#pragma unroll
    for (u32 r = 0; r < KEEP; r++) kept[r] = raw_key(st, from, begin + 32 * r + lane < end ? begin + 32 * r + lane : from.all, slot);
#pragma unroll
    for (u32 r = 0; r < KEEP; r++)
      if (begin + 32 * r < end) {
        u32 rank = rank_of(kept[r]);
        if (kept[r] != NONE) kept[r] |= rank << 16;
      }
  } else {
    for (u32 k0 = begin; k0 < end; k0 += 32) {
      u32 slot;
      rank_of(raw_key(st, from, k0 + lane < end ? k0 + lane : from.all, slot));
    }
  }
  __syncthreads();
  const u32 EACH = (KEYS + THREADS - 1) / THREADS;
  u32 own[EACH], sum = 0;
#pragma unroll
  for (u32 e = 0; e < EACH; e++) {
    u32 key = threadIdx.x * EACH + e;
    own[e] = 0;
    if (key < KEYS)
      for (u32 w = 0; w < WARPS; w++) own[e] += counts[w][key];
    sum += own[e];
  }
  u32 at = warp_scan(sum);
  if (lane == 31) sums[warp] = at;
  __syncthreads();
  at -= sum;
  for (u32 w = 0; w < warp; w++) at += sums[w];
#pragma unroll
  for (u32 e = 0; e < EACH; e++) {
    u32 key = threadIdx.x * EACH + e;
    if (key < KEYS) {
      start[key] = at;
      if (key + 1 == KEYS) start[KEYS] = at + own[e];
      for (u32 w = 0; w < WARPS; w++) {
        u32 n = counts[w][key];
        counts[w][key] = at;
        at += n;
      }
    }
  }
  __syncthreads();
  if (FITS) {
#pragma unroll
    for (u32 r = 0; r < KEEP; r++)
      if (kept[r] != NONE) {
        u32 k = begin + 32 * r + lane, key = kept[r] & 0xffff;
        copy_to(st, s, k < from.own ? from.begin + k : from.arrive[k - from.own], counts[warp][key] + (kept[r] >> 16), key);
      }
  } else {
    for (u32 k0 = begin; k0 < end; k0 += 32) {
      u32 slot = 0, key = raw_key(st, from, k0 + lane < end ? k0 + lane : from.all, slot), to = rank_of(key);
      if (key != NONE) copy_to(st, s, slot, to, key);
    }
  }
  __syncthreads();
}

// Takes the gas beside sides that follow it into their averages: `MovingAverage::take` of subsonic.rs.
__device__ __forceinline__ void observe(const Pass& p, u32 tile, const Sorted& s, const u32* start) {
  for (u32 f = p.follow_first[tile] + threadIdx.x; f < p.follow_first[tile + 1]; f += THREADS) {
    uint2 face = p.follow[f];
    double sum[MOVING] = {1.0};
    for (u32 species = 0; species < SPECIES; species++) {
      double own[4] = {}, heavy = p.mass[species] / p.mass[0];
      u32 key = face.x * SPECIES + species, begin = start[key], end = start[key + 1];
      for (u32 i = begin; i < end; i++) {
        double v[3] = {s.vx[i], s.vy[i], s.vz[i]};
        for (int c = 0; c < 3; c++) {
          own[c] += v[c];
          own[3] += v[c] * v[c];
        }
      }
      sum[1] += end - begin;
      for (int c = 0; c < 4; c++) sum[2 + c] += heavy * own[c];
      if (SPECIES > 1) sum[6 + species] = end - begin;
    }
    double keep = 1.0 - 1.0 / fmax(p.memory[face.y], 1.0), *to = p.moving + MOVING * u64(face.y);
    for (int c = 0; c < MOVING; c++) to[c] = to[c] * keep + sum[c];
  }
}
