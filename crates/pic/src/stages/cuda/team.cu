// Units that are too heavy: a tile far fuller than the mean would be the work of one block, for which all others wait. What exceeds
// `limit` particles is shared with helpers, units of the same tile with lists, an inbox and sums of their own. Currents are joined by
// additions of integers, so that nothing depends on who did what.

#include "exchange.cu"

#define HEAVY 256  // split in a step at most

__device__ __forceinline__ u32 all_units(const Store& st) { return st.units + st.counters->helping; }
// The unit of a tile that `unit` is or helps; NONE for a helper without one, which has no particles.
__device__ __forceinline__ u32 owner_of(const Store& st, u32 unit) { return unit < st.units ? unit : st.owner[unit - st.units]; }
// One of those that work on `unit`, by a key that spreads.
__device__ __forceinline__ u32 member_of(const Store& st, u32 unit, u32 key) {
    uint2 team = st.team[unit];
    u32 k = __umulhi(key * 2654435769u, team.y + 1);
    return k ? st.members[team.x + k - 1] : unit;
}
// To be split when all have been worked on; one thread.
__device__ __forceinline__ void find_heavy(const Store& st, u32 unit, u32 whole) {
    if (whole <= st.limit) return;
    u32 k = atomicAdd(&st.counters->heavy, 1u);
    if (k < HEAVY) st.heavy[k] = unit;
}
__device__ __forceinline__ u32 in_lists(const Store& st, u32 unit) {
    u32 sum = 0;
    for (u32 w = 0; w < WARPS; w++) sum += st.count[unit * WARPS + w];
    return sum;
}

// Room of a team of `n`: a power of two, so that teams move seldom.
__device__ __forceinline__ u32 team_room(u32 n) { return n ? 1u << (32 - __clz(int(n - 1))) : 0; }
// Helpers for a unit, by one warp: where they stand in `members`, and how many.
__device__ __forceinline__ uint2 recruit(const Store& st, u32 unit) {
    Counters* c = st.counters;
    u32 lane = lane_index(), spare = c->spare, helping = c->helping, filled = c->filled, base = owner_of(st, unit);
    // It was heavy when the step began, and has been dissolved since.
    if (base == NONE) return {0, 0};
    u32 parts = max((in_lists(st, unit) + st.target - 1) / st.target, 2u), more = min(parts - 1, st.helpers - helping + spare);
    uint2 team = st.team[base];
    u32 room = team_room(team.y + more);
    __syncwarp();
    if (room > team_room(team.y)) {
        if (filled + room > c->begin + 8 * st.helpers) return {0, 0};
        for (u32 k = lane; k < team.y; k += WARP) st.members[filled + k] = st.members[team.x + k];
        team.x = filled;
        filled += room;
    }
    uint2 found = {team.x + team.y, more};
    for (u32 k = lane; k < more; k += WARP) {
        u32 helper = k < spare ? st.spare[spare - 1 - k] : helping + k - spare;
        st.members[found.x + k] = st.units + helper;
        st.owner[helper] = base;
    }
    __syncwarp();
    if (lane == 0) {
        st.team[base] = {team.x, team.y + more};
        c->spare = spare - min(spare, more);
        c->helping = helping + more - min(spare, more);
        c->filled = filled;
    }
    __syncwarp();
    return found;
}
// Teams that moved have left gaps in `members`: now and then all of them go to its other half; a block.
__device__ __forceinline__ void close_gaps(const Store& st) {
    __shared__ u32 filled;
    Counters* c = st.counters;
    u32 begin = c->begin ? 0 : 8 * st.helpers;
    const bool due = c->filled - c->begin > 4 * st.helpers;
    // All have looked before `recruit` changes what they look at.
    __syncthreads();
    if (!due) return;
    if (threadIdx.x == 0) filled = begin;
    __syncthreads();
    for (u32 unit = threadIdx.x; unit < st.units; unit += blockDim.x) {
        uint2 team = st.team[unit];
        u32 to = team.y ? atomicAdd(&filled, team_room(team.y)) : 0;
        for (u32 k = 0; k < team.y; k++) st.members[to + k] = st.members[team.x + k];
        st.team[unit] = {to, team.y};
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        c->begin = begin;
        c->filled = filled;
    }
    __syncthreads();
}
// Shares the full pages of heavy units out; a block.
__device__ __forceinline__ void split(const Store& st) {
    __shared__ uint2 helpers[HEAVY];
    u32 found = min(st.counters->heavy, u32(HEAVY)), lane = lane_index();
    if (found == 0 || st.counters->helping - st.counters->spare == st.helpers) return;
    __syncthreads();
    close_gaps(st);
    if (threadIdx.x < WARP)
        for (u32 k = 0; k < found; k++) {
            uint2 h = recruit(st, st.heavy[k]);
            if (lane == 0) helpers[k] = h;
        }
    __syncthreads();
    // A warp a list: its last full pages go, as many to each helper.
    for (u32 k = threadIdx.x / WARP; k < found * WARPS; k += blockDim.x / WARP) {
        uint2 h = helpers[k / WARPS];
        u32 list = st.heavy[k / WARPS] * WARPS + k % WARPS, n = st.count[list], full = n >> SHIFT, each = full / (h.y + 1),
            rest = full - h.y * each;
        u32* pages = st.table + u64(list) * st.room;
        for (u32 j = lane; j < h.y * each; j += WARP)
            st.table[u64(st.members[h.x + j / each] * WARPS + k % WARPS) * st.room + j % each] = pages[rest + j];
        for (u32 j = lane; j < h.y; j += WARP) st.count[st.members[h.x + j] * WARPS + k % WARPS] = each << SHIFT;
        __syncwarp();
        if (lane == 0) {
            if (n % PAGE) pages[rest] = pages[full];
            st.count[list] = (rest << SHIFT) + n % PAGE;
        }
    }
}
