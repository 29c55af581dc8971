"""What drives an engine: initialize, prepare, iterate, finalize."""

import numpy as np

from ptypy import utils as u

#: Parameters of all engines here, which PtyPy reads from their documentation.
DEFAULTS = {
    "name": "", "numiter": 20, "probe_support": 0.7, "probe_fourier_support": None, "device": "cpu", "threads": 2,
    "position_refinement": False, "probe_center_tol": None, "compute_log_likelihood": True, "probe_update_start": 2,
    "alpha": 1.0, "beta": 0.75, "sigma": 1, "tau": 1, "beta_probe": 0.1, "beta_object": 0.9, "object_norm_is_global": False,
    "update_object_first": True, "overlap_converge_factor": 0.05, "overlap_max_iterations": 10, "probe_inertia": 1e-9,
    "object_inertia": 1e-4, "fourier_power_bound": None, "fourier_relax_factor": 0.05, "obj_smooth_std": None, "clip_object": None,
    "ML_type": "gaussian", "floating_intensities": False, "intensity_renormalization": 1.0, "reg_del2": False,
    "reg_del2_amplitude": 0.01, "smooth_gradient": 0.0, "smooth_gradient_decay": 0.0, "scale_precond": False,
    "scale_probe_object": 1.0, "poly_line_coeffs": "quadratic", "wavefield_precond": False, "wavefield_delta_object": 0.1,
    "wavefield_delta_probe": 0.1,
}  # fmt: skip


class BaseEngine:
    SUPPORTED_MODELS = []

    def __init__(self, ptycho, pars=None):
        self.ptycho, self.p = ptycho, u.Param({**DEFAULTS, "name": type(self).__name__, **(pars or {})})
        self.curiter, self.error = 0, None

    def initialize(self):
        self.di, self.ma, self.pr = self.ptycho.diff, self.ptycho.mask, self.ptycho.probe
        self.ob, self.ex, self.pods = self.ptycho.obj, self.ptycho.exit, self.ptycho.pods
        for model in self.ptycho.model.scans.values():
            if type(model) not in self.SUPPORTED_MODELS:
                raise RuntimeError(f"{type(model).__name__} is no model of {self.p.name}")
        self._probe_support, self._probe_fourier_support = {}, {}
        self.engine_initialize()

    def prepare(self):
        for part, masks in ((self.p.probe_support, self._probe_support), (self.p.probe_fourier_support, self._probe_fourier_support)):
            for s in self.pr.storages.values() if part is not None else ():
                y, x = np.mgrid[: s.shape[1], : s.shape[2]] - (s.shape[1] - 1) / 2
                masks[s.ID] = np.broadcast_to(np.pi * (y**2 + x**2) < part * s.data[0].size, s.shape)
        self.engine_prepare()

    def iterate(self, num=1):
        before = self.curiter
        self.error = self.engine_iterate(num)
        assert self.curiter == before + num, "an engine counts its iterations"
        self.ptycho.runtime.iter_info.append(np.mean(list(self.error.values()), axis=0))

    def finalize(self):
        self.engine_finalize()


class PositionCorrectionEngine(BaseEngine):
    def engine_initialize(self):
        self.do_position_refinement = bool(self.p.position_refinement)

    def engine_finalize(self):
        pass
