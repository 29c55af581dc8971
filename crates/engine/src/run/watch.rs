//! Somebody who watches a run, and may steer it: wishes that the sink hands on before a step, and pictures that it gets.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Sink;
use super::state::Saver;
use crate::device::Device;
use crate::error::Result;
use crate::profile::{Profiler, StageRow};
use crate::record::Record;
use crate::sim::{Clock, Solver};
use crate::times::{self, Phase};

/// Wish of somebody who watches a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// Pictures of the state as it stands.
    pub pictures: bool,
    /// A checkpoint.
    pub save: bool,
    /// The next section of the run, such as the next engine of a reconstruction.
    pub next: bool,
}

/// A look at a run between two steps.
#[derive(Debug)]
pub struct View {
    /// Position of the run in steps and time.
    pub clock: Clock,
    /// The results as they stand, those that make pictures.
    pub records: Vec<Record>,
    /// The profile so far.
    pub stages: Vec<StageRow>,
    /// Time that the records took: the run stood still meanwhile.
    pub taken: Duration,
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
    if wish.pictures {
        let made = times::after_steps(device, Phase::Diagnostics, || {
            let begun = Instant::now();
            solver.pictures().map(|records| (records, begun.elapsed()))
        });
        match made {
            Ok((records, taken)) => {
                let (clock, stages) = (solver.clock(), profiler.table());
                times::within(Phase::Output, || sink.view(View { clock, records, stages, taken }));
            }
            // Other parts have theirs, and wait in the next exchange.
            Err(error) if !saver.links().is_alone() => return Err(error),
            Err(error) => sink.notice(&format!("the live page has no new pictures: {error}")),
        }
    }
    if wish.save {
        times::after_steps(device, Phase::Checkpoints, || {
            saver.save_or_notice(solver, sink);
            Ok(())
        })?;
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
