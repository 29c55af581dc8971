"""Particles and averages of runs in the memory of a GPU: as they are on the host, to the bit, and set from there. Skipped aloud where
there is no GPU; libraries of arrays where they are not installed."""

import ctypes
import gc
import importlib.util
import unittest

import numpy as np
import test_gpu
import test_run

import zellige
from test_gpu import Driver, OnGpu, device_memory
from test_run import plasma


def flow(steps=120, **changes):
    """A hot mixture past a body, whose averages are of five batches."""
    species = [{"name": "N2", "fraction": 0.7}, {"name": "Ar", "fraction": 0.3}]
    table = {"dt": 2e-7, "steps": steps, "particles_per_cell": 12, "species": species, "sampling": {"start": 20, "batches": 5}}
    table.update(grid={"cells": [40, 24], "size": [0.04, 0.024]}, boundary={"all": "stream"})
    table.update(gas={"density": 3e21, "temperature": 1400.0, "velocity": [400.0, 0.0, 0.0]})
    outline = {"shape": "circle", "centre": [0.015, 0.012], "radius": 0.005, "segments": 24}
    table["bodies"] = [{"name": "cylinder", "outline": outline, "wall": {"temperature": 500.0}}]
    table.update(changes)
    return {"dsmc": {key: value for key, value in table.items() if value is not None}}


def still(**changes):
    """A gas of one kind in a box of few cells."""
    walls = {"all": {"wall": {"temperature": 300.0}}}
    box = {"species": [{"name": "Ar"}], "grid": {"cells": [16, 16], "size": [0.016, 0.016]}, "boundary": walls, "bodies": None}
    return flow(**{**box, **changes})


