// Sums over all particles by block: number, mass times velocity, half mass times its square, internal energy over k. theta:
// [mode][species], 0 where there is none.

#include "common.cu"

extern "C" __global__ void __launch_bounds__(256)
    totals(const __grid_constant__ Store st, const double* mass, const double* theta, const float* weights, double* out) {
    __shared__ double scratch[8];
    double sums[6] = {};
    u64 n = u64(st.first[st.count]) + st.counters->fresh;
    for (u64 k = thread_index(); k < n; k += thread_count()) {
        u32 key = st.now.key[k];
        if (key == GONE) continue;
        u32 s = (key & ~LEFT) % SPECIES;
        double weight = 1.0;
#if WEIGHTED
        // All are in order: the tile is that in whose region the slot lies.
        u32 low = 0, high = st.count;
        while (high - low > 1) (st.first[(low + high) / 2] <= k ? low : high) = (low + high) / 2;
        weight = weights[u64(low) * CELLS + (key & ~LEFT) / SPECIES];
#endif
        double m = weight * mass[s], x = st.now.vx[k], y = st.now.vy[k], z = st.now.vz[k];
        sums[0] += 1;
        sums[1] += m * x;
        sums[2] += m * y;
        sums[3] += m * z;
        sums[4] += 0.5 * m * (x * x + y * y + z * z);
        if (ROTATES) sums[5] += weight * st.now.rotation[k];
#if VIBRATES
        u32 word = st.now.level[k];
        bool several = VIBRATES > 1 && theta[SPECIES + s] > 0.0;
        for (u32 m = 0; m < VIBRATES; m++)
            sums[5] += weight * double(several ? word >> 8 * m & 0xff : m ? 0 : word) * theta[m * SPECIES + s];
#endif
    }
    for (int c = 0; c < 6; c++) {
        double sum = block_reduce<Sum<double>>(sums[c], scratch);
        if (threadIdx.x == 0) out[blockIdx.x * 6 + c] = sum;
    }
}
