//! Exchange with the other parts of a run: `send.cu`, `receive.cu`, and the slabs of leavers.
//!
//! Any two parts have a slab each way, of fixed room: what leaves a tile for one beside it goes in the order in which the tile's
//! lists have it, what goes far with its rank in the order of one part. The numbers stand in the slab, so that no host waits. How
//! full the slabs were is looked at now and then, by all parts together, which fit them to that before one overflows.

use std::ops::Range;

use zellige_engine::cuda::{Argument, Buffer, BufferOf, Cuda, Pool};
use zellige_engine::error::Result;
use zellige_engine::links::{Cut, Links, Place, Slabs};
use zellige_engine::profile::Profiler;
use zellige_engine::sim::Cost;

use super::arguments::{Inflow, Slab, Store};
use super::fastest;
use super::program::{KernelConfig, Kernels};
use super::tiling::Tiling;
use crate::grid::Rectangle;
use crate::model::{Edge, Model};
use crate::stages::shares::{area, gather};

/// Words of a slab before its links: `HEAD` of send.cu.
const HEAD: usize = 4;
/// Fewest leavers of a kind that a slab has room for.
const FEWEST: usize = 2048;
/// Blocks that take out what has come.
const RECEIVERS: u32 = 132;
/// Steps from one look at the slabs to the next, after the first ones.
const EVERY: u64 = 64;
/// Room of a slab as a multiple of the most that there was in it, once that is known.
pub const ROOM: usize = 8;
/// Least multiple, below which it grows, and the largest, above which it shrinks after some steps: slabs go to other processes
/// whole, and the room at the start is that for all that might come.
const MARGIN: [usize; 2] = [2, 12];
/// Steps after which rooms shrink.
const SETTLED: u64 = 16;
const WHAT: &str = "dsmc: exchange between parts";

/// Links from the tiles of one part to those of another: place of the tile among those of the domain, layer, way, and place of the
/// one beside.
type Link = (usize, usize, usize, usize);

/// Addresses of the owners of tiles and of the slabs, the half of these in use, and the number of parts, for `Store`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Address {
    pub(super) owner: u64,
    pub(super) slabs: u64,
    pub(super) half: u32,
    pub(super) parts: u32,
}

/// The slabs of a part.
pub(super) struct Beyond {
    cuda: Cuda,
    pool: Pool,
    pub(super) links: Links,
    pub(super) cut: Cut,
    /// Words of a near leaver and of a far one.
    words: [usize; 2],
    /// Room for near and far leavers of any two parts, `[one][other]`.
    rooms: Vec<[usize; 2]>,
    /// Links with each part.
    in_common: Vec<usize>,
    slabs: Slabs,
    table: BufferOf<Slab>,
    owner: Buffer<u16>,
    sent: Buffer<[u32; 3]>,
    came: Buffer<[u32; 4]>,
    peaks: Buffer<u32>,
}

/// Links from one part to another, in the order of their tiles: the same list at both.
fn links_between(cut: &Cut, tiling: &Tiling, from: usize, to: usize) -> Vec<Link> {
    let [width, height] = tiling.all.map(|n| n as isize);
    let mut all = Vec::new();
    for place in cut.tiles(from) {
        let at = [place as isize % width, place as isize / width];
        for way in (0..9).filter(|way| *way != 4) {
            let beside = [at[0] + way % 3 - 1, at[1] + way / 3 - 1];
            let inside = (0..width).contains(&beside[0]) && (0..height).contains(&beside[1]);
            let beside = (beside[1] * width + beside[0]) as usize;
            if inside && cut.owner(beside) == to {
                all.extend((0..tiling.layers).map(|layer| (place, layer, way as usize, beside)));
            }
        }
    }
    all
}

/// Cells of `a` from which the fastest particles of a step reach `b`, also across periodic sides.
fn band(model: &Model, a: Rectangle, b: Rectangle) -> usize {
    if a.is_empty() || b.is_empty() {
        return 0;
    }
    let reach = [0, 1].map(|axis| (fastest(model) * model.dt * model.cells_per_metre(axis)).ceil().min(1e9) as isize + 1);
    let along = |axis: usize| -> Vec<usize> {
        let n = model.grid.cells[axis] as isize;
        let shifts: &[isize] = if model.edges[2 * axis] == Edge::Periodic { &[-n, 0, n] } else { &[0] };
        let near = |cell: isize| {
            let range = b.range(axis);
            shifts.iter().any(|shift| cell + shift >= range.start as isize - reach[axis] && cell + shift < range.end as isize + reach[axis])
        };
        a.range(axis).filter(|cell| near(*cell as isize)).collect()
    };
    along(0).len() * along(1).len()
}

