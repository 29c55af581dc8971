//! Looks whose pictures come late: a thread waits for them and makes their frames while the run goes on.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use zellige_engine::error::{Error, Result};
use zellige_engine::record::Pictures;
use zellige_engine::run::Lost;
use zellige_engine::sim::{Clock, Look};

use crate::frame;
use crate::hub::Hub;

/// A look that is not shown yet.
pub(crate) struct LateLook {
    pub(crate) clock: Clock,
    pub(crate) extent: Look,
    pub(crate) pictures: Pictures,
    pub(crate) lost: Lost,
}

/// A look that is shown.
pub(crate) struct Shown {
    pub(crate) extent: Look,
    /// Time that the run has lost by it.
    pub(crate) lost: Duration,
    /// Names of its records.
    pub(crate) names: BTreeSet<String>,
}

impl LateLook {
    /// Waits for the pictures and shows them.
    pub(crate) fn show(self, hub: &Hub) -> Result<Shown> {
        let records = self.pictures.records()?;
        hub.frames(self.clock, frame::frames(&records));
        let names = records.iter().map(|record| record.name().to_owned()).collect();
        Ok(Shown { extent: self.extent, lost: self.lost.time()?, names })
    }
}

/// The thread, and the looks that it was given and has not answered.
pub(crate) struct Looks {
    to: Option<Sender<LateLook>>,
    answers: Receiver<Result<Shown>>,
    thread: Option<JoinHandle<()>>,
    under_way: usize,
}

impl Looks {
    /// A thread that shows looks on `hub`.
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        let (to, looks) = channel::<LateLook>();
        let (answer, answers) = channel();
        let work = move || {
            for look in looks {
                if answer.send(look.show(&hub)).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("live looks".into()).spawn(work).ok();
        Self { to: thread.is_some().then_some(to), answers, thread, under_way: 0 }
    }

    /// Gives it a look; back where there is no thread.
    pub(crate) fn give(&mut self, look: LateLook) -> Option<LateLook> {
        let Some(to) = &self.to else { return Some(look) };
        match to.send(look) {
            Ok(()) => {
                self.under_way += 1;
                None
            }
            Err(back) => Some(back.0),
        }
    }

    /// Returns true if one is not shown yet.
    pub(crate) fn are_under_way(&self) -> bool {
        self.under_way > 0
    }

    /// A look that was shown and not asked for yet; waits for one under way where `wait` says so.
    pub(crate) fn answer(&mut self, wait: bool) -> Option<Result<Shown>> {
        if self.under_way == 0 {
            return None;
        }
        let answer = if wait { self.answers.recv().map_err(|_| TryRecvError::Disconnected) } else { self.answers.try_recv() };
        match answer {
            Ok(look) => {
                self.under_way -= 1;
                Some(look)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                // It has panicked: the run goes on without it.
                (self.to, self.under_way) = (None, 0);
                let message = "the thread that draws late pictures has ended; they are drawn between two steps".into();
                Some(Err(Error::Device { device: "host".into(), message, hint: None }))
            }
        }
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        // Copies that are on their way end before the run's device does.
        drop(self.to.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
