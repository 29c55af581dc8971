// The likelihood for frames of any shape: as likelihood.cu, in pieces. Behind pieces.cu and noise.cu.

// Two sums whose ratio is the brightness that fits a frame best.
extern "C" __global__ void __launch_bounds__(TEAM) brighten(Lot lot) {
  const u32 n = view_number(lot, blockIdx.y);
  float sums[2] = {0, 0};
  EACH_COUNTED(pixel) {
    float2 both = brightness(lot.power[(u64)blockIdx.y * (MX * MY) + pixel], magnitude(lot, n, pixel));
    sums[0] += both.x, sums[1] += both.y;
  }
  put_sums(lot, sums);
}

// Brightness of the lot's views from the sums of `chunks` blocks each. A thread a view.
extern "C" __global__ void __launch_bounds__(TEAM) settle_brightness(Lot lot, u32 chunks, u32 count, float* factors) {
  const u64 i = thread_index();
  if (i >= count) return;
  double up = 0, down = 0;
  for (u32 c = 0; c < chunks; ++c) up += lot.sums[(i * chunks + c) * 2], down += lot.sums[(i * chunks + c) * 2 + 1];
  float factor = float(up / down);
  if (!(fabsf(factor) < 1e37f)) factor = 1;
  else if (NOISE == 2) factor *= factor;
  factors[view_number(lot, i)] = factor;
}

// The value; intensities become what waves are multiplied by.
extern "C" __global__ void __launch_bounds__(TEAM) weigh(Lot lot, const float* factors, u32 left_out) {
  const u32 n = view_number(lot, blockIdx.y);
  const float factor = factors[n], weight = lot.scale * lot.scale * (left_out ? 1.0f : factor);
  float sum[1] = {0};
  EACH_COUNTED(pixel) {
    const float2 both = value_and_slope(lot.power[(u64)blockIdx.y * (MX * MY) + pixel] * factor, magnitude(lot, n, pixel));
    sum[0] += both.x;
    EACH_PART(part) {
      const u32 at = pixel_of(pixel, part);
      for (u32 k = 0; k < MODES; ++k) {
        C* wave = work_of(lot, blockIdx.y, k) + at;
        *wave = *wave * (both.y * weight);
      }
    }
  }
  put_sums(lot, sum);
}

// First and second order of the value, where `first` and `second` [views][MODES][NY * NX] are the orders of the waves.
extern "C" __global__ void __launch_bounds__(TEAM) bend(Lot lot, const C* first, const C* second, const float* factors) {
  const u32 n = view_number(lot, blockIdx.y);
  const float factor = factors[n], scale = lot.scale * lot.scale * factor;
  float sums[2] = {0, 0};
  EACH_COUNTED(pixel) {
    const float m = magnitude(lot, n, pixel), i = lot.power[(u64)blockIdx.y * (MX * MY) + pixel] * factor;
    float once = 0, twice = 0;
    EACH_PART(part) {
      for (u32 k = 0; k < MODES; ++k) {
        const u64 at = ((u64)blockIdx.y * MODES + k) * (NX * NY) + pixel_of(pixel, part);
        const C a = lot.work[at], b = first[at], c = second[at];
        once += 2 * (a.x * b.x + a.y * b.y), twice += power(b) + 2 * (a.x * c.x + a.y * c.y);
      }
    }
    once *= scale, twice *= scale;
    const float slope = value_and_slope(i, m).y;
    sums[0] += slope * once, sums[1] += slope * twice + curvature(i, m) * once * once;
  }
  put_sums(lot, sums);
}
