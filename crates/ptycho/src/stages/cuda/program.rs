//! Compile-time parameters of programs: shapes of frames and numbers of modes, and the processing of frames.

use std::fmt;

use zellige_engine::cuda::Properties;

use super::tiles::{Precision, Tiles};
use crate::model::{Model, Transfer};

/// Threads of a block that sums, and rows of a tile: 256 and 4 were the fastest of nine choices on an H200.
pub(crate) const TEAM: u32 = 256;
pub(super) const TILE_ROWS: usize = 4;
/// Columns of a tile: the lanes of a warp.
pub(super) const TILE_COLUMNS: usize = 32;
/// Blocks of it that a multiprocessor is to hold, where a number takes so many bytes: with several modes, fewer with more registers
/// for what is under way each (four modes of 256 x 256: 566 us for 691), and fewer of doubles.
pub(super) fn crowd(exits: usize, number: usize) -> u32 {
    match (exits, number) {
        (1, 8) => 3,
        (1, _) => 4,
        _ => 2,
    }
}

/// `PAIR` of probe_sums.cu: number of neighbouring pixels of a frame that a thread sums over. Of doubles one value is as much as a
/// thread loads at once (with [`crowd`], the overlap of 500 x 128 x 128 on an H200: 125 to 107 us).
pub(super) fn pair(frame: [usize; 2], number: usize) -> usize {
    if number == 4 && frame[1].is_multiple_of(2) { 2 } else { 1 }
}

/// Rows and columns of the frames of [`FrameProcessing::Clustered`], and values that a thread of theirs holds.
const CLUSTERED: [usize; 2] = [128, 128];
const CLUSTERED_VALUES: u32 = 16;
/// Bytes of what blocks have in shared memory besides values: `Shared` of clustered_frame.cu.
const CLUSTERED_SHARED: u32 = 16 * CLUSTERED[1] as u32 + 32 * 24 + 4 * 32;

/// Floats of a warp's part of the exchange.
const PART: u32 = 1056;

/// Processing of frames in the Fourier constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameProcessing {
    /// Processing in pieces around cuFFT.
    MultiPass,
    /// Processing in pieces, with transforms of the Fourier step by kernels of this program (`tiles.cu`).
    Tiled {
        /// All that happens to columns is one kernel (`columns.cu`).
        joined: bool,
    },
    /// Processing in pieces, with a Fourier step in one kernel, whose clusters of blocks hold frames of doubles in registers
    /// (`clustered.cu`).
    Clustered {
        /// Logarithm of the blocks of a cluster.
        cluster: u32,
    },
    /// Processing in registers.
    Fused {
        /// Logarithm of the blocks of a cluster that share a frame.
        cluster: u32,
        /// The next wave is copied to shared memory meanwhile.
        fetch: bool,
    },
}

/// Compile-time parameters of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelConfig {
    /// Rows and columns of the waves of a frame.
    pub frame: [usize; 2],
    /// Rows and columns of them that are counted as one pixel; other than one by one only in pieces.
    pub bin: [usize; 2],
    /// Modes of probe and object.
    pub modes: [usize; 2],
    /// Marks several probes.
    pub several: bool,
    /// Marks a near-field detector.
    pub near: bool,
    /// Sums of the object over views by atomic additions, in no fixed order; gathered in a fixed order otherwise.
    pub atomic: bool,
    /// Holds a frame in registers, in one launch, for engines that go from view to view with one mode, where possible. Recorded
    /// launches around cuFFT are faster, and used otherwise where that library is available.
    pub registers: bool,
    /// Marks sub-pixel shifts: views see the probe shifted, each its own; only in pieces to a near detector.
    pub shifted: bool,
    /// Marks double precision, in which frames go in pieces.
    pub double: bool,
    /// Processing of frames.
    pub processing: FrameProcessing,
}

