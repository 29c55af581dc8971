// Arrivals from the other parts of a run. Cost: 24 bytes or more read and written a leaver, some words a link.

#include "send.cu"
#include "inflow.cuh"

#if PARTS
// Slot before which a particle from another part would lie among those of this one.
__device__ __forceinline__ u32 place_of(const Store& st, const Inflow& in, u64 rank) {
    u32 base = st.next_first[st.count];
    if (rank & INJECTED) {
        u32 lines = in.groups[in.line_count * (1 + SPECIES)];
        return rank & THROUGH_FACES ? base + lines + in.offsets[u32(rank >> 28) & 0x7fffffffu] : base + u32(rank);
    }
    u32 at = u32(rank >> 28) / LAYERS;
    int x = int(at % st.all), y = int(at / st.all);
    if (y < st.own[1]) return 0;
    if (y >= st.own[3]) return base;
    u32 tile = tile_at(st, x < st.own[0] ? st.own[0] : st.own[2], y, 0);
    // Behind the last tile of a row of this part comes one of the ring, or the first of the next row: all empty up to the next one that is not.
    return st.next_first[tile];
}

// Numbers of leavers that have come from a part.
struct Coming {
    u32 near, far;
    __device__ __forceinline__ Coming(const Store& st, u32 part) : near(0), far(0) {
        if (part >= st.parts || st.slabs[part].incoming == nullptr) return;
        const Slab& slab = st.slabs[part];
        const u32* head = came_in(st, slab);
        near = least(head[0], slab.near);
        far = least(head[1], slab.far);
    }
};

// Takes in those of a part who come from afar, each thread one; they lie from `to` on.
__device__ __forceinline__ void take_far(const Store& st, const Inflow& in, const Slab& slab, u32 n, u32 to) {
    for (u64 k = thread_index(); k < n; k += thread_count()) {
        const u32* words = came_in(st, slab) + far_begin(slab) + k;
        u32 slot = to + u32(k), goal = words[slab.far * NEAR_WORDS], at = goal / LAYERS;
        u64 rank = u64(words[slab.far * (NEAR_WORDS + 1)]) << 32 | words[slab.far * (NEAR_WORDS + 2)];
        u32 tile = tile_at(st, int(at % st.all), int(at / st.all), goal % LAYERS);
        take_words(st.next, slot, words, slab.far);
        goals(st.now)[slot] = tile;
        places(st.now)[slot] = place_of(st, in, rank);
        reinterpret_cast<u32*>(st.now.x)[slot] = u32(rank >> 32);
        reinterpret_cast<u32*>(st.now.y)[slot] = u32(rank);
        u32 copies = WEIGHTED ? words[slab.far * (NEAR_WORDS + 3)] : 1u;
        if (WEIGHTED) st.list[slot] = copies;
        atomicAdd(st.far_in + tile, copies);
    }
}

// Puts what has come behind the injected particles: those from afar, then those from beside, for the exchange of the next step. Empties the
// slabs that go next, and keeps in `peaks` the most that there was in each. A lane of a warp knows what a part has sent: slabs of other GPUs
// answer late, so all are asked at once.
extern "C" __global__ void __launch_bounds__(256)
    receive(const __grid_constant__ Store st, const __grid_constant__ Inflow in, const uint4* links, u32* peaks) {
    const u64 thread = thread_index(), warps = thread_count() / 32;
    const u32 lane = lane_index(), first = st.next_first[st.count] + st.counters->fresh;
    u32 far = 0, near = 0;
    for (u32 part = lane; part - lane < st.parts; part += 32) {
        Coming coming(st, part);
        near += warp_reduce<Sum<u32>>(coming.near);
        far += warp_reduce<Sum<u32>>(coming.far);
    }
    near = __shfl_sync(FULL_WARP, near, 0), far = __shfl_sync(FULL_WARP, far, 0);
    const bool room = first + near + far <= st.capacity;
    if (thread == 0) {
        st.counters->far = room ? far : 0;
        st.counters->near = room ? near : 0;
        st.counters->received += near + far;
        if (!room) atomicAdd(&st.counters->refused, near + far);
    }
    u32 to_far = first, to_near = first + far;
    for (u32 part = lane; part - lane < st.parts; part += 32) {
        const u32 parts = least(st.parts - (part - lane), 32u);
        const Slab* slabs = st.slabs + (part - lane);
        Coming coming(st, part);
        u32 fars = warp_scan(coming.far), nears = warp_scan(coming.near);
        if (thread < parts && slabs[lane].incoming != nullptr)
            for (u32 kind = 0; kind < 2; kind++) {
                u32* peak = peaks + 2 * part + kind;
                *peak = greatest(*peak, half_of(slabs[lane], slabs[lane].outgoing, st.half)[kind]);
                // The others have taken in what was there.
                half_of(slabs[lane], slabs[lane].outgoing, 1 - st.half)[kind] = 0;
            }
        for (u32 k = 0; k < parts; k++) {
            u32 n = __shfl_sync(FULL_WARP, coming.far, k), end = __shfl_sync(FULL_WARP, fars, k);
            if (room && n > 0) take_far(st, in, slabs[k], n, to_far + end - n);
        }
        // Of near ones a warp a link.
        const u32 links_end = slabs[parts - 1].first_link + slabs[parts - 1].links;
        for (u64 k = slabs[0].first_link + thread / 32; k < links_end; k += warps) {
            const uint4 link = links[k];  // tile of the ring, way, tile, part
            const u32 of_part = link.w - (part - lane);
            const Slab& slab = slabs[of_part];
            const u32 *incoming = came_in(st, slab), *head = incoming + HEAD + 2 * (u32(k) - slab.first_link);
            u32 to = to_near + __shfl_sync(FULL_WARP, nears - coming.near, of_part), begin = head[0], n = room ? head[1] : 0;
            if (lane == 0) {
                st.near[link.x * 9 + link.y] = n;
                st.link_first[link.x * 9 + link.y] = to + begin;
                if (n) atomicAdd(st.near_in + link.z, n);
            }
            for (u32 i = lane; i < n; i += 32)
                take_words(st.next, to + begin + i, incoming + near_begin(slab) + begin + i, slab.near);
        }
        to_far += __shfl_sync(FULL_WARP, fars, 31);
        to_near += __shfl_sync(FULL_WARP, nears, 31);
    }
}
#endif
