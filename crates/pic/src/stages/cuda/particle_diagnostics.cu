// Diagnostics of particles that do not move them: charge, extents, histograms, those with a tag. A block goes through all particles
// of a unit.

#include "charge.cu"
#include "settle.cu"

// Every particle of the unit of each block.
template <class F> __device__ __forceinline__ void every(const Domain& d, const Store& st, F f) {
    for (u32 unit = blockIdx.x; unit < all_units(st); unit += gridDim.x) {
        Tile tile = tile_of(d, st, unit);
        // The lists of the warps, and what came.
        for (u32 list = 0; list <= WARPS; list++) {
            u32 n = list < WARPS ? st.count[unit * WARPS + list] : st.now.count[unit];
            const u32* pages =
                list < WARPS ? st.table + u64(unit * WARPS + list) * st.room : st.now.table + u64(unit) * st.inbox_room;
            for (u32 k = threadIdx.x; k < n; k += blockDim.x) f(tile, slot_at(st, pages[k >> SHIFT], k));
        }
    }
}

extern "C" __global__ void __launch_bounds__(256)
    charge(const __grid_constant__ Domain d, const __grid_constant__ Store st, const __grid_constant__ Push p, long long* far) {
    every(d, st, [&](const Tile& tile, const ParticleSlot& slot) { add_charge(d, tile, slot, p, far); });
}

#include "edges.cu"

__device__ __forceinline__ double column_of(const Domain& d, const Bins& b, const Tile& tile, const ParticleSlot& slot) {
    u32 cell = slot.cell();
    Quad q = slot.four();
    double x = q.z, y = q.w, z = slot.rest(0);
    switch (b.column) {
        case 0:
            return b.position[0] + b.position[1] * (double(tile.x + int(cell & 255)) + 0.5 + double(q.x));
        case 1:
            return b.position[0] + b.position[1] * (double(d.row + tile.y + int(cell >> 8)) + 0.5 + double(q.y));
        case 2:
            return x;
        case 3:
            return y;
        case 4:
            return z;
        case 5:
            return sqrt(1.0 + x * x + y * y + z * z);
        default:
            return double(slot.weight());
    }
}

// Least and greatest finite value, two of each block.
extern "C" __global__ void __launch_bounds__(256)
    extent(const __grid_constant__ Domain d, const __grid_constant__ Store st, const __grid_constant__ Bins b, double* out) {
    __shared__ double scratch[8];
    double low = Limits<double>::high(), high = Limits<double>::low();
    every(d, st, [&](const Tile& tile, const ParticleSlot& slot) {
        double v = column_of(d, b, tile, slot);
        if (v - v == 0.0) {
            low = fmin(low, v);
            high = fmax(high, v);
        }
    });
    low = block_reduce<Min<double>>(low, scratch);
    high = block_reduce<Max<double>>(high, scratch);
    if (threadIdx.x == 0) {
        out[2 * blockIdx.x] = low;
        out[2 * blockIdx.x + 1] = high;
    }
}

// The bin of a value; -1: none. The upper edge belongs to the last one.
__device__ __forceinline__ int bin_of(const Bins& b, double v) {
    double bin = floor((v - b.from) / b.spacing);
    if (bin == double(b.count) && v <= b.from + b.spacing * double(b.count)) bin -= 1.0;
    return bin >= 0.0 && bin < double(b.count) ? int(bin) : -1;
}

// Weights in the bins of two axes, in whole numbers and in units of 2^-64: sums that do not depend on the order. The edges of the
// axes lie behind them.
extern "C" __global__ void __launch_bounds__(256)
    bins(const __grid_constant__ Domain d, const __grid_constant__ Store st, const __grid_constant__ Bins x_axis,
         const __grid_constant__ Bins y_axis, u64* sums) {
    Bins a = x_axis, b = y_axis;
    const double* edges = (const double*)(sums + 2 * u64(a.count) * b.count);
    a.from = edges[0], a.spacing = edges[1], b.from = edges[2], b.spacing = edges[3];
    every(d, st, [&](const Tile& tile, const ParticleSlot& slot) {
        int x = bin_of(a, column_of(d, a, tile, slot)), y = bin_of(b, column_of(d, b, tile, slot));
        if (x < 0 || y < 0) return;
        u64* sum = sums + 2 * (u64(y) * a.count + x);
        double weight = double(slot.weight()), all = floor(weight);
        u64 more = u64((weight - all) * 18446744073709551616.0), whole = u64(all);
        if (more) {
            u64 before = atomicAdd(sum + 1, more);
            whole += u64(before + more < before);
        }
        if (whole) atomicAdd(sum, whole);
    });
}

// Particles there are, those that came included: one block.
extern "C" __global__ void __launch_bounds__(1024) number(const __grid_constant__ Store st, double* out) {
    __shared__ double scratch[WARP];
    double sum = 0;
    u32 units = all_units(st);
    for (u32 k = threadIdx.x; k < units * WARPS; k += 1024) sum += st.count[k];
    for (u32 k = threadIdx.x; k < units; k += 1024) sum += st.now.count[k];
    sum = block_reduce<Sum<double>>(sum, scratch);
    if (threadIdx.x == 0) *out = sum;
}

// Position in cells and momentum of those whose tag is among `n`, which rise.
extern "C" __global__ void __launch_bounds__(256)
    follow(const __grid_constant__ Domain d, const __grid_constant__ Store st, const u64* tags, u32 n, double* out) {
    every(d, st, [&](const Tile& tile, const ParticleSlot& slot) {
        u64 tag = slot.tag();
        u32 low = 0, high = n;
        while (low < high) {
            u32 middle = (low + high) / 2;
            if (tags[middle] < tag) low = middle + 1;
            else high = middle;
        }
        if (low == n || tags[low] != tag) return;
        u32 cell = slot.cell();
        Quad q = slot.four();
        double* to = out + 5 * u64(low);
        to[0] = double(tile.x + int(cell & 255)) + 0.5 + double(q.x);
        to[1] = double(d.row + tile.y + int(cell >> 8)) + 0.5 + double(q.y);
        to[2] = q.z;
        to[3] = q.w;
        to[4] = slot.rest(0);
    });
}
