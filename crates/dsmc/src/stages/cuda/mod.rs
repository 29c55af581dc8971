//! The stages on an NVIDIA GPU.
//!
//! A block works on a tile of cells: it puts the tile's particles and those that arrive in order by cell in shared memory, collides
//! them, adds them to the averages, flies them, and writes them back with their new cells (`order.cu`, `fly.cu`, `attempts.cu`,
//! `pairing.cu`). Each particle is read once and written once. Leavers stay where they are and are listed; two small kernels tell
//! their new tiles which slots to read in the next step (`exchange.cu`). The few that hit a side or a body fly in a kernel of
//! their own (`wander.cu`, `flight.cu`), shared out evenly (`gather.cu`), together with the injected ones (`emit.cu`). In
//! cells so full that many hit mirrors, those fly in the pass (`mirror.cu`).
//!
//! Tiles that do not fit into shared memory are begun first (`turns.cu`), and kernels are there before the ones ahead have ended.
//! Nothing depends on the order in which blocks run: particles are ordered by where they come from, random numbers belong to cells,
//! faces and positions, and what is added up at once are whole numbers. Nothing in a step waits for the host.
//! The launches of small gases are recorded, and put on the stream several steps at a time (`recorded.rs`); their tiles find their
//! arrivals themselves (`arrive.cu`), and a warp of each block of flights flies once before they begin (`emit.cu`).

mod arguments;
mod averages;
mod batch_arguments;
mod batches;
mod beyond;
mod columns;
mod outside;
mod outside_arguments;
mod parts;
mod program;
mod recorded;
mod stages;
mod state;
mod store;
mod tables;
#[cfg(test)]
mod tests;
mod tiling;

use zellige_engine::cuda::{Buffer, Cuda, Pool, Properties, Recipe, prepare};
use zellige_engine::error::{Error, Result};
use zellige_engine::links::{Cut, Links};
use zellige_engine::ops::plane;

use self::averages::Averages;
use self::batches::Closed;
use self::beyond::Beyond;
pub use self::beyond::ROOM;
use self::program::{Copiers, KernelConfig};
use self::recorded::Recorded;
use self::store::Store;
use self::tables::Tables;
use self::tiling::Tiling;
use super::cpu::collide;
use super::shares::{area, boxes};
use super::{SURFACE_SUMS, Stages};
use crate::grid::Side;
use crate::model::{Edge, Model, ZDefinition};
use crate::sampling;
use crate::walls::BOLTZMANN;
use crate::walls::subsonic::MovingAverage;

/// Whole numbers of a surface's sums for the momentum and the energy of the heaviest molecule at [`fastest`]: a step's rounding is
/// 1e-8 of it, and 2^36 hits fit.
const FINE: f64 = 67_108_864.0;
/// Whole number of a hit, with cell weights.
const HITS: f64 = 65_536.0;
/// Most particles: slots have numbers of 32 bits.
const MOST: f64 = 4.0e9;
/// Steps after which a run with sides that follow the gas within is looked at.
const WATCH: u64 = 64;

/// The gas on a GPU.
struct Gas {
    cuda: Cuda,
    pool: Pool,
    model: Model,
    store: Store,
    tables: Tables,
    /// (sigma g)max, the largest product seen and the attempts since: by pair, tile and cell.
    majorants: [Buffer<f32>; 3],
    averages: Averages,
    closed: Closed,
    /// Exchange with the other parts of a run.
    beyond: Option<Beyond>,
    surfaces: Buffer<u64>,
    moving: Buffer<f64>,
    offsets: Buffer<u32>,
    groups: Buffer<u32>,
    totals: Buffer<f64>,
    /// Factors of the hits, momentum and energy of a surface.
    fine: [f64; 3],
    /// No more slots than this are in use.
    most: u64,
    /// Put in by the host.
    inserted: u64,
    /// Copies made, with cell weights, and particles come from other parts, when the device was last asked; the most in a step on
    /// average between two times, and how many a step is taken to bring.
    copied: u64,
    rate: u64,
    copies: u64,
    /// The host's words, to find out whether the next ones differ.
    last_groups: Vec<u32>,
    /// Steps made, and those made when the device was last looked at.
    steps: u64,
    looked: u64,
    recorded: Recorded,
    /// Kernels that copy for a caller, once one has asked.
    copiers: Option<Copiers>,
}

