//! The benchmark cases: whole steps of plasmas that others have timed, their physics checked.

use zellige_engine::device::Device;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::profile::Profiler;
use zellige_engine::record::Check;
use zellige_engine::sim::{Bench, Case, Cost, PeerTime};

use crate::config::boundary::{SideConfig, SideName, SidePair};
use crate::config::diagnostics::ENERGY_LIMIT;
use crate::config::laser::{LaserDirection, LaserSource, PolarisationConfig};
use crate::config::species::{PerCell, Thermal};
use crate::config::{Config, Density, LaserConfig, SpeciesConfig, Value, WindowConfig};
use crate::diagnostics::balance::Balance;
use crate::grid::{FieldSide, ParticleSide};
use crate::plasma::Plasma;
use crate::solver::cost;
use crate::stages::{Precision, Smoothing};

/// The cases, with what others need, in ns per particle and step.
pub const CASES: &[Case] = &[
    Case {
        name: "pic/log-weibel",
        about: "256 x 256 cells, 64 electrons and 64 positrons each, u_th 0.1, u_z +-0.6: the optimisation log of ZPIC-CUDA. Its steps: \
                1.227, 0.624, 0.621, 0.486, 0.414, 0.396. zpic-parallel on an H200 0.0886. Aim: <= 0.040 on an H200",
        gpu_only: false,
    },
    Case {
        name: "pic/kong-cold",
        about: "780 x 700 cells, 36 cold electrons each. Kong 2011 on a GTX 280: 2.52 (push 0.58, deposit 1.39, sort 0.38, field 0.14), \
                on a Core 2 205 to 222; zpic-parallel on an H200 0.0346. Aim: <= 0.0173",
        gpu_only: false,
    },
    Case {
        name: "pic/kong-1kev",
        about: "the same at 1 keV (u_th 0.04425). Kong 2011: 4.81 (push 0.69, deposit 3.27, sort 0.67, field 0.14); zpic-parallel on an \
                H200 0.0507. Aim: <= 0.0254",
        gpu_only: false,
    },
    Case {
        name: "pic/kong-u10",
        about: "the same at u_th 10. Kong 2011: 9.15; zpic-parallel on an H200 0.0722. Aim: <= 0.0361",
        gpu_only: false,
    },
    Case {
        name: "pic/box2048-cold",
        about: "2048 x 2048 cells, 64 cold electrons each. zpic-parallel on an H200 0.0271. Aim: <= 0.0136",
        gpu_only: true,
    },
    Case { name: "pic/box2048-0.1", about: "the same at u_th 0.1. zpic-parallel on an H200 0.0469. Aim: <= 0.0235", gpu_only: true },
    Case { name: "pic/box2048-10", about: "the same at u_th 10. zpic-parallel on an H200 0.0649. Aim: <= 0.0325", gpu_only: true },
    Case {
        name: "pic/ppc4",
        about: "2048 x 2048 cells, 4 electrons each at u_th 0.1. zpic-parallel on an H200 0.0727. Aim: <= 0.036",
        gpu_only: false,
    },
    Case {
        name: "pic/box512",
        about: "512 x 512 cells, 36 electrons each at u_th 0.1. One core: zpic 63.5, zpic-parallel with AVX2 22.7 (two threads 11.4). \
                Aim: <= 7 with AVX-512, <= 9 with AVX2, <= 25 without",
        gpu_only: false,
    },
    Case {
        name: "pic/open2d",
        about: "2048 x 1024 cells (CPU: 512 x 256), 16 electrons each at u_th 0.1, layers all around, a laser from an antenna",
        gpu_only: false,
    },
    Case { name: "pic/window2d", about: "pic/open2d in a moving window. Aim: <= 1.3 times pic/open2d", gpu_only: false },
    Case {
        name: "pic/ions2d",
        about: "2048 x 2048 cells (CPU: 512 x 512), 16 electrons and 4 ions of charge 2 each, current filtered. Aim: <= 2 times \
                pic/box2048-0.1 (pic/box512)",
        gpu_only: false,
    },
    Case { name: "pic/absorbing2048", about: "pic/box2048-0.1 with absorbing layers all around. Aim: <= 2 times that", gpu_only: true },
    Case {
        name: "pic/walls2048",
        about: "pic/box2048-0.1 with mirrors in x and conductors that send particles back at u_th 0.1 in y. Aim: <= 2 times that",
        gpu_only: true,
    },
    Case { name: "pic/quadratic2048", about: "pic/box2048-0.1 with quadratic shapes. Aim: <= 2 times that", gpu_only: true },
    Case {
        name: "pic/weighted2048",
        about: "2048 x 2048 cells, 16 electrons each with weights of their own. Aim: <= 2 times pic/box2048-0.1",
        gpu_only: true,
    },
    Case { name: "pic/double2048", about: "pic/box2048-0.1 in double precision. Aim: <= 3 times that", gpu_only: true },
    Case { name: "pic/quadratic512", about: "pic/box512 with quadratic shapes. Aim: <= 2 times that", gpu_only: false },
    Case { name: "pic/ppc4-512", about: "512 x 512 cells, 4 electrons each at u_th 0.1. Aim: <= 2 times pic/box512", gpu_only: false },
    Case {
        name: "pic/line",
        about: "one dimension, 100 000 cells, 32 electrons each at u_th 0.1. Aim: <= 2 times pic/box512",
        gpu_only: false,
    },
    Case { name: "pic/double512", about: "pic/box512 in double precision. Aim: <= 2 times that", gpu_only: false },
];

