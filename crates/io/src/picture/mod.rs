//! Pictures of records: heat maps of fields with axes and a colour bar, line plots of curves.

mod canvas;
mod colour;
mod contour;
mod font;
mod heat;
mod plot;
mod read;
mod scale;
mod ticks;
mod wave;

use std::convert::Infallible;
use std::io::Write;
use std::path::Path;

use zellige_engine::error::{Error, Result};
use zellige_engine::files::atomic_write;
use zellige_engine::ops::plane::{Plane, picture_pixels};
use zellige_engine::record::{Curve, Extremes, Field, Palette, Planes, Record, Values, Wave};

pub use canvas::{Canvas, Rgb};
pub use colour::{ColourMap, MAPS};
pub use heat::symbol;
pub use read::read_grey;

/// Options of a picture; the defaults suit a first look.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// The values at the ends of the colour bar or of the ordinate; by default those shown.
    pub range: Option<(f64, f64)>,
    /// Logarithmic colours; values that are not positive are left grey. Curves have their own flag.
    pub log: bool,
    /// The colour map; by default the one that the field's palette asks for.
    pub map: Option<ColourMap>,
    /// Contour lines; by default where the field is smooth.
    pub contours: Option<bool>,
}

/// Writes the picture of a record.
pub fn write(path: &Path, record: &Record, options: &Options) -> Result<()> {
    match record {
        Record::Field(field) => write_field(path, field, options),
        Record::Curve(curve) => write_png(path, &plot::draw(curve, options), &curve.title),
        Record::Wave(wave) => write_wave(path, wave),
        Record::Measured(m) => write_png(path, &plot::draw_measured(m, options), &m.curve.title),
        Record::Mesh(_)
        | Record::Planes(_)
        | Record::Stack(_)
        | Record::Table(_)
        | Record::Method(_)
        | Record::Archive(_)
        | Record::Patches(_) => {
            let message = format!("`{}` is drawn a component at a time, as fields; particles have no picture", record.name());
            Err(Error::format(path, "PNG", message))
        }
    }
}

/// Writes the picture of a field.
pub fn write_field(path: &Path, field: &Field, options: &Options) -> Result<()> {
    let canvas = draw_field(field, options).map_err(|m| Error::format(path, "PNG", m))?;
    write_png(path, &canvas, &field.title)
}

/// Writes the picture of a wave: the modulus as brightness, the phase as hue.
pub fn write_wave(path: &Path, wave: &Wave) -> Result<()> {
    let canvas = wave::draw(wave).map_err(|m| Error::format(path, "PNG", m))?;
    write_png(path, &canvas, &wave.title)
}

/// Draws a field: one axis as a curve, two as a heat map, three as the middle slices.
pub fn draw_field(field: &Field, options: &Options) -> Result<Canvas, String> {
    let expected = field.axes.iter().try_fold(1usize, |n, a| n.checked_mul(a.len));
    if field.axes.is_empty() || field.axes.len() > 3 || expected != Some(field.values.len()) || field.values.is_empty() {
        return Err(format!(
            "the field `{}` has {} values for the shape {:?}; pictures need 1 to 3 axes",
            field.name,
            field.values.len(),
            field.shape()
        ));
    }
    if field.axes.len() == 1 {
        return Ok(plot::draw(&profile(field, options), options));
    }
    let means = |plane: &Plane, size| Ok::<_, Infallible>(plane.means(&field.values, size));
    let Ok(canvas) = heat::draw(field, options, field.values.extremes(), means);
    Ok(canvas)
}

/// Pixels of which each shows a mean of the values of a field, if its picture is a heat map.
pub(crate) fn pixels_shown(field: &Field) -> Option<usize> {
    matches!(field.axes.len(), 2 | 3).then(|| heat::pixels(field))
}

/// Draws the heat map of a field whose values are elsewhere, by their extremes and the means that the picture asks for.
pub(crate) fn draw_means(field: &Field, extremes: Extremes, means: impl FnMut(&Plane, [usize; 2]) -> Result<Vec<f64>>) -> Result<Canvas> {
    heat::draw(field, &Options::default(), extremes, means)
}

