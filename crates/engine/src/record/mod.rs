//! Records that a solver hands over for output: named arrays with axes and units ([`Field`], of several components and staggered
//! [`Mesh`]), particles ([`Table`]), curves ([`Curve`]) and rows of scalars ([`Row`]). `io` writes them; no solver knows a file
//! format and `io` knows no solver.

mod archive;
mod given;
mod mesh;
mod on_gpu;
mod particles;
mod picture;
mod pictures;
mod shares;

use serde::Serialize;

pub use archive::{Archive, Content, Leaf};
pub use given::GivenValues;
pub use mesh::{Axis, Centring, Component, Extremes, Field, Mesh, Palette, UnitDimension, Values};
pub use on_gpu::{FieldOnGpu, TableOnGpu, ValuesOnGpu};
pub use particles::{Column, Entries, Method, Note, Table};
pub use picture::{Curve, LazyPatches, MakePatches, Measured, PatchValues, Patches, Planes, Wave};
pub use pictures::{MakeRecords, Pictures};
pub(crate) use shares::must_join;
pub use shares::{Lead, Outline, Slot, follow};

/// Anything a solver writes.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A complex image.
    Wave(Wave),
    /// A file for another program.
    Archive(Archive),
    /// A field on a grid.
    Field(Field),
    /// A field of which only what pictures show is there: of a run that is watched, never of its results.
    Planes(Planes),
    /// Fields of one kind on one grid of two or three axes: the last axis, one more, counts them.
    Stack(Field),
    /// Curves.
    Curve(Curve),
    /// A quantity of several components on a staggered grid.
    Mesh(Mesh),
    /// Particles.
    Table(Table),
    /// Numerical methods behind meshes and particles.
    Method(Method),
    /// Curves with error bars.
    Measured(Measured),
    /// Polygons or segments with values.
    Patches(LazyPatches),
}

impl Record {
    /// The file-safe name.
    pub fn name(&self) -> &str {
        match self {
            Self::Wave(w) => &w.name,
            Self::Archive(a) => &a.name,
            Self::Field(f) | Self::Stack(f) => &f.name,
            Self::Planes(p) => &p.field.name,
            Self::Curve(c) => &c.name,
            Self::Mesh(m) => &m.name,
            Self::Table(t) => &t.name,
            // No file has it.
            Self::Method(_) => "(method)",
            Self::Measured(m) => &m.curve.name,
            Self::Patches(p) => &p.name,
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
    /// Name of the checked quantity.
    pub name: String,
    /// The figure.
    pub value: f64,
    /// The largest figure that passes.
    pub limit: f64,
    /// Outcome of the check; a NaN never passes.
    pub ok: bool,
}

impl Check {
    /// `value` must not exceed `limit`.
    pub fn at_most(name: impl Into<String>, value: f64, limit: f64) -> Self {
        Self { name: name.into(), value, limit, ok: value <= limit }
    }
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {:.3e} (at most {:.3e})", self.name, self.value, self.limit)
    }
}
