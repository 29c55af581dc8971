"""Progress bars, and Ctrl-C in long calls."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import types
import unittest
import unittest.mock

import zellige
from test_run import HERE, Folder, plasma


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

    def test_steps_beyond_the_end_count_to_the_end(self):
        run, shown = zellige.Run(plasma(steps_of(2.0)), output=self.folder / "out", **HERE), Shown()
        with shown.at_work():
            run.step(2**31)
        parts = [float(re.search(r'value="([0-9.]+)"', markup)[1]) for markup, _ in shown.told]
        self.assertTrue(0.5 < parts[-1] <= 1 and parts == sorted(parts), parts)

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
        # What is started in the background of a shell ignores the signal.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)

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


if __name__ == "__main__":
    unittest.main()
