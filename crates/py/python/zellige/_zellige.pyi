"""
Compiled part of the package: arrays, runs, plans, and the command.
"""

from _typeshed import SupportsGetItem, SupportsLenAndGetItem
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, Final, SupportsFloat, SupportsIndex, final
from zellige._axis import Axis

__all__ = ["__version__", "Array", "PoissonPlan", "PtychoEngine", "Session", "command", "restored"]

__version__: Final[str]
"""
Version of the package.
"""

@final
class Array:
    """
    An array of the package, C order. `numpy.asarray(a)`, `numpy.from_dlpack(a)` and `torch.from_dlpack(a)` share its memory, which
    lives as long as any of them; one in the memory of a GPU is shared by `cupy.asarray(a)` and `torch.from_dlpack(a)`. Operators
    and names of NumPy's arrays (`a.max()`, `a.T`) are those of `numpy.asarray(a)`. Results of a run are read-only on the host, as
    it does not see what would be written into them; PyTorch, which knows no read-only memory, has to `clone()` them first.
    """
    def __abs__(self, /) -> Any: ...
    def __add__(self, other: object, /) -> Any: ...
    @property
    def __array_interface__(self, /) -> dict:
        """
        Description of the memory for NumPy, which shares it; there is none on a GPU.
        """
    def __bool__(self, /) -> bool: ...
    def __contains__(self, value: Any, /) -> bool: ...
    @property
    def __cuda_array_interface__(self, /) -> dict:
        """
        Description of the memory on a GPU for CuPy, Numba and PyTorch, which share it; there is none on the host.
        """
    def __dlpack__(self, /, *, stream: Any | None = None, max_version: tuple[SupportsIndex, SupportsIndex] | None = None, dl_device: tuple[SupportsIndex, SupportsIndex] | None = None, copy: bool | None = None) -> Any:
        """
        A capsule of DLPack that shares the memory.
        """
    def __dlpack_device__(self, /) -> tuple[int, int]:
        """
        Kind and number of the device of the memory by DLPack: (1, 0) is the host, (2, N) a GPU.
        """
    def __eq__(self, other: object, /) -> Any: ...
    def __floordiv__(self, other: object, /) -> Any: ...
    def __ge__(self, other: object, /) -> Any: ...
    def __getattr__(self, name: str, /) -> Any:
        """
        Attribute of NumPy's arrays, where ours have none of that name.
        """
    def __getitem__(self, key: Any, /) -> Any:
        """
        Value or view by NumPy's indexing, `numpy.asarray(a)[key]`.
        """
    def __gt__(self, other: object, /) -> Any: ...
    def __iter__(self, /) -> Iterator: ...
    def __le__(self, other: object, /) -> Any: ...
    def __len__(self, /) -> int: ...
    def __lt__(self, other: object, /) -> Any: ...
    def __matmul__(self, other: object, /) -> Any: ...
    def __mod__(self, other: object, /) -> Any: ...
    def __mul__(self, other: object, /) -> Any: ...
    def __ne__(self, other: object, /) -> Any: ...
    def __neg__(self, /) -> Any: ...
    def __pos__(self, /) -> Any: ...
    def __pow__(self, other: object, modulus: object = None, /) -> Any: ...
    def __radd__(self, other: object, /) -> Any: ...
    def __reduce__(self, /) -> tuple[Any, tuple[Any, str, str, str, list[tuple[str, str, float, float, int]]]]:
        """
        Values and all that is said about them, for `pickle` and `copy`.
        """
    def __repr__(self, /) -> str: ...
    def __rfloordiv__(self, other: object, /) -> Any: ...
    def __rmatmul__(self, other: object, /) -> Any: ...
    def __rmod__(self, other: object, /) -> Any: ...
    def __rmul__(self, other: object, /) -> Any: ...
    def __rpow__(self, other: object, modulus: object = None, /) -> Any: ...
    def __rsub__(self, other: object, /) -> Any: ...
    def __rtruediv__(self, other: object, /) -> Any: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __sub__(self, other: object, /) -> Any: ...
    def __truediv__(self, other: object, /) -> Any: ...
    @property
    def axes(self, /) -> tuple[Axis, ...]:
        """
        Axes in the order of the shape, each a `zellige.Axis`; empty where nothing is known about them.
        """
    @property
    def dtype(self, /) -> Any:
        """
        Type of the values, NumPy's.
        """
    @property
    def name(self, /) -> str:
        """
        Name, as in files.
        """
    @property
    def ndim(self, /) -> int:
        """
        Number of axes.
        """
    @property
    def shape(self, /) -> tuple[int, ...]:
        """
        Lengths of the axes, slowest first.
        """
    @property
    def size(self, /) -> int:
        """
        Number of values.
        """
    @property
    def title(self, /) -> str:
        """
        Title for people.
        """
    @property
    def units(self, /) -> str:
        """
        Unit of the values; empty where the problem has none.
        """

