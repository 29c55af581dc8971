// made: a particle of a start that is the same in every cell, as loading/ makes it. To be compiled without fused operations: then
// both have the same bits.

#include "deviates.cuh"
#include "relativistic.cuh"
#include "uniform_source.cuh"

// Offsets and momentum of particle `k` of a cell. `offsets`: two of each particle where they are not random.
__device__ __forceinline__ void make(const UniformSource& m, const double* offsets, u64 column, u64 row, u32 k, double* v) {
    const u64 first = row << 40;
    // Particles 2m and 2m + 1 share draws.
    const bool odd = k & 1;
    if (m.random) {
        uint4 w = philox_draw(m.place, m.seed, column, first + k / 2);
        v[0] = fraction(odd ? w.z : w.x) - 0.5;
        v[1] = fraction(odd ? w.w : w.y) - 0.5;
    } else {
        v[0] = offsets[2 * k];
        v[1] = offsets[2 * k + 1];
    }
    if (m.line) v[1] = 0.0;
    double g[3] = {0.0, 0.0, 0.0};
    if (m.heat == RELATIVISTIC) {
        // Tries take two numbers each.
        Candidate u;
        u64 number = first + k * NUMBERS_OF_A_PARTICLE;
        do {
            uint4 w = philox_draw(m.momentum, m.seed, column, number), more = philox_draw(m.momentum, m.seed, column, number + 1);
            u = relativistic_candidate(w.x, w.y, w.z, w.w, more.x, more.y, more.z, more.w, m.width[0]);
            number += 2;
        } while (!(u.drawn < u.limit));
        u = boosted(u, frame_of(m.drift[0], m.drift[1], m.drift[2]));
        v[2] = u.x;
        v[3] = u.y;
        v[4] = u.z;
        return;
    }
    if (m.heat == GAUSSIAN) {
        uint4 w = philox_draw(m.momentum, m.seed, column, first + (k & ~1u));
        Pair pair = normal_pair(fraction(odd ? w.z : w.x), fraction(odd ? w.w : w.y));
        g[0] = pair.x;
        g[1] = pair.y;
        w = philox_draw(m.momentum, m.seed, column, first + (k | 1u));
        pair = normal_pair(fraction(w.x), fraction(w.y));
        g[2] = odd ? pair.y : pair.x;
    }
    for (int c = 0; c < 3; c++) v[2 + c] = g[c] * m.width[c] + m.drift[c];
}
