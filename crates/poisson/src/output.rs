//! The solution as records: the fields `solution` and `rhs`, and the residual's course.

use zellige_engine::record::{Axis, Centring, Curve, Field, Palette, Record, Values};

use crate::config::Config;
use crate::problem::Precision;

/// A field over the nodes of the input's grid.
pub fn field(config: &Config, name: &str, title: &str, values: Values) -> Record {
    let axes = (0..config.dimensions())
        .map(|d| Axis {
            name: ["x", "y", "z"][d].into(),
            unit: String::new(),
            origin: config.grid.origin.get(d).copied().unwrap_or(0.0),
            spacing: config.spacing(d),
            len: config.grid.nodes[d],
        })
        .collect();
    Record::Field(Field {
        name: name.into(),
        title: title.into(),
        unit: String::new(),
        dimension: [0.0; 7],
        axes,
        centring: Centring::Node,
        values,
        palette: Palette::Diverging,
    })
}

/// The solution, in the precision that it was computed in.
pub fn solution(config: &Config, u: Vec<f64>) -> Record {
    let values = if config.precision == Precision::F32 { Values::F32(u.iter().map(|v| *v as f32).collect()) } else { Values::F64(u) };
    field(config, "solution", "solution u", values)
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
