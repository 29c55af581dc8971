//! The CPU: tiles of cells as tasks, all stages of a tile in one pass while its particles are in the cache.
//!
//! A pass over a tile reads each particle once and writes it once: arrivals are put behind the tile's own, a counting sort brings
//! all into the order of cells in a thread's scratch, where they collide and are sampled, and the move writes them back, in no
//! order, with their new cells. What leaves goes to an outbox of the tile, from which others take it at the beginning of the next
//! pass. Tiles, sort and exchange are the engine's (`store`). Nothing depends on threads: every random number belongs to a cell, a
//! face or an index in a tile, and every sum has its order.

mod attempts;
mod balance;
pub(super) mod collide;
mod exchange;
mod fly;
mod inflow;
mod interface;
mod math;
mod moments;
mod pairing;
mod parts;
mod rows;
mod state;
mod store;
mod sums;
pub(super) mod tile;
mod totals;

pub(crate) use interface::bytes_of;
pub(crate) use math::Stream;

use std::sync::Mutex;

use zellige_engine::device::Cpu;
use zellige_engine::error::{Error, Result};
use zellige_engine::links::{Cut, Links, Relay};
use zellige_engine::real::{AVX512, Isa};

use self::fly::Pass;
use self::inflow::Face;
use self::store::{Deliveries, Outbox, ParticleState, Row, Store, Tiling};
use self::tile::{Scratch, Tile};
use super::{SURFACE_SUMS, Stages};
use crate::grid::Side;
use crate::model::{Edge, Model};
use crate::walls::subsonic::MovingAverage;

/// The gas on the CPU.
struct Gas {
    model: Model,
    cpu: Cpu,
    isa: Isa,
    table: collide::Table,
    /// The particles, but for those in `boxes[0]`.
    store: Store,
    tiles: Vec<Tile>,
    /// Faces of open sides by tile.
    faces: Vec<Vec<Face>>,
    /// Leavers of the last pass by tile, and of the one under way.
    boxes: [Vec<Outbox>; 2],
    /// Particles of `boxes[0]` by destination tile.
    post: Deliveries,
    scratch: Vec<Mutex<Scratch>>,
    /// For samples.
    factors: Vec<f64>,
    /// Sums of surfaces that were put in from outside.
    surfaces: Vec<f64>,
    /// Links to the other parts of the run, and the tiles of each.
    links: Links,
    cut: Cut,
    /// Way of leavers to other parts.
    relay: Relay,
    /// Put in from outside, so many.
    inserted: u64,
}

/// Everything that the pass over a tile works on.
struct Work<'a> {
    pass: Pass<'a>,
    table: &'a collide::Table,
    number: usize,
    tile: &'a mut Tile,
    row: &'a mut Row,
    faces: &'a mut [Face],
    boxes: &'a [Outbox],
    post: &'a Deliveries,
    out: &'a mut Outbox,
    scratch: &'a mut Scratch,
    factors: &'a [f64],
}

