// A block a tile: its particles and those that come are put in order in shared memory (or, where they do not fit, in the region that
// they are written to), collide, are sampled, fly, and are written back with their new keys; leavers are listed. Particles that may
// hit something are left where they are for mirror.cu or `trace_flights`. Cost: 22 bytes read and 22 written a particle without internal modes, 80
// (BRIEF) or 160 a cell and species that is sampled.

#include "hit.cu"

#define WARPS (THREADS / 32)

#if BRIEF
typedef float Average;  // of the last few samples
#else
typedef double Average;
#endif

#include "pass.cuh"

__device__ __forceinline__ Sorted sorted_in(char* shared) {
    float* f = reinterpret_cast<float*>(shared);
    Sorted s{f,       f + CAPACITY, f + 2 * CAPACITY, f + 3 * CAPACITY, f + 4 * CAPACITY, f + 5 * CAPACITY,
             nullptr, nullptr,      nullptr,          nullptr};
    f += (5 + ROTATES) * CAPACITY;
    s.order = s.tag = reinterpret_cast<u32*>(f);  // never both
    f += (SCHEME == 3 || TAGGED) * CAPACITY;
    s.level = reinterpret_cast<Level*>(f);
    s.key = reinterpret_cast<u16*>(s.level + (VIBRATES > 0) * CAPACITY);
    return s;
}
__device__ __forceinline__ Sorted sorted_at(const Store& st, u32 base) {
    const Columns& c = st.next;
    return {c.x + base,
            c.y + base,
            c.vx + base,
            c.vy + base,
            c.vz + base,
            ROTATES ? c.rotation + base : nullptr,
            VIBRATES ? c.level + base : nullptr,
            c.key + base,
            st.list + base,
            TAGGED ? c.tag + base : nullptr};
}

// Takes the gas beside sides that follow it into their averages: `MovingAverage::take` of subsonic.rs.
__device__ __forceinline__ void observe(const Pass& p, u32 tile, const Sorted& s, const u32* start) {
    for (u32 f = p.follow_first[tile] + threadIdx.x; f < p.follow_first[tile + 1]; f += THREADS) {
        uint2 face = p.follow[f];
        double sum[MOVING] = {1.0};
        for (u32 species = 0; species < SPECIES; species++) {
            double own[4] = {}, heavy = p.mass[species] / p.mass[0];
            u32 key = face.x * SPECIES + species, begin = start[key], end = start[key + 1];
            for (u32 i = begin; i < end; i++) {
                double v[3] = {s.vx[i], s.vy[i], s.vz[i]};
                for (int c = 0; c < 3; c++) {
                    own[c] += v[c];
                    own[3] += v[c] * v[c];
                }
            }
            sum[1] += end - begin;
            for (int c = 0; c < 4; c++) sum[2 + c] += heavy * own[c];
            if (SPECIES > 1) sum[6 + species] = end - begin;
        }
        double keep = 1.0 - 1.0 / fmax(p.memory[face.y], 1.0), *to = p.moving + MOVING * u64(face.y);
        for (int c = 0; c < MOVING; c++) to[c] = to[c] * keep + sum[c];
    }
}
