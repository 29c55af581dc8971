//! Levels in parts: the slabs of each level that this part works on, and copies of fields from and to the other parts.
//!
//! Slabs are planes, or rows of a plane grid. A part holds its own ones and some beside them; addresses are those of the whole
//! level, so that an index means the same on all parts. A field is up to date on so many slabs beside the part's own ([`Reach`]).
//! Passes work on slabs beside the own ones too, rather than have every half-sweep exchanged: those that follow then need no other
//! part. A level that is too small to be divided is whole on every part, and all work on it alike.
//!
//! Sums are made of the same blocks as those of one part: each part makes those that begin on its slabs, and all join all.

use std::ops::Range;

use zellige_engine::cuda::{Buffer, Cuda};
use zellige_engine::error::Result;
use zellige_engine::links::{Copies, CopyTo, Links};

use super::arguments;
use super::data::Data;
use super::fields::Fields;
use super::tables::Number;
use crate::grid::Level;
use crate::stages::HostShare;
use crate::stages::ranges::Ranges;

/// Least planes and nodes of a part's share; rows are at least as many as are copied from beside.
const LEAST: [usize; 2] = [8, 4096];
/// Planes beside a part's own that are held and copied at most.
const PLANES: usize = LEAST[0];
/// Rows beside a part's bands that a pass over a plane grid reads.
const ROWS_READ: usize = 12;
/// Rows beside those that a pass fetches ahead and does not use.
const ROWS_AHEAD: usize = 32;

/// Number of slabs beside a part's own on which a field is up to date.
pub(super) type Reach = usize;
/// Reach of a level that all parts have.
pub(super) const EVERYWHERE: Reach = usize::MAX;

/// Fields of a level that are copied from part to part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The residual.
    R,
    /// The correction.
    E,
    /// The solution.
    U,
    /// The right-hand side. That of the finest level is up to date on all slabs that are held.
    F,
}

/// Share of a level.
#[derive(Debug, Clone, Default)]
pub(super) struct Share {
    ranges: Ranges,
    /// This part.
    rank: usize,
    /// Slabs beside its own that are copied at most.
    pub(super) depth: usize,
    /// Slabs beside its own that it holds.
    margin: usize,
    pub(super) periodic: bool,
}

impl Share {
    /// Shares of all levels, of which passes have bands of at most so many rows each.
    pub(super) fn of_levels(levels: &[Level], heights: &[usize], links: &Links) -> Vec<Self> {
        let mut shares: Vec<Self> = Vec::with_capacity(levels.len());
        let space = levels[0].grid.nodes()[2] > 1;
        let d = if space { 2 } else { 1 };
        // A coarse level's rows lie under the rows that the finer one's pass reads.
        let mut rows_above = 0;
        for (l, level) in levels.iter().enumerate() {
            let nodes = level.grid.nodes();
            let depth = if space { PLANES } else { (heights[l] + ROWS_READ).max(rows_above / 2 + ROWS_READ) };
            let slab: usize = nodes[..d].iter().product();
            let large_enough = |slabs: usize| !links.is_alone() && slabs >= LEAST[0].max(depth) && slabs * slab >= LEAST[1];
            let ranges = match (l.checked_sub(1), l + 1 == levels.len()) {
                // The last level is solved as a whole.
                (_, true) => Ranges::whole(nodes[d]),
                // Rows go in pairs, which lie on one coarse row.
                (None, false) => Ranges::even(links.size(), nodes[d], [0, 2], large_enough),
                (Some(fine), false) => {
                    let children = levels[fine].transfer.as_ref().map_or(&[][..], |t| &t[d].child[..]);
                    shares[fine].ranges.below(|slab| children.partition_point(|c| (*c as usize) < slab), nodes[d], large_enough)
                }
            };
            rows_above = depth;
            let margin = if space { depth } else { depth + heights[l] + ROWS_AHEAD };
            shares.push(Self { ranges, rank: links.rank(), depth, margin, periodic: level.grid.axes[d].periodic() });
        }
        shares
    }

    /// Returns true if parts have different slabs.
    pub(super) fn divided(&self) -> bool {
        self.ranges.divided()
    }

    /// Slabs of this part.
    pub(super) fn own(&self) -> Range<usize> {
        self.ranges.of_part(self.rank)
    }

    /// Slabs of the finest level for what the host does with its arrays.
    pub(super) fn on_host(&self, links: &Links) -> HostShare {
        HostShare::new(links, &self.ranges, self.held(), self.periodic)
    }

    /// Slabs that a part holds.
    fn held_by(&self, part: usize) -> Range<usize> {
        let own = self.ranges.of_part(part);
        if self.periodic || !self.divided() {
            return 0..self.ranges.slabs();
        }
        own.start.saturating_sub(self.margin)..(own.end + self.margin).min(self.ranges.slabs())
    }

