//! Parts as threads of one process: messages are handed over in memory.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Handed, Links, Transport, absent, apart};
use crate::error::{Error, Problem, Result};

/// Time for which a part looks again and again for a message before it sleeps: waking a thread takes longer than most messages.
const ALERT: Duration = Duration::from_micros(50);

/// Message or value from one part to another.
enum Message {
    Bytes(Vec<u8>),
    Value(Handed),
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Value(_) => write!(f, "a value"),
        }
    }
}

/// Messages on their way from one part to another.
#[derive(Debug, Default)]
struct Mailbox {
    /// True if there may be messages: asked without the lock.
    full: AtomicBool,
    messages: Mutex<VecDeque<Message>>,
    arrived: Condvar,
}

/// State that all parts share.
#[derive(Debug)]
struct Office {
    size: usize,
    /// `[from][to]`.
    boxes: Vec<Mailbox>,
    /// Part that failed first, its message and exit code.
    failed: Mutex<Option<(usize, String, u8)>>,
    any_failed: AtomicBool,
    /// True if each part can have a core of its own.
    alert: bool,
    /// True if parts hand values over.
    shares: bool,
}

/// One part's end of it.
#[derive(Debug)]
struct Part {
    rank: usize,
    office: Arc<Office>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Office {
    /// The failure of another part, if there is one.
    fn failure(&self) -> Result<()> {
        if !self.any_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        match &*lock(&self.failed) {
            Some((part, message, code)) => Err(Error::Part { part: *part, host: None, message: message.clone(), code: *code }),
            None => Ok(()),
        }
    }
}

impl Transport for Part {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.office.size
    }

    fn name(&self) -> String {
        "threads".into()
    }

    fn send(&self, to: usize, message: Vec<u8>) -> Result<()> {
        self.post(to, Message::Bytes(message))
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>> {
        match self.next(from)? {
            Message::Bytes(message) => Ok(message),
            Message::Value(_) => Err(unexpected(from)),
        }
    }

    fn shares_memory(&self) -> bool {
        self.office.shares
    }

    fn hand(&self, to: usize, value: Handed) -> Result<()> {
        if !self.office.shares {
            return Err(apart(&self.name()));
        }
        self.post(to, Message::Value(value))
    }

    fn take(&self, from: usize) -> Result<Handed> {
        match self.next(from)? {
            Message::Value(value) => Ok(value),
            Message::Bytes(_) => Err(unexpected(from)),
        }
    }

    fn abort(&self, error: &Error) {
        // Those that end because another part has failed have nothing to tell.
        if !matches!(error, Error::Part { .. }) {
            self.fail(error.to_string(), error.exit_code());
        }
    }
}

/// Error of parts that are at different places of the program.
fn unexpected(from: usize) -> Error {
    let problem = Problem::new("", format!("part {from} sent something else than was expected"));
    Error::input("parts of a run", problem.hint("this is a fault of the program: please report it with the input"))
}

impl Part {
    fn post(&self, to: usize, message: Message) -> Result<()> {
        self.office.failure()?;
        if to >= self.office.size {
            return Err(absent(to, self.office.size));
        }
        let mailbox = &self.office.boxes[self.rank * self.office.size + to];
        lock(&mailbox.messages).push_back(message);
        mailbox.full.store(true, Ordering::Release);
        mailbox.arrived.notify_one();
        Ok(())
    }

