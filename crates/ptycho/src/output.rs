//! Results as records: what a person in the field looks at first, and files for other programs.
//!
//! | record | what |
//! |---|---|
//! | `object_phase`, `object_amplitude` | the part of the sample that was lit, a mean phase and its slope taken out |
//! | `object`, `probe` | complex arrays as reconstructed, all modes |
//! | `diffraction` | a frame: measured on the left, modelled on the right |
//! | `errors` | the errors of each iteration |
//! | `local_error_fourier`, `local_error_likelihood`, `local_error_exit` | if asked for: those of each frame in each iteration |
//! | `views` | where each frame was taken, and its errors |
//! | `result.ptyr`, `result.cxi` | for PtyPy's tools, for others |

use std::path::Path;

use num_complex::Complex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::parallel::{chunks_mut, each, indices, items, items_mut, map};
use zellige_engine::record::{Axis, Centring, Content, Field, Leaf, Palette, Record, Values, Wave};
use zellige_engine::schedule::Schedule;

use crate::config::Config;
use crate::engines::middle_first;
use crate::model::{Model, State, Storage, Transfer};
use crate::ordered;

mod cxi;
mod errors;
mod ptyr;

use errors::{errors, local_errors, positions, views};
pub(crate) use ptyr::POSITIONS;

/// Further output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutputConfig {
    /// Files for other programs.
    pub files: Vec<ResultFile>,
    /// Schedule of `live.png`, the current object; default never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<Schedule>,
    /// Frame shown with its model; default the brightest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<usize>,
    /// Writes every frame's errors in every iteration as `local_error_*`, `[iterations, frames]`: 12 bytes each.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub local_errors: bool,
}

impl Default for OutputConfig {
    fn default() -> Self {
        Self { files: vec![ResultFile::Ptyr], live: None, frame: None, local_errors: false }
    }
}

/// Files for other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResultFile {
    /// PtyPy's results.
    Ptyr,
    /// CXI.
    Cxi,
}

/// A reconstruction as it stands.
pub struct Results<'a> {
    /// The input.
    pub config: &'a Config,
    /// The folder that its paths refer to.
    pub folder: &'a Path,
    /// The problem.
    pub model: &'a Model,
    /// Probe and object as the stages hold them.
    pub state: &'a State,
    /// Mean errors of each iteration, in the order of [`crate::stages::ERRORS`].
    pub history: &'a [[f64; 3]],
    /// Errors of each view in each iteration, if they are kept: as many blocks of `errors.len()` as there were iterations.
    pub local: &'a [[f32; 3]],
    /// Errors of each view in the last iteration.
    pub errors: &'a [[f64; 3]],
    /// Present positions of the views: whole pixels and sub-pixel remainders.
    pub views: (&'a [crate::model::View], &'a [[f64; 2]]),
    /// Number of a view, its moduli, and its intensities by the model in their order.
    pub frame: Option<(usize, &'a [f32], &'a [f64])>,
    /// Wavelength and distance of the detector of each scan, metres.
    pub beams: &'a [crate::scan::Beam],
}

/// Records that are written at the end of a run, and when `output.every` falls due.
pub fn records(results: &Results, config: &OutputConfig) -> Vec<Record> {
    let mut all = pictures(results);
    all.extend(local_errors(results));
    all.push(views(results));
    if config.live.is_some() {
        all.extend(live(results));
    }
    for file in &config.files {
        all.push(Record::Archive(match file {
            ResultFile::Ptyr => ptyr::ptyr(results),
            ResultFile::Cxi => cxi::cxi(results),
        }));
    }
    all
}

/// Records that show how a reconstruction stands: objects, probes, a frame beside its model, errors.
pub fn pictures(results: &Results) -> Vec<Record> {
    let model = results.model;
    let mut all = Vec::new();
    for (i, storage) in model.storages.iter().enumerate() {
        let suffix = of_object(model, i);
        let shown = IlluminatedPart::new(results, i);
        all.extend(shown.fields(model, storage, &suffix));
        let layers = &results.state.object[storage.offset..][..model.modes[1] * storage.layer()];
        let mut object = Wave { values: single(layers), ..object_without_values(model, i) };
        // Pixels without light have arbitrary, often large values.
        object.brightest = shown.moduli().into_iter().filter(|v| v.is_finite()).reduce(f32::max);
        all.push(Record::Wave(object));
    }
    for (s, probe) in probes(results).into_iter().enumerate() {
        all.push(Record::Wave(Wave { values: single(&probe), ..probe_without_values(model, s) }));
    }
    all.extend(diffraction(results));
    all.extend(errors(results.history));
    all
}

