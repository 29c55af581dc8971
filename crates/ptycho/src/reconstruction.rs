//! One reconstruction: a model, its stages on a device, and the engines of the input, one after another.

use std::collections::BTreeSet;
use std::sync::Arc;

use num_complex::Complex;
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::device::Device;
use zellige_engine::error::{Error, Result};
use zellige_engine::parallel::{each, items_mut};
use zellige_engine::profile::Profiler;
use zellige_engine::sim::Cost;

use crate::config::{AffinePart, Config, EngineConfig};
use crate::engines::{self, Engine, EngineState, ProblemSize};
use crate::memory::MemoryBudget;
use crate::model::{Model, State, View};
use crate::modes;
use crate::positions::{self, Affine, RefinementContext};
use crate::relay::Relay;
use crate::stages::{self, Stages};

/// Fraction of frames inside their bounds and at rest at which an engine rests.
const MOST_AT_REST: f64 = 0.95;

/// An iteration that was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Iteration {
    /// Its number among those of all engines, from 1.
    pub done: u64,
    /// Its engine and its number there, from 1.
    of_engine: Option<(usize, u64)>,
}

/// A reconstruction at work.
pub struct Reconstruction {
    /// The problem, without its start.
    pub model: Arc<Model>,
    /// State and stages.
    pub stages: Box<dyn Stages>,
    engines: Vec<(EngineConfig, Box<dyn Engine>)>,
    reported: Vec<[f64; 2]>,
    seed: u64,
    memory: EngineState,
    /// Engine at work and its finished iterations.
    at: (usize, u64),
    /// Marks that the stages are ready for that engine.
    begun: bool,
    /// Finished iterations of all engines.
    pub done: u64,
    /// Root mean square of the last moves of positions, pixels.
    pub moved: f64,
    /// The change of basis by which the modes of the last engine were made orthogonal; empty if none was.
    turned: Vec<Complex<f64>>,
    /// Engines whose frames came to rest, and after which of their iterations.
    pub rest: Vec<(usize, u64)>,
}

impl Reconstruction {
    /// Sets the engines of an input up for a model.
    pub fn new(config: &Config, model: Model, device: &Device, seed: u64) -> Result<Self> {
        Self::within(config, model, device, seed, &config.memory_budget(1.0))
    }

    /// Sets up as [`Reconstruction::new`] does, within memory limits.
    pub fn within(config: &Config, mut model: Model, device: &Device, seed: u64, budget: &MemoryBudget) -> Result<Self> {
        let mut problem = ProblemSize::of(&model, config.compatibility, seed);
        problem.sizes.number = budget.demand.number() as f64;
        problem.noise = model.share.gathered(problem.noise)?;
        let engines = config.engine.iter().enumerate().map(|(i, e)| (e.clone(), engines::engine(e, &problem, i))).collect();
        let stages = stages::open_within(&model, device, budget)?;
        // The stages have it.
        model.start = State::default();
        let reported = model.views.iter().zip(&model.shifts).map(|(v, s)| positions::exact(v, *s)).collect();
        Ok(Self {
            model: Arc::new(model),
            stages,
            engines,
            reported,
            seed,
            memory: EngineState::default(),
            at: (0, 0),
            begun: false,
            done: 0,
            moved: 0.0,
            turned: Vec::new(),
            rest: Vec::new(),
        })
    }

    /// The engine at work, or the last one.
    pub fn engine(&self) -> &EngineConfig {
        &self.engines[self.at.0.min(self.engines.len() - 1)].0
    }

    /// The engine of the last iteration, or the first one.
    pub fn last_engine(&self) -> &EngineConfig {
        let (number, k) = self.at;
        &self.engines[if k == 0 { number.saturating_sub(1) } else { number }].0
    }

    /// Returns true if all engines are done.
    pub fn finished(&self) -> bool {
        self.at.0 >= self.engines.len()
    }

    /// Numbers the iterations of the current engine from `k` on, as if so many had been made.
    pub fn number_from(&mut self, k: u64) {
        self.at.1 = k;
    }

    /// Readies the stages for the current engine, unless they are.
    pub fn begin(&mut self) -> Result<()> {
        if !self.begun
            && let Some((_, engine)) = self.engines.get(self.at.0)
        {
            self.memory = EngineState::default();
            engines::begin(&**engine, &mut *self.stages, self.model.frame)?;
            self.begun = true;
        }
        Ok(())
    }

    /// One iteration of the current engine.
    pub fn advance(&mut self, profiler: &mut Profiler) -> Result<()> {
        self.advance_in(None, profiler)
    }

