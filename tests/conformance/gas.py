#!/usr/bin/env python3
"""Reads the VTK files of a run of a rarefied gas past a body with VTK. VTI: what lies in the body must be hidden, what is shown finite and equal
to the NPY file, and a surface that VTK draws must leave the body out. VTU: the polygons of the cells that hold gas must have the area of the domain
less the bodies, share their points, and carry the values of the NPY files. VTP: the segments and their loads must be those of `surface.csv`.
PVD: the series of windows must list each at its time, in files that VTK reads so, and the last window must be the result at the end.

    gas.py FOLDER

Exits with 1 if VTK reads something else or nothing is hidden.
"""

import csv
import pathlib
import re
import sys
import tomllib
import xml.etree.ElementTree

import numpy as np
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkFiltersGeometry import vtkGeometryFilter
from vtkmodules.vtkIOXML import vtkXMLImageDataReader, vtkXMLPolyDataReader, vtkXMLUnstructuredGridReader


def check(path):
    name = re.sub(r"_\d{6}$", "", path.stem)
    reader = vtkXMLImageDataReader()
    reader.SetFileName(str(path))
    reader.Update()
    image = reader.GetOutput()
    cells = image.GetCellData()
    values = vtk_to_numpy(cells.GetArray(name))
    np.testing.assert_array_equal(values, np.load(path.with_suffix(".npy")).ravel(), err_msg=path.stem)
    ghosts = cells.GetArray("vtkGhostType")
    hidden = np.zeros(values.shape, bool) if ghosts is None else vtk_to_numpy(ghosts) > 0
    np.testing.assert_array_equal(hidden, ~np.isfinite(values), err_msg=f"{path.stem}: hidden cells")
    surface = vtkGeometryFilter()
    surface.SetInputData(image)
    surface.Update()
    drawn = surface.GetOutput().GetNumberOfCells()
    assert drawn == np.count_nonzero(~hidden), f"{path.stem}: {drawn} cells drawn, {np.count_nonzero(~hidden)} are not hidden"
    return np.count_nonzero(hidden)


def read(reader, path):
    reader.SetFileName(str(path))
    reader.Update()
    return reader.GetOutput()


def array(data, name):
    found = data.GetCellData().GetArray(name)
    assert found is not None, f"there is no array `{name}`"
    return vtk_to_numpy(found)


def area_of(cell):
    x, y = np.array([cell.GetPoints().GetPoint(i)[:2] for i in range(cell.GetNumberOfPoints())]).T
    return 0.5 * np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))


def check_cells(folder, solid, end=""):
    grid = read(vtkXMLUnstructuredGridReader(), folder / f"gas{end}.vtu")
    # By the corners: VTK's own filter of sizes takes polygons with a corner that points inwards for larger than they are.
    area = np.array([area_of(grid.GetCell(k)) for k in range(grid.GetNumberOfCells())])
    assert (area > 0).all(), "a polygon is not counter-clockwise"
    table = tomllib.loads((folder / "resolved.toml").read_text())["dsmc"]["grid"]
    (nx, ny), (lx, ly), origin = table["cells"], table["size"], table.get("origin") or [0.0, 0.0]
    # Places are in double precision; corners of cut cells on a lattice of 2^-24 of a cell.
    np.testing.assert_allclose(area.sum(), lx * ly - solid, rtol=1e-7)
    points = vtk_to_numpy(grid.GetPoints().GetData())
    assert len(np.unique(points, axis=0)) == len(points), "points are there twice"
    # The cell of a polygon from the middle of its box.
    bounds = np.array([grid.GetCell(k).GetBounds()[:4] for k in range(grid.GetNumberOfCells())])
    middle = 0.5 * (bounds[:, ::2] + bounds[:, 1::2])
    i, j = (((middle[:, d] - origin[d]) / (l / n)).astype(int) for d, l, n in ((0, lx, nx), (1, ly, ny)))
    for name in ("density", "temperature", "temperature_error", "mach"):
        np.testing.assert_array_equal(array(grid, name), np.load(folder / f"{name}{end}.npy")[j, i].astype("f4"), err_msg=name)
    velocity = array(grid, "velocity")
    for c, axis in enumerate("xyz"):
        np.testing.assert_array_equal(velocity[:, c], np.load(folder / f"velocity_{axis}{end}.npy")[j, i].astype("f4"))
    surface = vtkGeometryFilter()
    surface.SetInputData(grid)
    surface.Update()
    assert surface.GetOutput().GetNumberOfCells() == grid.GetNumberOfCells()
    return grid.GetNumberOfCells()


