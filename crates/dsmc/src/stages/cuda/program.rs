//! The kernels' sources and how they are compiled: one program for the bulk of the particles, one for those that hit something.

use std::fmt;

use zellige_device_macro::device_source;
use zellige_engine::cuda::{Cuda, Files, Kernel, Recipe};
use zellige_engine::error::Result;
use zellige_engine::{cuda_files, real};

use super::batches::BatchKernels;
use super::{arguments, batch_arguments, outside_arguments};
use crate::gas::millikan::{LARGEST, POINTS};
use crate::gas::vibration::HIGHEST;
use crate::geometry;
use crate::model::Scheme;
use crate::physics::PHYSICS;
use crate::sampling::VALUES_OF_SUMS;
use crate::stages::{ALONG_Z, MOMENTS, SURFACE_SUMS};
use crate::walls::formulae::WALLS;

/// Source files of all kernels.
const FILES: &Files = cuda_files![
    "advance.cu",
    "afar.cu",
    "arrive.cu",
    "attempts.cu",
    "batch.cu",
    "batch_sums.cu",
    "candidates.cu",
    "common.cu",
    "copies.cu",
    "emit.cu",
    "exchange.cu",
    "flight.cu",
    "fly.cu",
    "free_flight.cu",
    "gas.cu",
    "gather.cu",
    "hit.cu",
    "in_gas.cu",
    "injected.cu",
    "internal_energy.cu",
    "lattice.cu",
    "majorant.cu",
    "mirror.cu",
    "order.cu",
    "outside.cu",
    "pairing.cu",
    "partners.cu",
    "random.cu",
    "receive.cu",
    "reflect.cu",
    "sample.cu",
    "send.cu",
    "shown.cu",
    "sides.cu",
    "sub_volumes.cu",
    "tile.cu",
    "totals.cu",
    "trajectory.cu",
    "turns.cu",
    "wander.cu";
    "real.cuh" => &[real::CUDA],
    "physics.cuh" => PHYSICS,
    "walls.cuh" => WALLS,
    "values.cuh" => VALUES_OF_SUMS,
    "store.cuh" => &device_source![arguments::Columns, arguments::Counters, arguments::Slab, arguments::Store],
    "gas.cuh" => &device_source![arguments::Kinetics, arguments::Modes, arguments::Part, arguments::Gas],
    "pass.cuh" => &device_source![arguments::Pass],
    "wall.cuh" => &device_source![arguments::Wall, arguments::Molecule],
    "domain.cuh" => &device_source![arguments::Domain],
    "geometry.cuh" => &device_source![geometry::Piece, geometry::Reference, arguments::Segment, arguments::Geometry],
    "inflow.cuh" => &device_source![arguments::Face, arguments::Beam, arguments::SubsonicBoundary, arguments::Line, arguments::Inflow],
    "batches.cuh" => &device_source![batch_arguments::Molecule, batch_arguments::MeanRate, batch_arguments::Batches, batch_arguments::Regions, batch_arguments::Shown],
    "outside.cuh" => &device_source![outside_arguments::Outside, outside_arguments::Given],
];

/// Marks by which the threads that share a cell find out who waits for whom; a power of two. Two particles may share one.
const MARKS: usize = 2048;

/// Tiles that blocks take first, at most, and their classes: turns.cu.
pub(super) const TURNS: u32 = 256;
pub(super) const CLASSES: usize = 4;

