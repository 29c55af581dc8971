//! A run in several parts: threads of this process (`--parts`), or the processes that `mpirun` or `srun` has started.

use std::time::Duration;

use zellige_engine::allocator;
use zellige_engine::config::Input;
use zellige_engine::device::{Device, DeviceSpec, cores_of};
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::links::{Division, Forecast, LinkSpeed, Links, inside, mpi};
use zellige_engine::profile::Profiler;
use zellige_engine::run::{self, Options, Silent, Sink, Summary};
use zellige_engine::sim::{Environment, Plan, Solver};

use crate::args::RunArgs;
use crate::report::{self, GIT_HASH, VERSION};

/// Largest number of parts within a process, and in a dry run, which forecasts those of a cluster.
const MOST: [usize; 2] = [1024, 1 << 20];

/// Time for a launcher to hand on what an ended process has said: it drops the rest when the others are ended.
const TELLING: Duration = Duration::from_millis(300);
/// Time for the first part to tell what all find, in their input or a checkpoint, and to end them.
const SAME: Duration = Duration::from_secs(2);

/// Does `work` in this process, or in each of those that a launcher has started: the first one speaks for all, and one that fails
/// says so before it ends the others.
pub(crate) fn with_links(work: impl FnOnce(&Links) -> Result<u8>) -> Result<u8> {
    let links = mpi::from_launcher(|error| {
        report::error(error);
        std::thread::sleep(TELLING);
    })?
    .unwrap_or_default();
    if links.is_alone() {
        return work(&links);
    }
    if !links.is_first() {
        report::only_errors();
    }
    let host = links.host().map_or_else(String::new, |host| format!(" on {host}"));
    let part = format!("part {} of {}{host}", links.rank(), links.size());
    allocator::set_part(part.clone());
    let done = links.must_agree("the program", &format!("zellige {VERSION} ({GIT_HASH})")).and_then(|()| work(&links));
    done.or_else(|error| {
        // The part that failed tells its error. Others that know of it wait for it in the end of the library; of an orderly stop, which
        // all make after the same step, they know.
        let known = matches!(error, Error::Part { .. }) || (matches!(error, Error::Interrupted { .. }) && !links.is_first());
        if !known {
            if !links.is_first() {
                std::thread::sleep(SAME);
                report::fault(&format!("{part} ended the run:"));
            }
            report::error(&error);
            std::thread::sleep(TELLING);
            links.abort(&error);
        }
        Ok(error.exit_code())
    })
}

/// Memory, work and messages of the part with most of each, in words.
fn told(division: &Division, step: &str) -> String {
    let Division { imbalance, repeated, memory, messages, bytes, .. } = division;
    let alike = if *repeated > 0.0 { format!(", {:.1} % of the work done by all alike", 100.0 * repeated) } else { String::new() };
    format!(
        "{} at most, {:.1} % more work than the mean{alike}; {messages:.0} message{} and {} {} {step}",
        report::bytes(*memory as f64),
        100.0 * (imbalance - 1.0),
        if *messages == 1.0 { "" } else { "s" },
        report::bytes(*bytes),
        report::article(step)
    )
}

/// A forecast in words.
fn forecast_line(forecast: &Forecast, step: &str, link: LinkSpeed) -> String {
    let [alone, together, exchange] = [forecast.alone, forecast.step(), forecast.exchange].map(report::seconds);
    format!(
        "{together} {} {step}, {exchange} of it messages between {}, {alone} in one part: {:.1} times as fast, an efficiency of {:.0} %",
        report::article(step),
        link.name,
        forecast.speedup(),
        100.0 * forecast.efficiency()
    )
}

/// Parts of a run.
pub(crate) struct Parts {
    /// Links to the other processes.
    pub(crate) links: Links,
    /// Number of this process among those of its host, and how many they are.
    here: [usize; 2],
    /// Parts in this process.
    inside: usize,
    /// GPUs that they are on, each with as many; empty where the device of the run has all.
    gpus: Vec<usize>,
}

/// Number of this process among those of its host, and how many they are.
fn here(links: &Links) -> Result<[usize; 2]> {
    if links.is_alone() {
        return Ok([0, 1]);
    }
    let own = links.host();
    let all = links.all_say(&own)?;
    let among = |hosts: &[Option<String>]| hosts.iter().filter(|host| **host == own).count();
    Ok([among(&all[..links.rank()]), among(&all)])
}

impl Parts {
    /// The parts that are asked for, where this input can be computed in so many. Of `gpus` each process has one, by turns.
    pub(crate) fn new<S: Solver>(config: &S::Config, arguments: &RunArgs, mut gpus: Vec<usize>, links: &Links) -> Result<Self> {
        let refuse = |problem: Problem| Err(Error::input("command line", problem));
        let here = here(links)?;
        if !links.is_alone() && !gpus.is_empty() {
            if here[0] == 0 && here[1] > gpus.len() {
                let host = links.host().unwrap_or_default();
                let plural = if gpus.len() == 1 { "" } else { "s" };
                report::note(&format!("{} processes share {} GPU{plural} of {host}: one process a GPU is faster", here[1], gpus.len()));
            }
            gpus = vec![gpus[here[0] % gpus.len()]];
        }
        let (inside, most) = (arguments.parts.unwrap_or(gpus.len().max(1)), MOST[usize::from(arguments.dry_run)]);
        if !gpus.is_empty() && !inside.is_multiple_of(gpus.len()) {
            let problem = Problem::new("--parts", format!("{inside} parts on {} GPUs", gpus.len()));
            return refuse(problem.allowed(format!("a multiple of {}", gpus.len())).hint("leave `--parts` out: each GPU then has a part"));
        }
        if !(1..=most).contains(&inside) {
            return refuse(Problem::new("--parts", format!("{inside} parts")).allowed(format!("1 to {most}")));
        }
        if inside > 1 && !links.is_alone() {
            let problem = Problem::new("--parts", format!("{} processes were started, each of which is a part", links.size()));
            return refuse(problem.hint("leave `--parts` out, and start as many processes as there are to be parts"));
        }
        let parts = Self { links: links.clone(), here, inside, gpus };
        match S::only_in_one_part(config).filter(|_| parts.count() > 1) {
            None => Ok(parts),
            Some(reason) => {
                let problem = Problem::new("--parts", format!("this input is computed in one part only: {reason}"));
                refuse(problem.hint("start one process without `--parts`: all threads work on one part"))
            }
        }
    }

