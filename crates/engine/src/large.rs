//! Arrays that may be larger than the memory: in a file without a name, mapped, so that the system keeps as much of them as fits.

use std::ops::{Deref, DerefMut};
use std::path::Path;

use bytemuck::Pod;

pub use self::piece::Piece;

use crate::error::Result;

/// Bytes from which on an array is worth large pages.
const LARGE: usize = 4 << 20;

/// `n` zeros that the system hands out when they are first touched, on large pages where it has them: one fault where there were
/// 512.
pub fn zeros<T: Pod>(n: usize) -> Vec<T> {
    let mut values = vec![T::zeroed(); n];
    #[cfg(target_os = "linux")]
    if size_of_val(&values[..]) >= LARGE {
        const PAGE: usize = 4096;
        let whole = bytemuck::cast_slice_mut::<T, u8>(&mut values);
        let skip = whole.as_ptr().align_offset(PAGE).min(whole.len());
        let pages = &mut whole[skip..];
        // SAFETY: the range is inside the array and begins with a page. It is advice, which changes no content; one that is not taken changes nothing.
        unsafe { libc::madvise(pages.as_mut_ptr().cast(), pages.len() / PAGE * PAGE, libc::MADV_HUGEPAGE) };
    }
    values
}

mod piece;

/// An array in memory that begins where a line of the cache begins: a register of 64 bytes is then never spread over two lines.
#[derive(Debug)]
pub struct Aligned<T> {
    /// Storage with up to one cache line to spare; never grown, so that it stays at its address.
    values: Vec<T>,
    start: usize,
    len: usize,
}

/// Bytes of a line.
const LINE: usize = 64;

impl<T: Pod> Aligned<T> {
    /// `n` zeros, which the system hands out when they are first touched.
    pub fn zeros(n: usize) -> Self {
        let values = vec![T::zeroed(); n + LINE / size_of::<T>().clamp(1, LINE)];
        // Of an odd size there may be no such place.
        let start = Some(values.as_ptr().align_offset(LINE)).filter(|start| *start <= values.len() - n).unwrap_or(0);
        Self { values, start, len: n }
    }

    /// Makes it `n` long; where that is not what it was, of zeros.
    pub fn need(&mut self, n: usize) {
        if self.len != n {
            *self = Self::zeros(n);
        }
    }
}

impl<T: Pod> Default for Aligned<T> {
    fn default() -> Self {
        Self { values: Vec::new(), start: 0, len: 0 }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.values[self.start..self.start + self.len]
    }
}

impl<T> DerefMut for Aligned<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values[self.start..self.start + self.len]
    }
}

/// An array in memory, or in a file that vanishes with it.
#[derive(Debug)]
pub enum Large<T> {
    /// Array in memory.
    Memory(Aligned<T>),
    /// Array in a mapped file.
    File(Mapping<T>),
}

impl<T: Pod> Default for Large<T> {
    fn default() -> Self {
        Self::Memory(Aligned::default())
    }
}

impl<T: Pod> Large<T> {
    /// `n` zeros, in a file in `folder` if there is one. The space on the disk is reserved at once: later there is no way to say
    /// that it is full.
    pub fn zeros(n: usize, folder: Option<&Path>) -> Result<Self> {
        match folder {
            Some(folder) if n > 0 => Ok(Self::File(Mapping::new(n, folder)?)),
            _ => Ok(Self::Memory(Aligned::zeros(n))),
        }
    }

    /// Copies `values` to where [`Large::zeros`] would put them.
    pub fn of(values: &[T], folder: Option<&Path>) -> Result<Self> {
        let mut large = Self::zeros(values.len(), folder)?;
        large.copy_from_slice(values);
        Ok(large)
    }

    /// Bytes of memory that only this array can have.
    pub fn held(&self) -> u64 {
        match self {
            Self::Memory(values) => size_of_val(&values[..]) as u64,
            Self::File(_) => 0,
        }
    }
}

impl<T: Pod> Deref for Large<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Memory(values) => values,
            Self::File(mapping) => mapping,
        }
    }
}

impl<T: Pod> DerefMut for Large<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Memory(values) => values,
            Self::File(mapping) => mapping,
        }
    }
}

pub use mapping::Mapping;

