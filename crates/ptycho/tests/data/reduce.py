"""Makes a64.npz of PtyPy's trajectories: the data, and of each run its errors, the order of its views and its last object; of the
difference map, which rounding parts from itself, the tenth as well. And a64_double.npz: the errors of the same runs in double precision.

usage: python reduce.py FOLDER   (with data_A64.npz and ref_A64_*.npz, as their README describes)
"""
import sys

import numpy as np

folder = sys.argv[1]
data = np.load(f"{folder}/data_A64.npz")
out = {k: data[k] for k in ["intensity", "addr", "probe_init", "object_init", "wavelength", "distance", "det_pixel", "resolution"]}
double = {}
for name in ["DM", "RAAR", "EPIE", "SDR", "MLgauss", "MLgauss_fi", "MLpoisson"]:
    run = np.load(f"{folder}/ref_A64_{name}.npz", allow_pickle=True)
    out[f"{name}_err"] = run["err_mean"]
    if "err_mean_double" in run.files:
        double[f"{name}_err"] = run["err_mean_double"]
    if "view_order" in run.files:
        out[f"{name}_order"] = run["view_order"]
    if name in ["DM", "RAAR", "EPIE", "MLgauss", "MLgauss_fi"]:
        last = max(int(k[9:]) for k in run.files if k.startswith("object_it"))
        out[f"{name}_object"] = run[f"object_it{last}"]
    if name == "DM":
        out["DM_object10"] = run["object_it10"]
np.savez_compressed("a64.npz", **out)
np.savez_compressed("a64_double.npz", **double)
