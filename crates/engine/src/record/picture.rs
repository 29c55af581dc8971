//! Records that are drawn: [`Curve`], [`Measured`] with error bars, [`Planes`] of a field, [`Patches`] in the plane, a complex
//! [`Wave`].

use std::sync::Arc;

use num_complex::Complex;

use super::{Axis, Centring, Field, Record, Values};
use crate::cuda::Coming;
use crate::error::Result;

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

/// Planes of a field of two or three axes, averaged to the pixels of pictures where the field lies: the rest of it stays there.
#[derive(Debug, Clone, PartialEq)]
pub struct Planes {
    /// The field without its values.
    pub field: Field,
    /// Pixels of each plane of [`Planes::axes_of`], in rows from the top: as many a side as there are values, at most
    /// [`Planes::MOST`].
    pub pixels: Vec<Vec<f32>>,
}

impl Planes {
    /// Pixels of a plane along each axis at most; larger ones are averaged over the area of each pixel.
    pub const MOST: usize = 512;

    /// Of a field without its values, and copies of the pixels. Waits for them.
    pub fn of_copies(field: Field, copies: &[Coming<f32>]) -> Result<Self> {
        let pixels = copies.iter().map(|copy| copy.wait().map(<[f32]>::to_vec)).collect::<Result<_>>()?;
        Ok(Self { field, pixels })
    }

    /// Axes to the right and upwards of the planes that are shown of a field of these lengths. A third axis is cut in its middle.
    pub fn axes_of(len: &[usize]) -> Vec<(usize, usize)> {
        match len.len() {
            2 => vec![(0, 1)],
            // An axis of one value makes no plane.
            3 => [(0, 1), (0, 2), (1, 2)].into_iter().filter(|(i, j)| len[*i] > 1 && len[*j] > 1).collect(),
            _ => Vec::new(),
        }
    }
}

/// Curves of measured or averaged quantities, each with its standard errors: a line plot with error bars and a CSV file.
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
    /// Numbers of the corners of all patches, one after the other; counter-clockwise, the first not repeated. Two each are
    /// segments.
    pub corners: Vec<u32>,
    /// End of each patch in `corners`.
    pub ends: Vec<u32>,
    /// Quantities of each patch.
    pub values: Vec<PatchValues>,
}

/// [`Patches`] that are made when they are written: VTK alone has them, and they hold all fields of a moment once more.
#[derive(Clone)]
pub struct LazyPatches {
    /// That of the patches.
    pub name: String,
    /// True for segments, false for polygons.
    pub segments: bool,
    /// Makes them; its argument is all records of the moment.
    pub make: MakePatches,
}

/// Patches from all records of a moment.
pub type MakePatches = Arc<dyn Fn(&[Record]) -> Patches + Send + Sync>;

impl std::fmt::Debug for LazyPatches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LazyPatches").field("name", &self.name).field("segments", &self.segments).finish_non_exhaustive()
    }
}

impl PartialEq for LazyPatches {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.segments == other.segments && Arc::ptr_eq(&self.make, &other.make)
    }
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
    /// A modulus beyond which nothing is drawn brighter, where edges that carry no meaning are larger; of the values themselves if
    /// left out.
    pub brightest: Option<f32>,
    /// A look at a run under way: only a picture, whose file is written anew each time and never numbered.
    pub live: bool,
}

impl Wave {
    /// The wave as a field of three axes, the last of which counts layers, without its values.
    pub fn field_without_values(&self) -> Field {
        let layers = Axis { name: "mode".into(), unit: String::new(), origin: 0.0, spacing: 1.0, len: self.shape[0] };
        let axes = self.axes.iter().cloned().chain([layers]).collect();
        let field = Field::bare(&self.name, axes, Centring::Node, Values::F32(Vec::new()));
        Field { title: self.title.clone(), ..field }
    }
}
