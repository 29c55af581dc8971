//! The kernels' sources and how they are compiled: a program for each kind of species.

use std::fmt;

use zellige_device_macro::device_source;
use zellige_engine::cuda::{Cuda, Files, Kernel, Program, Recipe};
use zellige_engine::error::Result;
use zellige_engine::{cuda_files, real};

use super::{arguments, field_arguments};
use crate::deviates::DEVIATES;
use crate::gauss::GAUSS;
use crate::integers::INTEGERS;
use crate::loading::uniform;
use crate::particles::{Pusher, Species};
use crate::physics::PHYSICS;
use crate::relativistic::RELATIVISTIC_GAS;
use crate::shapes::SHAPES;
use crate::stages::Precision;

/// Source files of all kernels of plasmas.
pub(super) const FILES: &Files = cuda_files![
    "advance.cu",
    "arrive.cu",
    "charge.cu",
    "common.cu",
    "copies.cu",
    "current.cu",
    "deposit.cu",
    "dissolve.cu",
    "edges.cu",
    "exchange.cu",
    "field.cu",
    "fill.cu",
    "fixed.cu",
    "fused.cu",
    "fused_fields.cu",
    "gather.cu",
    "gauss.cu",
    "lists.cu",
    "page.cu",
    "particle_diagnostics.cu",
    "quadratic.cu",
    "quadratic_rest.cu",
    "queue.cu",
    "settle.cu",
    "strips.cu",
    "sums.cu",
    "team.cu",
    "turns.cu",
    "uniform_source.cu",
    "value.cu",
    "walls.cu",
    "window.cu",
    "yee_grid.cu";
    "real.cuh" => &[real::CUDA],
    "physics.cuh" => PHYSICS,
    "shapes.cuh" => SHAPES,
    "integers.cuh" => INTEGERS,
    "deviates.cuh" => DEVIATES,
    "relativistic.cuh" => RELATIVISTIC_GAS,
    "gauss.cuh" => GAUSS,
    "domain.cuh" => &device_source![arguments::Domain],
    "store.cuh" => &device_source![arguments::Counters, arguments::Inbox, arguments::Store],
    "fields.cuh" => &device_source![arguments::Fields],
    "push.cuh" => &device_source![arguments::PushOf],
    "walls.cuh" => &device_source![arguments::Walls],
    "bins.cuh" => &device_source![arguments::Bins],
    "uniform_source.cuh" => &device_source![uniform::COLD, uniform::GAUSSIAN, uniform::RELATIVISTIC, uniform::UniformSource],
    "yee_grid.cuh" => &device_source![field_arguments::YeeGrid],
    "fused_fields.cuh" => &device_source![field_arguments::FusedFields],
    "taps.cuh" => &device_source![field_arguments::Taps],
    "corners.cuh" => &device_source![field_arguments::Corners],
];

/// Most threads of a block that advances without checks.
const MOST_THREADS: u32 = 256;
/// Logarithm of K without checks, and with them.
pub(super) const UNIT_BITS: f64 = 18.0;
pub(super) const CHECKED_BITS: f64 = 20.0;

/// Kernel configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelConfig {
    /// Number format.
    pub precision: Precision,
    /// Order of the shape, 1 or 2.
    pub order: u32,
    /// Particles have weights of their own.
    pub weighted: bool,
    /// Particles have tags.
    pub tagged: bool,
    /// Pusher of the momenta.
    pub pusher: Pusher,
    /// Cells of a tile, at most 256 per axis.
    pub tile: [usize; 2],
    /// Logarithm of the slots of a page, 6 or more: what a warp asks for ahead of its time.
    pub shift: u32,
    /// Units of work of a tile.
    pub parts: usize,
    /// Threads of a block that advances, up to 256 where sums are not checked.
    pub block: u32,
    /// Blocks of it that a multiprocessor is to hold at least.
    pub resident: u32,
    /// Sums of the current are checked in each addition, which particles with weights need.
    pub checked: bool,
    /// The most that the particles of a lane add to one sum that is not checked before its warp empties those that are large.
    pub most: u32,
    /// Rounds of a warp, of whose particles a fifth and more may leave the unit before the outbox is emptied: its size.
    pub outbox_rounds: u32,
    /// Least particles of the parts that a very full unit is split into.
    pub target: usize,
    /// Slots between what a warp works on and what it asks into the L2 cache, a multiple of a page.
    pub ahead: u32,
}

