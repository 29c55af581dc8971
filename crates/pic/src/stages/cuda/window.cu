// swap_pages: between two steps. window: the particles' part of the moving window. absorb and enter: particles from the host.

// One block. What was given back is to be had; records of the common list get pages and go where they belong. Afterwards the host
// swaps the inboxes.
extern "C" __global__ void __launch_bounds__(1024) swap_pages(const __grid_constant__ Store st) {
    let_next_kernel_start();
    wait_for_previous_kernel();
    Counters* c = st.counters;
    dissolve(st);
    split(st);
    __syncthreads();
    u32 common = c->common, due = min(common, st.common_room);
    __syncthreads();
    if (threadIdx.x == 0) {
        if (int(c->head - c->limit) > 0) c->head = c->limit;
        c->limit = c->tail;
        c->ticket = 0;
        c->common = c->heavy = 0;
        if (common > due) c->lost += common - due;
    }
    if (due == 0) return;
    __syncthreads();
    for (u32 unit = threadIdx.x; unit < all_units(st); unit += 1024) {
        u32 have = st.next.pages[unit], wanted = min((st.next.count[unit] + PAGE - 1) >> SHIFT, st.inbox_room);
        if (have >= wanted) continue;
        for (; have < wanted; have++) {
            u32 page = take(st);
            if (page == NONE) break;
            st.next.table[u64(unit) * st.inbox_room + have] = page;
        }
        st.next.pages[unit] = have;
    }
    __syncthreads();
    for (u32 k = threadIdx.x; k < due; k += 1024) {
        Record r = st.common[k];
        u32 at = st.place[k], page = at >> SHIFT;
        if (page < st.next.pages[r.unit])
            save(st, st.next.table[u64(r.unit) * st.inbox_room + page], at, r);
        else
            atomicAdd(&c->lost, 1u);
    }
}

// Every particle of a unit through `f`, which tells whether it stays; what came is in the lists afterwards. `in_place` may do the same to a whole
// list by itself.
template <class F, class G> __device__ __forceinline__ void sweep(const Store& st, F f, G in_place) {
    __shared__ ParticleStream streams[WARPS];
    const u32 warp = threadIdx.x / WARP;
    for (u32 unit = blockIdx.x; unit < all_units(st); unit += gridDim.x) {
        ParticleStream found = stream_of(st, unit);
        if (lane_index() == warp) streams[warp] = found;
        __syncwarp();
        ParticleStream& stream = streams[warp];
        PageList list = list_of(st, stream);
        // Particles that are done already.
        const u32 done = in_place(unit, stream.own, list.count) ? stream.own : 0;
        for (u32 base = done / WARP * WARP; base < stream.all; base += WARP) {
            ParticleValues p = fetch(st, stream, list, base);
            bool stays = p.cell != NONE && base + lane_index() >= done && f(unit, p);
            u32 who = __ballot_sync(FULL_WARP, stays);
            keep(st, stream, list, base, who, true, p, [&](u32 homeless) {
                if (homeless >> lane_index() & 1) post(st, record(unit, p));
            });
            __syncwarp();
        }
        close(st, stream, list);
        if (threadIdx.x == 0) find_heavy(st, unit, stream.whole);
        __syncthreads();
        if (stream.whole && threadIdx.x < WARP) prepare(st, unit, stream.inbox, max(stream.arrived / 4, stream.whole / 8));
        __syncthreads();
    }
}

// Moves arrivals into the lists.
extern "C" __global__ void __launch_bounds__(BLOCK) absorb(const __grid_constant__ Store st) {
    sweep(st, [](u32, ParticleValues&) { return true; }, [](u32, u32, u32&) { return false; });
}

// A particle one cell towards lower x, for a window: whether it stays in its unit, from which it is sent away otherwise.
__device__ __forceinline__ bool step_back(const Domain& d, const Store& st, u32 unit, ParticleValues& p) {
    if (p.cell & 255) {
        p.cell--;
        return true;
    }
    // Helpers without a tile have no particles.
    u32 tile = owner_of(st, unit);
    if (tile / st.parts % d.tiles[0]) {
        p.cell |= TX - 1;
        post(st, record(member_of(st, tile - st.parts, u32(bits(p.v[0]))), p));
        return false;
    }
    atomicAdd(&st.counters->removed, 1ull);
    double weight = WEIGHTED ? double(p.weight) : 1.0;
    Vec3<double> u{double(p.v[2]), double(p.v[3]), double(p.v[4])};
    add_exact(st.counters->out, weight);
    add_exact(st.counters->out + 2, weight * kinetic_energy(u));
    return false;
}

