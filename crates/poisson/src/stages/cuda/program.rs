//! The kernels' sources and how they are compiled.

use zellige_device_macro::device_source;
use zellige_engine::cuda::{Cuda, Files, Kernel, Program, Recipe};
use zellige_engine::cuda_files;
use zellige_engine::error::Result;

use super::{arguments, bottom, sines};
use crate::physics::PHYSICS;
use crate::problem::Precision;

/// Columns that a marching warp owns.
pub(super) const OWN: usize = 120;
/// Warps of a marching block.
pub(super) const WARPS: u32 = 2;
/// Threads of the general kernels.
pub(super) const NODES: (u32, u32) = (32, 4);
/// Coarse nodes of a block that restricts.
pub(super) const COARSE: [u32; 3] = [15, 4, 4];
/// Threads of a block that restricts.
pub(super) const RESTRICTING: u32 = 256;
/// Rows that a thread of the kernels with sums takes.
pub(super) const ROWS: u32 = 16;

macro_rules! kernels {
    ($(#[$about:meta])* $group:ident, $names:ident: $($name:ident),* $(,)?) => {
        $(#[$about])*
        #[derive(Debug)]
        pub(super) struct $group {
            $(pub $name: Kernel,)*
        }

        const $names: &[&str] = &[$(stringify!($name)),*];

        impl $group {
            fn of(program: &Program) -> Result<Self> {
                Ok(Self { $($name: program.kernel(stringify!($name))?,)* })
            }
        }
    };
}
kernels!(
    /// The kernels of every precision, by their names.
    Kernels, NAMES:
    descend,
    descend_plain,
    descend_short,
    ascend,
    ascend_plain,
    ascend_short,
    ascend_correct,
    ascend_correct_plain,
    ascend_carry_plain,
    sweep,
    two_sweeps,
    marching_residual,
    full_restrict,
    full_restrict_two,
    full_edges,
    full_residual,
    relax_e,
    relax_u,
    relax_zero,
    momentum_e,
    momentum_u,
    restrict_residual,
    restrict_rhs,
    prolong,
    interpolate,
    residual,
    correct,
    norms,
    join_bands,
    shift_r,
    shift_u,
    weigh,
    product,
    eliminate,
    sines_rows,
    sines_columns,
    pack,
    unpack,
    inject,
);
kernels!(
    /// The passes over the solution, where it and corrections have one precision.
    OnSolution, ON_SOLUTION:
    descend_solution,
    descend_solution_norms,
    descend_zero_norms,
    interpolate_descend,
    ascend_descend,
    ascend_solution_norms,
    ascend_solution,
);

/// Properties of a level's operator that its kernels rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperatorWeights {
    /// All unknowns have the same.
    Plain,
    /// All but the last of an axis.
    Short,
    /// No such property.
    General,
}

impl Kernels {
    /// The passes down, up, and up with the correction of `u`.
    pub(super) fn passes(&self, weights: OperatorWeights) -> (&Kernel, &Kernel, &Kernel) {
        match weights {
            OperatorWeights::Plain => (&self.descend_plain, &self.ascend_plain, &self.ascend_correct_plain),
            OperatorWeights::Short => (&self.descend_short, &self.ascend_short, &self.ascend_correct),
            OperatorWeights::General => (&self.descend, &self.ascend, &self.ascend_correct),
        }
    }
}

/// Source files.
const FILES: &Files = cuda_files![
    "ascend.cu",
    "ascend_row.cu",
    "ascend_strip.cu",
    "common.cu",
    "cubic_source.cu",
    "descend.cu",
    "eliminate.cu",
    "full_residual.cu",
    "full_restrict.cu",
    "interpolated.cu",
    "march.cu",
    "on_solution.cu",
    "plain.cu",
    "product.cu",
    "relax.cu",
    "residual.cu",
    "residual_march.cu",
    "setup.cu",
    "short.cu",
    "sine_transform.cu",
    "sines.cu",
    "solution.cu",
    "solution_strip.cu",
    "source.cu",
    "stream.cu",
    "sweep.cu",
    "transfer.cu";
    "physics.cuh" => PHYSICS,
    "level.cuh" => &device_source![arguments::Axis, arguments::Level],
    "norms.cuh" => &device_source![arguments::Norms],
    "product.cuh" => &device_source![bottom::Product],
    "elimination.cuh" => &device_source![bottom::Elimination],
    "sines.cuh" => &device_source![sines::Sines],
];

/// Files with the kernels of every precision.
const ROOTS: [&str; 12] = [
    "descend.cu",
    "ascend.cu",
    "sweep.cu",
    "residual_march.cu",
    "full_restrict.cu",
    "full_residual.cu",
    "transfer.cu",
    "residual.cu",
    "product.cu",
    "eliminate.cu",
    "sines.cu",
    "setup.cu",
];

/// Sources and constants of the program for a precision: used also by tests, for architectures that are not at hand.
pub fn recipe(precision: Precision) -> Recipe {
    let (real, wide) = match precision {
        Precision::F32 => ("float", "float"),
        Precision::Mixed => ("float", "double"),
        Precision::F64 => ("double", "double"),
    };
    let mut roots = ROOTS.to_vec();
    let mut names = NAMES.to_vec();
    if real == wide {
        roots.push("solution.cu");
        names.extend(ON_SOLUTION);
    }
    let define = |name: &str, value: String| (name.to_owned(), value);
    let defines = [
        define("REAL", real.into()),
        define("WIDE", wide.into()),
        define("SAME", u8::from(real == wide).to_string()),
        define("OWN", OWN.to_string()),
        define("WARPS", WARPS.to_string()),
        define("ROWS", ROWS.to_string()),
        define("COARSE_X", COARSE[0].to_string()),
        define("COARSE_Y", COARSE[1].to_string()),
        define("COARSE_Z", COARSE[2].to_string()),
    ];
    Recipe::of_files(&format!("poisson-{precision}"), FILES, &roots, &defines, &names)
}

/// The kernels for `precision` on `cuda`.
pub(super) fn kernels(cuda: &Cuda, precision: Precision) -> Result<(Kernels, Option<OnSolution>)> {
    let program = recipe(precision).build(cuda)?;
    let on_solution = if precision == Precision::Mixed { None } else { Some(OnSolution::of(&program)?) };
    Ok((Kernels::of(&program)?, on_solution))
}
