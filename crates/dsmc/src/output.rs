//! Averages as records: a field per quantity with the field of its error bars, and a table of the surfaces.

use zellige_engine::record::{Axis, Centring, Column, Curve, Entries, Field, Palette, Record, Table, Values};

use crate::flow::Flow;
use crate::grid::Side;
use crate::local;
use crate::model::{Edge, Scheme};
use crate::sampling::{OF_SPECIES, QUANTITIES, VALUES, width};
use crate::walls::BOLTZMANN;
use crate::walls::tally::{BodyLoad, Flux, Load, Reference};

fn axes(flow: &Flow) -> Vec<Axis> {
    let grid = &flow.model.grid;
    let axis = |d: usize| Axis { unit: "m".into(), ..Axis::bare(d, grid.origin[d], grid.h[d], grid.cells[d]) };
    (0..grid.dimensions).map(axis).collect()
}

/// Everything that has been averaged; nothing before the first batch is full.
pub fn records(flow: &Flow) -> Vec<Record> {
    if flow.samples.batches == 0 {
        return Vec::new();
    }
    let (model, values) = (&flow.model, flow.all_values());
    let (cells, width) = (model.grid.len(), width(model));
    let axes = axes(flow);
    let field = |name: String, title: String, unit: &str, dimension: [f64; 7], values: Vec<f64>| {
        let signed = values.iter().any(|v| *v < 0.0);
        let palette = if signed { Palette::Diverging } else { Palette::Sequential };
        let (axes, centring, values) = (axes.clone(), Centring::Cell, Values::F64(values));
        Record::Field(Field { name, title, unit: unit.into(), dimension, axes, centring, values, palette })
    };
    let mut all = Vec::new();
    let internal = [model.collisions.rotation, model.collisions.vibration];
    for (q, (name, title, unit, dimension)) in QUANTITIES.iter().enumerate() {
        let absent = match q {
            13 => model.grid.dimensions < 2,
            5 => !internal[0] && !internal[1],
            6 => !internal[0],
            7 => !internal[1],
            14 => model.collisions.scheme == Scheme::None,
            _ => false,
        };
        if absent {
            continue;
        }
        // What is solid has no values, and where no particle came only the density is known.
        let known = |c: usize| model.geometry.fraction(c) > 0.0 && (q == 0 || values[c * width] > 0.0);
        let shown = |c: usize, value: f64| if known(c) { value } else { f64::NAN };
        let means = (0..cells).map(|c| shown(c, values[c * width + q])).collect();
        all.push(field((*name).into(), (*title).into(), unit, *dimension, means));
        let errors = (0..cells).map(|c| shown(c, flow.samples.error(c, q))).collect();
        all.push(field(format!("{name}_error"), format!("standard error of the {title}"), unit, *dimension, errors));
    }
    for (s, species) in model.species.iter().enumerate().filter(|_| model.species.len() > 1) {
        for (q, (name, title, unit, dimension)) in OF_SPECIES.iter().enumerate() {
            if q == 5 && (species.rotation == 0 || !internal[0]) || q == 6 && (species.vibration == 0.0 || !internal[1]) {
                continue;
            }
            let (name, title) = (format!("{name}_{}", species.name), format!("{title} of {}", species.name));
            let at = VALUES + s * OF_SPECIES.len();
            let known = |c: usize| model.geometry.fraction(c) > 0.0 && (q == 0 || values[c * width + at] > 0.0);
            let shown = |c: usize, value: f64| if known(c) { value } else { f64::NAN };
            let means = (0..cells).map(|c| shown(c, values[c * width + at + q])).collect();
            let errors = (0..cells).map(|c| shown(c, flow.samples.error(c, at + q))).collect();
            all.push(field(format!("{name}_error"), format!("standard error of the {title}"), unit, *dimension, errors));
            all.push(field(name, title, unit, *dimension, means));
        }
    }
    if model.collisions.scheme != Scheme::None && cells > 1 {
        for (name, title, [means, errors]) in local::knudsen(flow, &values) {
            all.push(field(format!("{name}_error"), format!("standard error of the {title}"), "", [0.0; 7], errors));
            all.push(field(name.into(), title.into(), "", [0.0; 7], means));
        }
    }
    if model.grid.dimensions == 1 && cells > 1 {
        all.push(profiles(flow, &flow.values()));
    }
    all.extend(sides(flow));
    all.extend(surfaces(flow));
    all
}

