// Flights that meet only mirrors on sides of a domain without bodies: those of trajectory.cu, with the same bits, in few instructions, since the
// first side that is met is known without a walk along the cells. Not contracted where that would round otherwise.

#include "advance.cu"

#if MIRRORS
// Farther than a path of LONGEST cells, in cells.
#define BEYOND 32
#define BOUNCES 64

// A path along an axis, in steps of the lattice from the corner of its cell.
struct Course {
    int cell, cells, at, end;
    double v;
    bool out;
    __device__ __forceinline__ int lower() const { return -(least(cell, BEYOND) << BITS); }
    __device__ __forceinline__ int upper() const { return least(cells - cell, BEYOND) << BITS; }
    __device__ __forceinline__ int length() const { return abs(end - at); }
    // From the path's begin to the side of the domain that lies ahead.
    __device__ __forceinline__ int ahead() const { return abs((end > at ? upper() : lower()) - at); }
    // False where the path is too long.
    __device__ __forceinline__ bool aim(double time, double per_metre) {
        double path = v * time * per_metre;
        if (!(fabs(path) <= LONGEST)) return false;
        end = at + __double2int_rn(path * double(ONE));
        out = end > at ? end >= upper() : end < at && end < lower();
        return true;
    }
    __device__ __forceinline__ void put(int to) {
        int c = least(greatest(cell + (to >> BITS), 0), cells - 1);
        at = to - ((c - cell) << BITS);
        cell = c;
    }
    __device__ __forceinline__ float offset() const { return float(least(at, int(ONE) - 1)) * (1.0f / 16777216.0f); }
};

// Turns a path back at the side that it meets across; returns 1 for an upper side.
__device__ __forceinline__ u32 turn_back(Course& across, Course& along, double& left) {
    double s = double(across.ahead()) / double(across.length());
    bool upper = across.end > across.at;
    int beside = __double2int_rn(__dadd_rn(double(along.at), __dmul_rn(double(along.end - along.at), s)));
    along.put(least(greatest(beside, along.lower()), along.upper()));
    across.cell = upper ? across.cells - 1 : 0;
    across.at = upper ? int(ONE) : 0;
    across.v = -across.v;
    left *= 1.0 - (1.0 - fmax(1.0 - s, 0.0));
    return upper;
}

// Flies for a step from `cell`, and sets it and the particle to where that ends. `hits`: a byte a side. False, with nothing else changed,
// for paths that are long, or meet anything else.
__device__ __forceinline__ bool bounce(const Store& st, const Pass& p, int2& cell, float& x, float& y, float& vx, float& vy,
                                       u32& hits) {
    Course a{cell.x, st.cells[0], __double2int_rn(double(x) * double(ONE)), 0, vx},
        b{cell.y, st.cells[1], __double2int_rn(double(y) * double(ONE)), 0, vy};
    double left = 1.0;
    hits = 0;
    for (u32 n = 0; n < BOUNCES; n++) {
        double time = left * p.dt;
        if (!a.aim(time, p.per_metre[0]) || !b.aim(time, p.per_metre[1])) return false;
        if (!a.out && !b.out) {
            a.put(a.end);
            b.put(b.end);
            cell = {a.cell, b.cell};
            x = a.offset(), y = b.offset(), vx = float(a.v), vy = float(b.v);
            return true;
        }
        bool first = a.out && !(b.out && i64(a.ahead()) * b.length() > i64(b.ahead()) * a.length());
        u32 side = first ? turn_back(a, b, left) : 2 + turn_back(b, a, left);
        if (!(p.mirrors >> side & 1)) return false;
        hits += 1u << 8 * side;
    }
    return false;
}

// Adds the hits of a particle to the sums of the sides in a block's memory, count and momentum of each: `tally` of trajectory.cu.
__device__ __forceinline__ void tally_bounces(const Pass& p, u32 hits, double mass, float vx, float vy, u64 (*sums)[2]) {
    for (u32 side = 0; side < 4; side++) {
        u32 n = hits >> 8 * side & 0xff;
        if (n == 0) continue;
        double before = side % 2 ? fabsf(side < 2 ? vx : vy) : -fabsf(side < 2 ? vx : vy);
        atomicAdd(&sums[side][0], u64(n));
        atomicAdd(&sums[side][1], u64(i64(n) * __double2ll_rn(__dmul_rn(mass, before - -before) * p.momentum)));
    }
}

// Flies particle i of a tile so, and adds its hits to the sums of the sides; the rest is as in `fly_one`. PENDING, with nothing changed, where it
// does not come to this tile or one beside.
template <bool SAMPLED> __device__ __forceinline__ u32 bounce_one(const Store& st, const Pass& p, int2 corner, u32 key, float& x,
                                                                  float& y, float& vx, float& vy, u32& to, u64 (*sums)[2]) {
    u32 cell = key / SPECIES, species = key % SPECIES, hits;
    int2 at{corner.x + int(cell & ((1 << SX) - 1)), corner.y + int(cell >> SX)};
    float nx = x, ny = y, nvx = vx, nvy = vy;
    if (!bounce(st, p, at, nx, ny, nvx, nvy, hits)) return PENDING;
    int tx = (at.x >> SX) - (corner.x >> SX), ty = (at.y >> SY) - (corner.y >> SY);
    if (abs(tx) > 1 || abs(ty) > 1) return PENDING;
    if (SAMPLED) tally_bounces(p, hits, p.mass[species], vx, vy, sums);
    x = nx, y = ny, vx = nvx, vy = nvy;
    to = key_of(at.x, at.y, species);
    return tx == 0 && ty == 0 ? NONE : u32((ty + 1) * 3 + tx + 1);
}

// Flies a warp's particles that wait in slots `k0` to `end` of the list; `settle` as in tile.cu, which lists no more than have been read.
template <bool SAMPLED, class F> __device__ __forceinline__ void fly_waiting(const Store& st, const Pass& p, int2 corner,
                                                                             const Sorted& s, const u32* list, u32 k0, u32 end,
                                                                             u64 (*sums)[2], F settle) {
    for (; k0 < end; k0 += 32) {
        __syncwarp();
        u32 k = k0 + lane_index(), i = 0, way = NONE, key = 0;
        float x = 0.0f, y = 0.0f, vx = 0.0f, vy = 0.0f;
        if (k < end) {
            i = list[k];
            x = s.x[i], y = s.y[i], vx = s.vx[i], vy = s.vy[i];
            key = s.key[i];
            way = bounce_one<SAMPLED>(st, p, corner, key, x, y, vx, vy, key, sums);
        }
        settle(k < end, i, x, y, vx, vy, true, key, way, 0);
    }
}

// Adds what a block has, hits and momentum along x or y, to the sums of the sides.
__device__ __forceinline__ void add_bounces(const Pass& p, const u64 (*sums)[2]) {
    if (threadIdx.x >= 8) return;
    u32 side = threadIdx.x / 2, what = threadIdx.x % 2;
    if (sums[side][what]) atomicAdd(p.surfaces + SURFACE_SUMS * side + (what ? 1 + side / 2 : 0), sums[side][what]);
}
#endif
