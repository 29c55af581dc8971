"""Fields and particles that are set between steps."""

import math
import unittest
import warnings

import numpy as np
import zellige
from test_run import HERE, Folder, gas, plasma


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

    def test_a_plasma_that_broke_down_makes_no_further_step(self):
        run = zellige.Run(plasma(100), **HERE, output=self.folder / "out")
        run.set_field("Ex", np.full((8, 64), 1e30))
        with self.assertRaisesRegex(zellige.NumericsError, "it is (NaN|inf): ") as first:
            run.step(100)
        told = str(first.exception)
        at = run.clock.step
        # Energies would tell it in some of the steps only.
        for _ in range(6):
            with self.assertRaises(zellige.NumericsError) as caught:
                run.step()
            self.assertEqual((str(caught.exception), run.clock.step), (told, at))
        with self.assertRaisesRegex(zellige.NumericsError, "electrons"):
            run.particles("electrons")
        with self.assertRaises(zellige.NumericsError):
            run.to_end()
        self.assertEqual(run.clock.step, at)

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


if __name__ == "__main__":
    unittest.main()
