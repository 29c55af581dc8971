// Lists and inboxes of a unit, as its warps read and write them.
//
// A warp reads its list in rounds of 32 and then its part of what came to the unit in the step before, and writes those that stay
// one behind the other into the same pages: never before a slot has been read. So holes and arrivals cost no pass of their own.

#include "exchange.cu"

// A warp's list while it is read and written.
struct PageList {
    u32 mine;   // page number `lane`: where the first WARP pages lie is known without reading it
    u32 plain;  // a round that ends no later is of the list alone, and of these pages
    u32 count;  // particles that have been kept
};
__device__ __forceinline__ u32* pages_of(const Store& st, u32 unit) {
    return st.table + u64(unit * WARPS + threadIdx.x / WARP) * st.room;
}
__device__ __forceinline__ PageList list_of(const Store& st, const ParticleStream& s) {
    return {lane_index() < s.held ? pages_of(st, s.unit)[lane_index()] : NONE, min(s.own, u32(WARP << SHIFT)), 0};
}
// Particle `k` + lane; nobody's `cell` is NONE.
__device__ __forceinline__ ParticleValues fetch(const Store& st, const ParticleStream& s, const PageList& list, u32 k) {
    ParticleValues p;
    p.cell = NONE;
    u32 at = k + lane_index(), page = __shfl_sync(FULL_WARP, list.mine, k >> SHIFT);
    // Entries beyond the end become NONE.
    if (k + WARP > list.plain) {
        if (at >= s.all) {
            at = NONE;
        } else if (at >= s.own) {
            at += s.from - s.own;
            page = st.now.table[u64(s.unit) * st.inbox_room + (at >> SHIFT)];
        } else if (k >= WARP << SHIFT) {
            page = pages_of(st, s.unit)[k >> SHIFT];
        }
        // Used at once: a load that is under way where paths meet again makes all that follows wait for the particle's, too.
        page = min(page, NONE - 1);
    }
    if (at != NONE) p = slot_of(slot_at(st, page, at));
    return p;
}

// One more page for a list, or NONE.
__device__ __forceinline__ u32 another_page(const Store& st, u32* pages, u32 n) {
    u32 page = NONE;
    if (lane_index() == 0) {
        if (n < st.room) page = take(st);
        if (page != NONE) pages[n] = page;
        else st.counters->tight = 1;
    }
    return __shfl_sync(FULL_WARP, page, 0);
}
// Writes the particles of the lanes that stay, read as numbers from `k` on; all lanes of a warp. Their cells only where they have `moved` to another
// one or have not been in this place. Where a list cannot grow, particles go to the unit's inbox by `homeless`: they are part of the next step as others are.
template <class F> __device__ __forceinline__ void keep(const Store& st, ParticleStream& s, PageList& list, u32 k, u32 who,
                                                        bool moved, const ParticleValues& p, F homeless) {
    bool stays = who >> lane_index() & 1;
    u32 at = list.count + __popc(who & below()), end = list.count + __popc(who);
    if (((end - 1) ^ (list.count - 1)) >> SHIFT) {
        u32 n = s.held;
        if (pages_for(end) > n) {
            u32 page = another_page(st, pages_of(st, s.unit), n);
            // All have read `held` before it changes.
            __syncwarp();
            if (page != NONE) {
                if (lane_index() == n) list.mine = page;
                if (lane_index() == 0) s.held = n + 1;
            } else {
                end = n << SHIFT;
                homeless(__ballot_sync(FULL_WARP, stays && at >= end));
                stays = stays && at < end;
            }
            __syncwarp();
        }
    }
    u32 page = __shfl_sync(FULL_WARP, list.mine, at >> SHIFT);
    if (end > WARP << SHIFT) {
        if (stays && at >= WARP << SHIFT) page = pages_of(st, s.unit)[at >> SHIFT];
        // As in `fetch`.
        page = min(page, NONE - 1);
        __syncwarp();
    }
    if (stays) {
        ParticleSlot to = slot_at(st, page, at);
        to.set(p.v);
        bool came = k + WARP > list.plain;
        if (moved || came || at != k + lane_index()) {
            to.cell() = u16(p.cell);
#if WEIGHTED
            to.rest(1) = p.weight;
#endif
#if TAGGED
            to.tag() = p.tag;
#endif
        }
    }
    list.count = end;
}
// The end of a warp's list: its number, and pages that it no longer fills.
__device__ __forceinline__ void close(const Store& st, const ParticleStream& s, const PageList& list) {
    if (list.count == s.own) return;
    for (u32 k = pages_for(list.count) + lane_index(); k < s.held; k += WARP) give(st, pages_of(st, s.unit)[k]);
    if (lane_index() == 0) st.count[s.unit * WARPS + threadIdx.x / WARP] = list.count;
}
// The inbox that was read, of `have` pages, gets as many as `records` need, if there are so many; one warp.
__device__ __forceinline__ void add_pages(const Store& st, u32 unit, u32 have, u32 records) {
    u32 wanted = min(max(pages_for(records), 1u), st.inbox_room), *table = st.now.table + u64(unit) * st.inbox_room;
    while (have < wanted) {
        u32 page = have + lane_index() < wanted ? take(st) : NONE, got = __ballot_sync(FULL_WARP, page != NONE);
        // Those that got one stand side by side.
        if (page != NONE) table[have + __popc(got & ((1u << lane_index()) - 1))] = page;
        if (!got) break;
        have += __popc(got);
    }
    if (lane_index() == 0) st.now.pages[unit] = have;
}
// The inbox that was read, of `have` pages, becomes empty, with pages for `expected` records; one warp.
__device__ __forceinline__ void prepare(const Store& st, u32 unit, u32 have, u32 expected) {
    u32 wanted = min(max(pages_for(expected), 1u), st.inbox_room), *table = st.now.table + u64(unit) * st.inbox_room;
    if (have > wanted + wanted / 2 + 1) {
        for (u32 k = wanted + lane_index(); k < have; k += WARP) give(st, table[k]);
        have = wanted;
    }
    add_pages(st, unit, have, expected);
    if (lane_index() == 0) st.now.count[unit] = 0;
}
