// A cycle's passes over a level in terms of the solution itself, A u = f, where solution and correction have one precision.
// What is stored between them is u after the first sweep: neither a residual nor a correction is.
// Plane, both axes coarsened, plain operator; launch as descend, strips and bands cover twice the coarse nodes.
//
// descend_solution:  one red-black sweep, then r_{l+1} = R (f - A u). Float: reads 8 B and writes 5 per unknown.
// descend_solution_norms:     the same with the norms of f - A u before it.
// descend_zero_norms:      that from u = 0. Reads 4 B, writes 5.
// interpolate_descend:     the same on P u_{l+1} by cubics (full multigrid). Reads 5 B, writes 5.
// ascend_descend:   u += P e_{l+1} and a sweep, which end a cycle, its norms, and the beginning of the next. Reads 9 B, writes 5.
// ascend_solution_norms:    the end alone with the norms; ascend_solution: without. Reads 9 B, writes 4.

#include "source.cu"
#include "cubic_source.cu"
#include "solution_strip.cu"

extern "C" __global__ __launch_bounds__(32 * WARPS) void descend_solution(Level l, Level coarse, const real* u, const real* f,
                                                                          real* u_new, real* rc, real pre, int height) {
    solution_strip<StoredSource, false, true, false, 1, real>(l, coarse, u, nullptr, f, u_new, rc, Norms{}, pre, pre, height);
}
extern "C" __global__ __launch_bounds__(32 * WARPS, sizeof(real) == 4 ? 16 / WARPS : 1) void descend_solution_norms(
    Level l, Level coarse, const real* u, const real* f, real* u_new, real* rc, Norms norms, real pre, int height) {
    solution_strip<StoredSource, false, true, true, 1, real>(l, coarse, u, nullptr, f, u_new, rc, norms, pre, pre, height);
}
extern "C" __global__ __launch_bounds__(32 * WARPS) void descend_zero_norms(Level l, Level coarse, const real* f, real* u_new,
                                                                            real* rc, Norms norms, real pre, int height) {
    solution_strip<ZeroSource, false, true, true, 1, real>(l, coarse, nullptr, nullptr, f, u_new, rc, norms, pre, pre, height);
}
// In place: of u only held nodes are read, which stay as they are.
extern "C" __global__ __launch_bounds__(32 * WARPS, sizeof(real) == 4 ? 16 / WARPS : 1) void interpolate_descend(
    Level l, Level coarse, const real* uc, real* u, const real* f, real* rc, real pre, int height) {
    solution_strip<CubicSource, false, true, false, 1>(l, coarse, u, uc, f, u, rc, Norms{}, pre, pre, height);
}
extern "C" __global__ __launch_bounds__(32 * WARPS) void ascend_solution_norms(Level l, Level coarse, const real* u, const real* ec,
                                                                               const real* f, real* u_new, Norms norms, real post,
                                                                               int height) {
    solution_strip<CorrectedSource, true, false, true, 1>(l, coarse, u, ec, f, u_new, nullptr, norms, post, post, height);
}
extern "C" __global__ __launch_bounds__(32 * WARPS) void ascend_solution(Level l, Level coarse, const real* u, const real* ec,
                                                                         const real* f, real* u_new, Norms norms, real post,
                                                                         int height) {
    solution_strip<CorrectedSource, true, false, false, 1>(l, coarse, u, ec, f, u_new, nullptr, norms, post, post, height);
}
// As ascend_correct: 12 warps a multiprocessor.
extern "C" __global__ __launch_bounds__(32 * WARPS, sizeof(real) == 4 ? 12 / WARPS
                                                                      : 1) void ascend_descend(Level l, Level coarse, const real* u,
                                                                                               const real* ec, const real* f,
                                                                                               real* u_new, real* rc, Norms norms,
                                                                                               real pre, real post, int height) {
    solution_strip<CorrectedSource, true, true, true, 2>(l, coarse, u, ec, f, u_new, rc, norms, pre, post, height);
}
