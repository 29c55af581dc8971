// The Fourier step for frames of any shape, in pieces around a library's transforms, on a few frames at a time so that what passes from
// piece to piece stays in the second-level cache. Same formulae and same state as project.cu, but everything in natural order.

// P O of all modes of `count` views, from `first` on. Grid: (pixels of a frame / 256, count * MODES).
extern "C" __global__ void spread(Model model, C* exits, u32 first) {
  const u32 pixel = blockIdx.x * blockDim.x + threadIdx.x, n = first + blockIdx.y / MODES, k = blockIdx.y % MODES;
  if (pixel >= NX * NY) return;
  const View view = model.views[n];
  const C p = model.probe[((u64)(SHIFTED ? n : view.probe) * PROBES + k / OBJECTS) * (NX * NY) + pixel];
  const C o = model.object[patch_of(model, view, k % OBJECTS) + (u64)(pixel / NX) * model.storages[view.object].width + pixel % NX];
  exits[((u64)n * MODES + k) * (NX * NY) + pixel] = p * o;
}

// values[i] *= factor[i % period] (or its conjugate) * scale. With `shifts` (views see the probe between pixels) the frames of the views, number
// list[..] or first + .., go back by what the probe was shifted in them; with `axis` 0 (rows) or 1 the derivative by the place of that is added, of `still`.
// Grid: as many threads as values.
extern "C" __global__ void shade(C* values, const C* factor, u64 count, u32 period, u32 conjugate, float scale, const float2* shifts, const u32* list, u32 first,
                                 const C* still, i32 axis) {
  u64 i = thread_index();
  if (i >= count) return;
  const u32 pixel = i % period, slot = i / period / MODES;
  C value = values[i] * scale;
  if (axis >= 0) {
    const float k = axis ? place_of(pixel % NX, NX) / NX : place_of(pixel / NX, NY) / NY;
    value = value + make_float2(-still[i].y, still[i].x) * (6.2831853f * k * scale);
  }
  C turn = factor ? factor[pixel] : make_float2(1, 0);
  if (shifts) turn = turn * conj(ramp(shifts[list ? list[slot] : first + slot], pixel));
  values[i] = value * (conjugate ? conj(turn) : turn);
}

// The constraint on the waves of one view: a block of 512 threads each. In `exits` g times 1 / scale comes in and the new e goes out.
extern "C" __global__ void __launch_bounds__(512)
constrain(C* waves, C* exits, const float* mag, const float2* weight, float* errors, u32 first, Rule rule, float scale) {
  __shared__ float scratch[3][16];
  const u32 n = first + blockIdx.x;
  C* wave = waves + (u64)n * MODES * (NX * NY);
  C* exit = exits + (u64)n * MODES * (NX * NY);
  float2 sums = make_float2(0, 0);
  for (u32 pixel = threadIdx.x; pixel < MX * MY; pixel += 512) {
    float model = 0, estimate = 0;
    EACH_PART(part) {
      const u32 i = pixel_of(pixel, part);
      for (int k = 0; k < MODES; ++k) {
        C g = exit[k * (NX * NY) + i] * scale;
        model += power(g);
        estimate += power(g * rule.c + wave[k * (NX * NY) + i] * (1 - rule.c));
      }
    }
    sums = sums + misfit(model, estimate, mag[(u64)n * (MX * MY) + pixel]);
  }
  sums.x = block_reduce<Sum<float>>(sums.x, scratch[0]);
  sums.y = block_reduce<Sum<float>>(sums.y, scratch[1]);
  __shared__ float fourier;
  if (threadIdx.x == 0) {
    fourier = sums.y * weight[n].x;
    errors[3 * (u64)n] = fourier, errors[3 * (u64)n + 1] = sums.x / (MX * MY);
  }
  __syncthreads();
  const Blend blend = blend_of(rule, pull_of(rule, fourier, weight[n]));
  float change = 0;
  for (u32 pixel = threadIdx.x; pixel < MX * MY; pixel += 512) {
    float estimate = 0;
    EACH_PART(part) {
      const u32 i = pixel_of(pixel, part);
      for (int k = 0; k < MODES; ++k) estimate += power(exit[k * (NX * NY) + i] * (scale * rule.c) + wave[k * (NX * NY) + i] * (1 - rule.c));
    }
    const float q = ratio(estimate, mag[(u64)n * (MX * MY) + pixel]);
    const float g = fmaf(blend.g_ratio, q, blend.g) * scale, e = fmaf(blend.e_ratio, q, blend.e);
    EACH_PART(part) {
      const u32 i = pixel_of(pixel, part);
      for (int k = 0; k < MODES; ++k) {
        C old = wave[k * (NX * NY) + i], now = exit[k * (NX * NY) + i] * g + old * e;
        change += power(now - old);
        wave[k * (NX * NY) + i] = now;
        exit[k * (NX * NY) + i] = now * scale;
      }
    }
  }
  change = block_reduce<Sum<float>>(change, scratch[2]);
  if (threadIdx.x == 0) errors[3 * (u64)n + 2] = change / (NX * NY);
}
