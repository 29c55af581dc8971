#!/usr/bin/env python3
"""Reads the openPMD files of a run of examples/pic/two_stream.toml with openPMD-viewer and looks whether they show that plasma;
openPMD-validator, where it is installed, checks the attributes of the extension ED-PIC.

    plasma.py FOLDER

Exits with 1 if the reader fails, a value is not what the input says, or a check of the run did not pass.
"""

import json
import pathlib
import shutil
import subprocess
import sys

import h5py
import numpy as np
from openpmd_viewer import OpenPMDTimeSeries

# From examples/pic/two_stream.toml.
CELLS, LENGTH, PER_CELL, BEAM, STEP = 128, 1.026043, 64, 0.1 / np.sqrt(0.99), 0.0048


def attributes(path):
    """What the extension says of the run, and whether the validator finds all that it asks for."""
    with h5py.File(path) as file:
        (data,) = file["data"].values()
        said = {name: data["fields"].attrs[name] for name in ("fieldSolver", "currentSmoothing", "chargeCorrection")}
        assert said == {"fieldSolver": b"Yee", "currentSmoothing": b"none", "chargeCorrection": b"none"}, said
        assert list(data["fields"].attrs["fieldBoundary"]) == [b"periodic"] * 2
        right = data["particles/right"]
        assert (right.attrs["particleShape"], right.attrs["particlePush"]) == (1.0, b"Boris")
        assert right["weighting"].attrs["macroWeighted"] == 1
        numbers = right["id"][()]
        assert numbers.dtype == np.uint64 and len(np.unique(numbers)) == CELLS * PER_CELL, numbers
    command = shutil.which("openPMD_check_h5", path=str(pathlib.Path(sys.executable).parent))
    if command is None:
        print("openPMD-validator is not installed")
        return
    result = subprocess.run([command, "--EDPIC", "-i", path], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def main(folder):
    summary = json.loads((folder / "summary.json").read_text())
    checks = summary["checks"]
    assert checks and all(check["ok"] for check in checks), checks
    series = OpenPMDTimeSeries(str(folder / "openpmd"))
    assert len(series.iterations) >= 3, series.iterations
    np.testing.assert_allclose(series.t, series.iterations * STEP, rtol=1e-12)
    assert {"E", "rho"} <= set(series.avail_fields), series.avail_fields
    # Particles without a schedule are in each file that has fields.
    assert series.avail_species == ["right"], series.avail_species
    for path in sorted((folder / "openpmd").glob("*.h5")):
        attributes(path)
    amplitudes = []
    for iteration in series.iterations:
        e, grid = series.get_field("E", "x", iteration=iteration)
        # Ex sits halfway between the corners.
        np.testing.assert_allclose(grid.x, (np.arange(CELLS) + 0.5) * LENGTH / CELLS, rtol=1e-9)
        amplitudes.append(np.abs(e).max())
        rho, grid = series.get_field("rho", iteration=iteration)
        # Two beams of density 1/2; the ions that do not move are not part of it. Sums of 128 values in single precision.
        np.testing.assert_allclose(rho.mean(), -1.0, rtol=1e-6)
        x, ux, w = series.get_particle(["x", "ux", "w"], species="right", iteration=iteration)
        assert len(x) == CELLS * PER_CELL and x.min() >= 0.0 and x.max() <= LENGTH
        np.testing.assert_allclose(w.sum(), 0.5 * LENGTH, rtol=1e-6)
        if iteration == 0:
            # The seed of the wave is 1e-5, half a step back less than that.
            np.testing.assert_allclose(ux, BEAM, atol=1.1e-5)
    assert amplitudes[0] < 1e-6 < 1e-3 < amplitudes[-1], amplitudes
    print(f"openPMD-viewer read {len(series.iterations)} iterations of a plasma; max |Ex| {amplitudes}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
