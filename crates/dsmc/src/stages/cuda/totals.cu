// Sums over the particles of a tile: number, mass times velocity, half mass times its square, internal energy over k. theta:
// [mode][species], 0 where there is none. Those that have left a tile in this step count with it.

#include "common.cu"

extern "C" __global__ void __launch_bounds__(256)
    totals(const __grid_constant__ Store st, const double* mass, const double* theta, const float* weights, double* out) {
    __shared__ double scratch[8];
    double sums[6] = {};
    const u32 tile = own_tile(st, blockIdx.x), end = st.first[tile + 1];
    for (u32 k = st.first[tile] + threadIdx.x; k < end; k += blockDim.x) {
        u32 key = st.now.key[k];
        if (key == GONE) continue;
        u32 s = (key & ~LEFT) % SPECIES;
        // All are in order where cells have weights.
        double weight = WEIGHTED ? double(weights[u64(number_in_domain(st, tile)) * CELLS + (key & ~LEFT) / SPECIES]) : 1.0;
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
