//! Sub-pixel shifts of the probe: of all views in registers where a frame fits (`shifted.rs`), and around cuFFT (`subpixel.cu`).

mod overlap;

use zellige_engine::cuda::{Argument, Buffer, Cuda, Kernel, Pool};
use zellige_engine::error::Result;
use zellige_engine::ops::fft::Direction;

use super::arguments::{ModelArgument, UpdateArgument};
use super::batches::{Batch, BatchOperations};
use super::frames::Frames;
use super::number::{C, Number, pairs};
use super::program::{KernelConfig, TEAM};
use super::recipes::subpixel_recipe;
use super::shifted::ShiftsInRegisters;
use crate::model::Model;
use crate::stages::Overlap;

/// Parts that sums over the views of a batch are taken in, at most.
const BATCH_PARTS: usize = 8;

/// Kernels and buffers.
pub(super) struct SubpixelProbe<T> {
    cuda: Cuda,
    pool: Pool,
    config: KernelConfig,
    sets: usize,
    tilt: Kernel,
    probe_numerator: Kernel,
    gather_shifted_back: Kernel,
    add_parts: Kernel,
    step: Kernel,
    brightest_seen: Kernel,
    shift_waves: Kernel,
    /// Kernels for all views, where frames are held in registers.
    registers: Option<ShiftsInRegisters<T>>,
    /// Sub-pixel remainders of every view.
    shifts: Buffer<[T; 2]>,
    /// Transforms of probes.
    spectra: Buffer<C<T>>,
    /// Probes as all views see them, and directions.
    all: [Option<Buffer<C<T>>>; 2],
    /// The former are those of the state's probes and shifts, all of them; their transforms were taken in registers.
    current: bool,
    taken: bool,
    /// Contributions of a batch of views to the probe, and the sums over views.
    pub(super) back: Buffer<C<T>>,
    pub(super) sums: Buffer<C<T>>,
    pub(super) norms: Buffer<T>,
    /// Parts of the sums that are under way, and views added to them.
    parts: usize,
    most_parts: usize,
    added: usize,
    /// View of all that the arrays at work begin with.
    first: usize,
    inertia: Buffer<T>,
    /// Host copy of `inertia`.
    inertia_now: Vec<T>,
}

/// The object's part of a pass of the overlap loop.
pub(super) fn object_alone<T: Number>(rule: &Overlap) -> UpdateArgument<T> {
    UpdateArgument::from(&Overlap { passes: 1, object: true, probe: false, tolerance: 0.0, ..rule.clone() })
}

/// Bytes that sub-pixel shifts take beside those of the views: transforms, sums in parts.
pub(super) fn fixed_bytes(model: &Model, config: &KernelConfig) -> usize {
    if !model.subpixel {
        return 0;
    }
    let sums = config.shifted_parts(model.probes) * (2 * model.probe_len() + model.probes * model.pixels());
    config.number() * (4 * model.probe_len() + sums)
}

impl<T: Number> SubpixelProbe<T> {
    pub(super) fn new(model: &Model, cuda: &Cuda, pool: &Pool, config: KernelConfig) -> Result<Self> {
        let program = subpixel_recipe(&config).build(cuda)?;
        let fused = config.fused();
        let most_parts = config.shifted_parts(model.probes);
        let nothing = || pool.alloc_zeros::<C<T>>(0, "ptycho: shifted probes");
        Ok(Self {
            cuda: cuda.clone(),
            pool: pool.clone(),
            config,
            sets: model.probes,
            tilt: program.kernel("tilt")?,
            probe_numerator: program.kernel("probe_numerator")?,
            gather_shifted_back: program.kernel("gather_shifted_back")?,
            add_parts: program.kernel("add_parts")?,
            step: program.kernel("step_subpixel")?,
            brightest_seen: program.kernel("brightest_seen")?,
            shift_waves: program.kernel("shift_waves")?,
            registers: if fused { Some(ShiftsInRegisters::new(model, cuda, pool, config)?) } else { None },
            shifts: pool.buffer_from(&pairs(&model.shifts), "ptycho: positions")?,
            spectra: pool.alloc_zeros(model.probe_len(), "ptycho: shifted probes")?,
            all: [None, None],
            current: false,
            taken: false,
            back: nothing()?,
            sums: pool.alloc_zeros(most_parts * model.probe_len(), "ptycho: sums of the probes")?,
            norms: pool.alloc_zeros(most_parts * model.probes * model.pixels(), "ptycho: sums of the probes")?,
            parts: 1,
            most_parts,
            added: 0,
            first: 0,
            inertia: pool.alloc_zeros(model.probes, "ptycho: probes")?,
            inertia_now: vec![T::default(); model.probes],
        })
    }

