//! A plan for right-hand sides that lie in a GPU's memory: sums, sides and the mean on the device, so that nothing of the size of
//! the grid goes to the host.

use zellige_device_macro::{device, device_source};
use zellige_engine::cuda::{Buffer, Cuda, Files, Kernel, Pool, Recipe};
use zellige_engine::cuda_files;
use zellige_engine::error::Result;

use crate::fold::{Reference, System};
use crate::grid::{Bc, Grid};

/// Blocks of `source`, in a fixed number: the sums are the same on every GPU.
const BLOCKS: u32 = 1024;

/// Sources and constants of the program.
pub(crate) fn recipe() -> Recipe {
    const FILES: &Files = cuda_files!["on_gpu.cu"; "extent.cuh" => &device_source![Extent]];
    Recipe::of_files("poisson-on-gpu", FILES, &["on_gpu.cu"], &[], &["source"])
}

/// Unknowns of the finest grid.
#[device]
#[derive(Debug, Clone, Copy)]
struct Extent {
    nodes: [u64; 3],
    /// First unknown.
    lo: [u64; 3],
    /// One past the last unknown.
    hi: [u64; 3],
    /// 1 where an end has half a control volume.
    half_lo: [i32; 3],
    half_hi: [i32; 3],
}

/// Properties of an array at the unknowns, found in one pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrayProperties {
    /// Mean, weighted by control volumes.
    pub mean: f64,
    /// The norms.
    pub norms: Reference,
    /// Set if every value, on sides too, is finite.
    pub finite: bool,
}

/// Passes over arrays of a grid on a device.
struct Passes {
    cuda: Cuda,
    kernel: Kernel,
    field: Extent,
    /// Whole control volumes of all unknowns together.
    volume: f64,
    partial: Buffer<f64>,
}

/// The sides of a problem on a device.
pub(crate) struct Sides {
    passes: Passes,
    /// Contribution of the sides to a right-hand side.
    added: Option<Buffer<f64>>,
    /// Contribution of the sides to a solution of the unknowns alone: values on Dirichlet nodes.
    values: Option<Buffer<f64>>,
    /// A right-hand side with both.
    f: Buffer<f64>,
}

impl Passes {
    fn new(grid: &Grid, cuda: &Cuda, pool: &Pool) -> Result<Self> {
        let unknowns = [0, 1, 2].map(|d| grid.axes[d].unknowns());
        let half = |lower: bool| grid.axes.each_ref().map(|a| i32::from(!a.is_flat() && (if lower { a.lo } else { a.hi }) == Bc::Neumann));
        let (half_lo, half_hi) = (half(true), half(false));
        let volume = (0..3).map(|d| unknowns[d].len() as f64 - 0.5 * f64::from(half_lo[d] + half_hi[d])).product();
        let field = Extent {
            nodes: grid.nodes().map(|n| n as u64),
            lo: unknowns.each_ref().map(|u| u.start as u64),
            hi: unknowns.each_ref().map(|u| u.end as u64),
            half_lo,
            half_hi,
        };
        Ok(Self {
            kernel: recipe().build(cuda)?.kernel("source")?,
            field,
            volume,
            partial: pool.alloc_zeros(4 * BLOCKS as usize, "poisson: sums")?,
            cuda: cuda.clone(),
        })
    }

    /// Moves all values of a solution, so that it has this mean. Waits.
    fn set_mean(&self, u: &Buffer<f64>, mean: f64) -> Result<()> {
        let found = self.pass(u, None, 0.0, None)?;
        self.pass(u, None, found.mean - mean, Some(u)).map(|_| ())
    }

    /// `to = from + added - shift`, and what that is at the unknowns. Waits.
    fn pass(&self, from: &Buffer<f64>, added: Option<&Buffer<f64>>, shift: f64, to: Option<&Buffer<f64>>) -> Result<ArrayProperties> {
        let address = |b: Option<&Buffer<f64>>| b.map_or(0, Buffer::address);
        let launch = self.kernel.launch(BLOCKS, 256).arg(from).arg(address(added)).arg(shift).arg(address(to));
        // SAFETY: the arguments of `source` in order; all arrays cover the grid, and each block has four values in `partial`.
        unsafe { launch.arg(self.field).arg(&self.partial).run() }?;
        let (mut sum, mut square, mut max, mut none) = (0.0, 0.0, 0.0_f64, 0.0);
        for block in self.cuda.download(&self.partial)?.chunks_exact(4) {
            (sum, square, none) = (sum + block[0], square + block[1], none + block[3]);
            max = if block[2].is_nan() { f64::NAN } else { max.max(block[2]) };
        }
        Ok(ArrayProperties { mean: sum / self.volume, norms: Reference { l2: (square / self.volume).sqrt(), max }, finite: none == 0.0 })
    }
}

/// Moves all values of a solution over `grid` in the memory of `cuda`, so that it has this mean. Waits.
pub(crate) fn set_mean(grid: &Grid, u: &Buffer<f64>, mean: f64, cuda: &Cuda) -> Result<()> {
    Passes::new(grid, cuda, &cuda.pool())?.set_mean(u, mean)
}

impl Sides {
    /// `system`: of a right-hand side of zeros; `values`: on Dirichlet nodes.
    pub(crate) fn new(grid: &Grid, system: &System<'_>, values: &[f64], cuda: &Cuda) -> Result<Self> {
        let pool = cuda.pool();
        let array = |v: &[f64], what: &str| v.iter().any(|v| *v != 0.0).then(|| pool.buffer_from(v, what)).transpose();
        let added = array(&system.f, "poisson: what sides add to right-hand sides")?;
        let own = if added.is_some() || grid.singular() { grid.len() } else { 0 };
        Ok(Self {
            passes: Passes::new(grid, cuda, &pool)?,
            values: array(values, "poisson: values of sides")?,
            f: pool.alloc_zeros(own, "poisson: right-hand side with its sides")?,
            added,
        })
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> u64 {
        let of = |b: &Option<Buffer<f64>>| b.as_ref().map_or(0, Buffer::bytes);
        self.passes.partial.bytes() + self.f.bytes() + of(&self.added) + of(&self.values)
    }

    /// The right-hand side of the unknowns alone, where it is, and its properties. The mean is that subtracted from a singular
    /// problem's.
    pub(crate) fn fold<'a>(&'a self, rhs: &'a Buffer<f64>, singular: bool) -> Result<(&'a Buffer<f64>, ArrayProperties)> {
        let added = self.added.as_ref();
        let plain = added.is_none() && !singular;
        let first = self.passes.pass(rhs, added, 0.0, if plain || singular { None } else { Some(&self.f) })?;
        if !singular || !first.finite {
            return Ok((if plain { rhs } else { &self.f }, ArrayProperties { mean: 0.0, ..first }));
        }
        let found = self.passes.pass(rhs, added, first.mean, Some(&self.f))?;
        Ok((&self.f, ArrayProperties { mean: first.mean, ..found }))
    }

    /// Makes the solution of the unknowns alone that of the problem: with the values of sides, or the mean asked for.
    pub(crate) fn finish(&self, u: &Buffer<f64>, mean: Option<f64>) -> Result<()> {
        if let Some(mean) = mean {
            self.passes.set_mean(u, mean)?;
        } else if let Some(values) = &self.values {
            self.passes.pass(u, Some(values), 0.0, Some(u))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use zellige_engine::testing;

    #[test]
    fn its_kernel_compiles() {
        testing::compiles(&super::recipe());
    }
}
