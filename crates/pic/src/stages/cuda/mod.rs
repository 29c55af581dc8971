//! The stages on an NVIDIA GPU.
//!
//! Particles lie in lists of pages that come from one pool, a list for each warp that works on a tile (`store.rs`). One kernel
//! pushes, moves, deposits, keeps those that stay in order and sends the others on (`advance.cu`, `exchange.cu`); what comes to a
//! tile is part of its next step. Tiles far fuller than the mean are shared among several blocks (`team.cu`). The sums of the
//! current are integers, which do not depend on the order of the additions and conserve charge exactly (`deposit.cu`, `sums.cu`).
//! Fields of a periodic domain take one more kernel (`fused_fields.cu`). Nothing in a step waits for the host.

mod arguments;
mod beside;
mod capacity;
mod columns;
mod current;
mod field_arguments;
mod fields;
mod input;
mod limits;
mod particle_diagnostics;
mod program;
#[cfg(test)]
mod quadratic;
mod stages;
mod store;

use std::sync::Arc;

use zellige_engine::cuda::{Buffer, Cuda, Downloads, Launch, Mapped, Pool, Properties, Recipe, prepare};
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::links::Links;
use zellige_engine::ops::plane;

use self::arguments::Domain;
pub use self::capacity::memory;
use self::fields::Fields;
pub(crate) use self::fields::fuses_fields;
pub use self::limits::check;
use self::program::{CHECKED_BITS, Kernels, UNIT_BITS};
pub use self::program::{KernelConfig, recipe};
use self::store::Store;
use super::part::Part;
use super::{Ledger, Precision, Setup, Stages};
use crate::grid::ParticleSide;
use crate::loading::UniformSource;
use crate::particles::{Pusher, Species};

/// Cells of a tile where the input does not say: in two dimensions per axis, and in one.
const TILE: usize = 16;
const LINE: usize = 128;
/// Units of work that a place of the device should have, and the least particles that a unit of half the size is worth.
const UNITS: usize = 3;
const LEAST: usize = 8192;
/// Most particles of a unit on the mean.
const MOST: usize = 1 << 15;
/// Least cells of a tile per axis, and particles of it, where there are fewer tiles than a quarter of the places.
const SMALL: usize = 4;
const ROUND: usize = 256;
/// Least particles of a part of a unit that is split for being very full.
const TARGET: usize = 2048;

/// The stages of `cuda` for `setup`. Nothing but particles is left to be put in.
pub fn new(setup: &Setup, cuda: &Cuda) -> Result<Box<dyn Stages>> {
    of_part(setup, cuda, &Links::default())
}

/// The stages of one part of a run, with its share of the domain.
pub fn of_part(setup: &Setup, cuda: &Cuda, links: &Links) -> Result<Box<dyn Stages>> {
    open(setup, cuda, |kernel_config| kernel_config, links)
}

/// Stages with the choices for each species as `adapt` changes them: for measurements and tests.
pub fn new_with(setup: &Setup, cuda: &Cuda, adapt: impl Fn(KernelConfig) -> KernelConfig) -> Result<Box<dyn Stages>> {
    open(setup, cuda, adapt, &Links::default())
}

/// Cells of what is shared out among parts, and how many per axis. Results do not depend on tiles: rows of the usual ones are
/// shared out where there are many, else as few as can be.
pub(in crate::stages) fn lattice(setup: &Setup, parts: usize) -> [[usize; 2]; 2] {
    let [width, height] = setup.grid.cells;
    let rows = if height >= 4 * TILE * parts { TILE } else { 1 };
    [[width, rows], [1, height.div_ceil(rows)]]
}

fn open(setup: &Setup, cuda: &Cuda, adapt: impl Fn(KernelConfig) -> KernelConfig, links: &Links) -> Result<Box<dyn Stages>> {
    super::cpu::check(setup)?;
    if setup.grid.dimensions == 1 && !links.is_alone() {
        let problem = Problem::new("--parts", format!("{} parts of a line on GPUs", links.size()));
        return Err(Error::input("command line", problem.hint("use one GPU, or `--device cpu`: in parts a GPU has rows of a plane")));
    }
    let part = Arc::new(Part::new(&setup.grid, lattice(setup, links.size()), None, links)?);
    let grid = part.grid(&setup.grid);
    let external = std::array::from_fn(|c| match &setup.external[c] {
        none if none.is_empty() => Vec::new(),
        whole => part.share(&grid, whole, grid.pitch()),
    });
    let setup = Setup { grid, external, ..setup.clone() };
    check(&setup, cuda.properties())?;
    Ok(Box::new(CudaStages::of_part(&setup, cuda, adapt, part)?))
}

