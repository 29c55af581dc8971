//! The solution as records: the fields `solution` and `rhs`, and the residual's course.

use zellige_engine::record::{Axis, Centring, Curve, Field, Palette, Record, Values};

use crate::config::{COUNTER, Config};
use crate::problem::Precision;

/// A field over the nodes of the input's grid.
fn on_grid(config: &Config, name: &str, title: &str, values: Values) -> Field {
    let axes = (0..config.dimensions())
        .map(|d| Axis::bare(d, config.grid.origin.get(d).copied().unwrap_or(0.0), config.spacing(d), config.grid.nodes[d]))
        .collect();
    Field { title: title.into(), palette: Palette::Diverging, ..Field::bare(name, axes, Centring::Node, values) }
}

/// Fields of a batch of `count`, one behind the other; one field where all have the same.
fn stack(config: &Config, count: usize, name: &str, title: &str, values: Values) -> Record {
    let mut field = on_grid(config, name, title, values);
    if field.axes.iter().map(|a| a.len).product::<usize>() == field.values.len() && count > 1 {
        return Record::Field(field);
    }
    field.axes.push(Axis { name: COUNTER.into(), unit: String::new(), origin: 0.0, spacing: 1.0, len: count });
    Record::Stack(field)
}

/// The solutions of a batch.
pub fn solutions(config: &Config, count: usize, u: &[f64]) -> Record {
    stack(config, count, "solution", "solution u", in_precision(config, u))
}

/// The right-hand sides of a batch.
pub fn right_hand_sides(config: &Config, count: usize, rhs: &[f64]) -> Record {
    stack(config, count, "rhs", "right-hand side", Values::F64(rhs.to_vec()))
}

/// The last relative residual of each right-hand side of a batch.
pub fn residuals(relative: Vec<f64>) -> Record {
    Record::Curve(Curve {
        name: "residual".into(),
        title: "relative residual of each right-hand side".into(),
        x_label: "right-hand side".into(),
        y_label: "relative residual".into(),
        x: (0..relative.len()).map(|n| n as f64).collect(),
        lines: vec![("residual".into(), relative)],
        log_y: true,
    })
}

fn in_precision(config: &Config, u: &[f64]) -> Values {
    if config.precision == Precision::F32 { Values::F32(u.iter().map(|v| *v as f32).collect()) } else { Values::F64(u.to_vec()) }
}

/// True if records of the solution have doubles.
pub fn in_doubles(config: &Config) -> bool {
    config.precision != Precision::F32
}

/// The solution as pictures show it, whose pixels come from elsewhere.
pub fn solution_without_values(config: &Config) -> Field {
    on_grid(config, "solution", "solution u", Values::F32(Vec::new()))
}

/// A field as pictures show it; other records as they are.
pub fn seen(record: Record) -> Record {
    match record {
        Record::Field(field) => Record::Planes(zellige_io::picture::planes(field)),
        other => other,
    }
}

/// The right-hand side as the input states it.
pub fn right_hand_side(config: &Config, rhs: Vec<f64>) -> Field {
    on_grid(config, "rhs", "right-hand side", Values::F64(rhs))
}

/// The solution, in the precision that it was computed in.
pub fn solution(config: &Config, u: Vec<f64>) -> Field {
    let values = if config.precision == Precision::F32 { Values::F32(u.iter().map(|v| *v as f32).collect()) } else { Values::F64(u) };
    on_grid(config, "solution", "solution u", values)
}

/// Relative residual against steps.
pub fn residual_curve(relative: &[f64], step_name: &str) -> Record {
    Record::Curve(Curve {
        name: "residual".into(),
        title: "relative residual".into(),
        x_label: step_name.into(),
        y_label: "relative residual".into(),
        x: (0..relative.len()).map(|n| n as f64).collect(),
        lines: vec![("residual".into(), relative.to_vec())],
        log_y: true,
    })
}
