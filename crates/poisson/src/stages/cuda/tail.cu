// tail: all small levels in one block and in shared memory. The stages of a cycle that fall on them are queued by the
// host and carried out here in one launch: any sequence of descend, coarse solve and ascend, so V, W, F and C cycles.
// 1024 threads; a warp takes rows, its lanes the nodes of a row. Time is latency: about 0.7 us a level and V(1,1).

struct TailAxis {
    int n, first, last, periodic;
    int w, ends, shares;  // offsets of the tables in `reals`
    int parent, child;    // in `ints`
};
struct TailLevel {
    TailAxis x, y, z;
    int r, e;  // offsets of the fields in `reals`; rows of x.n values without gaps
    int seam;  // a periodic axis of odd length: nodes of one colour touch
};

enum { DESCEND, SOLVE, ASCEND };
// kind | level << 2 | current << 7 | sweeps << 8 | plain (omega = 1, inside a coarse solve) << 31
#define OPERATIONS 96
struct Queue {
    int count, resumes, continues;  // a long sequence is cut: the fields then rest in `state` between launches
    int first;                      // the level whose r is read and whose e is written
    unsigned op[OPERATIONS];
};

extern __shared__ double shared_memory[];

struct Tail {
    real* reals;
    const int* ints;
    real* scratch;
    real omega;

    __device__ const TailLevel& level(int l) const { return reinterpret_cast<const TailLevel*>(ints)[l]; }
    __device__ int step(const TailAxis& a, int i, int d) const {
        i += d;
        return i < 0 ? (a.periodic ? i + a.n : 0) : i >= a.n ? (a.periodic ? i - a.n : a.n - 1) : i;
    }
    // Distance to a neighbour. Beyond an end without weight any value in shared memory will do.
    __device__ int jump(const TailAxis& a, int i, int d) const { return a.periodic ? step(a, i, d) - i : d; }
    // visit(i, j, k, index) for every unknown; `every` = 2 visits those of the colour `first` only. Other nodes stay 0.
    template <class F> __device__ void each(const TailLevel& l, int every, int first, F visit) const {
        int lane = threadIdx.x % 32, height = l.y.last - l.y.first, rows = height * (l.z.last - l.z.first);
        for (int row = threadIdx.x / 32; row < rows; row += blockDim.x / 32) {
            int slab = l.z.n > 1 ? row / height : 0, j = l.y.first + row - slab * height, k = l.z.first + slab;
            int start = l.x.first + (every == 2 ? (first + l.x.first + j + k) & 1 : 0);
            for (int i = start + every * lane; i < l.x.last; i += every * 32) visit(i, j, k, (k * l.y.n + j) * l.x.n + i);
        }
    }
    // A e at a node and the diagonal.
    __device__ real apply(const TailLevel& l, const real* e, int i, int j, int k, int o, real* diagonal) const {
        const real *x = reals + l.x.w + 2 * i, *y = reals + l.y.w + 2 * j;
        real c = e[o];
        real a = x[0] * (e[o + jump(l.x, i, -1)] - c) + x[1] * (e[o + jump(l.x, i, 1)] - c);
        a += y[0] * (e[o + jump(l.y, j, -1) * l.x.n] - c) + y[1] * (e[o + jump(l.y, j, 1) * l.x.n] - c);
        real d = (x[0] + x[1]) + (y[0] + y[1]);
        if (l.z.n > 1) {
            const real* z = reals + l.z.w + 2 * k;
            int plane = l.x.n * l.y.n;
            a += z[0] * (e[o + jump(l.z, k, -1) * plane] - c) + z[1] * (e[o + jump(l.z, k, 1) * plane] - c);
            d += z[0] + z[1];
        }
        *diagonal = d;
        return a;
    }
    __device__ void half_sweep(const TailLevel& l, int colour) const {
        real *e = reals + l.e, *r = reals + l.r, *out = l.seam ? scratch : e;
        each(l, 2, colour, [&](int i, int j, int k, int o) {
            real d, a = apply(l, e, i, j, k, o, &d);
            out[o] = e[o] + omega * (a - r[o]) * reciprocal(d);
        });
        __syncthreads();
        if (l.seam) {
            each(l, 2, colour, [&](int, int, int, int o) { e[o] = out[o]; });
            __syncthreads();
        }
    }
    __device__ void sweeps(const TailLevel& l, int nu) const {
        for (int s = 0; s < nu; s++) {
            half_sweep(l, 0);
            half_sweep(l, 1);
        }
    }
    // Pre-smoothing, residual into scratch, restriction.
    __device__ void descend(const TailLevel& l, const TailLevel& c, bool current, int nu) const {
        real *e = reals + l.e, *r = reals + l.r, *rc = reals + c.r;
        if (!current) {
            each(l, 1, 0, [&](int, int, int, int o) { e[o] = 0; });
            __syncthreads();
        }
        sweeps(l, nu);
        each(l, 1, 0, [&](int i, int j, int k, int o) {
            real d;
            scratch[o] = r[o] - apply(l, e, i, j, k, o, &d);
        });
        __syncthreads();
        each(c, 1, 0, [&](int i, int j, int k, int o) {
            const real *sx = reals + l.x.shares + 3 * i, *sy = reals + l.y.shares + 3 * j, *sz = reals + l.z.shares + 3 * k;
            int x = ints[l.x.child + i], y = ints[l.y.child + j], z = ints[l.z.child + k], side = l.z.n > 1;
            int xw = step(l.x, x, -1), xe = step(l.x, x, 1);
            real sum = 0;
            for (int q = -side; q <= side; q++) {
                for (int p = -1; p <= 1; p++) {
                    const real* row = scratch + (step(l.z, z, q) * l.y.n + step(l.y, y, p)) * l.x.n;
                    sum += sz[q + 1] * sy[p + 1] * (sx[0] * row[xw] + sx[1] * row[x] + sx[2] * row[xe]);
                }
            }
            rc[o] = sum;
        });
        __syncthreads();
    }
    __device__ void ascend(const TailLevel& l, const TailLevel& c, int nu) const {
        real *e = reals + l.e, *ec = reals + c.e;
        each(l, 1, 0, [&](int i, int j, int k, int o) {
            const real *wx = reals + l.x.ends + 2 * i, *wy = reals + l.y.ends + 2 * j, *wz = reals + l.z.ends + 2 * k;
            int x = ints[l.x.parent + i], y = ints[l.y.parent + j], z = ints[l.z.parent + k], xe = step(c.x, x, 1);
            real sum = 0;
            for (int q = 0; q <= (l.z.n > 1); q++) {
                for (int p = 0; p < 2; p++) {
                    const real* row = ec + (step(c.z, z, q) * c.y.n + step(c.y, y, p)) * c.x.n;
                    sum += wz[q] * wy[p] * (wx[0] * row[x] + wx[1] * row[xe]);
                }
            }
            e[o] += sum;
        });
        __syncthreads();
        sweeps(l, nu);
    }
    // e = M r over all nodes of the coarsest level.
    __device__ void solve(const TailLevel& l, const real* matrix) const {
        int n = l.x.n * l.y.n * l.z.n;
        if (threadIdx.x < n) {
            real sum = 0;
            for (int q = 0; q < n; q++) sum += matrix[threadIdx.x * n + q] * reals[l.r + q];
            reals[l.e + threadIdx.x] = sum;
        }
        __syncthreads();
    }
};

