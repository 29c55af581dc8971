//! Share of a part of a run in the domain, and what it exchanges with others.
//!
//! In two dimensions a part has rows of tiles and the rows of nodes of their cells. On a line, and in a plane with fewer rows of
//! tiles than parts, it has some of the tiles and all of the nodes, whose fields every part then advances alike. Everything is
//! numbered as in the whole domain. Sums of reals that cover the domain are made from the same leaves in the same order as in one
//! part: leaves are gathered, never sums.

use std::ops::Range;

use bytemuck::Pod;
use zellige_engine::device::Cpu;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::links::forecast::ranges;
use zellige_engine::links::{Cut, Links, values};
use zellige_engine::real::RealScalar;

use super::images::{self, Quantity};
use crate::grid::{ABOVE, BELOW, Grid, ParticleSide};
use crate::particles::Particles;
use zellige_engine::tiles::Tiling;

/// Rows of cells of a part at least: its guards, and what its particles reach, are then all of the parts beside it.
const LEAST: usize = ABOVE;

/// An array of a quantity over the rows that a part holds.
pub(in crate::stages) type Array<'a, T> = (Quantity, &'a mut [T]);

/// Share of the only part: all `count`.
fn one(count: usize) -> Vec<Range<usize>> {
    std::iter::once(0..count).collect()
}

/// The parts of a run, as one of them sees them.
#[derive(Debug)]
pub(in crate::stages) struct Part {
    links: Links,
    cpu: Option<Cpu>,
    /// Cells of the domain along axis 1.
    height: usize,
    /// Tiles and rows of cells of every part.
    tiles: Vec<Range<usize>>,
    rows: Vec<Range<usize>>,
    /// Other parts that messages are exchanged with in a step.
    peers: Vec<usize>,
}

/// Refuses more parts than there are tiles to share out.
fn must_hold(parts: usize, most: usize, tiles: &str) -> Result<()> {
    if parts <= most {
        return Ok(());
    }
    let problem = Problem::new("--parts", format!("{parts} parts of a plasma of {most} {tiles}")).allowed(format!("1 to {most}"));
    let hint =
        "use fewer parts, each of which works on one of them at least; or smaller tiles (`pic.tile`), which change the order of sums";
    Err(Error::input("command line", problem.hint(hint)))
}

/// Share of every part in the domain.
#[derive(Debug, Clone, PartialEq)]
pub struct Shares {
    /// Tiles that follow each other, and are a box.
    tiles: Vec<Range<usize>>,
    /// Rows of cells whose nodes the part holds.
    rows: Vec<Range<usize>>,
    /// Cells of the tiles per axis.
    pub cells: Vec<[Range<usize>; 2]>,
    /// True if every part holds all nodes.
    pub all_nodes: bool,
    /// Nodes per axis that currents of the tiles reach, those that several reach as often, where every part holds all.
    pub reached: Vec<[usize; 2]>,
}