@final
class PoissonPlan:
    """
    A plan for one grid, its sides and a method; `zellige.poisson.Plan` documents it.
    """
    def __new__(cls, /, tables: str, sides: SupportsGetItem[int, tuple[SupportsIndex, SupportsIndex, Any]]) -> PoissonPlan:
        """
        From the tables of an input in JSON, whose right-hand side is not read, and values along sides: axis, end, values.
        """
    @property
    def device(self, /) -> str:
        """
        Model of the device.
        """
    @property
    def method(self, /) -> str:
        """
        The method and why it was chosen.
        """
    def solve(self, /, rhs: Any, guess: Any | None = None) -> tuple[Array, bool, str]:
        """
        Solution and report (JSON) for a right-hand side, from a guess or from zero; in the memory of the plan's GPU where the
        right-hand side is there.
        """

@final
class PtychoEngine:
    """
    An engine between its iterations.
    """
    def __new__(cls, /, tables: str, frames: Any, mask: Any | None, views: Any, probe: Any, objects: SupportsGetItem[int, Any], *, phase: Any | None = None, kernel: Any | None = None, power: SupportsLenAndGetItem[SupportsFloat | SupportsIndex] | None = None, bounds: Any | None = None, first: SupportsIndex = 0) -> PtychoEngine:
        """
        Sets the engine of an input in JSON up on frames `(n, ny, nx)`.
        """
    @property
    def device(self, /) -> str:
        """
        Model of the device.
        """
    def errors(self, /) -> Array:
        """
        Errors of each view in the last iteration, `(n, 3)`: moduli, likelihood, change of the exit waves.
        """
    def exit_waves(self, /) -> Array | None:
        """
        Exit waves `(n, modes, rows, columns)`, the object's modes fastest; `None` where the engine keeps none.
        """
    def iterate(self, /, n: SupportsIndex = 1, order: SupportsGetItem[int, SupportsIndex] | None = None) -> None:
        """
        Makes iterations, with the views in this order where an engine goes from one to the next.
        """
    def number_from(self, /, k: SupportsIndex) -> None:
        """
        Numbers the iterations from `k` on: others have made those before it.
        """
    def set_exit_waves(self, /, exits: Any) -> None:
        """
        Puts exit waves in place of the products of probe and object that an engine begins with.
        """
    def set_support(self, /, real: Any | None = None, fourier: Any | None = None) -> None:
        """
        Holds the probes to pixels that are not 0, in real space and in the order of the transform: `(rows, columns)`, or all.
        """
    def set_views(self, /, views: Any) -> None:
        """
        Lets the views look elsewhere: `(n, 4)` of probe, object, first row and first column.
        """
    def take_state(self, /, arrays: SupportsGetItem[int, Any]) -> bool:
        """
        Takes probes and objects from such arrays where they differ in any bit from what was written last, or what the engine was
        made with; tells if so. Exit waves stay.
        """
    def write_state(self, /, arrays: SupportsGetItem[int, Any]) -> None:
        """
        Writes probes, and then objects, each `(modes, rows, columns)`, into arrays in the precision of the engine, C order.
        """

