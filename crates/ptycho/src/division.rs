//! Model of a run in parts: views, and sums over those of all parts, which go from part to part.

use zellige_engine::device::Device;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::links::Division;
use zellige_engine::links::forecast::ranges;
use zellige_engine::sim::Plan;

use crate::config::{Config, EngineConfig, EngineName, Precision};
use crate::memory::default_batch;
use crate::model::Model;
use crate::stages::cuda::{TEAM, probe_sums, sections};

/// Messages in which the sums of a pass go to the next part, at most, and bytes of one at least ([`crate::relay`]).
const MESSAGES: f64 = 8.0;
const LEAST: f64 = 8192.0;
/// Warps that add to a tile of an object on a GPU, each in a sum of its own.
const WARPS: f64 = (TEAM / 32) as f64;
/// Time of adding a pixel of an exit wave to its sums over that of all else in an iteration.
const SUMS: f64 = 0.15;

/// Likewise what all parts do alike of LSQML's batches, and of those of ePIE, rPIE and SDR: frames of 128 x 128 pixels on one core.
const SOLVED: f64 = 0.3;
const STEPPED: f64 = 0.6;

/// Share of an iteration on a GPU in which the sums for probes between pixels are taken: an estimate by the bytes and transforms of
/// each step.
const BETWEEN: f64 = 0.3;

/// Messages of a part in an iteration, and the work of the part that has most over the mean.
#[derive(Debug, Clone, Copy, Default)]
struct Traffic {
    rounds: f64,
    messages: f64,
    bytes: f64,
    imbalance: f64,
    repeated: f64,
}

impl Traffic {
    /// That of an engine which goes by batches of `batch` views: their waves to each other part, and with `steps` what LSQML solves
    /// for. Views are drawn without regard to parts, of which one has some more of a batch than the mean.
    fn of_batches(model: &Model, batch: usize, steps: bool, parts: usize, number: f64) -> Self {
        let (views, parts) = (model.views.len() as f64, parts as f64);
        let batch = (batch as f64).clamp(1.0, views);
        let (mean, others) = (batch / parts, parts - 1.0);
        let spread = mean * (1.0 - 1.0 / parts) * (views - batch) / (views - 1.0).max(1.0);
        let rounds = if parts > 1.0 { (views / batch).ceil() * if steps { 2.0 } else { 1.0 } } else { 0.0 };
        let alike = if steps { SOLVED } else { STEPPED };
        let view = (model.pixels() * model.exits()) as f64 * 2.0 * number + if steps { 16.0 } else { 0.0 };
        Self {
            rounds,
            messages: others * rounds,
            bytes: others * view * views / parts,
            imbalance: (1.0 + (2.0 * parts.ln() * spread).sqrt() / mean).min(parts),
            repeated: alike / (1.0 + alike),
        }
    }
}

/// Largest part of the objects that one part and the next one add to, where `cut` has the first views of all parts, and the parts
/// that follow one another on one place at most: by rows, of which scans go one after the other.
fn common(model: &Model, cut: &[usize]) -> (f64, usize) {
    let rows = |views: &[crate::model::View]| {
        let ends = |view: &crate::model::View| (view.row, view.row + model.frame[0] as i32);
        let all = views.iter().map(ends).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        all.unwrap_or_default()
    };
    let height = model.storages.iter().map(|s| s.shape[0]).max().unwrap_or(1).max(1) as f64;
    let of: Vec<(i32, i32)> = cut.windows(2).map(|ends| rows(&model.views[ends[0]..ends[1]])).collect();
    let both = |a: (i32, i32), b: (i32, i32)| f64::from((a.1.min(b.1) - a.0.max(b.0)).max(0)) / height;
    let most = of.windows(2).map(|pair| both(pair[0], pair[1])).fold(0.0, f64::max);
    let seen = |row: i32| of.iter().filter(|(low, high)| (*low..*high).contains(&row)).count();
    (most, of.iter().map(|(low, _)| seen(*low)).max().unwrap_or(1) - 1)
}

