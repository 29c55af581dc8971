//! Model of a run in parts: views, and sums over those of all parts, which go from part to part.

use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::links::Division;
use zellige_engine::links::forecast::ranges;
use zellige_engine::sim::Plan;

use crate::config::{Config, Precision};
use crate::model::Model;

/// Messages in which the sums of a pass go to the next part, at most, and bytes of one at least ([`crate::relay`]).
const MESSAGES: f64 = 8.0;
const LEAST: f64 = 8192.0;
/// Time of adding a pixel of an exit wave to its sums over that of all else in an iteration.
const SUMS: f64 = 0.15;

/// Division among `parts` parts; of an engine with a projection by its first pass over object and probe, since how many are needed
/// is found on the way.
pub(crate) fn of(config: &Config, model: &Model, plan: &Plan, parts: usize) -> Result<Division> {
    let views = model.views.len();
    if parts > views {
        let problem = Problem::new("--parts", format!("{parts} parts of {views} frames")).allowed(format!("1 to {views}"));
        return Err(Error::input("command line", problem.hint("use fewer parts: each works on one frame at least")));
    }
    let number = if config.precision == Precision::F64 { 8.0 } else { 4.0 };
    let pixels = model.pixels() as f64;
    // Numerators, complex, and norms.
    let objects: f64 = model.storages.iter().map(|s| (s.shape[0] * s.shape[1]) as f64).sum::<f64>() * model.modes[1] as f64 * 3.0;
    let probes = (2 * model.modes[0] + 1) as f64 * model.probes as f64 * pixels;
    let others = parts.saturating_sub(1) as f64;
    // The last part to add to a piece tells all others its total; the views of the last one may see all of the object.
    let bytes = (objects + probes) * number * others;
    let messages = [objects, probes].map(|sums| (sums * number / LEAST).ceil().clamp(1.0, MESSAGES));
    let share = views.div_ceil(parts) as f64 / views as f64;
    let waves = pixels * (model.exits() * views) as f64 * number * 2.0;
    let whole = (plan.memory as f64 - waves).max(0.0).min(plan.memory as f64);
    Ok(Division {
        cut: ranges("frames", (0..parts).map(|p| p * views / parts..(p + 1) * views / parts)),
        imbalance: share * parts as f64,
        repeated: SUMS * (objects + probes) / (objects + probes + pixels * (model.exits() * views) as f64),
        memory: (whole + (plan.memory as f64 - whole) * share) as u64,
        rounds: if parts == 1 { 0.0 } else { messages.iter().map(|m| others + m).sum() },
        messages: others * messages.iter().sum::<f64>(),
        bytes,
    })
}
