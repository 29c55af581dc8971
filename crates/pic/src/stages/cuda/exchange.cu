// exchange: pages taken and given back, particles on their way into inboxes, and which of them a warp reads.

#include "page.cu"

// A free page, or NONE. What is given back in a launch is to be had from the next `swap_pages` on: nobody waits, nobody reads too early.
__device__ __forceinline__ u32 take(const Store& st) {
    u32 at = atomicAdd(&st.counters->head, 1u);
    return int(st.counters->limit - at) > 0 ? st.ring[at & st.ring_mask] : NONE;
}
__device__ __forceinline__ void give(const Store& st, u32 page) {
    st.ring[atomicAdd(&st.counters->tail, 1u) & st.ring_mask] = page;
}

// A record into the inbox of its unit; one for which there is no page waits in the common list until `swap_pages` has found one.
__device__ __noinline__ void post(const Store& st, Record r) {
    // Nobody changes these in this launch. What the first place takes is read ahead: a block may wait for this.
    const u32 *table = st.next.table + u64(r.unit) * st.inbox_room, pages = st.next.pages[r.unit], first = *table;
    u32 at = atomicAdd(st.next.count + r.unit, 1u), page = at >> SHIFT;
    if (page < pages) {
        save(st, page ? table[page] : first, at, r);
        return;
    }
    u32 k = atomicAdd(&st.counters->common, 1u);
    if (k >= st.common_room) return;
    st.common[k] = r;
    st.place[k] = at;
}

// Columns that are read of a particle.
struct ParticleValues {
    u32 cell;
    real v[5], weight;
#if TAGGED
    u64 tag;
#endif
};
__device__ __forceinline__ Record record(u32 unit, const ParticleValues& p) {
    Record r;
    r.unit = unit;
    r.cell = p.cell;
#pragma unroll
    for (int c = 0; c < 5; c++) r.v[c] = p.v[c];
#if WEIGHTED
    r.v[5] = p.weight;
#endif
#if TAGGED
    r.tag = p.tag;
#endif
    return r;
}

__device__ __forceinline__ void put(const ParticleSlot& to, const ParticleValues& p) {
    to.set(p.v);
    to.cell() = u16(p.cell);
#if WEIGHTED
    to.rest(1) = p.weight;
#endif
#if TAGGED
    to.tag() = p.tag;
#endif
}

// Particles that a warp reads: `own` of its list, then the inbox from number `from` on, `all` together.
struct ParticleStream {
    u32 own, all, from, stop, unit;   // `stop`: where it is left off
    u32 whole, arrived, inbox, held;  // particles of the unit, and of the inbox, and pages of that and of the list
};
__device__ __forceinline__ u32 pages_for(u32 n) { return (n + PAGE - 1) >> SHIFT; }
// Lane k: of list k, which has `mine`; 0 where there is none.
__device__ __forceinline__ u32 scan_lists(u32 value) {
#pragma unroll
    for (int d = 1; d < WARPS; d *= 2) {
        u32 before = __shfl_up_sync(FULL_WARP, value, d);
        if (lane_index() >= d) value += before;
    }
    return value;
}
__device__ __forceinline__ ParticleStream stream_of(u32 unit, u32 mine, u32 arrived, u32 inbox) {
    u32 whole = __shfl_sync(FULL_WARP, scan_lists(mine), WARPS - 1) + arrived;
    // Lists that have less than their share of whole rounds fill up with what came: where that is not too much, each no more than its last
    // round, so that as few rounds as can be have idle lanes.
    u32 share = ((whole + WARPS - 1) / WARPS + WARP - 1) / WARP * WARP,
        wanted = lane_index() < WARPS && mine < share ? share - mine : 0;
    u32 some = wanted % WARP, few = scan_lists(some), upto = scan_lists(wanted);
    if (arrived <= __shfl_sync(FULL_WARP, few, WARPS - 1)) {
        wanted = some;
        upto = few;
    }
    u32 from = min(upto - wanted, arrived);
    return {mine, mine + min(upto, arrived) - from, from, 0, unit, whole, arrived, inbox, pages_for(mine)};
}
__device__ __forceinline__ ParticleStream stream_of(const Store& st, u32 unit) {
    return stream_of(unit, lane_index() < WARPS ? st.count[unit * WARPS + lane_index()] : 0, st.now.count[unit],
                     st.now.pages[unit]);
}
__device__ __forceinline__ u32 below() { return (1u << lane_index()) - 1; }
__device__ __forceinline__ ParticleValues slot_of(const ParticleSlot& from) {
    ParticleValues p{};
    p.cell = from.cell();
    from.get(p.v);
    p.weight = from.weight();
#if TAGGED
    p.tag = from.tag();
#endif
    return p;
}