/// The object as it stands, for `live.png`: the first layer of each storage that has views, the part that is lit.
pub fn live(results: &Results) -> Option<Record> {
    let shown = IlluminatedPart::new(results, 0);
    let (rows, columns) = (shown.rows.len(), shown.columns.len());
    let storage = results.model.storages.first()?;
    let origin = [shown.rows.start, shown.columns.start];
    let origin = [0, 1].map(|d| storage.origin[d] + origin[d] as f64 * results.model.pixel[d]);
    let title = format!("object after {} iterations", results.history.len());
    let object = wave("live".into(), &title, &shown.values, [1, rows, columns], results.model.pixel, origin);
    Some(Record::Wave(Wave { live: true, ..object }))
}

/// Record of an object without its values.
pub(crate) fn object_without_values(model: &Model, number: usize) -> Wave {
    let storage = &model.storages[number];
    let shape = [model.modes[1], storage.shape[0], storage.shape[1]];
    wave(format!("object{}", of_object(model, number)), "object", &[], shape, model.pixel, storage.origin)
}

/// Record of a probe without its values.
pub(crate) fn probe_without_values(model: &Model, number: usize) -> Wave {
    let shape = [model.modes[0], model.frame[0], model.frame[1]];
    wave(format!("probe{}", of_probe(model, number)), "probe", &[], shape, model.pixel, probe_origin(model))
}

/// Suffix of the names of an object's records: empty where there is one object, else its first scan.
pub(crate) fn of_object(model: &Model, number: usize) -> String {
    if model.storages.len() > 1 { format!("_{}", owner(model, |v| v.object as usize == number)) } else { String::new() }
}

/// Suffix of the names of a probe's records: empty where there is one probe, else its first scan.
pub(crate) fn of_probe(model: &Model, number: usize) -> String {
    if model.probes > 1 { format!("_{}", owner(model, |v| v.probe as usize == number)) } else { String::new() }
}

/// Name of the first scan one of whose views is meant.
fn owner(model: &Model, meant: impl Fn(&crate::model::View) -> bool) -> String {
    let first = model.views.iter().position(meant).unwrap_or(0);
    let scan = model.scans.iter().rev().find(|s| s.1 <= first).or(model.scans.first());
    plain(scan.map_or("scan", |s| s.0.as_str()))
}

/// A scan's name as used in names of files and of storages.
pub(crate) fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

fn leaf(path: impl Into<String>, content: Content) -> Leaf {
    Leaf { path: path.into(), content, attributes: Vec::new() }
}

fn single(values: &[Complex<f64>]) -> Vec<Complex<f32>> {
    map(items(values), |_, v| Complex::new(v.re as f32, v.im as f32))
}

fn pair(values: [f64; 2]) -> Content {
    Content::Reals(vec![2], values.to_vec())
}

/// Coordinates of the first pixel of a probe.
fn probe_origin(model: &Model) -> [f64; 2] {
    [0, 1].map(|d| -((model.frame[d] / 2) as f64) * model.pixel[d])
}

/// The probes without the phase of the sample plane that the stages keep in them.
fn probes(results: &Results) -> Vec<Vec<Complex<f64>>> {
    let model = results.model;
    let size = model.modes[0] * model.pixels();
    let plain = |set: &[Complex<f64>]| map(items(set), |i, p| p * model.filter[i % model.pixels()].conj());
    results.state.probe.chunks_exact(size.max(1)).map(plain).collect()
}

fn wave(name: String, title: &str, values: &[Complex<f64>], shape: [usize; 3], pixel: [f64; 2], origin: [f64; 2]) -> Wave {
    let axes = [1, 0].map(|d| Axis { unit: "m".into(), ..Axis::bare(1 - d, origin[d], pixel[d], shape[1 + d]) });
    let values = single(values);
    Wave { name, title: title.into(), shape, axes, values, brightest: None, live: false }
}

/// Largest number of views that are examined to find the illuminated part.
const LOOKED_AT: usize = 4096;
/// Light, as a part of the most, below which a pixel is not shown.
const DARK: f64 = 0.01;
/// A spread of phases beyond this is shown on the circle of hues, others on an ordered scale.
const WIDE: f64 = 4.0;

/// The part of an object that was lit.
struct IlluminatedPart {
    rows: std::ops::Range<usize>,
    columns: std::ops::Range<usize>,
    /// First layer; not a number where it was dark; mean phase and slope taken out.
    values: Vec<Complex<f64>>,
}

