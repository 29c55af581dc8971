//! Faults of an input, as far as its text shows.

use zellige_engine::error::Problem;

use super::engine::{EngineConfig, PositionMethod};
use super::{Config, EngineName, MOST_RESAMPLED, NoiseName, ProbeStart};
use crate::memory::ObjectUpdate;
use crate::output::plain;

fn not(path: impl Into<String>, message: impl Into<String>, allowed: &str) -> Problem {
    Problem::new(path, message).allowed(allowed)
}

/// A number that must be in a range.
fn within(path: &str, value: Option<f64>, low: f64, high: f64, faults: &mut Vec<Problem>) {
    if let Some(value) = value.filter(|v| !(*v >= low && *v <= high)) {
        faults.push(not(path, format!("the value is {value:e}"), &format!("{low:e} to {high:e}")));
    }
}

/// Scans whose results would have the same name.
fn same_names(config: &Config, faults: &mut Vec<Problem>) {
    let names: Vec<String> = config.scan_names().iter().map(|name| plain(name)).collect();
    for (i, name) in names.iter().enumerate() {
        if let Some(first) = names[..i].iter().position(|other| other == name) {
            let message = format!("results of this scan and of `scan[{first}]` would both be called `{name}`");
            faults.push(not(format!("scan[{i}].name"), message, "a unique name: letters, digits and `-` distinguish names"));
        }
    }
}

pub(super) fn all(config: &Config) -> Vec<Problem> {
    let mut faults = zellige_engine::config::faults(config);
    same_names(config, &mut faults);
    if config.resample.both().iter().any(|n| !(1..=MOST_RESAMPLED).contains(n)) {
        let message = format!("{:?} pixels of the model to one of the detector", config.resample.both());
        faults.push(not("resample", message, "1 (off) to 8, or one number each for rows and columns"));
    }
    for (i, scan) in config.scan.iter().enumerate() {
        let path = |key: &str| format!("scan[{i}].{key}");
        if let Some(crop) = scan.crop.filter(|c| c.iter().any(|n| !n.is_multiple_of(2) || *n < 4 || *n > 1 << 14)) {
            faults.push(not(path("crop"), format!("{crop:?} pixels"), "even numbers, 4 to 16384"));
        }
        if scan.rebin.is_some_and(|n| !(1..=64).contains(&n)) {
            faults.push(not(path("rebin"), format!("{} pixels", scan.rebin.unwrap_or(0)), "1 to 64"));
        }
        match (&scan.file, &scan.simulate) {
            (None, None) => {
                let hint = "name a file, or simulate a scan: `simulate = {}`";
                faults.push(Problem::new(path("file"), "no source of frames is given").hint(hint));
            }
            (Some(_), Some(_)) => {
                faults.push(Problem::new(path("simulate"), "both a file and a simulation are given").hint("leave one of them out"));
            }
            _ => {}
        }
        let nested = scan.simulate.iter().flat_map(crate::simulate::SimulateConfig::check).map(|p| ("simulate", p));
        let nested = nested.chain(scan.read.check().into_iter().map(|p| ("read", p)));
        let nested: Vec<_> = nested.map(|(table, p)| Problem { path: path(&format!("{table}.{}", p.path)), ..p }).collect();
        // Ranges are known from the whole table.
        let new = nested.into_iter().filter(|p| faults.iter().all(|known| known.path != p.path)).collect::<Vec<_>>();
        faults.extend(new);
    }
    let p = &config.probe;
    within("probe.size", p.size, 1e-12, 1e3, &mut faults);
    within("probe.focal_length", p.focal_length, 1e-12, 1e6, &mut faults);
    within("probe.central_stop", p.central_stop, 1e-12, 1e3, &mut faults);
    within("probe.soft_edge", p.soft_edge, 1e-12, 1e3, &mut faults);
    within("probe.defocus", p.defocus, -1e6, 1e6, &mut faults);
    if let Some((stop, size)) = p.central_stop.zip(p.size).filter(|(stop, size)| stop >= size) {
        let message = format!("a stop of {stop:e} m in an opening of {size:e} m transmits nothing");
        faults.push(not("probe.central_stop", message, "less than `size`"));
    }
    if p.central_stop.is_some() && p.size.is_none() && p.start != ProbeStart::Data {
        let problem = Problem::new("probe.central_stop", "a stop in an opening of unknown size may leave nothing of the light");
        faults.push(problem.hint("give `size`, the diameter of the opening, as well"));
    }
    if p.start == ProbeStart::Data
        && let Some(key) = p.opening().first()
    {
        let problem = Problem::new(format!("probe.{key}"), "the start is made from the data, and this describes an opening");
        faults.push(problem.hint("leave it out, or `start = \"opening\"`"));
    }
    within("probe.mode_power", Some(p.mode_power), 1e-12, 1.0, &mut faults);
    within("probe.photons", p.photons, 1e-12, 1e30, &mut faults);
    within("object.fill", Some(config.object.fill), 1e-12, 1e12, &mut faults);
    if config.object.margin.is_some_and(|m| m > 1 << 14) {
        faults.push(not("object.margin", "the margin is too wide", "0 to 16384 pixels"));
    }
    if let Some(text) = config.memory.device.as_ref().filter(|_| config.memory.bytes().is_none()) {
        faults.push(not("memory.device", format!("`{text}` is no size"), "a number and B, KiB, MiB, GiB, kB, MB, GB: \"2 GiB\""));
    }
    if config.memory.exit_waves == super::WaveStorage::F16 && config.precision == super::Precision::F64 {
        let problem = Problem::new("memory.exit_waves", "exit waves in half precision of a run in doubles");
        faults.push(problem.hint("leave one of them out"));
    }
    if config.deterministic && config.object_update == ObjectUpdate::Atomic {
        let problem = Problem::new("object_update", "atomic sums have no order, and `deterministic` asks for one");
        faults.push(problem.hint("leave one of them out"));
    }
    for (i, engine) in config.engine.iter().enumerate() {
        check_engine(&format!("engine[{i}]"), engine, &mut faults);
    }
    faults
}