    fn next(&self, from: usize) -> Result<Message> {
        if from >= self.office.size {
            return Err(absent(from, self.office.size));
        }
        let mailbox = &self.office.boxes[from * self.office.size + self.rank];
        if self.office.alert {
            let begun = Instant::now();
            while !mailbox.full.load(Ordering::Acquire) && begun.elapsed() < ALERT {
                std::hint::spin_loop();
            }
        }
        let mut messages = lock(&mailbox.messages);
        loop {
            // Messages sent before a failure are as good as before.
            if let Some(message) = messages.pop_front() {
                mailbox.full.store(!messages.is_empty(), Ordering::Release);
                return Ok(message);
            }
            self.office.failure()?;
            messages = mailbox.arrived.wait(messages).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn fail(&self, message: String, code: u8) {
        lock(&self.office.failed).get_or_insert((self.rank, message, code));
        self.office.any_failed.store(true, Ordering::Release);
        for mailbox in &self.office.boxes {
            // With the lock: nobody is between its look and its sleep.
            let _messages = lock(&mailbox.messages);
            mailbox.arrived.notify_all();
        }
    }
}

/// Memory of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Parts are at each other's memory.
    Shared,
    /// All goes by messages, as between processes: for tests of what is done there.
    Apart,
}

/// Links of `parts` parts, for threads.
fn open(parts: usize, memory: Memory) -> Vec<Arc<Part>> {
    let office = Arc::new(Office {
        size: parts,
        boxes: (0..parts * parts).map(|_| Mailbox::default()).collect(),
        failed: Mutex::new(None),
        any_failed: AtomicBool::new(false),
        alert: thread::available_parallelism().is_ok_and(|cores| parts <= cores.get()),
        shares: memory == Memory::Shared,
    });
    (0..parts).map(|rank| Arc::new(Part { rank, office: office.clone() })).collect()
}

/// Does `work` once for each of `parts` parts, each on a thread of its own, the first on this one. Returns what they made, in their
/// order.
///
/// # Errors
/// That of the part that failed first: the others then end too. A panic of a part is one of this thread.
pub fn run<R: Send>(parts: usize, work: impl Fn(Links) -> Result<R> + Sync) -> Result<Vec<R>> {
    run_on(parts, Memory::Shared, work)
}

/// Does `work` as [`run`] does, for parts with this kind of memory.
pub fn run_on<R: Send>(parts: usize, memory: Memory, work: impl Fn(Links) -> Result<R> + Sync) -> Result<Vec<R>> {
    lead(parts, memory, &work, &work).map(|(first, others)| std::iter::once(first).chain(others).collect())
}

/// Does the work of the first of `parts` parts on this thread, and that of the `others` as [`run`] does.
pub fn lead<R, O: Send>(
    parts: usize,
    memory: Memory,
    first: impl FnOnce(Links) -> Result<R>,
    others: impl Fn(Links) -> Result<O> + Sync,
) -> Result<(R, Vec<O>)> {
    let parts = open(parts.max(1), memory);
    let office = parts[0].office.clone();
    let (led, done) = thread::scope(|scope| {
        let others: Vec<_> = parts[1..].iter().map(|part| scope.spawn(|| alone(part, &others))).collect();
        let led = alone(&parts[0], first);
        (led, others.into_iter().map(|other| other.join().unwrap_or_else(Err)).collect::<Vec<_>>())
    });
    let (mut made, mut errors) = (Vec::with_capacity(done.len()), Vec::new());
    let led = or_panic(led).map_err(|error| errors.push((0, error))).ok();
    for (k, other) in done.into_iter().enumerate() {
        match or_panic(other) {
            Ok(result) => made.push(result),
            Err(error) => errors.push((k + 1, error)),
        }
    }
    match led {
        Some(led) if errors.is_empty() => Ok((led, made)),
        _ => {
            let first = lock(&office.failed).as_ref().map(|(rank, ..)| *rank);
            let cause = errors.iter().position(|(rank, _)| Some(*rank) == first).unwrap_or(0);
            Err(errors.swap_remove(cause).1)
        }
    }
}

/// Does the work of one part, and tells the others where it fails.
fn alone<R>(part: &Arc<Part>, work: impl FnOnce(Links) -> Result<R>) -> thread::Result<Result<R>> {
    let done = catch_unwind(AssertUnwindSafe(|| work(Links::new(part.clone()))));
    match &done {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => part.abort(error),
        Err(_) => part.fail("it panicked".into(), 70),
    }
    done
}

fn or_panic<R>(done: thread::Result<R>) -> R {
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