impl KernelConfig {
    /// Slots of a page.
    pub(super) fn page(&self) -> usize {
        1 << self.shift
    }

    /// Warps of a block, each with a list of a unit's particles.
    pub(super) fn warps(&self) -> usize {
        self.block as usize / 32
    }

    /// Records of a warp's outbox: more than two rounds of it.
    pub(super) fn out(&self) -> usize {
        40 * self.outbox_rounds.max(2) as usize
    }

    /// Bytes of a number.
    pub(super) fn real(&self) -> usize {
        if self.precision == Precision::F32 { 4 } else { 8 }
    }

    /// Bytes of a record, as C lays it out.
    pub(super) fn record(&self) -> usize {
        let align = if self.tagged { 8 } else { self.real() };
        let numbers = 8 + (5 + usize::from(self.weighted)) * self.real();
        (if self.tagged { numbers.next_multiple_of(8) + 8 } else { numbers }).next_multiple_of(align)
    }

    /// Bytes of a page: `ParticleSlot` of common.cu.
    pub(super) fn page_bytes(&self) -> usize {
        self.page() * (2 + (5 + usize::from(self.weighted)) * self.real() + 8 * usize::from(self.tagged))
    }

    /// Largest addition of a lane to a sum of 32 bits, see sums.cu, where a particle crosses at most `reach` cells in a step:
    /// beside the 2^28 that are left in a sum, 256 lanes may have come to this and add once more, and 256 particles wait, together
    /// less than 2^31. Positions are rounded, which the hundredth part covers for up to 2^22 particles of a unit.
    pub(super) fn most(reach: f64) -> u32 {
        let once = (UNIT_BITS + 2.0).exp2() * reach.max(0.5);
        (0.99 * 7.0 * 28.0_f64.exp2() / f64::from(MOST_THREADS) - 2.0 * once) as u32
    }

    /// Bytes of shared memory that `advance` needs: fields and sums of a tile, and a queue for each warp.
    pub(super) fn shared(&self) -> u32 {
        let [x, y] = self.tile;
        let (fields, margin) =
            if self.order == 1 { ((x + 1) * (y + 1) * 24, 1) } else { (((x + 3) * (y + 3) * 6).next_multiple_of(16 / self.real()), 2) };
        let sums = if self.real() == 4 { 4 } else { 3 } * (x + 1 + 2 * margin) * (y + 1 + 2 * margin);
        // `CrossingQueue` of queue.cu.
        let queue = 256 + (320 + if self.weighted { 64 } else { 1 }) * self.real();
        ((fields + sums) * self.real() + queue * self.block as usize / 32) as u32
    }

    /// The kind of `species` where the rest is as `self` says.
    pub(super) fn of(self, species: &Species) -> Self {
        Self { weighted: species.weighted, tagged: species.tagged, pusher: species.pusher, ..self }
    }
}

impl fmt::Display for KernelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} order {} {:?} {}x{}", self.precision, self.order, self.pusher, self.tile[0], self.tile[1])
    }
}

macro_rules! kernels {
    ($($field:ident $name:literal),* $(,)?) => {
        /// Every kernel.
        #[derive(Debug, Clone)]
        pub(super) struct Kernels {
            $(pub $field: Kernel,)*
        }

        const NAMES: &[&str] = &[$($name),*];

        impl Kernels {
            pub(super) fn new(cuda: &Cuda, kernel_config: &KernelConfig) -> Result<Self> {
                let program: Program = recipe(kernel_config).build(cuda)?;
                Ok(Self { $($field: program.kernel($name)?,)* })
            }
        }
    };
}
kernels!(
    advance "advance<false>",
    advance_measured "advance<true>",
    swap_pages "swap_pages",
    absorb "absorb",
    enter "enter",
    shift "shift",
    charge "charge",
    convert "convert",
    total "total",
    extent "extent",
    edges "edges",
    bins "bins",
    number "number",
    follow "follow",
);

