//! Loads on walls, as records: tables of the sides, of all segments and of the bodies, pictures of each body, lines for VTK.

use zellige_engine::record::{Column, Curve, Measured, Record, Table};

use crate::diagnostics::patches;
use crate::flow::Averaged;
use crate::grid::Side;
use crate::sampling::loads;
use crate::walls::tally::{BodyLoad, Load, Reference};

/// Loads on the walls of the sides, a line a wall.
pub(crate) fn sides(flow: Averaged<'_>) -> Option<Record> {
    let model = flow.model;
    let walls: Vec<Side> = Side::ALL.into_iter().filter(|s| model.edges[s.index()].is_wall()).collect();
    if walls.is_empty() {
        return None;
    }
    let found: Vec<_> = walls.iter().map(|s| flow.samples.surface(model, s.index())).collect();
    let mut columns = vec![Column::numbers("side", "", "", walls.iter().map(|s| s.index() as f64).collect())];
    let names = [("hits", "", "1/(m^2 s)"), ("force", "x", "Pa"), ("force", "y", "Pa"), ("force", "z", "Pa"), ("heat", "", "W/m^2")];
    for (e, suffix) in ["", "_error"].into_iter().enumerate() {
        for (v, (name, component, unit)) in names.iter().enumerate() {
            columns.push(Column::numbers(&format!("{name}{suffix}"), component, unit, found.iter().map(|f| f[v][e]).collect()));
        }
    }
    Some(Record::Table(Table {
        name: "walls".into(),
        title: "what the walls on the sides get per area".into(),
        length_si: 1.0,
        time_si: 1.0,
        len: walls.len(),
        share: None,
        columns,
    }))
}

/// The stream by which loads are made coefficients ([`Reference::of`]).
pub fn reference<'a>(flow: impl Into<Averaged<'a>>) -> Option<Reference> {
    Reference::of(flow.into().model)
}

/// Loads of all segments with their standard errors.
fn segments(flow: Averaged<'_>) -> [Vec<Load>; 2] {
    let (samples, model) = (flow.samples, flow.model);
    let all = model.geometry.segments().iter().enumerate();
    let one = |(s, segment)| {
        let error = samples.surface(model, Side::ALL.len() + s).map(|v| v[1]);
        let [pressure, shear] = samples.segment_error(s);
        let error = Load { flux: error[0], pressure, shear, shear_z: error[3], heat: error[4] };
        (Load::new(&samples.flux(model, s), segment), error)
    };
    let (means, errors) = all.map(one).unzip();
    [means, errors]
}

/// Loads on bodies: a table of all segments, the same as lines for VTK, a table of the bodies and a picture of each.
pub(crate) fn bodies(flow: Averaged<'_>) -> Vec<Record> {
    let [found, spread] = segments(flow);
    let segments = flow.model.geometry.segments();
    if segments.is_empty() {
        return Vec::new();
    }
    // No gas is where a body lies on a side of the domain.
    let shown: Vec<usize> = (0..segments.len()).filter(|s| !segments[*s].buried).collect();
    let each = |f: &dyn Fn(usize) -> f64| shown.iter().map(|s| f(*s)).collect::<Vec<_>>();
    let mut columns = vec![
        Column::numbers("body", "", "", each(&|s| f64::from(segments[s].body))),
        Column::numbers("position", "x", "m", each(&|s| segments[s].middle()[0])),
        Column::numbers("position", "y", "m", each(&|s| segments[s].middle()[1])),
        Column::numbers("normal", "x", "", each(&|s| segments[s].normal[0])),
        Column::numbers("normal", "y", "", each(&|s| segments[s].normal[1])),
        Column::numbers("length", "", "m", each(&|s| segments[s].length())),
        Column::numbers("temperature", "", "K", each(&|s| flow.model.walls[segments[s].wall as usize].temperature)),
    ];
    for (v, (name, unit)) in PARTS.into_iter().enumerate() {
        columns.push(Column::numbers(name, "", unit, each(&|s| parts(&found[s])[v])));
        columns.push(Column::numbers(&format!("{name}_error"), "", unit, each(&|s| parts(&spread[s])[v])));
    }
    if let Some(stream) = reference(flow) {
        let still = stream.still();
        for (v, name) in COEFFICIENTS.into_iter().enumerate() {
            columns.push(Column::numbers(name, "", "", each(&|s| stream.coefficients(&found[s])[v])));
            columns.push(Column::numbers(&format!("{name}_error"), "", "", each(&|s| still.coefficients(&spread[s])[v])));
        }
    }
    let surface = table("surface", "what the segments of bodies feel", shown.len(), columns);
    let lines = patches::walls(flow.model, &shown, &surface);
    let whole = whole(flow);
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
    Table { name: name.into(), title: title.into(), length_si: 1.0, time_si: 1.0, len, share: None, columns }
}

