//! All lines of one axis on a GPU, their modes, and the way there and back (`transform.cu` around cuFFT).

use std::sync::Arc;

use bytemuck::Zeroable;
use num_complex::Complex;
use zellige_engine::cuda::{Buffer, Kernel, Pool, Program};
use zellige_engine::error::Result;
use zellige_engine::ops::fft::{CudaPlan, CudaPlans, Direction, Shape};

use super::Real;
use super::arguments::{self, LEVELS, LineLayout, Transform};
use crate::direct::transform::{Split, TransformType, split};
use crate::grid::Axis;

/// Intervals up to which the extension is as good as another split: there launches cost more than bytes.
pub(in crate::direct) const SMALL: usize = 128;

/// The kernels of `transform.cu`.
pub(super) struct Kernels {
    gather: Kernel,
    scatter: Kernel,
    shrink: Kernel,
    extend: Kernel,
}

impl Kernels {
    pub(super) const NAMES: [&str; 4] = ["gather", "scatter", "shrink", "extend"];

    pub(super) fn new(program: &Program) -> Result<Self> {
        let [gather, scatter, shrink, extend] = Self::NAMES.map(|name| program.kernel(name));
        Ok(Self { gather: gather?, scatter: scatter?, shrink: shrink?, extend: extend? })
    }
}

impl arguments::Split {
    /// A split with the addresses of its modes and rotations.
    fn of(split: &Split, modes: u64, table: u64) -> Self {
        let [n, radix, m, groups] = [split.intervals, split.radix, split.points, split.groups].map(|v| v as u32);
        Self { modes, table, n, radix, m, groups }
    }
}

impl Transform {
    /// The splits of a line, and `rest` intervals that are left, extended at an address; 0 where nothing is.
    fn of(axis: &Axis, levels: &[arguments::Split; LEVELS], splits: &[Split], rest: usize, extended: u64) -> Self {
        let kind = match TransformType::of(axis) {
            TransformType::Sine => 0,
            TransformType::Cosine => 1,
            TransformType::Quarter { mirrored } => 2 + u32::from(mirrored),
            TransformType::Fourier | TransformType::Flat => 4,
        };
        let [n, len, rest, room] = [axis.intervals(), axis.unknowns().len(), rest, line(axis)].map(|v| v as u32);
        Self { levels: *levels, extended, count: splits.len() as u32, kind, n, len, rest, room }
    }
}

/// Range of modes of all lines of the axis, and the DFT that computes them.
pub(super) struct Part<T> {
    /// First mode.
    pub at: usize,
    /// Modes of a line.
    pub width: usize,
    pub modes: Buffer<Complex<T>>,
    fft: Arc<CudaPlan>,
    /// The rest: the extension that is transformed in place of the modes.
    extended: Option<Buffer<Complex<T>>>,
    /// Alive as long as the launches that hold its address.
    _table: Buffer<Complex<T>>,
}

/// All lines of one axis.
pub(super) struct Lines<T> {
    /// Unknowns of a line.
    pub len: usize,
    pub count: usize,
    pub parts: Vec<Part<T>>,
    norm: f64,
    argument: Transform,
    /// Bytes of a line in shared memory; 0 where it does not fit.
    shared: u32,
    threads: u32,
    scratch: Buffer<Complex<T>>,
}

/// Values of a line as the kernels hold it: nodes 0 to `n`.
pub(super) fn line(axis: &Axis) -> usize {
    axis.intervals() + 1
}

/// Points of the DFT of what the splits of `n` intervals leave.
fn extension(kind: TransformType, n: usize, rest: usize) -> usize {
    if kind == TransformType::Fourier { n } else { 2 * rest }
}

/// Complex values in the modes and extensions of a line of an axis: those of [`Lines::new`].
pub(super) fn held(axis: &Axis) -> usize {
    let (kind, n, len) = (TransformType::of(axis), axis.intervals(), axis.unknowns().len());
    let (splits, rest) = split(kind, n, SMALL);
    len + if len > splits.iter().map(Split::width).sum() { extension(kind, n, rest) } else { 0 }
}

/// Returns true if lines of an axis fit into `shared` bytes.
pub(super) fn fits<T>(axis: &Axis, shared: u32) -> bool {
    line(axis) * size_of::<Complex<T>>() <= shared as usize
}

