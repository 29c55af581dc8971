//! A problem from arrays in memory, with the place of every view, and one engine that works on it an iteration at a time: for
//! programs that have scans of their own.

pub(crate) mod callers;

use callers::CallersState;
use num_complex::Complex;
use zellige_engine::device::Device;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::profile::Profiler;
use zellige_engine::signal::Signals;

use crate::config::{Config, Precision};
use crate::model::{Model, Power, State, Storage, Transfer, View};
use crate::reconstruction::Reconstruction;
use crate::scan::{Beam, Frames, Mask, Propagation, Scan};
use crate::setup;
use crate::share::Share;
use crate::solver::on;

/// Name of the scan in messages.
const NAME: &str = "arrays";

/// Way from the sample to the detector, whose pixels are in the order of the frames.
#[derive(Debug, Clone)]
pub enum Propagator {
    /// A transform of the wave times this phase `[ny][nx]`, whose pixel `[y, x]` falls on that of the frame. Phases at the detector
    /// do not matter.
    Far(Vec<Complex<f64>>),
    /// A transform, times this kernel `[ny][nx]` in the order of the transform, and a transform back.
    Near(Vec<Complex<f64>>),
}

/// Frames, their views, and the sizes of probes and objects.
pub struct ArrayProblem {
    /// Counts `[n][ny][nx]`.
    pub counts: Vec<f32>,
    /// Pixels that count.
    pub mask: Mask,
    /// Rows and columns of a frame.
    pub frame: [usize; 2],
    /// Modes of a probe and of an object.
    pub modes: [usize; 2],
    /// Number of probes.
    pub probes: usize,
    /// Rows and columns of each object.
    pub objects: Vec<[usize; 2]>,
    /// Probe, object and first pixel of each view.
    pub views: Vec<View>,
    /// Sample to detector.
    pub propagator: Propagator,
    /// Sums of the counts, where they are not to be taken from the frames.
    pub power: Option<Power>,
}

/// Fault of an array.
fn wrong(array: &str, message: String) -> Error {
    Error::input("ptycho", Problem::new(array, message))
}

/// Fault of an array that has another length.
fn long(array: &str, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(wrong(array, format!("{found} values where {expected} are needed"))) }
}

/// Faults of views that lie outside what they see.
pub fn check_views(views: &[View], probes: usize, frame: [usize; 2], storages: &[Storage]) -> Result<()> {
    let outside = |v: &View| {
        let fits = |first: i32, frame: usize, all: usize| first >= 0 && first as usize + frame <= all;
        let inside = |s: &Storage| v.probe < probes as u32 && fits(v.row, frame[0], s.shape[0]) && fits(v.col, frame[1], s.shape[1]);
        !storages.get(v.object as usize).is_some_and(inside)
    };
    let Some(j) = views.iter().position(outside) else { return Ok(()) };
    let View { probe, object, row, col } = views[j];
    let of = storages.get(object as usize).map_or_else(|| "which is not there".into(), |s| format!("of {:?} pixels", s.shape));
    let message = format!(
        "view {j} sees probe {probe} of {probes} and, from row {row} and column {col} on, object {object}, {of}, in frames of {frame:?}"
    );
    Err(wrong("views", message))
}

impl ArrayProblem {
    /// The problem, which starts from these probes `[sets][P][ny][nx]` and objects, each `[O][H][W]`.
    pub fn model(self, probe: &[Complex<f64>], object: Vec<Complex<f64>>) -> Result<Model> {
        let Self { counts, mask, frame, modes, probes, objects, views, propagator, power } = self;
        let pixels = frame[0] * frame[1];
        if frame.iter().any(|n| *n < 4) || views.is_empty() || modes.contains(&0) {
            return Err(wrong(
                "frames",
                format!("{} frames of {frame:?} pixels, {modes:?} modes (at least 1 of 4 x 4, and 1)", views.len()),
            ));
        }
        let mut offset = 0;
        let storages: Vec<Storage> = objects
            .iter()
            .map(|shape| {
                let storage = Storage { shape: *shape, offset, origin: [0.0; 2] };
                offset += modes[1] * storage.layer();
                storage
            })
            .collect();
        long("frames", counts.len(), views.len() * pixels)?;
        long("probe", probe.len(), probes * modes[0] * pixels)?;
        long("object", object.len(), offset)?;
        if let Mask::Common(m) | Mask::Each(m) = &mask {
            long("mask", m.len(), if matches!(mask, Mask::Common(_)) { pixels } else { views.len() * pixels })?;
        }
        check_views(&views, probes, frame, &storages)?;
        let (transfer, filter) = match propagator {
            Propagator::Far(phase) => {
                long("phase", phase.len(), pixels)?;
                (Transfer::Far, corner_first_phase(phase, frame))
            }
            Propagator::Near(kernel) => {
                long("kernel", kernel.len(), pixels)?;
                (Transfer::Near(kernel), vec![Complex::new(1.0, 0.0); pixels])
            }
        };
        let propagation = if transfer == Transfer::Far { Propagation::Far } else { Propagation::Near };
        let mut scan = Scan {
            name: NAME.into(),
            frames: Frames::Real(counts),
            shape: frame,
            mask,
            positions: vec![[0.0; 2]; views.len()],
            beam: Beam { wavelength: 1.0, distance: 1.0, pixel: [1.0; 2], propagation },
            probe: None,
            object: None,
            truth: None,
            notes: Vec::new(),
        };
        let mut mag = vec![0.0; views.len() * pixels];
        setup::moduli(&mut scan, &transfer, 0..views.len(), &mut mag)?;
        Ok(Model {
            frame,
            bin: [1, 1],
            modes,
            probes,
            storages,
            shifts: vec![[0.0; 2]; views.len()],
            views,
            subpixel: false,
            power: power.unwrap_or_else(|| Power::of(&mag, pixels)),
            mag,
            share: Share::default(),
            transfer,
            pixel: [1.0; 2],
            start: State { probe: held(probe.to_vec(), &filter), object },
            filter,
            begins: Vec::new(),
            scans: vec![(NAME.into(), 0)],
        })
    }
}

