"""Results of a run under way by their names, and its rows."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Iterator

import numpy as np

from ._zellige import Array
from .errors import ArgumentError, InputError, UnknownNameError

if TYPE_CHECKING:
    from .run import Run


def underscored(name: str) -> str:
    """`E_x` for `Ex`."""
    return f"{name[0]}_{name[1]}" if len(name) == 2 and name[0] in "EBJ" and name[1] in "xyz" else name


#: Beginnings of columns of particles that have a shorter name, without their axis.
_SHORT = {"": "position", "u": "momentum", "v": "velocity"}


def column(name: Any) -> Any:
    """`momentum_x` for `ux`, `position_x` for `x`, `velocity_x` for `vx`."""
    if isinstance(name, str) and name[-1:] in ("x", "y", "z") and name[:-1] in _SHORT:
        return f"{_SHORT[name[:-1]]}_{name[-1]}"
    return name


class Fields(Mapping):
    """Results of a run by name, as they stand after the last step; computed once a step, when the first one is asked for.

    `fields[name] = values` sets a field as `Run.set_field` does, and so `fields[name] *= 0.5` changes it. The arrays themselves are
    read-only: they keep the values of their step, and the run would not see what is written into them. `numpy.array(fields[name])`
    is a copy that can be written, and then set.

    Names are those of the files (`E_x`, `rho`, `temperature`, `object`); `Ex` is understood as `E_x`. Of a plasma, fields that are
    zero everywhere, or that the input does not ask for, are not listed; by their names they are there until it has ended.
    """

    def __init__(self, run: "Run", kind: str):
        self._run, self._kind = run, kind

    def _all(self) -> dict:
        return self._run._records(self._kind)

    def __getitem__(self, name: str):
        found = self._all()
        if isinstance(name, str):
            alike = [k for k in found if k == name] or [k for k in found if k.replace("_", "") == name.replace("_", "")]
            if len(alike) == 1:
                return found[alike[0]]
            other = self._run._other(underscored(name)) if self._kind == "field" else None
            if other is not None:
                return other
        raise UnknownNameError(f"no {self._kind} `{name}` (there are: {', '.join(found) or 'none'})")

    def __setitem__(self, name: str, values: Any) -> None:
        if self._kind != "field":
            raise ArgumentError(f"a {self._kind} is a result, which cannot be set (allowed: fields and particles)")
        self._run.set_field(name, values)

    def __contains__(self, name: object) -> bool:
        try:
            self[name]  # type: ignore[index]
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return f"<{len(self)} {self._kind}s: {', '.join(self)}>"


class Particles(dict):
    """Particles of a species by column, of the step that they were taken at: one-dimensional Arrays with units, read-only on the host.

    Names are `position_x`, `momentum_x`, `velocity_x`, `weighting`, ..; `x`, `ux` and `vx` are understood. `particles[name] = values`
    sets a column as `Run.set_particles` does, so `particles["ux"] += 1` kicks them; all columns are then taken anew. `update` sets
    several at once: after positions alone, particles that come to lie elsewhere have another order. Once the run has gone on, or its
    particles were set otherwise, these stay as they were and cannot be assigned to. A `copy()` is an ordinary dict.
    """

    def __init__(self, run: "Run", species: str, on_gpu: bool):
        super().__init__()
        self._run, self._species, self._on_gpu = run, species, on_gpu
        self._take()

    def _take(self) -> None:
        # Memory of the old ones first: where it is short, no second set of all columns fits.
        super().clear()
        super().update(self._run._particles(self._species, self._on_gpu))
        self._moment = self._run._moment_of_particles(self._species)

    def _set(self, columns: Mapping) -> None:
        if self._moment != self._run._moment_of_particles(self._species):
            call = "particles_on_gpu" if self._on_gpu else "particles"
            raise InputError(
                f"these particles of `{self._species}` are of step {self._moment[0]}, and those of the run are others by now",
                f'take them anew, `run.{call}("{self._species}")`; `run.set_particles` sets what has the order of the run',
            )
        self._run.set_particles(self._species, columns)
        self._take()

    def __missing__(self, name: Any) -> Array:
        if column(name) != name and column(name) in self:
            return self[column(name)]
        raise UnknownNameError(f"no column `{name}` of the particles `{self._species}` (there are: {', '.join(self)})")

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or super().__contains__(column(name))

    def get(self, name: Any, default: Any = None) -> Any:
        """A column, or the default where there is none of that name."""
        return self[name] if name in self else default

    def __setitem__(self, name: str, values: Any) -> None:
        self._set({name: values})

    def update(self, columns: Mapping = {}, /, **more: Any) -> None:  # type: ignore[override]
        """Set several columns at once, as `Run.set_particles` does."""
        if not isinstance(columns, Mapping):
            raise ArgumentError(f"columns are of type {type(columns).__name__} (allowed: a dict of arrays by column)")
        self._set({**columns, **more})

    def __ior__(self, columns: Mapping) -> "Particles":  # type: ignore[override,misc]
        self.update(columns)
        return self

    def _stays(self, *_: Any) -> Any:
        raise ArgumentError("a column of particles cannot be taken away or added (allowed: new values; `copy()` is an ordinary dict)")

    __delitem__ = pop = popitem = clear = setdefault = _stays

    def __reduce__(self) -> tuple:
        return dict, (self.copy(),)

    def __repr__(self) -> str:
        return f"<particles {self._species}: {', '.join(self)}>"


class Rows:
    """Columns that grow row by row, seen without a copy."""

    def __init__(self):
        self._count, self._columns = 0, {}

    def add(self, row: Mapping) -> None:
        for name in row:
            if name not in self._columns:
                self._columns[name] = np.full(max(64, self._count + 1), math.nan)
        for name, column in self._columns.items():
            if self._count == len(column):
                self._columns[name] = column = np.concatenate([column, np.full(len(column), math.nan)])
            column[self._count] = row.get(name, math.nan)
        self._count += 1

    def columns(self) -> dict:
        views = {name: column[: self._count] for name, column in self._columns.items()}
        for view in views.values():
            view.flags.writeable = False
        return views
