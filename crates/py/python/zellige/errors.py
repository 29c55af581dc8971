"""Errors of the solvers, with the text and the hint of the command line."""

import os
import sys
import warnings
from typing import Optional, Type


#: What parts a text from its hint.
_HINT = "\n\nhint: "


class Error(Exception):
    """An error of zellige. Its text names the input, the place, what is allowed and, after `hint:`, what to do.

    Attributes
    ----------
    message : str
        The text without the hint.
    hint : str or None
        What to do, where that is known apart from the text.
    exit_code : int
        Exit code of the command line for such an error.
    """

    def __init__(self, message: str, hint: Optional[str] = None, exit_code: int = 2):
        if hint is None and _HINT in message:
            message, hint = message.split(_HINT, 1)
        super().__init__(message if hint is None else message + _HINT + hint)
        self.message, self.hint, self.exit_code = message, hint, exit_code

    def __str__(self) -> str:
        return self.message if self.hint is None else self.message + _HINT + self.hint

    def __reduce__(self):
        return type(self), (self.message, self.hint, self.exit_code)


class InputError(Error, ValueError):
    """The input, an argument or a data file asks for something that cannot be had; all problems are listed."""


class ArgumentError(InputError, TypeError):
    """An argument is of a type, or lies where it cannot be used."""


class UnknownNameError(Error, KeyError):
    """There is nothing of that name; the text lists what there is."""


class BusyError(Error, RuntimeError):
    """Another thread, a callback, or a call that a signal interrupted, is working with it."""


class FileError(Error, OSError):
    """A file or folder cannot be read, written or created."""


class MissingFileError(FileError, FileNotFoundError):
    """A file or folder is not there."""


class NumericsError(Error, ArithmeticError):
    """The computation broke down: values that are not finite, divergence."""


class DeviceError(Error, RuntimeError):
    """A device that was asked for is absent or refused its work."""


class OutOfMemoryError(DeviceError, MemoryError):
    """Memory of the host or of the GPU does not suffice."""


class Interrupted(Error):
    """SIGTERM, the wall-time limit or the live page stopped a run; its state was saved where the text says so."""


class VerdictWarning(UserWarning):
    """A run came to its end, but its goal was missed or a check failed: do not trust the result."""


def warn(text: str, category: Type[Warning] = UserWarning) -> None:
    """Warns at the caller of the package, however deep in it that is told."""
    here, level = os.path.dirname(__file__) + os.sep, 2
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(here):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
