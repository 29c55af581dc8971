#!/usr/bin/env python3
"""Opens results and scans with PtyPy itself, as its users would. By hand, since PtyPy is not among the packages of a registry.

    git clone https://github.com/ptycho/ptypy && git -C ptypy checkout 1681bec
    zellige ptycho convert input.toml scan.ptyd         # any scan
    zellige run from_ptyd.toml -o out                   # an input whose scan is `name = "s"`, `file = "scan.ptyd"`
    PYTHONPATH=ptypy python ptypy_reads.py out/result.ptyr scan.ptyd

needs numpy, scipy, h5py and matplotlib. Exits with 1 if anything is amiss.
"""

import os
import sys
import tempfile
from types import SimpleNamespace

import matplotlib

matplotlib.use("Agg")
import numpy as np
import ptypy
from ptypy import io, utils
from ptypy.cli import plotter
from ptypy.core import Ptycho
from ptypy.core.data import PtydScan

result, scan = (os.path.abspath(path) for path in sys.argv[1:3])
failed = False


def step(name, work):
    global failed
    try:
        print(f"{name}: {work()}")
    except (Exception, SystemExit) as error:  # a script of PtyPy may end the program
        failed = True
        print(f"FAILED: {name}: {error!r}")


def loaded(data):
    run = Ptycho.load_run(result, data)
    return {kind: {name: s.shape for name, s in c.storages.items()} for kind, c in (("probe", run.probe), ("object", run.obj))}


def frames():
    read = PtydScan(utils.Param(dfile=scan))
    read.initialize()
    first = read.auto(10**6)["iterable"]
    return f"{len(first)} frames of {first[0]['data'].shape}"


def likelihood():
    """Probe and object explain the frames in PtyPy's model as they do here: half of the errors of the last iteration or less would be another problem."""
    run = Ptycho.load_run(result)
    error = []
    for name, view in run.diff.views.items():
        model = sum(utils.abs2(pod.fw(pod.probe * pod.object)) for pod in view.pods.values())
        mask = list(view.pods.values())[0].mask
        error.append((mask * (model - view.data) ** 2 / (view.data + 1)).mean())
    last = run.runtime.iter_info[-1]["error"][1]
    assert 0.2 * last < np.mean(error) < 1.5 * last, f"{np.mean(error)}, the last iteration had {last}"
    return f"{np.mean(error):.5g}, the last iteration here had {last:.5g} before its update"


def continued():
    off = utils.Param(active=False)
    files = utils.Param(home=tempfile.mkdtemp(), autosave=off, autoplot=off, interaction=off)
    pars = utils.Param(verbose_level="error", io=files)
    start = utils.Param(model="recon", recon=utils.Param(rfile=result))
    pars.scans = utils.Param(s=utils.Param(name="BlockFull", data=utils.Param(name="PtydScan", dfile=scan), illumination=start))
    pars.engines = utils.Param(e=utils.Param(name="DM", numiter=2))
    return Ptycho(pars, level=5).runtime.iter_info[-1]["error"]


def plotted():
    picture = os.path.join(tempfile.mkdtemp(), "plot.png")
    plotter.plot(SimpleNamespace(ptyrfile=result, layout="default", imfile=picture))
    return f"{os.path.getsize(picture)} bytes"


step("h5read", lambda: sorted(io.h5read(result)))
step("load_from_ptyr", lambda: [utils.load_from_ptyr(result, what).shape for what in ("probe", "obj")])
step("load_run without data", lambda: loaded(False))
step("load_run", lambda: loaded(True))
step("likelihood by PtyPy", likelihood)
step("PtydScan", frames)
step("a run from both", continued)
step("ptypy.plot", plotted)
sys.exit(failed)
