// The tridiagonal systems along the last axis (line.rs), and the moves between the grid and complex lines.
// Rows 2p and 2p + 1 are the parts of one complex value, so a line of x carries two rows.

__device__ real &row_of(Z *modes, size_t plane, size_t place, unsigned row) {
    return ((real *)(modes + (row >> 1) * plane + place))[row & 1];
}

// v > 0: the multiplier itself; v <= 0: the multiplier less 1, where that keeps more digits.
__device__ real times(real v, real s) { return v > 0 ? v * s : fma(v, s, s); }

// 1 - m of the row before r0 (line.rs: d), in closed form.
__device__ double before(unsigned r0, double theta) {
    double step = -expm1(-theta);
    if (LO_NEUMANN) return step * -expm1(-(2.0 * r0 - 1.0) * theta) / (1.0 + exp(-2.0 * r0 * theta));
    if (theta == 0.0) return 1.0 / (r0 + 1.0);
    return step * (1.0 + exp(-(2.0 * r0 + 1.0) * theta)) / -expm1(-2.0 * (r0 + 1.0) * theta);
}

// Maps x -> a x + b of the segments composed along them: each thread gets what the segments ahead of it make of 0.
__device__ real carried(real a, real b, bool backward, real *as, real *bs) {
    unsigned t = threadIdx.x, s = t / MODES, rank = backward ? SEGMENTS - 1 - s : s;
    int toward = backward ? MODES : -(int)MODES;
    for (unsigned reach = 1; reach < SEGMENTS; reach *= 2) {
        as[t] = a;
        bs[t] = b;
        __syncthreads();
        if (rank >= reach) {
            unsigned o = t + toward * (int)reach;
            b = fma(a, bs[o], b);
            a = a * as[o];
        }
        __syncthreads();
    }
    bs[t] = b;
    __syncthreads();
    real result = rank > 0 ? bs[t + toward] : (real)0;
    __syncthreads();
    return result;
}

// MODES neighbouring modes a block, SEGMENTS segments of LENGTH rows each, all rows in registers: read once, written once.
// `modes`: `width` values for each of the outer modes, `plane` apart from row pair to row pair.
extern "C" __global__ void __launch_bounds__(MODES * SEGMENTS)
lines(Z *modes, const double *outer, const double *inner, unsigned width, unsigned places) {
    __shared__ real as[MODES * SEGMENTS], bs[MODES * SEGMENTS];
    unsigned c = threadIdx.x % MODES, r0 = threadIdx.x / MODES * LENGTH;
    unsigned own = blockIdx.x * MODES + c, place = min(own, places - 1);
    double delta = outer[place / width] + inner[place % width], theta = 2.0 * asinh(0.5 * sqrt(delta));
    real g[LENGTH], v[LENGTH];
#pragma unroll
    for (int i = 0; i < LENGTH; ++i) g[i] = r0 + i < ROWS ? row_of(modes, places, place, r0 + i + PERIODIC) : (real)0;
    double d = r0 > 0 ? before(r0, theta) : 1.0;
    real a = 1, b = 0;
#pragma unroll
    for (int i = 0; i < LENGTH; ++i) {
        unsigned r = r0 + i;
        v[i] = 1;
        if (r >= ROWS) continue;
        bool last = HI_NEUMANN && r + 1 == ROWS, first = LO_NEUMANN && r == 0;
        double m = first ? 1.0 / (1.0 + 0.5 * delta) : last ? 1.0 / (0.5 * delta + d) : 1.0 / (1.0 + delta + d);
        if (last && LO_NEUMANN && delta == 0.0) m = 1e-30;
        d = first ? 0.5 * delta * m : (delta + d) * m;
        v[i] = last || d >= 0.5 ? (real)m : (real)-d;
        if (first || last) g[i] *= (real)0.5;
        b = times(v[i], g[i] + b);
        a = times(v[i], a);
    }
    real carry = carried(a, b, false, as, bs);
    a = 1;
    b = 0;
#pragma unroll
    for (int i = 0; i < LENGTH; ++i) {
        if (r0 + i < ROWS) carry = g[i] = times(v[i], g[i] + carry);
    }
#pragma unroll
    for (int i = LENGTH - 1; i >= 0; --i) {
        if (r0 + i < ROWS) {
            b = times(v[i], b) + g[i];
            a = times(v[i], a);
        }
    }
    carry = carried(a, b, true, as, bs);
#pragma unroll
    for (int i = LENGTH - 1; i >= 0; --i) {
        if (r0 + i < ROWS) carry = g[i] = times(v[i], carry) + g[i];
    }
#if PERIODIC
    // Node 0 through its Green's function cosh((n/2 - j) theta) / cosh(n theta / 2).
#pragma unroll
    for (int i = 0; i < LENGTH; ++i) {
        if (r0 + i == 0) as[c] = g[i];
        if (r0 + i == ROWS - 1) bs[c] = g[i];
    }
    __syncthreads();
    double n = ROWS + 1, pivot = 2.0 * sinh(theta) * tanh(0.5 * n * theta);
    double zero = delta > 0.0 ? ((double)row_of(modes, places, place, 0) + as[c] + bs[c]) / pivot : 0.0;
    double there = zero / (1.0 + exp(-n * theta)), back = there * exp(-(n - 1.0 - r0) * theta);
    there *= exp(-(r0 + 1.0) * theta);
    double down = exp(-theta), up = exp(theta);
#pragma unroll
    for (int i = 0; i < LENGTH; ++i) {
        g[i] += (real)(there + back);
        there *= down;
        back *= up;
    }
    __syncthreads(); // node 0 is read by all threads before the first one writes it
    if (r0 == 0 && own < places) row_of(modes, places, place, 0) = (real)zero;
#endif
    if (own < places) {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i) {
            if (r0 + i < ROWS) row_of(modes, places, place, r0 + i + PERIODIC) = g[i];
        }
    }
}