// `tables`: the tables and the inverse of the coarsest level at `matrix`; fields and scratch follow in shared memory.
extern "C" __global__ __launch_bounds__(1024) void tail(const real* tables, int table_count, const int* ints, int int_count,
                                                        int reals, int scratch, int matrix, Queue queue, real omega,
                                                        const real* r, real* e, int pitch, long long plane, real* state) {
    real* space = reinterpret_cast<real*>(shared_memory);
    int* numbers = reinterpret_cast<int*>(space + reals);
    for (int q = threadIdx.x; q < table_count; q += blockDim.x) space[q] = tables[q];
    for (int q = threadIdx.x; q < int_count; q += blockDim.x) numbers[q] = ints[q];
    for (int q = table_count + threadIdx.x; !queue.resumes && q < reals; q += blockDim.x) space[q] = 0;
    let_next_kernel_start();
    wait_for_previous_kernel();
    for (int q = table_count + threadIdx.x; queue.resumes && q < scratch; q += blockDim.x) space[q] = state[q];
    __syncthreads();
    Tail t = {space, numbers, space + scratch, omega};
    // Copies: the compiler cannot know that no field overlaps the descriptions.
    const TailLevel top = t.level(queue.first);
    if (!queue.resumes) {
        t.each(top, 1, 0, [&](int i, int j, int k, int o) { space[top.r + o] = r[i + (long long)j * pitch + k * plane]; });
        __syncthreads();
    }
    for (int q = 0; q < queue.count; q++) {
        unsigned op = queue.op[q], l = op >> 2 & 31, sweeps = op >> 8 & 0x7fffff;
        t.omega = op >> 31 ? real(1) : omega;
        const TailLevel here = t.level(l), below = t.level((op & 3) == SOLVE ? l : l + 1);
        if ((op & 3) == DESCEND) t.descend(here, below, op >> 7 & 1, sweeps);
        if ((op & 3) == SOLVE) t.solve(here, space + matrix);
        if ((op & 3) == ASCEND) t.ascend(here, below, sweeps);
    }
    for (int q = table_count + threadIdx.x; queue.continues && q < scratch; q += blockDim.x) state[q] = space[q];
    t.each(top, 1, 0, [&](int i, int j, int k, int o) { e[i + (long long)j * pitch + k * plane] = space[top.e + o]; });
}