    /// Arrays begin with view `first` of all; gives the address of its sub-pixel remainder.
    pub(super) fn begin_at(&mut self, first: usize) -> u64 {
        (self.first, self.current) = (first, false);
        self.shifts.from(first).value()
    }

    /// Does `work` of kernels that count all views, in place of those from the first own one of a part of a run on.
    pub(super) fn counting_all<R>(&mut self, model: &Model, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        self.begin_at(0);
        let done = work(self);
        self.begin_at(model.own().start);
        done
    }

    /// Takes note that the state's probes or the shifts change, or have changed.
    pub(super) fn forget(&mut self) {
        (self.current, self.taken) = (false, false);
    }

    /// Replaces the sub-pixel remainders.
    pub(super) fn swap(&mut self, shifts: &mut Buffer<[T; 2]>) {
        std::mem::swap(&mut self.shifts, shifts);
    }

    /// Addresses that recorded launches depend on.
    pub(super) fn addresses(&self) -> [u64; 4] {
        [self.shifts.address(), self.spectra.address(), self.back.address(), self.sums.address()]
    }

    /// Values of the modes of one probe.
    pub(super) fn modes(&self) -> usize {
        self.config.modes[0] * self.config.frame[0] * self.config.frame[1]
    }

    /// Allocates room for the modes of this many views.
    pub(super) fn grow(&self, buffer: &mut Buffer<C<T>>, views: usize) -> Result<()> {
        if buffer.len() < views * self.modes() {
            *buffer = self.pool.alloc_zeros(views * self.modes(), "ptycho: shifted probes")?;
        }
        Ok(())
    }

    /// Allocates room for the contributions of this many views.
    pub(super) fn need_back(&mut self, views: usize) -> Result<()> {
        if self.back.len() < views * self.modes() {
            self.back = self.pool.alloc_zeros(views * self.modes(), "ptycho: shifted probes")?;
        }
        Ok(())
    }

    /// Takes the transforms of probes.
    pub(super) fn take(&mut self, operations: &mut BatchOperations<T>, probe: &Buffer<C<T>>) -> Result<()> {
        self.cuda.copy(probe, 0, &mut self.spectra, 0, probe.len())?;
        operations.transform(&mut self.spectra, Direction::Forward)
    }

    /// Modes as the views of a batch see them, or their derivative along an axis, to `to` from value `at` on.
    pub(super) fn shift_probes(
        &self,
        operations: &mut BatchOperations<T>,
        argument: ModelArgument,
        batch: Batch,
        count: usize,
        (to, at): (&mut Buffer<C<T>>, usize),
        axis: i32,
    ) -> Result<()> {
        let grid = (operations.chunks(), count as u32, self.config.modes[0] as u32);
        let launch =
            self.tilt.launch(grid, TEAM).arg(argument).arg(batch).arg(self.shifts.from(self.first)).arg(&self.spectra).arg(to.from(at));
        // SAFETY: (Model, Batch, const float2*, const C*, C*, i32) as `tilt` declares; there is room for the modes of the batch from `at`
        // on.
        unsafe { launch.arg(axis).run()? };
        operations.transform_at(to, at, count * self.config.modes[0], Direction::Inverse)
    }

