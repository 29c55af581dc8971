//! Operations that any engine needs on frames of any shape and any number of modes, in pieces around cuFFT, a batch of views at a
//! time.

use std::ops::Range;

use zellige_device_macro::device;
use zellige_engine::cuda::{Argument, Buffer, Cuda, Kernel, Pool};
use zellige_engine::error::Result;
use zellige_engine::ops::fft::{CudaPlans, Direction, Shape};

use super::arguments::ModelArgument;
use super::frames::Frames;
use super::multi_pass;
use super::number::{C, Number, narrow};
use super::program::{KernelConfig, TEAM};
use super::recipes::batches_recipe;
use super::subpixel::SubpixelProbe;
use crate::model::{Model, Transfer, View};

/// Views that are processed together.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Batch {
    /// Numbers of the views, or null for `first` and those after it.
    pub(super) list: *const u32,
    /// Place of a pixel's magnitude in its frame, or null.
    pub(super) mag_order: *const u32,
    /// That of a wave's value.
    pub(super) wave_order: *const u32,
    pub(super) mag: *const f32,
    /// `[views][MODES][NY * NX]`.
    pub(super) work: *mut C,
    /// `[views][MY * MX]`.
    pub(super) power: *mut real,
    /// `[views][CHUNKS][..]`.
    pub(super) sums: *mut f64,
    pub(super) first: u32,
    /// Factor that a transform to the detector leaves out.
    pub(super) scale: f64,
}

/// Kernels and buffers, made when first asked for.
pub(super) struct BatchOperations<T> {
    pub(super) cuda: Cuda,
    pub(super) pool: Pool,
    pub(super) config: KernelConfig,
    transforms: Transforms,
    multiply: Kernel,
    intensity: Kernel,
    deviation: Kernel,
    change: Kernel,
    slopes: Kernel,
    apply_transfer: Kernel,
    /// Kernel of the near field, in the order of the transform.
    near: Option<Buffer<C<T>>>,
    /// Sub-pixel remainders of every view, where frames are shifted back by them; 0 elsewhere.
    pub(super) shifts: u64,
    mag_order: Option<Buffer<u32>>,
    wave_order: Option<Buffer<u32>>,
    /// Waves of a batch, as many as were asked for.
    pub(super) waves: [Buffer<C<T>>; 3],
    /// Planes of a batch.
    planes: [Buffer<T>; 3],
    pub(super) sums: Buffer<f64>,
    moved: Buffer<View>,
}

impl<T: Number> BatchOperations<T> {
    pub(super) fn new(model: &Model, cuda: &Cuda, pool: &Pool, config: KernelConfig) -> Result<Self> {
        let program = batches_recipe(&config).build(cuda)?;
        let order_of = |pack: usize| -> Result<Option<Buffer<u32>>> {
            let Some(order) = config.order(pack) else { return Ok(None) };
            let mut slots = vec![0_u32; order.len()];
            order.iter().enumerate().for_each(|(i, pixel)| slots[*pixel as usize] = i as u32);
            Ok(Some(pool.buffer_from(&slots, "ptycho: order of frames")?))
        };
        let near = match &model.transfer {
            Transfer::Far => None,
            Transfer::Near(kernel) => Some(pool.buffer_from(&narrow(kernel), "ptycho: near field")?),
        };
        let waves = || pool.alloc_zeros::<C<T>>(0, "ptycho: waves");
        let planes = || pool.alloc_zeros::<T>(0, "ptycho: planes");
        Ok(Self {
            cuda: cuda.clone(),
            pool: pool.clone(),
            config,
            transforms: Transforms { plans: CudaPlans::new(cuda)?, frame: config.frame, in_pieces: !model.share.is_alone() },
            multiply: program.kernel("multiply")?,
            intensity: program.kernel("intensity")?,
            deviation: program.kernel("deviation")?,
            change: program.kernel("change")?,
            slopes: program.kernel("slopes")?,
            apply_transfer: program.kernel("apply_transfer")?,
            near,
            shifts: 0,
            mag_order: order_of(4)?,
            wave_order: order_of(2)?,
            waves: [waves()?, waves()?, waves()?],
            planes: [planes()?, planes()?, planes()?],
            sums: pool.alloc_zeros(0, "ptycho: sums")?,
            moved: pool.alloc_zeros(0, "ptycho: positions")?,
        })
    }

    fn pixels(&self) -> usize {
        self.config.frame[0] * self.config.frame[1]
    }

