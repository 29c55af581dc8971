"""Engines of PtyPy whose iterations are made by zellige."""

from typing import Any, Optional

import numpy as np
from ptypy.core.manager import BlockFull, BlockGradFull, BlockVanilla, Full, GradFull, Vanilla
from ptypy.engines import register
from ptypy.engines.ML import ML
from ptypy.engines.projectional import DMMixin, RAARMixin, _ProjectionEngine
from ptypy.engines.stochastic import EPIEMixin, SDRMixin, _StochasticEngine

from ._base import Zellige
from ._problem import refused

__all__ = ["DM_zellige", "EPIE_zellige", "ML_zellige", "RAAR_zellige", "SDR_zellige"]

#: Scans whose views have exit waves, and those that have none.
_WITH_EXITS = [Full, Vanilla, BlockVanilla, BlockFull]
_WITHOUT_EXITS = [*_WITH_EXITS, GradFull, BlockGradFull]


class _Projection(Zellige, _ProjectionEngine):
    """Difference map and RAAR."""

    SUPPORTED_MODELS = _WITH_EXITS

    def _bounds(self) -> np.ndarray:
        """One bound for all, or one for each scan by its brightest frame."""
        p = self.p
        if p.fourier_power_bound is not None:
            return np.full(len(self._problem.names), float(p.fourier_power_bound))
        of_scan: dict = {}
        for storage in self.di.storages.values():
            own = 0.25 * p.fourier_relax_factor**2 * storage.pbound_stub
            of_scan[storage.label] = max(own, of_scan.get(storage.label, own))
        return np.array([of_scan[label] for label in self._problem.labels], dtype=float)

    def _table(self) -> dict:
        p = self.p
        return {
            "probe_update_start": p.probe_update_start,
            "overlap_passes": p.overlap_max_iterations,
            "overlap_tolerance": p.overlap_converge_factor,
            "object_first": p.update_object_first,
            "object_inertia": p.object_inertia,
            # The weight there is over the layers of all probes, here over those of one.
            "probe_inertia": p.probe_inertia * len(self.pr.storages),
            "object_smooth": p.obj_smooth_std,
            "object_clip": None if p.clip_object is None else [float(limit) for limit in p.clip_object],
            "log_likelihood": p.compute_log_likelihood,
        }


@register()
class DM_zellige(_Projection, DMMixin):
    """
    The difference map by zellige.

    Defaults:

    [name]
    default = DM_zellige
    type = str
    help =
    doc =

    """

    PTYPY = "DM"

    def __init__(self, ptycho_parent: Any, pars: Any = None):
        _ProjectionEngine.__init__(self, ptycho_parent, pars)
        DMMixin.__init__(self, self.p.alpha)
        ptycho_parent.citations.add_article(**self.article)

    def _table(self) -> dict:
        return {"name": "DM", "alpha": self.alpha, **super()._table()}


@register()
class RAAR_zellige(_Projection, RAARMixin):
    """
    RAAR by zellige.

    Defaults:

    [name]
    default = RAAR_zellige
    type = str
    help =
    doc =

    """

    PTYPY = "RAAR"

    def __init__(self, ptycho_parent: Any, pars: Any = None):
        _ProjectionEngine.__init__(self, ptycho_parent, pars)
        RAARMixin.__init__(self, self.p.beta)

    def _table(self) -> dict:
        return {"name": "RAAR", "beta": self.beta, **super()._table()}


class _Sweep(Zellige, _StochasticEngine):
    """Engines that go from view to view. In sweeps of PtyPy's that refine positions a view moves before it is used: these are its own."""

    #: Views in the order of the last sweep.
    _names: list
    #: Errors of the last sweep, if it was PtyPy's.
    _swept: Optional[dict] = None

    def engine_iterate(self, num: int = 1) -> dict:
        """Makes iterations, in orders that are drawn as PtyPy draws them."""
        self._random, self._names = np.random.default_rng(), sorted(self.di.views)
        return super().engine_iterate(num)

    def _advance(self, count: int) -> None:
        self._random.shuffle(self._names)
        if self._refines():
            self._sweep()
            return
        self._swept = None
        number = {name: j for j, name in enumerate(self._problem.names)}
        self._work.iterate(count, [number[name] for name in self._names if name in number])

    def _sweep(self) -> None:
        """A sweep by PtyPy's own code, in its containers."""
        self._pull()
        if self._keeps_exits():
            self._put_exits_back()
        self._swept = {}
        for name in self._names:
            view = self.di.views[name]
            if not view.active:
                continue
            self.position_update_local(view)
            self._problem.move_modes(view)
            self._swept[name] = self.fourier_update(view)
            products = {pod_name: pod.object * pod.probe for pod_name, pod in view.pods.items()}
            self.object_update(view, products)
            self.probe_update(view, products)
        self._work.set_views(self._problem.addresses())
        self._work.take_state(self._problem.state())
        exits = self._problem.exits() if self._keeps_exits() else None
        if exits is not None:
            self._work.set_exit_waves(exits)
        self._work.number_from(self.curiter + 1)

    def _refine(self) -> None:
        """Nothing: positions were refined in the sweep."""

    def _errors(self) -> dict:
        return super()._errors() if self._swept is None else self._swept

    def _pieces(self, num: int) -> list:
        return [1] * num

    def _supports(self) -> list:
        """Nothing: PtyPy's engines of this kind hold probes to no support."""
        return [None, None]