    /// The probes (or directions, `which` 1) as all views see them; gives the address.
    pub(super) fn all(
        &mut self,
        operations: &mut BatchOperations<T>,
        argument: ModelArgument,
        frames: &Frames<T>,
        probe: &Buffer<C<T>>,
        which: usize,
    ) -> Result<u64> {
        match &self.registers {
            Some(registers) => registers.take(probe)?,
            None => self.take(operations, probe)?,
        }
        self.taken = false;
        self.shift_all(operations, argument, frames, which)
    }

    /// Takes the state's probes in registers, unless they were.
    pub(super) fn take_again(&mut self, probe: &Buffer<C<T>>) -> Result<()> {
        if let Some(registers) = self.registers.as_ref().filter(|_| !self.taken) {
            registers.take(probe)?;
            self.taken = true;
        }
        Ok(())
    }

    /// As [`SubpixelProbe::seen`], for a Fourier step: in registers it shifts the probes of the views of `frames` itself.
    pub(super) fn seen_in_step(
        &mut self,
        operations: &mut BatchOperations<T>,
        argument: ModelArgument,
        frames: &Frames<T>,
        probe: &Buffer<C<T>>,
    ) -> Result<ModelArgument> {
        self.take_again(probe)?;
        let Some(spectra) = self.registers.as_ref().map(ShiftsInRegisters::spectra) else {
            return self.seen(operations, argument, frames, probe);
        };
        let all = self.room(frames.views, 0)?;
        let argument = ModelArgument { probe: all.address(), spectra, shifts: self.shifts.from(self.first).value(), ..argument };
        (self.all[0], self.current) = (Some(all), true);
        Ok(argument)
    }

    /// The buffer of shifted probes, with room for those of as many views.
    fn room(&mut self, views: usize, which: usize) -> Result<Buffer<C<T>>> {
        // Not replaced by an empty buffer meanwhile: a buffer that goes waits for the device.
        let mut all = match self.all[which].take() {
            Some(all) => all,
            None => self.pool.alloc_zeros(0, "ptycho: shifted probes")?,
        };
        self.grow(&mut all, views)?;
        Ok(all)
    }

    /// As [`SubpixelProbe::all`], of the transforms that are there.
    fn shift_all(&mut self, operations: &mut BatchOperations<T>, argument: ModelArgument, frames: &Frames<T>, which: usize) -> Result<u64> {
        // The shifted probes may be those of other views now.
        self.current = false;
        let mut all = self.room(frames.views, which)?;
        let done = match &self.registers {
            Some(registers) => registers.shift(argument, self.shifts.from(self.first), &all, frames.views),
            None => {
                let group = operations.group(frames.views);
                (0..frames.views).step_by(group).try_for_each(|first| {
                    let (count, batch) = (group.min(frames.views - first), operations.batch(frames, first, 0));
                    self.shift_probes(operations, argument, batch, count, (&mut all, first * self.modes()), -1)
                })
            }
        };
        let address = all.address();
        self.all[which] = Some(all);
        done.map(|()| address)
    }

    /// The state's probes as all views see them, made anew only if the last ones are not; where frames are not in blocks.
    pub(super) fn seen(
        &mut self,
        operations: &mut BatchOperations<T>,
        argument: ModelArgument,
        frames: &Frames<T>,
        probe: &Buffer<C<T>>,
    ) -> Result<ModelArgument> {
        let address = match &self.all[0] {
            Some(all) if self.current => all.address(),
            _ if self.taken => self.shift_all(operations, argument, frames, 0)?,
            _ => self.all(operations, argument, frames, probe, 0)?,
        };
        self.current = true;
        Ok(ModelArgument { probe: address, ..argument })
    }

    /// Begins sums for the probes over this many views, all of them.
    pub(super) fn begin(&mut self, views: usize) {
        (self.parts, self.added) = (views.clamp(1, self.most_parts), 0);
    }

    /// Begins sums over the views of a batch, in pieces.
    pub(super) fn begin_batch(&mut self, views: usize) {
        (self.parts, self.added) = (views.clamp(1, self.most_parts.min(BATCH_PARTS)), 0);
    }

