//! Diagnostics of the fields on the device: `gauss.cu`.

use std::ops::Range;

use zellige_engine::cuda::{Buffer, Cuda};
use zellige_engine::error::Result;

use super::{BLOCK, Fields, Taps};
use crate::gauss::{ChargeCheck, ChargeErrors, Rounding};
use crate::stages::Sheet;
use crate::stages::cuda::field_arguments;

/// Blocks that look at corners, each of which tells of its worst one.
const BLOCKS: u32 = 512;

/// State of all corners.
pub(super) struct Corners {
    base: Buffer<f64>,
    variance: Buffer<f64>,
}

/// Charge at all corners while it is added up.
pub(in crate::stages::cuda) struct Charge {
    rho: Buffer<f64>,
    all: Buffer<f64>,
    one: Buffer<f64>,
    /// Half filtered; empty without a filter.
    scratch: Buffer<f64>,
}

impl Charge {
    /// The accumulated sum, from corner `at` of the array on. Waits.
    pub(super) fn fetch(&self, cuda: &Cuda, at: usize, to: &mut [f64]) -> Result<()> {
        cuda.download_to(&self.rho, at, to)
    }

    /// The accumulated sum at all corners with guards.
    pub(super) fn values(&self) -> &Buffer<f64> {
        &self.rho
    }
}

/// Work of E on J.
pub(super) struct Work {
    sums: Buffer<f64>,
    /// Columns with sheets, on the device too.
    columns: Vec<u32>,
    left_out: Buffer<u32>,
}

impl Fields {
    /// Forgets the charge of before, whose memory is kept: to have it anew would wait for the device.
    pub(in crate::stages::cuda) fn begin_charge(&mut self, smoothed: bool) -> Result<()> {
        let n = self.grid.len();
        let array = |n: usize| self.pool.alloc_zeros::<f64>(n, "pic: charge at the corners");
        match &mut self.charge {
            Some(charge) => {
                if smoothed && charge.scratch.is_empty() {
                    charge.scratch = array(n)?;
                }
                self.cuda.fill_zero(&mut charge.rho)?;
                self.cuda.fill_zero(&mut charge.all)
            }
            none => {
                *none = Some(Charge { rho: array(n)?, all: array(n)?, one: array(n)?, scratch: array(if smoothed { n } else { 0 })? });
                Ok(())
            }
        }
    }

    /// The charge that was added up last.
    pub(super) fn charge(&self) -> &Charge {
        self.charge.as_ref().expect("begun before it is looked at")
    }

    /// Adds the charge of a species, in integers of `unit`.
    pub(in crate::stages::cuda) fn add_charge(&self, sums: &Buffer<i64>, unit: f64, smoothed: bool) -> Result<()> {
        let charge = self.charge();
        let (blocks, threads) = (self.blocks(1), (BLOCK[0], BLOCK[1]));
        assert!(sums.len() >= self.grid.len() && charge.rho.len() == self.grid.len());
        // SAFETY: as declared; all arrays have all nodes with guards.
        unsafe {
            self.kernel("charge_of").launch(blocks, threads).arg(self.yee).arg(sums).arg(unit).arg(&charge.one).run()?;
            if smoothed {
                for (axis, from, to) in [(0, &charge.one, &charge.scratch), (1, &charge.scratch, &charge.one)] {
                    let mut taps = Taps::new(self.smoothing[axis], axis);
                    if let (1, Some(beside)) = (axis, &self.beside) {
                        beside.reach_charge(&self.yee, from, &mut taps)?;
                    }
                    self.kernel("smooth_charge").launch(blocks, threads).arg(self.yee).arg(taps).arg(from).arg(to).run()?;
                }
            }
            let launch = self.kernel("sum_charge").launch(blocks, threads).arg(self.yee);
            launch.arg(&charge.one).arg(&charge.rho).arg(&charge.all).run()
        }
    }

    /// Looks at all corners. Waits.
    pub(in crate::stages::cuda) fn check_charge(&mut self, check: &ChargeCheck<'_>) -> Result<ChargeErrors> {
        let n = self.grid.len();
        if self.corners.is_none() {
            let array = || self.pool.alloc_zeros(n, "pic: residual at the corners");
            self.corners = Some(Corners { base: array()?, variance: array()? });
        }
        let nodes = self.grid.nodes_held()[1];
        let partial = self.pool.alloc_zeros::<f64>(3 * nodes.max(BLOCKS as usize), "pic: residual")?;
        let charge = self.charge();
        let launch = self.kernel("check_scale").launch(nodes as u32, 256).arg(self.yee);
        // SAFETY: as declared; three numbers a row.
        unsafe { launch.arg(&charge.all).arg(&partial).run()? };
        let found = self.cuda.download_range(&partial, 0..3 * nodes)?;
        let found = self.part.lists_of_rows(&self.grid, vec![found])?.concat();
        let join = |[x, y, most]: [f64; 3], [a, b, c]: &[f64; 3]| [x + a, y + b, f64::max(most, *c)];
        let [x, y, fullest] = found.as_chunks::<3>().0.iter().fold([0.0; 3], join);
        // Integers are added up without rounding.
        let rounding = check.rounding((x + y) / (self.grid.nodes(0) * self.grid.nodes(1)) as f64, fullest, 0.0);
        // Rows that are here, counted from the first of them.
        let [columns, rows] = &check.range;
        let (first, here) = (self.grid.held().start as isize, nodes as isize);
        let rows = (rows.start - first).max(0)..(rows.end - first).min(here);
        let own = if columns.is_empty() || rows.is_empty() {
            ChargeErrors::NONE
        } else {
            self.look_at(check, rounding, columns, rows, &partial)?
        };
        let found = self.part.lists_of_rows(&self.grid, vec![own.to_numbers().to_vec()])?.concat();
        Ok(found.as_chunks::<4>().0.iter().map(|numbers| ChargeErrors::from_numbers(*numbers)).fold(ChargeErrors::NONE, ChargeErrors::join))
    }

