//! Averages as records: a field per quantity with the field of its error bars, flows through sections, the cells that bodies cut,
//! and what walls feel ([`crate::diagnostics::surfaces`]).

mod on_gpu;

use zellige_engine::parallel::{indices, map};
use zellige_engine::record::{Axis, Centring, Curve, Field, Measured, Palette, Record, Values};

pub(crate) use self::on_gpu::field as field_on_gpu;
#[cfg(test)]
pub(crate) use self::on_gpu::wanted_of;
use crate::diagnostics::{local, patches, surfaces};
use crate::flow::{Averaged, Flow};
use crate::model::{Model, Scheme};
use crate::sampling::{OF_SPECIES, QUANTITIES, VALUES, WITH_Z, first_mode, first_with_z, modes, sections, width};

fn axes(flow: Averaged<'_>) -> Vec<Axis> {
    let grid = &flow.model.grid;
    let axis = |d: usize| Axis { unit: "m".into(), ..Axis::bare(d, grid.origin[d], grid.h[d], grid.cells[d]) };
    (0..grid.dimensions).map(axis).collect()
}

/// Decades from the thousandth-lowest to the thousandth-highest value above which a field is coloured by its logarithm.
const DECADES: f64 = 1.5;

/// Cells that decide on the colours of a field.
const MANY: usize = 1 << 20;

/// Colours of a field: about zero where both signs matter, by the logarithm where a positive quantity spans decades.
fn palette(values: &[f64], name: &str) -> Palette {
    let known = || values.iter().copied().filter(|v| v.is_finite());
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    if low < 0.0 {
        // A little backflow is no reason to colour a stream about zero.
        return if high > 0.05 * -low && -low > 0.05 * high { Palette::Diverging } else { Palette::Sequential };
    }
    if !["density", "pressure", "free_path", "knudsen"].iter().any(|n| name.starts_with(n)) {
        return Palette::Sequential;
    }
    // A million of the cells, evenly chosen, are enough for a colour.
    let every = values.len().div_ceil(MANY).max(1);
    let mut positive: Vec<f64> = values.iter().step_by(every).copied().filter(|v| v.is_finite() && *v > 0.0).collect();
    let n = positive.len();
    // Only two of them are needed in their order.
    let mut at = |share: f64| if n == 0 { 1.0 } else { *positive.select_nth_unstable_by((share * n as f64) as usize, f64::total_cmp).1 };
    if (at(0.999) / at(0.001)).log10() > DECADES { Palette::Density } else { Palette::Sequential }
}

/// A field over the cells.
fn field_of(flow: Averaged<'_>, name: String, title: String, unit: (&str, [f64; 7]), values: Vec<f64>, palette: Palette) -> Field {
    let (axes, centring, values) = (axes(flow), Centring::Cell, Values::F64(values));
    Field { name, title, unit: unit.0.into(), dimension: unit.1, axes, centring, values, share: None, palette }
}

/// A quantity and its standard errors over the cells.
struct Quantity {
    name: String,
    title: String,
    unit: &'static str,
    dimension: [f64; 7],
    means: Vec<f64>,
    /// None where only pictures are made, which show none.
    errors: Option<Vec<f64>>,
}

/// True for a line of cells, whose quantities are curves.
fn is_line(flow: Averaged<'_>) -> bool {
    flow.model.grid.dimensions == 1 && flow.model.grid.len() > 1
}

impl Quantity {
    /// Two fields; on a line also a curve with error bars, in place of pictures of the fields.
    fn records(self, flow: Averaged<'_>) -> Vec<Record> {
        let (line, Self { name, title, unit, dimension, means, errors }) = (is_line(flow), self);
        let curve = errors.as_ref().filter(|_| line).map(|errors| {
            let label = if unit.is_empty() { name.clone() } else { format!("{name} [{unit}]") };
            let curve = Curve {
                name: name.clone(),
                title: title.clone(),
                x_label: "x [m]".into(),
                y_label: label.clone(),
                x: positions(flow),
                lines: vec![(label, means.clone())],
                log_y: false,
            };
            Record::Measured(Measured { curve, errors: vec![errors.clone()] })
        });
        let field = |name: String, title: String, values: Vec<f64>, palette: Palette| {
            Record::Field(field_of(flow, name, title, (unit, dimension), values, palette))
        };
        let colours = if line { Palette::Undrawn } else { palette(&means, &name) };
        let error = errors.map(|errors| field(format!("{name}_error"), format!("standard error of the {title}"), errors, Palette::Undrawn));
        [Some(field(name, title, means, colours)), error, curve].into_iter().flatten().collect()
    }
}

/// Middles of the cells of a line, m.
fn positions(flow: Averaged<'_>) -> Vec<f64> {
    (0..flow.model.grid.cells[0]).map(|i| flow.model.grid.position([i, 0], [0.5; 2])[0]).collect()
}

/// Data that a cell needs for a value to be shown, each more than the one before.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Needs {
    Gas,
    Particles,
    /// The scatter of velocities ([`crate::sampling::Samples::warm`]).
    Warmth,
}

