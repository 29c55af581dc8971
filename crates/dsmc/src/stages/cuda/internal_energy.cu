// Exchange of internal energies in a collision.

#include "gas.cu"
#include "random.cu"

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
