// From nodes to the input of the DFTs, all splits of a line in one go, and back. A block has a line in shared memory, or
// where it is longer than that in `scratch`: nodes are read once and every part's modes written once, or the other way
// round. Bytes: 2 values a node.

// Source and destination of lines: rows of the grid in pairs, or (`grid` is null) complex lines one behind the other.
struct LineLayout {
    real *grid;
    Z *lines;
    u64 first, system, last;         // node of the first unknown, and nodes from system to system, from row to row
    unsigned middle, rows, middles, end; // nodes and rows along the middle axis, the same of all systems, rows along the last
};

__device__ unsigned node_of(const Transform &transform, unsigned i) {
    return transform.kind == SINE ? i + 1 : transform.kind == MIRRORED ? transform.len - 1 - i : i;
}

__device__ real *row_pair(const LineLayout &layout, bool &second) {
    unsigned l = blockIdx.x / layout.middles * 2, q = blockIdx.x % layout.middles;
    second = l + 1 < layout.end;
    return layout.grid + layout.first + q / layout.rows * layout.system + (u64)(q % layout.rows) * layout.middle + l * layout.last;
}

// The line itself. A function, so that the compiler knows shared memory as such.
__device__ Z *line_of(const Transform &transform, Z *scratch) {
    extern __shared__ double2 shared[];
    return FITS ? (Z *)shared : scratch + (u64)blockIdx.x * transform.room;
}

