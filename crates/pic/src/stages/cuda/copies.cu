// One number from global into shared memory, on its way while the thread goes on.
template <class T> __device__ __forceinline__ void copy_ahead(T* to, const T* from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(u32(__cvta_generic_to_shared(to))), "l"(from), "n"(sizeof(T))
                 : "memory");
#else
    *to = *from;
#endif
}
// All that this thread has asked for is there.
__device__ __forceinline__ void copies_are_there() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
