//! Frames: what a picture on the page shows of one record at one moment, small enough to send.

use std::collections::BTreeSet;

use serde::Serialize;
use zellige_engine::record::{Axis, Centring, Curve, Field, Palette, Patches, Planes, Record, Values, Wave};
use zellige_io::picture;

/// Pixels of a picture along each axis at most; larger fields are averaged over the area of each pixel.
pub const MOST: usize = Planes::MOST;
/// Points of a curve at most.
const POINTS: usize = 2048;
/// Layers of a wave that are shown.
const LAYERS: usize = 9;

/// Content of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Values on a raster, rows from the top.
    Image,
    /// Complex values on a raster, real and imaginary parts in turn, layer by layer, rows from the top.
    Wave,
    /// The abscissa, then each line, all of `nx` points.
    Curve,
    /// Segments in the plane, four numbers each: outlines of bodies, which are drawn over images.
    Outline,
}

/// Description of a frame, sent before its numbers.
#[derive(Debug, Clone, Serialize)]
pub struct Head {
    /// File-safe name of the record, and of the plane where it has several.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// Label of the values without their unit.
    pub symbol: String,
    /// Unit of the values.
    pub unit: String,
    /// Content.
    pub kind: Kind,
    /// Columns, or points of a curve.
    pub nx: usize,
    /// Rows, or lines of a curve.
    pub ny: usize,
    /// Layers.
    pub layers: usize,
    /// Lengths of the axes in the record.
    pub full: [usize; 2],
    /// Left, right, lower and upper edge of the raster.
    pub extent: [f64; 4],
    /// Names of the axes, or labels of a curve.
    pub labels: [String; 2],
    /// Units of the axes.
    pub units: [String; 2],
    /// Colour scale.
    pub palette: Option<Palette>,
    /// Logarithmic ordinate or colours at first.
    pub log: bool,
    /// Names of the lines of a curve.
    pub lines: Vec<String>,
    /// Modulus beyond which nothing is drawn brighter.
    pub brightest: Option<f32>,
}

/// A frame without its moment.
#[derive(Debug, Clone)]
pub struct Content {
    /// Description.
    pub head: Head,
    /// The numbers.
    pub values: Vec<f32>,
}

/// Frames of the records of a moment; files, particles and what is drawn only on request have none.
pub fn frames(records: &[Record]) -> Vec<Content> {
    frames_but(records, &BTreeSet::new())
}

/// [`frames`] but for those of records, or components of meshes, that have been `shown`.
pub(crate) fn frames_but(records: &[Record], shown: &BTreeSet<String>) -> Vec<Content> {
    let named = |name: &str| shown.contains(name) || records.iter().any(|r| matches!(r, Record::Field(f) if f.name == name));
    let wanted = records.iter().filter(|record| !shown.contains(record.name()));
    wanted.flat_map(|record| of_record(record, records, named)).collect()
}

fn of_record(record: &Record, all: &[Record], named: impl Fn(&str) -> bool) -> Vec<Content> {
    match record {
        Record::Field(field) => of_field(field, &field.values),
        Record::Planes(planes) => of_planes(planes),
        Record::Stack(field) => of_stack(field),
        Record::Mesh(mesh) => {
            let missing = |i: &usize| !named(&mesh.field_name(*i));
            (0..mesh.components.len())
                .filter(missing)
                .flat_map(|i| of_field(&mesh.field_without_values(i), &mesh.components[i].values))
                .collect()
        }
        Record::Wave(wave) => of_wave(wave).into_iter().collect(),
        Record::Curve(curve) => vec![of_curve(curve)],
        Record::Measured(measured) => vec![of_curve(&measured.curve)],
        Record::Patches(patches) if patches.segments => vec![outline(&(patches.make)(all))],
        Record::Patches(_) | Record::Table(_) | Record::Method(_) | Record::Archive(_) => Vec::new(),
    }
}

/// Letters of axes in names of pictures.
const AXES: [&str; 3] = ["x", "y", "z"];

/// Axes of the planes of a field that are shown.
fn planes(field: &Field) -> Vec<(usize, usize)> {
    Planes::axes_of(&field.axes.iter().map(|a| a.len).collect::<Vec<_>>())
}

