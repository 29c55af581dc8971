"""Plasmas, rarefied gases, ptychography and Poisson's equation, on every CPU core and on NVIDIA GPUs.

* `zellige.poisson.solve(rho, ...)` solves on arrays, `zellige.poisson.Plan` many times on one grid;
* `zellige.Run("in.toml")` runs an input step by step, with its fields and particles as arrays;
* `zellige.ptycho.reconstruct(frames, positions, ...)` finds object and probe of a scan;
* `import zellige.ptypy` lets engines of PtyPy compute here;
* `zellige.load("out/dipole")` opens the results of a run;
* on a command line, `zellige run in.toml` is the program itself.

Arrays are in C order with x fastest: a field on M nodes in x and N in y has the shape (N, M).
"""

import importlib
import os
import sys
from typing import TYPE_CHECKING

from ._zellige import __version__
from .errors import DeviceError, Error, FileError, InputError, Interrupted, NumericsError, OutOfMemoryError, VerdictWarning

# Where the wheels of NVRTC and cuFFT are looked for: beside this package, also where the environment was not activated.
os.environ.setdefault("VIRTUAL_ENV", sys.prefix)

if TYPE_CHECKING:
    from . import poisson, ptycho
    from ._axis import Axis
    from ._zellige import Array
    from .results import Results, load
    from .run import Run

__all__ = [
    "Array",
    "Axis",
    "DeviceError",
    "Error",
    "FileError",
    "InputError",
    "Interrupted",
    "NumericsError",
    "OutOfMemoryError",
    "Results",
    "Run",
    "VerdictWarning",
    "__version__",
    "load",
    "poisson",
    "ptycho",
]

# Modules of names that are imported once they are asked for: the command needs no NumPy, and starts sooner without it.
_HOME = {"Array": "_zellige", "Axis": "_axis", "Results": "results", "load": "results", "Run": "run"}


def __getattr__(name: str):
    if name in ("poisson", "ptycho"):
        return importlib.import_module(f"zellige.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(f"zellige.{_HOME[name]}"), name)
    raise AttributeError(f"module 'zellige' has no attribute '{name}' (it has {', '.join(__all__)})")


def __dir__() -> list[str]:
    return __all__
