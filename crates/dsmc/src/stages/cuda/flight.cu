// The next thing that a path meets: `geometry/flight.rs`, whose word for word this is, in whole numbers where that has whole numbers
// and without contraction (the program is compiled with -fmad=false), so that both find the same.

#define BITS 24
#define ONE (i64(1) << BITS)
#define LONGEST 16.0
#define TINY (64.0 / double(ONE))
#define GRAZES 16
#define SAME 1e-12

struct Point {
  i64 x, y;
};
struct Piece {
  int a[2], b[2];
  u32 segment;
};
struct Reference {
  int at[2], winding;
};
struct Segment {
  double normal[2];
  u32 wall, unused;
};
struct Geometry {
  const u32 *slots, *first;  // by cell: one more than its place in `first`, 0 without pieces
  const Piece* pieces;
  const Reference* references;
  const Segment* segments;
  const u8* inside;          // by cell without pieces: whether it is in a body
  int cells[2];
  double h[2];
};
struct Flight {
  int cell[2];
  double offset[2], path[2];
};
enum Kind { NOTHING, PIECE, SIDE };
struct Hit {
  double s;
  bool front;
  u32 piece;
  Point a, b;
};
struct Found {
  Kind kind;
  Hit hit;
  int axis, upper;
};
struct Met {
  Kind kind;
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
__device__ __forceinline__ Point place_of(const double* offset) {
  i64 x = nearest(offset[0] * double(ONE)), y = nearest(offset[1] * double(ONE));
  return {least(greatest(x, i64(0)), ONE), least(greatest(y, i64(0)), ONE)};
}

__device__ __forceinline__ bool meets(Point a, Point b, Point p, Point q, double& s, bool& front) {
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

// Walks the cells from p to q, both counted from the corner of `cell`, until something is met.
__device__ __noinline__ Found search(const Geometry& g, const int* cell, Point p, Point q) {
  Point d = q - p;
  const i64 step[2] = {(d.x > 0) - (d.x < 0), (d.y > 0) - (d.y < 0)}, size[2] = {d.x < 0 ? -d.x : d.x, d.y < 0 ? -d.y : d.y};
  const i64 from[2] = {p.x, p.y}, to[2] = {q.x, q.y};
  i64 at[2] = {0, 0};
  Found best{NOTHING};
  for (;;) {
    Point corner{at[0] << BITS, at[1] << BITS};
    if (u32 slot = slot_of(g, int(cell[0] + at[0]), int(cell[1] + at[1]))) {
      for (u32 k = g.first[slot - 1]; k < g.first[slot]; k++) {
        const Piece& piece = g.pieces[k];
        Point a{piece.a[0], piece.a[1]}, b{piece.b[0], piece.b[1]};
        double s;
        bool front;
        if (!meets(a, b, p - corner, q - corner, s, front)) continue;
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
      Found side{SIDE};
      side.hit.s = s;
      side.axis = axis;
      side.upper = step[axis] > 0;
      return side;
    }
  }
}

// Whether p lies in the domain; with `closed` on its upper sides too.
__device__ __forceinline__ bool in_domain(const Geometry& g, const int* cell, Point p, bool closed) {
  i64 x = p.x + (i64(cell[0]) << BITS), y = p.y + (i64(cell[1]) << BITS), nx = i64(g.cells[0]) << BITS, ny = i64(g.cells[1]) << BITS;
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

// Stops in front of a piece; false where only the path on the lattice meets it, and the path itself leads away.
__device__ __noinline__ bool stop(const Geometry& g, Flight& f, Point p, Point q, const Hit& hit, double* normal) {
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
  // Rounding turns the shortest pieces: a path along the wall then goes by what it met.
  double m[2] = {n[0] * g.h[1], n[1] * g.h[0]}, size = hypot(m[0], m[1]);
  normal[0] = m[0] / size;
  normal[1] = m[1] / size;
  return normal[0] * physical[0] + normal[1] * physical[1] < 0.0;
}

// Stops on a side of the domain; false with what is in the way of every place there.
__device__ __noinline__ bool stop_at_side(const Geometry& g, Flight& f, Point p, Point q, const Found& side, Hit& blocked) {
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
    Found found = search(g, cell, p, to);
    if (found.kind != PIECE) {
      put(g, f, cell, to);
      return true;
    }
    if (!any) blocked = found.hit;
    any = true;
  }
  return false;
}

// Flies to the next thing that the path meets and stops there.
__device__ __noinline__ Met fly(const Geometry& g, Flight& f) {
  const double path[2] = {f.path[0], f.path[1]}, longest = fmax(fabs(path[0]), fabs(path[1]));
  double rest = isfinite(longest) ? 1.0 : 0.0;
  for (u32 grazes = 0;;) {
    double part = longest * rest > LONGEST ? LONGEST / longest : rest;
    const int cell[2] = {f.cell[0], f.cell[1]};
    Point p = place_of(f.offset), q = p + Point{nearest(path[0] * part * double(ONE)), nearest(path[1] * part * double(ONE))};
    Found found = search(g, cell, p, q);
    double s = found.kind == NOTHING ? 1.0 : found.hit.s;
    Met met{NOTHING};
    if (found.kind == NOTHING) {
      put(g, f, cell, q);
    } else {
      bool piece = found.kind == PIECE;
      if (!piece) {
        Hit blocked;
        if (stop_at_side(g, f, p, q, found, blocked)) {
          met.kind = SIDE;
          met.axis = found.axis;
          met.upper = found.upper;
        } else {
          piece = true;
          found.hit = blocked;
          found.hit.s = s;
        }
      }
      if (piece && stop(g, f, p, q, found.hit, met.normal)) {
        met.kind = PIECE;
        met.segment = found.hit.piece;
      }
    }
    grazes += met.kind == NOTHING && s < 1.0;
    // Round-off of the parts must not leave a path behind, nor the lattice keep one going along a wall.
    bool caught = s < 1.0 && (longest * rest < TINY || grazes > GRAZES);
    bool arrived = met.kind == NOTHING && ((part == rest && s == 1.0) || caught);
    rest = arrived ? 0.0 : fmax(rest - part * s, 0.0);
    f.path[0] = path[0] * rest;
    f.path[1] = path[1] * rest;
    met.done = 1.0 - rest;
    if (met.kind != NOTHING || arrived) return met;
  }
}

// The offset of a flight that has arrived, as the store keeps it.
__device__ __noinline__ float2 settle(const Geometry& g, const Flight& f) {
  const int DX[9] = {0, 0, -1, 0, 1, -1, 0, -2, -4}, DY[9] = {0, -1, 0, 1, 0, -1, -2, 0, -4};
  Point p = place_of(f.offset);
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

// Whether a place is in the gas: neither in a body nor on its outline.
__device__ __noinline__ bool in_gas(const Geometry& g, const int* cell, const double* offset) {
  if (!BODIES) return true;
  u32 slot = slot_of(g, cell[0], cell[1]);
  if (slot == 0) return !g.inside[u64(cell[1]) * g.cells[0] + cell[0]];
  Reference r = g.references[slot - 1];
  Point p = place_of(offset), from{r.at[0], r.at[1]};
  int winding = r.winding;
  for (u32 k = g.first[slot - 1]; k < g.first[slot]; k++) {
    const Piece& piece = g.pieces[k];
    Point a{piece.a[0], piece.a[1]}, b{piece.b[0], piece.b[1]};
    if (within(p, a, b) && orient(a, b, p) == 0) return false;
    double s;
    bool front;
    if (meets(a, b, from, p, s, front)) winding += front ? 1 : -1;
  }
  return winding == 0;
}
