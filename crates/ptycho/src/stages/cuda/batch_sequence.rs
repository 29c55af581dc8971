//! Processing from view to view, or from batch to batch, around cuFFT: where a frame does not fit into registers, batches, supports
//! in Fourier space.
//!
//! Some seven launches a view, which take longer than what they do: those of a few dozen views are recorded as a graph, which the
//! next ones and the next sweeps replay with other views in its list.

use zellige_engine::cuda::{Argument, Buffer, Cuda, Graph, Kernel, Pool, Program};
use zellige_engine::error::Result;

use super::Pair;
use super::arguments::{ConstraintArgument, ModelArgument, PieStepArgument};
use super::batches::{Batch, BatchOperations};
use super::frames::Frames;
use super::handover::batch::{BatchWaves, OwnViews};
use super::number::{C, Number};
use super::program::TEAM;
use super::subpixel::SubpixelProbe;
use super::supports::Supports;
use crate::batch::BatchShare;
use crate::model::Model;
use crate::stages::Sweep;

/// Blocks that look for the greatest value of an object.
const GREATEST: u32 = 264;
/// Views whose launches a graph holds.
const GROUP: usize = 64;

/// Kernels and buffers.
pub(super) struct BatchSequence<T: Number> {
    cuda: Cuda,
    pool: Pool,
    kernels: Kernels,
    buffers: GroupBuffers<T>,
    /// Recorded launches of whole groups, and of the last one.
    recorded: [Option<RecordedGroup>; 2],
}

struct Kernels {
    difference: Kernel,
    view_errors: Kernel,
    step_object: Kernel,
    look_through_object: Kernel,
    step_probe: Kernel,
    step_on: Kernel,
    finish: Kernel,
}

/// Buffers of a group's launches besides the state.
struct GroupBuffers<T: Number> {
    /// All views, and those of the group at work.
    order: Buffer<u32>,
    group: Buffer<u32>,
    /// Steps of the probes, shaped like them; zero between batches.
    steps: Buffer<C<T>>,
    /// Greatest values: of every set before the group and after each batch, of every view's patch.
    brightest: Buffer<T::Word>,
    last: Buffer<T::Word>,
    clearest: Buffer<T::Word>,
    /// Buffers of sub-pixel shifts: the probes as seen by own views of a batch, and by all of it where these are of several parts,
    /// and the greatest value that each view of the group sees.
    own: Buffer<C<T>>,
    whole: Buffer<C<T>>,
    seen: Buffer<T::Word>,
}

/// Launches of a whole group, once there were two alike.
struct RecordedGroup {
    rule: Sweep,
    /// Addresses of everything that they use, and how much there is of it.
    argument: Vec<u64>,
    graph: Option<Graph>,
    /// The driver or cuFFT would not have it.
    refused: bool,
}

/// One sweep.
struct Pass<'a, T> {
    rule: &'a Sweep,
    /// For kernels that count own views of a part of a run, as lists of frames do, and for those that count all.
    argument: ModelArgument,
    all: ModelArgument,
    batch_size: usize,
    sets: usize,
    /// Address of the waves that are kept, or 0.
    waves: u64,
    supports: Option<&'a Supports<T>>,
}

/// Waves of a group that parts of a run tell each other.
struct Told<'a, T: Number> {
    waves: &'a mut BatchWaves<T>,
    model: &'a Model,
    /// Views of the group, and how many belong to a batch.
    views: &'a [u32],
    size: usize,
    /// Batches of the pass before the group's first.
    before: usize,
}

impl<T: Number> Told<'_, T> {
    /// Own views of a batch of the group, of which the first ones count from 0.
    fn own(&self, number: usize) -> OwnViews {
        let own = self.waves.own(self.before + number);
        OwnViews { first: own.first - self.waves.own(self.before).first, ..own }
    }

    /// Batch number `number` of the group with the waves of all parts, as [`BatchWaves::tell`].
    fn tell(&mut self, number: usize, own: &Buffer<C<T>>, batch: Batch, list: u64) -> Result<Batch> {
        let views = &self.views[number * self.size..self.views.len().min((number + 1) * self.size)];
        self.waves.tell(self.before + number, &BatchShare::new(&self.model.share, views), own, batch, list)
    }
}