/// Programs of all species and of the fields.
pub fn recipes(setup: &Setup, gpu: &Properties) -> Vec<Recipe> {
    recipes_of(setup, gpu, &|kernel_config| kernel_config)
}

/// Programs that copy fields and particles in the memory of the GPU.
pub fn recipes_of_copies() -> Vec<Recipe> {
    vec![plane::copier::recipe(), columns::recipe()]
}

/// Programs that make the particles of the species for which `made` is true.
pub fn makers(setup: &Setup, gpu: &Properties, made: &dyn Fn(usize) -> bool) -> Vec<Recipe> {
    let of = |s: usize| program::maker(&kernel_config(setup, expected(setup, s), gpu).of(&setup.species[s]));
    (0..setup.species.len()).filter(|s| made(*s)).map(of).collect()
}

fn recipes_of(setup: &Setup, gpu: &Properties, adapt: &dyn Fn(KernelConfig) -> KernelConfig) -> Vec<Recipe> {
    let kinds = setup.species.iter().enumerate().map(|(k, species)| adapt(kernel_config(setup, expected(setup, k), gpu).of(species)));
    let pictures = (setup.grid.dimensions == 2).then(plane::recipe);
    kinds.map(|kernel_config| recipe(&kernel_config)).chain([fields::recipe(setup.precision)]).chain(pictures).collect()
}

/// Particles of a species that are expected on the rows that `setup` has.
fn expected(setup: &Setup, species: usize) -> usize {
    let (all, rows) = (setup.expected[species], setup.grid.cells[1]);
    (all as u128 * setup.grid.held().len() as u128).div_ceil(rows as u128) as usize
}

/// A species and its counters.
struct Population {
    species: Species,
    store: Store,
    /// Ledger of the host: injections. The device's counters add to it.
    ledger: Ledger,
    /// Sums over items of the last measured step: kinetic energy and momentum per weight; their totals, and the number of
    /// particles.
    measured: Buffer<f64>,
    totals: Mapped<f64>,
}

impl Population {
    /// As kernels see the domain now.
    fn domain(&self) -> Domain {
        Domain::new(&self.store.grid, self.store.tiles, self.store.passed, &self.species)
    }
}

/// State of a plasma in the memory of a GPU.
pub struct CudaStages {
    cuda: Cuda,
    pool: Pool,
    part: Arc<Part>,
    /// That of the whole domain, with the grid and the external fields of this part.
    setup: Setup,
    fields: Fields,
    species: Vec<Population>,
    /// Current in integers: three components over all nodes with guards, in units of `pending / (4 K)`. Two of them where the
    /// update of the fields is fused: what the last step left is cleared in this one.
    sums: [Buffer<i64>; 2],
    /// Index of the one that is added to.
    adding: usize,
    /// Conversion of J that is still in the other one.
    unread: Option<Current>,
    /// Magnitude of the charge that the sums are in units of, where there is something in them.
    pending: Option<f64>,
    /// J is still that of the step before.
    fresh: bool,
    /// Species whose particles have yet to go to other parts, where there are some.
    pushed: Vec<usize>,
    /// Species and `swap_pages` of the last launch, in the same step: the next species need not wait for it.
    ahead: Option<usize>,
    /// K of deposit.cu.
    unit: f64,
    /// Largest weight of a particle, as a power of two.
    heaviest: f64,
    /// No particle can go out: all sides are periodic and no window moves.
    closed: bool,
    /// Extents of columns by blocks; empty before they are asked for.
    extents: Buffer<f64>,
    /// Histograms on their way to the host, once there was one.
    histograms: Option<Downloads<u64>>,
    /// Kernel that copies particles, once somebody has asked.
    columns: Option<columns::ColumnKernels>,
    /// Particles of the next shift of the window: the species, how it is made and in which column.
    coming: Vec<(usize, UniformSource, u64)>,
}

/// Conversion of integer sums to J.
#[derive(Debug, Clone, Copy)]
struct Current {
    scales: [f64; 3],
    /// J has a part of this step already.
    more: bool,
}

