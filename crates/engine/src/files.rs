//! Files that are either whole or not there: everything is written to a temporary name in the same folder, flushed to
//! the disk and renamed. An error, a panic or a full disk leaves what stood there before.
//!
//! Several files that belong together can be prepared on several threads ([`prepare`]) and be given their names one after the other
//! ([`give_names`]), for which their folder is flushed once.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{DirEntry, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::error::{Error, Result};

/// Large enough that a write call costs little beside the bytes.
const BUFFER: usize = 1 << 18;

/// Temporary files of this process so far.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// Number of the next temporary file of this process. Numbers begin anywhere, so that no other process, on this host or another,
/// has ever given the same name: a part of a run that finds a file by its temporary name has found that of the first part.
fn serial() -> u64 {
    static FIRST: OnceLock<u64> = OnceLock::new();
    let first = FIRST.get_or_init(|| RandomState::new().build_hasher().finish() >> 8);
    first + SERIAL.fetch_add(1, Ordering::Relaxed)
}

/// A file being written. It takes its name at [`Pending::commit`]; dropped before that, it is removed.
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
        // `clear_temporaries` knows them by this.
        hidden.push(format!(".{}-{}.tmp", std::process::id(), serial()));
        let temporary = path.with_file_name(hidden);
        let file = File::create(&temporary).map_err(|e| Error::file("write", &path, e))?;
        Ok(Self { out: Some(BufWriter::with_capacity(BUFFER, file)), temporary, path })
    }

    /// The name that the file will take.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name until then, for libraries that open their files themselves.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Writer of the file.
    pub fn out(&mut self) -> &mut BufWriter<File> {
        self.out.as_mut().expect("a pending file is open until it is committed, which consumes it")
    }

    /// Flushes to the disk and gives the file its name, or leaves that to whoever [prepares](prepare) it.
    pub fn commit(mut self) -> Result<()> {
        let written = (|| {
            let out = self.out();
            out.flush()?;
            out.get_ref().sync_all()
        })();
        written.map_err(|e| Error::file("write", &self.path, e))?;
        let ready = CompleteFile { temporary: std::mem::take(&mut self.temporary), path: std::mem::take(&mut self.path) };
        self.close();
        let ready = PREPARED.with_borrow_mut(|prepared| match prepared {
            None => Some(ready),
            Some(files) => {
                files.push(ready);
                None
            }
        });
        ready.map_or(Ok(()), |ready| give_names(vec![ready]).1)
    }

    /// Closes without writing buffered data: the file is either complete or about to be removed.
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

thread_local! {
    /// Files of this thread that are whole and whose names are given later, while they are prepared.
    static PREPARED: RefCell<Option<Vec<CompleteFile>>> = const { RefCell::new(None) };
}

/// A file that is whole and on the disk, under its temporary name still; dropped, it is removed.
#[derive(Debug)]
pub struct CompleteFile {
    /// Empty once it has its name.
    temporary: PathBuf,
    path: PathBuf,
}

impl CompleteFile {
    /// The name that the file will take.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name until then.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }
}

