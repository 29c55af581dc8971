"""Arrays in the memory of a GPU: CuPy, PyTorch and JAX in, the same out, no copy. Skipped aloud where there is no GPU, and each library
where it is not installed."""

import ctypes
import gc
import importlib.util
import os
import signal
import sys
import tempfile
import threading
import time
import unittest

import numpy as np
import test_ptycho
import test_run

import zellige
from test_live import Client, get
from test_run import plasma
from zellige import poisson

SHAPE = (257, 193)
HERE = {"spacing": (1 / 192, 1 / 256), "boundary": "dirichlet", "tol": 1e-9}


def gpu():
    try:
        poisson.Plan((33, 33), device="cuda")
        return True
    except zellige.DeviceError:
        return False


GPU = gpu()
if not GPU:
    print("test_gpu is skipped: there is no GPU here", file=sys.stderr)


def rho():
    return np.random.default_rng(5).standard_normal(SHAPE)


class Shared:
    """Tests of one library, whose arrays `self.array` makes of NumPy's."""

    def test_a_solution_is_of_the_library_and_where_the_array_is(self):
        given = self.array(rho())
        result = poisson.solve(given, **HERE)
        self.assertIs(type(result.u), type(given))
        self.assertTrue(result.converged)
        self.assertEqual(self.place(result.u), self.place(given))
        expected = poisson.solve(rho(), device="cuda", **HERE)
        np.testing.assert_allclose(self.host(result.u), np.asarray(expected.u), rtol=0, atol=1e-9 * np.abs(np.asarray(expected.u)).max())

    def test_the_memory_is_shared(self):
        plan = poisson.Plan(SHAPE, device="cuda", **HERE)
        u, _, _ = plan._plan.solve(self.array(rho()), None)
        address = u.__cuda_array_interface__["data"][0]
        self.assertEqual(self.address(self.taken(u)), address)
        self.assertEqual(u.__dlpack_device__(), (2, 0))
        with self.assertRaisesRegex(AttributeError, "memory of a GPU"):
            u.__array_interface__

    def test_what_is_given_is_read_where_it_lies(self):
        """What the caller writes into its array counts in the next solve, and the array is as it was after it."""
        plan = poisson.Plan(SHAPE, device="cuda", **HERE)
        given = self.array(rho())
        first = self.host(plan.solve(given).u)
        self.double(given)
        second = self.host(plan.solve(given).u)
        np.testing.assert_allclose(second, 2 * first, rtol=0, atol=1e-8 * np.abs(first).max())
        np.testing.assert_array_equal(self.host(given), 2 * rho())

    def test_an_array_outlives_all_that_it_came_from(self):
        plan = poisson.Plan(SHAPE, device="cuda", **HERE)
        result = plan.solve(self.array(rho()))
        u, kept = result.u, self.host(result.u).copy()
        del plan, result
        gc.collect()
        others = [poisson.Plan(SHAPE, device="cuda", **HERE).solve(self.array(-rho())).u for _ in range(3)]
        np.testing.assert_array_equal(self.host(u), kept)
        del others


@unittest.skipUnless(GPU and importlib.util.find_spec("cupy"), "CuPy and a GPU are needed")
class CuPy(Shared, unittest.TestCase):
    @staticmethod
    def array(values):
        import cupy

        return cupy.asarray(values)

    @staticmethod
    def taken(u):
        import cupy

        return cupy.from_dlpack(u)

    @staticmethod
    def host(values):
        return values.get()

    @staticmethod
    def place(values):
        return int(values.device.id)

    @staticmethod
    def address(values):
        return values.data.ptr

    @staticmethod
    def double(values):
        values *= 2

    def test_work_on_a_stream_is_waited_for(self):
        import cupy

        plan = poisson.Plan((2049, 2049), device="cuda", tol=1e-6)
        expected = plan.solve(cupy.full((2049, 2049), 3.0)).u
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            given = cupy.zeros((2049, 2049))
            for _ in range(300):
                given += 0.01
            found = plan.solve(given).u
        np.testing.assert_allclose(found.get(), expected.get(), rtol=0, atol=1e-9 * float(abs(expected).max()))

    def test_other_arrays_are_refused_in_words(self):
        import cupy

        plan = poisson.Plan(SHAPE, device="cuda")
        for wrong in (cupy.zeros(SHAPE, "float32"), cupy.zeros(SHAPE[::-1]).T):
            with self.assertRaisesRegex(TypeError, "hint: `cupy.ascontiguousarray"):
                plan.solve(wrong)
        with self.assertRaisesRegex(ValueError, "`rho` has the shape"):
            plan.solve(cupy.zeros((9, 9)))


