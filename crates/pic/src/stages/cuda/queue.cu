// Particles that cross a border (quadratic shapes: get another nearest node), a tenth of all in a warm plasma, wait in a queue of the warp until
// 32 of them fill all lanes: `Path`, and K.

#include "settle.cu"

#define QUEUE 64
struct CrossingQueue {
    int n[QUEUE];
    real s[QUEUE], t[QUEUE], s1[QUEUE], t1[QUEUE], qz[QUEUE], k[WEIGHTED ? QUEUE : 1];
    __device__ __forceinline__ void put(int at, const Path& w, const Unit& u) {
        n[at] = w.n;
        s[at] = w.s;
        t[at] = w.t;
        s1[at] = w.s1;
        t1[at] = w.t1;
        qz[at] = w.qz;
        if (WEIGHTED) k[at * WEIGHTED] = u.k;
    }
    __device__ __forceinline__ Path get(int at, Unit& u) const {
        if (WEIGHTED) u = unit_known(k[at * WEIGHTED]);
        return {s[at], t[at], s1[at], t1[at], qz[at], n[at]};
    }
};
// Deposits 32 of those that wait, as long as there are so many.
__device__ __forceinline__ void deposit_waiting(const Sums& j, CrossingQueue& queue, u32& waiting, Unit unit) {
    while (waiting >= WARP) {
        waiting -= WARP;
        Path w = queue.get(int(waiting + lane_index()), unit);
#if ORDER == 1
        bool again = deposit_first(j, w, unit);
        // The last piece; those with three wait once more, since all lanes would wait for them.
        u32 rest = __ballot_sync(FULL_WARP, again);
        if (rest) {
            // All have read what this writes over.
            __syncwarp();
            if (again) queue.put(waiting + __popc(rest & below()), w, unit);
        }
        waiting += __popc(rest);
        if (!again) deposit(j, w.n, point(w.s, w.t, unit), point(w.s1, w.t1, unit), w.s, w.t, w.s1, w.t1, w.qz, unit);
#else
        deposit_rest(j, w, unit);
#endif
        __syncwarp();
    }
}
// Those that still wait at the end of a unit, `left` of each warp, all warps together: where particles are few that is every second
// lane, and many warps that would have no more than a few.
__device__ __forceinline__ void deposit_left(const Sums& j, const CrossingQueue* queues, const u32* left, const Push& p) {
    Unit unit = unit_of(p, real(1));
    const u32 all = sum_of(left);
    for (u32 k = threadIdx.x; k < all; k += BLOCK) {
        u32 at = k, warp = warp_of(left, at);
        Path w = queues[warp].get(int(at), unit);
        deposit_rest(j, w, unit);
    }
}
