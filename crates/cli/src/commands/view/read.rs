//! Files as records that can be drawn.

use std::path::Path;

use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::record::{Axis, Centring, Curve, Field, Palette, Record, Values, Wave};
use zellige_io::hdf5::{self, openpmd};
use zellige_io::tensor::{Elements, Tensor};
use zellige_io::{bov, csv, layer, npy, vti};

use super::endings;
use super::sources::{in_file, is_hdf5, split_dataset};

/// Axes of an array at most; of four the slowest is cut at its first place.
pub(super) const MOST_AXES: usize = 4;
/// The dataset in a group of this program's files that makes it a curve.
const ABSCISSA: &str = "abscissa";

/// A record that can be drawn, with what has to be said about it.
pub(in crate::commands) struct Drawable {
    pub(in crate::commands) record: Record,
    pub(in crate::commands) notes: Vec<String>,
}

/// Reads a file, or a dataset in it.
pub(in crate::commands) fn read(source: &Path) -> Result<Drawable> {
    let (file, dataset) = split_dataset(source);
    std::fs::metadata(&file).map_err(|e| Error::file("read", &file, e))?;
    let ending = file.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    let name = file.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let plain = |record: Record| Drawable { record, notes: Vec::new() };
    match ending.as_str() {
        "vti" => vti::read(&file).map(coloured).map(plain),
        "bov" => bov::read(&file).map(coloured).map(plain),
        _ if is_hdf5(&file) => match dataset {
            Some(dataset) => of_hdf5(&file, dataset.trim_matches('/')),
            None => match in_file(&file, true)?.sources.first() {
                Some(source) => read(&source.path),
                None => Err(Error::format(&file, "HDF5", "it holds nothing that can be drawn")),
            },
        },
        "npy" => bare(&file, name).map(plain),
        "csv" => of_table(&file, name).map(plain),
        _ => {
            let problem = Problem::new("", format!("`{}` cannot be drawn", source.display()));
            Err(Error::input("command line", problem.allowed(endings())))
        }
    }
}

/// Returns true if a group has an abscissa and lines over it, as curves of this program have.
pub(super) fn is_curve(file: &Path, group: &str) -> Result<bool> {
    hdf5::File::open(file)?.has(&format!("{group}/{ABSCISSA}"))
}

fn of_hdf5(path: &Path, name: &str) -> Result<Drawable> {
    if is_curve(path, name)? {
        return curve_of_group(path, name).map(|record| Drawable { record, notes: Vec::new() });
    }
    let shape = hdf5::shape_of(path, name)?;
    if !(1..=MOST_AXES).contains(&shape.len()) || shape.contains(&0) {
        let message =
            format!("the dataset `{name}` has the shape {shape:?}; arrays of 1 to {MOST_AXES} axes that are not empty can be drawn");
        return Err(Error::format(path, "HDF5", message));
    }
    if openpmd::contents(path)?.is_some_and(|c| c.components.iter().any(|(dataset, _)| dataset.trim_matches('/') == name)) {
        let (field, lacking) = openpmd::read_field(path, name)?;
        let keys = lacking.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        let notes = if lacking.is_empty() {
            Vec::new()
        } else {
            vec![format!(
                "`{name}` lacks {keys}, which openPMD asks for: without spacing distances count in values, without units numbers are as stored"
            )]
        };
        return Ok(Drawable { record: coloured(first(field)), notes });
    }
    if shape.len() == MOST_AXES {
        // One of many may be all that memory holds.
        let count = [&[1], &shape[1..]].concat();
        let file = hdf5::File::open(path)?;
        let elements = file.part(name)?.read(&[0; MOST_AXES], &count)?;
        return array(path, "HDF5", name.to_owned(), Tensor { shape: count, elements }, shape[0])
            .map(|record| Drawable { record, notes: Vec::new() });
    }
    let record = match hdf5::read_wave(path, name)? {
        Some(wave) => Record::Wave(scaled(wave, name)),
        None => coloured(hdf5::read_field(path, name)?),
    };
    Ok(Drawable { record, notes: Vec::new() })
}

