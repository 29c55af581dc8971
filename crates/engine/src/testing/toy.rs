//! A solver small enough for the tests of what is written against [`Solver`]: the damped oscillator
//! `x'' + 2 gamma x' + x = 0` from `x = 1` at rest, by the classical Runge-Kutta method. It breaks in each way that a
//! solver can, when asked to.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checkpoint::{Reader, Writer};
use crate::cuda::{Properties, Recipe};
use crate::device::Device;
use crate::error::{Error, Problem, Result};
use crate::profile::Profiler;
use crate::record::{Check, Curve, Pictures, Record, Row};
use crate::schedule::{Agenda, Schedule};
use crate::signal;
use crate::sim::{Bench, Case, Clock, Cost, Ending, Environment, Look, Outcome, Plan, Solver};

/// Table `[toy]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Number of steps.
    pub steps: u64,
    /// Damping.
    pub gamma: f64,
    /// Step after which the state is infinite, which the solver itself reports as its failure.
    pub diverge_after: Option<u64>,
    /// Step after which the state is not a number, which the solver does not notice.
    pub poison_after: Option<u64>,
    /// Step after which it panics: a simulated defect.
    pub panic_after: Option<u64>,
    /// Step after which a step ends in an error of numerics.
    pub break_after: Option<u64>,
    /// Step from which the state cannot be saved.
    pub unsaved_from: Option<u64>,
    /// Step after which a step takes until there is a reason to stop, and gives way to it when it is half done.
    pub linger_after: Option<u64>,
    /// The factor that the bound of the check is taken times.
    pub bound: f64,
    /// A data file, which is not read.
    pub file: Option<String>,
    /// Schedule of the diagnostic `velocity`.
    pub sample_every: Option<Schedule>,
    /// Rows can wait until the next step, as where a device is still at work.
    pub rows_wait: bool,
    /// Pictures, of the last moments, come so many milliseconds after they were asked for, as from a device.
    pub pictures_late: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            steps: 100,
            gamma: 0.1,
            diverge_after: None,
            poison_after: None,
            panic_after: None,
            break_after: None,
            unsaved_from: None,
            linger_after: None,
            bound: 1.0,
            file: None,
            sample_every: None,
            rows_wait: false,
            pictures_late: None,
        }
    }
}

/// Step length.
pub const DT: f64 = 0.1;

/// The oscillator.
#[derive(Debug)]
pub struct Toy {
    config: Config,
    /// Position and velocity.
    state: [f64; 2],
    /// The state one step ago.
    before: [f64; 2],
    history: Vec<f64>,
    step: u64,
    /// The step at hand gave way when it was half done.
    half: bool,
    agenda: Agenda,
}

impl Toy {
    /// The position at time `t` in closed form, for damping below 1.
    pub fn exact(gamma: f64, t: f64) -> f64 {
        let omega = (1.0 - gamma * gamma).sqrt();
        (-gamma * t).exp() * ((omega * t).cos() + gamma / omega * (omega * t).sin())
    }

    fn diverged(&self) -> bool {
        self.config.diverge_after.is_some_and(|n| self.step > n)
    }

    fn agenda(config: &Config, step: u64) -> Agenda {
        Agenda::new(config.sample_every, Clock { step, time: Some(step as f64 * DT) })
    }

    fn slope(&self, [x, v]: [f64; 2]) -> [f64; 2] {
        [v, -2.0 * self.config.gamma * v - x]
    }
}

fn row_of([position, velocity]: [f64; 2]) -> Row {
    let mut row = Row::default();
    row.push("position", "", position);
    row.push("velocity", "", velocity);
    row
}

/// Moments of late pictures.
const LAST: usize = 100;

/// Positions from moment `first` on.
fn positions(first: usize, x: Vec<f64>) -> Record {
    Record::Curve(Curve {
        name: "position".into(),
        title: "position".into(),
        x_label: "t".into(),
        y_label: "x".into(),
        x: (first..first + x.len()).map(|i| i as f64 * DT).collect(),
        lines: vec![("x".into(), x)],
        log_y: false,
    })
}

