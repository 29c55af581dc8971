//! Devices: the CPU with a number of threads, and NVIDIA GPUs; how one is chosen and what it can do.

mod cpu;
mod inventory;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;
use std::time::Duration;

pub use self::cpu::Cpu;
pub use self::inventory::{DeviceInfo, Inventory, list};
use crate::cuda::{self, Cuda};
use crate::error::{Error, Problem, Result};
use crate::times::{self, Phase};

/// A device that work can be put on.
#[derive(Debug, Clone)]
pub enum Device {
    /// The CPU.
    Cpu(Cpu),
    /// A GPU.
    Cuda(Cuda),
}

/// Requested device: `auto`, `cpu`, `cuda`, `cuda:N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceSpec {
    /// The fastest that works.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// GPU number N, the fastest one where none is given.
    Cuda(Option<usize>),
}

impl FromStr for DeviceSpec {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(None)),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|n| n.parse().ok())
                .map(|n| Self::Cuda(Some(n)))
                .ok_or_else(|| format!("`{text}` is not a device (allowed: auto, cpu, cuda, cuda:N)")),
        }
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => write!(f, "auto"),
            Self::Cpu => write!(f, "cpu"),
            Self::Cuda(None) => write!(f, "cuda"),
            Self::Cuda(Some(n)) => write!(f, "cuda:{n}"),
        }
    }
}

impl DeviceSpec {
    /// Picks the request that applies: the command line before `ZELLIGE_DEVICE` before the input file before `auto`.
    pub fn choose(command_line: Option<Self>, file: Option<Self>) -> Result<Self> {
        if let Some(spec) = command_line {
            return Ok(spec);
        }
        match std::env::var("ZELLIGE_DEVICE") {
            Ok(text) if !text.is_empty() => text.parse().map_err(|message: String| {
                Error::input("environment variable ZELLIGE_DEVICE", Problem::new("", message).hint("`zellige devices` lists what there is"))
            }),
            _ => Ok(file.unwrap_or_default()),
        }
    }
}

/// Bytes of host memory free at this moment, where that can be told.
pub fn host_memory_free() -> Option<u64> {
    cpu::memory_free()
}

/// Cores of each of `processes` processes on this host: those that this one is bound to, or an even share of all.
pub fn cores_of(processes: usize) -> usize {
    let (own, all) = cpu::cores();
    if own < all { own } else { (all / processes.max(1)).max(1) }
}

/// Peak host memory of this process in bytes, where the system reports it.
pub fn host_memory_peak() -> Option<u64> {
    cpu::peak()
}

/// Bytes of host memory that this process can have at most: the machine's, or the limit set on its group.
pub fn host_memory() -> u64 {
    cpu::memory()
}

/// Refuses what this process can never have of the host's memory, before anything of it is asked for: `what` says what the `bytes`
/// are for.
pub fn host_must_hold(bytes: u64, what: impl Into<String>) -> Result<()> {
    holds("the host", cpu::memory(), bytes, what)
}

fn holds(device: &str, memory: u64, bytes: u64, what: impl Into<String>) -> Result<()> {
    if bytes <= memory {
        return Ok(());
    }
    Err(Error::TooLarge { device: device.to_owned(), what: what.into(), requested: bytes, memory })
}

impl Device {
    /// Opens what `spec` asks for; `threads` is for the CPU, 0 takes every core. With the device come the reasons,
    /// a line each, for which faster ones were passed over, with the command that fixes it.
    ///
    /// A device that was asked for by name and does not work is an error, never replaced by another.
    pub fn open(spec: &DeviceSpec, threads: usize) -> Result<(Self, Vec<String>)> {
        times::within(Phase::Loading, || Self::find(spec, threads))
    }

    fn find(spec: &DeviceSpec, threads: usize) -> Result<(Self, Vec<String>)> {
        let (cuda, notes) = match spec {
            DeviceSpec::Cpu => return Ok((Self::Cpu(Cpu::new(threads)?), Vec::new())),
            DeviceSpec::Cuda(Some(ordinal)) => (usable(*ordinal)?, Vec::new()),
            DeviceSpec::Cuda(None) => fastest()?,
            DeviceSpec::Auto => match fastest() {
                Ok(found) => found,
                Err(error) => {
                    let note = nvidia_here().then(|| format!("no GPU is used: {}", one_line(&error)));
                    return Ok((Self::Cpu(Cpu::new(threads)?), note.into_iter().collect()));
                }
            },
        };
        cuda.keep()?;
        Ok((Self::Cuda(cuda), notes))
    }

    /// The model, for example `AMD EPYC 9654 96-Core Processor` or `NVIDIA H200`.
    pub fn name(&self) -> &str {
        match self {
            Self::Cpu(_) => cpu::name(),
            Self::Cuda(cuda) => cuda.name(),
        }
    }