    /// Looks at the corners in some rows and columns of those that are here.
    fn look_at(
        &self,
        check: &ChargeCheck<'_>,
        rounding: Rounding<f64>,
        columns: &Range<isize>,
        rows: Range<isize>,
        partial: &Buffer<f64>,
    ) -> Result<ChargeErrors> {
        let (Some(corners), charge) = (&self.corners, self.charge()) else { unreachable!("made before") };
        let forget = self.pool.buffer_from(&check.forget.iter().map(|f| u8::from(*f)).collect::<Vec<_>>(), "pic: columns")?;
        let argument = field_arguments::Corners {
            rho: charge.rho.address(),
            all: charge.all.address(),
            base: corners.base.address(),
            variance: corners.variance.address(),
            forget: forget.address(),
            range: [columns.start, columns.end, rows.start, rows.end].map(|k| k as i32),
            turn: check.shift(self.grid.pitch()) as i32,
        };
        let launch = self.kernel("check_charge").launch(BLOCKS, 256).arg(self.yee).arg(argument);
        // SAFETY: as declared; the ranges lie inside, a flag for each of their columns.
        unsafe { launch.arg(rounding).arg(partial).run()? };
        let seen = |[most, change, limit]: &[f64; 3]| ChargeErrors { most: *most, worst: (*limit >= 0.0).then_some([*change, *limit]) };
        Ok(self
            .cuda
            .download_range(partial, 0..3 * BLOCKS as usize)?
            .as_chunks::<3>()
            .0
            .iter()
            .map(seen)
            .fold(ChargeErrors::NONE, ChargeErrors::join))
    }

    /// Adds up the work from here on.
    pub(in crate::stages::cuda) fn count_work(&mut self) -> Result<()> {
        let sums = self.pool.alloc_zeros(self.grid.nodes_held()[1], "pic: work of the fields")?;
        self.work = Some(Work { sums, columns: Vec::new(), left_out: self.pool.alloc_zeros(0, "pic: work of the fields")? });
        Ok(())
    }

    /// True if the work is summed.
    pub(in crate::stages::cuda) fn counts_work(&self) -> bool {
        self.work.is_some()
    }

    /// Work so far. Waits.
    pub(in crate::stages::cuda) fn work(&self) -> Result<f64> {
        let Some(work) = &self.work else { return Ok(0.0) };
        Ok(self.part.lists_of_rows(&self.grid, vec![self.cuda.download(&work.sums)?])?.concat().iter().sum())
    }

    /// Takes note of the columns of sheets that this step has.
    pub(super) fn leave_out(&mut self, sheets: &[Sheet]) -> Result<()> {
        let Some(work) = &mut self.work else { return Ok(()) };
        let mut columns: Vec<u32> = sheets.iter().filter(|s| s.axis == 0).map(|s| s.node as u32).collect();
        columns.sort_unstable();
        columns.dedup();
        if columns != work.columns {
            work.left_out = self.pool.buffer_from(&columns, "pic: work of the fields")?;
            work.columns = columns;
        }
        Ok(())
    }

    /// Adds half a step's work of E as it is.
    pub(super) fn add_work(&self) -> Result<()> {
        let Some(work) = &self.work else { return Ok(()) };
        let factor = 0.5 * self.grid.dt * self.grid.cell_volume();
        let rows = self.grid.nodes_held()[1] as u32;
        let launch = super::early(&self.cuda, self.kernel("power").launch(rows, 256)).arg(self.yee).arg(&work.left_out);
        // SAFETY: as declared; a sum for each row.
        unsafe { launch.arg(work.columns.len() as u32).arg(factor).arg(&work.sums).run() }
    }

    /// For a restart: the state of the corners, and the work, as on the CPU but for the number of its sums. Waits.
    pub(super) fn corner_state(&self) -> Result<Vec<(String, Vec<f64>)>> {
        let mut state = Vec::new();
        if let Some(corners) = &self.corners {
            for (name, values) in [("residual.base", &corners.base), ("residual.variance", &corners.variance)] {
                let own = self.cuda.download(values)?;
                state.push((name.to_owned(), self.part.whole(&self.grid, &own, self.grid.pitch(), false)?));
            }
        }
        if let Some(work) = &self.work {
            state.push(("work".to_owned(), self.part.lists_of_rows(&self.grid, vec![self.cuda.download(&work.sums)?])?.concat()));
        }
        Ok(state)
    }

    /// Takes it back.
    pub(super) fn set_corner_state(&mut self, state: &[(String, Vec<f64>)]) -> Result<()> {
        let entry = |name: &str| state.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_slice());
        if let (Some(base), Some(variance)) = (entry("residual.base"), entry("residual.variance"))
            && [base.len(), variance.len()] == [self.grid.whole().len(); 2]
        {
            let share = |values: &[f64]| self.part.share(&self.grid, values, self.grid.pitch());
            let array = |values: &[f64]| self.pool.buffer_from(&share(values), "pic: residual at the corners");
            self.corners = Some(Corners { base: array(base)?, variance: array(variance)? });
        }
        if let (Some(work), Some(saved)) = (&mut self.work, entry("work")) {
            // Sums of the rows, or one where the CPU saved it, which the first row then has.
            let first = self.grid.held().start;
            let mut sums = vec![0.0; self.grid.nodes_held()[1]];
            sums.iter_mut().zip(saved.get(first..).unwrap_or_default()).for_each(|(to, v)| *to = *v);
            self.cuda.upload(&mut work.sums, &sums)?;
        }
        Ok(())
    }
}
