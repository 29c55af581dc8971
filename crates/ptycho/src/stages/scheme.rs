//! Choice of how the sums over views that make up the object are taken on a GPU.

use super::cuda::crowding;
use crate::memory::ObjectUpdate;
use crate::model::Model;

/// Frames that see a tile from which on atomic additions are faster where there are fewer tiles than multiprocessors; measured on
/// an H200 (`docs/performance/ptycho.md`): gathering takes 0.12 us a frame of a tile then, however few tiles there are, and adding
/// 10 us a million pixels.
const CROWD: usize = 80;

/// Chosen method, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectSumChoice {
    /// Atomic additions; gathered otherwise.
    pub atomic: bool,
    /// Reason, for the plan.
    pub why: String,
}

impl ObjectUpdate {
    /// Chooses the method for a model whose frames are all on a device of this many multiprocessors.
    pub fn choose(self, deterministic: bool, model: &Model, multiprocessors: u32) -> ObjectSumChoice {
        let choice = |atomic, why: String| ObjectSumChoice { atomic, why };
        match self {
            _ if !model.share.is_alone() => choice(false, "they go from part to part in the order of the frames".into()),
            _ if deterministic => choice(false, "equal runs are to give equal bits".into()),
            Self::Gathered | Self::Atomic => choice(self == Self::Atomic, "as `object_update` says".into()),
            Self::Auto => {
                let (tiles, visits) = crowding(model);
                let atomic = tiles <= multiprocessors as usize && visits >= CROWD * tiles;
                let each = visits as f64 / tiles.max(1) as f64;
                choice(atomic, format!("{tiles} tiles for {multiprocessors} multiprocessors, each seen by {each:.0} frames"))
            }
        }
    }
}
