//! The solver as the run loop sees it: one problem, or a batch of them.

mod single;
mod stack;

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::cuda::{Properties, Recipe};
use zellige_engine::device::Device;
use zellige_engine::error::{Error, Problem as Fault, Result};
use zellige_engine::links::Division;
use zellige_engine::ops::plane::{self, FieldCopier};
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Check, FieldOnGpu, GivenValues, Pictures, Record, Row, ValuesOnGpu};
use zellige_engine::sim::{Bench, Case, Clock, Cost, Environment, Expected, Look, Outcome, Plan, Solver, WorkEstimate, not_on_gpu};

use crate::config::Config;
use crate::grid::{Bc, Grid};
use crate::method::{Choice, Scheme};
use crate::{batch, bench, cost, direct, estimate, on_gpu, setup, stages};

use self::single::Single;
pub(crate) use self::single::{levels_of, must_be_cut};
use self::stack::Stack;

/// Solver of the problem that an input states.
pub struct Poisson(Run);

enum Run {
    /// One problem.
    One(Box<Single>),
    /// Many right-hand sides.
    Many(Box<Stack>),
}

/// Number of right-hand sides of a batch, and the method.
pub struct Prepared {
    batch: Option<usize>,
    choice: Choice,
}

/// Refusal of values: full multigrid and direct solutions begin with the problem alone.
fn not_to_set(name: &str) -> Error {
    let fault = Fault::new(name, "the input alone determines the solution, and its steps lead there");
    let hint = "a guess to begin with is `poisson.guess`, or `zellige.poisson.solve(rho, guess=u)`; `zellige.poisson.Plan` takes one \
                right-hand side after the other";
    Error::input("the run", fault.hint(hint))
}

/// The method for one right-hand side or a batch of them, in so many parts.
fn choose(config: &Config, batch: Option<usize>, device: &Device, parts: usize) -> Result<Choice> {
    let (grid, options, warm) = (setup::grid(config), config.options(), config.guess.is_some());
    match batch {
        Some(_) => options.choose_stack(&grid, device, warm, parts),
        None => options.choose_in_parts(&grid, device, warm, parts),
    }
}

fn is_gpu(device: &Device) -> bool {
    matches!(device, Device::Cuda(_))
}

/// `4096 x 4096 nodes`, and what stands on the sides.
fn grid_lines(config: &Config, grid: &Grid) -> Vec<(String, String)> {
    let join = |parts: Vec<String>, by: &str| parts.join(by);
    let axes = 0..config.dimensions();
    let nodes = join(axes.clone().map(|d| grid.axes[d].nodes.to_string()).collect(), " x ");
    // Six decimals where they hold the digits that matter; a grid may be of nanometres.
    let length = |h: f64| if (1e-3..1e6).contains(&h) { format!("{h:.6}") } else { format!("{h:.6e}") };
    let spacing = join(axes.clone().map(|d| length(grid.axes[d].h)).collect(), " x ");
    let word = |bc: Bc| match bc {
        Bc::Dirichlet => "Dirichlet",
        Bc::Neumann => "Neumann",
        Bc::Periodic => "periodic",
    };
    let sides = axes.map(|d| {
        let (axis, name) = (&grid.axes[d], ["x", "y", "z"][d]);
        if axis.lo == axis.hi { format!("{name} {}", word(axis.lo)) } else { format!("{name} {} to {}", word(axis.lo), word(axis.hi)) }
    });
    vec![("grid".into(), format!("{nodes} nodes, spacing {spacing}")), ("sides".into(), join(sides.collect(), ", "))]
}

/// Refuses what the machine cannot hold, before anything of it is asked for.
impl Solver for Poisson {
    const NAME: &'static str = "poisson";
    const STEP: &'static str = "cycle";
    const ITEM: &'static str = "unknown";

    type Config = Config;
    type Prepared = Prepared;

    fn check(config: &Config) -> Vec<Fault> {
        config.check()
    }

