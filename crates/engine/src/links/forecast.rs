//! Forecast of a run in several parts: the time of a step is the work of the part that has most of it, what all parts do alike, and
//! messages, each with a time on its way and a rate.

use serde::Serialize;

/// Division of the work of a step among parts, and what the part with most of it sends, by the solver's model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Division {
    /// The cut, in words: `rows of cells 0 to 63, 64 to 127`.
    pub cut: String,
    /// Work of the part that has most over the mean, 1 or more.
    pub imbalance: f64,
    /// Share of the work of a step that is not divided: all parts do it alike.
    pub repeated: f64,
    /// Memory of the part that needs most, bytes.
    pub memory: u64,
    /// Times in a step that a part waits for messages of others, one after the other.
    pub rounds: f64,
    /// Messages that a part sends in a step at most.
    pub messages: f64,
    /// Bytes that a part sends in a step at most.
    pub bytes: f64,
}

/// Speed of the links between two parts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LinkSpeed {
    /// Kind of link.
    pub name: &'static str,
    /// Seconds that a small message is on its way to a part that is waiting for it.
    pub latency: f64,
    /// Bytes a second of one part.
    pub rate: f64,
}

impl LinkSpeed {
    /// Threads of a process: measured on two cores of an EPYC (docs/performance/scale-out.md).
    pub const THREADS: Self = Self { name: "threads", latency: 1e-6, rate: 3e10 };
    /// Processes of one host over MPI, measured likewise.
    pub const PROCESSES: Self = Self { name: "processes of a host", latency: 1.5e-6, rate: 2e9 };
    /// GPUs of a host that read from each other: two exchanges and the broadcasts of the run loop took 39 us on two H200s and 54 on
    /// four, and strips of 8 MB went at 300 GB/s.
    pub const GPUS: Self = Self { name: "GPUs of a host", latency: 9e-6, rate: 3e11 };
    /// Parts on one GPU, whose messages are copies in its memory.
    pub const ONE_GPU: Self = Self { name: "parts on one GPU", latency: 20e-6, rate: 1e12 };
    /// Hosts of a cluster with 100 Gbit/s a part: an assumption, not measured here.
    pub const HOSTS: Self = Self { name: "hosts of a cluster (assumed)", latency: 20e-6, rate: 1e10 };
}

/// Broadcasts of the run loop in a step, of `log2` of the parts rounds each: whether to stop, and whether results are due.
const BROADCASTS: f64 = 2.0;

/// Times of a step, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Forecast {
    /// Work of one part that had all.
    pub alone: f64,
    /// Work of the part that has most.
    pub work: f64,
    /// Messages of that part.
    pub exchange: f64,
    /// Parts.
    pub parts: usize,
}

impl Forecast {
    /// Of a step that takes one part `alone` seconds.
    pub fn new(division: &Division, parts: usize, alone: f64, link: LinkSpeed) -> Self {
        let Division { imbalance, repeated, rounds, bytes, .. } = division;
        let work = alone * (repeated + (1.0 - repeated) * imbalance / parts as f64);
        let of_loop = if parts > 1 { BROADCASTS * (parts as f64).log2().ceil() } else { 0.0 };
        Self { alone, work, exchange: (rounds + of_loop) * link.latency + bytes / link.rate, parts }
    }

    /// Time of a step.
    pub fn step(&self) -> f64 {
        self.work + self.exchange
    }

    /// Speed over that of one part.
    pub fn speedup(&self) -> f64 {
        self.alone / self.step()
    }

    /// Speed over that of as many times one part, 1 at best.
    pub fn efficiency(&self) -> f64 {
        self.speedup() / self.parts as f64
    }
}

/// Names some ranges of a line, the first ones and the last where there are many.
pub fn ranges(what: &str, ranges: impl ExactSizeIterator<Item = std::ops::Range<usize>>) -> String {
    const SHOWN: usize = 4;
    let count = ranges.len();
    let of = |r: std::ops::Range<usize>| if r.is_empty() { "none".to_owned() } else { format!("{} to {}", r.start, r.end - 1) };
    let mut shown: Vec<String> = Vec::new();
    for (k, range) in ranges.enumerate() {
        if k < SHOWN || k + 1 == count {
            shown.push(of(range));
        } else if k == SHOWN {
            shown.push("..".into());
        }
    }
    format!("{what} {}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_work_and_messages() {
        let division = Division { cut: String::new(), imbalance: 1.1, repeated: 0.0, memory: 0, rounds: 3.0, messages: 6.0, bytes: 3e6 };
        let link = LinkSpeed { name: "wire", latency: 1e-5, rate: 3e9 };
        let four = Forecast::new(&division, 4, 0.4, link);
        assert!((four.work - 0.11).abs() < 1e-12 && (four.exchange - (7.0 * 1e-5 + 1e-3)).abs() < 1e-12, "{four:?}");
        assert!((four.efficiency() - 0.1 / (0.11 + 1.07e-3)).abs() < 1e-12);
        // Work that all do alike bounds the speed however many there are.
        let amdahl = Division { repeated: 0.1, imbalance: 1.0, rounds: 0.0, bytes: 0.0, ..division };
        let many = Forecast::new(&amdahl, 1 << 20, 1.0, LinkSpeed { latency: 0.0, ..link });
        assert!((many.speedup() - 10.0).abs() < 1e-3, "{many:?}");
    }

    #[test]
    fn many_ranges_are_cut_short() {
        assert_eq!(ranges("rows", [0..4, 4..9].into_iter()), "rows 0 to 3, 4 to 8");
        let many: Vec<_> = (0..9).map(|k| k..k + 1).collect();
        assert_eq!(ranges("rows", many.into_iter()), "rows 0 to 0, 1 to 1, 2 to 2, 3 to 3, .., 8 to 8");
    }
}
