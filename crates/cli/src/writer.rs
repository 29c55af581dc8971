//! Files of results are written by a thread of their own while the next steps run.
//!
//! Moments wait in a queue of bounded size, and whatever waits is written together. Order is kept: a moment has its files before
//! the next one has any. An error ends the writing; it reaches the run with the next moment, or at its end.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use zellige_engine::error::{Error, Result};
use zellige_engine::record::{Lead, Record};
use zellige_engine::signal;
use zellige_io::{Format, Moment, takes_share, write_moments, write_shares};

/// Bytes of records that wait or are being written at most; a moment that is larger is written at once, and the run waits for it.
const WAITING: usize = 64 << 20;
/// Moments that wait at most, those of very small arrays.
const MOMENTS: usize = 256;

/// Writes moments into a folder.
pub(crate) struct Writer {
    folder: PathBuf,
    formats: Vec<Format>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Moment>,
    /// Memory of the records that wait and of those being written, bytes.
    bytes: usize,
    busy: bool,
    closed: bool,
    written: Vec<PathBuf>,
    error: Option<Error>,
    /// A defect, which is raised again in the thread that leads the run.
    panic: Option<Box<dyn Any + Send>>,
}

impl State {
    fn idle(&self) -> bool {
        self.waiting.is_empty() && !self.busy
    }

    fn failed(&self) -> bool {
        self.error.is_some() || self.panic.is_some()
    }

    /// Returns the error of the writer, once.
    fn outcome(&mut self) -> Result<()> {
        if let Some(panic) = self.panic.take() {
            resume_unwind(panic);
        }
        self.error.take().map_or(Ok(()), Err)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `ready` holds, or something has failed.
    fn until(&self, ready: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let blocked = |state: &mut State| !ready(state) && !state.failed();
        self.changed.wait_while(self.lock(), blocked).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    pub(crate) fn new(folder: PathBuf, formats: Vec<Format>) -> Self {
        Self { folder, formats, shared: Arc::default(), thread: None }
    }

    /// Returns true if records are written in a format.
    pub(crate) fn writes(&self, format: Format) -> bool {
        self.formats.contains(&format)
    }

    /// Has a moment written, after those before it. With `now` it is on the disk when this returns.
    ///
    /// # Errors
    /// Of this moment where it was written at once, else of one before.
    pub(crate) fn put(&mut self, moment: Moment, now: bool) -> Result<()> {
        let bytes = moment.bytes();
        if now || bytes > WAITING {
            return self.put_shares(&moment, &Lead::default());
        }
        let mut state = self.shared.until(|s| s.waiting.len() < MOMENTS && s.bytes + bytes <= WAITING);
        state.outcome()?;
        state.bytes += bytes;
        state.waiting.push_back(moment);
        drop(state);
        self.shared.changed.notify_all();
        if self.thread.is_none() {
            let (shared, folder, formats) = (self.shared.clone(), self.folder.clone(), self.formats.clone());
            let work = move || work(&shared, &folder, &formats);
            let thread = std::thread::Builder::new().name("output".into()).spawn(work);
            self.thread = Some(thread.map_err(|e| Error::file("write", &self.folder, e))?);
        }
        Ok(())
    }

    /// Writes a moment at once, after those before it, with shares of records that `lead` has all parts of the run write.
    ///
    /// # Errors
    /// Of this moment, or of one before.
    pub(crate) fn put_shares(&mut self, moment: &Moment, lead: &Lead) -> Result<()> {
        self.drained().outcome()?;
        let interruption = signal::interruption();
        let (written, result) = write_shares(&self.folder, moment, &self.formats, &|| interruption.check(), lead);
        self.shared.lock().written.extend(written);
        result
    }

    /// Returns true if all parts of a run can write a record side by side.
    pub(crate) fn takes_share(&self, record: &Record) -> bool {
        takes_share(record, &self.formats)
    }

    /// Waits until nothing waits; what went wrong stays.
    fn drained(&self) -> MutexGuard<'_, State> {
        self.shared.until(State::idle)
    }

    /// Waits until all is written that was put; what went wrong, in words, if something did. It will be the error of the next
    /// moment or of the end all the same.
    pub(crate) fn wait(&self) -> Option<String> {
        self.drained().error.as_ref().map(ToString::to_string)
    }

    /// Waits for the rest and ends the thread.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let result = self.drained().outcome();
        self.close();
        result
    }

