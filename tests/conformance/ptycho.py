#!/usr/bin/env python3
"""Reads what the ptychography solver writes with h5py and NumPy, as beamline scripts do.

    ptycho.py FOLDER [SCAN.npz SCAN.cxi SCAN.ptyd]

FOLDER is that of a run with `files = ["ptyr", "cxi"]`; the scans are one and the same in three formats. What PtyPy's own functions demand of a `.ptyr`
and a `.ptyd` is demanded here in own words; `ptypy_reads.py` asks PtyPy itself. Exits with 1 if anything is amiss.
"""

import pathlib
import sys

import h5py
import numpy as np


def demand(condition, message):
    if not condition:
        raise SystemExit(f"FAILED: {message}")


def typed(node):
    """A group or dataset as PtyPy reads it: by its attribute `type`."""
    kind = node.attrs.get("type", "dict" if isinstance(node, h5py.Group) else "array")
    kind = kind.decode() if isinstance(kind, bytes) else kind
    if kind in ("dict", "param"):
        return {name: typed(child) for name, child in node.items()}
    if kind == "list":
        return [typed(node[name]) for name in sorted(node)]
    value = node[()]
    if kind == "string":
        return value.decode("utf-8")
    if kind == "scalar":
        return value.item()
    if kind in ("arraytuple", "arraylist"):
        return value.tolist()
    demand(kind == "array", f"{node.name} is of the type {kind}, which PtyPy does not know")
    return value


def ptypy_result(path):
    """`load_from_ptyr` and `ptypy.plot` ask the header, `load_run` takes storages and parameters as they are."""
    with h5py.File(path, "r") as f:
        header, content = typed(f["header"]), typed(f["content"])
        kinds = {name: f[name].attrs["type"] for name in ("content", "content/pars", "content/pars/scans", "content/runtime")}
    demand(header["kind"] == "minimal", f"header {header}")
    # Members of these are asked for with a dot.
    demand(set(kinds.values()) == {"param"}, f"types {kinds}")
    for kind in ("probe", "obj"):
        for name, storage in content[kind].items():
            demand(storage["ID"] == name and name.startswith("S"), f"ID {storage['ID']} of {kind}/{name}")
            shape, data = storage["shape"], storage["data"]
            demand(all(type(n) is int for n in shape) and tuple(shape) == data.shape, f"shape {shape} of {data.shape}")
            demand(storage["layermap"] == list(range(shape[0])) and storage["nlayers"] == shape[0], "layers")
            demand(np.allclose(storage["_center"] * storage["_psize"], -storage["_origin"], rtol=1e-12, atol=0), "centre and origin")
            for field in ("numID", "padding", "padonly", "fill_value", "model_initialized", "DataTooSmall", "_is_scattered", "_pool", "_recs"):
                demand(field in storage, f"{kind}/{name} has no {field}")
    demand(set(content["positions"]) == set(content["obj"]), "positions are not those of the objects")
    infos = content["runtime"]["iter_info"]
    demand(len(infos) == content["runtime"]["iterations"] and all(info["error"].shape == (3,) for info in infos), "iter_info")
    demand(content["pars"]["data_type"] == "single", "data_type")
    for name, scan in content["pars"]["scans"].items():
        demand(f"S{name}G00" in content["obj"] and scan["name"] == "BlockFull" and scan["data"]["name"] == "PtydScan", f"scan {scan}")
        demand(pathlib.Path(scan["data"]["dfile"]).is_file(), f"{scan['data']['dfile']} is not there")
        demand(scan["coherence"]["num_probe_modes"] == content["probe"][f"S{name}G00"]["shape"][0], "modes")
    print(f"{path}: as PtyPy takes it, {len(content['pars']['scans'])} scans that it can load")


def ptypy_scan(path):
    """`PtydScan` takes the meta information for its parameters and every array of a chunk frame by frame."""
    with h5py.File(path, "r") as f:
        meta, count = typed(f["meta"]), f["chunks/0/data"].shape[0]
        demand(np.issubdtype(meta["shape"].dtype, np.integer), f"meta/shape is {meta['shape'].dtype}")
        demand({"version", "num_frames", "label", "shape", "psize", "energy", "center", "distance"} <= set(meta), f"meta {sorted(meta)}")
        demand(meta["num_frames"] == count and tuple(meta["shape"]) == f["chunks/0/data"].shape[1:], "frames")
        demand(all(len(array) == count for array in f["chunks/0"].values()), "arrays of a chunk are not one a frame")
    print(f"{path}: as PtyPy takes it")


def result(folder):
    with h5py.File(folder / "result.ptyr", "r") as f:
        ids = {kind: list(f["content"][kind]) for kind in ("probe", "obj")}
        demand(ids["probe"] and ids["obj"], f"storages {ids}")
        probe = f[f"content/probe/{ids['probe'][0]}/data"][...]
        group = f[f"content/obj/{ids['obj'][0]}"]
        obj, psize, origin = group["data"][...], group["_psize"][...], group["_origin"][...]
        error = f["content/runtime/error"][...]
        places = next(iter(f["content/positions"].values()))[...]
    for name, array in (("probe", probe), ("object", obj)):
        demand(array.dtype == np.complex64 and array.ndim == 3 and np.isfinite(array).all(), f"{name} {array.dtype} {array.shape}")
        with h5py.File(folder / "results.h5", "r") as f:
            demand(np.array_equal(f[name][...], array), f"{name} in results.h5 is not the one of result.ptyr")
    demand(psize.shape == origin.shape == (2,) and (psize > 0).all(), f"pixel {psize}, origin {origin}")
    demand(error.ndim == 2 and error.shape[1] == 3 and error[-1, 1] < error[0, 1], "errors do not fall")
    # Every view lies inside of the object.
    first = (places - origin) / psize - np.array(probe.shape[1:]) // 2
    demand((first > -1).all() and (first + probe.shape[1:] <= np.array(obj.shape[1:]) + 1).all(), "views outside of the object")
    print(f"{folder}/result.ptyr: probe {probe.shape}, object {obj.shape}, {len(places)} views, error {error[-1, 0]:.4g}")
    ptypy_result(folder / "result.ptyr")
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
    ptypy_scan(ptyd)
    print(f"{npz}, {cxi}, {ptyd}: {len(frames)} frames of {frames.shape[1:]} alike")


if __name__ == "__main__":
    result(pathlib.Path(sys.argv[1])) if sys.argv[1] != "-" else None
    if len(sys.argv) > 2:
        scans(*sys.argv[2:5])
