//! Sub-pixel shifts of the probe: `S(d) P = F^-1 exp(-2 pi i k d / n) F P` for the sub-pixel remainder d of a view's position.
//! Unitary, so that what comes back from a view's frame comes back by `S(-d)`, which is its adjoint. Where positions are whole
//! pixels none of this is done.
//!
//! The product `S(d) P O` is the view's wave shifted by d with its frame. No far detector sees that; for a near one, whose pixels
//! lie as the sample's, the frame is shifted back on the way, `S(-d)` being a part of the kernel between the transforms.

use zellige_engine::large::Aligned;
use zellige_engine::parallel::{chunks_mut, each_task, each_with, items};
use zellige_engine::real::Real;

use super::fft::{PAD, Shape, Workspace};
use super::lanes::{Lanes, Number, Work};
use super::store::{planes, planes_mut};
use super::view::Row;
use super::{FixedData, Pair, Scratch};
use crate::model::View;

/// Views whose shifted probes are held at once, where sums go over all views.
pub(super) const BATCH: usize = 64;

/// Probe and object as one view sees them: the probe may be its own.
#[derive(Clone, Copy)]
pub(super) struct ViewInputs<'a, T> {
    pub(super) probe: &'a [T],
    pub(super) object: &'a [T],
}

/// `exp(-2 pi i k d / n)` along both axes, in the order of the transform; nothing in the padding.
pub(super) struct Ramp<T> {
    /// Cosine and sine along rows' numbers (a line of Fourier space, which lies transposed) and along columns'.
    y: [Vec<T>; 2],
    x: [Vec<T>; 2],
}

/// Frequency at index `i` of `n`, as a whole number.
fn frequency(i: usize, n: usize) -> f64 {
    if i < n.div_ceil(2) { i as f64 } else { i as f64 - n as f64 }
}

impl<T: Number> Ramp<T> {
    pub(super) fn new(shape: Shape, by: [f64; 2]) -> Self {
        let axis = |n: usize, padded: usize, by: f64| {
            let mut out = [vec![T::ZERO; padded], vec![T::ZERO; padded]];
            for i in 0..n {
                let (sin, cos) = (-std::f64::consts::TAU * frequency(i, n) * by / n as f64).sin_cos();
                (out[0][i], out[1][i]) = (T::from_f64(cos), T::from_f64(sin));
            }
            out
        };
        Self { y: axis(shape.ny, shape.sy, by[0]), x: axis(shape.nx, shape.sx, by[1]) }
    }

    /// `out = wave` times the ramp, `factor` and, along an axis, `-2 pi i k / n`.
    #[inline(always)]
    pub(super) fn apply(&self, shape: Shape, wave: [&[T]; 2], out: [&mut [T]; 2], factor: f64, along: Option<usize>) {
        let slope = |k: f64, n: usize| T::from_f64(-std::f64::consts::TAU * k / n as f64);
        let slopes: Vec<T> = match along {
            Some(0) => (0..shape.sy).map(|i| if i < shape.ny { slope(frequency(i, shape.ny), shape.ny) } else { T::ZERO }).collect(),
            _ => Vec::new(),
        };
        let factor = T::from_f64(factor);
        let [re, im] = out;
        for x in 0..shape.nx {
            let by = if along == Some(1) { factor * slope(frequency(x, shape.nx), shape.nx) } else { factor };
            let (c, s) = (Row::splat(self.x[0][x] * by), Row::splat(self.x[1][x] * by));
            for y in (0..shape.sy).step_by(PAD) {
                let at = x * shape.sy + y;
                let (d, e) = (Row::load(&self.y[0][y..]), Row::load(&self.y[1][y..]));
                let (mut p, mut q) = (c * d - s * e, c * e + s * d);
                if along == Some(0) {
                    let slope = Row::load(&slopes[y..]);
                    (p, q) = (p * slope, q * slope);
                }
                if along.is_some() {
                    // Times i.
                    (p, q) = (Row::ZERO - q, p);
                }
                let (a, b) = (Row::load(&wave[0][at..]), Row::load(&wave[1][at..]));
                (a * p - b * q).store(&mut re[at..]);
                (a * q + b * p).store(&mut im[at..]);
            }
        }
    }
}

/// Transforms of the modes of probes, `[..][2][plane]`.
struct ProbeTransforms<'a, T> {
    fixed: &'a FixedData<T>,
    /// `[2][ny][sx]`.
    mode: &'a [T],
    to: &'a mut [T],
    workspace: &'a mut Workspace<T>,
}

