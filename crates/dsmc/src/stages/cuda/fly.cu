// The kernel of a step: see advance.cu.

#include "arrive.cu"
#include "tile.cu"
#include "turns.cu"

template <int MODE> __global__ void __launch_bounds__(THREADS, RESIDENT)
    advance(const __grid_constant__ Store st, const __grid_constant__ Gas gas, const __grid_constant__ Pass p) {
    extern __shared__ __align__(16) char shared[];
    __shared__ u32 start[KEYS + 1], near[9], marks[TEAMS ? MARKS : 1];
    in_turn();
    if (halted(st)) return;
#if RECORDED
    const u32 tile = own_tile(st, blockIdx.x);
#else
    __shared__ u32 tile;
    if (threadIdx.x == 0) tile = tile_in_turn(st);
    __syncthreads();
    if (tile == NONE) return;
#endif
    // All numbers of the tile are asked for before one is looked at.
    u32 base = st.next_first[tile], n = st.next_first[tile + 1] - base;
    u32 begin = st.first[tile], own = st.first[tile + 1] - begin, near_n = st.near_n[tile], far_n = st.far_n[tile];
#if RECORDED
    Lists lists(st, tile);
    u32 chain = st.chains[tile * THREADS + threadIdx.x];
#endif
    // Particles injected behind the regions are in place; those of a step have been counted, or will be. The last block always comes here.
    if (MODE == 0 && blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) st.counters->fresh = st.counters->far = st.counters->near = 0;
#if !RECORDED
    if (was_first(st, tile, n)) return;
#endif
    if (threadIdx.x < 9) near[threadIdx.x] = 0;
    if (n == 0 && !FOLLOWS) {
        if (threadIdx.x < 9) st.near[tile * 9 + threadIdx.x] = 0;
        if (threadIdx.x < LISTS) {
            st.left[tile * LISTS + threadIdx.x] = 0;
            if (!RECORDED) st.special[tile * LISTS + threadIdx.x] = 0;
        }
        if (threadIdx.x == 0) st.stay[tile] = 0;
        return;
    }
    Source from{begin, own, own + near_n + far_n, base, arrivals(st) + base};
    char* columns = shared + (WARPS * KEYS * sizeof(Count<true>) + 3) / 4 * 4;
#if RECORDED
    if (near_n > 0) from_neighbours(st, lists, base);
    if (far_n > 0)
        from_afar(st, tile, chain, arrivals(st) + base + near_n, far_n, reinterpret_cast<u32*>(columns), far_n <= CAPACITY);
    __syncthreads();
#endif
    if (n <= CAPACITY && from.all <= KEEP * THREADS) {
        work<MODE, true>(st, gas, p, sorted_in(columns), from, tile, n, start, shared, near, marks);
    } else {
        // They are put in order where the list of those that come lies.
        for (u32 k = threadIdx.x; k < from.all - from.own; k += THREADS) st.list[base + k] = from.arrive[k];
        from.arrive = st.list + base;
        __syncthreads();
        work<MODE, false>(st, gas, p, sorted_at(st, base), from, tile, n, start, shared, near, marks);
    }
}
