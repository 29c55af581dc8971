"""Result folders: :func:`load`, and the plots that runs have too."""

import csv
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Iterator, NamedTuple, Optional, Union

import numpy as np

from ._axis import Axis

__all__ = ["Field", "Results", "load"]


class Field(NamedTuple):
    """A field of a result folder; `numpy.asarray(field)` is its values."""

    #: Values, C order with x fastest.
    values: np.ndarray
    #: Name, as in the file.
    name: str
    #: Title for people.
    title: str
    #: Unit of the values; empty where there is none, or the file does not say.
    units: str
    #: Axes in the order of the shape; empty where the file does not say (NPY).
    axes: tuple

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy) if copy else np.asarray(self.values, dtype=dtype)

    @property
    def shape(self) -> tuple:
        """Lengths of the axes, slowest first."""
        return self.values.shape

    def __repr__(self) -> str:
        return f"<Field {self.name} {self.shape} {self.values.dtype}{' ' + self.units if self.units else ''}>"


def _h5py():
    try:
        import h5py  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError as missing:
        message = (
            "these results are HDF5 files, which need h5py\n\n"
            'hint: `pip install "zellige[hdf5]"`, or let runs write `output.formats = ["npy"]`'
        )
        raise ImportError(message) from missing
    return h5py


def _text(value: Any) -> str:
    return value.decode().rstrip("\0") if isinstance(value, bytes) else str(value).rstrip("\0")


def _hdf5_field(dataset: Any, name: str) -> Field:
    about = dataset.attrs
    units = _text(about.get("unit", ""))
    axes: tuple = ()
    if "grid_spacing" in about:
        half = 0.5 if _text(about.get("centring", "node")) == "cell" else 0.0
        parts = zip(about["axis_names"], about["axis_units"], about["grid_origin"], about["grid_spacing"], dataset.shape)
        axes = tuple(Axis(_text(n), _text(u), float(o + half * h), float(h), int(k)) for n, u, o, h, k in parts)
    return Field(dataset[()], name, _text(about.get("title", name)), units, axes)


class _Lazy(Mapping):
    """Fields by name, read when they are asked for."""

    def __init__(self, readers: Mapping):
        self._readers = dict(readers)
        self._read: dict[str, Field] = {}

    def __getitem__(self, name: str) -> Field:
        if name not in self._readers:
            raise KeyError(f"no field `{name}` (there are: {', '.join(self._readers) or 'none'})")
        if name not in self._read:
            self._read[name] = self._readers[name]()
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)

    def __repr__(self) -> str:
        return f"<{len(self)} fields: {', '.join(self)}>"


