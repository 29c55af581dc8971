//! Particles outside of a store: for loading, checkpoints and diagnostics.

use std::ops::Range;

use zellige_engine::parallel::{each, items, items_mut};

/// Particles by column, those of a cell one behind the other, cells in the order of the store.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Particles {
    /// Cell, by [`crate::grid::Grid::index`].
    pub cell: Vec<u32>,
    /// Species.
    pub species: Vec<u16>,
    /// Offset in the cell, `0..1`, two columns.
    pub offset: [Vec<f32>; 2],
    /// Velocity, m/s.
    pub velocity: [Vec<f32>; 3],
    /// Energy of the rotation over k, K; empty where nothing rotates.
    pub rotation: Vec<f32>,
    /// Levels of the vibration ([`crate::gas::vibration`]); empty where nothing vibrates.
    pub level: Vec<u32>,
    /// A number shared with the last partner; empty where partners are chosen at random.
    pub tag: Vec<u32>,
}

/// Range of own particles of a part, and the number of its first one among those of all parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Number among the particles of all parts.
    pub first: usize,
    /// Range among own ones.
    pub own: Range<usize>,
}

impl Particles {
    /// Number of particles.
    pub fn len(&self) -> usize {
        self.cell.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.cell.is_empty()
    }

    /// Room for `n` in the columns of the motion.
    pub fn reserve(&mut self, n: usize) {
        let more = n.saturating_sub(self.len());
        self.cell.reserve_exact(more);
        self.species.reserve_exact(more);
        self.offset.iter_mut().chain(&mut self.velocity).for_each(|column| column.reserve_exact(more));
    }

    /// Adds one.
    pub fn push(&mut self, cell: u32, species: u16, offset: [f32; 2], velocity: [f32; 3], rotation: Option<f32>, level: Option<u32>) {
        self.cell.push(cell);
        self.species.push(species);
        for d in 0..2 {
            self.offset[d].push(offset[d]);
        }
        for c in 0..3 {
            self.velocity[c].push(velocity[c]);
        }
        self.rotation.extend(rotation);
        self.level.extend(level);
    }

    /// Those of all parts one behind the other, on all threads. A column of the parts is given back before the next is joined.
    pub(crate) fn joined(mut parts: Vec<Self>) -> Self {
        fn column<T>(parts: &mut [Particles], of: impl Fn(&mut Particles) -> &mut Vec<T>) -> Vec<T>
        where
            T: Copy + Default + Send + Sync,
        {
            let columns: Vec<Vec<T>> = parts.iter_mut().map(|p| std::mem::take(of(p))).collect();
            let mut all = vec![T::default(); columns.iter().map(Vec::len).sum()];
            let mut rest = &mut all[..];
            let mut slices: Vec<_> = columns.iter().filter_map(|c| rest.split_off_mut(..c.len())).collect();
            each((items_mut(&mut slices), items(&columns)), |_, (to, from)| to.copy_from_slice(from));
            all
        }
        Self {
            cell: column(&mut parts, |p| &mut p.cell),
            species: column(&mut parts, |p| &mut p.species),
            offset: [0, 1].map(|d| column(&mut parts, |p| &mut p.offset[d])),
            velocity: [0, 1, 2].map(|c| column(&mut parts, |p| &mut p.velocity[c])),
            rotation: column(&mut parts, |p| &mut p.rotation),
            level: column(&mut parts, |p| &mut p.level),
            tag: column(&mut parts, |p| &mut p.tag),
        }
    }

    /// Those for which `keep` is true, in their order.
    pub(crate) fn chosen(&self, keep: &[bool]) -> Self {
        fn column<T: Copy>(from: &[T], keep: &[bool]) -> Vec<T> {
            from.iter().zip(keep).filter(|(_, keep)| **keep).map(|(value, _)| *value).collect()
        }
        Self {
            cell: column(&self.cell, keep),
            species: column(&self.species, keep),
            offset: self.offset.each_ref().map(|c| column(c, keep)),
            velocity: self.velocity.each_ref().map(|c| column(c, keep)),
            rotation: column(&self.rotation, keep),
            level: column(&self.level, keep),
            tag: column(&self.tag, keep),
        }
    }

    /// Adds others behind.
    pub fn append(&mut self, mut other: Self) {
        self.cell.append(&mut other.cell);
        self.species.append(&mut other.species);
        for d in 0..2 {
            self.offset[d].append(&mut other.offset[d]);
        }
        for c in 0..3 {
            self.velocity[c].append(&mut other.velocity[c]);
        }
        self.rotation.append(&mut other.rotation);
        self.level.append(&mut other.level);
        self.tag.append(&mut other.tag);
    }
}