    /// Adds the contributions of the views of a batch: of their waves in the batch's buffers, or of their difference from P O.
    pub(super) fn add_probe_sums(
        &mut self,
        operations: &mut BatchOperations<T>,
        argument: ModelArgument,
        batch: Batch,
        count: usize,
        rest: bool,
    ) -> Result<()> {
        self.need_back(count)?;
        let grid = (operations.chunks(), count as u32, self.config.modes[0] as u32);
        let launch = self.probe_numerator.launch(grid, TEAM).arg(argument).arg(batch).arg(u32::from(rest)).arg(&self.back);
        // SAFETY: (Model, Batch, u32, C*) as `probe_numerator` declares; there is room for the modes of the batch.
        unsafe { launch.run()? };
        self.add_shifted_back(operations, argument, batch, count, true)
    }

    /// Adds the contents of `back` for the views of a batch to the sums.
    pub(super) fn add_shifted_back(
        &mut self,
        operations: &mut BatchOperations<T>,
        argument: ModelArgument,
        batch: Batch,
        count: usize,
        norms: bool,
    ) -> Result<()> {
        operations.transform_at(&mut self.back, 0, count * self.config.modes[0], Direction::Forward)?;
        let pixels = self.config.frame[0] * self.config.frame[1];
        let grid = ((pixels as u32).div_ceil(TEAM), self.sets as u32, self.parts as u32);
        let launch = self.gather_shifted_back.launch(grid, TEAM).arg(argument).arg(batch).arg(self.shifts.from(self.first)).arg(&self.back);
        let launch = launch.arg(count as u32).arg(T::from_wide(1.0 / pixels as f64)).arg(self.added as u32).arg(&self.sums);
        self.added += count;
        // SAFETY: (Model, Batch, const float2*, const C*, u32, float, u32, C*, float*) as `gather_shifted_back` declares; there is room for
        // all parts.
        unsafe { launch.arg(if norms { self.norms.address() } else { 0 }).run() }
    }

    /// Adds up the parts.
    fn add_parts(&self) -> Result<()> {
        let (values, weights) = (self.sets * self.modes(), self.norms.len() / self.most_parts);
        if self.parts <= 1 {
            return Ok(());
        }
        let launch = self.add_parts.launch((values as u32).div_ceil(32), TEAM).early();
        let launch = launch.arg(&self.sums).arg(&self.norms).arg(self.parts as u32);
        // SAFETY: (C*, float*, u32, u64, u64) as `add_parts` declares.
        unsafe { launch.arg(values as u64).arg(weights as u64).run() }
    }

    /// Ends them: the sums begin with those of the probes.
    pub(super) fn end(&mut self, operations: &mut BatchOperations<T>) -> Result<()> {
        self.add_parts()?;
        match &self.registers {
            Some(registers) => registers.end(&self.sums, &self.norms),
            None => self.transform_sums(operations),
        }
    }

    /// Ends those of a batch, likewise.
    pub(super) fn end_batch(&mut self, operations: &mut BatchOperations<T>) -> Result<()> {
        self.add_parts()?;
        self.transform_sums(operations)
    }

    fn transform_sums(&mut self, operations: &mut BatchOperations<T>) -> Result<()> {
        operations.transform_at(&mut self.sums, 0, self.sets * self.config.modes[0], Direction::Inverse)
    }

    /// Sums over all views, group by group, of waves behind the sample.
    pub(super) fn probe_sums(
        &mut self,
        operations: &mut BatchOperations<T>,
        argument: ModelArgument,
        frames: &Frames<T>,
        rest: bool,
    ) -> Result<()> {
        self.begin(frames.views);
        self.add_views(operations, argument, frames, rest)?;
        self.end(operations)
    }

    /// Values and weights of sums that are under way, in all parts.
    pub(super) fn under_way(&self) -> [usize; 2] {
        [self.parts * self.sets * self.modes(), self.parts * self.norms.len() / self.most_parts]
    }