    /// Values of the waves of a view.
    pub(super) fn wave(&self) -> usize {
        self.config.exits() * self.pixels()
    }

    /// Blocks that share a frame.
    pub(super) fn chunks(&self) -> u32 {
        (self.pixels() as u32).div_ceil(4 * TEAM)
    }

    /// Views of a batch.
    pub(super) fn group(&self, views: usize) -> usize {
        multi_pass::group(&self.config, views, multi_pass::GROUP)
    }

    /// Buffers for the waves and planes of a batch of this many views, and for `sums` numbers.
    pub(super) fn need(&mut self, views: usize, waves: usize, planes: usize, sums: usize) -> Result<()> {
        let (len, plane) = (views * self.wave(), views * self.config.counted());
        for buffer in self.waves[..waves].iter_mut().filter(|b| b.len() < len) {
            *buffer = self.pool.alloc_zeros(len, "ptycho: waves")?;
        }
        for buffer in self.planes[..planes].iter_mut().filter(|b| b.len() < plane) {
            *buffer = self.pool.alloc_zeros(plane, "ptycho: planes")?;
        }
        if self.sums.len() < sums {
            self.sums = self.pool.alloc_zeros(sums, "ptycho: sums")?;
        }
        Ok(())
    }

    /// Factor on a wave at the detector.
    pub(super) fn scale(&self) -> T {
        T::from_wide(if self.near.is_some() { 1.0 } else { 1.0 / (self.pixels() as f64).sqrt() })
    }

    /// A batch of the views from `first` on, whose sums begin at number `sums`.
    pub(super) fn batch(&self, frames: &Frames<T>, first: usize, sums: usize) -> Batch {
        let address = |p: &Option<Buffer<u32>>| p.as_ref().map_or(0, Buffer::address);
        Batch {
            list: 0,
            mag_order: address(&self.mag_order),
            wave_order: address(&self.wave_order),
            mag: frames.mag.address(),
            work: self.waves[0].address(),
            power: self.planes[0].address(),
            sums: self.sums.from(sums).value(),
            first: first as u32,
            scale: self.scale().wide(),
        }
    }

    /// `P O` of `count` views to the batch's waves; of `other` added, or with `axis` of the object's difference along it.
    pub(super) fn multiply(&self, model: ModelArgument, other: Option<ModelArgument>, batch: Batch, count: usize, axis: i32) -> Result<()> {
        let grid = (self.chunks(), count as u32, self.config.exits() as u32);
        let launch = self.multiply.launch(grid, TEAM).arg(model).arg(other.unwrap_or(model)).arg(batch);
        // SAFETY: (Model, Model, Batch, u32, i32) as `multiply` declares; the batch's views exist and its waves have room for them.
        unsafe { launch.arg(u32::from(other.is_some())).arg(axis).run() }
    }

    /// Waves number `which` of `count` views to the detector or back, without the factor of [`BatchOperations::scale`].
    pub(super) fn propagate(&mut self, which: usize, batch: Batch, count: usize, back: bool) -> Result<()> {
        let Self { config, transforms, apply_transfer, near, shifts, waves, .. } = self;
        carry(*config, transforms, apply_transfer, (near.as_ref(), *shifts), (&mut waves[which], 0), (batch, count), back)
    }

    /// Propagates the waves of `count` views from value `at` on, likewise.
    pub(super) fn propagate_in(&mut self, waves: &mut Buffer<C<T>>, at: usize, batch: Batch, count: usize, back: bool) -> Result<()> {
        let Self { config, transforms, apply_transfer, near, shifts, .. } = self;
        carry(*config, transforms, apply_transfer, (near.as_ref(), *shifts), (waves, at), (batch, count), back)
    }

    /// Modelled intensities of a batch to its plane.
    pub(super) fn intensity(&self, batch: Batch, count: usize) -> Result<()> {
        // SAFETY: (Batch) as `intensity` declares; its waves and its plane hold `count` views.
        unsafe { self.intensity.launch((self.chunks(), count as u32), TEAM).arg(batch).run() }
    }

    /// Sums of `each` numbers, added up over the blocks of every view.
    pub(super) fn totals<const EACH: usize>(&self, views: Range<usize>) -> Result<Vec<[f64; EACH]>> {
        let part = EACH * self.chunks() as usize;
        let values = self.cuda.download_range(&self.sums, views.start * part..views.end * part)?;
        let all = |v: &[f64]| v.chunks_exact(EACH).fold([0.0; EACH], |all, part| std::array::from_fn(|i| all[i] + part[i]));
        Ok(values.chunks_exact(part).map(all).collect())
    }

