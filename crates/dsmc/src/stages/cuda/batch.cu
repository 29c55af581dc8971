// Averages and their scatter, kept where the sums are (`sampling::spread`); sums of regions.

#include "batch_sums.cu"

// Adds the step of a value from one batch to the next to its scatter. `before` and `after` are what it is taken over.
__device__ __forceinline__ void scatter(const Batches& b, u32 value, u64 cell, double old, double now, double before,
                                        double after) {
    double step = now - old, square = b.count > 1.0 ? b.square[value * b.cells + cell] : 0.0;
    // A free path is infinite as long as nothing is known of the temperature.
    if (before > 0.0 && isfinite(step)) square += before * after * step * step;
    b.square[value * b.cells + cell] = square;
}

// Closes batch `count`: one thread a cell.
extern "C" __global__ void __launch_bounds__(128) close_batch(const __grid_constant__ Batches b) {
    u64 cell = thread_index();
    if (cell >= b.cells) return;
    u64 at = cell / CELLS * LAYERS * KEYS + cell % CELLS * SPECIES;
    const Sums sums[2] = {{b, at, false}, {b, at, true}};
    // Of the batches before: none of them has an average without a sample.
    double weights[2] = {weight_of(b, cell, b.count - 1.0), weight_of(b, cell, b.count)};
    for (u32 line = 0; line < LINES; line++) {
        u32 first = line ? line - 1 : 0, end = line ? line : SPECIES;
        CellSums<double> s[2] = {cell_sums(sums[0], first, end), cell_sums(sums[1], first, end)};
        LineValues v[2] = {line_values(b, s[0], weights[0]), line_values(b, s[1], weights[1])};
        u32 to = line ? OF_LINE + 1 + (line - 1) * OF_LINE : 0;
        // Velocities and temperatures are averages over particles, all others over time.
        for (u32 k = 0; k < OF_LINE; k++) {
            bool each = k > 0 && k < 8;
            scatter(b, to + k, cell, v[0].list[k], v[1].list[k], each ? s[0].number : b.count - 1.0, each ? s[1].number : b.count);
        }
        if (line == 0) {
            double path[2];
            for (u32 i = 0; i < 2; i++) {
                const CellValues<double>& n = v[i].named;
                path[i] = n.density > 0.0 ? free_path(sums[i], s[i].number, n.density, n.translation) : 0.0;
            }
            scatter(b, OF_LINE, cell, path[0], path[1], b.count - 1.0, b.count);
        }
#if ALONG_Z
        AlongZ<double> z[2] = {};
        for (u32 i = 0; i < 2; i++)
            if (s[i].number > 0.0 && weights[i] > 0.0) z[i] = values_along_z<double>(s[i], weights[i]);
        to = FIRST_WITH_Z + line * 4;
        scatter(b, to, cell, z[0].zz, z[1].zz, b.count - 1.0, b.count);
        scatter(b, to + 1, cell, z[0].xz, z[1].xz, b.count - 1.0, b.count);
        scatter(b, to + 2, cell, z[0].yz, z[1].yz, b.count - 1.0, b.count);
        scatter(b, to + 3, cell, z[0].heat_z, z[1].heat_z, b.count - 1.0, b.count);
#endif
        u32 filled = b.count > 1.0 ? b.filled[line * b.cells + cell] : 0;
        b.filled[line * b.cells + cell] = filled + (s[1].number > s[0].number);
    }
#if VIBRATES > 1
    u32 to = FIRST_MODE;
    for (u32 s = 0; s < SPECIES; s++) {
        const Molecule& m = b.molecules[s];
        if (m.modes < 2) continue;
        double number[2] = {sums[0](0, s), sums[1](0, s)};
        for (u32 k = 0; k < m.modes; k++, to++) {
            double t[2];
            for (u32 i = 0; i < 2; i++)
                t[i] = number[i] > 0.0 ? mode_temperature(m, k, sums[i](FIRST_INTERNAL + 1 + k, s) / number[i]) : 0.0;
            scatter(b, to, cell, t[0], t[1], number[0], number[1]);
        }
    }
#endif
    for (u32 q = 0; q < KEPT; q++)
        for (u32 s = 0; s < SPECIES; s++) {
            u64 i = q * b.stride + at + s;
            b.all[i] = sums[1](q, s);
            for (u32 layer = 0; layer < LAYERS; layer++) b.fresh[i + layer * KEYS] = 0.0;
        }
}

// Sums of `fresh` over regions of the domain, with the weights of cells: [region][species][sum - from]. One block a region, species
// and sum.
extern "C" __global__ void __launch_bounds__(256) sum_regions(const __grid_constant__ Regions r, double* out) {
    __shared__ double scratch[8];
    u32 rx = blockIdx.x % r.count[0], ry = blockIdx.x / r.count[0], q = r.from + blockIdx.z, species = blockIdx.y;
    auto edge = [](u32 k, u32 n, u32 all) { return u32((u64(k) * n + all - 1) / all); };
    u32 x0 = edge(rx, r.cells[0], r.count[0]), x1 = edge(rx + 1, r.cells[0], r.count[0]);
    u32 y0 = edge(ry, r.cells[1], r.count[1]), y1 = edge(ry + 1, r.cells[1], r.count[1]);
    u64 n = u64(x1 - x0) * (y1 - y0);
    double sum = 0.0;
    for (u64 k = threadIdx.x; k < n; k += blockDim.x) {
        u32 x = x0 + u32(k % (x1 - x0)), y = y0 + u32(k / (x1 - x0));
        u64 tile = u64((y >> SY) * r.tiles + (x >> SX)) * LAYERS, slot = (y & ((1 << SY) - 1)) << SX | (x & ((1 << SX) - 1));
        double of_cell = 0.0;
        for (u32 layer = 0; layer < LAYERS; layer++)
            of_cell += r.fresh[q * r.stride + (tile + layer) * KEYS + slot * SPECIES + species];
        sum += WEIGHTED ? double(r.weights[tile * CELLS + slot]) * of_cell : of_cell;
    }
    sum = block_reduce<Sum<double>>(sum, scratch);
    if (threadIdx.x == 0) out[(u64(blockIdx.x) * SPECIES + species) * gridDim.z + blockIdx.z] = sum;
}
