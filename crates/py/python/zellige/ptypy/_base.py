"""What engines of PtyPy that compute with zellige have in common."""

import json
from typing import Optional

import numpy as np
from ptypy import utils as u
from ptypy.engines.base import PositionCorrectionEngine
from ptypy.utils import parallel

from .._zellige import PtychoEngine
from ._problem import Problem, refused

__all__ = ["Zellige"]


class Zellige:
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
        self._work = PtychoEngine(
            json.dumps(tables),
            problem.frames,
            problem.mask,
            problem.views,
            problem.probe(),
            problem.object(),
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
            self._advance(count)
            self.curiter += count - 1
            self._centre()
            self._refine()
            self.curiter += 1
        self._pull()
        return self._errors()

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

    def _supports(self) -> list:
        """Pixels where the probes may be, in real and Fourier space: the same for all, which have one shape."""
        if self._probe_fourier_support and self._problem.kernel is None:
            raise refused(self, f"probe_fourier_support = {self.p.probe_fourier_support}", "None in the far field")
        found = [next(iter(masks.values()), None) for masks in (self._probe_support, self._probe_fourier_support)]
        return [None if mask is None else np.ascontiguousarray(mask[0], dtype=np.uint8) for mask in found]

    def _advance(self, count: int) -> None:
        """Makes iterations between which nothing of PtyPy's has to be done."""
        self._work.iterate(count)

    def _errors(self) -> dict:
        """Errors of the views after the last iteration."""
        return dict(zip(self._problem.names, np.asarray(self._work.errors())))

    def _pieces(self, num: int) -> list:
        """Numbers of iterations between which nothing of PtyPy's has to be done."""
        alone = self.p.get("probe_center_tol") is not None or self.do_position_refinement
        return [1] * num if alone else [num]

    def _pull(self) -> None:
        """Writes probes and objects into PtyPy's containers."""
        self._problem.fill(self._work.write_state)

    def _take_changes(self) -> None:
        """Takes what others have written into PtyPy's containers since the last iteration."""
        if self._problem.reshaped():
            raise refused(self, "the object has another size than before", "new sizes with new data", "call `prepare` with new data")
        self._work.take_state(self._problem.state())

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
        self._work.take_state(self._problem.state())
        if self._keeps_exits():
            self._work.set_exit_waves(self._problem.exits())

    def _refine(self) -> None:
        """Lets PtyPy refine the positions, on probes and objects as they are."""
        if self._refines():
            self._pull()
            self.position_update()
            self._work.set_views(self._problem.moved())

    def _refines(self) -> bool:
        """Returns True if positions are refined in this iteration."""
        if not self.do_position_refinement:
            return False
        pars = self.p.position_refinement
        return pars.stop > self.curiter >= pars.start and self.curiter % pars.interval == 0
