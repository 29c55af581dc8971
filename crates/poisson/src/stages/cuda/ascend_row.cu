// Parts of a step of ascend_strip.cu.

#include "short.cu"

// The rows that follow the finished correction in ascend_correct. r and e are `ascend_finest` times the residual and correction.
struct Correct {
    const wide *u, *f;
    wide* u_new;
    real* r_new;
    Norms norms;
    wide ascend_finest, down;
};

// Adds P e_{l+1} to a row between the coarse row `C`, whose values at the columns of the fine grid these are, and the next one,
// which `C` becomes; `got` are its values at the even columns.
__device__ __forceinline__ void add_between(const real* got, bool covered, const real* lx, const real* ly, real* C, real* e) {
    real v = covered ? got[0] : real(0), w = covered ? got[1] : real(0), beside = from_east(v);
    real N[4] = {v, physics::between(lx[0], v, lx[1], w), w, physics::between(lx[2], w, lx[3], beside)};
#pragma unroll
    for (int c = 0; c < 4; c++) {
        e[c] += physics::between(ly[0], C[c], ly[1], N[c]);
        C[c] = N[c];
    }
}

// Sums of a row of residuals and of the solution, by the shares `vx` of control volumes along x.
struct RowNorms {
    double rr, uu, r1;
};
template <bool PLAIN>
__device__ __forceinline__ RowNorms row_norms(const wide* res, const wide* u_row, const wide* keep, const float* vx, bool whole) {
    RowNorms norms = {};
#pragma unroll
    for (int c = 0; c < 4; c++) {
        // Residuals are zero off the unknowns; where all are alike, shares are 1 or that.
        double r = res[c], u = PLAIN ? keep[c] * u_row[c] : u_row[c];
        double share = PLAIN || whole ? 1.0 : double(vx[c]);
        norms.rr += share * r * r;
        norms.uu += share * u * u;
        norms.r1 += share * r;
    }
    return norms;
}
