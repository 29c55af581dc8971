// Engines that go from view to view, for any shape, any modes, and batches: what sequence.cu does for one mode in registers, in pieces. The
// views of a batch are computed from the same object and probe (batch_difference.cu); then they change the object one after the other, and the
// probe gets the mean of what each asks for with the object as it found it. Grids: (CHUNKS), or (CHUNKS, sets) for `finish`.

#include "batches.cu"
#include "pie.cu"

// The object gets what view `i` of the batch asks for, where views see probes of their own with the greatest |P|^2 of each in `brightest`; its
// greatest |O|^2 in the view to `clearest`.
extern "C" __global__ void __launch_bounds__(TEAM)
    step_object(Model model, Batch batch, u32 i, const word* brightest, word* clearest, PieStep step) {
    const View view = model.views[view_number(batch, i)];
    const Storage storage = model.storages[view.object];
    const C* probe = model.probe + (u64)probe_number(batch, view, i) * PROBES * (NX * NY);
    const real largest = from_bits(brightest[SHIFTED ? i : view.probe]);
    real most = 0;
    EACH_PIXEL(pixel) {
        real norm = 0, seen = 0;
        for (u32 p = 0; p < PROBES; ++p) norm += power(probe[p * (NX * NY) + pixel]);
        const real w = pie_weight(step.object_step, step.object_mix, largest, norm);
        for (u32 o = 0; o < OBJECTS; ++o) {
            C* target = model.object + patch_of(model, view, o) + (u64)(pixel / NX) * storage.width + pixel % NX;
            C value = *target;
            if (step.object) {
                C sum = make_real2(0, 0);
                for (u32 p = 0; p < PROBES; ++p)
                    sum = sum + conj(probe[p * (NX * NY) + pixel]) * work_of(batch, i, p * OBJECTS + o)[pixel];
                value = clipped(value + sum * w, step.low, step.high);
                *target = value;
            }
            seen += power(value);
        }
        most = fmax(most, seen);
    }
    put_greatest(most, clearest);
}

// The greatest |O|^2 of the whole object of view `i` to `clearest`, which has that of its patch. Grid: any number of blocks.
extern "C" __global__ void __launch_bounds__(TEAM) look_through_object(Model model, Batch batch, u32 i, word* clearest) {
    const Storage storage = model.storages[model.views[view_number(batch, i)].object];
    const u64 layer = (u64)storage.height * storage.width;
    real most = 0;
    for (u64 at = (u64)blockIdx.x * TEAM + threadIdx.x; at < layer; at += (u64)gridDim.x * TEAM) {
        real seen = 0;
        for (u32 o = 0; o < OBJECTS; ++o) seen += power(model.object[storage.offset + o * layer + at]);
        most = fmax(most, seen);
    }
    put_greatest(most, clearest);
}

// Contribution of view `i` to the probe, added to `steps` [sets][P][NY * NX]; of the one that it sees itself, to its place in [views][P][NY * NX].
extern "C" __global__ void __launch_bounds__(TEAM)
    step_probe(Model model, Batch batch, u32 i, const word* clearest, PieStep step, real share, C* steps) {
    const View view = model.views[view_number(batch, i)];
    const Storage storage = model.storages[view.object];
    C* to = steps + (u64)probe_number(batch, view, i) * PROBES * (NX * NY);
    const real largest = from_bits(*clearest);
    EACH_PIXEL(pixel) {
        const C* object = model.object + patch_of(model, view, 0) + (u64)(pixel / NX) * storage.width + pixel % NX;
        const u64 layer = (u64)storage.height * storage.width;
        real norm = 0;
        for (u32 o = 0; o < OBJECTS; ++o) norm += power(object[o * layer]);
        const real w = pie_weight(step.probe_step * share, step.probe_mix, largest, norm);
        for (u32 p = 0; p < PROBES; ++p) {
            C sum = make_real2(0, 0);
            for (u32 o = 0; o < OBJECTS; ++o) sum = sum + conj(object[o * layer]) * work_of(batch, i, p * OBJECTS + o)[pixel];
            to[p * (NX * NY) + pixel] = SHIFTED ? sum * w : to[p * (NX * NY) + pixel] + sum * w;
        }
    }
}

// For batches of one view, what `step_probe`, `finish` and, where there is another view behind the batch's first, `multiply` for that one do. The
// greatest
// |P|^2 of the view's set to `next`; those of the other sets come over from `now`.
extern "C" __global__ void __launch_bounds__(TEAM)
    step_on(Model model, Batch batch, u32 more, u32 sets, const word* clearest, const word* now, word* next, PieStep step) {
    const View view = model.views[view_number(batch, 0)], after = model.views[view_number(batch, more ? 1 : 0)];
    const Storage storage = model.storages[view.object];
    const u64 layer = (u64)storage.height * storage.width;
    C* probe = model.probe + (u64)view.probe * PROBES * (NX * NY);
    const C* later = model.probe + (u64)after.probe * PROBES * (NX * NY);
    const real largest = from_bits(*clearest);
    real most = 0;
    EACH_PIXEL(pixel) {
        const C* object = model.object + patch_of(model, view, 0) + (u64)(pixel / NX) * storage.width + pixel % NX;
        const real inside = step.support ? step.support[pixel] : 1.0f;
        real seen = 0, norm = 0;
        for (u32 o = 0; o < OBJECTS; ++o) seen += power(object[o * layer]);
        const real w = pie_weight(step.probe_step, step.probe_mix, largest, seen);
        for (u32 p = 0; p < PROBES; ++p) {
            C value = probe[p * (NX * NY) + pixel];
            if (step.probe) {
                C sum = make_real2(0, 0);
                for (u32 o = 0; o < OBJECTS; ++o) sum = sum + conj(object[o * layer]) * work_of(batch, 0, p * OBJECTS + o)[pixel];
                probe[p * (NX * NY) + pixel] = value = (value + sum * w) * inside;
            }
            norm += power(value);
        }
        most = fmax(most, norm);
        // Differences and objects are read by whoever writes here, and by nobody else.
        for (u32 k = 0; more && k < MODES; ++k)
            work_of(batch, 0, k)[pixel] =
                later[(k / OBJECTS) * (NX * NY) + pixel] * patch_value(model, after, k % OBJECTS, pixel, -1);
    }
    put_greatest(most, next + view.probe);
    for (u32 s = blockIdx.x * TEAM + threadIdx.x; s < sets; s += gridDim.x * TEAM)
        if (s != view.probe) next[s] = now[s];
}

// Probes get their steps, and lose what lies outside of the support; the greatest |P|^2 of each set to `brightest`.
extern "C" __global__ void __launch_bounds__(TEAM) finish(C* probe, C* steps, const real* support, word* brightest) {
    const u64 first = (u64)blockIdx.y * PROBES * (NX * NY);
    real most = 0;
    EACH_PIXEL(pixel) {
        const real inside = support ? support[pixel] : 1.0f;
        real norm = 0;
        for (u32 p = 0; p < PROBES; ++p) {
            const u64 at = first + p * (NX * NY) + pixel;
            const C now = (probe[at] + steps[at]) * inside;
            probe[at] = now, steps[at] = make_real2(0, 0);
            norm += power(now);
        }
        most = fmax(most, norm);
    }
    put_greatest(most, brightest + blockIdx.y);
}
