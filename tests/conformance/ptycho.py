#!/usr/bin/env python3
"""Reads what the ptychography solver writes with h5py and NumPy, as beamline scripts do.

    ptycho.py FOLDER [SCAN.npz SCAN.cxi SCAN.ptyd]

FOLDER is that of a run with `files = ["ptyr", "cxi"]`; the scans are one and the same in three formats. Exits with 1 if
anything is amiss.
"""

import pathlib
import sys

import h5py
import numpy as np


def demand(condition, message):
    if not condition:
        raise SystemExit(f"FAILED: {message}")


def result(folder):
    with h5py.File(folder / "result.ptyr", "r") as f:
        ids = {kind: list(f["content"][kind]) for kind in ("probe", "obj")}
        demand(ids["probe"] and ids["obj"], f"storages {ids}")
        probe = f[f"content/probe/{ids['probe'][0]}/data"][...]
        group = f[f"content/obj/{ids['obj'][0]}"]
        obj, psize, origin = group["data"][...], group["_psize"][...], group["_origin"][...]
        demand(f["content"].attrs["type"] == "dict", "the types of PtyPy")
        error = f["content/runtime/error"][...]
        places = next(iter(f["content/positions"].values()))[...]
    for name, array in (("probe", probe), ("object", obj)):
        demand(array.dtype == np.complex64 and array.ndim == 3 and np.isfinite(array).all(), f"{name} {array.dtype} {array.shape}")
        saved = np.load(folder / f"{name}.npy")
        demand(np.array_equal(saved, array), f"{name}.npy is not the one of result.ptyr")
    demand(psize.shape == origin.shape == (2,) and (psize > 0).all(), f"pixel {psize}, origin {origin}")
    demand(error.ndim == 2 and error.shape[1] == 3 and error[-1, 0] < error[0, 0], "errors do not fall")
    # Every view lies inside of the object.
    first = (places - origin) / psize - np.array(probe.shape[1:]) // 2
    demand((first > -1).all() and (first + probe.shape[1:] <= np.array(obj.shape[1:]) + 1).all(), "views outside of the object")
    print(f"{folder}/result.ptyr: probe {probe.shape}, object {obj.shape}, {len(places)} views, error {error[-1, 0]:.4g}")
    cxi = folder / "result.cxi"
    if cxi.exists():
        with h5py.File(cxi, "r") as f:
            demand(f["cxi_version"][()] == 160, "cxi_version")
            demand(np.array_equal(f["entry_1/image_1/data"][...], obj), "the image is not the object")
            demand(np.array_equal(f["entry_1/data_1/data"][...], obj), "the link leads elsewhere")
            demand(np.array_equal(f["entry_1/instrument_1/source_1/illumination"][...], probe), "the illumination is not the probe")
            demand(np.allclose(f["entry_1/sample_1/geometry_1/translation"][:][:, 1::-1], places, rtol=1e-12, atol=0), "translations")
        print(f"{cxi}: the same")


def scans(npz, cxi, ptyd):
    with np.load(npz) as z:
        frames, mask, places = z["intensity"], z["mask"], z["pos_m"]
        energy, distance = float(z["energy_keV"]), float(z["distance"])
        pixel = z["det_pixel"]
    with h5py.File(cxi, "r") as f:
        entry = f["entry_1"]
        demand(entry.attrs["NX_class"] in ("NXentry", b"NXentry"), "NX_class")
        demand(np.array_equal(entry["data_1/data"][...], frames), "frames in CXI")
        demand(np.array_equal(entry["data_1/translation"][:, :2], places[:, ::-1]), "translations in CXI")
        demand(np.array_equal(entry["instrument_1/detector_1/mask"][...] == 0, mask != 0), "mask in CXI")
        kev = entry["instrument_1/source_1/energy"][()] / 1.602176634e-16
        demand(abs(kev / energy - 1) < 1e-12, f"{kev} keV")
        demand(entry["instrument_1/detector_1/distance"][()] == distance, "distance in CXI")
        demand(entry["instrument_1/detector_1/y_pixel_size"][()] == pixel[0], "pixel in CXI")
        demand(list(entry["data"].attrs["axes"].astype("U")) == ["x", ".", "."] and entry["data/x"].shape == (len(frames),), "NXdata")
    with h5py.File(ptyd, "r") as f:
        demand(np.array_equal(f["chunks/0/data"][...], frames) and np.array_equal(f["chunks/0/positions"][...], places), "chunk")
        demand((f["chunks/0/weights"][...] == mask).all(), "weights")
        demand(abs(f["meta/energy"][()] / energy - 1) < 1e-12 and f["meta/num_frames"][()] == len(frames), "meta")
    print(f"{npz}, {cxi}, {ptyd}: {len(frames)} frames of {frames.shape[1:]} alike")


if __name__ == "__main__":
    result(pathlib.Path(sys.argv[1])) if sys.argv[1] != "-" else None
    if len(sys.argv) > 2:
        scans(*sys.argv[2:5])
