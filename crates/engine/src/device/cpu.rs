//! The CPU: a pool of threads, and what the system reports about it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::parallel::{chunks, chunks_mut, each, with_alone};
use crate::real::Isa;

/// The CPU, with a pool of threads. Clones share the pool.
#[derive(Debug, Clone)]
pub struct Cpu {
    /// Pool of threads; `None` where there is one thread: that is the one which enters, and nobody has to be woken.
    pool: Option<Arc<rayon::ThreadPool>>,
}

impl Cpu {
    /// A pool of `threads` threads; 0 takes every core.
    pub fn new(threads: usize) -> Result<Self> {
        if threads == 1 {
            return Ok(Self { pool: None });
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("zellige-{i}"))
            .build()
            .map_err(|e| Error::Device { device: "cpu".into(), message: e.to_string(), hint: Some("use fewer `--threads`".into()) })?;
        Ok(Self { pool: (pool.current_num_threads() > 1).then(|| Arc::new(pool)) })
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.pool.as_ref().map_or(1, |pool| pool.current_num_threads())
    }

    /// Runs `work` in the pool: loops of [`crate::parallel`] inside use its threads.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let (mut work, mut result) = (Some(work), None);
        self.enter(&mut || result = work.take().map(|work| work()));
        result.expect("the pool does what it is given before it returns")
    }

    /// Runs `work` in the pool. One closure type for all kinds of work, so that the machinery behind it is compiled once, here.
    fn enter(&self, work: &mut (dyn FnMut() + Send)) {
        match &self.pool {
            // Another pool's thread that waits here does that pool's work meanwhile, which is not alone.
            Some(pool) => with_alone(false, || pool.install(work)),
            None => with_alone(true, work),
        }
    }

    /// Copies an array much larger than the last-level cache, each thread its part; bytes/s read plus written, the best
    /// of five.
    pub(super) fn measure_copy(&self) -> f64 {
        let bytes = copied() as usize;
        let n = bytes / size_of::<u64>();
        let part = n.div_ceil(self.threads());
        self.install(|| {
            let mut from = vec![0u64; n];
            let mut to = vec![0u64; n];
            // Written by the threads that copy: the pages exist and lie near them.
            each((chunks_mut(&mut from, part), chunks_mut(&mut to, part)), |_, (f, t)| {
                f.fill(1);
                t.fill(2);
            });
            let mut best = f64::INFINITY;
            for _ in 0..5 {
                let begin = Instant::now();
                each((chunks_mut(&mut to, part), chunks(&from, part)), |_, (t, f)| t.copy_from_slice(f));
                best = best.min(begin.elapsed().as_secs_f64());
                // The copy is used, so it is made.
                std::hint::black_box(&mut to);
            }
            2.0 * bytes as f64 / best
        })
    }
}

/// Wall time of steps from which a measurement of the copy takes a tenth or less.
pub(super) const COPIES: Duration = Duration::from_secs(3);

/// Bytes of each of the two arrays of a measurement.
pub(super) fn copied() -> u64 {
    let limit = memory_free().unwrap_or(1 << 30) / 8;
    (4 * last_level_cache()).clamp(128 << 20, 512 << 20).min(limit).max(1 << 20)
}

/// Peak memory of this process in bytes, where the system reports it.
pub(super) fn peak() -> Option<u64> {
    status("VmHWM")
}

/// Returns true unless the arrays of a measurement would be the peak of this process, beside what it still holds.
pub(super) fn copies_fit() -> bool {
    peak().zip(status("VmRSS")).is_none_or(|(peak, held)| held + 2 * copied() <= peak)
}

/// A size that the system reports of this process.
fn status(key: &str) -> Option<u64> {
    size(value(&std::fs::read_to_string("/proc/self/status").ok()?, key)?)
}

/// The model's name.
pub(super) fn name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        value(&text, "model name").unwrap_or(std::env::consts::ARCH).to_owned()
    })
}

/// The widest vector instructions that are used.
pub(super) fn vectors() -> &'static str {
    match Isa::best() {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => "AVX-512",
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => "AVX2",
        Isa::Baseline if cfg!(target_arch = "x86_64") => "SSE2",
        Isa::Baseline => "base instructions",
    }
}

