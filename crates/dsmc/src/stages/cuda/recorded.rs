//! Steps of a small gas: their launches are recorded once and put on the stream as one, several steps together, since each takes
//! the host and the device longer than what it does, and kernels of a record start before the ones ahead have ended. The device
//! counts the steps, and everything else that launches take is the same in every second step. So a step is kept back until there
//! are enough of them, or somebody looks.

use zellige_engine::cuda::{Buffer, Graph, Pool};
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_engine::sim::Cost;

use super::Gas;
use super::arguments::{self, Domain, Geometry, Inflow, Pass, Store};

/// Steps that are put on the stream as one: as many as there are, else fewer.
const TOGETHER: [u64; 3] = [16, 4, 1];
/// Steps of which one is not put on the stream with others, so that the profile has its stages.
const APART: u64 = 64;

/// Everything that the launches of a step take.
type Arguments = (Store, arguments::Gas, Pass, Domain, Geometry, Inflow);

/// Steps, with what the first of them was recorded with.
type Record = (Box<Arguments>, Graph);

/// The records, and the device's count of steps.
pub(super) struct Recorded {
    /// The step under way or the last one, and the one before, in turn as the sets of columns.
    pub(super) clock: Buffer<u64>,
    /// The step that it counts next.
    pub(super) next: Option<u64>,
    /// Steps kept back: the first of them, how many, and whether they are sampled.
    kept: (u64, u64, bool),
    /// Steps launched since one was apart.
    together: u64,
    /// By number of steps, by the set of columns in use, and by whether the steps are sampled.
    steps: [[[Option<Record>; 2]; 2]; TOGETHER.len()],
}

impl Recorded {
    pub(super) fn new(pool: &Pool) -> Result<Self> {
        let clock = pool.alloc_zeros(2, "dsmc: steps")?;
        Ok(Self { clock, next: None, kept: (0, 0, false), together: APART, steps: Default::default() })
    }
}

impl Gas {
    /// Keeps a step back, and launches all that are when there are enough.
    pub(super) fn keep_back(&mut self, step: u64, sample: bool, profiler: &mut Profiler) -> Result<()> {
        let (first, n, sampled) = self.recorded.kept;
        if n > 0 && (sampled != sample || first + n != step) {
            self.flush(profiler)?;
        }
        let (first, n, _) = self.recorded.kept;
        self.recorded.kept = (if n == 0 { step } else { first }, n + 1, sample);
        if n + 1 == TOGETHER[0] { self.flush(profiler) } else { Ok(()) }
    }

    /// Launches the steps kept back: before anything that their number or what they do depends on changes, or is looked at.
    pub(super) fn flush(&mut self, profiler: &mut Profiler) -> Result<()> {
        let (mut step, n, sample) = std::mem::take(&mut self.recorded.kept);
        let end = step + n;
        if n > 0 && self.recorded.next != Some(step) {
            self.cuda.upload(&mut self.recorded.clock, &[step.wrapping_sub(1); 2])?;
        }
        while step < end {
            if self.recorded.together >= APART {
                self.recorded.together = 0;
                self.launch(step, sample, profiler)?;
                self.store.turn();
                step += 1;
                continue;
            }
            let size = TOGETHER.iter().position(|n| *n <= end - step).unwrap_or(TOGETHER.len() - 1);
            self.replay(size, step, sample, profiler)?;
            step += TOGETHER[size];
        }
        if n > 0 {
            self.recorded.next = Some(end);
        }
        Ok(())
    }

    /// `TOGETHER[size]` steps by their record, made where there is none that fits: columns move when they grow.
    fn replay(&mut self, size: usize, step: u64, sample: bool, profiler: &mut Profiler) -> Result<()> {
        let (n, set, cuda) = (TOGETHER[size], self.store.set_in_use(), self.cuda.clone());
        let now = (self.store.argument(), self.gas(step), self.pass(), self.domain(step, sample), self.geometry(), self.inflow());
        let kept = self.recorded.steps[size][set][usize::from(sample)].take().filter(|(then, _)| **then == now);
        let (arguments, mut graph) = match kept {
            Some(kept) => kept,
            None => {
                let graph = cuda.capture(|| {
                    (step..step + n).try_for_each(|step| {
                        self.launch(step, sample, &mut Profiler::off())?;
                        self.store.turn();
                        Ok(())
                    })
                });
                // Nothing has been done yet.
                self.store.use_set(set);
                (Box::new(now), graph?)
            }
        };
        let one = self.cost(sample);
        let cost = Cost { bytes: n as f64 * one.bytes, flops: n as f64 * one.flops, items: n as f64 * one.items };
        let name = if sample { "steps with samples, as one" } else { "steps, as one" };
        // SAFETY: what the launches use is in `arguments`, which are those of now, and lives as long as the gas.
        let launched = profiler.stage_on(&cuda, name, cost, || unsafe { graph.launch() });
        self.recorded.steps[size][set][usize::from(sample)] = Some((arguments, graph));
        self.recorded.together += n;
        self.store.use_set((set + n as usize) % 2);
        launched
    }
}