    /// Number of parts.
    pub(crate) fn count(&self) -> usize {
        self.inside.max(self.links.size())
    }

    /// GPUs of this process, where a list of them or one for each process is asked for.
    pub(crate) fn gpus(&self) -> &[usize] {
        &self.gpus
    }

    /// Number of parts in this process.
    pub(crate) fn inside(&self) -> usize {
        self.inside
    }

    /// Threads of this process where `asked`, or 0, are asked for: the processes of a host share its cores.
    pub(crate) fn threads(&self, asked: usize) -> usize {
        if self.links.is_alone() || asked > 0 { asked } else { cores_of(self.here[1]) }
    }

    /// Refuses a device that parts are not computed on.
    pub(crate) fn refuse<S: Solver>(&self, config: &S::Config, device: &Device) -> Result<()> {
        if matches!(device, Device::Cpu(_)) || self.count() == 1 {
            return Ok(());
        }
        let Some(reason) = S::parts_only_on_cpu(config) else { return Ok(()) };
        let problem = Problem::new("--device", format!("{} parts on {}: {reason}", self.count(), device.id()));
        Err(Error::input("command line", problem.hint("use `--device cpu`, or one GPU without `--parts`")))
    }

    /// Tells how the work is divided, and how long a step is forecast to take; refuses more parts than there are shares.
    pub(crate) fn tell<S: Solver>(&self, config: &S::Config, environment: &Environment, plan: &Plan) -> Result<()> {
        let count = self.count();
        if count == 1 {
            return Ok(());
        }
        let division = S::divide(config, environment, plan, count)?;
        report::line("cut", &division.cut);
        report::line("a part", &told(&division, S::STEP));
        let Some(work) = plan.work else { return Ok(()) };
        let alone = |threads: usize| match &environment.device {
            Device::Cpu(_) => work.on_threads(threads),
            Device::Cuda(_) => work.on_gpu(),
        };
        // One part has the threads of one part.
        let threads = (environment.device.threads() / self.inside).max(1);
        let step = alone(threads) / work.steps.max(1.0);
        let link = self.link(&environment.device);
        let forecast = Forecast::new(&division, count, step, link);
        report::line("in parts", &forecast_line(&forecast, S::STEP, link));
        Ok(())
    }

    /// Links between these parts.
    fn link(&self, device: &Device) -> LinkSpeed {
        let [_, here] = self.here;
        match device {
            _ if here < self.links.size() => LinkSpeed::HOSTS,
            _ if !self.links.is_alone() => LinkSpeed::PROCESSES,
            // More parts than this host has cores are those of a cluster.
            Device::Cpu(_) if self.inside > cores_of(1) => LinkSpeed::HOSTS,
            Device::Cpu(_) => LinkSpeed::THREADS,
            Device::Cuda(_) if self.gpus.len() > 1 => LinkSpeed::GPUS,
            Device::Cuda(_) => LinkSpeed::ONE_GPU,
        }
    }

    /// Device of a part of this process, where `device` is that of the run.
    fn device(&self, device: &Device, part: usize) -> Result<Device> {
        let spec = match device {
            Device::Cpu(cpu) => return Ok(Device::open(&DeviceSpec::Cpu, (cpu.threads() / self.inside).max(1))?.0),
            Device::Cuda(_) if part == 0 => return Ok(device.clone()),
            Device::Cuda(cuda) if self.gpus.is_empty() => cuda.ordinal(),
            Device::Cuda(_) => self.gpus[part * self.gpus.len() / self.inside],
        };
        Ok(Device::open(&DeviceSpec::Cuda(Some(spec)), 0)?.0)
    }

    /// Runs all parts of this process. `environment` is that of the process, and of its part where it has one.
    pub(crate) fn run<S: Solver>(
        &self,
        prepared: Option<S::Prepared>,
        input: &Input<S::Config>,
        environment: &Environment,
        options: &Options,
        profiler: &mut Profiler,
        sink: &mut dyn Sink,
    ) -> Result<Summary> {
        if self.inside == 1 {
            return run::run_from::<S>(prepared, &input.config, environment, options, profiler, sink);
        }
        let of_part = |links: Links| -> Result<Environment> {
            let device = self.device(&environment.device, links.rank())?;
            Ok(Environment::new(device, environment.folder.clone(), environment.seed).of_part(links))
        };
        let first = |links| run::run::<S>(&input.config, &of_part(links)?, options, profiler, sink);
        let others = |links| run::run::<S>(&input.config, &of_part(links)?, options, &mut Profiler::new(), &mut Silent);
        inside::lead(self.inside, inside::Memory::Shared, first, others).map(|(summary, _)| summary)
    }
}