// Gaps in a list that are filled from its end.
#define GAPS 256
// Rounds whose cells are asked for together: one after the other they were waited for.
#define AT_ONCE 8

// The `own` particles of a warp's list where they lie: nine in ten change their cell and are not read, the last ones fill the gaps of those that
// leave the unit. False, and nothing done, where those are too many. `gaps` of the warp; `rest`: how many are left.
__device__ __forceinline__ bool step_back_in_place(const Domain& d, const Store& st, u32 unit, u32 own, u32* gaps, u32& rest) {
    const u32* pages = pages_of(st, unit);
    u32 gone = 0, cells[AT_ONCE];
    // Cells of some rounds are asked for together.
    auto look = [&](u32 begin) {
#pragma unroll
        for (u32 r = 0; r < AT_ONCE; r++) {
            u32 k = begin + r * WARP + lane_index();
            cells[r] = k < own ? u32(slot_at(st, pages[k >> SHIFT], k).cell()) : 1;
        }
    };
    for (u32 begin = 0; begin < own; begin += AT_ONCE * WARP) {
        look(begin);
#pragma unroll
        for (u32 r = 0; r < AT_ONCE; r++) gone += __popc(__ballot_sync(FULL_WARP, !(cells[r] & 255)));
    }
    if (gone > GAPS) return false;
    rest = own - gone;
    u32 found = 0, filled = 0;
    for (u32 begin = 0; begin < own; begin += AT_ONCE * WARP) {
        // Gaps that are filled lie before what is looked at: nothing changes ahead.
        look(begin);
#pragma unroll 1
        for (u32 r = 0; r < AT_ONCE && begin + r * WARP < own; r++) {
            const u32 k = begin + r * WARP + lane_index(), cell = cells[0];
#pragma unroll
            for (u32 n = 1; n < AT_ONCE; n++) cells[n - 1] = cells[n];
            bool there = k < own;
            ParticleSlot here = slot_at(st, pages[min(k, own - 1) >> SHIFT], k);
            bool goes = !(cell & 255), last = k >= rest;
            u32 open = __ballot_sync(FULL_WARP, goes && !last), moves = __ballot_sync(FULL_WARP, there && !goes && last);
            if (goes && !last) gaps[found + __popc(open & below())] = k;
            found += __popc(open);
            if (goes) {
                ParticleValues p = slot_of(here);
                step_back(d, st, unit, p);
            } else if (!last) {
                here.cell() = u16(cell - 1);
            }
            // Gaps are known, and what was in them has been read.
            __syncwarp();
            if (there && !goes && last) {
                u32 at = gaps[filled + __popc(moves & below())];
                ParticleValues p = slot_of(here);
                p.cell--;
                put(slot_at(st, pages[at >> SHIFT], at), p);
            }
            filled += __popc(moves);
        }
    }
    __syncwarp();
    return true;
}

// Everything one cell towards lower x.
extern "C" __global__ void __launch_bounds__(BLOCK) shift(const __grid_constant__ Domain d, const __grid_constant__ Store st) {
    __shared__ u32 gaps[WARPS][GAPS];
    sweep(
        st, [&](u32 unit, ParticleValues& p) { return step_back(d, st, unit, p); },
        [&](u32 unit, u32 own, u32& rest) { return step_back_in_place(d, st, unit, own, gaps[threadIdx.x / WARP], rest); });
}

// `n` records in the common list get their numbers in the inboxes; `swap_pages` finds pages for them.
extern "C" __global__ void __launch_bounds__(256) enter(const __grid_constant__ Store st, u32 n) {
    u64 k = thread_index();
    if (k < n) {
        u32 unit = st.common[k].unit = member_of(st, st.common[k].unit, u32(k));
        st.place[k] = atomicAdd(st.next.count + unit, 1u);
    }
    if (k == 0) st.counters->common = n;
}
