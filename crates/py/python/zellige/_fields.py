"""Results of a run under way by their names, and its rows."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Iterator

import numpy as np

from .errors import UnknownNameError

if TYPE_CHECKING:
    from .run import Run


def underscored(name: str) -> str:
    """`E_x` for `Ex`."""
    return f"{name[0]}_{name[1]}" if len(name) == 2 and name[0] in "EBJ" and name[1] in "xyz" else name


class Fields(Mapping):
    """Results of a run by name, as they stand after the last step. They are computed once, when the first one is asked for: what is
    written into them stays until the next step.

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
