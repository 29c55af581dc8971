"""A bar for steps that take a while: in Jupyter, and in terminals. IPython is used where it runs, and never imported for it."""

import html
import sys
import time
from typing import Any, Optional

__all__ = ["Bar"]

#: Seconds that a call may take before it has a bar: a loop over single steps has none.
PATIENCE = 0.5


def notebook() -> Optional[Any]:
    """The function `display` of a notebook at work; None elsewhere, a terminal with IPython included."""
    if "IPython" not in sys.modules:
        return None
    try:
        from IPython import get_ipython  # type: ignore[import-not-found, unused-ignore]
        from IPython.display import display  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    return display if getattr(get_ipython(), "kernel", None) is not None else None


def _seconds(s: float) -> str:
    if s < 100:
        return f"{s:.0f} s"
    return f"{s / 60:.0f} min" if s < 6000 else f"{s / 3600:.1f} h"


class _Shown:
    """State of a bar, as a notebook shows it."""

    def __init__(self, part: float, text: str):
        self.part, self.text = part, text

    def _repr_html_(self) -> str:
        # Aloud it is a progress bar with its text as the name.
        text = html.escape(self.text)
        return f'<progress max="1" value="{self.part:.4f}" aria-label="{text}" style="width:20em;max-width:50%"></progress> {text}'

    def __repr__(self) -> str:
        return self.text


class Bar:
    """Shows how far a call is: pass `told` as the callback, which is None where there is nobody to show it to.

    `steps` counts those of the call, from `first` on; without it the bar is that of the whole run. The program has its own bar for
    whole runs in terminals: `in_terminal=False`.
    """

    def __init__(self, first: int = 0, steps: Optional[int] = None, in_terminal: bool = True):
        self._first, self._steps = first, steps
        self._begun = time.monotonic()
        self._start: Optional[float] = None
        self._from = self._part = 0.0
        self._display = notebook()
        self._handle: Any = None
        self._width = 0
        terminal = in_terminal and sys.stderr is not None and sys.stderr.isatty()
        self.told = self._told if self._display or terminal else None

    def _told(self, step: int, fraction: float, wall: float) -> None:
        spent = time.monotonic() - self._begun
        if self._start is None:
            self._start = self._from = fraction
        part = fraction
        if self._steps:
            # Steps end with the run, where more are asked for than it has.
            self._start, of_run = 0.0, (fraction - self._from) / (1 - self._from) if self._from < 1 else 1.0
            part = max((step - self._first) / self._steps, of_run)
        self._part = part
        if spent < PATIENCE:
            return
        text = f"{100 * part:.0f} %, step {step}, {_seconds(spent)}"
        if part - self._start > 0.005:
            text += f", {_seconds(spent * max(0.0, 1 - part) / (part - self._start))} left"
        self._show(part, text)

    def _show(self, part: float, text: str) -> None:
        if self._display:
            shown = _Shown(part, text)
            if self._handle is None:
                self._handle = self._display(shown, display_id=True)
            else:
                self._handle.update(shown)
            return
        filled = int(30 * min(1.0, part))
        line = f"[{'#' * filled}{'.' * (30 - filled)}] {text}"
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def close(self, step: int) -> None:
        """Leaves the last word in a notebook, and nothing in a terminal."""
        if self._handle is not None:
            part = min(1.0, max((step - self._first) / self._steps, self._part)) if self._steps else 1.0
            self._handle.update(_Shown(part, f"step {step}, {_seconds(time.monotonic() - self._begun)}"))
        elif self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
