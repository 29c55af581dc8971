"""Runs with callbacks that are stopped, and go on."""

import os
import re
import signal
import threading
import time
import unittest
from pathlib import Path

import numpy as np
import zellige
from test_run import HERE, Folder, plasma

STEPS = 12
ALL = list(range(1, STEPS + 1))


def slow():
    """A plasma whose steps are long enough for a signal within one."""
    tables = {**plasma(STEPS), "output": {"formats": ["npy"]}}
    tables["pic"]["grid"] = {"cells": [192, 192], "size": [19.2, 19.2]}
    return tables


def press_within(run, called):
    """Presses Ctrl-C while the run works on a step after three callbacks or more."""

    def press():
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                run.clock
            except zellige.errors.BusyError:
                if len(called) > 2 and not run._calling:
                    return os.kill(os.getpid(), signal.SIGINT)
            time.sleep(2e-4)

    threading.Thread(target=press, daemon=True).start()


class Stops(Folder):
    def setUp(self):
        super().setUp()
        # What is started in the background of a shell ignores the signal.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)

    def kicked(self, called):
        """A callback that changes the run."""

        def kick(run):
            called.append(run.clock.step)
            run.fields["Bz"] += 0.01

        return kick

    def whole(self):
        run, called = zellige.Run(slow(), **HERE, output=self.folder / "whole"), []
        results = run.to_end(callback=self.kicked(called))
        self.assertEqual(called, ALL)
        return results.fields["B_z"]

    def test_ctrl_c_within_a_step_loses_no_callback(self):
        run, called = zellige.Run(slow(), **HERE), []
        kick = self.kicked(called)
        press_within(run, called)
        with self.assertRaises(KeyboardInterrupt):
            run.step(STEPS, callback=kick)
        made = run.clock.step
        self.assertEqual(called, ALL[: made - 1])
        # It is made before further steps, once.
        self.assertEqual(run.step(0, callback=kick), 0)
        self.assertEqual(called, ALL[:made])
        self.assertEqual(run.step(STEPS, callback=kick), STEPS - made)
        self.assertEqual(called, ALL)
        self.assertTrue(np.array_equal(run.fields["B_z"], self.whole()))

    def test_steps_without_a_callback_owe_none(self):
        run, called = zellige.Run(slow(), **HERE), []
        press_within(run, called)
        with self.assertRaises(KeyboardInterrupt):
            run.step(10**6, callback=lambda it: called.append(it.clock.step))
        made = run.clock.step
        run.step(0)
        run.step(0, callback=lambda it: called.append(it.clock.step))
        self.assertEqual(called, list(range(1, made)))

    def test_ctrl_c_on_the_way_to_the_end_saves_what_the_callback_changed(self):
        whole = self.whole()
        run, called, out = zellige.Run(slow(), **HERE, output=self.folder / "out"), [], self.folder / "out"
        press_within(run, called)
        with self.assertRaises(KeyboardInterrupt):
            run.to_end(callback=self.kicked(called))
        made = run.clock.step
        self.assertEqual(called, ALL[:made])
        self.assertEqual(len(np.genfromtxt(out / "rows.csv", delimiter=",", names=True)), made)
        resumed, after = zellige.Run(slow(), **HERE, resume=out, output=self.folder / "on"), []
        self.assertTrue(np.array_equal(resumed.to_end(callback=self.kicked(after)).fields["B_z"], whole))
        self.assertEqual(after, ALL[made:])
        # The checkpoint of a stop does not stay beside the results.
        self.assertTrue((out / "checkpoint" / "latest.zck").is_file())
        self.assertTrue(np.array_equal(run.to_end(callback=self.kicked(called)).fields["B_z"], whole))
        self.assertEqual(called, ALL)
        self.assertFalse((out / "checkpoint").exists())

    def test_ctrl_c_in_the_callback_saves_none(self):
        run = zellige.Run(slow(), **HERE, output=self.folder / "out")
        with self.assertRaises(KeyboardInterrupt):
            run.to_end(callback=lambda it: os.kill(os.getpid(), signal.SIGINT), every=2)
        self.assertEqual(run.clock.step, 2)
        self.assertFalse((self.folder / "out" / "checkpoint").exists())

    def test_a_checkpoint_that_was_asked_for_stays(self):
        run, called = zellige.Run(slow(), **HERE, output=self.folder / "out"), []
        press_within(run, called)
        with self.assertRaises(KeyboardInterrupt):
            run.to_end(callback=self.kicked(called))
        saved = run.save()
        run.to_end()
        self.assertTrue(saved.is_file())

    def test_the_limit_of_a_run_is_none_of_runs_in_its_callback(self):
        tables = {**plasma(40), "run": {"wall_time": "0.2 s"}}
        poisson = {"grid": {"nodes": [65, 65], "size": [1.0, 1.0]}, "rhs": 1.0}
        run, inner = zellige.Run(tables, **HERE, output=self.folder / "out"), []

        def solve(it):
            time.sleep(0.3)
            inner.append(zellige.Run({"poisson": poisson}, **HERE, output=self.folder / "inner").to_end().summary["outcome"]["ending"])
            other = zellige.Run({"poisson": {**poisson, "method": "multigrid", "coarse_levels": 1}}, **HERE)
            inner.append(other.step(1))

        with self.assertRaisesRegex(zellige.Interrupted, "the wall-time limit"):
            run.to_end(callback=solve, every=10)
        self.assertEqual((inner, run.clock.step), (["finished", 1], 10))
        self.assertTrue((self.folder / "out" / "checkpoint" / "latest.zck").is_file())

    def test_series_go_on_after_an_exception(self):
        tables = {**plasma(30), "output": {"formats": ["vti"]}}
        tables["pic"]["diagnostics"] = {"fields": [{"what": ["ex"], "every": "7 steps"}]}

        def once(it):
            if it.clock.step == 20 and not raised:
                raised.append(20)
                raise ZeroDivisionError

        def files(folder):
            text = (folder / "E_x.pvd").read_text()
            return re.findall(r'file="([^"]*)"', text)

        lists = []
        for raised in ([20], []):
            # What an earlier run has left is none of this one's.
            out = self.folder / f"out{len(raised)}"
            zellige.Run({**tables, "pic": {**tables["pic"], "steps": 40}}, **HERE, output=out).to_end()
            run = zellige.Run(tables, **HERE, output=out)
            try:
                run.to_end(callback=once, every=10)
            except ZeroDivisionError:
                run.to_end(callback=once, every=10)
            lists.append(files(out))
        self.assertEqual(*lists)
        self.assertEqual([Path(name).name for name in lists[1]][:3], ["E_x_000000.vti", "E_x_000007.vti", "E_x_000014.vti"])
        self.assertEqual(len(lists[1]), 6)

    def test_steps_by_hand_write_nothing_after_an_exception(self):
        tables = {**plasma(40), "run": {"checkpoint_every": "3 steps"}, "output": {"formats": ["npy"]}}
        run, checkpoint = zellige.Run(tables, **HERE, output=self.folder / "out"), self.folder / "out" / "checkpoint" / "latest.zck"
        with self.assertRaises(ZeroDivisionError):
            run.to_end(callback=lambda it: 1 / 0, every=10)
        checkpoint.unlink()
        run.step(9)
        self.assertFalse(checkpoint.exists())
        run.to_end()
        self.assertTrue(checkpoint.exists())


if __name__ == "__main__":
    unittest.main()
