// A collision: internal modes, direction, parts of cells. `stages/cpu/collide.rs` has the method and draws the same numbers.

#include "common.cu"
#include "physics.cuh"

#define PAIRS (SPECIES * (SPECIES + 1) / 2)
#define EVIDENCE 2000.0f
#define FALL 0.9f
#define MARGIN 1.05f
#define ROUNDS 64.0f
#define GROUPS (THREADS / LANES)

// Threads that share the attempts of a cell: more than a warp where a tile has few cells. Those of a warp find out by each other's words who
// waits for whom, those of a team by marks in shared memory.
#if TEAMS
#define TEAM (THREADS / CELLS)
#else
#define TEAM LANES
#endif

#include "gas.cuh"

// The particles of a tile in order.
struct Sorted {
    float *x, *y, *vx, *vy, *vz, *rotation;
    Level* level;
    u16* key;
    u32 *order, *tag;
};
struct Tally {
    u32 collisions, attempts, exceeded;
};

__device__ __forceinline__ float power_of(float x, float y) { return x > 0.0f ? exp2f(y * __log2f(x)) : 0.0f; }
__device__ __forceinline__ Vec3<float> velocity(const Sorted& s, u32 i) { return {s.vx[i], s.vy[i], s.vz[i]}; }

#if DIVIDED
// Number and share of the part of a cell in which a position lies.
__device__ __noinline__ u32 part_at(const Gas& gas, u32 entry, float x, float y, float& fraction) {
    u32 first = entry & 0xffffff, count = entry >> 24;
    i64 px = i64(double(x) * 16777216.0), py = i64(double(y) * 16777216.0);
    for (u32 k = 0; k < count; k++) {
        Part part = gas.parts[first + k];
        bool inside = false;
        for (u32 c = 0; c < part.count; c++) {
            int2 a = gas.outline[part.first + c], b = gas.outline[part.first + (c + 1 < part.count ? c + 1 : 0)];
            if ((a.y > py) == (b.y > py)) continue;
            i64 side = (i64(b.x) - a.x) * (py - a.y) - (i64(b.y) - a.y) * (px - a.x);
            if (side != 0 && (side > 0) == (b.y > a.y)) inside = !inside;
        }
        if (inside) {
            fraction = part.fraction;
            return k;
        }
    }
    fraction = gas.parts[first].fraction;
    return 0;
}

#define SMALLEST 0.02f
__device__ __noinline__ bool together(const Gas& gas, u32 entry, float2 a, float2 b, u64 number) {
    float own, other, least = 1.0f;
    if (part_at(gas, entry, a.x, a.y, own) != part_at(gas, entry, b.x, b.y, other)) return false;
    for (u32 k = 0; k < entry >> 24; k++) least = fminf(least, gas.parts[(entry & 0xffffff) + k].fraction);
    Stream stream(PART, gas.seed, step_of(gas.step), number << 10);
    return stream.open() * fmaxf(own, SMALLEST) < fmaxf(least, SMALLEST);
}
#endif

#if ROTATES || VIBRATES
__device__ __forceinline__ float relaxation(float z, float t_star, float t) {
    if (t_star == 0.0f) return z;
    float x = t_star / t;
    return z / (1.0f + 2.7841640f * sqrtf(x) + 5.6089937f * x);  // pi^1.5 / 2, pi^2 / 4 + pi
}

// Chance of an exchange by the pool in units of theta: `Chances::at` of gas/millikan.rs.
__device__ __forceinline__ float chance_of(const float* table, float pool) {
    float at = logf(fmaxf(pool, 1.0f)) * POINTS_PER_LOG;
    u32 i = least(u32(at), u32(POINTS - 2));
    float part = fminf(at - float(i), 1.0f);
    return table[i] * (1.0f - part) + table[i + 1] * part;
}

