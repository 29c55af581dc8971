//! The wall time of a process by name: every second has one name, and the times add up to the whole.
//!
//! A [`Phase`] is the current activity of the thread that leads the run, or what it waits for. What other threads do meanwhile has
//! no time of its own here: kernels that are compiled while particles are made cost nothing but what is waited for them.
//!
//! ```
//! use zellige_engine::times::{self, Phase};
//! times::begin(Phase::Reading);
//! let sum = times::within(Phase::Steps, || (0..1000).sum::<u32>());
//! let times = times::elapsed();
//! assert!(sum == 499500 && times.of(Phase::Steps) > 0.0 && times.of(Phase::Output) == 0.0);
//! assert!((times.phases().map(|(_, seconds)| seconds).sum::<f64>() - times.wall()).abs() < 1e-9);
//! ```

use std::cell::RefCell;
use std::time::Instant;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::device::Device;
use crate::error::Result;

/// Phases of a run, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The input, its data files and the plan.
    Reading,
    /// Device, driver and libraries, and kernels that are put on the device.
    Loading,
    /// Kernels that were on no disk, as far as the run waited for them.
    Compiling,
    /// The state before the first step.
    SetUp,
    /// Steps, and waiting for the device to end them.
    Steps,
    /// Diagnostics: rows, records, checks during the run.
    Diagnostics,
    /// Files of results.
    Output,
    /// Checkpoints, saved and read.
    Checkpoints,
    /// Work after the results: last checks, release of memory, the summary.
    End,
}

/// Every phase.
const PHASES: [(Phase, &str); 9] = [
    (Phase::Reading, "reading"),
    (Phase::Loading, "loading"),
    (Phase::Compiling, "compiling"),
    (Phase::SetUp, "set_up"),
    (Phase::Steps, "steps"),
    (Phase::Diagnostics, "diagnostics"),
    (Phase::Output, "output"),
    (Phase::Checkpoints, "checkpoints"),
    (Phase::End, "end"),
];

impl Phase {
    /// The name in `summary.json`.
    pub fn name(self) -> &'static str {
        PHASES[self as usize].1
    }
}

/// Seconds by phase. In JSON an object of all phases, and `wall`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Times([f64; PHASES.len()]);

impl Times {
    /// Seconds of one phase.
    pub fn of(&self, phase: Phase) -> f64 {
        self.0[phase as usize]
    }

    /// Every phase with its seconds.
    pub fn phases(&self) -> impl Iterator<Item = (Phase, f64)> {
        PHASES.into_iter().map(|(phase, _)| (phase, self.of(phase)))
    }

    /// Time added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] - earlier.0[i]))
    }

    /// Seconds of all phases.
    pub fn wall(&self) -> f64 {
        self.0.iter().sum()
    }
}

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(PHASES.len() + 1))?;
        for (phase, seconds) in self.phases() {
            map.serialize_entry(phase.name(), &seconds)?;
        }
        map.serialize_entry("wall", &self.wall())?;
        map.end()
    }
}

#[derive(Debug)]
struct Stopwatch {
    times: Times,
    phase: Phase,
    since: Instant,
}

impl Stopwatch {
    /// Adds the time since the last switch to the current phase and continues with `phase`; returns the phase before it.
    fn switch(&mut self, phase: Phase) -> Phase {
        let now = Instant::now();
        self.times.0[self.phase as usize] += now.duration_since(self.since).as_secs_f64();
        self.since = now;
        std::mem::replace(&mut self.phase, phase)
    }
}

thread_local! {
    /// Stopwatch of the thread that leads a run; other threads have none and record nothing.
    static WATCH: RefCell<Option<Stopwatch>> = const { RefCell::new(None) };
}

/// Begins to count on this thread, unless it does already.
pub fn begin(phase: Phase) {
    WATCH.with_borrow_mut(|watch| {
        watch.get_or_insert_with(|| Stopwatch { times: Times::default(), phase, since: Instant::now() });
    });
}

/// Stopwatch of a run that a thread leads now and then.
#[derive(Debug, Default)]
pub struct Watch(Option<Stopwatch>);

impl Watch {
    /// Does `work` with this stopwatch as that of the thread; it stands still in between.
    pub fn during<R>(&mut self, work: impl FnOnce() -> R) -> R {
        self.exchange();
        let result = work();
        self.exchange();
        result
    }

