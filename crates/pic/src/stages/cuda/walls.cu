// Boundary condition for a particle that has moved to cell (x, y) outside of the domain. False: it was taken out.

#include "common.cu"

__device__ __noinline__ real2_t thermal_pair(uint4 w) {
    double r = sqrt(-2.0 * log(open_f64(w.x, w.y))), sine, cosine;
    sincospi(2.0 * uniform_f64(w.z, w.w), &sine, &cosine);
    return {real(r * cosine), real(r * sine)};
}

#include "walls.cuh"

__device__ __noinline__ bool meet_walls(const Domain& d, const Walls& walls, Counters* counters, int& x, int& y, real* v,
                                        real weight) {
    int at[2] = {x, y};
    for (int axis = 0; axis < 2; axis++) {
        int n = d.cells[axis];
        if (at[axis] >= 0 && at[axis] < n) continue;
        int end = at[axis] >= n, side = d.sides[2 * axis + end];
        if (side == 0) {
            at[axis] += end ? -n : n;
            continue;
        }
        // Another part of the run comes next.
        if (side == 4) continue;
        Vec3<double> u{double(v[2]), double(v[3]), double(v[4])};
        double energy = double(weight) * kinetic_energy(u);
        if (side == 2) {
            atomicAdd(&counters->removed, 1ull);
            add_exact(counters->out, double(weight));
            add_exact(counters->out + 2, energy);
            return false;
        }
        if (side == 1) {
            v[2 + axis] = -v[2 + axis];
        } else {
            add_exact(counters->out + 2, energy);
            // Keyed by the particle itself: its number in the tile depends on the order in which blocks ran.
            u64 key = mixed_in(u64(0), u64(u32(at[0] * 8191 + at[1] + d.row)));
            for (int k = 0; k < 5; k++) key = mixed_in(key, u64(bits(v[k])));
            uint4 a = philox_draw(walls.purpose, walls.seed, walls.step, key),
                  b = philox_draw(walls.purpose, walls.seed, walls.step, ~key);
            real u_th = real(d.thermal[2 * axis + end]);
            real2_t pair = thermal_pair(b);
            real normal = u_th * real(sqrt(-2.0 * log(open_f64(a.x, a.y))));
            v[2 + axis] = end ? -normal : normal;
            v[3 - axis] = u_th * pair.x;
            v[4] = u_th * pair.y;
            Vec3<double> w{double(v[2]), double(v[3]), double(v[4])};
            add_exact(counters->out + 4, double(weight) * kinetic_energy(w));
        }
        at[axis] = end ? 2 * n - 1 - at[axis] : -1 - at[axis];
        v[axis] = -v[axis];
    }
    x = at[0];
    y = at[1];
    return true;
}
