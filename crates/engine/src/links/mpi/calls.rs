//! Calls of MPI, one at a time, and the messages that are under way.
//!
//! MPI moves a long message only inside its calls, at both ends. So a process that has sent one and then waits for its GPU, a disk
//! or a thread must not leave MPI alone: the receiver might be what it waits for. A thread looks after messages that the calls of
//! the run have not finished within a moment; most are gone when the call that sends them returns, and the thread sleeps.

use std::mem::MaybeUninit;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::table::{Handle, Table};

/// Time that the thread leaves messages to the calls of the run.
const GRACE: Duration = Duration::from_millis(1);
/// Time between two looks of the thread at messages that are longer under way.
const REST: Duration = Duration::from_micros(100);
/// Looks at a call of another thread before all processes are ended in spite of it, a millisecond apart.
const LOOKS_BEFORE_ABORT: usize = 100;

/// A message on its way, and a request for each of its pieces.
#[derive(Debug)]
struct Sending<H> {
    to: usize,
    requests: Vec<H>,
    message: Vec<u8>,
}

/// Fault of a call, and the part to or from which the message goes.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub(super) part: usize,
    pub(super) sending: bool,
    pub(super) words: String,
}

/// Messages under way.
#[derive(Debug)]
struct Sends<H> {
    messages: Vec<Sending<H>>,
    /// Fault that the thread has met.
    fault: Option<Fault>,
    /// True once no more is sent.
    closed: bool,
}

/// State that the thread and the run share.
#[derive(Debug)]
struct Shared<H: Handle> {
    table: Table<H>,
    /// Held during every call of MPI.
    sends: Mutex<Sends<H>>,
    /// Told when a message is under way, and at the end.
    changed: Condvar,
}

/// Calls of one process.
#[derive(Debug)]
pub(super) struct Calls<H: Handle> {
    shared: Arc<Shared<H>>,
    thread: Option<JoinHandle<()>>,
}

impl<H: Handle> Calls<H> {
    /// Calls of a library that has been started, for any thread.
    pub(super) fn new(table: Table<H>) -> Result<Self, String> {
        let sends = Mutex::new(Sends { messages: Vec::new(), fault: None, closed: false });
        let shared = Arc::new(Shared { table, sends, changed: Condvar::new() });
        let own = shared.clone();
        let thread = thread::Builder::new().name("mpi".into()).spawn(move || own.look_after_messages());
        Ok(Self { shared, thread: Some(thread.map_err(|e| format!("cannot start a thread: {e}"))?) })
    }

    /// Sends a message in pieces, of which the last is shorter than `piece`, and may be empty. Returns at once.
    pub(super) fn send(&self, to: usize, message: Vec<u8>, piece: usize) -> Result<(), Fault> {
        let Shared { table, changed, .. } = &*self.shared;
        let mut sends = self.shared.sound()?;
        let pieces = message.chunks_exact(piece);
        let last = pieces.remainder();
        // SAFETY: the message is kept, where it is, until its requests are done; after a fault for ever.
        let requests: Result<_, String> = pieces.chain([last]).map(|bytes| unsafe { table.send(bytes, to) }).collect();
        match requests {
            Ok(requests) => sends.messages.push(Sending { to, requests, message }),
            Err(words) => {
                std::mem::forget(message);
                return Err(Fault { part: to, sending: true, words });
            }
        }
        sends.clear(table)?;
        if !sends.messages.is_empty() {
            changed.notify_one();
        }
        Ok(())
    }

    /// The next message from a process and its length, if it is there already. What is sent meanwhile goes on.
    pub(super) fn arrived(&self, from: usize) -> Result<Option<(H, usize)>, Fault> {
        let (table, mut sends) = (&self.shared.table, self.shared.sound()?);
        let found = table.arrived(from).map_err(|words| Fault { part: from, sending: false, words })?;
        if found.is_none() {
            sends.clear(table)?;
        }
        Ok(found)
    }

    /// Takes a message that has [`arrived`](Self::arrived), of this length, into all of `bytes`. What is sent meanwhile goes on.
    pub(super) fn take(&self, message: H, bytes: &mut [MaybeUninit<u8>]) -> Result<(), String> {
        let _calling = self.shared.lock();
        self.shared.table.take(message, bytes)
    }

    /// Returns true if nothing is under way.
    pub(super) fn all_sent(&self) -> Result<bool, Fault> {
        let mut sends = self.shared.sound()?;
        sends.clear(&self.shared.table)?;
        Ok(sends.messages.is_empty())
    }

    /// Ends all processes with this code.
    pub(super) fn abort(&self, code: u8) {
        // Another thread may wait in a call that only this ends.
        let calling = (0..LOOKS_BEFORE_ABORT).find_map(|_| {
            let calling = self.shared.sends.try_lock().ok();
            if calling.is_none() {
                thread::sleep(Duration::from_millis(1));
            }
            calling
        });
        self.shared.table.abort(code);
        drop(calling);
    }

    /// Ends MPI in this process, where all has been sent.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        self.close();
        let _calling = self.shared.lock();
        self.shared.table.finish()
    }

    /// Ends the thread.
    fn close(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // It makes no assertions of its own.
            let _ = thread.join();
        }
    }
}

impl<H: Handle> Shared<H> {
    fn lock(&self) -> MutexGuard<'_, Sends<H>> {
        self.sends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Messages under way, unless the thread has met a fault.
    fn sound(&self) -> Result<MutexGuard<'_, Sends<H>>, Fault> {
        let sends = self.lock();
        sends.fault.clone().map_or(Ok(sends), Err)
    }

    /// Work of the thread.
    fn look_after_messages(&self) {
        loop {
            let idle = |sends: &mut Sends<H>| sends.messages.is_empty() && !sends.closed;
            if self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner).closed {
                return;
            }
            thread::sleep(GRACE);
            loop {
                let mut sends = self.lock();
                if sends.closed || sends.fault.is_some() {
                    return;
                }
                // The next call of the run tells the fault.
                sends.fault = sends.clear(&self.table).err();
                if sends.messages.is_empty() {
                    break;
                }
                drop(sends);
                thread::sleep(REST);
            }
        }
    }
}

impl<H: Handle> Sends<H> {
    /// Forgets the messages that have been sent.
    fn clear(&mut self, table: &Table<H>) -> Result<(), Fault> {
        let mut failed = None;
        self.messages.retain_mut(|Sending { to, requests, message }| {
            requests.retain_mut(|request| match table.done(request) {
                Ok(done) => !done,
                Err(words) => {
                    failed = Some(Fault { part: *to, sending: true, words: format!("{} bytes: {words}", message.len()) });
                    true
                }
            });
            !requests.is_empty()
        });
        failed.map_or(Ok(()), Err)
    }
}

impl<H: Handle> Drop for Calls<H> {
    fn drop(&mut self) {
        self.close();
        // MPI may still read what has not been sent.
        std::mem::forget(std::mem::take(&mut self.shared.lock().messages));
    }
}