@unittest.skipUnless(GPU and importlib.util.find_spec("torch"), "PyTorch and a GPU are needed")
class PyTorch(Shared, unittest.TestCase):
    @staticmethod
    def array(values):
        import torch

        return torch.from_numpy(values).cuda()

    @staticmethod
    def taken(u):
        import torch

        return torch.from_dlpack(u)

    @staticmethod
    def host(values):
        return values.cpu().numpy()

    @staticmethod
    def place(values):
        return values.device.index

    @staticmethod
    def address(values):
        return values.data_ptr()

    @staticmethod
    def double(values):
        values *= 2

    def test_tensors_of_the_host_stay_there(self):
        import torch

        u = poisson.solve(torch.from_numpy(rho()), device="cuda", **HERE).u
        self.assertIsInstance(u, torch.Tensor)
        self.assertEqual(u.device.type, "cpu")


@unittest.skipUnless(GPU and importlib.util.find_spec("jax"), "JAX and a GPU are needed")
class Jax(unittest.TestCase):
    def test_a_solution_is_of_the_library(self):
        import jax

        jax.config.update("jax_enable_x64", True)
        given = jax.device_put(rho(), jax.devices("gpu")[0])
        u = poisson.solve(given, **HERE).u
        self.assertIsInstance(u, jax.Array)
        self.assertEqual(u.devices(), given.devices())
        expected = np.asarray(poisson.solve(rho(), device="cuda", **HERE).u)
        np.testing.assert_allclose(np.asarray(u), expected, rtol=0, atol=1e-9 * np.abs(expected).max())


