// descend: one red-black sweep on A e = r from zero, then r_{l+1} = R (r - A e), in one pass; e is not stored.
// Plane, both axes coarsened. Launch: (strips / WARPS, bands) blocks of WARPS warps; a band is `height` rows, even.
// Reads 4 B and writes 1 B per unknown in float; about 40 flops.
//
// At step j row j is read and its red nodes start, row j-1 has its black nodes relaxed, row j-2 its residual restricted.

template <class A>
__device__ __forceinline__ void descend_strip(const Level& l, const Level& coarse, const real* __restrict__ r,
                                              real* __restrict__ rc, real omega, int height) {
    int strip = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (strip * OWN >= 2 * coarse.x.n) return;
    int x = strip * OWN + 4 * (lane - 1);
    int begin = blockIdx.y * height, end = min(begin + height, 2 * coarse.y.n);
    A a(l, x, begin - 4, omega, omega);
    // Weights of the lane's two coarse columns, x/2 and x/2 + 1; none where the column is no unknown.
    real fx[6];
#pragma unroll
    for (int q = 0; q < 6; q++) fx[q] = coarse.x.full[3 * (x / 2) + q];
    fx[0] = __shfl_up_sync(~0u, a.unknown(3), 1) ? fx[0] : real(0);
    fx[1] = a.unknown(0) ? fx[1] : real(0);
    fx[2] = a.unknown(1) ? fx[2] : real(0), fx[3] = a.unknown(1) ? fx[3] : real(0);
    fx[4] = a.unknown(2) ? fx[4] : real(0);
    fx[5] = a.unknown(3) ? fx[5] : real(0);
    bool owner = lane > 0 && lane < 31 && x / 2 < coarse.pitch;

    typedef Stream<4, 8, real> Rows;
    __shared__ __align__(16) char shared[WARPS * Rows::space];
    Rows residual(r, l, x, shared + threadIdx.x / 32 * Rows::space);
    let_next_kernel_start();
    wait_for_previous_kernel();
    real R[4][4] = {}, E[4][4] = {}, left[2][2] = {}, sum[2] = {};
    // Weights of R are read a step ahead: row j-2 = 2J, or 2J+1, which is also 2(J+1)-1.
    real f_next[2] = {}, f[2];
#pragma unroll
    for (int a = 0; a < 7; a++) residual.ask(begin - 4 + a, a), asked();
    int turn = 0;
    for (int base = begin - 4; base < end + 2; base += 4, turn ^= 4) {
#pragma unroll
        for (int p = 0; p < 4; p++) {
            const int j = base + p, p1 = (p + 3) % 4, p2 = (p + 2) % 4, p3 = (p + 1) % 4;
            arrived<6>();
            residual.take(turn + p, R[p]);
            residual.ask(j + 7, (turn + p + 7) % 8), asked();
            a.enter(p, j);
            bool in = a.inside(j - 2);
            f[0] = in ? f_next[0] : real(0), f[1] = in ? f_next[1] : real(0);
            const real* fy = coarse.y.full + 3 * ((j - 1) >> 1);
            f_next[0] = __ldg(fy + (p % 2 ? 1 : 2)), f_next[1] = __ldg(fy + 3);
            a.start(p, p & 1, R[p], E[p]);
            // Row j-1 has the other parity: its black columns are those of row j's red ones.
            a.first(p1, j - 1, p & 1, E[p2], E[p1], E[p], R[p1], left[p & 1]);

            real res[4];
            a.residual(p2, p & 1, E[p3], E[p2], E[p1], R[p2], left[~p & 1], res);
            real beside = from_west(res[3]);
            real c0 = fx[0] * beside + fx[1] * res[0] + fx[2] * res[1];
            real c1 = fx[3] * res[1] + fx[4] * res[2] + fx[5] * res[3];
            if (p % 2 == 0) {
                sum[0] += f[0] * c0;
                sum[1] += f[0] * c1;
            } else {
                if (owner && j - 2 > begin && j - 2 < end) {
                    Two<real> both = {sum[0] + f[0] * c0, sum[1] + f[0] * c1};
                    *reinterpret_cast<Two<real>*>(rc + (long long)((j - 2) >> 1) * coarse.pitch + x / 2) = both;
                }
                sum[0] = f[1] * c0;
                sum[1] = f[1] * c1;
            }
        }
    }
}

extern "C" __global__ __launch_bounds__(32 * WARPS) void descend(Level l, Level coarse, const real* r, real* rc, real omega, int height) {
    descend_strip<General<real, 4>>(l, coarse, r, rc, omega, height);
}
extern "C" __global__ __launch_bounds__(32 * WARPS) void descend_plain(Level l, Level coarse, const real* r, real* rc, real omega, int height) {
    descend_strip<Plain<real, 4>>(l, coarse, r, rc, omega, height);
}