impl KernelConfig {
    /// The kind for a model on a device, in single or double precision.
    pub fn of(model: &Model, device: &Properties, double: bool) -> Self {
        let config = Self {
            frame: model.frame,
            bin: model.bin,
            modes: model.modes,
            several: model.probes > 1,
            near: model.transfer != Transfer::Far,
            atomic: false,
            registers: false,
            shifted: model.subpixel,
            double,
            processing: FrameProcessing::MultiPass,
        };
        let hopper = device.capability.0 >= 9;
        let shared = |config: &Self| config.shared().max(if config.shifted { config.shifted_shared(true) } else { 0 });
        let fits = |config: &Self| shared(config) <= device.shared_per_block && device.capability.0 >= 8;
        let [rows, columns] = model.frame.map(|n| if n.is_power_of_two() { n.ilog2() } else { 0 });
        let config = match Tiles::of(config.frame, Precision::of(double), device.shared_per_block) {
            Some(tiles) if !config.near && !config.shifted => {
                let joined = config.exits() == 1 && config.bin == [1, 1] && tiles.join(device);
                Self { processing: FrameProcessing::Tiled { joined }, ..config }
            }
            _ => config,
        };
        let joined = config.processing == (FrameProcessing::Tiled { joined: true });
        let clustered = Self { processing: FrameProcessing::Clustered { cluster: 1 }, ..config };
        if double && hopper && joined && config.frame == CLUSTERED && fits(&clustered) {
            return clustered;
        }
        if double
            || model.bin != [1, 1]
            || (config.shifted && config.near)
            || !(5..=9).contains(&columns)
            || rows + columns < 10
            || rows + columns > 17
        {
            return config;
        }
        // Eight blocks of 256 threads, two a multiprocessor, for 256 x 256: one frame's barriers are waited for while another
        // computes.
        let cluster = if rows + columns == 16 { 3 } else { (rows + columns).saturating_sub(14) };
        if cluster > 0 && !hopper {
            return config;
        }
        let fetch = hopper && cluster == 0 && config.exits() == 1;
        let fused = [fetch, false].map(|fetch| Self { processing: FrameProcessing::Fused { cluster, fetch }, ..config });
        fused.into_iter().find(fits).unwrap_or(config)
    }

    /// Returns true if frames are held in registers.
    pub fn fused(&self) -> bool {
        matches!(self.processing, FrameProcessing::Fused { .. })
    }

    /// Bytes of a number.
    pub(super) fn number(&self) -> usize {
        if self.double { 8 } else { 4 }
    }

    /// Pixels of a frame as it is counted.
    pub(super) fn counted(&self) -> usize {
        self.frame[0] / self.bin[0] * (self.frame[1] / self.bin[1])
    }

    /// Blocks that share a frame in pieces: `PARTS` of multi_pass.cu. Four pixels a thread at least, and no more blocks than one
    /// of them has threads to add up what they found.
    pub(super) fn parts(&self) -> u32 {
        match (self.processing, self.tiles()) {
            (FrameProcessing::Tiled { joined: true }, Some(tiles)) => tiles.across(),
            _ => (self.counted() as u32).div_ceil(4 * TEAM).min(TEAM),
        }
    }

    /// Blocks that constrain a frame there: `CHANGES`.
    pub(super) fn changes(&self) -> u32 {
        self.tiles().map_or_else(|| self.parts(), |tiles| tiles.across() * self.exits() as u32)
    }

    /// Tiles of lines of this kind.
    pub(super) fn tiles(&self) -> Option<Tiles> {
        if matches!(self.processing, FrameProcessing::Tiled { .. }) {
            Tiles::of(self.frame, Precision::of(self.double), u32::MAX)
        } else {
            None
        }
    }

    /// Modes of an exit wave.
    pub fn exits(&self) -> usize {
        self.modes[0] * self.modes[1]
    }

