// CUDA on one thread of the processor: the threads of a block are fibers that give way at barriers and shuffles, in turns
// forwards and backwards, so that what depends on their order shows. Blocks follow one another.
#include <ucontext.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static

struct Index {
    unsigned x = 0, y = 0, z = 0;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) double2 {
    double x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct uint2 {
    unsigned x, y;
};
struct uint4 {
    unsigned x, y, z, w;
};
static Index threadIdx, blockIdx, blockDim, gridDim;

namespace host {
enum State { READY, AT_WARP, AT_BLOCK, DONE };
struct Fiber {
    ucontext_t context;
    State state;
    Index index;
    unsigned long long given;
    std::vector<char> stack;
};
alignas(64) static char shared[460 << 10];
static std::vector<Fiber> fibers;
static ucontext_t home;
static unsigned now;
static void (*body)(void*);
static void* data;

static void give_way(State state) {
    fibers[now].state = state;
    swapcontext(&fibers[now].context, &home);
}

static void enter() {
    body(data);
    give_way(DONE);
}

template <class T> T exchange(T value, long from) {
    const long lane = now % 32;
    std::memcpy(&fibers[now].given, &value, sizeof value);
    give_way(AT_WARP);
    if (lane + from >= 0 && lane + from < 32) std::memcpy(&value, &fibers[now + from].given, sizeof value);
    give_way(AT_WARP);
    return value;
}

// Lets all fibers of `first .. end` go on if each of them waits at `state` or has ended; says if there is nothing more to wait for.
static bool release(unsigned first, unsigned end, State state) {
    bool waiting = false;
    for (unsigned i = first; i < end; ++i) {
        if (fibers[i].state != state && fibers[i].state != DONE) return false;
        waiting |= fibers[i].state == state;
    }
    for (unsigned i = first; i < end; ++i) {
        if (fibers[i].state == state) fibers[i].state = READY;
    }
    return waiting;
}

static void run_block() {
    const unsigned count = blockDim.x * blockDim.y * blockDim.z;
    if (fibers.size() < count) fibers.resize(count);
    for (unsigned i = 0; i < count; ++i) {
        Fiber& fiber = fibers[i];
        fiber.stack.resize(64 << 10);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, enter, 0);
        fiber.state = READY;
        fiber.index.x = i % blockDim.x, fiber.index.y = i / blockDim.x % blockDim.y, fiber.index.z = i / blockDim.x / blockDim.y;
    }
    for (bool forwards = true, going = true; going; forwards = !forwards) {
        for (unsigned k = 0; k < count; ++k) {
            now = forwards ? k : count - 1 - k;
            if (fibers[now].state != READY) continue;
            threadIdx = fibers[now].index;
            swapcontext(&home, &fibers[now].context);
        }
        going = false;
        for (unsigned w = 0; w < count; w += 32) going |= release(w, w + 32 < count ? w + 32 : count, AT_WARP);
        going |= release(0, count, AT_BLOCK);
    }
    for (unsigned i = 0; i < count; ++i) {
        if (fibers[i].state == DONE) continue;
        std::fprintf(stderr, "thread %u of block %u waits for others that have ended or wait elsewhere\n", i, blockIdx.x);
        std::abort();
    }
}
}  // namespace host

extern "C" void host_launch(const unsigned* blocks, const unsigned* threads, void (*body)(void*), void* data) {
    host::body = body, host::data = data;
    gridDim.x = blocks[0], gridDim.y = blocks[1], gridDim.z = blocks[2];
    blockDim.x = threads[0], blockDim.y = threads[1], blockDim.z = threads[2];
    for (blockIdx.z = 0; blockIdx.z < blocks[2]; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < blocks[1]; ++blockIdx.y)
            for (blockIdx.x = 0; blockIdx.x < blocks[0]; ++blockIdx.x) host::run_block();
}

static void __syncthreads() { host::give_way(host::AT_BLOCK); }
static void __syncwarp(unsigned = ~0u) { host::give_way(host::AT_WARP); }
template <class T> T __shfl_down_sync(unsigned, T value, unsigned by) { return host::exchange(value, (long)by); }
template <class T> T __shfl_up_sync(unsigned, T value, unsigned by) { return host::exchange(value, -(long)by); }
template <class T> T __shfl_xor_sync(unsigned, T value, int by) {
    return host::exchange(value, (host::now % 32 ^ by) - (long)(host::now % 32));
}
static unsigned long __cvta_generic_to_shared(const void* place) { return (const char*)place - host::shared; }
static void* __cvta_shared_to_generic(unsigned long place) { return host::shared + place; }
static void __threadfence() {}
template <class T> T atomicMin(T* place, T value) {
    T before = *place;
    if (value < before) *place = value;
    return before;
}
template <class T> T atomicAdd(T* place, T value) {
    T before = *place;
    *place += value;
    return before;
}
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
// Functions by the type of their argument, as CUDA has them.
using std::fabs;
using std::fma;
using std::fmax;
using std::lgamma;
using std::log;
using std::sqrt;
template <class T> void sincospi(T turns, T* s, T* c) {
    *s = (T)std::sin(3.141592653589793 * turns), *c = (T)std::cos(3.141592653589793 * turns);
}
static void sincospif(float turns, float* s, float* c) { sincospi(turns, s, c); }
template <class T> T rsqrt(T x) { return 1 / std::sqrt(x); }
static float __fadd_rn(float a, float b) { return a + b; }
static float __fmul_rn(float a, float b) { return a * b; }
static double __dadd_rn(double a, double b) { return a + b; }
static double __dmul_rn(double a, double b) { return a * b; }
static int __float_as_int(float x) {
    int bits;
    return std::memcpy(&bits, &x, sizeof bits), bits;
}
static long long __double_as_longlong(double x) {
    long long bits;
    return std::memcpy(&bits, &x, sizeof bits), bits;
}
static float rsqrtf(float x) { return 1 / std::sqrt(x); }
static float2 make_float2(float x, float y) { return {x, y}; }
static uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static float __int_as_float(int bits) {
    float value;
    return std::memcpy(&value, &bits, sizeof value), value;
}
static double __longlong_as_double(long long bits) {
    double value;
    return std::memcpy(&value, &bits, sizeof value), value;
}
template <class T> T __ldcg(const T* place) { return *place; }
template <class T> T __ldcs(const T* place) { return *place; }
template <class T> void __stcs(T* place, T value) { *place = value; }
template <class T> T min(T a, T b) { return b < a ? b : a; }
template <class T> T max(T a, T b) { return a < b ? b : a; }
