//! Histogram on a GPU.

use crate::cuda::{Buffer, Cuda, Program, Recipe};
use crate::error::Result;

const THREADS: u32 = 512;
/// Keys a block at most, so that its counts fit 32 bits.
const KEYS_PER_BLOCK: u64 = 1 << 20;

/// The program of all histograms.
pub fn recipe() -> Recipe {
    Recipe::new(
        "histogram",
        &[include_str!("histogram.cu")],
        &[],
        &["in_shared<false>", "in_shared<true>", "in_global<false>", "in_global<true>"],
    )
}

/// Counts keys in buffers of one GPU.
#[derive(Debug)]
pub struct Histogram {
    cuda: Cuda,
    program: Program,
}

impl Histogram {
    /// Compiles the program.
    pub fn new(cuda: &Cuda) -> Result<Self> {
        Ok(Self { cuda: cuda.clone(), program: recipe().build(cuda)? })
    }

    /// The most bins that are counted in shared memory: two blocks have to fit on a multiprocessor.
    pub fn shared_bins(&self, weighted: bool) -> usize {
        let p = self.cuda.properties();
        let room = p.shared_per_block.min(p.shared_per_multiprocessor / 2 - 1024);
        (room / if weighted { 8 } else { 4 }) as usize - 1
    }

    /// Puts the histogram of `keys[..n]` on the stream: `counts[..bins]`, and in `counts[bins]` all other keys.
    ///
    /// # Panics
    /// If `n` is beyond a buffer, `counts` shorter than `bins + 1`, or `bins` not below 2^32.
    pub fn count(
        &mut self,
        keys: &Buffer<u32>,
        weights: Option<&Buffer<u32>>,
        n: usize,
        bins: usize,
        counts: &mut Buffer<u64>,
    ) -> Result<()> {
        assert!(n <= keys.len() && weights.is_none_or(|w| n <= w.len()), "{n} keys, more than a buffer holds");
        assert!(bins < counts.len() && u32::try_from(bins).is_ok(), "{bins} bins and the rest in a buffer of {}", counts.len());
        self.cuda.fill_zero(counts)?;
        if n == 0 {
            return Ok(());
        }
        let weighted = weights.is_some();
        let shared = bins <= self.shared_bins(weighted);
        let kernel = self.program.kernel(match (shared, weighted) {
            (true, false) => "in_shared<false>",
            (true, true) => "in_shared<true>",
            (false, false) => "in_global<false>",
            (false, true) => "in_global<true>",
        })?;
        let bytes = if shared { (bins as u32 + 1) * if weighted { 8 } else { 4 } } else { 0 };
        // As many blocks as run at once: each pays for clearing and adding its counts.
        let fit = kernel.blocks_per_multiprocessor(THREADS, bytes)?.max(1) * self.cuda.properties().multiprocessors;
        let blocks = (n as u64).div_ceil(u64::from(THREADS)).min(u64::from(fit)).max((n as u64).div_ceil(KEYS_PER_BLOCK));
        let launch = kernel.launch(blocks as u32, THREADS).shared(bytes).arg(keys);
        // SAFETY: (const u32*, const u32*, u64, u32, u64*) as declared; n, bins and shared memory were checked above;
        // without weights the kernel does not read that pointer.
        unsafe { launch.arg(weights.unwrap_or(keys)).arg(n as u64).arg(bins as u32).arg(counts).run() }
    }
}
