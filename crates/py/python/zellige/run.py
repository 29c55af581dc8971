"""Runs of an input, step by step."""

import html
import os
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple, Optional, Union

import numpy as np

from ._arrays import host, named, on_gpu, text, whole
from ._arrays import overrides as _overrides
from ._bar import Bar
from ._fields import Fields, Particles, Rows, column, underscored
from ._zellige import Array, Session
from .errors import ArgumentError, BusyError, Error, InputError, UnknownNameError, VerdictWarning, warn
from .results import Results, plot_fields, table

__all__ = ["Clock", "LivePage", "Outcome", "Run"]


#: Largest number of steps.
_MOST = 2**63 - 1


class Clock(NamedTuple):
    """Position of a run."""

    #: Finished steps (cycles, iterations).
    step: int
    #: Physical time in the input's units; None for solvers that have none.
    time: Optional[float]


class Outcome(NamedTuple):
    """How a run ended."""

    #: `finished`, `limited` or `failed`.
    ending: str
    #: The solver's own word, `converged` for example.
    status: str
    #: A sentence.
    message: str


class LivePage(str):
    """Address of the live page of a run, with its token; a link in notebooks."""

    #: Command that brings the page to another machine; None where it is open to the network.
    tunnel: Optional[str]

    def _repr_html_(self) -> str:
        address = html.escape(self)
        link = f'<a href="{address}" target="_blank" rel="noopener noreferrer">{address}</a>'
        return link if self.tunnel is None else f"{link} (from another machine first: <code>{html.escape(self.tunnel)}</code>)"


