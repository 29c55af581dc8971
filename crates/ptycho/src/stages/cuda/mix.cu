// Products of the modes of probes, and their change of basis: sums have the host's order and its roundings (no fused operations), so that both give the same bits.

#include "model.cu"

// Upper half of the products of one probe's modes, PRODUCTS pixels each: parts[set][block][p <= q]. Grid: threads for sets * blocks * pairs.
extern "C" __global__ void __launch_bounds__(TEAM) mode_products(const C* probe, double2* parts, u32 sets) {
    constexpr u32 PAIRS = PROBES * (PROBES + 1) / 2, BLOCKS = (NX * NY + PRODUCTS - 1) / PRODUCTS;
    const u32 n = thread_index();
    if (n >= sets * PAIRS * BLOCKS) return;
    const u32 block = n % BLOCKS, set = n / BLOCKS / PAIRS;
    u32 p = 0, q = n / BLOCKS % PAIRS;
    const u32 pair = q;
    while (q >= PROBES - p) q -= PROBES - p++;
    q += p;
    const C* waves = probe + (u64)set * (PROBES * NX * NY);
    const u32 last = min((block + 1) * PRODUCTS, (u32)(NX * NY));
    double re = 0, im = 0;
#pragma unroll 8
    for (u32 i = block * PRODUCTS; i < last; ++i) {
        const C a = waves[p * (NX * NY) + i], b = waves[q * (NX * NY) + i];
        re = __dadd_rn(re, __dadd_rn(__dmul_rn(a.x, b.x), __dmul_rn(a.y, b.y)));
        im = __dadd_rn(im, __dadd_rn(__dmul_rn(a.x, b.y), -__dmul_rn(a.y, b.x)));
    }
    parts[((u64)set * BLOCKS + block) * PAIRS + pair] = make_double2(re, im);
}

// new[p] = sum_q basis[set][p][q] old[q]. Grid: (pixels / TEAM, sets).
extern "C" __global__ void __launch_bounds__(TEAM) mode_mix(C* probe, const double2* basis) {
    const u32 pixel = blockIdx.x * TEAM + threadIdx.x;
    if (pixel >= NX * NY) return;
    C* waves = probe + (u64)blockIdx.y * (PROBES * NX * NY) + pixel;
    basis += blockIdx.y * (PROBES * PROBES);
    C old[PROBES];
#pragma unroll
    for (int q = 0; q < PROBES; ++q) old[q] = waves[q * (NX * NY)];
    for (int p = 0; p < PROBES; ++p) {
        double re = 0, im = 0;
#pragma unroll
        for (int q = 0; q < PROBES; ++q) {
            const double2 b = basis[p * PROBES + q];
            re = __dadd_rn(re, __dadd_rn(__dmul_rn(b.x, old[q].x), -__dmul_rn(b.y, old[q].y)));
            im = __dadd_rn(im, __dadd_rn(__dmul_rn(b.x, old[q].y), __dmul_rn(b.y, old[q].x)));
        }
        waves[p * (NX * NY)] = make_real2(real(re), real(im));
    }
}