/// A launch that may begin while the kernel ahead ends, where the device can do that; the kernel waits by itself.
fn early<'a>(cuda: &Cuda, launch: Launch<'a>) -> Launch<'a> {
    if cuda.properties().capability.0 >= 9 { launch.early() } else { launch }
}

/// The tile for a domain: near the size asked for, and such that the tiles are alike. Smaller ones where they would be too few to
/// keep `places` blocks busy.
fn tile_of(setup: &Setup, expected: usize, places: usize) -> [usize; 2] {
    let cells = setup.grid.cells_held();
    let tiles = |tile: [usize; 2]| (0..2).map(|a| cells[a].div_ceil(tile[a])).product::<usize>();
    let wanted = setup.tile.unwrap_or_else(|| {
        let few = |tile| tiles(tile) < UNITS * places && expected / tiles(tile) > LEAST;
        match cells[1] {
            1 => [LINE, 1],
            _ if few([TILE; 2]) => [TILE / 2; 2],
            _ => [TILE; 2],
        }
    });
    let wanted = if setup.tile.is_some() { wanted } else { small_tile(wanted, tiles, expected, places) };
    [0, 1].map(|a| {
        let most = wanted[a].clamp(1, 128);
        cells[a].div_ceil(cells[a].div_ceil(most))
    })
}

/// Smaller tiles than `tile` for a plasma that leaves most places idle: each warp then has a round of particles or a few, one after
/// the other, and what a step takes is their length.
fn small_tile(mut tile: [usize; 2], tiles: impl Fn([usize; 2]) -> usize, expected: usize, places: usize) -> [usize; 2] {
    loop {
        let half = tile.map(|n| (n / 2).max(1));
        if 4 * tiles(tile) > places || half[0] < SMALL || expected / tiles(half) < ROUND {
            return tile;
        }
        tile = half;
    }
}

/// Tiles per axis: a column more than the cells take where a window moves past them, since part of the first is behind it then.
fn tiles(setup: &Setup, kernel_config: &KernelConfig) -> [usize; 2] {
    let ([nx, ny], [tx, ty]) = (setup.grid.cells_held(), kernel_config.tile);
    [(nx + if setup.window { tx - 1 } else { 0 }).div_ceil(tx), ny.div_ceil(ty)]
}

/// Kernel configuration but for the species.
fn kernel_config(setup: &Setup, expected: usize, gpu: &Properties) -> KernelConfig {
    let single = setup.precision == Precision::F32;
    let resident = match (single, setup.order) {
        (true, 1) => 4,
        (true, _) => 3,
        _ => 2,
    };
    let tile = tile_of(setup, expected, (gpu.multiprocessors * resident) as usize);
    let cells = setup.grid.cells_held();
    let tiles: usize = (0..2).map(|a| cells[a].div_ceil(tile[a])).product();
    let per_tile = expected.div_ceil(tiles).max(1);
    let parts = per_tile.div_ceil(MOST);
    let block = 256;
    let per_list = (per_tile / parts / (block as usize / 32)).max(1);
    let reach = setup.grid.h.iter().map(|h| setup.grid.dt / h).fold(0.0, f64::max);
    KernelConfig {
        precision: setup.precision,
        order: setup.order,
        weighted: false,
        tagged: false,
        pusher: Pusher::Boris,
        tile,
        // Half a page of each list is empty: pages of a sixteenth of a list waste 3 %.
        shift: per_list.ilog2().saturating_sub(4).clamp(6, 7),
        parts,
        block,
        resident,
        checked: checked(setup),
        most: KernelConfig::most(reach),
        outbox_rounds: outbox_rounds(expected, per_tile / parts, block),
        target: TARGET,
        ahead: 128,
    }
}

/// Rounds of a warp that its outbox is made for: all of a unit with few, and fewer than is best where the outboxes of all blocks
/// would be a tenth of what the particles take.
fn outbox_rounds(expected: usize, per_unit: usize, block: u32) -> u32 {
    let rounds = (per_unit as u32).div_ceil(block) + 1;
    rounds.clamp(1, if expected < 1 << 23 { 3 } else { 8 })
}

/// True if additions to the current are checked one by one: light particles need a finer unit than what makes checks needless.
fn checked(setup: &Setup) -> bool {
    setup.precision == Precision::F32 && setup.species.iter().any(|s| s.weighted)
}

