#!/usr/bin/env python3
"""Reads the openPMD files that `cargo run -p zellige-io --example samples` writes with openPMD-viewer and openPMD-api and
holds every value against the formulae of that example; openPMD-validator, where it is installed, checks the attributes.

    openpmd.py FOLDER

Exits with 1 if a reader fails or a value differs.
"""

import pathlib
import shutil
import subprocess
import sys

import numpy as np
import openpmd_api as api
from openpmd_viewer import OpenPMDTimeSeries

STEPS, SHAPE, PARTICLES = [0, 40], (6, 8), 50
UNIT, LENGTH, TIME = 10.0, 1e-6, 1e-15
SPACING, OFFSET = (0.25, 0.5), (1.0, -2.0)  # y, x
# Single precision holds the sums exactly; the products with a unit round once.
CLOSE = {"rtol": 4e-7, "atol": 0.0}
PLACES = {"x": (0.0, 0.5), "y": (0.5, 0.0), "z": (0.0, 0.0), "": (0.5, 0.5)}  # y, x


def field(place, step):
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    return (x + place[1]) + 100 * (y + place[0]) + step


def same(what, found, expected, **close):
    np.testing.assert_allclose(found, expected, err_msg=what, **(close or {"rtol": 1e-12}))


def viewer(folder):
    series = OpenPMDTimeSeries(str(folder))
    assert list(series.iterations) == STEPS, series.iterations
    same("times", series.t, [0.05 * step * TIME for step in STEPS])
    assert series.avail_fields == ["E", "rho"] and series.avail_species == ["electrons"]
    n = np.arange(PARTICLES)
    for step in STEPS:
        for name, component in [("E", "x"), ("E", "y"), ("E", "z"), ("rho", "")]:
            values, grid = series.get_field(name, component or None, iteration=step)
            place = PLACES[component]
            same(f"{name}{component}", values, UNIT * field(place, step), **CLOSE)
            assert grid.axes == {0: "y", 1: "x"}, grid.axes
            for axis, k in [("y", 0), ("x", 1)]:
                line = (OFFSET[k] + SPACING[k] * (np.arange(SHAPE[k]) + place[k])) * LENGTH
                same(f"{name}{component} {axis}", getattr(grid, axis), line, rtol=1e-12, atol=1e-18)
        x, y, ux, w, q = series.get_particle(["x", "y", "ux", "w", "charge"], species="electrons", iteration=step)
        same("x", x, 0.1 * n * LENGTH)
        same("y", y, -n * LENGTH)
        # The viewer gives momenta over m c.
        same("ux", ux, 2 * n * 2.7309245e-22 / (9.109384e-31 * 299792458.0), rtol=1e-7)
        same("w", w, 1.0 + n)
        same("charge", np.unique(q), [-1.6021766e-19], rtol=1e-7)
    print(f"openPMD-viewer read {len(STEPS)} iterations")


def library(folder):
    series = api.Series(str(folder / "data_%06T.h5"), api.Access.read_only)
    assert series.openPMD == "1.1.0" and sorted(series.iterations) == STEPS
    for step in STEPS:
        iteration = series.iterations[step]
        same("time", [iteration.time, iteration.time_unit_SI], [0.05 * step, TIME])
        mesh = iteration.meshes["E"]
        assert list(mesh.axis_labels) == ["y", "x"] and mesh.data_order == "C"
        same("spacing", mesh.grid_spacing, SPACING)
        same("offset", mesh.grid_global_offset, OFFSET)
        same("dimension", mesh.unit_dimension, [1, 1, -3, -1, 0, 0, 0])
        for component in "xyz":
            same("place", mesh[component].position, PLACES[component])
            values = mesh[component].load_chunk()
            series.flush()
            same(component, values, field(PLACES[component], step), **CLOSE)
        electrons = iteration.particles["electrons"]
        for record, component, expected in [
            ("position", "y", -np.arange(PARTICLES)),
            ("positionOffset", "x", np.zeros(PARTICLES)),
            ("momentum", "y", np.full(PARTICLES, step)),
            ("momentum", "z", np.zeros(PARTICLES)),
        ]:
            values = electrons[record][component].load_chunk()
            series.flush()
            same(f"{record} {component}", values, expected)
    print(f"openPMD-api read {len(STEPS)} iterations")


def validator(folder):
    command = shutil.which("openPMD_check_h5", path=str(pathlib.Path(sys.executable).parent))
    if command is None:
        print("openPMD-validator is not installed")
        return
    for path in sorted(folder.glob("*.h5")):
        result = subprocess.run([command, "-i", path], capture_output=True, text=True, check=False)
        last = result.stdout.strip().splitlines()[-1] if result.stdout.strip() else result.stderr
        print(f"openPMD-validator: {path.name}: {last}")
        assert result.returncode == 0, result.stdout + result.stderr


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__)
    folder = pathlib.Path(arguments[0])
    for reader in (viewer, library, validator):
        reader(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
