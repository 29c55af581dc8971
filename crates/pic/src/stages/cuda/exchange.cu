// exchange: what warps read and write of the particles of a unit, pages taken and given back, inboxes, and how particles from the
// host come in.
//
// A warp reads its list in rounds of 32 and then its part of what came to the unit in the step before, and writes those that stay
// one behind the other into the same pages: never before a slot has been read. So holes and arrivals cost no pass of their own.

// A free page, or NONE. What is given back in a launch is to be had from the next `turn` on: nobody waits, nobody reads too early.
__device__ __forceinline__ u32 take(const Store& st) {
    u32 at = atomicAdd(&st.counters->head, 1u);
    return int(st.counters->limit - at) > 0 ? st.ring[at & st.ring_mask] : NONE;
}
__device__ __forceinline__ void give(const Store& st, u32 page) { st.ring[atomicAdd(&st.counters->tail, 1u) & st.ring_mask] = page; }

// A record into the inbox of its unit; one for which there is no page waits in the common list until `turn` has found one.
__device__ __noinline__ void post(const Store& st, Record r) {
    u32 at = atomicAdd(st.next.count + r.unit, 1u), page = at >> SHIFT;
    if (page < st.next.pages[r.unit]) {
        save(st, st.next.table[u64(r.unit) * st.inbox_room + page], at, r);
        return;
    }
    u32 k = atomicAdd(&st.counters->common, 1u);
    if (k >= st.common_room) return;
    st.common[k] = r;
    st.place[k] = at;
}

