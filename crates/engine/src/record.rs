//! What a solver hands to the outside: named arrays with axes and units ([`Field`]), curves ([`Curve`]) and rows of
//! scalars ([`Row`]). `io` writes them; no solver knows a file format and `io` knows no solver.

use serde::Serialize;

/// Exponents of the seven SI base units in openPMD's order: m, kg, s, A, K, mol, cd.
pub type UnitDimension = [f64; 7];

/// Where values sit on a regular axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Centring {
    /// At the nodes: value `i` at `origin + i * spacing`.
    Node,
    /// At the cell centres: value `i` at `origin + (i + 1/2) * spacing`.
    Cell,
}

/// One regular axis of a field.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// `x`, `y`, `z`.
    pub name: String,
    /// Unit for labels, empty where the problem has none.
    pub unit: String,
    /// Position of the first node (or of the first cell's lower edge).
    pub origin: f64,
    /// Distance between neighbours.
    pub spacing: f64,
    /// Number of values along the axis.
    pub len: usize,
}

/// Values in one of the supported types, slowest axis first (C order).
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

impl Values {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(v) => v.len(),
            Self::F64(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Value `i` in double precision.
    pub fn get(&self, i: usize) -> f64 {
        match self {
            Self::F32(v) => f64::from(v[i]),
            Self::F64(v) => v[i],
        }
    }
}

/// How a picture of a field is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Palette {
    /// Ordered values: viridis.
    Sequential,
    /// Values of both signs, white at zero, symmetric range.
    Diverging,
    /// Angles.
    Cyclic,
}

/// A scalar field on a regular grid of 1, 2 or 3 axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// File-safe name, for example `u`.
    pub name: String,
    /// Title for people, for example `potential u`.
    pub title: String,
    /// Unit of the values, empty where the problem has none.
    pub unit: String,
    /// Its SI dimension; all zero where the problem has none.
    pub dimension: UnitDimension,
    /// Axes, fastest (x) first; `axes[0].len` values are contiguous.
    pub axes: Vec<Axis>,
    /// Where the values sit.
    pub centring: Centring,
    /// The values, C order with x fastest: shape `(.., axes[1].len, axes[0].len)`.
    pub values: Values,
    /// How to colour a picture.
    pub palette: Palette,
}

impl Field {
    /// Shape in C order, slowest axis first: `(N, M)` for M nodes in x and N in y.
    pub fn shape(&self) -> Vec<usize> {
        self.axes.iter().rev().map(|a| a.len).collect()
    }
}

/// One or more curves over a shared abscissa, for a line plot and a CSV file.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// File-safe name, for example `residual`.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// Label of the abscissa with unit.
    pub x_label: String,
    /// Label of the ordinate with unit.
    pub y_label: String,
    /// Abscissa.
    pub x: Vec<f64>,
    /// Named ordinates, each as long as `x`.
    pub lines: Vec<(String, Vec<f64>)>,
    /// Logarithmic ordinate; values that are not positive are left out of the picture.
    pub log_y: bool,
}

/// Anything a solver writes.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A field on a grid.
    Field(Field),
    /// Curves.
    Curve(Curve),
}

impl Record {
    /// The file-safe name.
    pub fn name(&self) -> &str {
        match self {
            Self::Field(f) => &f.name,
            Self::Curve(c) => &c.name,
        }
    }
}

/// One named scalar of a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scalar {
    /// Column name, for example `relative_residual`.
    pub name: &'static str,
    /// Unit, empty where there is none.
    pub unit: &'static str,
    /// The value.
    pub value: f64,
}

/// The scalars of one step, in a fixed order per solver.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Row(pub Vec<Scalar>);

impl Row {
    /// Adds a column.
    pub fn push(&mut self, name: &'static str, unit: &'static str, value: f64) {
        self.0.push(Scalar { name, unit, value });
    }

    /// The value of a column.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|s| s.name == name).map(|s| s.value)
    }
}

/// A physics figure with the limit it is held to: a conservation error, a residual, a golden number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// What is checked.
    pub name: String,
    /// The figure.
    pub value: f64,
    /// The largest figure that passes.
    pub limit: f64,
    /// Whether it passed; a NaN never does.
    pub ok: bool,
}

impl Check {
    /// `value` must not exceed `limit`.
    pub fn at_most(name: impl Into<String>, value: f64, limit: f64) -> Self {
        Self { name: name.into(), value, limit, ok: value <= limit }
    }
}
