//! The stages of the engines behind one trait. A call is a pass over all views, so that dynamic dispatch costs nothing and a
//! backend may fuse what happens to a view while it is in the cache or in shared memory. The engines ([`crate::engines`]) are
//! written once against this trait.

pub mod cpu;
pub mod cuda;
pub mod scheme;

use std::ops::Range;
use std::path::PathBuf;

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::cuda::Cuda;
use zellige_engine::device::Device;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::ops::fft::CudaPlans;
use zellige_engine::ops::plane::FieldCopier;
use zellige_engine::real::Isa;
use zellige_engine::record::ValuesOnGpu;
use zellige_engine::sim::not_on_gpu;

use self::cuda::KernelConfig;
use self::cuda::stream::plan::{self, StreamingPlan};
use self::scheme::ObjectSumChoice;
use crate::arrays::callers::write_bits;
use crate::memory::{KeptData, MemoryBudget};
use crate::model::{Model, State, View};
use crate::share::Share;

/// Names of the errors of a view, in order.
pub const ERRORS: [&str; 3] = ["fourier", "likelihood", "exit"];

/// The Fourier step of the projection engines: `psi <- (1 - a - b) psi + a PO + b F(c PO + (1 - c) psi)`, where `F` puts the
/// measured modulus. Difference map: a = -alpha, b = 1, c = 1 + alpha; RAAR: a = 1 - 2 beta, b = beta, c = 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Projection {
    /// Part of `PO`.
    pub a: f64,
    /// Part of the constrained wave.
    pub b: f64,
    /// Part of `PO` in the constrained wave.
    pub c: f64,
    /// Mean squared deviation of the modulus that is let through, of every frame; 0 constrains in full.
    pub bound: f64,
    /// Part of the deviation by photon noise that is let through in addition, of every frame ([`crate::noise`]).
    pub noise: f64,
    /// Computes the error of the likelihood: one more transform.
    pub likelihood: bool,
}

/// The overlap loop: object and probe from all exit waves, in turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Overlap {
    /// Updates the probe.
    pub probe: bool,
    /// Updates the object.
    pub object: bool,
    /// Object before probe.
    pub object_first: bool,
    /// The loop ends when `|P - P_last|^2 / |P|^2`, mean over the probes, is below the square of this. `P_last` is that of the pass
    /// before, of the iteration before in the first pass, nothing at the start.
    pub tolerance: f64,
    /// Or after this many passes.
    pub passes: u32,
    /// Weight of the old object: counts a pixel.
    pub object_inertia: f64,
    /// Weight of the old probe, one a probe.
    pub probe_inertia: Vec<f64>,
    /// Limits of the object.
    pub limits: ObjectLimits,
}

/// Limits of an object, applied at each update.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ObjectLimits {
    /// Least and largest modulus.
    pub clip: Option<[f64; 2]>,
    /// Gaussian smoothing of the old object before it is weighed in, pixels (standard deviation).
    pub smooth: Option<f64>,
}

/// Updates view by view (or batch by batch): with `D = F(c PO + (1 - c) PO) - PO`,
/// `O += g_o conj(P) D / ((1 - w_o) max|P|^2 + w_o |P|^2)`, then `P` likewise with the new object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sweep {
    /// Coefficient `a` of [`Projection`].
    pub a: f64,
    /// Coefficient `b` of [`Projection`].
    pub b: f64,
    /// Coefficient `c` of [`Projection`].
    pub c: f64,
    /// Step of object and probe.
    pub step: [f64; 2],
    /// Weight of the local norm, object and probe.
    pub local: [f64; 2],
    /// Updates the probe.
    pub probe: bool,
    /// Updates the object.
    pub object: bool,
    /// Views whose updates are summed (object) or averaged (probe) before they are applied; 1 is sequential.
    pub batch: usize,
    /// Least and largest modulus of the object.
    pub clip: Option<[f64; 2]>,
    /// Computes the error of the likelihood (costs no transform here).
    pub likelihood: bool,
    /// `max|O|^2` is that of the whole object, not of what a view sees of it.
    pub whole: bool,
}

