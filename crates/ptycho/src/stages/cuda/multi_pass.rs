//! The Fourier step in pieces around cuFFT (`multi_pass.cu`), for frames of any shape.

use zellige_engine::cuda::{Buffer, Cuda, Kernel, Launch, Pool};
use zellige_engine::error::Result;
use zellige_engine::ops::fft::{CudaPlans, Direction, Shape};

use super::arguments::{ConstraintArgument, ModelArgument};
use super::number::{C, Number};
use super::program::{FrameProcessing, KernelConfig, TEAM};
use super::recipes::frames_recipe;
use super::tiles::Tiles;

/// Kernels between P O and the new exit waves.
enum FrameKernels {
    /// The constraint between cuFFT's transforms.
    Cufft {
        measure: Kernel,
        constrain: Kernel,
    },
    Tiles {
        tiles: Tiles,
        rows_out: Kernel,
        columns: Columns,
        rows_back: Kernel,
    },
    /// All in one kernel, by at most so many blocks.
    Clustered {
        project: Kernel,
        blocks: u32,
    },
}

enum Columns {
    Fused(Kernel),
    Separate { out: Kernel, measure: Kernel, back: Kernel },
}

/// Kernels and what passes between them.
pub(super) struct MultiPass<T> {
    config: KernelConfig,
    spread: Kernel,
    apply_transfer: Kernel,
    /// Errors of views from the sums that a Fourier step leaves, if it does.
    frame_errors: Option<Kernel>,
    passes: FrameKernels,
    plans: CudaPlans,
    /// Measured over estimated moduli of a group of frames.
    ratios: Buffer<T>,
    /// Two of each block of each view, and one.
    sums: Buffer<T>,
    changes: Buffer<T>,
    /// Two numbers a view, by which blocks take tiles and wait for each other; 0 between Fourier steps.
    turns: Buffer<u32>,
}

/// A group of frames: their waves lie in `waves` and `exits` where those of all views do.
pub(super) struct Group<'a, T> {
    pub(super) first: usize,
    pub(super) count: usize,
    /// Kernel of the near field.
    pub(super) near: Option<&'a Buffer<C<T>>>,
    /// Address of the sub-pixel remainders, or 0.
    pub(super) shifts: u64,
}

impl<T: Number> MultiPass<T> {
    pub(super) fn new(cuda: &Cuda, pool: &Pool, config: KernelConfig, views: usize) -> Result<Self> {
        let program = frames_recipe(&config).build(cuda)?;
        let kernel = |name| program.kernel(name);
        let clustered = matches!(config.processing, FrameProcessing::Clustered { .. });
        let sums = if clustered { 0 } else { views };
        Ok(Self {
            config,
            spread: kernel("spread")?,
            apply_transfer: kernel("apply_transfer")?,
            frame_errors: if clustered { None } else { Some(kernel("frame_errors")?) },
            passes: match config.tiles() {
                None if clustered => {
                    let project = kernel("project")?;
                    let cluster = config.cluster();
                    let blocks = project.clusters(1 << cluster, config.clustered_threads(), config.shared())? << cluster;
                    FrameKernels::Clustered { project, blocks }
                }
                None => FrameKernels::Cufft { measure: kernel("measure")?, constrain: kernel("constrain")? },
                Some(tiles) => FrameKernels::Tiles {
                    tiles,
                    rows_out: kernel("rows_out")?,
                    columns: if config.processing == (FrameProcessing::Tiled { joined: true }) {
                        Columns::Fused(kernel("columns")?)
                    } else {
                        Columns::Separate { out: kernel("columns_out")?, measure: kernel("measure")?, back: kernel("columns_back")? }
                    },
                    rows_back: kernel("rows_back")?,
                },
            },
            plans: CudaPlans::new(cuda)?,
            ratios: pool.alloc_zeros(ratios(&config, views), "ptycho: ratios of moduli")?,
            sums: pool.alloc_zeros(2 * config.parts() as usize * sums, "ptycho: sums")?,
            changes: pool.alloc_zeros(config.changes() as usize * sums, "ptycho: sums")?,
            turns: pool.alloc_zeros(2 * sums, "ptycho: sums")?,
        })
    }

    fn pixels(&self) -> usize {
        self.config.frame[0] * self.config.frame[1]
    }

    /// Factor that a transform to the detector omits.
    fn scale(&self, near: bool) -> T {
        T::from_wide(if near { 1.0 } else { 1.0 / (self.pixels() as f64).sqrt() })
    }

