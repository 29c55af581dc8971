// Particles in pages.

#include "common.cu"

// A page: columns of (s, t, ux, uy), of uz and weight, of cells and of tags, each a multiple of 128 bytes. Particles that are read one
// by one touch three sectors of memory, not six, and all columns stand at fixed distances from one address.
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