/// Division among `parts` parts, the mean over the iterations of all engines; of projections by the first pass over object
/// and probe, since how many are needed is found on the way.
pub(crate) fn of(config: &Config, model: &Model, device: &Device, plan: &Plan, parts: usize) -> Result<Division> {
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
    let share = views.div_ceil(parts) as f64 / views as f64;
    let repeated = SUMS * (objects + probes) / (objects + probes + pixels * (model.exits() * views) as f64);
    let imbalance = share * parts as f64;
    let over_all = match device {
        Device::Cpu(_) => {
            // The last part to add to a piece tells all others its total; the views of the last one may see all of the object.
            let pieces = [objects, probes].map(|sums| (sums * number / LEAST).ceil().clamp(1.0, MESSAGES));
            let rounds = if parts == 1 { 0.0 } else { pieces.iter().map(|m| others + m).sum() };
            let (messages, bytes) = (others * pieces.iter().sum::<f64>(), (objects + probes) * number * others);
            Traffic { rounds, messages, bytes, imbalance, repeated }
        }
        Device::Cuda(gpu) => {
            let cut: Vec<usize> = (0..=parts).map(|p| p * views / parts).collect();
            let (common, chained) = common(model, &cut);
            let apart = (sections(views).len() - 1).is_multiple_of(parts);
            let [pieces, bundles] = probe_sums(model, gpu.properties().multiprocessors, number as usize);
            let told = if apart && model.probes == 1 && bundles.is_multiple_of(parts) { bundles } else { pieces };
            let sums = told as f64 * (2 * model.modes[0] + 1) as f64 * pixels;
            // Values of a part's tiles and its sums of the probes to each other one; and sums of tiles that others add to as well,
            // at both ends to all, or to the next one, which goes on with them, of every warp that adds to a tile.
            let ends = objects * common * if apart { 2.0 * others } else { WARPS };
            let shared = (objects * 2.0 / 3.0 + sums) * others / parts as f64 + ends;
            let (rounds, next) = match parts {
                1 => (0.0, 0.0),
                _ if apart => (2.0, 0.0),
                _ => (chained as f64 + 2.0, 1.0),
            };
            // Sums for probes between pixels go through all parts, one after the other.
            let (between, chain) = if model.subpixel && parts > 1 { (BETWEEN, parts as f64) } else { (0.0, 0.0) };
            let repeated = repeated.max(between);
            Traffic { rounds: rounds + chain, messages: 2.0 * others + next, bytes: shared * number, imbalance, repeated }
        }
    };
    let all: f64 = config.engine.iter().map(|e| e.iterations() as f64).sum();
    let of_engine = |engine: &EngineConfig| match engine.name {
        EngineName::Dm | EngineName::Raar | EngineName::Ml => over_all,
        EngineName::Lsqml => Traffic::of_batches(model, engine.batch.unwrap_or_else(|| default_batch(views)), true, parts, number),
        _ => Traffic::of_batches(model, engine.batch.unwrap_or(1), false, parts, number),
    };
    let mean = config.engine.iter().fold(Traffic::default(), |sum, engine| {
        let (weight, engine) = (engine.iterations() as f64 / all.max(1.0), of_engine(engine));
        Traffic {
            rounds: sum.rounds + weight * engine.rounds,
            messages: sum.messages + weight * engine.messages,
            bytes: sum.bytes + weight * engine.bytes,
            imbalance: sum.imbalance + weight * engine.imbalance,
            repeated: sum.repeated + weight * engine.repeated,
        }
    });
    let Traffic { rounds, messages, bytes, imbalance, repeated } = mean;
    // Sums of the errors go from part to part, and from the last one to all.
    let (rounds, messages) = if parts > 1 { (rounds + parts as f64, messages + 1.0) } else { (rounds, messages) };
    let waves = pixels * (model.exits() * views) as f64 * number * 2.0;
    let whole = (plan.memory as f64 - waves).max(0.0).min(plan.memory as f64);
    Ok(Division {
        cut: ranges("frames", (0..parts).map(|p| p * views / parts..(p + 1) * views / parts)),
        imbalance: imbalance.max(1.0),
        repeated,
        memory: (whole + (plan.memory as f64 - whole) * share) as u64,
        rounds,
        messages,
        bytes,
    })
}