@unittest.skipUnless(test_gpu.GPU, "a GPU is needed")
class GasOnGpu(test_run.Folder):
    def test_averages_have_the_bits_of_the_host(self):
        inputs = {
            "mixture": flow(),
            "weights": flow(cell_weights="1+floor(200*y)"),
            "modes": flow(species=[{"name": "CO2", "fraction": 0.6}, {"name": "N2", "fraction": 0.4}]),
            "along z": still(gas={"density": 3e21, "temperature": 300.0, "velocity": [0.0, 0.0, 50.0]}),
            "line": flow(grid={"cells": [50], "size": [0.05]}, bodies=None, boundary={"all": "stream"}),
        }
        for label, tables in inputs.items():
            run = zellige.Run(tables, device="cuda")
            run.step(90)
            seen = 0
            for name, here in run.fields.items():
                if name.partition("_error")[0].startswith(("mach", "knudsen")):
                    with self.assertRaisesRegex(zellige.InputError, "density, .*density_error, "):
                        run.field_on_gpu(name)
                    continue
                there = run.field_on_gpu(name)
                self.assertEqual((there.shape, there.dtype, there.units, there.axes, there.title),
                                 (here.shape, here.dtype, here.units, here.axes, here.title), name)
                found, wanted = device_memory(there), np.asarray(here)
                # Powers, logarithms and exponentials of a GPU are its own.
                if name == "free_path" or label == "modes" and name.startswith("temperature"):
                    np.testing.assert_allclose(found, wanted, rtol=1e-11, err_msg=f"{name} of {label}")
                else:
                    self.assertEqual(found.tobytes(), wanted.tobytes(), f"{name} of {label}")
                seen += bool(np.isfinite(wanted).any())
            self.assertGreater(seen, 15, label)

    def test_averages_outlive_their_run_and_change_no_bit(self):
        alone, seen = (zellige.Run(flow(), device="cuda") for _ in range(2))
        alone.step(120)
        for _ in range(4):
            seen.step(30)
            if seen.rows["samples"][-1] > 20:
                density = seen.field_on_gpu("density")
            seen.particles_on_gpu("Ar")
        for name in alone.fields:
            self.assertEqual(np.asarray(alone.fields[name]).tobytes(), np.asarray(seen.fields[name]).tobytes(), name)
        wanted = np.asarray(seen.fields["density"]).copy()
        del seen
        gc.collect()
        self.assertEqual(device_memory(density).tobytes(), wanted.tobytes())

    def test_particles_have_the_bits_of_the_host(self):
        crowded = still(grid={"cells": [2, 2], "size": [0.002, 0.002]}, particles_per_cell=12000)
        for tables in (flow(), flow(cell_weights="1+floor(200*y)"), still(), crowded):
            run = zellige.Run(tables, device="cuda")
            names = [species["name"] for species in tables["dsmc"]["species"]]
            for steps in (0, 1, 30):
                run.step(steps)
                for name in names:
                    here, there = run.particles(name), run.particles_on_gpu(name)
                    self.assertEqual(list(here), list(there))
                    for column in here:
                        self.assertEqual((there[column].dtype, there[column].units), (here[column].dtype, here[column].units))
                        self.assertEqual(device_memory(there[column]).tobytes(), np.asarray(here[column]).tobytes(), column)
        with self.assertRaisesRegex(KeyError, "no particles `He`"):
            run.particles_on_gpu("He")

    def test_velocities_that_are_set_there_are_as_if_they_were_set_from_the_host(self):
        for tables in (flow(), still(), flow(cell_weights="1+floor(200*y)")):
            name = tables["dsmc"]["species"][-1]["name"]
            runs = [zellige.Run(tables, device="cuda") for _ in range(2)]
            for kind, factor in (("f8", 1.0), ("f8", 0.7), ("f4", 3.0)):
                for run in runs:
                    run.step(25)
                old = runs[0].particles(name)
                values = {axis: (factor * np.asarray(old[axis])).astype(kind) for axis in ("velocity_x", "velocity_z")}
                runs[0].set_particles(name, values)
                there = {axis: OnGpu(column) for axis, column in values.items()}
                # Positions as they are may be among them.
                runs[1].set_particles(name, {**there, "position_y": runs[1].particles_on_gpu(name)["position_y"]})
                here, there = (run.particles(name) for run in runs)
                for column in here:
                    self.assertTrue(np.array_equal(here[column], there[column]), column)
            for run in runs:
                run.step(30)
            for field in runs[0].fields:
                self.assertEqual(np.asarray(runs[0].fields[field]).tobytes(), np.asarray(runs[1].fields[field]).tobytes(), field)
            self.assertEqual(list(runs[0].rows["energy"]), list(runs[1].rows["energy"]))

    def test_what_cannot_be_had_or_set_is_told(self):
        run = zellige.Run(still(), device="cuda")
        with self.assertRaisesRegex(zellige.InputError, "(?s)no batch of samples is full.*make more steps"):
            run.field_on_gpu("density")
        run.step(40)
        with self.assertRaisesRegex(zellige.InputError, "allowed: density, velocity_x"):
            run.field_on_gpu("vorticity")
        before = {name: np.asarray(column).copy() for name, column in run.particles("Ar").items()}
        v = before["velocity_x"]
        broken = np.where(np.arange(len(v)) == 5, np.inf, v)
        told = {
            "value 5 is inf": {"velocity_x": broken, "velocity_y": v},
            r"value 2 is -3000001 \(allowed: -3e6 to 3e6 m/s\)": {"velocity_x": np.where(np.arange(len(v)) == 2, -3000001.0, v)},
            "stay where they are": {"position_x": before["position_x"] + 1e-6},
            "3 values for": {"velocity_x": v[:3]},
            "(?s)no column of particles.*velocity_x": {"speed": v},
            "no real numbers": {"velocity_x": np.arange(len(v), dtype="u8")},
        }
        for text, columns in told.items():
            with self.assertRaisesRegex(zellige.InputError, text):
                run.set_particles("Ar", {name: OnGpu(values) for name, values in columns.items()})
        with self.assertRaisesRegex(zellige.InputError, "no species of this run"):
            run.set_particles("Xe", {"velocity_x": OnGpu(v)})
        for name, column in run.particles("Ar").items():
            self.assertTrue(np.array_equal(before[name], column), name)


