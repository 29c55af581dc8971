// The motion of an injected molecule.

#include "reflect.cu"

__device__ __noinline__ double normal_speed(double s, Stream& u) {
    for (;;) {
        if (s < -0.7) {
            double a = u.open(), b = u.open(), x = log(a * b) / (2.0 * s);
            if (u.open() < exp(-x * x)) return x;
        } else if (s < 0.0) {
            double x = sqrt(-log(u.open()));
            if (u.open() < exp(2.0 * s * x)) return x;
        } else {
            double gauss = s * 1.7724538509055159, r = sqrt(-log(u.open())), y;
            if (u.open() * (gauss + 1.0) < gauss) y = r * cospi(2.0 * u.open());
            else y = u.open() < 0.5 ? r : -r;
            if (u.open() * (s + fabs(y)) < s + y) return s + y;
        }
    }
}

// Velocity of a flux along the normal n, then the internal modes at equilibrium (`loading::internal`).
__device__ __noinline__ Motion draw(const Molecule& m, double temperature, const double* velocity, const double* n, Stream& u) {
    double c = sqrt(m.thermal * temperature), away = c * normal_speed((velocity[0] * n[0] + velocity[1] * n[1]) / c, u);
    double r = u.open(), angle = u.open();
    Two<double> v = diffuse_tangential<double>(r, angle);
    double t = c * v.a + velocity[1] * n[0] - velocity[0] * n[1];
    Motion a{{away * n[0] - t * n[1], away * n[1] + t * n[0], c * v.b + velocity[2]}, 0.0, 0};
    if (COMPONENTS == 2) a.v[2] = 0.0;
    if (m.rotation == 2) {
        a.rotation = -temperature * log(u.open());
    } else if (m.rotation > 0) {
        double p = u.open(), q = u.open(), gauss = sqrt(-2.0 * log(p)) * cospi(2.0 * q);
        a.rotation = temperature * (0.5 * gauss * gauss - log(u.open()));
    }
    a.level = levels_at(m, temperature, u);
    // As the store rounds it.
    for (int k = 0; k < 3; k++) a.v[k] = float(a.v[k]);
    a.rotation = float(a.rotation);
    return a;
}