/// K of deposit.cu: as fine as the numbers can hold.
fn unit_of(setup: &Setup, heaviest: f64) -> f64 {
    // Sums of 32 bits are carried over, those of 64 must not run over: 2^(62 - 42) particles of weight 1 may cross one node at the
    // speed of light. Roundings in floating point need |K w| below a third of the magic number. A density a thousand times the
    // mean of a box with very many particles a cell has room, too; beyond it `convert` and `fused_fields` make the current not a
    // number, which ends the run.
    let per_cell = setup.expected.iter().max().map_or(0.0, |n| *n as f64 / (setup.grid.cells[0] * setup.grid.cells[1]) as f64);
    let bits = match setup.precision {
        Precision::F32 if checked(setup) => CHECKED_BITS,
        Precision::F32 => UNIT_BITS,
        Precision::F64 => 40.0 - (per_cell.max(1.0).log2().ceil() - 10.0).max(0.0),
    };
    (bits - heaviest.log2().ceil().max(0.0)).exp2()
}

impl CudaStages {
    /// The stages of `cuda` for `setup`, with what `adapt` makes of the choices for each species.
    pub fn new(setup: &Setup, cuda: &Cuda, adapt: impl Fn(KernelConfig) -> KernelConfig) -> Result<Self> {
        Self::of_part(setup, cuda, adapt, Arc::new(Part::alone(&setup.grid)))
    }

    /// The stages of a part, whose grid `setup` has.
    fn of_part(setup: &Setup, cuda: &Cuda, adapt: impl Fn(KernelConfig) -> KernelConfig, part: Arc<Part>) -> Result<Self> {
        let pool = cuda.pool();
        prepare(cuda, recipes_of(setup, cuda.properties(), &adapt));
        let species = setup.species.iter().enumerate().map(|(k, species)| {
            let expected = expected(setup, k);
            let kernel_config = adapt(kernel_config(setup, expected, cuda.properties()).of(species));
            let store = Store::new(cuda, &pool, Kernels::new(cuda, &kernel_config)?, kernel_config, setup, expected, &part)?;
            Ok(Population {
                store,
                species: species.clone(),
                ledger: Ledger::default(),
                measured: pool.alloc_zeros(0, "pic: energies")?,
                totals: cuda.mapped(5)?,
            })
        });
        let fields = Fields::new(setup, &part, cuda, &pool)?;
        let second = if fields.fuses_fields() { 3 * setup.grid.len() } else { 0 };
        let sums = |n: usize| pool.alloc_zeros(n, "pic: current");
        Ok(Self {
            species: species.collect::<Result<_>>()?,
            fields,
            sums: [sums(3 * setup.grid.len())?, sums(second)?],
            adding: 0,
            unread: None,
            pending: None,
            fresh: false,
            pushed: Vec::new(),
            ahead: None,
            unit: unit_of(setup, 1.0),
            heaviest: 1.0,
            extents: pool.alloc_zeros(0, "pic: extent of a histogram")?,
            histograms: None,
            columns: None,
            coming: Vec::new(),
            closed: setup.grid.particles.iter().flatten().all(|s| *s == ParticleSide::Periodic),
            cuda: cuda.clone(),
            pool,
            part,
            setup: setup.clone(),
        })
    }

