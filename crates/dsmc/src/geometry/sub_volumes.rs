//! Sub-volumes: the volumes whose particles may collide with each other. A cell is one; a cell that a thin body divides is
//! several; one that bodies have cut to nearly nothing is joined to a neighbour.

use std::collections::BTreeMap;

use super::flight::lattice_point;
use super::split::{Part, parts};
use super::{Flight, FlightEnd, Geometry, Segment};

/// Share of a part of a cell and the corners of its outline on the lattice of particles.
pub(crate) type Outlined = (f64, Vec<[i32; 2]>);

/// A cell with less gas than this part of it is joined to a neighbour.
pub const SMALLEST: f64 = 1e-3;

/// Divided and joined cells.
#[derive(Debug, Clone, Default)]
pub(super) struct SubVolumes {
    /// Parts of the cells that have several: the first has the cell's own number, the others follow `first`, counted over all
    /// cells.
    split: BTreeMap<u32, (u32, Vec<Part>)>,
    /// Part of a cell that is gas, of sub-volumes beyond the cells.
    extra: Vec<f64>,
    /// Sub-volumes joined to others, by number.
    joined: BTreeMap<u32, u32>,
    /// Volumes that the joined ones bring.
    gained: BTreeMap<u32, f64>,
    /// Cells whose pieces cross on the lattice and that were left whole.
    pub(super) unresolved: usize,
}

/// A cell holds one gas if its largest part has this much of it.
const WHOLE: f64 = 0.99;
/// Distance from a face to each side, in cells, at which a way through it is looked for, and the number of tests.
const BESIDE: f64 = 1.0 / 1024.0;
const WAYS: u32 = 32;

/// Takes ways there and back out of a closed walk.
fn without_spikes(mut walk: Vec<[i32; 2]>) -> Vec<[i32; 2]> {
    while walk.len() > 2 {
        let n = walk.len();
        let Some(tip) = (0..n).find(|k| walk[(k + n - 1) % n] == walk[(k + 1) % n]) else { break };
        walk.remove(tip);
        walk.remove(tip % walk.len());
    }
    walk
}

impl Geometry {
    /// Finds divided and nearly filled cells.
    pub(super) fn find_sub_volumes(&mut self) {
        let cells = self.cells[0] * self.cells[1];
        let listed: Vec<usize> = (0..cells).filter(|c| self.slots[*c] != 0).collect();
        let plate = |segment: u32| {
            let segment: &Segment = &self.segments[segment as usize];
            self.bodies[segment.body as usize].area == 0.0
        };
        let mut found = SubVolumes::default();
        for &cell in &listed {
            match parts(self.pieces(cell), plate) {
                None => found.unresolved += 1,
                Some(parts) if parts.len() > 1 => {
                    let first = (cells + found.extra.len()) as u32;
                    let all: f64 = parts.iter().map(|p| p.fraction).sum();
                    let scale = self.fraction(cell) / all;
                    found.extra.extend(parts[1..].iter().map(|p| p.fraction * scale));
                    found.split.insert(cell as u32, (first, parts));
                }
                Some(_) => {}
            }
        }
        self.sub_volumes = found;
        // Shares of the split cells' first parts are what the others leave.
        let tiny: Vec<u32> = listed
            .iter()
            .flat_map(|c| {
                let (first, n) = self.sub_volumes.split.get(&(*c as u32)).map_or((0, 1), |s| (s.0, s.1.len() as u32));
                std::iter::once(*c as u32).chain(first..first + n - 1)
            })
            .filter(|volume| {
                let f = self.own_fraction(*volume);
                f > 0.0 && f < SMALLEST
            })
            .collect();
        for volume in tiny {
            if let Some(into) = self.neighbour(volume) {
                *self.sub_volumes.gained.entry(into).or_default() += self.own_fraction(volume);
                self.sub_volumes.joined.insert(volume, into);
            }
        }
    }

