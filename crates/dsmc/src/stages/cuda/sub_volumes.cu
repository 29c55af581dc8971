// Sub-volumes of cut cells, within which particles collide.

#include "gas.cu"
#include "random.cu"

#if DIVIDED
// Number and share of the part of a cell in which a position lies.
__device__ __noinline__ u32 part_at(const Gas& gas, u32 entry, float x, float y, float& fraction) {
    u32 first = entry & 0xffffff, count = entry >> 24;
    i64 px = i64(double(x) * 16777216.0), py = i64(double(y) * 16777216.0);
    for (u32 k = 0; k < count; k++) {
        Part part = gas.parts[first + k];
        bool inside = false;
        for (u32 c = 0; c < part.count; c++) {
            int2 a = gas.outline[part.first + c], b = gas.outline[part.first + (c + 1 < part.count ? c + 1 : 0)];
            if ((a.y > py) == (b.y > py)) continue;
            i64 side = (i64(b.x) - a.x) * (py - a.y) - (i64(b.y) - a.y) * (px - a.x);
            if (side != 0 && (side > 0) == (b.y > a.y)) inside = !inside;
        }
        if (inside) {
            fraction = part.fraction;
            return k;
        }
    }
    fraction = gas.parts[first].fraction;
    return 0;
}

#define SMALLEST 0.02f
__device__ __noinline__ bool together(const Gas& gas, u32 entry, float2 a, float2 b, u64 number) {
    float own, other, least = 1.0f;
    if (part_at(gas, entry, a.x, a.y, own) != part_at(gas, entry, b.x, b.y, other)) return false;
    for (u32 k = 0; k < entry >> 24; k++) least = fminf(least, gas.parts[(entry & 0xffffff) + k].fraction);
    Stream stream(PART, gas.seed, step_of(gas.step), number << 10);
    return stream.open() * fmaxf(own, SMALLEST) < fmaxf(least, SMALLEST);
}
#endif
