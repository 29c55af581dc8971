//! The sink of a watched run: hands everything on to the one behind it, and to the hub what is shown.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use zellige_engine::error::Result;
use zellige_engine::record::{Lead, Record, Row};
use zellige_engine::run::{Lost, Progress, Sink, View, Wish};
use zellige_engine::sim::{Clock, Look};

use crate::frame;
use crate::hub::Hub;
use crate::looks::{LateLook, Looks, Shown};
use crate::pace::{INTERVAL, Pace};

/// Time from one word on the progress to the next while nobody watches.
const UNWATCHED: Duration = Duration::from_secs(1);

/// Looks at a run and what they have cost, from one of its sinks to the next.
pub struct Watcher {
    hub: Arc<Hub>,
    told: Instant,
    /// The last progress, unless it was told.
    untold: Option<Progress>,
    /// Progress has been told.
    begun: bool,
    created: Instant,
    /// Those whose pictures come late.
    late: Looks,
    pace: Pace,
    /// Step of the last look that had pictures made where fields lie.
    made: Option<u64>,
    /// Names of the records of the last whole look.
    names: BTreeSet<String>,
}

impl Watcher {
    /// Shows a run to `hub`.
    pub fn new(hub: Arc<Hub>) -> Self {
        let (now, late) = (Instant::now(), Looks::new(hub.clone()));
        Self { hub, told: now, untold: None, begun: false, created: now, late, pace: Pace::new(), made: None, names: BTreeSet::new() }
    }

    /// Sink that shows what goes to the one `behind`.
    pub fn before<'a>(&'a mut self, behind: &'a mut dyn Sink) -> Watched<'a> {
        Watched { watcher: self, behind }
    }

    /// Tells the last progress, if it was not: the run stands still.
    pub fn tell_last(&mut self) {
        if let Some(progress) = self.untold.take() {
            self.hub.progress(&progress);
        }
    }
}

/// Sink of a watched run.
pub struct Watched<'a> {
    watcher: &'a mut Watcher,
    behind: &'a mut dyn Sink,
}

impl Watched<'_> {
    /// Looks so far, in words, and the part of the wall time for which they held the run up; `None` if there were none. Waits for
    /// those under way.
    pub fn cost(&mut self) -> Option<String> {
        self.settle();
        let ((looks, lost), wall) = (self.watcher.pace.counted(), self.watcher.created.elapsed().as_secs_f64());
        let (lost, plural) = (lost.as_secs_f64(), if looks == 1 { "" } else { "s" });
        (looks > 0).then(|| format!("{looks} look{plural} took {lost:.3} s, {:.2} % of {wall:.1} s", 100.0 * lost / wall))
    }

    /// Counts a look.
    fn count(&mut self, look: Result<Shown>) {
        match look {
            Ok(Shown { extent, lost, names }) => {
                self.watcher.pace.count(extent, lost);
                if extent == Look::Whole {
                    self.watcher.names = names;
                }
            }
            Err(error) => {
                self.watcher.pace.fail();
                self.watcher.made = None;
                self.notice(&format!("the live page has no new pictures: {error}"));
            }
        }
    }

    /// Shows a look at once.
    fn show(&mut self, look: LateLook) {
        let begun = Instant::now();
        let shown = look.show(&self.watcher.hub).map(|shown| Shown { lost: shown.lost + begun.elapsed(), ..shown });
        self.watcher.pace.begin();
        self.count(shown);
    }

    /// Shows records: those on a schedule take their turn; of the last ones all are shown that a look at the end did not have.
    fn show_records(&mut self, clock: &Clock, records: &[Record], last: bool) {
        if last {
            self.settle();
        }
        if last || (self.watcher.hub.is_watched() && self.watcher.pace.is_due() && !self.watcher.late.are_under_way()) {
            let begun = Instant::now();
            let shown =
                if last && self.watcher.made == Some(clock.step) { std::mem::take(&mut self.watcher.names) } else { BTreeSet::new() };
            let frames = frame::frames_but(records, &shown);
            if !frames.is_empty() {
                self.watcher.hub.frames(*clock, frames);
                self.watcher.pace.count_shown(begun.elapsed());
            }
        }
    }

    /// Waits for late looks.
    fn settle(&mut self) {
        while let Some(look) = self.watcher.late.answer(true) {
            self.count(look);
        }
    }
}