/// Kernel configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KernelConfig {
    /// Number of species.
    pub(super) species: usize,
    /// Components of the velocity.
    pub(super) components: usize,
    /// Logarithms of the cells of a tile along each axis.
    pub(super) shift: [u32; 2],
    /// Tiles that share the same cells and their particles.
    pub(super) layers: u32,
    /// Particles of a tile that shared memory has room for; others are put in order in device memory.
    pub(super) capacity: usize,
    /// Threads of a block that works on a tile.
    pub(super) threads: u32,
    /// Blocks of it that a multiprocessor is to hold at least: bounds the registers.
    pub(super) resident: u32,
    /// Threads that share a cell, a power of two.
    pub(super) lanes: u32,
    /// Rotation has a column.
    pub(super) rotates: bool,
    /// Most modes of vibration of a species; their levels have a column.
    pub(super) modes: usize,
    /// Scheme that selects pairs.
    pub(super) scheme: Scheme,
    /// Particles know their last partner: tags have a column.
    pub(super) tagged: bool,
    /// And partners are the nearest ones.
    pub(super) nearest: bool,
    /// There are bodies, and they divide cells.
    pub(super) bodies: [bool; 2],
    /// Cells differ in what a particle stands for.
    pub(super) weighted: bool,
    /// Some side follows the gas within.
    pub(super) follows: bool,
    /// Products with the velocity along z are summed up.
    pub(super) along_z: bool,
    /// A cell has so few particles that the sums of a few samples are kept in single precision.
    pub(super) brief: bool,
    /// A cell may come to hold so many particles that one word does not choose among all pairs.
    pub(super) crowded: bool,
    /// The gas is so small that launches are recorded: the device counts steps.
    pub(super) recorded: bool,
    /// Flights against mirrors are flown in the pass: where cells are so full that many are.
    pub(super) mirrors: bool,
    /// The run has several parts: the store is that of one.
    pub(super) parts: bool,
    /// Index of the first mode of vibration, and of the first value along z, among the values of a cell.
    pub(super) values: [usize; 2],
}

impl KernelConfig {
    /// Cells of a tile.
    pub(super) fn cells(&self) -> usize {
        1 << (self.shift[0] + self.shift[1])
    }

    /// Keys of a tile.
    pub(super) fn keys(&self) -> usize {
        self.cells() * self.species
    }

    /// Lists of leavers of a tile.
    pub(super) fn lists(&self) -> usize {
        self.threads as usize / 32
    }

    /// Words of 16 bits of a particle's levels: a lone mode has one, several have a byte each of two.
    pub(super) fn level_words(&self) -> usize {
        self.modes.min(2)
    }

    /// Sums of a cell and species: [`crate::model::Collisions::kept`].
    pub(super) fn kept(&self) -> usize {
        self.internal() + if self.rotates || self.modes > 0 { 1 + self.modes.max(1) } else { 0 }
    }

    /// Index of those of internal modes: [`crate::model::Collisions::internal`].
    fn internal(&self) -> usize {
        MOMENTS + if self.along_z { ALONG_Z } else { 0 }
    }

    /// Bytes of a particle.
    pub(super) fn particle(&self) -> usize {
        22 + 4 * usize::from(self.rotates) + 2 * self.level_words() + 4 * usize::from(self.tagged)
    }

    /// Bytes of shared memory that a block asks for: counts of each warp by key, and the columns of the particles in order. Counts
    /// are twice as long where those do not fit, and lie where columns would.
    pub(super) fn shared(&self) -> u32 {
        let order = if self.scheme == Scheme::Pairing { 4 } else { 0 };
        let counts = (2 * self.lists() * self.keys()).next_multiple_of(4);
        (counts + (self.capacity * (self.particle() + order)).max(counts)) as u32
    }

    /// True if more threads than a warp share the attempts of a cell: where tiles have few cells, and attempts may be made at once.
    fn teams(&self) -> bool {
        self.threads as usize > 32 * self.cells() && !self.tagged && matches!(self.scheme, Scheme::Ntc | Scheme::Majorant)
    }

    /// Bytes of shared memory that a block has besides, at most: what kernels declare, and what the system keeps.
    pub(super) fn declared(&self) -> u32 {
        (2304 + 4 * self.keys() + if self.teams() { 4 * MARKS } else { 0 }) as u32
    }

