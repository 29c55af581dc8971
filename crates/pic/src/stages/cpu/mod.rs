//! The stages on the CPU.
//!
//! Particles lie in tiles (`store`), tiles run on the threads of a pool. `row` moves them in registers of the best instruction
//! set at hand (`isa`) and leaves their current to `deposit`, that of quadratic shapes to `quadratic`; `advance` moves one
//! particle at a time and is the reference. What leaves a tile is handed over by `exchange`, each tile's current is added to
//! that of the domain by `window`; both in a fixed order, so that the results are bitwise identical on any number of
//! threads. A part of a run (`part`) has some rows of tiles; what it takes from others comes in at its place in that order, so that
//! the results are those of one part, too.

mod advance;
mod charge;
mod corners;
mod counted;
mod deposit;
mod exchange;
pub mod fields;
mod flows;
mod isa;
mod lanes;
mod quadratic;
mod row;
mod stages;
mod store;
mod table;
mod walls;
mod window;

use std::sync::{Arc, Mutex};

use zellige_engine::device::Cpu;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::links::Links;
use zellige_engine::parallel::{first, indices};
use zellige_engine::tiles::Deliveries;

use self::corners::Corners;
use self::exchange::Outbox;
use self::fields::FieldSet;
use self::flows::Flows;
use self::isa::Format;
pub use self::isa::Isa;
use self::row::Scratch;
use self::stages::BAND;
use self::store::{PLAIN, Store, Tiling, store};
use self::window::Window;
use super::part::Part;
use super::{Precision, Setup, Stages};
use crate::grid::Grid;
use crate::particles::{Particles, Species};

/// Cells of a tile where the input does not say.
const TILE: [usize; 2] = [16, 16];

/// Tiles of a plane at least, for parts of a run and threads: lower ones, down to [`LOWEST`] cells, where it is small.
const LEAST_TILES: usize = 8;
const LOWEST: usize = 4;

/// [`TILE`], but lower in a small plane, and narrower where one row of cells is all there is and holds so many particles that a
/// band could not be cut shorter.
fn usual_tile(setup: &Setup) -> [usize; 2] {
    let [nx, ny] = setup.grid.cells;
    if ny > 1 {
        let [width, mut height] = TILE;
        while nx.div_ceil(width) * ny.div_ceil(height) < LEAST_TILES && height > LOWEST {
            height /= 2;
        }
        return [width, height];
    }
    let per_cell = setup.expected.iter().max().map_or(0, |n| n / nx);
    [(BAND / per_cell.max(1)).clamp(2, TILE[0]), 1]
}

/// Tiles of a domain, at most `widest` cells wide; they stand still where a window moves.
fn tiling(setup: &Setup, widest: usize) -> Tiling {
    let tile = setup.tile.unwrap_or_else(|| usual_tile(setup));
    let tiling = Tiling::new(setup.grid.cells, [tile[0].min(widest), tile[1]]);
    if setup.window { tiling.moving() } else { tiling }
}

/// Cells of a tile, and tiles per axis, of the path that such a set-up usually takes.
pub(in crate::stages) fn lattice(setup: &Setup) -> [[usize; 2]; 2] {
    let widest = match setup.precision {
        Precision::F32 => f32::cells(Isa::best()),
        Precision::F64 => f64::cells(Isa::best()),
    };
    let tiling = tiling(setup, widest);
    [tiling.tile, tiling.tiles]
}

/// Code path that advances particles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Rows of cells in registers of an instruction set.
    Rows(Isa),
    /// One particle at a time.
    Single,
}

/// The stages of the CPU for `setup`, on the threads of `cpu`. Nothing but particles is left to be put in.
pub fn new(setup: &Setup, cpu: &Cpu) -> Result<Box<dyn Stages>> {
    of_part(setup, cpu, &Links::default())
}

/// The stages of one part of a run, with its share of the domain.
pub fn of_part(setup: &Setup, cpu: &Cpu, links: &Links) -> Result<Box<dyn Stages>> {
    open(setup, cpu, Path::Rows(Isa::best()), links)
}

/// As [`new`], on a path of one's choice: for tests and measurements. Tiles wider than a register are cut to that.
pub fn with_path(setup: &Setup, cpu: &Cpu, path: Path) -> Result<Box<dyn Stages>> {
    open(setup, cpu, path, &Links::default())
}

