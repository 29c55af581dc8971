// Gas that comes in: through faces of open sides (`stages/cpu/inflow.rs`, `walls/inflow.rs`, `walls/subsonic.rs`) and from lines. One
// block counts what comes through each face (tally_faces), then a thread a particle draws it and flies it for the rest of its step.

struct Face {
  int cell[2];
  u32 side, follow;  // follow: number of its averages, 0xffffffff where the gas beyond is given
};
struct Beam {
  double density, temperature, velocity[3], mass, mean;  // mean: particles through a face and step
};
struct Given {
  u32 what, unused;  // 0 outlet of a pressure, 1 inlet of a pressure, 2 inlet of a flux
  double value, temperature;
};
struct Line {
  double ends[4], normal[2], temperature, velocity[3];  // ends in cells, from the corner of the domain
};
struct Inflow {
  const Face* faces;
  const Beam* beams;    // [side][species]
  const Given* given;   // by side
  const double* moving;
  const double* volume; // by number of the averages: molecules a particle over the free volume of the cell
  u32* offsets;         // by face and species: particles before it
  const Line* lines;
  const u32* groups;    // by line: particles before its schedule, before each species; at the end all
  const double* fractions;
  double gamma, per_flux[2];  // per_flux: by axis, face area times dt over the weight
  u32 face_count, line_count, from_lines, unused;
};

__device__ __forceinline__ double face_normal(u32 side, int axis) { return int(side / 2) != axis ? 0.0 : side % 2 ? -1.0 : 1.0; }

__device__ __forceinline__ double unit_flux(double s) {
  const double ROOT = 1.7724538509055159;
  double above = s < 0.0 ? erfc(-s) : 1.0 + erf(s);
  return fmax((exp(-s * s) + ROOT * s * above) / (2.0 * ROOT), 0.0);
}
__device__ __forceinline__ double thermal_speed(const Beam& b) { return sqrt(2.0 * BOLTZMANN * b.temperature / b.mass); }
__device__ __forceinline__ double flux_of(const Beam& b, double inward) {
  double c = thermal_speed(b);
  return b.density * c * unit_flux(inward / c);
}

// The gas beyond a face: `Moving::gas` and `Given::beyond`.
__device__ __noinline__ Beam beyond(const Inflow& in, const Face& face, u32 species) {
  Beam beam = in.beams[face.side * SPECIES + species];
  if (face.follow == 0xffffffffu) return beam;
  const double* m = in.moving + 6 * u64(face.follow);
  if (m[1] < 20.0) return beam;
  Beam cell = beam;
  double spread = m[5] / m[1];
  for (int c = 0; c < 3; c++) {
    cell.velocity[c] = m[2 + c] / m[1];
    spread -= cell.velocity[c] * cell.velocity[c];
  }
  cell.temperature = beam.mass * spread / (3.0 * BOLTZMANN) * m[1] / (m[1] - 1.0);
  cell.density = in.volume[face.follow] * m[1] / m[0];
  if (!(cell.temperature > 0.0)) return beam;
  Given given = in.given[face.side];
  double n[2] = {face_normal(face.side, 0), face_normal(face.side, 1)}, r = BOLTZMANN / cell.mass, rho = cell.density * cell.mass;
  double a = sqrt(in.gamma * r * cell.temperature), pressure = rho * r * cell.temperature;
  double inward = cell.velocity[0] * n[0] + cell.velocity[1] * n[1];
  double above = fmin(fmax(given.value - pressure, -0.5 * pressure), 0.5 * pressure), u = inward;
  Beam out = cell;
  if (given.what == 0) {
    double rho_b = rho + above / (a * a);
    out.density = rho_b / cell.mass;
    out.temperature = (pressure + above) / (rho_b * r);
    u = inward + above / (rho * a);
  } else {
    out.temperature = given.temperature;
    if (given.what == 1) {
      out.density = given.value / (BOLTZMANN * given.temperature);
      u = inward + above / (rho * a);
    }
  }
  double change = fmin(fmax(u, -a), a) - inward;
  for (int c = 0; c < 2; c++) out.velocity[c] += change * n[c];
  if (given.what == 2) {
    double leaving = flux_of(cell, -inward);
    out.density = 1.0;
    out.density = fmax((given.value + leaving) / flux_of(out, inward + change), 0.0);
  }
  out.mean = flux_of(out, inward + change) * in.per_flux[face.side / 2];
  return out;
}