fn check_engine(path: &str, engine: &EngineConfig, faults: &mut Vec<Problem>) {
    let key = |name: &str| format!("{path}.{name}");
    for (name, engines) in engine.set_keys() {
        if !engines.contains(&engine.name) {
            let who: Vec<&str> = engines.iter().map(|e| e.as_str()).collect();
            let problem = Problem::new(key(name), format!("{} has no such key", engine.name.as_str()));
            faults.push(problem.hint(format!("it belongs to {}", who.join(", "))));
        }
    }
    if engine.fourier_bound.is_some() && engine.fourier_relax.is_some() {
        let problem = Problem::new(key("fourier_relax"), "beside `fourier_bound` it has no effect: the bound is given");
        faults.push(problem.hint("leave one of the two out"));
    }
    if engine.name == EngineName::Lsqml && engine.noise == Some(NoiseName::Gaussian) {
        let problem = not(key("noise"), "LSQML fits moduli, whose noise does not depend on the counts", "euclid (if left out), poisson");
        faults.push(problem.hint("ML has gaussian"));
    }
    let alpha = if engine.name == EngineName::Rpie { (1e-6, 1.0) } else { (-1.0, 2.0) };
    within(&key("alpha"), engine.alpha, alpha.0, alpha.1, faults);
    within(&key("sigma"), engine.sigma, 0.0, 10.0, faults);
    within(&key("tau"), engine.tau, 0.0, 10.0, faults);
    let step = if engine.name == EngineName::Sdr { 1.0 } else { 10.0 };
    within(&key("object_step"), engine.object_step, 0.0, step, faults);
    within(&key("probe_step"), engine.probe_step, 0.0, step, faults);
    within(&key("damping"), engine.damping, 1e-12, 1e6, faults);
    within(&key("wavefield_object_damping"), engine.wavefield_object_damping, 1e-12, 1e30, faults);
    within(&key("wavefield_probe_damping"), engine.wavefield_probe_damping, 1e-12, 1e30, faults);
    within(&key("line_steps"), engine.line_steps.map(f64::from), 1.0, 100.0, faults);
    if let Some([low, high]) = engine.object_clip.filter(|[low, high]| !(*low >= 0.0 && low < high)) {
        faults.push(not(key("object_clip"), format!("{low} to {high}"), "0 or more, the first below the second"));
    }
    let Some(p) = &engine.positions else { return };
    within(&key("positions.amplitude"), p.amplitude, 0.0, 1.0, faults);
    within(&key("positions.limit"), p.limit, 0.0, 1.0, faults);
    within(&key("positions.step"), Some(p.step), 1e-6, 2.0, faults);
    if p.method == PositionMethod::Gradient && p.amplitude.is_some() {
        faults.push(Problem::new(key("positions.amplitude"), "the gradient makes no trials").hint("leave it out, or `method = \"grid\"`"));
    }
    if p.stop.is_some_and(|stop| stop <= p.start) {
        faults.push(not(key("positions.stop"), "the refinement ends before it begins", "more than `start`"));
    }
}