class Run:
    """A run of an input, between its steps.

    Parameters
    ----------
    input : path or dict
        An input file (TOML, YAML, JSON), or its tables: `{"pic": {...}, "run": {"threads": 4}}`.
    device : str, optional
        `auto`, `cpu`, `cuda` or `cuda:N`; by default as the environment or the input says.
    threads : int, optional
        Threads on the CPU; 0 takes every core.
    output : path or dict, optional
        Folder for `to_end` and `save`; by default as the input says, else that of `resume`, else `out/` and the input's name (of
        tables that of the solver). Or keys of the input's
        `[output]` table: `{"folder": "here", "formats": ["npy"]}`.
    resume : path, optional
        Folder of an earlier run whose checkpoint this one goes on from, or the path of the checkpoint that `save` returns.
    **overrides
        Keys of the input over those that it has: `poisson={"tolerance": 1e-10}`, or `**{"poisson.tolerance": 1e-10}`.

    Raises
    ------
    zellige.Error
        With the text and the hint of the command line; `InputError` for the input, `DeviceError` for the device, ..

    Examples
    --------
    >>> import numpy as np, zellige
    >>> run = zellige.Run({"poisson": {"grid": {"nodes": [33, 33], "size": [1.0, 1.0]}, "rhs": 1.0}}, device="cpu")
    >>> while run.step():
    ...     pass
    >>> run.outcome.status
    'converged'
    >>> np.asarray(run.fields["solution"]).shape
    (33, 33)
    """

    def __init__(
        self,
        input: Union[str, os.PathLike, Mapping],
        *,
        device: Optional[str] = None,
        threads: Optional[int] = None,
        output: Union[str, os.PathLike, Mapping, None] = None,
        resume: Union[str, os.PathLike, None] = None,
        **overrides: Any,
    ):
        if isinstance(output, Mapping):
            overrides, output = {**overrides, "output": output}, None
        threads = None if threads is None else whole(threads, "threads")
        if not isinstance(input, (str, os.PathLike, Mapping)):
            raise ArgumentError(f"`input` is of type {type(input).__name__} (allowed: a path, or tables as a dict)")
        file, tables = (None, text(input)) if isinstance(input, Mapping) else (os.fspath(input), None)
        self._drive(Session(file, tables, list(_overrides(overrides)), device, threads, output, resume), resume)

    @classmethod
    def _of(cls, session: Session, resume: Union[str, os.PathLike, None]) -> "Run":
        """The run of a session that was set up otherwise."""
        run = cls.__new__(cls)
        run._drive(session, resume)
        return run

    def _drive(self, session: Session, resume: Union[str, os.PathLike, None]) -> None:
        self._session = session
        self._rows = Rows()
        self._units: dict[str, str] = {}
        #: Rows of the session that were read.
        self._read = 0
        if resume is not None:
            self._take_rows(Path(resume))
        self._cache: Optional[tuple] = None
        #: Changes from outside so far, and those of particles among them by species.
        self._changes, self._changes_of_particles = 0, Counter()
        #: A callback is at work.
        self._calling = False
        #: Step from which on a call with a callback makes steps, until it is called or skipped; also after Ctrl-C.
        self._since: Optional[int] = None
        #: What ends the call was raised by the callback.
        self._raised = False
        self._results: Optional[Results] = None
        for line in self._session.warnings:
            warn(line)

    def _take_rows(self, resume: Path) -> None:
        """Takes the rows that an earlier run has up to its checkpoint."""
        path = (resume.resolve().parent.parent if resume.is_file() else resume) / "rows.csv"
        if path.is_file():
            try:
                columns, units = table(path)
                before = columns["step"] <= self.clock.step
            except (ValueError, KeyError, OSError) as wrong:
                warn(f"rows of the run before are not included: {wrong}")
                return
            self._units = {name: unit for name, unit in units.items() if name not in Clock._fields}
            for row in np.flatnonzero(before):
                self._rows.add({name: values[row] for name, values in columns.items()})

    @property
    def solver(self) -> str:
        """Name of the solver: `pic`, `dsmc`, `ptycho` or `poisson`."""
        return self._session.solver

    @property
    def device(self) -> str:
        """Model of the device."""
        return self._session.device

    @property
    def plan(self) -> dict:
        """What the run does and why, by label: grid, method, levels, .."""
        plan: dict[str, str] = {}
        for label, text in self._session.plan:
            plan[label] = f"{plan[label]}\n{text}" if label in plan else text
        return plan

    @property
    def clock(self) -> Clock:
        """Finished steps, and physical time where there is one."""
        return Clock(*self._session.clock())

    @property
    def outcome(self) -> Optional[Outcome]:
        """How the run ended; None while there is more to do."""
        outcome = self._session.outcome()
        return None if outcome is None else Outcome(*outcome)

    def live(self, port: Optional[int] = None, address: str = "127.0.0.1", steer: bool = False) -> LivePage:
        """Serve the page of `zellige run --live` until the run object ends, and return its address.

        The page shows rows and pictures while `step`, `frames` and `to_end` work, which changes no bit; in between it stands still.

        Parameters
        ----------
        port : int, optional
            By default that of the page before, else a free one from 8420 on.
        address : str
            IP address of this host to listen at. Beyond the loopback the page is open to the network, without encryption.
        steer : bool
            Let the page save and stop, and go on to the next engine. Its checkpoints are those of `save()`. Stop saves one as well
            and raises `zellige.Interrupted` from the call at work between two steps, or from the next; the run can go on. Like
            Ctrl-C, it stops all runs that are at work.

        Called again, it serves a new page in place of the old one.

        Examples
        --------
        >>> import zellige
        >>> run = zellige.Run({"poisson": {"grid": {"nodes": [33, 33], "size": [1.0, 1.0]}, "rhs": 1.0}}, device="cpu")
        >>> run.live().startswith("http://127.0.0.1:")
        True
        """
        port = None if port is None else whole(port, "port", most=65535)
        url, tunnel = self._session.live(port, address, steer)
        page = LivePage(url)
        page.tunnel = tunnel
        if tunnel is None:
            warnings.warn("the live page is open to the network, without encryption: who has its address sees the run", stacklevel=2)
        return page

    def step(self, n: int = 1, *, callback: Optional[Callable[["Run"], Any]] = None, every: int = 1) -> int:
        """Make `n` steps and return how many were made: fewer at the end of the run.

        Nothing is written. Other Python threads go on meanwhile. Ctrl-C raises KeyboardInterrupt between two steps, after which the
        run can go on: a callback that is due by then is made by the next call with one, before its first step. Steps that take longer than half a second have a progress bar, in terminals and notebooks.

        Parameters
        ----------
        n : int
            Steps to make, 0 or more.
        callback : callable, optional
            Called with the run after each step whose number, `clock.step`, is a multiple of `every`. It may look at the run, set
            fields and particles, and save; what it returns has no effect. An exception ends the call and comes out of it, and the
            run can go on from that step. Steps are made by the call alone.
        every : int
            Steps from one callback to the next.

        Examples
        --------
        A kick along x after each ten steps::

            def kick(run):
                run.particles("beam")["ux"] += 0.1

            run.step(1000, callback=kick, every=10)
        """
        n, every = whole(n, "n", 0, _MOST), whole(every, "every", 1, _MOST)
        self._may_step(callback)
        self._call(callback, every)
        if n < 2:
            self._since = None if callback is None else self.clock.step
            made = self._session.step(n)
            self._call(callback, every)
            return made
        bar, made = Bar(self.clock.step, n), 0
        try:
            while made < n:
                asked = n - made
                if callback is not None:
                    self._since = self.clock.step
                    asked = min(asked, every - self._since % every)
                done = self._session.step(asked, bar.told)
                made += done
                self._call(callback, every)
                if done < asked:
                    break
            return made
        finally:
            bar.close(self.clock.step)

    def _may_step(self, callback: Optional[Callable[["Run"], Any]]) -> None:
        """Refuses steps that a callback asks for, and what is no callback."""
        if self._calling:
            raise BusyError(
                "a callback of this run is at work\n\nhint: it may look, set fields and particles, save, and raise; the call that it belongs "
                "to makes the steps"
            )
        if callback is not None and not callable(callback):
            raise ArgumentError(f"`callback` is of type {type(callback).__name__} (allowed: a function of the run)")

    def _call(self, callback: Optional[Callable[["Run"], Any]], every: int) -> None:
        """Calls it once where steps were made for it, up to one that it is for."""
        step, since = self.clock.step, self._since
        if callback is None or since is None or step == since or step % every:
            self._since = None
            return
        self._calling = True
        try:
            # Who is interrupted up to here is called by the next one.
            self._since = None
            callback(self)
        except BaseException:
            self._raised = True
            raise
        finally:
            self._calling = False

    @property
    def rows(self) -> dict:
        """Scalars of the steps so far, by name: arrays of one length, NaN where a step has none. `step` and `time` are among them,
        and those of an earlier run up to its checkpoint.

        `run.rows_every` of the input says for which steps there are rows; `units` has the units. Arrays cannot be written into.
        """
        for step, time, scalars in self._session.rows(self._read):
            row = {"step": float(step), **({} if time is None else {"time": time}), **{name: value for name, _, value in scalars}}
            self._units.update((name, unit) for name, unit, _ in scalars)
            self._rows.add(row)
            self._read += 1
        return self._rows.columns()

    @property
    def units(self) -> dict:
        """Units of the scalars in `rows`, by name; empty where there is none."""
        self.rows
        return dict(self._units)

    def _moment(self) -> tuple:
        """What results belong to."""
        return self.clock.step, self._changes, self._results is None

    def _moment_of_particles(self, species: str) -> tuple:
        """What particles of a species belong to."""
        return self.clock.step, self._changes_of_particles[species]

    def _records(self, kind: str) -> dict:
        moment = self._moment()
        if self._cache is None or self._cache[0] != moment:
            kinds: dict[str, dict] = {"field": {}, "table": {}, "curve": {}}
            for what, name, content in self._session.records():
                kinds[what][name] = content
            self._cache = (moment, kinds, {})
        return self._cache[1][kind]

    def _other(self, name: str) -> Optional[Array]:
        """A field that is not among the records."""
        others = self._cache[2]
        if name not in others:
            others[name] = self._session.field(name)
        return others[name]

    @property
    def fields(self) -> Fields:
        """Fields, images and waves as they stand, by name: read-only Arrays with axes and units, x fastest.

        `run.fields["Bz"] = values` is `set_field`, and `run.fields["Bz"] *= 0.5` changes all of it. `numpy.array(run.fields["Bz"])`
        is a copy to write into.
        """
        return Fields(self, "field")

    @property
    def curves(self) -> Fields:
        """Curves as they stand, by name: the abscissa and the lines, each a one-dimensional Array by its label."""
        return Fields(self, "curve")

    @property
    def tables(self) -> Fields:
        """Tables as they stand, by name: one-dimensional Arrays by column."""
        return Fields(self, "table")

    def field_on_gpu(self, name: str) -> Array:
        """A field of a run on a GPU as it stands, copied within the memory of the GPU.

        The array has the values of `fields[name]` and belongs to the caller: it stays as it is while the run goes on, and longer.
        CuPy, PyTorch and JAX share its memory, on any stream: `cupy.asarray(a)`, `torch.from_dlpack(a)`.

        Parameters
        ----------
        name : str
            Of a plasma `E_x` (or `Ex`), .., `B_z`, `J_x`, .., `rho`, `rho_` and a species, whether the input asks for it or not; of a
            gas each average of the cells (`density`, `velocity_x`, `temperature`, ..) and its standard error (`density_error`), of
            which free paths and temperatures of what vibrates agree to rounding; of a reconstruction `object` or `probe`; of
            Poisson's equation `solution`, whose mean, where one is set, agrees to rounding. Mach and Knudsen numbers of a gas and
            solutions of a batch are made on the host.

        Raises
        ------
        zellige.DeviceError
            The run computes on the CPU.
        zellige.InputError
            No such field lies on the GPU, or a gas has no average yet.

        Examples
        --------
        The energy of a component without a copy to the host::

            ex = cupy.asarray(run.field_on_gpu("Ex"))
            energy = 0.5 * float((ex**2).sum())
        """
        return self._session.field_on_gpu(underscored(named(name, "name")))

    def particles_on_gpu(self, species: str) -> Particles:
        """All particles of a species of a plasma or a gas on a GPU as they stand, by column, copied within the memory of the GPU.

        Columns have the values of `particles(species)` in its order; else all is as for `field_on_gpu`. A column that is assigned
        reaches the run: `beam["ux"] = cupy.asarray(beam["ux"]) + 0.1`.

        Examples
        --------
        A spectrum by CuPy::

            beam = run.particles_on_gpu("beam")
            ux, weight = cupy.asarray(beam["momentum_x"]), cupy.asarray(beam["weighting"])
            spectrum, edges = cupy.histogram(ux, bins=200, weights=weight)
        """
        return Particles(self, named(species, "species"), True)

    def particles(self, species: str) -> Particles:
        """All particles of a species as they stand now, by column: read-only one-dimensional Arrays with units.

        Plasmas have `position_x` (or `x`), `momentum_x` (`ux`), `weighting`, .., gases `position_x`, `velocity_x` (`vx`), ..
        A column that is assigned reaches the run: `beam["ux"] += 0.1` is `set_particles`, and `beam.update(..)` sets several.
        """
        return Particles(self, named(species, "species"), False)

    def _particles(self, species: str, on_gpu: bool) -> dict:
        """Columns of particles; :class:`Particles` asks."""
        found = self._session.particles_on_gpu(species) if on_gpu else self._session.particles(species)
        if found is not None:
            return found
        if on_gpu:
            raise UnknownNameError(f"no particles `{species}` on the GPU: plasmas and gases have those of each species")
        tables = ", ".join(self.tables) or "none"
        raise UnknownNameError(f"no particles `{species}`: plasmas and gases have those of each species; tables of this run: {tables}")

    def set_field(self, name: str, values: Any) -> None:
        """Put new values of a field of the state in place of the old ones: components of E and B of a plasma, objects and probes of
        ptychography.

        Parameters
        ----------
        name : str
            As in `fields`: `E_x`, or `Ex`; `object`, `probe`.
        values : array of numbers
            In the shape, order and units of `fields[name]`. Arrays of CuPy, PyTorch or JAX in the memory of the run's GPU are copied
            within it: float32, float64, complex64 or complex128 in C order, once their stream has made them.

        The energy of a plasma is checked against that of the step after the change. Exit waves stay, as in PtyPy: DM, RAAR and SDR
        go on from them, so that an object that is set after their first iteration is a start for the next update alone. Half sets
        of `frc` stay too. A gas has averages, which cannot be set; a Poisson problem takes a guess with its input.

        Examples
        --------
        >>> import numpy as np, zellige
        >>> plasma = zellige.Run({"pic": {"grid": {"cells": [64], "size": [6.4]}, "t_end": 1.0,
        ...     "species": [{"name": "electrons", "particles_per_cell": 8}]}}, device="cpu")
        >>> plasma.set_field("Bz", np.full(64, 0.1))
        >>> float(np.asarray(plasma.fields["Bz"])[0])
        0.10000000149011612
        """
        name = underscored(named(name, "name"))
        if on_gpu(values):
            self._session.set_field_on_gpu(name, values)
        else:
            array = host(values, name, None)
            self._session.set_field(name, host(array, name, np.complex128 if array.dtype.kind == "c" else np.float64))
        self._changes += 1

    def set_particles(self, species: str, columns: Mapping) -> None:
        """Put new values of columns in place of those that `particles(species)` gives, in its order and units.

        Columns that are not given stay. Of a plasma the number of particles may be another where all columns are given, and
        positions must lie in the box. Of a gas velocities alone are set, of as many particles as there are. The energy is checked
        against that of the step after the change.

        Parameters
        ----------
        species : str
            Name of the species.
        columns : dict of arrays
            One-dimensional arrays of one length by column: `position_x`, `momentum_x`, `weighting`, .., or as in `particles` `x`,
            `ux`, .. Arrays of CuPy, PyTorch or JAX
            in the memory of the run's GPU (float32 or float64 in C order, all of them there) change momenta or velocities where
            they lie, once their stream has made them. Particles are then as many as they were, and what else is given of them,
            such as positions, must be what it is: particles that come to lie elsewhere are put in their order from host memory.

        Examples
        --------
        A kick along x after each ten steps::

            for frame in run.frames(every=10):
                beam = frame.particles("beam")
                frame.set_particles("beam", {"momentum_x": np.asarray(beam["momentum_x"]) + 0.1})
        """
        species = named(species, "species")
        if not isinstance(columns, Mapping):
            raise ArgumentError(f"`columns` is of type {type(columns).__name__} (allowed: a dict of arrays by column)")
        given = {column(named(name, "column")): values for name, values in columns.items()}
        if len(given) < len(columns):
            raise InputError(f"a column of `{species}` is given twice ({', '.join(columns)})")
        there = [name for name, values in given.items() if on_gpu(values)]
        if there:
            here = [name for name in given if name not in there]
            if here:
                raise ArgumentError(
                    f"`{there[0]}` is in the memory of a GPU, `{here[0]}` in that of the host\n\n"
                    f"hint: all columns on one side: `cupy.asarray({here[0]})`, or `cupy.asnumpy({there[0]})`"
                )
            self._session.set_particles_on_gpu(species, list(given.items()))
        else:
            arrays = [(name, host(values, name)) for name, values in given.items()]
            for name, values in arrays:
                if values.ndim != 1:
                    raise InputError(f"`{name}` has {values.ndim} axes (allowed: 1)")
            self._session.set_particles(species, arrays)
        self._changes += 1
        self._changes_of_particles[species] += 1

    def frames(self, every: int = 1) -> Iterator["Run"]:
        """Iterate over the run itself: after each `every` steps, and once more at its end."""
        every = whole(every, "every", 1, _MOST)
        while self.step(every):
            yield self

    def save(self, folder: Union[str, os.PathLike, None] = None) -> Path:
        """Save a checkpoint below a folder, by default that of the results, and return its path.

        `zellige.Run(input, resume=folder)` and `zellige run --resume folder` go on from it with the same bits.
        """
        return Path(self._session.save(folder))

    def to_end(self, *, callback: Optional[Callable[["Run"], Any]] = None, every: int = 1) -> Results:
        """Run to the end as the command line does, with the same files and checks, and return what lies in the folder. Where the
        results cannot be written, the run is still there: to be ended once more, or saved elsewhere.

        Rows of steps that were made by hand are in the files; diagnostics that fell due in them are not.

        Warns (VerdictWarning) if the goal was missed or a check failed. Ctrl-C and the wall-time limit save a checkpoint first.
        Terminals and notebooks have a progress bar.

        Parameters
        ----------
        callback : callable, optional
            As for `step`. Files and checkpoints that fall due at a step come before its callback: a run that is resumed from such a
            checkpoint has not seen what the callback changed, and does not call for that step. Where Ctrl-C or the wall-time limit
            stops the run, a callback that is due comes before the checkpoint. With an exception, Ctrl-C in the callback included,
            rows and diagnostics so far are written, and no results; the run can go on.
        every : int
            Steps from one callback to the next.
        """
        every = whole(every, "every", 1, _MOST)
        self._may_step(callback)
        self._call(callback, every)
        bar = Bar(self.clock.step, in_terminal=False)
        try:
            folder = self._go_to_end(bar, callback, every)
        except BaseException:
            self._break_off(False)
            raise
        finally:
            bar.close(self.clock.step)
        self._results = Results(folder)
        verdict = self._results.summary.get("verdict")
        if verdict:
            warnings.warn(verdict, VerdictWarning, stacklevel=2)
        return self._results

    def _go_to_end(self, bar: Bar, callback: Optional[Callable[["Run"], Any]], every: int) -> Path:
        """Goes on to the end, with the callback, and returns the folder."""
        self._raised = False
        try:
            while True:
                pause = self._since = None
                if callback is not None:
                    self._since = self.clock.step
                    pause = self._since + every - self._since % every
                folder = self._session.to_end(bar.told, pause)
                if folder is not None:
                    return folder
                self._call(callback, every)
        except KeyboardInterrupt:
            if not self._raised:
                # Python raises it also where the session has paused: what is saved has seen the callback that is due.
                self._call(callback, every)
                self._break_off(True)
            raise

    def _break_off(self, save: bool) -> None:
        """Brings the files of a way to the end that an exception has ended to theirs, with a checkpoint where it is to `save`."""
        try:
            self._session.break_off(save)
        except Error as also:
            warn(f"the state or earlier results could not be written either: {also}")

    @property
    def summary(self) -> dict:
        """Figures of a run that has ended, as in `summary.json`; of one under way its solver, clock, device and last row."""
        if self._results is not None:
            return self._results.summary
        clock, outcome = self.clock, self.outcome
        return {
            "solver": self.solver,
            "device": self.device,
            "clock": clock._asdict(),
            "outcome": None if outcome is None else outcome._asdict(),
            "row": {name: float(values[-1]) for name, values in self.rows.items() if len(values)},
        }

    def plot(self, *names: str):
        """Draw fields (all without a name) with matplotlib, and return the figure."""
        return plot_fields({name: self.fields[name] for name in names or self.fields})

    def __repr__(self) -> str:
        try:
            clock = self.clock
        except RuntimeError:
            return f"<zellige.Run {self.solver} on {self.device}: another thread is working on it>"
        time = "" if clock.time is None else f", time {clock.time:.6g}"
        return f"<zellige.Run {self.solver} on {self.device}: step {clock.step}{time}>"
