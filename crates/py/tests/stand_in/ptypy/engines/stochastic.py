"""Bases of the engines that go from view to view, with the pieces of ePIE's sweep for one mode of the object."""

import numpy as np

from ptypy import utils as u

from .base import PositionCorrectionEngine


class _StochasticEngine(PositionCorrectionEngine):
    def position_update_local(self, view):
        """Moves the first mode of a view as the parameters say."""
        first = view.pod.ob_view
        first.coord = first.coord + first.storage.psize * self.p.position_refinement.by
        first.storage.update_views(first)

    def fourier_update(self, view):
        waves = {name: pod.geometry.propagator.fw(pod.probe * pod.object) for name, pod in view.pods.items()}
        modulus, mask = np.sqrt(sum(u.abs2(wave) for wave in waves.values())), view.pod.ma_view.data
        factor = np.where(mask, np.sqrt(view.data) / (modulus + 1e-10), 1.0)
        for name, pod in view.pods.items():
            pod.exit = pod.geometry.propagator.bw(factor * waves[name])
        return np.array([(mask * (modulus - np.sqrt(view.data)) ** 2).sum() / mask.sum(), 0.0, 0.0])

    def object_update(self, view, products):
        largest = sum(u.abs2(pod.probe) for pod in view.pods.values()).max()
        for name, pod in view.pods.items():
            pod.object += self._ob_b * pod.probe.conj() * (pod.exit - products[name]) / largest

    def probe_update(self, view, products):
        """The object counts once for every mode of the probe, but for a whole object."""
        if self.p.probe_update_start > self.curiter:
            return
        whole = u.abs2(view.pod.ob_view.storage.data).sum(0).max()
        largest = whole if self._object_norm_is_global else sum(u.abs2(pod.object) for pod in view.pods.values()).max()
        for name, pod in view.pods.items():
            pod.probe += self._pr_b * pod.object.conj() * (pod.exit - products[name]) / largest


class EPIEMixin:
    def __init__(self, alpha, beta):
        self._pr_b, self._ob_b, self.article = alpha, beta, {}
        self._object_norm_is_global = self.p.object_norm_is_global


class SDRMixin:
    def __init__(self, sigma, tau, beta_probe, beta_object):
        self.sigma, self.tau, self.beta_probe, self.beta_object = sigma, tau, beta_probe, beta_object
        self._a, self._b, self._c, self.article = 1 - tau * (1 + sigma), tau, 1 + sigma, {}