/// Recipe of the kernels of a configuration: also for tests, for architectures that are not at hand.
pub fn recipe(kernel_config: &KernelConfig) -> Recipe {
    let roots = ["advance.cu", "window.cu", "particle_diagnostics.cu"];
    let recipe = Recipe::of_files(&format!("pic {kernel_config}"), FILES, &roots, &defines(kernel_config), NAMES);
    // Division and square root to two units in the last place: 4 % of the time; lengths of momenta do not depend on them.
    if kernel_config.precision == Precision::F64 {
        recipe
    } else {
        recipe.option("-prec-div=false").option("-prec-sqrt=false").option("-ftz=true")
    }
}

/// Kernels that make particles.
const MAKERS: &[&str] = &["fill", "make_column"];

/// Recipe of the kernels that make particles, at the start and ahead of a window: apart from the others, since no operation may be
/// fused.
pub(super) fn maker(kernel_config: &KernelConfig) -> Recipe {
    Recipe::of_files(&format!("pic start {kernel_config}"), FILES, &["fill.cu"], &defines(kernel_config), MAKERS).option("-fmad=false")
}

/// Recipe of the kernel that takes particles from other parts of a run.
pub(super) fn arrivals(kernel_config: &KernelConfig) -> Recipe {
    Recipe::of_files(&format!("pic arrivals {kernel_config}"), FILES, &["arrive.cu"], &defines(kernel_config), &["arrive"])
}

