//! The stages on the CPU: a view at a time goes through all that happens to it while it is in the second-level cache; the
//! threads share the views, and sums over views are taken band by band of the object and of the probe in the order of the views, so
//! that no result depends on the number of threads, nor on that of the parts of a run (`relay`). Object and probe are the
//! same on every part; waves, moduli and errors are those of own views, which come in slots in their order.

mod bins;
mod fft;
mod fourier;
mod greatest;
mod lanes;
mod least_squares;
mod likelihood;
mod object_sums;
mod overlap;
mod passes;
mod positions;
mod returned;
mod shift;
mod smooth;
mod smoothness;
mod stages;
mod store;
mod sweep;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod transpose;
mod view;
mod wavefield;

pub(super) use least_squares::solve;
pub(super) use smooth::kernel as gaussian;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use zellige_engine::device::Cpu;
use zellige_engine::error::Result;
use zellige_engine::large::{Aligned, Large};
use zellige_engine::parallel::thread;

use crate::memory::KeptData;
use crate::model::{Model, Transfer, View};
use crate::share::Share;
use crate::stages::{SLOTS, Stages};
use bins::Bins;
use fft::{Plan, Shape, Workspace};
use lanes::{Isa, Number};
use store::StoragePlanes;

/// A pair of arrays as long as probe and object.
#[derive(Debug, Clone, Default)]
struct Pair<T> {
    probe: Vec<T>,
    object: Vec<T>,
}

/// Scratch memory of a thread.
struct Scratch<T> {
    workspace: Workspace<T>,
    /// Waves behind the sample, `[K][2][sy][sx]`.
    product: Aligned<T>,
    /// Waves at the detector, `[K][2][lines][length]`.
    wave: Aligned<T>,
    /// One wave.
    one: Aligned<T>,
    /// Second wave, between the transforms of the near field.
    two: Aligned<T>,
    /// Further waves at the detector, where an engine needs them: empty until then.
    more: [Aligned<T>; 3],
    /// Planes of the detector.
    plane: [Aligned<T>; 3],
    /// The probe as one view sees it, `[P][2][ny][sx]`: empty until it differs from view to view.
    own: Aligned<T>,
}

/// Data that stay the same during a run.
struct FixedData<T> {
    cpu: Cpu,
    isa: Isa,
    plan: Plan<T>,
    shape: Shape,
    /// The detector, whose pixels may be bins of the waves'.
    bins: Bins,
    /// Modes of probe and object.
    modes: [usize; 2],
    /// Marks sub-pixel shifts of the probe.
    subpixel: bool,
    storages: Vec<StoragePlanes>,
    /// Kernel of the near field where the transform leaves it, over the pixels: two planes.
    near: Option<Vec<T>>,
    /// Own views of this part of a run.
    share: Share,
    /// Their numbers.
    own: Range<usize>,
    /// Moduli `[n][lines][length]` of own views, as they were counted.
    mag: Large<T>,
    /// Pixels that count, and the mean variance of their moduli, of each of these frames.
    valid: Vec<[f64; 2]>,
    /// Supports of the probes in real space, `[ny][sx]`, and in Fourier space, in the order in which the transform leaves it; 1 or
    /// 0.
    support: [Option<Vec<T>>; 2],
    scratch: Vec<Mutex<Scratch<T>>>,
}

/// State and stages.
struct CpuStages<T> {
    fixed: FixedData<T>,
    views: Vec<View>,
    shifts: Vec<[f64; 2]>,
    /// Own views that see each band of rows, for each storage: number and slot of the wave.
    bands: Vec<Vec<Vec<[u32; 2]>>>,
    /// All own views and their slots.
    all: Vec<[u32; 2]>,
    adders: Adders,
    state: Pair<T>,
    exit: Large<T>,
    /// Folder of moduli and exit waves, if they are not in memory.
    folder: Option<PathBuf>,
    /// The probe of the last overlap pass.
    last: Vec<T>,
    /// All [`crate::stages::Slot`]s but the first.
    slots: [Pair<T>; SLOTS - 1],
    errors: Vec<[f64; 3]>,
    /// Brightness of each frame over that of the model, where it floats.
    factors: Vec<f64>,
    /// `sum ln n!` of each frame, once it was needed.
    constants: Vec<f64>,
}

