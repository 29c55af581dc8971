"""The sine-transform solver that a Python user with a GPU would write, timed: CuPy on cuFFT, double or single precision.

    python3 cupy_dst.py [NODES=4097] [DTYPE=float64] [REPEATS=20]

cuFFT has no sine transform: each axis is extended to an odd, periodic line of twice the length, whose real FFT holds the
sine transform in its imaginary part. Solves u_xx + u_yy = rho, u = 0 on the sides, on NODES x NODES nodes of 32 x 32, for two
opposite Gaussian charges with 1 % of noise. Timed on the device, data there before and after: forward transform, division
by the eigenvalues, inverse transform. Not timed: the eigenvalues and the right-hand side. Pair it with
`zellige bench poisson/mixed --device cuda` in the same minutes on the same GPU.
"""

import sys

import cupy as cp
import numpy as np


def sine_transform(values, axis):
    """Sums of values[k] sin(pi (j + 1) (k + 1) / (n + 1)) along an axis, times two: SciPy's DST of type 1."""
    values = cp.moveaxis(values, axis, -1)
    n = values.shape[-1]
    odd = cp.zeros((*values.shape[:-1], 2 * (n + 1)), values.dtype)
    odd[..., 1 : n + 1] = values
    odd[..., n + 2 :] = -values[..., ::-1]
    return cp.moveaxis(-cp.fft.rfft(odd, axis=-1)[..., 1 : n + 1].imag, -1, axis)


def main():
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 4097
    dtype = np.dtype(sys.argv[2] if len(sys.argv) > 2 else "float64")
    repeats = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    length, n = 32.0, nodes - 1
    h = length / n
    x = np.arange(1, n) * h

    def charge(at):
        return np.exp(-((x[None, :] - at) ** 2 + (x[:, None] - length / 2) ** 2) / 2)

    rho = charge(12.0) - charge(20.0)
    rho += 0.01 * np.random.default_rng(1).standard_normal(rho.shape)
    second = -((2 / h * np.sin(np.pi * np.arange(1, n) / (2 * n))) ** 2)
    scale = cp.asarray(1 / ((second[:, None] + second[None, :]) * (2 * n) ** 2), dtype)
    f = cp.asarray(rho, dtype)

    def solve():
        return sine_transform(sine_transform(sine_transform(sine_transform(f, 1), 0) * scale, 0), 1)

    u = solve()
    seconds = []
    for _ in range(repeats):
        begun, ended = cp.cuda.Event(), cp.cuda.Event()
        begun.record()
        u = solve()
        ended.record()
        ended.synchronize()
        seconds.append(cp.cuda.get_elapsed_time(begun, ended) / 1e3)

    p = np.pad(cp.asnumpy(u).astype(np.float64), 1)
    residual = rho - (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1] - 4 * p[1:-1, 1:-1]) / h**2
    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"cupy {cp.__version__}, sine transforms by odd extension in {dtype}, {nodes} x {nodes} nodes, {name}")
    print(f"milliseconds  median {1e3 * float(np.median(seconds)):.3f}  min {1e3 * min(seconds):.3f}  max {1e3 * max(seconds):.3f}")
    print(f"relative residual  {np.linalg.norm(residual) / np.linalg.norm(rho):.2e}")


main()
