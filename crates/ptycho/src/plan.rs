//! Announcements before the start of a run.

use zellige_engine::device::{Device, host_must_hold};
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::parallel::{items, map};
use zellige_engine::sim::{Environment, Plan, WorkEstimate};

use crate::config::{Config, WaveStorage};
use crate::model::{Model, View};
use crate::scan::{Scan, Truth};
use crate::stages::cuda::KernelConfig;
use crate::{engines, peak, setup, streaming};

/// A number of four or five digits, without a power of ten where it needs none.
pub(crate) fn figures(value: f64) -> String {
    match value.abs() {
        v if (1e-3..1e5).contains(&v) => format!("{value:.*}", (4 - v.log10().floor() as i32).clamp(0, 6) as usize),
        _ => format!("{value:.4e}"),
    }
}

/// `1 scan`, `2 scans`.
pub(crate) fn counted(n: usize, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

/// Observations about the data that the user should know of, with the scans' names.
pub(crate) fn noted(scans: &[Scan]) -> Vec<String> {
    scans.iter().flat_map(|s| s.notes.iter().map(|n| format!("scan `{}`: {n}", s.name))).collect()
}

/// Plans a run as far as possible without frames: of files the shapes, positions and geometry are read, of simulated scans the
/// positions are made. Refuses it where the host or the device cannot hold it. `parts` share a host.
pub(crate) fn of_input(config: &Config, environment: &Environment, parts: usize) -> Result<Plan> {
    let mut scans = setup::planned(config, &environment.folder, environment.seed)?;
    // Before anything of the size of a frame is computed: the moduli alone, which every run holds.
    let (mut frames, mut pixels) = (0, 0_u64);
    for scan in &scans {
        frames += scan.positions.len();
        pixels += scan.positions.len() as u64 * scan.shape[0] as u64 * scan.shape[1] as u64;
    }
    let size = scans.first().map_or([0; 2], |s| s.shape);
    let what =
        format!("{} of {} x {} pixels (`crop`, `rebin` and `every` of a scan take less of it)", counted(frames, "frame"), size[0], size[1]);
    host_must_hold(pixels.saturating_mul(size_of::<f32>() as u64), &what[..])?;
    let model = setup::outline(config, &mut scans, &environment.links)?;
    let read = truths_read(config, scans.iter().map(|s| s.truth.as_ref()));
    let plan = of_model(config, environment, (&model, parts), &noted(&scans), &read)?;
    if let device @ Device::Cpu(_) = &environment.device {
        let here = if parts > 1 { format!(" in {parts} parts on this host") } else { String::new() };
        let memory = plan.memory.saturating_mul(parts as u64);
        device.must_hold(memory, format!("{what} and what the engines keep of them{here}"))?;
    }
    Ok(plan)
}

/// Modes of the truths that scans were read together with.
pub(crate) fn truths_read<'a>(config: &Config, truths: impl Iterator<Item = Option<&'a Truth>>) -> Vec<usize> {
    let read = config.scan.iter().zip(truths).filter(|(entry, _)| entry.simulate.is_none());
    read.filter_map(|(_, truth)| truth).map(|truth| truth.probe.shape[0]).collect()
}

