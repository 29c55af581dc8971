//! The sink of a watched run: hands everything on to the one behind it, and to the hub what is shown.

use std::sync::Arc;
use std::time::{Duration, Instant};

use zellige_engine::error::Result;
use zellige_engine::record::{Record, Row};
use zellige_engine::run::{Progress, Sink, View, Wish};
use zellige_engine::sim::Clock;

use crate::frame;
use crate::hub::Hub;

/// Time from one look at the run to the next at least.
const INTERVAL: Duration = Duration::from_millis(100);
/// Time from one word on the progress to the next while nobody watches.
const UNWATCHED: Duration = Duration::from_secs(1);
/// Looks take at most one part in this many of the wall time.
const SHARE: u32 = 100;

/// Sink of a watched run.
pub struct Watched<'a> {
    hub: Arc<Hub>,
    behind: &'a mut dyn Sink,
    next: Instant,
    told: Instant,
    /// Progress has been told.
    begun: bool,
    created: Instant,
    looks: u64,
    spent: Duration,
    /// Step of the last look that had pictures made where fields lie.
    made: Option<u64>,
}

impl<'a> Watched<'a> {
    /// Shows to `hub` what goes to the sink `behind`.
    pub fn new(hub: Arc<Hub>, behind: &'a mut dyn Sink) -> Self {
        let now = Instant::now();
        Self { hub, behind, next: now, told: now, begun: false, created: now, looks: 0, spent: Duration::ZERO, made: None }
    }

    /// Looks so far, in words, and the part of the wall time in which the run stood still for them; `None` if there were none.
    pub fn cost(&self) -> Option<String> {
        let (spent, wall) = (self.spent.as_secs_f64(), self.created.elapsed().as_secs_f64());
        let plural = if self.looks == 1 { "" } else { "s" };
        (self.looks > 0).then(|| format!("{} look{plural} took {spent:.3} s, {:.2} % of {wall:.1} s", self.looks, 100.0 * spent / wall))
    }

    /// Makes frames, and puts the next look off in proportion to the time that this one took with `before`.
    fn show(&mut self, clock: Clock, records: &[Record], before: Duration) {
        let begun = Instant::now();
        self.hub.frames(clock, frame::frames(records));
        let taken = before + begun.elapsed();
        (self.looks, self.spent) = (self.looks + 1, self.spent + taken);
        self.next = self.next.max(Instant::now() + INTERVAL.max(taken * SHARE));
    }
}

impl Sink for Watched<'_> {
    fn row(&mut self, clock: &Clock, row: &Row) -> Result<()> {
        self.hub.row(clock, row);
        self.behind.row(clock, row)
    }

    fn progress(&mut self, progress: &Progress, row: &Row) {
        // A run that nobody watches tells it too, rarely: who comes later sees it before the next step.
        let interval = if self.hub.is_watched() { INTERVAL } else { UNWATCHED };
        if !self.begun || progress.fraction >= 1.0 || self.told.elapsed() >= interval {
            (self.begun, self.told) = (true, Instant::now());
            self.hub.progress(progress);
        }
        self.behind.progress(progress, row);
    }

    fn records(&mut self, clock: &Clock, records: Vec<Record>, last: bool) -> Result<()> {
        // Those on a schedule take their turn; the last ones are always shown, unless a look at the end has been.
        if (last && self.made != Some(clock.step)) || (!last && self.hub.is_watched() && Instant::now() >= self.next) {
            self.show(*clock, &records, Duration::ZERO);
        }
        self.behind.records(clock, records, last)
    }

    fn notice(&mut self, text: &str) {
        self.hub.notice(text);
        self.behind.notice(text);
    }

    fn started(&mut self, clock: &Clock) -> Result<()> {
        self.behind.started(clock)
    }

    fn saving(&mut self) -> Result<()> {
        self.hub.notice("a checkpoint is saved");
        self.behind.saving()
    }

    fn wish(&mut self) -> Wish {
        let (watched, commanded) = (self.hub.is_watched(), self.hub.is_commanded());
        if !watched && !commanded {
            return Wish::default();
        }
        let (save, next) = if commanded { self.hub.take_commands() } else { (false, false) };
        Wish { pictures: watched && Instant::now() >= self.next, save, next }
    }

    fn wishes_end(&mut self) -> bool {
        self.made.is_some()
    }

    fn view(&mut self, view: View) {
        self.hub.stages(&view.stages);
        self.made = view.records.iter().any(|r| matches!(r, Record::Planes(_))).then_some(view.clock.step);
        self.show(view.clock, &view.records, view.taken);
    }
}