impl IlluminatedPart {
    fn new(results: &Results, number: usize) -> Self {
        let model = results.model;
        let storage = &model.storages[number];
        let [height, width] = storage.shape;
        let light = light(results, number);
        let most = light.iter().copied().fold(0.0, f64::max);
        let lit = |i: usize| light[i] > DARK * most;
        let bounds = |n: usize, any: &dyn Fn(usize) -> bool| {
            let first = (0..n).find(|i| any(*i)).unwrap_or(0);
            let last = (0..n).rev().find(|i| any(*i)).unwrap_or(n - 1);
            first..last + 1
        };
        let rows = bounds(height, &|r| (0..width).any(|c| lit(r * width + c)));
        let columns = bounds(width, &|c| (0..height).any(|r| lit(r * width + c)));
        let layer = &results.state.object[storage.offset..][..storage.layer()];
        let value = |_, i: usize| {
            let i = (rows.start + i / columns.len()) * width + columns.start + i % columns.len();
            if lit(i) { layer[i] } else { Complex::new(f64::NAN, f64::NAN) }
        };
        let mut values = map(indices(rows.len() * columns.len()), value);
        levelled(&mut values, columns.len());
        Self { rows, columns, values }
    }

    fn moduli(&self) -> Vec<f32> {
        map(items(&self.values), |_, v| v.norm() as f32)
    }

    fn fields(&self, model: &Model, storage: &Storage, suffix: &str) -> [Record; 2] {
        let phases: Vec<f32> = map(items(&self.values), |_, v| v.arg() as f32);
        let mut sound: Vec<f32> = phases.iter().copied().filter(|p| p.is_finite()).collect();
        // Phases that go round would jump from one end of an ordered scale to the other.
        let round = sound.iter().any(|p| *p < -3.0) && sound.iter().any(|p| *p > 3.0);
        let mut at = |part: f64| {
            let i = (part * sound.len() as f64) as usize;
            if i < sound.len() { f64::from(*sound.select_nth_unstable_by(i, f32::total_cmp).1) } else { 0.0 }
        };
        let palette = if round || at(0.99) - at(0.01) > WIDE { Palette::Cyclic } else { Palette::Sequential };
        // Pictures have y upwards: rows are turned round, so that the first is on top.
        let field = |name: &str, title: &str, unit: &str, values: Vec<f32>, palette| {
            let (rows, columns) = (self.rows.len(), self.columns.len());
            let turned = values.chunks_exact(columns).rev().flatten().copied().collect();
            let x = Axis {
                unit: "m".into(),
                ..Axis::bare(0, storage.origin[1] + self.columns.start as f64 * model.pixel[1], model.pixel[1], columns)
            };
            let y = Axis {
                unit: "m".into(),
                ..Axis::bare(1, -(storage.origin[0] + self.rows.end as f64 * model.pixel[0]), model.pixel[0], rows)
            };
            let mut field = Field::bare(format!("{name}{suffix}"), vec![x, y], Centring::Cell, Values::F32(turned));
            (field.title, field.unit, field.palette) = (title.into(), unit.into(), palette);
            Record::Field(field)
        };
        [
            field("object_phase", "phase of the object: φ", "rad", phases, palette),
            field("object_amplitude", "modulus of the object: |O|", "", self.moduli(), Palette::Sequential),
        ]
    }
}

/// Light on each pixel of a storage: the power of the probe summed over the views.
fn light(results: &Results, number: usize) -> Vec<f64> {
    let model = results.model;
    let storage = &model.storages[number];
    let [ny, nx] = model.frame;
    let pixels = ny * nx;
    let power = |set: usize| -> Vec<f64> {
        let modes = &results.state.probe[set * model.modes[0] * pixels..][..model.modes[0] * pixels];
        map(indices(pixels), |_, q| modes.iter().skip(q).step_by(pixels).map(Complex::norm_sqr).sum())
    };
    let powers: Vec<Vec<f64>> = (0..model.probes).map(power).collect();
    let stride = results.views.0.len().div_ceil(LOOKED_AT).max(1);
    let mine: Vec<_> = results.views.0.iter().filter(|v| v.object as usize == number).step_by(stride).collect();
    let mut light = vec![0.0; storage.layer()];
    each(chunks_mut(&mut light, storage.shape[1].max(1)), |row, line| {
        for view in &mine {
            let inside = row as i64 - i64::from(view.row);
            if (0..ny as i64).contains(&inside) && view.col >= 0 && view.col as usize + nx <= line.len() {
                let from = &powers[view.probe as usize][inside as usize * nx..][..nx];
                line[view.col as usize..][..nx].iter_mut().zip(from).for_each(|(l, p)| *l += p);
            }
        }
    });
    light
}

