//! Limit on the time in which all processes of a launcher start MPI. Who waits there for one that has ended before, by a fault of
//! its own, would wait for ever: MPICH's launcher ends nobody because of a process that it has not seen in MPI.

use std::sync::mpsc::{RecvTimeoutError, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use super::launcher::Launcher;
use crate::error::{Error, Result};

/// Variable with another limit, in seconds.
pub(super) const VARIABLE: &str = "ZELLIGE_MPI_WAIT";
/// Limit for a few processes, and what each adds: a launcher starts hundreds a second, and a file system serves the program to all.
const LIMIT: Duration = Duration::from_secs(60);
const EACH: Duration = Duration::from_millis(50);
/// Largest limit, seconds: a week.
const LONGEST: f64 = 604_800.0;

/// Time that processes of this launcher wait for each other, where the user's word on it is `word`.
///
/// # Errors
/// The word is none.
pub(super) fn limit(launcher: &Launcher, word: Option<&str>) -> Result<Duration> {
    let Some(word) = word.filter(|word| !word.is_empty()) else {
        return Ok(LIMIT + EACH * u32::try_from(launcher.size.unwrap_or(0)).unwrap_or(u32::MAX));
    };
    let seconds = word.parse().ok().filter(|seconds| (0.0..=LONGEST).contains(seconds) && *seconds > 0.0);
    seconds.map(Duration::from_secs_f64).ok_or_else(|| Error::Device {
        device: "mpi".into(),
        message: format!("{VARIABLE}={word} is no time that processes wait for each other (allowed: above 0 to {LONGEST} seconds)"),
        hint: Some("unset the variable".into()),
    })
}

/// Does `start`, which waits for all processes of this launcher. Where it takes longer than `limit`, `late` has the error to tell,
/// and the process ends.
pub(super) fn within<R>(limit: Duration, launcher: &Launcher, late: fn(&Error), start: impl FnOnce() -> R) -> R {
    let (done, waiting) = channel::<()>();
    let error = overdue(limit, launcher);
    let watch = thread::spawn(move || {
        if waiting.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            late(&error);
            // All may have come while this was told.
            if waiting.try_recv() == Err(TryRecvError::Empty) {
                // SAFETY: ends the process, whose other thread is inside the library: nothing that is done at the end of a program may
                // run.
                unsafe { libc::_exit(error.exit_code().into()) };
            }
        }
    });
    let result = start();
    drop(done);
    // It makes no assertions of its own.
    let _ = watch.join();
    result
}

fn overdue(limit: Duration, launcher: &Launcher) -> Error {
    let all = launcher.size.map_or_else(|| "processes".to_owned(), |size| format!("{size} processes"));
    let this = launcher.rank.map_or_else(String::new, |rank| format!(", and number {rank} ends"));
    Error::Device {
        device: "mpi".into(),
        message: format!(
            "{} started {all}, but after {} s MPI has not begun in all of them{this}: some have ended, or do something else",
            launcher.name,
            limit.as_secs_f64()
        ),
        hint: Some(format!("see what the others say; where processes take longer to start, {VARIABLE}=SECONDS has them waited for")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_grows_with_the_processes_unless_the_user_has_one() {
        let launcher = |size: &'static str| Launcher::detect(|name| (name == "PMI_SIZE").then(|| size.to_owned())).unwrap();
        let of = |size, word| limit(&launcher(size), word).map(|limit| limit.as_secs_f64());
        assert!(of("8", None).unwrap() < 65.0 && of("10000", Some("")).unwrap() > 300.0);
        assert_eq!(of("8", Some("1.5")).unwrap(), 1.5);
        for word in ["0", "-1", "nan", "inf", "1e9", "soon"] {
            let told = of("8", Some(word)).unwrap_err().to_string();
            assert!(told.contains(&format!("{VARIABLE}={word} ")) && told.contains("allowed: above 0"), "{told}");
        }
    }
}
