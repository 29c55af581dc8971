"""Ptychography from arrays: :func:`reconstruct`, and :func:`run` iteration by iteration."""

import copy
import os
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from ._arrays import counts as counted
from ._arrays import host, text, whole
from ._zellige import Array, Session
from .errors import ArgumentError, InputError
from .run import Run

__all__ = ["Reconstruction", "reconstruct", "run"]

#: Keys of the input's `[ptycho.output]`; all others of `output` are of `[output]`.
_OWN_OUTPUT = frozenset(("files", "live", "frame", "local_errors"))
#: Keys of the input's `[[ptycho.scan]]` that frames in memory have as those of files do, those of several scans, and of its `read`.
_SCAN = ("crop", "rebin", "every", "read")
_SEVERAL = ("object", "probe")
_READ = ("gain", "negative", "invalid", "saturated", "hot", "center", "orientation")


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Object and probe of a scan."""

    #: Transmission of the sample, an Array: complex64, shape (modes, rows, columns), with axes in metres; of several objects a dict
    #: of them by the name of their first scan.
    object: Any = field(repr=False)
    #: Wave at the sample, an Array: complex64, shape (modes, rows, columns), with axes in metres; of several probes a dict likewise.
    probe: Any = field(repr=False)
    #: Errors of each iteration by name, arrays of one length; NaN where an engine has none.
    errors: Mapping[str, np.ndarray] = field(repr=False)
    #: Fourier ring correlation of two half sets: columns by label, of several objects by their scan; None unless asked for.
    frc: Optional[Mapping[str, Array]] = field(repr=False)
    #: Positions of the frames as they were found to be, metres, shape (n, 2), y before x: those given, unless they are refined. Of a
    #: list of scans one after the other.
    positions: np.ndarray = field(repr=False)
    #: Iterations made.
    iterations: int
    #: A sentence on how it ended.
    message: str


def _engines(engine: Any, iterations: Optional[int]) -> list:
    if isinstance(engine, str):
        return [{"name": engine, "iterations": 100 if iterations is None else whole(iterations, "iterations")}]
    if iterations is not None:
        raise InputError("`iterations` is for an engine given by its name: others have their own")
    engines = [engine] if isinstance(engine, Mapping) else engine
    if not isinstance(engines, Sequence) or not all(isinstance(e, Mapping) for e in engines):
        raise ArgumentError(f'`engine` is {engine!r} (allowed: a name, a dict, a list of dicts, [{{"name": "DM", "iterations": 100}}, ..])')
    return [dict(e) for e in engines]


def _metres(value: Any, name: str) -> float:
    try:
        if not isinstance(value, (str, bool)):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise ArgumentError(f"`{name}` is {value!r} (allowed: a number of metres)")


def _entry(scan: Any, keys_of_it: tuple) -> dict:
    """The caller's keys of the entry of a scan."""
    if scan is None:
        return {}
    if not isinstance(scan, Mapping):
        raise ArgumentError(f"`scan` is of type {type(scan).__name__} (allowed: a dict of {', '.join(keys_of_it)})")
    read = scan.get("read", {})
    if not isinstance(read, Mapping):
        raise ArgumentError(f"`scan['read']` is of type {type(read).__name__} (allowed: a dict of {', '.join(_READ)})")
    for table, keys, name in ((scan, keys_of_it, "scan"), (read, _READ, "scan['read']")):
        for key in table:
            if key not in keys:
                raise InputError(f"`{key}` in `{name}`: arguments tell it, or files alone have it (allowed: {', '.join(keys)})")
    return dict(scan)


def _is_list(frames: Any) -> bool:
    """Tells whether these are the frames of several scans."""
    if not isinstance(frames, (list, tuple)) or not frames:
        return False
    return all(len(one.shape if hasattr(one, "shape") else np.shape(one)) == 3 for one in frames)


def _each(values: Any, count: int, name: str) -> list:
    """What several scans have, each its own or all the same."""
    if not isinstance(values, (list, tuple)):
        return [values] * count
    if len(values) != count:
        raise InputError(f"`{name}` is a list of {len(values)} where `frames` is one of {count} (allowed: one for all, or a list of one each)")
    return list(values)


