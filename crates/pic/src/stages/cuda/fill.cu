// fill: particles of the start into the lists of an empty store. A warp takes 32 of its unit at a time, in different cells.

#include "lists.cu"
#include "team.cu"
#include "uniform_source.cu"

extern "C" __global__ void __launch_bounds__(BLOCK) fill(const __grid_constant__ UniformSource m, const __grid_constant__ Domain d,
                                                         const __grid_constant__ Store st, const double* offsets) {
    __shared__ ParticleStream streams[WARPS];
    const u32 warp = threadIdx.x / WARP;
    for (u32 unit = blockIdx.x; unit < st.units; unit += gridDim.x) {
        u32 tile = unit / st.parts, part = unit % st.parts;
        int first = first_cell(d, int(tile % d.tiles[0])), low = max(0, -first), x = first + low, y = int(tile / d.tiles[0]) * TY;
        u32 width = u32(max(0, min(TX - low, d.cells[0] - x))), cells = width * u32(min(TY, d.cells[1] - y));
        // Every `parts`th particle of each cell.
        u32 all = cells * ((m.per_cell + st.parts - 1 - part) / st.parts);
        ParticleStream& stream = streams[warp];
        if (lane_index() == 0) stream = {0, 0, 0, 0, unit, 0, 0, 0, 0};
        __syncwarp();
        PageList list = {NONE, 0, 0};
        for (u32 base = warp * WARP; base < all; base += BLOCK) {
            u32 n = base + lane_index(), cell = n % cells, k = n / cells * st.parts + part;
            ParticleValues p{};
            if (n < all) {
                u64 column = x + cell % width, row = d.row + y + cell / width;
                double v[5];
                make(m, offsets, column, row, k, v);
#pragma unroll
                for (int c = 0; c < 5; c++) p.v[c] = real(v[c]);
                p.cell = low + cell % width | cell / width << 8;
#if TAGGED
                p.tag = ((column * m.rows + row) << 20) + k + 1;
#endif
            }
            keep(st, stream, list, 0, __ballot_sync(FULL_WARP, n < all), true, p, [&](u32 homeless) {
                if (homeless >> lane_index() & 1) post(st, record(unit, p));
            });
            __syncwarp();
        }
        close(st, stream, list);
        __syncthreads();
    }
}

// Particles of the last column of cells, `column` from the start of the run, which a window has reached: into the inboxes, for the next step.
extern "C" __global__ void __launch_bounds__(256)
    make_column(const __grid_constant__ UniformSource m, const __grid_constant__ Domain d, const __grid_constant__ Store st,
                const double* offsets, u64 column) {
    __shared__ double scratch[8];
    const u64 n = thread_index();
    double energy = 0;
    if (n < u64(d.cells[1]) * m.per_cell) {
        // Neighbours lie in different cells.
        u32 row = u32(n % d.cells[1]), k = u32(n / d.cells[1]);
        u64 place = d.row + row;
        double v[5];
        make(m, offsets, column, place, k, v);
        energy = kinetic_energy(Vec3<double>{v[2], v[3], v[4]});
        ParticleValues p{};
#pragma unroll
        for (int c = 0; c < 5; c++) p.v[c] = real(v[c]);
        int x = d.cells[0] - 1, tile = int(row) / TY * d.tiles[0] + tile_column(d, x);
        p.cell = u32(x) | row % TY << 8;
#if WEIGHTED
        p.weight = 1;
#endif
#if TAGGED
        p.tag = ((column * m.rows + place) << 20) + k + 1;
#endif
        post(st, record(member_of(st, u32(tile) * st.parts + k % st.parts, u32(bits(p.v[0]))), p));
    }
    energy = block_reduce<Sum<double>>(energy, scratch);
    if (threadIdx.x == 0) add_exact(st.counters->out + 4, energy);
}
