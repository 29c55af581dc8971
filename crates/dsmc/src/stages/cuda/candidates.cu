// Candidates of a tile: where they are, and how they come to their places.

#include "advance.cu"

// Slots of `now` from which the candidates of a tile come: its own region, then arrivals.
struct Source {
    u32 begin, own, all, base;
    const u32* arrive;
};

// A number of particles of a tile: a short one where it fits.
template <bool FITS> struct CountOf {
    typedef u32 Type;
};
template <> struct CountOf<true> {
    typedef u16 Type;
};
template <bool FITS> using Count = typename CountOf<FITS>::Type;

// Slots and keys of the candidates k, k + 32 and so on below `end`, NONE where there is none. All are asked for before any is looked at:
// each round of a warp would else wait for memory.
template <u32 BATCH>
__device__ __forceinline__ void candidates(const Store& st, const Source& from, u32 k, u32 end, u32* slots, u32* keys) {
#pragma unroll
    for (u32 r = 0; r < BATCH; r++) {
        u32 at = k + 32 * r;
        slots[r] = at < end ? from.begin + at : NONE;
        if (at >= from.own && at < end) slots[r] = from.arrive[at - from.own];
    }
#pragma unroll
    for (u32 r = 0; r < BATCH; r++) keys[r] = st.now.key[slots[r] == NONE ? 0 : slots[r]];
#pragma unroll
    for (u32 r = 0; r < BATCH; r++) {
        bool hole = slots[r] == NONE || (k + 32 * r < from.own && (keys[r] & LEFT));
        keys[r] = hole ? NONE : keys[r] & ~LEFT;
    }
}

// Copies a number to shared memory, which `fetched` waits for.
template <class T> __device__ __forceinline__ void fetch(T* to, const T* from) {
#if __CUDA_ARCH__ >= 800
    if (sizeof(T) == 4) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(u32(__cvta_generic_to_shared(to))), "l"(from) : "memory");
        return;
    }
#endif
    *to = *from;
}
__device__ __forceinline__ void fetched() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
__device__ __forceinline__ void fetch_to(const Store& st, const Sorted& s, u32 slot, u32 to, u32 key) {
    fetch(s.x + to, st.now.x + slot);
    fetch(s.y + to, st.now.y + slot);
    fetch(s.vx + to, st.now.vx + slot);
    fetch(s.vy + to, st.now.vy + slot);
    fetch(s.vz + to, st.now.vz + slot);
    s.key[to] = u16(key);
    if (ROTATES) fetch(s.rotation + to, st.now.rotation + slot);
    if (VIBRATES) fetch(s.level + to, st.now.level + slot);
    if (TAGGED) fetch(s.tag + to, st.now.tag + slot);
}

// Copies particles within device memory, each to where `to` says: all are read before one is written.
template <u32 BATCH>
__device__ __forceinline__ void copy_to(const Store& st, const Sorted& s, const u32* slots, const u32* to, const u32* keys) {
    float v[BATCH][6];
    Level level[BATCH];
    u32 tag[BATCH];
#pragma unroll
    for (u32 r = 0; r < BATCH; r++) {
        u32 slot = keys[r] == NONE ? 0 : slots[r];
        v[r][0] = st.now.x[slot];
        v[r][1] = st.now.y[slot];
        v[r][2] = st.now.vx[slot];
        v[r][3] = st.now.vy[slot];
        v[r][4] = st.now.vz[slot];
        if (ROTATES) v[r][5] = st.now.rotation[slot];
        if (VIBRATES) level[r] = st.now.level[slot];
        if (TAGGED) tag[r] = st.now.tag[slot];
    }
#pragma unroll
    for (u32 r = 0; r < BATCH; r++) {
        if (keys[r] == NONE) continue;
        s.x[to[r]] = v[r][0];
        s.y[to[r]] = v[r][1];
        s.vx[to[r]] = v[r][2];
        s.vy[to[r]] = v[r][3];
        s.vz[to[r]] = v[r][4];
        s.key[to[r]] = u16(keys[r]);
        if (ROTATES) s.rotation[to[r]] = v[r][5];
        if (VIBRATES) s.level[to[r]] = level[r];
        if (TAGGED) s.tag[to[r]] = tag[r];
    }
}
