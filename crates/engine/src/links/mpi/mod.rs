//! Parts as processes that a launcher (`mpirun`, `srun`) has started, on one or many hosts: messages go through the launcher's own
//! MPI library.
//!
//! Nothing of MPI is needed to build, and nothing is loaded where no launcher has started this process together with others. One
//! program serves every library: `library` chooses the file and the `table` of its functions. Seventeen functions are used, and of
//! messages only those between two processes: what all parts take part in is made of them by [`Links`].

mod calls;
mod launcher;
mod library;
mod table;
#[cfg(test)]
mod tests;
mod waiting;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use self::calls::{Calls, Fault};
use self::launcher::Launcher;
use self::library::Functions;
pub use self::library::found;
use self::table::{Handle, Table};
use super::{Links, Transport, absent};
use crate::error::{Error, Result};

/// Longest message that is sent at once: lengths in MPI are below 2^31.
const PIECE: usize = 1 << 30;
/// Time for which a part looks again and again for a message before it lets other threads of its core run in between.
const ALERT: Duration = Duration::from_micros(50);

/// Links to the other processes of the launcher that started this one; `None` where there is no launcher, or it started one
/// process. Called once in a process. Threads use the links one at a time. Where processes that the launcher started do not come,
/// `late` has the error to tell, and this one ends.
///
/// # Errors
/// The launcher's MPI library is not found, or its processes do not see each other.
pub fn from_launcher(late: fn(&Error)) -> Result<Option<Links>> {
    open(PIECE, late)
}

fn open(piece: usize, late: fn(&Error)) -> Result<Option<Links>> {
    let launcher = Launcher::detect(|name| std::env::var(name).ok());
    let Some(launcher) = launcher.filter(|_| !library::is_off()) else { return Ok(None) };
    let library = library::open(&launcher)?;
    if let Some(warning) = launcher.warning() {
        crate::notice::tell(warning);
    }
    let limit = waiting::limit(&launcher, std::env::var(waiting::VARIABLE).ok().as_deref())?;
    let links = waiting::within(limit, &launcher, late, || match library.functions {
        Functions::Pointers(table) => start(&launcher, table, library.version, piece),
        Functions::Numbers(table) => start(&launcher, table, library.version, piece),
    });
    links.map(Some)
}

fn start<H: Handle>(launcher: &Launcher, table: Table<H>, version: String, piece: usize) -> Result<Links> {
    let refused = |message: String, hint: Option<String>| Error::Device { device: "mpi".into(), message, hint };
    let fault = |message| refused(format!("{version}: {message}"), None);
    let ours = table.start().map_err(fault)?;
    let (rank, size) = table.rank_and_size().map_err(fault)?;
    if let Some(contradiction) = launcher.contradiction(rank, size) {
        let hint = "the launcher and the library have to be of one MPI: use the `mpirun` of this library, name the launcher's own library in \
                    ZELLIGE_MPI=FILE, or let Slurm link them (`srun --mpi=pmix` or `--mpi=pmi2`)";
        return Err(refused(format!("{contradiction} ({version})"), Some(hint.into())));
    }
    let host = table.host();
    let calls = Calls::new(table).map_err(|fault| refused(format!("{version}: {fault}"), None))?;
    let part = Arc::new(Part { calls, rank, size, version, host, hosts: OnceLock::new(), piece, broken: AtomicBool::new(false), ours });
    let links = Links::new(part.clone());
    let hosts = links.all_say(&part.host)?;
    part.hosts.get_or_init(|| hosts);
    Ok(links)
}

/// One process of the run.
#[derive(Debug)]
struct Part<H: Handle> {
    calls: Calls<H>,
    rank: usize,
    size: usize,
    version: String,
    host: Option<String>,
    /// Hosts of all parts.
    hosts: OnceLock<Vec<Option<String>>>,
    /// Longest piece of a message. A message ends with the first shorter one.
    piece: usize,
    /// True after a fault: MPI can then not be ended in order.
    broken: AtomicBool,
    /// True if MPI was started here, and is ended here.
    ours: bool,
}

impl<H: Handle> Transport for Part<H> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn name(&self) -> String {
        format!("MPI ({})", self.version)
    }

    fn host(&self) -> Option<String> {
        self.host.clone()
    }

    fn send(&self, to: usize, message: Vec<u8>) -> Result<()> {
        if to >= self.size {
            return Err(absent(to, self.size));
        }
        self.calls.send(to, message, self.piece).map_err(|fault| self.fault(fault))
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>> {
        if from >= self.size {
            return Err(absent(from, self.size));
        }
        let fault = |words| self.fault(Fault { part: from, sending: false, words });
        let mut message = Vec::new();
        loop {
            let (piece, length) = until(|| self.calls.arrived(from)).map_err(|fault| self.fault(fault))?;
            if length > self.piece {
                return Err(fault(format!("a piece of {length} bytes, longer than {}", self.piece)));
            }
            message.reserve_exact(length);
            self.calls.take(piece, &mut message.spare_capacity_mut()[..length]).map_err(fault)?;
            // SAFETY: the piece was as long as MPI had told, and all of it is there.
            unsafe { message.set_len(message.len() + length) };
            if length < self.piece {
                return Ok(message);
            }
        }
    }

    fn abort(&self, error: &Error) {
        self.broken.store(true, Ordering::Relaxed);
        // Those that end because another part has failed have nothing to tell.
        if !matches!(error, Error::Part { .. }) {
            self.calls.abort(error.exit_code());
        }
    }
}

impl<H: Handle> Part<H> {
    /// A part by its number and host.
    fn known(&self, part: usize) -> String {
        let host = self.hosts.get().and_then(|hosts| hosts[part].as_deref());
        format!("part {part}{}", host.map_or_else(String::new, |host| format!(" on {host}")))
    }

    fn fault(&self, Fault { part, sending, words }: Fault) -> Error {
        self.broken.store(true, Ordering::Relaxed);
        let [own, other] = [self.rank, part].map(|part| self.known(part));
        let call = if sending { "send to" } else { "receive from" };
        Error::Device { device: "mpi".into(), message: format!("{own} cannot {call} {other}: {words}"), hint: None }
    }
}

/// Waits until `look` finds something.
fn until<R>(look: impl Fn() -> Result<Option<R>, Fault>) -> Result<R, Fault> {
    let begun = Instant::now();
    let mut alert = true;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        alert = alert && begun.elapsed() < ALERT;
        if alert { std::hint::spin_loop() } else { thread::yield_now() }
    }
}

impl<H: Handle> Drop for Part<H> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.calls.abort(70);
        }
        let all_sent = || Ok(self.calls.all_sent()?.then_some(()));
        let in_order = !self.broken.load(Ordering::Relaxed) && until(all_sent).is_ok();
        if in_order
            && self.ours
            && let Err(fault) = self.calls.finish()
        {
            crate::notice::tell(&format!("{}: {fault}", self.version));
        }
    }
}
