// Types of all kernels of the particles. A particle lies in a slot of a page. A tile is one unit of work or several, and helpers where
// it is very full (team.cu); a block takes a unit, and each of its warps has a list of particles of its own there, which fills its pages without holes. `SHIFT`: a page holds
// 2^SHIFT slots; TX x TY: cells of a tile.

#include "fused.cu"
#include "physics.cuh"
#include "fixed.cu"

typedef unsigned short u16;
#define PAGE (1 << SHIFT)
#define BELOW 2
#define WARPS (BLOCK / WARP)
#define NONE 0xffffffffu
static_assert(SHIFT >= 6 && BLOCK % WARP == 0 && WARPS <= WARP, "columns of whole lines, lists that a warp counts");

#if !WIDE
// 1 / gamma by name: whether the compiler takes one instruction or two for it is not the same for all programs.
template <> __device__ __forceinline__ float inverse_gamma<float>(Vec3<float> u) {
    float r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(gamma_squared(u)));
    return r;
}
#endif

#include "domain.cuh"

// First cell of a column of tiles; below 0 where the window has left a part of it behind.
__device__ __forceinline__ int first_cell(const Domain& d, int column) {
    int place = column - d.passed / TX;
    return (place < 0 ? place + d.tiles[0] : place) * TX - d.passed % TX;
}
// Column of tiles of cell `x`, which becomes the cell in it.
__device__ __forceinline__ int tile_column(const Domain& d, int& x) {
    x += d.passed % TX;
    int place = x / TX, column = place + d.passed / TX;
    x -= place * TX;
    return column < d.tiles[0] ? column : column - d.tiles[0];
}

// A tile of a unit: its first cell and the end of its cells, which part of it, and how many particles the unit has. Cells below `low` are outside
// of the domain.
struct Tile {
    int x, y, nx, ny, low;
    u32 part, whole;
};

// A particle on its way to another unit.
struct Record {
    u32 unit;
    u32 cell;
    real v[5 + WEIGHTED];
#if TAGGED
    u64 tag;
#endif
};

#include "store.cuh"

// Sums of positive numbers that do not depend on the order: two words in units of 2^-40.
__device__ __forceinline__ void add_exact(u64* sum, double value) {
    u64 v = u64(value * 1099511627776.0), before = atomicAdd(sum, v);
    if (before + v < before) atomicAdd(sum + 1, 1ull);
}

struct real2_t {
    real x, y;
};
#if WIDE
struct __align__(16) Quad {
    double x, y, z, w;
};
#else
typedef float4 Quad;
#endif
#if WIDE
__device__ __forceinline__ u64 bits(real x) { return u64(__double_as_longlong(x)); }
#else
__device__ __forceinline__ u32 bits(real x) { return __float_as_uint(x); }
#endif