def _lengths(wavelength: Any, distance: Any, pixel: Any) -> list:
    """Wavelength, distance and pixels, metres."""
    pixels = [pixel] * 2 if np.ndim(pixel) == 0 else list(pixel)
    if len(pixels) != 2:
        raise InputError(f"`pixel` has {len(pixels)} values (allowed: one, or one of rows and one of columns)")
    return [_metres(wavelength, "wavelength"), _metres(distance, "distance"), *(_metres(p, "pixel") for p in pixels)]


def _arrays(frames: Any, own: Mapping, start: Optional[np.ndarray], of: str) -> list:
    """Arrays of a scan, which is the one `of` a list: frames, mask, positions, dark frame, response of the pixels, probe."""
    counts = counted(frames, f"frames{of}")
    places = host(own["positions"], f"positions{of}")
    if counts.ndim != 3:
        raise InputError(f"`frames{of}` has the shape {counts.shape} (allowed: (n, rows, columns))")
    if places.shape != (len(counts), 2):
        raise InputError(
            f"`positions{of}` has the shape {places.shape} where {len(counts)} frames need ({len(counts)}, 2), y before x"
        )
    valid = None if own["mask"] is None else (host(own["mask"], f"mask{of}", None) != 0).view(np.uint8)
    if valid is not None and valid.shape not in (counts.shape, counts.shape[1:]):
        raise InputError(f"`mask{of}` has the shape {valid.shape} (allowed: {counts.shape[1:]}, {counts.shape})")
    planes = [_plane(own[name], name, counts.shape[1:]) for name in ("dark", "flat")]
    return [counts, valid, places, *planes, start]


def _one_or_all(results: Mapping, name: str) -> Any:
    """The result of that name, or several by the scans that they begin with; copies, which are the caller's own."""

    def own(result: Any) -> Any:
        return {label: copy.copy(line) for label, line in result.items()} if isinstance(result, Mapping) else copy.copy(result)

    found = {key[len(name) + 1 :]: own(results[key]) for key in results if key == name or key.startswith(f"{name}_scan")}
    return found[""] if list(found) == [""] else found or None


def _plane(values: Any, name: str, shape: tuple) -> Optional[np.ndarray]:
    """Values of each pixel of the detector, the mean of several planes."""
    if values is None:
        return None
    plane = host(values, name, np.float64)
    if plane.ndim == 3 and name == "dark" and len(plane):
        plane = plane.mean(axis=0)
    plane = host(plane, name, np.float32)
    if plane.shape != shape:
        raise InputError(f"`{name}` has the shape {plane.shape} (allowed: that of a frame, {shape})")
    return plane


