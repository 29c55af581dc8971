// descend: one red-black sweep on A e = r from zero, then r_{l+1} = R (r - A e), in one pass; e is not stored.
// Plane, both axes coarsened. Launch: (strips / WARPS, bands) blocks of WARPS warps; a band is `height` rows, even.
// Reads 4 B and writes 1 B per unknown in float; about 40 flops.
//
// At step j row j is read and its red nodes start, row j-1 has its black nodes relaxed, row j-2 its residual restricted.

#include "short.cu"

template <class A> __device__ __forceinline__ void descend_strip(const Level& l, const Level& coarse, const real* __restrict__ r,
                                                                 real* __restrict__ rc, real omega, int height) {
    int strip = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (strip * OWN >= 2 * coarse.x.n) return;
    int x = strip * OWN + 4 * (lane - 1);
    int begin = first_row(l, height), end = min(begin + height, 2 * coarse.y.n);
    A a(l, x, begin - 4, omega, omega);
    Restriction<real> restriction(coarse, x, a);
    bool owner = lane > 0 && lane < 31 && x / 2 < coarse.pitch;

    typedef Stream<4, 8, real> Rows;
    __shared__ __align__(16) char shared[WARPS * Rows::space];
    Rows residual(r, l, x, shared + threadIdx.x / 32 * Rows::space);
    let_next_kernel_start();
    wait_for_previous_kernel();
    real R[4][4] = {}, E[4][4] = {}, left[2][2] = {};
#pragma unroll
    for (int a = 0; a < 7; a++) residual.fetch(begin - 4 + a, a), commit_fetches();
    int phase = 0;
    for (int base = begin - 4; base < end + 2; base += 4, phase ^= 4) {
#pragma unroll
        for (int p = 0; p < 4; p++) {
            const int j = base + p, p1 = (p + 3) % 4, p2 = (p + 2) % 4, p3 = (p + 1) % 4;
            wait_for_fetches<6>();
            residual.take(phase + p, R[p]);
            residual.fetch(j + 7, (phase + p + 7) % 8), commit_fetches();
            a.enter(p, j);
            a.start(p, p & 1, R[p], E[p]);
            // Row j-1 has the other parity: its black columns are those of row j's red ones.
            a.first(p1, j - 1, p & 1, E[p2], E[p1], E[p], R[p1], left[p & 1]);

            real res[4], out[2];
            a.residual(p2, p & 1, E[p3], E[p2], E[p1], R[p2], left[~p & 1], res);
            restriction.row(j - 2, 1, p & 1, a.inside(j - 2), res, out);
            if (p % 2 && owner && j - 2 > begin && j - 2 < end)
                *reinterpret_cast<Two<real>*>(rc + (long long)((j - 2) >> 1) * coarse.pitch + x / 2) = Two<real>{out[0], out[1]};
        }
    }
}

extern "C" __global__ __launch_bounds__(32 * WARPS) void descend(Level l, Level coarse, const real* r, real* rc, real omega,
                                                                 int height) {
    descend_strip<General<real, 4>>(l, coarse, r, rc, omega, height);
}
extern "C" __global__ __launch_bounds__(32 * WARPS) void descend_plain(Level l, Level coarse, const real* r, real* rc, real omega,
                                                                       int height) {
    descend_strip<Plain<real, 4>>(l, coarse, r, rc, omega, height);
}
extern "C" __global__ __launch_bounds__(32 * WARPS) void descend_short(Level l, Level coarse, const real* r, real* rc, real omega,
                                                                       int height) {
    descend_strip<Short<real, 4>>(l, coarse, r, rc, omega, height);
}