@register()
class EPIE_zellige(_Sweep, EPIEMixin):
    """
    ePIE by zellige.

    Defaults:

    [name]
    default = EPIE_zellige
    type = str
    help =
    doc =

    """

    PTYPY = "EPIE"
    SUPPORTED_MODELS = _WITHOUT_EXITS

    def __init__(self, ptycho_parent: Any, pars: Any = None):
        _StochasticEngine.__init__(self, ptycho_parent, pars)
        EPIEMixin.__init__(self, self.p.alpha, self.p.beta)
        ptycho_parent.citations.add_article(**self.article)

    def _keeps_exits(self) -> bool:
        return False

    def _table(self) -> dict:
        return {
            "name": "ePIE",
            "probe_step": self._pr_b,
            "object_step": self._ob_b,
            "object_norm_is_global": self._object_norm_is_global or None,
            "probe_update_start": self.p.probe_update_start,
            "log_likelihood": self.p.compute_log_likelihood,
        }


@register()
class SDR_zellige(_Sweep, SDRMixin):
    """
    Semi-implicit relaxed Douglas-Rachford by zellige.

    Defaults:

    [name]
    default = SDR_zellige
    type = str
    help =
    doc =

    """

    PTYPY = "SDR"
    SUPPORTED_MODELS = _WITH_EXITS

    def __init__(self, ptycho_parent: Any, pars: Any = None):
        _StochasticEngine.__init__(self, ptycho_parent, pars)
        SDRMixin.__init__(self, self.p.sigma, self.p.tau, self.p.beta_probe, self.p.beta_object)
        ptycho_parent.citations.add_article(**self.article)

    def _keeps_exits(self) -> bool:
        return self._c != 1 or self._a + self._b != 1

    def _table(self) -> dict:
        return {
            "name": "SDR",
            "sigma": self.sigma,
            "tau": self.tau,
            "probe_step": self.beta_probe,
            "object_step": self.beta_object,
            "probe_update_start": self.p.probe_update_start,
            "log_likelihood": self.p.compute_log_likelihood,
        }


@register()
class ML_zellige(Zellige, ML):
    """
    Maximum likelihood by zellige.

    Defaults:

    [name]
    default = ML_zellige
    type = str
    help =
    doc =

    """

    PTYPY = "ML"
    SUPPORTED_MODELS = _WITHOUT_EXITS

    def _keeps_exits(self) -> bool:
        return False

    def _put_exits_back(self) -> None:
        """Leaves exit waves as they are: ML has none."""

    def engine_iterate(self, num: int = 1) -> dict:
        """Makes iterations; PtyPy is told the brightness of the frames that the last one goes by."""
        if self.p.floating_intensities and self.curiter + num >= self.numiter:
            if num > 1:
                super().engine_iterate(num - 1)
            self.ptycho.runtime["float_intens"] = self._problem.brightness(self.p.ML_type.lower() == "poisson")
            num = 1
        return super().engine_iterate(num)

    def _table(self) -> dict:
        p = self.p
        if p.ML_type.lower() == "euclid" and p.floating_intensities:
            raise refused(self, "floating_intensities = True with ML_type = 'euclid'", "False")
        if p.poly_line_coeffs != "quadratic":
            raise refused(self, f"poly_line_coeffs = {p.poly_line_coeffs!r}", "'quadratic'")
        if p.intensity_renormalization not in (None, 1, 1.0):
            raise refused(self, f"intensity_renormalization = {p.intensity_renormalization}", "1")
        if p.smooth_gradient < 0:
            raise refused(self, f"smooth_gradient = {p.smooth_gradient}", "0 and more")
        return {
            "name": "ML",
            "noise": p.ML_type.lower(),
            "floating_intensities": p.floating_intensities,
            "smoothness": p.reg_del2_amplitude if p.reg_del2 else None,
            "smooth_gradient": p.smooth_gradient,
            "smooth_gradient_decay": 1.0 - p.smooth_gradient_decay,
            "scale_preconditioner": p.scale_precond,
            "probe_scale": p.scale_probe_object,
            "probe_update_start": p.probe_update_start,
            "wavefield_preconditioner": p.wavefield_precond,
            "wavefield_object_damping": p.wavefield_delta_object if p.wavefield_precond else None,
            "wavefield_probe_damping": p.wavefield_delta_probe if p.wavefield_precond else None,
        }