    /// The largest sub-volume that gas of a sub-volume can reach across a face of its cell.
    fn neighbour(&self, volume: u32) -> Option<u32> {
        let cell = self.cell_of(volume);
        let at = [cell % self.cells[0], cell / self.cells[0]];
        let mut best: Option<(u32, f64)> = None;
        for (axis, upper) in [(0, false), (0, true), (1, false), (1, true)] {
            let next = at[axis] as i64 + if upper { 1 } else { -1 };
            if next < 0 || next >= self.cells[axis] as i64 {
                continue;
            }
            let mut beside = at;
            beside[axis] = next as usize;
            // A last bit of the lattice on either side of the face.
            let bit = 0.5_f64.powi(24);
            for k in 0..=64 {
                let along = (f64::from(k) / 64.0).min(1.0 - bit);
                let (mut here, mut there) = ([along; 2], [along; 2]);
                (here[axis], there[axis]) = if upper { (1.0 - bit, 0.0) } else { (0.0, 1.0 - bit) };
                if self.in_gas(at, here) && self.in_gas(beside, there) && self.part(at, here) == volume {
                    let other = self.part(beside, there);
                    let f = self.own_fraction(other);
                    if f >= SMALLEST && best.is_none_or(|b| f > b.1) {
                        best = Some((other, f));
                    }
                }
            }
        }
        best.map(|b| b.0)
    }

    fn cell_of(&self, volume: u32) -> usize {
        let cells = self.cells[0] * self.cells[1];
        if (volume as usize) < cells {
            return volume as usize;
        }
        let split = self.sub_volumes.split.iter().find(|(_, (first, parts))| (*first..*first + parts.len() as u32 - 1).contains(&volume));
        split.map_or(0, |(cell, _)| *cell as usize)
    }

    /// The sub-volume of a position before joining.
    fn part(&self, cell: [usize; 2], offset: [f64; 2]) -> u32 {
        let number = (cell[1] * self.cells[0] + cell[0]) as u32;
        let Some((first, parts)) = self.sub_volumes.split.get(&number) else { return number };
        match parts.iter().position(|part| part.holds(lattice_point(offset))) {
            None | Some(0) => number,
            Some(k) => first + k as u32 - 1,
        }
    }

    fn own_fraction(&self, volume: u32) -> f64 {
        let cells = self.cells[0] * self.cells[1];
        if volume as usize >= cells {
            return self.sub_volumes.extra[volume as usize - cells];
        }
        let others = self.sub_volumes.split.get(&volume).map_or(0.0, |(first, parts)| {
            let from = *first as usize - cells;
            self.sub_volumes.extra[from..from + parts.len() - 1].iter().sum()
        });
        self.fraction(volume as usize) - others
    }

    /// Number of the part of a cell in which a position is, and the part's share of a whole cell.
    pub fn part_at(&self, cell: [usize; 2], offset: [f64; 2]) -> (u32, f64) {
        let part = self.part(cell, offset);
        (part, self.own_fraction(part))
    }

    /// Share of the smallest part of a divided cell (by [`crate::grid::Grid::index`]); nothing for a cell in one part.
    pub fn smallest_part(&self, cell: usize) -> Option<f64> {
        let (first, parts) = self.sub_volumes.split.get(&(cell as u32))?;
        let others = (1..parts.len() as u32).map(|k| self.own_fraction(first + k - 1));
        Some(others.fold(self.own_fraction(cell as u32), f64::min))
    }

    /// Divided cells (by [`crate::grid::Grid::index`]) with the share and the outline of each of their parts, on the lattice of
    /// particles.
    pub(crate) fn divided(&self) -> impl Iterator<Item = (usize, Vec<Outlined>)> {
        self.sub_volumes.split.iter().map(|(cell, (first, parts))| {
            let number = |k: usize| if k == 0 { *cell } else { first + k as u32 - 1 };
            let corners = |part: &Part| part.outline().iter().map(|p| [p.x as i32, p.y as i32]).collect();
            (*cell as usize, parts.iter().enumerate().map(|(k, part)| (self.own_fraction(number(k)), corners(part))).collect())
        })
    }

