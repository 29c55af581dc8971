// residual: r = f - A u and its norms; correct: u_new = u + e first. For any grid, blocks of 32 x 4 threads over
// (x, 16 rows of y, z), one partial result a block. r and e are `ascend_finest` times the residual and correction. Mixed: residual reads 16 B and writes 4, correct reads 20 and writes 12.

#include "relax.cu"

__device__ __forceinline__ void finish_block(Partial p, Partial* out) {
    __shared__ Partial warps[32];
    int t = threadIdx.x + blockDim.x * threadIdx.y, warp = t / 32, count = blockDim.x * blockDim.y / 32;
    p = warp_total(p);
    if (t % 32 == 0) warps[warp] = p;
    __syncthreads();
    if (t == 0) {
        for (int w = 1; w < count; w++) {
            p.rr += warps[w].rr, p.uu += warps[w].uu, p.r += warps[w].r;
            p.max = fmax(p.max, warps[w].max);
        }
        *out = p;
    }
}

template <class F> __device__ __forceinline__ void residual_node(const Level& l, const wide* f, real* r, wide ascend_finest,
                                                                 wide* u_new, Partial* partials, F value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, k = l.z.begin + blockIdx.z;
    Partial p = {};
    // A thread takes several rows, so that joining the sums costs little.
    for (int s = 0; s < ROWS; s++) {
        int j = l.y.begin + (blockIdx.y * ROWS + s) * blockDim.y + threadIdx.y;
        if (i >= l.x.n || j >= l.y.end) break;
        long long o = at(l, i, j, k);
        wide u = value(i, j, k), res = 0;
        if (unknown(l, i, j, k)) {
            res = physics::residual(f[o], apply<wide>(l, i, j, k, value).av);
            take(p, res, u, double(l.x.volume[i]) * double(l.y.volume[j]) * double(l.z.volume[k]));
        }
        r[o] = real(ascend_finest * res);
        if (u_new) u_new[o] = u;
    }
    finish_block(p, partials + blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * (long long)blockIdx.z));
}

extern "C" __global__ void residual(Level l, const wide* __restrict__ u, const wide* __restrict__ f, real* r, wide ascend_finest,
                                    Partial* partials) {
    residual_node(l, f, r, ascend_finest, nullptr, partials, [&](int i, int j, int k) { return u[at(l, i, j, k)]; });
}
extern "C" __global__ void correct(Level l, const wide* __restrict__ u, const real* __restrict__ e, const wide* __restrict__ f,
                                   wide* u_new, real* r, wide ascend_finest, wide down, Partial* partials) {
    residual_node(l, f, r, ascend_finest, u_new, partials, [&](int i, int j, int k) {
        long long o = at(l, i, j, k);
        return u[o] + down * wide(e[o]);
    });
}

// join_bands: the partial results of a pass in the order of join_norms, in one block of WARPS warps, where a part has made some of them.
extern "C" __global__ __launch_bounds__(32 * WARPS) void join_bands(Norms norms, int blocks) {
    let_next_kernel_start();
    wait_for_previous_kernel();
    join_blocks(blocks, WARPS, norms);
}

// norms: the partial results in a fixed order, in one block of 1024 threads, into `totals` and the host's copy.
extern "C" __global__ __launch_bounds__(1024) void norms(const Partial* partials, int count, Partial* totals, Partial* host) {
    let_next_kernel_start();
    wait_for_previous_kernel();
    Partial p = {};
    for (int q = threadIdx.x; q < count; q += blockDim.x) {
        p.rr += partials[q].rr, p.uu += partials[q].uu, p.r += partials[q].r;
        p.max = fmax(p.max, partials[q].max);
    }
    finish_block(p, totals);
    if (threadIdx.x == 0) *host = *totals;
}

// shift: takes the mean, totals->r times `factor`, off the unknowns of v.
template <class T> __device__ __forceinline__ void shift_node(const Level& l, T* v, const Partial* totals, double factor) {
    NODE;
    if (unknown(l, i, j, k)) v[o] -= T(totals->r * factor);
}
extern "C" __global__ void shift_r(Level l, real* v, const Partial* totals, double factor) { shift_node(l, v, totals, factor); }
extern "C" __global__ void shift_u(Level l, wide* v, const Partial* totals, double factor) { shift_node(l, v, totals, factor); }

// weigh: sum V v over the unknowns, as partial results.
extern "C" __global__ void weigh(Level l, const wide* __restrict__ v, Partial* partials) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, k = l.z.begin + blockIdx.z;
    Partial p = {};
    for (int s = 0; s < ROWS; s++) {
        int j = l.y.begin + (blockIdx.y * ROWS + s) * blockDim.y + threadIdx.y;
        if (i < l.x.n && j < l.y.end && unknown(l, i, j, k))
            take(p, v[at(l, i, j, k)], 0, double(l.x.volume[i]) * double(l.y.volume[j]) * double(l.z.volume[k]));
    }
    finish_block(p, partials + blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * (long long)blockIdx.z));
}