impl<T: Real> Lines<T> {
    /// Plans the transforms of `count` lines of an axis; `fit`: whether a block has its line in shared memory.
    pub(super) fn new(axis: &Axis, count: usize, fit: bool, pool: &Pool, plans: &mut CudaPlans) -> Result<Self> {
        let (kind, n, len) = (TransformType::of(axis), axis.intervals(), axis.unknowns().len());
        let (splits, rest) = split(kind, n, SMALL);
        assert!(splits.len() <= LEVELS, "a line of {n} intervals is split {} times", splits.len());
        let buffer = |values: usize| pool.alloc_zeros::<Complex<T>>(values * count, "direct solver: modes of an axis");
        let table = |values: &[Complex<T>]| pool.buffer_from(values, "direct solver: rotations");
        let (mut parts, mut at, mut levels) = (Vec::new(), 0, [arguments::Split::zeroed(); LEVELS]);
        for (split, level) in splits.iter().zip(&mut levels) {
            let (modes, rotations) = (buffer(split.width())?, table(&split.rotations::<T>())?);
            *level = arguments::Split::of(split, modes.address(), rotations.address());
            let fft = plans.get::<T>(Shape::lines(split.points, count * split.groups))?;
            parts.push(Part { at, width: split.width(), modes, fft, extended: None, _table: rotations });
            at += split.width();
        }
        let mut extended = 0;
        if len > at {
            let points = extension(kind, n, rest);
            let (fft, extension) = (plans.get::<T>(Shape::lines(points, count))?, buffer(points)?);
            extended = extension.address();
            parts.push(Part { at, width: len - at, modes: buffer(len - at)?, fft, extended: Some(extension), _table: table(&[])? });
        }
        let argument = Transform::of(axis, &levels, &splits, if len > at { rest } else { 0 }, extended);
        let bytes = (line(axis) * size_of::<Complex<T>>()) as u32;
        // Eight nodes a thread keep several blocks on a multiprocessor, which wait at their barriers in turn.
        let threads = (len.div_ceil(8).next_multiple_of(32)).clamp(32, 512) as u32;
        let scratch = pool.alloc_zeros(if fit { 1 } else { line(axis) * count }, "direct solver: lines longer than shared memory")?;
        Ok(Self { len, count, parts, norm: 2.0 / n as f64, argument, shared: if fit { bytes } else { 0 }, threads, scratch })
    }

    /// Bytes of device memory that cuFFT keeps.
    pub(super) fn workspace(&self) -> u64 {
        self.parts.iter().map(|p| p.fft.workspace()).sum()
    }

    /// The modes of all lines of `layout`, times `scale`.
    pub(super) fn forward(&mut self, kernels: &Kernels, layout: LineLayout, scale: f64) -> Result<()> {
        let scale = T::of(scale * self.norm);
        let launch = kernels.gather.launch(self.count as u32, self.threads).shared(self.shared);
        // SAFETY: `layout` has `count` lines of `len` nodes; the addresses are those of the parts.
        unsafe { launch.arg(self.argument).arg(layout).arg(&mut self.scratch).plain(scale).run()? };
        let (rest, kind, lines) = (self.argument.rest, self.argument.kind as i32, self.count as u32);
        for part in &mut self.parts {
            let Some(extended) = &mut part.extended else {
                part.fft.run(&mut part.modes, Direction::Forward)?;
                continue;
            };
            part.fft.run(extended, Direction::Forward)?;
            let launch = kernels.shrink.launch(blocks(rest as usize + 1, self.count), 256).arg(&*extended).arg(&mut part.modes);
            // SAFETY: an extension of `rest` intervals and the modes of the rest, of every line.
            unsafe { launch.arg(rest).arg(lines).arg(kind).plain(scale * T::HALF).run()? };
        }
        Ok(())
    }

    /// The nodes of all lines of `layout`; the modes are used up.
    pub(super) fn backward(&mut self, kernels: &Kernels, layout: LineLayout) -> Result<()> {
        let (rest, kind, lines) = (self.argument.rest, self.argument.kind as i32, self.count as u32);
        for part in &mut self.parts {
            let Some(extended) = &mut part.extended else {
                part.fft.run(&mut part.modes, Direction::Forward)?;
                continue;
            };
            let launch = kernels.extend.launch(blocks(rest as usize + 1, self.count), 256).arg(&part.modes).arg(&mut *extended);
            // SAFETY: as in `forward`.
            unsafe { launch.arg(rest).arg(lines).arg(kind).run()? };
            part.fft.run(extended, Direction::Forward)?;
        }
        let launch = kernels.scatter.launch(self.count as u32, self.threads).shared(self.shared);
        // SAFETY: as in `forward`.
        unsafe { launch.arg(self.argument).arg(layout).arg(&mut self.scratch).run() }
    }
}

/// Blocks of 256 threads for `places` of `lines` lines.
fn blocks(places: usize, lines: usize) -> u32 {
    (places * lines).div_ceil(256) as u32
}

#[cfg(test)]
mod tests;