@final
class Session:
    """
    A run; `zellige.Run` documents it.
    """
    def __new__(cls, /, file: str | PathLike[str] | None, json: str | None, overrides: SupportsGetItem[int, str], device: str | None, threads: SupportsIndex | None, output: str | PathLike[str] | None, resume: str | PathLike[str] | None, scans: SupportsGetItem[int, tuple[SupportsLenAndGetItem[Any | None], SupportsLenAndGetItem[SupportsFloat | SupportsIndex], bool]] | None = None) -> Session:
        """
        Sets a run up: from the name of a file, or from its tables in JSON, to which scans in memory may belong.
        """
    def break_off(self, /, save: bool) -> None:
        """
        Ends the way to the end that pauses, with the files so far, and a checkpoint if it is to `save`.
        """
    def clock(self, /) -> tuple[int, float | None]:
        """
        Finished steps, and physical time where there is one.
        """
    @property
    def device(self, /) -> str:
        """
        Model of the device.
        """
    def field(self, /, name: str) -> "Array | None":
        """
        A field by its name, also where it is no result of the run.
        """
    def field_on_gpu(self, /, name: str) -> Array:
        """
        A copy of a field in the memory of the run's GPU.
        """
    def live(self, /, port: SupportsIndex | None = None, address: str = "127.0.0.1", steer: bool = False) -> tuple[str, str | None]:
        """
        Serves the live page, in place of an earlier one; returns its address, and the command that brings it to another machine.
        """
    def outcome(self, /) -> tuple[str, str, str] | None:
        """
        Ending, status and message of a run that is at its end.
        """
    def particles(self, /, species: str) -> "dict[str, Array] | None":
        """
        Columns of the particles of a species.
        """
    def particles_on_gpu(self, /, species: str) -> "dict[str, Array] | None":
        """
        Copies of the columns of the particles of a species in the memory of the run's GPU.
        """
    @property
    def plan(self, /) -> list[tuple[str, str]]:
        """
        Lines of the plan: label and text.
        """
    def records(self, /) -> list[tuple[str, str, Any]]:
        """
        Results as they stand: kind, name and content of each.
        """
    def rows(self, /, first: SupportsIndex) -> list[tuple[int, float | None, list[tuple[str, str, float]]]]:
        """
        Rows from number `first` on: step, time, and names, units and values of the scalars.
        """
    def save(self, /, folder: str | PathLike[str] | None) -> Path:
        """
        Saves a checkpoint and returns its path.
        """
    def set_field(self, /, name: str, values: Any) -> None:
        """
        Sets a field of the state, from real or complex numbers of double precision in C order.
        """
    def set_field_on_gpu(self, /, name: str, values: Any) -> None:
        """
        Sets a field of the state from values in the memory of the run's GPU.
        """
    def set_particles(self, /, species: str, columns: SupportsGetItem[int, tuple[str, Any]]) -> None:
        """
        Sets columns of the particles of a species, each doubles in C order.
        """
    def set_particles_on_gpu(self, /, species: str, columns: SupportsGetItem[int, tuple[str, Any]]) -> None:
        """
        Sets columns of the particles of a species from values in the memory of the run's GPU.
        """
    @property
    def solver(self, /) -> str:
        """
        Name of the solver.
        """
    def step(self, /, n: SupportsIndex, progress: Any | None = None) -> int:
        """
        Makes steps and returns how many; `progress` is called now and then with the step, the part of the run and the seconds.
        """
    def to_end(self, /, progress: Any | None = None, pause: SupportsIndex | None = None) -> Path | None:
        """
        Runs to the end and returns the folder of the results, or nothing where it pauses after the step of this number; `progress`
        as in `step`.
        """
    @property
    def warnings(self, /) -> list[str]:
        """
        Warnings of the plan.
        """

def command(arguments: SupportsGetItem[int, str], program: SupportsGetItem[int, str]) -> int:
    """
    Carries out a command line in this process and returns its exit code; where kernels are still being compiled, the process ends
    with it. `arguments` begins with the name of the program; `program` starts the same program in another process.
    """

def restored(values: Any, name: str, title: str, unit: str, axes: SupportsGetItem[int, tuple[str, str, SupportsFloat | SupportsIndex, SupportsFloat | SupportsIndex, SupportsIndex]]) -> Array:
    """
    An array from values in C order, and what is said about it: the way back from a pickle.
    """
