"""Poisson's equation `u_xx + u_yy (+ u_zz) = rho` on regular grids: :func:`solve`, and :class:`Plan` for many right-hand sides."""

import json
import math
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from ._arrays import alike, gpu_of, host, on_gpu, text, whole
from ._zellige import PoissonPlan
from .errors import ArgumentError, InputError, warn

__all__ = ["Plan", "Result", "solve"]

_AXES = "xyz"


@dataclass(frozen=True, eq=False)
class Result:
    """A solution with the account of how it was found."""

    #: Solution over all nodes, float64, of the shape of `rho` and where `rho` is: an array of CuPy, PyTorch or JAX where `rho` is one, else
    #: of NumPy.
    u: Any = field(repr=False)
    #: Residual in the norm asked for, before the first step and after each.
    residuals: list = field(repr=False)
    #: True if the tolerance was met, or the solution is as good as the precision allows (`status` says which).
    converged: bool
    #: Steps taken: cycles, blocks of sweeps, or the direct solution and the sweeps on it.
    cycles: int
    #: Last residual relative to that of the right-hand side and the sides.
    relative_residual: float
    #: `converged`, `precision_floor`, `stagnated`, `diverged` or `max_cycles`.
    status: str
    #: The method, and why it was chosen.
    method: str
    #: All figures of the solve, as in `summary.json` of a run.
    report: Mapping[str, Any] = field(repr=False)


#: Keys of the input that the arguments of a call stand for.
_ARGUMENTS = {"rhs": "rho", "grid": "spacing", "boundary": "boundary", "method": "method", "tolerance": "tol", "guess": "guess", "batch": "Plan"}


def _per_axis(value: Any, count: int, name: str) -> list:
    if isinstance(value, str) or value is None:
        raise ArgumentError(f"`{name}` is {value!r} (allowed: a number, or one an axis, x first)")
    values = list(np.broadcast_to(np.asarray(value, dtype=float), (count,))) if np.ndim(value) == 0 else [float(v) for v in value]
    if len(values) != count:
        raise InputError(f"`{name}` has {len(values)} values where the grid has {count} axes (allowed: a number, or one an axis, x first)")
    return [float(v) for v in values]


def _boundary(boundary: Any, shape: Sequence[int]):
    """Tables of the input, and values along sides that are arrays."""
    if isinstance(boundary, str):
        return {"all": boundary}, []
    if not isinstance(boundary, Mapping):
        raise ArgumentError(f"`boundary` is of type {type(boundary).__name__} (allowed: dirichlet, neumann, periodic, or a dict by side or axis)")
    tables, sides = {}, []
    for key, condition in boundary.items():
        if isinstance(condition, str):
            tables[key] = condition
            continue
        if condition is None or isinstance(condition, bool):
            words = '"dirichlet", "neumann", "periodic", values of u, {"dirichlet": values}, {"neumann": values}'
            raise ArgumentError(f"`boundary[{key!r}]` is of type {type(condition).__name__} (allowed: {words})")
        table = {}
        for kind, values in condition.items() if isinstance(condition, Mapping) else [("dirichlet", condition)]:
            if values is None or isinstance(values, (bool, np.bool_)):
                raise ArgumentError(f"`boundary[{key!r}][{kind!r}]` is {values} (allowed: a number, an expression, an array over a side)")
            if isinstance(values, (str, int, float)) or np.ndim(values) == 0:
                table[kind] = values if isinstance(values, str) else float(values)
                continue
            if len(key) != 4 or key[0] not in _AXES[: len(shape)] or key[2:] not in ("lo", "hi"):
                raise InputError(f"`boundary[{key!r}]` has an array: name one side (allowed: x_lo, x_hi, y_lo, y_hi, z_lo, z_hi)")
            axis = _AXES.index(key[0])
            wanted = tuple(n for k, n in enumerate(shape) if k != len(shape) - 1 - axis)
            array = host(values, f"boundary[{key!r}]")
            if array.shape != wanted:
                raise InputError(f"`boundary[{key!r}]` has the shape {array.shape} where its side has {wanted}")
            sides.append((axis, int(key[2:] == "hi"), array))
            table[kind] = 0.0
        tables[key] = table
    return tables, sides