def check_walls(folder, end=""):
    walls = read(vtkXMLPolyDataReader(), folder / f"surface{end}.vtp")
    with open(folder / f"surface{end}.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert walls.GetNumberOfLines() == walls.GetNumberOfCells() == len(rows) > 0
    columns = {key.split(" [")[0]: np.array([float(row[key]) for row in rows]) for key in rows[0]}
    for name in ("body", "pressure", "pressure_error", "heat_flux", "Cp", "Cf_error"):
        np.testing.assert_array_equal(array(walls, name), columns[name].astype("f4"), err_msg=name)
    length = [np.sqrt(walls.GetCell(k).GetLength2()) for k in range(len(rows))]
    np.testing.assert_allclose(length, columns["length"], rtol=1e-12)
    np.testing.assert_allclose(array(walls, "normal")[:, 1], columns["normal_y"], rtol=1e-6, atol=1e-7)
    # By Green: the solid is to the left of each segment.
    ends = np.array([[walls.GetCell(k).GetPoints().GetPoint(e)[:2] for e in (0, 1)] for k in range(len(rows))])
    (x0, y0), (x1, y1) = ends[:, 0].T, ends[:, 1].T
    return len(rows), 0.5 * np.sum(x0 * y1 - y0 * x1)


def series(path):
    """Times and files of a PVD."""
    sets = xml.etree.ElementTree.parse(path).getroot().findall("./Collection/DataSet")
    return [(float(s.get("timestep")), s.get("file")) for s in sets]


def check_series(folder):
    config = tomllib.loads((folder / "resolved.toml").read_text())["dsmc"]
    sampling = config["sampling"]
    ends = range(sampling["start"] + sampling["window"], config["steps"] + 1, sampling["window"])
    assert len(ends) > 1, "there is no series of windows"
    for name, ending in (("gas", "vtu"), ("surface", "vtp"), ("temperature", "vti")):
        listed = series(folder / f"{name}.pvd")
        assert [file for _, file in listed] == [f"{name}_{step:06}.{ending}" for step in ends], f"{name}.pvd lists {listed}"
        np.testing.assert_allclose([time for time, _ in listed], [step * config["dt"] for step in ends], rtol=1e-12, err_msg=name)
    for step in ends:
        _, solid = check_walls(folder, f"_{step:06}")
        check_cells(folder, solid, f"_{step:06}")
    # A window begins anew; the last one is what the run ends with.
    density = [np.load(folder / f"density{end}.npy") for end in ("", f"_{ends[-1]:06}", f"_{ends[-2]:06}")]
    np.testing.assert_array_equal(density[0], density[1])
    assert (density[0] != density[2]).any(), "two windows are the same"
    return len(ends)


def main(folder):
    found = {path.stem: check(path) for path in sorted(folder.glob("*.vti"))}
    assert found.get("temperature", 0) > 0, f"no cell of the temperature is hidden: {found}"
    print(f"VTK read {len(found)} fields of {folder}; {found['temperature']} cells are hidden")
    print(f"VTK read the series of {check_series(folder)} windows")
    segments, solid = check_walls(folder)
    print(f"VTK read {check_cells(folder, solid)} polygons and {segments} segments about {solid:.6e} m^2")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
