"""Result folders: what is read of each format, and plots."""

import importlib.util
import pickle
import unittest

import numpy as np
import zellige
from test_run import EXAMPLES, HERE, Folder, gas, plasma


class Results(Folder):
    def test_plots_and_missing_names(self):
        run = zellige.Run(EXAMPLES / "poisson" / "neumann.toml", output=self.folder, **HERE, **{"poisson.grid.nodes": [33, 33], "output.formats": ["npy"]})
        results = run.to_end()
        with self.assertRaisesRegex(KeyError, "no field `E`.*solution"):
            results.fields["E"]
        with self.assertRaisesRegex(FileNotFoundError, "holds no results"):
            zellige.load(self.folder / "nowhere")
        try:
            import matplotlib
        except ImportError:
            with self.assertRaisesRegex(ImportError, "matplotlib"):
                results.plot()
            return
        matplotlib.use("Agg")
        panels = results.plot("solution").axes
        self.assertTrue(np.array_equal(panels[0].images[0].get_array(), results.fields["solution"].values))
        axes = run.plot("solution").axes[0].images[0].get_extent()
        x = run.fields["solution"].axes[-1]
        self.assertAlmostEqual(axes[0], x.origin - x.spacing / 2)


    def test_all_formats_that_are_read_have_axes_and_units(self):
        read = {}
        for formats in ("npy", "hdf5"):
            if formats != "npy" and not importlib.util.find_spec("h5py"):
                continue
            for name, tables in {"plasma": plasma(20), "gas": gas(60)}.items():
                run = zellige.Run({**tables, "output": {"folder": str(self.folder / name / formats), "formats": [formats]}}, **HERE)
                key = "E_x" if name == "plasma" else "temperature"
                field, there = run.to_end().fields[key], run.fields[key]
                self.assertEqual((field.units, field.title, field.shape), (there.units, there.title, there.shape), (formats, name))
                self.assertEqual([(a.name, a.unit, a.size) for a in field.axes], [(a.name, a.unit, a.size) for a in there.axes], (formats, name))
                for axis, expected in zip(field.axes, there.axes):
                    np.testing.assert_allclose([axis.origin, axis.spacing], [expected.origin, expected.spacing], rtol=1e-12)
                read.setdefault(name, []).append(np.asarray(field))
        for name, values in read.items():
            for other in values[1:]:
                np.testing.assert_array_equal(values[0], other, name)

    def test_fields_count_as_arrays_do(self):
        results = zellige.Run({**plasma(4), "output": {"folder": str(self.folder), "formats": ["npy"]}}, **HERE).to_end()
        field, values = results.fields["E_x"], np.array(results.fields["E_x"])
        for ours, expected in [(2 * field + field, 3 * values), (-field, -values), (field[0], values[0]), (field == field, values == values)]:
            self.assertIs(type(ours), np.ndarray)
            np.testing.assert_array_equal(ours, expected)
        self.assertEqual((len(field), field.max(), field.shape, field.dtype), (len(values), values.max(), values.shape, values.dtype))
        self.assertEqual(len(list(field)), len(values))
        self.assertEqual(pickle.loads(pickle.dumps(field)).axes, field.axes)
        field += 1
        self.assertIsInstance(field, type(results.fields["E_x"]))
        np.testing.assert_array_equal(np.add(field, 1, out=field, where=field == field), values + 1 + 1)
        (self.folder / "mine.csv").write_text("name,when\nAnna,2\n")
        with self.assertRaisesRegex(ValueError, "mine.csv` is no table of numbers"):
            results.curves["mine"]

    def test_what_is_not_read_is_named(self):
        results = zellige.Run({**plasma(4), "output": {"folder": str(self.folder / "queue" / "vti"), "formats": ["vti"]}}, **HERE).to_end()
        with self.assertRaisesRegex(ValueError, "in VTI, which is not read here"):
            results.plot()
        with self.assertRaisesRegex(FileNotFoundError, "its folders do: vti"):
            zellige.load(self.folder / "queue")

    def test_columns_of_errors_and_series(self):
        (self.folder / "resolved.toml").write_text("")
        (self.folder / "density.csv").write_text("x [m],density [1/m^3],density [1/m^3] error\n1,2,0.5\n")
        (self.folder / "density_000040.csv").write_text("x [m],density [1/m^3]\n1,2\n")
        curves = zellige.load(self.folder).curves
        self.assertEqual(list(curves), ["density"])
        self.assertEqual({name: list(values) for name, values in curves["density"].items()}, {"x": [1], "density": [2], "density error": [0.5]})

    def test_hdf5_has_the_axes_and_units_of_the_run(self):
        for name, run in [
            ("gas", zellige.Run(gas(60), output=self.folder / "gas", **HERE)),
            ("plasma", zellige.Run(plasma(20), output={"folder": self.folder / "plasma", "formats": ["hdf5"]}, **HERE)),
        ]:
            results = run.to_end()
            try:
                import h5py
            except ImportError:
                with self.assertRaisesRegex(ImportError, "need h5py\n\nhint: "):
                    results.fields["rho"]
                continue
            self.assertLess(2, len(results.fields), h5py.__version__)
            for key, field in results.fields.items():
                there = run.fields[key]
                self.assertTrue(np.array_equal(field.values, there), key)
                for read, kept in zip(field.axes, there.axes, strict=True):
                    self.assertEqual((read.name, read.size), (kept.name, kept.size))
                    self.assertTrue(np.allclose([read.origin, read.spacing], [kept.origin, kept.spacing], rtol=1e-12, atol=0), key)
                if name == "gas":
                    self.assertEqual(field.units, there.units)


if __name__ == "__main__":
    unittest.main()
