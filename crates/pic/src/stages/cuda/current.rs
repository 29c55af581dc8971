//! Current in integers: completed with what other parts have deposited, and made J.

use zellige_engine::error::Result;
use zellige_engine::links::Slabs;

use super::{CudaStages, Current, early};
use crate::stages::{Component, Precision};

impl CudaStages {
    /// Conversion of the sums in units of `charge` to J of this step.
    pub(super) fn current_of(&mut self, charge: f64) -> Current {
        let grid = &self.setup.grid;
        let unit = charge / (4.0 * self.unit);
        // Sums of z are in units of a 32nd part in single precision: deposit.cu.
        let fine = if self.setup.precision == Precision::F32 { 1.0 / 32.0 } else { 1.0 };
        let more = !std::mem::take(&mut self.fresh);
        Current { scales: [unit * grid.h[0] / grid.dt, unit * grid.h[1] / grid.dt, unit * fine], more }
    }

    /// Makes the integer sums J, or adds them to what there is of this step.
    pub(super) fn convert(&mut self) -> Result<()> {
        let Some(charge) = self.pending.take() else { return Ok(()) };
        self.complete(false)?;
        self.convert_complete(charge)
    }

    /// Makes sums J that are complete, in units of `charge`.
    pub(super) fn convert_complete(&mut self, charge: f64) -> Result<()> {
        self.ahead = None;
        let current = self.current_of(charge);
        self.read(self.adding, current)
    }

    /// Completes the sums with what other parts have deposited; with them go the particles of all species that have been pushed
    /// since the last time. Where `clear`, guards of the sums of the step before are zero afterwards.
    pub(super) fn complete(&mut self, clear: bool) -> Result<()> {
        let pushed = std::mem::take(&mut self.pushed);
        let along: Vec<&Slabs> = pushed.iter().filter_map(|s| self.species[*s].store.leaving()).collect();
        let before = clear.then_some(&self.sums[1 - self.adding]);
        self.fields.complete_sums(&self.sums[self.adding], before, &along)?;
        pushed.into_iter().try_for_each(|s| {
            let population = &mut self.species[s];
            population.store.arrive(population.domain())?;
            population.store.swap_pages()
        })
    }

    /// J from sums, which are zero afterwards.
    pub(super) fn read(&mut self, which: usize, current: Current) -> Result<()> {
        let n = self.setup.grid.len();
        let [x, y, z] = self.fields.j()?;
        // Kernel `convert` is in the program of every species; without one there is nothing to convert.
        let Some(population) = self.species.first() else { return Ok(()) };
        let launch = early(&self.cuda, population.store.kernels.convert.launch((n.div_ceil(256) as u32, 3), 256));
        let launch = launch.arg(&self.sums[which]).arg(x).arg(y).arg(z).arg(n as u64).arg(u32::from(current.more));
        // SAFETY: three arrays of n values, 3 n sums, and three scales, as declared.
        unsafe { launch.arg(current.scales).run() }
    }

    /// J where the last step left it in integers.
    pub(super) fn read_current(&mut self) -> Result<()> {
        self.unread.take().map_or(Ok(()), |current| self.read(1 - self.adding, current))
    }

    /// J as above, before a component of it is read or set.
    pub(super) fn read_if_current(&mut self, component: Component) -> Result<()> {
        if component.is_current() { self.read_current() } else { Ok(()) }
    }

    /// Refuses sums in units of another charge than `charge`: those there are become J first.
    pub(super) fn measure_in(&mut self, charge: f64) -> Result<()> {
        if self.pending.is_some_and(|p| p != charge) {
            self.convert()?;
        }
        self.pending = Some(charge);
        Ok(())
    }

    /// Has the charge of some species at all corners found.
    pub(super) fn charge_of(&mut self, species: &[usize], smoothed: bool) -> Result<()> {
        self.ahead = None;
        self.convert()?;
        self.fields.begin_charge(smoothed)?;
        for s in species {
            self.sum_charge(*s)?;
            self.complete(false)?;
            let unit = self.species[*s].species.macro_charge().abs() / (4.0 * self.unit);
            self.fields.add_charge(&self.sums[self.adding], unit, smoothed)?;
            self.cuda.fill_zero(&mut self.sums[self.adding])?;
        }
        Ok(())
    }
}
