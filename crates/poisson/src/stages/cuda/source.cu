// Sources of the rows of u in a pass over the solution (solution.cu), with six slots of rows in flight:
// ZeroSource, u = 0; StoredSource, u itself; CorrectedSource, u + P e_{l+1}; CubicSource (cubic_source.cu), P u_{l+1} by cubics.
// `fetch_first` begins the copies that precede the first row, which is even, `fetch` those of a row and of the coarse rows it
// needs, and `take` returns the row, four values a lane. Rows go up or, with a `way` of -1, down where BOTH_WAYS.

#include "march.cu"

struct ZeroSource {
    static constexpr int space = 0;
    static constexpr bool BOTH_WAYS = true;

    __device__ __forceinline__ ZeroSource(const Level&, const Level&, const wide*, const real*, int, int, char*) {}
    __device__ __forceinline__ void fetch_first(int) {}
    __device__ __forceinline__ void take_first() {}
    __device__ __forceinline__ void fetch(long long, int, int) const {}
    __device__ __forceinline__ void take(int, int, wide* out) const { out[0] = out[1] = out[2] = out[3] = 0; }
};

struct StoredSource {
    typedef Stream<4, 6, wide> Rows;
    static constexpr int space = Rows::space;
    static constexpr bool BOTH_WAYS = true;
    Rows rows;

    __device__ __forceinline__ StoredSource(const Level& l, const Level&, const wide* u, const real*, int x, int, char* shared)
        : rows(u, l, x, shared) {}
    __device__ __forceinline__ void fetch_first(int) {}
    __device__ __forceinline__ void take_first() {}
    __device__ __forceinline__ void fetch(long long offset, int, int slot) const { rows.fetch_at(offset, slot); }
    __device__ __forceinline__ void take(int, int slot, wide* out) { rows.take(slot, out); }
};

struct CorrectedSource : StoredSource {
    typedef Stream<2, 3, real> CoarseRows;
    static constexpr int space = Rows::space + CoarseRows::space;
    CoarseRows coarse;
    const Level& l;
    int way;
    real C[4], lx[4], ly[2] = {};
    bool covered;

    __device__ __forceinline__ CorrectedSource(const Level& l, const Level& c, const wide* u, const real* e, int x, int way,
                                               char* shared)
        : StoredSource(l, c, u, e, x, way, shared), coarse(e, c, x / 2, shared + Rows::space), l(l), way(way) {
        // Interpolation to the odd columns 1 and 3; even columns lie on coarse nodes.
        const real* line = l.x.line + 2 * x;
        lx[0] = __ldg(line + 2), lx[1] = __ldg(line + 3), lx[2] = __ldg(line + 6), lx[3] = __ldg(line + 7);
        covered = c.x.periodic || (x >= 0 && x / 2 < c.pitch);
    }
    // A coarse row, interpolated along x.
    __device__ __forceinline__ void along(int slot, real* out) const {
        real got[2];
        coarse.take(slot, got);
        real v = covered ? got[0] : real(0), w = covered ? got[1] : real(0), beside = from_east(v);
        out[0] = v, out[1] = physics::between(lx[0], v, lx[1], w), out[2] = w, out[3] = physics::between(lx[2], w, lx[3], beside);
    }
    __device__ __forceinline__ void fetch_first(int first) { coarse.fetch(first / 2, 2); }
    __device__ __forceinline__ void take_first() { along(2, C); }
    // An odd row needs the coarse one behind it.
    __device__ __forceinline__ void fetch(long long offset, int j, int slot) const {
        rows.fetch_at(offset, slot);
        if (slot % 2) coarse.fetch((j + way) / 2, slot / 2);
    }
    __device__ __forceinline__ void take(int j, int slot, wide* out) {
        rows.take(slot, out);
        // An even row lies on a coarse one, which is in C; an odd one between C and the next. Its weights are read a step ahead.
        if (slot % 2 == 0) {
            const real* line = l.y.line + 2 * (j + way);
            ly[0] = __ldg(line + (way < 0)), ly[1] = __ldg(line + (way > 0));
#pragma unroll
            for (int c = 0; c < 4; c++) out[c] += wide(C[c]);
        } else {
            real N[4];
            along(slot / 2, N);
#pragma unroll
            for (int c = 0; c < 4; c++) out[c] += wide(physics::between(ly[0], C[c], ly[1], N[c])), C[c] = N[c];
        }
    }
};
