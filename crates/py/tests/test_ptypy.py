"""Engines of `zellige.ptypy` beside PtyPy's own, on the scans of its tutorial. Skipped aloud where PtyPy cannot be imported: it is on no
package index (`pip install` its source). `test_ptypy_contract.py` needs none.

Errors per iteration are compared, and objects where there is light. The difference map makes a difference 1.6 times as large from one
iteration to the next, so that conventions show in double precision, where the start is alike to the rounding of moduli, which are in
single precision here (3e-8). PtyPy's own runs in single and double precision are 1e-5 apart after one iteration and percents after ten.
"""

import contextlib
import importlib.util
import sys
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
else:
    print(f"test_ptypy is skipped: {WHY}", file=sys.stderr)


def scan(shape=64, frames=50, modes=1, model="BlockFull", **keys):
    """PtyPy's test scan."""
    data = u.Param(name="MoonFlowerScan", shape=shape, num_frames=frames, save=None, density=0.2, photons=1e8, psf=0.0)
    diversity = u.Param(power=0.1, noise=[1.0, 2.0]) if modes > 1 else None
    made = u.Param(name=model, data=data, coherence=u.Param(num_probe_modes=modes), illumination=u.Param(diversity=diversity))
    made.update(keys)
    return made


def run(*engines, scans=None, precision="single", **keys):
    """A reconstruction by engines, each with a row of errors per iteration; starts and random numbers are the same each time."""
    np.random.seed(3)
    p = u.Param(verbose_level="ERROR", data_type=precision, **keys)
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
    def compare(self, engines, limits, end, columns=(0, 1, 2), scans=lambda: None):
        """The same engines of both, whose errors are alike up to an iteration within a limit, and the objects at the end."""
        own = [{**engine, "name": engine["name"] + "_zellige"} for engine in engines]
        theirs, ours = (run(*those, scans=scans(), precision="double") for those in (engines, own))
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
        self.compare([{"name": "DM", "numiter": 15}], [(5, 1e-6), (15, 1e-4)], 1e-3)

    def test_relaxed_reflections(self):
        self.compare([{"name": "RAAR", "numiter": 12}], [(12, 1e-5)], 1e-4)

    def test_mixed_modes(self):
        self.compare([{"name": "DM", "numiter": 12}], [(12, 1e-5)], 1e-4, scans=lambda: {"MF": scan(modes=3)})

    def test_likelihood_after_the_map_and_the_map_after_it(self):
        engines = [{"name": "DM", "numiter": 6}, {"name": "ML", "numiter": 5}, {"name": "DM", "numiter": 4}]
        self.compare(engines, [(15, 1e-4)], 1e-4)

    def test_options_of_the_likelihood(self):
        all_on = {"floating_intensities": True, "reg_del2": True, "reg_del2_amplitude": 1.0, "scale_precond": True}
        theirs, ours = self.compare([{"name": "ML", "numiter": 8, "probe_update_start": 0, **all_on}], [(8, 1e-6)], 1e-5)
        for name, factor in theirs.runtime["float_intens"].items():
            # The moduli are in single precision.
            self.assertAlmostEqual(ours.runtime["float_intens"][name], factor, delta=1e-5 * factor)
        for options in ({"smooth_gradient": 3.0, "smooth_gradient_decay": 0.1}, {"wavefield_precond": True}):
            self.compare([{"name": "ML", "numiter": 8, **options}], [(8, 1e-6)], 1e-5)

    def test_options_of_the_map(self):
        limits = {"clip_object": (0.0, 1.0), "obj_smooth_std": 2, "probe_center_tol": 0.5, "object_inertia": 0.01}
        self.compare([{"name": "DM", "numiter": 8, "alpha": 0.7, "update_object_first": False, **limits}], [(8, 1e-5)], 1e-4)

    def test_near_field(self):
        near = lambda: {"MF": scan(propagation="nearfield")}  # noqa: E731
        self.compare([{"name": "DM", "numiter": 8, "probe_fourier_support": 0.5}], [(8, 1e-5)], 1e-3, scans=near)

    def test_two_scans(self):
        both = lambda: {"A": scan(frames=30), "B": scan(frames=40, model="Full")}  # noqa: E731
        self.compare([{"name": "DM", "numiter": 8}], [(8, 1e-5)], 1e-4, scans=both)

    def test_engines_that_go_from_view_to_view(self):
        # The change of exit waves is another one in ePIE, which keeps none here.
        two = lambda: {"MF": scan(modes=2)}  # noqa: E731
        self.compare([{"name": "EPIE", "numiter": 5}], [(5, 1e-6)], 1e-5, columns=(0, 1), scans=two)
        self.compare([{"name": "EPIE", "numiter": 5, "object_norm_is_global": True}], [(5, 1e-6)], 1e-5, columns=(0, 1), scans=two)
        self.compare([{"name": "SDR", "numiter": 5}], [(5, 1e-5)], 1e-4, scans=two)

    def test_several_iterations_a_call_take_views_in_the_same_orders(self):
        """Orders that are drawn one after the other."""
        two = lambda: {"MF": scan(modes=2)}  # noqa: E731
        for engine in ({"name": "EPIE", "object_norm_is_global": True}, {"name": "SDR"}):
            self.compare([{**engine, "numiter": 4, "numiter_contiguous": 2}], [(2, 1e-5)], 1e-4, columns=(0, 1), scans=two)

    def test_distances_of_moduli(self):
        """Beside them and Poisson's likelihood a regularisation counts half in PtyPy's gradient."""
        strong = {"reg_del2": True, "reg_del2_amplitude": 1.0, "scale_precond": True}
        smooth = {"smooth_gradient": 20.0, "smooth_gradient_decay": 0.02, **strong}
        self.compare([{"name": "ML", "numiter": 6, "ML_type": "Euclid", **smooth}], [(6, 1e-6)], 1e-5)
        before = {"name": "DM", "numiter": 6}
        self.compare([before, {"name": "ML", "numiter": 6, "ML_type": "euclid", **strong}], [(12, 1e-6)], 1e-5)
        # Dark pixels weigh by one over their modelled counts.
        self.compare([before, {"name": "ML", "numiter": 2, "ML_type": "poisson", **strong}], [(8, 1e-5)], 1e-3)

    @contextlib.contextmanager
    def shaken(self):
        """Positions that are off by up to three pixels."""
        real = Ptycho.run

        def shaken(ptycho, *arguments, **keys):
            if not arguments and "engine" not in keys:
                for i, view in enumerate(ptycho.diff.views.values()):
                    for pod in view.pods.values():
                        pixel = pod.pr_view.psize
                        pod.ob_view.coord = pod.ob_view.coord + pixel * np.round(2.5 * np.array([np.sin(4 * i), np.cos(4 * i)]))
                ptycho.obj.reformat()
            return real(ptycho, *arguments, **keys)

        with mock.patch.object(Ptycho, "run", shaken):
            yield

    def refined(self, name, method, **keys):
        """An engine that refines positions now and then."""
        pars = {"start": 2, "stop": 10, "interval": 2, "nshifts": 8, "amplitude": 5e-7, "max_shift": 1e-6, "method": method, **keys}
        return {"name": name, "numiter": 10, "position_refinement": u.Param(pars)}

    def test_positions_move_alike(self):
        """The same trials, so the same moves."""
        # SDR that relaxes nothing makes any difference larger.
        relaxed = {"sigma": 0.25, "tau": 0.75}
        for name, method, columns, keys in (
            ("DM", "Annealing", (0, 1, 2), {}),
            ("DM", "GridSearch", (0, 1, 2), {}),
            ("EPIE", "Annealing", (0, 1), {}),
            ("EPIE", "GridSearch", (0, 1), {"numiter_contiguous": 5, "object_norm_is_global": True}),
            ("SDR", "Annealing", (0, 1, 2), relaxed),
        ):
            with self.subTest(f"{name}, {method}"), self.shaken():
                theirs, ours = self.compare([{**self.refined(name, method), **keys}], [(10, 1e-4)], 1e-3, columns)
                (plain, _) = self.compare([{"name": name, "numiter": 10, **keys}], [(10, 1e-4)], 1e-3, columns)
                places = [np.array([pod.ob_view.coord for pod in p.pods.values()]) for p in (theirs, ours, plain)]
                np.testing.assert_array_equal(places[0], places[1])
                self.assertGreater((places[0] != places[2]).any(axis=1).sum(), 10)

    def test_all_modes_of_a_frame_move(self):
        """PtyPy moves the first mode alone."""
        for name in ("DM", "EPIE"):
            with self.subTest(name), self.shaken():
                engine = {**self.refined(name, "Annealing"), "name": f"{name}_zellige"}
                ptycho = run(engine, scans={"MF": scan(modes=2)}, precision="double")
                for view in ptycho.diff.views.values():
                    first, second = (pod.ob_view.coord for pod in view.pods.values())
                    np.testing.assert_array_equal(first, second)
                found = errors(ptycho)
                self.assertLess(found[-1, 1], found[1, 1])

    def test_single_precision(self):
        """As close to PtyPy in double precision as its own single precision is, within a factor of three."""
        engine = {"name": "DM", "numiter": 6}
        exact, single = (errors(run(engine, precision=p)) for p in ("double", "single"))
        found = errors(run({**engine, "name": "DM_zellige"}, precision="single"))
        off = [np.abs(e / exact - 1).max() for e in (found, single)]
        print(f"\nsingle precision: zellige {off[0]:.1e}, PtyPy {off[1]:.1e} from PtyPy's double precision")
        self.assertLess(off[0], 3 * off[1])