impl Sink for Watched<'_> {
    fn row(&mut self, clock: &Clock, row: &Row) -> Result<()> {
        self.watcher.hub.row(clock, row);
        self.behind.row(clock, row)
    }

    fn progress(&mut self, progress: &Progress, row: &Row) {
        // A run that nobody watches tells it too, rarely: who comes later sees it before the next step.
        let interval = if self.watcher.hub.is_watched() { INTERVAL } else { UNWATCHED };
        if !self.watcher.begun || progress.fraction >= 1.0 || self.watcher.told.elapsed() >= interval {
            (self.watcher.begun, self.watcher.told) = (true, Instant::now());
            self.watcher.hub.progress(progress);
            self.watcher.untold = None;
        } else {
            self.watcher.untold = Some(*progress);
        }
        self.behind.progress(progress, row);
    }

    fn records(&mut self, clock: &Clock, records: Vec<Record>, last: bool) -> Result<()> {
        self.show_records(clock, &records, last);
        self.behind.records(clock, records, last)
    }

    fn folder(&self) -> Option<&Path> {
        self.behind.folder()
    }

    fn takes_share(&self, record: &Record) -> bool {
        // No frames are made of tables.
        matches!(record, Record::Table(_)) && self.behind.takes_share(record)
    }

    fn shares(&mut self, clock: &Clock, records: Vec<Record>, last: bool, lead: &Lead) -> Result<()> {
        self.show_records(clock, &records, last);
        self.behind.shares(clock, records, last, lead)
    }

    fn notice(&mut self, text: &str) {
        self.watcher.hub.notice(text);
        self.behind.notice(text);
    }

    fn may_wish(&self) -> bool {
        true
    }

    fn started(&mut self, clock: &Clock) -> Result<()> {
        // A look at the start holds up no step.
        self.settle();
        (self.watcher.created, self.watcher.pace) = (Instant::now(), Pace::new());
        self.behind.started(clock)
    }

    fn saving(&mut self) -> Result<()> {
        self.watcher.tell_last();
        self.watcher.hub.notice("a checkpoint is being saved");
        self.behind.saving()
    }

    fn wish(&mut self) -> Wish {
        let (watched, commanded) = (self.watcher.hub.is_watched(), self.watcher.hub.is_commanded());
        if !watched && !commanded {
            return Wish::default();
        }
        let wish = if commanded { self.watcher.hub.take_commands() } else { Wish::default() };
        while let Some(look) = self.watcher.late.answer(false) {
            self.count(look);
        }
        let free = watched && !self.watcher.late.are_under_way();
        let pictures = match (watched && wish.stop, free) {
            (true, _) => Some(Look::Whole),
            (false, true) => self.watcher.pace.take_due(),
            (false, false) => None,
        };
        Wish { pictures, ..wish }
    }

    fn wishes_end(&mut self) -> bool {
        self.watcher.made.is_some()
    }

    fn view(&mut self, view: View) {
        let View { clock, look: extent, pictures, stages, lost } = view;
        self.watcher.hub.stages(&stages);
        let coming = pictures.are_coming();
        self.watcher.pace.begin();
        if pictures.is_empty() {
            // Those of before are still what there is.
            self.watcher.made = self.watcher.made.map(|_| clock.step);
            return;
        }
        self.watcher.made = coming.then_some(clock.step);
        let look = LateLook { clock, extent, pictures, lost };
        if !coming && matches!(look.lost, Lost::Host(_)) {
            return self.show(look);
        }
        if let Some(back) = self.watcher.late.give(look) {
            self.show(back);
        }
    }
}

#[cfg(test)]
mod tests {
    use zellige_engine::error::Error;
    use zellige_engine::record::{Axis, Centring, Field, Pictures, Values};
    use zellige_engine::run::Silent;

    use super::*;
    use crate::hub::{Command, RunNames};

