//! The stages of a time step as one trait; `cpu` and `cuda` implement it and [`crate::step`] is written once against it.
//!
//! A call is a pass over everything of its kind, so a backend may fuse inside it and dispatch costs nothing. No stage waits
//! for the device except those under "what waits".

mod bins;
pub mod cells;
pub mod cpu;
pub mod cuda;
pub mod images;
pub mod layer;
mod part;
mod rows;

pub use self::bins::{Bins, BinsToCome, padded_range};
pub use self::part::Shares;
pub use self::rows::ReadRow;

use std::ops::Range;

use zellige_engine::cuda::{Buffer, Coming};
use zellige_engine::device::Device;
use zellige_engine::error::Result;
use zellige_engine::ops::plane::FieldCopier;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Values, ValuesOnGpu};
use zellige_engine::sim::not_on_gpu;

use crate::gauss::{ChargeCheck, ChargeErrors};
use crate::grid::Grid;
use crate::loading::Source;
use crate::particles::{Particles, Species};

/// A component of a field on the Yee grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Component {
    Ex,
    Ey,
    Ez,
    Bx,
    By,
    Bz,
    Jx,
    Jy,
    Jz,
}

impl Component {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 9] = [Self::Ex, Self::Ey, Self::Ez, Self::Bx, Self::By, Self::Bz, Self::Jx, Self::Jy, Self::Jz];

    /// True for a component of the current.
    pub fn is_current(self) -> bool {
        self as usize >= Self::Jx as usize
    }

    /// File-safe name.
    pub fn name(self) -> &'static str {
        ["ex", "ey", "ez", "bx", "by", "bz", "jx", "jy", "jz"][self as usize]
    }

    /// Name of the record, and of its files: `E_x`.
    pub fn record_name(self) -> String {
        let name = self.name();
        format!("{}_{}", name[..1].to_uppercase(), &name[1..])
    }

    /// Offset in the cell, in units of the cell, per axis: 0 at the corner, 1/2 halfway.
    pub fn stagger(self) -> [f64; 2] {
        match self {
            Self::Ex | Self::Jx | Self::By => [0.5, 0.0],
            Self::Ey | Self::Jy | Self::Bx => [0.0, 0.5],
            Self::Ez | Self::Jz => [0.0, 0.0],
            Self::Bz => [0.5, 0.5],
        }
    }
}

/// Energies and counts, exact to the precision that sums are kept in (double).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Energies {
    /// `1/2 E^2` per component, integrated over the domain; taken at time n, before the field advances.
    pub electric: [f64; 3],
    /// `1/2 B^2` likewise.
    pub magnetic: [f64; 3],
    /// Kinetic energy per species, centred at time n: with `gamma` after the first half of the kick.
    pub kinetic: Vec<f64>,
    /// Momentum per species, `u` at time n - 1/2.
    pub momentum: Vec<[f64; 3]>,
    /// Particles per species.
    pub count: Vec<u64>,
}

/// Particles, energy and charge across the sides since the start, per species; the closed ledger of the run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ledger {
    /// Macro-particles put in (set-up, window, walls).
    pub injected: u64,
    /// Macro-particles taken out (absorbing sides, window).
    pub removed: u64,
    /// Kinetic energy put in.
    pub energy_in: f64,
    /// Kinetic energy taken out.
    pub energy_out: f64,
    /// Charge taken out, net, `e n_0` times the cell's volume.
    pub charge_out: f64,
}

/// A line of values: what an antenna adds to the current of one grid line, at one step ([`crate::step`]), or what E or B is on
/// nodes that a window has reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Sheet {
    /// Component of the current, or of E or B.
    pub component: Component,
    /// Axis that the sheet is normal to.
    pub axis: usize,
    /// Node of the sheet on that axis.
    pub node: usize,
    /// Values along the sheet, one per node of the other axis.
    pub values: Vec<f64>,
}

/// Bytes that a run takes on a device.
pub fn memory(setup: &Setup, device: &Device) -> u64 {
    match device {
        Device::Cpu(_) => cpu::memory(setup),
        Device::Cuda(cuda) => cuda::memory(setup, cuda.properties()),
    }
}

/// Shares of `parts` parts of a run on devices like `device`.
///
/// # Errors
/// There are more parts than tiles, or rows of them on GPUs.
pub fn shares(setup: &Setup, device: &Device, parts: usize) -> Result<Shares> {
    match device {
        Device::Cpu(_) => Shares::new(&setup.grid, cpu::lattice(setup), parts, true),
        Device::Cuda(_) => Shares::new(&setup.grid, cuda::lattice(setup, parts), parts, false),
    }
}

