// Types of all kernels of the fields, and what stands beyond the sides (images.rs). A thread has one node inside; it reads
// guards that are valid and writes, beside its own value, the guards that are images of it.

#include "real.cuh"

typedef REAL real;
#define BELOW 2
#define ABOVE 3

struct Coefficients {
    real keep, feed, stretch;
};

#include "yee_grid.cuh"

struct Node {
    int i, j, at;
    bool inside;
};
__device__ __forceinline__ Node node(const YeeGrid& l) {
    Node n;
    n.i = int(blockIdx.x * blockDim.x + threadIdx.x);
    n.j = int(blockIdx.y * blockDim.y + threadIdx.y);
    n.at = (n.j + BELOW) * l.pitch + n.i + BELOW;
    n.inside = n.i < l.nodes[0] && n.j < l.nodes[1];
    return n;
}

// True if component c (0..2 E, 3..5 B, 6..8 J) sits halfway on an axis.
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

// True if corner `k` of an axis lies on a wall: behind an end of code 3 another part of the run goes on.
__device__ __forceinline__ bool on_wall(const YeeGrid& l, int axis, int k) {
    const int* side = l.fields + 2 * axis;
    return (k == 0 && side[0] && side[0] != 3) || (k == l.cells[axis] && side[1] && side[1] != 3);
}

__device__ __forceinline__ bool near_side(int k, int n) { return k <= BELOW || k >= n - ABOVE; }

// Guard q of an axis: -2, -1, n, n + 1, n + 2; a bit each.
#define LOWER_GUARDS ((1u << BELOW) - 1)
#define UPPER_GUARDS (((1u << ABOVE) - 1) << BELOW)
__device__ __forceinline__ int guard(int q, int n) { return q < BELOW ? q - BELOW : n + q - BELOW; }
// The guards of an axis that are images of node k, a bit each: by trying all of them, for narrow domains.
__device__ __noinline__ u32 search_images(int k, int n, bool half, bool periodic) {
    u32 found = 0;
#pragma unroll 1
    for (int q = 0; q < BELOW + ABOVE; q++) {
        int g = guard(q, n);
        // The last corner of an axis that is not periodic is a node, not a guard.
        if (g != k && (periodic || half || g != n) && image(g, n, half, periodic) == k) found |= 1u << q;
    }
    return found;
}
// Guards of an axis that are images of node k. Where no node has two of them, guard q = k - n + 2 or q = 2 + k if periodic; else
// q = 1 - (k - !half), or q = 2 + d for d = n - k - half.
__device__ __forceinline__ u32 images_of(int k, int n, bool half, bool periodic) {
    if (n <= 2 * (BELOW + ABOVE)) return search_images(k, n, half, periodic);
    int low = k - int(!half), high = n - k - int(half);
    if (periodic) return k >= n - BELOW ? 1u << (k - n + BELOW) : k < ABOVE ? 1u << (BELOW + k) : 0;
    if (low >= 0 && low < BELOW) return 1u << (1 - low);
    return high >= int(!half) && high < ABOVE ? 1u << (BELOW + high) : 0;
}

// Puts the value of a node near a side, and of its images. An odd image holds the wall itself at zero. One copy of this code for
// all components: what small domains wait for is its instructions.
__device__ __noinline__ void put_near(const YeeGrid& l, real* to, int c, int i, int j, real value) {
    int k[2] = {i, j};
    u32 images[2];
#pragma unroll
    for (int axis = 0; axis < 2; axis++) {
        const int* side = l.fields + 2 * axis;
        bool half = halfway(c, axis);
        images[axis] = images_of(k[axis], l.cells[axis], half, side[0] == 0) | 32u;
        // Guards of nodes of another part come from there.
        if (side[0] == 3) images[axis] &= ~LOWER_GUARDS;
        if (side[1] == 3) images[axis] &= ~UPPER_GUARDS;
        if (!half && on_wall(l, axis, k[axis]) && parity(c, axis, side[int(k[axis] > 0)]) < 0) value = real(0);
    }
    // Bit 5 is the node itself.
#pragma unroll 1
    for (u32 ys = images[1]; ys; ys &= ys - 1) {
        int b = __ffs(ys) - 1, y = b == 5 ? j : guard(b, l.cells[1]);
        real fy = b == 5 || l.fields[2] == 0 ? real(1) : parity(c, 1, l.fields[2 + int(y >= l.cells[1])]);
#pragma unroll 1
        for (u32 xs = images[0]; xs; xs &= xs - 1) {
            int a = __ffs(xs) - 1, x = a == 5 ? i : guard(a, l.cells[0]);
            real fx = a == 5 || l.fields[0] == 0 ? real(1) : parity(c, 0, l.fields[int(x >= l.cells[0])]);
            to[(y + BELOW) * l.pitch + x + BELOW] = fx * fy * value;
        }
    }
}
__device__ __forceinline__ void put(const YeeGrid& l, real* to, int c, const Node& p, real value) {
    if (near_side(p.i, l.cells[0]) || near_side(p.j, l.cells[1])) put_near(l, to, c, p.i, p.j, value);
    else to[p.at] = value;
}
