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

struct Kinetics {
    float rate, power, soft, share[2], thermal, pool;  // Kinetics of collide.rs
    u32 inelastic, species[2];
    int chances[2][MODES];  // of vibration by Millikan and White: index of each one's table, or -1
};
struct Modes {
    u32 rotation, count;       // modes of vibration
    float z_rotation, t_star;  // t_star: Parker's, 0 where z is constant
    float theta[MODES], degeneracy[MODES], z[MODES];
};
struct Part {
    float fraction;
    u32 first, count;  // outline
};
struct Gas {
    const Kinetics* pairs;
    const Modes* modes;
    const u32* lookup;                     // [a * SPECIES + b]
    const float* rate;                     // by tile and cell
    float *sigma_g_max, *seen, *attempts;  // by pair, tile and cell
    const u32* divided;  // by tile and cell: first part, with their number in the upper 8 bits; 0 where it is whole
    const Part* parts;   // the first is unused
    const int2* outline;
    u64 seed, step, stride;  // stride: tiles * CELLS
    const float* chances;    // [table][point]
    float across[2];         // squared lengths of a cell's edges over that of the first
    u32 jeans, unused;
};

static_assert(sizeof(Gas) == GAS_BYTES, "as arguments.rs has it");

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
