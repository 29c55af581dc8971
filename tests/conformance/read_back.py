#!/usr/bin/env python3
"""Reads the output folders of runs with the readers that users have: NumPy, h5py, VTK, Pillow, and a plain parser of
BOV headers. What one run wrote in several formats must hold the same values.

    read_back.py FOLDER [FOLDER]...

Prints a line for each file; exits with 1 if one of them fails or nothing was found.
"""

import csv
import json
import pathlib
import sys
import xml.etree.ElementTree as ET

import h5py
import numpy as np
from PIL import Image
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOXML import vtkXMLImageDataReader

BOV_TYPES = {"FLOAT": "<f4", "DOUBLE": "<f8"}


def demand(condition, message):
    if not condition:
        raise ValueError(message)


def finite(name, array):
    demand(array.size > 0, f"{name} is empty")
    demand(np.isfinite(array).all(), f"{name} holds values that are not finite")
    return array


def read_npy(path):
    array = np.load(path, allow_pickle=False)
    demand(array.flags.c_contiguous and array.dtype in (np.float32, np.float64), f"{array.dtype}, not C order reals")
    return {path.stem: finite(path.stem, array)}


def read_vti(path):
    reader = vtkXMLImageDataReader()
    demand(reader.CanReadFile(str(path)) == 1, "VTK cannot read it")
    reader.SetFileName(str(path))
    reader.Update()
    image = reader.GetOutput()
    demand(min(image.GetSpacing()) > 0, f"spacing {image.GetSpacing()}")
    found = {}
    for data, cells in ((image.GetPointData(), 0), (image.GetCellData(), 1)):
        # VTK counts x first and the array is in C order.
        shape = [max(n - cells, 1) for n in image.GetDimensions()][::-1]
        for i in range(data.GetNumberOfArrays()):
            array = vtk_to_numpy(data.GetArray(i))
            found[data.GetArrayName(i)] = finite(data.GetArrayName(i), array).reshape(shape)
    demand(found, "VTK finds no array in it")
    return found


def read_pvd(path):
    entries = ET.parse(path).getroot().findall("./Collection/DataSet")
    demand(entries, "it lists nothing")
    for entry in entries:
        float(entry.attrib["timestep"])
        demand((path.parent / entry.attrib["file"]).is_file(), f"{entry.attrib['file']} is missing")
    return {}


def read_bov(path):
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    header = dict(line.split(":", 1) for line in lines)
    header = {key.strip(): value.strip() for key, value in header.items()}
    demand(header["DATA_ENDIAN"] == "LITTLE", "not little-endian")
    shape = [int(n) for n in header["DATA_SIZE"].split()][::-1]
    demand(len(shape) == 3 and len(header["BRICK_SIZE"].split()) == 3, "three axes are wanted")
    values = np.fromfile(path.parent / header["DATA_FILE"], dtype=BOV_TYPES[header["DATA_FORMAT"]])
    demand(values.size == np.prod(shape), f"{values.size} values for {shape}")
    return {header["VARIABLE"]: finite(header["VARIABLE"], values).reshape(shape)}


def read_h5(path):
    found = {}

    def visit(name, item):
        for key, value in item.attrs.items():
            demand(value is not None, f"attribute {key} of {name} is empty")
        if isinstance(item, h5py.Dataset):
            found[name] = item[...] if "/" in name else finite(name, item[...])

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    demand(found, "it has no dataset")
    return found


def read_png(path):
    with Image.open(path) as picture:
        picture.load()
        demand(min(picture.size) >= 100, f"only {picture.size} pixels")
        colours = len(np.unique(np.asarray(picture.convert("RGB")).reshape(-1, 3), axis=0))
    demand(colours > 8, f"only {colours} colours: nothing is drawn")
    return {}


def read_csv(path):
    with path.open(newline="") as file:
        rows = [row for row in csv.reader(file) if row and not row[0].startswith("#")]
    demand(len(rows) >= 2, "no row below the header")
    demand(all(len(row) == len(rows[0]) for row in rows), "rows of different length")
    return {}


def read_json(path):
    def refuse(word):
        raise ValueError(f"{word} is not JSON")

    json.loads(path.read_text(), parse_constant=refuse)
    return {}


READERS = {
    ".npy": read_npy, ".vti": read_vti, ".pvd": read_pvd, ".bov": read_bov, ".h5": read_h5, ".png": read_png,
    ".csv": read_csv, ".json": read_json,
}  # fmt: skip


def check_folder(folder):
    """Number of files read and of failures."""
    count, failures, seen = 0, 0, {}
    # openPMD files have a reader of their own.
    for path in sorted(p for p in folder.rglob("*") if p.suffix in READERS and p.parent.name != "openpmd"):
        count += 1
        try:
            for name, array in READERS[path.suffix](path).items():
                # Without axes of one value, which some formats add.
                array = array.squeeze()
                # An HDF5 file may hold several fields, which the other formats have a file each for.
                key = path.with_suffix("")
                if path.suffix == ".h5":
                    key = path.parent / f"{name}{path.stem.removeprefix('results')}"
                key = (key, name)
                first, other = seen.setdefault(key, (path, array))
                demand(other.shape == array.shape, f"{name}: shape {array.shape}, but {other.shape} in {first.name}")
                demand(np.array_equal(other, array), f"{name}: other values than in {first.name}")
            print(f"read {path}")
        except Exception as error:  # noqa: BLE001 (whatever a reader throws is the finding)
            failures += 1
            print(f"FAILED {path}: {error}")
    leftovers = sorted(folder.rglob("*.tmp*"))
    for path in leftovers:
        print(f"FAILED {path}: a temporary file was left behind")
    if count == 0:
        print(f"FAILED {folder}: nothing to read in it")
    return count, failures + len(leftovers) + (count == 0)


def main(folders):
    demand(folders, __doc__)
    results = [check_folder(pathlib.Path(folder)) for folder in folders]
    count, failures = (sum(column) for column in zip(*results))
    print(f"{count} files read, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