impl<T: Number> BatchSequence<T> {
    pub(super) fn new(model: &Model, cuda: &Cuda, pool: &Pool, program: &Program) -> Result<Self> {
        let greatest = || pool.alloc_zeros(0, "ptycho: greatest values");
        let order = || pool.alloc_zeros(model.views.len(), "ptycho: order");
        Ok(Self {
            cuda: cuda.clone(),
            pool: pool.clone(),
            kernels: Kernels {
                difference: program.kernel("difference")?,
                view_errors: program.kernel("view_errors")?,
                step_object: program.kernel("step_object")?,
                look_through_object: program.kernel("look_through_object")?,
                step_probe: program.kernel("step_probe")?,
                step_on: program.kernel("step_on")?,
                finish: program.kernel("finish")?,
            },
            buffers: GroupBuffers {
                order: order()?,
                group: order()?,
                steps: pool.alloc_zeros(model.probe_len(), "ptycho: steps of the probes")?,
                brightest: greatest()?,
                last: pool.alloc_zeros(model.probes, "ptycho: greatest values")?,
                clearest: greatest()?,
                own: pool.alloc_zeros(0, "ptycho: shifted probes")?,
                whole: pool.alloc_zeros(0, "ptycho: shifted probes")?,
                seen: greatest()?,
            },
            recorded: [None, None],
        })
    }

    /// One pass over the views in `order`. The first argument is that of kernels that count own views of a part of a run, the
    /// second that of those that count all; parts tell each other their waves by `told`.
    pub(super) fn sweep(
        &mut self,
        model: &Model,
        [argument, all]: [ModelArgument; 2],
        state: &mut Pair<T>,
        frames: &mut Frames<T>,
        operations: &mut BatchOperations<T>,
        (supports, mut subpixel): (Option<&Supports<T>>, Option<&mut SubpixelProbe<T>>),
        mut told: Option<&mut BatchWaves<T>>,
        rule: &Sweep,
        order: &[u32],
    ) -> Result<()> {
        let keep = rule.c != 1.0 || rule.a + rule.b != 1.0;
        if keep {
            frames.need()?;
        }
        let batch_size = rule.batch.clamp(1, order.len().max(1));
        let waves = if keep { frames.waves.address() } else { 0 };
        let pass = Pass { rule, argument, all, batch_size, sets: model.probes, waves, supports };
        let group = (GROUP / batch_size).max(1) * batch_size;
        operations.need(batch_size, 1, 1, 3 * group * operations.chunks() as usize)?;
        let Self { cuda, pool, kernels, buffers, recorded } = self;
        let (greatest, what) = ((group / batch_size + 2) * pass.sets, "ptycho: greatest values");
        if [buffers.brightest.len(), buffers.clearest.len()] != [greatest, group] {
            buffers.brightest = pool.alloc_zeros(greatest, what)?;
            buffers.clearest = pool.alloc_zeros(group, what)?;
            buffers.seen = pool.alloc_zeros(group, what)?;
        }
        if let Some(subpixel) = subpixel.as_deref_mut() {
            subpixel.grow(&mut buffers.own, batch_size)?;
            if told.is_some() {
                subpixel.grow(&mut buffers.whole, batch_size)?;
            }
            subpixel.need_back(batch_size)?;
        }
        cuda.upload_at(&mut buffers.order, 0, order)?;
        cuda.fill_zero(&mut buffers.last)?;
        // The steps are zero: this only looks for the brightest pixels.
        kernels.finish(operations, state, buffers.steps.address(), pass.sets, buffers.last.address(), 0)?;
        let mut here = pass.addresses(state, frames, operations, buffers);
        here.extend(subpixel.as_deref().map(SubpixelProbe::addresses).into_iter().flatten());
        for first in (0..order.len()).step_by(group) {
            let count = group.min(order.len() - first);
            cuda.copy(&buffers.order, first, &mut buffers.group, 0, count)?;
            if let Some(told) = &mut told {
                // Not recorded: parts have other numbers of views in every batch.
                let subpixel = subpixel.as_deref_mut();
                let views = &order[first..first + count];
                kernels.group(
                    &pass,
                    cuda,
                    buffers,
                    state,
                    frames,
                    operations,
                    subpixel,
                    count,
                    Some(Told { waves: told, model, views, before: first / batch_size, size: batch_size }),
                )?;
                continue;
            }
            let here: Vec<u64> = here.iter().copied().chain([count as u64]).collect();
            let recorded = &mut recorded[usize::from(count < group)];
            let alike = recorded.as_mut().filter(|r| r.rule == *rule && r.argument == here);
            let Some(alike) = alike else {
                // Once as it is: what is made on the way must not be made while launches are recorded.
                *recorded = Some(RecordedGroup { rule: *rule, argument: here, graph: None, refused: false });
                kernels.group(&pass, cuda, buffers, state, frames, operations, subpixel.as_deref_mut(), count, None)?;
                continue;
            };
            if alike.graph.is_none() && !alike.refused {
                match cuda.capture(|| kernels.group(&pass, cuda, buffers, state, frames, operations, subpixel.as_deref_mut(), count, None))
                {
                    Ok(graph) => alike.graph = Some(graph),
                    Err(error) => {
                        tracing::warn!("launches from view to view are not recorded and take longer: {error}");
                        alike.refused = true;
                    }
                }
            }
            match &mut alike.graph {
                // SAFETY: everything lies where it lay when the launches were recorded, as much of it as then.
                Some(graph) => unsafe { graph.launch()? },
                None => kernels.group(&pass, cuda, buffers, state, frames, operations, subpixel.as_deref_mut(), count, None)?,
            }
        }
        Ok(())
    }
}