impl<T: Number> Work<T> for ProbeTransforms<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) {
        let Self { fixed, mode, to, workspace } = self;
        fixed.plan.forward(planes(mode), planes_mut(to), workspace);
    }
}

/// Modes shifted, from their transforms.
pub(super) struct ShiftedModes<'a, T> {
    pub(super) fixed: &'a FixedData<T>,
    pub(super) spectra: &'a [T],
    pub(super) by: [f64; 2],
    /// Derivative with respect to the position along an axis, which replaces the probe.
    pub(super) along: Option<usize>,
    /// `[P][2][ny][sx]`.
    pub(super) out: &'a mut [T],
    pub(super) scratch: &'a mut Scratch<T>,
}

impl<T: Number> Work<T> for ShiftedModes<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) {
        let Self { fixed, spectra, by, along, out, scratch: Scratch { workspace, one, two, .. } } = self;
        let (shape, size) = (fixed.shape, 2 * fixed.shape.plane());
        let ramp = Ramp::new(shape, by);
        let factor = 1.0 / (shape.ny * shape.nx) as f64;
        for (spectrum, out) in spectra.chunks_exact(size).zip(out.chunks_exact_mut(2 * shape.stored())) {
            ramp.apply(shape, planes(spectrum), planes_mut(one), factor, along);
            fixed.plan.inverse(planes(one), planes_mut(two), workspace);
            for (to, from) in planes_mut(out).into_iter().zip(planes(two)) {
                to.copy_from_slice(&from[..shape.stored()]);
            }
        }
    }
}

/// A wave in the frame of a view, moved by some part of a pixel.
struct ShiftedWave<'a, T> {
    fixed: &'a FixedData<T>,
    by: [f64; 2],
    /// `[..][2][ny][sx]`.
    waves: &'a mut [T],
    scratch: &'a mut Scratch<T>,
}

impl<T: Number> Work<T> for ShiftedWave<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) {
        let Self { fixed, by, waves, scratch: Scratch { workspace, one, two, .. } } = self;
        let shape = fixed.shape;
        let ramp = Ramp::new(shape, by);
        let factor = 1.0 / (shape.ny * shape.nx) as f64;
        for wave in waves.chunks_exact_mut(2 * shape.stored()) {
            fixed.plan.forward(planes(wave), planes_mut(one), workspace);
            ramp.apply(shape, planes(one), planes_mut(two), factor, None);
            fixed.plan.inverse(planes(two), planes_mut(one), workspace);
            for (to, from) in planes_mut(wave).into_iter().zip(planes(one)) {
                to.copy_from_slice(&from[..shape.stored()]);
            }
        }
    }
}

/// The near field's kernel with the shift back of a view's frame.
struct ShiftedPropagator<'a, T> {
    fixed: &'a FixedData<T>,
    kernel: &'a [T],
    by: [f64; 2],
    to: &'a mut [T],
}

impl<T: Number> Work<T> for ShiftedPropagator<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) {
        let Self { fixed, kernel, by, to } = self;
        Ramp::new(fixed.shape, [-by[0], -by[1]]).apply(fixed.shape, planes(kernel), planes_mut(to), 1.0, None);
    }
}

/// `to += 2 pi i k / n from` along an axis: in Fourier space, the derivative of the shifted-back quantity with respect to the
/// position.
#[inline(always)]
pub(super) fn add_derivative_ramp<T: Number>(shape: Shape, from: &[T], to: &mut [T], axis: usize) {
    let slope = |i: usize, n: usize| if i < n { T::from_f64(std::f64::consts::TAU * frequency(i, n) / n as f64) } else { T::ZERO };
    let along: Vec<T> = (0..shape.sy).map(|y| slope(y, shape.ny)).collect();
    let ([a, b], [re, im]) = (planes(from), planes_mut(to));
    for x in 0..shape.nx {
        let across = Row::splat(slope(x, shape.nx));
        for y in (0..shape.sy).step_by(PAD) {
            let (at, k) = (x * shape.sy + y, if axis == 0 { Row::load(&along[y..]) } else { across });
            (Row::load(&re[at..]) - k * Row::load(&b[at..])).store(&mut re[at..]);
            (Row::load(&im[at..]) + k * Row::load(&a[at..])).store(&mut im[at..]);
        }
    }
}