    fn only_in_one_part(_config: &Config) -> Option<&'static str> {
        None
    }

    fn parts_only_on_cpu(_config: &Config) -> Option<&'static str> {
        None
    }

    fn divide(config: &Config, environment: &Environment, plan: &Plan, parts: usize) -> Result<Division> {
        let choice = Self::prepare(config, environment)?.choice;
        let gpu = is_gpu(&environment.device);
        must_be_cut(&choice, gpu, parts)?;
        Ok(stages::cpu::division::of(&levels_of(&setup::grid(config), &choice), &choice, plan, (parts, gpu)))
    }

    fn prepare(config: &Config, environment: &Environment) -> Result<Prepared> {
        setup::check_files(config, &environment.folder)?;
        let batch = setup::batch(config, &environment.folder)?;
        Ok(Prepared { batch, choice: choose(config, batch, &environment.device, environment.parts)? })
    }

    fn plan_prepared(prepared: &Prepared, config: &Config, environment: &Environment) -> Result<Plan> {
        let (grid, device) = (setup::grid(config), &environment.device);
        let Prepared { batch, choice } = prepared;
        let levels = levels_of(&grid, choice);
        let mut lines = grid_lines(config, &grid);
        lines.push(("method".into(), choice.description.clone()));
        let (mut concurrent, mut host) = (1, if is_gpu(device) { 0 } else { cost::beside(&grid) });
        if !is_gpu(device) && choice.scheme == Scheme::Direct && estimate::sweeps(&grid, choice.precision, choice.criteria.relative) == 0 {
            // The solution after a sweep is never touched, and the system hands out what is.
            host -= choice.precision.outer_bytes() * grid.len() as u64;
        }
        if let Some(count) = *batch {
            if stack::together(choice) && environment.parts == 1 {
                concurrent = batch::concurrent(&grid, choice, count, device);
            }
            if !is_gpu(device) {
                host = batch::host_bytes(&grid, count);
            }
            lines.push(("batch".into(), stack::plan_line(count, concurrent, choice, environment.parts, is_gpu(device))));
        }
        if levels.len() > 1 {
            let coarsest = levels[levels.len() - 1].grid.nodes()[..config.dimensions()].iter().map(ToString::to_string).collect::<Vec<_>>();
            lines.push(("levels".into(), format!("{}, the coarsest {}", levels.len(), coarsest.join(" x "))));
        }
        lines.push(("precision".into(), choice.precision.to_string()));
        let goal =
            if choice.truncation { "truncation error".into() } else { format!("relative residual {:.1e}", choice.criteria.relative) };
        lines.push(("goal".into(), goal));
        let mut warnings = Vec::new();
        if environment.parts > 1 && choose(config, *batch, device, 1)?.scheme != choice.scheme {
            let name = if matches!(choice.scheme, Scheme::Cycles { fmg: Some(_), .. }) { "fmg" } else { "multigrid" };
            warnings.push(format!(
                "on one GPU `auto` takes the direct solver, with other last bits: `method = \"{name}\"` gives the same in any number of parts"
            ));
        }
        let floor = cost::expected_floor(&grid, choice.precision);
        if !choice.truncation && choice.criteria.relative < floor && choice.criteria.absolute == 0.0 {
            let better = if choice.precision.eps() > 1e-10 { "; `precision = \"mixed\"` goes further" } else { "" };
            warnings.push(format!(
                "a relative residual of {:.1e} is below the rounding error of {} on this grid, near {floor:.1e}: expect `precision_floor`{better}",
                choice.criteria.relative, choice.precision
            ));
        }
        let step = cost::step(&levels, choice.scheme, choice.precision).bytes;
        // A goal takes one step of transforms, or some eight cycles; in a batch for each group of right-hand sides.
        let each = if choice.scheme == Scheme::Direct { 1.0 } else { 8.0 };
        let steps = each * batch.unwrap_or(1).div_ceil(concurrent) as f64;
        let unknowns = (concurrent * grid.unknowns()) as f64;
        let work = Some(WorkEstimate { steps, thread_seconds: 12e-9 * unknowns, launches: 25.0, bytes: concurrent as f64 * step });
        let goal = Some(choice.criteria.relative).filter(|goal| !choice.truncation && *goal > 0.0);
        Ok(Plan {
            work,
            expected: goal.map(|goal| Expected::new("relative_residual", goal, "goal")).into_iter().collect(),
            lines,
            items: (batch.unwrap_or(1) * grid.unknowns()) as u64,
            memory: host + concurrent as u64 * cost::memory(&levels, choice.scheme, choice.precision, cost::shared(device)),
            traffic: concurrent as u64 * step as u64,
            warnings,
        })
    }

    fn setup_prepared(prepared: Prepared, config: &Config, environment: &Environment) -> Result<Self> {
        Ok(Self(match prepared.batch {
            None => Run::One(Box::new(Single::new(config, prepared.choice, environment)?)),
            Some(count) => Run::Many(Box::new(Stack::new(config, count, prepared.choice, environment)?)),
        }))
    }

    fn programs(config: &Config, environment: &Environment, gpu: &Properties) -> Result<Vec<Recipe>> {
        let (grid, options, warm) = (setup::grid(config), config.options(), config.guess.is_some());
        let batch = setup::batch(config, &environment.folder)?;
        let choice = options.choose_for_gpu(&grid, warm, batch.is_some())?;
        let solving = if choice.scheme == Scheme::Direct {
            vec![direct::recipe(&grid, choice.precision, gpu)]
        } else {
            vec![stages::cuda::recipe(choice.precision)]
        };
        Ok(solving.into_iter().chain([on_gpu::recipe(), plane::recipe(), plane::copier::recipe()]).collect())
    }

    fn step(&mut self, profiler: &mut Profiler) -> Result<()> {
        match &mut self.0 {
            Run::One(one) => one.step(profiler),
            Run::Many(many) => many.step(profiler),
        }
    }

    fn outcome(&self) -> Option<Outcome> {
        match &self.0 {
            Run::One(one) => one.outcome(),
            Run::Many(many) => many.outcome(),
        }
    }

    fn clock(&self) -> Clock {
        let step = match &self.0 {
            Run::One(one) => one.steps(),
            Run::Many(many) => many.steps(),
        };
        Clock { step, time: None }
    }

    fn progress(&self) -> f64 {
        match &self.0 {
            Run::One(one) => one.progress(),
            Run::Many(many) => many.progress(),
        }
    }

    fn row(&mut self) -> Result<Row> {
        Ok(match &self.0 {
            Run::One(one) => one.row(),
            Run::Many(many) => many.row(),
        })
    }

    fn records(&mut self) -> Result<Vec<Record>> {
        match &mut self.0 {
            Run::One(one) => one.records(),
            Run::Many(many) => many.records(),
        }
    }

    fn pictures(&mut self, _look: Look) -> Result<Pictures> {
        match &mut self.0 {
            Run::One(one) => one.pictures(),
            Run::Many(many) => Ok(many.records()?.into()),
        }
    }

    fn field_on_gpu(&mut self, name: &str, copier: &FieldCopier) -> Result<FieldOnGpu> {
        match &mut self.0 {
            Run::One(one) => one.field_on_gpu(name, copier),
            // Solutions go to the host one after the other.
            Run::Many(_) => Err(not_on_gpu(name, &[])),
        }
    }

    fn set_field(&mut self, name: &str, _shape: &[usize], _values: GivenValues) -> Result<()> {
        Err(not_to_set(name))
    }

    fn set_field_on_gpu(&mut self, name: &str, _shape: &[usize], _values: &ValuesOnGpu, _copier: &FieldCopier) -> Result<()> {
        Err(not_to_set(name))
    }

    fn checks(&mut self) -> Result<Vec<Check>> {
        match &mut self.0 {
            Run::One(one) => one.checks(),
            Run::Many(many) => many.checks(),
        }
    }

    fn details(&self) -> Option<serde_json::Value> {
        match &self.0 {
            Run::One(_) => None,
            Run::Many(many) => Some(many.details()),
        }
    }

    fn save(&mut self, writer: &mut Writer) -> Result<()> {
        match &mut self.0 {
            Run::One(one) => one.save(writer),
            Run::Many(many) => many.save(writer),
        }
    }

    fn restore(&mut self, reader: &Reader) -> Result<()> {
        match &mut self.0 {
            Run::One(one) => one.restore(reader),
            Run::Many(many) => many.restore(reader),
        }
    }

    fn cost(&self) -> Cost {
        match &self.0 {
            Run::One(one) => one.cost(),
            Run::Many(many) => many.cost(),
        }
    }

    fn cases() -> &'static [Case] {
        bench::CASES
    }

    fn bench(case: &Case, device: &Device) -> Result<Box<dyn Bench>> {
        bench::open(case, device)
    }

    fn sweep() -> Vec<Vec<Case>> {
        bench::sweep()
    }

    fn input(case: &Case) -> Option<Config> {
        bench::input(case.name)
    }
}