impl Work<'_> {
    #[inline(always)]
    fn run(self, isa: Isa) -> usize {
        let Self { pass, table, number, tile, row, faces, boxes, post, out, scratch, factors } = self;
        let species = pass.model.species.len();
        let keys = pass.tiling.cells_of_row() * species;
        let arrived = post.take(boxes, number, &tile.near, std::slice::from_mut(row));
        let n = scratch.order(row, keys);
        inflow::observe(&pass, faces, scratch);
        collide::collide(table, tile, pass.tiling, scratch, species, pass.step);
        if pass.sample {
            tile::sample(tile, scratch, keys, pass.model, factors, isa);
        }
        fly::fly(&pass, number, tile, row, scratch, n, out);
        inflow::inflow(&pass, number, tile, row, faces, out);
        inflow::sources(&pass, number, tile, row, out);
        tile::add_hits(tile, pass.model.weight);
        out.seal();
        arrived
    }

    /// A tile's pass; returns how many particles had arrived.
    fn on(self, isa: Isa) -> usize {
        match isa {
            // SAFETY: `Isa::best` asked the CPU.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { avx512(self) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2(self) },
            Isa::Baseline => self.run(isa),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,popcnt,bmi1,bmi2")]
fn avx512(work: Work<'_>) -> usize {
    if AVX512 { work.run(Isa::Avx512) } else { unreachable!("no `Isa` of this build") }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
fn avx2(work: Work<'_>) -> usize {
    work.run(Isa::Avx2)
}

/// The stages of a part of the run on a CPU.
pub fn new(model: &Model, cpu: &Cpu, links: &Links) -> Box<dyn Stages> {
    let tiling = store::tiling(&model.grid, model.per_cell);
    let cut = parts::cut(model, &tiling, links.size());
    let layout = store::layout(model);
    let tiles: Vec<Tile> = (0..tiling.len()).map(|t| tile::empty(model, &tiling, t)).collect();
    let mut faces = vec![Vec::new(); tiles.len()];
    for side in Side::ALL.into_iter().filter(|s| model.edges[s.index()] == Edge::Open && s.axis < model.grid.dimensions) {
        for along in 0..model.grid.cells[1 - side.axis] {
            let mut cell = [along; 2];
            cell[side.axis] = if side.upper { model.grid.cells[side.axis] - 1 } else { 0 };
            faces[tiling.locate(cell[0], cell[1]).tile as usize].push(Face { side, cell, moving: MovingAverage::default() });
        }
    }
    let surfaces = vec![0.0; (Side::ALL.len() + model.geometry.segments().len()) * SURFACE_SUMS];
    let boxes = [(); 2].map(|()| tiles.iter().map(|_| Outbox::default()).collect());
    let scratch = (0..cpu.threads()).map(|_| Mutex::new(Scratch::new(layout))).collect();
    Box::new(Gas {
        table: collide::Table::new(model),
        model: model.clone(),
        cpu: cpu.clone(),
        isa: Isa::best(),
        store: Store::new(tiling, layout, 0),
        tiles,
        faces,
        boxes,
        post: Deliveries::default(),
        scratch,
        factors: super::factors(model),
        surfaces,
        inserted: 0,
        links: links.clone(),
        relay: Relay::new(&cut, links.rank()),
        cut,
    })
}

/// Boxes of tiles of the parts of a gas, and cells of a tile along each axis.
pub(crate) fn cut(model: &Model, parts: usize) -> (Cut, [usize; 2]) {
    let tiling = store::tiling(&model.grid, model.per_cell);
    (parts::cut(model, &tiling, parts), tiling.tile)
}

impl Gas {
    fn tiling(&self) -> Tiling {
        self.store.tiling
    }

    /// Proves by two counts that all that left a tile arrived.
    fn check(&self, arrived: usize) -> Result<()> {
        let sent = self.post.sent();
        if sent == arrived {
            return Ok(());
        }
        let message = format!("{sent} particles left their tiles, {arrived} arrived");
        Err(Error::Numerics { what: "gas".into(), place: "exchange".into(), message })
    }

    /// Puts arrivals into their tiles and orders all, so that rows hold particles cell by cell.
    fn complete_exchange(&mut self) -> Result<()> {
        let keys = self.tiling().cells_of_row() * self.model.species.len();
        let mut scratch = self.scratch[0].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut arrived = 0;
        for (t, (tile, near)) in self.store.tiles.iter_mut().zip(self.tiles.iter().map(|t| &t.near)).enumerate() {
            arrived += self.post.take(&self.boxes[0], t, near, &mut tile.rows);
            if tile.is_empty() {
                continue;
            }
            for row in &mut tile.rows {
                scratch.order(row, keys);
                std::mem::swap(row, &mut scratch.sorted);
            }
        }
        drop(scratch);
        self.check(arrived)?;
        self.boxes[0].iter_mut().for_each(Outbox::clear);
        self.post.clear();
        Ok(())
    }

    /// Runs `each` over all particles: cell, species, particle.
    fn for_each(&self, mut each: impl FnMut(usize, usize, &ParticleState)) {
        let layout = self.store.layout();
        for (location, species, p) in self.store.iter() {
            each(self.model.grid.index(self.store.tiling.cell(location)), species, &ParticleState::of(&p, &layout));
        }
    }
}