/// The phase that puts pixel `[ny / 2, nx / 2]` of a frame on pixel `[0, 0]` of the transform, where the engine's order has it, in
/// place of one that leaves it.
fn corner_first_phase(phase: Vec<Complex<f64>>, frame: [usize; 2]) -> Vec<Complex<f64>> {
    // A shift of the transform by `n / 2`, in whole turns of `n` so that nothing is rounded where `n` is even.
    let turns = |i: usize, n: usize| (i * (n / 2) % n) as f64 / n as f64;
    let turn = |i: usize| Complex::cis(-std::f64::consts::TAU * (turns(i / frame[1], frame[0]) + turns(i % frame[1], frame[1])));
    phase.into_iter().enumerate().map(|(i, phase)| phase * turn(i)).collect()
}

/// Waves `[..][ny][nx]` as they are held: times the phase of the sample plane.
fn held(mut waves: Vec<Complex<f64>>, filter: &[Complex<f64>]) -> Vec<Complex<f64>> {
    waves.iter_mut().zip(filter.iter().cycle()).for_each(|(wave, phase)| *wave *= phase);
    waves
}

/// Waves as they are without it.
fn bare(mut waves: Vec<Complex<f64>>, filter: &[Complex<f64>]) -> Vec<Complex<f64>> {
    waves.iter_mut().zip(filter.iter().cycle()).for_each(|(wave, phase)| *wave *= phase.conj());
    waves
}

/// One engine at work on arrays.
pub struct ArrayEngine {
    run: Reconstruction,
    device: Device,
    double: bool,
    callers: CallersState,
}

impl ArrayEngine {
    /// Sets the first engine of an input up, whose next iteration is number `first`; scans of the input are not looked at.
    /// `bounds`: of the mean squared deviation of the moduli of each view, in place of one for all.
    pub fn new(config: &Config, model: Model, bounds: Option<&[f64]>, first: u64, device: &Device) -> Result<Self> {
        let mut config = config.clone();
        config.engine.truncate(1);
        for engine in &mut config.engine {
            // Ended by the caller.
            engine.iterations = Some(u64::MAX);
            engine.bounds_of_views = bounds.is_some();
        }
        let mut run = on(device, || Reconstruction::new(&config, model, device, 0))?;
        run.number_from(first);
        if let Some(bounds) = bounds {
            long("bounds", bounds.len(), run.model.views.len())?;
            run.stages.set_bounds(bounds)?;
        }
        let double = config.precision == Precision::F64;
        let callers = CallersState::new(device, [run.model.probe_len(), run.model.object_len()], double)?;
        Ok(Self { run, device: device.clone(), double, callers })
    }

    /// The problem.
    pub fn model(&self) -> &Model {
        &self.run.model
    }

    /// Returns true in double precision.
    pub fn double(&self) -> bool {
        self.double
    }

    /// Model of the device.
    pub fn device(&self) -> &str {
        self.device.name()
    }

    /// Makes `count` iterations; views come in `order` where an engine goes from one to the next, or in one of its own.
    ///
    /// # Errors
    /// [`Error::Interrupted`] on a signal, between two iterations, after which the engine can go on; those of the stages.
    pub fn iterate(&mut self, count: u64, order: Option<&[u32]>) -> Result<()> {
        if let Some(order) = order {
            let views = self.run.model.views.len();
            let mut seen = vec![false; views];
            let fits = |j: &u32| seen.get_mut(*j as usize).is_some_and(|seen| !std::mem::replace(seen, true));
            if order.len() != views || !order.iter().all(fits) {
                return Err(wrong("order", format!("it is no permutation of the numbers of {views} views")));
            }
        }
        let signals = Signals::listen_beside()?;
        let Self { run, device, .. } = self;
        let mut profiler = Profiler::off();
        for _ in 0..count {
            if let Some(reason) = signals.stop_reason() {
                return Err(Error::Interrupted { reason, step: run.done, checkpoint: None });
            }
            on(device, || run.advance_in(order, &mut profiler))?;
        }
        Ok(())
    }

