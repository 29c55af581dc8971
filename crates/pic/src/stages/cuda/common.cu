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

// A page: columns of (s, t, ux, uy), of uz and weight, of cells and of tags, each a multiple of 128 bytes. Particles that are read one
// by one touch three sectors of memory, not six, and all columns stand at fixed distances from one address.
#if WIDE
struct __align__(16) Quad {
    double x, y, z, w;
};
#else
typedef float4 Quad;
#endif
#define REST (PAGE * int(sizeof(Quad)))
#define CELLS (REST + (1 + WEIGHTED) * PAGE * int(sizeof(real)))
#define TAGS (CELLS + 2 * PAGE)
#define PAGE_BYTES (TAGS + 8 * TAGGED * PAGE)
// Number `k` of a column that begins `offset` bytes behind `page`. One instruction by name, where shifts, masks and additions of two words each
// would be four: addresses were a tenth of all instructions.
template <class T> __device__ __forceinline__ T& entry(u8* page, int offset, u32 k) {
    u64 at;
    asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(at) : "r"(k), "n"(sizeof(T)), "l"(page));
    return *reinterpret_cast<T*>(static_cast<u8*>(__cvta_global_to_generic(at)) + offset);
}
struct ParticleSlot {
    u8* page;
    u32 k;
    __device__ __forceinline__ Quad& four() const { return entry<Quad>(page, 0, k); }
    // 0: uz, 1: weight.
    __device__ __forceinline__ real& rest(int c) const { return entry<real>(page, REST + c * PAGE * int(sizeof(real)), k); }
    __device__ __forceinline__ u16& cell() const { return entry<u16>(page, CELLS, k); }
    __device__ __forceinline__ u64& tag() const { return entry<u64>(page, TAGS, k); }
    __device__ __forceinline__ void get(real* v) const {
        Quad q = four();
        v[0] = q.x;
        v[1] = q.y;
        v[2] = q.z;
        v[3] = q.w;
        v[4] = rest(0);
    }
    __device__ __forceinline__ void set(const real* v) const {
        four() = Quad{v[0], v[1], v[2], v[3]};
        rest(0) = v[4];
    }
    __device__ __forceinline__ real weight() const { return WEIGHTED ? rest(WEIGHTED) : real(1); }
};
// Particle `k` of a list or an inbox, in `page`.
__device__ __forceinline__ ParticleSlot slot_at(const Store& st, u32 page, u32 k) {
    return {st.slots + u64(page) * PAGE_BYTES, k % PAGE};
}

__device__ __forceinline__ void save(const Store& st, u32 page, u32 k, const Record& r) {
    ParticleSlot p = slot_at(st, page, k);
    p.cell() = u16(r.cell);
    p.set(r.v);
#if WEIGHTED
    p.rest(1) = r.v[5];
#endif
#if TAGGED
    p.tag() = r.tag;
#endif
}

// Sums of positive numbers that do not depend on the order: two words in units of 2^-40.
__device__ __forceinline__ void add_exact(u64* sum, double value) {
    u64 v = u64(value * 1099511627776.0), before = atomicAdd(sum, v);
    if (before + v < before) atomicAdd(sum + 1, 1ull);
}

struct real2_t {
    real x, y;
};
#if WIDE
__device__ __forceinline__ u64 bits(real x) { return u64(__double_as_longlong(x)); }
#else
__device__ __forceinline__ u32 bits(real x) { return __float_as_uint(x); }
#endif