def table(path: Union[str, os.PathLike]) -> tuple:
    """Columns and units of a CSV file of the program, by name."""
    with open(path, newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    if not lines:
        raise ValueError(f"`{path}` is empty")
    heads = [re.fullmatch(r"(.*?)(?: \[([^\]]*)\])?", head) for head in lines[0]]
    names = [m[1] if m else "" for m in heads]
    values = np.array([[float(cell) if cell else np.nan for cell in line] for line in lines[1:]], dtype=float).reshape(-1, len(names))
    return dict(zip(names, values.T.copy())), {m[1]: m[2] or "" for m in heads if m}


class Results:
    """The results in a folder: `summary`, `rows`, `fields` and `curves`. Files are read when they are asked for."""

    def __init__(self, folder: Union[str, os.PathLike]):
        self.folder = Path(folder)
        if not (self.folder / "resolved.toml").exists() and not (self.folder / "summary.json").exists():
            raise FileNotFoundError(f"`{self.folder}` holds no results: neither summary.json nor resolved.toml is there")
        self._fields: Optional[_Lazy] = None
        self._rows: Optional[tuple] = None

    @property
    def summary(self) -> dict:
        """Status, figures, stage table, checks and versions; empty while the run is under way."""
        path = self.folder / "summary.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def _table(self) -> tuple:
        if self._rows is None:
            self._rows = table(self.folder / "rows.csv")
        return self._rows

    @property
    def rows(self) -> dict:
        """Scalars of each step by name: arrays of one length; `units` has the units."""
        return dict(self._table()[0])

    @property
    def units(self) -> dict:
        """Units of the columns of `rows`, by name."""
        return dict(self._table()[1])

    @property
    def curves(self) -> dict:
        """Curves by name: the columns of each, by label."""
        return {p.stem: table(p)[0] for p in sorted(self.folder.glob("*.csv")) if p.stem != "rows"}

    @property
    def fields(self) -> Mapping:
        """Fields at the end of the run by name, with axes and units where the format has them (HDF5, openPMD)."""
        if self._fields is None:
            self._fields = _Lazy(self._readers())
        return self._fields

    def _readers(self) -> dict:
        readers: dict = {}
        for path in sorted(self.folder.glob("*.npy")):
            # Those of a series have a step behind their name.
            if not re.search(r"_\d{6,}$", path.stem):
                readers[path.stem] = lambda p=path: Field(np.load(p), p.stem, p.stem, "", ())
        whole = self.folder / "results.h5"
        if whole.exists():
            h5py = _h5py()
            with h5py.File(whole) as file:
                names = [name for name, item in file.items() if isinstance(item, h5py.Dataset)]
            readers.update({name: lambda n=name: self._hdf5(n) for name in names})
        steps = sorted((self.folder / "openpmd").glob("data_*.h5"))
        if steps:
            readers.update(_openpmd(steps[-1]))
        return readers

    def _hdf5(self, name: str) -> Field:
        with _h5py().File(self.folder / "results.h5") as file:
            return _hdf5_field(file[name], name)

    def plot(self, *names: str):
        """Draw fields (all without a name) with matplotlib, and return the figure."""
        return plot_fields({name: self.fields[name] for name in names or self.fields})

    def __repr__(self) -> str:
        outcome = self.summary.get("outcome", {})
        return f"<zellige.Results {self.folder}: {self.summary.get('solver', 'no summary')}, {outcome.get('status', 'under way')}>"


def _openpmd(path: Path) -> dict:
    """Readers of the meshes of an openPMD file, named as in the other formats: `E_x`."""
    h5py = _h5py()

    def read(mesh: str, component: str) -> Field:
        with h5py.File(path) as file:
            (step,) = file["data"].values()
            record = file[mesh_path(file, step)][mesh]
            dataset = record[component] if component else record
            about = record.attrs
            shift = np.asarray(dataset.attrs.get("position", np.zeros(dataset.ndim)), dtype=float)
            steps, origin = np.atleast_1d(about["gridSpacing"]), np.atleast_1d(about["gridGlobalOffset"])
            labels = [_text(a) for a in np.atleast_1d(about["axisLabels"])]
            parts = zip(labels, origin + shift * steps, steps, dataset.shape)
            axes = tuple(Axis(n, "", float(o), float(h), int(k)) for n, o, h, k in parts)
            name = f"{mesh}_{component}" if component else mesh
            return Field(dataset[()] * 1.0, name, name, "", axes)

    def mesh_path(file: Any, step: Any) -> str:
        return f"{step.name}/{_text(file.attrs['meshesPath']).strip('/')}"

    readers: dict = {}
    with h5py.File(path) as file:
        (step,) = file["data"].values()
        if mesh_path(file, step) in file:
            for mesh, record in file[mesh_path(file, step)].items():
                components = list(record) if isinstance(record, h5py.Group) else [""]
                for component in components:
                    name = f"{mesh}_{component}" if component else mesh
                    readers[name] = lambda m=mesh, c=component: read(m, c)
    return readers


def load(folder: Union[str, os.PathLike]) -> Results:
    """Open the results of a run in a folder.

    Parameters
    ----------
    folder : path
        Folder that `zellige run` or `Run.to_end` has written.

    Returns
    -------
    Results
        With `summary`, `rows` (arrays by column), `fields` (by name, with axes and units) and `curves`. HDF5 files need h5py.
    """
    return Results(folder)


def plot_fields(fields: Mapping):
    """Draw fields of one or two axes side by side; complex ones as modulus and phase. Needs matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise ImportError('plots need matplotlib\n\nhint: `pip install "zellige[plot]"`') from missing
    panels = []
    for name, field in fields.items():
        values, title = np.asarray(field), f"{field.title} [{field.units}]" if field.units else field.title
        while values.ndim > 2:
            values = values[0] if np.iscomplexobj(values) else values[values.shape[0] // 2]
        if np.iscomplexobj(values):
            panels += [(f"|{title}|", np.abs(values), field.axes, "viridis"), (f"phase of {title}", np.angle(values), field.axes, "twilight")]
        else:
            panels.append((title, values, field.axes, "viridis"))
    if not panels:
        raise ValueError("there are no fields to draw")
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.2 * columns, 3.6 * rows), layout="constrained")
    try:
        from matplotlib import pyplot

        # Shown by notebooks, and closed with them.
        figure = pyplot.figure(figsize=(4.2 * columns, 3.6 * rows), layout="constrained")
    except ImportError:
        pass
    for n, (title, values, axes, colours) in enumerate(panels):
        plot = figure.add_subplot(rows, columns, n + 1)
        if values.ndim == 1:
            plot.plot(axes[-1].coordinates if axes else np.arange(len(values)), values)
        else:
            extent = None
            if len(axes) >= 2:
                (y, x) = axes[-2:]
                extent = (x.origin - x.spacing / 2, x.origin + (x.size - 0.5) * x.spacing, y.origin - y.spacing / 2, y.origin + (y.size - 0.5) * y.spacing)
            image = plot.imshow(values, origin="lower", extent=extent, cmap=colours, aspect="auto")
            figure.colorbar(image, ax=plot)
            if axes:
                plot.set_ylabel(axes[-2].label)
        if axes:
            plot.set_xlabel(axes[-1].label)
        plot.set_title(title)
    return figure
