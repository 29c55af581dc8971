// sines_rows, sines_columns: the bottom level solved in the sine modes of both axes, which are those of equal intervals
// between held ends, N = 2^k of them an axis. Rows to modes, then columns to modes, over the eigenvalues and back, then
// rows back: three launches. Two lines of real numbers are one of complex ones, z, continued oddly to n = 2 N points,
//   Z_k = sum_j z_j exp(-2 pi i j k / n) = -2 i sum_{0<j<N} z_j sin(pi j k / N),
// by Stockham's passes of radix 8 in shared memory, eight points a thread. About 5 n log2 n flops a pair of lines and way;
// time is latency, about 3 us a launch at 1025 x 1025.
//
// Source: Van Loan, Computational Frameworks for the Fast Fourier Transform (1992), sections 1.7 and 4.4.

struct alignas(2 * sizeof(real)) Complex {
    real x, y;
};
__device__ __forceinline__ Complex operator+(Complex a, Complex b) { return {a.x + b.x, a.y + b.y}; }
__device__ __forceinline__ Complex operator-(Complex a, Complex b) { return {a.x - b.x, a.y - b.y}; }
__device__ __forceinline__ Complex operator*(Complex a, Complex b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }
// Times -i.
__device__ __forceinline__ Complex times_minus_i(Complex a) { return {a.y, -a.x}; }

// DFTs of R points that lie STEP apart in `v`, in place.
template <int R, int STEP> __device__ __forceinline__ void dft(Complex* v) {
    if constexpr (R == 2) {
        Complex a = v[0], b = v[STEP];
        v[0] = a + b, v[STEP] = a - b;
    } else {
        constexpr int H = R / 2;
        Complex even[H], odd[H];
#pragma unroll
        for (int q = 0; q < H; q++) even[q] = v[2 * q * STEP], odd[q] = v[(2 * q + 1) * STEP];
        dft<H, 1>(even), dft<H, 1>(odd);
        const real half = real(0.70710678118654752440);
#pragma unroll
        for (int q = 0; q < H; q++) {
            Complex w = odd[q];
            if (4 * q == R) w = times_minus_i(w);
            if (8 * q == R) w = {half * (w.x + w.y), half * (w.y - w.x)};
            if (8 * q == 3 * R) w = {half * (w.y - w.x), -half * (w.x + w.y)};
            v[q * STEP] = even[q] + w, v[(q + H) * STEP] = even[q] - w;
        }
    }
}

// Points 1 .. R-1 of R, STEP apart, times the powers of w, each a product of two that are half as high.
template <int R, int STEP> __device__ __forceinline__ void twiddle(Complex w, Complex* v) {
    Complex power[R];
    power[1] = w;
#pragma unroll
    for (int r = 2; r < R; r++) power[r] = power[r / 2] * power[r - r / 2];
#pragma unroll
    for (int r = 1; r < R; r++) v[r * STEP] = v[r * STEP] * power[r];
}

// A line in shared memory: a gap after every eight points keeps the threads of a pass in different banks.
__device__ __forceinline__ int spot(int i) { return i + (i >> 3); }

// The last pass, of radix R: point t + m n/8 lands where it was.
template <int R> __device__ __forceinline__ void last_pass(int n, int t, const Complex* __restrict__ roots, Complex* v) {
#pragma unroll
    for (int i = 0; i < 8 / R; i++) {
        twiddle<R, 8 / R>(roots[t + i * (n / 8)], v + i);
        dft<R, 8 / R>(v + i);
    }
}

// The odd continuation of z_0 .. z_N given by `load(j)`, which is zero at both ends, transformed: point t + m n/8 of Z in v[m].
// Thread t of n/8, all of a block together; roots: exp(-2 pi i k / n). The line may hold what `load` reads.
template <class Load> __device__ __forceinline__ void odd_transform(int n, int t, const Complex* __restrict__ roots, Complex* line, Complex* v, Load load) {
#pragma unroll
    for (int r = 0; r < 4; r++) {
        v[r] = load(t + r * (n / 8));
        Complex mirror = load(n / 2 - t - r * (n / 8));
        v[4 + r] = {-mirror.x, -mirror.y};
    }
    dft<8, 1>(v);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 8; r++) line[spot(8 * t + r)] = v[r];
    __syncthreads();
    int s = 8, left = n / 8;
    for (; left > 8; s *= 8, left /= 8) {
        const int low = t & (s - 1), step = n / (8 * s) * low;
#pragma unroll
        for (int r = 0; r < 8; r++) v[r] = line[spot(t + r * (n / 8))];
        twiddle<8, 1>(roots[step], v);
        dft<8, 1>(v);
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 8; r++) line[spot((t - low) * 8 + low + r * s)] = v[r];
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 8; r++) v[r] = line[spot(t + r * (n / 8))];
    if (left == 8) last_pass<8>(n, t, roots, v);
    else if (left == 4) last_pass<4>(n, t, roots, v);
    else last_pass<2>(n, t, roots, v);
}

struct Sines {
    const real* from;
    real* to;
    const Complex* roots;
    const real *x, *y;   // eigenvalues along the axes
    double scale;
    int n, lines;        // points of a continued line; lines between the ends
    int width, stride;   // lines of a block at once; points of a line in shared memory
    int pitch;
};

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
    odd_transform(n, t, o.roots, line, v, [&](int j) {
        return j > 0 && j < n / 2 ? from[(long long)j * (o.pitch / 2)] : Complex{0, 0};
    });
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