    /// Logarithms: columns, rows, blocks, warps of a block, rows in a thread's registers.
    pub(super) fn bits(&self) -> [u32; 5] {
        let [rows, columns] = self.frame.map(usize::ilog2);
        let cluster = self.cluster();
        let register_rows = 10 - columns;
        [columns, rows, cluster, rows - register_rows - cluster, register_rows]
    }

    /// Logarithm of the blocks that share a frame.
    pub(super) fn cluster(&self) -> u32 {
        match self.processing {
            FrameProcessing::MultiPass | FrameProcessing::Tiled { .. } => 0,
            FrameProcessing::Clustered { cluster } | FrameProcessing::Fused { cluster, .. } => cluster,
        }
    }

    /// Threads of a block that has a frame, or its part of one.
    pub(super) fn threads(&self) -> u32 {
        32 << self.bits()[3]
    }

    /// Threads of a block of clustered.cu.
    pub(super) fn clustered_threads(&self) -> u32 {
        ((self.frame[0] * self.frame[1]) as u32 / CLUSTERED_VALUES) >> self.cluster()
    }

    /// Returns true if the last exchange has memory of its own: `WIDE` of dft.cu.
    fn wide(&self) -> bool {
        self.cluster() > 0 && self.exits() == 1
    }

    /// `FRAME_CONTEXT` of registers.cu.
    fn context(&self) -> u32 {
        let [_, _, cluster, warps, rows] = self.bits();
        let (blocks, warps) = (1 << cluster, 1 << warps);
        warps * PART * 4 + ((warps << rows) + warps) * 8 + warps * 8 + blocks * 8 + warps * blocks * 4 + 8
    }

    /// Bytes of shared memory of a block of `project`.
    pub(super) fn shared(&self) -> u32 {
        if let FrameProcessing::Clustered { .. } = self.processing {
            return CLUSTERED_SHARED + CLUSTERED_VALUES * 16 * self.clustered_threads();
        }
        let FrameProcessing::Fused { fetch, .. } = self.processing else { return 0 };
        let big = if fetch || self.wide() || self.exits() > 1 { 32 * self.threads() * 8 } else { 0 };
        big + self.context() + if self.shifted { self.ramps() } else { 0 }
    }

    /// Bytes of the ramps of a view: `RAMPS` of ramps.cu.
    fn ramps(&self) -> u32 {
        8 * (self.frame[0] + self.frame[1]) as u32
    }

    /// Shared memory of `gradient` and `line`, bytes.
    pub(super) fn likelihood_shared(&self) -> u32 {
        32 * self.threads() * 8 + self.context()
    }

    /// Shared memory of the kernels of shifted.cu, bytes; `sums`: of those of shifted_sums.cu.
    pub(super) fn shifted_shared(&self, sums: bool) -> u32 {
        self.context() + if sums { 32 * self.threads() * 8 + 2 * self.ramps() } else { self.ramps() }
    }

    /// Parts of sums over views of probes between pixels: in registers a block for most multiprocessors.
    ///
    /// In pieces they are few, since blocks share a frame.
    pub(super) fn shifted_parts(&self, probes: usize) -> usize {
        match self.processing {
            FrameProcessing::Fused { cluster, .. } => ((128 >> cluster) / (probes * self.modes[0])).max(8),
            _ => 8,
        }
    }

    /// Shared memory of `sequence`, bytes.
    pub(super) fn sequence_shared(&self) -> u32 {
        (1 + u32::from(self.wide() && !self.narrow())) * 32 * self.threads() * 8 + self.context()
    }

    /// Returns true if probe and a wide exchange do not fit into shared memory together.
    pub(super) fn narrow(&self) -> bool {
        2 * 32 * self.threads() * 8 + self.context() > 220 << 10
    }

    /// Configuration without a wave that is fetched ahead.
    pub(super) fn unfetched(self) -> Self {
        match self.processing {
            FrameProcessing::MultiPass | FrameProcessing::Tiled { .. } | FrameProcessing::Clustered { .. } => self,
            FrameProcessing::Fused { cluster, .. } => Self { processing: FrameProcessing::Fused { cluster, fetch: false }, ..self },
        }
    }

