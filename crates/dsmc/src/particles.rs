//! Particles outside of a store: for loading, checkpoints and diagnostics.

use zellige_engine::parallel::{each, items, items_mut};

/// Particles by column, in the order of their cells.
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

    /// Those of all parts one behind the other, on all threads.
    pub(crate) fn joined(parts: &[Self]) -> Self {
        fn column<T: Copy + Default + Send + Sync>(parts: &[Particles], of: impl Fn(&Particles) -> &[T] + Sync) -> Vec<T> {
            let mut all = vec![T::default(); parts.iter().map(|p| of(p).len()).sum()];
            let mut rest = &mut all[..];
            let mut slices: Vec<_> = parts.iter().filter_map(|p| rest.split_off_mut(..of(p).len())).collect();
            each((items_mut(&mut slices), items(parts)), |_, (to, from)| to.copy_from_slice(of(from)));
            all
        }
        Self {
            cell: column(parts, |p| &p.cell),
            species: column(parts, |p| &p.species),
            offset: [0, 1].map(|d| column(parts, |p| &p.offset[d])),
            velocity: [0, 1, 2].map(|c| column(parts, |p| &p.velocity[c])),
            rotation: column(parts, |p| &p.rotation),
            level: column(parts, |p| &p.level),
            tag: column(parts, |p| &p.tag),
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
