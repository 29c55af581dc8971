//! Right-hand sides and solutions in the caller's memory on the device.

use zellige_engine::cuda::Buffer;
use zellige_engine::error::Result;

use super::{CudaStages, inverse_power_of_two};

/// Largest number of rows of a launch of `pack` or `unpack`.
const ROWS: usize = 65_535;

impl CudaStages {
    /// `u = 0` and the right-hand side `f`, whose largest magnitude is given.
    pub(super) fn load_from_gpu(&mut self, f: &Buffer<f64>, largest: f64) -> Result<()> {
        // A solve like the one before finds its graphs.
        self.set_copy_state(0);
        let cuda = self.data.cuda.clone();
        self.data.levels[0].u.iter_mut().try_for_each(|u| cuda.fill_zero(&mut u.buffer))?;
        let l = &self.data.levels[0];
        let [nx, ny, nz] = l.argument.axes().map(|a| a.n as usize);
        assert_eq!(f.len(), nx * ny * nz, "arrays cover all nodes of the grid");
        for start in (0..ny * nz).step_by(ROWS) {
            let grid = (nx.div_ceil(256) as u32, (ny * nz - start).min(ROWS) as u32);
            let launch = self.data.kernels.pack.launch(grid, 256).arg(l.argument).arg(f.from(start * nx));
            // SAFETY: the arguments of `pack` in order; the rows lie in `f` and in the field.
            unsafe { launch.arg(l.f()).arg(start as i32).arg(1_i32).run() }?;
        }
        let scale = if self.data.inner == self.data.outer { 1.0 } else { inverse_power_of_two(largest) };
        self.set_scale(scale);
        self.removed = if self.singular { self.data.remove_mean()? } else { 0.0 };
        Ok(())
    }

    /// The solution over all nodes.
    pub(super) fn store_to_gpu(&mut self, u: &Buffer<f64>) -> Result<()> {
        let l = &self.data.levels[0];
        let [nx, ny, nz] = l.argument.axes().map(|a| a.n as usize);
        assert_eq!(u.len(), nx * ny * nz, "arrays cover all nodes of the grid");
        for start in (0..ny * nz).step_by(ROWS) {
            let grid = (nx.div_ceil(256) as u32, (ny * nz - start).min(ROWS) as u32);
            let launch = self.data.kernels.unpack.launch(grid, 256).arg(l.argument).arg(l.u()).arg(u.from(start * nx));
            // SAFETY: the arguments of `unpack` in order; the rows lie in the field and in `u`.
            unsafe { launch.arg(start as i32).run() }?;
        }
        Ok(())
    }
}
