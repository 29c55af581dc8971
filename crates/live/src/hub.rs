//! State between the run, which puts things in, and its clients, who take them out. Locks are held for copies of pointers and
//! numbers only: no client makes the run wait.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};
use zellige_engine::profile::StageRow;
use zellige_engine::record::Row;
use zellige_engine::run::{Progress, Wish};
use zellige_engine::signal;
use zellige_engine::sim::{Clock, Expected, Plan};

use crate::frame::{Content, Head};
use crate::rows::Rows;

/// Frames of a picture that are kept.
pub(crate) const RING: usize = 200;
/// Bytes of all frames that are kept.
const RING_BYTES: usize = 256 << 20;
/// Notices that are kept.
const NOTICES: usize = 50;

/// Names that stand on the page from the start.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RunNames {
    /// Name of the run: that of its folder.
    pub name: String,
    /// The solver.
    pub solver: String,
    /// Version of the program.
    pub version: String,
    /// Device.
    pub device: String,
    /// Folder of the results.
    pub folder: String,
    /// Name of a step.
    pub step: String,
    /// Name of an item.
    pub item: String,
    /// `label: value` lines of the plan.
    pub plan: Vec<(String, String)>,
    /// Warnings of the plan.
    pub warnings: Vec<String>,
    /// Values that columns of the rows should have.
    pub expected: Vec<Expected>,
    /// Name of a section of the run, such as `engine`.
    pub section: Option<String>,
    /// Commands that the page may send.
    pub commands: Vec<Command>,
}

impl RunNames {
    /// Takes over what a plan says.
    #[must_use]
    pub fn planned(self, plan: &Plan) -> Self {
        Self { plan: plan.lines.clone(), warnings: plan.warnings.clone(), expected: plan.expected.clone(), ..self }
    }
}

/// Command of somebody who watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    /// Saves a checkpoint.
    Save,
    /// Saves the state and ends the run.
    Stop,
    /// Goes on to the next section, such as the next engine.
    Next,
}

impl Command {
    /// The command of a path.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "save" => Some(Self::Save),
            "stop" => Some(Self::Stop),
            "next" => Some(Self::Next),
            _ => None,
        }
    }
}

/// A frame as it is sent.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Number, increasing over all pictures.
    pub(crate) id: u64,
    picture: usize,
    clock: Clock,
    head: Head,
    values: Vec<f32>,
}

/// Description that is sent before the numbers.
#[derive(Serialize)]
struct Preamble<'a> {
    id: u64,
    picture: usize,
    step: u64,
    time: Option<f64>,
    bytes: usize,
    #[serde(flatten)]
    head: &'a Head,
}

impl Frame {
    fn bytes(&self) -> usize {
        4 * self.values.len() + 512
    }

    /// Appends the frame: length of the description, the description as JSON padded to four bytes, numbers in little endian.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let Self { id, picture, clock, head, values } = self;
        let bytes = 4 * values.len();
        let preamble = Preamble { id: *id, picture: *picture, step: clock.step, time: clock.time, bytes, head };
        let mut text = serde_json::to_vec(&preamble).unwrap_or_default();
        text.resize(text.len().next_multiple_of(4), b' ');
        out.extend((text.len() as u32).to_le_bytes());
        out.extend(text);
        if cfg!(target_endian = "little") {
            out.extend_from_slice(bytemuck::cast_slice(values));
        } else {
            out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        }
    }
}

/// A picture: the frames of one name.
#[derive(Debug)]
struct Picture {
    name: String,
    frames: VecDeque<Arc<Frame>>,
}

#[derive(Debug, Default)]
struct State {
    names: RunNames,
    rows: Rows,
    pictures: Vec<Picture>,
    last: u64,
    bytes: usize,
    progress: Option<Progress>,
    /// Wall time and fraction when the run began: a resumed one begins further on.
    origin: Option<(Duration, f64)>,
    /// Times of the stages, an object each.
    stages: Value,
    notices: VecDeque<(u64, String)>,
    noticed: u64,
    /// End of the run: a word and a sentence.
    end: Option<(String, String)>,
    /// Whoever drives the run is between two calls.
    rests: bool,
    closed: bool,
    /// Number of changes.
    version: u64,
}

/// State of one client: how far it has been told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    version: u64,
    rows: (u64, usize),
    frame: u64,
    notice: u64,
    begun: bool,
}