/// Room for near and far leavers of any two parts: all that are expected within their reach.
fn rooms(model: &Model, areas: &[Rectangle]) -> Vec<[usize; 2]> {
    let pair = |a: usize, b: usize| {
        let cells = band(model, areas[a], areas[b]).max(band(model, areas[b], areas[a]));
        [FEWEST + (1.25 * cells as f64 * model.per_cell) as usize; 2]
    };
    (0..areas.len()).flat_map(|a| (0..areas.len()).map(move |b| (a, b))).map(|(a, b)| pair(a, b)).collect()
}

/// Words of a near leaver and of a far one: `NEAR_WORDS` and `FAR_WORDS` of send.cu.
fn words(config: &KernelConfig) -> [usize; 2] {
    let near = 6 + usize::from(config.rotates) + usize::from(config.modes > 0) + usize::from(config.tagged);
    [near, near + 3 + usize::from(config.weighted)]
}

/// Bytes of a slab with so many links and so much room.
fn bytes(links: usize, room: [usize; 2], words: [usize; 2]) -> usize {
    4 * (HEAD + 2 * links + room[0] * words[0] + room[1] * words[1])
}

/// Number of part `other` among the places of part `part`.
fn number(part: usize, other: usize) -> usize {
    if other < part { other } else { other.saturating_sub(1) }
}

impl Beyond {
    pub(super) fn new(
        cuda: &Cuda,
        pool: &Pool,
        model: &Model,
        config: &KernelConfig,
        tiling: &Tiling,
        cut: Cut,
        links: &Links,
    ) -> Result<Self> {
        let (rank, parts) = (links.rank(), links.size());
        let others = || (0..parts).filter(|part| *part != rank);
        let areas: Vec<Rectangle> = (0..parts).map(|part| area(&cut, part, tiling.tile(), tiling.cells)).collect();
        let (mut sent, mut came, mut in_common) = (Vec::new(), Vec::new(), vec![0; parts]);
        let layers = tiling.layers;
        for part in others() {
            let out = links_between(&cut, tiling, rank, part);
            in_common[part] = out.len();
            sent.extend(out.into_iter().map(|(place, layer, way, _)| [(tiling.at(place) + layer) as u32, way as u32, part as u32]));
            let back = links_between(&cut, tiling, part, rank).into_iter();
            came.extend(back.map(|(place, layer, way, beside)| {
                let to = tiling.at(beside) + (layer + 1) % layers;
                [(tiling.at(place) + layer) as u32, way as u32, to as u32, part as u32]
            }));
        }
        let owner: Vec<u16> = (0..tiling.all[0] * tiling.all[1]).map(|place| cut.owner(place) as u16).collect();
        let words = words(config);
        let rooms = rooms(model, &areas);
        let slabs = slabs(cuda, pool, links, words, &rooms, &in_common)?;
        let mut beyond = Self {
            table: pool.alloc_zeros(parts, WHAT)?,
            owner: pool.buffer_from(&owner, WHAT)?,
            sent: pool.buffer_from(&sent, WHAT)?,
            came: pool.buffer_from(&came, WHAT)?,
            peaks: pool.alloc_zeros(2 * parts, WHAT)?,
            cuda: cuda.clone(),
            pool: pool.clone(),
            links: links.clone(),
            cut,
            words,
            rooms,
            in_common,
            slabs,
        };
        beyond.tell()?;
        Ok(beyond)
    }

    /// Tells the device where the slabs are.
    fn tell(&mut self) -> Result<()> {
        let (rank, parts, mut first) = (self.links.rank(), self.links.size(), 0);
        let mut table = Vec::new();
        for part in 0..parts {
            let [near, far] = self.rooms[rank * parts + part].map(|n| n as u32);
            let links = self.in_common[part] as u32;
            let k = number(rank, part);
            let address = |slab: fn(&Slabs, usize) -> &Buffer<u8>| if part == rank { 0 } else { slab(&self.slabs, k).address() };
            let (outgoing, incoming) = (address(Slabs::outgoing), address(Slabs::incoming));
            table.push(Slab { outgoing, incoming, near, far, links, first_link: first }.value());
            first += links;
        }
        self.cuda.upload(&mut self.table, &table)
    }

