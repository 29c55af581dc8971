//! One process at a time in a folder: a lock that the system takes back when its process ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Problem, Result};

/// The file that is locked. It names its owner.
const NAME: &str = ".zellige.lock";

/// The right to write into a folder, until this is dropped.
#[derive(Debug)]
pub struct Lock {
    /// Locked; none where the file system knows no locks.
    file: Option<File>,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock of a folder that exists. With `force` it is taken from whoever holds it, which does not stop that process.
    ///
    /// On Linux it holds on network file systems too, as far as their servers keep locks.
    ///
    /// # Errors
    /// [`Error::Input`] where another process holds it, with that process and its machine.
    pub fn take(folder: &Path, force: bool) -> Result<Self> {
        let path = folder.join(NAME);
        let failed = |e| Error::file("write", &path, e);
        loop {
            let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) if !is_at(&file, &path) => {}
                Ok(()) => {
                    let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", own_name()));
                    // A full disk takes no name; the lock holds without.
                    let _ = written;
                    return Ok(Self { file: Some(file), path });
                }
                // Whoever holds the old file keeps that; the folder gets a new one.
                Err(TryLockError::WouldBlock) if force => std::fs::remove_file(&path).or_else(|e| gone(e, failed))?,
                Err(TryLockError::WouldBlock) => return Err(taken(folder, file)),
                Err(TryLockError::Error(e)) if matches!(e.raw_os_error(), Some(libc::ENOLCK | libc::EOPNOTSUPP | libc::ENOSYS)) => {
                    return Ok(Self { file: None, path });
                }
                Err(TryLockError::Error(e)) => return Err(failed(e)),
            }
        }
    }

    /// Returns true if the file system supports locks: without them, nothing keeps a second process out.
    pub fn holds(&self) -> bool {
        self.file.is_some()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is locked, so that nobody takes a file that is about to go; one that was taken by force is another's.
        if self.file.as_ref().is_none_or(|file| is_at(file, &self.path)) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A file that somebody else removed is as good.
fn gone(error: std::io::Error, failed: impl Fn(std::io::Error) -> Error) -> Result<()> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(failed(error)) }
}

/// Returns true if the open file is still the one of this name: between opening and locking, its owner may have removed it.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let number = |m: std::fs::Metadata| (m.dev(), m.ino());
        matches!((file.metadata().map(number), std::fs::metadata(path).map(number)), (Ok(a), Ok(b)) if a == b)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

fn taken(folder: &Path, mut file: File) -> Error {
    let mut holder = String::new();
    let named = file.read_to_string(&mut holder).is_ok() && !holder.trim().is_empty();
    let holder = if named { holder.trim() } else { "another process" };
    let problem = Problem::new("--output", format!("{holder} is writing into `{}`", folder.display()));
    let hint = "wait for it, or choose another folder with `-o DIR`; `--force` writes there all the same, over what that run writes";
    Error::input("command line", problem.hint(hint))
}

/// Name of this host, where it has one.
pub fn host_name() -> Option<String> {
    let mut name = [0u8; 256];
    #[cfg(unix)]
    // SAFETY: the buffer is as long as is said, and its last byte stays 0.
    unsafe {
        libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1);
    }
    let host = name.split(|b| *b == 0).next().map(String::from_utf8_lossy).unwrap_or_default();
    (!host.is_empty()).then(|| host.into_owned())
}

/// `process 1234 on node17`.
fn own_name() -> String {
    format!("process {} on {}", std::process::id(), host_name().as_deref().unwrap_or("this machine"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_owner_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = Lock::take(folder.path(), false).unwrap();
        let error = Lock::take(folder.path(), false).unwrap_err();
        let expected = format!("process {} on ", std::process::id());
        assert!(error.exit_code() == 2 && error.to_string().contains(&expected), "{error}");
        // Taken by force it is the second one's, also when the first has gone.
        let second = Lock::take(folder.path(), true).unwrap();
        drop(first);
        assert!(Lock::take(folder.path(), false).is_err());
        drop(second);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
        // A killed process leaves a file that nobody has locked.
        std::fs::write(folder.path().join(NAME), "process 1 on elsewhere").unwrap();
        assert!(Lock::take(folder.path(), false).unwrap().holds());
    }
}
