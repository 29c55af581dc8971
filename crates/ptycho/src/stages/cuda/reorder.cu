// Moduli of frames with their pixels in another order: to[frame][i] = from[frame][order[i]]. Grid: any number of blocks of TEAM.

#include "model.cu"

extern "C" __global__ void __launch_bounds__(TEAM) reorder_frames(const float* from, const u32* order, float* to, u64 values) {
    for (u64 i = thread_index(); i < values; i += thread_count()) to[i] = from[i - i % (NX * NY) + order[i % (NX * NY)]];
}