    /// One iteration, with the views in `order` where an engine goes from one to the next.
    pub fn advance_in(&mut self, order: Option<&[u32]>, profiler: &mut Profiler) -> Result<()> {
        self.advance_open(order, profiler)?;
        self.stages.end_overlap()
    }

    /// One iteration, whose overlap loop is still to be ended.
    pub(crate) fn advance_open(&mut self, order: Option<&[u32]>, profiler: &mut Profiler) -> Result<()> {
        self.begin()?;
        let (number, k) = self.at;
        let Some((config, engine)) = self.engines.get(number) else { return Ok(()) };
        let stages = &mut *self.stages;
        engine.iterate(stages, k, &mut self.memory, order, profiler)?;
        if let Some(tolerance) = config.probe_center_tolerance {
            profiler.stage("centre", Cost::default(), || centre(stages, &self.model, tolerance))?;
        }
        let iterations = config.iterations();
        if let Some(refinement) = config.positions.as_ref().filter(|p| p.due(k, iterations)) {
            let (model, reported) = (&self.model, &self.reported[..]);
            let (frame, pixel, storages) = (model.frame, model.pixel, &model.storages[..]);
            let frame = RefinementContext { frame, pixel, storages, reported, seed: self.seed, number, subpixel: model.subpixel };
            self.moved = profiler.stage("positions", Cost::default(), || positions::refine(stages, refinement, &frame, k, iterations))?;
        }
        self.done += 1;
        self.at.1 += 1;
        if self.at.1 == iterations {
            self.end_engine(profiler)?;
        }
        Ok(())
    }

    /// Goes on to the next engine, as after the last iteration of the one at work.
    pub fn end_engine(&mut self, profiler: &mut Profiler) -> Result<()> {
        if self.model.modes[0] > 1 {
            let (model, stages) = (&self.model, &mut *self.stages);
            self.turned = engines::staged(profiler, stages, "orthogonalise", Cost::default(), |s| orthogonalise(s, model))?;
        }
        (self.at, self.begun) = ((self.at.0 + 1, 0), false);
        Ok(())
    }

    /// Iterations of the engines that are done, all of those that were ended early, and of the one at work.
    pub fn passed(&self) -> u64 {
        let (number, k) = self.at;
        self.engines.iter().take(number).map(|(config, _)| config.iterations()).sum::<u64>() + k
    }

    /// Mean errors over the views; an error where they are not finite.
    pub fn errors(&mut self) -> Result<[f64; 3]> {
        let errors = self.stages.errors()?;
        self.mean_errors(&errors, self.iteration())
    }

    /// The last iteration, of all engines and of its own.
    pub(crate) fn iteration(&self) -> Iteration {
        let (engine, k) = self.at;
        // The engine of the last iteration, and how many it has made.
        let last = engine.checked_sub(1).map(|last| (last, self.engines[last].0.iterations()));
        Iteration { done: self.done, of_engine: if k > 0 { Some((engine, k)) } else { last } }
    }

    /// Means of the errors of all views after an iteration from those of own ones; an error where they are not finite. Notes the
    /// first iteration of an engine after which its frames are at rest.
    pub(crate) fn mean_errors(&mut self, own: &[[f64; 3]], iteration: Iteration) -> Result<[f64; 3]> {
        let first = self.model.own().start;
        let unnoted = iteration.of_engine.filter(|(number, _)| self.rest.iter().all(|(noted, _)| noted != number));
        let resting = unnoted.map_or(0, |(number, _)| self.engines[number].1.at_rest(own, first));
        let (share, mut sums) = (&self.model.share, Relay::<f64>::zeros([4]));
        let parts: Vec<usize> = (0..share.links().size()).collect();
        sums.add(
            share,
            |_| &parts,
            |_, sums| {
                for errors in own {
                    (0..3).for_each(|i| sums[i] += errors[i]);
                }
                sums[3] += resting as f64;
            },
        )?;
        let [fourier, likelihood, exit, resting] = [0, 1, 2, 3].map(|i| sums.sums()[0][i]);
        if !(fourier + likelihood + exit).is_finite() {
            Self::finite(&share.gathered(own.to_vec())?, iteration.done)?;
        }
        let views = self.model.views.len().max(1) as f64;
        if let Some((number, k)) = unnoted.filter(|_| resting >= MOST_AT_REST * views) {
            tracing::warn!("{}", at_rest(self.engines[number].0.name.as_str(), k));
            self.rest.push((number, k));
        }
        Ok([fourier, likelihood, exit].map(|sum| sum / views))
    }

