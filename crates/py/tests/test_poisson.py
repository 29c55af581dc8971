"""Poisson's equation on arrays, against closed forms."""

import copy
import pickle
import unittest
import warnings

import numpy as np
import zellige
from zellige import poisson

HERE = {"device": "cpu", "threads": 1}


def square(n, m):
    """Coordinates of M x N nodes on the unit square, and their spacing, x first."""
    x, y = np.meshgrid(np.linspace(0, 1, m), np.linspace(0, 1, n))
    return x, y, (1 / (m - 1), 1 / (n - 1))


class Solve(unittest.TestCase):
    def test_sine_is_found_to_second_order(self):
        errors = []
        for n, m in [(33, 65), (65, 129)]:
            x, y, h = square(n, m)
            exact = np.sin(np.pi * x) * np.sin(2 * np.pi * y)
            result = poisson.solve(-5 * np.pi**2 * exact, spacing=h, tol=1e-10, **HERE)
            self.assertTrue(result.converged, result)
            errors.append(np.abs(np.asarray(result.u) - exact).max())
        self.assertLess(errors[1], 1e-3)
        self.assertAlmostEqual(errors[0] / errors[1], 4.0, delta=0.2)

    def test_sides_take_words_numbers_expressions_and_arrays(self):
        # u = x^2 + y is its own difference equation: only rounding is left. x runs along the last axis.
        x, y, h = square(20, 33)
        exact = x**2 + y
        boundary = {
            "x_lo": {"dirichlet": exact[:, 0]},
            "x_hi": {"neumann": 2.0},
            "y_lo": {"neumann": -1.0},
            "y_hi": {"dirichlet": "x^2 + 1"},
        }
        result = poisson.solve(np.full(x.shape, 2.0), spacing=h, boundary=boundary, tol=1e-12, **HERE)
        self.assertLess(np.abs(np.asarray(result.u) - exact).max(), 1e-8)

    def test_numbers_and_arrays_alone_are_dirichlet_values(self):
        rho, side = np.ones((17, 33)), np.linspace(0, 1, 33)
        for short in ({"x_lo": 2, "y_hi": side, "x_hi": np.float32(0.5)}, {"all": 1.5}):
            long = {name: {"dirichlet": values} for name, values in short.items()}
            self.assertTrue(np.array_equal(*(poisson.solve(rho, spacing=1 / 32, boundary=b, **HERE).u for b in (short, long))))
        for wrong in (None, True):
            with self.assertRaisesRegex(TypeError, "x_lo.*allowed.*values of u"):
                poisson.solve(rho, boundary={"x_lo": wrong}, **HERE)

    def test_a_guess_that_meets_the_tolerance_is_the_solution(self):
        found = poisson.solve(np.ones((33, 33)), spacing=1 / 32, **HERE).u
        for method in ("auto", "direct", "multigrid"):
            again = poisson.solve(np.ones((33, 33)), spacing=1 / 32, method=method, guess=found, **HERE)
            self.assertEqual((again.cycles, again.converged), (0, True), method)
            self.assertTrue(np.array_equal(again.u, found), method)

    def test_periodic_axes_count_each_node_once(self):
        n = 64
        x = np.arange(n) / n
        exact = np.sin(2 * np.pi * x)[None, :] * np.cos(2 * np.pi * x)[:, None]
        symbol = 2 * (2 * np.cos(2 * np.pi / n) - 2) * n**2
        result = poisson.solve(symbol * exact, spacing=1 / n, boundary="periodic", tol=1e-12, **HERE)
        self.assertLess(np.abs(np.asarray(result.u) - exact).max(), 1e-9)

    def test_what_does_not_balance_is_told_to_the_caller(self):
        for device_free in (poisson.solve, lambda rho, **how: poisson.Plan(rho.shape, **how).solve(rho)):
            with self.assertWarnsRegex(UserWarning, r"do not balance.*mean 1\.0") as caught:
                device_free(np.ones((33, 33)), spacing=1 / 32, boundary="neumann", **HERE)
            self.assertEqual(caught.filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            poisson.solve(square(33, 33)[0] - 0.5, spacing=1 / 32, boundary="neumann", **HERE)

    def test_three_axes(self):
        z, y, x = np.meshgrid(*(np.linspace(0, 1, n) for n in (17, 33, 25)), indexing="ij")
        result = poisson.solve(np.full(x.shape, 6.0), spacing=(1 / 24, 1 / 32, 1 / 16), boundary={"all": {"dirichlet": "x^2 + y^2 + z^2"}}, tol=1e-11, **HERE)
        self.assertLess(np.abs(np.asarray(result.u) - (x**2 + y**2 + z**2)).max(), 1e-8)

    def test_residuals_fall_and_are_counted(self):
        _, _, h = square(65, 65)
        result = poisson.solve(np.ones((65, 65)), spacing=h, method="multigrid", tol=1e-8, **HERE)
        self.assertEqual(len(result.residuals), result.cycles + 1)
        self.assertTrue(np.all(np.diff(result.residuals) < 0))
        self.assertLessEqual(result.relative_residual, 1e-8)
        missed = poisson.solve(np.ones((65, 65)), spacing=h, method="multigrid", tol=1e-8, max_cycles=1, **HERE)
        self.assertEqual((missed.converged, missed.status), (False, "max_cycles"))

    def test_plan_gives_the_bits_of_solve(self):
        x, y, h = square(33, 65)
        plan = poisson.Plan(x.shape, spacing=h, **HERE)
        for rho in (x, y, x * y):
            self.assertTrue(np.array_equal(plan.solve(rho).u, poisson.solve(rho, spacing=h, **HERE).u))
        self.assertIn("direct", repr(plan))
        self.assertLessEqual(plan.solve(x, guess=plan.solve(x).u).cycles, 1)


class Arrays(unittest.TestCase):
    def setUp(self):
        self.u = poisson.Plan((33, 65), **HERE)._plan.solve(np.ones((33, 65)), None)[0]

    def test_solutions_of_numpy_are_numpys_and_share_the_memory(self):
        for rho in (np.ones((33, 65)), np.ones((33, 65)).tolist()):
            u = poisson.solve(rho, **HERE).u
            self.assertIs(type(u), np.ndarray)
            self.assertIs(type(u.base), zellige.Array)
            self.assertTrue(np.array_equal(u, self.u))

    def test_operators_and_names_are_those_of_numpy(self):
        u, there = self.u, np.asarray(self.u)
        for ours, expected in [
            (2 * u + 1, 2 * there + 1), (u - u / 2, there / 2), (1 - u, 1 - there), (-u**2, -(there**2)), (abs(u), abs(there)),
            (1 / (u + 9), 1 / (there + 9)), (u.T, there.T), (2**u, 2**there), (u // 2, there // 2), (7 % (u + 9), 7 % (there + 9)), (u @ u.T, there @ there.T), (u == u, there == there), (u < -3.0, there < -3.0), (np.sqrt(-u), np.sqrt(-there)),
        ]:
            self.assertIs(type(ours), np.ndarray)
            self.assertTrue(np.array_equal(ours, expected))
        self.assertEqual((u.max(), float(u.mean())), (there.max(), float(there.mean())))
        self.assertEqual((there[3, 4] in u, 17.0 in u), (True, False))
        self.assertTrue(all(np.array_equal(a, b) for a, b in zip(u, there, strict=True)))
        with self.assertRaisesRegex(AttributeError, "no attribute"):
            u.colour
        with self.assertRaisesRegex(ValueError, "ambiguous"):
            bool(u)

    def test_copies_and_pickles_have_all_that_is_said(self):
        field = zellige.Run({"poisson": {"grid": {"nodes": [9, 9], "size": [1, 2]}, "rhs": "x"}}, **HERE).fields["solution"]
        for array in (self.u, field):
            for other in (pickle.loads(pickle.dumps(array)), copy.deepcopy(array)):
                self.assertIs(type(other), zellige.Array)
                self.assertTrue(np.array_equal(other, array) and not np.shares_memory(other, array))
                self.assertEqual((other.name, other.title, other.units, other.axes), (array.name, array.title, array.units, array.axes))
        self.assertTrue(pickle.loads(pickle.dumps(poisson.solve(np.ones((9, 9)), **HERE))).converged)
        copied = np.from_dlpack(self.u, copy=True)
        self.assertTrue(np.array_equal(copied, self.u) and not np.shares_memory(copied, self.u))

    def test_numpy_and_dlpack_share_the_memory(self):
        first = np.asarray(self.u)
        second = np.from_dlpack(self.u)
        for view in (first, second):
            self.assertEqual(view.__array_interface__["data"][0], self.u.__array_interface__["data"][0])
        first[3, 4] = 7.0
        self.assertEqual((second[3, 4], self.u[3, 4]), (7.0, 7.0))

    def test_memory_lives_as_long_as_a_view(self):
        for share in (np.asarray, np.from_dlpack):
            view = share(poisson.solve(np.ones((129, 257)), **HERE).u)
            before = view.copy()
            # Would be put where freed memory was.
            others = [np.full((129, 257), float(k)) for k in range(8)]
            self.assertTrue(np.array_equal(view, before) and len(others) == 8)
        # A capsule that nobody takes is freed.
        self.u.__dlpack__()

    def test_shape_units_and_axes(self):
        self.assertEqual((self.u.shape, self.u.dtype, self.u.ndim, self.u.size, len(self.u)), ((33, 65), "float64", 2, 33 * 65, 33))
        self.assertEqual([(a.name, a.size, a.spacing) for a in self.u.axes], [("y", 33, 1.0), ("x", 65, 1.0)])
        self.assertTrue(np.array_equal(self.u.axes[1].coordinates, np.arange(65)))
        self.assertIn("(33, 65) float64", repr(self.u))

    def test_doubles_in_c_order_are_read_where_they_lie(self):
        from zellige._arrays import host

        rho = np.ones((33, 65))
        self.assertTrue(np.shares_memory(host(rho, "rho"), rho))
        self.assertFalse(np.shares_memory(host(rho[:, ::2], "rho"), rho))
        for other in (rho.astype("f4"), np.asfortranarray(rho), rho.astype(">f8"), rho[::1, ::-1], memoryview(rho), rho.tolist(), self.u):
            self.assertEqual(host(other, "rho").flags.c_contiguous, True)
            self.assertEqual(poisson.solve(other, **HERE).u.shape if hasattr(other, "shape") else (33, 65), (33, 65))

    def test_dlpack_alone_is_taken(self):
        class Foreign:
            def __init__(self, array):
                self._array, self.shape = array, array.shape

            def __dlpack__(self, **how):
                return self._array.__dlpack__(**how)

            def __dlpack_device__(self):
                return self._array.__dlpack_device__()

        rho = np.random.default_rng(1).normal(size=(17, 33))
        self.assertTrue(np.array_equal(poisson.solve(Foreign(rho), **HERE).u, poisson.solve(rho, **HERE).u))

    def test_memory_of_a_gpu_is_refused_in_words(self):
        class OnGpu:
            shape = (17, 33)

            def __init__(self, kind="<f8", strides=None):
                self.__cuda_array_interface__ = {"typestr": kind, "shape": self.shape, "data": (256, False), "strides": strides, "version": 3}

        plan = poisson.Plan((17, 33), **HERE)
        with self.assertRaisesRegex(ValueError, "`rho` is in the memory of a GPU, and the plan is for the CPU\n\nhint: make the plan"):
            plan.solve(OnGpu())
        for wrong in (OnGpu("<f4"), OnGpu(strides=(8, 17 * 8))):
            with self.assertRaisesRegex(TypeError, "on a GPU where doubles in C order are needed.*\n\nhint: `cupy.ascont"):
                plan.solve(wrong)
        with self.assertRaisesRegex(TypeError, "`guess` is in the memory of a GPU.*\n\nhint: copy it"):
            plan.solve(np.zeros((17, 33)), guess=OnGpu())


class Refusals(unittest.TestCase):
    def test_all_problems_are_told_at_once(self):
        with self.assertRaises(zellige.InputError) as caught:
            poisson.solve(np.ones((9, 9)), method="magic", precision="f16", **HERE)
        text = str(caught.exception)
        self.assertIn("2 problems", text)
        self.assertIn("poisson.method", text)
        self.assertIn("allowed", text)
        self.assertEqual(caught.exception.exit_code, 2)
        self.assertIsInstance(caught.exception, ValueError)

    def test_arguments_are_told_by_their_names(self):
        rho, told = np.ones((9, 9)), {
            "`rho` has masked values": lambda: poisson.solve(np.ma.masked_greater(np.arange(81.0).reshape(9, 9), 70), **HERE),
            "`rhs` of the input is told by `rho`": lambda: poisson.solve(rho, rhs=2.0, **HERE),
            "`grid` of the input is told by `spacing`": lambda: poisson.solve(rho, grid={"nodes": [5, 5]}, **HERE),
            r"`poisson.tolerance` is nan, no value": lambda: poisson.solve(rho, tol=np.nan, **HERE),
            r"`poisson.max_cycles` is None, no value": lambda: poisson.solve(rho, max_cycles=None, **HERE),
            r"`spacing` is '1'": lambda: poisson.solve(rho, spacing="1", **HERE),
            r"`boundary\['x'\]` has an array: name one side": lambda: poisson.solve(rho, boundary={"x": np.ones(9)}, **HERE),
            r"`boundary` is of type list": lambda: poisson.solve(rho, boundary=["dirichlet"], **HERE),
            r"`boundary\['x'\]` is of type NoneType": lambda: poisson.solve(rho, boundary={"x": None}, **HERE),
            r"`boundary\['x_lo'\]\['dirichlet'\]` is None": lambda: poisson.solve(rho, boundary={"x_lo": {"dirichlet": None}}, **HERE),
            r"`shape` is 33.7": lambda: poisson.Plan((33.7, 33), **HERE),
        }
        for text, call in told.items():
            with self.assertRaisesRegex((TypeError, ValueError), text):
                call()
        self.assertEqual(poisson.solve(rho, max_cycles=np.int64(1), tol=np.float32(1e-30), method="multigrid", **HERE).cycles, 1)
        # Nobody sees the text that is made of the arguments, and so no line of it is told.
        with self.assertRaises(zellige.InputError) as caught:
            poisson.solve(rho, spacing=-1.0, **HERE)
        self.assertRegex(str(caught.exception), r"(?m)^ *`?poisson\.grid\.size")

    def test_values_that_are_not_finite_and_wrong_shapes(self):
        rho = np.ones((9, 9))
        rho[2, 3] = np.nan
        with self.assertRaisesRegex(zellige.InputError, r"\(2, 3\).*NaN"):
            poisson.solve(rho, **HERE)
        plan = poisson.Plan((9, 9), **HERE)
        with self.assertRaisesRegex(ValueError, r"\[9, 8\].*\[9, 9\]"):
            plan.solve(np.ones((9, 8)))
        for wrong in (np.ones(9), np.ones((2, 9, 9, 9))):
            with self.assertRaisesRegex(ValueError, "axes"):
                poisson.solve(wrong, **HERE)
        with self.assertRaisesRegex(ValueError, "side has"):
            poisson.solve(np.ones((9, 9)), boundary={"x_lo": {"dirichlet": np.ones(5)}}, **HERE)
        with self.assertRaisesRegex(TypeError, "complex"):
            poisson.solve(np.ones((9, 9), dtype=complex), **HERE)
        with self.assertRaisesRegex(zellige.InputError, "device"):
            poisson.solve(np.ones((9, 9)), device="tpu")


if __name__ == "__main__":
    unittest.main()