// Larsen and Borgnakke's exchange, one mode of one particle after the other. Returns the new relative speed.
__device__ __noinline__ float exchange(const Gas& gas, const Kinetics& pair, float* rotation, Level* level, float g2, u64 number) {
    Stream stream(INTERNAL, gas.seed, step_of(gas.step), number << 10);
    float energy = pair.thermal * g2, b = pair.pool - 1.0f, freedom = 2.0f * pair.pool;
    for (u32 side = 0; side < 2; side++) {
        const Modes& modes = gas.modes[pair.species[side]];
#if VIBRATES
        // Of several modes each has a byte of the word.
        const bool several = VIBRATES > 1 && modes.count > 1;
        for (u32 m = 0; m < modes.count; m++) {
            float theta = modes.theta[m], d = modes.degeneracy[m], z = modes.z[m];
            u32 word = level[side], shift = several ? 8 * m : 0, own = several ? word >> shift & 0xff : word;
            float pool = energy + own * theta, t = 2.0f * pool / freedom, x = theta / t;
            int table = pair.chances[side][m];
            float chance = table >= 0  ? chance_of(gas.chances + table * POINTS, pool / theta)
                           : gas.jeans ? (freedom + d * (2.0f * x / fmaxf(expm1f(x), 1e-30f))) / (freedom * z)
                                       : 1.0f / z;
            if (open_f32(stream.word()) >= chance) continue;
            float highest = fminf(pool / theta, several ? float(HIGHEST_OF_SEVERAL) : HIGHEST_ALONE), q;
            for (bool taken = false; !taken;) {
                q = fminf(floorf(floorf(highest + 1.0f) * open_f32(stream.word())), floorf(highest));
                float u = open_f32(stream.word());
                taken = d > 1.0f ? levels_taken<float>(q, pool / theta, d, u, b) : level_taken<float>(q * theta, pool, u, b);
            }
            level[side] = Level(several ? (word & ~(0xffu << shift)) | u32(q) << shift : u32(q));
            energy = fmaxf(pool - q * theta, 0.0f);
        }
#endif
#if ROTATES
        if (modes.rotation > 0) {
            float pool = energy + rotation[side], zeta = float(modes.rotation);
            float z = relaxation(modes.z_rotation, modes.t_star, 2.0f * pool / (freedom + zeta));
            float chance = gas.jeans ? (freedom + zeta) / (freedom * z) : 1.0f / z;
            if (open_f32(stream.word()) < chance) {
                float own;
                if (modes.rotation == 2) {
                    own = rotor_share<float>(pool, open_f32(stream.word()), 1.0f / pair.pool);
                } else {
                    float x;
                    do x = open_f32(stream.word());
                    while (!top_takes<float>(x, open_f32(stream.word()), b));
                    own = pool * x;
                }
                rotation[side] = own;
                energy = fmaxf(pool - own, 0.0f);
            }
        }
#endif
    }
    return sqrtf(energy / pair.thermal);
}
#endif

// Particles i and j collide: internal energies first, then the direction. The first is of the pair's first species.
__device__ __forceinline__ void hit(const Gas& gas, const Kinetics& pair, const Sorted& s, u32 i, u32 j, Vec3<float> g, float g2,
                                    u32 w0, u32 w1, u64 number) {
    float speed = sqrtf(g2);
#if ROTATES || VIBRATES
    if (pair.inelastic) {
        float rotation[2] = {};
        Level level[2] = {};
        if (ROTATES) rotation[0] = s.rotation[i], rotation[1] = s.rotation[j];
        if (VIBRATES) level[0] = s.level[i], level[1] = s.level[j];
        speed = exchange(gas, pair, rotation, level, g2, number);
        if (ROTATES) s.rotation[i] = rotation[0], s.rotation[j] = rotation[1];
        if (VIBRATES) s.level[i] = level[0], s.level[j] = level[1];
    }
#endif
    float se, ce;
    sincospif(2.0f * uniform_f32(w1), &se, &ce);
#if COMPONENTS == 2
    Vec3<float> after = in_plane<float>(speed, ce, se);
#else
    float u = open_f32(w0);
    Vec3<float> after = pair.soft == 1.0f ? directed<float>(speed, 2.0f * u - 1.0f, ce, se)
                                          : deflected<float>(g, speed, 2.0f * power_of(u, pair.soft) - 1.0f, ce, se);
#endif
    Vec3<float> change = difference<float>(after, g);
    Vec3<float> v = moved<float>(velocity(s, i), pair.share[0], change), w = moved<float>(velocity(s, j), -pair.share[1], change);
    s.vx[i] = v.x, s.vy[i] = v.y, s.vz[i] = v.z;
    s.vx[j] = w.x, s.vy[j] = w.y, s.vz[j] = w.z;
}