// The constant mode of a singular problem: takes the weighted mean off its line and writes it down. One block of 256.
extern "C" __global__ void centre(Z *modes, unsigned place, unsigned places, double *mean) {
    __shared__ double sums[256];
    const unsigned rows = ROWS + PERIODIC;
    double sum = 0.0;
    for (unsigned r = threadIdx.x; r < rows; r += 256) {
        double weight = !PERIODIC && (r == 0 || r + 1 == rows) ? 0.5 : 1.0;
        sum += weight * row_of(modes, places, place, r);
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    double value = sums[0] / (PERIODIC ? rows : rows - 1);
    for (unsigned r = threadIdx.x; r < rows; r += 256) row_of(modes, places, place, r) -= (real)value;
    if (threadIdx.x == 0) *mean = value;
}

struct Box {
    unsigned nodes[3], first[3], unknowns[3]; // x, middle, last
};

// Grid nodes to complex lines of x (`inverse`: back). One thread a complex value.
extern "C" __global__ void pack(real *grid, Z *z, Box box, int inverse) {
    unsigned nx = box.unknowns[0], nm = box.unknowns[1];
    size_t line;
    unsigned i;
    if (!split(nx, (box.unknowns[2] + 1) / 2 * nm, line, i)) return;
    unsigned l = (unsigned)(line / nm) * 2, q = (unsigned)(line % nm);
    size_t row = (size_t)box.nodes[0] * box.nodes[1];
    real *node = grid + ((box.first[2] + l) * row + (size_t)(box.first[1] + q) * box.nodes[0] + box.first[0] + i);
    Z *value = z + line * nx + i;
    bool second = l + 1 < box.unknowns[2];
    if (!inverse) {
        *value = {node[0], second ? node[row] : (real)0};
    } else {
        node[0] = value->x;
        if (second) node[row] = value->y;
    }
}

// Transposes a `rows` x `columns` matrix per plane, tiles of 32 x 32 by 32 x 8 threads.
extern "C" __global__ void turn(const Z *from, size_t from_plane, Z *to, size_t to_plane, unsigned rows, unsigned columns) {
    __shared__ Z tile[32][33];
    from += blockIdx.z * from_plane;
    to += blockIdx.z * to_plane;
    unsigned x = blockIdx.x * 32, y = blockIdx.y * 32;
    for (unsigned k = threadIdx.y; k < 32; k += 8) {
        if (y + k < rows && x + threadIdx.x < columns) tile[k][threadIdx.x] = from[(size_t)(y + k) * columns + x + threadIdx.x];
    }
    __syncthreads();
    for (unsigned k = threadIdx.y; k < 32; k += 8) {
        if (x + k < columns && y + threadIdx.x < rows) to[(size_t)(x + k) * rows + y + threadIdx.x] = tile[threadIdx.x][k];
    }
}