impl Needs {
    /// Of value `q` of a line.
    fn of(q: usize) -> Self {
        [Self::Gas, Self::Particles, Self::Particles, Self::Particles].get(q).copied().unwrap_or(Self::Warmth)
    }

    /// Data of a line in each cell; `None` in a solid one.
    fn met(flow: Averaged<'_>, values: &[f64], line: usize) -> Vec<Option<Self>> {
        let (model, width) = (flow.model, width(flow.model));
        let density = line.checked_sub(1).map_or(0, |s| VALUES + s * OF_SPECIES.len());
        map(indices(model.grid.len()), |c, _| {
            let v = &values[c * width..][..width];
            let data = match v[density] > 0.0 {
                true if flow.samples.warm(model, c, line, v) => Self::Warmth,
                true => Self::Particles,
                false => Self::Gas,
            };
            Some(data).filter(|_| model.geometry.fraction(c) > 0.0)
        })
    }
}

/// Species of a mixture.
fn names(model: &Model) -> impl Iterator<Item = &str> {
    model.species.iter().map(|s| s.name.as_str()).filter(|_| model.species.len() > 1)
}

/// Everything that has been averaged, on all threads of the host; nothing before the first batch is full.
pub fn records(flow: &Flow) -> Vec<Record> {
    if flow.samples.batches == 0 {
        return Vec::new();
    }
    flow.on_host(|averaged| of(averaged, true))
}

/// Averages as records, on the threads at hand; unless `whole` without the errors that pictures do not show.
pub(crate) fn of(flow: Averaged<'_>, whole: bool) -> Vec<Record> {
    let mut all = of_cells(flow, whole);
    all.extend(surfaces::sides(flow));
    all.extend(surfaces::bodies(flow));
    all
}

