// Means of a plane of a field over the areas of pixels, a thread a pixel. Sums run along a row of values, then over rows, as on the
// host; without fused operations the bits are the same.

// Value (i, j) of the plane lies at field[i * strides[0] + j * strides[1]]. A record of it holds R(value * scale), and zero
// at the first `zeros` values of an axis. Of each axis `first` has the first value of every pixel, then the place of its first
// weight, with the number of all weights as the last entry. Pixels are written in rows from the top.
struct PixelAxis {
    const u32* first;
    const double* weights;
    u64 stride;
    u32 pixels, zeros;
};

template <class T, class R>
__device__ __forceinline__ void plane(const T* field, PixelAxis x, PixelAxis y, double scale, float* to) {
    u64 pixel = thread_index();
    if (pixel >= (u64)x.pixels * y.pixels) return;
    u32 column = pixel % x.pixels, row = y.pixels - 1 - pixel / x.pixels;
    const u32 *begin_x = x.first + x.pixels, *begin_y = y.first + y.pixels;
    u32 i0 = x.first[column], wx = begin_x[column], nx = begin_x[column + 1] - wx;
    u32 j0 = y.first[row], wy = begin_y[row], ny = begin_y[row + 1] - wy;
    double sum = 0;
    for (u32 l = 0; l < ny; ++l) {
        u32 j = j0 + l;
        const T* from = field + j * y.stride + i0 * x.stride;
        double line = 0;
        for (u32 k = 0; k < nx; ++k) {
            bool zero = i0 + k < x.zeros || j < y.zeros;
            R value = zero ? R(0) : R(double(from[k * x.stride]) * scale);
            line += double(value) * x.weights[wx + k];
        }
        sum += y.weights[wy + l] * line;
    }
    to[pixel] = float(sum);
}

#define PLANE(NAME, T, R)                                                                                                          \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        NAME(const T* field, const __grid_constant__ PixelAxis x, const __grid_constant__ PixelAxis y, double scale, float* to) {  \
        plane<T, R>(field, x, y, scale, to);                                                                                       \
    }
PLANE(plane_f32, float, float)
PLANE(plane_f64_as_f32, double, float)
PLANE(plane_f64, double, double)
