//! Right-hand sides and solutions in the caller's memory on the device.

use zellige_engine::cuda::{Buffer, Kernel};
use zellige_engine::error::Result;

use super::{Real, Solver};

/// Blocks of a copy: each thread takes more values where there are more.
const BLOCKS: u32 = 4096;

impl<T: Real> Solver<T> {
    /// Takes the right-hand side of a plan for one, with the values of Dirichlet sides in it: those of `u` are zero.
    pub(crate) fn load_on_gpu(&mut self, f: &Buffer<f64>) -> Result<()> {
        self.cuda.fill_zero(&mut self.u)?;
        convert(&self.kernels.from_double, f, &self.f, self.nodes)
    }

    /// The solution.
    pub(crate) fn solution_on_gpu(&self, u: &Buffer<f64>) -> Result<()> {
        convert(&self.kernels.to_double, &self.u, u, self.nodes)
    }
}

fn convert<A: bytemuck::Pod, B: bytemuck::Pod>(kernel: &Kernel, from: &Buffer<A>, to: &Buffer<B>, n: usize) -> Result<()> {
    assert!(from.len() >= n && to.len() >= n, "arrays cover all nodes of the grid");
    let launch = kernel.launch((n.div_ceil(256) as u32).min(BLOCKS), 256).arg(from).arg(to);
    // SAFETY: the arguments of `from_double` or `to_double` in order; both arrays hold `n` values.
    unsafe { launch.arg(n as u64).run() }
}
