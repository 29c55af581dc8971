// The search for the first hit of a path: `geometry/flight.rs` word for word, in whole numbers where that has whole numbers
// and without contraction (the program is compiled with -fmad=false), so that both find the same.

#include "common.cu"

#define TINY (64.0 / double(ONE))
#define GRAZES 16
#define SAME 1e-12

// Without bodies the search is short, and what it does not find need not be looked at: then a flight is one function.
#if BODIES
#define OF_FLIGHT __noinline__
#else
#define OF_FLIGHT __forceinline__
#endif

struct Point {
    i64 x, y;
};

#include "geometry.cuh"

struct Flight {
    int cell[2];
    double offset[2], path[2];
};
enum HitKind { NOTHING, PIECE, SIDE };
struct Hit {
    double s;
    bool front;
    u32 piece;
    Point a, b;
};
struct SearchResult {
    HitKind kind;
    Hit hit;
    int axis, upper;
};
struct FlightEnd {
    HitKind kind;
    u32 segment;
    int axis, upper;
    double normal[2], done;
};

__device__ __forceinline__ Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
__device__ __forceinline__ Point operator+(Point a, Point b) { return {a.x + b.x, a.y + b.y}; }
__device__ __forceinline__ i64 orient(Point a, Point b, Point c) { return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x); }
__device__ __forceinline__ bool within(Point p, Point a, Point b) {
    return p.x >= least(a.x, b.x) && p.x <= greatest(a.x, b.x) && p.y >= least(a.y, b.y) && p.y <= greatest(a.y, b.y);
}
__device__ __forceinline__ i64 nearest(double x) {
    const double SHIFT = 6755399441055744.0;  // 1.5 * 2^52
    return i64(__dadd_rn(__dadd_rn(x, SHIFT), -SHIFT));
}
__device__ __forceinline__ Point lattice_point(const double* offset) {
    i64 x = nearest(offset[0] * double(ONE)), y = nearest(offset[1] * double(ONE));
    return {least(greatest(x, i64(0)), ONE), least(greatest(y, i64(0)), ONE)};
}

__device__ __forceinline__ bool intersect(Point a, Point b, Point p, Point q, double& s, bool& front) {
    if (greatest(p.x, q.x) < least(a.x, b.x) || least(p.x, q.x) > greatest(a.x, b.x) || greatest(p.y, q.y) < least(a.y, b.y) ||
        least(p.y, q.y) > greatest(a.y, b.y))
        return false;
    i64 before = orient(a, b, p), after = orient(a, b, q);
    if (after == 0 && within(q, a, b)) {
        s = 1.0;
        front = before <= 0;
        return true;
    }
    bool apart = (before > 0 && after <= 0) || (before < 0 && after >= 0);
    if (apart && (orient(p, q, a) > 0) != (orient(p, q, b) > 0)) {
        s = double(before) / double(before - after);
        front = before < 0;
        return true;
    }
    return false;
}

__device__ __forceinline__ u32 slot_of(const Geometry& g, int x, int y) { return BODIES ? g.slots[u64(y) * g.cells[0] + x] : 0; }

// Walks the cells from p to q, both counted from the corner of `cell`, until something is hit.
__device__ OF_FLIGHT SearchResult search(const Geometry& g, const int* cell, Point p, Point q) {
    Point d = q - p;
    const i64 step[2] = {(d.x > 0) - (d.x < 0), (d.y > 0) - (d.y < 0)}, size[2] = {d.x < 0 ? -d.x : d.x, d.y < 0 ? -d.y : d.y};
    const i64 from[2] = {p.x, p.y}, to[2] = {q.x, q.y};
    i64 at[2] = {0, 0};
    SearchResult best{NOTHING};
    for (;;) {
        Point corner{at[0] << BITS, at[1] << BITS};
        if (u32 slot = slot_of(g, int(cell[0] + at[0]), int(cell[1] + at[1]))) {
            for (u32 k = g.first[slot - 1]; k < g.first[slot]; k++) {
                const Piece& piece = g.pieces[k];
                Point a{piece.a[0], piece.a[1]}, b{piece.b[0], piece.b[1]};
                double s;
                bool front;
                if (!intersect(a, b, p - corner, q - corner, s, front)) continue;
                if (best.kind == NOTHING || s < best.hit.s - SAME || (s <= best.hit.s + SAME && front && !best.hit.front))
                    best = {PIECE, {s, front, piece.segment, a, b}};
            }
        }
        // Lattice steps to the next face along each axis, if the path gets there.
        i64 ahead[2];
        bool reached[2];
        for (int k = 0; k < 2; k++) {
            i64 face = (at[k] + (step[k] > 0)) << BITS;
            reached[k] = step[k] > 0 ? to[k] >= face : step[k] < 0 && to[k] < face;
            ahead[k] = face > from[k] ? face - from[k] : from[k] - face;
        }
        if (!reached[0] && !reached[1]) return best;
        int axis = !reached[1] ? 0 : !reached[0] ? 1 : int(ahead[0] * size[1] > ahead[1] * size[0]);
        double s = double(ahead[axis]) / double(size[axis]);
        if (best.kind == PIECE && best.hit.s < s - SAME) return best;
        at[axis] += step[axis];
        i64 outside = cell[axis] + at[axis];
        if (outside < 0 || outside >= g.cells[axis]) {
            if (best.kind == PIECE) return best;
            SearchResult side{SIDE};
            side.hit.s = s;
            side.axis = axis;
            side.upper = step[axis] > 0;
            return side;
        }
    }
}