impl Solver for Toy {
    const NAME: &'static str = "toy";
    const STEP: &'static str = "step";
    const ITEM: &'static str = "oscillator";
    type Config = Config;
    type Prepared = ();

    fn check(config: &Config) -> Vec<Problem> {
        let none = (config.steps == 0).then(|| Problem::new("steps", "a run needs a step").allowed("at least 1"));
        none.into_iter().collect()
    }

    fn prepare(_: &Config, _: &Environment) -> Result<()> {
        Ok(())
    }

    fn plan_prepared((): &(), _: &Config, _: &Environment) -> Result<Plan> {
        Ok(Plan { items: 1, memory: 16, traffic: 32, ..Plan::default() })
    }

    fn setup_prepared((): (), config: &Config, _: &Environment) -> Result<Self> {
        let (state, agenda) = ([1.0, 0.0], Self::agenda(config, 0));
        Ok(Self { config: config.clone(), state, before: state, history: vec![1.0], step: 0, half: false, agenda })
    }

    fn programs(_: &Config, _: &Environment, _: &Properties) -> Result<Vec<Recipe>> {
        Ok(Vec::new())
    }

    fn step(&mut self, profiler: &mut Profiler) -> Result<()> {
        if self.config.linger_after == Some(self.step) && !self.half {
            while signal::stop_reason().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.half = true;
            return Ok(());
        }
        self.half = false;
        let at = |s: [f64; 2], k: [f64; 2], h: f64| [s[0] + h * k[0], s[1] + h * k[1]];
        let s = self.state;
        let this = &*self;
        let next = profiler.stage("advance", Solver::cost(self), || {
            let a = this.slope(s);
            let b = this.slope(at(s, a, 0.5 * DT));
            let c = this.slope(at(s, b, 0.5 * DT));
            let d = this.slope(at(s, c, DT));
            std::array::from_fn(|i| s[i] + DT / 6.0 * (a[i] + 2.0 * b[i] + 2.0 * c[i] + d[i]))
        });
        self.step += 1;
        let past = |limit: Option<u64>| limit.is_some_and(|n| self.step > n);
        assert!(!past(self.config.panic_after), "the oscillator was asked to panic");
        if past(self.config.break_after) {
            return Err(Error::Numerics {
                what: "the slope".into(),
                place: format!("step {}", self.step),
                message: "it has no bound".into(),
            });
        }
        self.before = s;
        self.state = match (self.diverged(), past(self.config.poison_after)) {
            (true, _) => [f64::INFINITY; 2],
            (_, true) => [f64::NAN; 2],
            _ => next,
        };
        self.history.push(self.state[0]);
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        if self.diverged() {
            return Some(Outcome { ending: Ending::Failed, status: "diverged", message: "the position has no bound".into() });
        }
        let done = Outcome { ending: Ending::Finished, status: "finished", message: "all steps done".into() };
        (self.step >= self.config.steps).then_some(done)
    }

    fn clock(&self) -> Clock {
        Clock { step: self.step, time: Some(self.step as f64 * DT) }
    }

    fn progress(&self) -> f64 {
        self.step as f64 / self.config.steps as f64
    }

    fn row(&mut self) -> Result<Row> {
        Ok(row_of(self.state))
    }

    fn row_can_wait(&self) -> bool {
        self.config.rows_wait
    }

    fn row_before(&mut self) -> Result<Row> {
        Ok(row_of(self.before))
    }

    fn records(&mut self) -> Result<Vec<Record>> {
        Ok(vec![positions(0, self.history.clone())])
    }

    fn pictures(&mut self, _look: Look) -> Result<Pictures> {
        let Some(late) = self.config.pictures_late else { return Ok(self.records()?.into()) };
        let first = self.history.len().saturating_sub(LAST);
        let last = self.history[first..].to_vec();
        let mut pictures = Pictures::default();
        pictures.push_coming(move || {
            std::thread::sleep(Duration::from_millis(late));
            Ok(vec![positions(first, last)])
        });
        Ok(pictures)
    }

