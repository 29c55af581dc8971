// arrive: particles that have come from the parts beside this one, into inboxes.

#include "settle.cu"

// Records of the slabs that `depart` filled elsewhere, blockIdx.y 0 for those that come over the lower end, 1 for the upper one. They lie in the cells
// beside it: nothing flies farther in a step. Slabs that go out next, which their readers have left, are empty then.
extern "C" __global__ void __launch_bounds__(256)
    arrive(const __grid_constant__ Domain d, const __grid_constant__ Store st, const u8* below, const u8* above) {
    const u32 end = blockIdx.y;
    const u8* slab = end ? above : below;
    if (!slab) return;
    if (blockIdx.x == 0 && threadIdx.x == 0) *reinterpret_cast<u32*>(st.away[end]) = 0;
    const u32 count = *reinterpret_cast<const u32*>(slab);
    const Record* records = reinterpret_cast<const Record*>(slab + SLAB_HEADER);
    for (u64 k = thread_index(); k < min(count, st.away_room); k += thread_count()) {
        Record r = records[k];
        int x = int(r.unit), y = end ? d.cells[1] - 1 : 0, tx = tile_column(d, x), ty = y / TY;
        u32 unit = u32(ty * d.tiles[0] + tx) * st.parts + r.cell % st.parts;
        r.unit = member_of(st, unit, u32(bits(r.v[0])));
        r.cell = u32(x) | u32(y - ty * TY) << 8;
        post(st, r);
    }
}