    /// Slabs that this part holds.
    pub(super) fn held(&self) -> Range<usize> {
        self.held_by(self.rank)
    }

    /// The own slabs and so many beside them; beyond the ends of a periodic axis they are numbered on.
    pub(super) fn with(&self, beside: Reach) -> Range<isize> {
        let (own, slabs) = (self.own(), self.ranges.slabs());
        if !self.divided() || self.periodic && own.len() + 2 * beside >= slabs {
            return 0..slabs as isize;
        }
        if self.periodic {
            return own.start as isize - beside as isize..(own.end + beside) as isize;
        }
        own.start.saturating_sub(beside) as isize..(own.end + beside).min(slabs) as isize
    }

    /// The reach of a field that was made on so many slabs beside the own ones.
    pub(super) fn reach(&self, beside: usize) -> Reach {
        if self.divided() { beside } else { EVERYWHERE }
    }

    /// Bands of `height` rows that the own slabs touch, of a pass over `rows` rows.
    pub(super) fn bands(&self, rows: usize, height: usize) -> Range<usize> {
        let own = self.own();
        if !self.divided() {
            return 0..rows.div_ceil(height);
        }
        own.start / height..if own.end == self.ranges.slabs() { rows.div_ceil(height) } else { own.end.div_ceil(height) }
    }

    /// Bands of a part that begin on its own slabs.
    fn bands_of(&self, part: usize, rows: usize, height: usize) -> Range<usize> {
        let own = self.ranges.of_part(part);
        own.start.div_ceil(height)..if own.end == self.ranges.slabs() { rows.div_ceil(height) } else { own.end.div_ceil(height) }
    }
}

/// Links to the other parts of the run.
pub(super) struct Parts {
    links: Links,
    neighbours: Copies,
    all: Copies,
}

/// Places of a level's fields among the buffers that all parts have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Places {
    r: usize,
    e: usize,
    u: usize,
    f: usize,
}

/// Places of the partial sums and of the scratch field.
const PARTIALS: usize = 0;
const SCRATCH: usize = 1;

impl Parts {
    /// Introduces the fields of this part to the others.
    pub(super) fn new(cuda: &Cuda, links: &Links, levels: &mut [Fields], common: [&Buffer<u8>; 2]) -> Result<Option<Self>> {
        if links.is_alone() || !levels[0].share.divided() {
            return Ok(None);
        }
        // Bands, and with them sums, depend on it.
        links.must_agree("the GPU", cuda.name())?;
        let mut number = common.len();
        for l in levels.iter_mut() {
            let (e, u) = (number + l.r.len(), number + l.r.len() + 1);
            l.places = Places { r: number, e, u, f: u + l.u.len() };
            number = l.places.f + usize::from(l.f.is_some());
        }
        let fields = levels.iter().flat_map(|l| l.r.iter().chain([&l.e]).chain(&l.u).chain(&l.f).map(|field| &field.buffer));
        let buffers: Vec<&Buffer<u8>> = common.into_iter().chain(fields).collect();
        let (rank, size, periodic) = (links.rank(), links.size(), levels[0].share.periodic);
        let near = |part: usize| part.abs_diff(rank) == 1 || periodic && part.abs_diff(rank) + 1 == size;
        let neighbours: Vec<usize> = (0..size).filter(|part| near(*part)).collect();
        let everyone: Vec<usize> = (0..size).collect();
        Ok(Some(Self {
            links: links.clone(),
            neighbours: Copies::new(cuda, links, &neighbours, &buffers)?,
            all: Copies::new(cuda, links, &everyone, &buffers)?,
        }))
    }
}

/// A range of ascending numbers as ranges without gaps.
fn runs(numbers: Vec<usize>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for k in numbers {
        match runs.last_mut().filter(|run| run.end == k) {
            Some(run) => run.end = k + 1,
            None => runs.push(k..k + 1),
        }
    }
    runs
}

impl Fields {
    /// Bytes of a slab of numbers.
    pub(super) fn slab(&self, number: Number) -> usize {
        self.argument.slab() * number.bytes()
    }

    /// The argument of a launch on these slabs.
    pub(super) fn over(&self, slabs: &Range<isize>) -> arguments::Level {
        self.argument.over(slabs)
    }

    /// Rows over y and z of the own slabs, or of those that are held.
    pub(super) fn own_rows(&self) -> Range<usize> {
        self.rows(&self.share.own())
    }

    pub(super) fn held_rows(&self) -> Range<usize> {
        self.rows(&self.share.held())
    }

    fn rows(&self, slabs: &Range<usize>) -> Range<usize> {
        let each = if self.argument.z.n > 1 { self.argument.y.n as usize } else { 1 };
        slabs.start * each..slabs.end * each
    }

    pub(super) fn reach(&self, kind: Kind) -> Reach {
        match kind {
            Kind::R => self.r_reach,
            Kind::E => self.e_reach,
            Kind::U => self.u_reach,
            Kind::F => self.f_reach,
        }
    }

