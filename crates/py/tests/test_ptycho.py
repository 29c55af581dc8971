"""Ptychography on arrays."""

import importlib.util
import subprocess
import sys
import unittest
import warnings

import numpy as np
import zellige
from test_run import EXAMPLES, HERE, Folder, command, plasma

#: Prints how much the peak of a process grows by a reconstruction, and the bytes of its frames in single precision.
PEAK = """
import resource, sys
import numpy as np, zellige
n, side = 500, 128
zellige.poisson.solve(np.ones((33, 33)), spacing=1.0, device="cpu", threads=1)
frames = np.ones((n, side, side), sys.argv[1])
frames[:, 40:80, 40:80] += np.arange(40, dtype=sys.argv[1])
positions = np.random.default_rng(1).uniform(0, 3e-6, (n, 2))
peak = lambda: 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
zellige.ptycho.reconstruct(
    frames, positions, wavelength=1e-10, distance=2.0, pixel=75e-6, probe={"size": 5e-6},
    engine="ePIE", iterations=1, device="cpu", threads=1,
)
print(peak() - before, 4 * frames.size)
"""


class Ptycho(Folder):
    def scan(self):
        scan = self.folder / "scan.npz"
        sets = ["--set", "ptycho.scan.0.simulate.frames=49", "--set", "ptycho.scan.0.simulate.size=64"]
        ended = command("ptycho", "convert", EXAMPLES / "ptycho" / "simulated.toml", scan, *sets)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return np.load(scan)

    def test_object_is_that_of_the_simulation(self):
        scan = self.scan()
        result = zellige.ptycho.reconstruct(
            scan["intensity"], scan["pos_m"], wavelength=float(scan["wavelength"]), distance=float(scan["distance"]),
            pixel=scan["det_pixel"], probe=scan["probe_true"], frc=True,
            engine=[{"name": "DM", "iterations": 40}, {"name": "ML", "iterations": 20}], **HERE,
        )
        self.assertEqual(result.iterations, 60)
        self.assertLess(result.errors["likelihood_error"][-1], 0.05 * result.errors["likelihood_error"][0])
        frc = np.asarray(result.frc["correlation"])
        self.assertGreater(frc[1:10].min(), 0.8)
        # The middle of the object, which every method determines to a factor.
        truth, found = scan["object_true"][0], np.asarray(result.object)[0]
        pixel = result.object.axes[-1].spacing
        offset = np.rint((np.array([a.origin for a in result.object.axes[-2:]]) - scan["object_true_origin"]) / pixel).astype(int)
        middle = np.array(found.shape) // 2
        box = tuple(slice(m - 16, m + 16) for m in middle)
        there = tuple(slice(m - 16 + o, m + 16 + o) for m, o in zip(middle, offset))
        a, b = found[box].ravel(), truth[there].ravel()
        likeness = abs(np.vdot(a, b)) / np.linalg.norm(a) / np.linalg.norm(b)
        self.assertGreater(likeness, 0.98)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["scan.npz"], "no file is written")

    def test_results_have_the_axes_of_the_run(self):
        tables = {"scan": [{"name": "s", "simulate": {"frames": 9, "size": 32}}], "engine": [{"name": "DM", "iterations": 2}]}
        for formats in ("hdf5", "npy"):
            if formats == "hdf5" and not importlib.util.find_spec("h5py"):
                continue
            run = zellige.Run({"ptycho": tables, "output": {"folder": str(self.folder / formats), "formats": [formats]}}, **HERE)
            with warnings.catch_warnings():
                # Two iterations reach no goal.
                warnings.simplefilter("ignore", zellige.VerdictWarning)
                results = run.to_end()
            for name in ("object", "probe"):
                field, there = results.fields[name], run.fields[name]
                self.assertTrue(np.array_equal(field, there), (formats, name))
                self.assertEqual(len(field.axes), 3)
                for axis, expected in zip(field.axes[1:], there.axes[-2:]):
                    self.assertEqual((axis.name, axis.unit, axis.size), (expected.name, expected.unit, expected.size))
                    np.testing.assert_allclose([axis.origin, axis.spacing], [expected.origin, expected.spacing], rtol=1e-12)

    def test_arrays_give_what_their_file_gives(self):
        scan = self.scan()
        keys = ("wavelength", "distance", "det_pixel")
        valid = np.ones(scan["intensity"].shape, dtype=bool)
        valid[3:, 10:12, 20] = False
        engine = [{"name": "DM", "iterations": 3}]
        result = zellige.ptycho.reconstruct(
            scan["intensity"], scan["pos_m"], wavelength=float(scan["wavelength"]), distance=float(scan["distance"]),
            pixel=scan["det_pixel"], probe=scan["probe_true"], mask=valid, engine=engine, **HERE,
        )
        arrays = {"intensity": scan["intensity"].astype(np.float32), "pos_m": scan["pos_m"], "probe_init": scan["probe_true"], "mask": valid}
        np.savez(self.folder / "same.npz", **arrays, **{key: scan[key] for key in keys})
        run = zellige.Run({"ptycho": {"scan": [{"name": "scan", "file": self.folder / "same.npz"}], "engine": engine}}, **HERE)
        run.step(3)
        self.assertTrue(np.array_equal(np.asarray(run.fields["object"]), np.asarray(result.object)))
        self.assertTrue(np.array_equal(np.asarray(run.fields["probe"]), np.asarray(result.probe)))

    def test_scans_of_a_list_share_what_they_say(self):
        """Two halves of a scan that share object and probe are the scan; each with its own are the halves alone."""
        scan = self.scan()
        frames, positions = scan["intensity"], scan["pos_m"]
        halves = [frames[:25], frames[25:]], [positions[:25], positions[25:]]
        setting = {"wavelength": float(scan["wavelength"]), "distance": float(scan["distance"]), "pixel": scan["det_pixel"],
                   "probe": scan["probe_true"], "iterations": 5, **HERE}
        reconstruct = zellige.ptycho.reconstruct
        whole = reconstruct(frames, positions, **setting)
        both = reconstruct(*halves, scan={"object": "o", "probe": "p"}, **setting)
        self.assertTrue(np.array_equal(both.object, whole.object))
        self.assertTrue(np.array_equal(both.probe, whole.probe))
        self.assertTrue(np.array_equal(both.positions, whole.positions))
        # A list of frames of one scan is that scan.
        self.assertTrue(np.array_equal(reconstruct(list(frames), list(positions), **setting).object, whole.object))
        alone = [reconstruct(f, p, **setting) for f, p in zip(*halves)]
        apart = reconstruct(*halves, **setting)
        self.assertEqual((list(apart.object), list(apart.probe)), (["scan1", "scan2"], ["scan1", "scan2"]))
        for k, one in enumerate(alone):
            self.assertEqual(apart.object[f"scan{k + 1}"].shape, one.object.shape)
        sharing = reconstruct(*halves, scan=[{"object": "a", "probe": "p"}, {"object": "b", "probe": "p"}], frc=True, **setting)
        self.assertEqual((list(sharing.object), sharing.probe.shape), (["scan1", "scan2"], whole.probe.shape))
        self.assertEqual(list(sharing.frc), ["scan1", "scan2"])
        sharing.object["scan2"][0] = 0
        for wrong, text in (
            ({"positions": [positions]}, "`positions` is a list of 1 where `frames` is one of 2"),
            ({"positions": [positions[:25], positions]}, r"`positions\[1\]` has the shape"),
            ({"mask": [None, np.ones((3, 3))]}, r"`mask\[1\]` has the shape"),
            ({"scan": {"name": "x"}}, "`name` in `scan`"),
        ):
            with self.assertRaisesRegex(zellige.InputError, text):
                reconstruct(halves[0], **{"positions": halves[1], **setting, **wrong})
        with self.assertRaisesRegex(zellige.InputError, "`object` in `scan`"):
            reconstruct(frames, positions, scan={"object": "o"}, **setting)

    def test_corrections_are_those_of_files(self):
        scan = self.scan()
        rng = np.random.default_rng(1)
        frames = scan["intensity"].astype(np.float32)
        dark, flat = rng.integers(0, 3, (5, 64, 64)).astype(np.float32), rng.uniform(0.9, 1.1, (64, 64)).astype(np.float32)
        flat[3, 4] = 0.0
        # Of a pixel that the mask leaves out the dark frame may say anything.
        mask = np.ones((64, 64), dtype=np.uint8)
        mask[10, 11], dark[:, 10, 11] = 0, np.nan
        read = {"gain": 2.0, "saturated": float(np.quantile(frames, 0.999)), "negative": "mask"}
        frames[7, 20, 21] = -5.0
        geometry = {key: float(scan[key]) for key in ("wavelength", "distance")}
        engine = [{"name": "ML", "iterations": 3}]
        arrays = {"intensity": frames, "pos_m": scan["pos_m"], "dark": dark, "flat": flat, "mask": mask, **geometry}
        for propagation, pixel in (("far", scan["det_pixel"]), ("near", np.array([1e-7, 1e-7]))):
            np.savez(self.folder / "raw.npz", **arrays, det_pixel=pixel)
            entry = {"name": "scan", "file": self.folder / "raw.npz", "crop": [48, 56]}
            entry["read"] = {**read, "dark": "dark", "flat": "flat", "propagation": propagation}
            run = zellige.Run({"ptycho": {"scan": [entry], "engine": engine}}, **HERE)
            run.step(3)
            result = zellige.ptycho.reconstruct(
                frames, scan["pos_m"], **geometry, pixel=pixel, propagation=propagation, dark=dark, flat=flat, mask=mask,
                scan={"crop": (48, 56), "read": read}, engine=engine, **HERE,
            )
            self.assertEqual(result.probe.shape, (1, 48, 56))
            for name in ("object", "probe"):
                self.assertTrue(np.array_equal(run.fields[name], getattr(result, name)), (propagation, name))

    def test_a_seed_has_its_own_order(self):
        scan = self.scan()
        geometry = {"wavelength": float(scan["wavelength"]), "distance": float(scan["distance"]), "pixel": scan["det_pixel"]}
        found = [
            np.asarray(zellige.ptycho.reconstruct(scan["intensity"], scan["pos_m"], **geometry, engine="ePIE", iterations=2, seed=seed, **HERE).object)
            for seed in (3, 3, 4)
        ]
        self.assertTrue(np.array_equal(found[0], found[1]) and not np.array_equal(found[0], found[2]))

    def test_a_run_goes_on_with_its_own_arrays(self):
        scan = self.scan()
        frames, places = scan["intensity"], np.array(scan["pos_m"])
        how = {"wavelength": float(scan["wavelength"]), "distance": float(scan["distance"]), "pixel": scan["det_pixel"], "engine": "ML", **HERE}
        run = zellige.ptycho.run(frames, places, **how)
        run.step()
        saved = run.save(self.folder / "here")
        moved = places.copy()
        moved[3, 1] += 1e-7
        for given, other, text in [
            ((frames[:-1], places[:-1]), {}, "it is of 49 frames of 64 x 64 pixels, and 48 frames"),
            ((frames, moved), {}, "the position of frame 3"),
            ((frames, places), {"distance": 1.0}, "it is of another wavelength, distance"),
            ((frames, places), {"dark": np.ones((64, 64))}, "it is of another mask, dark frame"),
            ((frames, places), {"mask": np.arange(64 * 64).reshape(64, 64) > 0}, "it is of another mask, dark frame"),
        ]:
            with self.assertRaisesRegex(zellige.InputError, "other arrays: " + text):
                zellige.ptycho.run(*given, **{**how, **other}, resume=saved)
        self.assertEqual(zellige.ptycho.run(frames, places, **how, resume=saved).clock.step, 1)

    def test_modes_of_a_start_are_all_reconstructed(self):
        scan = self.scan()
        one = scan["probe_true"].reshape(64, 64)
        three = np.stack([one, 0.3 * np.roll(one, 3, 0), 0.2 * np.roll(one, 3, 1)])
        about = {key: float(scan[key]) for key in ("wavelength", "distance")}
        given = (scan["intensity"], scan["pos_m"])
        results = [
            zellige.ptycho.reconstruct(*given, **about, pixel=scan["det_pixel"], probe=probe, iterations=3, **HERE) for probe in (one, three)
        ]
        self.assertEqual([result.probe.shape for result in results], [(1, 64, 64), (3, 64, 64)])
        self.assertGreater(float(abs(results[1].probe[2]).max()), 0.0)

    def test_shapes_are_checked(self):
        beam = {"wavelength": 1e-10, "distance": 1.0, "pixel": 1e-4}
        with self.assertRaisesRegex(ValueError, "positions.*y before x"):
            zellige.ptycho.reconstruct(np.ones((4, 8, 8)), np.zeros((4, 3)), **beam)
        with self.assertRaisesRegex(TypeError, "`scan` is of type list.*crop"):
            zellige.ptycho.reconstruct(np.ones((4, 8, 8)), np.zeros((4, 2)), scan=[{"file": "other.h5"}], **beam)
        for scan, text in (({"file": "other.h5"}, "`file` in `scan`"), ({"read": {"swap": True}}, "`swap` in `scan.*saturated")):
            with self.assertRaisesRegex(zellige.InputError, text):
                zellige.ptycho.reconstruct(np.ones((4, 8, 8)), np.zeros((4, 2)), scan=scan, **beam)
        with self.assertRaisesRegex(zellige.InputError, "flat.*that of a frame"):
            zellige.ptycho.reconstruct(np.ones((4, 8, 8)), np.zeros((4, 2)), flat=np.ones((8, 9)), **beam)
        with self.assertRaisesRegex(zellige.InputError, "propagation.*far.*near"):
            zellige.ptycho.reconstruct(np.ones((4, 8, 8)), np.zeros((4, 2)), propagation="middle", **beam)
        with self.assertRaisesRegex(ValueError, "frames"):
            zellige.ptycho.reconstruct(np.ones((8, 8)), np.zeros((4, 2)), **beam)
        with self.assertRaisesRegex(ValueError, "mask"):
            zellige.ptycho.reconstruct(np.ones((4, 8, 8)), np.zeros((4, 2)), mask=np.ones((4, 8)), **beam)
        with self.assertRaisesRegex(ValueError, "probe"):
            zellige.ptycho.reconstruct(np.ones((4, 8, 8)), np.zeros((4, 2)), probe=np.ones((4, 8)), **beam)

    def test_what_is_wrong_with_arrays_is_told_of_no_file(self):
        beam = {"wavelength": 1e-10, "distance": 1.0, "pixel": 1e-4, **HERE}
        counts, places = np.ones((4, 9, 9)), np.zeros((4, 2))
        for how, text in [
            ({"wavelength": 0.0}, "the arrays given, its wavelength is 0e0 m"),
            ({"probe": np.ones((9, 9))}, r"the probe to start from has \[9, 9\] pixels, waves have \[8, 8\]: give a `probe`"),
            ({"probe": np.zeros((8, 8))}, "its probe is zero everywhere; without `probe` one is made"),
            ({"dark": np.full((9, 9), -1.0)}, "dark frame has -1 counts; mask it"),
        ]:
            with self.assertRaisesRegex(zellige.InputError, text) as caught:
                zellige.ptycho.reconstruct(counts, places, **{**beam, **how})
            self.assertNotRegex(str(caught.exception), "scan.*file|frames of the caller|mask_file")

    def test_counts_are_not_copied(self):
        for kind in ("float32", "uint16", "int64"):
            ended = subprocess.run([sys.executable, "-W", "ignore", "-c", PEAK, kind], capture_output=True, text=True)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            grown, single = map(int, ended.stdout.split())
            # Moduli, and once more in the order of ePIE, both in single precision; waves, probe and object are small.
            self.assertLess(grown, 2.5 * single, kind)

    def test_counts_of_any_type_are_the_same_counts_and_not_held(self):
        scan = self.scan()
        frames = np.minimum(scan["intensity"].astype(np.float32), 120)
        geometry = {"wavelength": float(scan["wavelength"]), "distance": float(scan["distance"]), "pixel": scan["det_pixel"]}

        def found(frames, **how):
            result = zellige.ptycho.reconstruct(frames, scan["pos_m"], **geometry, engine="ML", iterations=2, **HERE, **how)
            return np.asarray(result.object)

        expected = found(frames)
        for kind in ("u1", "u2", ">u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f8"):
            counts = frames.astype(kind)
            held = sys.getrefcount(counts)
            self.assertTrue(np.array_equal(found(counts), expected), kind)
            self.assertEqual(sys.getrefcount(counts), held, kind)
        wide = np.zeros((len(frames), 64, 128), np.float32)
        wide[:, :, ::2] = frames
        self.assertTrue(np.array_equal(found(wide[:, :, ::2]), expected), "strided")
        valid = np.ones(frames.shape, dtype=bool)
        self.assertTrue(np.array_equal(found(frames, mask=valid), expected), "a mask of each frame")
        with self.assertRaisesRegex(TypeError, "complex"):
            found(frames.astype(complex))

    def test_all_bits_of_int32_are_a_gap_of_the_detector(self):
        scan = self.scan()
        frames = scan["intensity"].astype(np.int32)
        geometry = {"wavelength": float(scan["wavelength"]), "distance": float(scan["distance"]), "pixel": scan["det_pixel"]}
        valid = np.ones(frames.shape[1:], dtype=bool)
        valid[10:12, 20:24] = False
        gaps = np.where(valid, frames, np.iinfo(np.int32).max).astype(np.int32)
        objects = []
        for counts, mask in ((frames, valid), (gaps, None)):
            result = zellige.ptycho.reconstruct(counts, scan["pos_m"], **geometry, mask=mask, engine="ML", iterations=2, **HERE)
            objects.append(np.asarray(result.object))
        self.assertTrue(np.array_equal(*objects))

    def test_output_has_keys_of_both_tables(self):
        scan = self.scan()
        geometry = {"wavelength": float(scan["wavelength"]), "distance": float(scan["distance"]), "pixel": scan["det_pixel"]}
        arrays = (scan["intensity"], scan["pos_m"])
        how = {**geometry, "engine": "ML", "iterations": 2, **HERE}
        output = {"folder": self.folder / "out", "formats": ["npy"], "local_errors": True, "files": ["cxi"]}
        run = zellige.ptycho.run(*arrays, **how, output=output)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", zellige.VerdictWarning)
            results = run.to_end()
        names = {path.name for path in (self.folder / "out").rglob("*")}
        self.assertIn("result.cxi", names)
        self.assertNotIn("result.ptyr", names)
        self.assertEqual(results.fields["local_error_likelihood"].shape, (2, 49))
        # All of it is of the reconstruction where no folder is written, and no run goes on.
        zellige.ptycho.reconstruct(*arrays, **how, output={"local_errors": True})
        for keys, text in (({"output": {"folder": "here"}}, "ptycho.output.*folder"), ({"resume": "here"}, "resume")):
            with self.assertRaisesRegex(zellige.InputError, "(?s)" + text):
                zellige.ptycho.reconstruct(*arrays, **how, **keys)

    def test_a_run_of_arrays_is_driven_as_any_other(self):
        scan = self.scan()
        frames = scan["intensity"].astype(np.uint16)
        geometry = {"wavelength": float(scan["wavelength"]), "distance": float(scan["distance"]), "pixel": scan["det_pixel"]}
        how = {**geometry, "engine": "ML", "iterations": 6, **HERE, "output": {"folder": self.folder / "out", "formats": ["npy"]}}
        held = sys.getrefcount(frames)
        run = zellige.ptycho.run(frames, scan["pos_m"], **how)
        # Whoever has them may free them: they are read while the run is set up.
        self.assertEqual((sys.getrefcount(frames), run.clock.step), (held, 0))
        self.assertTrue(run.live().startswith("http://127.0.0.1:"))
        run.step(2)
        run.save()
        resumed = zellige.ptycho.run(frames, scan["pos_m"], **how, resume=self.folder / "out")
        self.assertEqual(resumed.clock.step, 2)
        for _ in resumed.frames(every=3):
            pass
        how.pop("output")
        at_once = zellige.ptycho.reconstruct(frames, scan["pos_m"], **how)
        self.assertTrue(np.array_equal(resumed.fields["object"], at_once.object))
        with warnings.catch_warnings():
            # So few iterations leave much unexplained.
            warnings.simplefilter("ignore", zellige.VerdictWarning)
            results = run.to_end()
        self.assertEqual(results.summary["clock"]["step"], 6)
        self.assertIn("(frames of the caller)", (self.folder / "out" / "resolved.toml").read_text())
        self.assertTrue(np.array_equal(np.asarray(results.fields["object"]), np.asarray(at_once.object)))