    /// Definitions of these names: the same program then does for many runs.
    fn some(&self, names: &[&str]) -> Vec<(String, String)> {
        self.defines().into_iter().filter(|d| names.contains(&d.0.as_str())).collect()
    }

    fn defines(&self) -> Vec<(String, String)> {
        let scheme = match self.scheme {
            Scheme::None => 0,
            Scheme::Ntc => 1,
            Scheme::Majorant => 2,
            Scheme::Pairing => 3,
        };
        let define = |name: &str, value: &dyn fmt::Display| (name.to_owned(), value.to_string());
        vec![
            define("SPECIES", &self.species),
            define("COMPONENTS", &self.components),
            define("SX", &self.shift[0]),
            define("SY", &self.shift[1]),
            define("LAYERS", &self.layers),
            define("CAPACITY", &self.capacity),
            define("THREADS", &self.threads),
            define("RESIDENT", &self.resident),
            define("LANES", &self.lanes),
            define("TEAMS", &u8::from(self.teams())),
            define("MARKS", &MARKS),
            define("TURNS", &TURNS),
            define("CLASSES", &CLASSES),
            define("ROTATES", &u8::from(self.rotates)),
            define("VIBRATES", &self.modes),
            define("KEPT", &self.kept()),
            define("ALONG_Z", &u8::from(self.along_z)),
            define("FIRST_INTERNAL", &self.internal()),
            define("HIGHEST_ALONE", &format!("{}.0f", HIGHEST[0])),
            define("HIGHEST_OF_SEVERAL", &HIGHEST[1]),
            define("SCHEME", &scheme),
            define("TAGGED", &u8::from(self.tagged)),
            define("NEAREST", &u8::from(self.nearest)),
            define("POINTS", &POINTS),
            define("POINTS_PER_LOG", &format!("{:e}f", (POINTS - 1) as f64 / LARGEST.ln())),
            define("BODIES", &u8::from(self.bodies[0])),
            define("DIVIDED", &u8::from(self.bodies[1])),
            define("WEIGHTED", &u8::from(self.weighted)),
            define("FOLLOWS", &u8::from(self.follows)),
            define("CROWDED", &u8::from(self.crowded)),
            define("BRIEF", &u8::from(self.brief)),
            define("RECORDED", &u8::from(self.recorded)),
            define("MIRRORS", &u8::from(self.mirrors)),
            define("PARTS", &u8::from(self.parts)),
            define("SURFACE_SUMS", &SURFACE_SUMS),
            define("FIRST_MODE", &self.values[0]),
            define("FIRST_WITH_Z", &self.values[1]),
        ]
    }
}

/// Every kernel.
#[derive(Debug, Clone)]
pub(super) struct Kernels {
    pub(super) layout: Kernel,
    /// `place`, `deliver` and `gather`; of small gases tiles do that themselves.
    pub(super) exchange: Option<[Kernel; 3]>,
    /// Of a run in parts.
    pub(super) receive: Option<Kernel>,
    pub(super) totals: Kernel,
    pub(super) fold: Kernel,
    /// Only in order, a step, a step with samples.
    pub(super) advance: [Kernel; 3],
    pub(super) tally_faces: Kernel,
    pub(super) trace_flights: Kernel,
    pub(super) batch: BatchKernels,
}

const BULK: [&str; 5] = ["totals", "fold", "advance<0>", "advance<1>", "advance<2>"];
const BATCH: [&str; 2] = ["close_batch", "sum_regions"];
const FLIGHTS: [&str; 7] = ["layout", "tally_faces", "trace_flights", "place", "deliver", "gather", "receive"];

