"""Contract of the engines: initialize, prepare, iterate, finalize, growing data, refused parameters. The difference map is compared
with one that is written here from its formula."""

import os
import signal
import threading
import unittest
from unittest import mock

import numpy as np
import zellige.ptypy as engines
from ptypy.core.classes import Ptycho
from ptypy.core.manager import GradFull
from ptypy.engines import ENGINES
from ptypy.utils import Param
from zellige import InputError

# A process in the background of a shell ignores SIGINT. Before zellige has a handler of its own, which this would replace.
signal.signal(signal.SIGINT, signal.default_int_handler)

PLACES = [(y, x) for y in range(0, 12, 3) for x in range(0, 12, 4)]


def begun(name, ptycho, **pars):
    engine = ENGINES[name](ptycho, pars)
    engine.initialize()
    engine.prepare()
    ptycho.new_data = None
    return engine


class Map:
    """The difference map in doubles, view by view (Thibault et al., Ultramicroscopy 109 (2009) 338)."""

    def __init__(self, ptycho, support):
        self.pods = [list(view.pods.values()) for view in ptycho.diff.views.values()]
        self.frames = [pods[0].di_view.data.astype(float) for pods in self.pods]
        self.masks = [pods[0].ma_view.data for pods in self.pods]
        self.probe = ptycho.probe.storages["pr"].data.astype(complex)
        self.object = ptycho.obj.storages["ob"].data[0].astype(complex)
        self.propagator, self.n = ptycho.geometry.propagator, ptycho.n
        self.places = [pods[0].ob_view.dlow for pods in self.pods]
        self.exits = np.array([self.products(j) for j in range(len(self.pods))])
        self.mean = np.mean(self.frames)
        y, x = np.mgrid[: self.n, : self.n] - (self.n - 1) / 2
        self.support = np.pi * (y**2 + x**2) < support * self.n**2

    def seen(self, j):
        y, x = self.places[j]
        return (slice(y, y + self.n), slice(x, x + self.n))

    def products(self, j):
        return self.probe * self.object[self.seen(j)]

    def step(self, k):
        off = []
        for j, (counts, mask) in enumerate(zip(self.frames, self.masks)):
            product = self.products(j)
            waves = np.array([self.propagator.fw(wave) for wave in 2 * product - self.exits[j]])
            modulus = np.sqrt((np.abs(waves) ** 2).sum(0))
            off.append((mask * (modulus - np.sqrt(counts)) ** 2).sum() / mask.sum())
            factor = np.where(mask, np.sqrt(counts) / (modulus + 1e-10), 1.0)
            self.exits[j] += [self.propagator.bw(factor * wave) for wave in waves] - product
        # The loop ends where there is no probe to update.
        for _ in range(2 if k > 0 else 1):
            self.overlap(k)
        return off

    def overlap(self, k):
        above, below = 1e-4 * self.mean * self.object, np.full(self.object.shape, 1e-4 * self.mean)
        for j, exits in enumerate(self.exits):
            above[self.seen(j)] += (self.probe.conj() * exits).sum(0)
            below[self.seen(j)] += (np.abs(self.probe) ** 2).sum(0)
        self.object = above / below
        if k < 1:
            return
        seen = np.array([self.object[self.seen(j)] for j in range(len(self.exits))])
        self.probe = self.support * (seen.conj()[:, None] * self.exits).sum(0) / (np.abs(seen) ** 2).sum(0)