impl Sweep {
    /// Returns true if a step needs the greatest value of a whole object.
    pub(crate) fn looks_through_objects(&self) -> bool {
        self.whole && self.probe
    }
}

/// Model of the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Noise {
    /// Variance of the counts plus one.
    #[default]
    Gaussian,
    /// Poisson's.
    Poisson,
    /// Distance of moduli.
    Euclid,
}

/// The likelihood of all frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Likelihood {
    /// The model of noise.
    pub noise: Noise,
    /// Makes the brightness of each frame a free factor.
    pub floating: bool,
    /// Leaves that factor out of the gradient, as PtyPy does.
    pub floating_left_out: bool,
    /// Strength of the squared differences of neighbours in the object; 0 for none.
    pub smoothness: f64,
    /// Computes the gradient in the probe.
    pub probe: bool,
    /// Computes the gradient in the object.
    pub object: bool,
}

/// A pair of arrays as long as probe and object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// Probe and object.
    State,
    /// The gradient.
    Gradient,
    /// The gradient before, or whatever the engine keeps.
    Last,
    /// The direction of the step.
    Direction,
}

/// Number of [`Slot`]s.
pub const SLOTS: usize = 4;

/// Least-squares steps (LSQML) over batches of views.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeastSquares {
    /// Part of the solved step that is taken, object and probe.
    pub step: [f64; 2],
    /// Part of the largest illumination that is added to the local one in the preconditioner.
    pub damping: f64,
    /// Views of a batch.
    pub batch: usize,
    /// Model of noise: Poisson or Gaussian on moduli (Euclid).
    pub noise: Noise,
    /// Updates the probe.
    pub probe: bool,
    /// Updates the object.
    pub object: bool,
    /// Least and largest modulus of the object.
    pub clip: Option<[f64; 2]>,
    /// Computes the error of the likelihood.
    pub likelihood: bool,
}

/// Complex arrays of a reconstruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// All probes.
    Probe,
    /// All objects.
    Object,
}

/// Waits for a copy of probe and object, on any thread.
pub type StateToCome = Box<dyn FnOnce() -> Result<State> + Send>;

/// The state of a reconstruction and what the engines do to it.
pub trait Stages: Send {
    /// Exit waves of the present probe and object, `psi = P O`: what a projection engine begins with.
    fn exits_from_product(&mut self) -> Result<()>;

    /// The Fourier step over all views.
    fn project(&mut self, rule: &Projection) -> Result<()>;

    /// Puts bounds on the mean squared deviation of the moduli of own views: from now on [`Projection::noise`] is the part of
    /// these that is let through, not of photon noise.
    fn set_bounds(&mut self, bounds: &[f64]) -> Result<()>;

    /// The overlap loop; gives the passes made.
    fn overlap(&mut self, rule: &Overlap) -> Result<u32>;

    /// Ends the loop where its last passes were left until it is known whether they are needed, which all parts of a run call
    /// alike. All other stages do so first; only the errors of the views can be asked for before.
    fn end_overlap(&mut self) -> Result<()> {
        Ok(())
    }

    /// One pass over all views in `order`, updating as it goes.
    fn sweep(&mut self, rule: &Sweep, order: &[u32]) -> Result<()>;

    /// One pass over all views in `order`, by batches, with the step of each view solved for.
    fn least_squares(&mut self, rule: &LeastSquares, order: &[u32]) -> Result<()>;

    /// Derivative of the likelihood by the conjugates of probe and object at [`Slot::State`], into [`Slot::Gradient`]:
    /// `dL = 2 Re<g, d>`. Gives the value, smoothness included.
    fn gradient(&mut self, rule: &Likelihood) -> Result<f64>;

    /// Coefficients `[b1, b2]` of the likelihood along [`Slot::Direction`], `L(t) = L + b1 t + b2 t^2` up to second order.
    fn line(&mut self, rule: &Likelihood) -> Result<[f64; 2]>;

    /// `Re<a, b>` of the probe's part and of the object's.
    fn dot(&mut self, a: Slot, b: Slot) -> Result<[f64; 2]>;

    /// `to = s to + f from`, for the probe's part by the first and for the object's by the second of each pair.
    fn combine(&mut self, to: Slot, s: [f64; 2], from: Slot, f: [f64; 2]) -> Result<()>;

