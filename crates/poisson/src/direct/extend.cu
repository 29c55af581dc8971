// Modes and the extensions whose DFTs they are, and the transposition of planes.

#include "split.cu"

// The DFT of an extension to modes, times `scale`.
extern "C" __global__ void shrink(const Z* e, Z* to, unsigned n, unsigned lines, int kind, real scale) {
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
extern "C" __global__ void extend(const Z* modes, Z* e, unsigned n, unsigned lines, int kind) {
    u64 i = thread_index(), line = i / (n + 1);
    unsigned j = (unsigned)(i - line * (n + 1));
    if (line >= lines) return;
    if (kind == FOURIER) {
        e += line * n;
        const Z* z = modes + line * n;
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
extern "C" __global__ void transpose(const Z* from, u64 from_plane, Z* to, u64 to_plane, unsigned rows, unsigned columns) {
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