/// The values are those of the field, or lie in the mesh that it is a component of.
fn of_field(field: &Field, values: &Values) -> Vec<Content> {
    let count = field.axes.iter().try_fold(1usize, |n, a| n.checked_mul(a.len));
    if field.palette == Palette::Undrawn || count != Some(values.len()) || values.is_empty() {
        return Vec::new();
    }
    match field.axes.len() {
        1 => vec![of_line(field, values)],
        _ => planes(field).into_iter().map(|axes| image(field, axes, picture::pixels(field, values, axes))).collect(),
    }
}

fn of_planes(Planes { field, pixels }: &Planes) -> Vec<Content> {
    if field.palette == Palette::Undrawn {
        return Vec::new();
    }
    planes(field).into_iter().zip(pixels).map(|(axes, pixels)| image(field, axes, pixels.clone())).collect()
}

/// The first field of a stack.
fn of_stack(stack: &Field) -> Vec<Content> {
    let Some((count, axes)) = stack.axes.split_last() else { return Vec::new() };
    let len = axes.iter().map(|a| a.len).product::<usize>();
    if len == 0 || stack.values.len() < len {
        return Vec::new();
    }
    let values = match &stack.values {
        Values::F32(v) => Values::F32(v[..len].to_vec()),
        Values::F64(v) => Values::F64(v[..len].to_vec()),
    };
    let mut field = Field::bare(stack.name.clone(), axes.to_vec(), stack.centring, Values::F32(Vec::new()));
    field.title = format!("{}, 1 of {}", stack.title, count.len);
    (field.unit, field.dimension, field.palette) = (stack.unit.clone(), stack.dimension, stack.palette);
    of_field(&field, &values)
}

/// Offset of the first value on an axis, in spacings.
fn first_value(centring: Centring) -> f64 {
    if centring == Centring::Node { 0.0 } else { 0.5 }
}

/// Picture of a plane of these pixels.
fn image(field: &Field, (i, j): (usize, usize), pixels: Vec<f32>) -> Content {
    let (x, y) = (&field.axes[i], &field.axes[j]);
    let rest = (0..field.axes.len()).find(|a| *a != i && *a != j);
    let at = rest.map_or(0, |a| field.axes[a].len / 2);
    let (nx, ny) = (x.len.min(MOST), y.len.min(MOST));
    let reduced = x.len > MOST || y.len > MOST;
    let edges = |axis: &Axis| {
        // Nodes are drawn as cells around them, unless pixels are averages from the first node to the last.
        let (before, cells) = match field.centring {
            Centring::Node if reduced => (0.0, axis.len.saturating_sub(1).max(1)),
            Centring::Node => (-0.5, axis.len),
            Centring::Cell => (0.0, axis.len),
        };
        let from = axis.origin + before * axis.spacing;
        [from, from + cells as f64 * axis.spacing]
    };
    let ([left, right], [lower, upper]) = (edges(x), edges(y));
    let (mut name, mut title) = (field.name.clone(), field.title.clone());
    if let Some(rest) = rest {
        let axis = &field.axes[rest];
        let place = axis.origin + (at as f64 + first_value(field.centring)) * axis.spacing;
        // By number: axes of files may have any names.
        name = format!("{name}_{}{}", AXES[i], AXES[j]);
        title = format!("{title}, {} = {}", axis.name, with_unit(place, &axis.unit));
    }
    Content {
        head: Head {
            symbol: picture::symbol(field).to_owned(),
            unit: field.unit.clone(),
            kind: Kind::Image,
            nx,
            ny,
            layers: 1,
            full: [x.len, y.len],
            extent: [left, right, lower, upper],
            labels: [x.name.clone(), y.name.clone()],
            units: [x.unit.clone(), y.unit.clone()],
            palette: Some(field.palette),
            log: field.palette == Palette::Density,
            lines: Vec::new(),
            brightest: None,
            name,
            title,
        },
        values: pixels,
    }
}

fn with_unit(value: f64, unit: &str) -> String {
    let digits = format!("{value:.3e}");
    let plain = digits.parse::<f64>().unwrap_or(value);
    let number = if plain == 0.0 || (1e-3..1e5).contains(&plain.abs()) { format!("{plain}") } else { format!("{plain:e}") };
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

fn of_line(field: &Field, values: &Values) -> Content {
    let axis = &field.axes[0];
    let shift = first_value(field.centring);
    let label = picture::symbol(field).to_owned();
    of_curve(&Curve {
        name: field.name.clone(),
        title: field.title.clone(),
        x_label: with_brackets(&axis.name, &axis.unit),
        y_label: with_brackets(&label, &field.unit),
        x: (0..axis.len).map(|i| axis.origin + (i as f64 + shift) * axis.spacing).collect(),
        lines: vec![(label, (0..axis.len).map(|i| values.get(i)).collect())],
        log_y: field.palette == Palette::Density,
    })
}

fn with_brackets(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name} [{unit}]") }
}

