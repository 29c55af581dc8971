// The order of a tile's particles by key: in shared memory, or where they do not fit in the region that they are written to. Cost: two
// bytes and then 20 or more read a particle, many at once, since a warp has nothing else to do while it waits.

#include "candidates.cu"

// Rounds of a warp over the candidates of a tile that fits, whose own region may have holes; and of one that does not, at once.
#define KEEP ((CAPACITY + CAPACITY / 8 + THREADS - 1) / THREADS)
#define AT_ONCE 4

// Orders the candidates by key, equal ones as they stood: each warp counts its part, and then writes it behind those before it. Where
// the tile fits, keys and their ranks stay in registers in between.
// `counts` has one for each warp and key.
template <bool FITS> __device__ __forceinline__ void order(const Store& st, const Source& from, const Sorted& s, u32* start,
                                                           Count<FITS> (*counts)[KEYS]) {
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
        if (key != NONE && !(alike & below)) counts[warp][key] = Count<FITS>(rank + __popc(alike));
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
                counts[w][key] = Count<FITS>(at);
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
