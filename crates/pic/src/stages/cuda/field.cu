// Maxwell's equations on the Yee grid (yee.rs) with the absorbing layers (layers.rs), the energies, and the window.
// Launch: blocks of 64 x 4 nodes over all nodes inside. 9 values a cell for B, 12 for E.

#include "yee_grid.cu"

// Addition of a layer to a derivative, whose plain value is d: nothing outside of it.
template <bool remember>
__device__ __forceinline__ real layered(const YeeGrid& l, int of, int term, int axis, bool half, const Node& p, real d) {
    // Layers across y are those of the whole domain.
    int thick = l.thick[axis], n = axis == 0 ? l.cells[0] : l.height, k = axis == 0 ? p.i : l.row + p.j;
    if (thick == 0) return real(0);
    real more = 0;
#pragma unroll
    for (int side = 0; side < 2; side++) {
        int s = side == 0 ? k : half ? n - 1 - k : n - k;
        real* psi = l.psi[of][term][side];
        if (psi == nullptr || s >= thick || s < 0) continue;
        Coefficients c = l.layer[axis][half ? thick + s : s];
        psi += axis == 0 ? (p.j + BELOW) * thick + s : s * l.pitch + p.i + BELOW;
        real memory = *psi;
        if (remember) *psi = memory = c.keep * memory + c.feed * d;
        more = c.stretch * d + memory;
    }
    return more;
}

// B half a step; `remember`: E is new, the memory of the layers is due.
template <bool remember> __global__ void __launch_bounds__(256) advance_b(const __grid_constant__ YeeGrid l) {
    wait_for_previous_kernel();
    let_next_kernel_start();
    Node p = node(l);
    if (!p.inside) return;
    int at = p.at, up = at + l.pitch;
    real half = real(0.5 * l.dt), hx = real(l.half[0]), hy = real(l.half[1]), ix = real(l.inverse[0]), iy = real(l.inverse[1]);
    bool x_half = p.i < l.cells[0], y_half = p.j < l.cells[1];
    real ez = l.e[2][at];
    if (y_half) {
        real d = l.e[2][up] - ez;
        real v = l.b[0][at] - hy * d - half * layered<remember>(l, 0, 0, 1, true, p, iy * d);
        put(l, l.b[0], 3, p, v);
    }
    if (x_half) {
        real d = l.e[2][at + 1] - ez;
        real v = l.b[1][at] + hx * d + half * layered<remember>(l, 0, 1, 0, true, p, ix * d);
        put(l, l.b[1], 4, p, v);
    }
    if (x_half && y_half) {
        real dy = l.e[0][up] - l.e[0][at], dx = l.e[1][at + 1] - l.e[1][at];
        real v = l.b[2][at] + (hy * dy - hx * dx);
        v += half * layered<remember>(l, 0, 2, 1, true, p, iy * dy);
        v -= half * layered<remember>(l, 0, 3, 0, true, p, ix * dx);
        put(l, l.b[2], 5, p, v);
    }
}

// E a step.
extern "C" __global__ void __launch_bounds__(256) advance_e(const __grid_constant__ YeeGrid l) {
    wait_for_previous_kernel();
    let_next_kernel_start();
    Node p = node(l);
    if (!p.inside) return;
    int at = p.at, down = at - l.pitch;
    real dt = real(l.dt), hx = real(l.whole[0]), hy = real(l.whole[1]), ix = real(l.inverse[0]), iy = real(l.inverse[1]);
    bool x_half = p.i < l.cells[0], y_half = p.j < l.cells[1];
    real bz = l.b[2][at];
    if (x_half) {
        real d = bz - l.b[2][down];
        real v = l.e[0][at] + (hy * d - dt * l.j[0][at]) + dt * layered<true>(l, 1, 0, 1, false, p, iy * d);
        put(l, l.e[0], 0, p, v);
    }
    if (y_half) {
        real d = bz - l.b[2][at - 1];
        real v = l.e[1][at] - (hx * d + dt * l.j[1][at]) - dt * layered<true>(l, 1, 1, 0, false, p, ix * d);
        put(l, l.e[1], 1, p, v);
    }
    real dx = l.b[1][at] - l.b[1][at - 1], dy = l.b[0][at] - l.b[0][down];
    real v = l.e[2][at] + (hx * dx - hy * dy - dt * l.j[2][at]);
    v += dt * layered<true>(l, 1, 2, 0, false, p, ix * dx);
    v -= dt * layered<true>(l, 1, 3, 1, false, p, iy * dy);
    put(l, l.e[2], 2, p, v);
}

// 1/2 sum F^2 of component blockIdx.y over row blockIdx.x of nodes, times the volume of a cell: `rows` values a component.
extern "C" __global__ void __launch_bounds__(256) energies(const __grid_constant__ YeeGrid l, double volume, double* out) {
    __shared__ double scratch[8];
    const int c = blockIdx.y, j = blockIdx.x;
    const real* row = (c < 3 ? l.e[c] : l.b[c - 3]) + (long long)(j + BELOW) * l.pitch + BELOW;
    bool half[2] = {halfway(c, 0), halfway(c, 1)};
    int nx = half[0] ? l.cells[0] : l.nodes[0], ny = half[1] ? l.cells[1] : l.nodes[1];
    double sum = 0;
    for (int i = threadIdx.x; j < ny && i < nx; i += 256) {
        // A wall corner stands for half a cell.
        double v = row[i], weight = !half[0] && on_wall(l, 0, i) ? 0.25 : 0.5;
        sum += weight * v * v;
    }
    sum = block_reduce<Sum<double>>(sum, scratch);
    if (threadIdx.x == 0) out[c * gridDim.x + j] = (!half[1] && on_wall(l, 1, j) ? 0.5 : 1.0) * volume * sum;
}

// Rows of `length` values one place down (or up), zero where nothing comes from. One block a row.
__device__ __forceinline__ void move_row(real* row, int length, bool down) {
    for (int first = 0; first < length; first += 256) {
        int k = first + int(threadIdx.x), to = down ? k : length - 1 - k, from = down ? k + 1 : to - 1;
        real v = k + 1 < length ? row[from] : real(0);
        __syncthreads();
        if (k < length) row[to] = v;
        __syncthreads();
    }
}
// The window: E, B and J (blockIdx.y 0..8) one cell towards lower x; the last column of cells is empty.
extern "C" __global__ void __launch_bounds__(256) shift_fields(const __grid_constant__ YeeGrid l) {
    int c = blockIdx.y;
    real* row = (c < 3 ? l.e[c] : c < 6 ? l.b[c - 3] : l.j[c - 6]) + blockIdx.x * l.pitch;
    move_row(row, l.pitch, true);
    int last = BELOW + l.cells[0] - int(halfway(c, 0));
    for (int k = last + int(threadIdx.x); k < l.pitch; k += 256) row[k] = 0;
}
// The memory of a layer goes along.
extern "C" __global__ void __launch_bounds__(256) shift_memory(real* psi, int length, int down) {
    move_row(psi + blockIdx.x * length, length, down != 0);
}
// Guards of E and B from the nodes inside.
extern "C" __global__ void __launch_bounds__(256) guards(const __grid_constant__ YeeGrid l) {
    Node p = node(l);
    if (!p.inside) return;
    for (int c = 0; c < 6; c++) {
        if ((halfway(c, 0) && p.i == l.cells[0]) || (halfway(c, 1) && p.j == l.cells[1])) continue;
        real* field = c < 3 ? l.e[c] : l.b[c - 3];
        put(l, field, c, p, field[p.at]);
    }
}