/// The colours of a field on a coarse raster of `columns` times `rows`, rows from the top: for a terminal. The lowest and
/// highest value of the scale come with it. Three axes show the middle slice of the first two.
pub fn thumbnail(field: &Field, columns: usize, rows: usize, options: &Options) -> (Vec<Rgb>, f64, f64) {
    let plane = Plane::of(field, (0, 1), field.axes.get(2).map_or(0, |a| a.len / 2));
    let means = |rows| plane.means(&field.values, [columns, rows]);
    let values = if field.axes.len() == 1 { means(1).repeat(rows) } else { means(rows) };
    let scale = scale::Scale::new(field, &[&values], options);
    (values.iter().map(|&v| scale.colour(v)).collect(), scale.low, scale.high)
}

/// The pixels of a plane of a field, as [`Planes`] has them: averages, or the values where they are few enough. The values are
/// those of the field, or lie elsewhere in its order.
pub fn pixels(field: &Field, values: &Values, (i, j): (usize, usize)) -> Vec<f32> {
    let rest = (0..field.axes.len()).find(|a| *a != i && *a != j);
    let at = rest.map_or(0, |a| field.axes[a].len / 2);
    let [nx, ny] = [field.axes[i].len, field.axes[j].len];
    let (size, _) = picture_pixels([nx, ny], field.centring);
    if size != [nx, ny] {
        return Plane::of(field, (i, j), at).means(values, size).into_iter().map(|v| v as f32).collect();
    }
    let stride = |axis: usize| field.axes[..axis].iter().map(|a| a.len).product::<usize>();
    let (dx, dy, start) = (stride(i), stride(j), rest.map_or(0, |axis| at * stride(axis)));
    let row = |row: usize| (0..nx).map(move |column| values.get(start + row * dy + column * dx) as f32);
    (0..ny).rev().flat_map(row).collect()
}

/// Pixels of a field of two or three axes as pictures show it.
pub fn planes(mut field: Field) -> Planes {
    let axes = Planes::axes_of(&field.axes.iter().map(|a| a.len).collect::<Vec<_>>());
    let pixels = axes.into_iter().map(|axes| pixels(&field, &field.values, axes)).collect();
    field.values = Values::F32(Vec::new());
    Planes { field, pixels }
}

/// A label with its unit in brackets.
fn label(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name} [{unit}]") }
}

fn profile(field: &Field, options: &Options) -> Curve {
    let axis = &field.axes[0];
    let shift = heat::first_value(field);
    Curve {
        name: field.name.clone(),
        title: field.title.clone(),
        x_label: label(&axis.name, &axis.unit),
        y_label: label(heat::symbol(field), &field.unit),
        x: (0..axis.len).map(|i| axis.origin + (i as f64 + shift) * axis.spacing).collect(),
        lines: vec![(field.name.clone(), (0..axis.len).map(|i| field.values.get(i)).collect())],
        log_y: options.log || field.palette == Palette::Density,
    }
}

/// Writes a canvas as an 8-bit RGB file.
pub fn write_png(path: &Path, canvas: &Canvas, title: &str) -> Result<()> {
    atomic_write(path, |file| {
        let other = |e: png::EncodingError| match e {
            png::EncodingError::IoError(e) => e,
            other => std::io::Error::other(other),
        };
        let mut encoder = png::Encoder::new(&mut *file, canvas.width as u32, canvas.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        // A short run is not longer for its pictures: compression that is ten to thirty times as fast as the default, and the one filter that the
        // search among all of them mostly ends at; files are a few per cent larger than with that search.
        encoder.set_compression(png::Compression::Fast);
        encoder.set_filter(png::Filter::Paeth);
        encoder.set_source_srgb(png::SrgbRenderingIntent::RelativeColorimetric);
        encoder.add_itxt_chunk("Title".into(), title.into()).map_err(other)?;
        let mut writer = encoder.write_header().map_err(other)?;
        writer.write_image_data(bytemuck::cast_slice(&canvas.pixels)).map_err(other)?;
        writer.finish().map_err(other)?;
        file.flush()
    })
}
