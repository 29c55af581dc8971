"""Runs step by step, their files, and the command."""

import json
import math
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from pathlib import Path

import numpy as np
import zellige

EXAMPLES = Path(os.environ.get("ZELLIGE_EXAMPLES", Path(__file__).parents[3] / "examples"))
HERE = {"device": "cpu", "threads": 1}


def plasma(steps):
    """Langmuir oscillation of a cold plasma: a standing wave whose field swings with the plasma frequency, which is 1."""
    electrons = {"name": "electrons", "particles_per_cell": [4, 4], "momentum": {"drift": ["1e-3*sin(2*pi*x/lx)", 0, 0]}}
    return {"pic": {"dt": 0.05, "steps": steps, "grid": {"cells": [64, 8], "size": [6.4, 0.8]}, "species": [electrons]}}


def gas(steps):
    """Argon at rest in a row of cells."""
    table = {"dt": 2e-6, "steps": steps, "particles_per_cell": 20, "species": [{"name": "Ar"}], "sampling": {"start": 20}}
    boundary = {side: {"wall": {"temperature": 273.15}} for side in ("x_lo", "x_hi")}
    table.update(grid={"cells": [20], "size": [0.05]}, gas={"density": 1e20, "temperature": 273.15}, boundary=boundary)
    return {"dsmc": table, "output": {"formats": ["hdf5"]}}


def command(*arguments, **how):
    return subprocess.run([sys.executable, "-m", "zellige", *map(str, arguments)], capture_output=True, text=True, **how)


