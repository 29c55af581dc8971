"""Engines of PtyPy whose iterations are made by zellige."""

import json
from typing import Any, Optional

import numpy as np
from ptypy import utils as u
from ptypy.core.manager import BlockFull, BlockGradFull, BlockVanilla, Full, GradFull, Vanilla
from ptypy.engines import register
from ptypy.engines.base import PositionCorrectionEngine
from ptypy.engines.ML import ML
from ptypy.engines.projectional import DMMixin, RAARMixin, _ProjectionEngine
from ptypy.engines.stochastic import EPIEMixin, SDRMixin, _StochasticEngine
from ptypy.utils import parallel

from .._zellige import PtychoEngine
from ._problem import Problem, refused

__all__ = ["DM_zellige", "EPIE_zellige", "ML_zellige", "RAAR_zellige", "SDR_zellige"]

#: Scans whose views have exit waves, and those that have none.
_WITH_EXITS = [Full, Vanilla, BlockVanilla, BlockFull]
_WITHOUT_EXITS = [*_WITH_EXITS, GradFull, BlockGradFull]


class _Zellige:
    """
    What the engines have in common.

    Defaults:

    [device]
    default = 'auto'
    type = str
    help = Device of zellige
    doc = One of 'auto' (a GPU if there is one), 'cpu', 'cuda' or 'cuda:N'.

    [threads]
    default = 0
    type = int
    lowlim = 0
    help = Threads of zellige on the CPU
    doc = If 0, as many as there are cores.

    """

    #: PtyPy's engine of the same algorithm.
    PTYPY = ""
    _work: Optional[PtychoEngine] = None
    _problem: Optional[Problem] = None

    def engine_initialize(self) -> None:
        """Readies position refinement; everything else waits for the frames."""
        if parallel.size > 1:
            raise refused(self, f"{parallel.size} processes of MPI", "one process", "start PtyPy without MPI: zellige takes every core")
        PositionCorrectionEngine.engine_initialize(self)
        self._work = self._problem = None

    def engine_prepare(self) -> None:
        """Sets the engine up on the frames that there are."""
        if self._work is not None:
            if not self.ptycho.new_data:
                return
            self._put_exits_back()
        self._problem = problem = Problem(self)
        tables = {
            "ptycho": {
                "compatibility": "ptypy",
                "precision": "f64" if self.ptycho.CType().itemsize == 16 else "f32",
                "scan": [{"name": "arrays", "file": "arrays"}],
                "engine": [{key: value for key, value in self._table().items() if value is not None}],
            },
            "run": {"device": self.p.device, "threads": self.p.threads},
        }
        storages = list(self.di.storages.values())
        power = [sum(s.tot_power for s in storages), max(s.max_power for s in storages), np.mean([s.mean_power for s in storages])]
        self._written = problem.probe(), problem.object()
        self._work = PtychoEngine(
            json.dumps(tables),
            problem.frames,
            problem.mask,
            problem.views,
            *self._written,
            phase=problem.phase,
            kernel=problem.kernel,
            power=[float(p) for p in power],
            bounds=self._bounds(),
            first=self.curiter,
        )
        self._work.set_support(*self._supports())
        exits = problem.exits()
        if exits is not None and self._keeps_exits():
            self._work.set_exit_waves(exits)
        # The engine has them, in its own order.
        problem.frames = problem.mask = None

    def engine_iterate(self, num: int = 1) -> dict:
        """Makes iterations, and gives the errors of the views after the last one."""
        self._take_changes()
        for count in self._pieces(num):
            self._work.iterate(count, self._order())
            self.curiter += count - 1
            self._centre()
            self._refine()
            self.curiter += 1
        self._pull()
        return dict(zip(self._problem.names, np.asarray(self._work.errors())))

    def engine_finalize(self) -> None:
        """Gives exit waves and positions back to PtyPy."""
        self._put_exits_back()
        PositionCorrectionEngine.engine_finalize(self)
        self._work = self._problem = None

    def _table(self) -> dict:
        """The engine as an entry of zellige's input."""
        raise NotImplementedError

    def _bounds(self) -> Optional[np.ndarray]:
        """Bounds on the deviation of the moduli of each view, for engines that have them."""
        return None

    def _keeps_exits(self) -> bool:
        return True

    def _order(self) -> Optional[list]:
        """Order of the views in the next iteration."""
        return None

    def _supports(self) -> list:
        """Pixels where the probes may be, in real and Fourier space: the same for all, which have one shape."""
        if self._probe_fourier_support and self._problem.kernel is None:
            raise refused(self, f"probe_fourier_support = {self.p.probe_fourier_support}", "None in the far field")
        found = [next(iter(masks.values()), None) for masks in (self._probe_support, self._probe_fourier_support)]
        return [None if mask is None else np.ascontiguousarray(mask[0], dtype=np.uint8) for mask in found]

    def _pieces(self, num: int) -> list:
        """Numbers of iterations between which nothing of PtyPy's has to be done."""
        alone = self.p.get("probe_center_tol") is not None or self.do_position_refinement
        return [1] * num if alone else [num]

    def _pull(self) -> None:
        """Writes probes and objects into PtyPy's containers."""
        self._problem.put(*self._work.state())
        self._written = self._problem.probe(), [o.copy() for o in self._problem.object()]

    def _push(self) -> None:
        """Takes probes and objects from PtyPy's containers."""
        self._written = self._problem.probe(), [o.copy() for o in self._problem.object()]
        self._work.set_state(*self._written)

    def _take_changes(self) -> None:
        """Takes what others have written into PtyPy's containers since the last iteration."""
        probe, objects = self._written
        now = self._problem.object()
        if any(a.shape != b.shape for a, b in zip(now, objects)):
            raise refused(self, "the object has another size than before", "new sizes with new data", "call `prepare` with new data")
        if not np.array_equal(self._problem.probe(), probe) or not all(map(np.array_equal, now, objects)):
            self._push()

    def _put_exits_back(self) -> None:
        """Writes exit waves into PtyPy's containers, for the engine that comes next."""
        if self._work is None:
            return
        waves = self._work.exit_waves()
        self._problem.put_exits(None if waves is None else np.asarray(waves))

    def _centre(self) -> None:
        """Lets PtyPy move probes that have left the middle, as it does itself: seldom."""
        tolerance = self.p.get("probe_center_tol")
        if tolerance is None:
            return
        self._pull()
        probe = next(iter(self.pr.storages.values()))
        off = u.mass_center(u.abs2(probe.data).sum(0)) - np.asarray(probe.shape[-2:]) // 2
        if u.norm(off) < tolerance:
            return
        self._put_exits_back()
        self.center_probe()
        self._push()
        if self._keeps_exits():
            self._work.set_exit_waves(self._problem.exits())

    def _refine(self) -> None:
        """Lets PtyPy refine the positions, on probes and objects as they are."""
        if not self.do_position_refinement:
            return
        pars = self.p.position_refinement
        if pars.stop > self.curiter >= pars.start and self.curiter % pars.interval == 0:
            self._pull()
            self.position_update()
            self._problem.views = self._problem.addresses()
            self._work.set_views(self._problem.views)


class _Projection(_Zellige, _ProjectionEngine):
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


class _Sweep(_Zellige, _StochasticEngine):
    """Engines that go from view to view."""

    def engine_initialize(self) -> None:
        super().engine_initialize()
        if self.do_position_refinement:
            raise refused(self, "position_refinement, which these engines do within a sweep", "False")

    def _pieces(self, num: int) -> list:
        return [1] * num

    def _supports(self) -> list:
        """Nothing: PtyPy's engines of this kind hold probes to no support."""
        return [None, None]

    def _order(self) -> list:
        """A random order, drawn as PtyPy draws it."""
        number = {name: j for j, name in enumerate(self._problem.names)}
        names = sorted(number)
        np.random.default_rng().shuffle(names)
        return [number[name] for name in names]


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
        if self.p.object_norm_is_global:
            raise refused(self, "object_norm_is_global = True", "False")
        return {
            "name": "ePIE",
            "probe_step": self._pr_b,
            "object_step": self._ob_b,
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
class ML_zellige(_Zellige, ML):
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
        if p.ML_type.lower() not in ("gaussian", "poisson"):
            raise refused(self, f"ML_type = {p.ML_type!r}", "'gaussian', 'poisson'")
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
