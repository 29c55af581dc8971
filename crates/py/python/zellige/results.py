"""Result folders: :func:`load`, and the plots that runs have too."""

import csv
import functools
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Iterator, Optional, Union

import numpy as np

from ._axis import Axis
from ._bar import notebook
from .errors import InputError, MissingFileError, UnknownNameError

__all__ = ["Field", "Results", "load"]


class Field(np.lib.mixins.NDArrayOperatorsMixin):
    """A field of a result folder; `numpy.asarray(field)` is its values. Operators, indices and names of NumPy's arrays (`f.max()`,
    `f[0]`) are those of its values."""

    def __init__(self, values: np.ndarray, name: str, title: str, units: str, axes: tuple):
        #: Values, C order with x fastest.
        self.values = values
        #: Name, as in the file.
        self.name = name
        #: Title for people.
        self.title = title
        #: Unit of the values; empty where there is none, or the file does not say.
        self.units = units
        #: Axes in the order of the shape; empty where no file says.
        self.axes = axes

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        return np.asarray(self.values, dtype=dtype) if copy is None else np.array(self.values, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        def plain(value: Any) -> Any:
            return value.values if isinstance(value, Field) else value

        given = options.get("out", ())
        options = {k: tuple(map(plain, v)) if k == "out" else plain(v) for k, v in options.items()}
        result = getattr(ufunc, method)(*map(plain, inputs), **options)
        return given[0] if len(given) == 1 else result

    def __getattr__(self, name: str) -> Any:
        # Not while the values themselves are looked for.
        if name.startswith("_") or name == "values":
            raise AttributeError(f"a field has no attribute `{name}`")
        return getattr(self.values, name)

    def __getitem__(self, key: Any) -> Any:
        return self.values[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.values[key] = value

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator:
        return iter(self.values)

    def __contains__(self, value: Any) -> bool:
        return value in self.values

    def __bool__(self) -> bool:
        return bool(self.values)

    def __repr__(self) -> str:
        return f"<Field {self.name} {self.values.shape} {self.values.dtype}{' ' + self.units if self.units else ''}>"


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
        # Layers of a wave have no axis in space.
        layers = dataset.shape[: dataset.ndim - len(about["grid_spacing"])]
        parts = zip(about["axis_names"], about["axis_units"], about["grid_origin"], about["grid_spacing"], dataset.shape[len(layers) :])
        axes = tuple(Axis("layer", "", 0.0, 1.0, int(k)) for k in layers)
        axes += tuple(Axis(_text(n), _text(u), float(o + half * h), float(h), int(k)) for n, u, o, h, k in parts)
    return Field(dataset[()], name, _text(about.get("title", name)), units, axes)


class _Lazy(Mapping):
    """Fields or curves by name, read when they are asked for."""

    def __init__(self, readers: Mapping, kind: str):
        self._readers, self._kind = dict(readers), kind
        self._read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._readers:
            raise UnknownNameError(f"no {self._kind} `{name}` (there are: {', '.join(self._readers) or 'none'})")
        if name not in self._read:
            self._read[name] = self._readers[name]()
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)

    def __repr__(self) -> str:
        return f"<{len(self)} {self._kind}s: {', '.join(self)}>"


#: Formats that hold fields and are not read here.
_OTHERS = {".vti": "VTI", ".vtu": "VTU", ".bov": "BOV", ".cxi": "CXI", ".ptyr": "PtyPy"}


def _in_series(path: Path) -> bool:
    """Tells whether a file is one of a series, which has a step behind its name."""
    return re.search(r"_\d{6,}$", path.stem) is not None


def table(path: Union[str, os.PathLike]) -> tuple:
    """Columns and units of a CSV file of the program, by name."""
    with open(path, newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    if not lines:
        raise InputError(f"`{path}` is empty")
    # A column of errors has the word behind the unit of what they are of.
    heads = [re.fullmatch(r"(.*?)(?: \[([^\]]*)\])?( error)?", head) for head in lines[0]]
    names = [m[1] + (m[3] or "") if m else "" for m in heads]
    try:
        values = np.array([[float(cell) if cell else np.nan for cell in line] for line in lines[1:]], dtype=float).reshape(-1, len(names))
    except ValueError as wrong:
        raise InputError(f"`{path}` is no table of numbers: {wrong}") from wrong
    return dict(zip(names, values.T.copy())), {name: m[2] or "" for name, m in zip(names, heads) if m}


class Results:
    """The results in a folder: `summary`, `rows`, `fields` and `curves`. Files are read when they are asked for."""

    def __init__(self, folder: Union[str, os.PathLike]):
        self.folder = Path(folder)
        if not (self.folder / "resolved.toml").exists() and not (self.folder / "summary.json").exists():
            runs = sorted(path.parent.name for path in self.folder.glob("*/resolved.toml"))
            inside = f"; its folders do: {', '.join(runs)}" if runs else ""
            raise MissingFileError(f"`{self.folder}` holds no results: neither summary.json nor resolved.toml is there{inside}")
        self._fields: Optional[_Lazy] = None
        self._curves: Optional[_Lazy] = None
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
    def curves(self) -> Mapping:
        """Curves at the end of the run by name: the columns of each, by label."""
        if self._curves is None:
            paths = (p for p in sorted(self.folder.glob("*.csv")) if p.stem != "rows" and not _in_series(p))
            self._curves = _Lazy({p.stem: lambda p=p: table(p)[0] for p in paths}, "curve")
        return self._curves

    @property
    def fields(self) -> Mapping:
        """Fields at the end of the run by name, from HDF5, openPMD and NPY, with axes and units."""
        if self._fields is None:
            self._fields = _Lazy({name: lambda r=read: self._described(r()) for name, read in self._readers().items()}, "field")
        return self._fields

    def _described(self, field: Field) -> Field:
        """A field with what the summary says about it where its file says nothing."""
        about = self.summary.get("fields", {}).get(field.name)
        if about is None or field.units:
            return field
        axes = tuple(Axis(a["name"], a["unit"], a["origin"], a["spacing"], a["len"]) for a in about["axes"])
        layers = field.values.ndim - len(axes)
        axes = tuple(Axis("layer", "", 0.0, 1.0, k) for k in field.values.shape[: max(layers, 0)]) + axes
        if tuple(a.size for a in axes) != field.values.shape:
            return field
        return Field(field.values, field.name, about["title"], about["unit"], axes)

    def _readers(self) -> dict:
        readers: dict = {}
        for path in sorted(self.folder.glob("*.npy")):
            if not _in_series(path):
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
        others = sorted({_OTHERS[p.suffix] for p in self.folder.iterdir() if p.suffix in _OTHERS})
        if others and not self.fields:
            raise InputError(
                f"the fields of `{self.folder}` are in {', '.join(others)}, which is not read here\n\n"
                'hint: `zellige view` draws them; `output.formats = ["hdf5"]` or `["npy"]` is read'
            )
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
        With `summary`, `rows` (arrays by column), `fields` (by name, with axes and units) and `curves`. HDF5 files need h5py; of a
        series, fields and curves are the last ones.
    """
    return Results(folder)


#: Part of an object's pixels whose modulus its picture shows, as the program's pictures do; others are as bright as the brightest.
_SHOWN = 0.95


def _show(figure: Any) -> None:
    """Shows a figure in a notebook, once: as the value of a cell, by `display` and by what the cell leaves to pyplot at its end."""
    from matplotlib import get_backend, pyplot

    if notebook() is None:
        print(figure)
        return
    backend = get_backend().lower()
    if "inline" not in backend and backend not in ("agg", "svg", "pdf", "ps", "pgf", "cairo", "template"):
        return  # it has a window, or a place in the notebook, of its own
    from IPython import get_ipython  # type: ignore[import-not-found, unused-ignore]
    from IPython.display import publish_display_data  # type: ignore[import-not-found, unused-ignore]

    del figure._ipython_display_  # in the formats that the notebook has asked for
    publish_display_data(*get_ipython().display_formatter.format(figure))
    pyplot.close(figure)


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
            n, at = values.shape[0], 0 if np.iscomplexobj(values) else values.shape[0] // 2
            values, title = values[at], title if n == 1 else f"{title}, {at + 1} of {n}"
        if np.iscomplexobj(values):
            panels += [(name, f"|{title}|", np.abs(values), field.axes, "viridis")]
            panels += [(name, f"phase of {title}", np.angle(values), field.axes, "twilight")]
        else:
            panels.append((name, title, values, field.axes, "viridis"))
    if not panels:
        raise InputError("there are no fields to draw")
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.2 * columns, 3.6 * rows), layout="constrained")
    try:
        from matplotlib import pyplot

        # Notebooks show it by this, scripts by `pyplot.show()`.
        figure = pyplot.figure(figsize=(4.2 * columns, 3.6 * rows), layout="constrained")
        figure._ipython_display_ = functools.partial(_show, figure)
    except ImportError:
        pass
    for n, (name, title, values, axes, colours) in enumerate(panels):
        plot = figure.add_subplot(rows, columns, n + 1)
        if values.ndim == 1:
            plot.plot(axes[-1].coordinates if axes else np.arange(len(values)), values)
        else:
            extent, aspect, complexes = None, "auto", np.iscomplexobj(np.asarray(fields[name]))
            if len(axes) >= 2:
                (y, x) = axes[-2:]
                ends = (y.origin - y.spacing / 2, y.origin + (y.size - 0.5) * y.spacing)
                # Rows of detectors and what is found from them begin at the top.
                extent = (x.origin - x.spacing / 2, x.origin + (x.size - 0.5) * x.spacing, *(ends[::-1] if complexes else ends))
                # Lengths are drawn alike where that leaves room for both.
                if {x.name, y.name} <= set("xyz") and x.unit == y.unit and 1 / 6 < x.size * x.spacing / (y.size * y.spacing) < 6:
                    aspect = "equal"
            # Of an object's modulus, pixels that next to no light has seen have no colours of their own.
            modulus = name.startswith("object") and colours == "viridis" and not name.endswith("phase")
            high = np.quantile(values[np.isfinite(values)], _SHOWN) if modulus and np.isfinite(values).any() else None
            image = plot.imshow(values, origin="upper" if complexes else "lower", extent=extent, cmap=colours, aspect=aspect, vmax=high or None)
            figure.colorbar(image, ax=plot, extend="max" if high else "neither")
            if axes:
                plot.set_ylabel(axes[-2].label)
        if axes:
            plot.set_xlabel(axes[-1].label)
        plot.set_title(title)
    return figure
