// From nodes to the input of the DFTs, all splits of a line in one go, and back. A block has a line in shared memory, or
// where it is longer than that in `scratch`: nodes are read once and every part's modes written once, or the other way
// round. Bytes: 2 values a node.

#include "split.cu"
#include "line_layout.cuh"

__device__ unsigned node_of(const Transform& transform, unsigned i) {
    return transform.kind == SINE ? i + 1 : transform.kind == MIRRORED ? transform.len - 1 - i : i;
}

__device__ real* row_pair(const LineLayout& layout, bool& second) {
    unsigned l = blockIdx.x / layout.middles * 2, q = blockIdx.x % layout.middles;
    second = l + 1 < layout.end;
    return layout.grid + layout.first + q / layout.rows * layout.system + (u64)(q % layout.rows) * layout.middle + l * layout.last;
}

// The line itself. A function, so that the compiler knows shared memory as such.
__device__ Z* line_of(const Transform& transform, Z* scratch) {
    extern __shared__ double2 shared[];
    return FITS ? (Z*)shared : scratch + (u64)blockIdx.x * transform.room;
}

// Nodes to the input of the DFTs, times `scale`. One block a line.
extern "C" __global__ void __launch_bounds__(512)
    gather(const __grid_constant__ Transform transform, const __grid_constant__ LineLayout layout, Z* scratch, real scale) {
    Z* z = line_of(transform, scratch);
    bool sine = transform.kind == SINE, second;
    if (layout.grid) {
        const real* row = row_pair(layout, second);
        for (unsigned i = threadIdx.x; i < transform.len; i += blockDim.x)
            z[node_of(transform, i)] = {row[i], second ? row[layout.last + i] : (real)0};
    } else {
        const Z* line = layout.lines + (u64)blockIdx.x * transform.len;
        for (unsigned i = threadIdx.x; i < transform.len; i += blockDim.x) z[node_of(transform, i)] = line[i];
    }
    if (sine && threadIdx.x == 0) z[0] = z[transform.n] = none();
    for (unsigned k = 0; k < transform.count; ++k) {
        const Split& v = transform.levels[k];
        Z* w = v.modes + (u64)blockIdx.x * v.groups * v.m;
        __syncthreads();
        for (unsigned d = threadIdx.x; d <= v.m / 2; d += blockDim.x) {
            if (v.radix <= 2) fold_two(z, v, w, d, sine, scale);
            else fold_odd(z, v, w, d, sine, scale);
        }
    }
    __syncthreads();
    const unsigned n = transform.rest;
    Z* e = transform.extended + (u64)blockIdx.x * (transform.kind == FOURIER ? n : 2 * n);
    for (unsigned j = threadIdx.x; n > 0 && j <= n; j += blockDim.x) {
        if (transform.kind == FOURIER) {
            if (j < n) e[j] = z[j];
        } else {
            bool zero = sine && (j == 0 || j == n);
            e[j] = zero ? none() : z[j];
            if (j > 0 && j < n) e[2 * n - j] = z[j] * (real)(sine ? -1 : 1);
        }
    }
}

// The output of the DFTs to the nodes.
extern "C" __global__ void __launch_bounds__(512)
    scatter(const __grid_constant__ Transform transform, const __grid_constant__ LineLayout layout, Z* scratch) {
    Z* z = line_of(transform, scratch);
    bool sine = transform.kind == SINE, second;
    const unsigned n = transform.rest;
    const Z* e = transform.extended + (u64)blockIdx.x * (transform.kind == FOURIER ? n : 2 * n);
    for (unsigned j = threadIdx.x; n > 0 && j < n + (transform.kind != FOURIER); j += blockDim.x) {
        bool zero = sine && (j == 0 || j == n);
        z[j] = zero ? none() : transform.kind == FOURIER ? e[j] : (sine ? times_i(e[j]) : e[j]) * (real)0.5;
    }
    for (unsigned k = transform.count; k-- > 0;) {
        const Split& v = transform.levels[k];
        const Z* w = v.modes + (u64)blockIdx.x * v.groups * v.m;
        __syncthreads();
        for (unsigned d = threadIdx.x; d <= v.m / 2; d += blockDim.x) {
            if (v.radix <= 2) unfold_two(z, v, w, d, sine);
            else unfold_odd(z, v, w, d, sine);
        }
    }
    __syncthreads();
    if (layout.grid) {
        real* row = row_pair(layout, second);
        for (unsigned i = threadIdx.x; i < transform.len; i += blockDim.x) {
            Z value = z[node_of(transform, i)];
            row[i] = value.x;
            if (second) row[layout.last + i] = value.y;
        }
    } else {
        Z* line = layout.lines + (u64)blockIdx.x * transform.len;
        for (unsigned i = threadIdx.x; i < transform.len; i += blockDim.x) line[i] = z[node_of(transform, i)];
    }
}
