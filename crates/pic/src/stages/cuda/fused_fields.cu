// All that happens to the fields of a periodic domain in a step, in one pass: J from the integer sums, B half a step, E a step, B half
// a step (yee.rs). Reads one set of arrays and writes another, since blocks share their borders; what they share they compute twice.
// 30 words a node in single precision, where the passes one by one take 45.
// Launch: a block of 256 threads for FUSED_X x FUSED_Y nodes, which with what borders on them are a power of two wide.

#include "copies.cu"
#include "value.cu"
#include "yee_grid.cu"

#define EX (FUSED_X + 3)  // nodes -1 .. FUSED_X + 1 of E
#define EY (FUSED_Y + 3)

#include "fused_fields.cuh"

#define PASSES ((EX * EY + 255) / 256)

// A sum behind the last node is that of the node it is an image of.
__device__ __forceinline__ u32 image_of(const YeeGrid& l, int i, int j) {
    if (i >= l.cells[0]) i -= l.cells[0];
    if (j >= l.cells[1] && l.fields[2] == 0) j -= l.cells[1];
    return u32(j + BELOW) * l.pitch + i + BELOW;
}

// Three components at node (i, j) and wherever it has an image, among the guards too. Without the parities and sides of `put`, whose
// instructions are what a block at a border would wait for.
__device__ __forceinline__ void spread(const YeeGrid& l, real* const* to, int i, int j, real x, real y, real z) {
    while (i - l.cells[0] >= -BELOW) i -= l.cells[0];
    // Guards of another part's nodes come from there.
    int above = l.fields[2] == 0 ? l.cells[1] : 1 << 30;
    while (j - above >= -BELOW) j -= above;
    for (; j < l.cells[1] + ABOVE; j += above)
        for (int k = i; k < l.cells[0] + ABOVE; k += l.cells[0]) {
            long long at = (long long)(j + BELOW) * l.pitch + k + BELOW;
            to[0][at] = x;
            to[1][at] = y;
            to[2][at] = z;
        }
}

extern "C" __global__ void __launch_bounds__(256, FUSED_RESIDENT)
    fused_fields(const __grid_constant__ YeeGrid l, const __grid_constant__ FusedFields p) {
    __shared__ real e[3][EX * EY], b[3][EX * EY];
    wait_for_previous_kernel();
    let_next_kernel_start();
    const int ox = int(blockIdx.x) * FUSED_X, oy = int(blockIdx.y) * FUSED_Y, right = min(FUSED_X, l.cells[0] - ox),
              top = min(FUSED_Y, l.cells[1] - oy);
    // No node of the block is an image or has one: nearly all blocks, and what is done for the others is as much again as all the rest.
    const bool inner = ox >= ABOVE && oy >= ABOVE && ox + FUSED_X < l.cells[0] - BELOW && oy + FUSED_Y < l.cells[1] - BELOW;
    const u32 corner = u32(oy - 1 + BELOW) * l.pitch + ox - 1 + BELOW;
    const real dt = real(l.dt);
    const real hx = real(l.half[0]), hy = real(l.half[1]), wx = real(l.whole[0]), wy = real(l.whole[1]);
    const long long* in[3] = {p.sums, p.sums + p.length, p.sums + 2 * p.length};
    long long* out[3] = {p.clear, p.clear + p.length, p.clear + 2 * p.length};
    // Node -1 first; guards are valid. All is asked for at once, E and B past the registers: what a block waits for is memory.
    long long sums[PASSES][3];
#pragma unroll
    for (int pass = 0; pass < PASSES; pass++) {
        int k = pass * 256 + int(threadIdx.x), y = k / EX, x = k - y * EX;
        if (k >= EX * EY || x > right + 2 || y > top + 2) continue;
        u32 at = corner + u32(y * l.pitch + x);
        if (x > 0 && y > 0 && x <= right + 1 && y <= top + 1) {
            u32 from = inner ? at : image_of(l, ox + x - 1, oy + y - 1);
#pragma unroll
            for (int c = 0; c < 3; c++) sums[pass][c] = in[c][from];
        }
#pragma unroll
        for (int c = 0; c < 3; c++) {
            copy_ahead(e[c] + k, l.e[c] + at);
            copy_ahead(b[c] + k, l.b[c] + at);
        }
    }
    copies_are_there();
    __syncthreads();
#pragma unroll
    for (int pass = 0; pass < PASSES; pass++) {
        int k = pass * 256 + int(threadIdx.x), y = k / EX, x = k - y * EX;
        if (x > right + 1 || y > top + 1) continue;
        real ez = e[2][k], ex = e[0][k], ey = e[1][k];
        b[0][k] = b[0][k] - hy * (e[2][k + EX] - ez);
        b[1][k] = b[1][k] + hx * (e[2][k + 1] - ez);
        b[2][k] = b[2][k] + (hy * (e[0][k + EX] - ex) - hx * (e[1][k + 1] - ey));
    }
    __syncthreads();
#pragma unroll
    for (int pass = 0; pass < PASSES; pass++) {
        int k = pass * 256 + int(threadIdx.x), y = k / EX, x = k - y * EX;
        if (x < 1 || y < 1 || x > right + 1 || y > top + 1) continue;
        int i = ox + x - 1, jn = oy + y - 1;
        u32 at = corner + u32(y * l.pitch + x), from = inner ? at : image_of(l, i, jn);
        real j[3];
#pragma unroll
        for (int c = 0; c < 3; c++) {
            j[c] = current_of<real>(sums[pass][c], p.scale[c]);
            if (p.more) j[c] = l.j[c][from] + j[c];
        }
        real bz = b[2][k], vx = e[0][k] + (wy * (bz - b[2][k - EX]) - dt * j[0]),
             vy = e[1][k] - (wx * (bz - b[2][k - 1]) + dt * j[1]);
        real vz = e[2][k] + (wx * (b[1][k] - b[1][k - 1]) - wy * (b[0][k] - b[0][k - EX]) - dt * j[2]);
        e[0][k] = vx;
        e[1][k] = vy;
        e[2][k] = vz;
        if (x > right || y > top) continue;
        if (inner) {
            p.e[0][at] = vx;
            p.e[1][at] = vy;
            p.e[2][at] = vz;
        } else {
            spread(l, p.e, i, jn, vx, vy, vz);
        }
#pragma unroll
        for (int c = 0; c < 3; c++) out[c][from] = 0;
    }
    __syncthreads();
#pragma unroll
    for (int pass = 0; pass < PASSES; pass++) {
        int k = pass * 256 + int(threadIdx.x), y = k / EX, x = k - y * EX;
        if (x < 1 || y < 1 || x > right || y > top) continue;
        real ez = e[2][k], bx = b[0][k] - hy * (e[2][k + EX] - ez), by = b[1][k] + hx * (e[2][k + 1] - ez);
        real bz = b[2][k] + (hy * (e[0][k + EX] - e[0][k]) - hx * (e[1][k + 1] - e[1][k]));
        if (inner) {
            u32 at = corner + u32(y * l.pitch + x);
            p.b[0][at] = bx;
            p.b[1][at] = by;
            p.b[2][at] = bz;
        } else {
            spread(l, p.b, ox + x - 1, oy + y - 1, bx, by, bz);
        }
    }
}
