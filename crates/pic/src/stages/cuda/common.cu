// Types of all kernels of the particles. A particle lies in a slot of a page; a tile owns pages by a table. `SHIFT`: a page
// holds 2^SHIFT slots; TX x TY: cells of a tile; WORK: slots of a tile that one block takes.

typedef REAL real;
typedef unsigned short u16;
#define PAGE (1 << SHIFT)
#define BELOW 2

#if WIDE
typedef long long fixed;
#define MAGIC 6755399441055744.0  // 1.5 * 2^52: adding and taking it off rounds to an integer
__device__ __forceinline__ fixed to_fixed(real x) { return __double2ll_rn(x); }
__device__ __forceinline__ fixed shared_add(fixed* at, fixed v) { return fixed(atomicAdd((u64*)at, u64(v))); }
#else
typedef int fixed;
#define MAGIC 12582912.0f  // 1.5 * 2^23
__device__ __forceinline__ fixed to_fixed(real x) { return __float2int_rn(x); }
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
    u32 ticket, unused[3];
    u64 removed, injected, out[6];  // ledger: counts; weight out, energy out, energy in, each as two words of 2^-40
};

struct Store {
    u16* cell;           // x | y << 8 in the tile
    real* v[6];          // s, t, ux, uy, uz, weight
    u64* tag;
    u32* gone;           // a bit per slot: left in this step
    u32* count;          // particles of a tile
    u32* left;           // of them, how many left in this step
    u32* arrivals;       // how many come
    u32* placed;         // of them, how many have their slot
    u32* kept;           // count after the holes were filled
    u32 *first, *next_first;  // first entry of a tile in the table of pages; one more than tiles
    u32 *table, *next_table;  // pages of all tiles
    u32 *item, *first_item;   // tile of each item of work; first item of a tile
    u32* spare;          // free pages
    Record *outbox, *common;  // records of each item, OUT of them; those that had no room there
    u32* outgoing;       // records of each item
    Counters* counters;
    u64* status;         // chained scan: prefixes
    u32 tiles, outbox_items, common_room, unused;
};

__device__ __forceinline__ u64 slot_of(const Store& st, const u32* table, u32 first, u32 k) {
    return (u64(table[first + (k >> SHIFT)]) << SHIFT) + (k & (PAGE - 1));
}
__device__ __forceinline__ Record load(const Store& st, u64 slot) {
    Record r;
    r.cell = st.cell[slot];
#pragma unroll
    for (int c = 0; c < 5 + WEIGHTED; c++) r.v[c] = st.v[c][slot];
#if TAGGED
    r.tag = st.tag[slot];
#endif
    return r;
}
__device__ __forceinline__ void save(const Store& st, u64 slot, const Record& r) {
    st.cell[slot] = u16(r.cell);
#pragma unroll
    for (int c = 0; c < 5 + WEIGHTED; c++) st.v[c][slot] = r.v[c];
#if TAGGED
    st.tag[slot] = r.tag;
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