// Nodes to the input of the DFTs, times `scale`. One block a line.
extern "C" __global__ void __launch_bounds__(512) gather(const __grid_constant__ Transform transform, const __grid_constant__ LineLayout layout, Z *scratch, real scale) {
    Z *z = line_of(transform, scratch);
    bool sine = transform.kind == SINE, second;
    if (layout.grid) {
        const real *row = row_pair(layout, second);
        for (unsigned i = threadIdx.x; i < transform.len; i += blockDim.x) z[node_of(transform, i)] = {row[i], second ? row[layout.last + i] : (real)0};
    } else {
        const Z *line = layout.lines + (u64)blockIdx.x * transform.len;
        for (unsigned i = threadIdx.x; i < transform.len; i += blockDim.x) z[node_of(transform, i)] = line[i];
    }
    if (sine && threadIdx.x == 0) z[0] = z[transform.n] = none();
    for (unsigned k = 0; k < transform.count; ++k) {
        const Split &v = transform.levels[k];
        Z *w = v.modes + (u64)blockIdx.x * v.groups * v.m;
        __syncthreads();
        for (unsigned d = threadIdx.x; d <= v.m / 2; d += blockDim.x) {
            if (v.radix <= 2) fold_two(z, v, w, d, sine, scale);
            else fold_odd(z, v, w, d, sine, scale);
        }
    }
    __syncthreads();
    const unsigned n = transform.rest;
    Z *e = transform.extended + (u64)blockIdx.x * (transform.kind == FOURIER ? n : 2 * n);
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
extern "C" __global__ void __launch_bounds__(512) scatter(const __grid_constant__ Transform transform, const __grid_constant__ LineLayout layout, Z *scratch) {
    Z *z = line_of(transform, scratch);
    bool sine = transform.kind == SINE, second;
    const unsigned n = transform.rest;
    const Z *e = transform.extended + (u64)blockIdx.x * (transform.kind == FOURIER ? n : 2 * n);
    for (unsigned j = threadIdx.x; n > 0 && j < n + (transform.kind != FOURIER); j += blockDim.x) {
        bool zero = sine && (j == 0 || j == n);
        z[j] = zero ? none() : transform.kind == FOURIER ? e[j] : (sine ? times_i(e[j]) : e[j]) * (real)0.5;
    }
    for (unsigned k = transform.count; k-- > 0;) {
        const Split &v = transform.levels[k];
        const Z *w = v.modes + (u64)blockIdx.x * v.groups * v.m;
        __syncthreads();
        for (unsigned d = threadIdx.x; d <= v.m / 2; d += blockDim.x) {
            if (v.radix <= 2) unfold_two(z, v, w, d, sine);
            else unfold_odd(z, v, w, d, sine);
        }
    }
    __syncthreads();
    if (layout.grid) {
        real *row = row_pair(layout, second);
        for (unsigned i = threadIdx.x; i < transform.len; i += blockDim.x) {
            Z value = z[node_of(transform, i)];
            row[i] = value.x;
            if (second) row[layout.last + i] = value.y;
        }
    } else {
        Z *line = layout.lines + (u64)blockIdx.x * transform.len;
        for (unsigned i = threadIdx.x; i < transform.len; i += blockDim.x) line[i] = z[node_of(transform, i)];
    }
}

// The DFT of an extension to modes, times `scale`.
extern "C" __global__ void shrink(const Z *e, Z *to, unsigned n, unsigned lines, int kind, real scale) {
    u64 i = thread_index(), line = i / (n + 1);
    unsigned j = (unsigned)(i - line * (n + 1));
    if (line >= lines) return;
    if (kind == FOURIER) {
        e += line * n;
        to += line * n;
        if (j == n) return;
        if (j == 0 || 2 * j == n) {
            to[j] = e[j] * scale;
        } else if (2 * j < n) {
            to[j] = (e[j] + e[n - j]) * scale;
            to[n - j] = times_i(e[j] - e[n - j]) * scale;
        }
        return;
    }
    e += line * 2 * n;
    if (kind == SINE) {
        if (j > 0 && j < n) to[line * (n - 1) + j - 1] = times_i(e[j]) * scale;
    } else {
        to[line * (n + 1) + j] = e[j] * (j == 0 || j == n ? scale * (real)0.5 : scale);
    }
}

// Modes to the extension whose DFT is the way back.
extern "C" __global__ void extend(const Z *modes, Z *e, unsigned n, unsigned lines, int kind) {
    u64 i = thread_index(), line = i / (n + 1);
    unsigned j = (unsigned)(i - line * (n + 1));
    if (line >= lines) return;
    if (kind == FOURIER) {
        e += line * n;
        const Z *z = modes + line * n;
        if (j == n) return;
        if (j == 0 || 2 * j == n) {
            e[j] = z[j];
        } else if (2 * j < n) {
            Z c = z[j] * (real)0.5, s = times_i(z[n - j]) * (real)0.5;
            e[j] = c + s;
            e[n - j] = c - s;
        }
        return;
    }
    e += line * 2 * n;
    bool end = j == 0 || j == n;
    if (kind == SINE) {
        Z value = end ? none() : modes[line * (n - 1) + j - 1];
        e[j] = value;
        if (!end) e[2 * n - j] = value * (real)-1;
    } else {
        Z value = modes[line * (n + 1) + j];
        e[j] = end ? value * (real)2 : value;
        if (!end) e[2 * n - j] = value;
    }
}

// Transposes a `rows` x `columns` matrix per plane, tiles of 32 x 32 by 32 x 8 threads; one plane for each block along x.
extern "C" __global__ void transpose(const Z *from, u64 from_plane, Z *to, u64 to_plane, unsigned rows, unsigned columns) {
    __shared__ Z tile[32][33];
    from += blockIdx.x * from_plane;
    to += blockIdx.x * to_plane;
    unsigned x = blockIdx.y * 32, y = blockIdx.z * 32;
    for (unsigned k = threadIdx.y; k < 32; k += 8) {
        if (y + k < rows && x + threadIdx.x < columns) tile[k][threadIdx.x] = from[(u64)(y + k) * columns + x + threadIdx.x];
    }
    __syncthreads();
    for (unsigned k = threadIdx.y; k < 32; k += 8) {
        if (x + k < columns && y + threadIdx.x < rows) to[(u64)(x + k) * rows + y + threadIdx.x] = tile[threadIdx.x][k];
    }
}
