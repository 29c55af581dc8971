//! Arrays on regular axes: [`Field`], and [`Mesh`] of several components that may be staggered.

use serde::{Deserialize, Serialize};

use crate::parallel::{chunks, map};

/// Exponents of the seven SI base units in openPMD's order: m, kg, s, A, K, mol, cd.
pub type UnitDimension = [f64; 7];

/// Location of values on a regular axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Centring {
    /// Nodes: value `i` at `origin + i * spacing`.
    Node,
    /// Cell centres: value `i` at `origin + (i + 1/2) * spacing`.
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

impl Axis {
    /// Axis number `i` (x, y, z) without a unit.
    ///
    /// # Panics
    /// If `i` is above 2.
    pub fn bare(i: usize, origin: f64, spacing: f64, len: usize) -> Self {
        Self { name: ["x", "y", "z"][i].into(), unit: String::new(), origin, spacing, len }
    }
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

    /// Returns true if there are no values.
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

/// Values that a thread looks through in a row.
const PART: usize = 1 << 16;

/// Extremes of values, those that are not finite left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extremes {
    /// The least; infinite if there is none.
    pub low: f64,
    /// The largest; infinitely negative if there is none.
    pub high: f64,
    /// Number of values that are not finite.
    pub unknown: usize,
}

impl Extremes {
    /// Extremes of no values.
    pub const NONE: Self = Self { low: f64::INFINITY, high: f64::NEG_INFINITY, unknown: 0 };

    fn of(values: impl Iterator<Item = f64>) -> Self {
        values.fold(Self::NONE, |all, v| {
            let one = if v.is_finite() { Self { low: v, high: v, unknown: 0 } } else { Self { unknown: 1, ..Self::NONE } };
            all.with(one)
        })
    }

    /// Those of the values of both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high), unknown: self.unknown + other.unknown }
    }
}

impl Values {
    /// Extremes of the values.
    pub fn extremes(&self) -> Extremes {
        let parts = match self {
            Self::F32(v) => map(chunks(v, PART), |_, part| Extremes::of(part.iter().map(|v| f64::from(*v)))),
            Self::F64(v) => map(chunks(v, PART), |_, part| Extremes::of(part.iter().copied())),
        };
        parts.into_iter().fold(Extremes::NONE, Extremes::with)
    }
}

/// Colour scale of a picture of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Palette {
    /// Ordered values: viridis.
    Sequential,
    /// Values of both signs, white at zero, symmetric range.
    Diverging,
    /// Angles.
    Cyclic,
    /// Densities that span orders of magnitude, such as histograms: viridis on a logarithmic scale, white where there is nothing.
    Density,
    /// Omitted from the pictures of results, drawn only on request: errors of another field. Colours are those of ordered values.
    Undrawn,
}

/// A scalar field on a regular grid of 1, 2 or 3 axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// File-safe name, for example `u`.
    pub name: String,
    /// Title for people. It may end in the symbol shown at the scale: `potential u`, or after a colon
    /// `electrons in phase space: f(x, u_x)`; without one the name is shown.
    pub title: String,
    /// Unit of the values, empty where the problem has none.
    pub unit: String,
    /// SI dimension; all zero where the problem has none.
    pub dimension: UnitDimension,
    /// Axes, fastest (x) first; `axes[0].len` values are contiguous.
    pub axes: Vec<Axis>,
    /// Location of the values.
    pub centring: Centring,
    /// The values, C order with x fastest: shape `(.., axes[1].len, axes[0].len)`.
    pub values: Values,
    /// Number of the first value here where these are what one part of a run has.
    pub share: Option<usize>,
    /// Colour scale of a picture.
    pub palette: Palette,
}

impl Field {
    /// A field of which no more is known than its numbers: titled by its name, without units.
    pub fn bare(name: impl Into<String>, axes: Vec<Axis>, centring: Centring, values: Values) -> Self {
        let name = name.into();
        let (title, unit, dimension, palette) = (name.clone(), String::new(), [0.0; 7], Palette::Sequential);
        Self { name, title, unit, dimension, axes, centring, values, share: None, palette }
    }

