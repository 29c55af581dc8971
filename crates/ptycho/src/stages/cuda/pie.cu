// The rule of engines that go from view to view, and its weight at a pixel.

struct PieStep {
    real object_step, object_mix, probe_step, probe_mix;  // s_o, t_o, s_p, t_p
    real low, high;                                       // of the object's magnitude; low < 0: none
    u32 object, probe, keep, unused;  // whether each is updated; whether waves are kept, or begin as F(P O) every time
    const real* support;              // 1 where probes may be and 0 elsewhere, or 0 for no support
};

// Nothing where there is nothing to divide by.
__device__ __forceinline__ real pie_weight(real step, real local, real largest, real here) {
    real norm = (1 - local) * largest + local * here;
    return norm > 0 ? step / norm : 0.0f;
}