fn open(setup: &Setup, cpu: &Cpu, path: Path, links: &Links) -> Result<Box<dyn Stages>> {
    check(setup)?;
    if let Path::Rows(isa) = path
        && !Isa::all().contains(&isa)
    {
        let problem = Problem::new("", format!("the CPU has no registers of {isa:?}"));
        return Err(Error::input("pic", problem.hint("use instructions that it has")));
    }
    Ok(match setup.precision {
        Precision::F32 => Box::new(CpuStages::<f32>::new(setup, cpu, path, links)?),
        Precision::F64 => Box::new(CpuStages::<f64>::new(setup, cpu, path, links)?),
    })
}

/// Bytes that a run takes: rows of particles with their room, and on each node the fields, what is known of the residual, and the
/// charge while it is looked at.
pub fn memory(setup: &Setup) -> u64 {
    let (size, widest) = match setup.precision {
        Precision::F32 => (4, f32::cells(Isa::best())),
        Precision::F64 => (8, f64::cells(Isa::best())),
    };
    let rows = tiling(setup, widest).tiles[0] * setup.grid.cells[1];
    let species = setup.species.iter().zip(&setup.expected).map(|(s, n)| {
        let mean = *n as f64 / rows as f64;
        // As the store makes them.
        let room = mean + 4.0 * mean.sqrt() + 8.0;
        let bytes = (PLAIN + usize::from(s.weighted)) * size + 1 + 8 * usize::from(s.tagged);
        rows as f64 * (room * bytes as f64 + size_of::<store::Row<f64>>() as f64)
    });
    let external = setup.external.iter().filter(|e| !e.is_empty()).count();
    // Nine components, those felt, base and variance; the charge of all, its magnitude, that of one twice.
    let node = size * (9 + 2 * external + 1) + 8 * (2 + 3);
    species.sum::<f64>() as u64 + (node * setup.grid.len()) as u64
}

/// Checks the premise of the stages: a particle may not cross more than one border of an axis in a step.
pub(in crate::stages) fn check(setup: &Setup) -> Result<()> {
    let refuse = |what: String, hint: &str| Err(Error::input("pic", Problem::new("", what).hint(hint)));
    let grid = &setup.grid;
    if !matches!(setup.order, 1 | 2) {
        return refuse(format!("there are no particle shapes of order {}", setup.order), "use 1 or 2");
    }
    if grid.cells.contains(&0) || (grid.dimensions == 1 && grid.cells[1] != 1) {
        return refuse(format!("a domain of {:?} cells cannot be", grid.cells), "use one cell or more per axis, one in y in one dimension");
    }
    if grid.h.iter().any(|h| !(grid.dt > 0.0 && grid.dt < *h)) {
        let hint = "use a shorter step: nothing may cross a cell in one";
        return refuse(format!("the step {} is not below the cell sizes {:?}", grid.dt, grid.h), hint);
    }
    Ok(())
}

/// A species and its counters.
#[derive(Debug)]
struct Population<T> {
    species: Species,
    store: Store<T>,
    flows: Flows,
    kinetic: f64,
    momentum: [f64; 3],
}

/// State of a plasma in the CPU's memory, or of the part of it that is here. Tiles, windows and outboxes are those of the whole
/// domain: others' tiles are empty.
#[derive(Debug)]
struct CpuStages<T: Format> {
    cpu: Cpu,
    part: Arc<Part>,
    path: Path,
    scratch: Vec<Mutex<Scratch<T>>>,
    setup: Setup,
    tiling: Tiling,
    fields: FieldSet<T>,
    species: Vec<Population<T>>,
    windows: Vec<Window<T>>,
    outboxes: Vec<Outbox<T>>,
    /// Tiles of other parts whose outboxes hold what came from there.
    received: Vec<usize>,
    post: Deliveries,
    corners: Corners,
}

