// Transfers between a level and the next coarser one, for any grid.

#include "relax.cu"

// restrict: r_{l+1} = R (r - A e). A block makes the residual of the fine nodes under its 15 x 4 x 4 coarse nodes in
// shared memory, then weights it. e may be null (zero). 256 threads. Reads 2 words per fine node, writes 1 per coarse.
// With T = wide and A left out it restricts f for full multigrid.
template <class T, class F>
__device__ __forceinline__ void restrict_block(const Level& l, const Level& coarse, T* tile, T* out, F residual) {
    int I = blockIdx.x * COARSE_X, J = coarse.y.begin + blockIdx.y * COARSE_Y, K = coarse.z.begin + blockIdx.z * COARSE_Z;
    int nI = min(COARSE_X, coarse.x.n - I), nJ = min(COARSE_Y, coarse.y.end - J), nK = min(COARSE_Z, coarse.z.end - K);
    // First fine node under the block, not yet wrapped, and the extent; a flat z has no neighbours.
    int side = l.z.n > 1;
    int x0 = l.x.child[I] - 1, y0 = l.y.child[J] - 1, z0 = l.z.child[K] - side;
    int mx = l.x.child[I + nI - 1] + 2 - x0, my = l.y.child[J + nJ - 1] + 2 - y0;
    int mz = l.z.child[K + nK - 1] + 1 + side - z0;
    // A warp a row, which is at most 31 nodes long.
    int lane = threadIdx.x % 32, x = wrapped(l.x, x0 + lane);
    for (int row = threadIdx.x / 32; row < my * mz; row += blockDim.x / 32) {
        int slab = row / my, j = wrapped(l.y, y0 + row - slab * my), k = wrapped(l.z, z0 + slab);
        // Nodes beyond an end have no weight; wrapped() only keeps the access inside.
        if (lane < mx) tile[row * mx + lane] = residual(x, j, k);
    }
    __syncthreads();
    for (int q = threadIdx.x; q < nI * nJ * nK; q += blockDim.x) {
        int row = q / nI, i = I + q - row * nI, k = K + row / nJ, j = J + row % nJ;
        const real *sx = l.x.shares + 3 * i, *sy = l.y.shares + 3 * j, *sz = l.z.shares + 3 * k;
        const T* corner = tile + (l.x.child[i] - 1 - x0) + mx * ((l.y.child[j] - 1 - y0) + my * (l.z.child[k] - side - z0));
        T sum = 0;
        for (int c = 1 - side; c <= 1 + side; c++) {
            for (int b = 0; b < 3; b++) {
                const T* row = corner + mx * (b + my * (c - 1 + side));
                sum += T(sz[c]) * T(sy[b]) * physics::three(T(sx[0]), row[0], T(sx[1]), row[1], T(sx[2]), row[2]);
            }
        }
        out[at(coarse, i, j, k)] = sum;
    }
}

#define TILE ((2 * COARSE_X + 1) * (2 * COARSE_Y + 1) * (2 * COARSE_Z + 1))

extern "C" __global__ __launch_bounds__(256) void restrict_residual(Level l, Level coarse, const real* __restrict__ r,
                                                                    const real* __restrict__ e, real* rc) {
    __shared__ real tile[TILE];
    restrict_block(l, coarse, tile, rc, [&](int i, int j, int k) {
        if (!unknown(l, i, j, k)) return real(0);
        real v = r[at(l, i, j, k)];
        if (e) v -= apply<real>(l, i, j, k, [&](int p, int q, int s) { return e[at(l, p, q, s)]; }).av;
        return v;
    });
}
extern "C" __global__ __launch_bounds__(256) void restrict_rhs(Level l, Level coarse, const wide* __restrict__ f, wide* fc) {
    __shared__ wide tile[TILE];
    restrict_block(l, coarse, tile, fc, [&](int i, int j, int k) { return unknown(l, i, j, k) ? f[at(l, i, j, k)] : wide(0); });
}

// prolong: e += P e_{l+1}, linear on each axis. Blocks of 32 x 4. Reads 1.125 words (3D) and writes 1.
extern "C" __global__ void prolong(Level l, Level coarse, const real* __restrict__ ec, real* __restrict__ e) {
    NODE;
    if (!unknown(l, i, j, k)) return;
    int I = l.x.parent[i], J = l.y.parent[j], K = l.z.parent[k];
    const real *wx = l.x.ends + 2 * i, *wy = l.y.ends + 2 * j, *wz = l.z.ends + 2 * k;
    real sum = 0;
    for (int c = 0; c < 2; c++) {
        if (wz[c] == real(0)) continue;
        for (int b = 0; b < 2; b++) {
            if (wy[b] == real(0)) continue;
            const real* row = ec + at(coarse, 0, wrapped(coarse.y, J + b), wrapped(coarse.z, K + c));
            sum += wz[c] * wy[b] * physics::between(wx[0], row[I], wx[1], row[wrapped(coarse.x, I + 1)]);
        }
    }
    e[o] += sum;
}

// interpolate: u = P u_{l+1} on the unknowns by tables of four weights an axis (cubic, or linear padded with zeros).
extern "C" __global__ void interpolate(Level l, Level coarse, const wide* __restrict__ uc, wide* __restrict__ u, int linear) {
    NODE;
    if (!unknown(l, i, j, k)) return;
    wide sum = 0;
    if (linear) {
        for (int q = 0; q < 8; q++) {
            wide w = wide(l.x.ends[2 * i + (q & 1)]) * wide(l.y.ends[2 * j + (q >> 1 & 1)]) * wide(l.z.ends[2 * k + (q >> 2)]);
            if (w != wide(0))
                sum += w * uc[at(coarse, wrapped(coarse.x, l.x.parent[i] + (q & 1)),
                                 wrapped(coarse.y, l.y.parent[j] + (q >> 1 & 1)), wrapped(coarse.z, l.z.parent[k] + (q >> 2)))];
        }
    } else {
        for (int c = 0; c < 4; c++) {
            wide wz = l.z.cubic[4 * k + c];
            if (wz == wide(0)) continue;
            for (int b = 0; b < 4; b++) {
                wide wy = l.y.cubic[4 * j + b];
                if (wy == wide(0)) continue;
                const wide* row = uc + at(coarse, 0, wrapped(coarse.y, l.y.base[j] + b), wrapped(coarse.z, l.z.base[k] + c));
                wide line = 0;
                for (int a = 0; a < 4; a++) {
                    wide wx = l.x.cubic[4 * i + a];
                    if (wx != wide(0)) line += wx * row[wrapped(coarse.x, l.x.base[i] + a)];
                }
                sum += wz * wy * line;
            }
        }
    }
    u[o] = sum;
}
