// The order of a tile's particles by key: in shared memory, or where they do not fit in the region that they are written to. Cost: two
// bytes and then 20 or more read a particle, many at once, since a warp has nothing else to do while it waits.

#include "advance.cu"

// Slots of `now` from which the candidates of a tile come: its own region, then arrivals.
struct Source {
    u32 begin, own, all, base;
    const u32* arrive;
};

// Slots and keys of the candidates k, k + 32 and so on below `end`, NONE where there is none. All are asked for before any is looked at:
// each round of a warp would else wait for memory.
template <u32 BATCH>
__device__ __forceinline__ void candidates(const Store& st, const Source& from, u32 k, u32 end, u32* slots, u32* keys) {
#pragma unroll
    for (u32 r = 0; r < BATCH; r++) {
        u32 at = k + 32 * r;
        slots[r] = at < end ? from.begin + at : NONE;
        if (at >= from.own && at < end) slots[r] = from.arrive[at - from.own];
    }
#pragma unroll
    for (u32 r = 0; r < BATCH; r++) keys[r] = st.now.key[slots[r] == NONE ? 0 : slots[r]];
#pragma unroll
    for (u32 r = 0; r < BATCH; r++) {
        bool hole = slots[r] == NONE || (k + 32 * r < from.own && (keys[r] & LEFT));
        keys[r] = hole ? NONE : keys[r] & ~LEFT;
    }
}

// Rounds of a warp over the candidates of a tile that fits, whose own region may have holes; and of one that does not, at once.
#define KEEP ((CAPACITY + CAPACITY / 8 + THREADS - 1) / THREADS)
#define AT_ONCE 4

// Copies a number to shared memory, which `fetched` waits for.
template <class T> __device__ __forceinline__ void fetch(T* to, const T* from) {
#if __CUDA_ARCH__ >= 800
    if (sizeof(T) == 4) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(u32(__cvta_generic_to_shared(to))), "l"(from) : "memory");
        return;
    }
#endif
    *to = *from;
}
__device__ __forceinline__ void fetched() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
__device__ __forceinline__ void fetch_to(const Store& st, const Sorted& s, u32 slot, u32 to, u32 key) {
    fetch(s.x + to, st.now.x + slot);
    fetch(s.y + to, st.now.y + slot);
    fetch(s.vx + to, st.now.vx + slot);
    fetch(s.vy + to, st.now.vy + slot);
    fetch(s.vz + to, st.now.vz + slot);
    s.key[to] = u16(key);
    if (ROTATES) fetch(s.rotation + to, st.now.rotation + slot);
    if (VIBRATES) fetch(s.level + to, st.now.level + slot);
    if (TAGGED) fetch(s.tag + to, st.now.tag + slot);
}

// Copies particles within device memory, each to where `to` says: all are read before one is written.
template <u32 BATCH>
__device__ __forceinline__ void copy_to(const Store& st, const Sorted& s, const u32* slots, const u32* to, const u32* keys) {
    float v[BATCH][6];
    Level level[BATCH];
    u32 tag[BATCH];
#pragma unroll
    for (u32 r = 0; r < BATCH; r++) {
        u32 slot = keys[r] == NONE ? 0 : slots[r];
        v[r][0] = st.now.x[slot];
        v[r][1] = st.now.y[slot];
        v[r][2] = st.now.vx[slot];
        v[r][3] = st.now.vy[slot];
        v[r][4] = st.now.vz[slot];
        if (ROTATES) v[r][5] = st.now.rotation[slot];
        if (VIBRATES) level[r] = st.now.level[slot];
        if (TAGGED) tag[r] = st.now.tag[slot];
    }
#pragma unroll
    for (u32 r = 0; r < BATCH; r++) {
        if (keys[r] == NONE) continue;
        s.x[to[r]] = v[r][0];
        s.y[to[r]] = v[r][1];
        s.vx[to[r]] = v[r][2];
        s.vy[to[r]] = v[r][3];
        s.vz[to[r]] = v[r][4];
        s.key[to[r]] = u16(keys[r]);
        if (ROTATES) s.rotation[to[r]] = v[r][5];
        if (VIBRATES) s.level[to[r]] = level[r];
        if (TAGGED) s.tag[to[r]] = tag[r];
    }
}

