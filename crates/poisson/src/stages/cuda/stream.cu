// Rows of fields on their way through shared memory, and values of several columns at once.

#include "common.cu"

template <class T> struct alignas(sizeof(T) * 2) Two {
    T v[2];
};

__device__ __forceinline__ void write4(float* p, const float* v) {
    *reinterpret_cast<float4*>(p) = make_float4(v[0], v[1], v[2], v[3]);
}
__device__ __forceinline__ void write4(double* p, const double* v) {
    reinterpret_cast<double2*>(p)[0] = make_double2(v[0], v[1]);
    reinterpret_cast<double2*>(p)[1] = make_double2(v[2], v[3]);
}

// Copies BYTES from global to shared memory without waiting, PAST the first cache or through it.
template <int BYTES, bool PAST> __device__ __forceinline__ void copy_async(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    if constexpr (PAST) asm volatile("cp.async.cg.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(BYTES) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(BYTES) : "memory");
#else
    for (int w = 0; w < BYTES; w += 4)
        *reinterpret_cast<int*>(static_cast<char*>(to) + w) = *reinterpret_cast<const int*>(static_cast<const char*>(from) + w);
#endif
}

// Rows of a field in flight through shared memory: N columns a lane, SLOTS rows a warp. A row is fetched some steps before
// it is taken, without holding registers; each lane takes only what it fetched itself, so nothing is awaited but the
// copies. Rows and columns beyond the ends are wrapped on a periodic axis (of 4 m nodes in x) and else repeat the
// end, where no weight reaches them: there are no branches.
template <int N, int SLOTS, class T> struct Stream {
    static constexpr int bytes = N * sizeof(T), piece = bytes < 16 ? bytes : 16, pieces = bytes / piece;
    static constexpr int space = SLOTS * bytes * 32;  // of a warp

    const T* column;
    char* slots;
    int n, pitch, periodic;

    __device__ __forceinline__ Stream(const T* field, const Level& l, int x, char* shared)
        : slots(shared + threadIdx.x % 32 * piece), n(l.y.n), pitch(l.pitch), periodic(l.y.periodic) {
        int wrap = x < 0 ? x + l.x.n : x % l.x.n;
        column = field + (l.x.periodic ? wrap : min(max(x, 0), l.pitch - N));
    }
    __device__ __forceinline__ void fetch(int j, int slot) const {
        j = periodic ? (j < 0 ? j + n : j >= n ? j - n : j) : min(max(j, 0), n - 1);
        fetch_at((long long)j * pitch, slot);
    }
    // As fetch, for the row that begins at `offset`.
    __device__ __forceinline__ void fetch_at(long long offset, int slot) const {
        const char* from = reinterpret_cast<const char*>(column + offset);
        char* to = slots + slot * bytes * 32;
#pragma unroll
        for (int q = 0; q < pieces; q++)
            // Of several pieces the others lie in the same sectors: through the first cache.
            copy_async<piece, pieces == 1 && piece == 16>(to + q * piece * 32, from + q * piece);
    }
    __device__ __forceinline__ void take(int slot, T* v) const {
        constexpr int each = piece / sizeof(T);
        struct alignas(piece) Piece {
            T v[each];
        };
#pragma unroll
        for (int q = 0; q < pieces; q++) {
            Piece got = *reinterpret_cast<const Piece*>(slots + (slot * pieces + q) * piece * 32);
#pragma unroll
            for (int c = 0; c < each; c++) v[q * each + c] = got.v[c];
        }
    }
};
// Ends the group of rows fetched in a step; waits until all groups but the last `LEFT` have arrived.
__device__ __forceinline__ void commit_fetches() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int LEFT> __device__ __forceinline__ void wait_for_fetches() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}