// One block of 1024: particles through each face, of each species, and how many before it.
extern "C" __global__ void __launch_bounds__(1024)
    tally_faces(const __grid_constant__ Store st, const __grid_constant__ Domain d, const __grid_constant__ Inflow in) {
  __shared__ u32 sums[32], carry;
  u32 all = in.face_count * SPECIES;
  if (threadIdx.x == 0) carry = 0;
  __syncthreads();
  for (u32 from = 0; from < all; from += 1024) {
    u32 k = from + threadIdx.x, n = 0;
    if (k < all) {
      uint4 w = philox_draw(INFLOW, d.seed, d.step, u64(k) << 40);
      n = u32(fmin(beyond(in, in.faces[k / SPECIES], k % SPECIES).mean + open_f64(w.x, w.y), 1e8));
    }
    u32 scan = warp_scan(n), warp = threadIdx.x / 32;
    if (lane_index() == 31) sums[warp] = scan;
    __syncthreads();
    if (warp == 0) sums[lane_index()] = warp_scan(sums[lane_index()]);
    __syncthreads();
    if (k < all) in.offsets[k] = carry + (warp ? sums[warp - 1] : 0) + scan - n;
    __syncthreads();
    if (threadIdx.x == 0) carry += sums[31];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    in.offsets[all] = carry;
    u32 begin = st.next_first[st.count], room = d.room - least(begin, d.room), wanted = carry + in.from_lines;
    st.counters->fresh = least(wanted, room);
    st.counters->refused += wanted - least(wanted, room);
  }
}

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
      if (u.open() * (gauss + 1.0) < gauss)
        y = r * cospi(2.0 * u.open());
      else
        y = u.open() < 0.5 ? r : -r;
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
  if (m.rotation == 2) {
    a.rotation = -temperature * log(u.open());
  } else if (m.rotation > 0) {
    double p = u.open(), q = u.open(), gauss = sqrt(-2.0 * log(p)) * cospi(2.0 * q);
    a.rotation = temperature * (0.5 * gauss * gauss - log(u.open()));
  }
  if (m.vibration > 0.0) a.level = u32(fmin(-temperature / m.vibration * log(u.open()), 65535.0));
  // As the store rounds it.
  for (int k = 0; k < 3; k++) a.v[k] = float(a.v[k]);
  a.rotation = float(a.rotation);
  return a;
}

// The entry of a rising list in which k falls.
__device__ __forceinline__ u32 entry_of(const u32* x, u32 n, u32 k) {
  u32 low = 0, high = n;
  while (high - low > 1) {
    u32 middle = (low + high) / 2;
    if (x[middle] <= k)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// Any number of threads: what comes goes behind the regions; those of lines first.
extern "C" __global__ void __launch_bounds__(128) emit(const __grid_constant__ Store st, const __grid_constant__ Domain d,
                                                       const __grid_constant__ Geometry g, const __grid_constant__ Inflow in) {
  u32 base = st.next_first[st.count], fresh = st.counters->fresh;
  for (u32 k = u32(thread_index()); k < fresh; k += u32(thread_count())) {
    Flight f{};
    Motion a;
    u32 species, slot = base + k, way = LOST;
    u64 item;
    bool line = k < in.from_lines;
    if (line) {
      const u32 GROUPS_OF_LINE = 1 + SPECIES;
      u32 group = entry_of(in.groups, in.line_count * GROUPS_OF_LINE + 1, k), l = group / GROUPS_OF_LINE;
      species = group % GROUPS_OF_LINE;
      item = (u64(l) << 36 | (k - in.groups[l * GROUPS_OF_LINE])) << 12;
      Stream u(SOURCE, d.seed, d.step, item);
      const Line& from = in.lines[l];
      double along = u.open();
      for (int c = 0; c < 2; c++) {
        double at = fmin(fmax(from.ends[c] + along * (from.ends[2 + c] - from.ends[c]), 0.0), double(g.cells[c]));
        f.cell[c] = min(int(at), g.cells[c] - 1);
        f.offset[c] = at - f.cell[c];
      }
      if (species > 0) {
        species--;
      } else {
        double left = u.open();
        while (species + 1 < SPECIES && (left -= in.fractions[species]) >= 0.0) species++;
      }
      a = draw(d.species[species], from.temperature, from.velocity, from.normal, u);
      double left = u.open();
      if (in_gas(g, f.cell, f.offset)) {
        atomicAdd(&st.counters->injected, 1ull);
        way = trace(d, g, f, species, a, left, u, st.counters) ? u32(FAR) : u32(LOST);
        if (way == LOST) atomicAdd(&st.counters->removed, 1ull);
      }
    } else {
      u32 number = entry_of(in.offsets, in.face_count * SPECIES + 1, k - in.from_lines);
      const Face& face = in.faces[number / SPECIES];
      species = number % SPECIES;
      item = u64(number) << 40 | u64(k - in.from_lines - in.offsets[number] + 1) << 12;
      Stream u(INFLOW, d.seed, d.step, item);
      Beam beam = beyond(in, face, species);
      double n[2] = {face_normal(face.side, 0), face_normal(face.side, 1)};
      for (int c = 0; c < 2; c++) {
        f.cell[c] = face.cell[c];
        f.offset[c] = n[c] == 0.0 ? u.open() : n[c] < 0.0 ? 1.0 : 0.0;
      }
      a = draw(d.species[species], beam.temperature, beam.velocity, n, u);
      double left = u.open();
      if (in_gas(g, f.cell, f.offset)) {
        atomicAdd(&st.counters->injected, 1ull);
        way = trace(d, g, f, species, a, left, u, st.counters) ? u32(FAR) : u32(LOST);
        if (way == LOST) atomicAdd(&st.counters->removed, 1ull);
      }
    }
    if (way == FAR)
      st.goal[slot] = arrive_at(st, g, f, species, a, slot);
    else
      st.next.key[slot] = u16(GONE);
    st.list[slot] = way << 28;
  }
}
