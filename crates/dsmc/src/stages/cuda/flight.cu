// Flights to the next hit and the position where they stop: `geometry/flight.rs` word for word.

#include "lattice.cu"

// True if p lies in the domain; with `closed` on its upper sides too.
__device__ __forceinline__ bool in_domain(const Geometry& g, const int* cell, Point p, bool closed) {
    i64 x = p.x + (i64(cell[0]) << BITS), y = p.y + (i64(cell[1]) << BITS), nx = i64(g.cells[0]) << BITS,
        ny = i64(g.cells[1]) << BITS;
    return x >= 0 && y >= 0 && (closed ? x <= nx && y <= ny : x < nx && y < ny);
}
__device__ __forceinline__ bool is_free(const Geometry& g, const int* cell, Point p, Point q) {
    return in_domain(g, cell, q, true) && search(g, cell, p, q).kind != PIECE;
}
__device__ __forceinline__ void put(const Geometry& g, Flight& f, const int* cell, Point q) {
    i64 at[2] = {q.x + (i64(cell[0]) << BITS), q.y + (i64(cell[1]) << BITS)};
    for (int k = 0; k < 2; k++) {
        i64 c = least(greatest(at[k] >> BITS, i64(0)), i64(g.cells[k] - 1));
        f.cell[k] = int(c);
        f.offset[k] = double(at[k] - (c << BITS)) / double(ONE);
    }
}

// Stops in front of a piece; false where only the path on the lattice hits it, and the path itself leads away.
__device__ OF_FLIGHT bool stop(const Geometry& g, Flight& f, Point p, Point q, const Hit& hit, double* normal) {
    const double BACK[9] = {0, 1, 2, 8, 8, 64, 64, 1024, 65536}, OFF[9] = {1, 1, 2, 1, 0, 1, 0, 0, 0};
    const int cell[2] = {f.cell[0], f.cell[1]};
    Point t = hit.b - hit.a, d = q - p, stand = p;
    double way[2] = {double(d.x), double(d.y)}, length = fmax(hypot(way[0], way[1]), 1.0), sign = hit.front ? 1.0 : -1.0;
    double across = hypot(double(t.x), double(t.y)), n[2] = {sign * double(t.y) / across, -sign * double(t.x) / across};
    for (int k = 0; k < 9; k++) {
        double s = fmax(hit.s - BACK[k] / length, 0.0);
        Point to = Point{nearest(way[0] * s + n[0] * OFF[k]), nearest(way[1] * s + n[1] * OFF[k])} + p;
        if (is_free(g, cell, p, to) && in_domain(g, cell, to, false)) {
            stand = to;
            break;
        }
    }
    put(g, f, cell, stand);
    double physical[2] = {f.path[0] * g.h[0], f.path[1] * g.h[1]};
    normal[0] = g.segments[hit.piece].normal[0] * sign;
    normal[1] = g.segments[hit.piece].normal[1] * sign;
    if (normal[0] * physical[0] + normal[1] * physical[1] < 0.0) return true;
    // Rounding turns the shortest pieces: a path along the wall then goes by what it end.
    double m[2] = {n[0] * g.h[1], n[1] * g.h[0]}, size = hypot(m[0], m[1]);
    normal[0] = m[0] / size;
    normal[1] = m[1] / size;
    return normal[0] * physical[0] + normal[1] * physical[1] < 0.0;
}

// Stops on a side of the domain; false with what is in the way of every position there.
__device__ OF_FLIGHT bool stop_at_side(const Geometry& g, Flight& f, Point p, Point q, const SearchResult& side, Hit& blocked) {
    const int cell[2] = {f.cell[0], f.cell[1]};
    const double OFF[5] = {0.0, 1.0, -1.0, 2.0, -2.0};
    Point d = q - p;
    int axis = side.axis, other = 1 - axis;
    i64 edge = (i64(side.upper ? g.cells[axis] : 0) - cell[axis]) << BITS;
    double exact = axis == 0 ? double(p.y) + double(d.y) * side.hit.s : double(p.x) + double(d.x) * side.hit.s;
    i64 low = -(i64(cell[other]) << BITS), high = low + (i64(g.cells[other]) << BITS);
    bool any = false;
    for (int k = 0; k < 5; k++) {
        i64 along = least(greatest(nearest(exact + OFF[k]), low), high);
        Point to = axis == 0 ? Point{edge, along} : Point{along, edge};
        SearchResult found = search(g, cell, p, to);
        if (found.kind != PIECE) {
            put(g, f, cell, to);
            return true;
        }
        if (!any) blocked = found.hit;
        any = true;
    }
    return false;
}

// Flies to the first hit of the path and stops there.
__device__ OF_FLIGHT FlightEnd fly(const Geometry& g, Flight& f) {
    const double path[2] = {f.path[0], f.path[1]}, longest = fmax(fabs(path[0]), fabs(path[1]));
    double rest = isfinite(longest) ? 1.0 : 0.0;
    for (u32 grazes = 0;;) {
        double part = longest * rest > LONGEST ? LONGEST / longest : rest;
        const int cell[2] = {f.cell[0], f.cell[1]};
        Point p = lattice_point(f.offset),
              q = p + Point{nearest(path[0] * part * double(ONE)), nearest(path[1] * part * double(ONE))};
        SearchResult found = search(g, cell, p, q);
        double s = found.kind == NOTHING ? 1.0 : found.hit.s;
        FlightEnd end{NOTHING};
        if (found.kind == NOTHING) {
            put(g, f, cell, q);
        } else {
            bool piece = found.kind == PIECE;
            if (!piece) {
                Hit blocked;
                if (stop_at_side(g, f, p, q, found, blocked)) {
                    end.kind = SIDE;
                    end.axis = found.axis;
                    end.upper = found.upper;
                } else {
                    piece = true;
                    found.hit = blocked;
                    found.hit.s = s;
                }
            }
            if (piece && stop(g, f, p, q, found.hit, end.normal)) {
                end.kind = PIECE;
                end.segment = found.hit.piece;
            }
        }
        grazes += end.kind == NOTHING && s < 1.0;
        // Round-off of the parts must not leave a path behind, nor the lattice keep one going along a wall.
        bool caught = s < 1.0 && (longest * rest < TINY || grazes > GRAZES);
        bool arrived = end.kind == NOTHING && ((part == rest && s == 1.0) || caught);
        rest = arrived ? 0.0 : fmax(rest - part * s, 0.0);
        f.path[0] = path[0] * rest;
        f.path[1] = path[1] * rest;
        end.done = 1.0 - rest;
        if (end.kind != NOTHING || arrived) return end;
    }
}

// The offset of a flight that has arrived, as the store keeps it.
__device__ OF_FLIGHT float2 stored_offset(const Geometry& g, const Flight& f) {
    const int DX[9] = {0, 0, -1, 0, 1, -1, 0, -2, -4}, DY[9] = {0, -1, 0, 1, 0, -1, -2, 0, -4};
    Point p = lattice_point(f.offset);
    const float scale = 1.0f / 16777216.0f;
    if (p.x < ONE && p.y < ONE) return {float(p.x) * scale, float(p.y) * scale};
    Point low{least(p.x, ONE - 1), least(p.y, ONE - 1)}, q = low;
    for (int k = 0; k < 9; k++) {
        Point to{low.x + DX[k], low.y + DY[k]};
        if (to.x >= 0 && to.x < ONE && to.y >= 0 && to.y < ONE && is_free(g, f.cell, p, to)) {
            q = to;
            break;
        }
    }
    return {fminf(float(q.x) * scale, BELOW_ONE), fminf(float(q.y) * scale, BELOW_ONE)};
}
