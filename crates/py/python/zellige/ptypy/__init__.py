"""Engines of PtyPy that compute with zellige: `DM_zellige`, `RAAR_zellige`, `EPIE_zellige`, `SDR_zellige`, `ML_zellige`.

Import this module before `ptypy.core.Ptycho` is made, and change the name of an engine and nothing else:

    import zellige.ptypy
    p.engines.engine00.name = "DM_zellige"

Parameters are those of PtyPy's engines, and `device` and `threads` besides. What is not honoured is refused by name.
"""

try:
    import ptypy as _ptypy
except ModuleNotFoundError as missing:
    if missing.name != "ptypy":
        raise
    raise ModuleNotFoundError(
        "No module named 'ptypy'\n\nhint: `pip install git+https://github.com/ptycho/ptypy`: PtyPy is not on the package index", name="ptypy"
    ) from missing

from ._engines import DM_zellige, EPIE_zellige, ML_zellige, RAAR_zellige, SDR_zellige

__all__ = ["DM_zellige", "EPIE_zellige", "ML_zellige", "RAAR_zellige", "SDR_zellige"]
