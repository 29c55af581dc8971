// The step of a tile: its particles are put in order, collide, are sampled and fly.

#include "attempts.cu"
#include "free_flight.cu"
#include "majorant.cu"
#include "mirror.cu"
#include "order.cu"
#include "pairing.cu"
#include "sample.cu"

// MODE 0: only sorts, no particle moves; 1: a step; 2: a step with samples.
template <int MODE, bool FITS> __device__ __forceinline__ void work(const Store& st, const Gas& gas, const Pass& p, const Sorted& s,
                                                                    const Source& from, const u32& tile, u32 n, u32* start,
                                                                    char* counts, u32* near, u32* marks) {
    __shared__ u32 tally[4];
    const u32 warp = threadIdx.x / 32, lane = lane_index(), below = (1u << lane) - 1;
    const int2 origin = tile_coordinates(st, tile), corner{origin.x << SX, origin.y << SY};
    if (threadIdx.x < 4) tally[threadIdx.x] = 0;
#if MIRRORS
    __shared__ u64 bounced[4][2];
    if (MODE == 2 && threadIdx.x < 8) bounced[threadIdx.x / 2][threadIdx.x % 2] = 0;
#endif
    if (MODE > 0) ask_for_majorants(gas, tile);
    order<FITS>(st, from, s, start, reinterpret_cast<Count<FITS>(*)[KEYS]>(counts));
    if (MODE > 0) {
#if FOLLOWS
        observe(p, tile, s, start);
        __syncthreads();
#endif
        Tally mine{};
        collide(
            gas, tile, s, start,
            [&](u32 slot) {
                u32 row = tile % LAYERS * st.cells[1] + u32(corner.y) + (slot >> SX);  // of the layers one above the other
                return row * st.cells[0] + u32(corner.x) + (slot & ((1u << SX) - 1));
            },
            marks, mine);
        if (MODE == 2) sample(gas, p, tile, s, start);
        if (SCHEME > 0) {
            u32 found[3] = {mine.collisions, mine.attempts, mine.exceeded};
            for (int c = 0; c < 3; c++) {
                found[c] = warp_reduce<Sum<u32>>(found[c]);
                if (lane == 0 && found[c]) atomicAdd(tally + c, found[c]);
            }
        }
        // Flights read what the collisions of all cells have written. Those of a team have all ended.
        if (SCHEME > 0 && !TEAMS) __syncthreads();
    }
    const Columns& to = st.next;
    const u32 base = from.base, part = list_part(n), begin = warp * part, end = least(begin + part, n);
    u32 leavers = 0, special = 0;
    // Writes a particle where it has come to, with its velocity where it was turned back, and lists it if it goes away. By a whole warp.
    auto settle = [&](bool there, u32 i, float x, float y, float vx, float vy, bool turned, u32 key, u32 way, u32 goal) {
        if (there) {
            to.x[base + i] = x;
            to.y[base + i] = y;
            to.key[base + i] = u16(way == NONE ? key : key | LEFT);
            if (FITS || turned) {
                to.vx[base + i] = vx;
                to.vy[base + i] = vy;
            }
            if (FITS) {
                to.vz[base + i] = s.vz[i];
                if (ROTATES) to.rotation[base + i] = s.rotation[i];
                if (VIBRATES) to.level[base + i] = s.level[i];
                if (TAGGED) to.tag[base + i] = s.tag[i];
            }
        }
        u32 all = MODE > 0 ? __ballot_sync(FULL_WARP, way != NONE) : 0;
        if (all) {
            if (way != NONE) {
                u32 at = base + begin + leavers + __popc(all & below);
                st.list[at] = way << 28 | i;
                if (way < FAR) atomicAdd(near + way, 1u);
                if (way == FAR && (!PARTS || goal != NONE)) atomicAdd(st.far_in + goal, 1u);
            }
            leavers += __popc(all);
            special += __popc(__ballot_sync(FULL_WARP, way != NONE && way >= FAR));
        }
    };
    // Those that may hit a mirror wait in the last slots of the warp's list, so that few threads are idle while they fly.
    u32 waiting = end;
#pragma unroll 2
    for (u32 k0 = begin; k0 < end; k0 += 32) {
        u32 i = k0 + lane, way = NONE, goal = 0, key = 0, next = 0;
        float x = 0.0f, y = 0.0f, vx = 0.0f, vy = 0.0f;
        bool there = i < end;
        if (there) {
            x = s.x[i], y = s.y[i], vx = s.vx[i], vy = s.vy[i];
            next = key = s.key[i];
            if (MODE > 0) way = fly_one(st, p, tile, corner, key, vx, vy, x, y, next, goal);
        }
#if MIRRORS
        bool waits = MODE > 0 && way == PENDING;
        u32 all = __ballot_sync(FULL_WARP, waits);
        waiting -= __popc(all);
        if (waits) {
            st.list[base + waiting + __popc(all & below)] = i;
            there = false;
            way = NONE;
        }
#endif
        settle(there, i, x, y, vx, vy, false, next, way, goal);
    }
#if MIRRORS
    if (MODE > 0) fly_waiting<MODE == 2>(st, p, corner, s, st.list + base, waiting, end, bounced, settle);
#endif
    if (lane == 0) {
        st.left[tile * LISTS + warp] = leavers;
        if (!RECORDED) st.special[tile * LISTS + warp] = special;
        if (leavers) atomicAdd(tally + 3, leavers);
    }
#if RECORDED
    if (special) {
        u32 at = lane == 0 ? atomicAdd(&st.counters->special, special) : 0;
        at = __shfl_sync(FULL_WARP, at, 0);
        __syncwarp();
        for (u32 k0 = 0; k0 < leavers; k0 += 32) {
            u32 entry = k0 + lane < leavers ? st.list[base + begin + k0 + lane] : 0;
            bool wanders = entry >> 28 >= FAR;
            u32 all = __ballot_sync(FULL_WARP, wanders);
            if (wanders) set_wanderer(st, st.now, at + __popc(all & below), tile, base + (entry & INDEX), entry >> 28);
            at += __popc(all);
        }
    }
#endif
    __syncthreads();
#if MIRRORS
    if (MODE == 2) add_bounces(p, bounced);
#endif
    if (threadIdx.x < 9) {
        st.near[tile * 9 + threadIdx.x] = near[threadIdx.x];
        if (near[threadIdx.x] && owns(st, origin.x + int(threadIdx.x % 3) - 1, origin.y + int(threadIdx.x / 3) - 1))
            atomicAdd(st.near_in + neighbour(st, tile, threadIdx.x, 1), near[threadIdx.x]);
    }
    if (threadIdx.x == 0) {
        st.stay[tile] = n - tally[3];
        if (tally[0]) atomicAdd(&st.counters->collisions, u64(tally[0]));
        if (tally[1]) atomicAdd(&st.counters->attempts, u64(tally[1]));
        if (tally[2]) atomicAdd(&st.counters->exceeded, u64(tally[2]));
    }
}
