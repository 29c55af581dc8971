"""Compiled part of the package."""

from os import PathLike
from typing import Any, Callable, Optional, Union

from ._axis import Axis

__version__: str

def command(arguments: list[str], program: list[str]) -> int:
    """Carries out a command line in this process and returns its exit code."""

class Array:
    """An array of the package, C order. `numpy.asarray(a)`, `numpy.from_dlpack(a)` and `torch.from_dlpack(a)` share its memory; one in the
    memory of a GPU is shared by `cupy.asarray(a)` and `torch.from_dlpack(a)`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes, slowest first."""
    @property
    def dtype(self) -> str:
        """Type of the values, as NumPy spells it."""
    @property
    def ndim(self) -> int:
        """Number of axes."""
    @property
    def size(self) -> int:
        """Number of values."""
    @property
    def name(self) -> str:
        """Name, as in files."""
    @property
    def title(self) -> str:
        """Title for people."""
    @property
    def units(self) -> str:
        """Unit of the values; empty where the problem has none."""
    @property
    def axes(self) -> tuple[Axis, ...]:
        """Axes in the order of the shape; empty where nothing is known about them."""
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Optional[tuple[int, int]] = None,
        dl_device: Optional[tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __repr__(self) -> str: ...

class PoissonPlan:
    """A plan for one grid, its sides and a method; `zellige.poisson.Plan` documents it."""

    def __init__(self, tables: str, sides: list[tuple[int, int, Any]]) -> None: ...
    def solve(self, rhs: Any, guess: Any = None) -> tuple[Array, bool, str]: ...
    @property
    def method(self) -> str: ...
    @property
    def device(self) -> str: ...

class PtychoEngine:
    """An engine between its iterations."""

    def __init__(
        self,
        tables: str,
        frames: Any,
        mask: Any,
        views: Any,
        probe: Any,
        objects: list[Any],
        *,
        phase: Any = None,
        kernel: Any = None,
        power: Optional[list[float]] = None,
        bounds: Any = None,
        first: int = 0,
    ) -> None: ...
    @property
    def device(self) -> str: ...
    def iterate(self, n: int = 1, order: Optional[list[int]] = None) -> None: ...
    def errors(self) -> Array: ...
    def write_state(self, arrays: list[Any]) -> None: ...
    def take_state(self, arrays: list[Any]) -> bool: ...
    def exit_waves(self) -> Optional[Array]: ...
    def set_exit_waves(self, exits: Any) -> None: ...
    def set_support(self, real: Any = None, fourier: Any = None) -> None: ...
    def set_views(self, views: Any) -> None: ...

class Session:
    """A run; `zellige.Run` documents it."""

    def __init__(
        self,
        file: Union[str, PathLike, None],
        json: Optional[str],
        overrides: list[str],
        device: Optional[str],
        threads: Optional[int],
        output: Union[str, PathLike, None],
        resume: Union[str, PathLike, None],
        scan: Any = None,
    ) -> None: ...
    @property
    def solver(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def plan(self) -> list[tuple[str, str]]: ...
    @property
    def warnings(self) -> list[str]: ...
    def clock(self) -> tuple[int, Optional[float]]: ...
    def outcome(self) -> Optional[tuple[str, str, str]]: ...
    def live(self, port: Optional[int] = None, address: str = "127.0.0.1", steer: bool = False) -> tuple[str, Optional[str]]: ...
    def step(self, n: int, progress: Optional[Callable[[int, float, float], None]] = None) -> int: ...
    def rows(self, first: int) -> list[tuple[int, Optional[float], list[tuple[str, str, float]]]]: ...
    def records(self) -> list[tuple[str, str, Any]]: ...
    def particles(self, species: str) -> Optional[dict[str, Array]]: ...
    def set_field(self, name: str, values: Any) -> None: ...
    def set_particles(self, species: str, columns: list[tuple[str, Any]]) -> None: ...
    def save(self, folder: Union[str, PathLike, None]) -> PathLike: ...
    def to_end(self, progress: Optional[Callable[[int, float, float], None]] = None) -> PathLike: ...
