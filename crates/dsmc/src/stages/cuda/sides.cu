// Injection through each face of open sides: `walls/inflow.rs`, `walls/subsonic.rs`, `stages/cpu/inflow.rs`.

#include "wander.cu"
#include "inflow.cuh"

// Particles from lines in this step.
__device__ __forceinline__ u32 from_lines(const Inflow& in) { return in.groups[in.line_count * (1 + SPECIES)]; }

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

// Mass through a face, one way, of a gas of which `parts` of the molecules are of each species: `Composition::mass_flux`.
__device__ double mass_flux(const Domain& d, Beam gas, const double* parts, double inward) {
    double sum = 0.0, density = gas.density;
    for (u32 s = 0; s < SPECIES; s++) {
        gas.density = density * parts[s];
        gas.mass = d.species[s].mass;
        sum += gas.mass * flux_of(gas, inward);
    }
    return sum;
}

// The gas beyond a face: `MovingAverage::gas`, `SubsonicBoundary::beyond` and `following` of stages/cpu/inflow.rs. Of a mixture both gases are one of
// the mean mass until they are divided at the end.
__device__ __noinline__ Beam beyond(const Inflow& in, const Domain& d, const Face& face, u32 species) {
    Beam beam = in.beams[face.side * SPECIES + species];
    if (face.follow == 0xffffffffu) return beam;
    const double* m = in.moving + MOVING * u64(face.follow);
    if (m[1] < 20.0) return beam;
    Beam cell = beam;
    double seen[SPECIES], freedom = COMPONENTS, fresh = 0.0;
    cell.mass = 0.0;
    for (u32 s = 0; s < SPECIES; s++) {
        seen[s] = SPECIES > 1 ? m[MOVING - SPECIES + s] / m[1] : 1.0;
        cell.mass += seen[s] * d.species[s].mass;
        fresh += in.fractions[s] * d.species[s].mass;
        freedom += seen[s] * d.species[s].rotation;
    }
    double first = d.species[0].mass, heavy = cell.mass / first, spread = m[5] / m[1];
    for (int c = 0; c < 3; c++) {
        cell.velocity[c] = m[2 + c] / (m[1] * heavy);
        spread -= heavy * cell.velocity[c] * cell.velocity[c];
    }
    cell.temperature = first * spread / (COMPONENTS * BOLTZMANN) * m[1] / (m[1] - 1.0);
    cell.density = in.volume[face.follow] * m[1] / m[0];
    if (!(cell.temperature > 0.0)) return beam;
    SubsonicBoundary given = in.given[face.side];
    double n[2] = {face_normal(face.side, 0), face_normal(face.side, 1)}, r = BOLTZMANN / cell.mass, rho = cell.density * cell.mass;
    double a = sqrt((freedom + 2.0) / freedom * r * cell.temperature), pressure = rho * r * cell.temperature;
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
        double leaving = mass_flux(d, cell, seen, -inward);
        out.density = 1.0;
        out.density = fmax((given.value * fresh + leaving) / mass_flux(d, out, in.fractions, inward + change), 0.0);
    }
    // Gas beyond an outlet is that which flows out of it.
    out.density *= given.what == 0 ? seen[species] : in.fractions[species];
    out.mass = d.species[species].mass;
    out.mean = flux_of(out, inward + change) * in.per_flux[face.side / 2];
    return out;
}

// Particles of a species that come through a face: number `k` of all of both. Each part injects what enters its tiles.
__device__ __forceinline__ u32 through_face(const Domain& d, const Store& st, const Inflow& in, u64 step, u32 k) {
    uint4 w = philox_draw(INFLOW, d.seed, step, u64(k) << 40);
    const Face& face = in.faces[k / SPECIES];
    if (!owns(st, face.cell[0] >> SX, face.cell[1] >> SY)) return 0;
    bool given = face.follow == 0xffffffffu;
    double mean = given ? in.beams[face.side * SPECIES + k % SPECIES].mean : beyond(in, d, face, k % SPECIES).mean;
    return u32(fmin(mean / weight_at(st, d, face.cell) + open_f64(w.x, w.y), 1e8));
}

#define EACH 4  // of a thread, one behind the other
// Of one block: particles through each face, of each species, and how many before it.
__device__ __forceinline__ void tally(const Domain& d, const Store& st, const Inflow& in, u64 step) {
    __shared__ u32 sums[32], carry;
    u32 all = in.face_count * SPECIES;
    if (threadIdx.x == 0) carry = 0;
    __syncthreads();
    for (u32 from = 0; from < all; from += EACH * blockDim.x) {
        u32 k = from + EACH * threadIdx.x, each[EACH], n = 0;
#pragma unroll 1
        for (u32 e = 0; e < EACH; e++) {
            each[e] = k + e < all ? through_face(d, st, in, step, k + e) : 0;
            n += each[e];
        }
        u32 scan = warp_scan(n), warp = threadIdx.x / 32;
        if (lane_index() == 31) sums[warp] = scan;
        __syncthreads();
        if (warp == 0) sums[lane_index()] = warp_scan(lane_index() < blockDim.x / 32 ? sums[lane_index()] : 0);
        __syncthreads();
        u32 at = carry + (warp ? sums[warp - 1] : 0) + scan - n;
        for (u32 e = 0; e < EACH; e++) {
            if (k + e < all) in.offsets[k + e] = at;
            at += each[e];
        }
        __syncthreads();
        if (threadIdx.x == 0) carry += sums[31];
        __syncthreads();
    }
    if (threadIdx.x == 0) in.offsets[all] = carry;
}

// One block of 1024.
extern "C" __global__ void __launch_bounds__(1024)
    tally_faces(const __grid_constant__ Store st, const __grid_constant__ Domain d, const __grid_constant__ Inflow in) {
    in_turn();
    if (halted(st)) return;
    tally(d, st, in, step_of(d.step));
}