    /// Takes sums to which `added` views were added elsewhere.
    pub(super) fn go_on(&mut self, added: usize, sums: &Buffer<C<T>>, norms: &Buffer<T>) -> Result<()> {
        let [values, weights] = self.under_way();
        self.added = added;
        self.cuda.copy(sums, 0, &mut self.sums, 0, values)?;
        self.cuda.copy(norms, 0, &mut self.norms, 0, weights)
    }

    /// Adds up the parts of sums that are complete: there is one then.
    pub(super) fn complete(&mut self) -> Result<()> {
        self.add_parts()?;
        self.parts = 1;
        Ok(())
    }

    /// Takes sums that were completed elsewhere.
    pub(super) fn take_complete(&mut self, sums: &Buffer<C<T>>, norms: &Buffer<T>) -> Result<()> {
        self.parts = 1;
        self.go_on(self.added, sums, norms)
    }

    /// Adds those over the views of `frames`.
    pub(super) fn add_views(
        &mut self,
        operations: &mut BatchOperations<T>,
        argument: ModelArgument,
        frames: &Frames<T>,
        rest: bool,
    ) -> Result<()> {
        if let Some(registers) = &self.registers {
            let (sums, shifts) = ((&self.sums, &self.norms), self.shifts.from(self.first));
            registers.add(argument, frames, shifts, (self.parts, self.added), rest, sums)?;
            self.added += frames.views;
            return Ok(());
        }
        let group = operations.group(frames.views);
        for first in (0..frames.views).step_by(group) {
            let batch = Batch { work: frames.exits.from(first * operations.wave()).value(), ..operations.batch(frames, first, 0) };
            self.add_probe_sums(operations, argument, batch, group.min(frames.views - first), rest)?;
        }
        Ok(())
    }

    /// The greatest |P|^2 that each of `count` views sees, in `probe`, to the address; there must be zeros.
    pub(super) fn brightest(&self, operations: &BatchOperations<T>, probe: &Buffer<C<T>>, count: usize, to: u64) -> Result<()> {
        // SAFETY: (const C*, u32*) as `brightest_seen` declares.
        unsafe { self.brightest_seen.launch((operations.chunks(), count as u32), TEAM).arg(probe).arg(to).run() }
    }

    /// Views look elsewhere between the pixels; waves that are kept go with their probes.
    pub(super) fn set(
        &mut self,
        operations: &BatchOperations<T>,
        frames: &mut Frames<T>,
        old: &[[f64; 2]],
        new: &[[f64; 2]],
    ) -> Result<()> {
        // At a near detector, whose frame is where it was, nothing moved.
        if !frames.waves.is_empty() && !self.config.near {
            self.set_shift_change(old, new)?;
            self.shift_waves(operations, frames)?;
        }
        self.cuda.upload(&mut self.shifts, &pairs(new))
    }

    /// Sets the change of shifts for [`SubpixelProbe::shift_waves`], which must come before anything else.
    pub(super) fn set_shift_change(&mut self, old: &[[f64; 2]], new: &[[f64; 2]]) -> Result<()> {
        let by: Vec<[f64; 2]> = new.iter().zip(old).map(|(a, b)| [a[0] - b[0], a[1] - b[1]]).collect();
        self.cuda.upload(&mut self.shifts, &pairs(&by))
    }

    /// Shifts the waves of a far detector by the change given to [`SubpixelProbe::set_shift_change`].
    pub(super) fn shift_waves(&mut self, operations: &BatchOperations<T>, frames: &Frames<T>) -> Result<()> {
        // A grid has 65535 rows at most.
        for first in (0..frames.views).step_by(1 << 15) {
            let count = (frames.views - first).min(1 << 15);
            let grid = (operations.chunks(), count as u32, self.config.exits() as u32);
            let launch = self.shift_waves.launch(grid, TEAM).arg(operations.batch(frames, first, 0)).arg(self.shifts.from(self.first));
            // SAFETY: (Batch, const float2*, C*) as `shift_waves` declares; the waves hold the views.
            unsafe { launch.arg(&frames.waves).run()? };
        }
        Ok(())
    }
}