    /// The addresses for the next step.
    pub(super) fn argument(&self) -> Address {
        let parts = self.links.size() as u32;
        Address { owner: self.owner.address(), slabs: self.table.address(), half: self.slabs.half() as u32, parts }
    }

    /// Links to other parts: their address, and how many.
    pub(super) fn sent(&self) -> (u64, u32) {
        (self.sent.address(), self.sent.len() as u32)
    }

    /// The most particles that can come in a step.
    pub(super) fn most(&self) -> u64 {
        let (rank, parts) = (self.links.rank(), self.links.size());
        (0..parts).filter(|part| *part != rank).map(|part| self.rooms[rank * parts + part].iter().sum::<usize>() as u64).sum()
    }

    /// Has go what kernels have put into slabs in a step, and takes in what has come. Does not wait for the device.
    pub(super) fn exchange(&self, kernels: &Kernels, store: &Store, inflow: Inflow, profiler: &mut Profiler) -> Result<()> {
        let Some(receive) = &kernels.receive else { return Ok(()) };
        profiler.stage_on(&self.cuda, "slabs", Cost::default(), || self.slabs.exchange())?;
        let launch = receive.launch(RECEIVERS, 256).arg(*store).arg(inflow);
        let launch = launch.arg(&self.came).arg(&self.peaks);
        // SAFETY: the arguments as declared; a slab has its links and rooms; two numbers a part.
        profiler.stage_on(&self.cuda, "receive", Cost::default(), || unsafe { launch.run() })
    }

    /// True after steps in which all parts look at their slabs.
    pub(super) fn look_is_due(steps: u64) -> bool {
        steps.is_multiple_of(EVERY) || steps < EVERY && steps.is_power_of_two()
    }

    /// Makes the slabs larger where one was more than half full, and smaller where nearly all of it stays empty. Waits; all parts
    /// call this alike.
    pub(super) fn look(&mut self, steps: u64) -> Result<()> {
        let parts = self.links.size();
        let own = self.cuda.download(&self.peaks)?;
        let all = self.links.joined(own)?;
        let fullest = |a: usize, b: usize, kind: usize| all[2 * (a * parts + b) + kind].max(all[2 * (b * parts + a) + kind]) as usize;
        let mut grown = self.rooms.clone();
        for (a, b) in (0..parts).flat_map(|a| (0..parts).map(move |b| (a, b))) {
            for (kind, room) in grown[a * parts + b].iter_mut().enumerate() {
                let (held, [least, most]) = (fullest(a, b, kind), MARGIN);
                if least * held > *room || steps >= SETTLED && *room > most * held + 4 * FEWEST {
                    *room = ROOM * held + FEWEST;
                }
            }
        }
        if grown == self.rooms {
            return Ok(());
        }
        self.rooms = grown;
        self.slabs = slabs(&self.cuda, &self.pool, &self.links, self.words, &self.rooms, &self.in_common)?;
        self.tell()
    }

    /// Numbers of all tiles of the domain, `[outer][tile][inner]`, at the first part, of those of this one, which has `own`;
    /// nothing at the others.
    pub(super) fn whole(&self, tiling: &Tiling, own: &[f64], outer: usize, inner: usize) -> Result<Vec<f64>> {
        let (places, one) = (tiling.all[0] * tiling.all[1], tiling.layers * inner);
        let of_place = |place: usize| {
            let at = tiling.at(place) * inner;
            (0..outer).flat_map(|o| &own[o * tiling.len() * inner + at..][..one]).copied().collect()
        };
        let found = gather(&self.links, &self.cut, of_place)?;
        let mut all = vec![0.0; if self.links.is_first() { outer * places * one } else { 0 }];
        for (place, numbers) in found.iter().enumerate() {
            for (o, from) in numbers.chunks_exact(one.max(1)).enumerate() {
                all[(o * places + place) * one..][..one].copy_from_slice(from);
            }
        }
        Ok(all)
    }

    /// Numbers of the tiles of this part out of those of all.
    pub(super) fn own(&self, tiling: &Tiling, all: &[f64], outer: usize, inner: usize) -> Vec<f64> {
        let (places, one) = (tiling.all[0] * tiling.all[1], tiling.layers * inner);
        let mut own = vec![0.0; outer * tiling.len() * inner];
        for place in self.cut.tiles(self.links.rank()) {
            for o in 0..outer {
                let to = o * tiling.len() * inner + tiling.at(place) * inner;
                own[to..to + one].copy_from_slice(&all[(o * places + place) * one..][..one]);
            }
        }
        own
    }
}