    /// The kind that goes from view to view where no waves are kept: a frame at a time is spread over as many multiprocessors as it
    /// can be, 64 threads each; measured on an H200 with 128 x 128 pixels: 31 us a frame on one, 24 on 2, 21 on 4, 18 on 8.
    pub(super) fn spread_out(self, device: &Properties) -> Self {
        let FrameProcessing::Fused { cluster, .. } = self.processing else { return self };
        if device.capability.0 < 9 {
            return Self { processing: FrameProcessing::Fused { cluster, fetch: false }, ..self };
        }
        let most = cluster + (self.threads() / 64).max(1).ilog2();
        Self { processing: FrameProcessing::Fused { cluster: most.clamp(cluster, 3), fetch: false }, ..self }
    }

    /// Position of value `i` of a wave (`pack` 2) or of the magnitudes (`pack` 4) at the detector in its frame.
    pub(super) fn order(&self, pack: usize) -> Option<Vec<u32>> {
        self.order_in(pack, self.near)
    }

    /// Positions as [`KernelConfig::order`], in real space, as `row_of` of frame.cu says, or where the transform leaves it.
    pub(super) fn order_in(&self, pack: usize, real: bool) -> Option<Vec<u32>> {
        let FrameProcessing::Fused { .. } = self.processing else { return None };
        let [columns, _, cluster, warps, register_rows] = self.bits();
        let register_columns = columns - 5;
        let (blocks, threads) = (1_usize << cluster, self.threads() as usize);
        let mut order = Vec::with_capacity(self.frame[0] * self.frame[1]);
        for block in 0..blocks {
            for group in 0..32 / pack {
                for thread in 0..threads {
                    for r in group * pack..(group + 1) * pack {
                        let (lane, warp) = (thread % 32, thread / 32);
                        if real {
                            let row = ((r >> register_columns) << (warps + cluster)) + (warp << cluster | block);
                            order.push((row * self.frame[1] + (r & ((1 << register_columns) - 1)) * 32 + lane) as u32);
                            continue;
                        }
                        let (q, above) = (r >> cluster << cluster | if cluster > 0 { block } else { 0 }, r & (blocks - 1));
                        let q = if cluster > 0 { q } else { r };
                        let kx = (lane & ((1 << register_columns) - 1)) + ((warp + (q >> warps << warps)) << register_columns);
                        let ky = (lane >> register_columns) + (((q & ((1 << warps) - 1)) + (above << warps)) << register_rows);
                        order.push((ky * self.frame[1] + kx) as u32);
                    }
                }
            }
        }
        Some(order)
    }
}

impl fmt::Display for KernelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [by, bx] = self.bin;
        let bins = if self.bin == [1, 1] { String::new() } else { format!(" in bins of {by}x{bx}") };
        let subpixel = if self.shifted { ", probes between pixels" } else { "" };
        let double = if self.double { ", in doubles" } else { "" };
        write!(f, "{}x{}{bins}, {} modes{subpixel}{double}", self.frame[0], self.frame[1], self.exits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_permutations() {
        for (frame, cluster) in [([32, 32], 0), ([64, 128], 0), ([128, 128], 0), ([128, 256], 1), ([256, 256], 2)] {
            let config = KernelConfig {
                frame,
                bin: [1, 1],
                modes: [1, 1],
                several: false,
                near: false,
                atomic: false,
                registers: false,
                shifted: false,
                double: false,
                processing: FrameProcessing::Fused { cluster, fetch: false },
            };
            for pack in [2, 4] {
                for real in [false, true] {
                    let mut order = config.order_in(pack, real).unwrap();
                    order.sort_unstable();
                    assert!(order.iter().enumerate().all(|(i, j)| i == *j as usize), "{frame:?}");
                }
            }
        }
    }
}