    /// The field whole but for its values.
    #[must_use]
    pub fn without_values(&self) -> Self {
        let Self { name, title, unit, dimension, axes, centring, palette, .. } = self;
        let (name, title, unit, axes) = (name.clone(), title.clone(), unit.clone(), axes.clone());
        let (dimension, centring, palette) = (*dimension, *centring, *palette);
        Self { name, title, unit, dimension, axes, centring, values: Values::F32(Vec::new()), share: None, palette }
    }

    /// Shape in C order, slowest axis first: `(N, M)` for M nodes in x and N in y.
    pub fn shape(&self) -> Vec<usize> {
        self.axes.iter().rev().map(|a| a.len).collect()
    }
}

/// A quantity of one or more components on one regular grid, each component at its own position in the cell: an electric
/// field on a staggered grid, a density. For openPMD files; every other format takes it as one [`Field`] a component.
#[derive(Debug, Clone, PartialEq)]
pub struct Mesh {
    /// File-safe name, for example `E`.
    pub name: String,
    /// Title for people, for example `electric field`.
    pub title: String,
    /// Unit of the values as computed, empty where the problem has none.
    pub unit: String,
    /// The SI dimension.
    pub dimension: UnitDimension,
    /// SI units in one unit of the values; 1 where there is none.
    pub unit_si: f64,
    /// Axes, fastest (x) first, the same for all components; `origin` is that of the cells' lower edges.
    pub axes: Vec<Axis>,
    /// Metres in one unit of length of the axes; 1 where there is none.
    pub length_si: f64,
    /// Seconds in one unit of the run's time; 1 where there is none.
    pub time_si: f64,
    /// The values belong to this much later than the step's time, in the run's unit (leapfrog: half a step earlier is negative).
    pub time_offset: f64,
    /// The components.
    pub components: Vec<Component>,
    /// Number of the first value here of each component where these are the rows of one part of a run.
    pub share: Option<usize>,
    /// Colour scale of pictures.
    pub palette: Palette,
}

/// One component of a [`Mesh`].
#[derive(Debug, Clone, PartialEq)]
pub struct Component {
    /// `x`, `y`, `z`; empty for the only component of a scalar.
    pub name: String,
    /// Position of the value in a cell, per axis from its lower edge in cells, 0 to below 1; fastest axis first.
    pub position: Vec<f64>,
    /// The values, C order with x fastest.
    pub values: Values,
}

impl Mesh {
    /// Name of component `i` as a field of its own: `E_x`, or that of the mesh where it has but one.
    pub fn field_name(&self, i: usize) -> String {
        let component = &self.components[i].name;
        if component.is_empty() { self.name.clone() } else { format!("{}_{component}", self.name) }
    }

    /// Component `i` as a field of its own: `E_x`, its axes beginning where its first value sits.
    pub fn field(&self, i: usize) -> Field {
        Field { values: self.components[i].values.clone(), ..self.field_without_values(i) }
    }

    /// Component `i` as a field of its own, whose values stay in the mesh.
    pub fn field_without_values(&self, i: usize) -> Field {
        let component = &self.components[i];
        let (alone, name) = (component.name.is_empty(), self.field_name(i));
        let shifted = |(axis, position): (&Axis, &f64)| Axis { origin: axis.origin + position * axis.spacing, ..axis.clone() };
        Field {
            title: if alone { self.title.clone() } else { format!("{} {name}", self.title) },
            name,
            unit: self.unit.clone(),
            dimension: self.dimension,
            axes: self.axes.iter().zip(&component.position).map(shifted).collect(),
            centring: Centring::Node,
            values: Values::F32(Vec::new()),
            share: None,
            palette: self.palette,
        }
    }
}
