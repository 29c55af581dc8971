//! Steps of a small gas: their launches are recorded once and put on the stream as one, since each takes the host and the device longer than
//! what it does. The device counts the steps, and everything else that launches take is the same in every second step.

use zellige_engine::cuda::{Buffer, Graph, Pool};
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;

use super::Gas;
use super::arguments::{DomainArgument, GasArgument, GeometryArgument, InflowArgument, PassArgument, StoreArgument};

/// Steps of which one is not put on the stream as one, so that the profile has its stages.
const APART: u64 = 64;

/// Everything that the launches of a step take.
type Arguments = (StoreArgument, GasArgument, PassArgument, DomainArgument, GeometryArgument, InflowArgument);

/// A step, with what it was recorded with.
type Record = (Box<Arguments>, Graph);

/// The records, and the device's count of steps.
pub(super) struct Recorded {
    /// The step under way or the last one, and the one before, in turn as the sets of columns.
    pub(super) clock: Buffer<u64>,
    /// The step that it counts next.
    pub(super) next: Option<u64>,
    /// By the set of columns in use and by whether the step is sampled.
    steps: [[Option<Record>; 2]; 2],
}

impl Recorded {
    pub(super) fn new(pool: &Pool) -> Result<Self> {
        Ok(Self { clock: pool.alloc_zeros(2, "dsmc: steps")?, next: None, steps: Default::default() })
    }
}

impl Gas {
    /// A step by its record, made where there is none that fits: columns move when they grow.
    pub(super) fn replay(&mut self, step: u64, sample: bool, profiler: &mut Profiler) -> Result<()> {
        if self.recorded.next != Some(step) {
            self.cuda.upload(&mut self.recorded.clock, &[step.wrapping_sub(1); 2])?;
        }
        self.recorded.next = Some(step + 1);
        if self.steps % APART == 1 {
            return self.launch(step, sample, profiler);
        }
        let (set, cuda) = (self.store.set_in_use(), self.cuda.clone());
        let now = (self.store.argument(), self.gas(step), self.pass(), self.domain(step, sample), self.geometry(), self.inflow());
        let kept = self.recorded.steps[set][usize::from(sample)].take().filter(|(then, _)| **then == now);
        let (arguments, mut graph) = match kept {
            Some(kept) => kept,
            None => (Box::new(now), cuda.capture(|| self.launch(step, sample, &mut Profiler::off()))?),
        };
        let name = if sample { "step with samples, as one" } else { "step, as one" };
        // SAFETY: what the launches use is in `arguments`, which are those of now, and lives as long as the gas.
        let launched = profiler.stage_on(&cuda, name, self.cost(sample), || unsafe { graph.launch() });
        self.recorded.steps[set][usize::from(sample)] = Some((arguments, graph));
        launched
    }
}