def reconstruct(
    frames: Any,
    positions: Any,
    *,
    wavelength: float,
    distance: float,
    pixel: Union[float, Sequence[float]],
    propagation: str = "far",
    probe: Any = None,
    mask: Any = None,
    dark: Any = None,
    flat: Any = None,
    scan: Optional[Mapping[str, Any]] = None,
    engine: Union[str, Mapping[str, Any], Sequence[Mapping[str, Any]]] = "DM",
    iterations: Optional[int] = None,
    frc: bool = False,
    seed: Optional[int] = None,
    device: Optional[str] = None,
    threads: Optional[int] = None,
    **options: Any,
) -> Reconstruction:
    """Find object and probe of a scan of diffraction frames, from arrays: no file is written.

    Parameters
    ----------
    frames : array, shape (n, rows, columns)
        Counts, the optical axis on the middle pixel (rows // 2, columns // 2). Integers of 8 to 64 bits, float32 and float64 in C
        order are read where they lie, without a copy unless there is a mask of each frame; nothing of the array is held afterwards.
        A list of such arrays is several scans, which share what `scan` says; `positions`, `mask`, `dark`, `flat` and `scan` are then
        lists too, or one for all.
    positions : array, shape (n, 2)
        Positions of the frames on the sample in metres, y before x. A larger y moves the view down the object.
    wavelength : float
        Wavelength, m.
    distance : float
        Distance from sample to detector, m; in the near field the effective propagation distance.
    pixel : float or (float, float)
        Pixel of the detector, m: rows before columns. In the near field also that of the sample.
    propagation : str
        `"far"` or `"near"`: Fraunhofer or Fresnel diffraction from the sample to the detector.
    probe : array, shape (rows, columns) or (modes, rows, columns), or dict, optional
        Wave to start from, on the pixels of a frame as it is used (an even number), with as many modes as are reconstructed; or the
        keys of the input's `[ptycho.probe]`, such as `{"size": 1e-4, "focal_length": 0.08}`. By default it is made from the frames;
        in the near field the whole field is lit.
    mask : array, shape (rows, columns) or (n, rows, columns), optional
        True where a pixel counts. With one of each frame, the frames are copied.
    dark : array, shape (rows, columns) or (k, rows, columns), optional
        Dark frame to subtract; the mean of several.
    flat : array, shape (rows, columns), optional
        Response of the pixels, by which frames are divided; where it is not above 0 a pixel is masked.
    scan : dict, optional
        Keys of the input's `[[ptycho.scan]]` besides: `crop`, `rebin`, `every`, and in `read` `gain`, `negative`, `invalid`,
        `saturated`, `hot`, `center`, `orientation`: `scan={"crop": [256, 256], "read": {"saturated": 6e4}}`. Of several scans also
        `object` and `probe`, labels of what those of one label share: `scan={"probe": "beam"}` gives all one probe, and an object
        each.
    engine : str, dict or list of dict
        `DM`, `RAAR`, `ePIE`, `rPIE`, `SDR`, `ML` or `LSQML`; or one or several engines with their keys, one after the other:
        `[{"name": "DM", "iterations": 100}, {"name": "ML", "iterations": 50}]`.
    iterations : int, optional
        Iterations of an engine given by its name, default 100.
    frc : bool
        Reconstruct two half sets as well, and correlate them by Fourier rings.
    seed : int, optional
        Seed of random numbers, such as the order of frames in ePIE.
    device, threads
        As for :class:`zellige.Run`.
    **options
        Further keys of the input's `[ptycho]` table: `precision`, `subpixel`, `object`, `output`, ..

    Returns
    -------
    Reconstruction
        With `object`, `probe`, `errors`, `frc`, `positions`.
    """
    it = _run(
        frames, positions, {"ptycho": options}, wavelength=wavelength, distance=distance, pixel=pixel, propagation=propagation,
        probe=probe, mask=mask, dark=dark, flat=flat, scan=scan, engine=engine, iterations=iterations, frc=frc, seed=seed,
        device=device, threads=threads,
    )
    while it.step(2**31):
        pass
    views = it.tables["views"]
    rows, outcome = it.rows, it.outcome
    return Reconstruction(
        object=_one_or_all(it.fields, "object"),
        probe=_one_or_all(it.fields, "probe"),
        errors={name: values.copy() for name, values in rows.items() if name.startswith("error") or "error" in name},
        frc=_one_or_all(it.curves, "frc"),
        positions=np.stack([views["position_y"], views["position_x"]], axis=-1),
        iterations=it.clock.step,
        message=outcome.message if outcome else "",
    )


