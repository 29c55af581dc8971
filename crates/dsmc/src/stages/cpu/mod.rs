//! The processor: tiles of cells as tasks, all stages of a tile in one pass while its particles are in the cache.
//!
//! A pass over a tile reads each particle once and writes it once: arrivals are put behind the tile's own, a counting sort brings
//! all into the order of cells in a thread's scratch, where they collide and are sampled, and the move writes them back, in no
//! order, with their new cells. What leaves goes to a box of the tile, which its neighbours empty at the beginning of the next pass.
//! Nothing depends on threads: every random number belongs to a cell, a face or a place in a tile, and every sum has its order.

pub(super) mod collide;
mod exchange;
mod fly;
mod inflow;
mod interface;
mod math;
mod moments;
mod pairing;
mod rows;
mod store;
mod sums;
pub(super) mod tile;
mod totals;
mod tries;

pub(crate) use interface::bytes_of;
pub(crate) use math::Stream;

use std::sync::Mutex;

use zellige_engine::device::Cpu;
use zellige_engine::real::Isa;

use self::fly::Pass;
use self::inflow::Face;
use self::interface::far_of;
use self::store::{Body, Kept, Leaver, Mosaic};
use self::tile::{Scratch, Tile};
use super::{SURFACE_SUMS, Stages};
use crate::grid::Side;
use crate::model::{Edge, Model};
use crate::walls::subsonic::Moving;

/// The gas on the processor.
struct Gas {
    model: Model,
    cpu: Cpu,
    isa: Isa,
    mosaic: Mosaic,
    table: collide::Table,
    tiles: Vec<Tile>,
    /// Faces of open sides by tile.
    faces: Vec<Vec<Face>>,
    /// Leavers of the last pass by tile, and of the one under way.
    boxes: [Vec<Vec<Leaver>>; 2],
    /// Leavers of the last pass that went further than a neighbour, by tile.
    far: Vec<Leaver>,
    scratch: Vec<Mutex<Scratch>>,
    /// For samples.
    factors: Vec<f64>,
    surfaces: Vec<f64>,
    /// Put in from outside, so many.
    inserted: u64,
}

/// Everything that the pass over a tile works on.
struct Work<'a> {
    pass: Pass<'a>,
    table: &'a collide::Table,
    number: usize,
    tile: &'a mut Tile,
    faces: &'a mut [Face],
    boxes: &'a [Vec<Leaver>],
    far: &'a [Leaver],
    out: &'a mut Vec<Leaver>,
    scratch: &'a mut Scratch,
    factors: &'a [f64],
}

impl Work<'_> {
    #[inline(always)]
    fn run(self, wide: bool) {
        let Self { pass, table, number, tile, faces, boxes, far, out, scratch, factors } = self;
        let species = pass.model.species.len();
        let keys = pass.mosaic.slots() * species;
        tile.arrive(number, boxes, far, pass.flags);
        let n = tile.index(keys, scratch, pass.flags);
        inflow::observe(&pass, faces, scratch);
        let kept = pass.model.collisions.kept();
        collide::collide(table, tile, pass.mosaic, scratch, species, pass.step);
        if pass.sample {
            // As constants, so that each is compiled by itself.
            match kept {
                10 => tile::sample(tile, scratch, keys, &pass.model.species, factors, 10, wide),
                12 => tile::sample(tile, scratch, keys, &pass.model.species, factors, 12, wide),
                kept => tile::sample(tile, scratch, keys, &pass.model.species, factors, kept, wide),
            }
        }
        fly::fly(&pass, number, tile, scratch, n, out);
        inflow::inflow(&pass, number, tile, faces, out);
        inflow::sources(&pass, number, tile, out);
    }

    fn on(self, isa: Isa) {
        match isa {
            // SAFETY: `Isa::best` asked the processor.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { avx512(self) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2(self) },
            Isa::Baseline => self.run(false),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,popcnt,bmi1,bmi2")]
fn avx512(work: Work<'_>) {
    work.run(true);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
fn avx2(work: Work<'_>) {
    work.run(true);
}

/// The stages on a processor.
pub fn new(model: &Model, cpu: &Cpu) -> Box<dyn Stages> {
    let mosaic = Mosaic::new(&model.grid, model.per_cell);
    let tiles: Vec<Tile> = (0..mosaic.len()).map(|t| tile::empty(model, &mosaic, t)).collect();
    let mut faces = vec![Vec::new(); tiles.len()];
    for side in Side::ALL.into_iter().filter(|s| model.edges[s.index()] == Edge::Open && s.axis < model.grid.dimensions) {
        for along in 0..model.grid.cells[1 - side.axis] {
            let mut cell = [along; 2];
            cell[side.axis] = if side.upper { model.grid.cells[side.axis] - 1 } else { 0 };
            faces[mosaic.place(cell).0].push(Face { side, cell, moving: Moving::default() });
        }
    }
    let surfaces = vec![0.0; (Side::ALL.len() + model.geometry.segments().len()) * SURFACE_SUMS];
    let boxes = [(); 2].map(|()| vec![Vec::new(); tiles.len()]);
    let scratch = (0..=cpu.threads()).map(|_| Mutex::default()).collect();
    Box::new(Gas {
        table: collide::Table::new(model),
        model: model.clone(),
        cpu: cpu.clone(),
        isa: Isa::best(),
        mosaic,
        tiles,
        faces,
        boxes,
        far: Vec::new(),
        scratch,
        factors: super::factors(model),
        surfaces,
        inserted: 0,
    })
}

impl Gas {
    fn flags(&self) -> Kept {
        Kept::new(&self.model)
    }

    /// Takes the leavers that go to no neighbour out of the boxes, in the order of their goals; leaves the boxes to the next pass.
    fn route(&mut self) {
        self.far.clear();
        for (t, out) in self.boxes[1].iter_mut().enumerate() {
            let near = &self.tiles[t].near;
            if out.iter().any(|l| !near.contains(&l.tile)) {
                self.far.extend(out.iter().filter(|l| !near.contains(&l.tile)));
                out.retain(|l| near.contains(&l.tile));
            }
        }
        self.far.sort_by_key(|l| l.tile);
        self.boxes.swap(0, 1);
    }

    /// Puts arrivals into their tiles and orders all, so that the columns hold particles cell by cell.
    fn settle(&mut self) {
        let flags = self.flags();
        let keys = self.mosaic.slots() * self.model.species.len();
        let mut scratch = self.scratch[0].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for (t, tile) in self.tiles.iter_mut().enumerate() {
            tile.arrive(t, &self.boxes[0], far_of(&self.far, t), flags);
            tile.len = tile.index(keys, &mut scratch, flags);
            std::mem::swap(&mut tile.columns, &mut scratch.sorted);
        }
        self.boxes[0].iter_mut().for_each(Vec::clear);
        self.far.clear();
    }

    /// Runs `each` over all particles: cell, species, particle.
    fn for_each(&self, mut each: impl FnMut(usize, usize, &Body)) {
        let species = self.model.species.len();
        for tile in &self.tiles {
            for i in (0..tile.len).filter(|i| !tile::is_hole(tile.columns.key[*i])) {
                let key = usize::from(tile.columns.key[i]);
                let slot = key / species;
                let local = [slot & ((1 << self.mosaic.shift[0]) - 1), slot >> self.mosaic.shift[0]];
                let cell = self.model.grid.index([0, 1].map(|d| tile.corner[d] + local[d]));
                each(cell, key % species, &tile.columns.get(i));
            }
        }
    }
}
