"""Parameters and a few functions."""

import numpy as np

from . import parallel  # noqa: F401


class Param(dict):
    """A dict whose keys are attributes."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self[name] = value


def abs2(values):
    return values.real**2 + values.imag**2


def norm(values):
    return float(np.linalg.norm(values))


def mass_center(values):
    return np.array([(values * grid).sum() / values.sum() for grid in np.indices(values.shape)])
