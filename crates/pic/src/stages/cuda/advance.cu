// push, move, deposit and list leavers, in one pass over the particles. A block takes WORK slots of a tile. Reads and writes
// 2 + 5 words a particle (22 bytes each way in single precision).

struct Push {
    real alpha;         // q dt / 2m
    real step[2];       // dt / h
    real unit;          // K
    int sign;           // of the charge
    int unused;
};

#if WEIGHTED
__device__ __forceinline__ Unit unit_of(const Push& p, real w) {
    real half = whole(real(0.5) * p.unit * w), k = half + half;
    return {k, half, real(4) / k, real(2) / k};
}
#else
__device__ __forceinline__ Unit unit_of(const Push& p, real) {
    return {p.unit, real(0.5) * p.unit, real(4) / p.unit, real(2) / p.unit};
}
#endif

// What is read of a particle.
struct Slot {
    u32 cell;
    real v[5 + WEIGHTED];
};
__device__ __forceinline__ Slot fetch(const Store& st, u32 first, u32 k, u32 end) {
    Slot p{};
    if (k < end) {
        u64 slot = slot_of(st, st.table, first, k);
        p.cell = st.cell[slot];
#pragma unroll
        for (int c = 0; c < 5 + WEIGHTED; c++) p.v[c] = st.v[c][slot];
    }
    return p;
}

// A leaver into the outbox of the item, the common one where that is full, or, where both are, back into its slot, which is
// counted: nothing is lost, but the run cannot go on.
__device__ __noinline__ bool send(const Store& st, u32 item, u32* outgoing, const Record& r) {
    u32 at = atomicAdd(outgoing, 1u);
    Record* to = st.outbox + u64(item) * OUT + at;
    if (at >= OUT) {
        at = atomicAdd(&st.counters->common, 1u);
        to = st.common + at;
        if (at >= st.common_room) {
            atomicAdd(&st.counters->lost, 1u);
            return false;
        }
    }
    *to = r;
    atomicAdd(&st.arrivals[r.tile], 1u);
    return true;
}