#[cfg(test)]
mod tests {
    use zellige_engine::record::{Axis, Centring, Field, Values};
    use zellige_engine::run::Silent;

    use super::*;
    use crate::hub::{Command, RunNames};

    fn view(step: u64, taken: Duration) -> View {
        let axes = vec![Axis::bare(0, 0.0, 1.0, 8), Axis::bare(1, 0.0, 1.0, 8)];
        let field = Field::bare("u", axes, Centring::Node, Values::F32(vec![0.0; 64]));
        View { clock: Clock { step, time: None }, records: vec![Record::Field(field)], stages: Vec::new(), taken }
    }

    #[test]
    fn pictures_are_wanted_only_while_somebody_watches_and_take_their_share_of_the_time() {
        let hub = Arc::new(Hub::new(RunNames::default()));
        let mut silent = Silent;
        let mut sink = Watched::new(hub.clone(), &mut silent);
        assert_eq!((sink.wish(), sink.cost()), (Wish::default(), None));
        let watch = hub.watch();
        assert!(sink.wish().pictures);
        sink.view(view(1, Duration::ZERO));
        assert!(!sink.wish().pictures, "a tenth of a second is not over");
        std::thread::sleep(INTERVAL);
        assert!(sink.wish().pictures);
        // One that took 5 ms is followed by the next after half a second.
        sink.view(view(2, Duration::from_millis(5)));
        std::thread::sleep(INTERVAL * 2);
        assert!(!sink.wish().pictures);
        std::thread::sleep(INTERVAL * 4);
        assert!(sink.wish().pictures);
        assert!(sink.cost().unwrap().starts_with("2 looks took 0.005 s, "), "{:?}", sink.cost());
        drop(watch);
        assert_eq!(sink.wish(), Wish::default());
        assert_eq!(hub.newer(&[(0, 0)])[0].id, 2);
    }

    #[test]
    fn the_end_is_looked_at_where_pictures_take_less_than_records() {
        let hub = Arc::new(Hub::new(RunNames::default()));
        let mut silent = Silent;
        let mut sink = Watched::new(hub.clone(), &mut silent);
        sink.view(view(1, Duration::ZERO));
        assert!(!sink.wishes_end(), "whole fields");
        let of_gpu = |step: u64| {
            let View { clock, records, stages, taken } = view(step, Duration::ZERO);
            let planes = |r| match r {
                Record::Field(field) => Record::Planes(zellige_io::picture::planes(field)),
                other => other,
            };
            View { clock, records: records.into_iter().map(planes).collect(), stages, taken }
        };
        sink.view(of_gpu(2));
        assert!(sink.wishes_end());
        let frames = |hub: &Hub| hub.all()["frames"].as_array().map_or(0, Vec::len);
        let Clock { step: _, time } = view(3, Duration::ZERO).clock;
        sink.view(of_gpu(3));
        let before = frames(&hub);
        sink.records(&Clock { step: 3, time }, view(3, Duration::ZERO).records, true).unwrap();
        assert_eq!(frames(&hub), before, "the same moment once more");
        sink.records(&Clock { step: 4, time }, view(4, Duration::ZERO).records, true).unwrap();
        assert_eq!(frames(&hub), before + 1);
    }

    #[test]
    fn who_comes_late_sees_the_progress_at_once() {
        let hub = Arc::new(Hub::new(RunNames::default()));
        let mut silent = Silent;
        let mut sink = Watched::new(hub.clone(), &mut silent);
        for step in 100..200 {
            let clock = Clock { step, time: None };
            sink.progress(&Progress { clock, fraction: 0.5, wall: Duration::ZERO, items_per_second: 1.0 }, &Row::default());
        }
        assert_eq!(hub.all()["progress"]["step"], 100, "not every step is told");
    }

    #[test]
    fn commands_reach_the_run_once_although_nobody_watches() {
        let hub = Arc::new(Hub::new(RunNames { commands: vec![Command::Save], ..RunNames::default() }));
        let mut silent = Silent;
        let mut sink = Watched::new(hub.clone(), &mut silent);
        assert!(hub.command(Command::Save));
        assert_eq!(sink.wish(), Wish { save: true, ..Wish::default() });
        assert_eq!(sink.wish(), Wish::default());
    }
}
