"""Assignment to fields and particles of runs on a GPU, and callbacks between their steps. Skipped aloud where there is no GPU."""

import importlib.util
import unittest

import numpy as np
import test_run

import zellige
from test_gpu import GPU, OnGpu, device_memory
from test_run import plasma


@unittest.skipUnless(GPU, "a GPU is needed")
class AssigningOnGpu(test_run.Folder):
    def run_of(self, steps=5):
        run = zellige.Run(plasma(10**6), device="cuda")
        run.step(steps)
        return run

    def test_a_field_that_is_assigned_reaches_the_run(self):
        run, host = self.run_of(), self.run_of()
        # From there, and from the host.
        twice = 2 * device_memory(run.field_on_gpu("Ex"))
        run.fields["Ex"] = OnGpu(twice)
        host.fields["Ex"] *= 2
        self.assertEqual(np.asarray(run.fields["E_x"]).tobytes(), twice.tobytes())
        run.fields["By"] = run.field_on_gpu("Ex")
        host.fields["By"] = host.fields["Ex"]
        self.assertEqual(device_memory(run.field_on_gpu("By")).tobytes(), twice.tobytes())
        run.fields["Bz"] += 0.25
        host.fields["Bz"] = np.full((8, 64), 0.25)
        for it in (run, host):
            it.step(10)
        for name in ("E_x", "E_y", "B_y", "B_z"):
            self.assertTrue(np.array_equal(run.fields[name], host.fields[name]), name)

    def test_a_column_that_is_assigned_reaches_the_run(self):
        run = self.run_of()
        there = run.particles_on_gpu("electrons")
        twice = 2 * device_memory(there["momentum_x"])
        there["ux"] = OnGpu(twice)
        self.assertEqual(device_memory(there["ux"]).tobytes(), twice.tobytes())
        self.assertTrue(np.array_equal(run.particles("electrons")["ux"], twice))
        there.update(uy=OnGpu(twice), uz=there["ux"])
        here = run.particles("electrons")
        for name in ("uy", "uz"):
            self.assertTrue(np.array_equal(here[name], twice), name)
        here["ux"] *= 0.5
        self.assertTrue(np.array_equal(device_memory(run.particles_on_gpu("electrons")["ux"]), here["ux"]))
        with self.assertRaisesRegex(ValueError, "(?s)others by now.*particles_on_gpu"):
            there["ux"] = OnGpu(twice)

    def test_arrays_of_the_host_alone_are_read_only(self):
        run = self.run_of()
        with self.assertRaisesRegex(ValueError, "cannot be written in place"):
            run.fields["Ex"][0] = 1
        with self.assertRaisesRegex(ValueError, "cannot be written in place"):
            run.particles("electrons")["ux"][0] = 1
        self.assertFalse(run.field_on_gpu("Ex").__cuda_array_interface__["data"][1])

    def test_callbacks_change_the_run_as_a_loop_does(self):
        tables = {**plasma(40), "output": {"formats": ["npy"]}}
        runs = [zellige.Run(tables, device="cuda", output=self.folder / name) for name in ("steps", "end", "loop")]

        def kick(run):
            electrons = run.particles_on_gpu("electrons")
            electrons["ux"] = OnGpu(device_memory(electrons["ux"]) + np.float32(1e-3))
            run.fields["Bz"] = OnGpu(device_memory(run.field_on_gpu("Bz")) + np.float32(1e-3))

        runs[0].step(40, callback=kick, every=10)
        runs[1].to_end(callback=kick, every=10)
        for _ in range(4):
            runs[2].step(10)
            kick(runs[2])
        for name in ("E_x", "E_y", "B_z"):
            for run in runs[:2]:
                self.assertTrue(np.array_equal(run.fields[name], runs[2].fields[name]), name)
        self.assertGreater(float(abs(runs[2].fields["B_z"]).max()), 3e-3)
        self.assertEqual(runs[1].summary["changed_after"], [10, 20, 30, 40])

    @unittest.skipUnless(importlib.util.find_spec("cupy"), "CuPy is needed")
    def test_arrays_of_cupy(self):
        import cupy

        run = self.run_of()
        wanted = 0.5 * np.asarray(run.fields["Ex"])
        ex = cupy.asarray(run.field_on_gpu("Ex"))
        ex *= 0.5
        run.fields["Ex"] = ex
        self.assertTrue(np.array_equal(run.fields["Ex"], wanted))
        beam = run.particles_on_gpu("electrons")
        # Momenta are given as doubles, and held in the precision of the run.
        kicked = (np.asarray(run.particles("electrons")["ux"]) + 0.125).astype("f4")
        beam["ux"] = cupy.asarray(beam["ux"]) + 0.125
        self.assertTrue(np.array_equal(run.particles("electrons")["ux"], kicked))

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is needed")
    def test_tensors(self):
        import torch

        run = self.run_of()
        wanted = 0.5 * np.asarray(run.fields["Ex"])
        run.fields["Ex"] = 0.5 * torch.from_dlpack(run.field_on_gpu("Ex"))
        self.assertTrue(np.array_equal(run.fields["Ex"], wanted))
        run.fields["Ex"] = torch.from_dlpack(run.fields["Ex"]).clone().mul_(2)
        self.assertTrue(np.array_equal(run.fields["Ex"], 2 * wanted))


if __name__ == "__main__":
    unittest.main()
