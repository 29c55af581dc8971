"""Assignment to fields and particles of a run, and callbacks between its steps."""

import copy
import pickle
import unittest

import numpy as np
import zellige
from test_run import EXAMPLES, HERE, Folder, gas, plasma

RUN = {"output": {"formats": ["npy"]}}


class Assigning(unittest.TestCase):
    def run_of(self, tables=None, steps=5):
        run = zellige.Run(tables or plasma(10**6), **HERE)
        run.step(steps)
        return run

    def test_a_field_that_is_assigned_reaches_the_run(self):
        run, other = self.run_of(), self.run_of()
        run.fields["Ex"] = 0.5 * np.asarray(run.fields["Ex"])
        other.set_field("Ex", 0.5 * np.asarray(other.fields["Ex"]))
        run.fields["Bz"] += 0.25
        other.set_field("B_z", np.full((8, 64), 0.25))
        self.assertEqual(float(run.fields["B_z"].max()), 0.25)
        run.fields["B_z"] *= 2
        other.set_field("Bz", np.full((8, 64), 0.5))
        run.step(10)
        other.step(10)
        for name in ("E_x", "E_y", "B_z"):
            self.assertTrue(np.array_equal(run.fields[name], other.fields[name]), name)
        self.assertNotEqual(float(run.fields["E_y"].max()), 0.0)

    def test_what_cannot_be_set_is_refused_as_set_field_does(self):
        run = self.run_of()
        for name, values in (("Ex", np.ones(3)), ("Q", np.ones((8, 64))), ("rho", np.ones((8, 64))), ("Ex", "a"), ("Ex", None)):
            with self.assertRaises(zellige.Error) as assigned:
                run.fields[name] = values
            with self.assertRaises(zellige.Error) as told:
                run.set_field(name, values)
            self.assertEqual((type(assigned.exception), str(assigned.exception)), (type(told.exception), str(told.exception)))
        with self.assertRaisesRegex(TypeError, "a table is a result, which cannot be set"):
            run.tables["electrons"] = {}
        with self.assertRaisesRegex(TypeError, "`name` is 5"):
            run.fields[5] = np.ones((8, 64))

    def test_a_column_that_is_assigned_reaches_the_run(self):
        run, other = self.run_of(), self.run_of()
        electrons = run.particles("electrons")
        before = np.array(electrons["momentum_x"])
        electrons["ux"] += 0.01
        # Momenta are given as doubles, and held in the precision of the run.
        self.assertTrue(np.array_equal(electrons["momentum_x"], (before + 0.01).astype("f4")))
        electrons["uy"] = np.full(len(before), 0.02)
        other.set_particles("electrons", {"momentum_x": before + 0.01, "momentum_y": np.full(len(before), 0.02)})
        run.fields["Bz"] += 0.0
        electrons["uz"] = np.full(len(before), 0.03)
        other.set_particles("electrons", {"momentum_z": np.full(len(before), 0.03)})
        kept = np.array(electrons["x"])
        run.step(10)
        other.step(10)
        self.assertTrue(np.array_equal(run.fields["E_x"], other.fields["E_x"]))
        # Those of before stay what they were, in an order that is not the run's any more.
        self.assertTrue(np.array_equal(electrons["x"], kept))
        self.assertFalse(np.array_equal(run.particles("electrons")["x"], kept))
        for change in (lambda: electrons.update(ux=before), lambda: electrons.__setitem__("ux", before)):
            with self.assertRaisesRegex(ValueError, 'of step 5, and those of the run are others by now\\n\\nhint: take them anew, `run.particles'):
                change()
        two = [run.particles("electrons") for _ in range(2)]
        two[0]["ux"] *= 0.5
        with self.assertRaisesRegex(ValueError, "others by now"):
            two[1]["ux"] *= 0.5
        self.assertTrue(np.array_equal(run.particles("electrons")["ux"], two[0]["ux"]))
        self.assertIn("ux", electrons)
        self.assertNotIn("vx", electrons)
        with self.assertRaisesRegex(KeyError, "no column `vx` .*momentum_x"):
            electrons["vx"]
        with self.assertRaises(zellige.InputError):
            electrons["vx"] = before

    def test_several_columns_at_once_may_change_the_number(self):
        run = self.run_of()
        electrons = run.particles("electrons")
        half = {name: np.asarray(values)[::2] for name, values in electrons.items()}
        electrons.update(half)
        self.assertEqual(len(electrons["weighting"]), 64 * 8 * 16 // 2)
        electrons.update(ux=0.0 * electrons["ux"], uy=electrons["uy"] + 1)
        self.assertEqual((float(electrons["ux"].max()), float(electrons["uy"].min())), (0.0, 1.0))
        with self.assertRaisesRegex(ValueError, "given twice"):
            electrons.update({"ux": electrons["ux"], "momentum_x": electrons["ux"]})

    def test_particles_are_a_dict(self):
        electrons = self.run_of().particles("electrons")
        self.assertIsInstance(electrons, dict)
        for plain in (dict(electrons), electrons.copy(), pickle.loads(pickle.dumps(electrons)), {**electrons}):
            self.assertIs(type(plain), dict)
            self.assertEqual(list(plain), list(electrons))
            self.assertTrue(np.array_equal(plain["momentum_x"], electrons["ux"]))
        self.assertTrue(np.array_equal(electrons.get("ux"), electrons["momentum_x"]))
        self.assertEqual((electrons.get("vx", 3), electrons.get("vx")), (3, None))
        electrons |= {"ux": 0.0 * electrons["ux"]}
        self.assertEqual(float(electrons["ux"].max()), 0.0)
        for change in (lambda: electrons.pop("ux"), lambda: electrons.clear(), lambda: electrons.__delitem__("momentum_x")):
            with self.assertRaisesRegex(TypeError, "cannot be taken away or added"):
                change()
        self.assertEqual(len(electrons["ux"]), 64 * 8 * 16)

    def test_species_are_changed_one_after_the_other(self):
        tables = plasma(10**6)
        tables["pic"]["species"].append({"name": "ions", "particles_per_cell": [4, 4], "charge": 1.0, "mass": 1836.0})
        run = self.run_of(tables)
        beams = [run.particles(name) for name in ("electrons", "ions")]
        before = [np.array(beam["ux"]) for beam in beams]
        for beam in beams:
            beam["ux"] += 0.5
        for name, old in zip(("electrons", "ions"), before):
            self.assertLess(np.abs(run.particles(name)["ux"] - old - 0.5).max(), 1e-6, name)

    def test_columns_are_taken_anew_once_the_old_ones_are_gone(self):
        run = self.run_of()
        electrons, held, take = run.particles("electrons"), [], run._particles
        run._particles = lambda *which: held.append(len(electrons)) or take(*which)
        electrons["ux"] *= 0.5
        self.assertEqual(held, [0])
        self.assertEqual(len(electrons["ux"]), 64 * 8 * 16)

    def test_velocities_of_a_gas(self):
        run = self.run_of(gas(100))
        argon = run.particles("Ar")
        argon["vx"] *= -1
        turned = np.array(argon["velocity_x"])
        argon["vx"] *= -1
        self.assertTrue(np.array_equal(-turned, argon["velocity_x"]))

    def test_a_copy_that_is_written_into_says_so(self):
        run = self.run_of()
        for array in (run.fields["Bz"], run.fields["E_x"], run.particles("electrons")["ux"]):
            with self.assertRaisesRegex(ValueError, r"cannot be written in place\n\nhint: fields and particles are assigned whole, `run.fields"):
                array[0] = 1
            for write in (lambda a: a.fill(1), lambda a: np.asarray(a).__setitem__(0, 1), lambda a: np.multiply(a, 2, out=np.asarray(a))):
                with self.assertRaisesRegex(ValueError, "read-only"):
                    write(array)
            self.assertFalse(np.from_dlpack(array).flags.writeable)
            # What is the caller's can be written.
            for own in (np.array(array), copy.copy(array), pickle.loads(pickle.dumps(array)), np.from_dlpack(array).copy()):
                own[0] = 3
                self.assertEqual(float(np.asarray(own).flat[0]), 3.0)
        self.assertEqual(float(run.fields["Bz"].max()), 0.0)

    def test_results_of_calls_are_the_callers(self):
        u = zellige.poisson.solve(np.ones((9, 9)), **HERE).u
        u[0] = 1
        array = zellige.poisson.Plan((9, 9), **HERE)._plan.solve(np.ones((9, 9)))[0]
        array[0] = 2
        self.assertEqual(float(array.max()), 2.0)


class Callbacks(Folder):
    def test_each_so_many_steps_and_as_a_loop_would(self):
        run, loop, steps = zellige.Run(plasma(10**6), **HERE), zellige.Run(plasma(10**6), **HERE), []

        def kick(it):
            self.assertIs(it, run)
            steps.append(it.clock.step)
            it.particles("electrons")["ux"] += 1e-3
            it.fields["Bz"] += 1e-3

        self.assertEqual(run.step(7, callback=kick, every=5), 7)
        self.assertEqual(run.step(18, callback=kick, every=5), 18)
        self.assertEqual(run.step(callback=kick), 1)
        self.assertEqual(steps, [5, 10, 15, 20, 25, 26])
        for made in (5, 5, 5, 5, 5, 1):
            loop.step(made)
            loop.set_particles("electrons", {"momentum_x": np.asarray(loop.particles("electrons")["momentum_x"]) + 1e-3})
            loop.set_field("Bz", np.asarray(loop.fields["Bz"]) + np.float32(1e-3))
        self.assertTrue(np.array_equal(run.fields["E_x"], loop.fields["E_x"]))
        self.assertTrue(np.array_equal(run.rows["electric"], loop.rows["electric"]))

    def test_the_way_to_the_end_has_the_files_of_the_command(self):
        """With a callback that looks alone, all files are those of a run without; with one that changes, those of the changed run."""
        tables = {**plasma(40), **RUN}
        tables["pic"]["diagnostics"] = {"fields": [{"what": ["ex"], "every": "7 steps"}]}
        plain = zellige.Run(tables, **HERE, output=self.folder / "plain")
        looked = zellige.Run(tables, **HERE, output=self.folder / "looked")
        steps, seen = [], []

        def look(it):
            steps.append(it.clock.step)
            seen.append(float(np.abs(it.fields["Ex"]).max()))
            self.assertEqual(it.rows["step"][-1], it.clock.step)

        first, second = plain.to_end(), looked.to_end(callback=look, every=10)
        self.assertEqual(steps, [10, 20, 30, 40])
        self.assertTrue(all(seen))
        names = [sorted(p.name for p in (self.folder / place).rglob("*")) for place in ("plain", "looked")]
        self.assertEqual(*names)
        self.assertIn("E_x_000035.npy", names[0])
        for file in (self.folder / "plain").rglob("*"):
            if file.suffix in (".npy", ".csv", ".toml"):
                other = self.folder / "looked" / file.relative_to(self.folder / "plain")
                self.assertEqual(file.read_bytes(), other.read_bytes(), file.name)
        self.assertNotIn("changed_after", second.summary)
        self.assertEqual(first.summary["steps"], 40)
        kicked = zellige.Run(tables, **HERE, output=self.folder / "kicked")
        third = kicked.to_end(callback=lambda it: it.fields.__setitem__("Ex", it.fields["Ex"] * 0.5), every=20)
        self.assertEqual(third.summary["changed_after"], [20, 40])
        self.assertFalse(np.array_equal(third.fields["E_x"], first.fields["E_x"]))

    def test_an_exception_comes_out_and_the_run_goes_on(self):
        class Enough(Exception):
            pass

        def stop(it):
            if it.clock.step >= 20:
                raise Enough

        for drive in (lambda run: run.step(40, callback=stop, every=10), lambda run: run.to_end(callback=stop, every=10)):
            run = zellige.Run({**plasma(40), **RUN}, **HERE, output=self.folder / "out")
            with self.assertRaises(Enough):
                drive(run)
            self.assertEqual((run.clock.step, run.outcome), (20, None))
            run.fields["Bz"] += 0.0
            self.assertEqual(run.step(2), 2)
            self.assertTrue(run.save(self.folder / "out").is_file())
            self.assertEqual(list(run.to_end().rows["step"]), [float(k) for k in range(1, 41)])

    def test_a_callback_may_save_and_the_run_resumes_from_there(self):
        whole = zellige.Run({**plasma(40), **RUN}, **HERE, output=self.folder / "whole").to_end()
        (self.folder / "link").symlink_to(self.folder / "out", target_is_directory=True)
        for where in ("out", "elsewhere", "link", "elsewhere/../out"):
            run = zellige.Run({**plasma(40), **RUN}, **HERE, output=self.folder / "out")
            saved = []

            def save(it):
                if it.clock.step == 20:
                    saved.append(it.save(self.folder / where))
                if it.clock.step == 30:
                    raise KeyboardInterrupt

            with self.assertRaises(KeyboardInterrupt):
                run.to_end(callback=save, every=10)
            self.assertEqual(saved, [self.folder / where / "checkpoint" / "latest.zck"])
            # Rows up to where it ended are there.
            rows = np.genfromtxt(self.folder / "out" / "rows.csv", delimiter=",", names=True)
            self.assertEqual(len(rows), 30)
            resumed = zellige.Run({**plasma(40), **RUN}, **HERE, resume=self.folder / where, output=self.folder / "on")
            self.assertEqual(resumed.clock.step, 20)
            results = resumed.to_end()
            self.assertEqual(list(results.rows["step"]), [float(k) for k in range(1, 41)])
            self.assertTrue(np.array_equal(results.fields["E_x"], whole.fields["E_x"]))

    def test_a_callback_makes_no_steps(self):
        run = zellige.Run({**plasma(40), **RUN}, **HERE, output=self.folder / "out")
        for ask in (lambda it: it.step(), lambda it: it.to_end(), lambda it: next(it.frames())):
            for drive in (lambda: run.step(2, callback=ask), lambda: run.to_end(callback=ask)):
                with self.assertRaisesRegex(zellige.errors.BusyError, "a callback of this run is at work"):
                    drive()
        for wrong in ({"callback": 3}, {"callback": print, "every": "3"}):
            with self.assertRaisesRegex(TypeError, "`callback` is of type int|`every` is '3'"):
                run.step(2, **wrong)
        for ask in (lambda: run.to_end(callback=print, every=0), lambda: run.to_end(callback=print, every=2**64)):
            with self.assertRaisesRegex(ValueError, r"`every` is (0|\d{20}) \(allowed: whole numbers from 1 to 9"):
                ask()
        with self.assertRaisesRegex(zellige.Error, r"`n` is \d{20}"):
            run.step(2**64)
        self.assertEqual(run.clock.step, 6)

    def test_iterations_of_a_reconstruction(self):
        sets = {"ptycho.scan.0.simulate.frames": 25, "ptycho.scan.0.simulate.size": 64}
        run = zellige.Run(EXAMPLES / "ptycho" / "simulated.toml", **HERE, **sets, output={"folder": str(self.folder / "out")})

        def bounded(it):
            transmission = np.asarray(it.fields["object"])
            it.fields["object"] = transmission / np.maximum(1, np.abs(transmission))

        run.step(4, callback=bounded, every=2)
        self.assertLessEqual(float(np.abs(run.fields["object"]).max()), 1 + 1e-6)


if __name__ == "__main__":
    unittest.main()