    /// Device as [`DeviceSpec`] spells it: `cpu`, `cuda:0`.
    pub fn id(&self) -> String {
        match self {
            Self::Cpu(_) => "cpu".into(),
            Self::Cuda(cuda) => format!("cuda:{}", cuda.ordinal()),
        }
    }

    /// Threads of the CPU; 1 for a GPU, which one thread feeds.
    pub fn threads(&self) -> usize {
        match self {
            Self::Cpu(cpu) => cpu.threads(),
            Self::Cuda(_) => 1,
        }
    }

    /// Bytes of memory that this process can have at most.
    pub fn memory(&self) -> u64 {
        match self {
            Self::Cpu(_) => cpu::memory(),
            Self::Cuda(cuda) => cuda.memory(),
        }
    }

    /// Refuses what this process can never have of this device's memory, before anything of it is asked for: `what` says what the
    /// `bytes` are for.
    pub fn must_hold(&self, bytes: u64, what: impl Into<String>) -> Result<()> {
        holds(self.name(), self.memory(), bytes, what)
    }

    /// Bytes of memory free at this moment, where that can be told.
    pub fn memory_free(&self) -> Option<u64> {
        match self {
            Self::Cpu(_) => cpu::memory_free(),
            Self::Cuda(cuda) => cuda.memory_free(),
        }
    }

    /// [`Device::bandwidth`] to compare a run with whose steps took `wall`: none where the measurement would take longer than a
    /// tenth of that, or more of the host's memory than the run had.
    pub fn bandwidth_of_run(&self, wall: Duration) -> Result<Option<f64>> {
        match self {
            Self::Cuda(_) if wall < ON_GPU => Ok(None),
            Self::Cpu(_) if wall < cpu::COPIES || !cpu::copies_fit() => Ok(None),
            _ => self.bandwidth().map(Some),
        }
    }

    /// Copy bandwidth in bytes/s, bytes read plus bytes written, measured the first time in a process (some tenths of a second;
    /// longer where the last-level cache is large, since the arrays must be larger).
    ///
    /// On the CPU each thread copies its part of an array much larger than the last-level cache. The lines that a
    /// plain store fetches before it overwrites them (write-allocate) are not counted; where the system's `memcpy`
    /// does without them, so much the better for the figure. On a GPU it is a copy of 1 GB by the driver.
    pub fn bandwidth(&self) -> Result<f64> {
        static MEASURED: Mutex<BTreeMap<String, f64>> = Mutex::new(BTreeMap::new());
        // Held while measuring: two measurements at once would share the bandwidth between them.
        let mut measured = MEASURED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let key = format!("{} {}", self.id(), self.threads());
        if let Some(known) = measured.get(&key) {
            return Ok(*known);
        }
        let value = match self {
            Self::Cpu(cpu) => cpu.measure_copy(),
            Self::Cuda(cuda) => cuda.bandwidth()?,
        };
        measured.insert(key, value);
        Ok(value)
    }
}

/// Ten times what measuring a GPU's bandwidth takes, two arrays of a gigabyte made and copied.
const ON_GPU: Duration = Duration::from_secs(1);

/// GPU number `ordinal`, if kernels can be compiled for it or lie in a pack.
fn usable(ordinal: usize) -> Result<Cuda> {
    let cuda = Cuda::look_at(ordinal)?;
    if cuda::kernel_pack().is_none() {
        cuda::compiler()?;
    }
    let (major, minor) = cuda.properties().capability;
    if (major, minor) < (7, 5) {
        return Err(Error::Device {
            device: format!("cuda:{ordinal}"),
            message: format!("{} has compute capability {major}.{minor}; 7.5 or more is needed", cuda.name()),
            hint: None,
        });
    }
    Ok(cuda)
}

/// Returns true if the machine has an NVIDIA GPU, with or without a driver, or has a driver.
fn nvidia_here() -> bool {
    let Ok(devices) = std::fs::read_dir("/sys/bus/pci/devices") else { return cuda::library::driver().usable() };
    let holds = |folder: &std::path::Path, file: &str, begin: &str| {
        std::fs::read_to_string(folder.join(file)).is_ok_and(|text| text.starts_with(begin))
    };
    // Display controllers have class 03; others of the maker are sound and bridges.
    let gpu = |folder: &std::path::Path| holds(folder, "vendor", "0x10de") && holds(folder, "class", "0x03");
    cuda::library::driver().usable() || devices.flatten().any(|entry| gpu(&entry.path()))
}