/// The stages of a part of a gas on `cuda`.
pub fn of_part(model: &Model, cuda: &Cuda, links: &Links) -> Result<Box<dyn Stages>> {
    new_with(model, cuda, tiling::kernel_config_of(model, cuda.properties(), links.size()), links)
}

/// Programs of a gas in so many parts.
pub fn recipes(model: &Model, gpu: &Properties, parts: usize) -> Vec<Recipe> {
    program::recipes(&tiling::kernel_config_of(model, gpu, parts)).into()
}

/// Programs that a run in one part has besides when a caller in Python asks for what lies on its GPU, or sets it.
pub fn recipes_of_copies(model: &Model, gpu: &Properties) -> Vec<Recipe> {
    vec![plane::copier::recipe(), program::copies(&tiling::kernel_config(model, gpu))]
}

/// Boxes of tiles of the parts of a gas, and cells of a tile along each axis.
pub fn cut(model: &Model, gpu: &Properties, parts: usize) -> (Cut, [usize; 2]) {
    let config = tiling::kernel_config_of(model, gpu, parts);
    let tiling = Tiling::new(&model.grid, config.shift, config.layers);
    (boxes(model, tiling.all, tiling.tile(), parts), tiling.tile())
}

/// A speed of the order of the fastest, m/s: of the lightest molecule in the hottest gas, and the drift.
fn fastest(model: &Model) -> f64 {
    let lightest = model.species.iter().map(|s| s.mass).fold(f64::MAX, f64::min);
    model.hottest[1] + 3.0 * (2.0 * BOLTZMANN * model.hottest[0] / lightest).sqrt()
}

fn new_with(model: &Model, cuda: &Cuda, config: KernelConfig, links: &Links) -> Result<Box<dyn Stages>> {
    if model.expected > MOST {
        let message = format!("{:.3e} particles are asked for; on a GPU there may be at most {MOST:.1e}", model.expected);
        let hint = "a larger `weight`, fewer `particles_per_cell`, or `--device cpu`".to_owned();
        return Err(Error::Device { device: cuda.name().to_owned(), message, hint: Some(hint) });
    }
    prepare(cuda, program::recipes(&config).into());
    let pool = cuda.pool();
    let whole = Tiling::new(&model.grid, config.shift, config.layers);
    let cut = boxes(model, whole.all, whole.tile(), links.size());
    let tiling = if config.parts { whole.of_part(cut.block(links.rank())) } else { whole };
    let area = area(&cut, links.rank(), whole.tile(), whole.cells);
    let store = Store::new(cuda, &pool, config, &model.grid, tiling)?;
    let tables = Tables::new(model, &store.tiling, &pool)?;
    let cells = store.tiling.len() * config.cells();
    let pairs = if model.collisions.scheme == crate::model::Scheme::None { 0 } else { collide::pair_count(model.species.len()) };
    let sigma_g_max: Vec<f32> =
        collide::majorants(model).iter().take(pairs).flat_map(|m| std::iter::repeat_n(m.sigma_g_max, cells)).collect();
    let heaviest = model.species.iter().map(|s| s.mass).fold(0.0, f64::max);
    let speed = fastest(model);
    // Hits have the number weights of their particles.
    let largest = model.weights.iter().copied().fold(0.0, f32::max);
    let (largest, hits) = if model.weighted() { (f64::from(largest), HITS / f64::from(largest)) } else { (1.0, 1.0) };
    let faces = tables.faces.len() * model.species.len();
    let groups = model.sources.len() * (1 + model.species.len()) + 1;
    let beyond = if config.parts { Some(Beyond::new(cuda, &pool, model, &config, &tiling, cut, links)?) } else { None };
    let numbers = |n: usize, what: &str| pool.alloc_zeros::<f64>(n, what);
    Ok(Box::new(Gas {
        majorants: [
            pool.buffer_from(&sigma_g_max, "dsmc: (sigma g)max")?,
            pool.alloc_zeros(cells * pairs, "dsmc: (sigma g)max")?,
            pool.alloc_zeros(cells * pairs, "dsmc: (sigma g)max")?,
        ],
        averages: Averages::new(model, &config, tiling, area, cuda, &pool)?,
        closed: Closed::new(&pool)?,
        surfaces: pool.alloc_zeros((Side::ALL.len() + model.geometry.segments().len()) * SURFACE_SUMS, "dsmc: surfaces")?,
        moving: numbers((6 + MovingAverage::species_counts(model.species.len())) * tables.volume.len(), "dsmc: open sides")?,
        offsets: pool.alloc_zeros(faces + 1, "dsmc: open sides")?,
        groups: pool.alloc_zeros(groups, "dsmc: sources")?,
        totals: numbers(6 * tiling.own_len(), "dsmc: totals")?,
        fine: [hits, FINE / (largest * heaviest * speed), FINE / (largest * heaviest * speed * speed)],
        most: 0,
        inserted: 0,
        copied: 0,
        rate: 0,
        copies: beyond.as_ref().map_or(0, Beyond::most),
        beyond,
        last_groups: Vec::new(),
        steps: 0,
        looked: 0,
        recorded: Recorded::new(&pool)?,
        copiers: None,
        cuda: cuda.clone(),
        pool,
        model: model.clone(),
        store,
        tables,
    }))
}