/// State of a watched run.
#[derive(Debug, Default)]
pub struct Hub {
    state: Mutex<State>,
    changed: Condvar,
    watchers: AtomicUsize,
    save: AtomicBool,
    next: AtomicBool,
    stop: AtomicBool,
    commanded: AtomicBool,
}

impl Hub {
    /// A run that has not begun.
    pub fn new(names: RunNames) -> Self {
        Self { state: Mutex::new(State { names, ..State::default() }), ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        state.version += 1;
        let result = change(&mut state);
        drop(state);
        self.changed.notify_all();
        result
    }

    /// Returns true if somebody watches.
    pub fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) > 0
    }

    /// Returns true if a command waits; it is forgotten by [`Hub::take_commands`].
    pub(crate) fn is_commanded(&self) -> bool {
        self.commanded.load(Ordering::Relaxed)
    }

    /// Takes the commands that wait.
    pub(crate) fn take_commands(&self) -> Wish {
        self.commanded.store(false, Ordering::SeqCst);
        let [save, next, stop] = [&self.save, &self.next, &self.stop].map(|command| command.swap(false, Ordering::SeqCst));
        Wish { pictures: None, save, next, stop }
    }

    /// Forgets a command to stop.
    pub fn forget_stop(&self) {
        self.stop.store(false, Ordering::SeqCst);
    }

    /// Gives a command to the run; false if it is not to be steered so.
    pub(crate) fn command(&self, command: Command) -> bool {
        if !self.lock().names.commands.contains(&command) {
            return false;
        }
        match command {
            Command::Save => self.save.store(true, Ordering::SeqCst),
            Command::Next => self.next.store(true, Ordering::SeqCst),
            Command::Stop => self.stop.store(true, Ordering::SeqCst),
        }
        self.commanded.store(true, Ordering::SeqCst);
        if command == Command::Stop {
            // A long step gives way.
            signal::request_stop();
        }
        true
    }

    /// Adds a row.
    pub fn row(&self, clock: &Clock, row: &Row) {
        let mut state = self.lock();
        state.version += 1;
        state.rows.push(*clock, row);
    }

    /// Adds a row of names, units and values.
    pub fn values<'a>(&self, clock: Clock, scalars: impl Iterator<Item = (&'a str, &'a str, f64)>) {
        self.change(|state| state.rows.push_values(clock, scalars));
    }

    /// Tells the progress.
    pub fn progress(&self, progress: &Progress) {
        self.change(|state| {
            state.origin.get_or_insert((progress.wall, progress.fraction));
            state.progress = Some(*progress);
        });
    }

    /// Tells the times of the stages.
    pub fn stages(&self, stages: &[StageRow]) {
        self.stages_as_written(json!(stages));
    }

    /// Tells the times of the stages as a summary has them.
    pub fn stages_as_written(&self, stages: Value) {
        self.change(|state| state.stages = stages);
    }

    /// Adds frames of a moment.
    pub fn frames(&self, clock: Clock, contents: Vec<Content>) {
        self.change(|state| contents.into_iter().for_each(|content| state.add(clock, content)));
    }

    /// Adds a notice.
    pub fn notice(&self, text: &str) {
        self.change(|state| {
            state.noticed += 1;
            let number = state.noticed;
            state.notices.push_back((number, text.to_owned()));
            if state.notices.len() > NOTICES {
                state.notices.pop_front();
            }
        });
    }

    /// Tells that the run stands still until whoever drives it goes on, or that it goes on.
    pub fn rest(&self, rests: bool) {
        self.change(|state| state.rests = rests);
    }

    /// Tells the end of the run: a word, such as `finished`, and a sentence.
    pub fn end(&self, word: &str, sentence: &str) {
        self.change(|state| state.end = Some((word.to_owned(), sentence.to_owned())));
    }

    /// Sends clients away.
    pub(crate) fn close(&self) {
        self.change(|state| state.closed = true);
    }

    /// Counts a client, until the guard is dropped.
    pub(crate) fn watch(&self) -> Watch<'_> {
        self.watchers.fetch_add(1, Ordering::SeqCst);
        Watch(self)
    }

    /// Waits for a change, at most for a while; `None` when there will be no more. The news are in JSON, null where there are
    /// none.
    pub(crate) fn news(&self, told: &mut Told, patience: Duration) -> Option<Value> {
        let until = Instant::now() + patience;
        let mut state = self.lock();
        while state.version == told.version && told.begun && !state.closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(Value::Null);
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.closed && state.version == told.version {
            return None;
        }
        Some(state.news(told))
    }

    /// Everything at once, for a page that is made from it.
    pub fn all(&self) -> Value {
        self.lock().news(&mut Told::default())
    }

    /// The newest frames of pictures, where they are newer than what a client has of them.
    pub(crate) fn newer(&self, wanted: &[(usize, u64)]) -> Vec<Arc<Frame>> {
        let state = self.lock();
        let newest = |(picture, has): &(usize, u64)| {
            let frame = state.pictures.get(*picture)?.frames.back()?;
            (frame.id > *has).then(|| frame.clone())
        };
        wanted.iter().filter_map(newest).collect()
    }

    /// A frame that is still kept.
    pub(crate) fn frame(&self, id: u64) -> Option<Arc<Frame>> {
        let state = self.lock();
        state.pictures.iter().find_map(|p| p.frames.iter().find(|f| f.id == id).cloned())
    }
}