def run(
    frames: Any,
    positions: Any,
    *,
    wavelength: float,
    distance: float,
    pixel: Union[float, Sequence[float]],
    propagation: str = "far",
    probe: Any = None,
    mask: Any = None,
    dark: Any = None,
    flat: Any = None,
    scan: Optional[Mapping[str, Any]] = None,
    engine: Union[str, Mapping[str, Any], Sequence[Mapping[str, Any]]] = "DM",
    iterations: Optional[int] = None,
    frc: bool = False,
    seed: Optional[int] = None,
    device: Optional[str] = None,
    threads: Optional[int] = None,
    output: Union[str, os.PathLike, Mapping, None] = None,
    resume: Union[str, os.PathLike, None] = None,
    **options: Any,
) -> Run:
    """Set a reconstruction of frames in arrays up, to be driven iteration by iteration, watched and steered.

    Parameters
    ----------
    output : path or dict, optional
        As for :class:`zellige.Run`; a dict may have keys of `[ptycho.output]` as well, such as `{"local_errors": True}`.
    resume : path, optional
        As for :class:`zellige.Run`. Only `zellige.ptycho.run(.., resume=)` goes on from a checkpoint of such a run: the command
        line has no frames. Whoever resumes gives the same arrays; of the frames that is taken on trust.
    others
        As for :func:`reconstruct`, which makes all iterations at once.

    Returns
    -------
    zellige.Run
        Before its first iteration; the array of the frames is not held.

    Examples
    --------
    An object that never amplifies::

        run = zellige.ptycho.run(frames, positions, wavelength=1e-10, distance=2.0, pixel=75e-6, engine="ML")
        print(run.live())
        for it in run.frames(every=10):
            transmission = np.asarray(it.fields["object"])
            it.set_field("object", transmission / np.maximum(1, np.abs(transmission)))
    """
    tables: dict = {"ptycho": options}
    if isinstance(output, Mapping):
        own = {key: value for key, value in output.items() if key in _OWN_OUTPUT}
        tables["ptycho"] = {**options, "output": own}
        tables["output"] = {key: value for key, value in output.items() if key not in _OWN_OUTPUT}
        output = None
    return _run(
        frames, positions, tables, wavelength=wavelength, distance=distance, pixel=pixel, propagation=propagation, probe=probe,
        mask=mask, dark=dark, flat=flat, scan=scan, engine=engine, iterations=iterations, frc=frc, seed=seed, device=device,
        threads=threads, output=output, resume=resume,
    )


def _run(
    frames: Any,
    positions: Any,
    tables: Mapping,
    *,
    wavelength: float,
    distance: float,
    pixel: Union[float, Sequence[float]],
    propagation: str,
    probe: Any,
    mask: Any,
    dark: Any,
    flat: Any,
    scan: Optional[Mapping[str, Any]],
    engine: Union[str, Mapping[str, Any], Sequence[Mapping[str, Any]]],
    iterations: Optional[int],
    frc: bool,
    seed: Optional[int],
    device: Optional[str],
    threads: Optional[int],
    output: Union[str, os.PathLike, None] = None,
    resume: Union[str, os.PathLike, None] = None,
) -> Run:
    """Set the run of arrays up, with the other keys of its input."""
    if propagation not in ("far", "near"):
        raise InputError(f'`propagation` is {propagation!r} (allowed: "far", "near")')
    if seed is not None:
        tables = {**tables, "run": {"seed": whole(seed, "seed")}}
    threads = None if threads is None else whole(threads, "threads")
    several = _is_list(frames)
    count = len(frames) if several else 1
    each = {"positions": positions, "scan": scan, "mask": mask, "dark": dark, "flat": flat}
    each = {name: _each(values, count, name) if several else [values] for name, values in each.items()}
    lengths = _lengths(wavelength, distance, pixel)
    start = None
    table: dict = {"engine": _engines(engine, iterations), "frc": bool(frc), **tables["ptycho"]}
    if isinstance(probe, Mapping):
        table["probe"] = dict(probe)
    elif probe is not None:
        start = host(probe, "probe", np.complex64)
        start = start[np.newaxis] if start.ndim == 2 else start
        table["probe"] = {"modes": len(start)}
        if start.ndim != 3:
            raise InputError(f"`probe` has {start.ndim} axes (allowed: those of a frame, modes before them)")
    entries, scans = [], []
    for k, one in enumerate(frames if several else [frames]):
        own = {name: values[k] for name, values in each.items()}
        of = f"[{k}]" if several else ""
        # The input in the folder names this file.
        entry = {"name": f"scan{k + 1}" if several else "scan", "file": "(frames of the caller)"}
        entries.append({**entry, **_entry(own["scan"], _SCAN + _SEVERAL if several else _SCAN)})
        scans.append((_arrays(one, own, start, of), lengths, propagation == "near"))
    table = {"scan": entries, **table}
    return Run._of(Session(None, text({**tables, "ptycho": table}), [], device, threads, output, resume, scans), resume)