    fn view(step: u64, taken: Duration) -> View {
        let axes = vec![Axis::bare(0, 0.0, 1.0, 8), Axis::bare(1, 0.0, 1.0, 8)];
        let field = Field::bare("u", axes, Centring::Node, Values::F32(vec![0.0; 64]));
        let pictures = vec![Record::Field(field)].into();
        View { clock: Clock { step, time: None }, look: Look::Whole, pictures, stages: Vec::new(), lost: Lost::Host(taken) }
    }

    /// A look whose pictures come when `wait` is over.
    fn late(step: u64, wait: impl FnOnce() -> Result<()> + Send + 'static) -> View {
        let View { clock, look, pictures, stages, lost } = view(step, Duration::ZERO);
        let mut coming = Pictures::default();
        coming.push_coming(move || wait().and_then(|()| pictures.records()));
        View { clock, look, pictures: coming, stages, lost }
    }

    #[test]
    fn late_pictures_hold_nothing_up_and_are_shown_when_they_come() {
        let hub = Arc::new(Hub::new(RunNames::default()));
        let mut silent = Silent;
        let mut watcher = Watcher::new(hub.clone());
        let mut sink = watcher.before(&mut silent);
        let _watch = hub.watch();
        let newest = |hub: &Hub| hub.newer(&[(0, 0)]).first().map(|f| f.id);
        // One of the start costs no step anything.
        sink.view(View { lost: Lost::Host(Duration::from_secs(1)), ..late(0, || Ok(())) });
        sink.started(&Clock::default()).unwrap();
        assert_eq!((newest(&hub), sink.cost(), sink.wish().pictures.is_some()), (Some(1), None, true));
        let (go, gone) = std::sync::mpsc::channel();
        let waits = move || gone.recv().map_err(|_| unreachable!());
        sink.view(View { lost: Lost::Host(Duration::from_millis(3)), ..late(7, waits) });
        std::thread::sleep(INTERVAL * 2);
        assert_eq!((newest(&hub), sink.wish().pictures.is_some()), (Some(1), false), "it is under way");
        go.send(()).unwrap();
        assert!(sink.cost().unwrap().starts_with("1 look took 0.003 s, "), "{:?}", sink.cost());
        assert_eq!(newest(&hub), Some(2));
        // A quick one is tried at once; as it takes as long, the next one is due 0.6 s after it.
        assert_eq!(sink.wish().pictures, Some(Look::Quick));
        sink.view(View { look: Look::Quick, lost: Lost::Host(Duration::from_millis(3)), ..late(7, || Ok(())) });
        sink.settle();
        std::thread::sleep(INTERVAL * 2);
        assert!(sink.wish().pictures.is_none());
        std::thread::sleep(INTERVAL * 5);
        assert_eq!(sink.wish().pictures, Some(Look::Whole));
        // One that fails is told, and followed by none for a while.
        let fails = || Err(Error::Device { device: "toy".into(), message: "a copy failed".into(), hint: None });
        sink.view(late(8, fails));
        sink.settle();
        assert!(hub.all()["notices"].to_string().contains("no new pictures"), "{}", hub.all()["notices"]);
        std::thread::sleep(INTERVAL * 2);
        assert!(sink.wish().pictures.is_none(), "the next would fail as well");
    }

    #[test]
    fn pictures_are_wanted_only_while_somebody_watches_and_take_their_share_of_the_time() {
        let hub = Arc::new(Hub::new(RunNames::default()));
        let mut silent = Silent;
        let mut watcher = Watcher::new(hub.clone());
        let mut sink = watcher.before(&mut silent);
        assert_eq!((sink.wish(), sink.cost()), (Wish::default(), None));
        let watch = hub.watch();
        assert!(sink.wish().pictures.is_some());
        sink.view(view(1, Duration::ZERO));
        assert!(sink.wish().pictures.is_none(), "a tenth of a second is not over");
        std::thread::sleep(INTERVAL);
        assert!(sink.wish().pictures.is_some());
        // One that took 5 ms is followed by a quick one that takes as long, and both by the next after a second.
        sink.view(view(2, Duration::from_millis(5)));
        std::thread::sleep(INTERVAL);
        assert_eq!(sink.wish().pictures, Some(Look::Quick));
        sink.view(View { look: Look::Quick, ..view(3, Duration::from_millis(5)) });
        std::thread::sleep(INTERVAL * 5);
        assert!(sink.wish().pictures.is_none());
        std::thread::sleep(INTERVAL * 6);
        assert!(sink.wish().pictures.is_some());
        assert!(sink.cost().unwrap().starts_with("3 looks took 0.010 s, "), "{:?}", sink.cost());
        drop(watch);
        assert_eq!(sink.wish(), Wish::default());
        assert_eq!(hub.newer(&[(0, 0)])[0].id, 3);
    }

