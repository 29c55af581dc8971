// No time counter and majorant frequency, LANES threads a cell: `stages/cpu/collide.rs` has the method and draws the same numbers.
// Attempts of a cell are done LANES at a time; one that shares a particle with an earlier one waits for it, so that the result is that
// of one after the other.

#include "majorant.cu"
#include "partners.cu"
#include "sub_volumes.cu"

#if SCHEME == 1 || SCHEME == 2
template <class F> __device__ __forceinline__ void collide(const Gas& gas, u32 tile, const Sorted& s, const u32* start,
                                                           F cell_number, u32* marks, Tally& tally) {
#if TEAMS
    for (u32 k = threadIdx.x; k < MARKS; k += THREADS) marks[k] = NONE;
#endif
    const u32 me = lane_index(), lane = threadIdx.x % TEAM;
    for (u32 slot = threadIdx.x / TEAM; slot < CELLS; slot += THREADS / TEAM) {
        u32 cell = cell_number(slot), number = 0;
        u64 at_cell = u64(tile) * CELLS + slot;
        float rate = gas.rate[at_cell];
        uint4 words;
        for (u32 p = 0; p < PAIRS; p++) {
            const Kinetics& pair = gas.pairs[p];
            if (p % 4 == 0) words = philox_draw(COUNT, gas.seed, step_of(gas.step), u64(cell) << 32 | p / 4);
            u32 word = p % 4 == 0 ? words.x : p % 4 == 1 ? words.y : p % 4 == 2 ? words.z : words.w;
            u32 a = slot * SPECIES + pair.species[0], b = slot * SPECIES + pair.species[1];
            u32 first = start[a], second = start[b], na = start[a + 1] - first, nb = start[b + 1] - second;
            u32 same = a == b;
            u64 kept = p * gas.stride + at_cell;
            float sigma_g_max = gas.sigma_g_max[kept], seen = 0.0f;
            float mean = (same ? 0.5f * float(na) * (float(na) - 1.0f) : float(na) * float(nb)) * rate * sigma_g_max;
            u32 attempts = 0;
#if SCHEME == 1
            if (mean > 0.0f) attempts = u32(mean + uniform_f32(word));
#else
            if (mean > 0.0f) attempts = poisson(mean, word, gas.seed, step_of(gas.step), u64(cell) * PAIRS + p);
#endif
            auto attempt = [&](u32 i, u32 j, uint4 w, u32 t) {
                Vec3<float> g = difference<float>(velocity(s, i), velocity(s, j));
                float g2 = square<float>(g), sigma_g = pair.rate * power_of(g2, pair.power);
                seen = fmaxf(seen, sigma_g);
                if (uniform_f32(w.y) * sigma_g_max >= sigma_g) return;
                u64 item = u64(cell) << 24 | (t & 0xffffff);
#if DIVIDED
                u32 entry = gas.divided[at_cell];
                if (entry && !together(gas, entry, {s.x[i], s.y[i]}, {s.x[j], s.y[j]}, item)) return;
#endif
                tally.exceeded += sigma_g > sigma_g_max;
                tally.collisions++;
                hit(gas, pair, s, i, j, g, g2, w.z, w.w, item);
#if TAGGED
                // A number that only these two have: until one of them collides again, it tells that they just did.
                s.tag[i] = s.tag[j] = (w.z ^ __funnelshift_l(w.w, w.w, 16)) | 1;
#endif
            };
            auto draw = [&](u32 t, u32& i, u32& j) {
                // One word for both partners: the fraction that the first leaves chooses the second, or where it has fewer values than there are
                // pairs a further one.
                uint4 w = philox_draw(PAIR, gas.seed, step_of(gas.step), u64(cell) << 32 | t);
                u64 product = u64(w.x) * na;
                i = u32(product >> 32);
                u32 rest = u32(product);
                if (CROWDED && u64(na) * nb > 0xffffffffu)
                    rest = philox_draw(PARTNER, gas.seed, step_of(gas.step), u64(cell) << 32 | t).x;
                j = u32((u64(rest) * (nb - same)) >> 32);
                j += same && j >= i;
                i += first;
                j += second;
                return w;
            };
#if TAGGED
            // One after the other, since the partner depends on earlier collisions.
            for (u32 t = 0; __any_sync(FULL_WARP, t < attempts); t++) {
                u32 i = 0, j = 0;
                bool live = t < attempts;
                uint4 w = {};
                if (live) w = draw(number + t, i, j);
                bool whole = !DIVIDED || !gas.divided[at_cell];
#if NEAREST
                u32 k = nearest(gas, s, live && whole, i, j, second, second + nb);
#else
                u32 k = live && whole ? fresh(s, i, j, second, second + nb) : j;
#endif
                // All have read the marks that a collision changes.
                __syncwarp();
                if (live && lane == 0) attempt(i, whole ? k : j, w, number + t);
                __syncwarp();
            }
#elif TEAMS
            // As many at once as there are threads.
            for (u32 b0 = 0; __syncthreads_or(b0 < attempts); b0 += TEAM) {
                u32 t = b0 + lane, i = 0, j = 0;
                bool live = t < attempts;
                uint4 w = {};
                if (live) w = draw(number + t, i, j);
                u32 *mine = marks + i % MARKS, *other = marks + j % MARKS;
                // The first of those left that have a particle marks it.
                do {
                    if (live) {
                        atomicMin(mine, threadIdx.x);
                        atomicMin(other, threadIdx.x);
                    }
                    __syncthreads();
                    bool go = live && *mine == threadIdx.x && *other == threadIdx.x;
                    __syncthreads();
                    if (go) {
                        attempt(i, j, w, number + t);
                        *mine = *other = NONE;
                        live = false;
                    }
                } while (__syncthreads_or(live));
            }
#else
            // As many at once as there are threads.
            for (u32 b0 = 0; LANES == 1 ? b0 < attempts : __any_sync(FULL_WARP, b0 < attempts); b0 += LANES) {
                u32 t = b0 + lane, i = 0, j = 0;
                bool live = t < attempts;
                uint4 w = {};
                if (live) w = draw(number + t, i, j);
                if (LANES == 1) {
                    if (live) attempt(i, j, w, number + t);
                    continue;
                }
                u32 waits = 0;
#pragma unroll
                for (u32 k = 1; k < LANES; k++) {
                    u32 oi = __shfl_up_sync(FULL_WARP, i, k, LANES), oj = __shfl_up_sync(FULL_WARP, j, k, LANES);
                    if (lane >= k && (oi == i || oi == j || oj == i || oj == j)) waits |= 1u << (me - k);
                }
                u32 done = __ballot_sync(FULL_WARP, !live);
                while (done != FULL_WARP) {
                    bool go = live && !(done >> me & 1) && !(waits & ~done);
                    if (go) attempt(i, j, w, number + t);
                    __syncwarp();
                    done |= __ballot_sync(FULL_WARP, go);
                }
            }
#endif
            seen = largest_seen(slot, lane, seen);
            if (attempts > 0 && lane == 0) {
                tally.attempts += attempts;
                adapt(gas, kept, sigma_g_max, attempts, seen);
            }
            number += attempts;
        }
    }
}
#endif