    /// `P O` of the group to `exits`.
    pub(super) fn spread(&self, model: ModelArgument, exits: &mut Buffer<C<T>>, group: &Group<T>) -> Result<()> {
        let grid = ((self.pixels() as u32).div_ceil(256), (group.count * self.config.exits()) as u32);
        // SAFETY: (Model, C*, u32) as `spread` declares; the group's views exist.
        unsafe { self.spread.launch(grid, 256).early().arg(model).arg(exits).arg(group.first as u32).run() }
    }

    /// Transforms of the group to the detector.
    pub(super) fn carry(&mut self, waves: &mut Buffer<C<T>>, group: &Group<T>) -> Result<()> {
        self.propagate(waves, group, false)?;
        let scale = self.scale(group.near.is_some());
        self.apply_transfer(waves, group, None, scale)
    }

    /// The Fourier step of the group.
    pub(super) fn project(
        &mut self,
        model: ModelArgument,
        rule: ConstraintArgument<T>,
        (waves, exits): (&mut Buffer<C<T>>, &mut Buffer<C<T>>),
        (mag, weight): (&Buffer<f32>, &Buffer<[T; 2]>),
        errors: &mut Buffer<T>,
        group: &Group<T>,
    ) -> Result<()> {
        let (first, scale) = (group.first as u32, self.scale(group.near.is_some()));
        let (batch, parts, changes) = ((group.count * self.config.exits()) as u32, self.config.parts(), self.config.changes());
        let measured = |measure: &Kernel, waves: &Buffer<C<T>>, exits: &Buffer<C<T>>, ratios: &mut Buffer<T>, sums: &mut Buffer<T>| {
            let launch = measure.launch((parts, group.count as u32), TEAM).early().arg(waves).arg(exits).arg(mag).arg(ratios).arg(sums);
            // SAFETY: arguments as `measure` declares; the group's views exist, ratios have room for them, sums for all.
            unsafe { launch.arg(first).plain(rule).arg(scale).run() }
        };
        if let FrameKernels::Clustered { project, blocks } = &self.passes {
            let cluster = 1 << self.config.cluster();
            let grid = (*blocks).min((group.count as u32).saturating_mul(cluster));
            let launch = project.launch(grid, self.config.clustered_threads()).shared(self.config.shared()).cluster(cluster);
            let launch = launch.arg(model).arg(waves).arg(exits).arg(mag).arg(weight).arg(errors);
            // SAFETY: arguments as `project` declares; every array holds all views, among them the group's.
            return unsafe { launch.arg(first).arg(group.count as u32).plain(rule).arg(scale).run() };
        }
        if let FrameKernels::Cufft { .. } = self.passes {
            self.spread(model, exits, group)?;
            self.propagate(exits, group, false)?;
        }
        let Self { config, passes, ratios, sums, changes: to, turns, .. } = self;
        let constrained = |launch: Launch<'_>,
                           waves: &mut Buffer<C<T>>,
                           exits: &mut Buffer<C<T>>,
                           ratios: &Buffer<T>,
                           sums: &Buffer<T>,
                           to: &mut Buffer<T>| {
            let launch = launch.early().arg(waves).arg(exits).arg(ratios).arg(weight).arg(sums).arg(to);
            // SAFETY: arguments as `constrain` and `columns_back` declare; the group's views exist, sums and changes hold all.
            unsafe { launch.arg(first).plain(rule).arg(scale).run() }
        };
        let (tiles, rows_out, columns, rows_back) = match passes {
            FrameKernels::Cufft { measure, constrain } => {
                measured(measure, waves, exits, ratios, sums)?;
                constrained(constrain.launch((changes, group.count as u32), TEAM), waves, exits, ratios, sums, to)?;
                return self.propagate(exits, group, true);
            }
            FrameKernels::Tiles { tiles, rows_out, columns, rows_back } => (tiles, rows_out, columns, rows_back),
            FrameKernels::Clustered { .. } => unreachable!("launched above"),
        };
        let rows = (config.frame[0] as u32 * batch).div_ceil(tiles.rows.count);
        // SAFETY: (Model, C*, u32, u32) as `rows_out` declares; the group's views exist.
        unsafe { tiles.rows.launch(rows_out, rows).arg(model).arg(&mut *exits).arg(first).arg(batch).run()? };
        match columns {
            Columns::Fused(columns) => {
                let launch = tiles
                    .columns
                    .launch(columns, tiles.across() * batch)
                    .arg(waves)
                    .arg(&mut *exits)
                    .arg(mag)
                    .arg(weight)
                    .arg(sums)
                    .arg(to);
                let launch = launch.arg(turns).arg(first);
                // SAFETY: arguments as `columns` declares; the group's views exist, the device holds all blocks of one of them at once (`Tiles::join`).
                unsafe { launch.plain(rule).arg(scale).run()? };
            }
            Columns::Separate { out, measure, back } => {
                // SAFETY: (C*, u32) as `columns_out` declares; the group's views exist.
                unsafe { tiles.columns.launch(out, (tiles.across(), batch)).arg(&mut *exits).arg(first).run()? };
                measured(measure, waves, exits, ratios, sums)?;
                constrained(tiles.columns.launch(back, (tiles.across(), batch)), waves, exits, ratios, sums, to)?;
            }
        }
        // SAFETY: (C*, u32, u32) as `rows_back` declares; the group's views exist.
        unsafe { tiles.rows.launch(rows_back, rows).arg(exits).arg(first).arg(batch).run() }
    }