/// Parts of a run that add to sums over views, in their order; nothing where there is one part.
#[derive(Debug, Default)]
struct Adders {
    /// To each band of rows, for each storage.
    bands: Vec<Vec<Vec<usize>>>,
    /// To each probe.
    sets: Vec<Vec<usize>>,
}

/// Own views of a list in blocks of those whose waves are held at once: `most` of them where there is one part. Sums come to a part
/// of several in pieces, to each of which all its views add: it holds all.
fn blocks<'a, V>(share: &Share, own: &'a [V], most: usize) -> Vec<&'a [V]> {
    if share.is_alone() { own.chunks(most).collect() } else { vec![own] }
}

impl<T: Number> FixedData<T> {
    /// Exit waves of a view.
    fn exits(&self) -> usize {
        self.modes[0] * self.modes[1]
    }

    fn far(&self) -> bool {
        self.near.is_none()
    }

    /// Factor on a wave at the detector.
    fn scale(&self) -> T {
        if self.far() { T::from_f64(1.0 / ((self.shape.ny * self.shape.nx) as f64).sqrt()) } else { T::ONE }
    }

    /// Scratch memory of the calling thread.
    fn scratch(&self) -> MutexGuard<'_, Scratch<T>> {
        // A thread has its scratch memory for itself; a panic in a test may leave the lock poisoned, the content is overwritten.
        self.scratch[thread() % self.scratch.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Probe mode `p` of set `set`.
    fn probe<'a>(&self, probe: &'a [T], set: u32, p: usize) -> [&'a [T]; 2] {
        let size = 2 * self.shape.stored();
        let start = (set as usize * self.modes[0] + p) * size;
        store::planes(&probe[start..start + size])
    }
}

/// Views whose waves are made at once where not all are kept.
pub(crate) const BATCH: usize = shift::BATCH;

/// Bytes of a thread's buffers, as `Scratch` has them: waves on both sides of the transform, planes, and three more waves for a
/// likelihood.
pub fn scratch_bytes(model: &Model, demand: &KeptData) -> u64 {
    let planes =
        4 * model.exits() + 7 + if demand.likelihood { 4 * model.exits() } else { 0 } + if model.subpixel { 2 * model.modes[0] } else { 0 };
    (planes * Shape::new(model.frame).plane() * demand.number()) as u64
}

/// The stages of a model on the CPU, in single or double precision.
pub fn new(model: &Model, cpu: &Cpu, double: bool) -> Box<dyn Stages> {
    // In memory there is nothing that could fail but the memory.
    if double {
        Box::new(CpuStages::<f64>::new(model, cpu, Isa::best()))
    } else {
        Box::new(CpuStages::<f32>::new(model, cpu, Isa::all()[0]))
    }
}

/// Stages as [`new`] gives, with moduli and exit waves in files in `folder`, of which the system keeps in memory as much as fits.
pub fn new_in(model: &Model, cpu: &Cpu, double: bool, folder: &Path) -> Result<Box<dyn Stages>> {
    let isa = Isa::best();
    Ok(if double {
        Box::new(CpuStages::<f64>::new_in(model, cpu, isa, Some(folder))?)
    } else {
        Box::new(CpuStages::<f32>::new_in(model, cpu, isa, Some(folder))?)
    })
}

impl<T: Number> CpuStages<T> {
    fn new(model: &Model, cpu: &Cpu, isa: Isa) -> Self {
        Self::new_in(model, cpu, isa, None).expect("arrays in memory are made or the program ends")
    }

