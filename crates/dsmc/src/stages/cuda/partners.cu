// Numbers of attempts, and partners other than those that chance gives.

#include "hit.cu"

#if SCHEME == 2
__device__ __noinline__ u32 poisson(float mean, u32 word, u64 seed, u64 step, u64 item) {
    Stream stream(PERMUTE, seed, step, item << 10);
    double left = mean, u = open_f32(word);
    u32 total = 0;
    while (left > 0.0) {
        double part = fmin(left, 16.0), term = exp(-part), sum = term;
        left -= part;
        u32 k = 0;
        while (u > sum && k < 1000) {
            k++;
            term *= part / k;
            sum += term;
        }
        total += k;
        u = stream.open();
    }
    return total;
}
#endif

#if NEAREST
// The nearest to particle i of the others of [begin, end) that it has not just collided with, or `from` where there is none; the LANES
// threads of its cell look together. Of a crowd only some are looked at, from `from` on: `nearest` of collide.rs.
#define SEARCHED 48u
__device__ __forceinline__ u32 nearest(const Gas& gas, const Sorted& s, bool live, u32 i, u32 from, u32 begin, u32 end) {
    u64 best = ~u64(0);
    if (live) {
        float x = s.x[i], y = s.y[i];
        u32 tag = s.tag[i], n = least(end - begin, SEARCHED);
        for (u32 o = threadIdx.x % LANES; o < n; o += LANES) {
            u32 k = from + o < end ? from + o : from + o - (end - begin);
            float dx = s.x[k] - x, dy = s.y[k] - y, distance = gas.across[0] * dx * dx + gas.across[1] * dy * dy;
            // Positive numbers are ordered as their words are; of two as near the first one.
            if (k != i && (tag == 0 || s.tag[k] != tag)) best = least(best, u64(__float_as_uint(distance)) << 32 | o);
        }
    }
#pragma unroll
    for (u32 k = LANES / 2; k > 0; k /= 2) best = least(best, u64(__shfl_xor_sync(FULL_WARP, best, k)));
    u32 k = best == ~u64(0) ? from : from + u32(best);
    return k < end ? k : k - (end - begin);
}
#endif

#if TAGGED && !NEAREST
// Particle `from`, or the first behind it that particle i has not just collided with: `fresh` of attempts.rs.
__device__ __forceinline__ u32 fresh(const Sorted& s, u32 i, u32 from, u32 begin, u32 end) {
    u32 tag = s.tag[i], k = from;
    for (u32 n = begin; n < end; n++) {
        if (k != i && (tag == 0 || s.tag[k] != tag)) return k;
        k = k + 1 == end ? begin : k + 1;
    }
    return from;
}
#endif