    /// Numbers the iterations from `k` on: others have made those before it.
    pub fn number_from(&mut self, k: u64) {
        self.run.number_from(k);
    }

    /// Errors of each view in the last iteration ([`crate::stages::ERRORS`]).
    pub fn errors(&mut self) -> Result<Vec<[f64; 3]>> {
        let errors = self.run.stages.errors()?;
        Reconstruction::finite(&errors, self.run.done)?;
        Ok(errors)
    }

    /// Probes and objects.
    pub fn state(&mut self) -> Result<State> {
        let Self { run, device, .. } = self;
        on(device, || run.state())
    }

    /// Takes the arrays of the caller, whose probes and objects the engine was set up with, for what the caller was told.
    pub fn remember_state(&mut self, arrays: &[&[u64]]) -> Result<()> {
        self.long_state(arrays.iter().map(|array| array.len()).sum())?;
        self.callers.copy_from(arrays);
        Ok(())
    }

    /// Writes probes and objects into arrays of the caller, probes first: bits of complex values in the precision of the engine.
    pub fn write_state(&mut self, arrays: &mut [&mut [u64]]) -> Result<()> {
        self.long_state(arrays.iter().map(|array| array.len()).sum())?;
        let Self { run, device, callers, .. } = self;
        on(device, || {
            callers.fill(|bits| run.stages.copy_state(bits), &run.model.filter)?;
            callers.copy_to(arrays);
            Ok(())
        })
    }

    /// Takes probes and objects from arrays of the caller, where a bit of them is another than the caller was told; tells if so.
    /// Exit waves stay.
    pub fn take_state(&mut self, arrays: &[&[u64]]) -> Result<bool> {
        self.long_state(arrays.iter().map(|array| array.len()).sum())?;
        let Self { run, device, callers, .. } = self;
        on(device, || {
            if callers.is(arrays) {
                return Ok(false);
            }
            callers.copy_from(arrays);
            let State { probe, object } = callers.state();
            run.stages.set_state(&State { probe: held(probe, &run.model.filter), object })?;
            Ok(true)
        })
    }

    /// Faults of arrays of the caller that have other sizes than probes and objects.
    fn long_state(&self, words: usize) -> Result<()> {
        long("64-bit words of probes and objects", words, self.callers.len())
    }

    /// Exit waves `[n][K][ny][nx]`, `k = p O + o`, where the engine keeps them; nothing otherwise.
    pub fn exit_waves(&mut self) -> Result<Vec<Complex<f64>>> {
        let Self { run, device, .. } = self;
        on(device, || Ok(bare(run.stages.exit_waves()?, &run.model.filter)))
    }

    /// Puts exit waves in place of the products of probe and object that an engine begins with.
    pub fn set_exit_waves(&mut self, waves: &[Complex<f64>]) -> Result<()> {
        let Self { run, device, .. } = self;
        long("exit waves", waves.len(), run.model.views.len() * run.model.exits() * run.model.pixels())?;
        on(device, || {
            run.begin()?;
            run.stages.set_exit_waves(&held(waves.to_vec(), &run.model.filter))
        })
    }

    /// Holds probes to these pixels `[ny][nx]`, in place of what the input says: in real space, and in Fourier space in the order
    /// of the transform, where probes are taken with the phase of the sample plane.
    pub fn set_support(&mut self, real: Option<&[bool]>, fourier: Option<&[bool]>) -> Result<()> {
        let pixels = self.run.model.pixels();
        [real, fourier].into_iter().flatten().try_for_each(|mask| long("support", mask.len(), pixels))?;
        self.run.begin()?;
        self.run.stages.set_support(real, fourier)
    }

    /// Lets the views look elsewhere, each with the probe and the object that it has.
    pub fn set_views(&mut self, views: &[View]) -> Result<()> {
        let Model { views: before, probes, frame, storages, shifts, .. } = &*self.run.model;
        long("views", views.len(), before.len())?;
        check_views(views, *probes, *frame, storages)?;
        if let Some(j) = views.iter().zip(before).position(|(a, b)| (a.probe, a.object) != (b.probe, b.object)) {
            return Err(wrong("views", format!("view {j} has another probe or object: set the engine up again")));
        }
        self.run.stages.set_views(views, shifts)
    }
}
