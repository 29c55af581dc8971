// push, move, deposit and exchange, in one pass over the particles. A block takes one unit after the other. Reads 2 + 5 words of a
// particle and writes 5 (22 and 20 bytes in single precision), and the cells of a round in which one changes.

// Before they are needed, particles are asked into the L2 cache, a page by one lane: without it 13 % slower when cold.
__device__ __forceinline__ void ask_for(const Store& st, const Stream& s, const u32* pages, u32 k) {
#if __CUDA_ARCH__ >= 900
    if (k % PAGE == 0 && lane_index() == 0 && k + AHEAD < s.own)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(place(st, pages[(k + AHEAD) >> SHIFT], 0).page), "r"(PAGE_BYTES));
#endif
}

static_assert(OUT >= BLOCK, "an outbox takes whatever leaves between two looks");

template <bool MEASURE>
__global__ void __launch_bounds__(BLOCK, RESIDENT)
    advance(const __grid_constant__ Domain d, const __grid_constant__ Store st, const __grid_constant__ Fields f, const __grid_constant__ Push p, const __grid_constant__ Walls walls, long long* far, double* measured) {
    extern __shared__ __align__(16) u8 shared[];
    __shared__ u32 outgoing, following;
    __shared__ Tile tile;
    __shared__ Stream streams[WARPS];
    __shared__ Kept lists[WARPS];
    __shared__ double scratch[WARPS];
#if ORDER == 1
    __shared__ int left[WARPS];
#endif
    // Behind another species of the same step it begins while that one ends, which began after what both need had ended.
    if (!walls.overlaps) wait_for_previous_kernel();
    let_next_kernel_start();
    Cached* cached = reinterpret_cast<Cached*>(shared);
    fixed* near = reinterpret_cast<fixed*>(shared + FIELD_BYTES);
    if (threadIdx.x == 0) outgoing = 0;
    for (int k = threadIdx.x; k < COMPONENTS * JN; k += BLOCK) near[k] = 0;
    // Helpers first: they have the heavy ones.
    const u32 helping = st.counters->helping, all = st.units + helping;
    for (u32 turn = blockIdx.x; turn < all; turn = following) {
        const u32 number = turn < helping ? st.units + turn : turn - helping;
        Stream& stream = streams[threadIdx.x / WARP];
        {
            Stream found = stream_of(st, number);
            if (lane_index() == 0) stream = found;
        }
        u32* pages = pages_of(st, number);
        if (threadIdx.x == 0) tile = tile_of(d, st, number);
        __syncthreads();
        Sums j{d, near, far, {tile.x - MARGIN, tile.y - MARGIN}, p.sign};
        // The next particle is read while this one moves, the first one while the fields are; where pages lie, one round before that.
        Kept& kept = lists[threadIdx.x / WARP];
        if (lane_index() == 0) kept.count = NONE;
        u32 base = 0, here = 0;
        if (stream.whole)
            load_fields(cached, f, p.alpha, (long long)(tile.y - 1 + BELOW) * d.pitch + tile.x - 1 + BELOW, d.pitch, tile.nx, tile.ny);
        __syncthreads();
        double energy = 0, momentum[3] = {0, 0, 0};
#if ORDER == 1
        Waiting* queues = reinterpret_cast<Waiting*>(shared + FIELD_BYTES + COMPONENTS * JN * sizeof(fixed));
        Waiting& queue = queues[threadIdx.x / WARP];
        int waiting = 0;
#endif
        do {
            // The page of the next round, and that of this one as long as nobody has left the list: then each stays where it is.
            u32 page = page_at(stream, pages, base);
            Slot next = fetch(st, number, stream, page, base);
            bool full = false;
            // Rounds before the next look, within which neither the outbox nor a sum can run over.
            int look = min(SCAN, OUT / BLOCK);
            for (; base < stream.rounds * WARP && !full; base += WARP) {
                bool last = base + WARP == stream.rounds * WARP;
                Unit unit = unit_of(p, real(1));
                if (base < stream.all) {
                    Slot now = next;
                    bool crossing = false;
                    real s = now.v[0], t = now.v[1], s1 = 0, t1 = 0, qz = 0;
                    here = here == NONE ? NONE : page;
                    if ((base + WARP) % PAGE == 0) page = page_at(stream, pages, base + WARP);
                    next = fetch(st, number, stream, page, base + WARP);
                    ask_for(st, stream, pages, base);
                    bool there = base + lane_index() < stream.all, stays = there;
                    int x = int(now.cell & 255), y = int(now.cell >> 8), n = (y + MARGIN) * JX + x + MARGIN, di = 0, dj = 0;
                    if (there) {
                        Six at = gather(cached, x, y, s, t);
                        Vec3<real> u{now.v[2], now.v[3], now.v[4]}, e{at.ex, at.ey, at.ez}, b{at.bx, at.by, at.bz};
                        if (MEASURE) {
                            Vec3<real> middle = add(u, e);
                            energy += double(now.weight) * double(kinetic_energy(middle));
                            momentum[0] += double(now.weight * u.x);
                            momentum[1] += double(now.weight * u.y);
                            momentum[2] += double(now.weight * u.z);
                        }
                        u = PUSHER(u, e, b);
                        real inverse = inverse_gamma(u);
                        if (WEIGHTED) unit = unit_of(p, now.weight);
                        real dx = p.step[0] * u.x * inverse, dy = p.step[1] * u.y * inverse;
                        qz = real(4) * unit.k * u.z * inverse;
                        s1 = plus(s, dx);
                        t1 = plus(t, dy);
                        real cx = whole(s1), cy = whole(t1);
                        now.v[0] = s1 - cx;
                        now.v[1] = t1 - cy;
                        now.v[2] = u.x;
                        now.v[3] = u.y;
                        now.v[4] = u.z;
                        crossing = cx != real(0) || cy != real(0);
                        di = int(cx);
                        dj = int(cy);
#if ORDER == 1
                        if (!crossing) deposit(j, n, point(s, t, unit), point(s1, t1, unit), s, t, s1, t1, qz, unit);
#else
                        deposit_path(j, n, s, t, now.v[0], now.v[1], di, dj, qz, unit);
#endif
                    }
                    u32 crossers = __ballot_sync(FULL_WARP, crossing);
#if ORDER == 1
                    if (crossing) queue.put(waiting + __popc(crossers & ((1u << lane_index()) - 1)), Path{s, t, s1, t1, qz, n}, unit);
                    waiting += __popc(crossers);
#endif
                    if (crossing) {
                        x += di;
                        y += dj;
                        now.cell = u32(x | y << 8);
                        if (outside(tile, x, y)) {
                            leave(st, tile, &outgoing, now, x, y);
                            stays = false;
                        }
                    }
                    if (base + WARP > stream.own || (crossers && __any_sync(FULL_WARP, !stays))) here = NONE;
                    if (here != NONE) {
                        Place at = place(st, here, base + lane_index());
                        at.set(now.v);
                        if (crossing) at.cell() = u16(now.cell);
                    } else {
                        if (kept.count == NONE) {
                            Kept all = kept_of(stream, pages, base);
                            __syncwarp();
                            if (lane_index() == 0) kept = all;
                            __syncwarp();
                        }
                        keep(st, pages, kept, stays, now, [&] { leave(st, tile, &outgoing, now, int(now.cell & 255), int(now.cell >> 8)); });
                    }
                }
#if ORDER == 1
                __syncwarp();
                while (waiting >= WARP) {
                    waiting -= WARP;
                    Path w = queue.get(waiting + int(lane_index()), unit);
                    bool again = deposit_first(j, w, unit);
                    // The last piece; those with three wait once more, since all lanes would wait for them.
                    u32 rest = __ballot_sync(FULL_WARP, again);
                    if (again) queue.put(waiting + __popc(rest & ((1u << lane_index()) - 1)), w, unit);
                    waiting += __popc(rest);
                    if (!again) deposit(j, w.n, point(w.s, w.t, unit), point(w.s1, w.t1, unit), w.s, w.t, w.s1, w.t1, w.qz, unit);
                    __syncwarp();
                }
#endif
                if (--look == 0 && !last) {
                    __syncthreads();
                    u32 sent = outgoing;
#if !CHECKED
                    relieve(j);
#endif
                    look = min(SCAN, int(OUT - sent) / BLOCK);
                    full = look == 0;
                    __syncthreads();
                }
            }
            // Out of the loop, whose registers need not outlast the calls.
#if ORDER == 1
            bool ends = base >= stream.rounds * WARP;
            if (ends && lane_index() == 0) left[threadIdx.x / WARP] = waiting;
            __syncthreads();
            if (ends) deposit_left(j, queues, left, p);
#else
            __syncthreads();
#endif
            settle(d, st, walls, tile, j, p, outgoing, helping != 0);
            __syncthreads();
            if (threadIdx.x == 0) outgoing = 0;
            __syncthreads();
        } while (base < stream.rounds * WARP);
        if (here == NONE) close(st, number, pages, kept);
        u32 ticket = 0;
        if (threadIdx.x == 0) ticket = atomicAdd(&st.counters->ticket, 1u);
        if (stream.whole) {
            // Pages for a quarter more than came now, and for a sixteenth of the unit at least.
            if (threadIdx.x < WARP) prepare(st, number, stream.held, max(stream.arrived + stream.arrived / 4 + WARP, stream.whole / 16));
            if (threadIdx.x == WARP) find_heavy(st, number, stream.whole);
            empty(j);
        }
        if (MEASURE) {
            double sums[4] = {energy, momentum[0], momentum[1], momentum[2]};
            for (int c = 0; c < 4; c++) {
                double sum = block_reduce<Sum<double>>(sums[c], scratch);
                if (threadIdx.x == 0) measured[4 * u64(number) + c] = sum;
            }
        }
        __syncthreads();
        if (threadIdx.x == 0) following = gridDim.x + ticket;
        __syncthreads();
    }
    // What waits for this one waits for the ones before, too.
    if (walls.overlaps) wait_for_previous_kernel();
}