    /// An error where those of some view are not finite after iteration `done`.
    pub(crate) fn finite(errors: &[[f64; 3]], done: u64) -> Result<()> {
        let sum: f64 = errors.as_flattened().iter().sum();
        if sum.is_finite() {
            return Ok(());
        }
        let view = errors.iter().position(|e| e.iter().any(|v| !v.is_finite())).unwrap_or(0);
        let place = format!("iteration {done}, frame {view}");
        Err(Error::Numerics { what: "error of the reconstruction".into(), place, message: "it is not finite any more".into() })
    }

    /// Begins to copy the errors of the last iteration while the next one is at work; false where that cannot be, or where the
    /// end of an engine or its positions wait for the device in any case.
    pub(crate) fn begin_errors(&mut self) -> Result<bool> {
        let waits = self.at.1 == 0 || self.engine().positions.is_some();
        Ok(!waits && self.stages.begin_errors()?)
    }

    /// The affine part of the moves of the positions, where some engine keeps it.
    pub fn affine(&self) -> Vec<String> {
        let kept = |(config, _): &(EngineConfig, Box<dyn Engine>)| config.positions.as_ref().is_some_and(|p| p.affine == AffinePart::Kept);
        if !self.engines.iter().any(kept) {
            return Vec::new();
        }
        let (views, shifts) = self.stages.views();
        let parts = positions::affine_parts(&self.reported, views, shifts, self.model.storages.len());
        let told = |a: Affine| {
            let [[yy, yx], [xy, xx]] = a.matrix;
            format!(
                "positions stretched by {:+.2} % along y and {:+.2} % along x, turned by {:+.2} mrad and sheared by {:+.2} mrad",
                100.0 * yy,
                100.0 * xx,
                500.0 * (yx - xy),
                500.0 * (yx + xy)
            )
        };
        parts.into_iter().flatten().map(told).collect()
    }

    /// Messages about engines whose frames came to rest.
    pub fn resting(&self) -> Vec<String> {
        self.rest.iter().map(|(number, k)| at_rest(self.engines[*number].0.name.as_str(), *k)).collect()
    }

    /// Probe in the sample plane, without the phase that the propagation takes; and the object.
    pub fn state(&mut self) -> Result<State> {
        let mut state = self.stages.state()?;
        let pixels = self.model.pixels();
        let filter = &self.model.filter;
        each(items_mut(&mut state.probe), |i, v| *v *= filter[i % pixels].conj());
        Ok(state)
    }

    /// Positions of the views, metres `[y, x]`, in the coordinates of the scans.
    pub fn positions(&self) -> Vec<[f64; 2]> {
        let (views, shifts) = self.stages.views();
        let position = |(view, shift): (&View, &[f64; 2])| {
            let at = positions::exact(view, *shift);
            let origin = self.model.storages[view.object as usize].origin;
            [0, 1].map(|d| origin[d] + (at[d] + (self.model.frame[d] / 2) as f64) * self.model.pixel[d])
        };
        views.iter().zip(shifts).map(position).collect()
    }

    /// Writes everything that a bit-equal continuation needs.
    pub fn save(&mut self, prefix: &str, writer: &mut Writer) -> Result<()> {
        writer.json(&format!("{prefix}at"), &(self.at, self.done, &self.rest))?;
        // Bit by bit: JSON has no infinities. Without the passes of the last loop, which tell its cost alone.
        let m = &self.memory;
        writer.f64s(&format!("{prefix}memory"), &[m.length, m.scale, m.value, self.moved])?;
        let turned: Vec<f64> = self.turned.iter().flat_map(|v| [v.re, v.im]).collect();
        writer.f64s(&format!("{prefix}turned"), &turned)?;
        self.stages.save(prefix, writer)
    }

