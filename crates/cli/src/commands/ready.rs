//! The device and the plan of a run.

use std::collections::BTreeSet;

use zellige_engine::allocator;
use zellige_engine::config::Input;
use zellige_engine::cuda;
use zellige_engine::device::{Device, DeviceSpec};
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::links::Links;
use zellige_engine::sim::{Environment, Plan, Solver};

use crate::args::{RunArgs, RunTarget};
use crate::commands::gpus;
use crate::commands::parts::Parts;
use crate::commands::run::named;
use crate::commands::tell::show;
use crate::report::{self, VERSION};

/// Largest number of threads that can be requested, as in the input.
const THREADS: usize = 4096;

/// The device that the command line, the environment or the input asks for, with what was passed over said. `without` says why
/// no GPU is used where none is asked for: `auto` is the CPU then.
pub(crate) fn open(target: &RunTarget, device: &str, threads: usize, without: Option<&str>) -> Result<Device> {
    let mut spec = spec(target, device)?;
    if let (Some(why), DeviceSpec::Auto) = (without, &spec) {
        report::note(&format!("no GPU is used: {why}"));
        spec = DeviceSpec::Cpu;
    }
    // The input's number is checked with the input.
    if let Some(asked) = target.threads.filter(|n| *n > THREADS) {
        let problem = Problem::new("--threads", format!("{asked} threads")).allowed(format!("0 (every core) to {THREADS}"));
        return Err(Error::input("command line", problem));
    }
    let (device, notes) = Device::open(&spec, target.threads.unwrap_or(threads))?;
    for text in notes {
        report::note(&text);
    }
    Ok(device)
}

fn spec(target: &RunTarget, device: &str) -> Result<DeviceSpec> {
    let parse = |text: &str, path: &str| {
        text.parse::<DeviceSpec>()
            .map_err(|message| Error::input("command line", Problem::new(path, message).hint("`zellige devices` lists them")))
    };
    let asked = target.device.as_deref().map(|d| parse(d, "--device")).transpose()?;
    DeviceSpec::choose(asked, Some(parse(device, "run.device")?))
}

/// The CPU, where `auto` may choose it and it is forecast to be done before a GPU that has to be started first. A driver is asked
/// only where it could be faster.
fn chosen<S: Solver>(spec: &DeviceSpec, may: bool, input: &Input<S::Config>, threads: usize) -> Result<Option<Device>> {
    if *spec != DeviceSpec::Auto || !may || !cuda::library::driver().usable() {
        return Ok(None);
    }
    let device = Device::open(&DeviceSpec::Cpu, threads)?.0;
    let environment = Environment::new(device.clone(), input.folder.clone(), input.run.seed);
    // Faults of the input are reported by the plan of the run itself.
    let Some(work) = S::plan(&input.config, &environment).ok().and_then(|plan| plan.work) else { return Ok(None) };
    let Some(forecasts) = work.forecasts_if_cpu_faster(device.threads()) else { return Ok(None) };
    let [here, there] = forecasts.map(report::seconds);
    report::note(&format!(
        "the CPU is used: the cost model forecasts {here} for the steps, and {there} on a GPU with its start; `--device cuda` uses the GPU anyway"
    ));
    Ok(Some(device))
}

/// Model traffic of a step below which one thread is faster than several, bytes: a step of 0.7 MiB in six stages takes 88 us on one
/// thread, 151 on four and 188 on sixteen, which wait for each other between the stages.
const ALONE: u64 = 900_000;

/// One thread in place of all where a step is too small for more.
fn alone(device: &Device, plan: &Plan, step: &str) -> Result<Option<Device>> {
    let threads = device.threads();
    if !matches!(device, Device::Cpu(_)) || threads == 1 || plan.traffic >= ALONE {
        return Ok(None);
    }
    report::note(&format!("1 of {threads} threads is used: one {step} is too little work to share; `--threads` sets another number"));
    Ok(Some(Device::open(&DeviceSpec::Cpu, 1)?.0))
}

/// Refuses data files that other parts have and this one has not.
fn data_is_everywhere<S: Solver>(input: &Input<S::Config>, links: &Links) -> Result<()> {
    if links.is_alone() {
        return Ok(());
    }
    let own = input.data_files::<S>()?;
    let all: BTreeSet<String> = links.all_say(&own)?.into_iter().flatten().collect();
    let missing = all.difference(&own).next().map(|name| {
        let problem = Problem::new(
            "",
            format!(
                "other parts have the file `{name}`, which their input names; in `{}` it is not there, or not named",
                input.folder.display()
            ),
        );
        Error::input(&input.origin, problem.hint("each host reads its data: put input and files into a folder that all share"))
    });
    links.together(missing.map_or(Ok(()), Err))
}

