// Gas injected through faces and from lines: a thread a particle draws it and flies it for the rest of its step.

#include "in_gas.cu"
#include "injected.cu"
#include "sides.cu"

// The entry of a rising list in which k falls.
__device__ __forceinline__ u32 entry_of(const u32* x, u32 n, u32 k) {
    u32 low = 0, high = n;
    while (high - low > 1) {
        u32 middle = (low + high) / 2;
        if (x[middle] <= k) low = middle;
        else high = middle;
    }
    return low;
}

// Injected particles go behind the regions; those of lines first. By warp number `warp` of `warps`: of few each has one.
__device__ __forceinline__ void emit(const Store& st, const Domain& d, const Geometry& g, const Inflow& in, u32 warp, u32 warps) {
    u32 base = st.next_first[st.count], lines = from_lines(in), wanted = in.offsets[in.face_count * SPECIES] + lines;
    u32 fresh = least(wanted, d.capacity - least(base, d.capacity));
    if (warp == 0 && lane_index() == 0) {
        st.counters->fresh = fresh;
        st.counters->refused += wanted - fresh;
    }
    for (u32 k = RECORDED ? lane_index() * warps + warp : warp * 32 + lane_index(); k < fresh; k += warps * 32) {
        Flight f{};
        Motion a;
        u32 species, slot = base + k;
        u64 item;
        u64 rank = INJECTED | k;
        bool line = k < lines;
        double weight = 1.0;  // a line may cross cells of different weights: its particles stand for the model's
        Stream u(line ? SOURCE : INFLOW, d.seed, step_of(d.step), 0);
        if (line) {
            const u32 GROUPS_OF_LINE = 1 + SPECIES;
            u32 group = entry_of(in.groups, in.line_count * GROUPS_OF_LINE + 1, k), l = group / GROUPS_OF_LINE;
            species = group % GROUPS_OF_LINE;
            item = (u64(l) << 36 | (k - in.groups[l * GROUPS_OF_LINE])) << 12;
            u.index = item;
            const Line& from = in.lines[l];
            double along = u.open();
            for (int c = 0; c < 2; c++) {
                double at = fmin(fmax(from.ends[c] + along * (from.ends[2 + c] - from.ends[c]), 0.0), double(g.cells[c]));
                f.cell[c] = min(int(at), g.cells[c] - 1);
                f.offset[c] = at - f.cell[c];
            }
            // Each part injects what begins in its tiles.
            if (tile_of(st, f.cell[0], f.cell[1], 0) == NONE) {
                st.next.key[slot] = u16(GONE);
                continue;
            }
            if (species > 0) {
                species--;
            } else {
                double left = u.open();
                while (species + 1 < SPECIES && (left -= in.fractions[species]) >= 0.0) species++;
            }
            a = draw(d.species[species], from.temperature, from.velocity, from.normal, u);
        } else {
            u32 number = entry_of(in.offsets, in.face_count * SPECIES + 1, k - lines);
            const Face& face = in.faces[number / SPECIES];
            species = number % SPECIES;
            item = u64(number) << 40 | u64(k - lines - in.offsets[number] + 1) << 12;
            u.index = item;
            rank = INJECTED | THROUGH_FACES | u64(number) << 28 | (k - lines - in.offsets[number]);
            weight = weight_at(st, d, face.cell);
            Beam beam = beyond(in, d, face, species);
            double n[2] = {face_normal(face.side, 0), face_normal(face.side, 1)};
            for (int c = 0; c < 2; c++) {
                f.cell[c] = face.cell[c];
                f.offset[c] = n[c] == 0.0 ? u.open() : n[c] < 0.0 ? 1.0 : 0.0;
            }
            a = draw(d.species[species], beam.temperature, beam.velocity, n, u);
        }
        double left = u.open();
        u32 copies = 0;
        if (TAGGED) st.next.tag[slot] = 0;
        if (in_gas(g, f.cell, f.offset)) {
            atomicAdd(&st.counters->injected, 1ull);
            bool stays = trace(d, g, f, species, a, weight, left, u, st.counters);
            if (!stays) atomicAdd(&st.counters->removed, 1ull);
            if (stays) copies = copies_at(st, d, f, weight, slot, u);
        } else if (line) {
            // On the body at which the line ends: injected and removed.
            atomicAdd(&st.counters->injected, 1ull);
            atomicAdd(&st.counters->removed, 1ull);
        }
        if (copies) {
            arrive_at(st, g, f, species, a, slot, copies, k, rank);
        } else {
            st.next.key[slot] = u16(GONE);
        }
    }
}

#if RECORDED
// Instructions of a flight come from the second cache where a multiprocessor has not just used them, which takes three times as long as the flight. So
// a warp of each block flies against a wall, and draws the injected particles, before the kernel ahead has ended: of no weight, to no end.
__device__ __noinline__ void rehearse(const Store& st, const Domain& d, const Geometry& g, bool emits) {
    Flight f{};
    double n[2];
    u32 side = 0;
    while (side < 3 && d.edge[side] < 0) side++;
    for (int k = 0; k < 2; k++) {
        n[k] = face_normal(side, k);
        f.cell[k] = n[k] < 0.0 ? g.cells[k] - 1 : 0;
        f.offset[k] = 0.5;
    }
#if BODIES
    const Segment& s = g.segments[0];
    for (int k = 0; k < 2; k++) {
        n[k] = s.normal[k];
        double at = fmin(fmax(s.middle[k] + 0.125 * n[k], 0.0), g.cells[k] - 0.5);
        f.cell[k] = int(at);
        f.offset[k] = at - f.cell[k];
    }
#endif
    Stream u(WALL, d.seed, 0, 0);
    Motion a{};
    if (emits) a = draw(d.species[0], 300.0, n, n, u);
    // Almost a cell in a step.
    for (int k = 0; k < 2; k++) a.v[k] = d.per_metre[k] > 0.0 ? -0.75 * n[k] / (d.dt * d.per_metre[k]) : 0.0;
    bool stays = trace(d, g, f, 0, a, 0.0, 1.0, u, st.counters);
    // Never, but the compiler does not know.
    if (stored_offset(g, f).x < 0.0f && stays) st.link[0] = 0;
}
#define FLYING 3  // warps of a block
#else
#define FLYING 4
#endif

// Flights that hit something, and in the first `emitters` blocks those of injected particles: neither knows of the other.
extern "C" __global__ void __launch_bounds__(128, 4)
    trace_flights(const __grid_constant__ Store st, const __grid_constant__ Domain d, const __grid_constant__ Geometry g,
                  const __grid_constant__ Inflow in, u32 emitters) {
#if RECORDED
    if (threadIdx.x >= 32 * FLYING) {
        let_next_kernel_start();
        if (lane_index() == 0) rehearse(st, d, g, blockIdx.x < emitters);
        return;
    }
#endif
    in_turn();
    if (halted(st)) return;
    u32 warp = blockIdx.x * FLYING + threadIdx.x / 32, first = emitters * FLYING;
    if (warp < first) emit(st, d, g, in, warp, first);
    else wander(st, d, g, warp - first, gridDim.x * FLYING - first);
}
