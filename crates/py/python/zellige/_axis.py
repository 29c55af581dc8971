"""Axes of arrays."""

from typing import NamedTuple

import numpy as np


class Axis(NamedTuple):
    """A regular axis: value `i` lies at `origin + i * spacing`."""

    #: Name, `x` for example.
    name: str
    #: Unit of the coordinates; empty where the problem has none.
    unit: str
    #: Coordinate of the first value.
    origin: float
    #: Distance from one value to the next.
    spacing: float
    #: Number of values.
    size: int

    @property
    def coordinates(self) -> np.ndarray:
        """Coordinates of the values, shape (size,)."""
        return self.origin + self.spacing * np.arange(self.size)

    @property
    def label(self) -> str:
        """Name and unit for a plot."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name
