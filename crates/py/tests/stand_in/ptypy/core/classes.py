"""Storages, views and pods of a small scan."""

import numpy as np

from ptypy import utils as u


class Storage:
    def __init__(self, ID, data, label="scan"):
        self.ID, self.data, self.label, self.views = ID, data, label, []
        self.psize = np.array([1e-8, 1e-8])

    @property
    def shape(self):
        return self.data.shape

    def update_views(self, view):
        view.dlow = tuple(np.round(view.coord / self.psize).astype(int))

    def measured(self):
        """Sums of the counts, as the model of a scan leaves them."""
        power = self.data.sum(axis=(1, 2))
        self.tot_power, self.max_power = power.sum(), power.max()
        self.mean_power = power.sum() / self.data.size
        self.pbound_stub = power.max() / self.data[0].size


class View:
    def __init__(self, ID, storage, layer, place=(0, 0), shape=None):
        self.ID, self.storage, self.dlayer, self.dlow, self.active = ID, storage, layer, place, True
        self.wide = shape or storage.data.shape[1:]
        self.coord = np.array(place) * storage.psize
        self.pods = {}
        storage.views.append(self)

    @property
    def pod(self):
        return next(iter(self.pods.values()))

    @property
    def data(self):
        (y, x), (height, width) = self.dlow, self.wide
        return self.storage.data[self.dlayer, y : y + height, x : x + width]

    @data.setter
    def data(self, values):
        self.data[:] = values


class Container:
    def __init__(self, storages):
        self.storages = {s.ID: s for s in storages}

    @property
    def views(self):
        return {v.ID: v for s in self.storages.values() for v in s.views}


class Pod:
    is_empty, probe_weight, object_weight = False, 1.0, 1.0

    def __init__(self, ID, geometry, di, ma, pr, ob, ex):
        self.ID, self.geometry = ID, geometry
        self.di_view, self.ma_view, self.pr_view, self.ob_view, self.ex_view = di, ma, pr, ob, ex
        for view in (di, ma, pr, ob, ex):
            view.pods[ID] = self

    probe = property(lambda self: self.pr_view.data, lambda self, values: setattr(self.pr_view, "data", values))
    object = property(lambda self: self.ob_view.data, lambda self, values: setattr(self.ob_view, "data", values))
    exit = property(lambda self: self.ex_view.data, lambda self, values: setattr(self.ex_view, "data", values))


class Propagator:
    """A far field whose axis is on the middle pixel, with a quadratic phase before it."""

    def __init__(self, n):
        y, x = np.mgrid[:n, :n] - n // 2
        self.pre_fft = np.exp(0.02j * (y**2 + x**2)) * (-1.0) ** (y + x)
        self.crop_pad = np.zeros(2, dtype=int)

    def fw(self, wave):
        return np.fft.fft2(self.pre_fft * wave, norm="ortho")

    def bw(self, wave):
        return self.pre_fft.conj() * np.fft.ifft2(wave, norm="ortho")


class Geometry:
    resample = 1

    def __init__(self, n):
        self.propagator = Propagator(n)
        self.resolution = np.array([1e-8, 1e-8])


class Ptycho:
    """A scan whose frames come in two portions."""

    def __init__(self, n=16, modes=2, model=None):
        from ptypy.core.manager import BlockFull

        rng = np.random.default_rng(5)
        self.n, self.modes = n, modes
        self.geometry = Geometry(n)
        self.model = u.Param(scans={"scan": (model or BlockFull)()})
        self.runtime = u.Param(iter_info=[])
        self.citations = u.Param(add_article=lambda **_: None)
        self.new_data, self.containers = None, {}
        size = n + 12
        y, x = np.mgrid[:n, :n] - n / 2
        light = np.exp(-(x**2 + y**2) / (n / 5) ** 2)
        self.truth = [light * 40, light * 20 * x / n][:modes], np.exp(1j * rng.random((size, size)))
        start = np.stack([light * 36, light * 15 * y / n][:modes]).astype(np.complex64)
        self.diff, self.mask, self.exit = Container([]), Container([]), Container([])
        self.probe = Container([Storage("pr", start)])
        # Not flat: a smooth wave leaves pixels of the detector dark, where its phase is one of rounding.
        self.obj = Container([Storage("ob", np.exp(1j * rng.random((1, size, size))).astype(np.complex64))])
        self.pods = {}

    def CType(self):
        return np.complex64()

    def add(self, places):
        """Frames at places, in a storage of their own."""
        n, block = self.n, len(self.diff.storages)
        waves, sample = self.truth
        fw = self.geometry.propagator.fw
        counts = [sum(u.abs2(fw(w * sample[y : y + n, x : x + n])) for w in waves) for y, x in places]
        frames = Storage(f"di{block}", np.array(counts, dtype=np.float32))
        frames.measured()
        masks = Storage(f"ma{block}", np.ones(frames.shape, dtype=bool))
        masks.data[:, 3, 5] = False
        exits = Storage(f"ex{block}", np.zeros((len(places) * self.modes, n, n), dtype=np.complex64))
        for kind, storage in ((self.diff, frames), (self.mask, masks), (self.exit, exits)):
            kind.storages[storage.ID] = storage
        probe, obj = self.probe.storages["pr"], self.obj.storages["ob"]
        for j, place in enumerate(places):
            name = f"{block}_{j}"
            di, ma = View(f"V{name}", frames, j), View(f"M{name}", masks, j)
            for m in range(self.modes):
                views = (View(f"P{name}_{m}", probe, m), View(f"O{name}_{m}", obj, 0, place, (n, n)), View(f"E{name}_{m}", exits, j * self.modes + m))
                pod = self.pods[f"{name}_{m}"] = Pod(f"{name}_{m}", self.geometry, di, ma, *views)
                exits.data[j * self.modes + m] = pod.probe * pod.object
        self.new_data = [("scan", frames)]