@unittest.skipUnless(HERE, WHY)
class AroundTheEngines(unittest.TestCase):
    def test_frames_that_arrive(self):
        """PtyPy loads ten frames at a time, and iterates meanwhile."""
        ptycho = run({"name": "DM_zellige", "numiter": 5}, {"name": "ML_zellige", "numiter": 5}, frames_per_block=10, min_frames_for_recon=20)
        seen = len(ptycho.diff.views)
        self.assertEqual(seen, 50)
        last = errors(ptycho)
        self.assertTrue(np.isfinite(last).all())
        self.assertEqual(len(ptycho.engines["engine00"].error), 50)

    def test_results_are_saved_and_go_on(self):
        ptycho = run({"name": "DM_zellige", "numiter": 5})
        with tempfile.TemporaryDirectory() as folder:
            ptycho.save_run(f"{folder}/a.ptyr")
            again = Ptycho.load_run(f"{folder}/a.ptyr", False)
            np.testing.assert_array_equal(again.obj.storages["SMFG00"].data, ptycho.obj.storages["SMFG00"].data)
        ptycho.run(epars=u.Param(name="ML_zellige", numiter=3), label="more")
        self.assertEqual(len(errors(ptycho)), 8)

    def test_parameters_are_those_of_ptypy(self):
        from ptypy.engines import by_name

        for name in ("DM", "RAAR", "EPIE", "SDR", "ML"):
            theirs, ours = by_name(name).DEFAULT, by_name(name + "_zellige").DEFAULT
            self.assertEqual(set(ours) - set(theirs), {"device", "threads"})
            for key in set(theirs) - {"name"}:
                self.assertEqual(ours[key], theirs[key], f"{name}: {key}")
            self.assertEqual(ours.name, name + "_zellige")


if __name__ == "__main__":
    unittest.main()
