//! The benchmark cases: whole iterations on simulated scans, their physics checked.

use std::path::Path;

use zellige_engine::device::Device;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::profile::Profiler;
use zellige_engine::record::Check;
use zellige_engine::sim::{Bench, Case, Cost};

use crate::config::{Config, EngineConfig, EngineName, Precision, ScanConfig};
use crate::reconstruction::Reconstruction;
use crate::scan::{Propagation, Truth};
use crate::simulate::{Optic, Pair, SimulateConfig};
use crate::solver::cost;
use crate::stages::cuda::stream::plan;
use crate::{half_sets, setup, simulate};

/// The cases, with what others reach.
pub const CASES: &[Case] = &[
    Case {
        name: "ptycho/dm-92x128",
        about: "difference map, 92 frames of 128 x 128, likelihood on: PtyPy on one core 81 to 90 ms an iteration. Required 40, aim 25",
        gpu_only: false,
    },
    Case {
        name: "ptycho/dm-92x256m4",
        about: "the same, 256 x 256, 4 modes: PtyPy on one core 1936 to 4301 ms. Required 700, aim 500",
        gpu_only: false,
    },
    Case {
        name: "ptycho/epie-92x128",
        about: "ePIE in sequence, 92 frames of 128 x 128: PtyPy on one core 168 ms a sweep",
        gpu_only: false,
    },
    Case { name: "ptycho/ml-92x128", about: "Gaussian likelihood, 92 frames of 128 x 128: PtyPy on one core 285 ms", gpu_only: false },
    Case {
        name: "ptycho/dm-1000x128",
        about: "difference map, 1000 frames of 128 x 128, likelihood on: PtyPy on one H200 2.76 ms. Required 0.35, aim 0.22",
        gpu_only: true,
    },
    Case { name: "ptycho/dm-500x128", about: "the same, 500 frames: PtyPy on one H200 1.58 ms. Required 0.22, aim 0.14", gpu_only: true },
    Case {
        name: "ptycho/dm-500x256",
        about: "the same, 500 of 256 x 256: PtyPy on one H200 4.69 ms. Required 0.80, aim 0.50",
        gpu_only: true,
    },
    Case { name: "ptycho/dm-500x256m4", about: "the same, 4 modes: PtyPy on one H200 16.2 ms. Required 3.2, aim 2.0", gpu_only: true },
    Case {
        name: "ptycho/dm-500x192",
        about: "the same, 500 of 192 x 192, no power of two: Fourier step of a naive projection in CuPy on one H200 1.0 ms. Required 0.5 for that step",
        gpu_only: true,
    },
    Case { name: "ptycho/dm-500x192m4", about: "the same, 4 modes. Required 2.0 ms for the Fourier step", gpu_only: true },
    Case {
        name: "ptycho/dm-200x512",
        about: "the same, 200 of 512 x 512: Fourier step of a naive projection in CuPy on one H200 2.9 ms. Required 1.4 for that step",
        gpu_only: true,
    },
    Case { name: "ptycho/dm-200x512m4", about: "the same, 4 modes. Required 5.6 ms for the Fourier step", gpu_only: true },
    Case {
        name: "ptycho/dm-60x1024",
        about: "the same, 60 of 1024 x 1024: Fourier step of a naive projection in CuPy on one H200 3.5 ms. Required 1.7 for that step",
        gpu_only: true,
    },
    Case {
        name: "ptycho/epie-1000x128",
        about: "ePIE in sequence, 1000 frames of 128 x 128: PtyLab by its authors, mPIE, 100 frames, one H200 NVL: 59 ms a \
                sweep (586 us a position). Required 40, aim 20",
        gpu_only: true,
    },
    Case {
        name: "ptycho/stream-2x",
        about: "difference map, 4000 frames of 128 x 128 in 650 MiB, half of their memory: at most 1.25 times the larger of work and copies",
        gpu_only: true,
    },
    Case {
        name: "ptycho/near-500x128",
        about: "difference map, 500 holograms of 128 x 128 in the near field. At most twice the time of dm-500x128",
        gpu_only: true,
    },
    Case {
        name: "ptycho/subpixel-500x128",
        about: "the same in the far field with probes between pixels. At most twice the time of dm-500x128",
        gpu_only: true,
    },
    Case {
        name: "ptycho/resampled-500x64",
        about: "the same, 64 x 64 pixels counted of waves of 128 x 128. At most twice the time of dm-500x128",
        gpu_only: true,
    },
    Case { name: "ptycho/double-500x128", about: "difference map in doubles, 500 frames of 128 x 128", gpu_only: true },
    Case { name: "ptycho/dm-16x2048", about: "difference map, 16 frames of 2048 x 2048", gpu_only: true },
    Case { name: "ptycho/ml-1000x128", about: "Gaussian likelihood, 1000 frames of 128 x 128. Required 1.0 ms, aim 0.6", gpu_only: true },
];

