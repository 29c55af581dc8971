//! What walls feel, as records: tables of the sides, of all segments and of the bodies, pictures of each body, lines for VTK.

use zellige_engine::record::{Column, Curve, Entries, Measured, Record, Table, Values};

use crate::flow::Flow;
use crate::grid::Side;
use crate::patches;
use crate::walls::BOLTZMANN;
use crate::walls::tally::{BodyLoad, Flux, Load, Reference};

/// What the walls on the sides got, a line a wall.
pub(crate) fn sides(flow: &Flow) -> Option<Record> {
    let model = &flow.model;
    let walls: Vec<Side> = Side::ALL.into_iter().filter(|s| model.edges[s.index()].is_wall()).collect();
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

/// What bodies feel: a table of all segments, the same as lines for VTK, a table of the bodies and a picture of each.
pub(crate) fn bodies(flow: &Flow) -> Vec<Record> {
    let segments = flow.model.geometry.segments();
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
        column("temperature", "", "K", each(&|s| flow.model.walls[segments[s].wall as usize].temperature)),
    ];
    for (v, (name, unit)) in PARTS.into_iter().enumerate() {
        columns.push(column(name, "", unit, each(&|s| parts(&found[s])[v])));
        columns.push(column(&format!("{name}_error"), "", unit, each(&|s| parts(&spread[s])[v])));
    }
    if let Some(stream) = reference(flow) {
        let still = stream.still();
        for (v, name) in COEFFICIENTS.into_iter().enumerate() {
            columns.push(column(name, "", "", each(&|s| stream.coefficients(&found[s])[v])));
            columns.push(column(&format!("{name}_error"), "", "", each(&|s| still.coefficients(&spread[s])[v])));
        }
    }
    let surface = table("surface", "what the segments of bodies feel", segments.len(), columns);
    let lines = patches::walls(&flow.model, &surface);
    let whole = whole(flow, &[means, errors]);
    let pictures = (0..flow.model.geometry.bodies().len()).map(|number| picture(flow, number, &found, &spread));
    [Record::Table(surface), lines, whole].into_iter().chain(pictures).collect()
}

/// Loads of a segment in tables.
const PARTS: [(&str, &str); 4] = [("pressure", "Pa"), ("shear", "Pa"), ("heat_flux", "W/m^2"), ("hits", "1/(m^2 s)")];
/// Coefficients of a segment.
const COEFFICIENTS: [&str; 3] = ["Cp", "Cf", "Ch"];

fn parts(load: &Load) -> [f64; 4] {
    [load.pressure, load.shear, load.heat, load.flux]
}

fn table(name: &str, title: &str, len: usize, columns: Vec<Column>) -> Table {
    Table { name: name.into(), title: title.into(), length_si: 1.0, time_si: 1.0, len, columns }
}

/// Coefficients, or loads by the largest of each, along the outline of a body with error bars.
fn picture(flow: &Flow, number: usize, found: &[Load], spread: &[Load]) -> Record {
    let (segments, body) = (flow.model.geometry.segments(), &flow.model.geometry.bodies()[number]);
    let mut way = 0.0;
    let middle = |s: usize| {
        way += segments[s].length();
        way - 0.5 * segments[s].length()
    };
    let x = body.segments.clone().map(middle).collect();
    let (mut lines, mut errors) = (Vec::new(), Vec::new());
    let stream = reference(flow);
    for v in 0..COEFFICIENTS.len() {
        let (name, scale, still) = if let Some(stream) = &stream {
            (COEFFICIENTS[v].to_owned(), None, Some(stream.still()))
        } else {
            let most = body.segments.clone().map(|s| parts(&found[s])[v].abs()).fold(0.0, f64::max);
            (format!("{} / {most:.3e} {}", PARTS[v].0, PARTS[v].1), Some(if most > 0.0 { most } else { 1.0 }), None)
        };
        let of = |stream: Option<&Reference>, load: &Load| match (stream, scale) {
            (Some(stream), _) => stream.coefficients(load)[v],
            (None, scale) => parts(load)[v] / scale.unwrap_or(1.0),
        };
        lines.push((name, body.segments.clone().map(|s| of(stream.as_ref(), &found[s])).collect()));
        errors.push(body.segments.clone().map(|s| of(still.as_ref(), &spread[s])).collect());
    }
    let (title, y_label) = match stream {
        Some(_) => (format!("coefficients of pressure, shear and heat on {}", body.name), "Cp, Cf, Ch"),
        None => (format!("pressure, shear and heat flux on {}", body.name), "over the largest value"),
    };
    let curve = Curve {
        name: format!("surface_{}", body.name),
        title,
        x_label: "way along the outline [m]".into(),
        y_label: y_label.into(),
        x,
        lines,
        log_y: false,
    };
    Record::Measured(Measured { curve, errors })
}

