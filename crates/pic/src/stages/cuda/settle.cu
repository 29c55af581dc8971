// What becomes of a particle that crosses a border of its cell: another cell of the tile, another tile, the sides of the domain.

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

// The slots of an item that become free, a bit each, in shared memory; and how many records it has sent.
struct Leavers {
    u32 *gone, *outgoing;
};
__device__ __forceinline__ void leave(const Leavers& l, u32 k) { atomicOr(l.gone + k / 32, 1u << (k & 31)); }

// At the end of an item, by the whole block after a barrier: its bits and numbers into global memory.
__device__ __forceinline__ void tell(const Store& st, const Item& it, const Leavers& l) {
    u32 left = 0;
    for (u32 k = threadIdx.x; k < (it.end - it.begin + 31) / 32; k += blockDim.x) {
        st.gone[slot_of(st.table, it.first, it.begin + 32 * k) / 32] = l.gone[k];
        left += u32(__popc(l.gone[k]));
    }
    if (left) atomicAdd(&st.left[it.tile], left);
    if (threadIdx.x == 0) st.outgoing[blockIdx.x] = min(*l.outgoing, u32(OUT));
}

// Particle `k` of an item, whose new place and momentum are in its slot, has gone from cell (x, y) of the tile to (x + di, y + dj).
// `n`: the lower left node of the old cell.
__device__ __forceinline__ void settle(const Domain& d, const Store& st, const Walls& walls, const Item& it, const Leavers& l, const Sums& j,
                                       const Unit& unit, u32 k, int n, int x, int y, int di, int dj) {
    Place p = place(st, slot_of(st.table, it.first, it.begin + k));
    int ox = int(it.tile) % d.tiles[0] * TX, oy = int(it.tile) / d.tiles[0] * TY;
    int gx = ox + x + di, gy = oy + y + dj;
    x += di;
    y += dj;
    if (x < 0 || x >= TX || y < 0 || y >= TY || gx >= d.cells[0] || gy >= d.cells[1]) {
        real weight = p.weight();
        if (gx < 0 || gx >= d.cells[0] || gy < 0 || gy >= d.cells[1]) {
            real v[5];
            p.get(v);
#if ORDER == 2
            bool out_x = gx < 0 || gx >= d.cells[0], out_y = gy < 0 || gy >= d.cells[1];
#endif
            if (!meet_walls(d, walls, st.counters, gx, gy, v, weight)) {
#if ORDER == 2
                vanish(j, n + di + dj * JX, v[0], v[1], out_x ? di : 0, out_y ? dj : 0, unit);
#endif
                leave(l, k);
                return;
            }
            p.set(v);
        }
        u32 to = u32(gy / TY * d.tiles[0] + gx / TX);
        x = gx % TX;
        y = gy % TY;
        if (to != it.tile) {
            Record r;
            r.tile = to;
            r.cell = u32(x | y << 8);
            p.get(r.v);
#if WEIGHTED
            r.v[5] = weight;
#endif
#if TAGGED
            r.tag = p.tag();
#endif
            if (send(st, blockIdx.x, l.outgoing, r)) {
                leave(l, k);
                return;
            }
        }
    }
    p.cell() = u16(x | y << 8);
}
