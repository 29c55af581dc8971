// Transforms of a frame in registers of a cluster, in the passes and exchanges that clustered.cu tells.

#include "clustered_frame.cu"
#include "twisted.cu"

// Forward until the ranks' values are on their way.
__device__ __forceinline__ void forward(C* v, const Shared& s) {
    const TableRoots<-1> table = {s.roots};
    twisted<16>(v, KnownRoots<-1>(), 0);
    across_lanes(v, s.room);
    const int k1 = Place().lane;
    twisted<8>(v, table, k1), twisted<8>(v + 8, table, k1);
#pragma unroll
    for (int r = 0; r < 8; ++r) {
        const C a = v[r], b = v[r + 8];
        v[r] = a + b, v[r + 8] = a - b;
    }
    across_teams(v, s.room);
    cluster_ready();
    if (Place().ky0()) twisted<16>(v, KnownRoots<-1>(), 4);
    else twisted<16>(v, KnownRoots<-1>(), 0);
    send_to_ranks(v, s);
}
// The rest of it.
__device__ __forceinline__ void forward_over_ranks(C* v, const Shared& s) {
    const TableRoots<-1> table = {s.roots};
    const Place p;
    const int first = p.ky0() + 2 * p.rank;
#pragma unroll
    for (int m = 0; m < 4; ++m) twisted<4>(v + 4 * m, table, first + 8 * m);
}
__device__ __forceinline__ void inverse(C* v, const Shared& s) {
    const TableRoots<1> table = {s.roots};
#pragma unroll
    for (int m = 0; m < 4; ++m) twisted<4>(v + 4 * m, KnownRoots<1>(), 0);
    send_to_ranks(v, s);
    take_from_ranks(v, s);
    const int rank = Place().rank;
    if (rank == 0) twisted<16>(v, KnownRoots<1>(), 0);
    else if (rank == 1) twisted<16>(v, KnownRoots<1>(), 2);
    else if (rank == 2) twisted<16>(v, KnownRoots<1>(), 4);
    else twisted<16>(v, KnownRoots<1>(), 6);
    wait_copies();  // of what `fetch_storage` asked for
    across_teams(v, s.room);
    {
        const Place p;
        const C w = conj(s.roots[4 * p.team + p.rank]);
#pragma unroll
        for (int r = 0; r < 8; ++r) butterfly(v[r], v[r + 8], w);
    }
    twisted<8>(v, KnownRoots<1>(), 0), twisted<8>(v + 8, KnownRoots<1>(), 0);
    across_lanes(v, s.room);
    twisted<16>(v, table, Place().x());
}
