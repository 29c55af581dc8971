"""Whole functions against each other: the sine-transform solver that a Python user would write, and zellige's library.

    python3 scipy_dst.py NODES..                         SciPy alone
    python3 scipy_dst.py --zellige solve_times NODES..   and zellige's `solve`, a new plan, a kept plan, in turn with it

`solve_times` is an example of zellige-poisson: `cargo build --release -p zellige-poisson --example solve_times`.

Solves u_xx + u_yy = rho, u = 0 on the sides, on NODES x NODES nodes of 32 x 32, for two opposite Gaussian charges with 1 % of noise, on
one thread in double precision. Timed on both sides is everything from the caller's array of the right-hand side over all nodes, which is
kept, to an array of the solution over all nodes; eigenvalues (SciPy) and tables (zellige's `solve`) are made anew. Printed are the mean
processor time of some calls and, in brackets, the least wall time. Set OMP_NUM_THREADS=1.
"""

import subprocess
import sys
import time

import numpy as np
import scipy
import scipy.fft

LENGTH = 32.0


def solve(rho):
    """Solution over all nodes of rho's grid, zero on the sides."""
    n = rho.shape[0] - 1
    second = -((2 * n / LENGTH * np.sin(np.pi * np.arange(1, n) / (2 * n))) ** 2)
    modes = scipy.fft.dstn(rho[1:-1, 1:-1], type=1, workers=1)
    # Row by row: no second array of eigenvalues.
    for row, eigenvalue in zip(modes, second):
        row /= second + eigenvalue
    u = np.zeros_like(rho)
    u[1:-1, 1:-1] = scipy.fft.idstn(modes, type=1, workers=1, overwrite_x=True)
    return u


def case(nodes):
    n = nodes - 1
    h = LENGTH / n
    x = np.arange(nodes) * h

    def charge(at):
        return np.exp(-((x[None, :] - at) ** 2 + (x[:, None] - LENGTH / 2) ** 2) / 2)

    rho = charge(12.0) - charge(20.0)
    rho += 0.01 * np.random.default_rng(1).standard_normal(rho.shape)
    runs = min(500, max(3, 50_000_000 // nodes**2))
    solve(rho)
    wall, begin = np.inf, time.process_time()
    for _ in range(runs):
        start = time.perf_counter()
        u = solve(rho)
        wall = min(wall, time.perf_counter() - start)
    cpu = (time.process_time() - begin) / runs
    residual = rho[1:-1, 1:-1] - (u[1:-1, 2:] + u[1:-1, :-2] + u[2:, 1:-1] + u[:-2, 1:-1] - 4 * u[1:-1, 1:-1]) / h**2
    relative = np.linalg.norm(residual) / np.linalg.norm(rho[1:-1, 1:-1])
    print(f"{nodes:>11} nodes: scipy {scipy.__version__} {1e3 * cpu:.3f} ms ({1e3 * wall:.3f} wall); relative residual {relative:.1e}", flush=True)


def main():
    arguments = sys.argv[1:]
    program = arguments[1] if arguments[:1] == ["--zellige"] else None
    for nodes in arguments[2 if program else 0 :]:
        case(int(nodes))
        if program:
            subprocess.run([program, nodes], check=True)


main()
