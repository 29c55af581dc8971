"""PtyPy's containers as the arrays of one problem, and the way back."""

from typing import Any, Callable, Optional

import numpy as np

from ..errors import InputError

__all__ = ["Problem", "refused"]


def refused(engine: Any, what: str, allowed: str, hint: Optional[str] = None) -> InputError:
    """Error for something of PtyPy that the engines here cannot do."""
    return InputError(f"{engine.p.name}: {what} (allowed: {allowed})", hint or f"take PtyPy's own engine, `{engine.PTYPY}`")


class _Storages:
    """Storages of a container, by number in their order."""

    def __init__(self, container: Any):
        self.all = list(container.storages.values())
        self._number = {storage.ID: number for number, storage in enumerate(self.all)}

    def number(self, view: Any) -> int:
        return self._number[view.storage.ID]


class Problem:
    """Frames, masks and places of all active views of an engine.

    Views come by their frames' storages and layers, so that frames are those of the container itself where it is one storage.

    Attributes
    ----------
    names : list of str
        Identifiers of PtyPy's views of the frames.
    views : array, shape (n, 4)
        Number of the probe, number of the object, first row and column, of each view.
    labels : list of str
        Scan of each view.
    frames, mask : arrays
        Counts and pixels that count, (n, rows, columns).
    phase, kernel : array or None
        Phase of the sample plane (far field) or kernel of the propagation (near field), as PtyPy's propagator has it.
    """

    def __init__(self, engine: Any):
        self._engine = engine
        self.probes, self.objects = _Storages(engine.pr), _Storages(engine.ob)
        self._probe, self._object = self.probes.all, self.objects.all
        self._shapes = [s.data.shape for s in self._storages()]
        self._views = []
        frames, masks = [], []
        for storage in engine.di.storages.values():
            own = sorted((view for view in storage.views if view.active), key=lambda view: view.dlayer)
            if own:
                self._views += own
                frames.append(_layers(storage.data, [view.dlayer for view in own]))
                masks.append(self._masks(own))
        if not self._views:
            raise refused(engine, "there are no frames yet", "at least one frame", "raise `min_frames_for_recon` of PtyPy's parameters")
        self.names = [view.ID for view in self._views]
        self.labels = [view.storage.label for view in self._views]
        self._alike(frames)
        self.frames = np.ascontiguousarray(_joined(frames), dtype=np.float32)
        self.mask = np.ascontiguousarray(_joined(masks)).astype(np.uint8, copy=False)
        self._pods = [self._paired(view) for view in self._views]
        self.views = self.addresses()
        self.phase, self.kernel = self._propagation()

    def _alike(self, frames: list) -> None:
        """Refuses storages of different shapes."""
        shapes = {tuple(part.shape[1:]) for part in frames} | {tuple(s.data.shape[1:]) for s in self._probe}
        if len(shapes) > 1:
            raise refused(self._engine, f"frames and probes have the shapes {sorted(shapes)}", "one shape, no `resample`")
        for what, storages in (("probes", self._probe), ("objects", self._object)):
            if len({s.data.shape[0] for s in storages}) > 1:
                raise refused(self._engine, f"{what} have {[s.data.shape[0] for s in storages]} modes", "as many modes in all scans")

    def _masks(self, views: list) -> np.ndarray:
        """Masks of views, from whatever storages they are in."""
        storages = {view.pod.ma_view.storage.ID: view.pod.ma_view.storage for view in views}
        if len(storages) == 1:
            (storage,) = storages.values()
            return _layers(storage.data, [view.pod.ma_view.dlayer for view in views])
        return np.stack([view.pod.ma_view.storage.data[view.pod.ma_view.dlayer] for view in views])

    def _paired(self, view: Any) -> list:
        """Pods of a view by mode of the probe, then of the object: each with each."""
        pods = sorted(view.pods.values(), key=lambda pod: (pod.pr_view.dlayer, pod.ob_view.dlayer))
        first, engine = pods[0], self._engine
        modes = [first.pr_view.storage.data.shape[0], first.ob_view.storage.data.shape[0]]
        found = [(pod.pr_view.dlayer, pod.ob_view.dlayer) for pod in pods]
        if found != [(p, o) for p in range(modes[0]) for o in range(modes[1])]:
            raise refused(engine, f"frame {view.ID} pairs the modes of probe and object {found}", f"all pairs of {modes}")
        place = tuple(first.ob_view.dlow)
        for pod in pods:
            if pod.is_empty or pod.probe_weight != 1.0 or pod.object_weight != 1.0:
                raise refused(engine, f"frame {view.ID} has an empty object or weights", "weights of 1")
            if tuple(pod.ob_view.dlow) != place or tuple(pod.pr_view.dlow) != (0, 0):
                raise refused(engine, f"the modes of frame {view.ID} lie in different places", "one place for all modes")
        return pods

    def move_modes(self, view: Any) -> None:
        """Moves all modes of a view to where the first one is: PtyPy refines that alone."""
        place = view.pod.ob_view.coord
        for pod in view.pods.values():
            if np.any(pod.ob_view.coord != place):
                pod.ob_view.coord = place
                pod.ob_view.storage.update_views(pod.ob_view)

    def moved(self) -> np.ndarray:
        """Addresses after a refinement of the positions."""
        for view in self._views:
            self.move_modes(view)
        return self.addresses()

    def addresses(self) -> np.ndarray:
        """Probe, object, first row and column of each view, as they are now."""
        rows = [
            (self.probes.number(pods[0].pr_view), self.objects.number(pods[0].ob_view), *pods[0].ob_view.dlow) for pods in self._pods
        ]
        return np.array(rows, dtype=np.int32)

    def _propagation(self) -> tuple:
        """Phase or kernel, which all views share."""
        geometries = {id(pod.geometry): pod.geometry for pods in self._pods for pod in pods}
        found = []
        for geometry in geometries.values():
            propagator = geometry.propagator
            if np.any(np.asarray(getattr(geometry, "resample", 1)) != 1) or np.any(getattr(propagator, "crop_pad", 0)):
                raise refused(self._engine, "waves are sampled otherwise than frames", "`resample` = 1, no `misfit`")
            near = getattr(propagator, "kernel", None)
            phase = getattr(propagator, "pre_fft", None) if near is None else None
            if near is None and phase is None:
                raise refused(self._engine, f"the propagator {type(propagator).__name__}", "far field, near field")
            found.append((phase, near))
        for phase, near in found[1:]:
            # Two scans of one beam: what differs is rounding.
            if (phase is None) != (found[0][0] is None) or not np.allclose(*((phase, found[0][0]) if near is None else (near, found[0][1])), atol=1e-4):
                raise refused(self._engine, "scans have different energies, distances or pixels", "one geometry for all scans")
        phase, near = found[0]
        whole = lambda values: None if values is None else np.ascontiguousarray(values, dtype=np.complex128)  # noqa: E731
        return whole(phase), whole(near)

    def _exit_layers(self) -> list:
        """For each storage of exit waves: itself, and numbers of views, modes and layers; nothing where PtyPy has no exit waves."""
        table: dict = {}
        if self._pods[0][0].ex_view is None:
            return []
        for j, pods in enumerate(self._pods):
            for k, pod in enumerate(pods):
                storage = pod.ex_view.storage
                table.setdefault(storage.ID, (storage, []))[1].append((j, k, pod.ex_view.dlayer))
        return [(storage, *np.array(rows).T) for storage, rows in table.values()]

    def probe(self) -> np.ndarray:
        """Probes, (probes, modes, rows, columns)."""
        return np.ascontiguousarray(np.stack([s.data for s in self._probe]))

    def object(self) -> list:
        """Objects, (modes, rows, columns) each."""
        return [np.ascontiguousarray(s.data) for s in self._object]

    def state(self) -> list:
        """Probes, then objects, (modes, rows, columns) each: the storages' own arrays where they are in C order."""
        return [np.ascontiguousarray(s.data) for s in self._storages()]

    def fill(self, write: Callable[[list], None]) -> None:
        """Lets `write` fill arrays as those of `state`, in place where a storage's own array is one that can be filled."""
        storages = self._storages()
        arrays = [s.data if s.data.flags.carray else np.empty(s.data.shape, dtype=s.data.dtype) for s in storages]
        write(arrays)
        for storage, values in zip(storages, arrays):
            if values is not storage.data:
                storage.data[:] = values

    def reshaped(self) -> bool:
        """Returns True if a storage has another shape than it had."""
        return [s.data.shape for s in self._storages()] != self._shapes

    def _storages(self) -> list:
        return [*self._probe, *self._object]

    def brightness(self, poisson: bool) -> dict:
        """Factor of each frame's brightness that fits PtyPy's probes and objects best, by name of the view."""
        factors = {}
        for view, pods in zip(self._views, self._pods):
            counts, mask = view.data.astype(float), pods[0].ma_view.data
            model = sum(np.abs(pod.geometry.propagator.fw(pod.probe * pod.object)) ** 2 for pod in pods)
            weight = 1.0 if poisson else mask / (1.0 + counts) * model
            factors[view.ID] = float((weight * counts).sum() / (weight * model).sum())
        return factors

    def exits(self) -> Optional[np.ndarray]:
        """Exit waves, (n, modes, rows, columns); None where PtyPy has none."""
        waves = None
        for storage, j, k, layers in self._exit_layers():
            if waves is None:
                waves = np.empty((len(self._views), len(self._pods[0]), *storage.data.shape[1:]), dtype=storage.data.dtype)
            waves[j, k] = storage.data[layers]
        return waves

    def put_exits(self, waves: Any = None) -> None:
        """Writes exit waves into PtyPy's storages; the products of probe and object if none are given."""
        for storage, j, k, layers in self._exit_layers():
            if waves is not None:
                storage.data[layers] = waves[j, k]
                continue
            for view, mode, layer in zip(j, k, layers):
                pod = self._pods[view][mode]
                storage.data[layer] = pod.probe * pod.object


def _layers(data: np.ndarray, layers: list) -> np.ndarray:
    """Layers of a storage, which is not copied where they are all of it in their order."""
    return data if layers == list(range(len(data))) else data[layers]


def _joined(parts: list) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
