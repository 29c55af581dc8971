// The rule of engines that go from view to view, and its weight at a pixel.

typedef PieStepArgument<real> PieStep;

// Nothing where there is nothing to divide by.
__device__ __forceinline__ real pie_weight(real step, real local, real largest, real here) {
    real norm = (1 - local) * largest + local * here;
    return norm > 0 ? step / norm : 0.0f;
}