    /// Divides the probe's part of a slot by `sqrt(sum |O|^2 + damping)` and the object's by `sqrt(sum |P|^2 + damping)` with the
    /// sums over all views of [`Slot::State`], which is no such slot; `damping` of the probe, then of the object.
    fn wavefield(&mut self, slot: Slot, damping: [f64; 2]) -> Result<()>;

    /// Smooths the object's part of a slot by a Gaussian of this standard deviation, pixels.
    fn smooth_object(&mut self, slot: Slot, sigma: f64) -> Result<()>;

    /// Brings the modulus of the object into a range, phases kept.
    fn clip(&mut self, range: [f64; 2]) -> Result<()>;

    /// Moves probes with their exit waves and objects by whole pixels (rows, columns), around the edges: each probe and each object
    /// by its own.
    fn roll(&mut self, probes: &[[i32; 2]], objects: &[[i32; 2]]) -> Result<()>;

    /// Applies the supports to the probe's part of a slot.
    fn support(&mut self, slot: Slot) -> Result<()>;

    /// Pixels of a frame where a probe may be, real and Fourier space (order of the transform), `[ny][nx]` each; `None` for all.
    fn set_support(&mut self, real: Option<&[bool]>, fourier: Option<&[bool]>) -> Result<()>;

    /// Mean squared deviation of the moduli of each view if it looked `moved` (rows, columns; one a view) away from where it looks.
    fn trial(&mut self, moved: &[[i32; 2]]) -> Result<Vec<f64>>;

    /// Derivatives of the summed squared deviation of the moduli of each view with respect to its position, per pixel: gradient y
    /// and x, curvature (Gauss and Newton's) yy, xx and yx.
    fn slope(&mut self) -> Result<Vec<[f64; 5]>>;

    /// Positions of the views: whole pixels and sub-pixel remainders.
    fn views(&self) -> (&[View], &[[f64; 2]]);

    /// Looks elsewhere: whole pixels inside the storages, and rests.
    fn set_views(&mut self, views: &[View], shifts: &[[f64; 2]]) -> Result<()>;

    /// Errors of the last pass, of own views: mean squared deviation of the moduli, likelihood, mean squared change of the exit
    /// wave.
    fn errors(&mut self) -> Result<Vec<[f64; 3]>>;