/// The GPU with the most multiprocessors among those that work, and why the others do not.
fn fastest() -> Result<(Cuda, Vec<String>)> {
    let (mut best, mut notes, mut first) = (None::<Cuda>, Vec::new(), None);
    for ordinal in 0..Cuda::count()? {
        match usable(ordinal) {
            Ok(cuda) => {
                let rank = |c: &Cuda| (c.properties().multiprocessors, c.memory());
                if best.as_ref().is_none_or(|b| rank(&cuda) > rank(b)) {
                    best = Some(cuda);
                }
            }
            Err(error) => {
                notes.push(format!("cuda:{ordinal} is not used: {}", one_line(&error)));
                first.get_or_insert(error);
            }
        }
    }
    match (best, first) {
        (Some(best), _) => Ok((best, notes)),
        (None, Some(error)) => Err(error),
        (None, None) => Err(Error::Device {
            device: "cuda".into(),
            message: "the driver shows no GPU".into(),
            hint: Some("`nvidia-smi` lists them; CUDA_VISIBLE_DEVICES may hide some".into()),
        }),
    }
}

/// Error and hint in one line.
fn one_line(error: &Error) -> String {
    let message = match error {
        Error::Device { message, .. } => message.clone(),
        other => other.to_string().replace('\n', " "),
    };
    error.hint().map_or_else(|| message.clone(), |hint| format!("{message}; fix: {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_are_read_and_written() {
        for (text, spec) in [
            ("auto", DeviceSpec::Auto),
            ("cpu", DeviceSpec::Cpu),
            ("cuda", DeviceSpec::Cuda(None)),
            ("cuda:12", DeviceSpec::Cuda(Some(12))),
        ] {
            assert_eq!(text.parse::<DeviceSpec>(), Ok(spec));
            assert_eq!(spec.to_string(), text);
        }
        for text in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "CPU", "cuda:99999999999999999999"] {
            assert!(text.parse::<DeviceSpec>().unwrap_err().contains("allowed"), "{text}");
        }
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        assert_eq!(DeviceSpec::choose(Some(DeviceSpec::Cpu), Some(DeviceSpec::Auto)).unwrap(), DeviceSpec::Cpu);
    }

    #[test]
    fn the_cpu_opens_with_the_threads_asked_for() {
        let (device, notes) = Device::open(&DeviceSpec::Cpu, 2).unwrap();
        assert!(notes.is_empty());
        assert_eq!((device.threads(), device.id().as_str()), (2, "cpu"));
        assert!(!device.name().is_empty());
        assert!(device.memory() > 1 << 26);
        assert!(device.memory_free().unwrap() <= device.memory());
    }

    #[test]
    fn what_is_larger_than_the_memory_is_refused_with_both_numbers() {
        let (device, _) = Device::open(&DeviceSpec::Cpu, 1).unwrap();
        let all = device.memory();
        device.must_hold(all, "everything").unwrap();
        host_must_hold(all, "everything").unwrap();
        let error = device.must_hold(all + 1, "one byte more").unwrap_err();
        let Error::TooLarge { requested, memory, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*requested, *memory, error.exit_code()), (all + 1, all, 4));
        let error = host_must_hold(u64::MAX, "a mistake").unwrap_err().to_string();
        assert!(error.starts_with("out of memory on the host: 16777216.00 TiB asked for a mistake, "), "{error}");
    }

    #[test]
    fn auto_always_finds_something_and_says_why_it_is_not_a_gpu_where_there_is_one() {
        let (device, notes) = Device::open(&DeviceSpec::Auto, 1).unwrap();
        if let Device::Cpu(_) = device {
            assert_eq!(notes.len(), usize::from(nvidia_here()), "{notes:?}");
            assert!(notes.iter().all(|n| n.starts_with("no GPU is used: ") && !n.contains('\n')), "{notes:?}");
        }
    }

    #[test]
    fn a_gpu_asked_for_by_name_is_never_replaced() {
        assert!(matches!(Device::open(&DeviceSpec::Cuda(Some(4096)), 1), Err(Error::Device { .. })));
    }

    #[test]
    fn a_short_run_is_not_compared_with_a_bandwidth() {
        let (device, _) = Device::open(&DeviceSpec::Cpu, 1).unwrap();
        assert_eq!(device.bandwidth_of_run(Duration::from_millis(100)).unwrap(), None);
    }

    #[test]
    fn bandwidth_is_measured_once() {
        let (device, _) = Device::open(&DeviceSpec::Cpu, 1).unwrap();
        let first = device.bandwidth().unwrap();
        // Between a slow single-board computer and far beyond any core.
        assert!((2e8..1e12).contains(&first), "{first}");
        assert_eq!(device.bandwidth().unwrap(), first);
    }

    #[test]
    #[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
    fn the_gpu_copies_faster_than_any_bus_of_a_cpu() {
        let Some(cuda) = crate::testing::gpu() else { return };
        let device = Device::Cuda(cuda);
        // The slowest GPU of capability 7.5 moves about 100 GB/s.
        assert!((5e10..2e13).contains(&device.bandwidth().unwrap()), "{:?}", device.bandwidth());
    }
}
