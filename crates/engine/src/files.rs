//! Files that are either whole or not there: everything is written to a temporary name in the same folder, flushed to
//! the disk and renamed. An error, a panic or a full disk leaves what stood there before.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// Large enough that a write call costs little beside the bytes.
const BUFFER: usize = 1 << 18;

/// Makes temporary names differ within one process; the process id makes them differ between processes.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// A file in the making. It takes its name at [`Pending::commit`]; dropped before that, it is removed.
#[derive(Debug)]
pub struct Pending {
    /// `None` once committed.
    out: Option<BufWriter<File>>,
    temporary: PathBuf,
    path: PathBuf,
}

impl Pending {
    /// Opens a temporary file beside `path`. The folder must exist.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let Some(name) = path.file_name() else {
            return Err(Error::file("write", &path, io::Error::new(io::ErrorKind::InvalidInput, "this is not a file name")));
        };
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{}.tmp", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed)));
        let temporary = path.with_file_name(hidden);
        let file = File::create(&temporary).map_err(|e| Error::file("write", &path, e))?;
        Ok(Self { out: Some(BufWriter::with_capacity(BUFFER, file)), temporary, path })
    }

    /// The name that the file will take.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where to write.
    pub fn out(&mut self) -> &mut BufWriter<File> {
        self.out.as_mut().expect("a pending file is open until it is committed, which consumes it")
    }

    /// Flushes to the disk and gives the file its name.
    pub fn commit(mut self) -> Result<()> {
        let written = (|| {
            let out = self.out();
            out.flush()?;
            out.get_ref().sync_all()
        })();
        written.map_err(|e| Error::file("write", &self.path, e))?;
        std::fs::rename(&self.temporary, &self.path).map_err(|e| Error::file("rename", &self.path, e))?;
        self.close();
        sync_folder(&self.path);
        Ok(())
    }

    /// Closes without writing what is still buffered: the file is either complete or about to be removed.
    fn close(&mut self) {
        if let Some(out) = self.out.take() {
            drop(out.into_parts());
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.out.is_some() {
            self.close();
            // Nothing better can be done here about a file that refuses to go.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// Makes the rename itself survive a power cut. Some file systems refuse to sync a folder, which costs only that.
fn sync_folder(path: &Path) {
    if cfg!(unix)
        && let Some(folder) = path.parent()
        && let Ok(folder) = File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
    {
        let _ = folder.sync_all();
    }
}

/// Writes the file `path` whole or not at all.
///
/// ```
/// use std::io::Write;
/// let folder = std::env::temp_dir().join(format!("zellige-doc-{}", std::process::id()));
/// zellige_engine::files::create_dir(&folder)?;
/// zellige_engine::files::atomic_write(folder.join("a.csv"), |out| writeln!(out, "x,y"))?;
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), zellige_engine::error::Error>(())
/// ```
pub fn atomic_write(path: impl AsRef<Path>, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
    let mut pending = Pending::create(path)?;
    write(pending.out()).map_err(|e| Error::file("write", pending.path(), e))?;
    pending.commit()
}

/// Creates a folder and those above it; it may exist already.
pub fn create_dir(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    std::fs::create_dir_all(path).map_err(|e| Error::file("create", path, e))
}

/// Creates a folder and proves that files can be written into it, so that a long run does not find out at its end.
pub fn writable_dir(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    create_dir(path)?;
    // Dropped without a commit: the probe is removed again.
    Pending::create(path.join("probe")).map(drop).map_err(|e| match e {
        Error::File { source, .. } => Error::file("write into", path, source),
        other => other,
    })
}

/// Reads a text file of at most `limit` bytes; `format` names the format in errors.
pub fn read_text(path: impl AsRef<Path>, format: &'static str, limit: u64) -> Result<String> {
    let path = path.as_ref();
    let failed = |e| Error::file("read", path, e);
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(failed(io::Error::new(io::ErrorKind::IsADirectory, "this is a folder, not a file")));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(Error::format(path, format, format!("it is longer than {limit} bytes")));
    }
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        let line = e.as_bytes()[..at].split(|b| *b == b'\n').count();
        Error::format(path, format, format!("byte {at} in line {line} is not UTF-8 text"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn replaces_the_file_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        for text in ["first", "second"] {
            atomic_write(&path, |out| out.write_all(text.as_bytes())).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(names(folder.path()), ["a.txt"]);
    }

    #[test]
    fn an_error_or_a_panic_keeps_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        atomic_write(&path, |out| out.write_all(b"old")).unwrap();
        let failed = atomic_write(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        let error = failed.unwrap_err();
        assert!(error.to_string().starts_with("cannot write `"), "{error}");
        assert!(error.hint().unwrap().contains("free some space"));
        let panicked = std::panic::catch_unwind(|| {
            atomic_write(&path, |out| {
                out.write_all(b"half")?;
                panic!("in the middle of a write")
            })
        });
        assert!(panicked.is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a.txt"]);
    }

    #[test]
    fn bad_places_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no/such/a.txt");
        assert!(matches!(atomic_write(&missing, |_| Ok(())), Err(Error::File { path, .. }) if path == missing));
        assert!(matches!(atomic_write("..", |_| Ok(())), Err(Error::File { .. })));
        // A folder in the way of the rename.
        std::fs::create_dir(folder.path().join("b")).unwrap();
        assert!(matches!(atomic_write(folder.path().join("b"), |_| Ok(())), Err(Error::File { action: "rename", .. })));
        // A file in the way of a folder.
        std::fs::write(folder.path().join("c"), "").unwrap();
        assert!(matches!(create_dir(folder.path().join("c/d")), Err(Error::File { action: "create", .. })));
        assert!(writable_dir(folder.path().join("c")).is_err());
        writable_dir(folder.path().join("e/f")).unwrap();
        assert_eq!(names(&folder.path().join("e/f")), [""; 0]);
        assert_eq!(names(folder.path()), ["b", "c", "e"]);
    }

    #[test]
    fn text_is_read_with_its_limits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        std::fs::write(&path, "x = 1").unwrap();
        assert_eq!(read_text(&path, "TOML", 5).unwrap(), "x = 1");
        assert!(read_text(&path, "TOML", 4).unwrap_err().to_string().contains("longer than 4 bytes"));
        std::fs::write(&path, b"x = 1\ny = \xff").unwrap();
        assert!(read_text(&path, "TOML", 99).unwrap_err().to_string().contains("byte 10 in line 2"));
        assert!(read_text(folder.path(), "TOML", 99).unwrap_err().to_string().contains("this is a folder"));
        assert!(read_text(folder.path().join("b"), "TOML", 99).unwrap_err().hint().is_some());
    }
}
