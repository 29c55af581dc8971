// The other way to sum over views for the object: every view adds what it has to what is there, by atomic operations in the second-level cache. No
// lists, and work for every multiprocessor however few tiles an object has; but the order of a sum is that of chance.
//
// Bytes a pixel and object mode of a frame: 16 more than gathering, to the cache; of the objects: 32.

#include "sums.cu"
#include "adds.cu"

// Pixels of a frame that a block takes at a time, and the number of such strips of a frame has.
#define STRIP 4
#define STRIPS ((NX * NY + TEAM * STRIP - 1) / (TEAM * STRIP))

// Strip `w` of all views adds conj(P) exit, and |P|^2 with `WEIGHED`, to the pool, or without to `to`, shaped as the objects.
template <bool WEIGHED>
__device__ __forceinline__ void scatter(const Model& model, const C* exits, const Sums& sums, C* to, u32 w) {
    const u32 n = w / STRIPS, begin = w % STRIPS * (TEAM * STRIP) + threadIdx.x;
    const View view = model.views[n];
    const Storage storage = model.storages[view.object];
    const C* probe = model.probe + (SHIFTED ? (u64)n : SETS > 1 ? (u64)view.probe : 0) * (PROBES * NX * NY) + begin;
    for (int o = 0; o < OBJECTS; ++o) {
        const C* exit = exits + ((u64)n * MODES + o) * (NX * NY) + begin;
        C sum[STRIP];
        real weight[STRIP];
#pragma unroll
        for (int i = 0; i < STRIP; ++i) sum[i] = make_real2(0, 0), weight[i] = 0;
#pragma unroll(PROBES <= 4 ? PROBES : 2)
        for (int p = 0; p < PROBES; ++p) {
#pragma unroll
            for (int i = 0; i < STRIP; ++i) {
                if (begin + i * TEAM < NX * NY) {
                    C a = probe[p * (NX * NY) + i * TEAM], e = __ldcs(exit + p * (OBJECTS * NX * NY) + i * TEAM);
                    add_overlap(sum[i], a, e);
                    weight[i] += power(a);
                }
            }
        }
        const u64 corner = storage.offset + ((u64)o * storage.height + view.row) * storage.width + view.col;
#pragma unroll
        for (int i = 0; i < STRIP; ++i) {
            const u32 pixel = begin + i * TEAM;
            if (pixel >= NX * NY) continue;
            const u64 at = corner + (u64)(pixel / NX) * storage.width + pixel % NX;
            if (WEIGHED) add_to(sums.pool + at, sum[i], weight[i]);
            else add_to(to + at, sum[i]);
        }
    }
}

// Value `i` of the objects from the pool, which is left empty.
__device__ __forceinline__ void update_object_value(const Model& model, const Sums& sums, u64 i, const Update& update) {
    const real4 all = from_cache(sums.pool + i);
    sums.pool[i] = make_real4(0, 0, 0, 0);
    C sum = model.object[i] * update.object_inertia + make_real2(all.x, all.y);
    real over = update.object_inertia + all.z;
    if (over > 0) model.object[i] = clipped(sum * (1 / over), update.low, update.high);
}
