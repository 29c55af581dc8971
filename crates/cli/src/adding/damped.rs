//! The damped oscillator `x'' = -omega^2 x - 2 gamma x'`, from `x = 1` at rest: `oscillator.rs` with the stage `damp`.
//! `docs/adding-a-stage.md` shows differences; a test compares them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::cuda::{Properties, Recipe};
use zellige_engine::device::Device;
use zellige_engine::error::{Problem, Result};
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Check, Curve, Record, Row};
use zellige_engine::sim::{Bench, Case, Clock, Cost, Ending, Environment, Outcome, Plan, Solver};

/// Table `[oscillator]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Angular frequency, 1/s: above 0.
    pub(crate) omega: f64,
    /// Time step, s: above 0, with `omega*dt` up to 1.
    pub(crate) dt: f64,
    /// Number of steps.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub(crate) steps: u64,
    /// Damping rate, 1/s: up to 0.9 times `omega`.
    #[serde(default)]
    pub(crate) gamma: f64,
}

fn problems(config: &Config) -> Vec<Problem> {
    let mut problems = Vec::new();
    // Not `<= 0`: NaN is refused too.
    if !(config.omega > 0.0 && config.omega.is_finite()) {
        problems.push(Problem::new("omega", format!("`{}` is not a frequency", config.omega)).allowed("above 0"));
    }
    if !(config.dt > 0.0 && config.omega * config.dt <= 1.0) {
        let fix = format!("`dt` up to {} has six steps in a period", 1.0 / config.omega);
        problems.push(Problem::new("dt", format!("`{}` does not resolve the period", config.dt)).hint(fix));
    }
    if !(config.gamma >= 0.0 && config.gamma <= 0.9 * config.omega) {
        let message = format!("`{}` is not the rate of a damped oscillation", config.gamma);
        problems.push(Problem::new("gamma", message).allowed("0 to 0.9 times `omega`"));
    }
    problems
}

/// The velocity after half a step.
fn kick(config: &Config, [x, v]: [f64; 2]) -> [f64; 2] {
    [x, v - 0.5 * config.dt * config.omega * config.omega * x]
}

/// The position after a step.
fn drift(config: &Config, [x, v]: [f64; 2]) -> [f64; 2] {
    [x + config.dt * v, v]
}

/// The velocity after half a step of damping alone, exactly.
fn damp(config: &Config, [x, v]: [f64; 2]) -> [f64; 2] {
    [x, v * (-config.gamma * config.dt).exp()]
}

/// Frequency of the damped oscillation, and the weight of its sine.
fn damped(config: &Config) -> (f64, f64) {
    let frequency = ((config.omega - config.gamma) * (config.omega + config.gamma)).sqrt();
    (frequency, config.gamma / frequency)
}

/// Position at time `t`, in closed form.
pub(crate) fn exact(config: &Config, t: f64) -> f64 {
    let (frequency, weight) = damped(config);
    (-config.gamma * t).exp() * ((frequency * t).cos() + weight * (frequency * t).sin())
}

/// Bound of the error of the position after `n` steps. The matrix of a step has the determinant `exp(-2 gamma dt)`, so
/// the decay is exact. Half of its trace is `exp(-gamma dt) cos(turned)`, which gives the phase of a step, and the first
/// step gives the weight of the sine. A step has about twelve roundings.
pub(crate) fn bound(config: &Config, n: f64) -> f64 {
    let (frequency, weight) = damped(config);
    let (angle, decay) = (config.omega * config.dt, config.gamma * config.dt);
    let half = (0.25 * angle * angle * decay.cosh() - (0.5 * decay).sinh().powi(2)).sqrt();
    let turned = 2.0 * half.asin();
    let sine = (1.0 - 0.5 * angle * angle) * decay.sinh() / turned.sin();
    let phase = n * (turned - frequency * config.dt).abs();
    (-decay * n).exp() * ((1.0 + weight) * phase + (sine - weight).abs()) + 12.0 * f64::EPSILON * n * (1.0 + weight)
}

/// Traffic and work of the stages: position and velocity are read and written.
const KICK: Cost = Cost { bytes: 32.0, flops: 5.0, items: 1.0 };
const DRIFT: Cost = Cost { bytes: 32.0, flops: 2.0, items: 1.0 };
const DAMP: Cost = Cost { bytes: 32.0, flops: 3.0, items: 1.0 };

/// The stages of a step, in their order.
const STAGES: [Cost; 5] = [DAMP, KICK, DRIFT, KICK, DAMP];

fn cost_of_a_step() -> Cost {
    let add = |sum: Cost, c: &Cost| Cost { bytes: sum.bytes + c.bytes, flops: sum.flops + c.flops, ..sum };
    STAGES.iter().fold(Cost { items: 1.0, ..Cost::default() }, add)
}

/// A running oscillator.
pub(crate) struct Oscillator {
    config: Config,
    /// Position and velocity.
    state: [f64; 2],
    /// Positions so far.
    path: Vec<f64>,
    step: u64,
}

