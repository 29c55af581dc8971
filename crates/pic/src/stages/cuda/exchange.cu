// exchange: give leavers' holes to those that come, fill the rest from the tile's end and give back empty pages (compact), lay
// out the tables (layout), write them and let the records in (deliver). Cost: a bit per particle, and what moves.
//
// Pages are taken only after others were given back, so a pool of (particles / PAGE + tiles) pages is always enough.

#define HELD (16 * SWEEPERS)  // pairs of a hole and a mover that a block of compact holds at a time

// Calls f(number, slot) for the set bits (`flip`: those not set) of slots `from` to `to` of a tile, in order. The whole block;
// gives how many.
template <class F> __device__ __forceinline__ u32 each_bit(const Store& st, u32 first, u32 from, u32 to, u32 flip, F f) {
    __shared__ u32 sums[SWEEPERS / 32];
    u32 base = 0;
    for (u32 word = from / 32; word * 32 < to; word += 4 * SWEEPERS) {
        u32 words[4], sum = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            u32 low = (word + threadIdx.x * 4 + i) * 32, bits = 0;
            if (low < to && low + 32 > from) {
                bits = st.gone[slot_of(st.table, first, low) >> 5] ^ flip;
                if (low < from) bits &= FULL_WARP << (from - low);
                if (low + 32 > to) bits &= FULL_WARP >> (low + 32 - to);
            }
            words[i] = bits;
            sum += __popc(bits);
        }
        u32 after = warp_scan(sum), at = base;
        if (lane_index() == 31) sums[threadIdx.x / 32] = after;
        __syncthreads();
#pragma unroll
        for (int w = 0; w < SWEEPERS / 32; w++) {
            if (w < threadIdx.x / 32) at += sums[w];
            base += sums[w];
        }
        at += after - sum;
#pragma unroll
        for (int i = 0; i < 4; i++)
            for (u32 bits = words[i]; bits; bits &= bits - 1) f(at++, (word + threadIdx.x * 4 + i) * 32 + __ffs(bits) - 1);
        __syncthreads();
    }
    return base;
}

// A block a tile. Of n particles left have gone, arrivals come: `after` there will be. Particles behind that move into holes before
// it, the other holes before it are listed for those that come; more than there are holes come behind the n.
extern "C" __global__ void __launch_bounds__(SWEEPERS) compact(const __grid_constant__ Store st) {
    __shared__ u32 holes[HELD], movers[HELD], at, freed;
    wait_for_previous_kernel();
    let_next_kernel_start();
    u32 tile = blockIdx.x, n = st.count[tile], left = st.left[tile], arrivals = st.arrivals[tile], first = st.first[tile];
    u32 after = n - left + arrivals, listed = min(arrivals, left);
    u32 wanted = (after + PAGE - 1) >> SHIFT, before = (n + PAGE - 1) >> SHIFT;
    if (threadIdx.x == 0) {
        at = listed ? atomicAdd(&st.counters->holes, listed) : 0;
        if (before > wanted) freed = atomicAdd(&st.counters->free, before - wanted);
        st.placed[tile] = 0;
        st.landing[tile] = Landing{at, listed, n, wanted > before ? wanted - before : 0};
        st.status[tile] = u64((after + WORK - 1) / WORK) << 32 | wanted;
    }
    __syncthreads();
    if (left && after) {
        u32 moving = 0, end = min(n, after);
        for (u32 base = 0; base == 0 || base < moving; base += HELD) {
            auto hold = [&](u32* list, u32 number, u32 slot) {
                if (number - base < HELD) list[number - base] = slot;
            };
            if (after < n) moving = each_bit(st, first, after, n, FULL_WARP, [&](u32 number, u32 slot) { hold(movers, number, slot); });
            if (base && base >= moving) break;
            each_bit(st, first, 0, end, 0, [&](u32 number, u32 slot) {
                if (number < moving)
                    hold(holes, number, slot);
                else if (base == 0)
                    st.holes[at + number - moving] = slot;
            });
            u32 pairs = moving - base < HELD ? moving - base : HELD;
            for (u32 k = threadIdx.x; k < pairs; k += SWEEPERS)
                save(st, slot_of(st.table, first, holes[k]), load(st, slot_of(st.table, first, movers[k])));
            __syncthreads();
        }
    }
    for (u32 k = threadIdx.x; wanted + k < before; k += SWEEPERS) st.spare[freed + k] = st.table[first + wanted + k];
}

