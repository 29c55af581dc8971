// product: C = A B, the step of the direct solution on the bottom level: modes along one axis, or back. One of A and B is
// a matrix of modes, the other the field. Launch: (n / 32, m / 16, batches) blocks of 16 warps, dynamic shared memory for
// 16 rows of A and 32 columns of B. A warp takes a sixteenth of the sum over k for the whole tile of 16 x 32; the shares
// are added in order. 2 k flops a value; time is latency, about 3 us at 257 x 257.

#include "march.cu"

constexpr int SHARES = 16;

#include "product.cuh"

struct alignas(16) Four {
    real v[4];
};

// Asks for rows of four columns a thread, `width` of them a row; rows from `rows` on become zeros.
__device__ __forceinline__ void panel(const real* from, int pitch, int rows, int all, int width, real* to, int stride) {
    for (int q = threadIdx.x; q < all * width; q += 32 * SHARES) {
        int row = q / width, column = 4 * (q - row * width);
        bool inside = row < rows;
        const real* source = from + (inside ? (long long)row * pitch + column : 0);
        real* target = to + row * stride + column;
        if (!inside) *reinterpret_cast<Four*>(target) = Four{};
        for (int b = 0; b < int(sizeof(Four)) && inside; b += 16)
            copy_async<16, true>(reinterpret_cast<char*>(target) + b, reinterpret_cast<const char*>(source) + b);
    }
}

extern "C" __global__ __launch_bounds__(32 * SHARES) void product(Product o) {
    extern __shared__ double shared_memory[];
    // Rows four words apart from bank to bank: four rows are read at once.
    const int stride = o.k + 4;
    real *as = reinterpret_cast<real*>(shared_memory), *bs = as + 16 * stride;
    const int column = 32 * blockIdx.x, row = 16 * blockIdx.y;
    const real* a = o.a + blockIdx.z * o.batch_a + (long long)row * o.pitch_a;
    const real* b = o.b + blockIdx.z * o.batch_b + column;
    auto load_a = [&] { panel(a, o.pitch_a, o.m - row, 16, o.k / 4, as, stride); };
    auto load_b = [&] { panel(b, o.pitch_b, o.rows_b, o.k, 8, bs, 32); };
    if (o.modes_first) load_a();
    else load_b();
    let_next_kernel_start();
    wait_for_previous_kernel();
    if (o.modes_first) load_b();
    else load_a();
    commit_fetches();
    wait_for_fetches<0>();
    __syncthreads();

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, r = lane / 8, c = 4 * (lane % 8);
    real sum[4][4] = {};
    for (int k = 4 * warp; k < o.k; k += 4 * SHARES) {
        Four left[4], right[4];
#pragma unroll
        for (int t = 0; t < 4; t++) {
            left[t] = *reinterpret_cast<const Four*>(as + (r + 4 * t) * stride + k);
            right[t] = *reinterpret_cast<const Four*>(bs + (k + t) * 32 + c);
        }
#pragma unroll
        for (int s = 0; s < 4; s++)
#pragma unroll
            for (int t = 0; t < 4; t++)
#pragma unroll
                for (int v = 0; v < 4; v++) sum[t][v] += left[t].v[s] * right[s].v[v];
    }
    __syncthreads();
    real* sums = as;
#pragma unroll
    for (int t = 0; t < 4; t++) {
        Four out = {sum[t][0], sum[t][1], sum[t][2], sum[t][3]};
        *reinterpret_cast<Four*>(sums + (16 * warp + r + 4 * t) * 32 + c) = out;
    }
    __syncthreads();
    const int q = threadIdx.x, i = row + q / 32, j = column + q % 32;
    if (i >= o.m) return;
    real v = 0;
#pragma unroll
    for (int w = 0; w < SHARES; w++) v += sums[512 * w + q];
    if (o.scale) {
        real all = o.scale == 1 ? o.x[j] + o.y[i] + o.z[blockIdx.z] : o.x[j % o.pitch] + o.y[j / o.pitch] + o.z[i];
        // The constant mode of a singular problem: the solution without mean.
        v = all == real(0) ? real(0) : -v / all;
    }
    o.c[blockIdx.z * o.batch_c + (long long)i * o.pitch_b + j] = v;
}