    fn due(&mut self, wall: Duration) -> Result<Vec<Record>> {
        let due = self.agenda.due(self.clock(), wall);
        let sample = Curve {
            name: "velocity".into(),
            title: "velocity".into(),
            x_label: "t".into(),
            y_label: "v".into(),
            x: vec![self.step as f64 * DT],
            lines: vec![("v".into(), vec![self.state[1]])],
            log_y: false,
        };
        Ok(due.into_iter().map(|_| Record::Curve(sample.clone())).collect())
    }

    fn checks(&mut self) -> Result<Vec<Check>> {
        let error = (self.state[0] - Self::exact(self.config.gamma, self.step as f64 * DT)).abs();
        // Fourth order: t h^4 / 120 at frequency 1, with a factor 10 for the damping's part.
        Ok(vec![Check::at_most("error against the closed form", error, self.config.bound * self.step as f64 * DT.powi(5) / 12.0)])
    }

    fn save(&mut self, writer: &mut Writer) -> Result<()> {
        writer.u64("step", self.step)?;
        writer.u64("half", u64::from(self.half))?;
        if self.config.unsaved_from.is_some_and(|step| self.step >= step) {
            let place = format!("step {}", self.step);
            return Err(Error::Numerics { what: "the state".into(), place, message: "it cannot be saved".into() });
        }
        // Of which no part has anything: each waits for the others to say so.
        writer.joined::<f64>("of all parts", &[])?;
        writer.f64s("state", &self.state)?;
        writer.f64s("history", &self.history)
    }

    fn restore(&mut self, reader: &Reader) -> Result<()> {
        self.step = reader.u64("step")?;
        self.half = reader.u64("half")? != 0;
        reader.f64s_into("state", &mut self.state)?;
        self.history = reader.f64s("history")?;
        self.agenda = Self::agenda(&self.config, self.step);
        Ok(())
    }

    fn cost(&self) -> Cost {
        Cost { bytes: 32.0, flops: 50.0, items: 1.0 }
    }

    fn cases() -> &'static [Case] {
        &[Case { name: "toy/one", about: "a hundred steps", gpu_only: false }]
    }

    fn bench(_: &Case, device: &Device) -> Result<Box<dyn Bench>> {
        let environment = Environment::new(device.clone(), "", 1);
        Ok(Box::new(Self::setup(&Config::default(), &environment)?))
    }
}

impl Bench for Toy {
    fn reset(&mut self) -> Result<()> {
        (self.state, self.step) = ([1.0, 0.0], 0);
        self.history.clear();
        Ok(())
    }

    fn run(&mut self, profiler: &mut Profiler) -> Result<()> {
        while self.outcome().is_none() {
            self.step(profiler)?;
        }
        Ok(())
    }

    fn checks(&mut self) -> Result<Vec<Check>> {
        Solver::checks(self)
    }

    fn cost(&self) -> Cost {
        Cost { bytes: 3200.0, flops: 5000.0, items: 1.0 }
    }

    fn steps(&self) -> u64 {
        self.step
    }

    fn memory(&self) -> u64 {
        16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Cpu;

    #[test]
    fn the_bench_times_and_checks_a_case() {
        let device = Device::Cpu(Cpu::new(1).unwrap());
        let result = crate::bench::bench::<Toy>(&Toy::cases()[0], &device, "1.2.3", "abc").unwrap();
        assert!(result.ok() && result.seconds.repetitions >= 5 && result.seconds.min > 0.0, "{result:?}");
        assert_eq!(result.steps, 100);
        let json = serde_json::to_value(&result).unwrap();
        for key in ["name", "device", "threads", "items", "seconds", "gb_per_s", "fraction_of_bandwidth", "checks", "version", "git_hash"] {
            assert!(!json[key].is_null(), "{key}");
        }
    }
}
