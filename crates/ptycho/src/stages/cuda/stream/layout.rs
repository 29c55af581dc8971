//! Division of a scan into blocks of frames, and which of them stay on the device: all that is known before anything is allocated.

use zellige_engine::error::{Error, Result};

/// Blocks that are on their way at once: one comes, one is computed, one goes.
pub(crate) const SLOTS: usize = 3;
/// Bytes of a block that copies run at full rate with; larger ones only take memory.
const BLOCK: u64 = 64 << 20;
/// Frames of a block at most: rows of a grid.
pub(crate) const FRAMES: usize = 60_000;
/// Part of the memory that blocks on their way may take, so that the rest can stay.
const PART: u64 = 4;

/// Bytes that a run takes on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceMemory {
    /// Memory independent of the frames: probes, objects, gradients, lists of views.
    pub fixed: u64,
    /// A frame as it is kept: counts or moduli.
    pub raw: u64,
    /// The waves of a frame as they are kept; 0 where none are.
    pub wave: u64,
    /// Room for a frame that is being computed.
    pub work: u64,
    /// Frames that a block must hold: those of the largest batch.
    pub batch: usize,
}

impl DeviceMemory {
    /// A frame as it is kept, waves included.
    pub fn kept(&self) -> u64 {
        self.raw + self.wave
    }
}

/// Blocks of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Frames.
    pub views: usize,
    /// Frames of a block; the last one may have fewer.
    pub block: usize,
    /// Blocks that are not on the device.
    pub streamed: usize,
}

impl Layout {
    /// Puts as many blocks on the device as fit into `allowance` bytes, with `sums` bytes besides.
    pub fn new(need: &DeviceMemory, views: usize, allowance: u64, sums: impl Fn(usize) -> u64) -> Result<Self> {
        let views = views.max(1);
        // All at once where that fits, in blocks that copies and kernels like.
        let ring = SLOTS as u64 * need.kept() + need.work;
        let left = allowance.saturating_sub(need.fixed);
        let most = (BLOCK / need.kept()).max(1).min(left / PART / ring).min(views.min(FRAMES) as u64) as usize;
        let batch = need.batch.clamp(1, views);
        let short = |block: usize| {
            let requested = need.fixed + sums(block) + block as u64 * ring;
            let what = match batch {
                1 => "probe, object and some frames".to_owned(),
                n => format!("probe, object and a batch of {n} frames (`batch` of [[ptycho.engine]]; a tenth of the frames in LSQML)"),
            };
            Error::OutOfMemory { device: "the device memory allowed".into(), what, requested, free: Some(allowance) }
        };
        if most == 0 && batch == 1 {
            return Err(short(1));
        }
        // Of equal length: the last block is not a short one. A batch is not taken apart.
        let block = views.div_ceil(views.div_ceil(most.max(batch))).max(batch);
        let count = views.div_ceil(block);
        let sums = sums(block);
        let all = need.fixed + sums + views as u64 * need.kept() + block as u64 * (need.kept() + need.work);
        if all <= allowance {
            return Ok(Self { views, block, streamed: 0 });
        }
        let rest = allowance.checked_sub(need.fixed + sums + block as u64 * ring).ok_or_else(|| short(block))?;
        let held = (rest / (block as u64 * need.kept())).min(count as u64 - 1) as usize;
        Ok(Self { views, block, streamed: count - held })
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.views.div_ceil(self.block)
    }

    /// Frames of block `b`.
    pub fn range(&self, b: usize) -> std::ops::Range<usize> {
        b * self.block..((b + 1) * self.block).min(self.views)
    }

    /// First frames of all blocks, and the number of frames.
    pub fn bounds(&self) -> Vec<usize> {
        (0..self.blocks()).map(|b| b * self.block).chain([self.views]).collect()
    }

    /// Number of block `b` among the streamed blocks; `None` where it stays on the device. Streamed blocks lie between the others,
    /// so that there is something to compute while one is copied.
    pub fn streamed(&self, b: usize) -> Option<usize> {
        let (count, streamed) = (self.blocks(), self.streamed);
        let before = |b: usize| b * streamed / count;
        (before(b + 1) > before(b)).then(|| before(b))
    }

    /// Blocks in flight at once; at least one, for frames that are picked from several blocks.
    pub fn slots(&self) -> usize {
        SLOTS.min(self.streamed).max(1)
    }

