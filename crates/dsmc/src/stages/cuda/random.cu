// Random numbers of the kernels: those of the CPU, by the same purposes.

#include "real.cuh"

// The number of a step as arguments have it: where launches are recorded it is the address at which the device counts steps.
__device__ __forceinline__ u64 step_of(u64 step) { return RECORDED ? __ldcg(reinterpret_cast<const u64*>(step)) : step; }

// Called, not put in place: some forty draws stand in the program of the flights, whose code would else be twice as long as the cache of
// instructions.
__device__ __noinline__ uint4 words_of(u32 purpose, u64 seed, u64 step, u64 index) {
    return philox_draw(purpose, seed, step, index);
}

// Random words of an item one after the other, as the CPU's `Stream` draws them. An item has 1024 blocks or more; pages of so many
// blocks are numbered by upper bits of the step.
struct Stream {
    u32 purpose, left;
    u64 seed, step, index;
    uint4 words;
    __device__ __forceinline__ Stream(u32 purpose, u64 seed, u64 step, u64 index)
        : purpose(purpose), left(0), seed(seed), step(step), index(index) {}
    __device__ __forceinline__ u32 word() {
        if (left == 0) {
            words = words_of(purpose, seed, step, index++);
            left = 4;
            if ((index & 1023) == 0) index -= 1024, step += 1ull << 40;
        }
        left--;
        return left == 3 ? words.w : left == 2 ? words.z : left == 1 ? words.y : words.x;
    }
    __device__ __forceinline__ double open() {
        u32 a = word(), b = word();
        return open_f64(a, b);
    }
};

// Purposes of random numbers: model.rs.
enum Purpose : u32 {
    COUNT = 0x6001,
    PAIR = 0x6002,
    INTERNAL = 0x6003,
    WALL = 0x6004,
    INFLOW = 0x6005,
    PERMUTE = 0x6007,
    SOURCE = 0x6008,
    PART = 0x6009,
    PARTNER = 0x600a
};