impl Shares {
    /// Shares of `parts` parts, for tiles of so many cells and so many of them per axis. Every part has all nodes where rows of
    /// tiles are too few, and `may_hold_all` is true.
    ///
    /// # Errors
    /// There are more parts than tiles, or rows of them.
    pub(super) fn new(grid: &Grid, lattice: [[usize; 2]; 2], parts: usize, may_hold_all: bool) -> Result<Self> {
        let [nx, height] = grid.cells;
        let [tile, [columns, floors]] = lattice;
        // Layers of tiles that are high enough, the last one with what is left.
        let floors_of_layer = LEAST.div_ceil(tile[1]);
        let step = floors_of_layer * tile[1];
        let layers = (height + step).saturating_sub(LEAST) / step;
        let begin = |layer: usize| if layer == layers { height } else { layer * step };
        let cells = |axis: usize, tiles: Range<usize>| {
            (tiles.start * tile[axis]).min(grid.cells[axis])..(tiles.end * tile[axis]).min(grid.cells[axis])
        };
        if parts == 1 {
            let cells = vec![[0..nx, 0..height]];
            return Ok(Self { tiles: one(columns * floors), rows: one(height), cells, all_nodes: false, reached: Vec::new() });
        }
        if grid.dimensions == 1 || (may_hold_all && parts > layers) {
            must_hold(parts, columns * floors, "tiles")?;
            // Some rows of tiles, or a piece of one row.
            let blocks: Vec<[Range<usize>; 2]> = if parts <= floors {
                let cut = Cut::new([1, floors, 1], &[1], parts, |_| 1.0);
                (0..parts).map(|part| [0..columns, cut.block(part).range(1)]).collect()
            } else {
                let first = |floor: usize| floor * parts / floors;
                let pieces = |floor: usize| {
                    let count = first(floor + 1) - first(floor);
                    let cut = Cut::new([columns, 1, 1], &[0], count, |_| 1.0);
                    (0..count).map(move |piece| [cut.block(piece).range(0), floor..floor + 1])
                };
                (0..floors).flat_map(pieces).collect()
            };
            let reached = |axis: usize, tiles: &Range<usize>| cells(axis, tiles.clone()).len() + tiles.len() * (BELOW + ABOVE);
            let numbers = |[x, y]: &[Range<usize>; 2]| y.start * columns + x.start..(y.end - 1) * columns + x.end;
            return Ok(Self {
                tiles: blocks.iter().map(numbers).collect(),
                rows: vec![0..height; parts],
                reached: blocks.iter().map(|[x, y]| [reached(0, x), reached(1, y)]).collect(),
                cells: blocks.into_iter().map(|[x, y]| [cells(0, x), cells(1, y)]).collect(),
                all_nodes: true,
            });
        }
        must_hold(parts, layers, "rows of tiles")?;
        let cut = Cut::new([1, layers, 1], &[1], parts, |layer| (begin(layer + 1) - begin(layer)) as f64);
        let floor = |layer: usize| if layer == layers { floors } else { layer * floors_of_layer };
        let blocks: Vec<Range<usize>> = (0..parts).map(|part| cut.block(part).range(1)).collect();
        let rows: Vec<Range<usize>> = blocks.iter().map(|b| begin(b.start)..begin(b.end)).collect();
        Ok(Self {
            tiles: blocks.iter().map(|b| floor(b.start) * columns..floor(b.end) * columns).collect(),
            cells: rows.iter().map(|rows| [0..nx, rows.clone()]).collect(),
            rows,
            all_nodes: false,
            reached: Vec::new(),
        })
    }

    /// Names what every part has, of a plane or a line.
    pub fn told(&self) -> String {
        let axis = |axis: usize| self.cells.iter().map(move |cells| cells[axis].clone());
        let whole = |axis: usize| self.cells.iter().all(|cells| cells[axis] == self.cells[0][axis]);
        if whole(0) {
            return ranges("rows of cells", axis(1));
        }
        if whole(1) {
            return ranges("columns of cells", axis(0));
        }
        let of = |[x, y]: &[Range<usize>; 2]| {
            if x.is_empty() || y.is_empty() {
                return "none".to_owned();
            }
            format!("{}-{} x {}-{}", x.start, x.end - 1, y.start, y.end - 1)
        };
        let shown = self.cells.iter().take(4).map(of);
        let more = if self.cells.len() > 4 { format!(", and {} more", self.cells.len() - 4) } else { String::new() };
        format!("boxes of cells {}{more}", shown.collect::<Vec<_>>().join(", "))
    }
}

impl Part {
    /// The only part, for loops that are in a pool already.
    pub(in crate::stages) fn alone(grid: &Grid) -> Self {
        let (links, height) = (Links::default(), grid.cells[1]);
        Self { links, cpu: None, height, tiles: one(usize::MAX), rows: one(height), peers: Vec::new() }
    }

    /// The part of `links`, for tiles of so many cells and so many of them per axis.
    ///
    /// # Errors
    /// There are fewer tiles, or rows of them, than parts.
    pub(in crate::stages) fn new(grid: &Grid, lattice: [[usize; 2]; 2], cpu: Option<&Cpu>, links: &Links) -> Result<Self> {
        let (parts, height, own) = (links.size(), grid.cells[1], links.rank());
        let Shares { tiles, rows, all_nodes, .. } = Shares::new(grid, lattice, parts, cpu.is_some())?;
        let round = grid.periodic(1) || grid.particles[1].contains(&ParticleSide::Periodic);
        let near = |part: usize| {
            let apart = part.abs_diff(own);
            part != own && (all_nodes || apart == 1 || (round && apart + 1 == parts))
        };
        let peers = (0..parts).filter(|part| near(*part)).collect();
        Ok(Self { links: links.clone(), cpu: cpu.cloned(), height, tiles, rows, peers })
    }

