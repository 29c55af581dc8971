//! Memory that cannot be had ends a program with a message and exit code 4, where the standard library would abort.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that the run under way was planned with; 0 while there is none.
static PLANNED: AtomicU64 = AtomicU64::new(0);

/// The part of a run that this process is; nothing where it is the whole.
static PART: OnceLock<String> = OnceLock::new();

/// Sets the name of the part that this process is, for the message of a failed allocation.
pub fn set_part(name: String) {
    PART.set(name).ok();
}

/// Sets the memory that the plan forecast, for the message of a failed allocation.
pub fn set_planned(bytes: u64) {
    PLANNED.store(bytes, Ordering::Relaxed);
}

/// Bytes from which an array has pages of its own, which go back to the system with it.
const APART: i32 = 1 << 20;

/// Returns the memory of large arrays to the system once they are freed, where the C library is glibc. By itself it puts arrays of
/// up to 32 MiB into its heaps as soon as one of that size was freed, and gives back a heap's end alone: a process keeps tens of
/// megabytes that nobody counts. What is smaller stays in a heap, of which 2 MiB are kept: loops that make and free it (buffers of
/// files, blocks of sums) would ask the system for its pages each time.
pub fn unmap_large_arrays() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: both are numbers that the library has keys for, and no other thread runs yet or needs to know.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, APART);
        // Each thread has such a heap.
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * APART);
    }
}

/// The system's allocator, for `#[global_allocator]` of a program: what it refuses ends the process.
#[derive(Debug)]
pub struct ExitingAllocator;

// SAFETY: all is passed on to the system's allocator as it came; of its answers only null is not passed back.
unsafe impl GlobalAlloc for ExitingAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        on_large_pages(non_null_or_exit(unsafe { System.alloc(layout) }, layout.size()), layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        on_large_pages(non_null_or_exit(unsafe { System.alloc_zeroed(layout) }, layout.size()), layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        non_null_or_exit(unsafe { System.realloc(at, layout, size) }, size)
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Bytes from which on an array is worth large pages.
const LARGE: usize = 4 << 20;

/// Asks for large pages under a large array that has just been made: one fault where there were 512.
#[inline]
fn on_large_pages(at: *mut u8, bytes: usize) -> *mut u8 {
    #[cfg(target_os = "linux")]
    if bytes >= LARGE {
        const PAGE: usize = 4096;
        let skip = at.align_offset(PAGE).min(bytes);
        // SAFETY: the range is inside the array and begins with a page. It is advice, which changes no content; one that is not
        // taken changes nothing.
        unsafe { libc::madvise(at.add(skip).cast(), (bytes - skip) / PAGE * PAGE, libc::MADV_HUGEPAGE) };
    }
    at
}

#[inline]
fn non_null_or_exit(at: *mut u8, bytes: usize) -> *mut u8 {
    if at.is_null() {
        exit_out_of_memory(bytes);
    }
    at
}

/// Text in a buffer of fixed size, written without allocation.
struct FixedText {
    bytes: [u8; 512],
    length: usize,
}

impl Write for FixedText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let taken = text.len().min(self.bytes.len() - self.length);
        self.bytes[self.length..][..taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.length += taken;
        Ok(())
    }
}

fn message(bytes: usize, planned: u64) -> FixedText {
    let mut line = FixedText { bytes: [0; 512], length: 0 };
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    // Neither can fail: the text is cut off where it is too long.
    let _ = write!(line, "error: out of memory on the host: {:.1} MiB more asked for", mib(bytes as f64));
    if let Some(part) = PART.get() {
        let _ = write!(line, " by {part}");
    }
    if planned > 0 {
        let _ = write!(line, " in a run planned with {:.1} MiB", mib(planned as f64));
    }
    let _ = line.write_str(
        "\n\nhint: ask for less (`--dry-run` shows what a run needs), close other programs, or raise the limit on this process (`ulimit -v`); \
         checkpoints saved before are intact\n",
    );
    line
}

#[cold]
fn exit_out_of_memory(bytes: usize) -> ! {
    let line = message(bytes, PLANNED.load(Ordering::Relaxed));
    // SAFETY: the bytes are there; then the process ends at once: what would run at an ordinary end could ask for memory.
    unsafe {
        libc::write(2, line.bytes.as_ptr().cast(), line.length as _);
        libc::_exit(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_name_both_figures_and_fit() {
        let text = |bytes, planned| {
            let line = message(bytes, planned);
            assert!(line.length < line.bytes.len());
            String::from_utf8(line.bytes[..line.length].to_vec()).unwrap()
        };
        assert!(text(3 << 19, 0).starts_with("error: out of memory on the host: 1.5 MiB more asked for\n\nhint: "));
        let both = text(usize::MAX, u64::MAX);
        assert!(both.contains("17592186044416.0 MiB more asked for in a run planned with 17592186044416.0 MiB\n"), "{both}");
        assert!(both.ends_with("are intact\n"), "{both}");
    }
}