impl Kernels {
    pub(super) fn new(cuda: &Cuda, config: &KernelConfig) -> Result<Self> {
        let [bulk, flights, batch] = recipes(config).map(|r| r.build(cuda));
        let (bulk, flights, batch) = (bulk?, flights?, batch?);
        Ok(Self {
            layout: flights.kernel("layout")?,
            exchange: if config.recorded {
                None
            } else {
                Some([flights.kernel("place")?, flights.kernel("deliver")?, flights.kernel("gather")?])
            },
            receive: if config.parts { Some(flights.kernel("receive")?) } else { None },
            totals: bulk.kernel("totals")?,
            fold: bulk.kernel("fold")?,
            advance: [bulk.kernel("advance<0>")?, bulk.kernel("advance<1>")?, bulk.kernel("advance<2>")?],
            tally_faces: flights.kernel("tally_faces")?,
            trace_flights: flights.kernel("trace_flights")?,
            batch: BatchKernels { close_batch: batch.kernel("close_batch")?, sum_regions: batch.kernel("sum_regions")? },
        })
    }
}

/// Kernels of shown.cu and outside.cu, for a caller between two steps.
#[derive(Debug, Clone)]
pub(super) struct Copiers {
    pub(super) show: Kernel,
    pub(super) count: Kernel,
    pub(super) read: Kernel,
    pub(super) put: Kernel,
    pub(super) fastest: Kernel,
}

const COPIES: [&str; 5] = ["show", "count_species", "read_species", "put_velocities", "fastest_of_tiles"];

impl Copiers {
    pub(super) fn new(cuda: &Cuda, config: &KernelConfig) -> Result<Self> {
        let program = copies(config).build(cuda)?;
        let [show, count, read, put, fastest] = COPIES.map(|name| program.kernel(name));
        Ok(Self { show: show?, count: count?, read: read?, put: put?, fastest: fastest? })
    }
}

/// Definitions that flights depend on, and batches.
const OF_FLIGHTS: [&str; 17] = [
    "TURNS",
    "CLASSES",
    "SPECIES",
    "COMPONENTS",
    "SX",
    "SY",
    "LAYERS",
    "THREADS",
    "ROTATES",
    "VIBRATES",
    "HIGHEST_OF_SEVERAL",
    "TAGGED",
    "BODIES",
    "WEIGHTED",
    "RECORDED",
    "PARTS",
    "SURFACE_SUMS",
];
const AVERAGES: [&str; 16] = [
    "SPECIES",
    "COMPONENTS",
    "SX",
    "SY",
    "LAYERS",
    "THREADS",
    "ROTATES",
    "VIBRATES",
    "KEPT",
    "ALONG_Z",
    "FIRST_INTERNAL",
    "FIRST_MODE",
    "FIRST_WITH_Z",
    "WEIGHTED",
    "RECORDED",
    "PARTS",
];

/// Recipe of the kernels that copy for a caller: of a run in one part.
pub(super) fn copies(config: &KernelConfig) -> Recipe {
    // Without fused operations: the bits of the host.
    Recipe::of_files("dsmc copies", FILES, &["outside.cu", "shown.cu"], &config.some(&AVERAGES), &COPIES).option("-fmad=false")
}

/// Recipes of the kernels: also for tests, for architectures that are not at hand.
pub(super) fn recipes(config: &KernelConfig) -> [Recipe; 3] {
    let defines = config.defines();
    let flights = &FLIGHTS[..match (config.recorded, config.parts) {
        (true, _) => 3,
        (false, false) => 6,
        (false, true) => 7,
    }];
    let sources: &[&str] = if config.parts { &["exchange.cu", "emit.cu", "receive.cu"] } else { &["exchange.cu", "emit.cu"] };
    [
        Recipe::of_files("dsmc gas", FILES, &["totals.cu", "fly.cu"], &defines, &BULK),
        // Flights are bitwise those of the CPU, which does not fuse products with sums.
        Recipe::of_files("dsmc flights", FILES, sources, &config.some(&OF_FLIGHTS), flights).option("-fmad=false"),
        // Values come out as on the CPU, but for exponentials, logarithms and powers.
        Recipe::of_files("dsmc batches", FILES, &["batch.cu"], &config.some(&AVERAGES), &BATCH).option("-fmad=false"),
    ]
}