    /// Mean squared deviation of the moduli of every view if it looked there.
    pub(super) fn trial(&mut self, model: ModelArgument, frames: &Frames<T>, views: &[View]) -> Result<Vec<f64>> {
        let (group, chunks) = (self.group(views.len()), self.chunks() as usize);
        self.need(group, 1, 1, views.len() * chunks)?;
        if self.moved.len() == views.len() {
            self.cuda.upload(&mut self.moved, views)?;
        } else {
            self.moved = self.pool.buffer_from(views, "ptycho: positions")?;
        }
        let model = ModelArgument { views: self.moved.address(), ..model };
        for first in (0..views.len()).step_by(group) {
            let count = group.min(views.len() - first);
            let batch = self.batch(frames, first, first * chunks);
            self.multiply(model, None, batch, count, -1)?;
            self.propagate(0, batch, count, false)?;
            self.intensity(batch, count)?;
            // SAFETY: (Batch) as `deviation` declares; there is room for a sum a block of every view.
            unsafe { self.deviation.launch((chunks as u32, count as u32), TEAM).arg(batch).run()? };
        }
        let weights = self.cuda.download(&frames.weight)?;
        Ok(self.totals::<1>(0..views.len())?.iter().zip(weights).map(|([sum], [w, _])| sum * w.wide()).collect())
    }

    /// Derivatives of the summed squared deviation with respect to the position of every view: y, x, yy, xx and yx.
    ///
    /// With sub-pixel shifts those of the given probes.
    pub(super) fn slope(
        &mut self,
        model: ModelArgument,
        frames: &Frames<T>,
        mut subpixel: Option<(&mut SubpixelProbe<T>, &Buffer<C<T>>)>,
    ) -> Result<Vec<[f64; 5]>> {
        if let Some((subpixel, probe)) = &mut subpixel {
            subpixel.take(self, probe)?;
        }
        let (views, chunks) = (frames.views, self.chunks() as usize);
        let group = self.group(views);
        let mut along = self.pool.alloc_zeros(0, "ptycho: shifted probes")?;
        // A near detector's frame, which is shifted back, moves with the position as well: that needs the waves' transforms.
        let leaning = self.near.is_some() && subpixel.is_some();
        self.need(group, if leaning { 3 } else { 2 }, 3, 5 * views * chunks)?;
        for first in (0..views).step_by(group) {
            let count = group.min(views - first);
            let grid = (chunks as u32, count as u32);
            let batch = self.batch(frames, first, 5 * first * chunks);
            self.multiply(model, None, batch, count, -1)?;
            if leaning {
                let [first, _, still] = &mut self.waves;
                self.cuda.copy(first, 0, still, 0, count * self.config.exits() * self.config.frame[0] * self.config.frame[1])?;
                self.transform_own(2, count, Direction::Forward)?;
            }
            self.propagate(0, batch, count, false)?;
            self.intensity(batch, count)?;
            for axis in 0..2 {
                let other = Batch { work: self.waves[1].address(), ..batch };
                if let Some((subpixel, _)) = &mut subpixel {
                    // Views see probes of their own, whose derivative is exact; they stand in the order of all views.
                    subpixel.grow(&mut along, group)?;
                    subpixel.shift_probes(self, model, batch, count, (&mut along, 0), axis)?;
                    let before = (first * subpixel.modes() * size_of::<C<T>>()) as u64;
                    let slopes = ModelArgument { probe: along.address().wrapping_sub(before), ..model };
                    self.multiply(slopes, None, other, count, -1)?;
                } else {
                    self.multiply(model, None, other, count, axis)?;
                }
                if leaning {
                    self.transform_own(1, count, Direction::Forward)?;
                    self.lean(batch, count, axis)?;
                    self.transform_own(1, count, Direction::Inverse)?;
                } else {
                    self.propagate(1, batch, count, false)?;
                }
                let launch = self.change.launch(grid, TEAM).arg(batch).arg(&self.waves[1]).arg(&self.planes[1 + axis as usize]);
                // SAFETY: (Batch, const C*, float*) as `change` declares; waves and planes hold `count` views.
                unsafe { launch.run()? };
            }
            // SAFETY: (Batch, const float*, const float*) as `slopes` declares; there is room for five sums a block of every view.
            unsafe { self.slopes.launch(grid, TEAM).arg(batch).arg(&self.planes[1]).arg(&self.planes[2]).run()? };
        }
        self.totals::<5>(0..views)
    }