/// Plans a run of loaded data, of which `parts` share a host; `read`: [`truths_read`]. Without frames, nothing is stated about
/// their counts.
pub(crate) fn of_model(
    config: &Config,
    environment: &Environment,
    (model, parts): (&Model, usize),
    notes: &[String],
    read: &[usize],
) -> Result<Plan> {
    let views = model.views.len();
    if let Some(frame) = config.output.frame.filter(|j| *j >= views) {
        let problem = Problem::new("ptycho.output.frame", format!("there is no frame {frame}")).allowed(format!("0 to {}", views - 1));
        return Err(Error::input("ptycho", problem.hint("leave it out for the brightest")));
    }
    let exits = config.engine.iter().any(|e| e.name.keeps_exits());
    let join = |v: &[usize]| v.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ");
    let objects: Vec<String> = model.storages.iter().map(|s| join(&s.shape)).collect();
    let micro = |d: usize| format!("{:.4e}", model.pixel[d]);
    let engines: Vec<String> = config.engine.iter().map(|e| format!("{} {}", e.iterations(), e.name.as_str())).collect();
    let scans = counted(model.scans.len(), "scan");
    let probes = if model.probes == 1 { "the probe".to_owned() } else { format!("each of {} probes", model.probes) };
    let mut lines = vec![
        ("frames".to_owned(), format!("{} of {} pixels in {scans}", model.views.len(), join(&model.detector()))),
        ("sample".to_owned(), format!("pixels of {} x {} m; objects of {} pixels", micro(0), micro(1), objects.join(", "))),
        ("modes".to_owned(), format!("{} of {probes}, {} of an object", model.modes[0], model.modes[1])),
        ("start".to_owned(), format!("probe {}", model.begins.join(", "))),
        ("engines".to_owned(), engines.join(", then ")),
    ];
    if !model.mag.is_empty() {
        let text = format!("{:.3e} in all, {:.3e} in the brightest frame", model.power.total, model.power.max);
        lines.insert(3, ("counts".to_owned(), text));
    }
    let masked = model.power.masked;
    if masked > 0.0 {
        lines.insert(1, ("masked".to_owned(), format!("{:.2} % of the pixels of all frames", 100.0 * masked)));
    }
    if model.bin != [1, 1] {
        let [by, bx] = model.bin;
        let at = match &environment.device {
            Device::Cpu(_) => "",
            Device::Cuda(_) => "; in several launches around cuFFT, since frames in registers are counted pixel by pixel",
        };
        let what = format!("waves of {} pixels, {by} x {bx} of which are counted as one{at}", join(&model.frame));
        lines.insert(1, ("resampled".to_owned(), what));
    }
    let [budget, _] = streaming::memory_budgets(config, &environment.device, parts);
    if model.subpixel {
        let at = match &environment.device {
            Device::Cuda(gpu) if !KernelConfig::of(model, gpu.properties(), budget.demand.double).fused() => {
                "; in several launches around cuFFT"
            }
            _ => "",
        };
        lines.push(("positions".to_owned(), format!("between pixels: every view sees the probe shifted{at}")));
    }
    let made = config.scan.iter().filter_map(|s| s.simulate.as_ref()).map(|made| made.illumination.modes);
    let truths: Vec<usize> = made.chain(read.iter().copied()).collect();
    let mut memory = peak::of(config, model, &environment.device, &budget, &truths);
    if let Some(folder) = budget.folder_for(model).filter(|_| matches!(environment.device, Device::Cpu(_))) {
        // The plan of a whole run.
        let each = if environment.parts > environment.links.size() { "; each part by its share of the limit" } else { "" };
        lines.push(("files".to_owned(), format!("frames and exit waves are mapped from files in {}{each}", folder.display())));
    }
    if let Device::Cuda(gpu) = &environment.device {
        let more;
        (memory, more) = streaming::outlined(config, model, gpu)?;
        lines.extend(more);
    }
    let mut warnings = notes.to_vec();
    if views < 4 {
        warnings.push(format!("{}: object and probe cannot be told apart without overlapping frames", counted(views, "frame")));
    }
    warnings.extend(config.engine.iter().filter_map(|e| engines::divergence_warning(e, config.compatibility)));
    warnings.extend(config.never());
    if exits && config.memory.exit_waves == WaveStorage::F16 && matches!(environment.device, Device::Cpu(_)) {
        warnings.push("exit waves are kept in single precision here: half precision (`exit_waves` of [ptycho.memory]) is for GPUs".into());
    }
    if let Some(part) = overlap(model).filter(|part| *part < 0.5) {
        warnings.push(format!("neighbouring frames share {:.0} % of the probe's width: 60 % or more are usual", 100.0 * part.max(0.0)));
    }
    let number = budget.demand.number();
    let bytes = crate::solver::cost(model, exits, number).bytes;
    Ok(Plan {
        lines,
        items: views as u64,
        memory,
        traffic: bytes as u64,
        warnings,
        expected: Vec::new(),
        work: Some(work(config, model, number, bytes)),
    })
}

