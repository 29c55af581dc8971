//! Looks whose pictures come late: a thread waits for them and makes their frames while the run goes on.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use zellige_engine::error::Result;
use zellige_engine::record::Pictures;
use zellige_engine::run::Lost;
use zellige_engine::sim::Clock;

use crate::frame;
use crate::hub::Hub;

/// A look that is not shown yet.
pub(crate) struct Look {
    pub(crate) clock: Clock,
    pub(crate) pictures: Pictures,
    pub(crate) lost: Lost,
}

impl Look {
    /// Waits for the pictures and shows them; returns what they have cost the run.
    pub(crate) fn show(self, hub: &Hub) -> Result<Duration> {
        hub.frames(self.clock, frame::frames(&self.pictures.records()?));
        self.lost.time()
    }
}

/// The thread, and the looks that it was given and has not answered.
pub(crate) struct Looks {
    to: Option<Sender<Look>>,
    answers: Receiver<Result<Duration>>,
    thread: Option<JoinHandle<()>>,
    under_way: usize,
}

impl Looks {
    /// A thread that shows looks on `hub`.
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        let (to, looks) = channel::<Look>();
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
    pub(crate) fn give(&mut self, look: Look) -> Option<Look> {
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

    /// Cost of a look that was shown and not asked for yet; waits for one under way where `wait` says so.
    pub(crate) fn answer(&mut self, wait: bool) -> Option<Result<Duration>> {
        if self.under_way == 0 {
            return None;
        }
        let answer = if wait { self.answers.recv().ok() } else { self.answers.try_recv().ok() };
        if answer.is_some() {
            self.under_way -= 1;
        } else if wait {
            // The thread has panicked: the run goes on without it.
            (self.to, self.under_way) = (None, 0);
        }
        answer
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
