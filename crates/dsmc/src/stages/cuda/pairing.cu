// Pairing, LANES threads a cell: all particles in disjoint random pairs. `stages/cpu/collide.rs` has the method.

#include "hit.cu"
#include "sub_volumes.cu"

#if SCHEME == 3
template <class F> __device__ __forceinline__ void collide(const Gas& gas, u32 tile, const Sorted& s, const u32* start,
                                                           F cell_number, u32*, Tally& tally) {
    const u32 lane = threadIdx.x % LANES;
    for (u32 slot = threadIdx.x / LANES; slot < CELLS; slot += GROUPS) {
        u32 cell = cell_number(slot), begin = start[slot * SPECIES], n = start[(slot + 1) * SPECIES] - begin;
        u64 at_cell = u64(tile) * CELLS + slot;
        float rate = gas.rate[at_cell], sigma_g_max = 0.0f, scale = float(n - 1 + n % 2);
        for (u32 p = 0; p < PAIRS; p++) sigma_g_max = fmaxf(sigma_g_max, gas.sigma_g_max[p * gas.stride + at_cell]);
        // As many rounds as keep probabilities below 1.
        u32 rounds = n < 2 ? 0 : u32(fminf(fmaxf(ceilf(scale * rate * sigma_g_max), 1.0f), ROUNDS));
        float probability = scale * rate / float(rounds);
        Stream stream(PERMUTE, gas.seed, step_of(gas.step), u64(cell) << 30);
        for (u32 round = 0; LANES == 1 ? round < rounds : __any_sync(FULL_WARP, round < rounds); round++) {
            if (round < rounds && lane == 0) {
                for (u32 k = 0; k < n; k++) s.order[begin + k] = begin + k;
                for (u32 k = n - 1; k > 0; k--) {
                    u32 other = u32((u64(stream.word()) * (k + 1)) >> 32), kept = s.order[begin + k];
                    s.order[begin + k] = s.order[begin + other];
                    s.order[begin + other] = kept;
                }
            }
            if (LANES > 1) __syncwarp();
            for (u32 t = lane; round < rounds && t < n / 2; t += LANES) {
                u32 i = s.order[begin + 2 * t], j = s.order[begin + 2 * t + 1], a = s.key[i] % SPECIES, b = s.key[j] % SPECIES;
                u32 p = SPECIES == 1 ? 0 : gas.lookup[a * SPECIES + b];
                const Kinetics& pair = gas.pairs[p];
                if (a != pair.species[0]) {
                    u32 other = i;
                    i = j;
                    j = other;
                }
                Vec3<float> g = difference<float>(velocity(s, i), velocity(s, j));
                float g2 = square<float>(g), sigma_g = pair.rate * power_of(g2, pair.power), chance = sigma_g * probability;
                float* kept = gas.sigma_g_max + p * gas.stride + at_cell;
                // Positive numbers are ordered as their words are; the largest does not depend on the order.
                if (sigma_g > *kept) atomicMax(reinterpret_cast<int*>(kept), __float_as_int(sigma_g));
                tally.attempts++;
                tally.exceeded += chance > 1.0f;
                uint4 w = philox_draw(PAIR, gas.seed, step_of(gas.step), u64(cell) << 32 | round << 25 | t);
                if (uniform_f32(w.y) >= chance) continue;
                u64 item = u64(cell) << 24 | ((round << 18 | t) & 0xffffff);
#if DIVIDED
                u32 entry = gas.divided[at_cell];
                if (entry && !together(gas, entry, {s.x[i], s.y[i]}, {s.x[j], s.y[j]}, item)) continue;
#endif
                tally.collisions++;
                hit(gas, pair, s, i, j, g, g2, w.z, w.w, item);
            }
            if (LANES > 1) __syncwarp();
        }
    }
}
#elif SCHEME == 0
template <class F> __device__ __forceinline__ void collide(const Gas&, u32, const Sorted&, const u32*, F, u32*, Tally&) {}
#endif
