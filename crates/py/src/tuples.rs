//! Tuples of any length in Python, whose type its stub tells.

#[cfg(feature = "stubs")]
use pyo3::inspect::{PyStaticConstant, PyStaticExpr};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// An axis: name, unit, first coordinate, spacing, number of values.
pub(crate) type AxisText = (String, String, f64, f64, usize);

/// Builds the type of a tuple of any length.
#[cfg(feature = "stubs")]
macro_rules! tuple_of {
    ($module:literal, $name:literal) => {
        pyo3::type_hint_subscript!(
            pyo3::type_hint_identifier!("builtins", "tuple"),
            pyo3::type_hint_identifier!($module, $name),
            PyStaticExpr::Constant { value: PyStaticConstant::Ellipsis }
        )
    };
}

/// Lengths of axes, a tuple in Python.
pub(crate) struct Lengths<'a>(pub(crate) &'a [usize]);

impl<'py> IntoPyObject<'py> for Lengths<'_> {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;
    #[cfg(feature = "stubs")]
    const OUTPUT_TYPE: PyStaticExpr = tuple_of!("builtins", "int");

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0)
    }
}

/// Axes of an array, a tuple in Python, each a `zellige.Axis`.
pub(crate) struct Axes<'a>(pub(crate) &'a [AxisText]);

impl<'py> IntoPyObject<'py> for Axes<'_> {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;
    #[cfg(feature = "stubs")]
    const OUTPUT_TYPE: PyStaticExpr = tuple_of!("zellige._axis", "Axis");

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let class = py.import("zellige._axis")?.getattr("Axis")?;
        let axes = self.0.iter().map(|(name, unit, origin, spacing, len)| class.call1((name, unit, *origin, *spacing, *len)));
        PyTuple::new(py, axes.collect::<PyResult<Vec<_>>>()?)
    }
}