/// Density, velocity and temperature over x, each over its largest size.
fn profiles(flow: &Flow, values: &[f64]) -> Record {
    let grid = &flow.model.grid;
    let x = (0..grid.cells[0]).map(|i| grid.place([i, 0], [0.5; 2])[0]).collect();
    let largest = |q: usize| values.chunks_exact(VALUES).map(|v| v[q].abs()).fold(0.0, f64::max);
    let line = |q: usize| {
        // Both velocities by the larger one, so that noise looks as small as it is.
        let most = if q == 1 || q == 2 { largest(1).max(largest(2)) } else { largest(q) };
        let column = values.chunks_exact(VALUES).map(|v| if most > 0.0 { v[q] / most } else { 0.0 }).collect();
        (format!("{} / {most:.3e} {}", QUANTITIES[q].0, QUANTITIES[q].2), column)
    };
    Record::Curve(Curve {
        name: "profiles".into(),
        title: "profiles over the largest value of each".into(),
        x_label: "x (m)".into(),
        y_label: "relative value".into(),
        x,
        lines: [0, 1, 2, 4].map(line).into_iter().filter(|(_, v): &(String, Vec<f64>)| v.iter().any(|v| *v != 0.0)).collect(),
        log_y: false,
    })
}

/// What the walls on the sides got, a line a wall.
fn sides(flow: &Flow) -> Option<Record> {
    let model = &flow.model;
    let walls: Vec<Side> = Side::ALL.into_iter().filter(|s| matches!(model.edges[s.index()], Edge::Wall(_))).collect();
    if walls.is_empty() {
        return None;
    }
    let found: Vec<_> = walls.iter().map(|s| flow.samples.surface(model, s.index())).collect();
    let mut columns = vec![column("side", "", "", walls.iter().map(|s| s.index() as f64).collect())];
    let names = [("hits", "", "1/(m^2 s)"), ("force", "x", "Pa"), ("force", "y", "Pa"), ("force", "z", "Pa"), ("heat", "", "W/m^2")];
    for (e, suffix) in ["", "_error"].into_iter().enumerate() {
        for (v, (name, component, unit)) in names.iter().enumerate() {
            columns.push(column(&format!("{name}{suffix}"), component, unit, found.iter().map(|f| f[v][e]).collect()));
        }
    }
    Some(Record::Table(Table {
        name: "walls".into(),
        title: "what the walls on the sides get per area".into(),
        length_si: 1.0,
        time_si: 1.0,
        len: walls.len(),
        columns,
    }))
}

