"""Makes modes.npz with PtyPy itself: a scan of nine frames at places that are no whole pixels apart (some on halves), and one sweep of EPIE and of SDR with
two modes of the probe, in double precision: where PtyPy puts the views, the order in which it visits them, and what comes out.

usage: PYTHONPATH=PTYPY python make_modes.py   (PTYPY is a folder with PtyPy 0.9; needs numpy, scipy, h5py)
"""
import tempfile

import h5py
import numpy as np
import ptypy  # noqa: F401
from ptypy import utils as u
from ptypy.core import Ptycho

rng = np.random.default_rng(7)
SIZE, DISTANCE, PIXEL = 16, 2.0, 150e-6
WAVELENGTH = 1.23984198e-9 / 8.0
step = WAVELENGTH * DISTANCE / (SIZE * PIXEL)
raster = np.array([(i, j) for i in range(3) for j in range(3)]) * 2.3
places = raster + rng.uniform(-0.6, 0.6, raster.shape)
places[2] = places[0] + [0.5, 4.5]
places[5] = places[0] + [1.5, -0.5]
places *= step
y, x = np.mgrid[:40, :40]
sample = np.exp(0.8j * np.sin(x / 3) * np.cos(y / 4)) * (1 - 0.3 * np.exp(-((x - 14) ** 2 + (y - 15) ** 2) / 30))
yy, xx = np.mgrid[:SIZE, :SIZE] - SIZE // 2
first = np.exp(-(xx**2 + yy**2) / 14) * np.exp(0.05j * (xx**2 + yy**2))
second = 0.5 * first * xx / 3
bright = np.sqrt(2e4 / (np.abs(first) ** 2 + np.abs(second) ** 2).sum())
counts = np.zeros((len(places), SIZE, SIZE))
for j, place in enumerate(places / step):
    r, c = np.round(place - places.min(0) / step).astype(int) + 4
    for mode in (first, second):
        wave = bright * mode * sample[r : r + SIZE, c : c + SIZE]
        counts[j] += np.abs(np.fft.fftshift(np.fft.fft2(wave, norm="ortho"))) ** 2
counts = rng.poisson(counts).astype(np.uint16)
folder = tempfile.mkdtemp()
with h5py.File(f"{folder}/scan.ptyd", "w") as f:
    for name, value in [("chunks/0/data", counts.astype(np.int32)), ("chunks/0/weights", np.ones_like(counts)), ("chunks/0/positions", places),
                        ("meta/shape", np.array([SIZE, SIZE])), ("meta/psize", np.array([PIXEL, PIXEL])), ("meta/center", np.array([SIZE // 2] * 2))]:
        f[name] = value
        f[name].attrs["type"] = "array"
    for name, value in [("energy", 8.0), ("distance", DISTANCE), ("num_frames", len(places))]:
        f[f"meta/{name}"] = value
        f[f"meta/{name}"].attrs["type"] = "scalar"
out = dict(intensity=counts, pos_m=places, wavelength=WAVELENGTH, distance=DISTANCE, det_pixel=PIXEL)
for name, model in [("EPIE", "BlockGradFull"), ("SDR", "BlockFull")]:
    np.random.seed(3)
    off = u.Param(active=False)
    p = u.Param(verbose_level="error", data_type="double", io=u.Param(home=folder, autosave=off, autoplot=off, interaction=off))
    scan = u.Param(name=model, data=u.Param(name="PtydScan", dfile=f"{folder}/scan.ptyd"), coherence=u.Param(num_probe_modes=2))
    scan.illumination = u.Param(diversity=u.Param(noise=None, power=0.1))
    p.scans, p.engines = u.Param(g=scan), u.Param(e=u.Param(name=name, numiter=1))
    run = Ptycho(p, level=4)
    run.runtime.iter_info, run.runtime.start = [], ""
    probe, obj = (list(c.storages.values())[0] for c in (run.probe, run.obj))
    modes = [bright * first * np.exp(0.1j * yy), bright * (0.8 * second + 0.05 * first)]
    probe.data[:] = np.stack(modes).astype(np.complex64)
    obj.data[:] = (np.ones(obj.data.shape) * (1 + 0.02 * np.arange(obj.shape[-1]))).astype(np.complex64)
    for pod in run.pods.values():
        pod.exit = pod.probe * pod.object
    names, order = sorted(run.diff.views), []
    seen = [list(run.diff.views[k].pods.values())[0].ob_view for k in names]
    out |= dict(probe_init=probe.data.astype(np.complex64), object_start=obj.data.astype(np.complex64),
                corner=np.array([v.dlow for v in seen]).astype(np.int32))
    engine = list(run.engines.values())[0]
    engine.initialize()
    engine.prepare()
    update = engine.object_update

    def noted(view, waves, update=update, order=order):
        order.append(names.index(view.ID))
        return update(view, waves)

    engine.object_update = noted
    engine.iterate(1)
    out[f"{name}_err"] = np.array([engine.error[k] for k in names]).mean(0)
    out[f"{name}_order"] = np.array(order, np.int32)
    out[f"{name}_probe"], out[f"{name}_object"] = probe.data.astype(np.complex64), obj.data.astype(np.complex64)
np.savez_compressed("modes.npz", **out)