/// Units of columns of particles: a position is `origin + h x`, with x in cells from the corner of the box at the start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnUnits {
    /// Corner of the box at the start.
    pub origin: [f64; 2],
    /// Lengths of a cell.
    pub h: [f64; 2],
    /// Cells that the window has moved.
    pub moved: f64,
    /// Momentum of u = 1.
    pub momentum: f64,
    /// Weighting of weight 1.
    pub weighting: f64,
}

/// Columns of particles in a GPU's memory.
#[derive(Debug)]
pub struct ColumnsOnGpu {
    /// A position for each axis.
    pub position: Vec<Buffer<f64>>,
    /// Components of the momentum.
    pub momentum: [Buffer<f64>; 3],
    /// Weightings.
    pub weighting: Buffer<f64>,
    /// Numbers of particles that have some.
    pub id: Option<Buffer<u64>>,
}

/// Function of some particles.
pub type Visit<'a> = &'a (dyn Fn(Particles) -> Vec<f64> + Sync);

/// The state of a plasma on one device, and what can be done to it.
///
/// In several parts each has its share of it, all call the same methods in the same order, and everything that goes in or comes out
/// is of the whole domain: numbers and sums are the same at all parts, what a method says to be of the first part is empty at the
/// others.
pub trait Stages: Send {
    // --- a step, in this order ---

    /// `J = 0`; takes the field energies first where `measure` says so.
    fn begin(&mut self, measure: bool, profiler: &mut Profiler) -> Result<()>;

    /// Gathers, pushes, moves and deposits one species and sends those that left their tile to where they belong; applies
    /// the sides' conditions for particles. Adds up kinetic energy and momentum where `measure` says so. `step` keys random
    /// numbers of thermal walls.
    fn advance(&mut self, species: usize, step: u64, measure: bool, profiler: &mut Profiler) -> Result<()>;

    /// Completes `J`: what tiles and sides share, the antennas' sheets, the filter.
    fn current(&mut self, sheets: &[Sheet], profiler: &mut Profiler) -> Result<()>;

    /// `B` half a step, `E` a step, `B` half a step, with the conditions of the sides.
    fn field(&mut self, profiler: &mut Profiler) -> Result<()>;

