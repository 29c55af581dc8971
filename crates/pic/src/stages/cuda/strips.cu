// Rows of nodes at the ends of a part of a run that go to the parts beside it and come from there.
// Launch: a thread for each value of a row with its guards, blockIdx.y the array and the row of the strip, blockIdx.z the end, 0 the lower one. An end
// behind which no part is has no slab.

#include "yee_grid.cu"

#define STRIP 3  // rows of a strip
#define SLAB(below, above) (blockIdx.z ? above : below)

// Sums of the current: guards below and the first row, or the row behind the last one and guards above it, each as it is summed here.
__device__ __forceinline__ int summed_row(const YeeGrid& l, int end, int row) { return end ? l.cells[1] + row : row + 1 - STRIP; }
extern "C" __global__ void __launch_bounds__(256)
    send_sums(const __grid_constant__ YeeGrid l, const long long* sums, long long length, long long* below, long long* above) {
    long long* to = SLAB(below, above);
    int end = blockIdx.z, x = int(blockIdx.x * 256 + threadIdx.x), c = blockIdx.y / STRIP, row = blockIdx.y % STRIP;
    if (to && x < l.pitch)
        to[blockIdx.y * l.pitch + x] = sums[c * length + (long long)(summed_row(l, end, row) + BELOW) * l.pitch + x];
}
// Sums of the other part are added: its guards to the rows inside, its first row to the guard that is the same node. Guards of `clear`, the
// sums of the step before, are zero afterwards.
extern "C" __global__ void __launch_bounds__(256) add_sums(const __grid_constant__ YeeGrid l, long long* sums, long long length,
                                                           const long long* below, const long long* above, long long* clear) {
    const long long* from = SLAB(below, above);
    int end = blockIdx.z, x = int(blockIdx.x * 256 + threadIdx.x), c = blockIdx.y / STRIP, row = blockIdx.y % STRIP;
    if (!from || x >= l.pitch) return;
    int j = end ? l.cells[1] + row + 1 - STRIP : row;
    // Of a part with fewer than five rows both ends add to one.
    atomicAdd((u64*)(sums + c * length + (long long)(j + BELOW) * l.pitch + x), u64(from[blockIdx.y * l.pitch + x]));
    int guard = summed_row(l, end, row);
    if (clear && (guard < 0 || guard >= l.cells[1])) clear[c * length + (long long)(guard + BELOW) * l.pitch + x] = 0;
}

// E and B: rows inside that are guards of the other part, of which it has BELOW below and ABOVE above.
__device__ __forceinline__ real* field_of(const YeeGrid& l, int c) { return c < 3 ? l.e[c] : l.b[c - 3]; }
extern "C" __global__ void __launch_bounds__(256) send_fields(const __grid_constant__ YeeGrid l, real* below, real* above) {
    real* to = SLAB(below, above);
    int end = blockIdx.z, x = int(blockIdx.x * 256 + threadIdx.x), c = blockIdx.y / STRIP, row = blockIdx.y % STRIP;
    int j = end ? l.cells[1] - BELOW + row : row;
    if (to && x < l.pitch && row < (end ? BELOW : ABOVE))
        to[blockIdx.y * l.pitch + x] = field_of(l, c)[(long long)(j + BELOW) * l.pitch + x];
}
extern "C" __global__ void __launch_bounds__(256)
    take_fields(const __grid_constant__ YeeGrid l, const real* below, const real* above) {
    const real* from = SLAB(below, above);
    int end = blockIdx.z, x = int(blockIdx.x * 256 + threadIdx.x), c = blockIdx.y / STRIP, row = blockIdx.y % STRIP;
    int j = end ? l.cells[1] + row : row - BELOW;
    if (from && x < l.pitch && row < (end ? ABOVE : BELOW))
        field_of(l, c)[(long long)(j + BELOW) * l.pitch + x] = from[blockIdx.y * l.pitch + x];
}

// Rows that a filter reaches beyond the ends: `reach` rows inside, from the end on, of an array of T.
template <class T> __device__ __forceinline__ void send_reached(const YeeGrid& l, const T* array, int row, T* to) {
    int x = int(blockIdx.x * 256 + threadIdx.x), j = blockIdx.z ? l.cells[1] - 1 - row : row;
    if (to && x < l.pitch) to[blockIdx.y * l.pitch + x] = array[(long long)(j + BELOW) * l.pitch + x];
}
extern "C" __global__ void __launch_bounds__(256)
    send_current(const __grid_constant__ YeeGrid l, int reach, real* below, real* above) {
    send_reached(l, l.scratch[blockIdx.y / reach], blockIdx.y % reach, SLAB(below, above));
}
extern "C" __global__ void __launch_bounds__(256)
    send_charge(const __grid_constant__ YeeGrid l, const double* charge, double* below, double* above) {
    send_reached(l, charge, blockIdx.y, SLAB(below, above));
}
