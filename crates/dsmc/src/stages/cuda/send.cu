// Leavers for the tiles of another part go into a slab for it: the numbers of near and far leavers, where those of each link begin and
// how many they are, then a column of words for each quantity, of the near ones and of the far ones. A link is a way from a tile to one of another
// part beside it. Far ones have besides the tile where they arrive and their rank in the order of those from afar. What finds no room is counted.

#include "common.cu"

#define HEAD 4u  // words before the links
#define NEAR_WORDS (6u + ROTATES + (VIBRATES > 0) + TAGGED)
#define FAR_WORDS (NEAR_WORDS + 3 + WEIGHTED)

// Ranks from afar: the number of a leaver's tile and its own in it; above them those of injected particles, from lines and through faces.
#define INJECTED (1ull << 62)
#define THROUGH_FACES (1ull << 61)

#if PARTS
__device__ __forceinline__ u32 near_begin(const Slab& s) { return HEAD + 2 * s.links; }
__device__ __forceinline__ u32 far_begin(const Slab& s) { return near_begin(s) + NEAR_WORDS * s.near; }
// A half of a slab: parts use them in turn.
template <class Words> __device__ __forceinline__ Words half_of(const Slab& s, Words words, u32 half) {
    return words + u64(half) * (far_begin(s) + FAR_WORDS * s.far);
}
__device__ __forceinline__ u32* goes_in(const Store& st, const Slab& s) { return half_of(s, s.outgoing, st.half); }
__device__ __forceinline__ const u32* came_in(const Store& st, const Slab& s) { return half_of(s, s.incoming, st.half); }

// Writes the particle of a slot into the words at `to`, `apart` words from one quantity to the next.
__device__ __forceinline__ void put_words(const Columns& c, u32 slot, u32* to, u32 apart) {
    u32 w = 6;
    to[0] = c.key[slot] & ~LEFT;
    to[apart] = __float_as_uint(c.x[slot]);
    to[2 * apart] = __float_as_uint(c.y[slot]);
    to[3 * apart] = __float_as_uint(c.vx[slot]);
    to[4 * apart] = __float_as_uint(c.vy[slot]);
    to[5 * apart] = __float_as_uint(c.vz[slot]);
    if (ROTATES) to[apart * w++] = __float_as_uint(c.rotation[slot]);
    if (VIBRATES) to[apart * w++] = c.level[slot];
    if (TAGGED) to[apart * w++] = c.tag[slot];
}

// Takes one out.
__device__ __forceinline__ void take_words(const Columns& c, u32 slot, const u32* from, u32 apart) {
    u32 w = 6;
    c.key[slot] = u16(from[0]);
    c.x[slot] = __uint_as_float(from[apart]);
    c.y[slot] = __uint_as_float(from[2 * apart]);
    c.vx[slot] = __uint_as_float(from[3 * apart]);
    c.vy[slot] = __uint_as_float(from[4 * apart]);
    c.vz[slot] = __uint_as_float(from[5 * apart]);
    if (ROTATES) c.rotation[slot] = __uint_as_float(from[apart * w++]);
    if (VIBRATES) c.level[slot] = Level(from[apart * w++]);
    if (TAGGED) c.tag[slot] = from[apart * w++];
}

// Sends what lies in a slot of `next` to a cell of another part.
__device__ __forceinline__ void send_far(const Store& st, int x, int y, u32 layer, u32 slot, u32 copies, u64 rank) {
    u32 at = u32((y >> SY) * st.all + (x >> SX));
    const Slab& to = st.slabs[st.owner[at]];
    u32 *slab = goes_in(st, to), k = atomicAdd(slab + 1, 1u);
    if (k >= to.far) {
        atomicAdd(&st.counters->unsent, 1u);
        return;
    }
    u32* words = slab + far_begin(to) + k;
    put_words(st.next, slot, words, to.far);
    words[to.far * NEAR_WORDS] = at * LAYERS + layer % LAYERS;
    words[to.far * (NEAR_WORDS + 1)] = u32(rank >> 32);
    words[to.far * (NEAR_WORDS + 2)] = u32(rank);
    if (WEIGHTED) words[to.far * (NEAR_WORDS + 3)] = copies;
}

// Sends the leavers of a tile by one way, in their order: a warp a link, which is tile, way and part, number `k` of those of all parts.
__device__ __forceinline__ void send_near(const Store& st, uint3 link, u32 k) {
    const u32 lane = lane_index(), below = (1u << lane) - 1, tile = link.x, way = link.y;
    const Slab& to = st.slabs[link.z];
    u32* slab = goes_in(st, to);
    u32 n = st.near[tile * 9 + way], at = lane == 0 && n ? atomicAdd(slab, n) : 0;
    at = __shfl_sync(FULL_WARP, at, 0);
    if (at + n > to.near) {
        if (lane == 0) atomicAdd(&st.counters->unsent, n);
        n = 0;
    }
    if (lane < 2) slab[HEAD + 2 * (k - to.first_link) + lane] = lane ? n : at;
    if (n == 0) return;
    u32 base = st.next_first[tile], part = list_part(st.next_first[tile + 1] - base), entries[LISTS];
    u32 left = lane < LISTS ? st.left[tile * LISTS + lane] : 0;
    auto entry = [&](u32 list, u32 i) { return i < __shfl_sync(FULL_WARP, left, list) ? st.list[base + list * part + i] : NONE; };
    // The beginning of all lists is asked for at once.
#pragma unroll
    for (u32 list = 0; list < LISTS; list++) entries[list] = entry(list, lane);
#pragma unroll
    for (u32 list = 0; list < LISTS; list++) {
        u32 length = __shfl_sync(FULL_WARP, left, list);
        for (u32 k0 = 0; k0 < length; k0 += 32) {
            u32 one = k0 == 0 ? entries[list] : entry(list, k0 + lane);
            bool mine = one >> 28 == way;
            u32 all = __ballot_sync(FULL_WARP, mine);
            if (mine) put_words(st.next, base + (one & INDEX), slab + near_begin(to) + at + __popc(all & below), to.near);
            at += __popc(all);
        }
    }
}
#endif
