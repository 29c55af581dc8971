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

// The node inside that a guard is an image of. No division: a domain is seldom narrower than its guards.
__device__ __forceinline__ int image(int k, int n, bool half, bool periodic) {
    if (!periodic) return (k < 0 ? 0 : 2 * n) - k - int(half);
    while (k < 0) k += n;
    while (k >= n) k -= n;
    return k;
}

__device__ __forceinline__ bool near_side(int k, int n) { return k <= BELOW || k >= n - ABOVE; }

// Guard q of an axis: -2, -1, n, n + 1, n + 2.
__device__ __forceinline__ int guard(int q, int n) { return q < BELOW ? q - BELOW : n + q - BELOW; }
// The guards of an axis that are images of node k, a bit each.
__device__ __forceinline__ u32 images_of(int k, int n, bool half, bool periodic) {
    u32 found = 0;
    if (near_side(k, n)) {
#pragma unroll
        for (int q = 0; q < BELOW + ABOVE; q++) {
            int g = guard(q, n);
            // The last corner of an axis that is not periodic is a node, not a guard.
            if (g != k && (periodic || half || g != n) && image(g, n, half, periodic) == k) found |= 1u << q;
        }
    }
    return found;
}

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
    u32 xs = images_of(p.i, l.cells[0], halfway(c, 0), l.fields[0] == 0), ys = images_of(p.j, l.cells[1], halfway(c, 1), l.fields[2] == 0);
    if (!(xs | ys)) return;
    // Bit 5 is the node itself.
    for (u32 y = ys | 32u; y; y &= y - 1) {
        int b = __ffs(y) - 1, j = b == 5 ? p.j : guard(b, l.cells[1]);
        real fy = b == 5 || l.fields[2] == 0 ? real(1) : parity(c, 1, l.fields[2 + int(j >= l.cells[1])]);
        for (u32 x = xs | 32u; x; x &= x - 1) {
            int a = __ffs(x) - 1, i = a == 5 ? p.i : guard(a, l.cells[0]);
            if (a == 5 && b == 5) continue;
            real fx = a == 5 || l.fields[0] == 0 ? real(1) : parity(c, 0, l.fields[int(i >= l.cells[0])]);
            to[(j + BELOW) * l.pitch + i + BELOW] = fx * fy * value;
        }
    }
}
