// push, move, deposit and list leavers, in one pass over the particles. A block takes an item. Reads 2 + 5 words of a particle
// and writes 5 (22 and 20 bytes in single precision), and the cell of those that cross a border.

struct Push {
    real alpha;         // q dt / 2m
    real step[2];       // dt / h
    real unit[3];       // K, 4/K, 2/K
    int sign;           // of the charge
    int unused;
};

#if WEIGHTED
__device__ __forceinline__ Unit unit_of(const Push& p, real w) {
    real half = whole(real(0.5) * p.unit[0] * w), k = half + half;
    return {k, real(4) / k, real(2) / k};
}
#else
__device__ __forceinline__ Unit unit_of(const Push& p, real) { return {p.unit[0], p.unit[1], p.unit[2]}; }
#endif

// What is read of a particle, and where it stands, in bytes from `slots`.
struct Slot {
    u64 group;
    u32 cell;
    real v[5], weight;
};
__device__ __forceinline__ Slot fetch(const Store& st, u32 page, u32 k, u32 end) {
    Slot p{};
    if (k < end) {
        p.group = group_of(page, k);
        Place from{st.slots + p.group, k % GROUP};
        p.cell = from.cell();
        from.get(p.v);
        p.weight = from.weight();
    }
    return p;
}
__device__ __forceinline__ u32 page_of(const Store& st, const Item& it, u32 k) { return k < it.end ? st.table[it.first + (k >> SHIFT)] : 0; }

// Three rounds before they are needed, particles are asked into the L2 cache, a group a thread: without it 13 % slower when cold.
__device__ __forceinline__ void ask_for(const Store& st, const Item& it, u32 base) {
#if __CUDA_ARCH__ >= 900
    u32 k = base + threadIdx.x * GROUP;
    if (threadIdx.x < BLOCK / GROUP && k < it.end)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(st.slots + group_of(st.table[it.first + (k >> SHIFT)], k)), "r"(GROUP_BYTES));
#endif
}

#if ORDER == 1
// Particles that cross a border, a tenth of all in a warm plasma, wait in a queue of the warp until 32 of them fill all lanes: who
// (number in the item, cell), where from, how far, 4 K v_z, K.
#define QUEUE 64
struct Waiting {
    u32 who[QUEUE];
    real s[QUEUE], t[QUEUE], dx[QUEUE], dy[QUEUE], qz[QUEUE], k[WEIGHTED ? QUEUE : 1];
};
#endif