    fn set_reach(&mut self, kind: Kind, reach: Reach) {
        match kind {
            Kind::R => self.r_reach = reach,
            Kind::E => self.e_reach = reach,
            Kind::U => self.u_reach = reach,
            Kind::F => self.f_reach = reach,
        }
    }
}

impl Data {
    /// Returns true if other parts have other slabs.
    pub(super) fn in_parts(&self) -> bool {
        self.parts.is_some()
    }

    /// Buffer of a field, and its format.
    fn place(&self, level: usize, kind: Kind) -> (usize, Number) {
        let l = &self.levels[level];
        match kind {
            Kind::R => (l.places.r + l.r_at, self.inner),
            Kind::E => (if self.swapped { SCRATCH } else { l.places.e }, self.inner),
            Kind::U => (l.places.u + if self.swapped { 1 - l.u_at } else { l.u_at }, self.outer),
            Kind::F => (l.places.f, self.outer),
        }
    }

    /// Has fields of a level up to date on so many slabs beside the own ones, as many as are copied at most.
    pub(super) fn refresh(&mut self, level: usize, wants: &[(Kind, Reach)]) -> Result<()> {
        let l = &self.levels[level];
        let stale: Vec<(Kind, Reach)> = wants
            .iter()
            .map(|(kind, reach)| (*kind, (*reach).min(l.share.depth)))
            .filter(|(kind, reach)| l.share.divided() && l.reach(*kind) < *reach)
            .collect();
        let Some(parts) = self.parts.as_ref().filter(|_| !stale.is_empty()) else { return Ok(()) };
        let (share, own) = (&l.share, l.share.own());
        let mut copies = Vec::new();
        for (kind, reach) in &stale {
            let (buffer, number) = self.place(level, *kind);
            let slab = l.slab(number);
            for (part, _) in share.ranges.parts().filter(|(part, _)| *part != share.rank) {
                let wanted = share.ranges.beside(part, *reach, share.periodic).into_iter().filter(|k| own.contains(k)).collect();
                let theirs = share.held_by(part).start;
                copies.extend(runs(wanted).into_iter().map(|run| CopyTo {
                    part,
                    buffer,
                    from: (run.start - share.held().start) * slab,
                    to: (run.start - theirs) * slab,
                    bytes: run.len() * slab,
                }));
            }
        }
        parts.neighbours.exchange(&copies)?;
        for (kind, reach) in stale {
            self.levels[level].set_reach(kind, reach);
        }
        Ok(())
    }

    /// Slabs of the level below that lie on this part's slabs of a level.
    pub(super) fn own_below(&self, level: usize) -> Range<usize> {
        let (l, c) = (&self.levels[level].share, &self.levels[level + 1].share);
        if !l.divided() {
            return c.own();
        }
        let own = l.own();
        let start = |slab: usize| self.levels[level].children.partition_point(|child| (*child as usize) < slab).min(c.ranges.slabs());
        start(own.start)..start(own.end)
    }

    /// Ends a restriction to the level below, of which each part has made a field on its slabs: completes it where the level is
    /// not divided.
    pub(super) fn restricted(&mut self, level: usize, kind: Kind) -> Result<()> {
        let divided = [level, level + 1].map(|l| self.levels[l].share.divided());
        let reach = self.levels[level + 1].share.reach(0);
        self.levels[level + 1].set_reach(kind, reach);
        let (true, false, Some(parts)) = (divided[0], divided[1], &self.parts) else { return Ok(()) };
        let (buffer, number) = self.place(level + 1, kind);
        let slab = self.levels[level + 1].slab(number);
        let own = self.own_below(level);
        parts.all.exchange(&to_all(&parts.links, buffer, own.start * slab..own.end * slab))
    }

    /// Completes the partial sums of bands of `height` rows of a level, or of its planes, `each` to a band, of which each part has
    /// made some.
    pub(super) fn complete_partials(&self, level: usize, rows: usize, height: usize, each: usize) -> Result<()> {
        let share = &self.levels[level].share;
        let Some(parts) = self.parts.as_ref().filter(|_| share.divided()) else { return Ok(()) };
        let bands = share.bands_of(parts.links.rank(), rows, height);
        parts.all.exchange(&to_all(&parts.links, PARTIALS, bands.start * each * 32..bands.end * each * 32))
    }
}

/// Copies of bytes to the same place at all other parts.
fn to_all(links: &Links, buffer: usize, bytes: Range<usize>) -> Vec<CopyTo> {
    let to = |part: usize| CopyTo { part, buffer, from: bytes.start, to: bytes.start, bytes: bytes.len() };
    (0..links.size()).filter(|part| *part != links.rank() && !bytes.is_empty()).map(to).collect()
}

#[cfg(test)]
mod tests;
