// Columns of a frame in kernels of their own, around `measure` of multi_pass.cu: for several modes, bins, and long columns.

#include "multi_pass.cu"
#include "tiles.cu"

// Transforms of the columns, in place. Grid: (tiles of columns, waves).
extern "C" __global__ void __launch_bounds__(COLUMN_THREADS, COLUMN_BLOCKS) columns_out(C* exits, u32 first) {
    let_next_kernel_start(), wait_for_previous_kernel();
    extern __shared__ C room[];
    const u64 frame = ((u64)first * MODES + blockIdx.y) * (NX * NY);
    const u32 column = blockIdx.x * COLUMNS;
    C* to = exits + frame + column;
    lines<Column, -1>(
        room,
        [&](C* v, int line, int i) {
            const C* from = to + (column + line < NX ? line : 0);
            EACH_LOADED(Column, a) v[a] = from[(u64)(i + a * Column::REST) * NX];
        },
        [&](const C* v, int line, int i) {
            if (column + line < NX) EACH_STORED(Column, j) to[(u64)STORED(Column, i, j) * NX + line] = v[j];
        });
}

// The constraint, and inverse transforms of the columns. Grid: (tiles of columns, waves).
extern "C" __global__ void __launch_bounds__(COLUMN_THREADS, COLUMN_BLOCKS)
    columns_back(C* waves, C* exits, const real* ratios, const real2* weight, const real* sums, real* changes, u32 first,
                 Constraint rule, real scale) {
    let_next_kernel_start(), wait_for_previous_kernel();
    extern __shared__ C room[];
    __shared__ real scratch[COLUMN_THREADS / WARP];
    const u32 n = first + blockIdx.y / MODES, column = blockIdx.x * COLUMNS;
    const u64 frame = ((u64)first * MODES + blockIdx.y) * (NX * NY) + column;
    const Blend blend = blend_of(rule, relaxation_from_sums<COLUMN_THREADS>(sums, weight, n, rule));
    C *wave = waves + frame, *exit = exits + frame;
    const real* q = ratios + (u64)(blockIdx.y / MODES) * (MX * MY);
    real change = 0;
    lines<Column, 1>(
        room,
        [&](C* v, int line, int i) {
            const bool inside = column + line < NX;
            const u64 at = (u64)i * NX + (inside ? line : 0);
            EACH_LOADED(Column, a) v[a] = exit[at + (u64)(a * Column::REST) * NX];
            EACH_EIGHTH(Column::A, a0) {
                C e[8];
                real r[8];
                EACH_OF_EIGHT(Column::A, a0, a) {
                    e[a - a0] = wave[at + (u64)(a * Column::REST) * NX];
                    r[a - a0] = q[(i + a * Column::REST) / BY * MX + (column + (inside ? line : 0)) / BX];
                }
                EACH_OF_EIGHT(Column::A, a0, a) {
                    const C old = e[a - a0], now = v[a] * (fma(blend.g_ratio, r[a - a0], blend.g) * scale) +
                                                   old * fma(blend.e_ratio, r[a - a0], blend.e);
                    if (inside) change += power(now - old), wave[at + (u64)(a * Column::REST) * NX] = now;
                    v[a] = now * scale;
                }
            }
        },
        [&](const C* v, int line, int i) {
            if (column + line < NX) EACH_STORED(Column, j) exit[(u64)STORED(Column, i, j) * NX + line] = v[j];
        });
    change = block_reduce<Sum<real>>(change, scratch);
    if (threadIdx.x == 0) changes[((u64)n * MODES + blockIdx.y % MODES) * gridDim.x + blockIdx.x] = change;
}