template <bool MEASURE>
__global__ void __launch_bounds__(BLOCK, RESIDENT)
    advance(const __grid_constant__ Domain d, const __grid_constant__ Store st, const __grid_constant__ Fields f, const __grid_constant__ Push p, const __grid_constant__ Walls walls, long long* far, double* measured) {
    extern __shared__ __align__(16) u8 shared[];
    __shared__ u32 outgoing, gone[WORK / 32];
    __shared__ double scratch[BLOCK / 32];
    wait_for_previous_kernel();
    let_next_kernel_start();
    // Read at once: past the end are old items.
    Item it = st.item[blockIdx.x];
    if (blockIdx.x >= st.counters->items) return;
    int ox = int(it.tile) % d.tiles[0] * TX, oy = int(it.tile) / d.tiles[0] * TY;
    Cached* cached = reinterpret_cast<Cached*>(shared);
    Sums j{reinterpret_cast<fixed*>(shared + FIELD_BYTES), far, d.length,
           (long long)(oy - MARGIN + BELOW) * d.pitch + ox - MARGIN + BELOW, d.pitch, p.sign};
    Leavers leavers{gone, &outgoing};
    // The next particle is read while this one moves, the first one while the fields are; where pages lie, one round before that.
    Slot next = fetch(st, page_of(st, it, it.begin + threadIdx.x), it.begin + threadIdx.x, it.end);
    u32 page = page_of(st, it, it.begin + threadIdx.x + BLOCK);
    if (threadIdx.x == 0) outgoing = 0;
    for (int k = threadIdx.x; k < WORK / 32; k += BLOCK) gone[k] = 0;
    for (int k = threadIdx.x; k < COMPONENTS * JN; k += BLOCK) j.near[k] = 0;
    load_fields(cached, f, p.alpha, (long long)(oy - 1 + BELOW) * d.pitch + ox - 1 + BELOW, d.pitch, min(TX, d.cells[0] - ox), min(TY, d.cells[1] - oy));
    __syncthreads();
    double energy = 0, momentum[3] = {0, 0, 0};
#if ORDER == 1
    Waiting& queue = reinterpret_cast<Waiting*>(shared + FIELD_BYTES + COMPONENTS * JN * sizeof(fixed))[threadIdx.x / 32];
    int waiting = 0;
#endif
#if !CHECKED
    int round = 0;
#endif
    for (u32 base = it.begin; base < it.end; base += BLOCK) {
        u32 own = base + threadIdx.x;
        Slot now = next;
        next = fetch(st, page, own + BLOCK, it.end);
        page = page_of(st, it, own + 2 * BLOCK);
        ask_for(st, it, base + 3 * BLOCK);
        bool crossing = false;
        real dx = 0, dy = 0, qz = 0;
        Unit unit = unit_of(p, real(1));
        if (own < it.end) {
            int x = int(now.cell & 255), y = int(now.cell >> 8);
            real s = now.v[0], t = now.v[1], weight = now.weight;
            Six at = gather(cached, x, y, s, t);
            Vec3<real> u{now.v[2], now.v[3], now.v[4]}, e{at.ex, at.ey, at.ez}, b{at.bx, at.by, at.bz};
            if (MEASURE) {
                Vec3<real> middle = add(u, e);
                energy += double(weight) * double(kinetic_energy(middle));
                momentum[0] += double(weight * u.x);
                momentum[1] += double(weight * u.y);
                momentum[2] += double(weight * u.z);
            }
            u = PUSHER(u, e, b);
            real inverse = inverse_gamma(u);
            if (WEIGHTED) unit = unit_of(p, weight);
            dx = p.step[0] * u.x * inverse;
            dy = p.step[1] * u.y * inverse;
            qz = real(4) * unit.k * u.z * inverse;
            real s1 = plus(s, dx), t1 = plus(t, dy), cx = whole(s1), cy = whole(t1), v[5] = {s1 - cx, t1 - cy, u.x, u.y, u.z};
            Place{st.slots + now.group, own % GROUP}.set(v);
            crossing = cx != real(0) || cy != real(0);
            int n = (y + MARGIN) * JX + x + MARGIN;
#if ORDER == 1
            if (!crossing) deposit(j, n, point(s, t, unit), point(s1, t1, unit), s, t, s1, t1, qz, unit);
#else
            deposit_path(j, n, s, t, v[0], v[1], int(cx), int(cy), qz, unit);
            if (crossing) settle(d, st, walls, it, leavers, j, unit, own - it.begin, n, x, y, int(cx), int(cy));
#endif
        }
#if ORDER == 1
        u32 crossers = __ballot_sync(FULL_WARP, crossing);
        if (crossing) {
            int at = waiting + __popc(crossers & ((1u << lane_index()) - 1));
            queue.who[at] = (own - it.begin) << 16 | now.cell;
            queue.s[at] = now.v[0];
            queue.t[at] = now.v[1];
            queue.dx[at] = dx;
            queue.dy[at] = dy;
            queue.qz[at] = qz;
            if (WEIGHTED) queue.k[at * WEIGHTED] = unit.k;
        }
        waiting += __popc(crossers);
        __syncwarp();
        bool last = it.end - base <= BLOCK;
        while (waiting >= (last ? 1 : WARP)) {
            int count = min(waiting, WARP);
            waiting -= count;
            if (int(lane_index()) < count) {
                int q = waiting + int(lane_index());
                u32 who = queue.who[q];
                int x = int(who & 255), y = int(who >> 8 & 255), n = (y + MARGIN) * JX + x + MARGIN;
                real s = queue.s[q], t = queue.t[q], dx = queue.dx[q], dy = queue.dy[q];
                Unit unit = unit_of(p, real(1));
                if (WEIGHTED) {
                    real k = queue.k[q * WEIGHTED];
                    unit = {k, real(4) / k, real(2) / k};
                }
                deposit_crossing(j, n, s, t, dx, dy, queue.qz[q], unit);
                settle(d, st, walls, it, leavers, j, unit, who >> 16, n, x, y, int(whole(plus(s, dx))), int(whole(plus(t, dy))));
            }
            __syncwarp();
        }
#endif
#if !CHECKED
        if (++round % SCAN == 0) relieve(j);
#endif
    }
    __syncthreads();
    for (int k = threadIdx.x; k < COMPONENTS * JN; k += BLOCK)
        if (fixed v = j.near[k]) carry(j, k, v);
    tell(st, it, leavers);
    if (MEASURE) {
        double sums[4] = {energy, momentum[0], momentum[1], momentum[2]};
        for (int c = 0; c < 4; c++) {
            double sum = block_reduce<Sum<double>>(sums[c], scratch);
            if (threadIdx.x == 0) measured[4 * u64(blockIdx.x) + c] = sum;
        }
    }
}
