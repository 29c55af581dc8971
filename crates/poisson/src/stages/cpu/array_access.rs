//! The arrays of the stages on the CPU as plain numbers: for tests from outside, which compile the passes no second
//! time.

use zellige_engine::device::Cpu;
use zellige_engine::links::Links;
use zellige_engine::real::{Isa, RealScalar};

use super::field::Field;
use super::tables::Colour;
use super::{CpuStages, half_sweeps};
use crate::grid::Level;
use crate::problem::{Precision, StageSetup};
use crate::stages::{Smoother, Stages};

/// An array of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Array {
    /// `r`.
    Residual,
    /// `e`.
    Correction,
    /// `u`.
    Solution,
    /// `f`.
    RightHandSide,
}

/// Stages whose arrays can be read and set.
pub trait ArrayAccess: Stages {
    /// Takes the instructions of `isa`, one of [`Isa::all`].
    fn use_only(&mut self, isa: Isa);

    /// The levels with their axes in the order in which the arrays have them, the first one fastest.
    fn ordered(&self) -> &[Level];

    /// Factor of the operator inside, and the unit of the correction.
    fn units(&self) -> [f64; 2];

    /// The values at all nodes of a level, if there is such an array.
    fn values(&self, level: usize, array: Array) -> Option<Vec<f64>>;

    /// Sets the values at all nodes of a level, rounded to the array's precision.
    fn set(&mut self, level: usize, array: Array, values: &[f64]);
}

/// The stages for `setup` on the threads of `cpu`.
pub fn array_access(setup: &StageSetup, cpu: &Cpu) -> Box<dyn ArrayAccess> {
    of_part(setup, cpu, &Links::default())
}

/// The stages of a part of a run.
pub(super) fn of_part(setup: &StageSetup, cpu: &Cpu, links: &Links) -> Box<dyn ArrayAccess> {
    match setup.precision {
        Precision::F32 => Box::new(CpuStages::<f32, f32>::new(setup, cpu, links)),
        Precision::F64 => Box::new(CpuStages::<f64, f64>::new(setup, cpu, links)),
        Precision::Mixed => Box::new(CpuStages::<f32, f64>::new(setup, cpu, links)),
    }
}

/// `nu` sweeps as relaxations: whether nodes of even and of odd sum of indices take part, the factor of relaxation and that of
/// the momentum.
pub fn relaxations(smoother: Smoother, nu: u32) -> Vec<([bool; 2], f64, f64)> {
    let coloured = |colour| match colour {
        Colour::Red => [true, false],
        Colour::Black => [false, true],
        Colour::All => [true, true],
    };
    half_sweeps::<f64>(smoother, nu).into_iter().map(|s| (coloured(s.colour), s.omega, s.momentum)).collect()
}

fn nodes<V: RealScalar>(field: &Field<V>) -> Vec<f64> {
    let shape = field.shape;
    let slabs = field.all().chunks_exact(shape.slab());
    slabs.flat_map(|slab| (0..shape.rows).flat_map(move |j| &shape.row(slab, j)[..shape.nx])).map(|v| v.to_f64()).collect()
}

fn put<V: RealScalar>(field: &mut Field<V>, values: &[f64], periodic: bool) {
    let shape = field.shape;
    assert_eq!(values.len(), shape.nodes(), "a value for each node");
    for (slab, values) in field.all_mut().chunks_exact_mut(shape.slab()).zip(values.chunks_exact(shape.nx * shape.rows)) {
        for (j, values) in values.chunks_exact(shape.nx).enumerate() {
            shape.row_mut(slab, j)[..shape.nx].iter_mut().zip(values).for_each(|(v, x)| *v = V::from_f64(*x));
        }
        shape.fill_ghosts(slab, periodic);
    }
}

impl<T: RealScalar, U: RealScalar> ArrayAccess for CpuStages<T, U> {
    fn use_only(&mut self, isa: Isa) {
        assert!(Isa::all().contains(&isa), "this processor has no {isa:?}");
        self.isa = isa;
    }

    fn ordered(&self) -> &[Level] {
        &self.setup.levels
    }

    fn units(&self) -> [f64; 2] {
        [self.operator_scale, self.e_scale()]
    }

    fn values(&self, level: usize, array: Array) -> Option<Vec<f64>> {
        let data = &self.levels[level];
        match array {
            Array::Residual => Some(nodes(&data.r)),
            Array::Correction => data.e.as_ref().map(nodes),
            Array::Solution => data.outer.as_ref().map(|o| nodes(&o.u)),
            Array::RightHandSide => data.outer.as_ref().map(|o| nodes(&o.f)),
        }
    }

    fn set(&mut self, level: usize, array: Array, values: &[f64]) {
        match array {
            Array::Residual => {}
            Array::Correction => self.ensure_correction(level),
            Array::Solution | Array::RightHandSide => self.ensure_outer(level),
        }
        let data = &mut self.levels[level];
        let periodic = data.periodic[0];
        match (array, &mut data.e, &mut data.outer) {
            (Array::Residual, ..) => put(&mut data.r, values, periodic),
            (Array::Correction, Some(e), _) => put(e, values, periodic),
            (Array::Solution, _, Some(outer)) => put(&mut outer.u, values, periodic),
            (Array::RightHandSide, _, Some(outer)) => put(&mut outer.f, values, periodic),
            _ => {}
        }
    }
}