fn defines(kernel_config: &KernelConfig) -> [(String, String); 15] {
    let wide = kernel_config.precision == Precision::F64;
    let pusher = match kernel_config.pusher {
        Pusher::Boris => "boris",
        Pusher::Vay => "vay",
        Pusher::HigueraCary => "higuera_cary",
    };
    let define = |name: &str, value: &dyn fmt::Display| (name.to_owned(), value.to_string());
    [
        define("REAL", if wide { &"double" } else { &"float" }),
        define("WIDE", &u8::from(wide)),
        define("ORDER", &kernel_config.order),
        define("WEIGHTED", &u8::from(kernel_config.weighted)),
        define("TAGGED", &u8::from(kernel_config.tagged)),
        define("PUSHER", &pusher),
        define("TX", &kernel_config.tile[0]),
        define("TY", &kernel_config.tile[1]),
        define("SHIFT", &kernel_config.shift),
        define("OUT", &kernel_config.out()),
        define("AHEAD", &kernel_config.ahead),
        define("BLOCK", &kernel_config.block),
        define("RESIDENT", &kernel_config.resident),
        define("CHECKED", &u8::from(kernel_config.checked)),
        define("MOST", &kernel_config.most),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::loading::{Batch, Source, UniformSource};
    use crate::setup::Model;
    use zellige_engine::testing::host::Host;

    const TEST: &str = r#"
extern "C" __global__ void one(UniformSource m, const double *offsets, u64 column, u64 row, double *v) {
    if (threadIdx.x < m.per_cell) make(m, offsets, column, row, threadIdx.x, v + 5 * threadIdx.x);
}
"#;

    /// Bins over all values of a column have the edges that the host would give them, from the extents of any number of blocks.
    #[test]
    fn edges_of_bins_have_the_bits_of_the_host() {
        use crate::stages::{Bins, padded_range};
        let Some(host) = Host::compile(&Recipe::of_files("host-edges", FILES, &["edges.cu"], &[], &["edges"])) else { return };
        type Edges = unsafe extern "C" fn(*const f64, u32, arguments::Bins, *mut f64);
        // SAFETY: its parameters.
        let edges = unsafe { host.kernel::<Edges>("edges") };
        let nothing = [f64::INFINITY, f64::NEG_INFINITY];
        let cases: [&[[f64; 2]]; 7] = [
            &[[-0.3, 0.1], [-0.7, 0.2], nothing, [0.0, 1.1]],
            &[[1e-9, 3e-9]; 300],
            &[[0.25, 0.25]],
            &[[0.0, -0.0]],
            &[[-5e-9, -5e-9]],
            &[nothing; 2],
            &[],
        ];
        for extents in cases {
            let mut bins = Bins { column: 2, from: -1.5, spacing: 0.375, count: 77, position: [0.0; 2] };
            let (argument, mut found) = (arguments::Bins::new(&bins), [f64::NAN; 2]);
            let (from, to) = (extents.as_ptr().cast(), found.as_mut_ptr());
            // SAFETY: two numbers for each of so many blocks, and two that are set.
            host.launch([1, 1, 1], [256, 1, 1], &|| unsafe { edges(from, extents.len() as u32, argument, to) });
            if !extents.is_empty() {
                bins.goes_over(padded_range(extents.iter().fold(nothing, |[a, b], [low, high]| [a.min(*low), b.max(*high)])));
            }
            assert_eq!(found.map(f64::to_bits), [bins.from, bins.spacing].map(f64::to_bits), "{extents:?}: {found:?}");
        }
    }

    fn config(dimensions: usize, species: &str) -> Config {
        let grid = if dimensions == 1 { r#""cells": [70], "size": [7.0]"# } else { r#""cells": [70, 9], "size": [7.0, 0.9]"# };
        let species = format!(r#"{{"name": "a", "particles_per_cell": 9{species}}}"#);
        serde_json::from_str(&format!(r#"{{"dt": 0.05, "steps": 1, "grid": {{{grid}}}, "species": [{species}]}}"#)).unwrap()
    }

    /// A particle of a GPU has the bits of the CPU's, whatever it is made of.
    #[test]
    fn particles_of_a_kernel_have_the_bits_of_the_cpu() {
        let files =
            [FILES, &[("real.cuh", &[real::CUDA]), ("test", &["#include \"real.cuh\"\n#include \"uniform_source.cu\"", TEST])]].concat();
        let Some(host) = Host::compile(&Recipe::of_files("host-made", &files, &["test"], &[], &["one"])) else { return };
        type One = unsafe extern "C" fn(UniformSource, *const f64, u64, u64, *mut f64);
        // SAFETY: its parameters.
        let one = unsafe { host.kernel::<One>("one") };
        let starts = [
            "",
            r#", "momentum": {"thermal": [0.1, 0.02, 3.0], "drift": [0.5, -0.25, 1e-3]}"#,
            r#", "momentum": {"temperature": 0.3}"#,
            r#", "positions": "lattice""#,
            r#", "positions": "quiet""#,
            r#", "momentum": {"maxwell_juttner": 0.3}"#,
            r#", "momentum": {"maxwell_juttner": 2.0, "drift": [0.5, 0.0, -7.0]}"#,
        ];
        for (dimensions, species) in starts.into_iter().flat_map(|s| [(1, s), (2, s)]) {
            let config = config(dimensions, species);
            let model = Model::new(&config, std::path::Path::new(""), 0x1234_5678_9abc).unwrap();
            let (setup, total_field) = (model.setup(&config).unwrap(), Default::default());
            let source = Source::new(&model, &setup, 0, 0, &total_field);
            let (uniform_source, offsets) = source.uniform_source().unwrap();
            for cell in [[0_u32, 0], [69, if dimensions == 1 { 0 } else { 8 }]] {
                let mut batch = Batch::default();
                source.fill([cell].into_iter(), &mut batch).unwrap();
                let mut v = vec![f64::NAN; 5 * batch.len()];
                let (from, to) = (offsets.as_ptr().cast(), v.as_mut_ptr());
                // SAFETY: five numbers for each of 9 particles, and two offsets where they are read.
                host.launch([1, 1, 1], [32, 1, 1], &|| unsafe { one(uniform_source, from, cell[0].into(), cell[1].into(), to) });
                assert_eq!(batch.len(), 9);
                for p in 0..9 {
                    let host = [batch.s[p], batch.t[p], batch.u[0][p], batch.u[1][p], batch.u[2][p]];
                    assert_eq!(host.map(f64::to_bits), std::array::from_fn(|c| v[5 * p + c].to_bits()), "{species} {cell:?} {p}: {host:?}");
                }
            }
        }
    }
}
