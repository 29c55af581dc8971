// Columns of particles for those who work on them in a GPU's memory: the numbers of records, page after page. A block a page.

struct PageOfColumns {
    // Number of its first particle in the columns.
    u64 first;
    u32 number, count;
    // First cell of the tile.
    int corner[2];
};

struct PagesOfColumns {
    u8* slots;
    const PageOfColumns* pages;
    // Bytes of a page, and its slots.
    u64 bytes;
    u32 slots_of_page, weighted;
};

// x = origin + h * (cells from the corner of the box at the start), of which `moved` columns were left behind.
struct UnitsOfColumns {
    double origin[2], h[2];
    double moved, momentum, weighting;
};

// Addresses of columns; 0: not wanted.
struct Columns {
    double *position[2], *momentum[3], *weighting;
    u64* id;
};

template <class T>
__device__ __forceinline__ void columns(const PagesOfColumns& all, const UnitsOfColumns& units, const Columns& to) {
    PageOfColumns page = all.pages[blockIdx.x];
    const u8* bytes = all.slots + page.number * all.bytes;
    // Four numbers of each particle side by side, then columns, as in page.cu.
    const T* four = (const T*)bytes;
    const T* rest = four + 4 * all.slots_of_page;
    const u8* cells = (const u8*)(rest + (1 + all.weighted) * all.slots_of_page);
    const u64* tags = (const u64*)(cells + 2 * all.slots_of_page);
    for (u32 k = threadIdx.x; k < page.count; k += blockDim.x) {
        u64 at = page.first + k;
        double x = units.moved + double(page.corner[0] + int(cells[2 * k])) + 0.5 + double(four[4 * k]);
        to.position[0][at] = units.origin[0] + x * units.h[0];
        if (to.position[1]) {
            double y = double(page.corner[1] + int(cells[2 * k + 1])) + 0.5 + double(four[4 * k + 1]);
            to.position[1][at] = units.origin[1] + y * units.h[1];
        }
        to.momentum[0][at] = double(four[4 * k + 2]) * units.momentum;
        to.momentum[1][at] = double(four[4 * k + 3]) * units.momentum;
        to.momentum[2][at] = double(rest[k]) * units.momentum;
        double weight = all.weighted ? double(rest[all.slots_of_page + k]) : 1.0;
        to.weighting[at] = weight * units.weighting;
        if (to.id) to.id[at] = tags[k];
    }
}

// Momenta of particles in the order of columns, each in one of two precisions, in units of `unit`; those of address 0 stay.
struct Momenta {
    const float* single[3];
    const double* wide[3];
    double unit;
};

// Puts momenta in place. What a column would tell as it is stays to the last bit.
template <class T> __device__ __forceinline__ void put(const PagesOfColumns& all, const Momenta& given) {
    PageOfColumns page = all.pages[blockIdx.x];
    T* four = (T*)(all.slots + page.number * all.bytes);
    T* rest = four + 4 * all.slots_of_page;
    for (u32 k = threadIdx.x; k < page.count; k += blockDim.x) {
        u64 at = page.first + k;
        for (u32 c = 0; c < 3; c++) {
            if (!given.single[c] && !given.wide[c]) continue;
            double value = given.single[c] ? double(given.single[c][at]) : given.wide[c][at];
            T& own = c < 2 ? four[4 * k + 2 + c] : rest[k];
            if (double(own) * given.unit != value) own = T(value / given.unit);
        }
    }
}

#define COLUMNS(NAME, T)                                                                                                           \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        NAME(const __grid_constant__ PagesOfColumns all, const __grid_constant__ UnitsOfColumns units,                             \
             const __grid_constant__ Columns to) {                                                                                 \
        columns<T>(all, units, to);                                                                                                \
    }
COLUMNS(columns_f32, float)
COLUMNS(columns_f64, double)

#define PUT(NAME, T)                                                                                                               \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        NAME(const __grid_constant__ PagesOfColumns all, const __grid_constant__ Momenta given) {                                  \
        put<T>(all, given);                                                                                                        \
    }
PUT(put_momenta_f32, float)
PUT(put_momenta_f64, double)