/// The case whose frames come and go.
const STREAMED: &str = "ptycho/stream-2x";
/// Bytes that it may take: a number, since forecasts of what a scan takes change, and one block of frames more that comes and goes
/// is a tenth of the time.
const STREAMED_MEMORY: u64 = 650 << 20;
/// Iterations before anything is timed: probe and object are on their way, the overlap loop has its usual length.
const WARM_UP: u64 = 10;
/// Relative distance of the object from the truth after [`WARM_UP`] iterations, found on a CPU. Scans, starts and orders of views
/// are the same on every device; [`MORE`] is for rounding.
const EXPECTED: &[(&str, f64)] = &[
    ("ptycho/dm-92x128", 0.10440),
    ("ptycho/dm-92x256m4", 0.21934),
    ("ptycho/epie-92x128", 0.11863),
    ("ptycho/ml-92x128", 0.17435),
    ("ptycho/dm-1000x128", 0.10393),
    ("ptycho/dm-500x128", 0.12554),
    ("ptycho/dm-500x256", 0.17968),
    ("ptycho/dm-500x256m4", 0.19538),
    ("ptycho/dm-500x192", 0.16567),
    ("ptycho/dm-500x192m4", 0.18434),
    ("ptycho/dm-200x512", 0.24078),
    ("ptycho/dm-200x512m4", 0.24942),
    ("ptycho/dm-60x1024", 0.24086),
    ("ptycho/epie-1000x128", 0.10766),
    ("ptycho/double-500x128", 0.12553),
];
/// Distance over the one of [`EXPECTED`], and over the earlier one, that passes.
const MORE: f64 = 1.05;
/// Pixels and modes of a repetition, about.
const WORK: f64 = 6e6;
/// Pixels and modes of a repetition on a GPU, about; a repetition ends with waiting for it.
const GPU_WORK: f64 = 4e8;

/// Frames, their edge, modes and engine of a case, as its name says: `ptycho/dm-1000x128m4`.
pub fn parts(name: &str) -> Option<(usize, usize, usize, EngineName)> {
    if name == STREAMED {
        return Some((4000, 128, 1, EngineName::Dm));
    }
    if let Some(edge) = name.strip_prefix("sweep/ptycho-").and_then(|n| n.parse::<usize>().ok()).filter(|n| *n > 0) {
        return Some(((SWEPT / (edge * edge)).max(9), edge, 1, EngineName::Dm));
    }
    let (engine, size) = name.strip_prefix("ptycho/")?.split_once('-')?;
    let engine = match engine {
        "dm" | "near" | "subpixel" | "resampled" | "double" => EngineName::Dm,
        "epie" => EngineName::Epie,
        "ml" => EngineName::Ml,
        _ => return None,
    };
    let (frames, rest) = size.split_once('x')?;
    let (edge, modes) = rest.split_once('m').unwrap_or((rest, "1"));
    Some((frames.parse().ok()?, edge.parse().ok()?, modes.parse().ok()?, engine))
}