/// Slabs with room for so many leavers.
fn slabs(cuda: &Cuda, pool: &Pool, links: &Links, words: [usize; 2], rooms: &[[usize; 2]], in_common: &[usize]) -> Result<Slabs> {
    let (rank, parts) = (links.rank(), links.size());
    let place = |part: usize| {
        let bytes = bytes(in_common[part], rooms[rank * parts + part], words);
        Place { part, theirs: number(part, rank), bytes }
    };
    let others: Range<usize> = 0..parts;
    let places: Vec<Place> = others.filter(|part| *part != rank).map(place).collect();
    Slabs::new(cuda, pool, links, &places, WHAT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;

    /// Every way between tiles of different parts is a link of these two, in the same order at both, and leads to a tile that the
    /// receiver has beside the one in its ring.
    #[test]
    fn links_are_all_ways_between_tiles_of_two_parts() {
        for (cells, layers, parts) in [([40, 24], 1, 2), ([40, 24], 1, 5), ([9, 1], 1, 3), ([6, 5], 3, 4), ([3, 2], 1, 8)] {
            let grid = Grid { cells, h: [1.0; 2], origin: [0.0; 2], dimensions: 2 };
            let tiling = Tiling::new(&grid, [0, 1], layers);
            let cut = Cut::new([tiling.all[0], tiling.all[1], 1], &[0, 1], parts, |tile| 1.0 + (tile % 3) as f64);
            let mut count = 0;
            for (a, b) in (0..parts).flat_map(|a| (0..parts).map(move |b| (a, b))).filter(|(a, b)| a != b) {
                let links = links_between(&cut, &tiling, a, b);
                assert_eq!(links.len(), links_between(&cut, &tiling, b, a).len());
                let there = tiling.of_part(cut.block(b));
                for (place, layer, way, beside) in &links {
                    assert!(cut.owner(*place) == a && cut.owner(*beside) == b && *layer < layers as usize);
                    let at = |place: usize| [place % tiling.all[0], place / tiling.all[0]];
                    let [from, to] = [at(*place), at(*beside)];
                    assert_eq!([to[0] + 1, to[1] + 1], [from[0] + way % 3, from[1] + way / 3]);
                    let cell = |tile: usize| there.cell(tile, 0).map(|cell| there.place_of(cell));
                    assert_eq!([cell(there.at(*place)), cell(there.at(*beside))], [Some(*place), Some(*beside)]);
                }
                count += links.len();
            }
            let [width, height] = tiling.all.map(|n| n as isize);
            let owner = |x: isize, y: isize| cut.owner((y * width + x) as usize);
            let ways = (0..height)
                .flat_map(|y| (0..width).map(move |x| (x, y)))
                .flat_map(|(x, y)| (0..9).map(move |w| (x, y, x + w % 3 - 1, y + w / 3 - 1)));
            let inside = ways.filter(|(.., x, y)| (0..width).contains(x) && (0..height).contains(y));
            let all = inside.filter(|(x, y, to_x, to_y)| owner(*x, *y) != owner(*to_x, *to_y)).count();
            assert!(count == all * layers as usize && (all > 0 || parts == 1), "{cells:?} in {parts}: {count} links, {all} ways");
        }
    }

    /// A slab has room for all that are expected within reach of the other part, also across periodic sides.
    #[test]
    fn rooms_follow_the_reach_of_a_step() {
        let mut config = crate::config::Config::new(vec![60, 40], vec![6e-3, 4e-3], "Ar", 1e21, 300.0);
        config.dt = 1e-7;
        let model = Model::new(&config, std::path::Path::new(""), 1).unwrap();
        let reach = (fastest(&model) * 1e-7 / 1e-4).ceil() as usize + 1;
        assert!((2..9).contains(&reach), "{reach}");
        let area = |from: usize, to: usize| Rectangle { lower: [from, 0], upper: [to, 40] };
        // Across one side, and across the other by the period.
        assert_eq!(band(&model, area(0, 30), area(30, 60)), 2 * reach * 40);
        assert_eq!(band(&model, area(0, 20), area(20, 40)), reach * 40);
        assert_eq!(band(&model, area(0, 20), area(40, 60)), reach * 40);
        let [near, far] = rooms(&model, &[area(0, 30), area(30, 60)])[1];
        assert!(near == far && near as f64 >= FEWEST as f64 + 2.0 * (reach * 40) as f64 * model.per_cell);
    }
}
