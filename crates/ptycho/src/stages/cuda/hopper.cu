// Features of devices of capability 9.0 and up: shared memory of a whole cluster, and copies that run by themselves.

#include "model.cu"

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

#if __CUDA_ARCH__ >= 900
// Barrier of a cluster in two halves: what was done before `arrive` by any thread is seen after `wait` by all.
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
// An arrival that says only that this thread has read what it wanted from its block's shared memory: it does not wait for writes that are on their way
// to global memory, as `release` does.
__device__ __forceinline__ void cluster_ready() {
    asm volatile("fence.acq_rel.cta;\n\tbarrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
// Writes to the shared memory of block `rank` of the cluster.
__device__ __forceinline__ unsigned remote(unsigned address, int rank) {
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}
__device__ __forceinline__ void send(unsigned there, float value) {
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(value) : "memory");
}
__device__ __forceinline__ void send(unsigned there, float4 value) {
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(there), "f"(value.x), "f"(value.y), "f"(value.z),
                 "f"(value.w)
                 : "memory");
}
__device__ __forceinline__ void send(unsigned there, float2 value) {
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(there), "f"(value.x), "f"(value.y) : "memory");
}

// The barrier completes when the bytes fetched have arrived; `phase` alternates from 0.
__device__ __forceinline__ void init_barrier(u64* barrier) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;\n\tfence.proxy.async.shared::cta;" ::"r"(shared_address(barrier)) : "memory");
}
__device__ __forceinline__ void fetch(void* to, const void* from, unsigned bytes, u64* barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
}
__device__ __forceinline__ void wait_barrier(u64* barrier, u32 phase) {
    u32 open;
    do {
        asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(open)
                     : "r"(shared_address(barrier)), "r"(phase)
                     : "memory");
    } while (!open);
}
__device__ __forceinline__ void send(unsigned there, double value) {
    asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(there), "d"(value) : "memory");
}
__device__ __forceinline__ void send(unsigned there, double2 value) {
    asm volatile("st.shared::cluster.v2.f64 [%0], {%1, %2};" ::"r"(there), "d"(value.x), "d"(value.y) : "memory");
}
// 16 bytes into this block's shared memory, which are there for the thread that has waited.
__device__ __forceinline__ void copy_ahead(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
__device__ __forceinline__ void wait_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
// Into the second-level cache, a multiple of 16 bytes.
__device__ __forceinline__ void expect(const void* from, unsigned bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}
#else
// Programs with CL > 0 or FETCH are not made for these devices; only the compiler comes by, and tests on the CPU with one block.
__device__ __forceinline__ void cluster_arrive() {}
__device__ __forceinline__ void cluster_wait() { __syncthreads(); }
__device__ __forceinline__ void cluster_ready() {}
__device__ __forceinline__ unsigned remote(unsigned address, int) { return address; }
template <class T> __device__ __forceinline__ void send(unsigned there, T value) { *(T*)__cvta_shared_to_generic(there) = value; }
__device__ __forceinline__ void init_barrier(u64*) {}
__device__ __forceinline__ void fetch(void*, const void*, unsigned, u64*) {}
__device__ __forceinline__ void wait_barrier(u64*, u32) {}
__device__ __forceinline__ void copy_ahead(void* to, const void* from) { *(float4*)to = *(const float4*)from; }
__device__ __forceinline__ void wait_copies() {}
__device__ __forceinline__ void expect(const void*, unsigned) {}
#endif
