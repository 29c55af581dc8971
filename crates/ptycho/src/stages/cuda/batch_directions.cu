// LSQML in pieces: the directions of object and probe from the residual waves of a batch. Grids as in batches.cu where nothing else is said.

#include "batches.cu"
#include "adds.cu"

// conj(P) chi and |P|^2 over `count` views in their order, for a tile of 32 by TEAM / 32 pixels of object `number`; the greatest |P|^2 to `largest`.
// Grid: (tiles along a row, tiles along a column).
extern "C" __global__ void __launch_bounds__(TEAM)
    object_direction(Model model, Batch batch, u32 number, u32 count, C* to, real* norms, word* largest) {
    __shared__ u32 hits[TEAM], crowd[TEAM / WARP];
    const Storage storage = model.storages[number];
    const i32 left = blockIdx.x * WARP, top = blockIdx.y * (TEAM / WARP), lane = lane_index(), crew = threadIdx.x / WARP;
    const i32 col = left + lane, row = top + crew;
    C sum[OBJECTS];
    real norm = 0;
#pragma unroll
    for (int o = 0; o < OBJECTS; ++o) sum[o] = make_real2(0, 0);
    for (u32 base = 0; base < count; base += TEAM) {
        // Those of the next views that touch the tile, in their order.
        bool touches = false;
        if (base + threadIdx.x < count) {
            const View v = model.views[view_number(batch, base + threadIdx.x)];
            touches =
                v.object == number && v.col < left + WARP && v.col + NX > left && v.row < top + TEAM / WARP && v.row + NY > top;
        }
        const u32 all = __ballot_sync(FULL_WARP, touches);
        if (lane == 0) crowd[crew] = __popc(all);
        __syncthreads();
        u32 before = __popc(all & ((1u << lane) - 1)), found = 0;
        for (i32 w = 0; w < TEAM / WARP; ++w) before += w < crew ? crowd[w] : 0, found += crowd[w];
        if (touches) hits[before] = base + threadIdx.x;
        __syncthreads();
        for (u32 h = 0; h < found; ++h) {
            const View v = model.views[view_number(batch, hits[h])];
            const u32 x = col - v.col, y = row - v.row;
            if (x >= NX || y >= NY) continue;
            for (u32 p = 0; p < PROBES; ++p) {
                const C probe = model.probe[((u64)probe_number(batch, v, hits[h]) * PROBES + p) * (NX * NY) + y * NX + x];
                norm += power(probe);
#pragma unroll
                for (int o = 0; o < OBJECTS; ++o)
                    sum[o] = sum[o] + conj(probe) * work_of(batch, hits[h], p * OBJECTS + o)[y * NX + x];
            }
        }
        __syncthreads();
    }
    const bool inside = row < (i32)storage.height && col < (i32)storage.width;
    if (inside) {
        const u64 at = (u64)row * storage.width + col, layer = (u64)storage.height * storage.width;
        norms[at] = norm;
#pragma unroll
        for (int o = 0; o < OBJECTS; ++o) to[storage.offset + o * layer + at] = sum[o];
    }
    put_greatest(inside ? norm : 0.0f, largest);
}

// Sums for all objects by atomic additions to what is zero, without the greatest; the norms of the objects stand one behind the other.
extern "C" __global__ void __launch_bounds__(TEAM) object_scatter(Model model, Batch batch, C* to, real* norms) {
    const View view = model.views[view_number(batch, blockIdx.y)];
    const Storage storage = model.storages[view.object];
    const C* probe = model.probe + (u64)probe_number(batch, view, blockIdx.y) * PROBES * (NX * NY);
    EACH_PIXEL(pixel) {
        const u64 at = (u64)(view.row + pixel / NX) * storage.width + view.col + pixel % NX;
        real norm = 0;
        for (u32 p = 0; p < PROBES; ++p) norm += power(probe[p * (NX * NY) + pixel]);
        atomicAdd(norms + storage.offset / OBJECTS + at, norm);
        for (u32 o = 0; o < OBJECTS; ++o) {
            C sum = make_real2(0, 0);
            for (u32 p = 0; p < PROBES; ++p)
                sum = sum + conj(probe[p * (NX * NY) + pixel]) * work_of(batch, blockIdx.y, p * OBJECTS + o)[pixel];
            add_to(to + storage.offset + (u64)o * storage.height * storage.width + at, sum);
        }
    }
}

// The greatest of values that are not negative, to `largest`. Grid: any number of blocks.
extern "C" __global__ void __launch_bounds__(TEAM) greatest_of(const real* values, u64 count, word* largest) {
    real most = 0;
    for (u64 i = thread_index(); i < count; i += thread_count()) most = fmax(most, values[i]);
    put_greatest(most, largest);
}

// conj(O) chi and |O|^2 over the views of set `set`; the greatest |O|^2 to `largest`. Grid: (CHUNKS).
extern "C" __global__ void __launch_bounds__(TEAM)
    probe_direction(Model model, Batch batch, u32 set, u32 count, C* to, real* norms, word* largest) {
    real most = 0;
    EACH_PIXEL(pixel) {
        C sum[PROBES];
        real norm = 0;
#pragma unroll
        for (int p = 0; p < PROBES; ++p) sum[p] = make_real2(0, 0);
        for (u32 i = 0; i < count; ++i) {
            const View view = model.views[view_number(batch, i)];
            if (view.probe != set) continue;
            for (u32 o = 0; o < OBJECTS; ++o) {
                const C object = patch_value(model, view, o, pixel, -1);
                norm += power(object);
#pragma unroll
                for (int p = 0; p < PROBES; ++p) sum[p] = sum[p] + conj(object) * work_of(batch, i, p * OBJECTS + o)[pixel];
            }
        }
        norms[pixel] = norm;
        most = fmax(most, norm);
#pragma unroll
        for (int p = 0; p < PROBES; ++p) to[((u64)set * PROBES + p) * (NX * NY) + pixel] = sum[p];
    }
    put_greatest(most, largest);
}

// values [layers][count] over norms [count] and a part of the largest; nothing where nothing is known.
extern "C" __global__ void __launch_bounds__(TEAM)
    divide(C* values, const real* norms, const word* largest, u64 count, u32 layers, real part) {
    const real damping = part * from_bits(*largest);
    for (u64 i = thread_index(); i < count; i += thread_count()) {
        const real under = norms[i] + damping, over = under > 0 ? 1 / under : 0.0f;
        for (u32 l = 0; l < layers; ++l) values[l * count + i] = values[l * count + i] * over;
    }
}