impl State {
    fn add(&mut self, clock: Clock, content: Content) {
        let Content { head, values } = content;
        let known = self.pictures.iter().position(|p| p.name == head.name);
        let picture = known.unwrap_or_else(|| {
            self.pictures.push(Picture { name: head.name.clone(), frames: VecDeque::new() });
            self.pictures.len() - 1
        });
        self.last += 1;
        let frame = Frame { id: self.last, picture, clock, head, values };
        self.bytes += frame.bytes();
        let frames = &mut self.pictures[picture].frames;
        frames.push_back(Arc::new(frame));
        if frames.len() > RING {
            self.bytes -= frames.pop_front().map_or(0, |f| f.bytes());
        }
        while self.bytes > RING_BYTES {
            // The oldest of those that are not the last of their picture.
            let oldest = self.pictures.iter_mut().filter(|p| p.frames.len() > 1).min_by_key(|p| p.frames[0].id);
            let Some(oldest) = oldest.and_then(|p| p.frames.pop_front()) else { break };
            self.bytes -= oldest.bytes();
        }
    }

    fn news(&self, told: &mut Told) -> Value {
        let mut news = json!({
            "progress": self.progress.map(|p| json!({
                "step": p.clock.step,
                "time": p.clock.time,
                "fraction": p.fraction,
                "wall": p.wall.as_secs_f64(),
                "rate": p.items_per_second,
                "left": self.left(&p),
            })),
            "stages": self.stages,
            "end": self.end,
            "rests": self.rests,
        });
        if !std::mem::replace(&mut told.begun, true) {
            news["run"] = json!(self.names);
        }
        if let Some(rows) = self.rows.after(&mut told.rows) {
            news["rows"] = rows;
        }
        let mut frames: Vec<&Arc<Frame>> =
            self.pictures.iter().flat_map(|p| p.frames.iter().rev().take_while(|f| f.id > told.frame)).collect();
        frames.sort_by_key(|f| f.id);
        if !frames.is_empty() {
            let one = |f: &&Arc<Frame>| json!([f.id, f.picture, f.clock.step, f.clock.time]);
            news["frames"] = frames.iter().map(one).collect();
            news["pictures"] = self.pictures.iter().map(|p| p.frames.back().map(|f| json!(f.head))).collect();
        }
        let notices: Vec<&String> = self.notices.iter().filter(|(n, _)| *n > told.notice).map(|(_, text)| text).collect();
        if !notices.is_empty() {
            news["notices"] = json!(notices);
        }
        (told.version, told.frame, told.notice) = (self.version, self.last, self.noticed);
        news
    }

    /// Seconds left if the run goes on as so far.
    fn left(&self, progress: &Progress) -> Option<f64> {
        let (wall, fraction) = self.origin?;
        let (spent, done) = (progress.wall.saturating_sub(wall).as_secs_f64(), progress.fraction - fraction);
        (done > 0.005 && self.end.is_none()).then(|| spent * (1.0 - progress.fraction).max(0.0) / done)
    }
}

/// A client that watches.
#[derive(Debug)]
pub(crate) struct Watch<'a>(&'a Hub);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.watchers.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
