// window: the particles' part of the moving window. Fields: `shift_fields` of field.cu.

// Everything one cell towards lower x, for a window. A block an item, as in `advance`.
extern "C" __global__ void __launch_bounds__(256) shift(const __grid_constant__ Domain d, const __grid_constant__ Store st) {
    __shared__ u32 outgoing, gone[WORK / 32];
    // Read at once: past the end are old items.
    Item it = st.item[blockIdx.x];
    if (blockIdx.x >= st.counters->items) return;
    Leavers leavers{gone, &outgoing};
    if (threadIdx.x == 0) outgoing = 0;
    for (int k = threadIdx.x; k < WORK / 32; k += blockDim.x) gone[k] = 0;
    __syncthreads();
    for (u32 k = it.begin + threadIdx.x; k < it.end; k += blockDim.x) {
        u64 slot = slot_of(st.table, it.first, k);
        Place p = place(st, slot);
        u32 cell = p.cell();
        if (cell & 255) {
            p.cell() = u16(cell - 1);
        } else if (it.tile % d.tiles[0] == 0) {
            leave(leavers, k - it.begin);
            atomicAdd(&st.counters->removed, 1ull);
            double weight = double(p.weight());
            Quad q = p.four();
            Vec3<double> u{double(q.z), double(q.w), double(p.rest(0))};
            add_exact(st.counters->out, weight);
            add_exact(st.counters->out + 2, weight * kinetic_energy(u));
        } else {
            Record r = load(st, slot);
            r.tile = it.tile - 1;
            r.cell = (cell & 0xff00u) | (TX - 1);
            if (send(st, blockIdx.x, &outgoing, r)) leave(leavers, k - it.begin);
        }
    }
    __syncthreads();
    tell(st, it, leavers);
}