    /// Outlines of the gas in a cell (by [`crate::grid::Grid::index`]), counter-clockwise, in [`super::LATTICE`] steps from its
    /// lower corner: several where a body divides it, none inside bodies. Plates that end in the cell, and bodies that stand in it
    /// whole, are left out; a cell whose pieces the lattice does not resolve is shown whole.
    pub fn outlines(&self, cell: usize) -> Vec<Vec<[i32; 2]>> {
        let one = super::LATTICE;
        let whole = vec![vec![[0, 0], [one, 0], [one, one], [0, one]]];
        if self.fraction(cell) <= 0.0 {
            return Vec::new();
        }
        if self.pieces(cell).is_empty() {
            return whole;
        }
        let plate = |segment: u32| self.bodies[self.segments[segment as usize].body as usize].area == 0.0;
        let Some(parts) = parts(self.pieces(cell), plate) else { return whole };
        let outline = |part: &Part| without_spikes(part.outline().iter().map(|p| [p.x as i32, p.y as i32]).collect());
        parts.iter().map(outline).filter(|o| o.len() > 2).collect()
    }

    /// True if an average over a cell (by [`crate::grid::Grid::index`]) mixes the gas of several sides of a thin body.
    pub fn mixes(&self, cell: usize) -> bool {
        self.sub_volumes.split.contains_key(&(cell as u32)) && self.own_fraction(cell as u32) < WHOLE * self.fraction(cell)
    }

    /// True if gas gets from a cell straight into the next one along an axis: somewhere on the face between them no body is in the
    /// way.
    pub fn open_between(&self, cell: [usize; 2], axis: usize) -> bool {
        let mut beside = cell;
        beside[axis] += 1;
        let bare = |c: [usize; 2]| self.pieces(c[1] * self.cells[0] + c[0]).is_empty();
        let (mut offset, mut path) = ([0.0; 2], [0.0; 2]);
        (offset[axis], path[axis]) = (1.0 - BESIDE, 2.0 * BESIDE);
        bare(cell) && bare(beside)
            || (0..WAYS).any(|k| {
                offset[1 - axis] = (f64::from(k) + 0.5) / f64::from(WAYS);
                let mut flight = Flight { cell, offset, path, left: None };
                self.in_gas(cell, offset) && self.advance(&mut flight) == FlightEnd::Nothing
            })
    }

    /// Number of sub-volumes: the cells, and one more for each further part of a divided cell.
    pub fn sub_volumes(&self) -> usize {
        self.cells[0] * self.cells[1] + self.sub_volumes.extra.len()
    }

    /// True if every cell is a sub-volume of its own, so that no particle needs to be asked.
    pub fn sub_volumes_are_cells(&self) -> bool {
        self.sub_volumes.split.is_empty() && self.sub_volumes.joined.is_empty()
    }

    /// True if the particles of a cell (by [`crate::grid::Grid::index`]) are all of the sub-volume of its number.
    pub fn is_undivided(&self, cell: usize) -> bool {
        !self.sub_volumes.split.contains_key(&(cell as u32)) && !self.sub_volumes.joined.contains_key(&(cell as u32))
    }

    /// The sub-volume in which a particle collides.
    pub fn sub_volume(&self, cell: [usize; 2], offset: [f64; 2]) -> usize {
        let part = self.part(cell, offset);
        self.sub_volumes.joined.get(&part).copied().unwrap_or(part) as usize
    }

    /// Volume of a sub-volume over that of a whole cell: 0 where it was joined to another, whose volume has it.
    pub fn sub_volume_fraction(&self, volume: usize) -> f64 {
        let number = volume as u32;
        if self.sub_volumes.joined.contains_key(&number) {
            return 0.0;
        }
        self.own_fraction(number) + self.sub_volumes.gained.get(&number).copied().unwrap_or(0.0)
    }

    /// Cells in which outlines come closer than the lattice resolves, so that they could not be looked at for parts.
    pub fn unresolved(&self) -> usize {
        self.sub_volumes.unresolved
    }
}
