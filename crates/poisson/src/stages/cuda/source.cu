// Where the rows of u come from in a pass over the solution (solution.cu), six slots of rows on their way:
// Nothing, u = 0; Stored, u itself; Corrected, u + P e_{l+1}; Cubic, P u_{l+1} by cubics, u on held nodes. `begin` asks for what stands
// before the first row, which is even, `ask` for a row and what it needs below, and `take` gives it four to a lane. Rows go
// up or, by a `way` of -1, down where BOTH_WAYS.

struct Nothing {
    static constexpr int space = 0;
    static constexpr bool BOTH_WAYS = true;

    __device__ __forceinline__ Nothing(const Level&, const Level&, const wide*, const real*, int, int, char*) {}
    __device__ __forceinline__ void begin(int) {}
    __device__ __forceinline__ void begun() {}
    __device__ __forceinline__ void ask(long long, int, int) const {}
    __device__ __forceinline__ void take(int, int, wide* out) const { out[0] = out[1] = out[2] = out[3] = 0; }
};

struct Stored {
    typedef Stream<4, 6, wide> Rows;
    static constexpr int space = Rows::space;
    static constexpr bool BOTH_WAYS = true;
    Rows rows;

    __device__ __forceinline__ Stored(const Level& l, const Level&, const wide* u, const real*, int x, int, char* shared) : rows(u, l, x, shared) {}
    __device__ __forceinline__ void begin(int) {}
    __device__ __forceinline__ void begun() {}
    __device__ __forceinline__ void ask(long long place, int, int slot) const { rows.ask_at(place, slot); }
    __device__ __forceinline__ void take(int, int slot, wide* out) { rows.take(slot, out); }
};

struct Corrected : Stored {
    typedef Stream<2, 3, real> CoarseRows;
    static constexpr int space = Rows::space + CoarseRows::space;
    CoarseRows coarse;
    const Level& l;
    int way;
    real C[4], lx[4], ly[2] = {};
    bool covered;

    __device__ __forceinline__ Corrected(const Level& l, const Level& c, const wide* u, const real* e, int x, int way, char* shared)
        : Stored(l, c, u, e, x, way, shared), coarse(e, c, x / 2, shared + Rows::space), l(l), way(way) {
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
        out[0] = v, out[1] = lx[0] * v + lx[1] * w, out[2] = w, out[3] = lx[2] * w + lx[3] * beside;
    }
    __device__ __forceinline__ void begin(int first) { coarse.ask(first / 2, 2); }
    __device__ __forceinline__ void begun() { along(2, C); }
    // An odd row needs the coarse one behind it.
    __device__ __forceinline__ void ask(long long place, int j, int slot) const {
        rows.ask_at(place, slot);
        if (slot % 2) coarse.ask((j + way) / 2, slot / 2);
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
            for (int c = 0; c < 4; c++) out[c] += wide(ly[0] * C[c] + ly[1] * N[c]), C[c] = N[c];
        }
    }
};

struct Cubic {
    static constexpr int space = Interpolated::space;
    static constexpr bool BOTH_WAYS = false;
    Interpolated cubic;
    int columns;

    __device__ __forceinline__ Cubic(const Level& l, const Level& c, const wide* u, const wide* below, int x, int, char* shared)
        : cubic(l, c, below, u, x, shared), columns(l.x.periodic ? 4 : l.x.n - x) {}
    __device__ __forceinline__ void begin(int first) { cubic.begin(first / 2 - 2, first / 2 + 3), cubic.ask(first / 2 + 3); }
    __device__ __forceinline__ void begun() {}
    // Coarse rows three ahead of the even rows.
    __device__ __forceinline__ void ask(long long, int j, int slot) const {
        cubic.ask_edge(j);
        if (slot % 2) cubic.ask((j + 1) / 2 + 3);
    }
    __device__ __forceinline__ void take(int j, int slot, wide* out) {
        __syncwarp();
        if (slot % 2 == 0) cubic.along(j / 2 + 3);
        cubic.across(j, slot % 2, out);
#pragma unroll
        for (int c = 0; c < 4; c++)
            if (c >= columns) out[c] = 0;
    }
};
