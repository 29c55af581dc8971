"""Bases of the projection engines."""

from .base import PositionCorrectionEngine


class _ProjectionEngine(PositionCorrectionEngine):
    pass


class DMMixin:
    def __init__(self, alpha):
        self.alpha, self.article = alpha, {}


class RAARMixin:
    def __init__(self, beta):
        self.beta, self.article = beta, {}