impl<T: Number> Pass<'_, T> {
    /// Addresses that recorded launches depend on.
    fn addresses(&self, state: &Pair<T>, frames: &Frames<T>, operations: &BatchOperations<T>, buffers: &GroupBuffers<T>) -> Vec<u64> {
        let batch = operations.batch(frames, 0, 0);
        let [real, apart] = self.supports.map_or([0, 0], |s| [s.real(), s.fourier()]);
        let arrays = [state.probe.address(), state.object.address(), frames.weight.address(), frames.errors.address(), self.waves];
        let own = [&buffers.brightest, &buffers.clearest, &buffers.seen].map(Buffer::address);
        let own = [own[0], own[1], own[2], buffers.steps.address(), buffers.own.address()];
        let words = |bytes: &[u8]| -> Vec<u64> { bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect() };
        let all = [words(&self.argument.value()), words(&batch.value()), arrays.into(), own.into()].concat();
        all.into_iter().chain([real, apart, self.batch_size as u64]).collect()
    }
}

impl Kernels {
    /// Gives the probes their steps, and the brightest pixel of each set to the address.
    fn finish<T: Number>(
        &self,
        operations: &BatchOperations<T>,
        state: &Pair<T>,
        steps: u64,
        sets: usize,
        brightest: u64,
        support: u64,
    ) -> Result<()> {
        let launch = self.finish.launch((operations.chunks(), sets as u32), TEAM).arg(&state.probe).arg(steps).arg(support);
        // SAFETY: (C*, C*, const float*, u32*) as `finish` declares; both are as long as the probes.
        unsafe { launch.arg(brightest).run() }
    }

