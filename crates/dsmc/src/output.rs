//! Averages as records: a field per quantity with the field of its error bars, and a table of the surfaces.

use zellige_engine::record::{Axis, Centring, Column, Curve, Entries, Field, Palette, Record, Table, Values};

use crate::flow::Flow;
use crate::grid::Side;
use crate::model::Edge;
use crate::sampling::{QUANTITIES, VALUES};
use crate::stages::SUMS;

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
    let (model, values) = (&flow.model, flow.values());
    let cells = model.grid.len();
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
            6 => !internal[0],
            7 => !internal[1],
            _ => false,
        };
        if absent {
            continue;
        }
        all.push(field((*name).into(), (*title).into(), unit, *dimension, (0..cells).map(|c| values[c * VALUES + q]).collect()));
        let errors = (0..cells).map(|c| flow.samples.error(c, q)).collect();
        all.push(field(format!("{name}_error"), format!("standard error of the {title}"), unit, *dimension, errors));
    }
    if model.species.len() > 1 {
        let samples = flow.samples.closed() as f64;
        for (s, species) in model.species.iter().enumerate() {
            let density = |c: usize| {
                let volume = model.cell_volume(c) * samples;
                if volume > 0.0 { flow.samples.sums(model, c)[s * SUMS] * model.weight / volume } else { 0.0 }
            };
            let (_, title, unit, dimension) = QUANTITIES[0];
            let name = format!("density_{}", species.name);
            all.push(field(name, format!("{title} of {}", species.name), unit, dimension, (0..cells).map(density).collect()));
        }
    }
    if model.grid.dimensions == 1 && cells > 1 {
        all.push(profiles(flow, &values));
    }
    all.extend(sides(flow));
    all
}

/// Density, velocity and temperature over x, each over its largest size.
fn profiles(flow: &Flow, values: &[f64]) -> Record {
    let grid = &flow.model.grid;
    let x = (0..grid.cells[0]).map(|i| grid.place([i, 0], [0.5; 2])[0]).collect();
    let line = |q: usize| {
        let most = values.chunks_exact(VALUES).map(|v| v[q].abs()).fold(0.0, f64::max);
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
    let column = |quantity: &str, component: &str, unit: &str, values: Vec<f64>| Column {
        quantity: quantity.into(),
        component: component.into(),
        unit: unit.into(),
        dimension: [0.0; 7],
        unit_si: 1.0,
        weighting_power: 0.0,
        macro_weighted: false,
        time_offset: 0.0,
        values: Entries::Each(Values::F64(values)),
    };
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
