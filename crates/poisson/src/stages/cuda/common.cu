// Types and helpers of all kernels. `real` is the precision of residuals and corrections, `wide` that of the solution
// and the right-hand side (mixed: float and double). Rows are `pitch` elements apart, a multiple of 32; columns beyond
// the last node hold zeros.

namespace physics {
#include "physics.cuh"
}

typedef REAL real;
typedef WIDE wide;

#include "level.cuh"

template <class T> __device__ __forceinline__ const T* weights(const Axis& a);
template <> __device__ __forceinline__ const real* weights<real>(const Axis& a) { return a.w; }
#if !SAME
template <> __device__ __forceinline__ const wide* weights<wide>(const Axis& a) { return a.ww; }
#endif

__device__ __forceinline__ long long at(const Level& l, int i, int j, int k) { return i + (long long)j * l.pitch + k * l.plane; }
__device__ __forceinline__ bool unknown(const Level& l, int i, int j, int k) {
    return i >= l.x.first && i < l.x.last && j >= l.y.first && j < l.y.last && k >= l.z.first && k < l.z.last;
}
__device__ __forceinline__ int wrapped(const Axis& a, int i) {
    return i < 0 ? (a.periodic ? i + a.n : 0) : i >= a.n ? (a.periodic ? i - a.n : a.n - 1) : i;
}

// Sums of a block in a fixed order: the result does not change from run to run. Valid on thread 0.
__device__ __forceinline__ double warp_sum(double v) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(~0u, v, o);
    return v;
}
__device__ __forceinline__ double warp_max(double v) {
    for (int o = 16; o > 0; o >>= 1) v = fmax(v, __shfl_down_sync(~0u, v, o));
    return v;
}

// Partial results of one block or warp: sum V r^2, max |r|, sum V u^2, sum V r.
struct alignas(16) Partial {
    double rr, max, uu, r;
};
__device__ __forceinline__ void take(Partial& p, double r, double u, double volume) {
    p.rr += volume * r * r;
    // A NaN must not vanish in fmax: it turns into infinity.
    p.max = r == r ? fmax(p.max, fabs(r)) : __longlong_as_double(0x7ff0000000000000LL);
    p.uu += volume * u * u;
    p.r += volume * r;
}
__device__ __forceinline__ Partial warp_total(Partial p) {
    return {warp_sum(p.rr), warp_max(p.max), warp_sum(p.uu), warp_sum(p.r)};
}
__device__ __forceinline__ void join(Partial& p, const Partial& q) {
    p.rr += q.rr, p.max = fmax(p.max, q.max), p.uu += q.uu, p.r += q.r;
}

#include "norms.cuh"

// First row of a block's band of so many rows.
__device__ __forceinline__ int first_row(const Level& l, int height) { return l.y.begin + blockIdx.y * height; }

// Joins the results of `blocks` blocks, in an order that does not depend on which block does it: `warps` do the work of WARPS.
__device__ __forceinline__ void join_blocks(int blocks, int warps, const Norms& o) {
    __shared__ Partial shares[WARPS];
    const int lane = threadIdx.x % 32;
    // Many at once: each is a way to the second cache and back.
    constexpr int MANY = 8, STEP = 32 * WARPS;
    for (int warp = threadIdx.x / 32; warp < WARPS; warp += warps) {
        Partial p = {};
        for (int base = 32 * warp + lane; base < blocks; base += MANY * STEP) {
            double2 low[MANY], high[MANY];
#pragma unroll
            for (int i = 0; i < MANY; i++) {
                const double2* from = reinterpret_cast<const double2*>(o.partials + min(base + i * STEP, blocks - 1));
                low[i] = __ldcg(from), high[i] = __ldcg(from + 1);
            }
#pragma unroll
            for (int i = 0; i < MANY; i++)
                if (base + i * STEP < blocks) join(p, {low[i].x, low[i].y, high[i].x, high[i].y});
        }
        p = warp_total(p);
        if (lane == 0) shares[warp] = p;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        Partial p = shares[0];
        for (int w = 1; w < WARPS; w++) join(p, shares[w]);
        *o.totals = p, *o.host = p;
    }
}

// Joins the results of the blocks of a plane of them, in the block that comes last; where a part has made some of them they are only
// left. `p`: of a warp, in its first lane; `warps` of the block's have not returned before.
__device__ __forceinline__ void join_norms(Partial p, int warps, const Norms& o) {
    __shared__ Partial shares[WARPS];
    __shared__ bool last;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, blocks = gridDim.x * gridDim.y;
    if (lane == 0) shares[warp] = p;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < warps; w++) join(p, shares[w]);
        o.partials[blockIdx.y * gridDim.x + blockIdx.x] = p;
        __threadfence();
        last = o.arrived && atomicAdd(o.arrived, 1u) == blocks - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    join_blocks(blocks, warps, o);
    if (threadIdx.x == 0) *o.arrived = 0;
}
