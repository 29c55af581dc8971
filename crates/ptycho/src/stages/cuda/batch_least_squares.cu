// LSQML in pieces: the residual waves of a batch, and what each view says of the steps along the directions of object and probe
// (batch_directions.cu). Grids as there where nothing else is said.

#include "batches.cu"

// From waves P O at the detector to residual waves chi there; three sums for the errors. `poisson`: the noise, else that of magnitudes.
extern "C" __global__ void __launch_bounds__(TEAM) residual(Batch batch, u32 poisson) {
    const u32 n = view_number(batch, blockIdx.y);
    real sums[3] = {0, 0, 0};
    EACH_COUNTED(pixel) {
        const real m = magnitude(batch, n, pixel);
        real i = 0;
        EACH_PART(part) {
            const u32 at = pixel_of(pixel, part);
            for (u32 k = 0; k < MODES; ++k) i += power(work_of(batch, blockIdx.y, k)[at]);
        }
        i *= scale_of(batch) * scale_of(batch);
        const real2 both = misfit(i, i, m);
        // Near the solution Poisson's is the ratio of magnitudes to first order.
        const real factor = m < 0 ? 0.0f : poisson ? 0.5f * (m * m - i) / (i + 1) : m / (sqrt(i) + GUARD) - 1;
        sums[0] += both.x, sums[1] += both.y, sums[2] += i * factor * factor;
        EACH_PART(part) {
            const u32 at = pixel_of(pixel, part);
            for (u32 k = 0; k < MODES; ++k) {
                C* target = work_of(batch, blockIdx.y, k) + at;
                *target = *target * (factor * scale_of(batch) * scale_of(batch));
            }
        }
    }
    put_sums(batch, sums);
}

// Products of a = P dO and b = dP O with each other and with chi: aa, bb, ab, a chi, b chi.
extern "C" __global__ void __launch_bounds__(TEAM) products(Model model, Model along, Batch batch) {
    const View view = model.views[view_number(batch, blockIdx.y)];
    real sums[5] = {0, 0, 0, 0, 0};
    EACH_PIXEL(pixel) {
        for (u32 k = 0; k < MODES; ++k) {
            const u64 probe = ((u64)probe_number(batch, view, blockIdx.y) * PROBES + k / OBJECTS) * (NX * NY) + pixel;
            const C a = model.probe[probe] * patch_value(along, view, k % OBJECTS, pixel, -1);
            const C b = along.probe[probe] * patch_value(model, view, k % OBJECTS, pixel, -1),
                    chi = work_of(batch, blockIdx.y, k)[pixel];
            sums[0] += power(a), sums[1] += power(b), sums[2] += a.x * b.x + a.y * b.y;
            sums[3] += a.x * chi.x + a.y * chi.y, sums[4] += b.x * chi.x + b.y * chi.y;
        }
    }
    put_sums(batch, sums);
}

// to += factor from.
extern "C" __global__ void __launch_bounds__(TEAM) add(C* to, const C* from, u64 count, real factor) {
    for (u64 i = thread_index(); i < count; i += thread_count()) to[i] = to[i] + from[i] * factor;
}