// Orders the candidates by key, equal ones as they stood: each warp counts its part, and then writes it behind those before it. Where
// the tile fits, keys and their ranks stay in registers in between.
template <bool FITS>
__device__ __forceinline__ void order(const Store& st, const Source& from, const Sorted& s, u32* start, u32 (*counts)[KEYS]) {
    __shared__ u32 sums[WARPS];
    const u32 warp = threadIdx.x / 32, lane = lane_index(), below = (1u << lane) - 1;
    const u32 part = (from.all + THREADS - 1) / THREADS * 32, begin = warp * part, end = least(begin + part, from.all);
    u32 slots[FITS ? KEEP : AT_ONCE], keys[FITS ? KEEP : AT_ONCE];
    for (u32 k = threadIdx.x; k < WARPS * KEYS; k += THREADS) counts[0][k] = 0;
    __syncthreads();
    // The rank of a key among those of its warp, with the count of the key so far.
    auto rank_of = [&](u32 key) {
        u32 alike = __match_any_sync(FULL_WARP, key), rank = 0;
        if (key != NONE) rank = counts[warp][key] + __popc(alike & below);
        __syncwarp();
        if (key != NONE && !(alike & below)) counts[warp][key] = rank + __popc(alike);
        __syncwarp();
        return rank;
    };
    if (FITS) {
        candidates<KEEP>(st, from, begin + lane, end, slots, keys);
#pragma unroll
        for (u32 r = 0; r < KEEP; r++)
            if (begin + 32 * r < end) {
                u32 rank = rank_of(keys[r]);
                if (keys[r] != NONE) keys[r] |= rank << 16;
            }
    } else {
        for (u32 k0 = begin; k0 < end; k0 += 32 * AT_ONCE) {
            candidates<AT_ONCE>(st, from, k0 + lane, end, slots, keys);
#pragma unroll
            for (u32 r = 0; r < AT_ONCE; r++) rank_of(keys[r]);
        }
    }
    __syncthreads();
    const u32 EACH = (KEYS + THREADS - 1) / THREADS;
    u32 own[EACH], sum = 0;
#pragma unroll
    for (u32 e = 0; e < EACH; e++) {
        u32 key = threadIdx.x * EACH + e;
        own[e] = 0;
        if (key < KEYS)
            for (u32 w = 0; w < WARPS; w++) own[e] += counts[w][key];
        sum += own[e];
    }
    u32 at = warp_scan(sum);
    if (lane == 31) sums[warp] = at;
    __syncthreads();
    at -= sum;
    for (u32 w = 0; w < warp; w++) at += sums[w];
#pragma unroll
    for (u32 e = 0; e < EACH; e++) {
        u32 key = threadIdx.x * EACH + e;
        if (key < KEYS) {
            start[key] = at;
            if (key + 1 == KEYS) start[KEYS] = at + own[e];
            for (u32 w = 0; w < WARPS; w++) {
                u32 n = counts[w][key];
                counts[w][key] = at;
                at += n;
            }
        }
    }
    __syncthreads();
    if (FITS) {
#pragma unroll
        for (u32 r = 0; r < KEEP; r++)
            if (keys[r] != NONE) {
                u32 key = keys[r] & 0xffff;
                fetch_to(st, s, slots[r], counts[warp][key] + (keys[r] >> 16), key);
            }
        fetched();
    } else {
        for (u32 k0 = begin; k0 < end; k0 += 32 * AT_ONCE) {
            u32 to[AT_ONCE];
            candidates<AT_ONCE>(st, from, k0 + lane, end, slots, keys);
#pragma unroll
            for (u32 r = 0; r < AT_ONCE; r++) to[r] = rank_of(keys[r]);
            copy_to<AT_ONCE>(st, s, slots, to, keys);
        }
    }
    __syncthreads();
}