// What is read of a particle.
struct Slot {
    u32 cell;
    real v[5], weight;
#if TAGGED
    u64 tag;
#endif
};
__device__ __forceinline__ Record record(u32 unit, const Slot& p) {
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

// What a warp reads: `own` particles of its list, then the inbox from number `from` on, `all` together.
struct Stream {
    u32 own, all, from, rounds, whole;  // `rounds`: the most of a warp of the block; `whole`: particles of the unit
    u32 arrived, held;                  // particles in the inbox, and its pages
};
// Lane k says what list k has.
__device__ __forceinline__ Stream stream_of(u32 mine, u32 arrived, u32 held) {
    u32 lane = lane_index(), warp = threadIdx.x / WARP, whole = __shfl_sync(FULL_WARP, warp_scan(mine), WARP - 1) + arrived;
    // Lists that have less than their share of whole rounds fill up with what came.
    u32 share = ((whole + WARPS - 1) / WARPS + WARP - 1) / WARP * WARP, wanted = lane < WARPS && mine < share ? share - mine : 0;
    u32 upto = warp_scan(wanted), from = min(upto - wanted, arrived), all = mine + min(upto, arrived) - from;
    u32 most = all;
#pragma unroll
    for (int d = WARP / 2; d; d /= 2) most = max(most, __shfl_xor_sync(FULL_WARP, most, d));
    return {__shfl_sync(FULL_WARP, mine, warp), __shfl_sync(FULL_WARP, all, warp), __shfl_sync(FULL_WARP, from, warp),
            (most + WARP - 1) / WARP, whole, arrived, held};
}
__device__ __forceinline__ Stream stream_of(const Store& st, u32 unit) {
    u32 lane = lane_index();
    return stream_of(lane < WARPS ? st.count[unit * WARPS + lane] : 0, st.now.count[unit], st.now.pages[unit]);
}
__device__ __forceinline__ u32* pages_of(const Store& st, u32 unit) { return st.table + u64(unit * WARPS + threadIdx.x / WARP) * st.room; }
__device__ __forceinline__ u32 page_at(const Stream& s, const u32* pages, u32 k) { return k < s.own ? pages[k >> SHIFT] : 0; }
__device__ __forceinline__ Slot slot_of(const Place& from) {
    Slot p{};
    p.cell = from.cell();
    from.get(p.v);
    p.weight = from.weight();
#if TAGGED
    p.tag = from.tag();
#endif
    return p;
}
// Particle `k` + lane, of the list in `page`.
__device__ __forceinline__ Slot fetch(const Store& st, u32 unit, const Stream& s, u32 page, u32 k) {
    Slot p{};
    k += lane_index();
    if (k < s.all) {
        if (k >= s.own) {
            k += s.from - s.own;
            page = st.now.table[u64(unit) * st.inbox_room + (k >> SHIFT)];
        }
        p = slot_of(place(st, page, k));
    }
    return p;
}

// In shared memory: what a warp has kept so far, how many pages its list has, and those of the next place and behind it.
struct __align__(16) Kept {
    u32 count, pages, page, next;
};
// Where all of the first `count` have been kept.
__device__ __forceinline__ Kept kept_of(const Stream& s, const u32* pages, u32 count) {
    u32 n = (s.own + PAGE - 1) >> SHIFT, at = count >> SHIFT;
    return {count, n, at < n ? pages[at] : NONE, at + 1 < n ? pages[at + 1] : NONE};
}
// One more page for a list, or NONE.
__device__ __forceinline__ u32 another_page(const Store& st, u32* pages, u32 n) {
    u32 page = NONE;
    if (lane_index() == 0) {
        if (n < st.room) page = take(st);
        if (page != NONE)
            pages[n] = page;
        else
            st.counters->tight = 1;
    }
    return __shfl_sync(FULL_WARP, page, 0);
}
// Writes the particles of the lanes that stay; all lanes of a warp. Where a list cannot grow, particles go to the unit's inbox by `homeless`: they are part of the next step as others are.
template <class F> __device__ __forceinline__ void keep(const Store& st, u32* pages, Kept& kept, bool stays, const Slot& p, F homeless) {
    Kept o = kept;
    u32 who = __ballot_sync(FULL_WARP, stays), at = o.count + __popc(who & ((1u << lane_index()) - 1)), end = o.count + __popc(who);
    if ((end + PAGE - 1) >> SHIFT > o.pages) {
        u32 page = another_page(st, pages, o.pages);
        if (page != NONE) {
            (o.pages == o.count >> SHIFT ? o.page : o.next) = page;
            o.pages++;
        } else {
            end = o.pages << SHIFT;
            if (stays && at >= end) {
                homeless();
                stays = false;
            }
        }
    }
    if (stays) {
        Place to = place(st, (at ^ o.count) >> SHIFT ? o.next : o.page, at);
        to.set(p.v);
        to.cell() = u16(p.cell);
#if WEIGHTED
        to.rest(1) = p.weight;
#endif
#if TAGGED
        to.tag() = p.tag;
#endif
    }
    if ((end ^ o.count) >> SHIFT) {
        u32 behind = (end >> SHIFT) + 1;
        o.page = o.next;
        o.next = behind < o.pages ? pages[behind] : NONE;
    }
    o.count = end;
    __syncwarp();
    if (lane_index() == 0) kept = o;
    __syncwarp();
}
// The end of a warp's list: its number, and pages that it no longer fills.
__device__ __forceinline__ void close(const Store& st, u32 unit, const u32* pages, const Kept& o) {
    for (u32 k = ((o.count + PAGE - 1) >> SHIFT) + lane_index(); k < o.pages; k += WARP) give(st, pages[k]);
    if (lane_index() == 0) st.count[unit * WARPS + threadIdx.x / WARP] = o.count;
}
// The inbox that was read, of `have` pages, becomes empty, with pages for `expected` records; one warp.
__device__ __forceinline__ void prepare(const Store& st, u32 unit, u32 have, u32 expected) {
    u32 wanted = min(max((expected + PAGE - 1) >> SHIFT, 1u), st.inbox_room), *table = st.now.table + u64(unit) * st.inbox_room;
    if (have > wanted + wanted / 2 + 1) {
        for (u32 k = wanted + lane_index(); k < have; k += WARP) give(st, table[k]);
        have = wanted;
    }
    while (have < wanted) {
        u32 page = have + lane_index() < wanted ? take(st) : NONE, got = __ballot_sync(FULL_WARP, page != NONE);
        // Those that got one stand side by side.
        if (page != NONE) table[have + __popc(got & ((1u << lane_index()) - 1))] = page;
        if (!got) break;
        have += __popc(got);
    }
    if (lane_index() == 0) {
        st.now.pages[unit] = have;
        st.now.count[unit] = 0;
    }
}