/// A checked input with its device and its plan, before anything of it is set up.
pub(crate) struct Ready<S: Solver> {
    pub(crate) input: Input<S::Config>,
    pub(crate) environment: Environment,
    pub(crate) plan: Plan,
    pub(crate) prepared: Option<S::Prepared>,
    pub(crate) parts: Parts,
}

impl<S: Solver> Ready<S> {
    /// Chooses the device, plans, and tells both.
    pub(crate) fn new(mut input: Input<S::Config>, arguments: &RunArgs, links: &Links) -> Result<Self> {
        let target = &arguments.target;
        let asked = gpus::asked(target.device.as_deref());
        let list = match asked.as_deref().unwrap_or(&input.run.device) {
            // Each process has one of its host.
            "cuda" if !links.is_alone() => gpus::all(),
            text if asked.is_some() => gpus::listed(text).map(Option::unwrap_or_default),
            _ => Ok(Vec::new()),
        };
        let list = links.together(list)?;
        let parts = Parts::new::<S>(&input.config, arguments, list, links)?;
        // The first one is the device of the run, as far as there is one.
        let first = parts.gpus().first().map(|gpu| format!("cuda:{gpu}"));
        let target = &RunTarget { device: first.or_else(|| target.device.clone()), ..target.clone() };
        data_is_everywhere::<S>(&input, links)?;
        // As it was read: the threads of each part are its own matter.
        links.must_agree("the input", &input.resolved::<S>()?)?;
        let cpu_alone = S::only_on_cpu(&input.config);
        let without = match parts.count() {
            1 if cpu_alone.is_empty() => None,
            1 => Some(format!("there are no kernels for {}", cpu_alone.join(", "))),
            _ => Some("several parts are on GPUs where `--device cuda` asks for it".to_owned()),
        };
        let asked = parts.threads(target.threads.unwrap_or(input.run.threads));
        let spec = spec(target, &input.run.device)?;
        let device = match chosen::<S>(&spec, without.is_none(), &input, asked)? {
            Some(processor) => processor,
            None => {
                let target = RunTarget { threads: Some(asked), ..target.clone() };
                links.together(open(&target, &input.run.device, asked, without.as_deref()))?
            }
        };
        parts.refuse::<S>(&input.config, &device)?;
        input.run.device = device.id();
        let mut environment = Environment::new(device, input.folder.clone(), input.run.seed).of_part(links.clone()).in_parts(parts.count());
        let device = environment.device.clone();
        let plural = if device.threads() == 1 { "" } else { "s" };
        let in_parts = match parts.count() {
            1 => String::new(),
            n if parts.gpus().len() > 1 => format!(", {n} parts on {} GPUs", parts.gpus().len()),
            n if links.is_alone() => format!(", {n} parts"),
            n => format!(" in each of {n} parts, {}", links.transport()),
        };
        report::heading(&format!(
            "zellige {VERSION} {} on {} ({}, {} thread{plural}{in_parts})",
            S::NAME,
            device.name(),
            device.id(),
            device.threads()
        ));
        let named = |error| named(error, &input.origin);
        // Preparing may take as long as the run. Parts in this process prepare each for itself.
        let prepared = if arguments.dry_run || parts.inside() > 1 {
            None
        } else {
            Some(links.together(S::prepare(&input.config, &environment).map_err(named))?)
        };
        let plan_for = |environment: &Environment| match &prepared {
            Some(prepared) => S::plan_prepared(prepared, &input.config, environment),
            None => S::plan(&input.config, environment),
        };
        let mut plan = plan_for(&environment).map_err(named)?;
        if asked == 0
            && parts.count() == 1
            && let Some(alone) = alone(&device, &plan, S::STEP)?
        {
            environment.device = alone;
            plan = plan_for(&environment).map_err(named)?;
        }
        show(&plan, S::ITEM, S::STEP, &environment.device);
        parts.tell::<S>(&input.config, &environment, &plan).map_err(named)?;
        input.run.threads = environment.device.threads();
        allocator::set_planned(plan.memory);
        Ok(Self { input, environment, plan, prepared, parts })
    }
}
