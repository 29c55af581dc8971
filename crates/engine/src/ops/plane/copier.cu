// Copies of fields for those who work on them in a GPU's memory, one value behind the other, with the bits that records have; and
// the way back.

// Value (i, j) of the plane lies at field[i * strides[0] + j * strides[1]]; the first `zeros` values of an axis are zero in a record.
struct Strided {
    u64 len[2], strides[2];
    u32 zeros[2];
};

template <class T, class R> __device__ __forceinline__ void copy_plane(const T* field, const Strided& plane, double scale, R* to) {
    u64 k = thread_index();
    if (k >= plane.len[0] * plane.len[1]) return;
    u64 i = k % plane.len[0], j = k / plane.len[0];
    bool zero = i < plane.zeros[0] || j < plane.zeros[1];
    to[k] = zero ? R(0) : R(double(field[i * plane.strides[0] + j * plane.strides[1]]) * scale);
}

// Complex values, each times the conjugate of factors[k % period] where there are factors; the products are those of the host.
template <class T>
__device__ __forceinline__ void copy_wave(const T* wave, const double* factors, u64 period, u64 count, float* to) {
    u64 k = thread_index();
    if (k >= count) return;
    double re = wave[2 * k], im = wave[2 * k + 1];
    if (factors) {
        double a = factors[2 * (k % period)], b = -factors[2 * (k % period) + 1];
        double product = re * a - im * b;
        im = re * b + im * a;
        re = product;
    }
    to[2 * k] = float(re);
    to[2 * k + 1] = float(im);
}

#define PLANE(NAME, T, R)                                                                                                          \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        NAME(const T* field, const __grid_constant__ Strided plane, double scale, R* to) {                                         \
        copy_plane<T, R>(field, plane, scale, to);                                                                                 \
    }
PLANE(copy_f32, float, float)
PLANE(copy_f64_as_f32, double, float)
PLANE(copy_f64, double, double)

#define WAVE(NAME, T)                                                                                                              \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        NAME(const T* wave, const double* factors, u64 period, u64 count, float* to) {                                             \
        copy_wave(wave, factors, period, count, to);                                                                               \
    }
WAVE(copy_wave_f32, float)
WAVE(copy_wave_f64, double)

// Number of the first value that is not finite as an R in units of `unit`, where that is less than `first`.
template <class T, class R> __device__ __forceinline__ void find_unfit(const T* values, u64 count, double unit, u64* first) {
    u64 k = thread_index();
    if (k >= count) return;
    R value = R(double(values[k]) / unit);
    if (!(value - value == R(0))) atomicMin(first, k);
}

template <class T, class R>
__device__ __forceinline__ void put_plane(const T* values, const Strided& plane, double unit, R* field) {
    u64 k = thread_index();
    if (k >= plane.len[0] * plane.len[1]) return;
    u64 i = k % plane.len[0], j = k / plane.len[0];
    bool zero = i < plane.zeros[0] || j < plane.zeros[1];
    field[i * plane.strides[0] + j * plane.strides[1]] = zero ? R(0) : R(double(values[k]) / unit);
}

// Values of `numbers` numbers each, one of real ones, times factors as above. What a record would tell as it is stays to the last
// bit; `changed` becomes 1 where something does not.
template <class T, class R> __device__ __forceinline__ void put_wave(const T* values, u32 numbers, const double* factors,
                                                                     u64 period, u64 count, R* wave, u32* changed) {
    u64 k = thread_index();
    if (k >= count) return;
    double re = values[numbers * k], im = numbers == 2 ? double(values[2 * k + 1]) : 0.0;
    double a = factors ? factors[2 * (k % period)] : 1.0, b = factors ? factors[2 * (k % period) + 1] : 0.0;
    double x = wave[2 * k], y = wave[2 * k + 1];
    if (float(x * a - y * -b) == float(re) && float(x * -b + y * a) == float(im)) return;
    wave[2 * k] = R(re * a - im * b);
    wave[2 * k + 1] = R(re * b + im * a);
    *changed = 1;
}

#define BACK(SUFFIX, T, R)                                                                                                         \
    extern "C" __global__ void __launch_bounds__(256) unfit_##SUFFIX(const T* values, u64 count, double unit, u64* first) {        \
        find_unfit<T, R>(values, count, unit, first);                                                                              \
    }                                                                                                                              \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        put_##SUFFIX(const T* values, const __grid_constant__ Strided plane, double unit, R* field) {                              \
        put_plane(values, plane, unit, field);                                                                                     \
    }                                                                                                                              \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        put_wave_##SUFFIX(const T* values, u32 numbers, const double* factors, u64 period, u64 count, R* wave, u32* changed) {     \
        put_wave(values, numbers, factors, period, count, wave, changed);                                                          \
    }
BACK(f32_f32, float, float)
BACK(f32_f64, float, double)
BACK(f64_f32, double, float)
BACK(f64_f64, double, double)

// A number of a column by its type: 0 single precision, 1 double, 2 whole numbers.
__device__ __forceinline__ double number(const void* column, u32 type, u64 k) {
    if (type == 0) return ((const float*)column)[k];
    return type == 1 ? ((const double*)column)[k] : double(((const u64*)column)[k]);
}

// Number of the first value that is another one in a second column, where that is less than `first`.
extern "C" __global__ void __launch_bounds__(256)
    unlike(const void* one, u32 type, const void* other, u32 type_of_other, u64 count, u64* first) {
    u64 k = thread_index();
    if (k < count && number(one, type, k) != number(other, type_of_other, k)) atomicMin(first, k);
}
