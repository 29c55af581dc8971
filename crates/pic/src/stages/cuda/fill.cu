// fill: particles of the start into the lists of an empty store. A warp takes 32 of its unit at a time, in different cells.

extern "C" __global__ void __launch_bounds__(BLOCK)
    fill(const __grid_constant__ Made m, const __grid_constant__ Store st, const double* offsets, u32 nx, u32 ny) {
    __shared__ Stream streams[WARPS];
    const u32 warp = threadIdx.x / WARP, tiles = (nx + TX - 1) / TX;
    for (u32 unit = blockIdx.x; unit < st.units; unit += gridDim.x) {
        u32 tile = unit / st.parts, part = unit % st.parts, x = tile % tiles * TX, y = tile / tiles * TY;
        u32 width = min(u32(TX), nx - x), cells = width * min(u32(TY), ny - y);
        // Every `parts`th particle of each cell.
        u32 all = cells * ((m.per_cell + st.parts - 1 - part) / st.parts);
        Stream& stream = streams[warp];
        if (lane_index() == 0) stream = {0, 0, 0, 0, unit, 0, 0, 0, 0};
        __syncwarp();
        List list = {NONE, 0, 0};
        for (u32 base = warp * WARP; base < all; base += BLOCK) {
            u32 n = base + lane_index(), cell = n % cells, k = n / cells * st.parts + part;
            Slot p{};
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
