// Kernels before and after the cycles.

#include "common.cu"

// pack and unpack: whole rows, from row `start` (over y and z together), between dense doubles and a pitched field;
// `interior` leaves nodes that are no unknowns at zero. Blocks of 256 over (x, rows).
extern "C" __global__ void pack(Level l, const double* dense, wide* field, int start, int interior) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (i >= l.x.n) return;
    int j = (start + row) % l.y.n, k = (start + row) / l.y.n;
    double v = dense[(long long)row * l.x.n + i];
    field[at(l, i, j, k)] = !interior || unknown(l, i, j, k) ? wide(v) : wide(0);
}
extern "C" __global__ void unpack(Level l, const wide* field, double* dense, int start) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (i >= l.x.n) return;
    int j = (start + row) % l.y.n, k = (start + row) / l.y.n;
    dense[(long long)row * l.x.n + i] = double(field[at(l, i, j, k)]);
}

// inject: the boundary values of a coarse level, those of the fine nodes under its nodes; its unknowns become 0.
extern "C" __global__ void inject(Level l, Level coarse, const wide* u, wide* uc) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = coarse.y.begin + blockIdx.y * blockDim.y + threadIdx.y;
    int k = coarse.z.begin + blockIdx.z;
    let_next_kernel_start();
    wait_for_previous_kernel();
    if (i >= coarse.x.n || j >= coarse.y.end) return;
    uc[at(coarse, i, j, k)] = unknown(coarse, i, j, k) ? wide(0) : u[at(l, l.x.child[i], l.y.child[j], l.z.child[k])];
}
