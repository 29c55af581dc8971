// Types of all kernels of the particles. A particle lies in a slot of a page; a tile owns pages by a table. `SHIFT`: a page
// holds 2^SHIFT slots; TX x TY: cells of a tile; WORK: slots of a tile that one block takes.

typedef REAL real;
typedef unsigned short u16;
#define PAGE (1 << SHIFT)
#define BELOW 2
#define GROUP 64
static_assert(PAGE % GROUP == 0 && WORK % GROUP == 0 && WORK <= 1 << 16, "pages and items of whole groups, numbers of 16 bits");

#if WIDE
typedef long long fixed;
#define MAGIC 6755399441055744.0  // 1.5 * 2^52: adding and taking it off rounds to an integer
__device__ __forceinline__ fixed word(real x) { return __double_as_longlong(x); }
__device__ __forceinline__ fixed shared_add(fixed* at, fixed v) { return fixed(atomicAdd((u64*)at, u64(v))); }
#else
typedef int fixed;
#define MAGIC 12582912.0f  // 1.5 * 2^23
__device__ __forceinline__ fixed word(real x) { return __float_as_int(x); }
__device__ __forceinline__ fixed shared_add(fixed* at, fixed v) { return atomicAdd(at, v); }
#endif

// A sum and a product of their own: never fused with each other, so that they are the same wherever they are written. Where two
// products meet in a sum, which of them is fused is the compiler's choice, and not the same for all sizes of tiles.
#if WIDE
__device__ __forceinline__ real plus(real a, real b) { return __dadd_rn(a, b); }
__device__ __forceinline__ real times(real a, real b) { return __dmul_rn(a, b); }
#else
__device__ __forceinline__ real plus(real a, real b) { return __fadd_rn(a, b); }
__device__ __forceinline__ real times(real a, real b) { return __fmul_rn(a, b); }
#endif

// The nearest integer, ties to even, so that -x gives the negative. |x| < MAGIC / 3.
__device__ __forceinline__ real whole(real x) { return plus(x, real(MAGIC)) - real(MAGIC); }
// The integer in x = i + MAGIC, and the nearest one to x: no conversion, whose unit is slow.
__device__ __forceinline__ fixed shifted(real x) { return word(x) - word(real(MAGIC)); }
__device__ __forceinline__ fixed to_fixed(real x) { return shifted(plus(x, real(MAGIC))); }

#if !WIDE
// 1 / gamma by name: whether the compiler takes one instruction or two for it is not the same for all programs.
template <> __device__ __forceinline__ float inverse_gamma<float>(Vec3<float> u) {
    float r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(gamma_squared(u)));
    return r;
}
#endif

struct Domain {
    int cells[2], tiles[2];
    int pitch, sides[4];  // what particles meet: x lower, x upper, y lower, y upper: 0 periodic, 1 reflect, 2 absorb, 3 thermal
    int unused;
    long long length;     // values of an array with guards
    double thermal[4];    // u_th of each side
};

// A particle on its way to another tile.
struct Record {
    u32 tile;
    u32 cell;
    real v[5 + WEIGHTED];
#if TAGGED
    u64 tag;
#endif
};

struct Counters {
    u32 free, items, common, lost;  // pages free, blocks' worth of work, records in the common outbox, records that found no room
    u32 ticket, due, holes, unused; // `due`: records of the common outbox that are being delivered; `holes`: entries of the list
    u64 removed, injected, out[6];  // ledger: counts; weight out, energy out, energy in, each as two words of 2^-40
};

// What arrivals of a tile need: where its list of holes begins and how many it has, the first slot behind its particles, and
// where its new pages stand among the spare ones (before the layout: how many it needs).
struct __align__(16) Landing {
    u32 holes, listed, end, pages;
};

// A tile's particles are shared out evenly among as few items as WORK slots each allow, in whole groups.
struct __align__(16) Item {
    u32 tile, begin, end, first;
};
// Item `number` of a tile of n particles.
__device__ __forceinline__ Item item_of(u32 tile, u32 first, u32 n, u32 number) {
    u32 items = (n + WORK - 1) / WORK, part = ((n + items - 1) / items + GROUP - 1) / GROUP * GROUP, begin = number * part;
    return {tile, begin, min(begin + part, n), first};
}

struct Store {
    u8* slots;           // groups of 64 slots, see `Place`; cells are x | y << 8 in the tile
    u32* gone;           // a bit per slot: left in this step
    u32* count;          // particles of a tile
    u32* left;           // of them, how many left in this step
    u32* arrivals;       // how many come
    u32* placed;         // of them, how many have their slot
    Landing* landing;
    u32 *first, *next_first;  // first entry of a tile in the table of pages; one more than tiles
    u32 *table, *next_table;  // pages of all tiles
    Item* item;          // items of work
    u32* first_item;     // first item of a tile
    u32* spare;          // free pages
    u32* holes;          // slots that arrivals will have, by tile
    Record *outbox, *common;  // records of each item, OUT of them; those that had no room there
    u32* outgoing;       // records of each item
    Counters* counters;
    u64* status;         // chained scan: prefixes
    u32 tiles, outbox_items, common_room, unused;
};

__device__ __forceinline__ u64 slot_of(const u32* table, u32 first, u32 k) { return (u64(table[first + (k >> SHIFT)]) << SHIFT) + (k & (PAGE - 1)); }

// A group of slots: columns of (s, t, ux, uy), of uz and weight, of cells and of tags, each a multiple of 128 bytes. Particles that
// are read one by one touch three sectors of memory, not six, and a block reads all columns at fixed distances from one address.
#if WIDE
struct __align__(16) Quad {
    double x, y, z, w;
};
#else
typedef float4 Quad;
#endif
#define REST (GROUP * int(sizeof(Quad)))
#define CELLS (REST + (1 + WEIGHTED) * GROUP * int(sizeof(real)))
#define TAGS (CELLS + 2 * GROUP)
#define GROUP_BYTES (TAGS + 8 * TAGGED * GROUP)
struct Place {
    u8* group;
    u32 k;
    __device__ __forceinline__ Quad& four() const { return reinterpret_cast<Quad*>(group)[k]; }
    // 0: uz, 1: weight.
    __device__ __forceinline__ real& rest(int c) const { return reinterpret_cast<real*>(group + REST)[c * GROUP + k]; }
    __device__ __forceinline__ u16& cell() const { return reinterpret_cast<u16*>(group + CELLS)[k]; }
    __device__ __forceinline__ u64& tag() const { return reinterpret_cast<u64*>(group + TAGS)[k]; }
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
__device__ __forceinline__ Place place(const Store& st, u64 slot) { return {st.slots + (slot / GROUP) * GROUP_BYTES, u32(slot % GROUP)}; }
// Bytes from `slots` to the group of particle `k` of a tile in `page`.
__device__ __forceinline__ u64 group_of(u32 page, u32 k) { return u64(page) * (PAGE / GROUP * GROUP_BYTES) + (k % PAGE / GROUP) * GROUP_BYTES; }

__device__ __forceinline__ Record load(const Store& st, u64 slot) {
    Record r;
    Place p = place(st, slot);
    r.cell = p.cell();
    p.get(r.v);
#if WEIGHTED
    r.v[5] = p.weight();
#endif
#if TAGGED
    r.tag = p.tag();
#endif
    return r;
}
__device__ __forceinline__ void save(const Store& st, u64 slot, const Record& r) {
    Place p = place(st, slot);
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
