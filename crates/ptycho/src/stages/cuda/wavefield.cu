// The wavefield preconditioner: arrays shaped as probe and object over the root of what stands against them, summed over all views;
// sums have its orders. The probe counts as it stands on whole pixels.

#include "sums.cu"

// Objects over the root of |P|^2, every mode alike. Grid: any number of blocks of TEAM.
extern "C" __global__ void __launch_bounds__(TEAM, CROWD) wavefield_object(Model model, Sums sums, C* values, real damping) {
    __shared__ real room[CREWS * TILE_ROWS * WARP];
    const int lane = lane_index(), crew = threadIdx.x / WARP;
    for (u32 n = blockIdx.x; n < sums.tile_count; n += gridDim.x) {
        const Tile tile = sums.tiles[n];
        real light[TILE_ROWS];
#pragma unroll
        for (int t = 0; t < TILE_ROWS; ++t) light[t] = 0;
        for (u32 at = tile.begin + crew; at < tile.end; at += CREWS) {
            const Visit visit = sums.visits[at];
            const int x = lane - (short)(visit.corner & 0xffff), y = -(visit.corner >> 16);
            const C* probe = model.probe + (u64)model.views[visit.view].probe * (PROBES * NX * NY) + x;
            for (int p = 0; p < PROBES; ++p) {
#pragma unroll
                for (int t = 0; t < TILE_ROWS; ++t) {
                    if ((u32)x < NX && (u32)(y + t) < NY) light[t] += power(probe[p * (NX * NY) + (y + t) * NX]);
                }
            }
        }
#pragma unroll
        for (int t = 0; t < TILE_ROWS; ++t) room[(crew * TILE_ROWS + t) * WARP + lane] = light[t];
        __syncthreads();
        const Storage storage = model.storages[tile.storage];
        const int row = tile.row + crew, col = tile.col + lane;
        if (crew < TILE_ROWS && row < storage.height && col < storage.width) {
            real sum = damping;
            for (int c = 0; c < CREWS; ++c) sum += room[(c * TILE_ROWS + crew) * WARP + lane];
            for (int o = 0; o < OBJECTS; ++o) {
                C* target = values + storage.offset + ((u64)o * storage.height + row) * storage.width + col;
                *target = *target * rsqrt(sum);
            }
        }
        __syncthreads();
    }
}

// |P|^2 of all views to the weights of the pool, by atomic additions. Grid: any number of blocks of TEAM.
extern "C" __global__ void __launch_bounds__(TEAM) wavefield_scatter(Model model, Sums sums) {
    for (u64 i = thread_index(); i < (u64)sums.views * (NX * NY); i += thread_count()) {
        const View view = model.views[i / (NX * NY)];
        const u32 pixel = i % (NX * NY);
        real light = 0;
        for (int p = 0; p < PROBES; ++p) light += power(model.probe[((u64)view.probe * PROBES + p) * (NX * NY) + pixel]);
        for (int o = 0; o < OBJECTS; ++o)
            atomicAdd(&sums.pool[patch_of(model, view, o) + (u64)(pixel / NX) * model.storages[view.object].width + pixel % NX].z,
                      light);
    }
}

// Objects over its root; the pool is left empty. Grid: any number of blocks of TEAM.
extern "C" __global__ void __launch_bounds__(TEAM) wavefield_divide(Sums sums, C* values, real damping) {
    for (u64 i = thread_index(); i < sums.values; i += thread_count()) {
        values[i] = values[i] * rsqrt(sums.pool[i].z + damping);
        sums.pool[i].z = 0;
    }
}

// |O|^2 over the views of each part, to its weights. Grid: (pixels / TEAM, parts).
extern "C" __global__ void __launch_bounds__(TEAM) wavefield_parts(Model model, Sums sums) {
    const u32 pixel = blockIdx.x * TEAM + threadIdx.x;
    if (pixel >= NX * NY) return;
    const Part part = sums.parts[blockIdx.y];
    real passed = 0;
    for (u32 j = part.begin; j < part.end; ++j) {
        const View view = model.views[sums.listed[j]];
        const u64 at = (u64)(pixel / NX) * model.storages[view.object].width + pixel % NX;
        for (int o = 0; o < OBJECTS; ++o) passed += power(model.object[patch_of(model, view, o) + at]);
    }
    sums.weights[(u64)blockIdx.y * (NX * NY) + pixel] = passed;
}

// Probes over the root of the sum over the parts. Grid: (pixels / TEAM, sets).
extern "C" __global__ void __launch_bounds__(TEAM) wavefield_probe(Sums sums, C* values, real damping) {
    const u32 pixel = blockIdx.x * TEAM + threadIdx.x, set = blockIdx.y;
    if (pixel >= NX * NY) return;
    real sum = damping;
    const u32 end = sums.bundles[sums.first_bundle[set + 1]];
    for (u32 p = sums.bundles[sums.first_bundle[set]]; p < end; ++p) sum += sums.weights[(u64)p * (NX * NY) + pixel];
    for (int q = 0; q < PROBES; ++q) {
        C* target = values + ((u64)set * PROBES + q) * (NX * NY) + pixel;
        *target = *target * rsqrt(sum);
    }
}