    /// Begins to copy the errors of the last pass while the device goes on; false where they cannot be had so. They are taken by
    /// [`Stages::begun_errors`], in the order in which they were begun, before two more passes.
    fn begin_errors(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// The errors that were begun first.
    ///
    /// # Panics
    /// If none were.
    fn begun_errors(&mut self) -> Result<Vec<[f64; 3]>> {
        unreachable!("no errors were begun")
    }

    /// Probe and object.
    fn state(&mut self) -> Result<State>;

    /// Begins to copy probe and object as they stand while the device goes on. `None` where they lie on the host or in several
    /// parts.
    fn begin_state(&mut self) -> Result<Option<StateToCome>> {
        Ok(None)
    }

    /// Values of all probes or all objects in single precision, each times the conjugate of the factor that is its turn where there
    /// are factors, as a copy in the memory of the GPU that they lie on. `None` where they lie on the host or in several parts.
    fn wave_on_gpu(
        &mut self,
        _of: Held,
        _range: Range<usize>,
        _factors: &[num_complex::Complex<f64>],
        _copier: &FieldCopier,
    ) -> Result<Option<ValuesOnGpu>> {
        Ok(None)
    }

    /// Puts values in the memory of the same GPU, each times the factor that is its turn where there are factors, in place of some
    /// of all probes or all objects; those that are as [`Stages::wave_on_gpu`] gives them stay to the last bit. Exit waves stay.
    /// Returns true if something has changed.
    fn set_wave_on_gpu(
        &mut self,
        of: Held,
        _range: Range<usize>,
        _factors: &[num_complex::Complex<f64>],
        _values: &ValuesOnGpu,
        _copier: &FieldCopier,
    ) -> Result<bool> {
        Err(not_on_gpu(&format!("{of:?}"), &[]))
    }

    /// Bits of probe, then object, as complex values in the precision of the run: a word a value in single, two in double.
    fn copy_state(&mut self, bits: &mut [u64]) -> Result<()> {
        write_bits(&self.state()?, bits);
        Ok(())
    }

    /// Puts probe and object. Exit waves stay.
    fn set_state(&mut self, state: &State) -> Result<()>;

    /// Exit waves `[n][K][ny][nx]` of own views; nothing where none are kept.
    fn exit_waves(&mut self) -> Result<Vec<num_complex::Complex<f64>>>;

    /// Puts exit waves of own views, which are kept from now on.
    fn set_exit_waves(&mut self, waves: &[num_complex::Complex<f64>]) -> Result<()>;

    /// Probes alone.
    fn probe(&mut self) -> Result<Vec<num_complex::Complex<f64>>>;

    /// Gram matrices `[sets][modes][modes]` of the probes' modes ([`products`](crate::modes::products)).
    fn probe_products(&mut self) -> Result<Vec<num_complex::Complex<f64>>>;

    /// Modelled intensities of some views, as they are counted, in the order of `mag`.
    fn intensities(&mut self, views: &[usize]) -> Result<Vec<Vec<f64>>>;

    /// Multiplies probes by changes of basis, `[sets][P][P]`, row by row of the new modes. Exit waves stay: an engine begins with
    /// its own.
    fn mix_probe(&mut self, basis: &[num_complex::Complex<f64>]) -> Result<()>;

    /// Writes everything that a bit-equal continuation needs, into sections whose names begin with `prefix`.
    fn save(&mut self, prefix: &str, writer: &mut Writer) -> Result<()>;

    /// Takes it back.
    fn restore(&mut self, prefix: &str, reader: &Reader) -> Result<()>;

    /// Bytes held.
    fn memory(&self) -> u64;

    /// Peak memory so far, bytes, where it is counted: buffers of a GPU.
    fn memory_peak(&self) -> u64 {
        self.memory()
    }

    /// The GPU whose one stream all of a stage goes through, if there is such: stages are timed by its events.
    fn cuda(&self) -> Option<Cuda> {
        None
    }
}

/// The stages of a model on a device, in single or double precision.
pub fn open(model: &Model, device: &Device, double: bool) -> Result<Box<dyn Stages>> {
    match device {
        Device::Cpu(cpu) => Ok(cpu::new(model, cpu, double)),
        Device::Cuda(gpu) => cuda::new(model, gpu, double),
    }
}

/// Refuses several parts where frames follow one another.
fn in_one_part(share: &Share) -> Result<()> {
    if share.is_alone() {
        return Ok(());
    }
    let problem = Problem::new("", "frames that come one after the other are not shared out over parts of a run");
    Err(Error::input("ptycho", problem.hint("compute in one part, or ask for a larger `batch`")))
}

impl MemoryBudget {
    /// Chooses the summation of the object on `gpu` if it holds all frames.
    pub fn object_sums(&self, model: &Model, gpu: &Cuda) -> ObjectSumChoice {
        self.object_update.choose(self.deterministic, model, gpu.properties().multiprocessors)
    }

    /// Bytes that a run takes on `gpu` if it holds all frames.
    pub fn resident(&self, model: &Model, gpu: &Cuda) -> u64 {
        let pool = if self.object_sums(model, gpu).atomic { 4 * (self.demand.number() * model.object_len()) as u64 } else { 0 };
        // Frames in an order of their own are for kernels that do without cuFFT.
        let sequence = self.demand.sequence && CudaPlans::new(gpu).is_err();
        plan::resident(model, gpu.properties(), KeptData { sequence, ..self.demand }) + pool
    }

    /// The folder of files for moduli and exit waves, where a run on the CPU must not hold them.
    pub fn folder_for(&self, model: &Model) -> Option<PathBuf> {
        let fits = |allowance| memory(model, &self.demand) <= allowance;
        let folder = || self.folder.clone().unwrap_or_else(std::env::temp_dir);
        self.allowance.is_some_and(|allowance| !fits(allowance)).then(folder)
    }