    fn new_in(model: &Model, cpu: &Cpu, isa: Isa, folder: Option<&Path>) -> Result<Self> {
        let shape = Shape::new(model.frame);
        let plan = Plan::new(shape, isa);
        let far = model.transfer == Transfer::Far;
        let near = match &model.transfer {
            Transfer::Far => None,
            Transfer::Near(kernel) => {
                let over = 1.0 / model.pixels() as f64;
                let part = |of: &dyn Fn(&num_complex::Complex<f64>) -> f64| -> Vec<T> {
                    let plane: Vec<T> = kernel.iter().map(|k| T::from_f64(over * of(k))).collect();
                    store::to_detector(&plane, shape, true, T::ZERO)
                };
                Some([part(&|k| k.re), part(&|k| k.im)].concat())
            }
        };
        let storages = StoragePlanes::all(&model.storages, model.modes[1]);
        let bins = Bins::new(model.frame, model.bin, far);
        let (mag, valid) = store::moduli(model, bins.shape, far, folder)?;
        let scratch = || Scratch {
            workspace: plan.workspace(),
            product: Aligned::zeros(2 * model.exits() * shape.plane()),
            wave: Aligned::zeros(2 * model.exits() * shape.plane()),
            one: Aligned::zeros(2 * shape.plane()),
            two: Aligned::zeros(2 * shape.plane()),
            more: Default::default(),
            plane: std::array::from_fn(|_| Aligned::zeros(shape.plane())),
            own: Aligned::default(),
        };
        let scratch = (0..cpu.threads()).map(|_| Mutex::new(scratch())).collect();
        let state = Pair {
            probe: store::pack_frames(&model.start.probe, shape),
            object: store::pack_objects(&model.start.object, &storages, model.modes[1]),
        };
        let fixed = FixedData {
            cpu: cpu.clone(),
            isa,
            plan,
            shape,
            bins,
            modes: model.modes,
            subpixel: model.subpixel,
            storages,
            near,
            share: model.share.clone(),
            own: model.own(),
            mag,
            valid,
            support: [None, None],
            scratch,
        };
        let mut host = Self {
            fixed,
            views: model.views.clone(),
            shifts: model.shifts.clone(),
            bands: Vec::new(),
            all: model.own().enumerate().map(|(slot, j)| [j as u32, slot as u32]).collect(),
            adders: Adders::default(),
            last: vec![T::ZERO; state.probe.len()],
            state,
            exit: Large::default(),
            folder: folder.map(Path::to_owned),
            slots: Default::default(),
            errors: vec![[0.0; 3]; model.own().len()],
            factors: vec![1.0; model.own().len()],
            constants: Vec::new(),
        };
        host.sort_views();
        Ok(host)
    }

    /// Finds out which own views see which band, and which parts add to it.
    fn sort_views(&mut self) {
        let Self { fixed, views, bands, adders, .. } = self;
        let rows_seen = |view: &View| view.row as usize / overlap::BAND..=(view.row as usize + fixed.shape.ny - 1) / overlap::BAND;
        let heights = || fixed.storages.iter().map(|p| p.shape[0].div_ceil(overlap::BAND));
        *bands = heights().map(|n| vec![Vec::new(); n]).collect();
        for (slot, j) in fixed.own.clone().enumerate() {
            for band in &mut bands[views[j].object as usize][rows_seen(&views[j])] {
                band.push([j as u32, slot as u32]);
            }
        }
        if fixed.share.is_alone() {
            return;
        }
        let sets = self.state.probe.len() / fixed.probe_len();
        *adders = Adders { bands: heights().map(|n| vec![Vec::new(); n]).collect(), sets: vec![Vec::new(); sets] };
        for (j, view) in views.iter().enumerate() {
            let part = fixed.share.part_of(j);
            let seen = &mut adders.bands[view.object as usize][rows_seen(view)];
            // Parts come in the order of the views.
            for parts in seen.iter_mut().chain([&mut adders.sets[view.probe as usize]]).filter(|parts| parts.last() != Some(&part)) {
                parts.push(part);
            }
        }
    }
}