    fn exchange(&mut self) {
        WATCH.with_borrow_mut(|watch| {
            if let Some(watch) = watch {
                watch.switch(watch.phase);
            }
            std::mem::swap(watch, &mut self.0);
            if let Some(watch) = watch {
                watch.since = Instant::now();
            }
        });
    }
}

/// Attributes the following work on this thread to `phase`; returns the phase before it.
pub fn switch_to(phase: Phase) -> Option<Phase> {
    WATCH.with_borrow_mut(|watch| watch.as_mut().map(|watch| watch.switch(phase)))
}

/// Runs `work` as `phase`, then returns to the phase before it.
pub fn within<R>(phase: Phase, work: impl FnOnce() -> R) -> R {
    let _back = PhaseGuard(switch_to(phase));
    work()
}

/// [`within`] with a state on `device`: what the device still has to do of the steps before is waited for first, as steps.
pub fn after_steps<R>(device: &Device, phase: Phase, work: impl FnOnce() -> Result<R>) -> Result<R> {
    if let Device::Cuda(cuda) = device {
        within(Phase::Steps, || cuda.synchronize())?;
    }
    within(phase, work)
}

/// Returns to a phase, also after a panic.
struct PhaseGuard(Option<Phase>);

impl Drop for PhaseGuard {
    fn drop(&mut self) {
        if let Some(phase) = self.0 {
            switch_to(phase);
        }
    }
}

/// Times on this thread up to now, all zero where nothing was begun.
pub fn elapsed() -> Times {
    WATCH.with_borrow_mut(|watch| {
        watch.as_mut().map_or(Times::default(), |watch| {
            watch.switch(watch.phase);
            watch.times
        })
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_part_has_its_place() {
        for (i, (phase, name)) in PHASES.into_iter().enumerate() {
            assert_eq!((phase as usize, phase.name()), (i, name));
        }
    }

    #[test]
    fn a_stopwatch_that_is_set_aside_stands_still() {
        let pause = || std::thread::sleep(Duration::from_millis(20));
        let mut watch = Watch::default();
        watch.during(|| {
            begin(Phase::Steps);
            pause();
        });
        assert_eq!(elapsed(), Times::default());
        pause();
        let steps = watch.during(elapsed).of(Phase::Steps);
        pause();
        assert_eq!(watch.during(elapsed).of(Phase::Steps).max(steps + 0.01), steps + 0.01);
        assert!(steps >= 0.02, "{steps}");
    }

    #[test]
    fn times_lie_in_one_another_and_add_up() {
        let pause = || std::thread::sleep(Duration::from_millis(20));
        assert_eq!((switch_to(Phase::Steps), elapsed()), (None, Times::default()));
        let begun = Instant::now();
        begin(Phase::Reading);
        begin(Phase::End);
        pause();
        switch_to(Phase::Steps);
        let inside = within(Phase::Diagnostics, || {
            pause();
            within(Phase::Output, pause);
            // Not of this thread: waited for.
            std::thread::spawn(|| within(Phase::Compiling, || std::thread::sleep(Duration::from_millis(20)))).join().is_ok()
        });
        let panicked = std::panic::catch_unwind(|| within(Phase::Checkpoints, || std::panic::resume_unwind(Box::new(()))));
        pause();
        let (times, wall) = (elapsed(), begun.elapsed().as_secs_f64());
        assert!(inside && panicked.is_err());
        assert!((times.wall() - wall).abs() < 0.01, "{times:?} of {wall} s");
        for (phase, pauses) in
            [(Phase::Reading, 1.0), (Phase::Steps, 1.0), (Phase::Diagnostics, 2.0), (Phase::Output, 1.0), (Phase::Compiling, 0.0)]
        {
            // A thread that sleeps may wake late, never early.
            assert!(
                (0.02 * pauses..0.02 * pauses + 0.5).contains(&times.of(phase)) && (pauses > 0.0 || times.of(phase) == 0.0),
                "{phase:?} {times:?}"
            );
        }
        let later = elapsed();
        assert!(later.since(&times).of(Phase::Steps) > 0.0 && later.since(&times).of(Phase::Output) == 0.0);
        let json = serde_json::to_value(times).unwrap();
        assert_eq!((json.as_object().unwrap().len(), json["set_up"].as_f64(), json["wall"].as_f64()), (10, Some(0.0), Some(times.wall())));
    }
}
