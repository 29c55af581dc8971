// Helpers of units that are heavy no more.

#include "team.cu"

// Helpers with little to do go back where there are not enough of them for the heavy units of a step; a block, before `split`, as long
// as the inboxes that it reads next are open. Full pages go to the lists of the unit, all other particles into its inbox.
__device__ __forceinline__ void dissolve(const Store& st) {
    __shared__ u32 light[HEAVY], count;
    Counters* c = st.counters;
    u32 lane = lane_index(), warp = threadIdx.x / WARP;
    if (c->heavy == 0 || st.helpers - c->helping + c->spare > st.helpers / 8) return;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    for (u32 k = threadIdx.x; k < c->helping; k += blockDim.x) {
        u32 unit = st.units + k, base = st.owner[k];
        // Those in the team, none of whose arrivals still looks for a page.
        if (base == NONE || in_lists(st, unit) + st.next.count[unit] >= st.target / 4 ||
            st.next.count[unit] > st.next.pages[unit] * PAGE)
            continue;
        u32 at = atomicAdd(&count, 1u);
        if (at < HEAVY) light[at] = k;
    }
    __syncthreads();
    for (u32 i = 0; i < min(count, u32(HEAVY)); i++) {
        u32 unit = st.units + light[i], base = st.owner[light[i]];
        if (warp < WARPS) {
            u32 list = base * WARPS + warp, mine = unit * WARPS + warp, n = st.count[list], m = st.count[mine], full = n >> SHIFT,
                more = m >> SHIFT;
            u32 *to = st.table + u64(list) * st.room, *from = st.table + u64(mine) * st.room, last = n % PAGE ? to[full] : NONE;
            bool fits = full + more < st.room;
            __syncwarp();
            if (fits) {
                for (u32 k = lane; k < more; k += WARP) to[full + k] = from[k];
                if (lane == 0 && last != NONE) to[full + more] = last;
            }
            // Particles without room in the list go one by one, too.
            for (u32 k = (fits ? more << SHIFT : 0) + lane; k < m; k += WARP)
                post(st, record(base, slot_of(slot_at(st, from[k >> SHIFT], k))));
            __syncwarp();
            for (u32 k = (fits ? more : 0) + lane; k < (m + PAGE - 1) >> SHIFT; k += WARP) give(st, from[k]);
            if (lane == 0) {
                st.count[mine] = 0;
                if (fits) st.count[list] = n + (more << SHIFT);
            }
        }
        const u32* came = st.next.table + u64(unit) * st.inbox_room;
        for (u32 k = threadIdx.x; k < st.next.count[unit]; k += blockDim.x)
            post(st, record(base, slot_of(slot_at(st, came[k >> SHIFT], k))));
        __syncthreads();
        if (threadIdx.x == 0) {
            uint2 team = st.team[base];
            for (u32 k = 0; k < team.y; k++)
                if (st.members[team.x + k] == unit) st.members[team.x + k] = st.members[team.x + team.y - 1];
            st.team[base] = {team.x, team.y - 1};
            st.next.count[unit] = 0;
            st.owner[light[i]] = NONE;
            st.spare[c->spare++] = light[i];
        }
        __syncthreads();
    }
}