    /// Blocks beside the first ones that work on very full tiles of a species: those that have or had a tile, and those of them
    /// without one now. Waits.
    pub fn helpers(&self, species: usize) -> Result<[u32; 2]> {
        let counters = self.species[species].store.counters()?;
        Ok([counters.helping, counters.spare])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sums of the current in double precision hold a thousand times as many particles in one place as there are in the mean,
    /// and 2^20 in any case.
    #[test]
    fn sums_of_double_precision_have_room() {
        for per_cell in [1_usize, 64, 1024, 1 << 14, 1 << 20] {
            let setup = bare([64, 64], per_cell * 64 * 64);
            let most = 4.0 * unit_of(&setup, 1.0);
            assert!(most * f64::max(1000.0 * per_cell as f64, 1e6) < 63.0_f64.exp2(), "{per_cell} a cell");
            assert_eq!(unit_of(&setup, 1.0) == 40.0_f64.exp2(), per_cell <= 1024);
        }
    }

    /// Tiles of small plasmas: of `langmuir` and `two_stream`, and a larger one that keeps what it had.
    #[test]
    fn tiles_of_small_plasmas_are_small() {
        let tile = |cells, expected| tile_of(&bare(cells, expected), expected, 528);
        assert_eq!((tile([64, 8], 8192), tile([128, 1], 8192)), ([4, 4], [4, 1]));
        assert_eq!((tile([256, 256], 1 << 22), tile([1_000_000, 1], 64_000_000)), ([8, 8], [128, 1]));
        assert_eq!(tile([64, 8], 100), [16, 8]);
    }

    #[test]
    fn kernels_compile() {
        let kernel_config = KernelConfig {
            precision: Precision::F32,
            order: 1,
            weighted: false,
            tagged: false,
            pusher: Pusher::Boris,
            tile: [16, 16],
            shift: 9,
            parts: 1,
            block: 256,
            resident: 4,
            checked: false,
            most: KernelConfig::most(0.7),
            outbox_rounds: 8,
            target: TARGET,
            ahead: 128,
        };
        let checked = KernelConfig { checked: true, ..kernel_config };
        let double = KernelConfig { precision: Precision::F64, resident: 1, ..kernel_config };
        for kernel_config in [
            kernel_config,
            KernelConfig { weighted: true, pusher: Pusher::Vay, tile: [9, 17], shift: 7, block: 128, ..checked },
            KernelConfig { order: 2, ..kernel_config },
            KernelConfig { order: 2, weighted: true, tagged: true, pusher: Pusher::HigueraCary, tile: [128, 1], ..checked },
            KernelConfig { weighted: true, tagged: true, pusher: Pusher::HigueraCary, ..double },
            KernelConfig { order: 2, pusher: Pusher::Vay, ..double },
        ] {
            zellige_engine::testing::compiles(&recipe(&kernel_config));
            zellige_engine::testing::compiles(&program::arrivals(&kernel_config));
            if !kernel_config.weighted {
                zellige_engine::testing::compiles(&program::maker(&kernel_config));
            }
        }
    }

    #[test]
    fn sums_are_emptied_before_they_run_over() {
        for reach in [0.1, 0.7, 1.0] {
            // Remainder of a sum, additions of 256 lanes until they look, and those of 256 particles that waited.
            let once = 20.0_f64.exp2() * f64::max(reach, 0.5);
            let lanes = 256.0 * (f64::from(KernelConfig::most(reach)) + once) + 256.0 * once;
            assert!(28.0_f64.exp2() + lanes < 31.0_f64.exp2());
            // Several rounds at the speed of light.
            assert!(f64::from(KernelConfig::most(reach)) > 4.0 * once);
        }
    }

    #[test]
    fn records_are_laid_out_as_in_c() {
        let kernel_config = KernelConfig { precision: Precision::F32, order: 1, ..empty_config() };
        for (weighted, tagged, single, double) in
            [(false, false, 28, 48), (true, false, 32, 56), (false, true, 40, 56), (true, true, 40, 64)]
        {
            let kernel_config = KernelConfig { weighted, tagged, ..kernel_config };
            assert_eq!(kernel_config.record(), single);
            assert_eq!(KernelConfig { precision: Precision::F64, ..kernel_config }.record(), double);
        }
    }

    /// A periodic box of `cells` in double precision with `expected` particles of a species that is to come.
    pub(super) fn bare(cells: [usize; 2], expected: usize) -> Setup {
        use crate::grid::{FieldSide, Grid, ParticleSide};
        Setup {
            grid: Grid {
                cells,
                h: [0.1; 2],
                origin: [0.0; 2],
                dt: 0.07,
                fields: [[FieldSide::Periodic; 2]; 2],
                particles: [[ParticleSide::Periodic; 2]; 2],
                dimensions: 2,
                part: None,
            },
            species: Vec::new(),
            expected: vec![expected],
            precision: Precision::F64,
            order: 1,
            smoothing: Default::default(),
            absorbing_cells: 8,
            external: Default::default(),
            tile: None,
            window: false,
            deterministic: false,
            seed: 1,
        }
    }

    pub(super) fn empty_config() -> KernelConfig {
        KernelConfig {
            precision: Precision::F32,
            order: 1,
            weighted: false,
            tagged: false,
            pusher: Pusher::Boris,
            tile: [16, 16],
            shift: 9,
            parts: 1,
            block: 256,
            resident: 4,
            checked: false,
            most: KernelConfig::most(0.7),
            outbox_rounds: 8,
            target: TARGET,
            ahead: 128,
        }
    }
}