    #[test]
    fn the_end_is_looked_at_where_pictures_take_less_than_records() {
        let hub = Arc::new(Hub::new(RunNames::default()));
        let mut silent = Silent;
        let mut watcher = Watcher::new(hub.clone());
        let mut sink = watcher.before(&mut silent);
        sink.view(view(1, Duration::ZERO));
        assert!(!sink.wishes_end(), "whole fields");
        let of_gpu = |step: u64| late(step, || Ok(()));
        sink.view(of_gpu(2));
        assert!(sink.wishes_end());
        let frames = |hub: &Hub| hub.all()["frames"].as_array().map_or(0, Vec::len);
        let end = |sink: &mut Watched<'_>, step| {
            let View { clock, pictures, .. } = view(step, Duration::ZERO);
            sink.records(&clock, pictures.records().unwrap(), true).unwrap();
            frames(&hub)
        };
        sink.view(of_gpu(3));
        assert_eq!(end(&mut sink, 3), 3, "the same moment once more");
        assert_eq!(end(&mut sink, 4), 4);
        // Nothing new since pictures of before: they are those of the end.
        sink.view(of_gpu(5));
        sink.view(View { pictures: Vec::new().into(), ..view(6, Duration::ZERO) });
        assert_eq!((sink.wishes_end(), end(&mut sink, 6)), (true, 5));
        // Records of the end that no look has, such as what files are compared by.
        sink.view(of_gpu(7));
        let View { clock, pictures, .. } = view(7, Duration::ZERO);
        let mut records = pictures.records().unwrap();
        let Record::Field(other) = records[0].clone() else { panic!("a field") };
        records.push(Record::Field(Field { name: "other".into(), ..other }));
        sink.records(&clock, records, true).unwrap();
        let all = hub.all();
        let newest = |k: usize| all["frames"].as_array().unwrap().iter().rfind(|f| f[1] == k).unwrap()[2].clone();
        assert_eq!((frames(&hub), newest(0), newest(1)), (7, 7.into(), 7.into()), "{all}");
    }

    #[test]
    fn who_comes_late_sees_the_progress_at_once() {
        let hub = Arc::new(Hub::new(RunNames::default()));
        let mut silent = Silent;
        let mut watcher = Watcher::new(hub.clone());
        let mut sink = watcher.before(&mut silent);
        for step in 100..200 {
            let clock = Clock { step, time: None };
            sink.progress(&Progress { clock, fraction: 0.5, wall: Duration::ZERO, items_per_second: 1.0 }, &Row::default());
        }
        assert_eq!(hub.all()["progress"]["step"], 100, "not every step is told");
        // But that which a run stands still at.
        sink.saving().unwrap();
        assert_eq!(hub.all()["progress"]["step"], 199);
    }

    #[test]
    fn commands_reach_the_run_once_although_nobody_watches() {
        let hub = Arc::new(Hub::new(RunNames { commands: vec![Command::Save, Command::Stop], ..RunNames::default() }));
        let mut silent = Silent;
        let mut watcher = Watcher::new(hub.clone());
        let mut sink = watcher.before(&mut silent);
        assert!(hub.command(Command::Save));
        assert_eq!(sink.wish(), Wish { save: true, ..Wish::default() });
        assert_eq!(sink.wish(), Wish::default());
        // No run is under way that a signal could reach.
        assert!(hub.command(Command::Stop));
        assert_eq!(sink.wish(), Wish { stop: true, ..Wish::default() });
        assert_eq!(sink.wish(), Wish::default());
        // Who watches sees what it stops at, whenever the last look was.
        let _watch = hub.watch();
        sink.view(view(1, Duration::from_secs(1)));
        assert!(hub.command(Command::Stop));
        assert_eq!(sink.wish(), Wish { stop: true, pictures: Some(Look::Whole), ..Wish::default() });
    }
}
