// The loops around the DFTs of the direct solver: as fold.rs, one thread for the places d and m - d of a line.
// Lines are complex (two real lines at once) and lie one behind the other. Bytes: each value read and written once.

typedef REAL real;
struct alignas(2 * sizeof(real)) Z {
    real x, y;
};

enum { SINE, COSINE, QUARTER, MIRRORED, FOURIER };

__device__ Z operator+(Z a, Z b) { return {a.x + b.x, a.y + b.y}; }
__device__ Z operator-(Z a, Z b) { return {a.x - b.x, a.y - b.y}; }
__device__ Z operator*(Z a, Z b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }
__device__ Z operator*(Z a, real s) { return {a.x * s, a.y * s}; }
__device__ Z times_i(Z a) { return {-a.y, a.x}; }
__device__ Z conjugate(Z a) { return {a.x, -a.y}; }

// Thread number in the grid split into (line, place). False beyond the last line.
__device__ bool split(unsigned places, unsigned lines, size_t &line, unsigned &place) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    line = i / places;
    place = (unsigned)(i - line * places);
    return line < lines;
}

// One split of `lines` lines `z`, `stride` apart: rotated half into `w` (m values a line), the rest stays in `z`.
extern "C" __global__ void fold(Z *z, Z *w, const Z *rotation, unsigned m, unsigned stride, unsigned lines, int kind, real scale) {
    size_t line;
    unsigned d;
    if (!split(m / 2 + 1, lines, line, d)) return;
    z += line * stride;
    w += line * m;
    Z y, y_mirror;
    if (kind >= QUARTER) {
        y = z[kind == MIRRORED ? m - 1 - d : d];
        if (d > 0) y_mirror = z[kind == MIRRORED ? d - 1 : m - d];
        if (d == 0) y = y * (real)0.5;
    } else {
        if (kind == SINE) --z; // node 0 is not stored
        if (d == 0) {
            if (kind == SINE) {
                y = z[m];
            } else {
                Z lower = z[0], upper = z[2 * m];
                y = (lower - upper) * (real)0.5;
                z[0] = lower + upper;
                z[m] = z[m] * (real)2;
            }
        } else {
            Z a = z[d], e = z[2 * m - d], b = z[m - d], c = z[m + d];
            y = kind == SINE ? b + c : a - e;
            y_mirror = kind == SINE ? a + e : b - c;
            z[d] = kind == SINE ? a - e : a + e;
            z[m - d] = kind == SINE ? b - c : b + c;
        }
    }
    if (d == 0) {
        w[0] = y * scale;
    } else {
        Z q = times_i(y_mirror), r = rotation[d] * scale;
        w[m - d] = (y - q) * conjugate(r);
        w[d] = (y + q) * r;
    }
}

// The way back: `v` is rotated and put together with what `z` holds.
extern "C" __global__ void unfold(Z *z, const Z *v, const Z *rotation, unsigned m, unsigned stride, unsigned lines, int kind) {
    size_t line;
    unsigned d;
    if (!split(m / 2 + 1, lines, line, d)) return;
    z += line * stride;
    v += line * m;
    Z y = v[0], y_mirror = v[0];
    if (d > 0) {
        Z p = v[d] * rotation[d], q = v[m - d] * conjugate(rotation[d]);
        y = p + q;
        y_mirror = times_i(p - q);
    }
    if (kind >= QUARTER) {
        if (d > 0) z[kind == MIRRORED ? d - 1 : m - d] = y_mirror;
        z[kind == MIRRORED ? m - 1 - d : d] = y;
        return;
    }
    if (kind == SINE) --z;
    if (d == 0) {
        if (kind == SINE) {
            z[m] = y;
        } else {
            Z even = z[0];
            z[0] = even + y;
            z[2 * m] = even - y;
        }
        return;
    }
    Z outer = z[d], inner = z[m - d];
    if (kind == SINE) {
        z[m - d] = y + inner;
        z[m + d] = y - inner;
        z[d] = y_mirror + outer;
        z[2 * m - d] = y_mirror - outer;
    } else {
        z[m - d] = inner + y_mirror;
        z[m + d] = inner - y_mirror;
        z[d] = outer + y;
        z[2 * m - d] = outer - y;
    }
}

// The remaining n intervals of each line extended for a DFT: odd, even (its ends times `ends`), or as they are
// (`inverse`: put together from cosine and sine modes).
extern "C" __global__ void extend(const Z *z, Z *e, unsigned n, unsigned stride, unsigned lines, int kind, int inverse, real ends) {
    size_t line;
    unsigned j;
    if (!split(n + 1, lines, line, j)) return;
    z += line * stride;
    if (kind == FOURIER) {
        e += line * n;
        if (j == n) return;
        if (!inverse || j == 0 || 2 * j == n) {
            e[j] = z[j];
        } else if (2 * j < n) {
            Z c = z[j] * (real)0.5, s = times_i(z[n - j]) * (real)0.5;
            e[j] = c + s;
            e[n - j] = c - s;
        }
        return;
    }
    e += line * 2 * n;
    bool end = j == 0 || j == n;
    if (kind == SINE) {
        Z value = end ? Z{0, 0} : z[j - 1];
        e[j] = value;
        if (!end) e[2 * n - j] = Z{0, 0} - value;
    } else {
        e[j] = end ? z[j] * ends : z[j];
        if (!end) e[2 * n - j] = z[j];
    }
}

// What the DFT of an extension holds, times `scale` (its ends times `ends` more); `inverse` as for `extend`.
extern "C" __global__ void shrink(const Z *e, Z *to, unsigned n, unsigned stride, unsigned lines, int kind, int inverse, real scale, real ends) {
    size_t line;
    unsigned j;
    if (!split(n + 1, lines, line, j)) return;
    to += line * stride;
    if (kind == FOURIER) {
        e += line * n;
        if (j == n) return;
        if (inverse) {
            to[j] = e[j];
        } else if (j == 0 || 2 * j == n) {
            to[j] = e[j] * scale;
        } else if (2 * j < n) {
            to[j] = (e[j] + e[n - j]) * scale;
            to[n - j] = times_i(e[j] - e[n - j]) * scale;
        }
        return;
    }
    e += line * 2 * n;
    if (kind == SINE) {
        if (j > 0 && j < n) to[j - 1] = times_i(e[j]) * scale;
    } else {
        to[j] = e[j] * (j == 0 || j == n ? scale * ends : scale);
    }
}