/// Bytes that a run needs on a GPU, averages included.
pub fn memory(model: &Model) -> u64 {
    let c = &model.collisions;
    let (cells, species) = (model.grid.len() as f64, model.species.len() as f64);
    let particle = 22.0 + if c.rotation { 4.0 } else { 0.0 } + 2.0 * c.modes.min(2) as f64 + if c.partner.tagged() { 4.0 } else { 0.0 };
    let open = model.edges.contains(&Edge::Open) || !model.sources.is_empty();
    let spare = if open && tiling::is_small(model) {
        1.5
    } else if model.weighted() {
        1.3
    } else if open {
        17.0 / 16.0
    } else {
        1.0
    };
    // Of a small gas: lists once more, chains, and the list of those that hit something.
    let lists = if tiling::is_small(model) { 22.0 + if model.weighted() { 4.0 } else { 0.0 } } else { 4.0 };
    let sums = if super::samples_at_a_time(model.per_cell) > 1 { 12.0 } else { 8.0 } * species * c.kept() as f64;
    // Of all batches, and their scatter: batches.rs.
    let closed = 8.0 * (species * c.kept() as f64 + sampling::width(model) as f64 + 1.0)
        + 4.0 * sampling::sections::lines(model) as f64
        + if model.weighted() { 4.0 } else { 0.0 };
    (model.expected * spare * (2.0 * particle + lists) + cells * (sums + closed + 6.0 * species * (species + 1.0) + 10.0)) as u64
}

impl Gas {
    fn gas(&self, step: u64) -> arguments::Gas {
        let t = &self.tables;
        let [sigma_g_max, seen, attempts] = self.majorants.each_ref().map(Buffer::address);
        arguments::Gas {
            pairs: t.pairs.address(),
            modes: t.modes.address(),
            lookup: t.lookup.address(),
            rate: t.rate.address(),
            sigma_g_max,
            seen,
            attempts,
            divided: t.divided.address(),
            parts: t.parts.address(),
            outline: t.outline.address(),
            seed: self.model.seed,
            step: self.step_word(step),
            stride: (self.store.tiling.len() * self.store.config.cells()) as u64,
            chances: t.chances.address(),
            across: collide::across(&self.model),
            jeans: u32::from(self.model.collisions.z_definition == ZDefinition::Jeans),
        }
    }

    /// A step as kernels take it (`step_of` of random.cu).
    fn step_word(&self, step: u64) -> u64 {
        if self.store.config.recorded { self.recorded.clock.address() + 8 * self.store.set_in_use() as u64 } else { step }
    }

