//! Data that a run keeps, and the limits of its memory, as an input asks for them.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Views of a batch of LSQML where nothing is said, of all `views`.
pub fn default_batch(views: usize) -> usize {
    views.div_ceil(10)
}

/// Memory limits of a run, and the data that its engines keep.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MemoryBudget {
    /// Bytes on the device; nine tenths of what is free on a GPU where nothing is said, on the CPU whatever is needed.
    pub allowance: Option<u64>,
    /// Waves are kept in half precision.
    pub half: bool,
    /// Data that the engines keep.
    pub demand: KeptData,
    /// Folder for data that a run on the CPU may not hold in memory; the system's folder for such files if left out.
    pub folder: Option<PathBuf>,
    /// Summation of the object on a GPU that holds all frames.
    pub object_update: ObjectUpdate,
    /// Equal runs are to give equal bits.
    pub deterministic: bool,
}

/// Data that engines keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeptData {
    /// Exit waves from one iteration to the next (DM, RAAR, SDR).
    pub waves: bool,
    /// Waves within an iteration (ML).
    pub likelihood: bool,
    /// Frames in an order of their own beside the others (ePIE, rPIE).
    pub sequence: bool,
    /// Largest number of views that are updated at once, by engines without exit waves and by those with them; 0 where none goes by
    /// views.
    pub batches: [usize; 2],
    /// Positions are refined.
    pub positions: bool,
    /// Marks an engine that takes the default part of the views at once (LSQML).
    pub default_batch: bool,
    /// Marks double precision.
    pub double: bool,
}

impl KeptData {
    /// Bytes of a number.
    pub fn number(&self) -> usize {
        if self.double { 8 } else { 4 }
    }

    /// Largest number out of `views` that is updated at once where waves are kept or where none are.
    pub fn batch(&self, waves: bool, views: usize) -> usize {
        let default = if self.default_batch && !waves { default_batch(views) } else { 0 };
        self.batches[usize::from(waves)].max(default).min(views)
    }

    /// Largest number out of `views` that is updated at once.
    pub fn largest_batch(&self, views: usize) -> usize {
        self.batch(false, views).max(self.batch(true, views))
    }

    /// Returns true if some engine keeps no waves.
    pub(crate) fn without_waves(&self) -> bool {
        !self.waves || self.likelihood || self.sequence || self.default_batch || self.batches[0] > 0
    }
}

/// Method of taking the sums over views that make up the object on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ObjectUpdate {
    /// The faster one for the scan.
    #[default]
    Auto,
    /// Tile by tile in one order: reproducible.
    Gathered,
    /// Atomic additions: equal runs differ by rounding.
    Atomic,
}