#[cfg(target_os = "linux")]
mod mapping {
    use std::fs::OpenOptions;
    use std::io;
    use std::ops::{Deref, DerefMut};
    use std::os::fd::AsRawFd;
    use std::path::Path;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU64, Ordering};

    use bytemuck::Pod;

    use crate::error::{Error, Result};

    static SERIAL: AtomicU64 = AtomicU64::new(0);

    /// Values of a mapped file that has no name any more.
    #[derive(Debug)]
    pub struct Mapping<T> {
        start: NonNull<T>,
        len: usize,
    }

    // SAFETY: the mapping belongs to this value alone: nobody else can open a file without a name.
    unsafe impl<T: Send> Send for Mapping<T> {}
    // SAFETY: shared access only reads.
    unsafe impl<T: Sync> Sync for Mapping<T> {}

    impl<T: Pod> Mapping<T> {
        pub(super) fn new(len: usize, folder: &Path) -> Result<Self> {
            let path = folder.join(format!(".zellige-{}-{}.scratch", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed)));
            let failed = |e: io::Error| Error::file("write", &path, e);
            let bytes = len.checked_mul(size_of::<T>()).and_then(|n| i64::try_from(n).ok());
            let bytes = bytes.ok_or_else(|| failed(io::Error::new(io::ErrorKind::FileTooLarge, "the array is too large for a file")))?;
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).map_err(failed)?;
            // Without a name from here on: whatever happens to this process, the room comes back.
            std::fs::remove_file(&path).map_err(failed)?;
            // SAFETY: the descriptor is open.
            match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes) } {
                0 => {}
                code => return Err(failed(io::Error::from_raw_os_error(code))),
            }
            let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
            // SAFETY: a new mapping of an open file of this length, which stays when the descriptor is closed.
            let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes as usize, access, kind, file.as_raw_fd(), 0) };
            if start == libc::MAP_FAILED {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::OutOfMemory {
                    let (device, what) = ("the host".into(), format!("an array in `{}`", folder.display()));
                    return Err(Error::OutOfMemory { device, what, requested: bytes as u64, free: None });
                }
                return Err(failed(error));
            }
            let start = NonNull::new(start.cast()).ok_or_else(|| failed(io::Error::other("a mapping at address 0")))?;
            Ok(Self { start, len })
        }
    }

    impl<T> Deref for Mapping<T> {
        type Target = [T];

        fn deref(&self) -> &[T] {
            // SAFETY: so many values were mapped, at the start of a page; zeros are values of plain data.
            unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
        }
    }

    impl<T> DerefMut for Mapping<T> {
        fn deref_mut(&mut self) -> &mut [T] {
            // SAFETY: as above, and borrowed uniquely.
            unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
        }
    }

    impl<T> Drop for Mapping<T> {
        fn drop(&mut self) {
            // SAFETY: mapped in `new` with this length, unmapped once.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.len * size_of::<T>()) };
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod mapping {
    use std::io;
    use std::ops::{Deref, DerefMut};
    use std::path::Path;

    use crate::error::{Error, Result};

    /// Array in memory: files are not mapped on this system.
    #[derive(Debug)]
    pub struct Mapping<T>(Vec<T>);

    impl<T> Mapping<T> {
        pub(super) fn new(_: usize, folder: &Path) -> Result<Self> {
            Err(Error::file("map", folder, io::Error::new(io::ErrorKind::Unsupported, "arrays in files need Linux")))
        }
    }

    impl<T> Deref for Mapping<T> {
        type Target = [T];

        fn deref(&self) -> &[T] {
            &self.0
        }
    }

    impl<T> DerefMut for Mapping<T> {
        fn deref_mut(&mut self) -> &mut [T] {
            &mut self.0
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn an_aligned_array_begins_at_a_line() {
        for n in [0, 1, 15, 100_000] {
            let mut array = Aligned::<f32>::zeros(n);
            assert!(array.len() == n && array.iter().all(|x| *x == 0.0));
            assert!(array.as_ptr().addr().is_multiple_of(64));
            array.fill(1.0);
            array.need(n);
            assert!(array.iter().all(|x| *x == 1.0), "what is long enough stays");
            array.need(n + 1);
            assert!(array.len() == n + 1 && array.iter().all(|x| *x == 0.0));
        }
        // No multiple of 3 bytes need be one of 64 from where the system begins.
        assert_eq!(Aligned::<[u8; 3]>::zeros(5).len(), 5);
    }

    #[test]
    fn an_array_in_a_file_is_an_array_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut large = Large::<f32>::zeros(100_000, Some(folder.path())).unwrap();
        assert_eq!((large.len(), large.held()), (100_000, 0));
        assert!(large.iter().all(|x| *x == 0.0));
        large.iter_mut().enumerate().for_each(|(i, x)| *x = i as f32);
        assert!(large.iter().enumerate().all(|(i, x)| *x == i as f32));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the file has no name");
        assert!(matches!(Large::<u8>::zeros(0, Some(folder.path())).unwrap(), Large::Memory(_)));
        let missing = folder.path().join("missing");
        assert!(Large::<u8>::zeros(1, Some(&missing)).is_err());
        // More than any file can have.
        assert!(Large::<u64>::zeros(usize::MAX / 8, Some(folder.path())).is_err());
    }
}
