// Reduction in two launches: BLOCKS partial values, then one. n values read once, sizeof(T) bytes and one operation each.
// Launch: reduce_blocks min(BLOCKS, n / THREADS rounded up) x THREADS, reduce_rest 1 x THREADS.

template <class A> struct SumOf : Sum<A> {
    template <class T> static __device__ A load(T x) { return A(x); }
};
template <class A> struct MinOf : Min<A> {
    template <class T> static __device__ A load(T x) { return A(x); }
};
template <class A> struct MaxOf : Max<A> {
    template <class T> static __device__ A load(T x) { return A(x); }
};
template <class A> struct MaxAbsOf : Max<A> {
    static __device__ A zero() { return A(0); }
    template <class T> static __device__ A load(T x) { return A(x < T(0) ? -x : x); }
};

// Thread t of the grid takes values t, t + threads, ...: the partition depends on n alone.
template <class T, class A, class Op> __global__ void __launch_bounds__(THREADS) reduce_blocks(const T* x, u64 n, A* partial) {
    __shared__ A scratch[THREADS / WARP];
    A value = Op::zero();
    u64 i = thread_index(), stride = thread_count();
    // Four loads under way at a time hide the latency of memory.
    for (; i + 3 * stride < n; i += 4 * stride) {
        A a = Op::load(x[i]), b = Op::load(x[i + stride]), c = Op::load(x[i + 2 * stride]), d = Op::load(x[i + 3 * stride]);
        value = Op::join(value, Op::join(Op::join(a, b), Op::join(c, d)));
    }
    for (; i < n; i += stride) value = Op::join(value, Op::load(x[i]));
    value = block_reduce<Op>(value, scratch);
    if (threadIdx.x == 0) partial[blockIdx.x] = value;
}

template <class A, class Op> __global__ void __launch_bounds__(THREADS) reduce_rest(const A* partial, u32 n, A* result) {
    __shared__ A scratch[THREADS / WARP];
    A value = Op::zero();
    for (u32 i = threadIdx.x; i < n; i += THREADS) value = Op::join(value, partial[i]);
    value = block_reduce<Op>(value, scratch);
    if (threadIdx.x == 0) *result = value;
}
