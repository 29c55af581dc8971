// push, move, deposit and exchange, in one pass over the particles. A block takes one unit after the other. Reads 2 + 5 words of a
// particle and writes 5 (22 and 20 bytes in single precision), and the cells of those that change it.
//
// Warps of a block go through their rounds without waiting for each other. They meet three times a unit: when fields are there and sums are
// zero, when all have come to their ends, and when all has been deposited; between the last two the last warp looks up what comes next.

#include "lists.cu"
#include "queue.cu"
#include "turns.cu"

static_assert(OUT >= WARP, "an outbox takes whatever leaves in a round");

template <bool MEASURE> __global__ void __launch_bounds__(BLOCK, RESIDENT)
    advance(const __grid_constant__ Domain d, const __grid_constant__ Store st, const __grid_constant__ Fields f,
            const __grid_constant__ Push p, const __grid_constant__ Walls walls, long long* far, double* measured) {
    extern __shared__ __align__(16) u8 shared[];
    __shared__ Tile tiles[2];
    __shared__ ParticleStream streams[WARPS];
    __shared__ u32 sent[WARPS], left[WARPS], following;
    __shared__ double scratch[WARPS];
    // Behind another species of the same step it begins while that one ends, which began after what both need had ended.
    if (!walls.overlaps) wait_for_previous_kernel();
    let_next_kernel_start();
    Cached* cached = reinterpret_cast<Cached*>(shared);
    fixed* near = reinterpret_cast<fixed*>(shared + FIELD_BYTES);
    CrossingQueue* queues = reinterpret_cast<CrossingQueue*>(shared + FIELD_BYTES + COMPONENTS * JN * sizeof(fixed));
    const u32 warp = threadIdx.x / WARP, helping = st.counters->helping, all = st.units + helping;
    const bool last = warp == WARPS - 1;
    for (int k = threadIdx.x; k < COMPONENTS * JN; k += BLOCK) near[k] = 0;
    u32 turn = blockIdx.x, flip = 0;
    if (threadIdx.x == 0) tiles[1].whole = 0;
    if (last) look_up(d, st, streams, tiles[0], helping, all, turn);
    __syncthreads();
    while (turn < all) {
        const Tile& tile = tiles[flip];
        ParticleStream& stream = streams[warp];
        Sums j{d, near, far, tile, p.sign};
        PageList list = list_of(st, stream);
        if (tiles[1 - flip].whole) empty(Sums{d, near, far, tiles[1 - flip], p.sign});
        if (tile.whole)
            load_fields(cached, f, p.alpha, (long long)(tile.y - 1 + BELOW) * d.pitch + tile.x - 1 + BELOW, d.pitch, tile.nx,
                        tile.ny);
        u32 base = 0;
        bool more, closed = false;
        double energy = 0, momentum[3] = {0, 0, 0};
        CrossingQueue& queue = queues[warp];
        u32 waiting = 0;
        do {
            if (lane_index() == 0) {
                sent[warp] = 0;
                stream.stop = stream.all;
            }
            // The next particle is read while this one moves, the first one while the fields are.
            ParticleValues next = fetch(st, stream, list, base);
            __syncthreads();
            if (threadIdx.x == BLOCK - WARP && base == 0 && !closed) following = NONE;
            // Sums that have not been checked since are checked after the first round.
            real spent = base ? real(2 * MOST) : real(0);
            for (; base < stream.stop; base += WARP) {
                Unit unit = unit_of(p, real(1));
                ParticleValues now = next;
                bool stays = now.cell != NONE, waits = false;
                if (!stays) now.cell = 0;
                real s = now.v[0], t = now.v[1], s1 = 0, t1 = 0, qz = 0, cx = 0, cy = 0;
                int x = int(now.cell & 255), y = int(now.cell >> 8), n = (y + MARGIN) * JX + x + MARGIN;
                FieldValues at = gather(cached, x, y, s, t);
                // Behind the loads from shared memory: there are six marks for what is under way, and what waits for one of those would wait for this.
                settled(at);
                next = fetch(st, stream, list, base + WARP);
                ask_for(st, list, base);
                if (stays) {
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
                    cx = whole(s1);
                    cy = whole(t1);
                    now.v[0] = s1 - cx;
                    now.v[1] = t1 - cy;
                    now.v[2] = u.x;
                    now.v[3] = u.y;
                    now.v[4] = u.z;
                    spent += most_of(dx, dy, qz, unit);
                    waits = !deposit_near(j, Path{s, t, s1, t1, qz, n}, unit);
                }
                bool crossing = cx != real(0) || cy != real(0);
                u32 crossers = __ballot_sync(FULL_WARP, crossing), late = ORDER == 1 ? crossers : __ballot_sync(FULL_WARP, waits);
                if (waits) queue.put(waiting + __popc(late & below()), Path{s, t, s1, t1, qz, n}, unit);
                if (crossing) {
                    x += int(cx);
                    y += int(cy);
                    now.cell = u32(x | y << 8);
                    stays = !outside(tile, x, y);
                }
                u32 who = __ballot_sync(FULL_WARP, stays);
                if (crossers & ~who) leave(st, tile, sent[warp], stream, crossers & ~who, now, x, y, base);
                keep(st, stream, list, base, who, crossing, now, [&](u32 homeless) {
                    leave(st, tile, sent[warp], stream, homeless, now, int(now.cell & 255), int(now.cell >> 8), base);
                });
                // Reads of this round are done, and the waiting particles become visible.
                __syncwarp();
                waiting += __popc(late);
                deposit_waiting(j, queue, waiting, unit);
#if BOUNDED
                if (__any_sync(FULL_WARP, spent > real(MOST))) {
                    relieve(j);
                    spent = 0;
                }
#endif
            }
            // Out of the loop, whose registers need not outlast the calls.
            const bool unfinished = base < stream.all;
            if (!unfinished && !closed) close(st, stream, list);
            closed = !unfinished;
            if (lane_index() == 0) left[warp] = waiting;
            // The next tile is asked for before all meet, and looked up while the others deposit.
            // Only the thread that writes `following` reads it before all have met.
            u32 then = NONE;
            if (threadIdx.x == BLOCK - WARP) {
                then = following;
                if (!unfinished && then == NONE) then = gridDim.x + atomicAdd(&st.counters->ticket, 1u);
            }
            more = __syncthreads_or(unfinished);
            if (last) {
                if (lane_index() == 0) following = then;
                if (!more) next_turn(d, st, streams, stream, tiles[1 - flip], helping, all, then);
            }
            if (!more) deposit_left(j, queues, left, p);
            settle(d, st, walls, tile, j, p, sent, helping != 0);
            __syncthreads();
        } while (more);
        if (MEASURE) write_moments(measured + 4 * u64(unit_at(st, helping, turn)), energy, momentum, scratch);
        turn = following;
        flip = 1 - flip;
    }
    if (tiles[1 - flip].whole) empty(Sums{d, near, far, tiles[1 - flip], p.sign});
    // Kernels that wait for this one wait for the ones before, too.
    if (walls.overlaps) wait_for_previous_kernel();
}