/// All iterations by the cost model: 40 ns a pixel of an exit wave on one of 16 threads (30 to 60 measured), twice that in doubles,
/// and of frames that come one after the other launches for each.
fn work(config: &Config, model: &Model, number: usize, bytes: f64) -> WorkEstimate {
    let steps: f64 = config.engine.iter().map(|e| e.iterations() as f64).sum();
    let in_turn: f64 = config.engine.iter().filter(|e| !e.name.keeps_exits()).map(|e| e.iterations() as f64).sum();
    let pixels = (model.views.len() * model.pixels() * model.exits()) as f64;
    let launches = 22.0 + 2.0 * model.views.len() as f64 * in_turn / steps.max(1.0);
    WorkEstimate { steps, thread_seconds: 10e-9 * number as f64 * pixels, launches, bytes }
}

/// Overlap of neighbours: one less the median distance to the next view over the width of the start probe (twice its root mean
/// square radius), along the closer axis.
fn overlap(model: &Model) -> Option<f64> {
    if model.views.len() < 2 || model.views.len() > 5000 || model.start.probe.is_empty() {
        return None;
    }
    let pixels = model.pixels();
    let probe = &model.start.probe[..pixels];
    let all: f64 = probe.iter().map(num_complex::Complex::norm_sqr).sum();
    let mean = |f: &dyn Fn(usize) -> f64| probe.iter().enumerate().map(|(i, v)| v.norm_sqr() * f(i)).sum::<f64>() / all;
    let (y, x) = (|i: usize| (i / model.frame[1]) as f64, |i: usize| (i % model.frame[1]) as f64);
    let (my, mx) = (mean(&y), mean(&x));
    let radius = mean(&|i| (y(i) - my).powi(2) + (x(i) - mx).powi(2)).sqrt();
    let step = median_step(&model.views);
    // A disc of radius r has a root mean square radius of r over the root of two.
    let width = 2.0 * std::f64::consts::SQRT_2 * radius;
    (step.is_finite() && width > 0.0).then(|| 1.0 - step / width)
}

/// Median distance to the next view of the same object, in pixels; infinite where most have none.
fn median_step(views: &[View]) -> f64 {
    // Squares of whole pixels, by all threads: each of thousands of views looks at all others.
    let mut steps = map(items(views), |i, a| {
        let others = views.iter().enumerate().filter(|(j, b)| *j != i && b.object == a.object);
        let squared = |b: &View| i64::from(a.row - b.row).pow(2) + i64::from(a.col - b.col).pow(2);
        others.map(|(_, b)| squared(b)).min().map_or(f64::INFINITY, |square| (square as f64).sqrt())
    });
    steps.sort_by(f64::total_cmp);
    steps[steps.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::{figures, median_step};
    use crate::model::View;

    /// Views of a raster with a stray one, and those of another object in between, which do not count.
    #[test]
    fn the_step_is_that_of_most_views_of_an_object() {
        let view = |object, row, col| View { probe: 0, object, row, col };
        let mut views: Vec<View> = (0..60).map(|i| view(0, 6 * (i / 10), 8 * (i % 10))).collect();
        assert_eq!(median_step(&views), 6.0);
        views.extend((0..50).map(|i| view(1, 3 + 50 * (i / 10), 4 + 50 * (i % 10))));
        views.push(view(0, 900, 2));
        assert_eq!(median_step(&views), 6.0);
        assert_eq!(median_step(&[view(0, 0, 0), view(0, 3, 4)]), 5.0);
        assert_eq!(median_step(&[view(0, 0, 0), view(1, 3, 4)]), f64::INFINITY);
    }

    #[test]
    fn numbers_are_written_as_people_write_them() {
        let found = [1.9, 0.053, 35.7, 12345.6, 2e6, 3e-5, 0.0].map(figures);
        assert_eq!(found, ["1.9000", "0.053000", "35.700", "12346", "2.0000e6", "3.0000e-5", "0.0000e0"]);
    }
}