template <bool MEASURE>
__global__ void __launch_bounds__(BLOCK, RESIDENT)
    advance(const __grid_constant__ Domain d, const __grid_constant__ Store st, const __grid_constant__ Fields f, const __grid_constant__ Push p, const __grid_constant__ Walls walls, long long* far, double* measured) {
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ u32 outgoing, left;
    __shared__ double scratch[BLOCK / 32];
    u32 item = blockIdx.x;
    if (item >= st.counters->items) return;
    u32 tile = st.item[item], begin = (item - st.first_item[tile]) * WORK, end = min(begin + WORK, st.count[tile]), first = st.first[tile];
    int tx = int(tile) % d.tiles[0], ty = int(tile) / d.tiles[0], ox = tx * TX, oy = ty * TY;
    int nx = min(TX, d.cells[0] - ox), ny = min(TY, d.cells[1] - oy);
    Cached* cached = reinterpret_cast<Cached*>(shared);
    Sums j{reinterpret_cast<fixed*>(shared + FIELD_BYTES), far, d.length,
           (long long)(oy - MARGIN + BELOW) * d.pitch + ox - MARGIN + BELOW, d.pitch, p.sign};
    if (threadIdx.x == 0) outgoing = left = 0;
    for (int k = threadIdx.x; k < 3 * JN; k += BLOCK) j.near[k] = 0;
    load_fields(cached, f, p.alpha, (long long)(oy - 1 + BELOW) * d.pitch + ox - 1 + BELOW, d.pitch, nx, ny);
    __syncthreads();
    double energy = 0, momentum[3] = {0, 0, 0};
#if ORDER == 1
    Waiting& queue = reinterpret_cast<Waiting*>(shared + FIELD_BYTES + 3 * JN * sizeof(fixed))[threadIdx.x / 32];
    int waiting = 0;
#endif
    // The next particle is read while this one moves.
    Slot next = fetch(st, first, begin + threadIdx.x, end);
    for (u32 warp = begin + (threadIdx.x & ~31u); warp < end; warp += BLOCK) {
        u64 page = slot_of(st, st.table, first, warp), slot = page + lane_index();
        bool gone = false;
        Slot now = next;
        next = fetch(st, first, warp + lane_index() + BLOCK, end);
#if ORDER == 1
        bool crossing = false;
#endif
        int n = 0;
        real s0 = 0, t0 = 0, dx = 0, dy = 0, qz = 0, k = 0;
        if (warp + lane_index() < end) {
            int x = int(now.cell & 255), y = int(now.cell >> 8);
            real v[5];
#pragma unroll
            for (int c = 0; c < 5; c++) v[c] = now.v[c];
            real weight = WEIGHTED ? now.v[5 * WEIGHTED] : real(1);
            Six at = gather(cached, x, y, v[0], v[1]);
            Vec3<real> u{v[2], v[3], v[4]}, e{at.ex, at.ey, at.ez}, b{at.bx, at.by, at.bz};
            if (MEASURE) {
                Vec3<real> middle = add(u, e);
                energy += double(weight) * double(kinetic_energy(middle));
                momentum[0] += double(weight * u.x);
                momentum[1] += double(weight * u.y);
                momentum[2] += double(weight * u.z);
            }
            u = PUSHER(u, e, b);
            real inverse = zl::recip(gamma(u));
            v[2] = u.x;
            v[3] = u.y;
            v[4] = u.z;
            Unit unit = unit_of(p, weight);
            k = unit.k;
            s0 = v[0];
            t0 = v[1];
            dx = p.step[0] * u.x * inverse;
            dy = p.step[1] * u.y * inverse;
            qz = real(4) * unit.k * u.z * inverse;
            n = (y + MARGIN) * JX + x + MARGIN;
            v[0] = plus(s0, dx);
            v[1] = plus(t0, dy);
            real cx = crossed(v[0]), cy = crossed(v[1]);
            v[0] -= cx;
            v[1] -= cy;
            int di = int(cx), dj = int(cy);
#if ORDER == 1
            crossing = (di | dj) != 0;
            if (!crossing) deposit(j, n, point(s0, t0, unit), point(v[0], v[1], unit), s0, t0, v[0], v[1], qz, unit);
#else
            deposit_path(j, n, s0, t0, v[0], v[1], di, dj, qz, unit);
#endif
            x += di;
            y += dj;
            if (x < 0 || x >= nx || y < 0 || y >= ny) {
                int gx = ox + x, gy = oy + y;
                bool inside = gx >= 0 && gx < d.cells[0] && gy >= 0 && gy < d.cells[1];
                if (!inside) {
                    // A copy, since what a call takes by address lives in memory.
                    real w[5] = {v[0], v[1], v[2], v[3], v[4]};
                    bool out_x = gx < 0 || gx >= d.cells[0], out_y = gy < 0 || gy >= d.cells[1];
                    inside = meet_walls(d, walls, st.counters, gx, gy, w, weight);
#if ORDER == 2
                    if (!inside) vanish(j, n + di + dj * JX, v[0], v[1], out_x ? di : 0, out_y ? dj : 0, unit);
#endif
#pragma unroll
                    for (int c = 0; c < 5; c++) v[c] = w[c];
                }
                u32 to = u32(gy / TY * d.tiles[0] + gx / TX);
                x = gx % TX;
                y = gy % TY;
                gone = !inside;
                if (inside && to != tile) {
                    Record r;
                    r.tile = to;
                    r.cell = u32(x | y << 8);
#pragma unroll
                    for (int c = 0; c < 5; c++) r.v[c] = v[c];
#if WEIGHTED
                    r.v[5] = weight;
#endif
#if TAGGED
                    r.tag = st.tag[slot];
#endif
                    gone = send(st, item, &outgoing, r);
                }
            }
            if (!gone) {
                st.cell[slot] = u16(x | y << 8);
#pragma unroll
                for (int c = 0; c < 5; c++) st.v[c][slot] = v[c];
            }
        }
        u32 mask = __ballot_sync(FULL_WARP, gone);
        if (lane_index() == 0) {
            st.gone[page >> 5] = mask;
            if (mask) atomicAdd(&left, u32(__popc(mask)));
        }
#if ORDER == 1
        u32 crossers = __ballot_sync(FULL_WARP, crossing);
        if (crossing) {
            int at = waiting + __popc(crossers & ((1u << lane_index()) - 1));
            queue.n[at] = n;
            queue.s[at] = s0;
            queue.t[at] = t0;
            queue.dx[at] = dx;
            queue.dy[at] = dy;
            queue.qz[at] = qz;
            if (WEIGHTED) queue.k[at * WEIGHTED] = k;
        }
        waiting += __popc(crossers);
        __syncwarp();
        if (waiting >= WARP) {
            waiting -= WARP;
            deposit_waiting(j, queue, waiting + int(lane_index()), unit_of(p, real(1)));
            __syncwarp();
        }
#endif
    }
#if ORDER == 1
    if (int(lane_index()) < waiting) deposit_waiting(j, queue, int(lane_index()), unit_of(p, real(1)));
#endif
    __syncthreads();
    for (int k = threadIdx.x; k < 3 * JN; k += BLOCK) {
        fixed v = j.near[k];
        if (v == 0) continue;
        int c = k / JN, n = k - c * JN, y = n / JX, x = n - y * JX;
        atomicAdd((u64*)(far + c * d.length + j.corner + (long long)y * d.pitch + x), u64((long long)(p.sign) * (long long)(v)));
    }
    if (threadIdx.x == 0) {
        st.outgoing[item] = min(outgoing, u32(OUT));
        if (left) atomicAdd(&st.left[tile], left);
    }
    if (MEASURE) {
        double sums[4] = {energy, momentum[0], momentum[1], momentum[2]};
        for (int c = 0; c < 4; c++) {
            double sum = block_reduce<Sum<double>>(sums[c], scratch);
            if (threadIdx.x == 0) measured[4 * u64(item) + c] = sum;
        }
    }
}
