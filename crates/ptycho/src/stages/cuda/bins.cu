// Detector: MY x MX pixels, each a bin of BY x BX pixels of the waves; bins of one pixel unless waves are sampled more finely than
// that. What is the same for all modes of a pixel elsewhere is the same for all pixels of a bin as well.

#include "model.cu"

#define MX (NX / BX)
#define MY (NY / BY)

// Pixel of the waves number `part` of the bin that is counted as `pixel`.
__device__ __forceinline__ u32 pixel_of(u32 pixel, u32 part) {
    if (BX * BY == 1) return pixel;
    return (pixel / MX * BY + part / BX) * NX + pixel % MX * BX + part % BX;
}
#define EACH_PART(part) for (u32 part = 0; part < BX * BY; ++part)
