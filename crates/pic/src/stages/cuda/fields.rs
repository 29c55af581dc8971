//! The fields of the GPU: E, B and J on the device, what particles do not touch on the host.
//!
//! The equations are advanced by the processor's [`FieldSet`]: J comes down and E and B go up once a step.

use zellige_engine::cuda::{Buffer, Cuda, Pool};
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_engine::real::RealScalar;

use crate::stages::cpu::fields::FieldSet;
use crate::stages::{Component, Precision, Setup, Sheet};

enum Host {
    Single(Box<FieldSet<f32>>),
    Double(Box<FieldSet<f64>>),
}

macro_rules! host {
    ($self:expr, $f:ident => $body:expr) => {
        match &mut $self.host {
            Host::Single($f) => $body,
            Host::Double($f) => $body,
        }
    };
}

/// The fields of a run.
pub(super) struct Fields {
    cuda: Cuda,
    felt: Vec<Buffer<u8>>,
    current: Vec<Buffer<u8>>,
    host: Host,
}

fn up<T: RealScalar>(cuda: &Cuda, set: &FieldSet<T>, felt: &mut [Buffer<u8>]) -> Result<()> {
    felt.iter_mut().zip(Component::ALL).try_for_each(|(buffer, c)| cuda.upload(buffer, bytemuck::cast_slice(set.gathered(c))))
}

fn down<T: RealScalar>(cuda: &Cuda, set: &mut FieldSet<T>, current: &[Buffer<u8>]) -> Result<()> {
    set.j.iter_mut().zip(current).try_for_each(|(j, buffer)| cuda.download_to(buffer, 0, bytemuck::cast_slice_mut(j)))
}

impl Fields {
    /// All fields zero.
    pub(super) fn new(setup: &Setup, cuda: &Cuda, pool: &Pool) -> Result<Self> {
        let (host, bytes) = match setup.precision {
            Precision::F32 => (Host::Single(Box::new(FieldSet::new(setup))), 4),
            Precision::F64 => (Host::Double(Box::new(FieldSet::new(setup))), 8),
        };
        let arrays = |n: usize| (0..n).map(|_| pool.alloc_zeros::<u8>(setup.grid.len() * bytes, "pic: fields")).collect::<Result<Vec<_>>>();
        let mut fields = Self { cuda: cuda.clone(), felt: arrays(6)?, current: arrays(3)?, host };
        fields.upload()?;
        Ok(fields)
    }

    fn upload(&mut self) -> Result<()> {
        host!(self, f => up(&self.cuda, f, &mut self.felt))
    }

    /// Address of a component of E or B as particles feel it, guards valid.
    pub(super) fn felt(&self, c: usize) -> u64 {
        self.felt[c].address()
    }

    /// Address of what is added to that, 0 where nothing is.
    pub(super) fn external(&self, _c: usize) -> u64 {
        0
    }

    /// Address of a component of J.
    pub(super) fn j(&self, c: usize) -> u64 {
        self.current[c].address()
    }

    pub(super) fn begin(&mut self, measure: bool, _profiler: &mut Profiler) -> Result<()> {
        host!(self, f => f.begin(measure));
        self.current.iter_mut().try_for_each(|j| self.cuda.fill_zero(j))
    }

    pub(super) fn current(&mut self, sheets: &[Sheet], _profiler: &mut Profiler) -> Result<()> {
        host!(self, f => {
            down(&self.cuda, f, &self.current)?;
            f.current(sheets);
        });
        Ok(())
    }

    pub(super) fn field(&mut self, _profiler: &mut Profiler) -> Result<()> {
        host!(self, f => f.field());
        self.upload()
    }

    pub(super) fn shift(&mut self, _profiler: &mut Profiler) -> Result<()> {
        host!(self, f => f.shift());
        self.upload()
    }

    pub(super) fn get(&mut self, component: Component) -> Result<Vec<f64>> {
        Ok(host!(self, f => f.get(component)))
    }

    pub(super) fn set(&mut self, component: Component, values: &[f64]) -> Result<()> {
        host!(self, f => f.set(component, values));
        self.upload()
    }

    /// `1/2 E^2` and `1/2 B^2` per component, of the last measured step.
    pub(super) fn energies(&mut self) -> Result<[f64; 6]> {
        Ok(host!(self, f => {
            let ([a, b, c], [d, e, g]) = (f.electric(), f.magnetic());
            [a, b, c, d, e, g]
        }))
    }

    pub(super) fn complete_charge(&mut self, rho: &[f64], smoothed: bool) -> Vec<f64> {
        fn with<T: RealScalar>(set: &FieldSet<T>, rho: &[f64], smoothed: bool) -> Vec<f64> {
            let mut values: Vec<T> = rho.iter().map(|v| T::from_f64(*v)).collect();
            set.complete_charge(&mut values, smoothed);
            values.iter().map(|v| v.to_f64()).collect()
        }
        host!(self, f => with(f, rho, smoothed))
    }

    pub(super) fn hidden(&mut self) -> Result<Vec<(String, Vec<f64>)>> {
        Ok(host!(self, f => f.hidden()))
    }

    pub(super) fn set_hidden(&mut self, state: &[(String, Vec<f64>)]) -> Result<()> {
        host!(self, f => f.set_hidden(state));
        Ok(())
    }
}
