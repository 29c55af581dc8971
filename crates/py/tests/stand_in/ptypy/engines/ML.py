"""Base of the engine of maximum likelihood."""

from .base import PositionCorrectionEngine


class ML(PositionCorrectionEngine):
    pass
