// The Fourier step with transforms of our own, for frames whose edges have small factors: rows, then columns, a tile of lines a block, and what
// is done pixel by pixel within these passes; same state. Between the passes waves stand in `exits`. Columns are in columns.cu or
// apart.cu.

#include "lines.cu"

// P O of `waves` waves (views from `first` on), and their rows' transforms. Grid: (lines / ROWS).
extern "C" __global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS) rows_out(Model model, C* exits, u32 first, u32 waves) {
    let_next_kernel_start(), wait_for_previous_kernel();
    extern __shared__ C room[];
    C* to = exits + (u64)first * MODES * (NX * NY);
    lines<Row, -1>(
        room,
        [&](C* v, int line, int i) {
            const u32 row = blockIdx.x * ROWS + line, w = row / NY < waves ? row / NY : waves - 1, y = row % NY,
                      n = first + w / MODES, k = w % MODES;
            const View view = model.views[n];
            const C* p = model.probe + (((u64)view.probe * PROBES + k / OBJECTS) * NY + y) * NX + i;
            const C* o = model.object + patch_of(model, view, k % OBJECTS) + (u64)y * model.storages[view.object].width + i;
            EACH_LOADED(Row, a) v[a] = p[a * Row::REST] * o[a * Row::REST];
        },
        [&](const C* v, int line, int i) {
            const u32 row = blockIdx.x * ROWS + line;
            if (row < waves * NY) EACH_STORED(Row, j) to[(u64)row * NX + STORED(Row, i, j)] = v[j];
        });
}

// Inverse transforms of the rows, in place. Grid: (lines / ROWS).
extern "C" __global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS) rows_back(C* exits, u32 first, u32 waves) {
    let_next_kernel_start(), wait_for_previous_kernel();
    extern __shared__ C room[];
    C* to = exits + (u64)first * MODES * (NX * NY);
    lines<Row, 1>(
        room,
        [&](C* v, int line, int i) {
            const u32 row = blockIdx.x * ROWS + line < waves * NY ? blockIdx.x * ROWS + line : 0;
            EACH_LOADED(Row, a) v[a] = to[(u64)row * NX + i + a * Row::REST];
        },
        [&](const C* v, int line, int i) {
            const u32 row = blockIdx.x * ROWS + line;
            if (row < waves * NY) EACH_STORED(Row, j) to[(u64)row * NX + STORED(Row, i, j)] = v[j];
        });
}
