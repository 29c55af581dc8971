// Averages and their scatter, kept where the sums are (`sampling::spread`). All lists are by sum or value, then cell, in the order of
// tiles: those of layers of a cell are one cell's here.

// A species: mass, kg; degrees of freedom of rotation; its modes of vibration.
struct Molecule {
  double mass, freedom, theta[MODES], degeneracy[MODES];
  u32 modes, unused;
};

// Mean of cross-section times relative speed of a pair: `rate T^power`.
struct MeanRate {
  double rate, power;
};

struct Batches {
  double *fresh, *all;  // sums since the last batch, [sum][tile][key], and of all batches, in the tile of the first layer
  double* square;       // `Cells::square`: [value][cell]
  u32* filled;          // batches with particles: [line][cell]
  const double* weight; // molecules of a particle over the volume of the cell; 0 where there is none
  const Molecule* molecules;
  const MeanRate* rates;  // [species][species]
  const double* speeds;   // mean speed at 1 K by species
  u64 stride, cells;      // numbers of a sum, cells with those that fill the last tiles
  double count, samples;  // number of this batch, from 1; samples of each
};

static_assert(sizeof(Molecule) == MOLECULE_BYTES && sizeof(Batches) == BATCHES_BYTES, "as batches.rs has it");

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

// Adds the step of a value from one batch to the next to its scatter. `before` and `after` are what it is taken over.
__device__ __forceinline__ void scatter(const Batches& b, u32 value, u64 cell, double old, double now, double before, double after) {
  double step = now - old, square = b.count > 1.0 ? b.square[value * b.cells + cell] : 0.0;
  // A free path is infinite as long as nothing is known of the temperature.
  if (before > 0.0 && isfinite(step)) square += before * after * step * step;
  b.square[value * b.cells + cell] = square;
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

// Closes batch `count`: one thread a cell.
extern "C" __global__ void __launch_bounds__(128) close_batch(const __grid_constant__ Batches b) {
  u64 cell = thread_index();
  if (cell >= b.cells) return;
  u64 at = cell / CELLS * LAYERS * KEYS + cell % CELLS * SPECIES;
  const Sums sums[2] = {{b, at, false}, {b, at, true}};
  // Of the batches before: none of them has an average without a sample.
  double weight = b.weight[cell] / b.samples, weights[2] = {b.count > 1.0 ? weight / (b.count - 1.0) : 0.0, weight / b.count};
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
      for (u32 i = 0; i < 2; i++) t[i] = number[i] > 0.0 ? mode_temperature(m, k, sums[i](FIRST_INTERNAL + 1 + k, s) / number[i]) : 0.0;
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
// and sum; `tiles` are those along x.
extern "C" __global__ void __launch_bounds__(256)
    sum_regions(const double* fresh, const float* weights, u64 stride, u32 tiles, uint2 cells, uint2 regions, u32 from, double* out) {
  __shared__ double scratch[8];
  u32 rx = blockIdx.x % regions.x, ry = blockIdx.x / regions.x, q = from + blockIdx.z, species = blockIdx.y;
  auto edge = [](u32 r, u32 n, u32 all) { return u32((u64(r) * n + all - 1) / all); };
  u32 x0 = edge(rx, cells.x, regions.x), x1 = edge(rx + 1, cells.x, regions.x);
  u32 y0 = edge(ry, cells.y, regions.y), y1 = edge(ry + 1, cells.y, regions.y);
  u64 n = u64(x1 - x0) * (y1 - y0);
  double sum = 0.0;
  for (u64 k = threadIdx.x; k < n; k += blockDim.x) {
    u32 x = x0 + u32(k % (x1 - x0)), y = y0 + u32(k / (x1 - x0));
    u64 tile = u64((y >> SY) * tiles + (x >> SX)) * LAYERS, slot = (y & ((1 << SY) - 1)) << SX | (x & ((1 << SX) - 1));
    double of_cell = 0.0;
    for (u32 layer = 0; layer < LAYERS; layer++) of_cell += fresh[q * stride + (tile + layer) * KEYS + slot * SPECIES + species];
    sum += WEIGHTED ? double(weights[tile * CELLS + slot]) * of_cell : of_cell;
  }
  sum = block_reduce<Sum<double>>(sum, scratch);
  if (threadIdx.x == 0) out[(u64(blockIdx.x) * SPECIES + species) * gridDim.z + blockIdx.z] = sum;
}