/// A column of numbers in SI units.
fn column(quantity: &str, component: &str, unit: &str, values: Vec<f64>) -> Column {
    Column {
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

/// The stream by which loads are made coefficients: the first side's gas that moves. None where all gas comes in at rest or as the
/// gas within demands.
pub fn reference(flow: &Flow) -> Option<Reference> {
    let model = &flow.model;
    let sides = model.inflow.iter().zip(&model.given).filter(|(_, given)| given.is_none());
    let gas = sides.filter_map(|(gas, _)| gas.as_ref()).find(|g| g.velocity[0].hypot(g.velocity[1]) > 0.0)?;
    let mass: f64 = model.species.iter().zip(&gas.fractions).map(|(s, f)| s.mass * f).sum();
    let speed = gas.velocity[0].hypot(gas.velocity[1]);
    let direction = [gas.velocity[0] / speed, gas.velocity[1] / speed];
    Some(Reference { rho: gas.density * mass, speed, pressure: gas.density * BOLTZMANN * gas.temperature, direction })
}

/// What all segments get, means and standard errors.
fn fluxes(flow: &Flow) -> [Vec<Flux>; 2] {
    let segments = flow.model.geometry.segments().len();
    let found: Vec<_> = (0..segments).map(|s| flow.samples.surface(&flow.model, Side::ALL.len() + s)).collect();
    [0, 1].map(|e| found.iter().map(|f| f.map(|v| v[e])).collect())
}

/// What bodies feel: a table of all segments and a picture of each body.
fn surfaces(flow: &Flow) -> Vec<Record> {
    let geometry = &flow.model.geometry;
    let segments = geometry.segments();
    if segments.is_empty() {
        return Vec::new();
    }
    let [means, errors] = fluxes(flow);
    let all = || segments.iter().enumerate();
    let found: Vec<Load> = all().map(|(s, segment)| Load::new(&means[s], segment)).collect();
    let spread: Vec<Load> = all().map(|(s, segment)| Load::error(&errors[s], segment)).collect();
    let each = |f: &dyn Fn(usize) -> f64| (0..segments.len()).map(f).collect::<Vec<_>>();
    let mut columns = vec![
        column("body", "", "", each(&|s| f64::from(segments[s].body))),
        column("position", "x", "m", each(&|s| segments[s].middle()[0])),
        column("position", "y", "m", each(&|s| segments[s].middle()[1])),
        column("normal", "x", "", each(&|s| segments[s].normal[0])),
        column("normal", "y", "", each(&|s| segments[s].normal[1])),
        column("length", "", "m", each(&|s| segments[s].length())),
    ];
    let names = [("pressure", "Pa"), ("shear", "Pa"), ("heat_flux", "W/m^2")];
    let parts = |load: &Load| [load.pressure, load.shear, load.heat];
    for (v, (name, unit)) in names.into_iter().enumerate() {
        columns.push(column(name, "", unit, each(&|s| parts(&found[s])[v])));
        columns.push(column(&format!("{name}_error"), "", unit, each(&|s| parts(&spread[s])[v])));
    }
    if let Some(stream) = reference(flow) {
        // An error has no pressure of the stream to be taken off.
        let still = Reference { pressure: 0.0, ..stream };
        for (v, name) in ["Cp", "Cf", "Ch"].into_iter().enumerate() {
            columns.push(column(name, "", "", each(&|s| stream.coefficients(&found[s])[v])));
            columns.push(column(&format!("{name}_error"), "", "", each(&|s| still.coefficients(&spread[s])[v])));
        }
    }
    let title = "what the segments of bodies feel".to_owned();
    let (length_si, time_si, len) = (1.0, 1.0, segments.len());
    let mut all = vec![Record::Table(Table { name: "surface".into(), title, length_si, time_si, len, columns })];
    for body in geometry.bodies() {
        let mut way = 0.0;
        let x = body
            .segments
            .clone()
            .map(|s| {
                way += segments[s].length();
                way - 0.5 * segments[s].length()
            })
            .collect();
        let line = |v: usize| {
            let value = |s: usize| parts(&found[s])[v];
            let most = body.segments.clone().map(|s| value(s).abs()).fold(0.0, f64::max);
            let values = body.segments.clone().map(|s| if most > 0.0 { value(s) / most } else { 0.0 }).collect();
            (format!("{} / {most:.3e} {}", names[v].0, names[v].1), values)
        };
        all.push(Record::Curve(Curve {
            name: format!("surface_{}", body.name),
            title: format!("pressure, shear and heat flux on {}", body.name),
            x_label: "way along the outline (m)".into(),
            y_label: "over the largest value".into(),
            x,
            lines: (0..3).map(line).collect(),
            log_y: false,
        }));
    }
    all
}

/// What a body feels, and its standard errors; the moment is about the middle of its box.
pub fn body(flow: &Flow, number: usize) -> [BodyLoad; 2] {
    let geometry = &flow.model.geometry;
    let body = &geometry.bodies()[number];
    let [means, errors] = fluxes(flow);
    let (segments, pivot) = (geometry.segments(), body.centre());
    [BodyLoad::new(segments, |s| means[s], body, pivot), BodyLoad::error(segments, |s| errors[s], body, pivot)]
}
