// Charge at the corners in the units of the current (deposit.cu), so that continuity holds between them exactly; and the
// integer sums turned into the field's numbers.

#include "value.cu"
#include "quadratic.cu"
#include "team.cu"

__device__ __forceinline__ void add_charge(const Domain& d, const Tile& tile, const ParticleSlot& slot, const Push& p,
                                           long long* far) {
    u32 cell = slot.cell();
    long long at = (long long)(tile.y + int(cell >> 8) + BELOW) * d.pitch + tile.x + int(cell & 255) + BELOW;
    Quad q = slot.four();
    real s = q.x, t = q.y;
    Unit u = unit_of(p, slot.weight());
    auto put = [&](long long n, long long v) { atomicAdd((u64*)(far + n), u64(p.sign * v)); };
#if ORDER == 1
    Point r = point(s, t, u);
    long long k4 = (long long)(u.k), a = r.ia, b = r.ib, c = r.ic;
    put(at, k4 - 2 * a - 2 * b + c);
    put(at + 1, k4 + 2 * a - 2 * b - c);
    put(at + d.pitch, k4 - 2 * a + 2 * b - c);
    put(at + d.pitch + 1, k4 + 2 * a + 2 * b + c);
#else
    real right = nearest(s), upper = nearest(t);
    Charges c = charges_of(quadratic(s + (real(0.5) - right)), quadratic(t + (real(0.5) - upper)), u);
    at += int(right) + int(upper) * d.pitch;
    for (int b = -1; b <= 1; b++)
        for (int a = -1; a <= 1; a++) put(at + b * d.pitch + a, charge_at(c, a, b));
#endif
}

// J = scale * sums, or J += where `more` says so; the sums are 0 afterwards. 8 + 8 + 1 words a value. blockIdx.y: component.
struct Scales {
    double scale[3];
};
extern "C" __global__ void __launch_bounds__(256)
    convert(long long* sums, real* x, real* y, real* z, u64 length, u32 more, const __grid_constant__ Scales scales) {
    wait_for_previous_kernel();
    let_next_kernel_start();
    u64 n = thread_index();
    if (n >= length) return;
    int c = blockIdx.y;
    long long v = sums[c * length + n];
    real *j = (c == 0 ? x : c == 1 ? y : z) + n, value = current_of<real>(v, scales.scale[c]);
    if (v) sums[c * length + n] = 0;
    *j = more ? *j + value : value;
}

// Totals of what was measured of the units, in their order: one block for each of the four.
extern "C" __global__ void __launch_bounds__(256) total(const __grid_constant__ Store st, const double* measured, double* out) {
    __shared__ double scratch[8];
    double sum = 0;
    for (u32 k = threadIdx.x; k < all_units(st); k += 256) sum += measured[4 * u64(k) + blockIdx.x];
    sum = block_reduce<Sum<double>>(sum, scratch);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
