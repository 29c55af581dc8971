//! Records of a solver as objects of Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use zellige_engine::record::{Centring, Column, Entries, Field, Record, Table, Values};

use crate::array::{Array, Data};

/// Record of a solver: its kind (`field`, `table` or `curve`), its name, and an array or a dictionary of columns.
pub(crate) type Named = (&'static str, String, Py<PyAny>);

fn data(values: Values) -> Data {
    match values {
        Values::F32(values) => Data::F32(values),
        Values::F64(values) => Data::F64(values),
    }
}

fn field(py: Python<'_>, field: Field) -> PyResult<Named> {
    let (shape, name) = (field.shape(), field.name);
    let array = Array::new(data(field.values), shape, &name).described(&field.title, &field.unit, &field.axes, field.centring);
    Ok(("field", name, Py::new(py, array)?.into_any()))
}

fn column(column: Column, lines: usize) -> (String, Array) {
    let name = column.name();
    let values = match column.values {
        Entries::Each(values) => data(values),
        Entries::Whole(values) => Data::U64(values),
        Entries::Same(value) => Data::F64(vec![value; lines]),
    };
    let length = values.len();
    let array = Array::new(values, vec![length], &name).described(&name, &column.unit, &[], Centring::Node);
    (name, array)
}

/// The columns of a table by their names.
pub(crate) fn columns(py: Python<'_>, table: Table) -> PyResult<Py<PyAny>> {
    let lines = table.len;
    let columns = PyDict::new(py);
    for (name, values) in table.columns.into_iter().map(|c| column(c, lines)) {
        columns.set_item(name, Py::new(py, values)?)?;
    }
    Ok(columns.into_any().unbind())
}

fn curve(py: Python<'_>, curve: zellige_engine::record::Curve) -> PyResult<Named> {
    let columns = PyDict::new(py);
    let line = |title: String, values: Vec<f64>, unit: &str| {
        let length = values.len();
        let array = Array::new(Data::F64(values), vec![length], &title).described(&title, unit, &[], Centring::Node);
        Py::new(py, array).map(|array| (title, array))
    };
    let abscissa = std::iter::once((curve.x_label.clone(), curve.x));
    for (title, values) in abscissa.chain(curve.lines) {
        let (title, array) = line(title, values, "")?;
        columns.set_item(title, array)?;
    }
    Ok(("curve", curve.name, columns.into_any().unbind()))
}

/// Everything of a list of records that has numbers in memory; files for other programs, cut cells and pictures of a run under way
/// are left to [`zellige_io`].
pub(crate) fn all(py: Python<'_>, records: Vec<Record>) -> PyResult<Vec<Named>> {
    let mut out = Vec::new();
    for record in records {
        match record {
            Record::Field(one) | Record::Stack(one) => out.push(field(py, one)?),
            Record::Mesh(mesh) => {
                for i in 0..mesh.components.len() {
                    out.push(field(py, mesh.field(i))?);
                }
            }
            Record::Wave(wave) if !wave.live => {
                let array = Array::new(Data::Complex(wave.values), wave.shape.to_vec(), &wave.name);
                let mut axes = wave.axes.to_vec();
                axes.push(zellige_engine::record::Axis {
                    name: "mode".into(),
                    unit: String::new(),
                    origin: 0.0,
                    spacing: 1.0,
                    len: wave.shape[0],
                });
                let array = array.described(&wave.title, "", &axes, Centring::Node);
                out.push(("field", wave.name, Py::new(py, array)?.into_any()));
            }
            Record::Table(table) => {
                let name = table.name.clone();
                out.push(("table", name, columns(py, table)?));
            }
            Record::Curve(one) => out.push(curve(py, one)?),
            Record::Measured(one) => out.push(curve(py, one.curve)?),
            Record::Wave(_) | Record::Planes(_) | Record::Archive(_) | Record::Method(_) | Record::Patches(_) => {}
        }
    }
    Ok(out)
}
