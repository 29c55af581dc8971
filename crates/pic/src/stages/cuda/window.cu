// swap_pages: between two steps. shift: the particles' part of the moving window. absorb and enter: particles from the host.

#include "dissolve.cu"
#include "lists.cu"
#include "settle.cu"

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
        if (page < st.next.pages[r.unit]) save(st, st.next.table[u64(r.unit) * st.inbox_room + page], at, r);
        else atomicAdd(&c->lost, 1u);
    }
}

// Moves arrivals into the lists.
extern "C" __global__ void __launch_bounds__(BLOCK) absorb(const __grid_constant__ Store st) {
    __shared__ ParticleStream streams[WARPS];
    const u32 warp = threadIdx.x / WARP;
    for (u32 unit = blockIdx.x; unit < all_units(st); unit += gridDim.x) {
        ParticleStream found = stream_of(st, unit);
        if (lane_index() == warp) streams[warp] = found;
        __syncwarp();
        ParticleStream& stream = streams[warp];
        PageList list = list_of(st, stream);
        for (u32 base = 0; base < stream.all; base += WARP) {
            ParticleValues p = fetch(st, stream, list, base);
            u32 who = __ballot_sync(FULL_WARP, p.cell != NONE);
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

// The `n` particles in slots that `slot` tells, one warp: those that are `behind` are counted and taken out, the others close up. How many these are.
template <class Slot, class Behind> __device__ __forceinline__ u32 take_out(const Store& st, u32 n, Slot slot, Behind behind) {
    u32 kept = 0;
    for (u32 base = 0; base < n; base += WARP) {
        u32 at = base + lane_index();
        bool there = at < n;
        ParticleValues p{};
        if (there) p = slot_of(slot(at));
        bool goes = there && behind(p);
        if (goes) {
            atomicAdd(&st.counters->removed, 1ull);
            double weight = WEIGHTED ? double(p.weight) : 1.0;
            Vec3<double> u{double(p.v[2]), double(p.v[3]), double(p.v[4])};
            add_exact(st.counters->out, weight);
            add_exact(st.counters->out + 2, weight * kinetic_energy(u));
        }
        u32 who = __ballot_sync(FULL_WARP, there && !goes), to = kept + __popc(who & below());
        // All have read what is written over.
        __syncwarp();
        if (there && !goes && to != at) put(slot(to), p);
        kept += __popc(who);
        __syncwarp();
    }
    return kept;
}

// A window moves by a cell past the tiles: what is in the first column of cells stays behind, in lists and inboxes alike. `d` as it was before. Inboxes
// of the units that the next column of cells comes into get pages for `fresh` records more.
extern "C" __global__ void __launch_bounds__(BLOCK)
    shift(const __grid_constant__ Domain d, const __grid_constant__ Store st, u32 fresh) {
    const u32 warp = threadIdx.x / WARP;
    Domain after = d;
    after.passed = (d.passed + 1) % (TX * d.tiles[0]);
    for (u32 unit = blockIdx.x; unit < all_units(st); unit += gridDim.x) {
        Tile before = tile_of(d, st, unit), now = tile_of(after, st, unit);
        if (before.x <= 0 && before.x + TX > 0) {
            auto behind = [&](const ParticleValues& p) { return before.x + int(p.cell & 255) <= 0; };
            const u32 *pages = pages_of(st, unit), list = unit * WARPS + warp, own = st.count[list];
            u32 kept = take_out(st, own, [&](u32 at) { return slot_at(st, pages[at >> SHIFT], at); }, behind);
            if (kept < own) {
                for (u32 k = pages_for(kept) + lane_index(); k < pages_for(own); k += WARP) give(st, pages[k]);
                if (lane_index() == 0) st.count[list] = kept;
            }
            if (warp == 0) {
                const u32* table = st.now.table + u64(unit) * st.inbox_room;
                u32 came = take_out(st, st.now.count[unit], [&](u32 at) { return slot_at(st, table[at >> SHIFT], at); }, behind);
                if (lane_index() == 0) st.now.count[unit] = came;
                __syncwarp();
            }
        }
        if (fresh && warp == 0 && now.x < d.cells[0] && now.x + TX >= d.cells[0])
            add_pages(st, unit, st.now.pages[unit], st.now.count[unit] + fresh);
        __syncthreads();
    }
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
