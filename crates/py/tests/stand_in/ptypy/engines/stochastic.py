"""Bases of the engines that go from view to view."""

from .base import PositionCorrectionEngine


class _StochasticEngine(PositionCorrectionEngine):
    pass


class EPIEMixin:
    def __init__(self, alpha, beta):
        self._pr_b, self._ob_b, self.article = alpha, beta, {}


class SDRMixin:
    def __init__(self, sigma, tau, beta_probe, beta_object):
        self.sigma, self.tau, self.beta_probe, self.beta_object = sigma, tau, beta_probe, beta_object
        self._a, self._b, self._c, self.article = 1 - tau * (1 + sigma), tau, 1 + sigma, {}
