// Types of all kernels of the fields, and what stands beyond the sides (images.rs). A thread has one node inside; it reads
// guards that are valid and writes, beside its own value, the guards that are images of it.

typedef REAL real;
#define BELOW 2
#define ABOVE 3

struct Coefficients {
    real keep, feed, stretch;
};
struct Lattice {
    real *e[3], *b[3], *j[3], *scratch[3];
    real* psi[2][4][2];             // memory of the layers: of B and E, per derivative and side; null where there is none
    const Coefficients* layer[2];   // per axis: at corners from the wall, then halfway
    int cells[2], nodes[2], thick[2];
    int pitch, fields[4], particles[4];  // sides: x lower, x upper, y lower, y upper. 0 periodic; 1 conductor, 2 magnetic; 1 mirror, 2 drop
    int unused;
    double half[2], whole[2], inverse[2], dt;  // dt/2h, dt/h, 1/h
};

struct Node {
    int i, j, at;
    bool inside;
};
__device__ __forceinline__ Node node(const Lattice& l) {
    Node n;
    n.i = int(blockIdx.x * blockDim.x + threadIdx.x);
    n.j = int(blockIdx.y * blockDim.y + threadIdx.y);
    n.at = (n.j + BELOW) * l.pitch + n.i + BELOW;
    n.inside = n.i < l.nodes[0] && n.j < l.nodes[1];
    return n;
}

// Whether component c (0..2 E, 3..5 B, 6..8 J) sits halfway on an axis.
__device__ __forceinline__ bool halfway(int c, int axis) {
    bool normal = c % 3 == axis;
    return c / 3 == 1 ? !normal : normal;
}

// Factor of the mirror image of component c at a side of an axis.
__device__ __forceinline__ real parity(int c, int axis, int side) {
    bool normal = c % 3 == axis, even = c / 3 == 2 ? !normal : (c / 3 == 0) == (side == 2) ? !normal : normal;
    return even ? real(1) : real(-1);
}

// The node inside that a guard is an image of.
__device__ __forceinline__ int image(int k, int n, bool half, bool periodic) {
    if (periodic) return k < 0 ? n - 1 - (-k - 1) % n : k % n;
    return (k < 0 ? 0 : 2 * n) - k - int(half);
}

__device__ __forceinline__ bool near_side(int k, int n) { return k <= BELOW || k >= n - ABOVE; }

// Puts the value of a node and of its images. An odd image holds the wall itself at zero.
__device__ __forceinline__ void put(const Lattice& l, real* to, int c, const Node& p, real value) {
    int k[2] = {p.i, p.j};
#pragma unroll
    for (int axis = 0; axis < 2; axis++) {
        const int* side = l.fields + 2 * axis;
        if (side[0] == 0 || halfway(c, axis)) continue;
        if ((k[axis] == 0 && parity(c, axis, side[0]) < 0) || (k[axis] == l.cells[axis] && parity(c, axis, side[1]) < 0)) value = real(0);
    }
    to[p.at] = value;
    bool near[2] = {near_side(p.i, l.cells[0]), near_side(p.j, l.cells[1])};
    if (!near[0] && !near[1]) return;
    // Guard q of an axis is -2, -1, n, n + 1, n + 2; q = 5 is the node itself.
    for (int y = near[1] ? 0 : 5; y < 6; y++) {
        int j = p.j;
        real fy = 1;
        if (y < 5) {
            j = y < BELOW ? y - BELOW : l.cells[1] + y - BELOW;
            bool periodic = l.fields[2] == 0, half = halfway(c, 1);
            if (j == p.j || (!periodic && !half && j == l.cells[1]) || image(j, l.cells[1], half, periodic) != p.j) continue;
            if (!periodic) fy = parity(c, 1, l.fields[2 + int(j >= l.cells[1])]);
        }
        for (int x = near[0] ? 0 : 5; x < 6; x++) {
            int i = p.i;
            real fx = 1;
            if (x < 5) {
                i = x < BELOW ? x - BELOW : l.cells[0] + x - BELOW;
                bool periodic = l.fields[0] == 0, half = halfway(c, 0);
                if (i == p.i || (!periodic && !half && i == l.cells[0]) || image(i, l.cells[0], half, periodic) != p.i) continue;
                if (!periodic) fx = parity(c, 0, l.fields[int(i >= l.cells[0])]);
            }
            if (x < 5 || y < 5) to[(j + BELOW) * l.pitch + i + BELOW] = fx * fy * value;
        }
    }
}
