//! Particles as columns ([`Table`]), and the numerical methods behind them ([`Method`]).

use super::{UnitDimension, Values};

/// Named columns of equal length: the particles of a species, or a sample of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// File-safe name, for example `electrons`.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// Metres in one unit of length of the run; 1 where there is none.
    pub length_si: f64,
    /// Seconds in one unit of the run's time; 1 where there is none.
    pub time_si: f64,
    /// Number of lines, of all parts where this is a share.
    pub len: usize,
    /// Number of the first line here where these are the lines of one part of a run.
    pub share: Option<usize>,
    /// The columns.
    pub columns: Vec<Column>,
}

/// One column of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The quantity, by openPMD's names where it has one: `position`, `momentum`, `weighting`, `charge`, `mass`, `id`.
    pub quantity: String,
    /// `x`, `y`, `z`; empty for a scalar. Columns of one quantity stand together.
    pub component: String,
    /// Unit of the values as computed, empty where the problem has none.
    pub unit: String,
    /// The SI dimension.
    pub dimension: UnitDimension,
    /// SI units in one unit of the values; 1 where there is none.
    pub unit_si: f64,
    /// Power of the weighting by which the value of one real particle becomes that of the macro-particle: 1 for a charge
    /// or a momentum, 0 for a position.
    pub weighting_power: f64,
    /// Marks values that belong to whole macro-particles.
    pub macro_weighted: bool,
    /// The values belong to this much later than the step's time, in the run's unit.
    pub time_offset: f64,
    /// The values.
    pub values: Entries,
}

impl Column {
    /// Plain numbers in SI units, one a line, which are those of no macro-particle.
    pub fn numbers(quantity: &str, component: &str, unit: &str, values: Vec<f64>) -> Self {
        Self {
            quantity: quantity.into(),
            component: component.into(),
            unit: unit.into(),
            dimension: [0.0; 7],
            unit_si: 1.0,
            weighting_power: 0.0,
            macro_weighted: false,
            time_offset: 0.0,
            values: Entries::Each(Values::F64(values)),
        }
    }

    /// `position_x`, or `weighting`.
    pub fn name(&self) -> String {
        if self.component.is_empty() { self.quantity.clone() } else { format!("{}_{}", self.quantity, self.component) }
    }
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Entries {
    /// One a line.
    Each(Values),
    /// Whole numbers, one a line: numbers of particles, which doubles may not tell apart.
    Whole(Vec<u64>),
    /// One value for every line.
    Same(f64),
}

impl Entries {
    /// Lines; none where any number will do.
    pub fn lines(&self) -> Option<usize> {
        match self {
            Self::Each(values) => Some(values.len()),
            Self::Whole(values) => Some(values.len()),
            Self::Same(_) => None,
        }
    }

    /// The value in line `i`, to the nearest double.
    pub fn get(&self, i: usize) -> f64 {
        match self {
            Self::Each(values) => values.get(i),
            Self::Whole(values) => values[i] as f64,
            Self::Same(value) => *value,
        }
    }
}

/// Numerical methods behind the meshes and particles beside it, for readers of openPMD files, by the names of that standard's
/// extension ED-PIC.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// Attributes of all meshes: `fieldSolver`, `fieldBoundary` ..
    pub fields: Vec<(&'static str, Note)>,
    /// Attributes of each species by its name: `particlePush` ..
    pub species: Vec<(String, Vec<(&'static str, Note)>)>,
}

/// Something said in a [`Method`].
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
    /// Words for the lower and the upper side of each axis, fastest (x) first.
    Sides(Vec<[&'static str; 2]>),
}