/// Bytes of memory: the machine's, or the least of the limits set on this process's groups and on its addresses (`ulimit -v`).
pub(super) fn memory() -> u64 {
    let machine = meminfo("MemTotal").unwrap_or(u64::MAX);
    let groups = groups().filter_map(|folder| group_value(&folder, "memory.max")).min();
    let addresses = std::fs::read_to_string("/proc/self/limits").ok().and_then(|t| address_limit(&t));
    [groups, addresses].into_iter().flatten().fold(machine, u64::min)
}

/// Bytes of memory that can be had without swapping.
pub(super) fn memory_free() -> Option<u64> {
    let machine = meminfo("MemAvailable")?;
    let left = |folder: PathBuf| Some(group_value(&folder, "memory.max")?.saturating_sub(group_value(&folder, "memory.current")?));
    Some(groups().filter_map(left).fold(machine, u64::min))
}

/// Folders of this process's control group and of those around it: a batch system sets its limit on any of them.
fn groups() -> impl Iterator<Item = PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|l| l.strip_prefix("0::/")).unwrap_or_default().to_owned();
    // In a container the path may be that outside of it, which is not there.
    let paths: Vec<PathBuf> = Path::new("/sys/fs/cgroup").join(own).ancestors().map(Path::to_owned).collect();
    paths.into_iter().filter(|p| p.starts_with("/sys/fs/cgroup"))
}

/// Bytes in a file of a control group; none where there is no such file or no limit.
fn group_value(folder: &Path, name: &str) -> Option<u64> {
    std::fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
}

/// The soft limit on addresses in `/proc/self/limits`, if there is one.
fn address_limit(limits: &str) -> Option<u64> {
    limits.lines().find_map(|l| l.strip_prefix("Max address space"))?.split_whitespace().next()?.parse().ok()
}

fn meminfo(key: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    size(value(&text, key)?)
}

/// Bytes of the largest cache that `cpu0` sees, 32 MiB where the system does not tell.
fn last_level_cache() -> u64 {
    let sizes = (0..8).filter_map(|i| std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{i}/size")).ok());
    sizes.filter_map(|t| size(&t)).max().unwrap_or(32 << 20)
}

/// The value behind `key` and a colon.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let line = text.lines().find(|l| l.split(':').next().is_some_and(|k| k.trim() == key))?;
    line.split_once(':').map(|(_, v)| v.trim()).filter(|v| !v.is_empty())
}

/// `32768K`, `16 M` or `1000 kB` in bytes.
fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let scale = match text[digits..].trim() {
        "" => 1,
        "K" | "kB" => 1 << 10,
        "M" | "MB" => 1 << 20,
        "G" | "GB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(scale)
}

/// Cores that this process may use, and those of the machine.
pub(super) fn cores() -> (usize, usize) {
    let own = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    #[cfg(unix)]
    // SAFETY: asks the system for a number.
    let all = usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(own);
    #[cfg(not(unix))]
    let all = own;
    (own, all.max(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_on_addresses_are_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max address space         4194304000           unlimited            bytes\n";
        assert_eq!(address_limit(limits), Some(4_194_304_000));
        assert_eq!(address_limit(&limits.replace("4194304000", "unlimited ")), None);
        assert!(groups().any(|folder| folder == Path::new("/sys/fs/cgroup")));
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!(size("32768K\n"), Some(32 << 20));
        assert_eq!(size("  1000 kB"), Some(1_024_000));
        assert_eq!(size("17"), Some(17));
        assert_eq!(size("3 parsecs"), None);
        assert_eq!(size(""), None);
    }

    #[test]
    fn values_are_found_by_their_whole_key() {
        let text = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: Some CPU: fast\nempty:\n";
        assert_eq!(value(text, "model name"), Some("Some CPU: fast"));
        assert_eq!(value(text, "model"), Some("17"));
        assert_eq!(value(text, "empty"), None);
        assert_eq!(value(text, "absent"), None);
    }
}