/// The input of a case.
pub fn config(name: &str) -> Option<Config> {
    let (frames, edge, modes, engine) = parts(name)?;
    let (mut made, mut engine) = (SimulateConfig::case(frames, edge, modes), EngineConfig::new(engine, 1 << 29));
    let kind = |kind: &str| name.starts_with(&format!("ptycho/{kind}-"));
    if kind("near") {
        made = SimulateConfig { propagation: Propagation::Near, energy: 17.0, distance: 0.02, pixel: Pair::Same(1e-7), ..made };
        made.illumination.optic = Optic::Diffuser;
    } else {
        engine.probe_support = Some(0.7);
    }
    made.pattern.round = !kind("subpixel");
    made.resample = Pair::Same(if kind("resampled") { 2 } else { 1 });
    let resample = made.resample;
    let mut config = Config::new(ScanConfig { simulate: Some(made), ..ScanConfig::default() }, engine);
    (config.probe.modes, config.subpixel, config.resample) = (modes, kind("subpixel"), resample);
    if kind("double") {
        config.precision = Precision::F64;
    }
    Some(config)
}

/// Pixels of all frames of a size of the sweep.
const SWEPT: usize = 1 << 23;

/// The sizes of the sweep: edges of frames, with as many of them as keep the number of pixels.
pub fn sweep() -> Vec<Vec<Case>> {
    let edges = [64, 96, 100, 128, 192, 200, 256, 300, 384, 500, 512, 768, 1000, 1024, 1536, 2048];
    vec![edges.iter().map(|n| Case::of_sweep(format!("sweep/ptycho-{n}"))).collect()]
}

/// Iterations of a case as a run, at least, and pixels and modes of all of them: a run begins further off than the bench does,
/// and its first iterations, of which a short run would have little else, make more overlap passes.
const RUN: u64 = 200;
const RUN_WORK: f64 = 1.5e9;

/// The input of a case as a run.
pub fn input(name: &str) -> Option<Config> {
    // Streaming is a matter of how little memory there is.
    let mut config = config(name).filter(|_| name != STREAMED)?;
    let (frames, edge, modes, _) = parts(name)?;
    let iterations = RUN.max((RUN_WORK / (frames * edge * edge * modes) as f64) as u64);
    for engine in &mut config.engine {
        engine.iterations = Some(iterations);
    }
    Some(config)
}

struct Iterations {
    reconstruction: Reconstruction,
    each: u64,
    truth: Option<Truth>,
    /// The figure of [`EXPECTED`].
    expected: Option<f64>,
    /// Distance of the object from the truth after [`WARM_UP`] iterations, relative to the truth.
    relative_distance: f64,
    /// Distance after the first repetition, which is not timed; none before it.
    later: Option<f64>,
    /// Likelihood error of the first iteration.
    error: f64,
    ran: bool,
    /// Bytes of a number.
    number: usize,
    /// Milliseconds that copies of an iteration take by themselves, where frames come and go.
    copies: Option<f64>,
}

