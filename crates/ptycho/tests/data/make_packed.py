#!/usr/bin/env python3
"""Makes packed.h5, frames behind the filters that detectors of beamlines write with, for tests/all/packed.rs: pixel i in C order holds
7 i mod 301 counts where 5 divides i, and none elsewhere. Last run with h5py 3.16, hdf5plugin 7.1, HDF5 2.0, NumPy 2.4."""

import os

import h5py
import hdf5plugin as p
import numpy as np

os.chdir(os.path.dirname(os.path.abspath(__file__)))
i = np.arange(6 * 16 * 20)
frames = np.where(i % 5 == 0, i * 7 % 301, 0).reshape(6, 16, 20)
FILTERS = {
    "gzip": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf": {"compression": "lzf"},
    "lz4": p.LZ4(),
    "bitshuffle_lz4": p.Bitshuffle(cname="lz4"),
    "bitshuffle": p.Bitshuffle(cname="none"),
    "bitshuffle_zstd": p.Bitshuffle(cname="zstd"),
    "blosc_lz4": p.Blosc(cname="lz4", shuffle=p.Blosc.SHUFFLE),
    "blosc_lz4hc": p.Blosc(cname="lz4hc", shuffle=p.Blosc.BITSHUFFLE),
    "blosc_blosclz": p.Blosc(cname="blosclz", shuffle=p.Blosc.NOSHUFFLE),
    "blosc_zlib": p.Blosc(cname="zlib", shuffle=p.Blosc.SHUFFLE),
    "blosc_snappy": p.Blosc(cname="snappy", shuffle=p.Blosc.SHUFFLE),
    "blosc_zstd": p.Blosc(cname="zstd", shuffle=p.Blosc.SHUFFLE),
    "blosc2": p.Blosc2(cname="lz4"),
    "zstd": p.Zstd(),
    "bzip2": p.BZip2(),
    "zfp": p.Zfp(reversible=True),
}
with h5py.File("packed.h5", "w", libver="latest") as f:
    f["y"], f["x"] = np.array([0.0, 1.0]), np.array([0.0, 1.0, 2.0])
    for kind in ("u2", "u4", "f4"):
        for name, options in FILTERS.items():
            if kind != "u2" and name not in ("lz4", "bitshuffle_lz4", "blosc_lz4"):
                continue
            data = frames.astype("i4" if name == "zfp" else kind)
            f.create_dataset(f"{kind}/{name}", data=data, chunks=(2, 16, 20), **options)