    /// Links to the other parts.
    pub(in crate::stages) fn links(&self) -> &Links {
        &self.links
    }

    /// True if there is no other part.
    pub(in crate::stages) fn is_alone(&self) -> bool {
        self.links.is_alone()
    }

    /// Tiles of this part.
    pub(in crate::stages) fn tiles(&self) -> Range<usize> {
        self.tiles[self.links.rank()].clone()
    }

    /// Cells per axis of the tiles of this part: a box.
    pub(in crate::stages) fn cells(&self, tiling: &Tiling) -> [Range<usize>; 2] {
        let tiles = self.tiles().start..self.tiles().end.min(tiling.len());
        let bounds = tiles.map(|tile| tiling.bounds(tile)).filter(|(_, cells)| cells.iter().all(|n| *n > 0));
        let boxes = bounds.map(|(corner, cells)| [0, 1].map(|a| corner[a]..corner[a] + cells[a]));
        let join =
            |all: [Range<usize>; 2], one: [Range<usize>; 2]| [0, 1].map(|a| all[a].start.min(one[a].start)..all[a].end.max(one[a].end));
        boxes.reduce(join).unwrap_or([0..0, 0..0])
    }

    /// True if this part has a tile.
    pub(in crate::stages) fn has(&self, tile: usize) -> bool {
        self.tiles[self.links.rank()].contains(&tile)
    }

    /// Parts that messages are exchanged with in a step, in their order.
    pub(in crate::stages) fn peers(&self) -> &[usize] {
        &self.peers
    }

    /// Place among the peers of the one that has a tile; nothing where this part has it.
    pub(in crate::stages) fn peer_with(&self, tile: usize) -> Option<usize> {
        if self.has(tile) { None } else { self.peers.iter().position(|peer| self.tiles[*peer].contains(&tile)) }
    }

    /// The grid of this part: with its rows where others have the rest.
    pub(in crate::stages) fn grid(&self, whole: &Grid) -> Grid {
        self.grid_of(whole, self.links.rank())
    }

    /// The grid of any part likewise.
    pub(in crate::stages) fn grid_of(&self, whole: &Grid, part: usize) -> Grid {
        let rows = &self.rows[part];
        Grid { part: (rows.len() < self.height).then(|| rows.clone()), ..whole.clone() }
    }

    /// Rows of cells of the part that has fewest.
    pub(in crate::stages) fn lowest(&self) -> usize {
        self.rows.iter().map(Range::len).min().unwrap_or(self.height)
    }

