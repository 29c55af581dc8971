//! Arrays of others, by the array interface.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// Doubles of another library, C order, read where they lie.
pub(crate) struct Doubles<'py> {
    at: *const f64,
    shape: Vec<usize>,
    _owner: Bound<'py, PyAny>,
}

impl<'py> Doubles<'py> {
    /// Takes an array of doubles in C order. The package hands over what `numpy.ascontiguousarray` has made.
    pub(crate) fn new(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let interface = object.getattr("__array_interface__")?;
        let item = |key: &str| interface.get_item(key);
        let kind: String = item("typestr")?.extract()?;
        let shape: Vec<usize> = item("shape")?.extract()?;
        let (address, _): (usize, bool) = item("data")?.extract()?;
        let strided = interface.call_method1("get", ("strides",))?;
        if kind != "<f8" || !strided.is_none() || !address.is_multiple_of(align_of::<f64>()) {
            return Err(PyTypeError::new_err(format!("an array of {kind} where aligned doubles in C order are needed (allowed: <f8)")));
        }
        Ok(Self { at: address as *const f64, shape, _owner: object.clone() })
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(crate) fn values(&self) -> &[f64] {
        let count = self.shape.iter().product();
        if count == 0 {
            return &[];
        }
        // SAFETY: the interface promises so many aligned doubles, and its owner, which is held, keeps them. That nobody writes
        // meanwhile is the caller's part, as with every library of arrays.
        unsafe { std::slice::from_raw_parts(self.at, count) }
    }
}
