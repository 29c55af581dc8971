// sines_rows, sines_columns: the bottom level solved in the sine modes of both axes, which are those of equal intervals
// between held ends, N = 2^k of them an axis. Rows to modes, then columns to modes, over the eigenvalues and back, then
// rows back: three launches. Two lines of real numbers are one of complex ones, z, continued oddly to n = 2 N points,
//   Z_k = sum_j z_j exp(-2 pi i j k / n) = -2 i sum_{0<j<N} z_j sin(pi j k / N),
// by Stockham's passes of radix 8 in shared memory, eight points a thread. About 5 n log2 n flops a pair of lines and way;
// time is latency, about 3 us a launch at 1025 x 1025.
//
// Source: Van Loan, Computational Frameworks for the Fast Fourier Transform (1992), sections 1.7 and 4.4.

#include "sine_transform.cu"
#include "sines.cuh"

// Twice the sums of sines, times `scale`, along the rows 1 .. lines. Launch: blocks of width * n/8 threads over the pairs of rows.
extern "C" __global__ __launch_bounds__(256, sizeof(real) == 4 ? 4 : 1) void sines_rows(Sines o) {
    extern __shared__ double shared_memory[];
    const int n = o.n, which = threadIdx.x / (n / 8), t = threadIdx.x % (n / 8), row = 1 + 2 * (blockIdx.x * o.width + which);
    const real scale = real(o.scale);
    const bool first = row <= o.lines, second = row < o.lines;
    const real* from = o.from + (first ? (long long)row * o.pitch : 0);
    Complex v[8];
    let_next_kernel_start();
    wait_for_previous_kernel();
    odd_transform(n, t, o.roots, reinterpret_cast<Complex*>(shared_memory) + which * o.stride, v, [&](int j) {
        bool inside = j > 0 && j < n / 2;
        return Complex{inside && first ? from[j] : real(0), inside && second ? from[j + o.pitch] : real(0)};
    });
    real* to = o.to + (long long)row * o.pitch;
#pragma unroll
    for (int m = 0; m < 4; m++) {
        int k = t + m * (n / 8);
        if (k > 0 && first) to[k] = -scale * v[m].y;
        if (k > 0 && second) to[k + o.pitch] = scale * v[m].x;
    }
}

// Along the columns there, over minus the eigenvalues, and back. Launch: blocks of width * n/8 threads over the columns, 2 width
// at once: 32 bytes of a row. Neighbouring threads have neighbouring columns.
extern "C" __global__ __launch_bounds__(sizeof(real) == 4 ? 1024 : 512) void sines_columns(Sines o) {
    extern __shared__ double shared_memory[];
    const int n = o.n, which = threadIdx.x % o.width, t = threadIdx.x / o.width, column = 2 * (blockIdx.x * o.width + which);
    Complex* line = reinterpret_cast<Complex*>(shared_memory) + which * o.stride;
    const Complex* from = reinterpret_cast<const Complex*>(o.from + column);
    const real scale = real(o.scale), x0 = o.x[column], x1 = o.x[column + 1];
    Complex v[8];
    let_next_kernel_start();
    wait_for_previous_kernel();
    odd_transform(n, t, o.roots, line, v,
                  [&](int j) { return j > 0 && j < n / 2 ? from[(long long)j * (o.pitch / 2)] : Complex{0, 0}; });
    __syncthreads();
#pragma unroll
    for (int m = 0; m < 4; m++) {
        int k = t + m * (n / 8);
        real y = o.y[k];
        line[spot(k)] = {scale * v[m].y / (x0 + y), -scale * v[m].x / (x1 + y)};
    }
    __syncthreads();
    odd_transform(n, t, o.roots, line, v, [&](int j) { return j > 0 && j < n / 2 ? line[spot(j)] : Complex{0, 0}; });
    Complex* to = reinterpret_cast<Complex*>(o.to + column);
#pragma unroll
    for (int m = 0; m < 4; m++) {
        int k = t + m * (n / 8);
        // Column 0 is no mode: what rounding leaves there would grow from solution to solution.
        if (k > 0) to[(long long)k * (o.pitch / 2)] = {column ? -v[m].y : real(0), v[m].x};
    }
}
