//! Somebody who watches a run, and may steer it: wishes that the sink hands on before a step, and pictures that it gets.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Sink;
use super::state::Saver;
use crate::cuda::Event;
use crate::device::Device;
use crate::error::Result;
use crate::profile::{Profiler, StageRow};
use crate::record::Pictures;
use crate::sim::{Clock, Look, Solver};
use crate::times::{self, Phase};

/// Wish of somebody who watches a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// Pictures of the state as it stands.
    pub pictures: Option<Look>,
    /// A checkpoint.
    pub save: bool,
    /// The next section of the run, such as the next engine of a reconstruction.
    pub next: bool,
    /// The end of the run, once its state is saved.
    pub stop: bool,
}

/// A look at a run between two steps.
#[derive(Debug)]
pub struct View {
    /// Position of the run in steps and time.
    pub clock: Clock,
    /// Extent of the pictures.
    pub look: Look,
    /// The results as they stand, those that make pictures.
    pub pictures: Pictures,
    /// The profile so far.
    pub stages: Vec<StageRow>,
    /// Time that the run has lost by it.
    pub lost: Lost,
}

/// Time that steps were held up by a look.
#[derive(Debug)]
pub enum Lost {
    /// The run stood still so long.
    Host(Duration),
    /// The stream of a GPU had no step of the run between these two marks: only kernels of the look, or nothing.
    Device([Event; 2]),
}

impl Lost {
    /// The time. Waits until the device has come past the look.
    pub fn time(&self) -> Result<Duration> {
        match self {
            Self::Host(time) => Ok(*time),
            Self::Device([begin, end]) => {
                end.wait()?;
                Ok(Duration::from_secs_f64(end.seconds_since(begin)?.max(0.0)))
            }
        }
    }
}

/// Makes pictures and measures what they hold up. On a GPU a run that is alone waits neither for the steps before nor for the
/// pictures, whose time is counted with that of the steps, unless a solver makes some on the host and says so.
fn pictures<S: Solver>(solver: &mut S, look: Look, device: &Device, is_alone: bool) -> Result<(Pictures, Lost)> {
    let Device::Cuda(cuda) = device else {
        return times::within(Phase::Diagnostics, || {
            let begun = Instant::now();
            solver.pictures(look).map(|pictures| (pictures, Lost::Host(begun.elapsed())))
        });
    };
    let [begin, end] = [cuda.event()?, cuda.patient_event()?];
    cuda.record(&begin)?;
    // Parts gather theirs on the host, which waits.
    let pictures =
        if is_alone { solver.pictures(look)? } else { times::after_steps(device, Phase::Diagnostics, || solver.pictures(look))? };
    cuda.record(&end)?;
    Ok((pictures, Lost::Device([begin, end])))
}

/// A look at the run for the sink. Pictures that cannot be had end no run that is alone.
pub(super) fn look<S: Solver>(
    look: Look,
    solver: &mut S,
    device: &Device,
    saver: &Saver<S>,
    stages: impl FnOnce() -> Vec<StageRow>,
    sink: &mut dyn Sink,
) -> Result<()> {
    match pictures(solver, look, device, saver.links().is_alone()) {
        Ok((pictures, lost)) => {
            let view = View { clock: solver.clock(), look, pictures, stages: stages(), lost };
            times::within(Phase::Output, || sink.view(view));
            Ok(())
        }
        // Other parts have theirs, and wait in the next exchange.
        Err(error) if !saver.links().is_alone() => Err(error),
        Err(error) => {
            sink.notice(&format!("the live page has no new pictures: {error}"));
            Ok(())
        }
    }
}

/// Grants a wish. Pictures or a checkpoint that cannot be had end no run that is alone.
pub(super) fn grant<S: Solver>(
    wish: Wish,
    solver: &mut S,
    device: &Device,
    saver: &Saver<S>,
    profiler: &mut Profiler,
    sink: &mut dyn Sink,
) -> Result<()> {
    if wish == Wish::default() {
        return Ok(());
    }
    if let Some(extent) = wish.pictures {
        look(extent, solver, device, saver, || profiler.table_so_far(), sink)?;
    }
    if wish.save {
        times::after_steps(device, Phase::Checkpoints, || saver.save_or_notice(solver, sink))?;
    }
    if wish.next {
        let step = solver.clock().step;
        let text = if solver.next_section()? {
            format!("{} {step} was the last of its section, as the live page asked", S::STEP)
        } else {
            "this run has no next section to go on with".into()
        };
        sink.notice(&text);
    }
    Ok(())
}