class Driver:
    """The driver itself, so that no library of arrays is needed."""

    def __init__(self, number=0):
        self._cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), number)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        status = getattr(self._cuda, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: {status}")


def device_memory(array):
    """What lies in the memory of a GPU where an array says."""
    interface = array.__cuda_array_interface__
    out = np.empty(interface["shape"], interface["typestr"])
    if out.nbytes:
        to, at = out.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(interface["data"][0])
        Driver().call("cuMemcpyDtoH_v2", to, at, ctypes.c_size_t(out.nbytes))
    return out


class OnGpu:
    """A copy of an array of NumPy in the memory of a GPU, as other libraries have them."""

    def __init__(self, values, device=0):
        values = np.ascontiguousarray(values)
        self._driver, self._at, size = Driver(device), ctypes.c_uint64(), ctypes.c_size_t(values.nbytes)
        self._driver.call("cuMemAlloc_v2", ctypes.byref(self._at), size)
        self._driver.call("cuMemcpyHtoD_v2", self._at, values.ctypes.data_as(ctypes.c_void_p), size)
        self.__cuda_array_interface__ = {
            "version": 3, "shape": values.shape, "typestr": values.dtype.str, "data": (self._at.value, False), "stream": None,
        }

    def __del__(self):
        if getattr(self, "_at", None):
            Driver().call("cuMemFree_v2", self._at)


def walled(steps):
    """A plasma between mirrors and absorbing layers."""
    tables = plasma(steps)
    tables["pic"].update(grid={"cells": [64, 48], "size": [6.4, 4.8]}, boundary={"x": "reflecting", "y": "absorbing", "layer": 8})
    return tables


@unittest.skipUnless(GPU, "a GPU is needed")
class FieldsOnGpu(test_run.Folder):
    """Fields of runs that stay in the memory of the GPU: the bits of those on the host."""

    def check(self, run, names):
        for name in names:
            there, here = run.field_on_gpu(name), run.fields[name]
            self.assertEqual(there.__dlpack_device__(), (2, 0))
            self.assertEqual((there.shape, there.dtype, there.units, there.axes, there.title),
                             (here.shape, here.dtype, here.units, here.axes, here.title), name)
            found, wanted = device_memory(there), np.asarray(here)
            self.assertTrue(wanted.any(), name)
            self.assertEqual(found.tobytes(), wanted.tobytes(), name)

    def test_fields_of_a_plasma_have_the_bits_of_the_host(self):
        what = ["ex", "ey", "ez", "bx", "by", "bz", "jx", "jy", "jz", "charge", "charge.electrons"]
        for precision in ("f32", "f64"):
            for tables in (plasma(10**6), walled(10**6)):
                tables["pic"].update(precision=precision, diagnostics={"fields": [{"what": what}]})
                tables["pic"]["species"][0]["momentum"] = {"thermal": 0.01, "drift": ["1e-2*sin(2*pi*x/lx)", "1e-2*sin(2*pi*y/ly)", 0.01]}
                run = zellige.Run(tables, device="cuda")
                run.step(7)
                self.check(run, [name for name in run.fields if name[:2] in ("E_", "B_", "J_", "rh")])
                run.step(7)
                self.check(run, ["Ex", "Jz", "rho"])

    def test_fields_of_a_line_and_in_units_have_the_bits_of_the_host(self):
        tables = plasma(10**6)
        tables["pic"].update(grid={"cells": [77], "size": [4e-3]}, dt=8e-14, units={"density": 1e20}, diagnostics={"fields": [{"what": ["ex", "jx"]}]})
        run = zellige.Run(tables, device="cuda")
        run.step(3)
        self.check(run, ["E_x", "J_x"])

    def test_object_and_probe_have_the_bits_of_the_host(self):
        for example, precision in (("simulated.toml", "f32"), ("mixed_state.toml", "f32"), ("mixed_state.toml", "f64")):
            sets = {"ptycho.scan.0.simulate.frames": 25, "ptycho.scan.0.simulate.size": 64, "ptycho.precision": precision}
            run = zellige.Run(test_run.EXAMPLES / "ptycho" / example, device="cuda", **sets)
            run.step(3)
            self.check(run, [name for name in run.fields if name in ("object", "probe")])

    def test_solutions_have_the_bits_of_the_host(self):
        for nodes in ([65, 49], [33, 17, 25]):
            for precision in ("f32", "mixed", "f64"):
                for method in ("multigrid", "direct"):
                    equation = {"grid": {"nodes": nodes, "size": [1.0] * len(nodes)}, "rhs": "1+x*y", "precision": precision, "method": method,
                                "boundary": {"x": {"dirichlet": 0.5}, "y_hi": {"neumann": 0.25}}}
                    run = zellige.Run({"poisson": equation}, device="cuda")
                    run.step()
                    self.check(run, ["solution"])
        with self.assertRaisesRegex(zellige.InputError, "nothing by that name lies in the memory of the run's GPU"):
            run.field_on_gpu("rhs")

    def test_a_mean_is_set_to_rounding(self):
        equation = {"grid": {"nodes": [65, 33], "size": [1.0, 1.0]}, "rhs": "cos(pi*x)", "boundary": {"all": "neumann"}, "mean": 3.0}
        run = zellige.Run({"poisson": equation}, device="cuda")
        run.step(3)
        np.testing.assert_allclose(device_memory(run.field_on_gpu("solution")), np.asarray(run.fields["solution"]), rtol=1e-13)

    def test_particles_have_the_bits_of_the_host(self):
        moving = {"start": 0.1}
        for precision, dimensions, changes in (
            ("f32", 2, {}), ("f64", 2, {"weighting": "variable", "density": "1+0.5*cos(2*pi*x/lx)"}), ("f32", 1, {}), ("f32", 2, {"window": moving}),
        ):
            tables = plasma(10**6)
            pic = tables["pic"]
            pic["precision"] = precision
            if dimensions == 1:
                pic["grid"] = {"cells": [640], "size": [64.0]}
            window = changes.pop("window", None)
            if window:
                pic.update(window=window, boundary={"x": "absorbing", "layer": 8})
            pic["species"][0].update(changes)
            run = zellige.Run(tables, device="cuda")
            for steps in (0, 9):
                run.step(steps)
                here, there = run.particles("electrons"), run.particles_on_gpu("electrons")
                self.assertEqual(list(here), list(there))
                for name in here:
                    self.assertEqual((there[name].dtype, there[name].units), (here[name].dtype, here[name].units), name)
                    self.assertEqual(device_memory(there[name]).tobytes(), np.asarray(here[name]).tobytes(), f"{name} of {precision} {changes}")
        with self.assertRaisesRegex(KeyError, "no particles `ions`"):
            run.particles_on_gpu("ions")

    def test_a_copy_outlives_its_moment_and_its_run(self):
        run = zellige.Run(plasma(10**6), device="cuda")
        run.step(5)
        array = run.field_on_gpu("Ex")
        kept = np.asarray(run.fields["Ex"]).copy()
        run.step(20)
        self.assertFalse(np.array_equal(np.asarray(run.fields["Ex"]), kept))
        self.assertFalse(np.array_equal(device_memory(run.field_on_gpu("Ex")), kept))
        capsule = array.__dlpack__(stream=1)
        del run
        gc.collect()
        others = [zellige.Run(plasma(10**6), device="cuda") for _ in range(3)]
        np.testing.assert_array_equal(device_memory(array), kept)
        del others, capsule

    def test_looking_changes_no_bit(self):
        alone, seen = (zellige.Run(plasma(10**6), device="cuda") for _ in range(2))
        alone.step(30)
        for _ in range(30):
            seen.step()
            for name in ("Ex", "Jx", "rho"):
                seen.field_on_gpu(name)
        for name in alone.fields:
            self.assertTrue(np.array_equal(alone.fields[name], seen.fields[name]), name)

    def test_what_is_not_there_is_told(self):
        run = zellige.Run(plasma(10**6), device="cuda")
        with self.assertRaisesRegex(zellige.InputError, "allowed: E_x, E_y, .*, rho, rho_electrons"):
            run.field_on_gpu("temperature")

    def test_what_is_set_there_is_as_if_it_were_set_from_the_host(self):
        random = np.random.default_rng(3)
        for precision, tables in (("f32", plasma(10**6)), ("f64", plasma(10**6)), ("f32", walled(10**6))):
            tables["pic"]["precision"] = precision
            shape = tables["pic"]["grid"]["cells"][::-1]
            runs = [zellige.Run(tables, device="cuda") for _ in range(2)]
            for run in runs:
                run.step(5)
            for name in ("Ex", "E_y", "Ez", "Bx", "By", "B_z"):
                for kind in ("f4", "f8"):
                    values = 1e-3 * random.standard_normal(shape).astype(kind)
                    runs[0].set_field(name, values)
                    runs[1].set_field(name, OnGpu(values))
                    both = [np.asarray(run.fields[name]) if name.replace("_", "") in ("Ex", "Bz") else device_memory(run.field_on_gpu(name)) for run in runs]
                    self.assertEqual(both[0].tobytes(), both[1].tobytes(), name)
            for run in runs:
                run.step(20)
            for name in runs[0].fields:
                self.assertTrue(np.array_equal(runs[0].fields[name], runs[1].fields[name]), f"{name} {precision} {shape}")

    def test_waves_that_are_set_there_are_as_if_they_were_set_from_the_host(self):
        sets = {"ptycho.scan.0.simulate.frames": 25, "ptycho.scan.0.simulate.size": 64}
        for precision, kind in (("f32", "c8"), ("f32", "c16"), ("f64", "c16"), ("f32", "f4")):
            runs = [zellige.Run(test_run.EXAMPLES / "ptycho" / "mixed_state.toml", device="cuda", **sets, **{"ptycho.precision": precision})
                    for _ in range(2)]
            for run in runs:
                run.step(2)
            # What it was changes no bit.
            for name in ("object", "probe"):
                runs[1].set_field(name, runs[1].field_on_gpu(name))
            for run in runs:
                run.step(2)
            for name in ("object", "probe"):
                self.assertTrue(np.array_equal(runs[0].fields[name], runs[1].fields[name]), name)
            # Anything else is what the host would set.
            twin = runs[0]
            for name in ("object", "probe"):
                values = 1.01 * np.asarray(twin.fields[name])
                values = (values.real if kind == "f4" else values).astype(kind)
                twin.set_field(name, values)
                runs[1].set_field(name, OnGpu(values))
            for run in runs:
                run.step(2)
            for name in ("object", "probe"):
                self.assertTrue(np.array_equal(twin.fields[name], runs[1].fields[name]), f"{name} {precision} {kind}")

    def test_values_that_cannot_be_set_are_told(self):
        run = zellige.Run(plasma(10**6), device="cuda")
        run.step(3)
        values = np.zeros((8, 64))
        values[3, 7] = np.nan
        before = np.asarray(run.fields["Ex"]).copy()
        with self.assertRaisesRegex(zellige.InputError, "value 199 is NaN"):
            run.set_field("Ex", OnGpu(values))
        np.testing.assert_array_equal(np.asarray(run.fields["Ex"]), before)
        with self.assertRaisesRegex(zellige.InputError, r"an array of \[8, 63\] values"):
            run.set_field("Ex", OnGpu(np.zeros((8, 63))))
        with self.assertRaisesRegex(zellige.InputError, "complex values of a real field"):
            run.set_field("Ex", OnGpu(np.zeros((8, 64), "c8")))
        with self.assertRaisesRegex(TypeError, "allowed: float32, float64, complex64, complex128"):
            run.set_field("Ex", OnGpu(np.zeros((8, 64), "i4")))
        with self.assertRaisesRegex(TypeError, "in the memory of a GPU"):
            zellige.Run(plasma(10**6), device="cpu").set_field("Ex", OnGpu(np.zeros((8, 64))))

    @unittest.skipUnless(importlib.util.find_spec("cupy"), "CuPy is needed")
    def test_cupy_shares_the_memory(self):
        import cupy

        run = zellige.Run(plasma(10**6), device="cuda")
        run.step(5)
        array = run.field_on_gpu("Ex")
        shared = cupy.asarray(array)
        self.assertEqual(shared.data.ptr, array.__cuda_array_interface__["data"][0])
        np.testing.assert_array_equal(shared.get(), np.asarray(run.fields["Ex"]))
        with cupy.cuda.Stream(non_blocking=True):
            self.assertEqual(float(cupy.abs(cupy.from_dlpack(run.field_on_gpu("Ex"))).max()), np.abs(np.asarray(run.fields["Ex"])).max())

    @unittest.skipUnless(importlib.util.find_spec("cupy"), "CuPy is needed")
    def test_a_field_of_cupy_is_set_once_its_stream_has_made_it(self):
        import cupy

        tables = plasma(10**6)
        tables["pic"]["grid"] = {"cells": [1024, 1024], "size": [102.4, 102.4]}
        tables["pic"]["species"][0]["particles_per_cell"] = 1
        run = zellige.Run(tables, device="cuda")
        run.step()
        spin = cupy.RawKernel("extern \"C\" __global__ void spin(long long n) { for (long long t = clock64(); clock64() - t < n;); }", "spin")
        values = cupy.zeros((1024, 1024), "f4")
        # Kernels are there from here on.
        run.set_field("Ex", values)
        spin((1,), (1,), (0,))
        with cupy.cuda.Stream(non_blocking=True):
            # A tenth of a second and more before the values are there.
            spin((1,), (1,), (200_000_000,))
            values += 3.0
            run.set_field("Ex", values)
            found = cupy.asarray(run.field_on_gpu("Ex"))
            self.assertTrue(bool((found == values).all()))
        with self.assertRaisesRegex(TypeError, "in C order are needed"):
            run.set_field("Ex", cupy.zeros((1024, 2048), "f4")[:, ::2])

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is needed")
    def test_a_field_of_pytorch_is_set_once_it_is_made(self):
        import torch

        run = zellige.Run(plasma(10**6), device="cuda")
        run.step()
        values = torch.zeros((8, 64), device="cuda")
        run.set_field("Ex", values)
        torch.cuda._sleep(200_000_000)
        values += 3.0
        run.set_field("Ex", values)
        np.testing.assert_array_equal(np.asarray(run.fields["Ex"]), np.full((8, 64), 3.0))
        # Lazily: what lies in memory is not what it says.
        with self.assertRaisesRegex(TypeError, "resolve_conj"):
            run.set_field("Ex", torch.zeros((8, 64), device="cuda", dtype=torch.complex64).conj())

    def test_what_is_set_at_the_end_is_refused(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        run = zellige.Run(plasma(2), device="cuda", output=folder.name + "/out")
        run.to_end()
        with self.assertRaisesRegex(zellige.InputError, "the run has ended: there is no state to set"):
            run.set_field("Ex", OnGpu(np.zeros((8, 64))))

    def test_ctrl_c_ends_a_solve(self):
        rho, times = np.ones((513, 513)), []
        plan = zellige.poisson.Plan(rho.shape, tol=1e-14, method="gauss_seidel", max_cycles=10**7, device="cuda")
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        for given in (rho, OnGpu(rho)):
            timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
            begun = time.monotonic()
            self.addCleanup(timer.cancel)
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                plan.solve(given)
            times.append(time.monotonic() - begun)
        self.assertLess(max(times), 10.0)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is needed")
    def test_pytorch_shares_the_memory(self):
        import torch

        run = zellige.Run(plasma(10**6), device="cuda")
        run.step(5)
        array = run.field_on_gpu("Ex")
        shared = torch.from_dlpack(array)
        self.assertEqual(shared.data_ptr(), array.__cuda_array_interface__["data"][0])
        np.testing.assert_array_equal(shared.cpu().numpy(), np.asarray(run.fields["Ex"]))


@unittest.skipUnless(GPU, "a GPU is needed")
class Watched(unittest.TestCase):
    """The live page of a run on a GPU, whose pictures come late: looks of one call are shown in the next."""

    def test_who_watches_changes_no_bit(self):
        wide = plasma(10**9)
        wide["pic"]["grid"] = {"cells": [512, 512], "size": [51.2, 51.2]}
        alone, watched = (zellige.Run(wide, device="cuda") for _ in range(2))
        url = watched.live()
        client, steps = Client(url), 0
        while len({frame[2] for frames in client.told("frames") for frame in frames}) < 5:
            steps += watched.step(20)
            self.assertLess(steps, 10**5)
        alone.step(steps)
        for name in alone.fields:
            self.assertTrue(np.array_equal(alone.fields[name], watched.fields[name]), name)
        del watched
        gc.collect()
        with self.assertRaises(OSError):
            get(url)


@unittest.skipUnless(GPU, "a GPU is needed")
class SettingOnGpu(test_ptycho.Setting):
    """Objects and probes that are set between iterations on a GPU."""

    WHERE = {"device": "cuda"}


if __name__ == "__main__":
    unittest.main()
