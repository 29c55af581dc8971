//! Running sums on a GPU.

use super::{Integer, ScanKind};
use crate::cuda::{Address, Buffer, Cuda, Program, Recipe};
use crate::error::Result;

const THREADS: u32 = 256;
/// Odd, so that threads which read their items one after the other touch different banks of shared memory.
const ITEMS: u32 = 15;
const TILE: usize = (THREADS * ITEMS) as usize;

/// The program of all scans.
pub fn recipe() -> Recipe {
    let constants = [("THREADS".into(), THREADS.to_string()), ("ITEMS".into(), ITEMS.to_string())];
    let kernels = ["tile_sums", "scan_sums", "scan_tiles"].map(|k| [format!("{k}<u32>"), format!("{k}<u64>")]).concat();
    let names: Vec<&str> = kernels.iter().map(String::as_str).collect();
    Recipe::new("scan", &[include_str!("scan.cu")], &constants, &names)
}

/// Scans buffers of one GPU; holds the buffer of the sums of tiles.
#[derive(Debug)]
pub struct Scanner {
    program: Program,
    sums: Buffer<u64>,
}

impl Scanner {
    /// Compiles the program and allocates the buffers for scans of up to `longest` values.
    pub fn new(cuda: &Cuda, longest: usize) -> Result<Self> {
        let program = recipe().build(cuda)?;
        Ok(Self { program, sums: cuda.alloc_zeros(longest.div_ceil(TILE).max(1) + 1, "sums of tiles of scans")? })
    }

    /// Puts the scan of `x[..n]` into `out[..n]` on the stream. If `out` is longer, `out[n]` gets the total.
    ///
    /// # Panics
    /// If `n` is beyond a buffer or beyond the longest scan that this was made for.
    pub fn scan<T: Integer>(&mut self, kind: ScanKind, x: &Buffer<T>, out: &mut Buffer<T>, n: usize) -> Result<()> {
        assert!(n <= x.len() && n <= out.len(), "{n} values of buffers of {} and {}", x.len(), out.len());
        self.launch(kind, x.from(0), out.from(0), n, out.len() > n)
    }

    /// Puts the scan of `x[..n]` in place on the stream.
    ///
    /// # Panics
    /// As [`Scanner::scan`].
    pub fn scan_in_place<T: Integer>(&mut self, kind: ScanKind, x: &mut Buffer<T>, n: usize) -> Result<()> {
        assert!(n <= x.len(), "{n} values of a buffer of {}", x.len());
        self.launch(kind, x.from(0), x.from(0), n, false)
    }

    fn launch<T: Integer>(&mut self, kind: ScanKind, x: Address<T>, out: Address<T>, n: usize, behind: bool) -> Result<()> {
        assert!(n.div_ceil(TILE) < self.sums.len(), "{n} values, more than this scanner was made for");
        // Of nothing, one tile: it writes the total, 0.
        let tiles = n.div_ceil(TILE).max(1) as u32;
        if n == 0 && !behind {
            return Ok(());
        }
        let kernel = |name: &str| self.program.kernel(&format!("{name}<{}>", T::CUDA));
        let (first, second, third) = (kernel("tile_sums")?, kernel("scan_sums")?, kernel("scan_tiles")?);
        let inclusive = u32::from(kind == ScanKind::Inclusive);
        // SAFETY: arguments as declared; `sums` has room for `tiles` + 1 words of 8 bytes; x and out have n values, out
        // one more where `behind` says so.
        unsafe {
            first.launch(tiles, THREADS).arg(x).arg(n as u64).arg(&mut self.sums).run()?;
            second.launch(1, THREADS).arg(&mut self.sums).arg(tiles).run()?;
            third.launch(tiles, THREADS).arg(x).arg(out).arg(n as u64).arg(&self.sums).arg(inclusive).arg(u32::from(behind)).run()
        }
    }
}
