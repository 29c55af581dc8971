"""The sine-transform solver that a Python user would write, timed: SciPy's DST of type 1, double precision.

    python3 scipy_dst.py [NODES=4097] [WORKERS=1] [REPEATS=5]

Solves u_xx + u_yy = rho, u = 0 on the sides, on NODES x NODES nodes of 32 x 32, for two opposite Gaussian charges with 1 %
of noise. Timed: forward transform, division by the eigenvalues, inverse transform, all in place where SciPy can; not timed:
the eigenvalues and the right-hand side. Pair it with `zellige bench poisson --device cpu --threads WORKERS` in the same
minute on the same machine, and set OMP_NUM_THREADS=WORKERS for both.
"""

import sys
import time

import numpy as np
import scipy
import scipy.fft


def main():
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 4097
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    repeats = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    length, n = 32.0, nodes - 1
    h = length / n
    x = np.arange(1, n) * h

    def charge(at):
        return np.exp(-((x[None, :] - at) ** 2 + (x[:, None] - length / 2) ** 2) / 2)

    rho = charge(12.0) - charge(20.0)
    rho += 0.01 * np.random.default_rng(1).standard_normal(rho.shape)
    second = -((2 / h * np.sin(np.pi * np.arange(1, n) / (2 * n))) ** 2)

    seconds, cpu = [], []
    for _ in range(repeats):
        f = rho.copy()
        wall, process = time.perf_counter(), time.process_time()
        u = scipy.fft.dstn(f, type=1, workers=workers, overwrite_x=True)
        # Row by row: no second array of eigenvalues.
        for row, eigenvalue in zip(u, second):
            row /= second + eigenvalue
        u = scipy.fft.idstn(u, type=1, workers=workers, overwrite_x=True)
        seconds.append(time.perf_counter() - wall)
        cpu.append(time.process_time() - process)

    p = np.pad(u, 1)
    residual = rho - (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1] - 4 * u) / h**2
    relative = np.linalg.norm(residual) / np.linalg.norm(rho)
    median = float(np.median(seconds))
    print(f"scipy {scipy.__version__} dstn type 1 f64, {nodes} x {nodes} nodes, {workers} worker(s)")
    print(f"seconds  median {median:.4f}  min {min(seconds):.4f}  max {max(seconds):.4f}  (processor time, median {float(np.median(cpu)):.4f})")
    print(f"ns per unknown  median {1e9 * median / (n - 1) ** 2:.2f}  min {1e9 * min(seconds) / (n - 1) ** 2:.2f}")
    print(f"relative residual  {relative:.2e}")


main()
