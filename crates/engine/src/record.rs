//! Records that a solver hands over for output: named arrays with axes and units ([`Field`], of several components and staggered
//! [`Mesh`]), particles ([`Table`]), curves ([`Curve`]) and rows of scalars ([`Row`]). `io` writes them; no solver knows a file format
//! and `io` knows no solver.

use num_complex::Complex;
use serde::Serialize;

/// Exponents of the seven SI base units in openPMD's order: m, kg, s, A, K, mol, cd.
pub type UnitDimension = [f64; 7];

/// Location of values on a regular axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
    /// Title for people. It may end in the symbol that stands at the scale: `potential u`, or after a colon
    /// `electrons in phase space: f(x, u_x)`; without one the name stands there.
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
    /// Colour scale of a picture.
    pub palette: Palette,
}

impl Field {
    /// A field of which no more is known than its numbers: titled by its name, without units.
    pub fn bare(name: impl Into<String>, axes: Vec<Axis>, centring: Centring, values: Values) -> Self {
        let name = name.into();
        let (title, unit, dimension, palette) = (name.clone(), String::new(), [0.0; 7], Palette::Sequential);
        Self { name, title, unit, dimension, axes, centring, values, palette }
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
            values: component.values.clone(),
            palette: self.palette,
        }
    }
}

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
    /// Number of lines.
    pub len: usize,
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

/// Numerical methods behind the meshes and particles beside it, for readers of openPMD files, by the names of that standard's extension
/// ED-PIC.
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

/// Curves of what was measured or averaged, each with its standard errors: a line plot with error bars and a CSV file.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The curves.
    pub curve: Curve,
    /// Standard errors of each line, as long as the line; NaN where there is none.
    pub errors: Vec<Vec<f64>>,
}

/// Polygons or segments in the plane with values of each: the cells of a grid as bodies have cut them, the walls of bodies.
#[derive(Debug, Clone, PartialEq)]
pub struct Patches {
    /// File-safe name, for example `gas`.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// Points that patches share.
    pub points: Vec<[f64; 2]>,
    /// Numbers of the corners of all patches, one after the other; counter-clockwise, the first not repeated. Two each are segments.
    pub corners: Vec<u32>,
    /// End of each patch in `corners`.
    pub ends: Vec<u32>,
    /// Quantities of each patch.
    pub values: Vec<PatchValues>,
}

/// A quantity of [`Patches`].
#[derive(Debug, Clone, PartialEq)]
pub struct PatchValues {
    /// Name.
    pub name: String,
    /// Unit, empty where there is none.
    pub unit: String,
    /// Numbers of a patch that stand together: 1, or 3 of a vector.
    pub components: usize,
    /// The values, patch by patch.
    pub values: Vec<f32>,
}

/// A complex image of one or more layers: the modes of a wave, the transmission of a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Wave {
    /// File-safe name, for example `probe`.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// Layers, rows, columns.
    pub shape: [usize; 3],
    /// Axes of a layer, x (columns) first; y runs down.
    pub axes: [Axis; 2],
    /// The values in C order.
    pub values: Vec<Complex<f32>>,
    /// A modulus beyond which nothing is drawn brighter, where edges that carry no meaning are larger; of the values themselves if left
    /// out.
    pub brightest: Option<f32>,
    /// A look at a run under way: only a picture, whose file is written anew each time and never numbered.
    pub live: bool,
}

/// A file with a tree of its own, as another program wants to find it.
#[derive(Debug, Clone, PartialEq)]
pub struct Archive {
    /// File-safe name.
    pub name: String,
    /// Ending of the file: `ptyr`, `cxi`. All of them are HDF5.
    pub ending: &'static str,
    /// Entries of the archive; groups on the way are created.
    pub leaves: Vec<Leaf>,
}

/// A group, a dataset or a link of an [`Archive`].
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    /// Path in the file, `content/probe/data`.
    pub path: String,
    /// Content of the entry.
    pub content: Content,
    /// Attributes, texts.
    pub attributes: Vec<(&'static str, String)>,
}

/// Content at a path of an [`Archive`].
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A group.
    Group,
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
    /// A whole number.
    Whole(i64),
    /// Whole numbers of a shape.
    Wholes(Vec<usize>, Vec<i32>),
    /// Real numbers of a shape.
    Reals(Vec<usize>, Vec<f64>),
    /// Complex numbers of a shape.
    Complex(Vec<usize>, Vec<Complex<f32>>),
    /// The path of something else in the file.
    Link(String),
}

/// Anything a solver writes.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A complex image.
    Wave(Wave),
    /// A file for another program.
    Archive(Archive),
    /// A field on a grid.
    Field(Field),
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
    Patches(Patches),
}

impl Record {
    /// The file-safe name.
    pub fn name(&self) -> &str {
        match self {
            Self::Wave(w) => &w.name,
            Self::Archive(a) => &a.name,
            Self::Field(f) | Self::Stack(f) => &f.name,
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
