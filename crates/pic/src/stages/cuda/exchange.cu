// exchange: fill the holes of leavers from the tile's end and give back empty pages (compact), lay out the tables of pages and
// of work anew (layout, retable), and let the records in (deliver). Cost: a bit per particle, and what moves.
//
// Pages are taken only after others were given back, so a pool of (particles / PAGE + tiles) pages is always enough.

#define CACHED 4096

// Appends the set bits of up to 128 words from `word` on, as slots of the tile, to `list`; bits below `from` and from `to` on
// do not count; `flip` takes the bits that are not set. One warp. Gives how many.
__device__ __forceinline__ u32 bits_of(const Store& st, u32 first, u32 word, u32 from, u32 to, u32 flip, u32* list) {
    u32 words[4], sum = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        u32 w = word + lane_index() * 4 + i, low = w * 32, bits = 0;
        if (low < to && low + 32 > from) {
            bits = st.gone[slot_of(st, st.table, first, low) >> 5] ^ flip;
            if (low < from) bits &= FULL_WARP << (from - low);
            if (low + 32 > to) bits &= FULL_WARP >> (low + 32 - to);
        }
        words[i] = bits;
        sum += __popc(bits);
    }
    u32 after = warp_scan(sum), at = after - sum;
#pragma unroll
    for (int i = 0; i < 4; i++)
        for (u32 bits = words[i]; bits; bits &= bits - 1) list[at++] = (word + lane_index() * 4 + i) * 32 + __ffs(bits) - 1;
    return __shfl_sync(FULL_WARP, after, 31);
}

// A block a tile. Writes count after arrivals, and numbers of pages and items for the layout.
extern "C" __global__ void __launch_bounds__(128) compact(const __grid_constant__ Store st) {
    __shared__ u32 holes[CACHED], movers[CACHED], hole_count, mover_count;
    u32 tile = blockIdx.x, n = st.count[tile], left = st.left[tile], m = n - left, first = st.first[tile];
    if (left && m) {
        u32 hole_word = 0, mover_word = m / 32, h = 0, v = 0;
        if (threadIdx.x == 0) hole_count = mover_count = 0;
        __syncthreads();
        while (true) {
            // Both lists are as long as each other over the whole tile.
            while (v == mover_count && mover_word * 32 < n) {
                u32 found = threadIdx.x / 32 == 1 ? bits_of(st, first, mover_word, m, n, FULL_WARP, movers) : 0;
                __syncthreads();
                if (threadIdx.x == 32) mover_count = found;
                v = 0;
                mover_word += 128;
                __syncthreads();
            }
            if (v == mover_count) break;
            while (h == hole_count && hole_word * 32 < m) {
                u32 found = threadIdx.x / 32 == 0 ? bits_of(st, first, hole_word, 0, m, 0, holes) : 0;
                __syncthreads();
                if (threadIdx.x == 0) hole_count = found;
                h = 0;
                hole_word += 128;
                __syncthreads();
            }
            if (h == hole_count) break;
            u32 pairs = min(hole_count - h, mover_count - v);
            for (u32 k = threadIdx.x; k < pairs; k += blockDim.x)
                save(st, slot_of(st, st.table, first, holes[h + k]), load(st, slot_of(st, st.table, first, movers[v + k])));
            h += pairs;
            v += pairs;
            __syncthreads();
        }
    }
    u32 pages = (m + PAGE - 1) >> SHIFT, before = (n + PAGE - 1) >> SHIFT;
    if (threadIdx.x == 0) {
        st.kept[tile] = m;
        st.placed[tile] = 0;
        u32 after = m + st.arrivals[tile];
        // Looked up by the layout.
        st.status[tile] = u64((after + WORK - 1) / WORK) << 32 | ((after + PAGE - 1) >> SHIFT);
    }
    if (before > pages) {
        __shared__ u32 at;
        if (threadIdx.x == 0) at = atomicAdd(&st.counters->free, before - pages);
        __syncthreads();
        for (u32 k = threadIdx.x; k < before - pages; k += blockDim.x) st.spare[at + k] = st.table[first + pages + k];
    }
}

// Running sums of pages and items over the tiles: blocks of 1024, one after the other. `status[tiles + b]`: sum of the blocks
// before b, plus 1 in the top bit once it is there.
extern "C" __global__ void __launch_bounds__(1024) layout(const __grid_constant__ Store st) {
    __shared__ u64 sums[32], base;
    __shared__ u32 block;
    if (threadIdx.x == 0) block = atomicAdd(&st.counters->ticket, 1u);
    __syncthreads();
    u32 tile = block * 1024 + threadIdx.x, warp = threadIdx.x / 32;
    u64 own = tile < st.tiles ? st.status[tile] : 0, sum = warp_scan(own);
    if (lane_index() == 31) sums[warp] = sum;
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
            // The last one: totals.
            st.next_first[st.tiles] = u32(before + sums[31]);
            st.counters->items = u32((before + sums[31]) >> 32);
            st.counters->ticket = 0;
        }
    }
    __syncthreads();
    u64 before = base + (warp ? sums[warp - 1] : 0) + sum - own;
    if (tile < st.tiles) {
        st.next_first[tile] = u32(before);
        st.first_item[tile] = u32(before >> 32);
    }
}

