// Charge at the corners in the units of the current (deposit.cu), so that continuity holds between them exactly; and the
// integer sums turned into the field's numbers.

extern "C" __global__ void __launch_bounds__(256) charge(const __grid_constant__ Domain d, const __grid_constant__ Store st, const __grid_constant__ Push p, long long* far) {
    u32 item = blockIdx.x;
    if (item >= st.counters->items) return;
    u32 tile = st.item[item], begin = (item - st.first_item[tile]) * WORK, end = min(begin + WORK, st.count[tile]), first = st.first[tile];
    int ox = int(tile) % d.tiles[0] * TX, oy = int(tile) / d.tiles[0] * TY;
    for (u32 k = begin + threadIdx.x; k < end; k += 256) {
        u64 slot = slot_of(st, st.table, first, k);
        u32 cell = st.cell[slot];
        long long at = (long long)(oy + int(cell >> 8) + BELOW) * d.pitch + ox + int(cell & 255) + BELOW;
        real s = st.v[0][slot], t = st.v[1][slot];
        Unit u = unit_of(p, WEIGHTED ? st.v[5 * WEIGHTED][slot] : real(1));
        auto put = [&](long long n, real v) { atomicAdd((u64*)(far + n), u64((long long)(p.sign) * (long long)(to_fixed(v)))); };
#if ORDER == 1
        Point q = point(s, t, u);
        put(at, u.k - 2 * q.a - 2 * q.b + q.c);
        put(at + 1, u.k + 2 * q.a - 2 * q.b - q.c);
        put(at + d.pitch, u.k - 2 * q.a + 2 * q.b - q.c);
        put(at + d.pitch + 1, u.k + 2 * q.a + 2 * q.b + q.c);
#else
        real right = nearest(s), upper = nearest(t);
        Weights<real> x = quadratic(s + (real(0.5) - right)), y = quadratic(t + (real(0.5) - upper));
        at += int(right) + int(upper) * d.pitch;
        real wx[3] = {x.below, x.middle, x.above}, wy[3] = {y.below, y.middle, y.above};
        for (int b = 0; b < 3; b++)
            for (int a = 0; a < 3; a++) put(at + (b - 1) * d.pitch + a - 1, 4 * u.k * wx[a] * wy[b]);
#endif
    }
}

// J += scale * sums; the sums are 0 afterwards. 8 + 8 + 2 words a value.
struct Scales {
    double scale[3];
};
extern "C" __global__ void __launch_bounds__(256) convert(long long* sums, real* x, real* y, real* z, u64 length, const __grid_constant__ Scales scales) {
    u64 n = thread_index();
    if (n >= 3 * length) return;
    long long v = sums[n];
    if (v == 0) return;
    sums[n] = 0;
    int c = int(n / length);
    real* j = c == 0 ? x : c == 1 ? y : z;
    j[n - c * length] += real(double(v) * scales.scale[c]);
}

// Totals of what the items measured, in their order: one block for each of the four.
extern "C" __global__ void __launch_bounds__(256) total(const double* measured, const Counters* counters, double* out) {
    __shared__ double scratch[8];
    double sum = 0;
    for (u32 k = threadIdx.x; k < counters->items; k += 256) sum += measured[4 * u64(k) + blockIdx.x];
    sum = block_reduce<Sum<double>>(sum, scratch);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