/// Particle-steps of a repetition: a fraction of a second at 10 ns.
const WORK: f64 = 4e7;
/// Fewest and most steps of a repetition.
const STEPS: std::ops::RangeInclusive<u64> = 2..=50;
/// Particle-steps of a repetition on a GPU, where waiting at its end would show in one of two milliseconds.
const GPU_WORK: f64 = 2e9;
const GPU_STEPS: std::ops::RangeInclusive<u64> = 10..=50;

/// The input of a case, `on_gpu` or for a CPU; cells of 0.1, steps of 0.07, periodic.
pub fn config(name: &str, on_gpu: bool) -> Option<Config> {
    let plasma = |cells: [usize; 2], lattice: usize, thermal: f64| {
        let mut config = Config::new(cells.to_vec(), cells.map(|n| 0.1 * n as f64).to_vec());
        config.dt = Some(0.07);
        let mut electrons = SpeciesConfig::electrons(lattice * lattice);
        electrons.particles_per_cell = Some(PerCell::Lattice([lattice; 2]));
        if thermal > 0.0 {
            electrons.momentum.thermal = Some(Thermal::Number(thermal));
        }
        config.species.push(electrons);
        config
    };
    let mut config = match name {
        "pic/log-weibel" => {
            let mut config = plasma([256; 2], 8, 0.1);
            let mut positrons = config.species[0].clone();
            positrons.name = "positrons".into();
            positrons.charge = 1.0;
            for (species, u) in [(&mut config.species[0], 0.6), (&mut positrons, -0.6)] {
                species.momentum.drift = Some([0.0, 0.0, u].map(Value::Number));
            }
            config.species.push(positrons);
            config
        }
        "pic/kong-cold" => plasma([780, 700], 6, 0.0),
        "pic/kong-1kev" => plasma([780, 700], 6, 0.04425),
        "pic/kong-u10" => plasma([780, 700], 6, 10.0),
        "pic/box2048-cold" => plasma([2048; 2], 8, 0.0),
        "pic/box2048-0.1" => plasma([2048; 2], 8, 0.1),
        "pic/box2048-10" => plasma([2048; 2], 8, 10.0),
        "pic/ppc4" => plasma([2048; 2], 2, 0.1),
        "pic/box512" => plasma([512; 2], 6, 0.1),
        "pic/open2d" | "pic/window2d" => {
            let mut config = plasma(if on_gpu { [2048, 1024] } else { [512, 256] }, 4, 0.1);
            config.boundary.all = Some(SideConfig::Both(SideName::Absorbing));
            config.laser.push(laser());
            config.window = (name == "pic/window2d").then_some(WindowConfig { start: 0.0 });
            config
        }
        "pic/ions2d" => {
            let mut config = plasma(if on_gpu { [2048; 2] } else { [512; 2] }, 4, 0.1);
            let mut ions = config.species[0].clone();
            (ions.name, ions.charge, ions.mass) = ("ions".into(), 2.0, 7344.0);
            ions.density = Some(Density::Number(0.5));
            ions.particles_per_cell = Some(PerCell::Lattice([2; 2]));
            ions.momentum.thermal = Some(Thermal::Number(0.001));
            config.species.push(ions);
            config.smoothing.all = Some(Smoothing { passes: 1, compensated: true });
            config
        }
        "pic/absorbing2048" => {
            let mut config = plasma([2048; 2], 8, 0.1);
            config.boundary.all = Some(SideConfig::Both(SideName::Absorbing));
            config
        }
        "pic/walls2048" => {
            let mut config = plasma([2048; 2], 8, 0.1);
            config.boundary.x = Some(SideConfig::Both(SideName::Reflecting));
            config.boundary.y = Some(SideConfig::Each(SidePair { fields: FieldSide::Pec, particles: ParticleSide::Thermal }));
            config
        }
        "pic/quadratic2048" => Config { order: 2, ..plasma([2048; 2], 8, 0.1) },
        "pic/weighted2048" => {
            let mut config = plasma([2048; 2], 4, 0.1);
            config.species[0].density = Some(Density::Expression("1 + 0.5*cos(2*pi*x/lx)".into()));
            config
        }
        "pic/double2048" => Config { precision: Precision::F64, ..plasma([2048; 2], 8, 0.1) },
        "pic/quadratic512" => Config { order: 2, ..plasma([512; 2], 6, 0.1) },
        "pic/ppc4-512" => plasma([512; 2], 2, 0.1),
        "pic/line" => {
            let mut config = plasma([100_000, 1], 1, 0.1);
            (config.grid.cells, config.grid.size) = (vec![100_000], vec![1e4]);
            config.species[0].particles_per_cell = Some(PerCell::Number(32));
            config
        }
        "pic/double512" => Config { precision: Precision::F64, ..plasma([512; 2], 6, 0.1) },
        other => {
            let (cells, per_cell) = other.strip_prefix("sweep/pic-")?.rsplit_once('x')?;
            let per_cell: usize = per_cell.parse().ok().filter(|n| *n > 0)?;
            let electrons = |config: &mut Config| {
                let mut electrons = SpeciesConfig::electrons(per_cell);
                electrons.momentum.thermal = Some(Thermal::Number(0.1));
                config.species = vec![electrons];
            };
            let mut config = match cells.strip_prefix("1d-") {
                Some(n) => Config::new(vec![n.parse().ok()?], vec![0.1 * n.parse::<f64>().ok()?]),
                None => plasma([cells.parse().ok()?; 2], 1, 0.1),
            };
            config.dt = Some(0.07);
            electrons(&mut config);
            config
        }
    };
    let (work, steps) = if on_gpu { (GPU_WORK, GPU_STEPS) } else { (WORK, STEPS) };
    config.steps = Some(((work / particles(&config)) as u64).clamp(*steps.start(), *steps.end()));
    Some(config)
}