/// A value of the cells that is written.
struct Written {
    name: String,
    title: String,
    unit: (&'static str, [f64; 7]),
    /// The gas, or a species of a mixture.
    line: usize,
    needs: Needs,
    /// Its index among the values of a cell.
    at: usize,
}

/// All values that are written, in their order.
fn written(model: &Model) -> Vec<Written> {
    let c = &model.collisions;
    let mixture = model.species.len() > 1;
    let mut all = Vec::new();
    let absent = |q: usize, rotates: bool, vibrates: bool| match q {
        13 => model.grid.dimensions < 2,
        5 => !rotates && !vibrates,
        6 => !rotates,
        7 => !vibrates,
        _ => false,
    };
    for (q, (name, title, unit, dimension)) in QUANTITIES.into_iter().enumerate() {
        if !(absent(q, c.rotation, c.vibration) || q == 14 && c.scheme == Scheme::None) {
            let (name, title) = (name.into(), title.into());
            all.push(Written { name, title, unit: (unit, dimension), line: 0, needs: Needs::of(q), at: q });
        }
    }
    for (line, of_line) in std::iter::once("").chain(names(model)).enumerate().filter(|_| c.along_z) {
        for (q, (name, title, unit, dimension)) in WITH_Z.into_iter().enumerate() {
            let at = first_with_z(model) + line * WITH_Z.len() + q;
            let (name, title) =
                if line > 0 { (format!("{name}_{of_line}"), format!("{of_line}: {title}")) } else { (name.into(), title.into()) };
            all.push(Written { name, title, unit: (unit, dimension), line, needs: Needs::Warmth, at });
        }
    }
    for (s, species) in model.species.iter().enumerate().filter(|_| mixture) {
        for (q, (name, title, unit, dimension)) in OF_SPECIES.into_iter().enumerate() {
            let rotates = species.rotation > 0 && c.rotation;
            let vibrates = !species.vibration.is_empty() && c.vibration;
            if !absent(q, rotates, vibrates) {
                let (name, title) = (format!("{name}_{}", species.name), format!("{}: {title}", species.name));
                let at = VALUES + s * OF_SPECIES.len() + q;
                all.push(Written { name, title, unit: (unit, dimension), line: 1 + s, needs: Needs::of(q), at });
            }
        }
    }
    for (k, (s, m)) in modes(model).enumerate() {
        let (species, (_, title, unit, dimension)) = (&model.species[s], QUANTITIES[7]);
        let mode = &species.vibration.modes()[m];
        let (mut name, mut title) = (format!("temperature_mode_{}", m + 1), format!("{title}, mode of {:.0} K", mode.theta));
        if mixture {
            (name, title) = (format!("{name}_{}", species.name), format!("{}: {title}", species.name));
        }
        let (line, at) = (if mixture { 1 + s } else { 0 }, first_mode(model) + k);
        all.push(Written { name, title, unit: (unit, dimension), line, needs: Needs::Warmth, at });
    }
    all
}

/// Fields of the cells that are written, each with one of its errors.
pub(crate) fn fields(model: &Model) -> usize {
    written(model).len() + 1 + if model.collisions.scheme == Scheme::None { 0 } else { local::KNUDSEN }
}

/// Averages of cells, and what is made of them.
fn of_cells(flow: Averaged<'_>, whole: bool) -> Vec<Record> {
    let with_errors = whole || is_line(flow);
    let (model, values) = (flow.model, flow.samples.values());
    let (cells, width) = (model.grid.len(), width(model));
    let mut all = Vec::new();
    // Solid cells have no values, those without a particle of the line only the density, and those with few no temperature.
    let met: Vec<_> = (0..=names(model).count()).map(|line| Needs::met(flow, values, line)).collect();
    for Written { name, title, unit: (unit, dimension), line, needs, at } in written(model) {
        let known = |c: usize| met[line][c] >= Some(needs);
        let means = map(indices(cells), |c, _| if known(c) { values[c * width + at] } else { f64::NAN });
        let error = |c: usize| if known(c) { flow.samples.error(model, c, at) } else { f64::NAN };
        let errors = with_errors.then(|| map(indices(cells), |c, _| error(c)));
        all.extend(Quantity { name, title, unit, dimension, means, errors }.records(flow));
    }
    if cells > 1 {
        let warm = |c: usize| met[0][c] == Some(Needs::Warmth);
        let knudsen = (model.collisions.scheme != Scheme::None).then(|| local::knudsen(flow, values, &warm));
        for (name, title, [means, errors]) in std::iter::once(local::mach(flow, values, &warm)).chain(knudsen.into_iter().flatten()) {
            let (name, title, errors) = (name.to_owned(), title.to_owned(), with_errors.then_some(errors));
            all.extend(Quantity { name, title, unit: "", dimension: [0.0; 7], means, errors }.records(flow));
        }
    }
    if model.grid.dimensions == 1 && cells > 1 {
        all.push(profiles(flow, values));
    }
    all.extend(flows(flow));
    all.extend(patches::gas(model));
    all
}

/// Mass flow through all sections across the axes that are open.
fn flows(flow: Averaged<'_>) -> Vec<Record> {
    let (model, lines) = (flow.model, sections::lines(flow.model));
    let mut found = flow.samples.flows(model);
    let mut all = Vec::new();
    for axis in (0..2).filter(|axis| sections::open(model, *axis)) {
        let n = model.grid.cells[axis];
        let rest = found.split_off(n * lines);
        let here = std::mem::replace(&mut found, rest);
        if n < 2 {
            continue;
        }
        let name = ["x", "y"][axis];
        let per = if model.grid.dimensions > 1 { "kg/s per metre of depth" } else { "kg/(m^2 s)" };
        let line = |k: usize| if k == 0 { "mass flow".to_owned() } else { model.species[k - 1].name.clone() };
        let of = |k: usize, e: usize| here.iter().skip(k).step_by(lines).map(|f| f[e]).collect::<Vec<_>>();
        let curve = Curve {
            name: format!("flow_{name}"),
            title: format!("mass flow along {name} through each section"),
            x_label: format!("{name} [m]"),
            y_label: format!("mass flow [{per}]"),
            x: (0..n).map(|i| model.grid.origin[axis] + (i as f64 + 0.5) * model.grid.h[axis]).collect(),
            lines: (0..lines).map(|k| (line(k), of(k, 0))).collect(),
            log_y: false,
        };
        all.push(Record::Measured(Measured { curve, errors: (0..lines).map(|k| of(k, 1)).collect() }));
    }
    all
}

/// Density, velocity and temperature over x with their errors, each over its largest size.
fn profiles(flow: Averaged<'_>, values: &[f64]) -> Record {
    let (grid, width, x) = (&flow.model.grid, width(flow.model), positions(flow));
    let largest = |q: usize| values.chunks_exact(width).map(|v| v[q].abs()).fold(0.0, f64::max);
    let (mut lines, mut errors) = (Vec::new(), Vec::new());
    for q in [0, 1, 2, 4] {
        // Both velocities by the larger one, so that noise looks as small as it is.
        let most = if q == 1 || q == 2 { largest(1).max(largest(2)) } else { largest(q) };
        if most > 0.0 && largest(q) > 0.0 {
            let known = |c: usize, v: &[f64]| q < 4 || flow.samples.warm(flow.model, c, 0, v);
            let cells = values.chunks_exact(width).enumerate();
            let column = cells.map(|(c, v)| if known(c, v) { v[q] / most } else { f64::NAN }).collect();
            lines.push((format!("{} / {most:.3e} {}", QUANTITIES[q].0, QUANTITIES[q].2), column));
            errors.push((0..grid.cells[0]).map(|c| flow.samples.error(flow.model, c, q) / most).collect());
        }
    }
    let curve = Curve {
        name: "profiles".into(),
        title: "profiles over the largest value of each".into(),
        x_label: "x [m]".into(),
        y_label: "relative value".into(),
        x,
        lines,
        log_y: false,
    };
    Record::Measured(Measured { curve, errors })
}