@unittest.skipUnless(test_gpu.GPU, "a GPU is needed")
class PlasmaFromGpu(test_run.Folder):
    def test_momenta_that_are_set_there_are_as_if_they_were_set_from_the_host(self):
        heavy = {"weighting": "variable", "density": "1+0.5*cos(2*pi*x/lx)"}
        for precision, changes in (("f32", {}), ("f64", {}), ("f32", heavy)):
            tables = plasma(10**6)
            tables["pic"]["precision"] = precision
            tables["pic"]["species"][0].update(changes)
            runs = [zellige.Run(tables, device="cuda") for _ in range(2)]
            for kind, kick in (("f8", 0.0), ("f8", 1e-3), ("f4", 2e-3)):
                for run in runs:
                    run.step(10)
                both = [run.particles("electrons") for run in runs]
                # Each in the order of its run.
                values = [{name: (np.asarray(p[name]) + kick * np.cos(np.asarray(p["position_x"]))).astype(kind if kick else "f8")
                           for name in ("momentum_x", "momentum_z")} for p in both]
                runs[0].set_particles("electrons", values[0])
                there = runs[1].particles_on_gpu("electrons")
                kept = {name: there[name] for name in ("position_x", "position_y", "weighting", "charge", "mass")}
                runs[1].set_particles("electrons", {**kept, **{name: OnGpu(v) for name, v in values[1].items()}})
                now = runs[1].particles("electrons")
                for name in both[1]:
                    wanted = np.asarray(both[1][name])
                    if name in values[1]:
                        wanted = values[1][name] if precision == "f64" else values[1][name].astype("f4")
                    self.assertTrue(np.array_equal(wanted, np.asarray(now[name])), f"{name} {precision} {kind}")
            for run in runs:
                run.step(20)
            for name in runs[0].fields:
                self.assertTrue(np.array_equal(runs[0].fields[name], runs[1].fields[name]), f"{name} {precision} {changes}")

    def test_what_cannot_be_set_is_told(self):
        run = zellige.Run(plasma(10**6), device="cuda")
        run.step(5)
        before = {name: np.asarray(column).copy() for name, column in run.particles("electrons").items()}
        u = before["momentum_x"]
        told = {
            "value 7 is NaN": {"momentum_x": np.where(np.arange(len(u)) == 7, np.nan, u)},
            "value 0 is another one than particle 0 has": {"position_x": before["position_x"] + 1e-3, "momentum_x": u},
            "value 3 is another one than particle 3 has": {"weighting": np.where(np.arange(len(u)) == 3, 2.0, before["weighting"])},
            "4 values for 8192 particles": {"momentum_x": u[:4]},
            "(?s)no column of particles.*momentum_x": {"speed": u},
        }
        for text, columns in told.items():
            with self.assertRaisesRegex(zellige.InputError, text):
                run.set_particles("electrons", {name: OnGpu(values) for name, values in columns.items()})
        for name, column in run.particles("electrons").items():
            self.assertTrue(np.array_equal(before[name], column), name)

    def test_arrays_that_are_none_of_the_run_are_told(self):
        run = zellige.Run(plasma(10**6), device="cuda")
        n = len(run.particles("electrons")["mass"])
        own = OnGpu(np.zeros(n))
        with self.assertRaisesRegex(TypeError, "(?s)`momentum_x` is in the memory of a GPU, `momentum_y` in that of the host.*asnumpy"):
            run.set_particles("electrons", {"momentum_y": np.zeros(n), "momentum_x": own})
        with self.assertRaisesRegex(TypeError, "(?s)allowed: float32, float64.*astype"):
            run.set_particles("electrons", {"momentum_x": OnGpu(np.zeros(n, "i4"))})
        with self.assertRaisesRegex(ValueError, "`momentum_x` has 2 axes"):
            run.set_particles("electrons", {"momentum_x": OnGpu(np.zeros((n, 1)))})
        with self.assertRaisesRegex(TypeError, "in C order are needed"):
            strided = OnGpu(np.zeros(2 * n))
            strided.__cuda_array_interface__.update(shape=(n,), strides=(16,))
            run.set_particles("electrons", {"momentum_x": strided})
        with self.assertRaisesRegex(TypeError, "(?s)the run computes on the CPU.*hint"):
            zellige.Run(plasma(10**6), device="cpu").set_particles("electrons", {"momentum_x": own})
        # Memory that is not there any more, and none.
        freed = OnGpu(np.zeros(1 << 23))
        freed.__cuda_array_interface__["shape"] = (n,)
        Driver().call("cuMemFree_v2", freed._at)
        nothing = OnGpu(np.zeros(n))
        nothing.__cuda_array_interface__["data"] = (0, False)
        for lost in (freed, nothing):
            with self.assertRaisesRegex(zellige.DeviceError, "(?s)the memory of no GPU.*its memory was freed"):
                run.set_particles("electrons", {"momentum_x": lost})
            with self.assertRaisesRegex(zellige.DeviceError, "the memory of no GPU"):
                lost.__cuda_array_interface__["shape"] = (8, 64)
                run.set_field("Ex", lost)
                lost.__cuda_array_interface__["shape"] = (n,)
        freed._at = ctypes.c_uint64()

    def test_arrays_of_another_gpu_are_told(self):
        try:
            other = OnGpu(np.zeros(8192), device=1)
        except RuntimeError:
            self.skipTest("two GPUs are needed")
        run = zellige.Run(plasma(10**6), device="cuda:0")
        with self.assertRaisesRegex(zellige.DeviceError, "(?s)the memory of cuda:1.*copy it to this GPU first"):
            run.set_particles("electrons", {"momentum_x": other})


