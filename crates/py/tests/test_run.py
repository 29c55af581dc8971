"""Runs step by step, their files, and the command."""

import importlib.util
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
import types
import unittest
import unittest.mock
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


class Setting(Folder):
    """Fields and particles that are set between steps."""

    def test_what_is_set_to_what_it_was_changes_nothing(self):
        alone, touched = (zellige.Run(plasma(10**6), **HERE) for _ in range(2))
        alone.step(40)
        touched.step(20)
        for name in [name for name in touched.fields if name[:2] in ("E_", "B_")]:
            touched.set_field(name, touched.fields[name])
        touched.set_particles("electrons", touched.particles("electrons"))
        touched.step(20)
        self.assertGreater(len(alone.fields), 0)
        for name in alone.fields:
            self.assertTrue(np.array_equal(alone.fields[name], touched.fields[name]), name)

    def test_a_kick_rings_at_the_plasma_frequency(self):
        still = plasma(10**6)
        still["pic"]["species"][0].pop("momentum")
        run = zellige.Run(still, **HERE)
        run.step(3)
        u = np.asarray(run.particles("electrons")["momentum_x"])
        run.set_particles("electrons", {"momentum_x": u + 1e-3})
        # The field of a uniform displacement u sin(t), momenta being half a step behind.
        steps = 31
        run.step(steps)
        field = np.asarray(run.fields["E_x"], dtype=np.float64)
        expected = 1e-3 * math.sin(0.05 * (steps + 0.5) - 0.025)
        self.assertLess(np.abs(field - expected).max(), 2e-3 * expected)

    def test_particles_taken_away_are_no_loss(self):
        run = zellige.Run(plasma(60), **HERE, output={"folder": str(self.folder / "out"), "formats": ["npy"]})
        run.step(20)
        columns = {name: np.asarray(column)[::2] for name, column in run.particles("electrons").items()}
        run.set_particles("electrons", columns)
        self.assertEqual(len(run.particles("electrons")["weighting"]), 64 * 8 * 16 // 2)
        run.save(self.folder / "here")
        into = {"folder": str(self.folder / "out2"), "formats": ["npy"]}
        resumed = zellige.Run(plasma(60), **HERE, resume=self.folder / "here", output=into)
        with warnings.catch_warnings():
            warnings.simplefilter("error", zellige.VerdictWarning)
            first, second = run.to_end(), resumed.to_end()
        self.assertEqual(first.rows["particles"][-1], 64 * 8 * 16 // 2)
        self.assertEqual(first.summary["changed_after"], [20])
        self.assertTrue(np.array_equal(first.fields["E_x"], second.fields["E_x"]))

    def test_a_field_that_is_set_is_there(self):
        run = zellige.Run(plasma(10), **HERE)
        bz = np.linspace(0, 1, 64 * 8, dtype=np.float32).reshape(8, 64)
        run.set_field("Bz", bz)
        self.assertTrue(np.array_equal(run.fields["B_z"], bz))

    def test_a_wave_that_is_set_goes_round_the_box(self):
        # The discrete plane wave of the Yee grid, B taken between its half steps; next to no plasma.
        n, h, dt, a, steps = 64, 0.1, 0.05, 1e-3, 150
        thin = {"name": "electrons", "particles_per_cell": 1, "density": 1e-9}
        run = zellige.Run({"pic": {"dt": dt, "steps": 1000, "grid": {"cells": [n], "size": [n * h]}, "species": [thin]}}, **HERE)
        k = 2 * math.pi / (n * h)
        half = math.asin(dt / h * math.sin(k * h / 2))
        x = h * np.arange(n)
        electric = lambda step: a * np.sin(k * x - 2 * half * step)
        magnetic = lambda step: a * math.cos(half) * np.sin(k * (x + h / 2) - 2 * half * step)
        run.set_field("Ey", electric(0))
        run.set_field("Bz", magnetic(0))
        run.step(steps)
        for name, expected in {"E_y": electric(steps), "B_z": magnetic(steps)}.items():
            # Single precision, 150 steps.
            self.assertLess(np.abs(np.asarray(run.fields[name]) - expected).max(), 2e-5 * a, name)

    def test_what_cannot_be_set_is_told(self):
        run = zellige.Run(plasma(10), **HERE)
        shape, electrons = (8, 64), run.particles("electrons")
        position = np.asarray(electrons["position_x"])
        told = {
            r"no field of this run.*E_x, E_y": lambda: run.set_field("rho", np.zeros(shape)),
            r"an array of \[64\].*\[8, 64\]": lambda: run.set_field("Ex", np.zeros(64)),
            r"value 3 is NaN.*finite": lambda: run.set_field("Ex", np.where(np.arange(512) == 3, np.nan, 0).reshape(shape)),
            r"no species of this run.*electrons": lambda: run.set_particles("muons", {}),
            r"no column of particles.*momentum_x": lambda: run.set_particles("electrons", {"speed": position}),
            r"`?position_x`?.*would lie at 6.5.*0 to 6.4": lambda: run.set_particles("electrons", {"position_x": position * 0 + 6.5}),
            r"5 particles in place of 8192.*momentum_z": lambda: run.set_particles("electrons", {"position_x": position[:5]}),
            r"cannot be changed": lambda: run.set_particles("electrons", {"charge": position}),
            r"weigh the same": lambda: run.set_particles("electrons", {"weighting": position}),
            r"where the first column has 8192": lambda: run.set_particles(
                "electrons", {"momentum_x": position, "momentum_y": position[:3]}
            ),
        }
        for text, change in told.items():
            with self.assertRaisesRegex(zellige.InputError, "(?s)" + text):
                change()
        with self.assertRaisesRegex(zellige.InputError, "(?s)no field of this run.*none of this solver"):
            zellige.Run(gas(10), **HERE).set_field("temperature", np.zeros(20))
        self.assertTrue(np.array_equal(position, run.particles("electrons")["position_x"]))


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
        from zellige.run import _Rows

        rows, begun = _Rows(), time.perf_counter()
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


class Shown:
    """A stand-in for IPython in a notebook: what is displayed is kept."""

    kernel = True

    def __init__(self):
        self.told = []

    def display(self, shown, display_id=False):
        assert display_id
        self.update(shown)
        return self

    def update(self, shown):
        self.told.append((shown._repr_html_(), repr(shown)))

    def at_work(self):
        package, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
        package.get_ipython, package.display, display.display = lambda: self, display, self.display
        return unittest.mock.patch.dict(sys.modules, {"IPython": package, "IPython.display": display})


def steps_of(seconds):
    """Number of steps of a plasma that take about so long here."""
    run, n, spent = zellige.Run(plasma(10**7), **HERE), 4, 0.0
    while spent < 0.1:
        n, begun = 2 * n, time.monotonic()
        run.step(n)
        spent = time.monotonic() - begun
    return max(2, int(n * seconds / spent))


class Bars(Folder):
    def test_steps_that_take_long_have_a_bar_in_a_notebook_and_short_ones_none(self):
        run, shown = zellige.Run(plasma(10**7), **HERE), Shown()
        with shown.at_work():
            run.step(10)
            self.assertEqual(shown.told, [])
            run.step(steps_of(2.0))
        markup, text = shown.told[-2]
        self.assertRegex(markup, r'<progress max="1" value="0\.\d+" aria-label=')
        self.assertRegex(text, r"^\d+ %, step \d+, \d+ s")
        self.assertEqual(shown.told[-1][1].split(",")[0], f"step {run.clock.step}")
        self.assertIn('value="1.0000"', shown.told[-1][0])

    def test_a_bar_that_fails_ends_no_run(self):
        run, shown = zellige.Run(plasma(steps_of(2.0)), output=self.folder / "out", **HERE), Shown()
        shown.display = lambda *_, **__: 1 / 0
        complaints = []
        with shown.at_work(), unittest.mock.patch("sys.unraisablehook", lambda c: complaints.append(c.exc_type)):
            run.to_end()
        self.assertEqual(run.outcome.ending, "finished")
        self.assertEqual(set(complaints), {ZeroDivisionError})

    def test_without_a_notebook_nothing_is_written(self):
        code = "import sys, zellige; zellige.Run(%r, device='cpu', threads=1).step(%d); assert 'IPython' not in sys.modules"
        done = subprocess.run([sys.executable, "-c", code % (plasma(10**6), steps_of(1.5))], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


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

    def test_errors_survive_pickling(self):
        import pickle

        error = pickle.loads(pickle.dumps(zellige.OutOfMemoryError("too much", "ask for less", 4)))
        self.assertEqual((str(error), error.exit_code, error.hint), ("too much\n\nhint: ask for less", 4, "ask for less"))


class Interrupts(Folder):
    def start(self, script):
        # A process in the background of a shell ignores SIGINT.
        script = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n" + script
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)
        # One that heeds no signal fails the test in place of keeping it.
        watchdog = threading.Timer(120, process.kill)
        watchdog.start()
        self.addCleanup(watchdog.cancel)
        return process

    def test_ctrl_c_between_steps_leaves_a_run_that_goes_on(self):
        # Notebooks set Python's handler anew before each cell; SIGTERM ends the process afterwards as before.
        script = f"""
import os, time, zellige
run = zellige.Run({plasma(10**9)!r}, device="cpu", threads=1)
for _ in range(2):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print("ready", flush=True)
    try:
        run.step(10**9)
    except KeyboardInterrupt:
        step = run.clock.step
        print(step > 0, run.step(3), run.clock.step - step, flush=True)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
"""
        process = self.start(script)
        for _ in range(2):
            self.assertEqual(process.stdout.readline(), "ready\n")
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.stdout.readline(), "True 3 3\n")
        out, err = process.communicate(timeout=60)
        self.assertEqual((out, process.returncode), ("", -signal.SIGTERM), err)

    def test_ctrl_c_within_the_bar_is_no_other_than_elsewhere(self):
        def press(step, part, seconds):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)

        for work in (lambda session: session.step(10**4, press), lambda session: session.to_end(press)):
            run = zellige.Run(plasma(10**4), **HERE, output=self.folder / "pressed")
            with self.assertRaises(KeyboardInterrupt):
                work(run._session)
            step = run.clock.step
            self.assertEqual(run.step(1), 1)
            self.assertEqual(run.clock.step, step + 1)

    def test_ctrl_c_saves_a_run_to_its_end(self):
        script = f"""
import zellige
run = zellige.Run({plasma(10**9)!r}, device="cpu", threads=1, output="out")
print("ready", flush=True)
try:
    run.to_end()
except KeyboardInterrupt:
    print("saved", flush=True)
"""
        process = self.start(script)
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(out, "saved\n", err)
        self.assertTrue((self.folder / "out" / "checkpoint" / "latest.zck").exists())

    def test_ctrl_c_ends_a_solve_whose_plan_goes_on(self):
        # Notebooks set Python's handler anew before each cell; SIGTERM ends the process afterwards as before. A plan at work can be
        # looked at meanwhile.
        script = """
import os, signal, threading, time
import numpy as np, zellige
make = lambda: zellige.poisson.Plan((257, 257), tol=1e-14, method="gauss_seidel", max_cycles=60000, device="cpu", threads=2)
plan, rho, sent, late = make(), np.ones((257, 257)), [], []
def interrupt():
    repr(plan)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
for _ in range(2):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.3, interrupt).start()
    try:
        plan.solve(rho)
    except KeyboardInterrupt:
        late.append(time.monotonic() - sent[-1])
begun = time.monotonic()
u = plan.solve(rho).u
whole = time.monotonic() - begun
print(len(late), max(late, default=whole) < 0.7 * whole, np.array_equal(u, make().solve(rho).u), flush=True)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
"""
        process = self.start(script)
        out, err = process.communicate(timeout=120)
        self.assertEqual((out, process.returncode), ("2 True True\n", -signal.SIGTERM), err)