    /// Errors of all views after their Fourier step.
    pub(super) fn frame_errors(&mut self, views: usize, weight: &Buffer<[T; 2]>, errors: &mut Buffer<T>) -> Result<()> {
        let Some(frame_errors) = &self.frame_errors else { return Ok(()) };
        let launch = frame_errors.launch(views as u32, TEAM).early().arg(&self.sums).arg(&self.changes).arg(weight).arg(errors);
        // SAFETY: (const float*, const float*, const float2*, float*, u32*) as `frame_errors` declares; all hold all views.
        unsafe { launch.arg(&mut self.turns).run() }
    }

    /// Transforms to the detector or back, without the factor of [`MultiPass::scale`].
    fn propagate(&mut self, data: &mut Buffer<C<T>>, group: &Group<T>, back: bool) -> Result<()> {
        if group.near.is_none() {
            return self.transform(data, group, if back { Direction::Inverse } else { Direction::Forward });
        }
        self.transform(data, group, Direction::Forward)?;
        self.apply_transfer(data, group, Some(back), T::from_wide(1.0 / self.pixels() as f64))?;
        self.transform(data, group, Direction::Inverse)
    }

    fn transform(&mut self, data: &mut Buffer<C<T>>, group: &Group<T>, direction: Direction) -> Result<()> {
        let shape = Shape::frames(self.config.frame[0], self.config.frame[1], group.count * self.config.exits());
        let at = group.first * self.config.exits() * self.pixels();
        self.plans.get::<T>(shape)?.run_at(data, at, direction)
    }

    /// Times the near field's kernel (its conjugate for `Some(true)`), and `scale`.
    fn apply_transfer(&self, data: &Buffer<C<T>>, group: &Group<T>, kernel: Option<bool>, scale: T) -> Result<()> {
        let wave = self.config.exits() * self.pixels();
        let (values, at) = (group.count * wave, group.first * wave);
        let factor = match (group.near, kernel) {
            (Some(near), Some(_)) => near.address(),
            _ => 0,
        };
        let launch =
            self.apply_transfer.launch((values as u32).div_ceil(256), 256).early().arg(data.from(at)).arg(factor).arg(values as u64);
        let launch = launch.arg(self.pixels() as u32).arg(u32::from(kernel == Some(true))).arg(scale);
        let launch = launch.arg(if factor == 0 { 0 } else { group.shifts }).arg(0_u64).arg(group.first as u32);
        // SAFETY: (C*, const C*, u64, u32, u32, float, const float2*, const u32*, u32, const C*, i32) as `apply_transfer` declares; the
        // values lie in the buffer.
        unsafe { launch.arg(0_u64).arg(-1_i32).run() }
    }
}

/// Bytes of waves of a group of launches: enough that launches begin and end seldom, few enough that their buffers are small
/// beside frames. What stays in the second-level cache saves less: 60 frames of 1024 x 1024 took 2.66 ms in batches of 96 MiB, 3.68
/// in batches of 24.
pub(super) const GROUP: usize = 128 << 20;

/// Views that pieces work on at a time, if `bytes` of waves are.
pub(super) fn group(config: &KernelConfig, views: usize, bytes: usize) -> usize {
    (bytes / (4 * config.number() * config.exits() * config.frame[0] * config.frame[1])).clamp(1, views.max(1)).min(4096)
}

/// Returns true if the Fourier step keeps nothing between its passes.
fn in_place(config: &KernelConfig) -> bool {
    matches!(config.processing, FrameProcessing::Tiled { joined: true } | FrameProcessing::Clustered { .. })
}

/// Views that go through the Fourier step at a time: where all happens in place, as many as there are.
pub(super) fn step_group(config: &KernelConfig, views: usize) -> usize {
    group(config, views, if in_place(config) { 16 * GROUP } else { 2 * GROUP })
}

/// Numbers that are kept between the passes of the Fourier step.
pub(super) fn ratios(config: &KernelConfig, views: usize) -> usize {
    if in_place(config) { 0 } else { step_group(config, views) * config.counted() }
}

#[cfg(test)]
mod tests;
