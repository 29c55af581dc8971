"""Engines of `zellige.ptypy` beside PtyPy's own, on the scans of its tutorial. Skipped aloud where PtyPy cannot be imported: it is on no
package index (`pip install` its source). `test_ptypy_contract.py` needs none.

Errors per iteration are compared, and objects where there is light. The difference map makes a difference of rounding 1.6 times as
large from one iteration to the next, so that single precision leaves 1e-5 after ten iterations and 2e-4 after twenty.
"""

import importlib.util
import tempfile
import unittest
from unittest import mock

import numpy as np

HERE = importlib.util.find_spec("ptypy") is not None
WHY = "PtyPy is not installed: `pip install .` in a clone of github.com/ptycho/ptypy, with scipy, h5py and matplotlib"

if HERE:
    from ptypy import utils as u
    from ptypy.core import Ptycho
    from ptypy.utils.verbose import set_level

    import zellige
    import zellige.ptypy  # noqa: F401

    set_level("ERROR")


def scan(shape=64, frames=50, modes=1, model="BlockFull", **keys):
    """PtyPy's test scan."""
    data = u.Param(name="MoonFlowerScan", shape=shape, num_frames=frames, save=None, density=0.2, photons=1e8, psf=0.0)
    diversity = u.Param(power=0.1, noise=[1.0, 2.0]) if modes > 1 else None
    made = u.Param(name=model, data=data, coherence=u.Param(num_probe_modes=modes), illumination=u.Param(diversity=diversity))
    made.update(keys)
    return made


def run(*engines, scans=None, precision="single", until=None):
    """A reconstruction by engines, each with a row of errors per iteration; starts and random numbers are the same each time."""
    np.random.seed(3)
    p = u.Param(verbose_level="ERROR", data_type=precision)
    home = tempfile.mkdtemp()
    p.io = u.Param(home=home, rfile=None, interaction=u.Param(active=False), autosave=u.Param(active=False), autoplot=u.Param(active=False))
    p.scans = u.Param(scans or {"MF": scan()})
    p.engines = u.Param({f"engine{i:02}": u.Param(engine) for i, engine in enumerate(engines)})
    real = np.random.default_rng
    with mock.patch("numpy.random.default_rng", lambda seed=8: real(seed)):
        ptycho = Ptycho(p, level=4)
        np.random.seed(4)
        ptycho.run()
    return ptycho


def errors(ptycho):
    return np.array([info["error"] for info in ptycho.runtime.iter_info])


def lit(ptycho, name):
    """Pixels of an object on which a hundredth of the most light falls."""
    storage = ptycho.obj.storages[name]
    light = np.zeros(storage.data.shape[1:])
    for view in storage.views:
        (y, x), (height, width) = view.dlow, view.shape
        light[y : y + height, x : x + width] += sum(np.abs(pod.probe) ** 2 for pod in view.pods.values())
    return light > 0.01 * light.max()


def apart(a, b):
    """Difference of two arrays over the second, after the phase that fits best."""
    dot = np.vdot(a, b)
    return np.linalg.norm(a * dot / abs(dot) - b) / np.linalg.norm(b)


@unittest.skipUnless(HERE, WHY)
class Trajectories(unittest.TestCase):
    def compare(self, engines, limits, end, columns=(0, 1, 2), **options):
        """The same engines of both, whose errors are alike up to an iteration within a limit, and the objects at the end."""
        own = [{**engine, "name": engine["name"] + "_zellige"} for engine in engines]
        theirs, ours = run(*engines, **options), run(*own, **options)
        expected, found = errors(theirs), errors(ours)
        self.assertEqual(found.shape, expected.shape)
        off = np.zeros(len(found))
        for c in columns:
            scale = np.where(expected[:, c] == 0.0, 1.0, expected[:, c])
            off = np.maximum(off, np.abs(found[:, c] - expected[:, c]) / scale)
        objects = {}
        for name, storage in theirs.obj.storages.items():
            inside = lit(theirs, name)
            objects[name] = apart(ours.obj.storages[name].data[:, inside], storage.data[:, inside])
        probes = {name: apart(ours.probe.storages[name].data, s.data) for name, s in theirs.probe.storages.items()}
        print(f"\n{self.id().split('.')[-1]}: errors off by", " ".join(f"{o:.1e}" for o in off), f"objects {objects} probes {probes}")
        for until, limit in limits:
            self.assertLess(off[:until].max(), limit, f"errors within the first {until} iterations: {off}")
        for name in objects:
            self.assertLess(objects[name], end, f"object {name}")
        for name in probes:
            self.assertLess(probes[name], end, f"probe {name}")
        return theirs, ours

    def test_minimal(self):
        self.compare([{"name": "DM", "numiter": 20}], [(10, 1e-5), (20, 5e-4)], 1e-3)


if __name__ == "__main__":
    unittest.main()