/// Coefficients, or loads by the largest of each, along the outline of a body with error bars.
fn picture(flow: Averaged<'_>, number: usize, found: &[Load], spread: &[Load]) -> Record {
    let (segments, body) = (flow.model.geometry.segments(), &flow.model.geometry.bodies()[number]);
    let mut way = 0.0;
    let middle = |s: usize| {
        way += segments[s].length();
        way - 0.5 * segments[s].length()
    };
    let x: Vec<f64> = body.segments.clone().map(middle).collect();
    let shown = || body.segments.clone().filter(|s| !segments[*s].buried);
    let x = shown().map(|s| x[s - body.segments.start]).collect();
    let (mut lines, mut errors) = (Vec::new(), Vec::new());
    let stream = reference(flow);
    for v in 0..COEFFICIENTS.len() {
        let (name, scale, still) = if let Some(stream) = &stream {
            (COEFFICIENTS[v].to_owned(), None, Some(stream.still()))
        } else {
            let most = shown().map(|s| parts(&found[s])[v].abs()).fold(0.0, f64::max);
            (format!("{} / {most:.3e} {}", PARTS[v].0, PARTS[v].1), Some(if most > 0.0 { most } else { 1.0 }), None)
        };
        let of = |stream: Option<&Reference>, load: &Load| match (stream, scale) {
            (Some(stream), _) => stream.coefficients(load)[v],
            (None, scale) => parts(load)[v] / scale.unwrap_or(1.0),
        };
        lines.push((name, shown().map(|s| of(stream.as_ref(), &found[s])).collect()));
        errors.push(shown().map(|s| of(still.as_ref(), &spread[s])).collect());
    }
    let (title, y_label) = match stream {
        Some(_) => (format!("coefficients of pressure, shear and heat on {}", body.name), "Cp, Cf, Ch"),
        None => (format!("pressure, shear and heat flux on {}", body.name), "value over its maximum"),
    };
    let curve = Curve {
        name: format!("surface_{}", body.name),
        title,
        x_label: "arc length along the outline [m]".into(),
        y_label: y_label.into(),
        x,
        lines,
        log_y: false,
    };
    Record::Measured(Measured { curve, errors })
}

/// Force, moment, heat and coefficients of each body, a line a body in the order of the input.
fn whole(flow: Averaged<'_>) -> Record {
    let (bodies, loads) = (flow.model.geometry.bodies(), loads(flow));
    let found: Vec<_> = loads.into_iter().enumerate().map(|(b, load)| [load, flow.samples.body_error(flow.model, b)]).collect();
    let mut columns = vec![Column::numbers("body", "", "", (0..bodies.len()).map(|b| b as f64).collect())];
    let parts = |l: &BodyLoad| [l.force[0], l.force[1], l.force[2], l.moment, l.heat];
    let names = [("force", "x", "N/m"), ("force", "y", "N/m"), ("force", "z", "N/m"), ("moment", "", "N"), ("heat", "", "W/m")];
    for (e, suffix) in ["", "_error"].into_iter().enumerate() {
        for (v, (name, component, unit)) in names.iter().enumerate() {
            columns.push(Column::numbers(&format!("{name}{suffix}"), component, unit, found.iter().map(|f| parts(&f[e])[v]).collect()));
        }
    }
    for (d, axis) in ["x", "y"].into_iter().enumerate() {
        let points = (0..bodies.len()).map(|b| flow.model.moment_point(b)[d]).collect();
        columns.push(Column::numbers("moment_point", axis, "m", points));
    }
    let coefficients: Vec<_> = (0..bodies.len()).filter_map(|b| coefficients(flow, b, &found[b])).collect();
    if coefficients.len() == bodies.len() {
        for (name, f) in [("Cd", (0, 0)), ("Cd_error", (0, 1)), ("Cl", (1, 0)), ("Cl_error", (1, 1))] {
            columns.push(Column::numbers(name, "", "", coefficients.iter().map(|c| c.values[f.0][f.1]).collect()));
        }
        columns.push(Column::numbers("reference_length", "", "m", coefficients.iter().map(|c| c.width).collect()));
    }
    Record::Table(table("bodies", "what the bodies feel", bodies.len(), columns))
}

/// Loads on each body.
fn loads(flow: Averaged<'_>) -> Vec<BodyLoad> {
    loads::bodies(flow.model, &|segment| flow.samples.flux(flow.model, segment))
}

/// Force and heat of all bodies together, and their standard errors; moments about different points are not added.
pub fn all<'a>(flow: impl Into<Averaged<'a>>) -> [BodyLoad; 2] {
    let flow = flow.into();
    if flow.samples.batches == 0 {
        return [BodyLoad::default(); 2];
    }
    let bodies = flow.model.geometry.bodies().len();
    [loads::together(&loads(flow)), flow.samples.body_error(flow.model, bodies)]
}

/// Drag and lift of a body in a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficients {
    /// Drag and lift coefficient, each with its standard error.
    pub values: [[f64; 2]; 2],
    /// Reference length of the coefficients, m.
    pub width: f64,
    /// Name of that length: the length in the input, the body's width across the stream, or its length where it has none.
    pub what: &'static str,
}

/// Drag and lift of a body from its load and errors; nothing without a stream.
pub fn coefficients<'a>(flow: impl Into<Averaged<'a>>, number: usize, [load, error]: &[BodyLoad; 2]) -> Option<Coefficients> {
    let flow = flow.into();
    let (stream, body) = (reference(flow)?, &flow.model.geometry.bodies()[number]);
    // A plate along the stream has no width: its length stands in.
    let across = body.width(stream.direction);
    let along = body.width([-stream.direction[1], stream.direction[0]]);
    let given = flow.model.references.get(number).and_then(|r| r.length);
    let (width, what) = if let Some(length) = given {
        (length, "given length")
    } else if across > 1e-6 * along {
        (across, "width")
    } else {
        (along, "length")
    };
    let unit = stream.dynamic() * width;
    let values = [0, 1].map(|c| [load.stream[c] / unit, error.stream[c] / unit]);
    Some(Coefficients { values, width, what })
}

/// Loads on a body, and their standard errors; the moment is about [`crate::model::Model::moment_point`].
pub fn body<'a>(flow: impl Into<Averaged<'a>>, number: usize) -> [BodyLoad; 2] {
    let flow = flow.into();
    [loads(flow)[number], flow.samples.body_error(flow.model, number)]
}
