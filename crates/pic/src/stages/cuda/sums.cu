// The sums of the current of a tile in shared memory: integers, of which what they have come to goes to global memory.

#include "gather.cu"

#define JX (TX + 1 + 2 * MARGIN)
#define JY (TY + 1 + 2 * MARGIN)
#define JN (JX * JY)

// In shared memory: x, y, z, and z of slow particles; in global memory x, y and z, z in fine units. What lies behind a periodic side
// goes to the node that it is an image of.
struct Sums {
    const Domain& d;
    fixed* near;       // [COMPONENTS][JN]
    long long* far;    // [3][length]
    const Tile& tile;  // near[0] is the node MARGIN below its first cell
    int sign;
};
#if WIDE
#define FINE 0
#define COMPONENTS 3
#else
#define FINE 6
#define COMPONENTS 4
#endif

// No loop, which would become a division: it takes no more turns for a node that something was added to.
__device__ __forceinline__ int inside(int k, int n, int side) {
    if (side == 0) {
#pragma unroll
        for (int again = 0; again <= MARGIN; again++) k = k < 0 ? k + n : k >= n ? k - n : k;
    }
    return k + BELOW;
}
// Moves the value of sum `k` of shared memory into global memory.
__device__ __forceinline__ void carry(const Sums& j, int k, long long v) {
    const Domain& d = j.d;
    int c = k / JN, n = k - c * JN, y = n / JX, x = n - y * JX;
    if (c == 2) v *= 1 << FINE;
    x = inside(j.tile.x - MARGIN + x, d.cells[0], d.sides[0]);
    y = inside(j.tile.y - MARGIN + y, d.cells[1], d.sides[2]);
    atomicAdd((u64*)(j.far + min(c, 2) * d.length + (long long)y * d.pitch + x), u64(v * j.sign));
}
#if WIDE
__device__ __forceinline__ long long product(fixed v, int factor, long long more) { return v * factor + more; }
#else
// One instruction, which a loop that keeps its factor as two words would not be.
__device__ __forceinline__ long long product(fixed v, int factor, long long more) {
    long long r;
    asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(r) : "r"(v), "r"(factor), "l"(more));
    return r;
}
#endif
// All that the sums have come to, into global memory; they are zero afterwards. A thread goes up a column, or its share of one.
#define J_COLUMNS (3 * JX)
#define J_SHARES (BLOCK < J_COLUMNS ? 1 : BLOCK / J_COLUMNS)
#define J_STRETCH ((JY + J_SHARES - 1) / J_SHARES)
__device__ __forceinline__ void empty(const Sums& j) {
    const Domain& d = j.d;
    for (int k = threadIdx.x; k < J_COLUMNS * J_SHARES; k += BLOCK) {
        int share = k / J_COLUMNS, column = k - share * J_COLUMNS, c = column / JX, x = column - c * JX, first = share * J_STRETCH;
        int row = inside(j.tile.y - MARGIN + first, d.cells[1], d.sides[2]), end = d.sides[2] == 0 ? d.cells[1] - 1 + BELOW : -1;
        long long* to = j.far + c * d.length + ((long long)row * d.pitch + inside(j.tile.x - MARGIN + x, d.cells[0], d.sides[0]));
        // z has two; the others have theirs twice, the second time for nothing.
        const bool two = COMPONENTS == 4 && c == 2;
        const int factor = c == 2 ? j.sign * (1 << FINE) : j.sign, other = two ? j.sign : 0, back = (1 - d.cells[1]) * d.pitch;
        fixed *near = j.near + c * JN + first * JX + x, *fine = near + (two ? JN : 0);
#pragma unroll(J_STRETCH < 8 ? J_STRETCH : 4)
        for (int y = 0; y < J_STRETCH; y++) {
            if (J_SHARES * J_STRETCH == JY || first + y < JY) {
                long long v = product(near[y * JX], factor, product(fine[y * JX], other, 0));
                near[y * JX] = 0;
                fine[y * JX] = 0;
                if (v) atomicAdd((u64*)to, u64(v));
            }
            to += row == end ? back : d.pitch;
            row = row == end ? BELOW : row + 1;
        }
    }
}
#if CHECKED
// A sum that would leave 32 bits is carried to the array in global memory at once.
__device__ __forceinline__ void carry_over(const Sums& j, int k, fixed v) { carry(j, k, (v > 0 ? 1ll : -1ll) << 32); }
// Negative if the sum of a and b left 32 bits.
__device__ __forceinline__ int overflow(int a, int b) {
    int sum = int(u32(a) + u32(b));
    return (a ^ sum) & (b ^ sum);
}
#else
// Sums of 32 bits run over nowhere: each lane counts the most that its particles can have added to one sum, `spent`, and a warp of which a lane
// has come to MOST empties all sums of 2^28 and more, as they are at that time, and begins anew. Between two times that this happens to a sum no
// more is added than what all lanes of the block have counted by then, and what waits in their queues: less than 7 x 2^28 (see `KernelConfig::most`).
// So warps need not wait for each other.
#define LARGE (1u << 28)
__device__ __forceinline__ bool large(int v) { return u32(v) + LARGE >= 2 * LARGE; }
__device__ __forceinline__ void relieve(const Sums& j) {
#if !WIDE
    static_assert(BLOCK <= 256 && COMPONENTS * JN % 4 == 0, "no more lanes than MOST counts on; sums read four at a time");
    const int4* four = reinterpret_cast<const int4*>(j.near);
#pragma unroll 1
    for (int k = lane_index(); k < COMPONENTS * JN / 4; k += WARP) {
        int4 v = four[k];
        if (!(large(v.x) | large(v.y) | large(v.z) | large(v.w))) continue;
#pragma unroll 1
        for (int i = 4 * k; i < 4 * k + 4; i++)
            if (large(j.near[i])) carry(j, i, atomicExch(j.near + i, 0));
    }
#endif
}
#endif