class Engines(unittest.TestCase):
    def scan(self, **options):
        ptycho = Ptycho(**options)
        ptycho.add(PLACES)
        return ptycho

    def test_the_difference_map_is_that_of_its_formula(self):
        ptycho = self.scan()
        pars = {"probe_update_start": 1, "fourier_power_bound": 0.0, "overlap_max_iterations": 2, "overlap_converge_factor": 0.0}
        pars["probe_support"] = 0.5
        expected = Map(ptycho, 0.5)
        engine = begun("DM_zellige", ptycho, **pars)
        for k in range(4):
            engine.iterate()
            found = np.array([engine.error[name][0] for name in ptycho.diff.views])
            # Single precision, and a map that makes differences larger.
            np.testing.assert_allclose(found, expected.step(k), rtol=1e-4)
        engine.finalize()
        for found, value in (
            (ptycho.probe.storages["pr"].data, expected.probe),
            (ptycho.obj.storages["ob"].data[0], expected.object),
            (ptycho.exit.storages["ex0"].data, expected.exits.reshape(-1, ptycho.n, ptycho.n)),
        ):
            self.assertLess(np.linalg.norm(found - value) / np.linalg.norm(value), 1e-4)

    def test_every_engine_lowers_its_errors(self):
        for name, column in (("DM", 1), ("RAAR", 1), ("EPIE", 0), ("SDR", 1), ("ML", 1)):
            with self.subTest(name):
                ptycho = self.scan()
                pars = {"sigma": 0.25, "tau": 0.75} if name == "SDR" else {}
                engine = begun(f"{name}_zellige", ptycho, **pars)
                engine.iterate(1)
                engine.iterate(20)
                engine.finalize()
                self.assertEqual(set(engine.error), set(ptycho.diff.views))
                first, last = (info[column] for info in ptycho.runtime.iter_info)
                self.assertLess(last, 0.5 * first)
                self.assertIsInstance(engine, getattr(engines, f"{name}_zellige"))

    def test_new_frames_are_taken_up(self):
        ptycho = Ptycho()
        ptycho.add(PLACES[:6])
        probe, obj = ptycho.probe.storages["pr"], ptycho.obj.storages["ob"]
        engine = begun("DM_zellige", ptycho, probe_update_start=5)
        start = probe.data.copy()
        engine.iterate(3)
        self.assertEqual(len(engine.error), 6)
        before = obj.data.copy()
        ptycho.add(PLACES[6:])
        engine.prepare()
        # Nothing starts again: the object is as it was, and the probe is updated from the sixth iteration of all.
        np.testing.assert_array_equal(obj.data, before)
        engine.iterate(2)
        # The phase of the sample plane was put in and taken out: rounding.
        self.assertLess(np.abs(probe.data - start).max(), 1e-6 * np.abs(start).max())
        engine.iterate(1)
        self.assertGreater(np.abs(probe.data - start).max(), 1e-2 * np.abs(start).max())
        self.assertEqual((len(engine.error), engine.curiter), (12, 6))
        engine.finalize()
        waves = ptycho.exit.storages["ex1"].data
        self.assertTrue(np.isfinite(waves).all() and np.abs(waves).max() > 0)

    def test_bounds_are_those_of_each_scan(self):
        def changes(stub):
            ptycho = self.scan()
            ptycho.add(PLACES[:3])
            ptycho.diff.storages["di1"].label, ptycho.diff.storages["di1"].pbound_stub = "other", stub
            engine = begun("DM_zellige", ptycho)
            engine.iterate()
            return np.array([engine.error[name][2] for name in ptycho.diff.views])

        usual, wide = changes(1.0), changes(1e9)
        np.testing.assert_array_equal(usual[: len(PLACES)], wide[: len(PLACES)])
        self.assertTrue((wide[len(PLACES) :] < 0.5 * usual[len(PLACES) :]).all())

    def test_a_signal_ends_a_call_between_two_iterations(self):
        ptycho = self.scan()
        engine = begun("DM_zellige", ptycho)
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            engine.iterate(10**9)
        timer.join()
        engine.iterate(1)

    def test_what_others_write_counts(self):
        ptycho = self.scan()
        engine = begun("ML_zellige", ptycho)
        engine.iterate(1)
        ptycho.obj.storages["ob"].data[:] = 0
        engine.iterate(1)
        # Without an object nothing is modelled: the likelihood is that of no counts at all.
        dark = [(v.pod.ma_view.data * v.data.astype(float) ** 2 / (v.data + 1)).mean() for v in ptycho.diff.views.values()]
        np.testing.assert_allclose([e[1] for e in engine.error.values()], dark, rtol=1e-4)

    def test_scans_without_exit_waves(self):
        for name in ("ML", "EPIE"):
            ptycho = self.scan(model=GradFull, modes=1)
            for pod in ptycho.pods.values():
                pod.ex_view = None
            engine = begun(f"{name}_zellige", ptycho)
            engine.iterate(2)
            engine.finalize()
        with self.assertRaises(RuntimeError):
            begun("DM_zellige", self.scan(model=GradFull))

    def test_what_is_not_done_is_refused_by_name(self):
        for name, key, value in (
            ("ML", "poly_line_coeffs", "all"),
            ("ML", "intensity_renormalization", 2.0),
            ("ML", "smooth_gradient", -1.0),
            ("DM", "probe_fourier_support", 0.5),
        ):
            with self.subTest(key), self.assertRaisesRegex(InputError, key):
                begun(f"{name}_zellige", self.scan(), **{key: value})
        with self.assertRaisesRegex(InputError, "floating_intensities"):
            begun("ML_zellige", self.scan(), ML_type="Euclid", floating_intensities=True)

    def swept(self, refined=None, by=(0, 0), iterations=4, **pars):
        """A scan after sweeps of ePIE in the same orders, of which those that refine positions are PtyPy's, and errors of each."""
        real, ptycho = np.random.default_rng, self.scan()
        ptycho.obj.storages["ob"].data[0, 2, 5] = 3.0
        if refined:
            start, stop, interval = refined
            pars["position_refinement"] = Param(start=start, stop=stop, interval=interval, by=np.array(by))
        with mock.patch("numpy.random.default_rng", lambda: real(8)):
            engine = begun("EPIE_zellige", ptycho, **{"probe_update_start": 1, "alpha": 0.3, "beta": 0.3, **pars})
            found = []
            for _ in range(iterations):
                engine.iterate()
                found.append([engine.error[name][0] for name in ptycho.diff.views])
            engine.finalize()
        return ptycho, np.array(found)

    def test_sweeps_of_either_kind_follow_one_another(self):
        for pars in ({}, {"object_norm_is_global": True}):
            expected, errors = self.swept(**pars)
            for refined in ((0, 4, 1), (1, 4, 2), (0, 4, 3)):
                with self.subTest(refined=refined, **pars):
                    found, others = self.swept(refined, **pars)
                    np.testing.assert_allclose(others, errors, rtol=1e-3)
                    for container in ("probe", "obj"):
                        for a, b in zip(*(getattr(p, container).storages.values() for p in (found, expected))):
                            self.assertLess(np.linalg.norm(a.data - b.data) / np.linalg.norm(b.data), 1e-4)
        local, whole = (self.swept(**pars)[0].probe.storages["pr"].data for pars in ({}, {"object_norm_is_global": True}))
        self.assertGreater(np.linalg.norm(local - whole) / np.linalg.norm(local), 1e-2)

    def test_views_that_move_in_a_sweep_take_all_modes_along(self):
        # Without steps the errors of PtyPy's sweep, in the second iteration, are those of the places that it moves to.
        ptycho, errors = self.swept((1, 2, 1), by=(0, 1), iterations=3, alpha=0.0, beta=0.0)
        for (y, x), view in zip(PLACES, ptycho.diff.views.values()):
            self.assertEqual([tuple(pod.ob_view.dlow) for pod in view.pods.values()], [(y, x + 1)] * 2)
        np.testing.assert_allclose(errors[2], errors[1], rtol=1e-4)
        self.assertGreater(np.abs(errors[1] / errors[0] - 1).max(), 1e-2)

    def test_scans_that_do_not_fit_are_refused(self):
        def fault(change):
            ptycho = self.scan()
            change(ptycho)
            with self.assertRaises(InputError) as caught:
                begun("DM_zellige", ptycho)
            return str(caught.exception)

        self.assertIn("weights", fault(lambda p: setattr(next(iter(p.pods.values())), "probe_weight", 0.5)))
        self.assertIn("pairs the modes", fault(lambda p: next(iter(p.diff.views.values())).pods.popitem()))
        self.assertIn("resample", fault(lambda p: setattr(p.geometry, "resample", 2)))


if __name__ == "__main__":
    unittest.main()