@unittest.skipUnless(test_gpu.GPU and importlib.util.find_spec("jax"), "JAX and a GPU are needed")
class JaxArrays(test_run.Folder):
    """Arrays go to JAX by DLPack and come back as they are."""

    def test_fields_and_particles_go_to_jax_and_back(self):
        import jax

        jax.config.update("jax_enable_x64", True)
        try:
            jax.devices("gpu")
        except RuntimeError:
            self.skipTest("this JAX has no GPU")
        run = zellige.Run(plasma(10**6), device="cuda")
        run.step(5)
        array = run.field_on_gpu("Ex")
        ex = jax.dlpack.from_dlpack(array)
        self.assertEqual(ex.unsafe_buffer_pointer(), array.__cuda_array_interface__["data"][0])
        np.testing.assert_array_equal(np.asarray(ex), np.asarray(run.fields["Ex"]))
        run.set_field("Ex", 0.5 * ex)
        np.testing.assert_array_equal(np.asarray(run.fields["Ex"]), 0.5 * np.asarray(ex))
        momentum = jax.dlpack.from_dlpack(run.particles_on_gpu("electrons")["momentum_x"])
        run.set_particles("electrons", {"momentum_x": 2.0 * momentum})
        np.testing.assert_array_equal(np.asarray(run.particles("electrons")["momentum_x"]), 2.0 * np.asarray(momentum))
        gas = zellige.Run(still(), device="cuda")
        gas.step(90)
        density = jax.dlpack.from_dlpack(gas.field_on_gpu("density"))
        np.testing.assert_array_equal(np.asarray(density), np.asarray(gas.fields["density"]))


@unittest.skipUnless(test_gpu.GPU and importlib.util.find_spec("cupy"), "CuPy and a GPU are needed")
class CuPyArrays(test_run.Folder):
    def test_particles_are_set_once_their_stream_has_made_them(self):
        import cupy

        spin = cupy.RawKernel("extern \"C\" __global__ void spin(long long n) { for (long long t = clock64(); clock64() - t < n;); }", "spin")
        runs = ((zellige.Run(plasma(10**6), device="cuda"), "electrons", "momentum_y"), (zellige.Run(still(), device="cuda"), "Ar", "velocity_y"))
        for run, name, column in runs:
            run.step(3)
            values = cupy.asarray(run.particles_on_gpu(name)[column])
            run.set_particles(name, {column: values})
            spin((1,), (1,), (0,))
            with cupy.cuda.Stream(non_blocking=True):
                spin((1,), (1,), (200_000_000,))
                twice = 2.0 * values
                run.set_particles(name, {column: twice})
            np.testing.assert_array_equal(np.asarray(run.particles(name)[column]), twice.get())


class OnTheHost(test_run.Folder):
    """What is told where no GPU is needed to tell it."""

    class Pretender:
        __cuda_array_interface__ = {"version": 3, "shape": (4,), "typestr": "<f8", "data": (4096, False), "stream": None}

    def test_arrays_of_a_gpu_do_not_fit_a_run_on_the_cpu(self):
        for tables, name, column in ((plasma(10**6), "electrons", "momentum_x"), (test_run.gas(100), "Ar", "velocity_x")):
            run = zellige.Run(tables, device="cpu")
            with self.assertRaisesRegex(TypeError, "(?s)in the memory of a GPU, and the run computes on the CPU.*asnumpy"):
                run.set_particles(name, {column: self.Pretender()})
            with self.assertRaisesRegex(TypeError, "(?s)in the memory of a GPU, `position_x` in that of the host"):
                run.set_particles(name, {"position_x": np.zeros(4), column: self.Pretender()})
            with self.assertRaisesRegex(zellige.DeviceError, "(?s)the run computes on the CPU.*device=\"cuda\""):
                run.particles_on_gpu(name)
        with self.assertRaisesRegex(zellige.DeviceError, "the run computes on the CPU"):
            run.field_on_gpu("density")

    @unittest.skipUnless(importlib.util.find_spec("jax"), "JAX is needed")
    def test_arrays_of_jax_on_the_host_go_in_and_come_out(self):
        import jax

        jax.config.update("jax_enable_x64", True)
        cpu = jax.devices("cpu")[0]
        run = zellige.Run(plasma(10**6), device="cpu")
        run.step(3)
        ex = jax.device_put(jax.dlpack.from_dlpack(run.fields["Ex"]), cpu)
        np.testing.assert_array_equal(np.asarray(ex), np.asarray(run.fields["Ex"]))
        run.set_field("Ex", 0.5 * ex)
        np.testing.assert_array_equal(np.asarray(run.fields["Ex"]), 0.5 * np.asarray(ex))
        momentum = jax.device_put(jax.dlpack.from_dlpack(run.particles("electrons")["momentum_x"]), cpu)
        run.set_particles("electrons", {"momentum_x": 2.0 * momentum})
        np.testing.assert_array_equal(np.asarray(run.particles("electrons")["momentum_x"]), 2.0 * np.asarray(momentum))
        u = zellige.poisson.solve(jax.device_put(np.ones((33, 33)), cpu), spacing=1 / 32, boundary="dirichlet").u
        self.assertIsInstance(u, jax.Array)
        expected = zellige.poisson.solve(np.ones((33, 33)), spacing=1 / 32, boundary="dirichlet").u
        np.testing.assert_array_equal(np.asarray(u), np.asarray(expected))


if __name__ == "__main__":
    unittest.main()