    /// Memory settings of a run on `gpu` that streams; `None` where everything fits.
    pub fn streaming_plan(&self, model: &Model, gpu: &Cuda) -> Option<StreamingPlan> {
        let free = || (gpu.memory_free().unwrap_or(gpu.memory()) as f64 * FREE) as u64;
        let allowance = self.allowance.unwrap_or_else(free);
        let fits = self.resident(model, gpu) <= allowance;
        let half = self.half && self.demand.waves;
        (half || !fits).then_some(StreamingPlan { allowance, half, demand: self.demand })
    }
}

/// The stages of a model within memory limits; what does not fit on a GPU is streamed.
pub fn open_within(model: &Model, device: &Device, budget: &MemoryBudget) -> Result<Box<dyn Stages>> {
    let double = budget.demand.double;
    // Parts add up alike what they all hold, and stay together only with the same bits.
    let links = model.share.links();
    match device {
        Device::Cuda(gpu) => links.must_agree("the GPU", gpu.name())?,
        Device::Cpu(_) => links.must_agree("the instructions of the processor", &format!("{:?}", Isa::best()))?,
    }
    match device {
        // Parts share the memory of a run out.
        Device::Cuda(gpu) if !model.share.is_alone() => cuda::new(model, gpu, double),
        Device::Cuda(gpu) => match budget.streaming_plan(model, gpu) {
            Some(streaming) => cuda::new_within(model, gpu, streaming),
            None => {
                let config = KernelConfig::of(model, gpu.properties(), double);
                cuda::new_with(model, gpu, KernelConfig { atomic: budget.object_sums(model, gpu).atomic, ..config })
            }
        },
        Device::Cpu(cpu) => match budget.folder_for(model) {
            Some(folder) => cpu::new_in(model, cpu, double, &folder),
            None => open(model, device, double),
        },
    }
}

/// Part of the free memory of a GPU that a run takes where nothing is said.
const FREE: f64 = 0.9;

/// Bytes that the stages of a model need on the CPU for what the engines keep, exit waves and those of a batch included; buffers of
/// threads are [`cpu::scratch_bytes`].
pub fn memory(model: &Model, demand: &KeptData) -> u64 {
    held(model, demand) + passing(model, demand)
}

/// Memory that stays from one iteration to the next, bytes.
pub fn held(model: &Model, demand: &KeptData) -> u64 {
    let [probe, object] = [model.probe_len(), model.object_len()].map(|n| 2 * n as u64);
    // The state, gradients and what becomes of them; the last probe.
    let pairs = if demand.likelihood { SLOTS as u64 } else { 1 };
    mapped(model, demand) + demand.number() as u64 * (pairs * (probe + object) + probe)
}

/// Memory that is needed within an iteration only, bytes.
pub fn passing(model: &Model, demand: &KeptData) -> u64 {
    let views = model.own().len();
    let [probe, object] = [model.probe_len(), model.object_len()].map(|n| 2 * n as u64);
    // A part of a run holds what its views add to sums, which come to it in the order of their pieces.
    let alone = model.share.is_alone();
    let batch = if alone { views.min(cpu::BATCH) } else { views };
    // Of other parts also as they come.
    let largest_batch = demand.largest_batch(model.views.len()) * if alone { 1 } else { 2 };
    let directions = if batch > 1 { probe + object } else { 0 };
    let waves = largest_batch.max(if demand.likelihood { batch } else { 0 }) * model.pixels() * model.exits();
    // Shifted probes and what comes back of a batch of views, and sums of whole objects.
    let subpixel = if model.subpixel { (4 * batch * model.modes[0] * model.pixels()) as u64 + probe + object } else { 0 };
    let norms = if batch > 1 || demand.likelihood || model.subpixel { object / 2 } else { 0 };
    demand.number() as u64 * (directions + 2 * waves as u64 + subpixel + norms + probe)
}

/// The model without its frames.
pub(crate) use cuda::without_frames;

/// Bytes of frames and exit waves of these.
pub fn mapped(model: &Model, demand: &KeptData) -> u64 {
    let (word, views) = (demand.number() as u64, model.own().len() as u64);
    let waves = if demand.waves { views * (model.pixels() * model.exits()) as u64 * 2 * word } else { 0 };
    views * model.counted() as u64 * word + waves
}