impl Oscillator {
    fn time(&self) -> f64 {
        self.step as f64 * self.config.dt
    }
}

impl Solver for Oscillator {
    const NAME: &'static str = "oscillator";
    const STEP: &'static str = "step";
    const ITEM: &'static str = "oscillator";
    type Config = Config;
    type Prepared = ();

    fn check(config: &Config) -> Vec<Problem> {
        problems(config)
    }

    fn only_on_cpu(_: &Config) -> Vec<&'static str> {
        vec!["the oscillator"]
    }

    fn may_change() -> &'static [&'static str] {
        &["steps"]
    }

    fn prepare(_: &Config, _: &Environment) -> Result<()> {
        Ok(())
    }

    fn plan_prepared((): &(), config: &Config, _: &Environment) -> Result<Plan> {
        let method = format!("leapfrog, {} steps of omega dt = {:.3}", config.steps, config.omega * config.dt);
        let (memory, traffic) = (8 * (config.steps + 3), cost_of_a_step().bytes as u64);
        Ok(Plan { lines: vec![("method".into(), method)], items: 1, memory, traffic, ..Plan::default() })
    }

    fn setup_prepared((): (), config: &Config, _: &Environment) -> Result<Self> {
        let mut path = Vec::with_capacity(config.steps as usize + 1);
        path.push(1.0);
        Ok(Self { config: config.clone(), state: [1.0, 0.0], path, step: 0 })
    }

    fn programs(_: &Config, _: &Environment, _: &Properties) -> Result<Vec<Recipe>> {
        Ok(Vec::new())
    }

    fn step(&mut self, profiler: &mut Profiler) -> Result<()> {
        let (config, mut state) = (&self.config, self.state);
        state = profiler.stage("damp", DAMP, || damp(config, state));
        state = profiler.stage("kick", KICK, || kick(config, state));
        state = profiler.stage("drift", DRIFT, || drift(config, state));
        state = profiler.stage("kick", KICK, || kick(config, state));
        state = profiler.stage("damp", DAMP, || damp(config, state));
        self.state = state;
        self.path.push(state[0]);
        self.step += 1;
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        let done = Outcome { ending: Ending::Finished, status: "finished", message: "all steps done".into() };
        (self.step >= self.config.steps).then_some(done)
    }

    fn clock(&self) -> Clock {
        Clock { step: self.step, time: Some(self.time()) }
    }

    fn progress(&self) -> f64 {
        self.step as f64 / self.config.steps as f64
    }

    fn row(&mut self) -> Result<Row> {
        let [x, v] = self.state;
        let mut row = Row::default();
        row.push("position", "", x);
        row.push("velocity", "1/s", v);
        row.push("energy", "1/s^2", 0.5 * (v * v + (self.config.omega * x).powi(2)));
        Ok(row)
    }

    fn records(&mut self) -> Result<Vec<Record>> {
        Ok(vec![Record::Curve(Curve {
            name: "position".into(),
            title: "Position of the oscillator".into(),
            x_label: "t (s)".into(),
            y_label: "x".into(),
            x: (0..self.path.len()).map(|i| i as f64 * self.config.dt).collect(),
            lines: vec![("x".into(), self.path.clone())],
            log_y: false,
        })])
    }

    fn checks(&mut self) -> Result<Vec<Check>> {
        let error = (self.state[0] - exact(&self.config, self.time())).abs();
        Ok(vec![Check::at_most("error against the closed form", error, bound(&self.config, self.step as f64))])
    }

    fn save(&mut self, writer: &mut Writer) -> Result<()> {
        writer.u64("step", self.step)?;
        writer.f64s("state", &self.state)?;
        writer.f64s("path", &self.path)
    }

    fn restore(&mut self, reader: &Reader) -> Result<()> {
        self.step = reader.u64("step")?;
        reader.f64s_into("state", &mut self.state)?;
        self.path.clear();
        self.path.extend(reader.f64s("path")?);
        Ok(())
    }

    fn cost(&self) -> Cost {
        cost_of_a_step()
    }

    fn cases() -> &'static [Case] {
        &[Case { name: "oscillator/period", about: "a period in 63 steps", gpu_only: false }]
    }

    fn bench(_: &Case, device: &Device) -> Result<Box<dyn Bench>> {
        let config = Config { omega: 1.0, dt: 0.1, steps: 63, gamma: 0.1 };
        let environment = Environment::new(device.clone(), "", 1);
        Ok(Box::new(Self::setup(&config, &environment)?))
    }
}

impl Bench for Oscillator {
    fn reset(&mut self) -> Result<()> {
        (self.state, self.step) = ([1.0, 0.0], 0);
        self.path.truncate(1);
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
        let (one, n) = (Solver::cost(self), self.step as f64);
        Cost { bytes: n * one.bytes, flops: n * one.flops, items: one.items }
    }

    fn steps(&self) -> u64 {
        self.step
    }

    fn memory(&self) -> u64 {
        8 * self.path.capacity() as u64
    }
}
