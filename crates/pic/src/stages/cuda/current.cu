// The current completed (sides.rs, filter.rs): what guards hold goes to where it belongs, the filter, the sheets.
// Launch: blocks of 64 x 4 nodes over all nodes inside, blockIdx.z the component; `fold` by a thread a node near a side, blockIdx.y
// the component.

#include "yee_grid.cu"

// The guards of an axis whose deposits belong to node k: those behind a side that drops them do not count.
__device__ __forceinline__ u32 sources_of(const YeeGrid& l, int c, int axis, int k) {
    const int* side = l.particles + 2 * axis;
    u32 found = images_of(k, l.cells[axis], halfway(c, axis), side[0] == 0);
    if (side[0] == 2) found &= ~LOWER_GUARDS;
    return side[1] == 2 ? found & LOWER_GUARDS : found;
}
// Sum of a row's deposits that belong to node i, of which guards `from` hold a part.
__device__ __forceinline__ real fold_row(const YeeGrid& l, const real* row, int c, int i, u32 from) {
    real sum = row[i];
    int n = l.cells[0];
    for (u32 bits = from; bits; bits &= bits - 1) {
        int k = guard(__ffs(bits) - 1, n);
        sum += (l.particles[int(k >= n)] == 1 ? parity(c, 0, 1) : real(1)) * row[k];
    }
    return !halfway(c, 0) && on_wall(l, 0, i) ? 2 * sum : sum;
}
// The nodes of an axis that are near its sides: how many, and number k. All of a narrow one.
__device__ __forceinline__ int near_count(int n, int nodes) { return nodes <= 2 * ABOVE + 1 ? nodes : ABOVE + nodes - n + ABOVE; }
__device__ __forceinline__ int near_node(int k, int n, int nodes) {
    return nodes <= 2 * ABOVE + 1 || k < ABOVE ? k : n - 2 * ABOVE + k;
}
// Reads guards and writes nodes inside, each its own: in place. First whole rows near the sides of y, then what is near those of x
// in the other rows.
extern "C" __global__ void __launch_bounds__(256) fold(const __grid_constant__ YeeGrid l) {
    wait_for_previous_kernel();
    let_next_kernel_start();
    int near_x = near_count(l.cells[0], l.nodes[0]), near_y = near_count(l.cells[1], l.nodes[1]),
        t = int(blockIdx.x * 256 + threadIdx.x);
    int c = 6 + blockIdx.y, n = l.cells[1], rows = near_y * l.nodes[0];
    Node p;
    if (t < rows) {
        p.j = near_node(t / l.nodes[0], n, l.nodes[1]);
        p.i = t % l.nodes[0];
    } else {
        p.j = (t - rows) / near_x;
        p.i = near_node((t - rows) % near_x, l.cells[0], l.nodes[0]);
        if (p.j >= l.nodes[1] || near_y == l.nodes[1] || near_side(p.j, n)) return;
    }
    bool half = halfway(c, 1);
    if ((halfway(c, 0) && p.i == l.cells[0]) || (half && p.j == n)) return;
    u32 xs = sources_of(l, c, 0, p.i);
    real* j = l.j[blockIdx.y] + BELOW;
    real sum = fold_row(l, j + (p.j + BELOW) * l.pitch, c, p.i, xs);
    for (u32 bits = sources_of(l, c, 1, p.j); bits; bits &= bits - 1) {
        int k = guard(__ffs(bits) - 1, n);
        sum += (l.particles[2 + int(k >= n)] == 1 ? parity(c, 1, 1) : real(1)) * fold_row(l, j + (k + BELOW) * l.pitch, c, p.i, xs);
    }
    if (!half && on_wall(l, 1, p.j)) sum *= 2;
    j[(p.j + BELOW) * l.pitch + p.i] = sum;
}

#include "taps.cuh"

// Result of the filter along an axis for component c at a node. Rows of the parts of a run beside this one are in slabs, those of component
// `slab`.
template <class T>
__device__ __forceinline__ T filtered(const YeeGrid& l, const Taps& taps, const T* from, int c, const Node& p, int slab) {
    int axis = taps.axis, n = l.cells[axis], stride = axis == 0 ? 1 : l.pitch, own = axis == 0 ? p.i : p.j;
    const int *side = l.fields + 2 * axis, *turn = l.particles + 2 * axis;
    bool half = halfway(c, axis), periodic = side[0] == 0;
    int last = n - int(half || periodic || side[1] == 3);
    // Walls that take particles (2) have the other sign, and are zero themselves where it is odd (images.rs).
    const T sign = T(parity(c, axis, 1)), low = turn[0] == 2 ? -sign : sign, high = turn[1] == 2 ? -sign : sign;
    const int none = -1 << 30;
    const bool walls = !half && !periodic && taps.count > 1;
    const int zero_low = walls && side[0] != 3 && low < T(0) ? 0 : none,
              zero_high = walls && side[1] != 3 && high < T(0) ? n : none;
    T sum = own == zero_low || own == zero_high ? T(0) : T(taps.weight[0]) * from[p.at];
    for (int m = 1; m < taps.count; m++) {
        T pair = 0;
        for (int d = -m; d <= m; d += 2 * m) {
            int k = own + d;
            T factor = 1;
            while ((k < 0 && side[0] != 3) || (k > last && side[1] != 3)) {
                if (!periodic) factor *= k < 0 ? low : high;
                k = image(k, n, half, periodic);
            }
            if (k == zero_low || k == zero_high) continue;
            const T* value = from + p.at + (k - own) * stride;
            if (k < 0 || k > last)
                value = reinterpret_cast<const T*>(taps.beyond[int(k > last)]) +
                        (long long)(slab * taps.reach + (k < 0 ? -1 - k : k - n)) * l.pitch + p.i + BELOW;
            pair += factor * *value;
        }
        sum += T(taps.weight[m]) * pair;
    }
    return sum;
}
extern "C" __global__ void __launch_bounds__(256) smooth(const __grid_constant__ YeeGrid l, const __grid_constant__ Taps taps) {
    Node p = node(l);
    int c = 6 + blockIdx.z;
    if (!p.inside || (halfway(c, 0) && p.i == l.cells[0]) || (halfway(c, 1) && p.j == l.cells[1])) return;
    const real* from = (taps.axis == 0 ? l.j : l.scratch)[blockIdx.z];
    real* to = (taps.axis == 0 ? l.scratch : l.j)[blockIdx.z];
    to[p.at] = filtered(l, taps, from, c, p, blockIdx.z);
}

// A line of nodes: added to J, put into E or B. Components as in `halfway`.
extern "C" __global__ void __launch_bounds__(256)
    put_line(const __grid_constant__ YeeGrid l, const double* values, u32 count, int c, int axis, int line) {
    u32 k = blockIdx.x * 256 + threadIdx.x;
    if (k >= count) return;
    int i = axis == 0 ? line : int(k), j = axis == 0 ? int(k) : line;
    real* to = (c < 3 ? l.e[c] : c < 6 ? l.b[c - 3] : l.j[c - 6]) + (j + BELOW) * l.pitch + i + BELOW;
    *to = (c < 6 ? real(0) : *to) + real(values[k]);
}