    /// The `count` views in the group's list.
    fn group<T: Number>(
        &self,
        pass: &Pass<T>,
        cuda: &Cuda,
        buffers: &mut GroupBuffers<T>,
        state: &mut Pair<T>,
        frames: &Frames<T>,
        operations: &mut BatchOperations<T>,
        mut subpixel: Option<&mut SubpixelProbe<T>>,
        count: usize,
        mut told: Option<Told<T>>,
    ) -> Result<()> {
        let Pass { rule, argument, all, batch_size, sets, waves, supports } = *pass;
        let chunks = operations.chunks();
        let real = supports.map_or(0, Supports::real);
        let (formula, step) = (ConstraintArgument::<T>::from(rule), PieStepArgument::<T>::new(rule, waves != 0, real));
        let apart = supports.filter(|s| s.apart() && rule.probe);
        // A support is put on all sets of probes after every batch. A last batch of one view goes as the others do, wherever a pass ends.
        let at_once = rule.batch <= 1 && subpixel.is_none() && apart.is_none() && (real == 0 || sets == 1);
        let batches = count.div_ceil(batch_size);
        cuda.fill_zero(&mut buffers.clearest)?;
        cuda.fill_zero(&mut buffers.seen)?;
        cuda.fill_zero(&mut buffers.brightest)?;
        cuda.copy(&buffers.last, 0, &mut buffers.brightest, 0, sets)?;
        for number in 0..batches {
            let first = number * batch_size;
            let views = batch_size.min(count - first);
            let list = buffers.group.from(first).value();
            let own = told.as_ref().map_or(OwnViews { list, first, count: views }, |told| told.own(number));
            let mut batch = Batch { list: own.list, ..operations.batch(frames, 0, 3 * own.first * chunks as usize) };
            let (mut here, mut all) = (argument, all);
            let (mut steps, mut brightest_of) = (buffers.steps.address(), buffers.brightest.from(number * sets).value());
            if let Some(subpixel) = subpixel.as_deref_mut() {
                subpixel.take(operations, &state.probe)?;
                subpixel.shift_probes(operations, argument, batch, own.count, (&mut buffers.own, 0), -1)?;
                (here.probe, steps, brightest_of) = (buffers.own.address(), subpixel.back.address(), buffers.seen.from(first).value());
                all.probe = here.probe;
                let mut seen = &buffers.own;
                if let Some(told) = &told {
                    let batch = Batch { list, ..batch };
                    let to = &mut buffers.whole;
                    subpixel.counting_all(told.model, |subpixel| subpixel.shift_probes(operations, all, batch, views, (to, 0), -1))?;
                    seen = &buffers.whole;
                    all.probe = seen.address();
                }
                subpixel.brightest(operations, seen, views, brightest_of)?;
            }
            if number == 0 || !at_once {
                operations.multiply(here, None, batch, own.count, -1)?;
            }
            operations.propagate(0, batch, own.count, false)?;
            let launch = self.difference.launch((chunks, own.count as u32), TEAM).arg(batch).arg(waves).plain(formula);
            // SAFETY: (Batch, C*, Rule) as `difference` declares; the waves hold all views, the sums those of the group.
            unsafe { launch.run()? };
            operations.propagate(0, batch, own.count, true)?;
            if let Some(told) = &mut told {
                batch = told.tell(number, &operations.waves[0], batch, list)?;
            }
            for i in 0..views {
                let clearest = buffers.clearest.from(first + i);
                let launch = self.step_object.launch(chunks, TEAM).arg(all).arg(batch).arg(i as u32);
                let launch = launch.arg(brightest_of).arg(clearest).plain(step);
                // SAFETY: (Model, Batch, u32, const u32*, u32*, PieStep) as `step_object` declares.
                unsafe { launch.run()? };
                if rule.looks_through_objects() {
                    let launch = self.look_through_object.launch(GREATEST, TEAM).arg(all).arg(batch).arg(i as u32);
                    // SAFETY: (Model, Batch, u32, u32*) as `look_through_object` declares.
                    unsafe { launch.arg(buffers.clearest.from(first + i)).run()? };
                }
                if rule.probe && !at_once {
                    let launch = self.step_probe.launch(chunks, TEAM).arg(all).arg(batch).arg(i as u32);
                    let launch = launch.arg(clearest).plain(step).arg(T::from_wide(1.0) / T::from_wide(views as f64));
                    // SAFETY: (Model, Batch, u32, const u32*, PieStep, float, C*) as `step_probe` declares.
                    unsafe { launch.arg(steps).run()? };
                }
            }
            if let Some(subpixel) = subpixel.as_deref_mut() {
                // Their contributions to the probes that they see, shifted back.
                steps = buffers.steps.address();
                if rule.probe {
                    subpixel.begin_batch(views);
                    if let Some(told) = &told {
                        let add = |subpixel: &mut SubpixelProbe<T>| subpixel.add_shifted_back(operations, all, batch, views, false);
                        subpixel.counting_all(told.model, add)?;
                    } else {
                        subpixel.add_shifted_back(operations, all, batch, views, false)?;
                    }
                    subpixel.end_batch(operations)?;
                    steps = subpixel.sums.address();
                }
            }
            let brightest = |slot: usize| buffers.brightest.from(slot * sets).value();
            if at_once {
                let more = u32::from(number + 1 < batches);
                let launch = self.step_on.launch(chunks, TEAM).arg(argument).arg(batch).arg(more).arg(sets as u32);
                let launch = launch.arg(buffers.clearest.from(first)).arg(brightest(number)).arg(brightest(number + 1)).plain(step);
                // SAFETY: (Model, Batch, u32, u32, const u32*, const u32*, u32*, PieStep) as `step_on` declares; there is another view if
                // `more`.
                unsafe { launch.run()? };
            } else if let Some(supports) = apart {
                // The support in Fourier space comes between the step and the search for the brightest pixel; the last slot is read by no one.
                self.finish(operations, state, steps, sets, brightest(batches + 1), 0)?;
                supports.apply(Some(operations), &mut state.probe)?;
                self.finish(operations, state, steps, sets, brightest(number + 1), 0)?;
            } else {
                self.finish(operations, state, steps, sets, brightest(number + 1), if rule.probe { real } else { 0 })?;
            }
        }
        cuda.copy(&buffers.brightest, batches * sets, &mut buffers.last, 0, sets)?;
        let own = OwnViews { list: buffers.group.address(), first: 0, count };
        let own = told.as_ref().map_or(own, |told| told.waves.own_from(told.before, batches));
        let batch = Batch { list: own.list, ..operations.batch(frames, 0, 0) };
        let launch = self.view_errors.launch((own.count as u32).div_ceil(TEAM), TEAM).arg(batch).arg(chunks).arg(own.count as u32);
        // SAFETY: (Batch, u32, u32, const float*, float*) as `view_errors` declares; every own view of the group has its sums.
        unsafe { launch.arg(&frames.weight).arg(&frames.errors).run() }
    }
}
