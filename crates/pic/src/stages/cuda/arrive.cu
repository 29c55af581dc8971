// arrive: particles that have come from the parts beside this one, into inboxes.

#include "settle.cu"

// Records of a slab of `depart`. They come over the lower (`end` 0) or the upper end and lie in the cells beside it: nothing flies farther in a
// step.
extern "C" __global__ void __launch_bounds__(256)
    arrive(const __grid_constant__ Domain d, const __grid_constant__ Store st, const u8* slab, int end) {
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
