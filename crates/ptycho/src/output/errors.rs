//! The errors of the iterations and of the frames, and where these were taken.

use zellige_engine::record::{Axis, Centring, Column, Curve, Field, Palette, Record, Table, Values};

use super::Results;

/// The errors of each iteration.
pub(super) fn errors(history: &[[f64; 3]]) -> Option<Record> {
    if history.is_empty() {
        return None;
    }
    let names = ["Fourier error (counts per pixel)", "likelihood error (per pixel)", "exit error"];
    // An engine may not have an error: then it was left at zero.
    let known = |e: f64| if e > 0.0 { e } else { f64::NAN };
    let line = |e: usize| (names[e].to_owned(), history.iter().map(|h| known(h[e])).collect::<Vec<f64>>());
    let lines: Vec<_> = (0..3).map(line).filter(|(_, v)| v.iter().any(|v| *v > 0.0 && v.is_finite())).collect();
    Some(Record::Curve(Curve {
        name: "errors".into(),
        title: "errors, mean over the frames".into(),
        x_label: "iteration".into(),
        y_label: "error".into(),
        x: (1..=history.len()).map(|i| i as f64).collect(),
        lines,
        log_y: true,
    }))
}

/// The errors of each frame in each iteration, an array for each error that some engine had.
pub(super) fn local_errors(results: &Results) -> Vec<Record> {
    let frames = results.errors.len();
    if results.local.is_empty() || frames == 0 {
        return Vec::new();
    }
    let rows = results.local.len() / frames;
    let names = [
        ("fourier", "Fourier error of each frame: counts per pixel"),
        ("likelihood", "likelihood error of each frame: per pixel"),
        ("exit", "exit error of each frame"),
    ];
    let known = |e: f32| if e > 0.0 { e } else { f32::NAN };
    let field = |e: usize| {
        let axis = |d: usize, what: &str, first: f64, n: usize| Axis { name: what.into(), ..Axis::bare(d, first, 1.0, n) };
        // Iterations are counted from 1, as rows are; a run that went on from a checkpoint without these errors has the later ones.
        let first = (results.history.len().max(rows) - rows + 1) as f64;
        let axes = vec![axis(0, "frame", 0.0, frames), axis(1, "iteration", first, rows)];
        let values: Vec<f32> = results.local.iter().map(|l| known(l[e])).collect();
        let any = values.iter().any(|v| v.is_finite());
        let mut field = Field::bare(format!("local_error_{}", names[e].0), axes, Centring::Node, Values::F32(values));
        field.title = names[e].1.into();
        field.palette = Palette::Density;
        any.then_some(Record::Field(field))
    };
    (0..3).filter_map(field).collect()
}

/// Positions of the frames and the errors of each.
pub(super) fn views(results: &Results) -> Record {
    let model = results.model;
    let positions = positions(results);
    let moved = |d: usize| {
        let now = |j: usize| pixels(results.views.0[j], results.views.1.get(j).copied().unwrap_or_default())[d];
        let then = |j: usize| pixels(model.views[j], model.shifts.get(j).copied().unwrap_or_default())[d];
        (0..positions.len()).map(|j| (now(j) - then(j)) * model.pixel[d]).collect()
    };
    let each = |e: usize| (0..positions.len()).map(|j| results.errors.get(j).map_or(f64::NAN, |v| v[e])).collect();
    let columns = vec![
        Column::numbers("position", "y", "m", positions.iter().map(|p| p[0]).collect()),
        Column::numbers("position", "x", "m", positions.iter().map(|p| p[1]).collect()),
        Column::numbers("moved", "y", "m", moved(0)),
        Column::numbers("moved", "x", "m", moved(1)),
        Column::numbers("error_fourier", "", "", each(0)),
        Column::numbers("error_likelihood", "", "", each(1)),
        Column::numbers("error_exit", "", "", each(2)),
    ];
    let (name, title) = ("views".to_owned(), "frames: where they were taken, and their errors".to_owned());
    Record::Table(Table { name, title, length_si: 1.0, time_si: 1.0, len: positions.len(), share: None, columns })
}

/// First pixel of a view, with the remainder.
fn pixels(view: crate::model::View, rest: [f64; 2]) -> [f64; 2] {
    [f64::from(view.row) + rest[0], f64::from(view.col) + rest[1]]
}

/// Positions of the probe, metres `[y, x]`.
pub(super) fn positions(results: &Results) -> Vec<[f64; 2]> {
    let model = results.model;
    let position = |(j, view): (usize, &crate::model::View)| {
        let at = pixels(*view, results.views.1.get(j).copied().unwrap_or_default());
        let origin = model.storages[view.object as usize].origin;
        [0, 1].map(|d| origin[d] + (at[d] + (model.frame[d] / 2) as f64) * model.pixel[d])
    };
    results.views.0.iter().enumerate().map(position).collect()
}
