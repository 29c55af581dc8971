// Particles of a species as a caller between two steps sees and changes them: in their order, tile by tile, once none is on its
// way. A block a tile, of which each thread has slots that follow each other.

#include "common.cu"
#include "outside.cuh"

struct Slots {
    u32 begin, end;
};
__device__ __forceinline__ Slots slots_of_thread(const Store& st) {
    u32 begin = st.first[blockIdx.x], end = st.first[blockIdx.x + 1], each = (end - begin + blockDim.x - 1) / blockDim.x;
    u32 from = least(begin + threadIdx.x * each, end);
    return {from, least(from + each, end)};
}

__device__ __forceinline__ u32 count(const Store& st, const Slots& slots, u32 species) {
    u32 n = 0;
    for (u32 k = slots.begin; k < slots.end; k++) n += st.now.key[k] % SPECIES == species;
    return n;
}

// Particles of the species in each tile.
extern "C" __global__ void __launch_bounds__(256) count_species(const __grid_constant__ Store st, u32 species, u32* counts) {
    __shared__ u32 scratch[8];
    u32 n = block_reduce<Sum<u32>>(count(st, slots_of_thread(st), species), scratch);
    if (threadIdx.x == 0) counts[blockIdx.x] = n;
}

// Number among the particles of the species of the first one of a thread. Every thread of a block must come here.
__device__ __forceinline__ u64 number_of_first(const Store& st, const Slots& slots, u32 species, const u64* firsts) {
    __shared__ u32 sums[8];
    u32 own = count(st, slots, species), until = warp_scan(own);
    if (lane_index() == WARP - 1) sums[threadIdx.x / WARP] = until;
    __syncthreads();
    u64 number = firsts[blockIdx.x] + until - own;
    for (u32 warp = 0; warp < threadIdx.x / WARP; warp++) number += sums[warp];
    return number;
}

// Columns as records have them; an address of 0 is not wanted.
extern "C" __global__ void __launch_bounds__(256)
    read_species(const __grid_constant__ Store st, const __grid_constant__ Outside o) {
    Slots slots = slots_of_thread(st);
    u64 to = number_of_first(st, slots, o.species, o.firsts);
    int2 tile = tile_coordinates(st, blockIdx.x);
    const float* velocity[3] = {st.now.vx, st.now.vy, st.now.vz};
    for (u32 k = slots.begin; k < slots.end; k++) {
        u32 key = st.now.key[k];
        if (key % SPECIES != o.species) continue;
        u32 slot = key / SPECIES;
        double x = double((u32(tile.x) << SX) + (slot & ((1 << SX) - 1))), y = double((u32(tile.y) << SY) + (slot >> SX));
        if (o.position[0]) o.position[0][to] = o.origin[0] + (x + double(st.now.x[k])) * o.h[0];
        if (o.position[1]) o.position[1][to] = o.origin[1] + (y + double(st.now.y[k])) * o.h[1];
        for (u32 c = 0; c < 3; c++)
            if (o.velocity[c]) o.velocity[c][to] = velocity[c][k];
        to++;
    }
}

__device__ __forceinline__ double speed(const Store& st, u32 k) {
    double x = st.now.vx[k], y = st.now.vy[k], z = st.now.vz[k];
    return sqrt(x * x + y * y + z * z);
}

// Puts velocities in place, and tells if a particle is faster than it was.
extern "C" __global__ void __launch_bounds__(256)
    put_velocities(const __grid_constant__ Store st, const __grid_constant__ Given given, u32* faster) {
    Slots slots = slots_of_thread(st);
    u64 from = number_of_first(st, slots, given.species, given.firsts);
    float* velocity[3] = {st.now.vx, st.now.vy, st.now.vz};
    for (u32 k = slots.begin; k < slots.end; k++) {
        if (st.now.key[k] % SPECIES != given.species) continue;
        double before = speed(st, k);
        for (u32 c = 0; c < 3; c++) {
            if (given.single[c]) velocity[c][k] = given.single[c][from];
            if (given.wide[c]) velocity[c][k] = float(given.wide[c][from]);
        }
        if (speed(st, k) > before) *faster = 1;
        from++;
    }
}

// Largest speed of all particles of each tile.
extern "C" __global__ void __launch_bounds__(256) fastest_of_tiles(const __grid_constant__ Store st, double* largest) {
    __shared__ double scratch[8];
    Slots slots = slots_of_thread(st);
    double most = 0.0;
    for (u32 k = slots.begin; k < slots.end; k++) most = fmax(most, speed(st, k));
    most = block_reduce<Max<double>>(most, scratch);
    if (threadIdx.x == 0) largest[blockIdx.x] = most;
}
