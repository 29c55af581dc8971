// Averages of cells as records have them (`of_cells` of output.rs), row by row, and their standard errors. Of `Batches`, `count` is one
// more than the batches that are closed.

#include "batch_sums.cu"

#define NOT_A_NUMBER __longlong_as_double(0x7ff8000000000000ll)

// Standard error of a value: `Cells::error`. `number`: particles in the sums of the line.
__device__ double standard_error(const Batches& b, const Shown& w, u64 cell, u32 value, bool by_particles, double number) {
    double count = b.count - 1.0, filled = by_particles ? double(b.filled[w.line * b.cells + cell]) : count;
    if (filled < w.filled || filled < 2.0) return NOT_A_NUMBER;
    return sqrt(b.square[value * b.cells + cell] * filled / (filled - 1.0)) / (by_particles ? number : count);
}

// Value `value` of a cell: `cell_values`.
__device__ double value_of(const Batches& b, const Shown& w, const Sums& sums, const CellSums<double>& s, const LineValues& v,
                           double weight) {
#if ALONG_Z
    if (w.value >= FIRST_WITH_Z) {
        AlongZ<double> z = {};
        if (s.number > 0.0 && weight > 0.0) z = values_along_z<double>(s, weight);
        u32 k = (w.value - FIRST_WITH_Z) % 4;
        return k == 0 ? z.zz : k == 1 ? z.xz : k == 2 ? z.yz : z.heat_z;
    }
#endif
#if VIBRATES > 1
    if (w.value >= FIRST_MODE) {
        u32 k = w.value - FIRST_MODE, species = 0;
        // Those of species with several, one species behind the other.
        for (; species < SPECIES; species++) {
            u32 modes = b.molecules[species].modes;
            if (modes < 2) continue;
            if (k < modes) break;
            k -= modes;
        }
        double number = sums(0, species);
        return number > 0.0 ? mode_temperature(b.molecules[species], k, sums(FIRST_INTERNAL + 1 + k, species) / number) : 0.0;
    }
#endif
    const CellValues<double>& n = v.named;
    if (w.value == OF_LINE) return n.density > 0.0 ? free_path(sums, s.number, n.density, n.translation) : 0.0;
    return v.list[w.line ? w.value - (OF_LINE + 1 + (w.line - 1) * OF_LINE) : w.value];
}

// The value, or its error, of a cell. Solid cells have none, those without a particle of the line only the density, and those
// where nothing is known of the scatter of velocities no temperature: `Needs`, `Samples::warm`.
__device__ double shown(const Batches& b, const Shown& w, u64 cell) {
    if (!(b.volume[cell] > 0.0)) return NOT_A_NUMBER;
    Sums sums{b, cell / CELLS * LAYERS * KEYS + cell % CELLS * SPECIES, false};
    double weight = weight_of(b, cell, b.count - 1.0);
    CellSums<double> s = cell_sums(sums, w.line ? w.line - 1 : 0, w.line ? w.line : SPECIES);
    LineValues v = line_values(b, s, weight);
    u32 data = 0, translation = w.line ? OF_LINE + 1 + (w.line - 1) * OF_LINE + 5 : 5;
    if (v.named.density > 0.0) {
        double warmth = v.named.translation;
        bool few = b.filled[w.line * b.cells + cell] < w.filled;
        bool above = b.count < 3.0 || warmth >= 2.0 * standard_error(b, w, cell, translation, true, s.number);
        data = warmth > 0.0 && !few && above ? 2 : 1;
    }
    if (data < w.needs) return NOT_A_NUMBER;
    return w.error ? standard_error(b, w, cell, w.value, w.by_particles, s.number) : value_of(b, w, sums, s, v, weight);
}

extern "C" __global__ void __launch_bounds__(128)
    show(const __grid_constant__ Batches b, const __grid_constant__ Shown w, double* out) {
    u64 k = thread_index();
    if (k >= u64(w.cells[0]) * w.cells[1]) return;
    u32 x = u32(k % w.cells[0]), y = u32(k / w.cells[0]);
    u64 tile = u64(y >> SY) * w.tiles + (x >> SX);
    out[k] = shown(b, w, tile * CELLS + ((y & ((1 << SY) - 1)) << SX | (x & ((1 << SX) - 1))));
}