/// Sets a case up.
pub fn open(case: &Case, device: &Device) -> Result<Box<dyn Bench>> {
    let Some(config) = config(case.name) else {
        let names: Vec<_> = CASES.iter().map(|c| c.name).collect();
        return Err(Error::input("bench", Problem::new("", format!("there is no case `{}`", case.name)).allowed(names.join(", "))));
    };
    let Some(made) = &config.scan[0].simulate else {
        return Err(Error::input("bench", Problem::new("", format!("case `{}` has no scan", case.name))));
    };
    let mut scan = simulate::simulate(made, "bench", Path::new(""), 1)?;
    // Begin near the truth, as a scan of a known beam does: a wrong probe by a tenth.
    scan.probe = scan.truth.as_ref().map(|t| t.probe.clone());
    if let Some(probe) = &mut scan.probe {
        probe.values.iter_mut().enumerate().for_each(|(i, v)| *v *= 1.0 + 0.1 * (i as f32 * 0.05).sin());
    }
    let truth = scan.truth.clone();
    let model = setup::model(&config, &mut [scan], 1)?;
    let work = if matches!(device, Device::Cuda(_)) { GPU_WORK } else { WORK };
    let each = (work / (model.views.len() * model.pixels() * model.exits()) as f64).ceil() as u64;
    let (mut budget, mut copies) = (config.memory_budget(1.0), None);
    if let (Device::Cuda(gpu), STREAMED) = (device, case.name) {
        let allowance = STREAMED_MEMORY;
        budget.allowance = Some(allowance);
        let outline = plan::outline(&model, gpu.properties(), plan::StreamingPlan { allowance, half: false, demand: budget.demand })?;
        let (rates, [up, down]) = (gpu.host_rates()?, outline.traffic.map(|n| n as f64));
        copies = Some(1e3 * (up / rates[0]).max(down / rates[1]));
    }
    let number = budget.demand.number();
    let mut reconstruction = Reconstruction::within(&config, model, device, 1, &budget)?;
    reconstruction.advance(&mut Profiler::off())?;
    let error = reconstruction.errors()?[1];
    for _ in 1..WARM_UP {
        reconstruction.advance(&mut Profiler::off())?;
    }
    let relative_distance = relative_distance(&mut reconstruction, truth.as_ref())?;
    let expected = EXPECTED.iter().find(|(name, _)| *name == case.name).map(|(_, relative_distance)| *relative_distance);
    Ok(Box::new(Iterations { reconstruction, each, truth, expected, relative_distance, later: None, error, ran: false, number, copies }))
}

/// Distance of the object from the truth; without a truth on the same pixels a number that passes no check.
fn relative_distance(whole: &mut Reconstruction, truth: Option<&Truth>) -> Result<f64> {
    let distance = truth.map_or(Ok(None), |truth| half_sets::distance_from_truth(whole, truth))?;
    Ok(distance.unwrap_or(f64::NAN))
}

impl Bench for Iterations {
    /// The reconstruction continues from its present state. It is compared with the truth after the first repetition: on noisy data
    /// the difference map never rests (dm-92x128: 3.5 % off after 35 iterations, 5.2 % after 3200), and a GPU does thousands.
    fn reset(&mut self) -> Result<()> {
        if self.ran && self.later.is_none() {
            self.later = Some(relative_distance(&mut self.reconstruction, self.truth.as_ref())?);
        }
        Ok(())
    }

    fn run(&mut self, profiler: &mut Profiler) -> Result<()> {
        self.ran = true;
        for _ in 0..self.each {
            self.reconstruction.advance(profiler)?;
        }
        // Waits for the device.
        self.reconstruction.errors().map(|_| ())
    }

    fn checks(&mut self) -> Result<Vec<Check>> {
        let (then, later) = (self.relative_distance, self.later.unwrap_or(f64::NAN));
        let words = format!("distance of the object from the truth after {WARM_UP} iterations");
        let mut checks: Vec<Check> = self.expected.iter().map(|expected| Check::at_most(words.clone(), then, MORE * expected)).collect();
        checks.push(Check::at_most(
            "distance of the object from the truth after the first repetition over that before",
            later / then,
            MORE,
        ));
        let error = self.reconstruction.errors()?[1] / self.error;
        checks.push(Check::at_most("likelihood error after the timed iterations over that of the first", error, 0.5));
        Ok(checks)
    }

    fn cost(&self) -> Cost {
        let one = cost(&self.reconstruction.model, self.reconstruction.engine().name.keeps_exits(), self.number);
        let n = self.each as f64;
        Cost { bytes: n * one.bytes, flops: n * one.flops, items: n * one.items }
    }

    fn steps(&self) -> u64 {
        self.each
    }

    fn memory(&self) -> u64 {
        self.reconstruction.stages.memory()
    }

    fn figures(&self) -> Vec<(&'static str, f64)> {
        let mut figures = vec![("frames", self.reconstruction.model.views.len() as f64)];
        figures.extend(self.copies.map(|ms| ("copies_ms", ms)));
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_sound_input() {
        for case in CASES {
            assert_eq!(config(case.name).unwrap().check(), [], "{}", case.name);
        }
        assert!(config("ptycho/none").is_none());
    }
}