impl<T: Number> FixedData<T> {
    /// Prepares the way to a near detector and back for a view; nothing where it is the same for all.
    fn prepare_propagator(&self, by: [f64; 2], workspace: &mut Workspace<T>) {
        if let (Some(kernel), true) = (&self.near, self.subpixel) {
            workspace.near.need(kernel.len());
            T::with(self.isa, ShiftedPropagator { fixed: self, kernel, by, to: &mut workspace.near });
        }
    }

    /// Transforms of all probes, with sub-pixel shifts; nothing otherwise.
    pub(super) fn spectra(&self, probe: &[T]) -> Vec<T> {
        if !self.subpixel {
            return Vec::new();
        }
        let (stored, size) = (2 * self.shape.stored(), 2 * self.shape.plane());
        let mut out = vec![T::ZERO; probe.len() / stored * size];
        self.cpu.install(|| {
            let workspace = || self.plan.workspace();
            each_with(
                workspace,
                (zellige_engine::parallel::chunks(probe, stored), chunks_mut(&mut out, size)),
                |workspace, _, (mode, to)| {
                    T::with(self.isa, ProbeTransforms { fixed: self, mode, to, workspace });
                },
            );
        });
        out
    }

    /// Modes of a set among transforms.
    fn set<'a>(&self, spectra: &'a [T], set: u32) -> &'a [T] {
        let size = self.modes[0] * 2 * self.shape.plane();
        &spectra[set as usize * size..(set as usize + 1) * size]
    }

    /// Derivative of a view's shifted probe with respect to its position along an axis, or without an axis the probe itself.
    pub(super) fn shifted(&self, spectra: &[T], view: &View, by: [f64; 2], along: Option<usize>, out: &mut [T], scratch: &mut Scratch<T>) {
        T::with(self.isa, ShiftedModes { fixed: self, spectra: self.set(spectra, view.probe), by, along, out, scratch });
    }

    /// Probes that a view sees: unchanged, or shifted into `own` where there are transforms, as the only set.
    pub(super) fn seen<'a>(
        &self,
        plain: ViewInputs<'a, T>,
        spectra: &[T],
        (view, by): (View, [f64; 2]),
        own: &'a mut Aligned<T>,
        scratch: &mut Scratch<T>,
    ) -> (ViewInputs<'a, T>, View) {
        if spectra.is_empty() {
            return (plain, view);
        }
        own.need(self.probe_len());
        self.shifted(spectra, &view, by, None, own, scratch);
        self.prepare_propagator(by, &mut scratch.workspace);
        (ViewInputs { probe: own, ..plain }, View { probe: 0, ..view })
    }

    /// The shifted probes of listed views, one behind the other; nothing where views see whole pixels.
    pub(super) fn all_shifted(&self, spectra: &[T], views: &[View], shifts: &[[f64; 2]], list: &[[u32; 2]]) -> Vec<T> {
        if spectra.is_empty() {
            return Vec::new();
        }
        let size = self.probe_len();
        let mut out = vec![T::ZERO; list.len() * size];
        self.cpu.install(|| {
            each_task((chunks_mut(&mut out, size), items(list)), |_, (out, [j, _])| {
                let j = *j as usize;
                self.shifted(spectra, &views[j], shifts[j], None, out, &mut self.scratch());
            });
        });
        out
    }

    /// Probe and object that a view sees: those of a pair, with the probe from position `slot` of [`FixedData::all_shifted`] as the
    /// only set where it has one of its own.
    pub(super) fn own_or<'a>(
        &self,
        pair: &'a Pair<T>,
        all: &'a [T],
        slot: usize,
        (view, by): (View, [f64; 2]),
        scratch: &mut Scratch<T>,
    ) -> (ViewInputs<'a, T>, View) {
        let seen = ViewInputs { probe: &pair.probe, object: &pair.object };
        if !self.subpixel {
            return (seen, view);
        }
        self.prepare_propagator(by, &mut scratch.workspace);
        (ViewInputs { probe: &all[slot * self.probe_len()..(slot + 1) * self.probe_len()], ..seen }, View { probe: 0, ..view })
    }

    /// Moves waves in the frame of a view by parts of a pixel.
    pub(super) fn moved(&self, waves: &mut [T], by: [f64; 2]) {
        T::with(self.isa, ShiftedWave { fixed: self, by, waves, scratch: &mut self.scratch() });
    }
}