    /// The files so far.
    pub(crate) fn written(&self) -> Vec<PathBuf> {
        self.shared.lock().written.clone()
    }

    fn close(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // Its panic was caught.
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

/// Runs the writer thread.
fn work(shared: &Shared, folder: &std::path::Path, formats: &[Format]) {
    loop {
        let mut state =
            shared.changed.wait_while(shared.lock(), |s| s.waiting.is_empty() && !s.closed).unwrap_or_else(PoisonError::into_inner);
        let moments: Vec<Moment> = state.waiting.drain(..).collect();
        if moments.is_empty() {
            return;
        }
        state.busy = true;
        drop(state);
        let bytes: usize = moments.iter().map(Moment::bytes).sum();
        let ended = catch_unwind(AssertUnwindSafe(|| write_moments(folder, &moments, formats, &|| Ok(()))));
        drop(moments);
        let mut state = shared.lock();
        state.busy = false;
        state.bytes -= bytes;
        match ended {
            Ok((written, result)) => {
                state.written.extend(written);
                state.error = result.err();
            }
            Err(panic) => state.panic = Some(panic),
        }
        if state.failed() {
            // Moments after a gap are not written.
            state.bytes = 0;
            state.waiting.clear();
        }
        drop(state);
        shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use zellige_engine::record::{Axis, Centring, Field, Values};
    use zellige_io::Stamp;

    use super::*;

    fn moment(step: u64, len: usize) -> Moment {
        let axis = Axis { name: "x".into(), unit: String::new(), origin: 0.0, spacing: 1.0, len };
        let field = Field::bare("u", vec![axis], Centring::Node, Values::F64(vec![step as f64; len]));
        Moment { records: vec![Record::Field(field)], stamp: Stamp { step, time: None, numbered: true } }
    }

    #[test]
    fn moments_are_written_in_order_and_all_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::new(folder.path().into(), vec![Format::Npy]);
        for step in 0..600 {
            writer.put(moment(step, 10), false).unwrap();
        }
        // Larger than what may wait: it is there at once, after those before it.
        writer.put(moment(600, WAITING / 8 + 1), false).unwrap();
        let name = |step: u64| folder.path().join(format!("u_{step:06}.npy"));
        assert_eq!(writer.written(), (0..=600).map(name).collect::<Vec<_>>());
        writer.put(moment(601, 10), false).unwrap();
        assert_eq!(writer.wait(), None);
        assert_eq!(zellige_io::npy::read(name(601)).unwrap().values, vec![601.0; 10]);
        writer.finish().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 602);
    }

    #[test]
    fn an_error_reaches_the_run_and_nothing_is_written_after_it() {
        let folder = tempfile::tempdir().unwrap();
        // A folder where a file should be fails as a full disk does.
        std::fs::create_dir(folder.path().join("u_000002.npy")).unwrap();
        let mut writer = Writer::new(folder.path().into(), vec![Format::Npy]);
        for step in 0..2 {
            writer.put(moment(step, 10), false).unwrap();
        }
        writer.put(moment(2, 10), false).unwrap();
        let told = writer.wait().unwrap();
        assert!(told.contains("u_000002.npy"), "{told}");
        assert!(matches!(writer.put(moment(3, 10), false), Err(Error::File { action: "rename", .. })));
        writer.finish().unwrap();
        assert_eq!(writer.written().len(), 2);
        assert!(!folder.path().join("u_000003.npy").exists());
        // If no moment follows, it is the error of the end.
        let mut writer = Writer::new(folder.path().into(), vec![Format::Npy]);
        writer.put(moment(2, 10), false).unwrap();
        assert!(writer.finish().is_err() && writer.finish().is_ok());
    }

    #[test]
    fn the_queue_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::new(folder.path().into(), vec![Format::Npy]);
        for step in 0..6 {
            writer.put(moment(step, WAITING / 8 / 2), false).unwrap();
            assert!(writer.shared.lock().bytes <= WAITING);
        }
        writer.finish().unwrap();
        assert_eq!((writer.written().len(), writer.shared.lock().bytes), (6, 0));
    }
}