/// A beam that shines without end from the right into the box. A window takes as many cells as the box is long to leave it behind.
fn laser() -> LaserConfig {
    LaserConfig {
        a0: 0.5,
        omega: Some(3.0),
        wavelength: None,
        source: LaserSource::Antenna,
        direction: LaserDirection::Left,
        antenna: None,
        position: None,
        delay: Some(0.0),
        fwhm: None,
        rise: Some(3.0),
        flat: Some(1e6),
        fall: Some(3.0),
        waist: Some(10.0),
        focus: None,
        polarisation: PolarisationConfig::default(),
        phase: 0.0,
    }
}

/// The sizes of the sweep: 16 electrons a cell on squares and on a line, and crowds on 512 x 512 cells.
pub fn sweep() -> Vec<Vec<Case>> {
    let series = |names: Vec<String>| names.into_iter().map(|name| Case::of_sweep(format!("sweep/pic-{name}"))).collect();
    let sides = [64, 100, 128, 192, 256, 384, 512, 768, 1000, 1024, 1536, 2048, 3072, 4096, 6144, 8192];
    vec![
        series(sides.iter().map(|n| format!("{n}x16")).collect()),
        series([1, 2, 4, 9, 16, 25, 36, 64, 100, 144, 256, 400, 576, 1024].iter().map(|n| format!("512x{n}")).collect()),
        series([1_000, 4_000, 16_000, 64_000, 250_000, 1_000_000, 4_000_000, 16_000_000].iter().map(|n| format!("1d-{n}x16")).collect()),
    ]
}

