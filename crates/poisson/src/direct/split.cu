// The splits of a line around the DFTs of the direct solver, as fold.rs and odd.rs; one thread for the places d and m - d.
// Lines are complex (two real lines at once).

namespace physics {
#include "physics.cuh"
}

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
__device__ Z none() { return {0, 0}; }

#include "transform.cuh"

// One split by an odd factor of places d and m - d.
__device__ void fold_odd(Z* z, const Split& v, Z* w, unsigned d, bool sine, real scale) {
    unsigned half = v.m / 2;
    const Z* circle = v.table + v.groups * (half + 1);
    Z rest = none();
    for (unsigned c = 1; c <= v.groups; ++c) {
        Z a = z[d], b = none();
        rest = a;
        // cos is even in s and sin odd: s and radix - s go together, the second one an image from beyond n.
        for (unsigned s = 1, t = c, j = v.m; s <= v.groups; ++s, j += v.m, t = t + c < v.radix ? t + c : t + c - v.radix) {
            Z near = z[j + d], far = z[j - d] * (real)(sine ? -1 : 1);
            rest = rest + near + far;
            a = a + (near + far) * circle[t].x;
            b = b + (near - far) * circle[t].y;
        }
        Z y = sine ? b : a, q = times_i(sine ? a : b * (real)-1), r = v.table[(c - 1) * (half + 1) + d] * scale;
        w[(c - 1) * v.m + d] = (y + q) * r;
        if (d > 0 && d < half) w[c * v.m - d] = (y - q) * conjugate(r);
    }
    z[d] = sine && (d == 0 || d == half) ? none() : rest;
}

__device__ void unfold_odd(Z* z, const Split& v, const Z* w, unsigned d, bool sine) {
    unsigned half = v.m / 2;
    const Z* circle = v.table + v.groups * (half + 1);
    bool end = d == 0 || d == half;
    Z rest = sine && end ? none() : z[d];
    for (unsigned c = 1; c <= v.groups; ++c) {
        Z r = v.table[(c - 1) * (half + 1) + d];
        Z p = w[(c - 1) * v.m + d] * r, q = w[(c - 1) * v.m + (d > 0 ? v.m - d : 0)] * conjugate(r);
        Z y = p + q, mirror = times_i(p - q);
        Z even = sine ? mirror : y, odd = sine ? y : mirror * (real)-1;
        z[d] = even + (c == 1 ? rest : z[d]);
        for (unsigned s = 1, t = c, j = v.m; s <= v.groups; ++s, j += v.m, t = t + c < v.radix ? t + c : t + c - v.radix) {
            Z e = even * circle[t].x, o = odd * circle[t].y;
            Z near = e + o, far = e - o;
            z[j + d] = near + (c == 1 ? rest : z[j + d]);
            if (end) continue;  // there the image is a node that has been met
            if (c == 1) far = far + rest;
            if (sine) far = far * (real)-1;
            z[j - d] = c == 1 ? far : z[j - d] + far;
        }
    }
}

// One split in two, or (radix 1) a quarter wave.
__device__ void fold_two(Z* z, const Split& v, Z* w, unsigned d, bool sine, real scale) {
    unsigned m = v.m;
    Z y, mirror = none();
    if (v.radix == 1) {
        y = d > 0 ? z[d] : z[0] * (real)0.5;
        if (d > 0) mirror = z[m - d];
    } else if (d == 0) {
        y = sine ? z[m] : (z[0] - z[2 * m]) * (real)0.5;
        if (sine) {
            z[m] = none();  // the end of the line that is left
        } else {
            z[0] = z[0] + z[2 * m];
            z[m] = z[m] * (real)2;
        }
    } else {
        Z a = z[d], e = z[2 * m - d], b = z[m - d], c = z[m + d];
        y = sine ? b + c : a - e;
        mirror = sine ? a + e : b - c;
        z[d] = sine ? a - e : a + e;
        z[m - d] = sine ? b - c : b + c;
    }
    if (d == 0) {
        w[0] = y * scale;
        return;
    }
    Z q = times_i(mirror), r = v.table[d] * scale;
    w[m - d] = (y - q) * conjugate(r);
    w[d] = (y + q) * r;
}

__device__ void unfold_two(Z* z, const Split& v, const Z* w, unsigned d, bool sine) {
    unsigned m = v.m;
    if (d == 0) {
        Z y = w[0], even = z[0];
        if (v.radix == 1) z[0] = y;
        else if (sine) z[m] = y;
        else z[0] = even + y, z[2 * m] = even - y;
        return;
    }
    Z p = w[d] * v.table[d], q = w[m - d] * conjugate(v.table[d]), y = p + q, mirror = times_i(p - q);
    if (v.radix == 1) {
        z[m - d] = mirror;
        z[d] = y;
        return;
    }
    Z outer = z[d], inner = z[m - d];
    z[m - d] = inner + (sine ? y : mirror);
    z[m + d] = (sine ? y : inner) - (sine ? inner : mirror);
    z[d] = outer + (sine ? mirror : y);
    z[2 * m - d] = (sine ? mirror : outer) - (sine ? outer : y);
}
