"""Values of the caller as NumPy arrays, and as text for the input."""

import json
import math
import operator
import os
from collections.abc import Mapping
from typing import Any, Iterator, Optional

import numpy as np

from .errors import ArgumentError, InputError

#: Devices of DLPack that are the memory of the host.
_HOST = (1, 3, 13)


#: Types that counts are read in where they lie.
_COUNTS = frozenset("u1 u2 u4 u8 i1 i2 i4 i8 f4 f8".split())


def plain(value: Any, path: str = "") -> Any:
    """Values of NumPy and of paths as those of JSON, which has neither NaN nor None."""
    if isinstance(value, Mapping):
        return {str(k): plain(v, f"{path}.{k}" if path else str(k)) for k, v in value.items()}
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        # Long lists of numbers as they are.
        if all(type(v) is float and math.isfinite(v) or type(v) is int for v in value):
            return list(value)
        return [plain(v, f"{path}[{k}]") for k, v in enumerate(value)]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if not isinstance(value, (bool, int, float, str)) or isinstance(value, float) and not math.isfinite(value):
        message = f"`{path}` is {value!r}, no value of an input (allowed: finite numbers, texts, bools, lists, dicts)"
        raise InputError(message, "leave the key out for its default")
    return value


def whole(value: Any, name: str, least: int = 0, most: Optional[int] = None) -> int:
    """A whole number of the caller, within its bounds."""
    allowed = f"whole numbers, {least} or more" if most is None else f"whole numbers from {least} to {most}"
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"`{name}` is {value!r} (allowed: {allowed})") from None
    if number < least or most is not None and number > most:
        raise InputError(f"`{name}` is {number} (allowed: {allowed})")
    return number


def named(value: Any, name: str) -> str:
    """A name that the caller gives."""
    if not isinstance(value, str):
        raise ArgumentError(f"`{name}` is {value!r} (allowed: a text)")
    return value


def text(tables: Mapping) -> str:
    """Tables of an input as JSON."""
    return json.dumps(plain(tables))


def _toml(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def overrides(table: Mapping, path: str = "") -> Iterator[str]:
    """Keys of an input over those that it has, `KEY=VALUE` each."""
    for key, value in table.items():
        name = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping):
            yield from overrides(value, name)
        else:
            yield f"{name}={_toml(plain(value, name))}"


def counts(values: Any, name: str) -> np.ndarray:
    """Counts as an array in C order, in their own type where counts have it, without a copy where they are one already."""
    array = host(values, name, None)
    if array.dtype.kind == "c":
        raise ArgumentError(f"`{name}` has complex values where real ones are needed")
    if array.dtype.kind == "b":
        return array.view(np.uint8)
    return array if array.dtype.str[1:] in _COUNTS else array.astype(np.float32)


def host(values: Any, name: str, dtype: Any = np.float64) -> np.ndarray:
    """The values as an array in C order of a type, their own for None, without a copy where they are one already.

    Takes whatever offers the array interface, a buffer or DLPack in the memory of the host, and what NumPy makes arrays of.
    """
    if on_gpu(values):
        raise ArgumentError(
            f"`{name}` is in the memory of a GPU, and this is taken from that of the host\n\n"
            f"hint: copy it, `cupy.asnumpy({name})` or `{name}.cpu()`; the work itself may be done on the GPU (`device=\"cuda\"`)"
        )
    if hasattr(values, "__dlpack_device__") and not isinstance(values, np.ndarray):
        kind = int(values.__dlpack_device__()[0])
        if kind not in _HOST:
            raise ArgumentError(f"`{name}` is in the memory of a device (DLPack kind {kind})\n\nhint: copy it to the host first")
        if not hasattr(values, "__array_interface__") and not hasattr(values, "__array__"):
            values = np.from_dlpack(values)
    if np.ma.is_masked(values):
        raise ArgumentError(f"`{name}` has masked values, which no solver leaves out (hint: `{name}.filled(..)`, or `mask=` of ptychography)")
    array = np.asarray(values)
    if array.dtype == object or array.dtype.kind not in "biufc":
        raise ArgumentError(f"`{name}` is no array of numbers: {type(values).__name__} (allowed: NumPy arrays, buffers, DLPack of the host)")
    dtype = array.dtype if dtype is None else np.dtype(dtype)
    if array.dtype.kind == "c" and dtype.kind != "c":
        raise ArgumentError(f"`{name}` has complex values where real ones are needed")
    return np.require(np.ascontiguousarray(array, dtype=dtype.newbyteorder("<")), requirements=["C", "A"])


def on_gpu(values: Any) -> bool:
    """Tells whether an array lies in the memory of a GPU."""
    # PyTorch's tensors of the host have the attribute, and raise when it is read.
    try:
        return getattr(values, "__cuda_array_interface__", None) is not None
    except Exception:
        return False


def gpu_of(values: Any) -> str:
    """The GPU that an array lies on, as `device` names it."""
    number = int(values.__dlpack_device__()[1]) if hasattr(values, "__dlpack_device__") else 0
    return f"cuda:{number}"


def alike(array: Any, other: Any) -> Any:
    """An array of the package as the library of `other` has arrays, sharing its memory: CuPy, PyTorch, JAX (which copies what does
    not lie at a multiple of 64 bytes), or else NumPy; as it is where none of these can see it."""
    library = type(other).__module__.partition(".")[0]
    if library == "cupy":
        import cupy

        return cupy.asarray(array)
    if library == "torch":
        import torch

        return torch.from_dlpack(array)
    if library in ("jax", "jaxlib"):
        import jax

        return jax.dlpack.from_dlpack(array)
    return array if on_gpu(array) else np.asarray(array)