class Folder(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = Path(self._folder.name)


class Stepping(Folder):
    INPUT = plasma(10**6)

    def test_steps_clock_rows_and_fields(self):
        run = zellige.Run(self.INPUT, **HERE)
        self.assertEqual((run.solver, run.clock.step, run.outcome), ("pic", 0, None))
        self.assertEqual(run.step(10), 10)
        self.assertEqual(run.clock.step, 10)
        self.assertEqual(list(run.rows["step"]), [float(k) for k in range(1, 11)])
        self.assertEqual(len(run.rows["electric"]), 10)
        self.assertEqual(run.step(2), 2)
        self.assertEqual(len(run.rows["step"]), 12)
        self.assertEqual(run.summary["clock"]["step"], 12)
        field = run.fields["Ex"]
        self.assertEqual(field.name, "E_x")
        self.assertTrue(field.units and field.axes[-1].name == "x" and field.shape[-1] == field.axes[-1].size)
        before = np.array(field)
        run.step(20)
        self.assertTrue(np.array_equal(field, before), "an array that was taken keeps its values")
        self.assertFalse(np.array_equal(run.fields["E_x"], before), "fields are those of the present step")
        self.assertNotIn("Q", run.fields)
        with self.assertRaisesRegex(KeyError, "no field `Q`.*E_x"):
            run.fields["Q"]

    def test_arrays_on_a_gpu_are_refused_by_a_run_on_the_cpu(self):
        run = zellige.Run(self.INPUT, **HERE)
        for ask in (lambda: run.field_on_gpu("Ex"), lambda: run.particles_on_gpu("electrons")):
            with self.assertRaisesRegex(zellige.DeviceError, "no array on a GPU: the run computes on the CPU") as refused:
                ask()
            self.assertIn("device=\"cuda\"", refused.exception.hint)

        class OnGpu:
            shape = (8, 64)
            __cuda_array_interface__ = {"typestr": "<f8", "shape": shape, "data": (256, False), "strides": None, "version": 3}

        with self.assertRaisesRegex(TypeError, "`E_x` is in the memory of a GPU"):
            run.set_field("Ex", OnGpu())

    def test_fields_that_are_zero_or_not_asked_for_are_there_by_name(self):
        run = zellige.Run(plasma(10), **HERE)
        self.assertNotIn("B_z", list(run.fields))
        for name in ("Bz", "B_z"):
            field = run.fields[name]
            self.assertEqual((field.shape, [a.name for a in field.axes], float(abs(field).max())), ((8, 64), ["y", "x"], 0.0))
        # Asked for, they are still not listed.
        self.assertNotIn("B_z", list(run.fields))
        run.step(3)
        self.assertTrue(np.array_equal(run.fields["rho_electrons"] != 0, np.ones((8, 64), bool)))
        for wrong in ("Fz", "rho_muons", 3, None):
            self.assertNotIn(wrong, run.fields)
            with self.assertRaisesRegex(KeyError, "no field"):
                run.fields[wrong]

    def test_particles_carry_the_charge_of_the_field(self):
        run = zellige.Run(self.INPUT, **HERE)
        run.step(5)
        particles = run.particles("electrons")
        box = run.fields["E_x"].axes[-1]
        position = np.asarray(particles["position_x"])
        self.assertTrue(np.all((position >= 0) & (position <= box.size * box.spacing)))
        self.assertEqual({len(column) for column in particles.values()}, {len(position)})
        self.assertEqual(len(position), int(run.rows["particles"][-1]))
        # One electron a unit of the box, which is 6.4 x 0.8, and the drift of the start, half a step before.
        self.assertAlmostEqual(float(np.sum(particles["weighting"])), 6.4 * 0.8, places=9)
        drift = 1e-3 * np.sin(2 * np.pi * position / 6.4) * math.cos(4.5 * 0.05)
        self.assertLess(np.abs(np.asarray(particles["momentum_x"]) - drift).max(), 2e-5)
        with self.assertRaisesRegex(KeyError, "no particles `muons`"):
            run.particles("muons")

    def test_frames_end_with_the_run(self):
        run = zellige.Run(plasma(25), **HERE)
        self.assertEqual([frame.clock.step for frame in run.frames(every=10)], [10, 20, 25])
        self.assertEqual(run.outcome.ending, "finished")
        self.assertEqual(run.step(), 0)

    def test_resumed_run_has_the_bits_of_one_that_was_not_interrupted(self):
        whole = zellige.Run(self.INPUT, **HERE)
        whole.step(30)
        first = zellige.Run(self.INPUT, **HERE)
        first.step(12)
        path = first.save(self.folder)
        self.assertEqual(path, self.folder / "checkpoint" / "latest.zck")
        second = zellige.Run(self.INPUT, resume=self.folder, **HERE)
        self.assertEqual(second.clock.step, 12)
        second.step(18)
        self.assertTrue(np.array_equal(second.fields["E_x"], whole.fields["E_x"]))
        # Rows of before are not lost to a checkpoint into the same folder.
        second.save(self.folder)
        self.assertEqual(list(zellige.load(self.folder).rows["step"]), [float(k) for k in range(1, 31)])
        with self.assertRaisesRegex(zellige.Error, "another input"):
            zellige.Run(self.INPUT, resume=self.folder, **HERE, pic={"dt": 0.04})

    def test_other_threads_go_on_and_may_not_touch_the_run(self):
        run = zellige.Run(self.INPUT, **HERE)
        done = threading.Event()
        refused = []

        def work():
            run.step(3000)
            done.set()

        thread = threading.Thread(target=work)
        thread.start()
        turns = 0
        while not done.is_set():
            turns += 1
            try:
                run.clock
            except RuntimeError as error:
                refused.append(str(error))
            time.sleep(0.001)
        thread.join()
        self.assertGreater(turns, 3)
        self.assertTrue(any("another thread" in text for text in refused))
        self.assertEqual(run.clock.step, 3000)

    def test_rows_grow_without_copies_of_those_before(self):
        from zellige._fields import Rows

        rows, begun = Rows(), time.perf_counter()
        for k in range(100_000):
            rows.add({"step": k, "energy": 2.0 * k} if k < 50_000 else {"step": k, "late": 1.0})
        # With lists of all rows before, this takes minutes.
        self.assertLess(time.perf_counter() - begun, 20.0)
        columns = rows.columns()
        self.assertEqual(list(columns), ["step", "energy", "late"])
        self.assertTrue(np.array_equal(columns["step"], np.arange(100_000)))
        self.assertEqual([int(np.isnan(columns[name]).sum()) for name in columns], [0, 50_000, 50_000])
        self.assertFalse(columns["step"].flags.writeable)
        run = zellige.Run(plasma(50), **HERE, output=self.folder)
        run.step(20)
        self.assertTrue(np.shares_memory(run.rows["step"], run.rows["step"]))
        self.assertEqual(list(run.rows), list(run.to_end().rows))

    def test_a_resumed_run_has_the_rows_from_before(self):
        first = zellige.Run(plasma(60), **HERE)
        first.step(20)
        checkpoint = first.save(self.folder / "there")
        for named in (checkpoint, self.folder / "there"):
            second = zellige.Run(plasma(60), **HERE, resume=named)
            self.assertEqual(list(second.rows["step"]), list(first.rows["step"]))
            second.step(10)
            before, rows = first.rows, second.rows
            self.assertGreater(rows["step"][-1], before["step"][-1])
            self.assertTrue(np.all(np.diff(rows["step"]) > 0))
            self.assertEqual(set(rows), set(before))
            for name, column in before.items():
                self.assertTrue(np.array_equal(rows[name][: len(column)], column, equal_nan=True), name)
        self.assertEqual(second.units, first.units)
        whole = (self.folder / "there" / "rows.csv").read_text()
        for wrong in (whole[:-10], "", "a,b\n1,2\n"):
            (self.folder / "there" / "rows.csv").write_text(wrong)
            with self.assertWarnsRegex(UserWarning, "rows of the run before are not included"):
                zellige.Run(plasma(60), **HERE, resume=self.folder / "there").step(1)


class ToTheEnd(Folder):
    def test_a_run_that_has_ended_stays_as_it_ended(self):
        run = zellige.Run(plasma(10), **HERE, output=self.folder)
        run.to_end()
        with self.assertRaisesRegex(zellige.InputError, "has ended"):
            run.to_end()
        self.assertEqual((run.clock.step, run.outcome.ending), (10, "finished"))

    def test_results_that_cannot_be_written_can_be_later_or_elsewhere(self):
        run = zellige.Run(plasma(10), **HERE, output={"folder": str(self.folder / "out"), "formats": ["npy"]})
        # No file takes its place.
        (self.folder / "out" / "E_x.npy").mkdir(parents=True)
        with self.assertRaisesRegex(zellige.FileError, "E_x.npy"):
            run.to_end()
        self.assertEqual(run.clock.step, 10)
        self.assertTrue(run.save(self.folder / "elsewhere").is_file())
        (self.folder / "out" / "E_x.npy").rmdir()
        results = run.to_end()
        # The state that the first attempt saved is of no use any more.
        self.assertFalse((self.folder / "out" / "checkpoint").exists())
        expected = zellige.Run(plasma(10), **HERE, output={"folder": str(self.folder / "out2"), "formats": ["npy"]}).to_end()
        self.assertTrue(np.array_equal(results.fields["E_x"], expected.fields["E_x"]))
        self.assertEqual((self.folder / "out" / "rows.csv").read_text(), (self.folder / "out2" / "rows.csv").read_text())

    def test_tables_that_are_no_file_have_a_folder_of_their_solver(self):
        here = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, here)
        self.assertEqual(zellige.Run(plasma(2), **HERE).to_end().folder, Path("out/pic"))

    INPUT = EXAMPLES / "poisson" / "neumann.toml"

    def test_files_are_those_of_the_command_line(self):
        keys = {"output.formats": ["npy"], "poisson.grid.nodes": [65, 65]}
        sets = [f"--set={key}={json.dumps(value)}" for key, value in keys.items()]
        run = zellige.Run(self.INPUT, output=self.folder / "here", **HERE, **keys)
        results = run.to_end()
        ended = command("run", self.INPUT, "-o", self.folder / "there", "--device", "cpu", "--threads", 1, *sets)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        names = [sorted(p.name for p in (self.folder / place).iterdir()) for place in ("here", "there")]
        self.assertEqual(*names)
        for name in names[0]:
            if name.endswith((".npy", ".csv", ".toml")):
                self.assertEqual((self.folder / "here" / name).read_bytes(), (self.folder / "there" / name).read_bytes(), name)
        self.assertEqual(run.summary["outcome"]["status"], "converged")
        there = zellige.load(self.folder / "there")
        self.assertEqual(there.summary["checks"], results.summary["checks"])
        self.assertTrue(np.array_equal(there.fields["solution"], run.fields["solution"]))
        self.assertTrue(np.array_equal(there.rows["residual"], run.rows["residual"]))
        self.assertEqual(run.outcome.ending, "finished")
        with self.assertRaisesRegex(zellige.InputError, "the run has ended"):
            run.step()

    def test_steps_by_hand_are_in_the_files(self):
        run = zellige.Run(plasma(30), output=self.folder / "out", **HERE)
        run.step(11)
        self.assertFalse((self.folder / "out").exists())
        run.to_end()
        self.assertEqual(list(zellige.load(self.folder / "out").rows["step"]), [float(k) for k in range(1, 31)])

    def test_missed_goal_warns(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run = zellige.Run(self.INPUT, output=self.folder / "out", **HERE, poisson={"method": "jacobi", "max_cycles": 3})
            run.to_end()
        self.assertTrue(any(w.category is zellige.VerdictWarning and "a check failed" in str(w.message) for w in caught))
        self.assertEqual(run.summary["exit_code"], 3)

    def test_a_missed_goal_is_told_once(self):
        """By the warning, not on standard error as well."""
        told = subprocess.run(
            [sys.executable, "-c", "import sys, zellige; zellige.Run(sys.argv[1], device='cpu', threads=1, output='out', "
             "poisson={'method': 'jacobi', 'max_cycles': 3}).to_end()", str(self.INPUT)],
            capture_output=True, text=True, cwd=self.folder,
        )
        self.assertEqual((told.returncode, told.stdout), (0, ""))
        self.assertEqual(told.stderr.count("a check failed"), 1, told.stderr)
        self.assertIn("VerdictWarning", told.stderr)
        self.assertNotIn("error:", told.stderr)


class Errors(Folder):
    def test_input_has_the_text_of_the_command_line(self):
        file = self.folder / "wrong.toml"
        file.write_text('[poisson]\nrhs = "sin(q)"\n[poisson.grid]\nnodes = [2, 65]\nsize = [1.0, 1.0]\n[run]\nspeed = 3\n')
        with self.assertRaises(zellige.InputError) as caught:
            zellige.Run(file)
        ended = command("run", file)
        self.assertEqual(ended.returncode, caught.exception.exit_code)
        self.assertEqual(ended.stderr.strip(), f"error: {caught.exception}")

    def test_kinds(self):
        with self.assertRaises(zellige.FileError) as caught:
            zellige.Run(self.folder / "none.toml")
        self.assertIn("hint: ", str(caught.exception))
        self.assertIsInstance(caught.exception, OSError)
        with self.assertRaises(zellige.InputError):
            zellige.Run({"poisson": {"grid": {"nodes": [9, 9], "size": [1.0, 1.0]}, "rhs": math.inf}})
        with self.assertRaisesRegex(ValueError, "no value of an input"):
            zellige.Run({}, poisson={"rhs": None})
        if not os.path.exists("/dev/nvidiactl"):
            with self.assertRaises(zellige.DeviceError):
                zellige.Run(EXAMPLES / "poisson" / "neumann.toml", device="cuda")

    def test_arguments_that_cannot_be_used_are_errors_of_the_package_too(self):
        run = zellige.Run(plasma(10), **HERE)
        for kind, call in [
            (TypeError, lambda: run.set_particles("electrons", [1.0])),
            (TypeError, lambda: run.set_field("Ex", np.array(["a"]))),
            (ValueError, lambda: run.step(-1)),
            (ValueError, lambda: run.live(port=70000)),
            (KeyError, lambda: run.particles("ions")),
            (KeyError, lambda: run.fields["Q"]),
            (FileNotFoundError, lambda: zellige.load(self.folder)),
            (FileNotFoundError, lambda: zellige.Run(self.folder / "none.toml")),
            (ValueError, lambda: zellige.poisson.Plan((9, 9), **HERE).solve(np.ones((8, 9)))),
        ]:
            with self.assertRaises(kind) as caught:
                call()
            self.assertIsInstance(caught.exception, zellige.Error)
            again = pickle.loads(pickle.dumps(caught.exception))
            self.assertEqual((type(again), str(again)), (type(caught.exception), str(caught.exception)))
        hinted = zellige.errors.ArgumentError("no\n\nhint: yes")
        self.assertEqual((hinted.message, hinted.hint, str(hinted)), ("no", "yes", "no\n\nhint: yes"))

    def test_odd_arguments_are_named(self):
        run, rho = zellige.Run(plasma(10), **HERE), np.ones((9, 9))
        scan = {"frames": np.ones((2, 8, 8)), "positions": np.zeros((2, 2)), "wavelength": 1e-10, "distance": 1.0, "pixel": 1e-5}
        for kind, named, call in [
            (TypeError, "`input` is of type int", lambda: zellige.Run(5)),
            (ValueError, "`threads` is -1", lambda: zellige.Run(plasma(1), threads=-1)),
            (TypeError, "`threads` is '2'", lambda: zellige.Run(plasma(1), threads="2")),
            (TypeError, "`n` is 1.5", lambda: run.step(1.5)),
            (TypeError, "`every` is None", lambda: next(run.frames(None))),
            (TypeError, "`name` is 5", lambda: run.set_field(5, rho)),
            (TypeError, "`name` is 5", lambda: run.field_on_gpu(5)),
            (TypeError, "`species` is None", lambda: run.particles(None)),
            (TypeError, "`column` is 3", lambda: run.set_particles("electrons", {3: rho[0]})),
            (TypeError, "`port` is '80'", lambda: run.live(port="80")),
            (ValueError, "`threads` is -1", lambda: zellige.poisson.solve(rho, threads=-1)),
            (TypeError, "`shape` is 9", lambda: zellige.poisson.Plan(9)),
            (TypeError, "`shape` is 'a'", lambda: zellige.poisson.Plan(("a", 9))),
            (TypeError, r"`boundary\['x'\]\['dirichlet'\]` is True", lambda: zellige.poisson.solve(rho, boundary={"x": {"dirichlet": True}})),
            (TypeError, "`engine` is None", lambda: zellige.ptycho.reconstruct(**scan, engine=None)),
            (TypeError, "`engine` is 3", lambda: zellige.ptycho.reconstruct(**scan, engine=3)),
            (TypeError, "`seed` is '3'", lambda: zellige.ptycho.reconstruct(**scan, seed="3")),
            (TypeError, "`iterations` is 2.5", lambda: zellige.ptycho.reconstruct(**scan, iterations=2.5)),
            (ValueError, "`threads` is -1", lambda: zellige.ptycho.reconstruct(**scan, threads=-1)),
            (TypeError, "`distance` is None", lambda: zellige.ptycho.reconstruct(**{**scan, "distance": None})),
        ]:
            with self.assertRaisesRegex(kind, named) as caught:
                call()
            self.assertIsInstance(caught.exception, zellige.Error, named)

    def test_errors_survive_pickling(self):
        import pickle

        error = pickle.loads(pickle.dumps(zellige.OutOfMemoryError("too much", "ask for less", 4)))
        self.assertEqual((str(error), error.exit_code, error.hint), ("too much\n\nhint: ask for less", 4, "ask for less"))


class Command(Folder):
    def test_exit_codes_and_streams(self):
        self.assertEqual(command("--version").stdout.split()[0], "zellige")
        wrong = command("no-such-command")
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("no-such-command", wrong.stderr)
        schema = command("schema", "poisson")
        self.assertEqual(json.loads(schema.stdout)["type"], "object")

    def test_closed_streams_change_no_exit_code(self):
        words = [sys.executable, "-m", "zellige", "new"]
        for closed in (">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
            ended = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *words], capture_output=True, text=True)
            self.assertEqual(ended.returncode, 0, (closed, ended.stderr))

    def test_run_tells_plan_and_outcome(self):
        ended = command("run", EXAMPLES / "poisson" / "neumann.toml", "--device", "cpu", "--set", "poisson.grid.nodes=[33, 33]", cwd=self.folder)
        self.assertEqual((ended.returncode, ended.stdout), (0, ""))
        for words in ("zellige 0.", "grid ", "status ", "files "):
            self.assertIn(words, ended.stderr)
        self.assertTrue((self.folder / "out" / "neumann" / "summary.json").exists())

    def test_ctrl_c_ends_it_as_the_binary(self):
        (self.folder / "in.json").write_text(json.dumps(plasma(10**9)))
        arguments = [sys.executable, "-m", "zellige", "run", "in.json", "-o", "out", "--device", "cpu", "--threads", "1"]
        process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, cwd=self.folder)
        rows = self.folder / "out" / "resolved.toml"
        for _ in range(600):
            if rows.exists():
                break
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("interrupted by SIGINT", err)
        self.assertTrue((self.folder / "out" / "checkpoint" / "latest.zck").exists())

    def test_several_runs_are_processes_of_the_same_program(self):
        ended = command(
            "run", EXAMPLES / "poisson" / "neumann.toml", "-o", "all", "--device", "cpu", "--threads", 1, "--set", "poisson.tolerance=1e-4,1e-6",
            "--set", "poisson.grid.nodes=[33, 33]", cwd=self.folder,
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(len(list((self.folder / "all").glob("*/summary.json"))), 2)


class Package(unittest.TestCase):
    def test_everything_promised_is_there_and_documented(self):
        for name in zellige.__all__:
            if name != "__version__":
                self.assertTrue((getattr(zellige, name).__doc__ or "").strip(), name)
        self.assertIn("shape (N, M)", zellige.poisson.solve.__doc__)
        self.assertTrue(Path(zellige.__file__).with_name("py.typed").exists())

    def test_examples_of_the_docstrings(self):
        import doctest

        for module in (zellige.poisson, sys.modules["zellige.run"] if "zellige.run" in sys.modules else __import__("zellige.run").run):
            failed, tried = doctest.testmod(module)
            self.assertEqual(failed, 0)
            self.assertGreater(tried, 3)


if __name__ == "__main__":
    unittest.main()
