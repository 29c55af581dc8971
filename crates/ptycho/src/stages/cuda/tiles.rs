//! Tiles of lines for the transforms of `lines.cu`: radices, lines and threads of a block for each axis of a frame.

use zellige_engine::cuda::{Extent, Kernel, Launch, Properties};

/// The largest prime in a radix.
const PRIME: usize = 13;
/// Threads of a block for rows and for columns, about; and of doubles.
///
/// Small blocks keep a multiprocessor busy (200 x 512 x 512 on an H100, rows by 64 for 256: 1.57 to 1.50 ms).
/// Narrow tiles of columns are read in small pieces (by 128 for 256: 3 % slower).
const THREADS: [usize; 2] = [64, 256];
const THREADS_OF_DOUBLES: [usize; 2] = [32, 64];
/// Bytes of shared memory of a block, so that a multiprocessor holds several.
const ROOM: usize = 72 << 10;
/// Bytes of shared memory that a block may take beside that, at most.
const STATIC: u32 = 2 << 10;
/// Columns of a tile at least: four values are the least that memory is read by.
const COLUMNS: usize = 4;

/// Transforms of the lines along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lines {
    precision: Precision,
    /// Radices of the passes; the last is 1 where two do.
    pub(super) radices: [usize; 3],
    /// Lines of a block.
    pub(super) count: u32,
    pub(super) threads: u32,
}

/// Transforms of rows and of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tiles {
    pub(super) rows: Lines,
    pub(super) columns: Lines,
    width: u32,
}

/// Size of numbers, and what follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Precision {
    /// Registers that a number takes.
    words: usize,
}

impl Precision {
    pub(super) fn of(double: bool) -> Self {
        Self { words: if double { 2 } else { 1 } }
    }

    /// The largest radix of a pass, which is held in a thread's registers.
    fn radix(self) -> usize {
        32 / self.words
    }

    /// Bytes of a complex value.
    fn value(self) -> usize {
        8 * self.words
    }
}

/// Radices of at most `largest` whose product is `n`, the largest of them as small as can be.
fn radices(n: usize, largest: usize) -> Option<[usize; 3]> {
    let smooth = |n: usize| (1..=n).filter(|p| n.is_multiple_of(*p) && *p > 1 && (2..*p).all(|q| !p.is_multiple_of(q))).all(|p| p <= PRIME);
    let sound = |r: &usize| *r <= largest && smooth(*r);
    let divisors = |n: usize| (1..=largest.min(n)).filter(move |d| n.is_multiple_of(*d)).filter(sound).collect::<Vec<_>>();
    let two = divisors(n).into_iter().map(|a| [a, n / a, 1]).filter(|[a, b, _]| a >= b);
    let three = divisors(n)
        .into_iter()
        .flat_map(|a| divisors(n / a).into_iter().map(move |b| [a, b, n / a / b]))
        .filter(|[a, b, c]| a >= b && b >= c);
    let best = |all: &mut dyn Iterator<Item = [usize; 3]>| all.filter(|r| r.iter().all(sound)).min_by_key(|r| (r[0], r[1]));
    best(&mut two.into_iter()).or_else(|| best(&mut three.into_iter()))
}

/// Values of a line in shared memory, with the odd pitches of lines.cu: there, and back with the radices the other way round as
/// columns.cu does.
fn line_values([a, b, d]: [usize; 3]) -> usize {
    (a * ((b * d) | 1)).max(b * (a | 1))
}

impl Lines {
    fn of(n: usize, precision: Precision, least: usize, about: usize, shared: usize) -> Option<Self> {
        let radices = radices(n, precision.radix())?;
        let room = |lines: usize| lines * precision.value() * line_values(radices);
        let widest = radices[0];
        let (few, many) = (n / widest, n / radices.iter().copied().filter(|r| *r > 1).min().unwrap_or(1));
        let lines = [32, 16, 8, 4, 2].into_iter().take_while(|lines| *lines >= least);
        let lines = lines.into_iter().find(|lines| *lines * few <= about && room(*lines) <= ROOM).unwrap_or(least);
        // A round of every pass where they are of like length.
        let threads = lines * if lines * many <= 2 * about && many <= 2 * few { many } else { few };
        let threads = threads.next_multiple_of(32);
        (room(lines) <= shared && threads <= 1024).then_some(Self { precision, radices, count: lines as u32, threads: threads as u32 })
    }

    /// Bytes of shared memory of a block.
    fn shared(&self) -> u32 {
        self.count * (self.precision.value() * line_values(self.radices)) as u32
    }

    /// Blocks that a multiprocessor is to hold: the registers of the values of the widest pass, and some. Of doubles a few are
    /// better put into memory than one block fewer held (500 x 128 x 128 on an H200: 354 to 334 us).
    fn blocks(&self) -> u32 {
        let (words, widest) = (self.precision.words as u32, self.radices[0] as u32);
        let more = if words > 1 { 36 } else { 48 };
        (65536 / ((2 * words * widest + more) * self.threads)).max(1)
    }

    /// A launch of this many tiles.
    pub(super) fn launch<'a>(&self, kernel: &'a Kernel, grid: impl Into<Extent>) -> Launch<'a> {
        kernel.launch(grid, self.threads).shared(self.shared()).early()
    }
}

impl Tiles {
    /// Tiles for frames whose edges have small factors, where a block may take `shared` bytes.
    pub(super) fn of([rows, columns]: [usize; 2], precision: Precision, shared: u32) -> Option<Self> {
        let shared = shared.saturating_sub(STATIC) as usize;
        let [along, across] = if precision.words > 1 { THREADS_OF_DOUBLES } else { THREADS };
        Some(Self {
            rows: Lines::of(columns, precision, 1, along, shared)?,
            columns: Lines::of(rows, precision, COLUMNS, across, shared)?,
            width: columns as u32,
        })
    }

    /// Returns true if all of a frame's columns can go in one kernel: two passes of one round, and blocks that the device holds at
    /// once. A multiprocessor has as much shared memory as a block may take, and the registers that `COLUMN_BLOCKS` is based on.
    pub(super) fn join(&self, device: &Properties) -> bool {
        let Lines { radices: [a, b, d], count, threads, .. } = self.columns;
        let held = self.columns.blocks().min(2048 / threads).min(device.shared_per_block / (self.columns.shared() + STATIC));
        d == 1 && count * a.max(b) as u32 <= threads && held * device.multiprocessors >= self.across()
    }

    /// Tiles of columns of a frame.
    pub(super) fn across(&self) -> u32 {
        self.width.div_ceil(self.columns.count)
    }

    /// The constants of lines.cu and tiles.cu.
    pub(super) fn defines(&self) -> Vec<(&'static str, u32)> {
        let ([xa, xb, xd], [ya, yb, yd]) = (self.rows.radices, self.columns.radices);
        let radices = [("XA", xa), ("XB", xb), ("XD", xd), ("YA", ya), ("YB", yb), ("YD", yd)];
        let mut all = radices.map(|(name, radix)| (name, radix as u32)).to_vec();
        all.extend([("ROWS", self.rows.count), ("ROW_THREADS", self.rows.threads), ("ROW_BLOCKS", self.rows.blocks())]);
        all.extend([("COLUMNS", self.columns.count), ("COLUMN_THREADS", self.columns.threads), ("COLUMN_BLOCKS", self.columns.blocks())]);
        all
    }
}

#[cfg(test)]
mod tests;
