// Trajectory of a particle in a step: flights from hit to hit; `stages/cpu/fly.rs` has the loop, `walls/mod.rs` the walls.

#include "flight.cu"
#include "reflect.cu"
#include "domain.cuh"

#define MAX_HITS 1000

// Hit on a surface, in whole numbers: the same sum in any order. Energy is heat, seen from the wall.
// `turned` is the normal of a segment times the position along it, or null on a side. What weighs nothing adds nothing.
__device__ __noinline__ void tally(const Domain& d, u32 surface, const Wall& w, const double* n, const Molecule& m, const Motion& a,
                                   const Motion& b, double weight, const double* turned) {
    double p[3], across = w.velocity[0] * n[0] + w.velocity[1] * n[1], work = 0.0;
    const double slide[3] = {w.velocity[0] - across * n[0], w.velocity[1] - across * n[1], w.velocity[2]};
    for (int c = 0; c < 3; c++) {
        p[c] = m.mass * (a.v[c] - b.v[c]);
        work += p[c] * slide[c];
    }
    u64* to = d.surfaces + SURFACE_SUMS * u64(surface);
    if (!WEIGHTED) weight = weight > 0.0;
    atomicAdd(to, u64(WEIGHTED ? __double2ll_rn(weight * d.hits) : i64(weight)));
    for (int c = 0; c < 3; c++) atomicAdd(to + 1 + c, u64(__double2ll_rn(weight * p[c] * d.momentum)));
    atomicAdd(to + 4, u64(__double2ll_rn(weight * (energy_of(m, a) - energy_of(m, b) - work) * d.energy)));
    if (turned) atomicAdd(to + 5, u64(__double2ll_rn(-weight * (p[0] * turned[0] + p[1] * turned[1]) * d.momentum)));
}

// Flies for the part `left` of a step, from hit to hit. False if it left the domain.
__device__ __noinline__ bool trace(const Domain& d, const Geometry& g, Flight& f, u32 species, Motion& a, double weight,
                                   double left, Stream& u, Counters* counters) {
    const Molecule& m = d.species[species];
    auto aim = [&] {
        for (int k = 0; k < 2; k++) f.path[k] = a.v[k] * (left * d.dt) * d.per_metre[k];
    };
    aim();
    for (u32 hits = 0;;) {
        FlightEnd end = fly(g, f);
        if (end.kind == NOTHING) return true;
        left *= 1.0 - end.done;
        u32 surface = 4 + end.segment, number;
        double turned[2];
        if (end.kind == SIDE) {
            surface = u32(2 * end.axis + end.upper);
            int edge = d.edge[surface];
            if (edge == -2) return false;
            if (edge == -1) {
                f.cell[end.axis] = end.upper ? 0 : g.cells[end.axis] - 1;
                f.offset[end.axis] = end.upper ? 0.0 : 1.0;
                if (++hits > MAX_HITS) {
                    atomicAdd(&counters->stuck, u64(weight > 0.0));
                    return true;
                }
                continue;
            }
            end.normal[end.axis] = end.upper ? -1.0 : 1.0;
            end.normal[1 - end.axis] = 0.0;
            number = u32(edge) + d.along[surface] * u32(f.cell[1 - end.axis]);
        } else {
            const Segment& s = g.segments[end.segment];
            double along = 0.0;
            for (int k = 0; k < 2; k++) along += (f.cell[k] + f.offset[k] - s.middle[k]) * s.per_cell[k];
            for (int k = 0; k < 2; k++) turned[k] = along * s.normal[k];
            number = s.wall;
        }
        Motion before = a;
        reflect(d.walls[number], m, end.normal, a, u);
        if (COMPONENTS == 2) a.v[2] = 0.0;
        if (d.sample) tally(d, surface, d.walls[number], end.normal, m, before, a, weight, end.kind == SIDE ? nullptr : turned);
        if (++hits > MAX_HITS) {
            atomicAdd(&counters->stuck, u64(weight > 0.0));
            return true;
        }
        aim();
    }
}
