//! `zellige run A B C --live`: the page of a queue. Each run has a page of its own on the loopback, which this process hands on;
//! once it has ended, its folder is shown as `zellige view` does.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use zellige_engine::error::Result;
use zellige_live::{Address, Queue, RunPage, Server};

use super::{Ended, MESSAGES, percentage};
use crate::commands::{folder, live};

/// Interval at which what is listed is brought up to date.
const INTERVAL: Duration = Duration::from_millis(300);
/// Bytes of messages in which the address of a run's page stands.
const HEAD: u64 = 16 << 10;

/// Page at work; none where it is not asked for.
pub(super) struct Page {
    queue: Arc<Queue>,
    server: Server,
    next: Instant,
}

impl Page {
    /// Starts the page of runs of these names, and says where.
    pub(super) fn start(address: &Address, above: &Path, names: impl Iterator<Item = String>) -> Result<Self> {
        let whole = std::path::absolute(above).unwrap_or_else(|_| above.to_owned());
        let queue = Arc::new(Queue::new(format!("queue in {}", whole.display()), names));
        let server = Server::of_queue(address, queue.clone())?;
        live::tell_address(&server);
        Ok(Self { queue, server, next: Instant::now() })
    }

    /// Lists a run as begun.
    pub(super) fn begun(&self, number: usize, device: &str) {
        self.queue.change(number, |run| (run.state, run.device) = ("running", device.to_owned()));
    }

    /// Brings runs under way up to date, now and then: number, folder and begin of each.
    pub(super) fn under_way<'a>(&mut self, runs: impl Iterator<Item = (usize, &'a Path, Instant)>) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + INTERVAL;
        for (number, folder, begun) in runs {
            if !self.queue.is_shown(number)
                && let Some(page) = address(folder)
            {
                self.queue.show(number, Some(page));
            }
            let fraction = percentage(folder).map(|percent| percent / 100.0);
            self.queue.change(number, |run| (run.fraction, run.seconds) = (fraction, Some(begun.elapsed().as_secs_f64().floor())));
        }
    }

    /// Lists a run as ended.
    pub(super) fn ended(&self, number: usize, folder: PathBuf, ended: &Ended) {
        let state = match ended.code {
            0 => "finished",
            75 | 130 | 143 => "stopped",
            _ => "failed",
        };
        let (seconds, message) = (Some(ended.seconds), ended.message.clone());
        self.queue.change(number, |run| {
            (run.state, run.seconds, run.message) = (state, seconds, message);
            run.fraction = if ended.code == 0 { Some(1.0) } else { run.fraction };
        });
        self.queue.show(number, folder.is_dir().then(|| RunPage::Folder(Arc::new(move || folder::hub(&folder)))));
    }

    /// Lists those as left out that never began, and sends the clients away once they have the list.
    pub(super) fn close(self, never: impl Iterator<Item = usize>) {
        for number in never {
            self.queue.change(number, |run| run.state = "not begun");
        }
        self.server.close(live::FAREWELL);
    }
}

/// The page of a run, from its messages.
fn address(folder: &Path) -> Option<RunPage> {
    let mut text = Vec::new();
    std::fs::File::open(folder.join(MESSAGES)).ok()?.take(HEAD).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    // A line that is not whole yet has no end.
    let whole = text.rsplit_once('\n')?.0;
    whole.lines().find_map(|line| line.trim_start().strip_prefix("live ").and_then(RunPage::of_url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_page_stands_in_the_messages() {
        let folder = tempfile::tempdir().unwrap();
        let write = |text: &str| std::fs::write(folder.path().join(MESSAGES), text).unwrap();
        let found = || address(folder.path()).is_some();
        assert!(!found());
        write("zellige 0.1\n  live         http://127.0.0.1:8421/5f0c");
        assert!(!found(), "the line is not whole");
        write("zellige 0.1\n  live         http://127.0.0.1:8421/5f0ce1/\n");
        assert!(found());
        write("  live         3 looks took 0.1 s\n");
        assert!(!found());
    }
}