class Plan:
    """A grid with its sides and a method, planned once and solved for many right-hand sides.

    Parameters
    ----------
    shape : tuple of int
        Nodes, (N, M) or (K, N, M) with x last. Sides are nodes; a periodic axis counts each node once.
    spacing, boundary, tol, method, device, threads, **options
        As for :func:`solve`.
    """

    def __init__(
        self,
        shape: Sequence[int],
        *,
        spacing: Union[float, Sequence[float]] = 1.0,
        boundary: Union[str, Mapping[str, Any]] = "dirichlet",
        tol: Union[float, str] = 1e-6,
        method: str = "auto",
        device: Optional[str] = None,
        threads: int = 0,
        **options: Any,
    ):
        if isinstance(shape, str) or not hasattr(shape, "__iter__"):
            raise ArgumentError(f"`shape` is {shape!r} (allowed: (N, M) or (K, N, M), whole numbers)")
        self.shape = tuple(whole(n, "shape") for n in shape)
        for key in options.keys() & _ARGUMENTS.keys():
            raise ArgumentError(f"`{key}` of the input is told by `{_ARGUMENTS[key]}` here")
        count = len(self.shape)
        if count not in (2, 3):
            raise InputError(f"a grid of {count} axes (allowed: 2 or 3)")
        nodes = list(self.shape[::-1])
        tables, sides = _boundary(boundary, self.shape)
        steps = _per_axis(spacing, count, "spacing")

        def periodic(axis: str) -> bool:
            ends = [tables.get(f"{axis}_{end}", tables.get(axis, tables.get("all"))) for end in ("lo", "hi")]
            return "periodic" in ends

        size = [h * (n if periodic(axis) else n - 1) for h, n, axis in zip(steps, nodes, _AXES)]
        equation = {
            "grid": {"nodes": nodes, "size": size},
            "rhs": 0.0,
            "boundary": tables,
            "method": method,
            "tolerance": tol,
            **options,
        }
        run = {"device": device or "auto", "threads": whole(threads, "threads")}
        self._plan = PoissonPlan(text({"poisson": equation, "run": run}), sides)

    @property
    def method(self) -> str:
        """The method, and why it was chosen."""
        return self._plan.method

    @property
    def device(self) -> str:
        """Model of the device."""
        return self._plan.device

    def solve(self, rho: Any, guess: Any = None) -> Result:
        """The solution for a right-hand side of the plan's shape; from zero, or from a guess of the same shape.

        A right-hand side in the memory of the plan's GPU stays there, as the solution does.
        """
        first = None if guess is None else host(guess, "guess")
        u, converged, figures = self._plan.solve(rho if on_gpu(rho) else host(rho, "rho"), first)
        report = json.loads(figures)
        mean = report["imbalance"]
        # Above rounding, as the command has it.
        if abs(mean) > 1e-10 * math.hypot(report["reference"], mean):
            warn(f"right-hand side and fluxes do not balance, and no side has Dirichlet values: the mean {mean:.6e} was subtracted")
        return Result(
            u=alike(u, rho),
            residuals=report["history"],
            converged=converged,
            cycles=report["steps"],
            relative_residual=report["relative_residual"],
            status=report["status"],
            method=report["method"],
            report=report,
        )

    def __repr__(self) -> str:
        return f"<zellige.poisson.Plan {self.shape}: {self.method}>"


def solve(
    rho: Any,
    *,
    spacing: Union[float, Sequence[float]] = 1.0,
    boundary: Union[str, Mapping[str, Any]] = "dirichlet",
    tol: Union[float, str] = 1e-6,
    method: str = "auto",
    guess: Any = None,
    device: Optional[str] = None,
    threads: int = 0,
    **options: Any,
) -> Result:
    """Solve `u_xx + u_yy (+ u_zz) = rho` on a rectangle or a box, to second order in the spacing.

    Parameters
    ----------
    rho : array, shape (N, M) or (K, N, M)
        Right-hand side over all nodes, x fastest; sides are nodes, and values on Dirichlet nodes, which must be
        finite, have no effect. NumPy arrays,
        buffers and arrays with `__array_interface__`, `__dlpack__` or, on a GPU, `__cuda_array_interface__` are taken: CuPy,
        PyTorch, JAX. Float64 in C order is not copied, and what is on a GPU is solved there.
    spacing : float or sequence of float
        Distance between nodes, of all axes or of each, **x first**, in any unit of length; `u` has that of `rho` times its square.
    boundary : str or dict
        `"dirichlet"` (u = 0), `"neumann"` (du/dn = 0) or `"periodic"` on all sides; or a dict by side (`x_lo`, `x_hi`, `y_lo`, ..),
        by axis (`x`) or `all`: one of these words, `{"dirichlet": u}` or `{"neumann": du/dn}` with n outward, where the value is a
        number, an expression of the coordinates (`"sin(pi*x/lx)"`), or on a single side an array over its nodes; a number or an
        array alone is u. Without Dirichlet
        values u has a mean of 0, and so must `rho` have with the fluxes: what is left is subtracted, with a warning.
    tol : float or "truncation"
        Residual relative to that of the right-hand side, 0 or more and below 1; or full multigrid to the truncation error.
    method : str
        `auto`, `direct`, `multigrid`, `fmg`, `sor`, `gauss_seidel`, `jacobi` or `chebyshev`.
    guess : array, optional
        First guess, of the shape of `rho`. One that meets the tolerance is the solution; cycles and sweeps begin with another, and
        the direct solver, which `auto` takes where it is faster all the same, needs none.
    device : str, optional
        `auto` (default: the GPU that `rho` is on, else a GPU if there is one), `cpu`, `cuda` or `cuda:N`; else the environment's `ZELLIGE_DEVICE`.
    threads : int
        Threads on the CPU; 0 takes every core.
    **options
        Further keys of the input's `[poisson]` table: `precision`, `cycle`, `norm`, `absolute`, `max_cycles`, `mean`, ..

    Returns
    -------
    Result
        With `u` (an array of the shape and library of `rho`), `residuals`, `converged`, `cycles` and more. A solve that misses its tolerance
        is no error: look at `converged` and `status`.

    Raises
    ------
    zellige.InputError
        For all that is wrong with grid, sides and options, at once.

    Examples
    --------
    >>> import numpy as np, zellige
    >>> x, y = np.meshgrid(np.linspace(0, 1, 129), np.linspace(0, 1, 65))
    >>> rho = -2 * np.pi**2 * np.sin(np.pi * x) * np.sin(np.pi * y)
    >>> result = zellige.poisson.solve(rho, spacing=(1 / 128, 1 / 64))
    >>> bool(np.abs(result.u - np.sin(np.pi * x) * np.sin(np.pi * y)).max() < 2e-4)
    True
    """
    shape = np.shape(rho) if not hasattr(rho, "shape") else tuple(rho.shape)
    if device is None and on_gpu(rho):
        device = gpu_of(rho)
    plan = Plan(shape, spacing=spacing, boundary=boundary, tol=tol, method=method, device=device, threads=threads, **options)
    return plan.solve(rho, guess)
