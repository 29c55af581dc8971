//! Limit on the wall time of a run, such as that of a job of a batch system.

use std::time::{Duration, Instant};

use super::{Running, Sink};
use crate::error::Result;
use crate::profile::Profiler;
use crate::signal::Signals;
use crate::sim::{Outcome, Solver};

impl<S: Solver> Running<S> {
    /// Makes all steps up to the end of the run, which has `begun` then. A limit on its wall time is heeded once it has come on by
    /// a step, or by results that the run before owed: jobs that only set up and save would go on without end.
    ///
    /// # Errors
    /// Those of [`Running::advance`].
    pub fn advance_to_the_end(
        &mut self,
        signals: &mut Signals,
        begun: Instant,
        limit: Option<Duration>,
        profiler: &mut Profiler,
        sink: &mut dyn Sink,
    ) -> Result<Outcome> {
        loop {
            if let Some(outcome) = self.advance_to(u64::MAX, signals, begun, limit, profiler, sink)? {
                return Ok(outcome);
            }
        }
    }

    /// Makes steps as [`Running::advance_to_the_end`] does, and pauses after that of number `pause`, with its row handed over;
    /// nothing is returned then, and the next call goes on.
    ///
    /// # Errors
    /// Those of [`Running::advance`].
    pub fn advance_to(
        &mut self,
        pause: u64,
        signals: &mut Signals,
        begun: Instant,
        limit: Option<Duration>,
        profiler: &mut Profiler,
        sink: &mut dyn Sink,
    ) -> Result<Option<Outcome>> {
        let limit = limit.filter(|_| !signals.has_limit());
        // A time beyond all clocks is no limit.
        let mut until = limit.and_then(|limit| begun.checked_add(limit));
        if let Some(limit) = limit.filter(|limit| begun.elapsed() > *limit && self.outcome().is_none()) {
            sink.notice(&format!(
                "the wall-time limit of {} s has passed at the start, which took {:.1} s: the run comes on by one {}, or by results that \
                 are owed, all the same",
                limit.as_secs_f64(),
                begun.elapsed().as_secs_f64(),
                S::STEP
            ));
        }
        loop {
            if let Some(outcome) = self.advance(signals.stop_reason(), profiler, sink)? {
                return Ok(Some(outcome));
            }
            if let Some(until) = until.take() {
                signals.stop_at(until);
            }
            if self.solver().clock().step >= pause {
                return self.settle(sink).map(|()| None);
            }
        }
    }
}
