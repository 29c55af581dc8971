"""Time of one iteration of PtyPy's difference map on a GPU, for the PtyPy row of README.md.

    python ptypy_dm.py 1000 128        # frames, pixels of an edge
    python ptypy_dm.py 500 256
    python ptypy_dm.py 500 256 4       # four probe modes

Needs PtyPy 0.9 with CuPy (CuPy 14: `-std=c++14` in PtyPy's compiler options must read `c++17`). Uses PtyPy's public interface and
its own simulated scan; ours are simulated with the same size and number of frames. Set as in its defaults: likelihood on, `alpha`
1, object and probe updated in every iteration, at most ten overlap passes. The time is the difference of two runs, which leaves
out set-up and compilation. Written after the row was measured (by PtyPy's own timer), and not run since.
"""

import sys
import time

import ptypy
from ptypy import utils as u
from ptypy.core import Ptycho

ptypy.load_gpu_engines(arch="cupy")


def parameters(frames, size, modes, iterations):
    """Parameter tree of a run without files, plots and interaction."""
    p = u.Param()
    p.verbose_level = "ERROR"
    p.data_type = "single"
    p.io = u.Param(home="/tmp/ptypy_dm", rfile=False)
    p.io.autosave = u.Param(active=False)
    p.io.autoplot = u.Param(active=False)
    p.io.interaction = u.Param(active=False)
    p.scans = u.Param()
    p.scans.scan = u.Param(name="BlockFull")
    p.scans.scan.coherence = u.Param(num_probe_modes=modes)
    p.scans.scan.data = u.Param(name="MoonFlowerScan", shape=size, num_frames=frames, density=0.2, photons=1e8, psf=0.0)
    p.engines = u.Param()
    p.engines.engine00 = u.Param(
        name="DM_cupy",
        numiter=iterations,
        numiter_contiguous=iterations,
        alpha=1.0,
        probe_update_start=0,
        overlap_max_iterations=10,
        compute_log_likelihood=True,
    )
    return p


def seconds(frames, size, modes, iterations):
    """Wall time of the engine, and the number of frames that the scan has."""
    run = Ptycho(parameters(frames, size, modes, iterations), level=4)
    began = time.perf_counter()
    run.run()
    return time.perf_counter() - began, len(run.diff.views)


def main():
    frames, size, modes = (int(a) for a in (sys.argv[1:] + ["1"])[:3])
    seconds(frames, size, modes, 2)
    short, made = seconds(frames, size, modes, 20)
    long, _ = seconds(frames, size, modes, 120)
    print(f"{made} frames of {size} x {size}, {modes} modes: {1e3 * (long - short) / 100:.3f} ms an iteration")


if __name__ == "__main__":
    main()