class Setting(Folder):
    """Object and probe that are set between iterations."""

    WHERE = HERE

    def run_of(self, *engine, precision="f32"):
        scan = self.folder / "scan.npz"
        if not scan.exists():
            sets = ["--set", "ptycho.scan.0.simulate.frames=25", "--set", "ptycho.scan.0.simulate.size=32"]
            ended = command("ptycho", "convert", EXAMPLES / "ptycho" / "simulated.toml", scan, *sets)
            self.assertEqual(ended.returncode, 0, ended.stderr)
        tables = {"scan": [{"name": "scan", "file": scan}], "engine": [{"name": n, "iterations": k} for n, k in engine]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return zellige.Run({"ptycho": {**tables, "precision": precision}}, **self.WHERE)

    def test_what_is_set_to_what_it_was_changes_nothing(self):
        for engine in ("DM", "ePIE", "ML"):
            for precision in ("f32", "f64"):
                alone, touched = (self.run_of((engine, 10), precision=precision) for _ in range(2))
                alone.step(6)
                touched.step(3)
                for name in ("object", "probe"):
                    touched.set_field(name, touched.fields[name])
                touched.step(3)
                for name in ("object", "probe"):
                    same = np.array_equal(alone.fields[name], touched.fields[name])
                    self.assertTrue(same, f"{engine} {precision} {name}")

    def test_an_engine_goes_on_from_what_is_set(self):
        # Difference map begins with the products of object and probe, whatever was before.
        expected, other = (self.run_of(("ML", 2), ("DM", 5)) for _ in range(2))
        expected.step(2)
        rng = np.random.default_rng(1)
        shape = expected.fields["object"].shape
        other.set_field("object", rng.normal(size=shape) + 1j * rng.normal(size=shape))
        other.step(2)
        found = {name: np.asarray(expected.fields[name]).copy() for name in ("object", "probe")}
        self.assertGreater(np.abs(np.asarray(other.fields["object"]) - found["object"]).max(), 0.1)
        for name, values in found.items():
            other.set_field(name, values)
        self.assertTrue(np.array_equal(other.fields["object"], found["object"]))
        # The phase of the sample plane is taken off and put on again.
        most = np.abs(found["probe"]).max()
        self.assertLess(np.abs(np.asarray(other.fields["probe"]) - found["probe"]).max(), 1e-6 * most)
        expected.step(5)
        other.step(5)
        for name in ("object", "probe"):
            a, b = (np.asarray(run.fields[name]) for run in (expected, other))
            # Single precision, where there is light; five iterations.
            self.assertLess(np.linalg.norm(a - b), 1e-4 * np.linalg.norm(a), name)

    def test_what_cannot_be_set_is_told(self):
        run = self.run_of(("DM", 5))
        shape = run.fields["object"].shape
        run.set_field("object", np.ones(shape))
        self.assertTrue(np.array_equal(run.fields["object"], np.ones(shape)))
        told = {
            r"no field of this run.*object, probe": lambda: run.set_field("object_phase", np.ones(shape)),
            r"an array of \[3\] values.*modes, rows, columns": lambda: run.set_field("probe", np.ones(3)),
            r"value 0 is NaN": lambda: run.set_field("object", np.full(shape, np.nan)),
        }
        for text, change in told.items():
            with self.assertRaisesRegex(zellige.InputError, "(?s)" + text):
                change()
        poisson = zellige.Run({"poisson": {"grid": {"nodes": [9, 9], "size": [1.0, 1.0]}, "rhs": 1.0}}, **HERE)
        with self.assertRaisesRegex(zellige.InputError, "(?s)input alone determines.*guess.*zellige.poisson.Plan"):
            poisson.set_field("solution", np.zeros((9, 9)))
        with self.assertRaisesRegex(zellige.InputError, "(?s)complex values of a real field"):
            zellige.Run(plasma(10), **HERE).set_field("Ex", np.zeros((8, 64), complex))


if __name__ == "__main__":
    unittest.main()