/// Takes out the mean phase and its mean slope, which the data leave open: a phase that goes up across the object goes down across
/// the probe. Values that are not numbers are passed over.
fn levelled(values: &mut [Complex<f64>], width: usize) {
    let sound = |v: Complex<f64>| if v.re.is_finite() { v } else { Complex::default() };
    let slope = |step: usize, last: bool| -> f64 {
        let pair = |i: usize| if last && i % width == width - 1 { Complex::default() } else { sound(values[i].conj() * values[i + step]) };
        ordered::sum(values.len().saturating_sub(step), pair).arg()
    };
    let (x, y) = (slope(1, true), slope(width, false));
    let back = |i: usize| Complex::from_polar(1.0, -((i % width) as f64 * x + (i / width) as f64 * y));
    let mean = ordered::sum(values.len(), |i| sound(values[i] * back(i)));
    let turn = Complex::from_polar(1.0, -mean.arg());
    each(items_mut(values), |i, v| *v *= back(i) * turn);
    // Without phase wraps, the remaining plane is fitted by least squares.
    let phases = map(items(values), |_, v| v.arg());
    if phases.iter().any(|p| p.abs() > 2.5) {
        return;
    }
    let (mut a, mut b) = ([[0.0; 3]; 3], [0.0; 3]);
    for (i, phase) in phases.into_iter().enumerate().filter(|(i, _)| values[*i].re.is_finite()) {
        let at = [1.0, (i % width) as f64, (i / width) as f64];
        for r in 0..3 {
            b[r] += at[r] * phase;
            for c in 0..3 {
                a[r][c] += at[r] * at[c];
            }
        }
    }
    let Some([level, x, y]) = solved(a, b) else { return };
    each(items_mut(values), |i, v| *v *= Complex::from_polar(1.0, -(level + x * (i % width) as f64 + y * (i / width) as f64)));
}

/// Solution of three linear equations by Cramer's rule.
fn solved(a: [[f64; 3]; 3], b: [f64; 3]) -> Option<[f64; 3]> {
    let determinant = |m: [[f64; 3]; 3]| {
        let minor = |c: usize, d: usize| m[1][c] * m[2][d] - m[1][d] * m[2][c];
        m[0][0] * minor(1, 2) - m[0][1] * minor(0, 2) + m[0][2] * minor(0, 1)
    };
    let whole = determinant(a);
    let with = |column: usize| {
        let mut m = a;
        (0..3).for_each(|r| m[r][column] = b[r]);
        determinant(m) / whole
    };
    (whole.abs() > 1e-9 * a[0][0] * a[1][1] * a[2][2]).then(|| [with(0), with(1), with(2)])
}

/// A frame beside its model.
fn diffraction(results: &Results) -> Option<Record> {
    let (number, mag, modelled) = results.frame?;
    let model = results.model;
    let frame = model.detector();
    let [ny, nx] = frame;
    let counts: Vec<f64> = mag.iter().map(|m| if *m < 0.0 { f64::NAN } else { f64::from(*m).powi(2) }).collect();
    let far = matches!(model.transfer, Transfer::Far);
    let centred = |v: &[f64]| if far { middle_first(v, frame) } else { v.to_vec() };
    let (left, right) = (centred(&counts), centred(modelled));
    // A few dark columns part the two.
    let gap = (nx / 32).max(1);
    let mut values = Vec::with_capacity(ny * (2 * nx + gap));
    for row in (0..ny).rev() {
        values.extend(left[row * nx..][..nx].iter().map(|v| *v as f32));
        values.extend(std::iter::repeat_n(f32::NAN, gap));
        values.extend(right[row * nx..][..nx].iter().map(|v| *v as f32));
    }
    let axis = |d: usize, n: usize| Axis { unit: "pixels".into(), ..Axis::bare(d, 0.0, 1.0, n) };
    let mut field = Field::bare("diffraction", vec![axis(0, 2 * nx + gap), axis(1, ny)], Centring::Cell, Values::F32(values));
    field.title = format!("frame {number}, measured (left) and modelled (right): counts");
    field.palette = if far { Palette::Density } else { Palette::Sequential };
    Some(Record::Field(field))
}

#[cfg(test)]
mod tests;