impl<T: Format> CpuStages<T> {
    fn new(setup: &Setup, cpu: &Cpu, path: Path, links: &Links) -> Result<Self> {
        let tiling = tiling(setup, if let Path::Rows(isa) = path { T::cells(isa) } else { usize::MAX });
        // Tiles are as wide as registers, and registers round in their own ways.
        let ways = links.all_say(&format!("{path:?} and tiles of {:?} cells", tiling.tile))?;
        if let Some(other) = ways.iter().find(|way| **way != ways[0]) {
            let problem = Problem::new("", format!("parts compute by {} and by {other}", ways[0]));
            return Err(Error::input("parts of a run", problem.hint("use nodes with the same instructions, or one part")));
        }
        let part = Arc::new(Part::new(&setup.grid, [tiling.tile, tiling.tiles], Some(cpu), links)?);
        // Rows of tiles of others whose currents come here, with the tiles that a window has not reached at the start.
        let all_reached = if setup.window { tiling.moved(tiling.tile[0] - 1) } else { tiling };
        let strips = part.peers().iter().flat_map(|peer| part.strips(&all_reached, *peer, links.rank()));
        let near: Vec<usize> = strips.map(|(tile, _)| tile / tiling.tiles[0]).collect();
        let window = || match setup.grid.dimensions {
            1 => Window::on_line(tiling.tile[0], setup.order),
            _ => Window::new(tiling.tile),
        };
        let species = setup.species.iter().zip(&setup.expected).map(|(species, expected)| Population {
            store: cpu.install(|| store(tiling, species, *expected, |tile| part.has(tile))),
            species: species.clone(),
            flows: Flows::default(),
            kinetic: 0.0,
            momentum: [0.0; 3],
        });
        let fields = cpu.install(|| FieldSet::of_part(setup, part.clone()));
        Ok(Self {
            cpu: cpu.clone(),
            path,
            scratch: (0..cpu.threads()).map(|_| Mutex::default()).collect(),
            tiling,
            species: species.collect(),
            windows: (0..tiling.len())
                .map(|t| if part.has(t) || near.contains(&(t / tiling.tiles[0])) { window() } else { Window::none() })
                .collect(),
            outboxes: (0..tiling.len()).map(|_| Outbox::default()).collect(),
            received: Vec::new(),
            post: Deliveries::default(),
            corners: Corners::new(&fields.grid),
            fields,
            part,
            setup: setup.clone(),
        })
    }
}

/// Refuses particles that are not where they may be, with the first one that is wrong.
pub(in crate::stages) fn check_particles(grid: &Grid, species: &Species, p: &Particles) -> Result<()> {
    let n = p.len();
    let refuse =
        |message: String| Err(Error::Numerics { what: format!("species `{}`", species.name), place: "particles put in".into(), message });
    let columns = [p.j.len(), p.s.len(), p.t.len(), p.u[0].len(), p.u[1].len(), p.u[2].len()];
    let optional = |len: usize, wanted: bool| len == n || (len == 0 && !wanted);
    if columns.iter().any(|c| *c != n) || !optional(p.weight.len(), false) || !optional(p.tag.len(), false) {
        return refuse(format!("columns of {n} particles have different lengths"));
    }
    if !species.weighted && p.weight.iter().any(|w| *w != 1.0) {
        return refuse("weights of their own were given, the species has equal ones".into());
    }
    let bad = first(indices(n), |_, k| {
        let inside = (p.i[k] as usize) < grid.cells[0] && (p.j[k] as usize) < grid.cells[1];
        if !inside || p.s[k].abs() > 0.5 || p.t[k].abs() > 0.5 {
            let (i, j, s, t) = (p.i[k], p.j[k], p.s[k], p.t[k]);
            return Some(format!("particle {k} lies at ({s}, {t}) in cell ({i}, {j}) of {:?}", grid.cells));
        }
        let weight = p.weight.get(k).copied().unwrap_or(1.0);
        let finite = [p.s[k], p.t[k], p.u[0][k], p.u[1][k], p.u[2][k], weight].iter().all(|v| v.is_finite());
        (!finite).then(|| format!("particle {k} in cell ({}, {}) has a place, momentum or weight that is no number", p.i[k], p.j[k]))
    });
    bad.map_or(Ok(()), refuse)
}

/// Refuses to move the window of a box that stands still, or particles that are not in its last column of cells.
pub(in crate::stages) fn check_shift(setup: &Setup, fresh: &[Particles]) -> Result<()> {
    let refuse = |what: String, message: String| Err(Error::Numerics { what, place: "moving window".into(), message });
    if !setup.window {
        return refuse("window".into(), "the setup is of a box that stands still".into());
    }
    let last = setup.grid.cells[0] - 1;
    for (p, species) in fresh.iter().zip(&setup.species) {
        check_particles(&setup.grid, species, p)?;
        if p.i.iter().any(|i| *i as usize != last) {
            return refuse(format!("species `{}`", species.name), format!("new particles are not all in the last column, {last}"));
        }
    }
    Ok(())
}