    /// Cells per velocity along each axis.
    fn path(&self) -> [f32; 2] {
        [0, 1].map(|d| (self.model.dt * self.model.cells_per_metre(d)) as f32)
    }

    fn pass(&self) -> arguments::Pass {
        let t = &self.tables;
        arguments::Pass {
            step: self.path(),
            stride: (self.store.tiling.len() * self.store.config.keys()) as u32,
            reach: t.reach.address(),
            sums: self.averages.address(),
            factor: t.factor.address(),
            follow_first: t.follow_first.address(),
            follow: t.follow.address(),
            memory: t.memory.address(),
            moving: self.moving.address(),
            mass: t.mass.address(),
            weights: t.weights.address(),
            dt: self.model.dt,
            per_metre: [0, 1].map(|d| self.model.cells_per_metre(d)),
            surfaces: self.surfaces.address(),
            momentum: self.fine[1],
            mirrors: tiling::mirrors(&self.model),
        }
    }

    fn domain(&self, step: u64, sample: bool) -> arguments::Domain {
        let edge = |e: &Edge| match e {
            Edge::Periodic => -1,
            Edge::Open => -2,
            Edge::Wall(wall) | Edge::Walls(wall) => *wall as i32,
        };
        arguments::Domain {
            edge: self.model.edges.each_ref().map(edge),
            along: self.model.edges.map(|e| u32::from(matches!(e, Edge::Walls(_)))),
            path: self.path(),
            dt: self.model.dt,
            per_metre: [0, 1].map(|d| self.model.cells_per_metre(d)),
            seed: self.model.seed,
            step: self.step_word(step),
            walls: self.tables.walls.address(),
            species: self.tables.molecules.address(),
            surfaces: self.surfaces.address(),
            hits: self.fine[0],
            momentum: self.fine[1],
            energy: self.fine[2],
            weights: self.tables.weights.address(),
            sample: u32::from(sample),
            capacity: self.store.capacity as u32,
        }
    }

    fn geometry(&self) -> arguments::Geometry {
        let t = &self.tables;
        arguments::Geometry {
            slots: t.slots.address(),
            first: t.first.address(),
            pieces: t.pieces.address(),
            references: t.references.address(),
            segments: t.segments.address(),
            inside: t.inside.address(),
            cells: self.model.grid.cells.map(|n| n as i32),
            h: self.model.grid.h,
        }
    }

    fn inflow(&self) -> arguments::Inflow {
        let (t, model) = (&self.tables, &self.model);
        arguments::Inflow {
            faces: t.faces.address(),
            beams: t.beams.address(),
            given: t.given.address(),
            moving: self.moving.address(),
            volume: t.volume.address(),
            offsets: self.offsets.address(),
            lines: t.lines.address(),
            groups: self.groups.address(),
            fractions: t.fractions.address(),
            per_flux: [0, 1].map(|axis| model.grid.h[1 - axis] * model.dt / model.weight),
            face_count: t.faces.len() as u32,
            line_count: model.sources.len() as u32,
        }
    }

    /// True if particles can be injected.
    fn is_fed(&self) -> bool {
        !self.tables.faces.is_empty() || !self.model.sources.is_empty()
    }

    /// Refuses to go on where something found no room.
    fn whole(&self) -> Result<arguments::Counters> {
        let counters = self.store.counters()?;
        super::overfull(u64::from(counters.fullest))?;
        if counters.unsent > 0 {
            return Err(Error::Numerics {
                what: "gas".into(),
                place: "exchange between parts".into(),
                message: format!(
                    "{} particles more left a part in a step than there was room for on the way: many more than in the steps before; use fewer parts or a smaller `dt`",
                    counters.unsent
                ),
            });
        }
        if counters.refused > 0 {
            return Err(Error::Numerics {
                what: "injected gas".into(),
                place: "open sides".into(),
                message: format!(
                    "{} particles found no room in a step: more were injected, entered cells of less weight, or came from other parts, than ever before; use a smaller `dt`",
                    counters.refused
                ),
            });
        }
        Ok(counters)
    }
}
