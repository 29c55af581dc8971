//! The wavefield preconditioner.

use zellige_engine::cuda::{Cuda, Kernel};
use zellige_engine::error::Result;

use super::Pair;
use super::arguments::ModelArgument;
use super::number::Number;
use super::program::{KernelConfig, TEAM};
use super::recipes::wavefield_recipe;
use super::sums::Sums;

/// Kernels of wavefield.cu.
pub(super) struct Wavefield {
    object: Kernel,
    scatter: Kernel,
    divide_pool: Kernel,
    parts: Kernel,
    probe: Kernel,
    pixels: u32,
}

impl Wavefield {
    pub(super) fn new(cuda: &Cuda, config: KernelConfig) -> Result<Self> {
        let program = wavefield_recipe(&config).build(cuda)?;
        Ok(Self {
            object: program.kernel("wavefield_object")?,
            scatter: program.kernel("wavefield_scatter")?,
            divide_pool: program.kernel("wavefield_divide")?,
            parts: program.kernel("wavefield_parts")?,
            probe: program.kernel("wavefield_probe")?,
            pixels: (config.frame[0] * config.frame[1]) as u32,
        })
    }

    /// Divides sums as [`crate::stages::Stages::wavefield`] says; `argument` holds the state.
    pub(super) fn divide<T: Number>(&self, argument: ModelArgument, sums: &Sums<T>, to: &Pair<T>, damping: [f64; 2]) -> Result<()> {
        let (list, [probe, object]) = (sums.argument(0), damping.map(T::from_wide));
        let grid = |second: u32| (self.pixels.div_ceil(TEAM), second);
        // SAFETY: (Model, Sums, C*, float), or (Model, Sums) and (Sums, C*, float), as declared. Lists are those of the views, every pixel of the objects is
        // in a tile or has its slot in the pool, and the arrays are shaped as objects and probes.
        unsafe {
            if sums.atomic() {
                self.scatter.launch(sums.blocks, TEAM).arg(argument).arg(list).run()?;
                self.divide_pool.launch(sums.blocks, TEAM).arg(list).arg(&to.object).arg(object).run()?;
            } else {
                self.object.launch(sums.tiles.len() as u32, TEAM).arg(argument).arg(list).arg(&to.object).arg(object).run()?;
            }
            self.parts.launch(grid(list.part_count), TEAM).arg(argument).arg(list).run()?;
            self.probe.launch(grid(list.sets), TEAM).arg(list).arg(&to.probe).arg(probe).run()
        }
    }
}
