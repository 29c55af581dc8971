// The gas and the particles of a tile as collisions see them.

#include "common.cu"
#include "physics.cuh"

#define PAIRS (SPECIES * (SPECIES + 1) / 2)
#define ROUNDS 64.0f
#define GROUPS (THREADS / LANES)

// Threads that share the attempts of a cell: more than a warp where a tile has few cells. Those of a warp find out by each other's words who
// waits for whom, those of a team by marks in shared memory.
#if TEAMS
#define TEAM (THREADS / CELLS)
#else
#define TEAM LANES
#endif

#include "gas.cuh"

// The particles of a tile in order.
struct Sorted {
    float *x, *y, *vx, *vy, *vz, *rotation;
    Level* level;
    u16* key;
    u32 *order, *tag;
};
struct Tally {
    u32 collisions, attempts, exceeded;
};

__device__ __forceinline__ float power_of(float x, float y) { return x > 0.0f ? exp2f(y * __log2f(x)) : 0.0f; }
__device__ __forceinline__ Vec3<float> velocity(const Sorted& s, u32 i) { return {s.vx[i], s.vy[i], s.vz[i]}; }
