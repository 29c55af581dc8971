// A collision: `stages/cpu/collide.rs` has the method and draws the same numbers.

#include "internal_energy.cu"

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