    /// Takes it back. The engines were `before` when it was written, and the input's check has found that these may follow.
    pub fn restore(&mut self, prefix: &str, reader: &Reader, before: &[EngineConfig]) -> Result<()> {
        let (mut at, done, rest): ((usize, u64), u64, Vec<(usize, u64)>) = reader.json(&format!("{prefix}at"))?;
        let mut longer = false;
        let ended = before.len().checked_sub(1).filter(|last| at == (last + 1, 0));
        if let Some((last, then)) = ended.map(|last| (last, before[last].iterations())) {
            let now = self.engines.get(last).map_or(then, |(config, _)| config.iterations());
            if now != then {
                (at, longer) = ((last, then), true);
            }
        }
        if let Some((config, _)) = self.engines.get(at.0).filter(|(config, _)| config.iterations() <= at.1) {
            let (name, wanted, done) = (config.name.as_str(), config.iterations(), at.1);
            return Err(
                reader.content_error(format!("engine[{}] ({name}) has done {done} iterations, and the input asks for {wanted}", at.0))
            );
        }
        let mut values = [0.0; 4];
        reader.f64s_into(&format!("{prefix}memory"), &mut values)?;
        let [length, scale, value, moved] = values;
        self.memory = EngineState { length, scale, value, passes: 0 };
        (self.at, self.done, self.moved, self.rest) = (at, done, moved, rest);
        if at.1 > 0
            && let Some((_, engine)) = self.engines.get(at.0)
        {
            engines::begin(&**engine, &mut *self.stages, self.model.frame)?;
        }
        self.begun = at.1 > 0;
        self.stages.restore(prefix, reader)?;
        let turned = reader.f64s(&format!("{prefix}turned"))?;
        self.turned = turned.as_chunks::<2>().0.iter().map(|[re, im]| Complex::new(*re, *im)).collect();
        if longer && !self.turned.is_empty() {
            // The engine goes on where it was: its waves are in the basis of before.
            let modes = self.model.modes[0];
            if self.turned.len() != self.model.probes * modes * modes {
                return Err(reader.content_error("the number of modes is not that of this input"));
            }
            let back = self
                .turned
                .chunks_exact(modes * modes)
                .flat_map(|set| (0..modes * modes).map(|i| set[i % modes * modes + i / modes].conj()));
            let back: Vec<Complex<f64>> = back.collect();
            self.stages.mix_probe(&back)?;
        }
        Ok(())
    }
}

/// Frames that no longer move.
fn at_rest(engine: &str, k: u64) -> String {
    format!("frames of {engine} stopped moving after its iteration {k}: their deviations are within the bound on noise (`fourier_bound`)")
}

/// Moves probes, their exit waves and objects by whole pixels where the middle of a probe is more than `tolerance` pixels off the
/// frame's; probes that share an object, and objects that share a probe, go together by the middle of all their light. Waves are
/// moved as they are held, phase of the sample plane included, so that no modulus at a far detector changes. (At a near one the
/// frame would move: the key is refused there.)
fn centre(stages: &mut dyn Stages, model: &Model, tolerance: f64) -> Result<()> {
    let state = stages.state()?;
    let pixels = model.pixels();
    let [of_probe, of_object] = groups(model);
    // Light, and where it is.
    let mut light = vec![[0.0; 3]; model.probes];
    for (set, probe) in state.probe.chunks_exact(model.modes[0] * pixels).enumerate() {
        let [sum, y, x] = &mut light[of_probe[set]];
        for (i, v) in probe.iter().enumerate() {
            let (i, power) = (i % pixels, v.norm_sqr());
            *sum += power;
            *y += power * (i / model.frame[1]) as f64;
            *x += power * (i % model.frame[1]) as f64;
        }
    }
    let by = |[sum, y, x]: &[f64; 3]| {
        let off = [y / sum - (model.frame[0] / 2) as f64, x / sum - (model.frame[1] / 2) as f64];
        if *sum > 0.0 && off[0].hypot(off[1]) > tolerance { off.map(|o| -o.round() as i32) } else { [0; 2] }
    };
    let by: Vec<[i32; 2]> = light.iter().map(by).collect();
    if by.iter().all(|by| *by == [0; 2]) {
        return Ok(());
    }
    let of = |groups: &[usize]| groups.iter().map(|group| by.get(*group).copied().unwrap_or_default()).collect::<Vec<_>>();
    stages.roll(&of(&of_probe), &of(&of_object))
}

/// Groups of probes and objects that see each other: for each, the number of the first probe of its group; a number that no probe
/// has for objects without one.
pub(crate) fn groups(model: &Model) -> [Vec<usize>; 2] {
    let mut group: Vec<usize> = (0..model.probes + model.storages.len()).collect();
    let pairs: BTreeSet<(u32, u32)> = model.views.iter().map(|v| (v.probe, v.object)).collect();
    for (probe, object) in pairs {
        let (a, b) = (group[probe as usize], group[model.probes + object as usize]);
        group.iter_mut().filter(|g| **g == a.max(b)).for_each(|g| *g = a.min(b));
    }
    let objects = group.split_off(model.probes);
    [group, objects]
}

/// Makes the modes of every probe orthogonal; the change of basis.
fn orthogonalise(stages: &mut dyn Stages, model: &Model) -> Result<Vec<Complex<f64>>> {
    let count = model.modes[0];
    let products = stages.probe_products()?;
    let basis: Vec<Complex<f64>> = products.chunks_exact(count * count).flat_map(|set| modes::basis(set, count).0).collect();
    stages.mix_probe(&basis)?;
    Ok(basis)
}
