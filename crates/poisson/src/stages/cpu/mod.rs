//! The stages on the CPU: streaming passes (`pass`) over bands of slabs (`band`), row operations compiled for
//! each instruction set (`rows`, `isa`).
//!
//! Inside, the operator is multiplied by a power of two near `h^2` and the residual by one near `1 / max |f|`: the
//! numbers of a cycle in single precision are then of order one whatever the user's units are, and nothing is rounded
//! by it.

mod array_access;
mod band;
mod coarse;
pub(crate) mod division;
mod field;
mod full;
mod in_place;
mod level;
mod pass;
mod polynomial;
mod residual;
mod ring;
mod rows;
mod share;
mod stages;
mod stream;
mod strips;
mod tables;
mod transfer;
mod transfer_rows;

use zellige_engine::device::Cpu;
use zellige_engine::error::Result;
use zellige_engine::links::Links;
use zellige_engine::real::RealScalar;

pub use self::array_access::{Array, ArrayAccess, array_access, relaxations};
use self::coarse::CoarseSolver;
use self::level::LevelData;
use self::pass::HalfSweep;
use self::polynomial::Polynomial;
use self::share::Share;
pub(crate) use self::share::host_slabs;
use self::stream::Workspace;
use self::tables::Colour;
use super::{Norms, Smoother, Stages};
use crate::isa::{self, Isa};
use crate::physics::Chebyshev;
use crate::problem::StageSetup;

/// Half-sweeps in one pass at most (the polynomial of a cycle's smoother is not cut): more would leave the cache.
const MAX_FUSED: usize = 8;

/// The stages of the CPU for `setup`, on the threads of `cpu`.
pub fn new(setup: &StageSetup, cpu: &Cpu) -> Result<Box<dyn Stages>> {
    of_part(setup, cpu, &Links::default())
}

/// The stages of a part of a run.
pub fn of_part(setup: &StageSetup, cpu: &Cpu, links: &Links) -> Result<Box<dyn Stages>> {
    Ok(array_access::of_part(setup, cpu, links))
}

/// Data and methods of one problem on the CPU: the correction in `T`, the solution in `U`.
pub struct CpuStages<T, U> {
    cpu: Cpu,
    isa: Isa,
    /// Set-up with the axes in the order of [`field::in_slabs`].
    setup: StageSetup,
    levels: Vec<LevelData<T, U>>,
    solver: CoarseSolver,
    inner: Workspace<T, U>,
    outer: Workspace<U, U>,
    /// The operator's factor inside.
    operator_scale: f64,
    /// The residual's factor inside.
    residual_scale: f64,
    norms: Norms,
    removed_mean: f64,
    singular: bool,
    /// The Chebyshev polynomial on the solution that [`Stages::sweep_norms`] continues.
    polynomial: Option<Polynomial<U>>,
    /// The coarsest level's sweeps look for signals.
    gives_way: bool,
}

/// The power of two nearest to `x` on a logarithmic scale; 1 if there is none.
fn power_of_two(x: f64) -> f64 {
    if x > 0.0 && x.is_finite() { x.log2().round().clamp(-200.0, 200.0).exp2() } else { 1.0 }
}

/// `nu` sweeps as relaxations of one colour each.
fn half_sweeps<T: RealScalar>(smoother: Smoother, nu: u32) -> Vec<HalfSweep<T>> {
    let plain = |colour, omega: f64| HalfSweep { colour, omega: T::from_f64(omega), momentum: T::ZERO };
    let mut recurrence = Chebyshev::default();
    (0..nu)
        .flat_map(|_| match smoother {
            Smoother::RedBlack { omega } => vec![plain(Colour::Red, omega), plain(Colour::Black, omega)],
            Smoother::Jacobi { omega } => vec![plain(Colour::All, omega)],
            Smoother::Chebyshev { ratio } => {
                vec![polynomial::sweep(&mut recurrence, ratio)]
            }
        })
        .collect()
}

/// Sweeps that go into one pass.
fn sweeps_per_pass(smoother: Smoother) -> u32 {
    match smoother {
        Smoother::RedBlack { .. } => MAX_FUSED as u32 / 2,
        Smoother::Jacobi { .. } => MAX_FUSED as u32,
        Smoother::Chebyshev { .. } => u32::MAX,
    }
}

impl<T: RealScalar, U: RealScalar> CpuStages<T, U> {
    /// Allocates everything that a V-, W- or F-cycle needs, and fills it with zeros.
    pub fn new(setup: &StageSetup, cpu: &Cpu, links: &Links) -> Self {
        let setup = &StageSetup { levels: field::in_slabs(&setup.levels), ..setup.clone() };
        let grid = setup.grid();
        let finest = grid.axes.iter().filter(|a| !a.is_flat()).map(|a| a.h).fold(f64::INFINITY, f64::min);
        let operator_scale = power_of_two(finest * finest);
        let mut levels: Vec<LevelData<T, U>> = Vec::with_capacity(setup.levels.len());
        for (l, level) in setup.levels.iter().enumerate() {
            let coarse = setup.levels.get(l + 1).map(|c| &c.grid);
            let [x, rows, slabs] = level.grid.nodes();
            let share = match levels.last() {
                None => Share::even(links, &level.grid),
                // The coarsest level is solved as a whole.
                Some(fine) => fine.transfer.as_ref().map_or_else(
                    || Share::even(&Links::default(), &level.grid),
                    |transfer| fine.share.below(&transfer[2], slabs, x * rows, coarse.is_some()),
                ),
            };
            levels.push(LevelData::new(level, coarse, share, operator_scale, l == 0, l == 0 || setup.full));
        }
        let coarsest = &levels[levels.len() - 1].grid;
        Self {
            solver: CoarseSolver::new(coarsest, operator_scale),
            isa: Isa::best(),
            inner: Workspace::new(cpu.threads()),
            outer: Workspace::new(cpu.threads()),
            cpu: cpu.clone(),
            setup: setup.clone(),
            operator_scale,
            residual_scale: 1.0,
            norms: Norms::default(),
            removed_mean: 0.0,
            singular: grid.singular(),
            polynomial: None,
            gives_way: false,
            levels,
        }
    }

    /// Allocates every array that a level's solution needs (full multigrid without `full`).
    fn ensure_outer(&mut self, level: usize) {
        if self.levels[level].outer.is_none() {
            let coarse = self.setup.levels.get(level + 1).map(|c| &c.grid);
            self.levels[level].outer = Some(level::Outer::new(&self.setup.levels[level], coarse));
        }
    }

    fn ensure_correction(&mut self, level: usize) {
        let shape = self.levels[level].shape;
        self.levels[level].e.get_or_insert_with(|| field::Field::new(shape));
    }
}
