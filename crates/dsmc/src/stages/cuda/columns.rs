//! Columns of particles on the device, and how particles of the host are put into their order.

use std::borrow::Cow;

use bytemuck::Pod;
use zellige_engine::cuda::{Buffer, Pool};
use zellige_engine::error::Result;

use super::arguments::Columns;
use super::program::KernelConfig;
use crate::particles::Particles;

/// One set of columns.
#[derive(Debug)]
pub(super) struct Set {
    /// x, y, vx, vy, vz.
    pub(super) numbers: [Buffer<f32>; 5],
    pub(super) rotation: Buffer<f32>,
    /// One word of 16 bits a particle, or two.
    pub(super) level: Buffer<u16>,
    pub(super) key: Buffer<u16>,
    pub(super) tag: Buffer<u32>,
}

impl Set {
    pub(super) fn new(pool: &Pool, config: &KernelConfig, capacity: usize) -> Result<Self> {
        let column = || pool.alloc_zeros::<f32>(capacity, "dsmc: particles");
        let used = |wanted: bool| if wanted { capacity } else { 0 };
        Ok(Self {
            numbers: [column()?, column()?, column()?, column()?, column()?],
            rotation: pool.alloc_zeros(used(config.rotates), "dsmc: particles")?,
            level: pool.alloc_zeros(capacity * config.level_words(), "dsmc: particles")?,
            key: pool.alloc_zeros(capacity, "dsmc: particles")?,
            tag: pool.alloc_zeros(used(config.tagged), "dsmc: particles")?,
        })
    }

    pub(super) fn argument(&self) -> Columns {
        let [x, y, vx, vy, vz] = self.numbers.each_ref().map(Buffer::address);
        Columns {
            x,
            y,
            vx,
            vy,
            vz,
            rotation: self.rotation.address(),
            level: self.level.address(),
            key: self.key.address(),
            tag: self.tag.address(),
        }
    }
}

/// Tags of particles, which have none yet when they are loaded.
pub(super) fn tags<'a>(to: &Slots, p: &'a Particles, tagged: bool) -> Cow<'a, [u32]> {
    if tagged && p.tag.is_empty() { Cow::Owned(vec![0; p.len()]) } else { arranged(to, &p.tag) }
}

/// Words of levels as the device has them: of 16 bits where that is enough.
pub(super) fn narrowed(levels: &[u32], words: usize) -> Vec<u16> {
    levels.iter().flat_map(|l| [*l as u16, (*l >> 16) as u16].into_iter().take(words)).collect()
}

/// Inverse of [`narrowed`].
pub(super) fn widened(levels: &[u16], words: usize) -> Vec<u32> {
    levels.chunks_exact(words.max(1)).map(|l| l.iter().rev().fold(0, |all, w| all << 16 | u32::from(*w))).collect()
}

/// Slot of each particle; none where they are in order as they stand.
pub(super) type Slots = Option<Vec<u32>>;

/// Slots of particles of tiles `keys`, whose first slots are `first`.
pub(super) fn slots(keys: &[(u32, u16)], first: &[u32]) -> Slots {
    if keys.is_sorted_by_key(|k| k.0) {
        return None;
    }
    let mut next = first.to_vec();
    let slot = |k: &(u32, u16)| {
        let slot = &mut next[k.0 as usize];
        *slot += 1;
        *slot - 1
    };
    Some(keys.iter().map(slot).collect())
}

/// `values[to[i]] = from[i]`; nothing of a column that is not in use.
pub(super) fn arranged<'a, T: Pod>(to: &Slots, from: &'a [T]) -> Cow<'a, [T]> {
    let Some(to) = to else { return Cow::Borrowed(from) };
    let mut values = vec![T::zeroed(); from.len()];
    for (to, v) in to.iter().zip(from) {
        values[*to as usize] = *v;
    }
    Cow::Owned(values)
}