class Command(Folder):
    def test_exit_codes_and_streams(self):
        self.assertEqual(command("--version").stdout.split()[0], "zellige")
        wrong = command("no-such-command")
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("no-such-command", wrong.stderr)
        schema = command("schema", "poisson")
        self.assertEqual(json.loads(schema.stdout)["type"], "object")

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


class Results(Folder):
    def test_plots_and_missing_names(self):
        run = zellige.Run(EXAMPLES / "poisson" / "neumann.toml", output=self.folder, **HERE, **{"poisson.grid.nodes": [33, 33], "output.formats": ["npy"]})
        results = run.to_end()
        with self.assertRaisesRegex(KeyError, "no field `E`.*solution"):
            results.fields["E"]
        with self.assertRaisesRegex(FileNotFoundError, "holds no results"):
            zellige.load(self.folder / "nowhere")
        try:
            import matplotlib
        except ImportError:
            with self.assertRaisesRegex(ImportError, "matplotlib"):
                results.plot()
            return
        matplotlib.use("Agg")
        panels = results.plot("solution").axes
        self.assertTrue(np.array_equal(panels[0].images[0].get_array(), results.fields["solution"].values))
        axes = run.plot("solution").axes[0].images[0].get_extent()
        x = run.fields["solution"].axes[-1]
        self.assertAlmostEqual(axes[0], x.origin - x.spacing / 2)


    def test_all_formats_that_are_read_have_axes_and_units(self):
        read = {}
        for formats in ("npy", "hdf5"):
            if formats != "npy" and not importlib.util.find_spec("h5py"):
                continue
            for name, tables in {"plasma": plasma(20), "gas": gas(60)}.items():
                run = zellige.Run({**tables, "output": {"folder": str(self.folder / name / formats), "formats": [formats]}}, **HERE)
                key = "E_x" if name == "plasma" else "temperature"
                field, there = run.to_end().fields[key], run.fields[key]
                self.assertEqual((field.units, field.title, field.shape), (there.units, there.title, there.shape), (formats, name))
                self.assertEqual([(a.name, a.unit, a.size) for a in field.axes], [(a.name, a.unit, a.size) for a in there.axes], (formats, name))
                for axis, expected in zip(field.axes, there.axes):
                    np.testing.assert_allclose([axis.origin, axis.spacing], [expected.origin, expected.spacing], rtol=1e-12)
                read.setdefault(name, []).append(np.asarray(field))
        for name, values in read.items():
            for other in values[1:]:
                np.testing.assert_array_equal(values[0], other, name)

    def test_fields_count_as_arrays_do(self):
        results = zellige.Run({**plasma(4), "output": {"folder": str(self.folder), "formats": ["npy"]}}, **HERE).to_end()
        field, values = results.fields["E_x"], np.array(results.fields["E_x"])
        for ours, expected in [(2 * field + field, 3 * values), (-field, -values), (field[0], values[0]), (field == field, values == values)]:
            self.assertIs(type(ours), np.ndarray)
            np.testing.assert_array_equal(ours, expected)
        self.assertEqual((len(field), field.max(), field.shape, field.dtype), (len(values), values.max(), values.shape, values.dtype))
        self.assertEqual(len(list(field)), len(values))
        self.assertEqual(pickle.loads(pickle.dumps(field)).axes, field.axes)
        field += 1
        self.assertIsInstance(field, type(results.fields["E_x"]))
        np.testing.assert_array_equal(np.add(field, 1, out=field, where=field == field), values + 1 + 1)
        (self.folder / "mine.csv").write_text("name,when\nAnna,2\n")
        with self.assertRaisesRegex(ValueError, "mine.csv` is no table of numbers"):
            results.curves["mine"]

    def test_what_is_not_read_is_named(self):
        results = zellige.Run({**plasma(4), "output": {"folder": str(self.folder / "queue" / "vti"), "formats": ["vti"]}}, **HERE).to_end()
        with self.assertRaisesRegex(ValueError, "in VTI, which is not read here"):
            results.plot()
        with self.assertRaisesRegex(FileNotFoundError, "its folders do: vti"):
            zellige.load(self.folder / "queue")

    def test_columns_of_errors_and_series(self):
        (self.folder / "resolved.toml").write_text("")
        (self.folder / "density.csv").write_text("x [m],density [1/m^3],density [1/m^3] error\n1,2,0.5\n")
        (self.folder / "density_000040.csv").write_text("x [m],density [1/m^3]\n1,2\n")
        curves = zellige.load(self.folder).curves
        self.assertEqual(list(curves), ["density"])
        self.assertEqual({name: list(values) for name, values in curves["density"].items()}, {"x": [1], "density": [2], "density error": [0.5]})

    def test_hdf5_has_the_axes_and_units_of_the_run(self):
        for name, run in [
            ("gas", zellige.Run(gas(60), output=self.folder / "gas", **HERE)),
            ("plasma", zellige.Run(plasma(20), output={"folder": self.folder / "plasma", "formats": ["hdf5"]}, **HERE)),
        ]:
            results = run.to_end()
            try:
                import h5py
            except ImportError:
                with self.assertRaisesRegex(ImportError, "need h5py\n\nhint: "):
                    results.fields["rho"]
                continue
            self.assertLess(2, len(results.fields), h5py.__version__)
            for key, field in results.fields.items():
                there = run.fields[key]
                self.assertTrue(np.array_equal(field.values, there), key)
                for read, kept in zip(field.axes, there.axes, strict=True):
                    self.assertEqual((read.name, read.size), (kept.name, kept.size))
                    self.assertTrue(np.allclose([read.origin, read.spacing], [kept.origin, kept.spacing], rtol=1e-12, atol=0), key)
                if name == "gas":
                    self.assertEqual(field.units, there.units)


class Package(unittest.TestCase):
    def test_stubs_name_what_the_module_has(self):
        import ast

        import zellige._zellige as module

        stub = Path(zellige.__file__).with_name("_zellige.pyi")
        tree = ast.parse(stub.read_text())
        classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        public = {name for name in vars(module) if not name.startswith("_")}
        self.assertEqual(set(classes) | functions, public)
        for name, node in classes.items():
            told = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            # What comes with a definition of another name.
            told |= {"__getattribute__"} if "__getattr__" in told else set()
            beside = ("__doc__", "__module__", "__new__", "__hash__", "__delitem__")
            there = {k for k in vars(getattr(module, name)) if k not in beside}
            self.assertEqual(told - {"__init__", "__getattr__"}, there, name)

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
