//! Records of a solver as objects of Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use zellige_engine::record::{Centring, Column, Entries, Field, Record, Table, TableOnGpu, Values};

use crate::array::{Array, Data};

/// Record of a solver: its kind (`field`, `table` or `curve`), its name, and an array or a dictionary of columns.
pub(crate) type Named = (&'static str, String, Py<PyAny>);

fn data(values: Values) -> Data {
    match values {
        Values::F32(values) => Data::F32(values),
        Values::F64(values) => Data::F64(values),
    }
}

fn field(py: Python<'_>, mut field: Field) -> PyResult<Named> {
    let values = std::mem::replace(&mut field.values, Values::F32(Vec::new()));
    let array = array(data(values), &field);
    Ok(("field", field.name, Py::new(py, array)?.into_any()))
}

/// Values of a field with its axes and units.
pub(crate) fn array(values: Data, field: &Field) -> Array {
    Array::new(values, field.shape(), &field.name).described(&field.title, &field.unit, &field.axes, field.centring).read_only()
}

fn column(column: Column, lines: usize) -> (String, Array) {
    let name = column.name();
    let values = match column.values {
        Entries::Each(values) => data(values),
        Entries::Whole(values) => Data::U64(values),
        Entries::Same(value) => Data::F64(vec![value; lines]),
    };
    let length = values.len();
    let array = Array::new(values, vec![length], &name).described(&name, &column.unit, &[], Centring::Node).read_only();
    (name, array)
}

/// The columns of a table in the memory of a GPU by their names.
pub(crate) fn columns_on_gpu(py: Python<'_>, table: TableOnGpu) -> PyResult<Py<PyAny>> {
    let columns = PyDict::new(py);
    for (column, values) in table.columns {
        let (name, length) = (column.name(), values.len());
        let array = Array::new(Data::OnGpu(values), vec![length], &name).described(&name, &column.unit, &[], Centring::Node);
        columns.set_item(name, Py::new(py, array)?)?;
    }
    Ok(columns.into_any().unbind())
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
        let array = Array::new(Data::F64(values), vec![length], &title).described(&title, unit, &[], Centring::Node).read_only();
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
                let field = wave.field_without_values();
                out.push(("field", wave.name, Py::new(py, array(Data::Complex(wave.values), &field))?.into_any()));
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
