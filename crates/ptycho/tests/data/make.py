#!/usr/bin/env python3
"""Makes the scans that tests/all/data.rs reads, in the manner of the programs that write them: PtyPy's h5write, a CXI file,
a raster of a beamline with gaps in its detector. Last run with h5py 3.16, HDF5 2.0, NumPy 2.4."""

import os

import h5py
import numpy as np

os.chdir(os.path.dirname(os.path.abspath(__file__)))
frames = (np.arange(6 * 8 * 10).reshape(6, 8, 10) * 7 % 301).astype("u2")
positions = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]) * 1e-6
weights = np.ones((8, 10))
weights[0, 3] = 0
KEV = 1.602176634e-16


def store(group, name, value):
    """As PtyPy 0.9 stores values."""
    if isinstance(value, dict):
        made = group.create_group(name)
        made.attrs["type"] = "dict"
        for key, entry in value.items():
            store(made, key, entry)
    elif isinstance(value, np.ndarray):
        group.create_dataset(name, data=value, compression="gzip").attrs["type"] = "array"
    elif isinstance(value, str):
        group.create_dataset(name, data=value, dtype=h5py.special_dtype(vlen=str)).attrs["type"] = "string"
    elif value is None:
        group.create_dataset(name, data=np.zeros((1,))).attrs["type"] = "None"
    else:
        group.create_dataset(name, data=np.asarray(value)).attrs["type"] = "scalar"


def chunk(begin, end):
    return {
        "data": frames[begin:end].astype("i4"),
        "positions": positions[begin:end],
        "weights": np.repeat(weights[None], end - begin, axis=0),
        "indices": np.arange(begin, end),
    }


meta = {"version": 0.1, "num_frames": 6, "label": None, "shape": np.array([8, 10]), "psize": np.array([55e-6, 55e-6]),
        "energy": 8.0, "center": np.array([4.0, 5.0]), "distance": 2.0}
with h5py.File("scan.ptyd", "w") as f:
    store(f, "chunks", {"0": chunk(0, 4)})
    store(f, "meta", meta)
    store(f, "info", {"weight2d": True, "name": "PtyScan"})
    with h5py.File("scan.ptyd.part001", "w") as part:
        for key, value in chunk(4, 6).items():
            store(part, key, value)
    f["chunks/1"] = h5py.ExternalLink("/home/user/analysis/scan.ptyd.part001", "/")

with h5py.File("scan.cxi", "w") as f:
    f["cxi_version"] = 160
    detector = f.create_group("entry_1/instrument_1/detector_1")
    detector.create_dataset("data", data=frames, chunks=(1, 8, 10), compression="gzip", shuffle=True)
    detector["distance"] = 2.0
    detector["x_pixel_size"] = 55e-6
    detector["y_pixel_size"] = 55e-6
    # The sample goes against the view; rows run along -y, columns along +x.
    detector["basis_vectors"] = np.array([[0, -55e-6, 0], [55e-6, 0, 0]])
    detector["mask"] = (weights == 0).astype("u4") + 0x1000 * (weights > 0).astype("u4")
    f["entry_1/instrument_1/source_1/energy"] = 8.0 * KEV
    f["entry_1/sample_1/geometry_1/translation"] = np.stack([-positions[:, 1], positions[:, 0], 0 * positions[:, 0]], axis=1)
    f["entry_1/data_1/data"] = h5py.SoftLink("/entry_1/instrument_1/detector_1/data")
    f["entry_1/data_1/translation"] = h5py.SoftLink("/entry_1/sample_1/geometry_1/translation")

raw = np.pad(frames, ((0, 0), (2, 4), (3, 1))).astype("i4").reshape(2, 3, 14, 14)
raw[..., 1] = -1
with h5py.File("detector.h5", "w") as f:
    f.create_dataset("entry/data", data=raw, chunks=(1, 1, 14, 14), compression="gzip")
with h5py.File("raster.nxs", "w") as f:
    f["entry/detector/data"] = h5py.ExternalLink("detector.h5", "entry/data")
    f["entry/motors/y"] = np.array([0.0, 1.0])
    f["entry/motors/x"] = np.array([0.0, 1.0, 2.0])
    f["entry/calibration/dark"] = np.zeros((4, 14, 14))
    f["entry/calibration/none"] = np.zeros((14, 14), dtype="u1")
    f["entry/calibration/mask"] = np.pad(weights, ((2, 4), (3, 1)), constant_values=1)

with h5py.File("result.ptyr", "w") as f:
    probe = (np.arange(80).reshape(1, 8, 10) * (1 + 0.5j)).astype("c8")
    data = np.full((1, 12, 14), 0.5 + 1j, dtype="c8")
    store(f, "content", {
        "probe": {"Sscan00G00": {"data": probe, "_psize": np.array([1e-7, 2e-7]), "_origin": np.array([-4e-7, -1e-6])}},
        "obj": {"Sscan00G00": {"data": data, "_psize": np.array([1e-7, 2e-7]), "_origin": np.array([-5e-7, -2e-6])}},
    })