/// Particle-steps of a case as a run, and its fewest and most steps.
const RUN: f64 = 5e10;
const RUN_STEPS: std::ops::RangeInclusive<u64> = 50..=1000;

/// The input of a case as a run of some seconds.
pub fn input(name: &str) -> Option<Config> {
    let mut config = config(name, true)?;
    config.steps = Some(((RUN / particles(&config)) as u64).clamp(*RUN_STEPS.start(), *RUN_STEPS.end()));
    Some(config)
}

/// Particles that a case begins with.
fn particles(config: &Config) -> f64 {
    let each: f64 = config.species.iter().map(|s| s.particles_per_cell.map_or(0.0, |n| n.total() as f64)).sum();
    each * config.grid.cells.iter().product::<usize>() as f64
}

/// Times of peers, ns per particle and step: zpic-parallel on the H200, Kong on a GTX 280, and the first and last step of the log
/// of ZPIC-CUDA.
fn others(name: &str) -> Vec<(&'static str, f64)> {
    let mut rows = match name {
        "pic/log-weibel" => vec![("log_first_ns", 1.227), ("log_last_ns", 0.396)],
        "pic/kong-cold" => vec![("kong_ns", 2.52)],
        "pic/kong-1kev" => vec![("kong_ns", 4.81)],
        "pic/kong-u10" => vec![("kong_ns", 9.15)],
        "pic/box512" => vec![("zpic_core_ns", 63.5), ("zpic_parallel_avx2_core_ns", 22.7)],
        _ => Vec::new(),
    };
    // In the order of the cases; the last one is for CPUs.
    let h200 = [0.0886, 0.0346, 0.0507, 0.0722, 0.0271, 0.0469, 0.0649, 0.0727];
    rows.extend(CASES.iter().zip(h200).filter(|(c, _)| c.name == name).map(|(_, ns)| ("zpic_parallel_h200_ns", ns)));
    rows
}

/// Time that Kong states for a stage, on a GTX 280.
const fn kong(stage: &'static str, ns_per_item: f64, percent: f64, ours: &'static str) -> PeerTime {
    PeerTime { by: "Kong 2011", stage, ns_per_item, percent_of_bandwidth: Some(percent), ours }
}

/// A kernel of the log's first and last table: time of a call over the 4 194 304 particles of a species, on a GPU that it does not
/// name.
const fn log(by: &'static str, stage: &'static str, microseconds: f64, ours: &'static str) -> PeerTime {
    PeerTime { by, stage, ns_per_item: microseconds * 1e3 / 4_194_304.0, percent_of_bandwidth: None, ours }
}

