"""Arrays in the memory of a GPU: CuPy, PyTorch and JAX in, the same out, no copy. Skipped aloud where there is no GPU, and each library
where it is not installed."""

import gc
import importlib.util
import sys
import unittest

import numpy as np
import test_ptycho

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