/// Force, moment, heat and coefficients of each body, a line a body in the order of the input.
fn whole(flow: &Flow, fluxes: &[Vec<Flux>; 2]) -> Record {
    let bodies = flow.model.geometry.bodies();
    let found: Vec<_> = (0..bodies.len()).map(|number| of(flow, number, fluxes)).collect();
    let mut columns = vec![column("body", "", "", (0..bodies.len()).map(|b| b as f64).collect())];
    let parts = |l: &BodyLoad| [l.force[0], l.force[1], l.force[2], l.moment, l.heat];
    let names = [("force", "x", "N/m"), ("force", "y", "N/m"), ("force", "z", "N/m"), ("moment", "", "N"), ("heat", "", "W/m")];
    for (e, suffix) in ["", "_error"].into_iter().enumerate() {
        for (v, (name, component, unit)) in names.iter().enumerate() {
            columns.push(column(&format!("{name}{suffix}"), component, unit, found.iter().map(|f| parts(&f[e])[v]).collect()));
        }
    }
    let coefficients: Vec<_> = (0..bodies.len()).filter_map(|b| coefficients(flow, b, &found[b])).collect();
    if coefficients.len() == bodies.len() {
        for (name, f) in [("Cd", (0, 0)), ("Cd_error", (0, 1)), ("Cl", (1, 0)), ("Cl_error", (1, 1))] {
            columns.push(column(name, "", "", coefficients.iter().map(|c| c.values[f.0][f.1]).collect()));
        }
        columns.push(column("width", "", "m", coefficients.iter().map(|c| c.width).collect()));
    }
    Record::Table(table("bodies", "what the bodies feel", bodies.len(), columns))
}

/// Force and heat of all bodies together, and their standard errors; moments about different points are not added.
pub fn all(flow: &Flow) -> [BodyLoad; 2] {
    let mut sum = [BodyLoad::default(); 2];
    if flow.samples.batches == 0 {
        return sum;
    }
    let fluxes = fluxes(flow);
    for number in 0..flow.model.geometry.bodies().len() {
        let [load, error] = of(flow, number, &fluxes);
        for c in 0..3 {
            sum[0].force[c] += load.force[c];
            sum[1].force[c] = sum[1].force[c].hypot(error.force[c]);
        }
        sum[0].heat += load.heat;
        sum[1].heat = sum[1].heat.hypot(error.heat);
    }
    sum
}

/// Drag and lift of a body in a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficients {
    /// Drag and lift coefficient, each with its standard error.
    pub values: [[f64; 2]; 2],
    /// What they are taken by, m.
    pub width: f64,
    /// What that is of the body: its width across the stream, or its length where it has none.
    pub what: &'static str,
}

/// Drag and lift of a body from its load and errors; nothing without a stream.
pub fn coefficients(flow: &Flow, number: usize, [load, error]: &[BodyLoad; 2]) -> Option<Coefficients> {
    let (stream, body) = (reference(flow)?, &flow.model.geometry.bodies()[number]);
    // A plate along the stream has no width: its length stands in.
    let across = body.width(stream.direction);
    let along = body.width([-stream.direction[1], stream.direction[0]]);
    let (width, what) = if across > 1e-6 * along { (across, "width") } else { (along, "length") };
    let [drag, lift] = stream.drag(load.force, width);
    // Errors along x and y are independent.
    let [[xd, xl], [yd, yl]] = [[error.force[0], 0.0, 0.0], [0.0, error.force[1], 0.0]].map(|f| stream.drag(f, width));
    Some(Coefficients { values: [[drag, xd.hypot(yd)], [lift, xl.hypot(yl)]], width, what })
}

/// What a body feels, and its standard errors; the moment is about the middle of its box.
pub fn body(flow: &Flow, number: usize) -> [BodyLoad; 2] {
    of(flow, number, &fluxes(flow))
}

/// Of the loads of all segments and their errors.
fn of(flow: &Flow, number: usize, [means, errors]: &[Vec<Flux>; 2]) -> [BodyLoad; 2] {
    let geometry = &flow.model.geometry;
    let body = &geometry.bodies()[number];
    let (segments, pivot) = (geometry.segments(), body.centre());
    [BodyLoad::new(segments, |s| means[s], body, pivot), BodyLoad::error(segments, |s| errors[s], body, pivot)]
}
