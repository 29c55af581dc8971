// Sums of a cell over all batches and what follows from those of species with internal modes. All lists are by sum or value, then
// cell, in the order of tiles: those of layers of a cell are one cell's here.

#include "common.cu"
#include "values.cuh"
#include "batches.cuh"

#define LINES (SPECIES > 1 ? 1 + SPECIES : 1)
#define OF_LINE 14  // values of a line: `OF_SPECIES`

// A sum of a cell before this batch, or with it.
struct Sums {
    const Batches& b;
    u64 at;
    bool with;
    __device__ double operator()(u32 q, u32 species) const {
        u64 i = q * b.stride + at + species;
        double sum = b.count > 1.0 ? b.all[i] : 0.0, fresh = 0.0;
        if (!with) return sum;
        for (u32 layer = 0; layer < LAYERS; layer++) fresh += b.fresh[i + layer * KEYS];
        return sum + fresh;
    }
};

// Temperature of an oscillator of a mean level: `Vibration::mode_temperature`.
__device__ double mode_temperature(const Molecule& m, u32 mode, double level) {
    return level > 0.0 ? m.theta[mode] / log1p(m.degeneracy[mode] / level) : 0.0;
}

// Temperature at which all oscillators have their energy: `Vibration::temperature`.
__device__ double vibration_temperature(const Molecule& m, const double* levels) {
    if (m.modes < 2) return m.modes ? mode_temperature(m, 0, levels[0]) : 0.0;
    double energy = 0.0, modes = 0.0, zero = 0.0;
    for (u32 k = 0; k < m.modes; k++) {
        energy += m.theta[k] * levels[k];
        modes += m.degeneracy[k];
        zero += m.degeneracy[k] * m.theta[k];
    }
    if (energy <= 0.0) return 0.0;
    double beta = modes / (energy + 0.5 * zero);
    for (u32 turn = 0; turn < 100; turn++) {
        double e = 0.0, slope = 0.0;
        for (u32 k = 0; k < m.modes; k++) {
            double half = 0.5 * m.theta[k], s = half / sinh(half * beta);
            e += m.degeneracy[k] * (m.theta[k] / expm1(m.theta[k] * beta));
            slope += m.degeneracy[k] * (s * s);
        }
        double change = log(e / energy) / (slope / e);
        beta += change;
        if (fabs(change) <= 1e-13 * beta) break;
    }
    return 1.0 / beta;
}

// Sums of some species of a cell together: `cell_sums`.
__device__ CellSums<double> cell_sums(const Sums& sums, u32 first, u32 end) {
    CellSums<double> out = {};
    for (u32 s = first; s < end; s++) {
        double number = sums(0, s);
        if (!(number > 0.0)) continue;
        const Molecule& m = sums.b.molecules[s];
        out.number += number;
        out.mass += m.mass * number;
        out.x += m.mass * sums(1, s);
        out.y += m.mass * sums(2, s);
        out.z += m.mass * sums(3, s);
        out.xx += m.mass * sums(4, s);
        out.yy += m.mass * sums(5, s);
        out.zz += m.mass * sums(6, s);
        out.xy += m.mass * sums(7, s);
        out.flux_x += m.mass * sums(8, s);
        out.flux_y += m.mass * sums(9, s);
#if ALONG_Z
        out.xz += m.mass * sums(10, s);
        out.yz += m.mass * sums(11, s);
        out.flux_z += m.mass * sums(12, s);
#endif
        out.freedom += m.freedom * number;
#if ROTATES || VIBRATES
        double internal = sums(FIRST_INTERNAL, s);
        out.rotational += internal;
#if VIBRATES
        if (m.modes > 0) {
            double levels[VIBRATES], energy = 0.0;
            for (u32 k = 0; k < m.modes; k++) {
                double sum = sums(FIRST_INTERNAL + 1 + k, s);
                levels[k] = sum / number;
                energy += m.theta[k] * sum;
            }
            double t = vibration_temperature(m, levels);
            out.vibration += t * number;
            out.vibrating += number;
            if (t > 0.0)
                for (u32 k = 0; k < m.modes; k++) {
                    double x = m.theta[k] / t;
                    out.vibrational += m.degeneracy[k] * (2.0 * x / expm1(x)) * number;
                }
            internal += energy;
        }
#endif
        out.internal += 2.0 * BOLTZMANN * internal;
#endif
    }
    return out;
}

// Mean free path: `free_path`.
__device__ double free_path(const Sums& sums, double number, double density, double temperature) {
    if (temperature <= 0.0) return __longlong_as_double(0x7ff0000000000000ll);
    double path = 0.0;
    for (u32 a = 0; a < SPECIES; a++) {
        double part = sums(0, a) / number, rate = 0.0;
        if (!(part > 0.0)) continue;
        for (u32 c = 0; c < SPECIES; c++) {
            MeanRate r = sums.b.rates[a * SPECIES + c];
            rate += density * (sums(0, c) / number) * (r.rate * pow(temperature, r.power));
        }
        path += part * (sums.b.speeds[a] * sqrt(temperature)) / rate;
    }
    return path;
}

// Molecules of a particle over the volume of a cell and the samples of some batches; 0 where there is neither.
__device__ double weight_of(const Batches& b, u64 cell, double batches) {
    double volume = b.volume[cell] * (b.samples * batches);
    return volume > 0.0 ? b.weight * (WEIGHTED ? double(b.relative[cell]) : 1.0) / volume : 0.0;
}

// Values of a line of a cell, in their order; none where there are no particles.
union LineValues {
    CellValues<double> named;
    double list[OF_LINE];
};
static_assert(sizeof(CellValues<double>) == OF_LINE * sizeof(double), "the values of a line");

__device__ LineValues line_values(const Batches& b, const CellSums<double>& s, double weight) {
    LineValues v = {};
    if (s.number > 0.0 && weight > 0.0) v.named = values_of_sums<double>(s, weight, COMPONENTS, ALONG_Z);
    return v;
}