    /// Frames that are not on the device.
    pub fn streamed_views(&self) -> usize {
        (0..self.blocks()).filter(|b| self.streamed(*b).is_some()).map(|b| self.range(b).len()).sum()
    }

    /// Bytes that come to the device and go from it in an iteration in which kept frames are taken `[up, down]` times: raw frames
    /// and waves.
    pub fn traffic(&self, need: &DeviceMemory, raw: u64, waves: [u64; 2]) -> [u64; 2] {
        let views = self.streamed_views() as u64;
        [views * (raw * need.raw + waves[0] * need.wave), views * waves[1] * need.wave]
    }

    /// Bytes on the device.
    pub fn memory(&self, need: &DeviceMemory, sums: u64) -> u64 {
        let held = (self.views - self.streamed_views()) as u64;
        let block = self.block as u64;
        need.fixed + sums + held * need.kept() + block * (self.slots() as u64 * need.kept() + need.work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 128 x 128, one mode: counts, waves, moduli and exit waves.
    const NEED: DeviceMemory = DeviceMemory { fixed: 10 << 20, raw: 2 << 14, wave: 8 << 14, work: 12 << 14, batch: 1 };

    #[test]
    fn what_fits_stays() {
        let all = Layout::new(&NEED, 1000, 1 << 34, |_| 0).unwrap();
        assert_eq!((all.streamed, all.slots()), (0, 1));
        assert!((0..all.blocks()).all(|b| all.streamed(b).is_none()));
        assert_eq!(all.traffic(&NEED, 1, [2, 1]), [0, 0]);
    }

    #[test]
    fn blocks_hold_every_view_once_and_the_memory_is_kept_to() {
        for views in [1, 7, 1000, 54_321] {
            for allowance in [11 << 20, 14 << 20, 40 << 20, 90 << 20, 1 << 30] {
                let sums = |block: usize| 1000 * block as u64;
                let Ok(layout) = Layout::new(&NEED, views, allowance, sums) else {
                    assert!(allowance < NEED.fixed + 4 * (SLOTS as u64 * NEED.kept() + NEED.work), "{allowance}");
                    continue;
                };
                let all: Vec<usize> = (0..layout.blocks()).flat_map(|b| layout.range(b)).collect();
                assert_eq!(all, (0..views).collect::<Vec<_>>());
                assert!(layout.memory(&NEED, sums(layout.block)) <= allowance, "{layout:?}");
                let numbers: Vec<usize> = (0..layout.blocks()).filter_map(|b| layout.streamed(b)).collect();
                assert_eq!(numbers, (0..layout.streamed).collect::<Vec<_>>());
                // As much stays as fits: another block does not.
                if layout.streamed > 1 {
                    let more = layout.block as u64 * NEED.kept();
                    assert!(layout.memory(&NEED, sums(layout.block)) + 2 * more > allowance, "{layout:?}");
                }
            }
        }
    }

    #[test]
    fn a_batch_fits_a_block_or_is_refused() {
        let ring = SLOTS as u64 * NEED.kept() + NEED.work;
        for (views, batch) in [(1000, 100), (61, 7), (10, 6), (5, 9), (7, 7)] {
            let need = DeviceMemory { batch, ..NEED };
            let held = batch.min(views);
            let least = NEED.fixed + held as u64 * ring;
            for more in [0, 1 << 20, 1 << 26] {
                let layout = Layout::new(&need, views, least + more, |_| 0).unwrap();
                assert!(layout.block >= held && layout.memory(&need, 0) <= least + more, "{layout:?}");
                let all: Vec<usize> = (0..layout.blocks()).flat_map(|b| layout.range(b)).collect();
                assert_eq!(all, (0..views).collect::<Vec<_>>());
            }
            // All of them at once may take less than blocks on their way.
            if views > 2 * held {
                let error = Layout::new(&need, views, least - 1, |_| 0).unwrap_err().to_string();
                assert!(error.contains(&format!("a batch of {held} frames")), "{error}");
            }
        }
    }

    #[test]
    fn too_little_is_refused_with_what_is_needed() {
        let error = Layout::new(&NEED, 1000, 10 << 20, |_| 0).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { requested, .. } if requested > 10 << 20), "{error}");
    }
}