// Running sums of pages and items over the tiles: blocks of 1024, one after the other. `status[tiles + b]`: sum of the blocks
// before b, plus 1 in the top bit once it is there. New pages are taken.
extern "C" __global__ void __launch_bounds__(1024) layout(const __grid_constant__ Store st) {
    __shared__ u64 sums[32], base;
    __shared__ u32 block;
    wait_for_previous_kernel();
    let_next_kernel_start();
    if (threadIdx.x == 0) block = atomicAdd(&st.counters->ticket, 1u);
    __syncthreads();
    u32 tile = block * 1024 + threadIdx.x, warp = threadIdx.x / 32;
    u64 own = tile < st.tiles ? st.status[tile] : 0, sum = warp_scan(own);
    if (lane_index() == 31) sums[warp] = sum;
    if (tile < st.tiles)
        if (u32 more = st.landing[tile].pages) st.landing[tile].pages = atomicSub(&st.counters->free, more) - more;
    __syncthreads();
    if (warp == 0) sums[lane_index()] = warp_scan(sums[lane_index()]);
    __syncthreads();
    volatile u64* chain = st.status + st.tiles;
    if (threadIdx.x == 0) {
        u64 before = 0;
        if (block > 0) {
            while (!((before = chain[block]) >> 63)) {}
            before &= ~(1ull << 63);
            chain[block] = 0;
        }
        base = before;
        if ((block + 1) * 1024 < st.tiles) {
            chain[block + 1] = (before + sums[31]) | 1ull << 63;
        } else {
            // The last one: totals, and the common outbox for what comes next.
            st.next_first[st.tiles] = u32(before + sums[31]);
            st.counters->items = u32((before + sums[31]) >> 32);
            st.counters->ticket = 0;
            st.counters->due = min(st.counters->common, st.common_room);
            st.counters->common = 0;
            st.counters->holes = 0;
        }
    }
    __syncthreads();
    u64 before = base + (warp ? sums[warp - 1] : 0) + sum - own;
    if (tile < st.tiles) {
        st.next_first[tile] = u32(before);
        st.first_item[tile] = u32(before >> 32);
    }
}

// A warp a tile: its pages in the new table, and its items.
__device__ __forceinline__ void retable(const Store& st, u32 tile) {
    Landing l = st.landing[tile];
    u32 after = l.end - st.left[tile] + st.arrivals[tile];
    u32 before = (l.end + PAGE - 1) >> SHIFT, wanted = (after + PAGE - 1) >> SHIFT, from = st.first[tile], to = st.next_first[tile];
    for (u32 k = lane_index(); k < wanted; k += 32) st.next_table[to + k] = k < before ? st.table[from + k] : st.spare[l.pages + k - before];
    u32 items = (after + WORK - 1) / WORK, item = st.first_item[tile];
    for (u32 k = lane_index(); k < items; k += 32) st.item[item + k] = item_of(tile, to, after, k);
    __syncwarp();
    if (lane_index() == 0) {
        st.count[tile] = after;
        st.left[tile] = 0;
        st.arrivals[tile] = 0;
    }
}

// A record into its slot: a hole, or behind the tile's particles, in an old page or in a new one.
__device__ __forceinline__ void land(const Store& st, const Record& r) {
    Landing l = st.landing[r.tile];
    u32 q = atomicAdd(&st.placed[r.tile], 1u), k = q < l.listed ? st.holes[l.holes + q] : l.end + q - l.listed;
    u32 before = (l.end + PAGE - 1) >> SHIFT, page = k >> SHIFT;
    u64 at = page < before ? st.table[st.first[r.tile] + page] : st.spare[l.pages + page - before];
    save(st, (at << SHIFT) + (k & (PAGE - 1)), r);
}

// Blocks that write tables, eight tiles each; then a block an item's outbox; those beyond share the common one.
extern "C" __global__ void __launch_bounds__(256) deliver(const __grid_constant__ Store st) {
    wait_for_previous_kernel();
    let_next_kernel_start();
    u32 writers = (st.tiles + 7) / 8, block = blockIdx.x - writers;
    if (blockIdx.x < writers) {
        u32 tile = blockIdx.x * 8 + threadIdx.x / 32;
        if (tile < st.tiles) retable(st, tile);
        return;
    }
    const Record* box = st.common;
    u32 n = 0;
    if (block < st.outbox_items) {
        n = st.outgoing[block];
        box = st.outbox + u64(block) * OUT;
    } else {
        u32 all = st.counters->due, blocks = gridDim.x - writers - st.outbox_items, part = (all + blocks - 1) / blocks;
        u32 begin = min((block - st.outbox_items) * part, all);
        n = min(part, all - begin);
        box += begin;
    }
    for (u32 k = threadIdx.x; k < n; k += blockDim.x) land(st, box[k]);
    __syncthreads();
    if (threadIdx.x == 0 && block < st.outbox_items && n) st.outgoing[block] = 0;
}

// Particles from the host: `n` records are in the common outbox. Counts them as arrivals.
extern "C" __global__ void __launch_bounds__(256) enter(const __grid_constant__ Store st, u32 n) {
    u64 k = thread_index();
    if (k < n) atomicAdd(&st.arrivals[st.common[k].tile], 1u);
    if (k == 0) st.counters->common = n;
}
