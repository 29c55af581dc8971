//! The pace of looks: ten a second at most, and together they hold the run up for no more than their share of the time.
//!
//! Where whole looks are too dear for that, quick ones are tried in between, for the first time right behind the first whole one.
//! If these are cheaper by far, either kind has half of the share, so that what is cheap comes often.

use std::time::{Duration, Instant};

use zellige_engine::sim::Look;

/// Time from one look at the run to the next at least.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);
/// Time after a look that failed, say for want of memory.
const AFTER_FAILURE: Duration = Duration::from_secs(10);
/// Looks hold the run up for at most one part in this many of the wall time.
const SHARE: u32 = 100;

/// Looks so far, and when the next is due.
pub(crate) struct Pace {
    /// Moment of the last look.
    last: Instant,
    next: Instant,
    /// Moment from which on the next is a whole one, where there are quick ones.
    whole: Instant,
    /// Cost of the last quick and of the last whole one.
    costs: [Option<Duration>; 2],
    looks: u64,
    lost: Duration,
}

impl Pace {
    /// No look yet; the first is due at once.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { last: now, next: now, whole: now, costs: [None; 2], looks: 0, lost: Duration::ZERO }
    }

    /// Looks that were counted, and the time that the run has lost by them.
    pub(crate) fn counted(&self) -> (u64, Duration) {
        (self.looks, self.lost)
    }

    /// True if it is time for a look.
    pub(crate) fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// The look that is due, if it is time. Until it has come, no other is for a while.
    pub(crate) fn take_due(&mut self) -> Option<Look> {
        let now = Instant::now();
        if now < self.next {
            return None;
        }
        self.next = now + AFTER_FAILURE;
        Some(if self.tries() || (self.mixes() && now < self.whole) { Look::Quick } else { Look::Whole })
    }

    /// True if whole looks are dear, and nothing is known of quick ones.
    fn tries(&self) -> bool {
        let [quick, whole] = self.costs;
        quick.is_none() && whole.is_some_and(|whole| whole * SHARE > INTERVAL)
    }

    /// True if quick looks come between whole ones.
    fn mixes(&self) -> bool {
        let [quick, whole] = self.costs;
        quick.zip(whole).is_some_and(|(quick, whole)| whole * SHARE > INTERVAL && quick * 2 < whole)
    }

    /// Notes that a look has begun; until its cost is known, the next comes as if it had none.
    pub(crate) fn begin(&mut self) {
        self.last = Instant::now();
        self.next = self.last + INTERVAL;
    }

    /// Counts a look that was begun, and the time that the run has lost by it.
    pub(crate) fn count(&mut self, look: Look, lost: Duration) {
        self.costs[look as usize] = Some(lost);
        if look == Look::Whole {
            self.whole = self.last + lost * SHARE * 2;
        }
        let next = match (look, self.costs) {
            // A page that waits for the next whole one waits for long: is there anything that comes sooner?
            _ if self.tries() => Duration::ZERO,
            // Behind a whole one that of the next quick one is known.
            (_, [Some(quick), _]) if self.mixes() => quick * 2,
            // It was tried for nothing: the whole one before it is still to be paid for.
            (Look::Quick, [_, Some(whole)]) => lost + whole,
            _ => lost,
        };
        self.add(lost, next);
    }

    /// Counts records that were shown since they were made for files.
    pub(crate) fn count_shown(&mut self, lost: Duration) {
        self.last = Instant::now();
        self.add(lost, lost);
    }

    /// Puts the next look off as its expected cost demands.
    fn add(&mut self, lost: Duration, next: Duration) {
        (self.looks, self.lost) = (self.looks + 1, self.lost + lost);
        self.next = self.last + INTERVAL.max(next * SHARE);
    }

    /// Puts the next look off for long, since the last one failed.
    pub(crate) fn fail(&mut self) {
        self.next = self.last + AFTER_FAILURE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks of a run that goes on for so long, where quick and whole ones cost this much: the moments of each kind.
    fn looks(seconds: f64, [quick, whole]: [f64; 2]) -> [Vec<f64>; 2] {
        let (mut pace, begun) = (Pace::new(), Instant::now());
        let mut moments = [Vec::new(), Vec::new()];
        // Time is made to pass by moving the moments that are waited for.
        let mut passed = Duration::ZERO;
        let step = Duration::from_millis(1);
        while passed.as_secs_f64() < seconds {
            if let Some(look) = pace.take_due() {
                moments[look as usize].push(passed.as_secs_f64());
                pace.begin();
                pace.count(look, Duration::from_secs_f64([quick, whole][look as usize]));
            }
            passed += step;
            for moment in [&mut pace.last, &mut pace.next, &mut pace.whole] {
                *moment -= step;
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(5));
        moments
    }

    #[test]
    fn cheap_looks_are_whole_and_come_ten_times_a_second() {
        let [quick, whole] = looks(10.0, [1e-4, 5e-4]);
        assert!(quick.is_empty() && (95..=101).contains(&whole.len()), "{} and {}", quick.len(), whole.len());
    }

    #[test]
    fn dear_looks_take_their_share_and_cheap_ones_come_in_between() {
        let [quick, whole] = looks(60.0, [2e-4, 8e-3]);
        let lost = 2e-4 * quick.len() as f64 + 8e-3 * whole.len() as f64;
        assert!(quick.len() > 500 && (35..=40).contains(&whole.len()), "{} and {}", quick.len(), whole.len());
        assert!(lost < 0.01 * 60.0 + 8e-3, "{lost} s");
        // Ones of 2 ms: 2.5 a second of both kinds, after the first.
        let [quick, whole] = looks(60.0, [2e-3, 2e-2]);
        assert!((128..=137).contains(&quick.len()) && (14..=17).contains(&whole.len()), "{} and {}", quick.len(), whole.len());
    }

    #[test]
    fn quick_looks_come_soon_after_a_dear_whole_one() {
        let [quick, whole] = looks(3.0, [1e-3, 4e-2]);
        assert!((14..=16).contains(&quick.len()) && quick[0] < 0.11 && whole.len() == 1, "{quick:?} and {whole:?}");
    }

    #[test]
    fn quick_looks_that_are_not_quick_are_not_made_again() {
        let [quick, whole] = looks(60.0, [6e-3, 8e-3]);
        assert!(quick.len() == 1 && (73..=76).contains(&whole.len()), "{} and {}", quick.len(), whole.len());
    }
}
