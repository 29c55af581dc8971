// The test by which injected particles begin outside of bodies.

#include "lattice.cu"

// True if a position is in the gas: neither in a body nor on its outline.
__device__ __noinline__ bool in_gas(const Geometry& g, const int* cell, const double* offset) {
    if (!BODIES) return true;
    u32 slot = slot_of(g, cell[0], cell[1]);
    if (slot == 0) return !g.inside[u64(cell[1]) * g.cells[0] + cell[0]];
    Reference r = g.references[slot - 1];
    Point p = lattice_point(offset), from{r.at[0], r.at[1]};
    int winding = r.winding;
    for (u32 k = g.first[slot - 1]; k < g.first[slot]; k++) {
        const Piece& piece = g.pieces[k];
        Point a{piece.a[0], piece.a[1]}, b{piece.b[0], piece.b[1]};
        if (within(p, a, b) && orient(a, b, p) == 0) return false;
        double s;
        bool front;
        if (intersect(a, b, from, p, s, front)) winding += front ? 1 : -1;
    }
    return winding == 0;
}