/// A curve as this program writes it: lines over their abscissa, titled by labels.
fn curve_of_group(path: &Path, group: &str) -> Result<Record> {
    let file = hdf5::File::open(path)?;
    let title = |leaf: &str| Ok::<_, Error>(file.attribute(&format!("{group}/{leaf}"), "title")?.unwrap_or_else(|| leaf.to_owned()));
    let x = hdf5::read(path, &format!("{group}/{ABSCISSA}"))?.values;
    let mut lines = Vec::new();
    for leaf in file.children(group)?.iter().filter(|leaf| *leaf != ABSCISSA) {
        let values = hdf5::read(path, &format!("{group}/{leaf}"))?.values;
        if values.len() == x.len() {
            lines.push((title(leaf)?, values));
        }
    }
    Ok(drawn_curve(group.to_owned(), title(ABSCISSA)?, x, lines))
}

fn of_table(file: &Path, name: String) -> Result<Record> {
    let table = csv::read(file)?;
    if let Some(field) = table.field(&name) {
        return Ok(coloured(field));
    }
    let (mut names, mut columns) = (table.names.into_iter(), table.columns.into_iter());
    let (Some(x_label), Some(x)) = (names.next(), columns.next()) else {
        return Err(Error::format(file, "CSV", "it has no columns"));
    };
    if x.is_empty() {
        return Err(Error::format(file, "CSV", "it has no lines below the names of its columns"));
    }
    let lines: Vec<(String, Vec<f64>)> = names.zip(columns).collect();
    // Errors would be curves like the others.
    let is_error = |name: &str| name.strip_suffix(" error").is_some_and(|of| lines.iter().any(|(name, _)| name == of));
    let lines = lines.iter().filter(|(name, _)| !is_error(name)).cloned().collect();
    Ok(drawn_curve(name, x_label, x, lines))
}

/// Curves over an abscissa; logarithmic where they span decades and no value is negative.
fn drawn_curve(name: String, x_label: String, x: Vec<f64>, mut lines: Vec<(String, Vec<f64>)>) -> Record {
    let values = || lines.iter().flat_map(|l| &l.1);
    let negative = values().any(|v| *v < 0.0);
    let (low, high) = values().filter(|v| **v > 0.0).fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), v| (a.min(*v), b.max(*v)));
    let unit = lines.first().and_then(|(name, _)| csv::unit_of(name)).unwrap_or_default().to_owned();
    let common = !unit.is_empty() && lines.iter().all(|(name, _)| csv::unit_of(name) == Some(&unit));
    // The name of one column is no label for all, but their unit is.
    let y_label = match &lines[..] {
        [(name, _)] => name.clone(),
        _ if common => {
            for (name, _) in &mut lines {
                name.truncate(name.len() - unit.len() - " []".len());
            }
            format!("value [{unit}]")
        }
        _ => "value".into(),
    };
    Record::Curve(Curve { title: name.clone(), name, x_label, y_label, x, lines, log_y: !negative && high > 1e3 * low })
}

/// Part of an object's pixels whose modulus its picture shows; the rest is drawn as the brightest of them.
const SHOWN: f64 = 0.95;

/// Ends the scale of an object below its brightest pixels: where no light falls they may have any modulus, and one of them would
/// darken the picture of all others.
fn scaled(mut wave: Wave, dataset: &str) -> Wave {
    if wave.brightest.is_none() && dataset.contains("obj") {
        let mut moduli: Vec<f32> = wave.values.iter().map(|v| v.norm()).filter(|v| v.is_finite()).collect();
        moduli.sort_by(f32::total_cmp);
        let last = (SHOWN * moduli.len() as f64) as usize;
        wave.brightest = moduli.get(last).copied().filter(|v| *v > 0.0);
    }
    wave
}

