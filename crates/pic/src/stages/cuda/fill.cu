// fill: particles of the start into the lists of an empty store. A warp takes 32 of its unit at a time, in different cells.

extern "C" __global__ void __launch_bounds__(BLOCK)
    fill(const __grid_constant__ UniformSource m, const __grid_constant__ Store st, const double* offsets, u32 nx, u32 ny) {
    __shared__ ParticleStream streams[WARPS];
    const u32 warp = threadIdx.x / WARP, tiles = (nx + TX - 1) / TX;
    for (u32 unit = blockIdx.x; unit < st.units; unit += gridDim.x) {
        u32 tile = unit / st.parts, part = unit % st.parts, x = tile % tiles * TX, y = tile / tiles * TY;
        u32 width = min(u32(TX), nx - x), cells = width * min(u32(TY), ny - y);
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
                u64 column = x + cell % width, row = y + cell / width;
                double v[5];
                make(m, offsets, column, row, k, v);
#pragma unroll
                for (int c = 0; c < 5; c++) p.v[c] = real(v[c]);
                p.cell = cell % width | cell / width << 8;
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
    make_column(const __grid_constant__ UniformSource m, const __grid_constant__ Store st, const double* offsets, u32 nx, u32 ny, u64 column) {
    __shared__ double scratch[8];
    const u64 n = thread_index();
    double energy = 0;
    if (n < u64(ny) * m.per_cell) {
        // Neighbours lie in different cells.
        u32 row = u32(n % ny), k = u32(n / ny);
        double v[5];
        make(m, offsets, column, row, k, v);
        energy = kinetic_energy(Vec3<double>{v[2], v[3], v[4]});
        ParticleValues p{};
#pragma unroll
        for (int c = 0; c < 5; c++) p.v[c] = real(v[c]);
        p.cell = (nx - 1) % TX | row % TY << 8;
#if WEIGHTED
        p.weight = 1;
#endif
#if TAGGED
        p.tag = ((column * m.rows + row) << 20) + k + 1;
#endif
        u32 tile = row / TY * ((nx + TX - 1) / TX) + (nx - 1) / TX;
        post(st, record(member_of(st, tile * st.parts + k % st.parts, u32(bits(p.v[0]))), p));
    }
    energy = block_reduce<Sum<double>>(energy, scratch);
    if (threadIdx.x == 0) add_exact(st.counters->out + 4, energy);
}
