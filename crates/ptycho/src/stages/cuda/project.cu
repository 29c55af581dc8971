// One iteration of difference map or RAAR on the exit waves. With P O the product of probe and object and e = F exit,
//   g = F(P O),  f = c g + (1 - c) e,  e <- (1 - a - b) e + a g + b f M,  exit = F* e,
// where M makes |f| the measured magnitude, or brings it nearer as the bound on power says. This is the usual form with one transform
// less, since F is linear, and the errors come along: E_LL from g, E_F from f, E_ex from the change of e (F is unitary).
//
// Grid: persistent; a block (or a cluster of 2^CL) does a frame at a time. Transforms: 2 a mode. Bytes a pixel and mode: e 8 + 8, exit 8
// (and 4 of magnitudes); with several modes 16 + 8 more, since g waits in the exit wave's place until all modes are known.

struct Rule {
  float a, b, c, bound; // bound < 0: none
};

__device__ __forceinline__ float4 magnitudes_at(const float* mag, int r) { return __ldcs((const float4*)mag + (r >> 2) * THREADS + threadIdx.x); }

// A pixel's part of E_LL and E_F: intensities of the model and of the estimate, measured magnitude (negative where there is none).
__device__ __forceinline__ float2 misfit(float model, float estimate, float m) {
  float d = model - m * m, off = sqrtf(estimate) - m;
  return m < 0 ? make_float2(0, 0) : make_float2(d * d / (m * m + 1), off * off);
}

// What f is multiplied by; `pull` is 0 where magnitudes are taken over and 1 where nothing is to change.
__device__ __forceinline__ float constrain(float estimate, float m, float pull) {
  float inverse = rsqrtf(estimate + 1e-20f), size = estimate * inverse;
  return m < 0 || pull == 1 ? 1.0f : (m + (size - m) * pull) * inverse;
}

__device__ __forceinline__ float pull_of(float error, float bound) {
  return bound < 0 ? 0.0f : error <= bound ? 1.0f : sqrtf(bound / error);
}

// Values r and r + 1 of a frame in the order of the transform.
__device__ __forceinline__ float4 pair(const C* wave, int r) { return ((const float4*)wave)[(r >> 1) * THREADS + threadIdx.x]; }

__device__ __forceinline__ float4 both(const C* v, int r) { return make_float4(v[r].x, v[r].y, v[r + 1].x, v[r + 1].y); }

// e of values r and r + 1 after the constraint, times `scale` to `v`; gives the sum of the squared changes.
__device__ __forceinline__ float advance(C* v, float4 g, float4 e, C* wave, int r, float2 factor, Rule rule, float scale) {
  C g2[2] = {make_float2(g.x, g.y), make_float2(g.z, g.w)}, e2[2] = {make_float2(e.x, e.y), make_float2(e.z, e.w)}, now[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    C f = g2[h] * rule.c + e2[h] * (1 - rule.c);
    now[h] = f * (rule.b * (h ? factor.y : factor.x)) + e2[h] * (1 - rule.a - rule.b) + g2[h] * rule.a;
    v[r + h] = now[h] * scale;
  }
  __stcs((float4*)wave + (r >> 1) * THREADS + threadIdx.x, make_float4(now[0].x, now[0].y, now[1].x, now[1].y));
  return power(now[0] - e2[0]) + power(now[1] - e2[1]);
}