/// Kong et al., J. Comput. Phys. 230 (2011) 1676, table 1.
const KONG_COLD: &[PeerTime] = &[
    kong("push", 0.58, 59.0, "advance"),
    kong("deposit", 1.39, 25.0, "advance"),
    kong("sort", 0.38, 7.4, "exchange"),
    kong("field", 0.14, 45.0, "field"),
];
/// Table 2.
const KONG_WARM: &[PeerTime] = &[
    kong("push", 0.69, 50.0, "advance"),
    kong("deposit", 3.27, 11.0, "advance"),
    kong("sort", 0.67, 4.6, "exchange"),
    kong("field", 0.14, 45.0, "field"),
];
const FIRST: &str = "the log's first";
const LAST: &str = "the log's last";
/// The kernel tables of the optimisation log of ZPIC-CUDA.
const LOG: &[PeerTime] = &[
    log(FIRST, "push", 412.40, "advance"),
    log(FIRST, "move_deposit", 1586.8, "advance"),
    log(FIRST, "bnd_out_x", 1539.5, "exchange"),
    log(FIRST, "bnd_out_y", 1540.4, "exchange"),
    log(LAST, "push", 386.90, "advance"),
    log(LAST, "move_deposit", 1077.9, "advance"),
    log(LAST, "bnd_out", 53.990 + 52.977, "exchange"),
    log(LAST, "bnd_in", 18.421 + 18.393, "exchange"),
];

struct Steps {
    case: &'static str,
    plasma: Plasma,
    each: u64,
    /// Particles at the start.
    particles: u64,
    /// The energy; not of a sweep.
    balance: Option<Balance>,
}

/// Sets a case up.
pub fn open(case: &Case, device: &Device) -> Result<Box<dyn Bench>> {
    let on_gpu = matches!(device, Device::Cuda(_));
    let Some(config) = config(case.name, on_gpu) else {
        let names: Vec<_> = CASES.iter().map(|c| c.name).collect();
        return Err(Error::input("bench", Problem::new("", format!("there is no case `{}`", case.name)).allowed(names.join(", "))));
    };
    Ok(Box::new(Steps::new(case.name, &config, device)?))
}

impl Steps {
    fn new(name: &'static str, config: &Config, device: &Device) -> Result<Self> {
        let plasma = Plasma::new(config, 1, device)?;
        let particles = plasma.model.at_start.iter().map(|n| *n as u64).sum();
        let balance = CASES.iter().any(|c| c.name == name).then(|| Balance::new(&plasma));
        let mut steps = Self { case: name, each: plasma.model.steps, plasma, particles, balance };
        steps.weigh()?;
        Ok(steps)
    }

    /// One step that is measured, where the energy is looked at.
    fn weigh(&mut self) -> Result<()> {
        let Some(balance) = &mut self.balance else { return Ok(()) };
        let account = self.plasma.account()?;
        self.plasma.advance(true, &mut Profiler::off())?;
        let e = self.plasma.energies()?;
        self.plasma.gauss.measured(&e);
        let fields = e.electric.iter().chain(&e.magnetic).sum();
        balance.change(&self.plasma, self.plasma.step - 1, fields, e.kinetic.iter().sum(), &account)?;
        Ok(())
    }
}

impl Bench for Steps {
    /// The plasma goes on from where it is: a repetition is later steps of the same run, ever more mixed.
    fn reset(&mut self) -> Result<()> {
        if self.plasma.model.window.is_some() {
            // Columns that a window has left are lost to a look at the end.
            self.plasma.check_charge()?;
        }
        self.plasma.stages.wait()
    }

    fn run(&mut self, profiler: &mut Profiler) -> Result<()> {
        for _ in 0..self.each {
            self.plasma.advance(false, profiler)?;
        }
        self.plasma.stages.wait()
    }

    fn checks(&mut self) -> Result<Vec<Check>> {
        self.plasma.check_charge()?;
        let (ledger, there) = (self.plasma.stages.ledger()?, self.plasma.stages.count()?);
        let lost: u64 = ledger.iter().zip(&there).map(|(l, n)| n.abs_diff(l.injected - l.removed)).sum();
        // Closed sides keep as many as at the start.
        let sides = self.plasma.setup.grid.particles.iter().flatten();
        let kept = self.plasma.model.window.is_none() && sides.into_iter().all(|s| *s != ParticleSide::Absorb);
        let changed = if kept { there.iter().sum::<u64>().abs_diff(self.particles) } else { 0 };
        let mut checks: Vec<Check> = self.plasma.gauss.check().into_iter().collect();
        checks.push(Check::at_most("particles missing or too many", (lost + changed) as f64, 0.0));
        self.weigh()?;
        if let Some(balance) = &self.balance {
            checks.push(Check::at_most("largest relative change of the energy", balance.worst(), ENERGY_LIMIT));
        }
        Ok(checks)
    }

