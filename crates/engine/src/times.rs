//! The wall time of a process by name: every second has one name, and the times add up to the whole.
//!
//! A [`Part`] is what the thread that leads the run is at, or waits for. What other threads do meanwhile has no time of its own
//! here: kernels that are compiled while particles are made cost nothing but what is waited for them.
//!
//! ```
//! use zellige_engine::times::{self, Part};
//! times::begin(Part::Reading);
//! let sum = times::within(Part::Steps, || (0..1000).sum::<u32>());
//! let times = times::taken();
//! assert!(sum == 499500 && times.of(Part::Steps) > 0.0 && times.of(Part::Output) == 0.0);
//! assert!((times.parts().map(|(_, seconds)| seconds).sum::<f64>() - times.wall()).abs() < 1e-9);
//! ```

use std::cell::RefCell;
use std::time::Instant;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::device::Device;
use crate::error::Result;

/// Names of times, in the order of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
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

/// Every part.
const PARTS: [(Part, &str); 9] = [
    (Part::Reading, "reading"),
    (Part::Loading, "loading"),
    (Part::Compiling, "compiling"),
    (Part::SetUp, "set_up"),
    (Part::Steps, "steps"),
    (Part::Diagnostics, "diagnostics"),
    (Part::Output, "output"),
    (Part::Checkpoints, "checkpoints"),
    (Part::End, "end"),
];

impl Part {
    /// The name in `summary.json`.
    pub fn name(self) -> &'static str {
        PARTS[self as usize].1
    }
}

/// Seconds by part. In JSON an object of all parts, and `wall`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Times([f64; PARTS.len()]);

impl Times {
    /// Seconds of one part.
    pub fn of(&self, part: Part) -> f64 {
        self.0[part as usize]
    }

    /// Every part with its seconds.
    pub fn parts(&self) -> impl Iterator<Item = (Part, f64)> {
        PARTS.into_iter().map(|(part, _)| (part, self.of(part)))
    }

    /// Time added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] - earlier.0[i]))
    }

    /// Seconds of all parts.
    pub fn wall(&self) -> f64 {
        self.0.iter().sum()
    }
}

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(PARTS.len() + 1))?;
        for (part, seconds) in self.parts() {
            map.serialize_entry(part.name(), &seconds)?;
        }
        map.serialize_entry("wall", &self.wall())?;
        map.end()
    }
}

struct Watch {
    times: Times,
    part: Part,
    since: Instant,
}

impl Watch {
    /// Books the time since the last change of parts, and continues with `part`; the part before it.
    fn turn(&mut self, part: Part) -> Part {
        let now = Instant::now();
        self.times.0[self.part as usize] += now.duration_since(self.since).as_secs_f64();
        self.since = now;
        std::mem::replace(&mut self.part, part)
    }
}

thread_local! {
    /// Stopwatch of the thread that leads a run; other threads have none and record nothing.
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Begins to count on this thread, unless it does already.
pub fn begin(part: Part) {
    WATCH.with_borrow_mut(|watch| {
        watch.get_or_insert_with(|| Watch { times: Times::default(), part, since: Instant::now() });
    });
}

/// Attributes the following work on this thread to `part`; returns the part before it.
pub fn turn_to(part: Part) -> Option<Part> {
    WATCH.with_borrow_mut(|watch| watch.as_mut().map(|watch| watch.turn(part)))
}

/// Does `work` as `part`, and returns to the part before it.
pub fn within<R>(part: Part, work: impl FnOnce() -> R) -> R {
    let _back = Back(turn_to(part));
    work()
}

/// [`within`] with a state on `device`: what the device still has to do of the steps before is waited for first, as steps.
pub fn after_steps<R>(device: &Device, part: Part, work: impl FnOnce() -> Result<R>) -> Result<R> {
    if let Device::Cuda(cuda) = device {
        within(Part::Steps, || cuda.synchronize())?;
    }
    within(part, work)
}

/// Goes back to a part, also out of a panic.
struct Back(Option<Part>);

impl Drop for Back {
    fn drop(&mut self) {
        if let Some(part) = self.0 {
            turn_to(part);
        }
    }
}

/// Times on this thread up to now, all zero where nothing was begun.
pub fn taken() -> Times {
    WATCH.with_borrow_mut(|watch| {
        watch.as_mut().map_or(Times::default(), |watch| {
            watch.turn(watch.part);
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
        for (i, (part, name)) in PARTS.into_iter().enumerate() {
            assert_eq!((part as usize, part.name()), (i, name));
        }
    }

    #[test]
    fn times_lie_in_one_another_and_add_up() {
        let pause = || std::thread::sleep(Duration::from_millis(20));
        assert_eq!((turn_to(Part::Steps), taken()), (None, Times::default()));
        let begun = Instant::now();
        begin(Part::Reading);
        begin(Part::End);
        pause();
        turn_to(Part::Steps);
        let inside = within(Part::Diagnostics, || {
            pause();
            within(Part::Output, pause);
            // Not of this thread: waited for.
            std::thread::spawn(|| within(Part::Compiling, || std::thread::sleep(Duration::from_millis(20)))).join().is_ok()
        });
        let panicked = std::panic::catch_unwind(|| within(Part::Checkpoints, || std::panic::resume_unwind(Box::new(()))));
        pause();
        let (times, wall) = (taken(), begun.elapsed().as_secs_f64());
        assert!(inside && panicked.is_err());
        assert!((times.wall() - wall).abs() < 0.01, "{times:?} of {wall} s");
        for (part, pauses) in
            [(Part::Reading, 1.0), (Part::Steps, 1.0), (Part::Diagnostics, 2.0), (Part::Output, 1.0), (Part::Compiling, 0.0)]
        {
            // A thread that sleeps may wake late, never early.
            assert!(
                (0.02 * pauses..0.02 * pauses + 0.5).contains(&times.of(part)) && (pauses > 0.0 || times.of(part) == 0.0),
                "{part:?} {times:?}"
            );
        }
        let later = taken();
        assert!(later.since(&times).of(Part::Steps) > 0.0 && later.since(&times).of(Part::Output) == 0.0);
        let json = serde_json::to_value(times).unwrap();
        assert_eq!((json.as_object().unwrap().len(), json["set_up"].as_f64(), json["wall"].as_f64()), (10, Some(0.0), Some(times.wall())));
    }
}