__device__ __forceinline__ float2 estimates(float4 g, float4 e, float c) {
  C f = make_float2(g.x, g.y) * c + make_float2(e.x, e.y) * (1 - c), h = make_float2(g.z, g.w) * c + make_float2(e.z, e.w) * (1 - c);
  return make_float2(power(f), power(h));
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
project(Model model, C* waves, C* exits, const float* mag, const float* weight, float* errors, u32 first, u32 count, Rule rule) {
  extern __shared__ __align__(128) char shared[];
  C* big = (C*)shared; // 32 values a thread: the wave to come, or a wide exchange, or intensities of two kinds
  const Desk desk = desk_of(big + 32 * THREADS, CL ? blockIdx.x & (BLOCKS - 1) : 0);
  const Seat& seat = desk.seat;
  const float scale = rsqrtf(float(NX) * float(NY));
  const u32 groups = gridDim.x >> CL;
  const u64 mine = (u64)seat.block * 32 * THREADS;
  C* wide = WIDE ? big : 0;
#if FETCH
  if (threadIdx.x == 0) {
    make_gate(desk.gate);
    if (blockIdx.x < count) fetch(big, waves + (u64)(first + blockIdx.x) * (NX * NY), NX * NY * 8, desk.gate);
  }
  __syncthreads();
#endif
  u32 phase = 0;
  if (WIDE) cluster_arrive();
  for (u32 i = blockIdx.x >> CL; i < count; i += groups, phase ^= 1) {
    const u32 n = first + i;
    const View view = model.views[n];
    const float* magnitudes = mag + (u64)n * (NX * NY) + mine;
    C v[32];
    float4* held = (float4*)desk.seat.all + threadIdx.x; // magnitudes, while the exchange rests
    float2 sums = make_float2(0, 0);
    float change = 0;
#if MODES == 1
    C* wave = waves + (u64)n * (NX * NY) + mine;
    const C* old = FETCH ? big : wave;
    product(v, model, view, 0, seat, scale);
    forward(v, seat, wide);
    if (FETCH) pass_gate(desk.gate, phase);
#pragma unroll
    for (int r = 0; r < 32; r += 4) {
      float4 m = magnitudes_at(magnitudes, r);
      held[(r >> 2) * THREADS] = m;
      float2 f = estimates(both(v, r), pair(old, r), rule.c), h = estimates(both(v, r + 2), pair(old, r + 2), rule.c);
      sums = sums + misfit(power(v[r]), f.x, m.x) + misfit(power(v[r + 1]), f.y, m.y) + misfit(power(v[r + 2]), h.x, m.z) + misfit(power(v[r + 3]), h.y, m.w);
    }
    sums = everywhere(sums, desk);
    const float pull = pull_of(sums.y * weight[n], rule.bound);
#pragma unroll
    for (int r = 0; r < 32; r += 2) {
      float4 m = held[(r >> 2) * THREADS], g = both(v, r), e = pair(old, r);
      float2 f = estimates(g, e, rule.c);
      f = make_float2(constrain(f.x, r & 2 ? m.z : m.x, pull), constrain(f.y, r & 2 ? m.w : m.y, pull));
      change += advance(v, g, e, wave, r, f, rule, scale);
    }
    tell(change, desk);
#if FETCH
    __syncthreads();
    if (threadIdx.x == 0 && i + groups < count) fetch(big, waves + (u64)(n + groups) * (NX * NY), NX * NY * 8, desk.gate);
#endif
    inverse(v, seat, wide);
    keep(exits + (u64)n * (NX * NY), v, seat);
#else
    float4* seen = (float4*)big + threadIdx.x;    // intensities of the model
    float4* meant = seen + 8 * THREADS;           // of the estimate, then the factors
    for (int k = 0; k < MODES; ++k) {
      const u64 frame = ((u64)n * MODES + k) * (NX * NY) + mine;
      product(v, model, view, k, seat, scale);
      forward(v, seat, wide);
#pragma unroll
      for (int r = 0; r < 32; r += 4) {
        float2 f = estimates(both(v, r), pair(waves + frame, r), rule.c), h = estimates(both(v, r + 2), pair(waves + frame, r + 2), rule.c);
        ((float4*)(exits + frame))[(r >> 1) * THREADS + threadIdx.x] = both(v, r);
        ((float4*)(exits + frame))[(r >> 1) * THREADS + THREADS + threadIdx.x] = both(v, r + 2);
        float4 old = make_float4(0, 0, 0, 0), before = old;
        if (k > 0) old = seen[(r >> 2) * THREADS], before = meant[(r >> 2) * THREADS];
        seen[(r >> 2) * THREADS] = make_float4(old.x + power(v[r]), old.y + power(v[r + 1]), old.z + power(v[r + 2]), old.w + power(v[r + 3]));
        meant[(r >> 2) * THREADS] = make_float4(before.x + f.x, before.y + f.y, before.z + h.x, before.w + h.y);
      }
    }
#pragma unroll
    for (int r = 0; r < 32; r += 4) {
      float4 s = seen[(r >> 2) * THREADS], f = meant[(r >> 2) * THREADS], m = magnitudes_at(magnitudes, r);
      held[(r >> 2) * THREADS] = m;
      sums = sums + misfit(s.x, f.x, m.x) + misfit(s.y, f.y, m.y) + misfit(s.z, f.z, m.z) + misfit(s.w, f.w, m.w);
    }
    sums = everywhere(sums, desk);
    const float pull = pull_of(sums.y * weight[n], rule.bound);
#pragma unroll
    for (int r = 0; r < 32; r += 4) {
      float4 f = meant[(r >> 2) * THREADS], m = held[(r >> 2) * THREADS];
      meant[(r >> 2) * THREADS] = make_float4(constrain(f.x, m.x, pull), constrain(f.y, m.y, pull), constrain(f.z, m.z, pull), constrain(f.w, m.w, pull));
    }
    for (int k = 0; k < MODES; ++k) {
      const u64 frame = ((u64)n * MODES + k) * (NX * NY);
#pragma unroll
      for (int r = 0; r < 32; r += 2) {
        float4 factor = meant[(r >> 2) * THREADS];
        change += advance(v, pair(exits + frame + mine, r), pair(waves + frame + mine, r), waves + frame + mine, r,
                          r & 2 ? make_float2(factor.z, factor.w) : make_float2(factor.x, factor.y), rule, scale);
      }
      if (k == MODES - 1) tell(change, desk);
      inverse(v, seat, wide);
      keep(exits + frame, v, seat);
    }
#endif
    report(errors + 3 * (u64)n, sums.x / (NX * NY), sums.y * weight[n], desk);
  }
  if (WIDE) cluster_wait();
}
