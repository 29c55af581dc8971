// Reflection of a molecule by a wall: `walls/mod.rs`.

#include "common.cu"
#include "random.cu"
#include "wall.cuh"
#include "walls.cuh"

struct Motion {
    double v[3], rotation;
    u32 level;
};
#define BOLTZMANN 1.380649e-23

__device__ __forceinline__ double energy_of(const Molecule& m, const Motion& a) {
    double internal = a.rotation;
    for (u32 k = 0; k < m.count; k++) internal += double(m.count > 1 ? a.level >> 8 * k & 0xff : a.level) * m.theta[k];
    return 0.5 * m.mass * (a.v[0] * a.v[0] + a.v[1] * a.v[1] + a.v[2] * a.v[2]) + BOLTZMANN * internal;
}

// Levels in equilibrium: `Vibration::word` of gas/vibration.rs.
__device__ __noinline__ u32 levels_at(const Molecule& m, double temperature, Stream& u) {
    u32 word = 0;
    for (u32 k = 0; k < m.count; k++) {
        u32 q;
        do {
            q = 0;
            for (u32 d = 0; d < m.degeneracy[k]; d++)
                q += u32(fmin(vibration_level<double>(m.theta[k] / temperature, u.open()), 65535.0));
        } while (m.count > 1 && q > HIGHEST_OF_SEVERAL);
        word |= (m.count > 1 ? q : q < 65535u ? q : 65535u) << 8 * k;
    }
    return word;
}

__device__ __noinline__ void reflect(const Wall& w, const Molecule& m, const double* n, Motion& a, Stream& u) {
    double across = a.v[0] * n[0] + a.v[1] * n[1], kind = w.model == 0   ? 0.0
                                                          : w.model == 1 ? double(u.open() < w.normal)
                                                                         : w.normal;
    if (kind == 0.0 && (w.model != 2 || w.tangential == 0.0)) {
        a.v[0] -= 2.0 * across * n[0];
        a.v[1] -= 2.0 * across * n[1];
        return;
    }
    double tangent[2] = {-n[1], n[0]}, slide[2] = {w.velocity[0] * tangent[0] + w.velocity[1] * tangent[1], w.velocity[2]};
    double along[2] = {a.v[0] * tangent[0] + a.v[1] * tangent[1] - slide[0], a.v[2] - slide[1]};
    double thermal = sqrt(m.thermal * w.temperature), away, t, b;
    if (w.model == 2) {
        double r = u.open(), angle = u.open();
        away = thermal * cll_normal<double>(kind, -across / thermal, r, angle);
        double size = hypot(along[0], along[1]), p = size > 0.0 ? along[0] / size : 1.0, q = size > 0.0 ? along[1] / size : 0.0;
        r = u.open();
        angle = u.open();
        Two<double> v = cll_tangential<double>(w.tangential, size / thermal, r, angle);
        t = thermal * (v.a * p - v.b * q);
        b = thermal * (v.a * q + v.b * p);
    } else {
        double r = u.open(), angle = u.open();
        Two<double> v = diffuse_tangential<double>(r, angle);
        away = thermal * diffuse_normal<double>(u.open());
        t = thermal * v.a;
        b = thermal * v.b;
    }
    t += slide[0];
    a.v[0] = away * n[0] + t * tangent[0];
    a.v[1] = away * n[1] + t * tangent[1];
    a.v[2] = b + slide[1];
    if (m.rotation > 0) {
        double energy = a.rotation / w.temperature, r = u.open(), angle = u.open();
        a.rotation = w.temperature * (m.rotation == 2 ? rotation_two<double>(kind, energy, r, angle)
                                                      : rotation_three<double>(kind, energy, r, angle, u.open()));
    }
    if (m.count > 0 && (kind == 1.0 || u.open() < kind)) a.level = levels_at(m, w.temperature, u);
}
