// Atomic additions of what belongs together in one go, where the device has such.

#include "model.cu"

__device__ __forceinline__ void add_to(real4* target, C value, real weight) {
#if __CUDA_ARCH__ >= 900 && !DOUBLE
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(target), "f"(value.x), "f"(value.y), "f"(weight), "f"(0.0f)
                 : "memory");
#else
    real* to = (real*)target;
    atomicAdd(to, value.x), atomicAdd(to + 1, value.y), atomicAdd(to + 2, weight);
#endif
}
__device__ __forceinline__ void add_to(C* target, C value) {
#if __CUDA_ARCH__ >= 900 && !DOUBLE
    asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(target), "f"(value.x), "f"(value.y) : "memory");
#else
    real* to = (real*)target;
    atomicAdd(to, value.x), atomicAdd(to + 1, value.y);
#endif
}
