#!/usr/bin/env python3
"""Reads the VTI files of a run of a rarefied gas past a body with VTK: what lies in the body must be hidden, what is shown finite and equal
to the NPY file, and a surface that VTK draws must leave the body out.

    gas.py FOLDER

Exits with 1 if VTK reads something else or nothing is hidden.
"""

import pathlib
import sys

import numpy as np
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkFiltersGeometry import vtkGeometryFilter
from vtkmodules.vtkIOXML import vtkXMLImageDataReader


def check(path):
    reader = vtkXMLImageDataReader()
    reader.SetFileName(str(path))
    reader.Update()
    image = reader.GetOutput()
    cells = image.GetCellData()
    values = vtk_to_numpy(cells.GetArray(path.stem))
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


def main(folder):
    found = {path.stem: check(path) for path in sorted(folder.glob("*.vti"))}
    assert found.get("temperature", 0) > 0, f"no cell of the temperature is hidden: {found}"
    print(f"VTK read {len(found)} fields of {folder}; {found['temperature']} cells are hidden")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