    fn cost(&self) -> Cost {
        let one = cost(&self.plasma.setup, self.particles);
        let n = self.each as f64;
        Cost { bytes: n * one.bytes, flops: n * one.flops, items: n * one.items }
    }

    fn steps(&self) -> u64 {
        self.each
    }

    fn memory(&self) -> u64 {
        self.plasma.stages.memory()
    }

    fn figures(&self) -> Vec<(&'static str, f64)> {
        let bytes = self.plasma.stages.memory() as f64 / self.particles as f64;
        [("bytes_per_particle", bytes)].into_iter().chain(others(self.case)).collect()
    }

    fn peer_times(&self) -> &'static [PeerTime] {
        match self.case {
            "pic/log-weibel" => LOG,
            "pic/kong-cold" => KONG_COLD,
            "pic/kong-1kev" => KONG_WARM,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_state_adds_up_to_their_whole_steps() {
        let sum = |rows: &[PeerTime]| rows.iter().map(|s| s.ns_per_item).sum::<f64>();
        // Their tables have two decimals.
        assert!((sum(KONG_COLD) - 2.52).abs() < 0.04 && (sum(KONG_WARM) - 4.81).abs() < 0.05);
        let kernels = |by: &str| sum(&LOG.iter().filter(|s| s.by == by).copied().collect::<Vec<_>>());
        // The log's whole steps also have fields and gaps between kernels: a few per cent.
        assert!((0.96..1.0).contains(&(kernels(FIRST) / 1.227)) && (0.96..1.0).contains(&(kernels(LAST) / 0.396)));
    }

    #[test]
    fn every_case_has_a_sound_input() {
        for (case, on_gpu) in CASES.iter().flat_map(|c| [(c, true), (c, false)]) {
            let config = config(case.name, on_gpu).unwrap();
            assert_eq!(config.check(), [], "{}", case.name);
            assert!(config.step_count() >= 2);
        }
    }

    /// Every case on a small grid: its energy is weighed before and after the timed steps, and energy that was put in between is
    /// found.
    #[test]
    fn the_energy_of_every_case_is_checked() {
        for case in CASES {
            let mut config = config(case.name, false).unwrap();
            let line = config.grid.cells.len() == 1;
            (config.grid.cells, config.grid.size) = if line { (vec![400], vec![40.0]) } else { (vec![16; 2], vec![1.6; 2]) };
            config.steps = Some(4);
            // Layers and pulses would fill such a grid.
            (config.boundary.all, config.laser, config.window) = (None, Vec::new(), None);
            let mut steps = Steps::new(case.name, &config, &Device::Cpu(zellige_engine::device::Cpu::new(1).unwrap())).unwrap();
            let mut energy = |put: f64| {
                steps.reset().unwrap();
                steps.run(&mut Profiler::off()).unwrap();
                let values = vec![put; steps.plasma.setup.grid.len()];
                if put > 0.0 {
                    steps.plasma.stages.set_component(crate::stages::Component::Ez, &values).unwrap();
                }
                match steps.checks() {
                    Ok(checks) => checks.into_iter().find(|c| c.name.contains("energy")).expect(case.name).ok,
                    // Beside no energy at all it is a blow-up.
                    Err(error) => !error.to_string().contains("the energy of fields and particles"),
                }
            };
            assert!(energy(0.0), "{}: of a sound run", case.name);
            assert!(!energy(10.0), "{}: of a run that was given some", case.name);
        }
    }
}