    /// Transforms of waves number `which` of `count` views, in place and without a factor.
    fn transform_own(&mut self, which: usize, count: usize, direction: Direction) -> Result<()> {
        self.transforms.run(&mut self.waves[which], 0, count * self.config.exits(), direction)
    }

    /// The near field's kernel on the transforms of waves number 1, with the part that waves number 2 have in the derivative with
    /// respect to the position along `axis`.
    fn lean(&mut self, batch: Batch, count: usize, axis: i32) -> Result<()> {
        let Self { config, apply_transfer, near, shifts, waves, .. } = self;
        let pixels = config.frame[0] * config.frame[1];
        let values = count * config.exits() * pixels;
        let launch = apply_transfer.launch((values as u32).div_ceil(256), 256).arg(&waves[1]).arg(near.as_ref().map_or(0, Buffer::address));
        let launch = launch.arg(values as u64).arg(pixels as u32).arg(0_u32).arg(T::from_wide(1.0 / pixels as f64));
        // SAFETY: (C*, const C*, u64, u32, u32, float, const float2*, const u32*, u32, const C*, i32) as `apply_transfer` declares; the
        // waves hold the values.
        unsafe { launch.arg(*shifts).arg(batch.list).arg(batch.first).arg(&waves[2]).arg(axis).run() }
    }

    /// Transforms of frames that lie in `waves` one after another, in place and without a factor.
    pub(super) fn transform(&mut self, waves: &mut Buffer<C<T>>, direction: Direction) -> Result<()> {
        let count = waves.len() / self.pixels();
        self.transforms.run(waves, 0, count, direction)
    }

    /// Transforms `count` frames from value `at` on, likewise.
    pub(super) fn transform_at(&mut self, waves: &mut Buffer<C<T>>, at: usize, count: usize, direction: Direction) -> Result<()> {
        self.transforms.run(waves, at, count, direction)
    }
}

/// Transforms of some frames.
struct Transforms {
    plans: CudaPlans,
    frame: [usize; 2],
    /// A part of a run has another number of views of every batch: a plan for each number would take memory for each.
    in_pieces: bool,
}

impl Transforms {
    /// Transforms `count` frames from value `at` on, in place and without a factor.
    fn run<T: Number>(&mut self, waves: &mut Buffer<C<T>>, mut at: usize, mut count: usize, direction: Direction) -> Result<()> {
        let [rows, columns] = self.frame;
        while count > 0 {
            let some = if self.in_pieces { 1 << count.ilog2() } else { count };
            self.plans.get::<T>(Shape::frames(rows, columns, some))?.run_at(waves, at, direction)?;
            (at, count) = (at + some * rows * columns, count - some);
        }
        Ok(())
    }
}

/// Waves of the `count` views of a batch from value `at` on to the detector or back; `near`: kernel of the near field, and the
/// shifts of frames.
fn carry<T: Number>(
    config: KernelConfig,
    transforms: &mut Transforms,
    apply_transfer: &Kernel,
    (near, shifts): (Option<&Buffer<C<T>>>, u64),
    (waves, at): (&mut Buffer<C<T>>, usize),
    (batch, count): (Batch, usize),
    back: bool,
) -> Result<()> {
    // Of a batch of which this part of a run has no view.
    if count == 0 {
        return Ok(());
    }
    let pixels = config.frame[0] * config.frame[1];
    let frames = count * config.exits();
    let Some(near) = near else {
        return transforms.run(waves, at, frames, if back { Direction::Inverse } else { Direction::Forward });
    };
    transforms.run(waves, at, frames, Direction::Forward)?;
    let values = count * config.exits() * pixels;
    let launch = apply_transfer.launch((values as u32).div_ceil(256), 256).arg(waves.from(at)).arg(near).arg(values as u64);
    let launch = launch.arg(pixels as u32).arg(u32::from(back)).arg(T::from_wide(1.0 / pixels as f64));
    // SAFETY: (C*, const C*, u64, u32, u32, float, const float2*, const u32*, u32, const C*, i32) as `apply_transfer` declares; the values
    // lie in the buffer.
    unsafe { launch.arg(shifts).arg(batch.list).arg(batch.first).arg(0_u64).arg(-1_i32).run()? };
    transforms.run(waves, at, frames, Direction::Inverse)
}
