//! Runs of a queue behind one page, which lists them: a run under way has a page of its own, which is fetched from its process, and
//! one that has ended is opened from its folder when somebody asks for it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use crate::hub::Hub;

/// Ended runs that are kept open.
const OPEN: usize = 4;
/// Stack of a thread that opens one, bytes.
const STACK: usize = 8 << 20;

/// Run of a queue, as the page lists it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct QueuedRun {
    /// Name: that of its folder.
    pub name: String,
    /// State in a word or two: `waiting`, `running`, `finished`, `failed`.
    pub state: &'static str,
    /// Device that it runs on.
    pub device: String,
    /// Progress, 0 to 1, as far as it is known.
    pub fraction: Option<f64>,
    /// Seconds since it began, or that it took.
    pub seconds: Option<f64>,
    /// Message at its end.
    pub message: String,
}

/// Opens the folder of a run that has ended.
pub type OpenFolder = Arc<dyn Fn() -> Arc<Hub> + Send + Sync>;

/// Page of a run of a queue.
#[derive(Clone)]
pub enum RunPage {
    /// Page of another process of this host: its address, and the token of its paths.
    Process(SocketAddr, String),
    /// Page of a folder.
    Folder(OpenFolder),
}

impl RunPage {
    /// The page of the process that serves it at `url`: `http://127.0.0.1:8421/TOKEN/`.
    pub fn of_url(url: &str) -> Option<Self> {
        let (address, token) = url.trim().strip_prefix("http://")?.trim_end_matches('/').split_once('/')?;
        let sound = !token.is_empty() && token.bytes().all(|b| b.is_ascii_hexdigit());
        address.parse().ok().filter(|_| sound).map(|address| Self::Process(address, token.to_owned()))
    }
}

struct Entry {
    run: QueuedRun,
    page: Option<RunPage>,
}

struct State {
    entries: Vec<Entry>,
    version: u64,
    closed: bool,
}

/// State of a queue between the process that works through it and its clients.
pub struct Queue {
    title: String,
    state: Mutex<State>,
    changed: Condvar,
    /// Ended runs that somebody looks at, the last one opened at the end.
    open: Mutex<VecDeque<(usize, Arc<Hub>)>>,
}

impl Queue {
    /// A queue of runs of these names, none of which has begun.
    pub fn new(title: impl Into<String>, names: impl IntoIterator<Item = String>) -> Self {
        let waiting = |name| Entry { run: QueuedRun { name, state: "waiting", ..QueuedRun::default() }, page: None };
        let state = State { entries: names.into_iter().map(waiting).collect(), version: 1, closed: false };
        Self { title: title.into(), state: Mutex::new(state), changed: Condvar::new(), open: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is listed of a run, where it differs.
    pub fn change(&self, number: usize, change: impl FnOnce(&mut QueuedRun)) {
        let mut state = self.lock();
        let Some(entry) = state.entries.get_mut(number) else { return };
        let before = entry.run.clone();
        change(&mut entry.run);
        if entry.run != before {
            state.version += 1;
            self.changed.notify_all();
        }
    }

    /// Puts a page behind a run, or none.
    pub fn show(&self, number: usize, page: Option<RunPage>) {
        let mut state = self.lock();
        let Some(entry) = state.entries.get_mut(number) else { return };
        entry.page = page;
        state.version += 1;
        self.changed.notify_all();
    }

    /// Returns true if a run has a page.
    pub fn is_shown(&self, number: usize) -> bool {
        self.page(number).is_some()
    }

    pub(crate) fn page(&self, number: usize) -> Option<RunPage> {
        self.lock().entries.get(number)?.page.clone()
    }

    /// The run in a folder, opened if it is not open.
    pub(crate) fn opened(&self, number: usize, folder: OpenFolder) -> Option<Arc<Hub>> {
        // One client opens it, others wait.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, hub)) = open.iter().find(|(k, _)| *k == number) {
            return Some(hub.clone());
        }
        let thread = std::thread::Builder::new().name("live folder".into()).stack_size(STACK).spawn(move || folder()).ok()?;
        let hub = thread.join().ok()?;
        open.push_back((number, hub.clone()));
        if open.len() > OPEN
            && let Some((_, oldest)) = open.pop_front()
        {
            oldest.close();
        }
        Some(hub)
    }

    /// The list as it stands.
    pub fn list(&self) -> Value {
        self.lock().list(&self.title)
    }

    /// Waits for a change of the list, at most for a while; null if there is none, `None` when there will be no more.
    pub(crate) fn news(&self, told: &mut u64, patience: Duration) -> Option<Value> {
        let until = Instant::now() + patience;
        let mut state = self.lock();
        while state.version == *told && !state.closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(Value::Null);
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.version == *told {
            return None;
        }
        *told = state.version;
        Some(state.list(&self.title))
    }

    /// Sends clients away.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        for (_, hub) in open {
            hub.close();
        }
    }
}

impl State {
    fn list(&self, title: &str) -> Value {
        let one = |entry: &Entry| {
            let mut run = json!(entry.run);
            run["page"] = entry.page.is_some().into();
            run
        };
        json!({ "title": title, "runs": self.entries.iter().map(one).collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::RunNames;

    #[test]
    fn pages_of_processes_are_addresses_of_this_program() {
        let of = |url: &str| match RunPage::of_url(url) {
            Some(RunPage::Process(address, token)) => Some((address.to_string(), token)),
            _ => None,
        };
        assert_eq!(of("http://127.0.0.1:8421/5f0c/\n"), Some(("127.0.0.1:8421".into(), "5f0c".into())));
        for wrong in ["http://node17:8421/5f0c/", "https://127.0.0.1:8421/5f0c/", "http://127.0.0.1:8421/", "http://127.0.0.1:8421/a/../b/"]
        {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_changes_are_news() {
        let queue = Queue::new("two runs", ["a", "b"].map(String::from));
        let mut told = 0;
        let list = queue.news(&mut told, Duration::ZERO).unwrap();
        assert_eq!(
            (&list["runs"][1]["name"], &list["runs"][1]["state"], &list["runs"][1]["page"]),
            (&json!("b"), &json!("waiting"), &json!(false))
        );
        queue.change(1, |run| run.state = "waiting");
        assert_eq!(queue.news(&mut told, Duration::ZERO), Some(Value::Null));
        queue.change(1, |run| run.fraction = Some(0.5));
        assert_eq!(queue.news(&mut told, Duration::ZERO).unwrap()["runs"][1]["fraction"], 0.5);
        queue.close();
        assert_eq!(queue.news(&mut told, Duration::from_secs(9)), None);
    }

    #[test]
    fn folders_are_opened_once_and_few_stay_open() {
        let queue = Queue::new("", (0..9).map(|k| k.to_string()));
        let folder =
            |name: String| -> OpenFolder { Arc::new(move || Arc::new(Hub::new(RunNames { name: name.clone(), ..RunNames::default() }))) };
        let first = queue.opened(0, folder("first".into())).unwrap();
        assert!(Arc::ptr_eq(&first, &queue.opened(0, folder("again".into())).unwrap()));
        for k in 1..=OPEN {
            queue.opened(k, folder(k.to_string())).unwrap();
        }
        assert!(!Arc::ptr_eq(&first, &queue.opened(0, folder("anew".into())).unwrap()));
    }
}