impl Drop for CompleteFile {
    fn drop(&mut self) {
        if !self.temporary.as_os_str().is_empty() {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// Does `work`, and holds back the names of the files that it writes on this thread: they are whole, and wait for [`give_names`].
///
/// # Errors
/// That of `work`; nothing of what it wrote is left.
pub fn prepare(work: impl FnOnce() -> Result<()>) -> Result<Vec<CompleteFile>> {
    struct RestorePrepared(Option<Vec<CompleteFile>>);
    impl Drop for RestorePrepared {
        fn drop(&mut self) {
            PREPARED.set(self.0.take());
        }
    }
    let _before = RestorePrepared(PREPARED.replace(Some(Vec::new())));
    work()?;
    Ok(PREPARED.take().unwrap_or_default())
}

/// Gives files their names in this order up to the first that cannot have it, and flushes each folder once. With the error come
/// those that have their names.
pub fn give_names(files: Vec<CompleteFile>) -> (Vec<PathBuf>, Result<()>) {
    let (mut named, mut result) = (Vec::with_capacity(files.len()), Ok(()));
    for mut file in files {
        if let Err(error) = std::fs::rename(&file.temporary, &file.path) {
            result = Err(Error::file("rename", &file.path, error));
            break;
        }
        file.temporary = PathBuf::new();
        named.push(std::mem::take(&mut file.path));
    }
    for folder in named.iter().filter_map(|path| path.parent()).collect::<BTreeSet<_>>() {
        sync_folder(folder);
    }
    (named, result)
}

/// Makes renames themselves survive a power cut. Some file systems refuse to sync a folder, which costs only that.
fn sync_folder(folder: &Path) {
    if cfg!(unix)
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

/// Removes what killed processes left half-written in a folder: files with names as [`Pending`] gives them. The caller is `alone`
/// if it holds the folder's lock; without, files stay whose process may be at work here. What cannot be removed stays.
pub fn clear_temporaries(folder: &Path, alone: bool) {
    // A number is soon another process's, above all in containers: one that began after the last write did not make the file.
    let is_later = |id, entry: &DirEntry| {
        let written = entry.metadata().and_then(|m| m.modified()).ok();
        alone && written.zip(beginning(id)).is_some_and(|(written, begun)| begun > written + SURE)
    };
    let is_left = |id, entry: &DirEntry| id == std::process::id() || !is_alive(id) || is_later(id, entry);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if maker(&entry.file_name()).is_some_and(|id| is_left(id, &entry)) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The process that made a temporary file, from its name `.NAME.PID-N.tmp`.
fn maker(name: &OsStr) -> Option<u32> {
    let (name, ids) = name.to_str()?.strip_prefix('.')?.strip_suffix(".tmp")?.rsplit_once('.')?;
    let (id, serial) = ids.split_once('-')?;
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten();
    number(serial).filter(|_| !name.is_empty())?;
    u32::try_from(number(id)?).ok()
}

/// Accuracy of [`beginning`], and more.
const SURE: Duration = Duration::from_secs(3);

/// Time at which the process of this number began, where the system tells it.
fn beginning(id: u32) -> Option<SystemTime> {
    // proc(5): numbers after the name, which may hold anything, in ticks since the machine began.
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let machine = std::fs::read_to_string("/proc/stat").ok()?;
    let began: u64 = machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    // SAFETY: asks for a number of the system.
    let a_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|n| *n > 0)?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(began + ticks / a_second))
}

/// Returns true if there is a process of this number on this machine.
fn is_alive(id: u32) -> bool {
    #[cfg(unix)]
    // SAFETY: signal 0 is none: only whether it could be sent is looked at.
    return i32::try_from(id)
        .is_ok_and(|id| unsafe { libc::kill(id, 0) } == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM));
    #[cfg(not(unix))]
    return id == std::process::id();
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

/// Hashes of files by the names that an input has for them.
pub type Fingerprints = BTreeMap<String, String>;

/// Bytes of a file that are hashed at most, a second's work.
const HASHED: u64 = 1 << 30;
/// Bytes in a row where a file is longer than that.
const PIECE: u64 = 1 << 20;

/// Hashes of the files `names`, relative to `folder` or not: of length and content, which of a file of more than 1 GiB is taken in
/// pieces spread evenly from its first byte to its last.
pub fn fingerprints(folder: &Path, names: impl IntoIterator<Item = String>) -> Result<Fingerprints> {
    let fingerprint = |name: String| {
        let path = folder.join(&name);
        let hash = hash(&path, HASHED).map_err(|e| Error::file("read", &path, e))?;
        Ok((name, hash))
    };
    names.into_iter().map(fingerprint).collect()
}

fn hash(path: &Path, most: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&length.to_le_bytes());
    if length <= most {
        io::copy(&mut file, &mut hasher)?;
    } else {
        let pieces = most / PIECE;
        for i in 0..pieces {
            file.seek(io::SeekFrom::Start((i as f64 / (pieces - 1) as f64 * (length - PIECE) as f64) as u64))?;
            io::copy(&mut (&mut file).take(PIECE), &mut hasher)?;
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_of_the_whole_content_or_of_pieces_from_end_to_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let of = |bytes: &[u8], most: u64| {
            std::fs::write(&path, bytes).unwrap();
            hash(&path, most).unwrap()
        };
        let mut bytes = vec![7; 5 << 20];
        let (whole, pieces) = (of(&bytes, HASHED), of(&bytes, 3 * PIECE));
        assert_eq!(of(&bytes, HASHED), whole);
        // Between two pieces, in the middle one, at the end, and of another length.
        for (at, seen) in [(3 << 19, false), (5 << 19, true), (bytes.len() - 1, true)] {
            bytes[at] = 8;
            assert_ne!(of(&bytes, HASHED), whole);
            assert_eq!(of(&bytes, 3 * PIECE) != pieces, seen, "{at}");
            bytes[at] = 7;
        }
        bytes.push(7);
        assert!(of(&bytes, HASHED) != whole && of(&bytes, 3 * PIECE) != pieces);
        let all = fingerprints(folder.path(), ["a".to_owned()]).unwrap();
        assert_eq!(all["a"], of(&bytes, HASHED));
        assert!(fingerprints(folder.path(), ["b".to_owned()]).is_err());
    }

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
    fn prepared_files_are_named_later_and_in_order_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str| atomic_write(path(name), |out| write!(out, "{name}"));
        let prepared = prepare(|| {
            write("a")?;
            write("b")?;
            // Files that another thread writes meanwhile are not affected.
            std::thread::scope(|scope| scope.spawn(|| write("elsewhere")).join()).unwrap()
        })
        .unwrap();
        let whole = names(folder.path());
        assert!(whole.len() == 3 && whole[0].starts_with(".a.") && whole[1].starts_with(".b.") && whole[2] == "elsewhere", "{whole:?}");
        // A folder in the way of `b`: what stands before it is there, what comes after is not.
        std::fs::create_dir(path("b")).unwrap();
        let (named, error) = give_names(prepared.into_iter().chain(prepare(|| write("c")).unwrap()).collect());
        assert_eq!(named, [path("a")]);
        assert!(matches!(error, Err(Error::File { action: "rename", .. })));
        assert_eq!(names(folder.path()), ["a", "b", "elsewhere"]);
        // A failure takes what was prepared with it, and names are given at once again.
        let failed = prepare(|| write("d").and_then(|()| write("none/e")));
        assert!(failed.is_err());
        write("f").unwrap();
        assert_eq!(names(folder.path()), ["a", "b", "elsewhere", "f"]);
    }

    #[test]
    fn what_killed_processes_left_is_cleared_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        // 1 is always there; no process has a number as large as that.
        let alive = ".u.npy.1-0.tmp";
        let stay = [".u.npy.4194305-0", "u.npy.4194305-0.tmp", ".4194305-0.tmp", ".u.npy.4194305.tmp", ".u.4194305-x.tmp", "a.tmp"];
        for name in stay.iter().chain(&[alive, ".u.npy.4194305-0.tmp", ".latest.zck.4194305-12.tmp"]) {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let mut expected = stay.map(str::to_owned).to_vec();
        expected.sort();
        // Its maker may still write it, which a lock does not tell of one that has none.
        for alone in [false, true] {
            clear_temporaries(folder.path(), alone);
            assert!(names(folder.path()).len() == expected.len() + 1 && folder.path().join(alive).exists());
        }
        // The process of that number began later: it is another one.
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        File::options().write(true).open(folder.path().join(alive)).unwrap().set_modified(old).unwrap();
        clear_temporaries(folder.path(), false);
        assert!(folder.path().join(alive).exists());
        clear_temporaries(folder.path(), true);
        assert_eq!(names(folder.path()), expected);
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