    /// Does `work` in the pool of threads where there is no other part. Elsewhere it sends messages, all from one thread, and its
    /// [`Part::loops`] enter the pool.
    pub(in crate::stages) fn stage<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.cpu {
            Some(cpu) if self.is_alone() => cpu.install(work),
            _ => work(),
        }
    }

    /// Does a piece of a stage in which no message is sent.
    pub(in crate::stages) fn loops<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.cpu {
            Some(cpu) if !self.is_alone() => cpu.install(work),
            _ => work(),
        }
    }

    /// Part that holds the nodes `j` of axis 1, guards beyond the domain too.
    pub(in crate::stages) fn holder(&self, j: isize) -> usize {
        let j = j.clamp(0, self.height as isize - 1) as usize;
        self.rows.iter().position(|rows| rows.contains(&j)).expect("rows of cells are all shared out")
    }

    /// Rows of nodes on which a part adds up deposits: its own, and guards at the ends of the domain.
    pub(in crate::stages) fn collected(&self, part: usize) -> Range<isize> {
        let rows = &self.rows[part];
        let begin = if rows.start == 0 { -(BELOW as isize) } else { rows.start as isize };
        begin..(rows.end + if rows.end == self.height { ABOVE } else { 0 }) as isize
    }

    /// Tiles of one part whose particles deposit on nodes that another one adds up, with those rows counted from the tile's corner.
    pub(in crate::stages) fn strips(&self, tiling: &Tiling, from: usize, to: usize) -> impl Iterator<Item = (usize, Range<isize>)> {
        let (tiling, wanted) = (*tiling, self.collected(to));
        self.tiles[from].clone().filter_map(move |tile| {
            let (corner, cells) = tiling.bounds(tile);
            let low = corner[1] as isize;
            let begin = wanted.start.max(low - BELOW as isize);
            let end = wanted.end.min(low + (cells[1] + ABOVE) as isize);
            (begin < end && cells[0] > 0).then_some((tile, begin - low..end - low))
        })
    }

    /// Sends rows of arrays to the parts that want them and gives those that this one wants to `put`, with the number of the array
    /// and the row that they are for. `wants` lists rows of a part and the rows of others that they come from.
    fn rows<T: RealScalar>(
        &self,
        grid: &Grid,
        arrays: &mut [Array<'_, T>],
        wants: &dyn Fn(usize, Quantity) -> Vec<[isize; 2]>,
        put: &dyn Fn(&mut [T], &[T]),
    ) -> Result<()> {
        let (own, pitch) = (self.links.rank(), grid.pitch());
        let foreign = |part: usize, from: usize, quantity: Quantity| {
            wants(part, quantity).into_iter().filter(move |[_, source]| part != from && self.holder(*source) == from)
        };
        let mut messages = Vec::new();
        for peer in &self.peers {
            let mut message = Vec::new();
            for (quantity, array) in &*arrays {
                for [_, source] in foreign(*peer, own, *quantity) {
                    message.extend_from_slice(bytemuck::cast_slice(&array[grid.place(source) * pitch..][..pitch]));
                }
            }
            messages.push((*peer, message));
        }
        let expected = |peer: usize| arrays.iter().any(|(quantity, _)| foreign(own, peer, *quantity).next().is_some());
        let from: Vec<usize> = self.peers.iter().copied().filter(|peer| expected(*peer)).collect();
        let received = self.links.exchange(messages.into_iter().filter(|(_, message)| !message.is_empty()), &from)?;
        for (peer, message) in from.iter().zip(received) {
            let values: Vec<T> = values(&message);
            let mut rows = values.chunks_exact(pitch);
            for (quantity, array) in &mut *arrays {
                for ([to, _], row) in foreign(own, *peer, *quantity).zip(&mut rows) {
                    put(&mut array[grid.place(to) * pitch..][..pitch], row);
                }
            }
        }
        Ok(())
    }

    /// Fills `width` rows of guards below and above where other parts go on.
    pub(in crate::stages) fn fill<T: RealScalar>(&self, grid: &Grid, arrays: &mut [Array<'_, T>], width: [usize; 2]) -> Result<()> {
        if grid.part.is_none() {
            return Ok(());
        }
        let (height, periodic) = (self.height as isize, grid.periodic(1));
        let beyond = |part: usize, _: Quantity| -> Vec<[isize; 2]> {
            let [begin, end] = [self.rows[part].start, self.rows[part].end].map(|j| j as isize);
            let (below, above) = (begin - width[0] as isize..begin, end..end + width[1] as isize);
            let goes_on = |lower: bool| periodic || if lower { begin > 0 } else { end < height };
            let rows = below.filter(|_| goes_on(true)).chain(above.filter(|_| goes_on(false)));
            rows.map(|j| [j, if periodic { j.rem_euclid(height) } else { j }]).collect()
        };
        self.rows(grid, arrays, &beyond, &|to, from| to.copy_from_slice(from))
    }

    /// Adds deposits on guards beyond the domain to their nodes where these are another part's.
    pub(in crate::stages) fn fold<T: RealScalar>(&self, grid: &Grid, arrays: &mut [Array<'_, T>]) -> Result<()> {
        if grid.part.is_none() {
            return Ok(());
        }
        // Mirror images are in the part itself, which is high enough.
        let images = |part: usize, quantity: Quantity| -> Vec<[isize; 2]> {
            let folds = images::folds(grid, 1, quantity).into_iter();
            folds.filter(|(guard, image, _)| self.holder(*image) == part && self.holder(*guard) != part).map(|f| [f.1, f.0]).collect()
        };
        self.rows(grid, arrays, &images, &|to, from| to.iter_mut().zip(from).for_each(|(to, from)| *to += *from))
    }

    /// Lists of all parts, each joined in the order of the parts; at every part.
    pub(in crate::stages) fn lists(&self, own: Vec<Vec<f64>>) -> Result<Vec<Vec<f64>>> {
        if self.is_alone() {
            return Ok(own);
        }
        let mut message: Vec<f64> = own.iter().map(|list| list.len() as f64).collect();
        message.extend(own.iter().flatten());
        let mut joined = vec![Vec::new(); own.len()];
        for part in self.links.all_gather(bytemuck::cast_slice(&message).to_vec())? {
            let values: Vec<f64> = values(&part);
            let (lengths, mut rest) = values.split_at(own.len());
            for (to, length) in joined.iter_mut().zip(lengths) {
                let (list, behind) = rest.split_at(*length as usize);
                to.extend_from_slice(list);
                rest = behind;
            }
        }
        Ok(joined)
    }

    /// Leaves of the rows of nodes of all parts likewise.
    pub(in crate::stages) fn lists_of_rows(&self, grid: &Grid, own: Vec<Vec<f64>>) -> Result<Vec<Vec<f64>>> {
        if grid.part.is_none() { Ok(own) } else { self.lists(own) }
    }

    /// Values of all parts in the order of the parts: at every part, or at the first one with nothing at the others.
    pub(in crate::stages) fn joined<V: Pod>(&self, own: Vec<V>, everywhere: bool) -> Result<Vec<V>> {
        if everywhere { self.links.joined(own) } else { self.links.joined_at_first(own) }
    }

    /// An array over the whole domain from one with `row` values for each row of nodes that a part holds, guards zero: at every
    /// part, or at the first one with nothing at the others. The array itself where parts hold all rows.
    pub(in crate::stages) fn whole<V: Pod>(&self, grid: &Grid, array: &[V], row: usize, everywhere: bool) -> Result<Vec<V>> {
        if grid.part.is_none() {
            return Ok(array.to_vec());
        }
        let inside = grid.inside();
        let rows = self.joined(array[inside.start * row..inside.end * row].to_vec(), everywhere)?;
        if rows.is_empty() {
            return Ok(rows);
        }
        let mut all = vec![V::zeroed(); grid.whole().rows() * row];
        all[BELOW * row..][..rows.len()].copy_from_slice(&rows);
        Ok(all)
    }

    /// An array that all parts have whole, its rows of `row` values taken from their holders: at the first part, with nothing at
    /// the others.
    pub(in crate::stages) fn picked<V: Pod>(
        &self,
        grid: &Grid,
        array: &[V],
        row: usize,
        holder: &dyn Fn(usize) -> usize,
    ) -> Result<Vec<V>> {
        if grid.part.is_none() {
            return Ok(array.to_vec());
        }
        let mut places: Vec<[usize; 2]> = (0..array.len() / row).map(|r| [holder(r), r]).collect();
        let own = places.iter().filter(|[part, _]| *part == self.links.rank());
        let rows = self.joined(own.flat_map(|[_, r]| array[r * row..(r + 1) * row].iter().copied()).collect(), false)?;
        let mut all = vec![V::zeroed(); rows.len()];
        places.sort_unstable();
        for ([_, r], values) in places.iter().zip(rows.chunks_exact(row)) {
            all[r * row..(r + 1) * row].copy_from_slice(values);
        }
        Ok(all)
    }

    /// Rows that this part holds, with guards, out of an array over the whole domain with `row` values for each row of nodes.
    pub(in crate::stages) fn share<V: Copy>(&self, grid: &Grid, whole: &[V], row: usize) -> Vec<V> {
        if grid.part.is_none() {
            return whole.to_vec();
        }
        let (first, height) = (grid.held().start as isize - BELOW as isize, self.height as isize);
        let mut own = Vec::with_capacity(grid.rows() * row);
        for j in first..first + grid.rows() as isize {
            // Guards beyond a periodic side are rows of others.
            let source = if grid.periodic(1) { j.rem_euclid(height) } else { j };
            let begin = (source + BELOW as isize) as usize * row;
            own.extend_from_slice(&whole[begin..begin + row]);
        }
        own
    }

    /// The particles of all parts, tile by tile, at the first part; none at the others.
    pub(in crate::stages) fn particles(&self, own: Particles) -> Result<Particles> {
        if self.is_alone() {
            return Ok(own);
        }
        let [ux, uy, uz] = own.u;
        Ok(Particles {
            i: self.joined(own.i, false)?,
            j: self.joined(own.j, false)?,
            s: self.joined(own.s, false)?,
            t: self.joined(own.t, false)?,
            u: [self.joined(ux, false)?, self.joined(uy, false)?, self.joined(uz, false)?],
            weight: self.joined(own.weight, false)?,
            tag: self.joined(own.tag, false)?,
        })
    }
}