/// An array without axes of its own.
fn bare(file: &Path, name: String) -> Result<Record> {
    let bytes = std::fs::read(file).map_err(|e| Error::file("read", file, e))?;
    let Tensor { shape, elements } = npy::tensor(&bytes).map_err(|m| Error::format(file, "NPY", m))?;
    if !(1..=MOST_AXES).contains(&shape.len()) || shape.contains(&0) {
        let message = match (&shape[..], elements.into_reals()) {
            ([], Some(value)) => format!("it is one number, {}; arrays of 1 to {MOST_AXES} axes can be drawn", value[0]),
            _ => format!("it has the shape {shape:?}; arrays of 1 to {MOST_AXES} axes that are not empty can be drawn"),
        };
        return Err(Error::format(file, "NPY", message));
    }
    let count = shape[0];
    array(file, "NPY", name, Tensor { shape, elements }, count)
}

/// An array of one to four axes; the slowest of four has `count` places.
fn array(file: &Path, format: &'static str, name: String, tensor: Tensor, count: usize) -> Result<Record> {
    let Tensor { shape, elements } = tensor;
    let axis = |i: usize, len: usize| {
        let bare = Axis::bare(i.min(2), 0.0, 1.0, len);
        Axis { name: format!("{} index", if i < 3 { &bare.name } else { "w" }), ..bare }
    };
    let four = shape.len() == MOST_AXES;
    if let Elements::Complex(mut values) = elements {
        let [x, y, layers] = [1, 2, 3].map(|back| shape.len().checked_sub(back).map_or(1, |i| shape[i]));
        values.truncate(layers * y * x);
        let title = if four { format!("{name}, 1 of {count}") } else { name.clone() };
        let axes = [axis(0, x), axis(1, y)];
        return Ok(Record::Wave(scaled(
            Wave { title, shape: [layers, y, x], axes, values, brightest: None, live: false, name: name.clone() },
            &name,
        )));
    }
    let axes = shape.iter().rev().enumerate().map(|(i, len)| axis(i, *len)).collect();
    let Some(values) = elements.into_reals() else { return Err(Error::format(file, format, "its values are no numbers")) };
    let field = first(Field::bare(name.clone(), axes, Centring::Node, Values::F64(values)));
    Ok(coloured(Field { title: if four { format!("{name}, 1 of {count}") } else { name }, ..field }))
}

/// A field of at most three axes: the first one of a stack.
fn first(field: Field) -> Field {
    if field.axes.len() < MOST_AXES { field } else { layer(&field, 0) }
}

/// The files do not say how to colour their values: those of both signs are drawn around zero.
fn coloured(mut field: Field) -> Record {
    let values = (0..field.values.len()).map(|i| field.values.get(i)).filter(|v| v.is_finite());
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    if low < 0.0 && high > 0.0 && -low > 0.05 * high && high > 0.05 * -low {
        field.palette = Palette::Diverging;
    }
    Record::Field(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_of_all_columns_is_that_of_the_ordinate() {
        let label = |names: &[&str]| {
            let lines = names.iter().map(|name| ((*name).to_owned(), vec![1.0])).collect();
            let Record::Curve(curve) = drawn_curve("c".into(), "t [s]".into(), vec![0.0], lines) else { panic!("no curve") };
            (curve.y_label, curve.lines.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        let named = |y: &str, lines: &[&str]| (y.to_owned(), lines.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>());
        assert_eq!(label(&["a [J]", "b c [J]"]), named("value [J]", &["a", "b c"]));
        assert_eq!(label(&["a [J]", "b [W]"]), named("value", &["a [J]", "b [W]"]));
        assert_eq!(label(&["a [J]"]), named("a [J]", &["a [J]"]));
        assert_eq!(label(&["a", "b"]), named("value", &["a", "b"]));
    }
}