fn of_curve(curve: &Curve) -> Content {
    let every = curve.x.len().div_ceil(POINTS).max(1);
    let thinned = |values: &[f64]| values.iter().step_by(every).map(|v| *v as f32).collect::<Vec<_>>();
    let nx = curve.x.len().div_ceil(every);
    let mut values = thinned(&curve.x);
    for (_, line) in &curve.lines {
        let mut line = thinned(line);
        line.resize(nx, f32::NAN);
        values.extend(line);
    }
    Content {
        head: Head {
            name: curve.name.clone(),
            title: curve.title.clone(),
            symbol: String::new(),
            unit: String::new(),
            kind: Kind::Curve,
            nx,
            ny: curve.lines.len(),
            layers: 1,
            full: [curve.x.len(), curve.lines.len()],
            extent: [0.0; 4],
            labels: [curve.x_label.clone(), curve.y_label.clone()],
            units: Default::default(),
            palette: None,
            log: curve.log_y,
            lines: curve.lines.iter().map(|(name, _)| name.clone()).collect(),
            brightest: None,
        },
        values,
    }
}

/// Layers of a wave, averaged to at most [`MOST`] pixels a side in all.
fn of_wave(wave: &Wave) -> Option<Content> {
    let [layers, rows, columns] = wave.shape;
    if wave.values.len() != layers * rows * columns || wave.values.is_empty() {
        return None;
    }
    let layers = layers.min(LAYERS);
    let across = (layers as f64).sqrt().ceil() as usize;
    let every = rows.max(columns).div_ceil(MOST / across).max(1);
    let (nx, ny) = (columns.div_ceil(every), rows.div_ceil(every));
    let mut values = Vec::with_capacity(2 * layers * nx * ny);
    for layer in wave.values.chunks_exact(rows * columns).take(layers) {
        for y in 0..ny {
            let these = y * every..((y + 1) * every).min(rows);
            for x in 0..nx {
                let (from, to) = (x * every, ((x + 1) * every).min(columns));
                let (mut re, mut im) = (0.0, 0.0);
                for row in these.clone() {
                    for v in &layer[row * columns + from..row * columns + to] {
                        re += v.re;
                        im += v.im;
                    }
                }
                let count = (these.len() * (to - from)) as f32;
                values.extend([re / count, im / count]);
            }
        }
    }
    let [x, y] = &wave.axes;
    let end = |axis: &Axis, n: usize| axis.origin + n as f64 * axis.spacing;
    Some(Content {
        head: Head {
            name: wave.name.clone(),
            title: wave.title.clone(),
            symbol: wave.name.clone(),
            unit: String::new(),
            kind: Kind::Wave,
            nx,
            ny,
            layers,
            full: [columns, rows],
            // y runs down.
            extent: [x.origin, end(x, nx * every), end(y, ny * every), y.origin],
            labels: [x.name.clone(), y.name.clone()],
            units: [x.unit.clone(), y.unit.clone()],
            palette: None,
            log: false,
            lines: Vec::new(),
            brightest: wave.brightest,
        },
        values,
    })
}

fn outline(patches: &Patches) -> Content {
    let mut values = Vec::with_capacity(4 * patches.ends.len());
    let mut begin = 0;
    for end in &patches.ends {
        if let [a, b] = patches.corners[begin as usize..*end as usize] {
            for p in [a, b].map(|k| patches.points[k as usize]) {
                values.extend(p.map(|v| v as f32));
            }
        }
        begin = *end;
    }
    Content {
        head: Head {
            name: patches.name.clone(),
            title: patches.title.clone(),
            symbol: String::new(),
            unit: String::new(),
            kind: Kind::Outline,
            nx: values.len() / 4,
            ny: 4,
            layers: 1,
            full: [values.len() / 4, 4],
            extent: [0.0; 4],
            labels: Default::default(),
            units: Default::default(),
            palette: None,
            log: false,
            lines: Vec::new(),
            brightest: None,
        },
        values,
    }
}

#[cfg(test)]
mod tests;
