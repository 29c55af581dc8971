// Weights of cells, and the copies that they make.

#include "common.cu"
#include "trajectory.cu"

// Number weight of a particle in a cell, over the model's weight.
__device__ __forceinline__ double weight_at(const Store& st, const Domain& d, const int* cell) {
    return WEIGHTED ? double(d.weights[cell_in_domain(st, cell[0], cell[1])]) : 1.0;
}

// Number of copies of a particle of number weight `weight` where it arrives: `Places::put` of stages/cpu/fly.rs. Copies are not
// each other's nearest-neighbour partners.
__device__ __forceinline__ u32 copies_at(const Store& st, const Domain& d, const Flight& f, double weight, u32 slot, Stream& u) {
    u32 n = 1;
#if WEIGHTED
    double here = weight_at(st, d, f.cell);
    if (here != weight) {
        n = u32(weight / here + u.open());
        if (n == 0) atomicAdd(&st.counters->dropped, 1ull);
        if (n > 1) atomicAdd(&st.counters->copied, u64(n - 1));
        if (TAGGED && n > 1 && st.next.tag[slot] == 0) st.next.tag[slot] = u.word() | 1;
    }
#endif
    return n;
}
