// Samples: sums of a tile's cells and species.

#include "advance.cu"

// Sums of each cell and species by the LANES threads that its collisions have, so that no thread waits for others in between. In single
// precision over few particles at a time, then added to what there is, which no thread waits for either: a sum has one thread, whose
// additions come in their order. What there is is in single precision too where a cell has few particles (BRIEF), and `fold` adds it to
// the rest after a fixed number of samples: half the bytes.
#define FEW (32 * LANES)
__device__ __forceinline__ void sample(const Gas& gas, const Pass& p, u32 tile, const Sorted& s, const u32* start) {
    const u32 SUMS = KEPT, lane = threadIdx.x % LANES;
    if (LANES > 1) __syncwarp();
    // By the last warps where not all have a cell: the first ones have flights meanwhile.
    const u32 thread = TEAMS ? THREADS - 1 - threadIdx.x : threadIdx.x;
    for (u32 slot = thread / LANES; slot < CELLS; slot += THREADS / LANES)
        for (u32 species = 0; species < SPECIES; species++) {
            u32 key = slot * SPECIES + species, end = start[key + 1];
            const bool several = VIBRATES > 1 && gas.modes[species].count > 1;
            for (u32 from = start[key]; LANES == 1 ? from < end : __any_sync(FULL_WARP, from < end); from += FEW) {
                float sums[SUMS] = {};
                if (lane == 0 && from < end) sums[0] = float(least(end - from, u32(FEW)));
#pragma unroll 2
                for (u32 i = from + lane; i < least(from + FEW, end); i += LANES) {
                    float x = s.vx[i], y = s.vy[i], z = s.vz[i], square = x * x + y * y + z * z;
                    if (ROTATES) {
                        float e = s.rotation[i];
                        sums[FIRST_INTERNAL] += e;
                        square += float(p.factor[species]) * e;
                    }
                    if (VIBRATES) {
                        u32 word = s.level[i];
#pragma unroll
                        for (u32 m = 0; m < VIBRATES; m++) {
                            float e = float(several ? word >> 8 * m & 0xff : m ? 0 : word);
                            sums[FIRST_INTERNAL + 1 + m] += e;
                            square += float(p.factor[(1 + m) * SPECIES + species]) * e;
                        }
                    }
                    sums[1] += x;
                    sums[2] += y;
                    sums[3] += z;
                    sums[4] += x * x;
                    sums[5] += y * y;
                    sums[6] += z * z;
                    sums[7] += x * y;
                    sums[8] += square * x;
                    sums[9] += square * y;
#if ALONG_Z
                    sums[10] += x * z;
                    sums[11] += y * z;
                    sums[12] += square * z;
#endif
                }
#pragma unroll
                for (u32 q = 0; q < SUMS; q++) {
#pragma unroll
                    for (u32 k = q ? LANES / 2 : 0; k > 0; k /= 2) sums[q] += __shfl_xor_sync(FULL_WARP, sums[q], k);
                    if (from < end && lane == 0) atomicAdd(p.sums + (u64(q) * p.stride + u64(tile) * KEYS + key), Average(sums[q]));
                }
            }
        }
}

// Adds the sums of the last samples to those before them, and begins anew.
extern "C" __global__ void __launch_bounds__(256) fold(float* recent, double* old, u64 n) {
    for (u64 i = thread_index(); i < n; i += thread_count()) {
        old[i] += double(recent[i]);
        recent[i] = 0.0f;
    }
}