// A warp a tile: its pages in the new table, new ones from the pool, and its items.
extern "C" __global__ void __launch_bounds__(256) retable(const __grid_constant__ Store st) {
    u32 tile = blockIdx.x * 8 + threadIdx.x / 32;
    if (tile >= st.tiles) return;
    u32 kept = st.kept[tile], after = kept + st.arrivals[tile];
    u32 pages = (kept + PAGE - 1) >> SHIFT, wanted = (after + PAGE - 1) >> SHIFT, from = st.first[tile], to = st.next_first[tile], at = 0;
    if (wanted > pages && lane_index() == 0) at = atomicSub(&st.counters->free, wanted - pages) - (wanted - pages);
    at = __shfl_sync(FULL_WARP, at, 0);
    for (u32 k = lane_index(); k < wanted; k += 32) st.next_table[to + k] = k < pages ? st.table[from + k] : st.spare[at + k - pages];
    u32 items = (after + WORK - 1) / WORK, item = st.first_item[tile];
    for (u32 k = lane_index(); k < items; k += 32) st.item[item + k] = tile;
    __syncwarp();
    if (lane_index() == 0) {
        st.count[tile] = after;
        st.left[tile] = 0;
        st.arrivals[tile] = 0;
    }
}

// A block an item's outbox; those beyond share the common one. Runs with the new tables in place of the old ones.
extern "C" __global__ void __launch_bounds__(128) deliver(const __grid_constant__ Store st) {
    const Record* box = st.common;
    u32 n = 0;
    if (blockIdx.x < st.outbox_items) {
        n = st.outgoing[blockIdx.x];
        box = st.outbox + u64(blockIdx.x) * OUT;
    } else {
        u32 all = min(st.counters->common, st.common_room), blocks = gridDim.x - st.outbox_items, part = (all + blocks - 1) / blocks;
        u32 begin = min((blockIdx.x - st.outbox_items) * part, all);
        n = min(part, all - begin);
        box += begin;
    }
    for (u32 k = threadIdx.x; k < n; k += blockDim.x) {
        Record r = box[k];
        u32 at = st.kept[r.tile] + atomicAdd(&st.placed[r.tile], 1u);
        save(st, slot_of(st, st.table, st.first[r.tile], at), r);
    }
    __syncthreads();
    if (threadIdx.x == 0 && blockIdx.x < st.outbox_items) st.outgoing[blockIdx.x] = 0;
}

// After deliver: the common outbox is empty.
extern "C" __global__ void delivered(const __grid_constant__ Store st) { st.counters->common = 0; }

// Particles from the host: `n` records are in the common outbox. Counts them as arrivals.
extern "C" __global__ void __launch_bounds__(256) enter(const __grid_constant__ Store st, u32 n) {
    u64 k = thread_index();
    if (k < n) atomicAdd(&st.arrivals[st.common[k].tile], 1u);
    if (k == 0) st.counters->common = n;
}

// Everything one cell towards lower x, for a window. A block an item, as in `advance`.
extern "C" __global__ void __launch_bounds__(256) shift(const __grid_constant__ Domain d, const __grid_constant__ Store st) {
    __shared__ u32 outgoing, left;
    u32 item = blockIdx.x;
    if (item >= st.counters->items) return;
    u32 tile = st.item[item], begin = (item - st.first_item[tile]) * WORK, end = min(begin + WORK, st.count[tile]), first = st.first[tile];
    if (threadIdx.x == 0) outgoing = left = 0;
    __syncthreads();
    for (u32 warp = begin + (threadIdx.x & ~31u); warp < end; warp += 256) {
        u64 page = slot_of(st, st.table, first, warp), slot = page + lane_index();
        bool gone = false;
        if (warp + lane_index() < end) {
            u32 cell = st.cell[slot];
            if (cell & 255) {
                st.cell[slot] = u16(cell - 1);
            } else if (tile % d.tiles[0] == 0) {
                gone = true;
                atomicAdd(&st.counters->removed, 1ull);
                double weight = WEIGHTED ? double(st.v[5 * WEIGHTED][slot]) : 1.0;
                Vec3<double> u{double(st.v[2][slot]), double(st.v[3][slot]), double(st.v[4][slot])};
                add_exact(st.counters->out, weight);
                add_exact(st.counters->out + 2, weight * kinetic_energy(u));
            } else {
                Record r = load(st, slot);
                r.tile = tile - 1;
                r.cell = (cell & 0xff00u) | (TX - 1);
                gone = send(st, item, &outgoing, r);
            }
        }
        u32 mask = __ballot_sync(FULL_WARP, gone);
        if (lane_index() == 0) {
            st.gone[page >> 5] = mask;
            if (mask) atomicAdd(&left, u32(__popc(mask)));
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        st.outgoing[item] = min(outgoing, u32(OUT));
        if (left) atomicAdd(&st.left[tile], left);
    }
}