    /// Has the particles that `source` makes in the last column of cells ready for the next [`Stages::shift`], without giving them
    /// to the host. False, and nothing done, where that cannot be: then they are a part of what that is given.
    fn bring(&mut self, _species: usize, _source: &Source<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Moves fields and particles one cell towards lower x. What leaves is counted as removed; the last column of cells is
    /// empty of particles and fields, then `fresh` (one entry per species, cells of the last column only) goes in, and E and B
    /// become what `ahead` says on its lines.
    fn shift(&mut self, fresh: &[Particles], ahead: &[Sheet], profiler: &mut Profiler) -> Result<()>;

    // --- what waits ---

    /// Puts the particles of a species into an empty box, all columns of it. Their energy is not in the ledger, which tells what
    /// comes and goes afterwards.
    fn fill(&mut self, species: usize, source: &Source<'_>) -> Result<()>;

    /// Puts particles in. Those on fixed species too.
    fn inject(&mut self, species: usize, particles: &Particles) -> Result<()>;

    /// All particles of a species in canonical order, at the first part.
    fn particles(&mut self, species: usize) -> Result<Particles>;

    /// Those of this part of the run, which in the order of the parts are all of them.
    fn own_particles(&mut self, species: usize) -> Result<Particles>;

    /// Cells per axis that the particles of this part lie in.
    fn own_cells(&self) -> [Range<usize>; 2];

    /// Changes particles of a species as `change` says, which is given each once and leaves them in their cells.
    fn revise(&mut self, species: usize, change: &(dyn Fn(&mut Particles) + Sync)) -> Result<()> {
        let mut particles = self.particles(species)?;
        change(&mut particles);
        self.replace(species, &particles)
    }

    /// Gives all particles of a species to `part`, portion by portion on all threads of the host, and what it makes of them to
    /// `join`, in an order that does not depend on threads; at the first part.
    fn visit(&mut self, species: usize, part: Visit<'_>, join: &mut (dyn FnMut(Vec<f64>) + Send)) -> Result<()>;

    /// Least and greatest value of a column that are finite, `axis` saying which and in what units.
    fn extent(&mut self, species: usize, axis: &Bins) -> Result<[f64; 2]>;

    /// Sum of the weights in each bin of one or two axes, the first one running fastest; at the first part.
    fn bins(&mut self, species: usize, axes: &[Bins]) -> Result<Vec<f64>>;

    /// Begins [`Stages::bins`] without waiting, where axes that are `measured` go from the least to the greatest value with a
    /// little air ([`padded_range`]). `None` where the particles lie on the host or in several parts.
    fn begin_bins(&mut self, _species: usize, _axes: &[Bins], _measured: [bool; 2]) -> Result<Option<BinsToCome>> {
        Ok(None)
    }

    /// Follows the particles with `tags`, in rising order: position in cells from the corner of the domain, and momentum; NaN for
    /// those that are gone.
    fn follow(&mut self, species: usize, tags: &[u64]) -> Result<Vec<[f64; 5]>>;

    /// Tells by how many cells the window has moved, before particles are replaced (restart): they then lie in tiles as they did.
    fn set_moved(&mut self, _cells: u64) {}

    /// Replaces all particles of a species (restart). A part needs to be given its own only.
    fn replace(&mut self, species: usize, particles: &Particles) -> Result<()>;

    /// A component over all corners with guards, as [`crate::grid::Grid::index`] lays them out.
    fn component(&mut self, component: Component) -> Result<Vec<f64>>;

    /// Rows of nodes of a component that this part has, without guards, and the number of the first: for a checkpoint.
    fn own_rows(&mut self, component: Component) -> Result<(usize, Vec<f64>)>;

    /// Sets a component to rows of nodes of the domain, of which it reads those that this part holds.
    fn set_rows(&mut self, component: Component, read: ReadRow<'_>) -> Result<()>;

    /// A component on the cells of the box, row by row, times `scale`, in the number format of the set-up: what a record holds. In
    /// parts that share the rows out those of this part ([`Stages::rows_of_cells`]).
    fn cells(&mut self, component: Component, scale: f64) -> Result<Values>;

    /// Rows of cells of this part, where others have the rest.
    fn rows_of_cells(&self) -> Option<Range<usize>>;

    /// The charge density of some species together likewise.
    fn charge_cells(&mut self, species: &[usize], scale: f64) -> Result<Values>;

    /// The pixels of a picture of [`Stages::cells`], as [`zellige_engine::record::Planes`] has them, made where the field lies
    /// and on their way. `None` where it lies on the host or in several parts.
    fn picture(&mut self, _component: Component, _scale: f64) -> Result<Option<Coming<f32>>> {
        Ok(None)
    }

    /// The pixels of [`Stages::charge_cells`] likewise.
    fn charge_picture(&mut self, _species: &[usize], _scale: f64) -> Result<Option<Coming<f32>>> {
        Ok(None)
    }

    /// [`Stages::cells`] as a copy in the memory of the GPU that the field lies on. `None` where it lies on the host or in several
    /// parts.
    fn cells_on_gpu(&mut self, _component: Component, _scale: f64, _copier: &FieldCopier) -> Result<Option<ValuesOnGpu>> {
        Ok(None)
    }

    /// [`Stages::charge_cells`] likewise.
    fn charge_cells_on_gpu(&mut self, _species: &[usize], _scale: f64, _copier: &FieldCopier) -> Result<Option<ValuesOnGpu>> {
        Ok(None)
    }

    /// Sets E or B on the cells of the box to real values in units of `unit`, which lie in the memory of the same GPU as the field.
    /// Gives number and value of the first one that is not finite in the run's precision, and sets nothing then.
    fn set_cells_on_gpu(
        &mut self,
        component: Component,
        _values: &ValuesOnGpu,
        _unit: f64,
        _copier: &FieldCopier,
    ) -> Result<Option<(usize, f64)>> {
        Err(not_on_gpu(component.name(), &[]))
    }

    /// Columns of [`Stages::own_particles`] in the units of records, as copies in the memory of the GPU that the particles lie on.
    /// `None` where they lie on the host or in several parts.
    fn columns_on_gpu(&mut self, _species: usize, _units: &ColumnUnits) -> Result<Option<ColumnsOnGpu>> {
        Ok(None)
    }

    /// Puts momenta of the particles of a species in place, which lie in the memory of the same GPU in the order of
    /// [`Stages::columns_on_gpu`]: a value a particle, real and finite, in units of `unit`.
    fn set_momenta_on_gpu(&mut self, _species: usize, _momenta: [Option<&ValuesOnGpu>; 3], _unit: f64) -> Result<()> {
        Err(not_on_gpu("momentum", &[]))
    }

    /// Puts E or B as it stands at the end of list `list`, for [`Stages::kept`], without waiting. False where there is no room or
    /// nothing to be won by it: then [`Stages::component`] has it.
    fn keep(&mut self, _list: usize, _component: Component) -> Result<bool> {
        Ok(false)
    }

    /// Snapshots in a list, in order, each as [`Stages::component`] lays it out; the list is empty afterwards.
    fn kept(&mut self, _list: usize) -> Result<Vec<Vec<f64>>> {
        Ok(Vec::new())
    }

    /// Sets a component over all corners with guards.
    fn set_component(&mut self, component: Component, values: &[f64]) -> Result<()>;

    /// Charge density of a species at the corners, the filter of the current applied where `smoothed` says so, laid out as
    /// [`Stages::component`] does; sides and periodic copies complete.
    fn charge(&mut self, species: usize, smoothed: bool) -> Result<Vec<f64>>;

    /// Looks at `div E - rho` at all corners: what has changed since they were first seen.
    fn check_charge(&mut self, check: &ChargeCheck<'_>) -> Result<ChargeErrors>;

    /// Energies of the last measured step.
    fn energies(&mut self) -> Result<Energies>;

    /// Particles there are, per species.
    fn count(&mut self) -> Result<Vec<u64>>;

    /// Flows through the sides so far, per species.
    fn ledger(&mut self) -> Result<Vec<Ledger>>;

    /// Adds up the work of the fields on particles from the next step on.
    fn count_work(&mut self) -> Result<()>;

    /// `sum dt integral J.E` of all steps since, columns with sheets of current left out.
    fn work(&mut self) -> Result<f64>;

    /// State besides particles and fields that a bit-equal restart needs (memory of absorbing layers, ledgers), named; at the first
    /// part.
    fn auxiliary_state(&mut self) -> Result<Vec<(String, Vec<f64>)>>;

    /// Takes that back.
    fn set_auxiliary_state(&mut self, state: &[(String, Vec<f64>)]) -> Result<()>;

    /// Bytes held on the device.
    fn memory(&self) -> u64;

    /// Peak memory so far, bytes, where it is counted: buffers of a GPU.
    fn memory_peak(&self) -> u64 {
        self.memory()
    }

    /// Waits for everything under way.
    fn wait(&mut self) -> Result<()>;
}

/// Everything a backend needs to allocate and run.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The domain.
    pub grid: Grid,
    /// The species, in the order of the input.
    pub species: Vec<Species>,
    /// Particles expected per species, for the first allocation.
    pub expected: Vec<usize>,
    /// Number format.
    pub precision: Precision,
    /// Order of the particle shape: 1 (linear) or 2 (quadratic).
    pub order: u32,
    /// Filter of the current per axis.
    pub smoothing: [Smoothing; 2],
    /// Cells of the absorbing layers.
    pub absorbing_cells: usize,
    /// Fields that particles feel and that Maxwell's equations do not advance: `E` and `B` per component over all corners
    /// with guards; empty where there are none.
    pub external: [Vec<f64>; 6],
    /// Cells of a tile; default the backend's choice.
    pub tile: Option<[usize; 2]>,
    /// A window may move along x.
    pub window: bool,
    /// Sums whose order does not depend on threads or on the run: same bits every time.
    pub deterministic: bool,
    /// Seed of thermal walls.
    pub seed: u64,
}

/// Number format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("x-synonyms" = { "single": "f32", "float": "f32", "float32": "f32", "fp32": "f32", "double": "f64", "float64": "f64", "fp64": "f64" }))]
pub enum Precision {
    /// Single precision.
    #[default]
    F32,
    /// Double precision.
    F64,
}

/// Binomial filter `[1 2 1]/4`, `passes` times, and a compensator pass where wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Smoothing {
    /// Binomial passes.
    #[serde(default)]
    #[schemars(range(max = 32))]
    pub passes: u32,
    /// Adds a compensating pass `[-1, (4 + 2n)/n, -1]`, normalised.
    #[serde(default)]
    pub compensated: bool,
}

impl Smoothing {
    /// The passes of an axis in their order: weights of the node itself and of each neighbour.
    pub fn weights(self) -> Vec<[f64; 2]> {
        let n = self.passes;
        let mut weights = vec![[0.5, 0.25]; n as usize];
        if self.compensated && n > 0 {
            let b = f64::from(4 + 2 * n) / f64::from(n);
            weights.push([b / (b - 2.0), -1.0 / (b - 2.0)]);
        }
        weights
    }
}
