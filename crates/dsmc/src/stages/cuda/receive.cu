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

// Puts what has come behind the injected particles: those from afar, then those from beside, for the exchange of the next step. Empties the
// slabs that go next, and keeps in `peaks` the most that there was in each.
extern "C" __global__ void __launch_bounds__(256)
    receive(const __grid_constant__ Store st, const __grid_constant__ Inflow in, const uint4* links, u32 count, u32* peaks) {
    const u32 first = st.next_first[st.count] + st.counters->fresh;
    u32 far = 0, near = 0;
    for (u32 part = 0; part < st.parts; part++) {
        const Slab& slab = st.slabs[part];
        if (slab.incoming == nullptr) continue;
        const u32* head = came_in(st, slab);
        near += least(head[0], slab.near);
        far += least(head[1], slab.far);
    }
    const bool room = first + near + far <= st.capacity;
    const u64 thread = thread_index(), threads = thread_count();
    if (thread == 0) {
        st.counters->far = room ? far : 0;
        st.counters->near = room ? near : 0;
        st.counters->received += near + far;
        if (!room) atomicAdd(&st.counters->refused, near + far);
    }
    // Of far ones each thread one.
    u32 to = first;
    for (u32 part = 0; part < st.parts; part++) {
        const Slab& slab = st.slabs[part];
        if (slab.incoming == nullptr) continue;
        if (thread < 2) {
            u32* peak = peaks + 2 * part + thread;
            *peak = greatest(*peak, half_of(slab, slab.outgoing, st.half)[thread]);
            // The others have taken in what was there.
            half_of(slab, slab.outgoing, 1 - st.half)[thread] = 0;
        }
        const u32* incoming = came_in(st, slab);
        u32 n = room ? least(incoming[1], slab.far) : 0;
        for (u64 k = thread; k < n; k += threads) {
            const u32* words = incoming + far_begin(slab) + k;
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
        to += n;
    }
    // Of near ones a warp a link.
    to = first + far;
    u32 of_part = 0;
    const u32 lane = lane_index();
    for (u64 k = thread / 32; k < count; k += threads / 32) {
        const uint4 link = links[k];  // tile of the ring, way, tile, part
        for (; of_part < link.w; of_part++)
            if (st.slabs[of_part].incoming != nullptr) to += least(came_in(st, st.slabs[of_part])[0], st.slabs[of_part].near);
        const Slab& slab = st.slabs[link.w];
        const u32 *incoming = came_in(st, slab), *head = incoming + HEAD + 2 * (u32(k) - slab.first_link);
        u32 begin = head[0], n = room ? head[1] : 0;
        if (lane == 0) {
            st.near[link.x * 9 + link.y] = n;
            st.link_first[link.x * 9 + link.y] = to + begin;
            if (n) atomicAdd(st.near_in + link.z, n);
        }
        for (u32 i = lane; i < n; i += 32) take_words(st.next, to + begin + i, incoming + near_begin(slab) + begin + i, slab.near);
    }
}
#endif
