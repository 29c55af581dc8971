//! The Fourier step of the projection engines, view by view.

use zellige_engine::error::Result;
use zellige_engine::large::Large;
use zellige_engine::parallel::{chunks_mut, each, each_task, items, items_mut};
use zellige_engine::real::Real;

use super::fft::PAD;
use super::lanes::{Isa, Lanes, Number, Work, per_isa};
use super::shift::ViewInputs;
use super::store::{planes, planes_mut};
use super::view::{Row, sum};
use super::{CpuStages, FixedData, Scratch};
use crate::model::View;
use crate::physics::{deviation, modulus_factor, photon_error, relaxation};
use crate::stages::Projection;

/// Kept off zero in the denominator of the modulus.
const GUARD: f64 = 1e-10;

/// A view's step.
struct FourierStep<'a, T> {
    fixed: &'a FixedData<T>,
    rule: &'a Projection,
    probe: &'a [T],
    object: &'a [T],
    view: View,
    mag: &'a [T],
    valid: f64,
    bound: f64,
    exit: &'a mut [T],
    scratch: &'a mut Scratch<T>,
}

impl<T: Number> Work<T> for FourierStep<'_, T> {
    type Out = [f64; 3];

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) -> [f64; 3] {
        let Self { fixed, rule, probe, object, view, mag, valid, bound, exit, scratch } = self;
        let Scratch { workspace, product, wave, one, two, plane: [power, ..], .. } = scratch;
        let shape = fixed.shape;
        let (size, stored) = (2 * shape.plane(), 2 * shape.stored());
        fixed.products(probe, object, &view, product);
        let mut likelihood = 0.0;
        if rule.likelihood {
            for (from, to) in product.chunks_exact(size).zip(wave.chunks_exact_mut(size)) {
                fixed.propagate(from, to, two, workspace);
            }
            likelihood = fixed.photons(wave, power, mag);
        }
        // If no exit wave is mixed in, the propagated wave is there already.
        if rule.c != 1.0 || !rule.likelihood {
            let parts = [rule.c, 1.0 - rule.c].map(T::from_f64);
            for (k, exit) in exit.chunks_exact(stored).enumerate() {
                let at = k * size..(k + 1) * size;
                mix(shape.stored(), parts, &product[at.clone()], exit, one);
                fixed.propagate(one, &mut wave[at], two, workspace);
            }
        }
        let error = fixed.constrain(wave, power, mag, valid, bound);
        let mut change = 0.0;
        for (k, exit) in exit.chunks_exact_mut(stored).enumerate() {
            let at = k * size..(k + 1) * size;
            fixed.back(&wave[at.clone()], one, two, workspace);
            change += update(fixed, rule, &product[at], one, exit);
        }
        [error, likelihood, change / (shape.ny * shape.nx) as f64]
    }
}

/// `out = a product + b exit`, pixel by pixel.
#[inline(always)]
pub(super) fn mix<T: Number>(pixels: usize, [a, b]: [T; 2], product: &[T], exit: &[T], out: &mut [T]) {
    let (a, b) = (Row::splat(a), Row::splat(b));
    let half = product.len() / 2;
    for plane in 0..2 {
        let (product, exit, out) = (&product[plane * half..], &exit[plane * pixels..], &mut out[plane * half..]);
        for i in (0..pixels).step_by(PAD) {
            (a * Row::load(&product[i..]) + b * Row::load(&exit[i..])).store(&mut out[i..]);
        }
    }
}

/// `exit += b F(..) + a P O - (a + b) exit`; gives the squared change.
#[inline(always)]
fn update<T: Number>(fixed: &FixedData<T>, rule: &Projection, product: &[T], constrained: &[T], exit: &mut [T]) -> f64 {
    let [a, b, ab] = [rule.a, rule.b, rule.a + rule.b].map(|x| Row::splat(T::from_f64(x)));
    let (half, pixels) = (product.len() / 2, fixed.shape.stored());
    let mut change = 0.0;
    for plane in 0..2 {
        let (product, constrained) = (&product[plane * half..], &constrained[plane * half..]);
        let exit = &mut exit[plane * pixels..(plane + 1) * pixels];
        change += sum!(fixed.shape.ny, fixed.shape.sx, |i| {
            let old = Row::load(&exit[i..]);
            let d = b * Row::load(&constrained[i..]) + a * Row::load(&product[i..]) - ab * old;
            (old + d).store(&mut exit[i..]);
            d * d
        });
    }
    change
}

/// Updates as `update` does, and writes `out = psi - P O`; the exit wave is `P O` (and not kept) if `exit` is empty.
#[inline(always)]
pub(super) fn update_to<T: Number>(
    fixed: &FixedData<T>,
    [a, b]: [f64; 2],
    product: &[T],
    constrained: &[T],
    exit: &mut [T],
    out: &mut [T],
) -> f64 {
    let [a, b, ab] = [a, b, a + b].map(|x| Row::splat(T::from_f64(x)));
    let (half, pixels) = (product.len() / 2, fixed.shape.stored());
    let mut change = 0.0;
    for plane in 0..2 {
        let (product, constrained) = (&product[plane * half..], &constrained[plane * half..]);
        let out = &mut out[plane * pixels..(plane + 1) * pixels];
        if exit.is_empty() {
            change += sum!(fixed.shape.ny, fixed.shape.sx, |i| {
                let d = b * (Row::load(&constrained[i..]) - Row::load(&product[i..]));
                d.store(&mut out[i..]);
                d * d
            });
        } else {
            let exit = &mut exit[plane * pixels..(plane + 1) * pixels];
            change += sum!(fixed.shape.ny, fixed.shape.sx, |i| {
                let (old, product) = (Row::load(&exit[i..]), Row::load(&product[i..]));
                let d = b * Row::load(&constrained[i..]) + a * product - ab * old;
                let new = old + d;
                new.store(&mut exit[i..]);
                (new - product).store(&mut out[i..]);
                d * d
            });
        }
    }
    change
}

impl<T: Number> FixedData<T> {
    /// Returns true if one wave alone makes the counts of its pixels: no sums over modes or bins.
    #[inline(always)]
    fn alone(&self) -> bool {
        self.exits() == 1 && self.bins.single()
    }

    per_isa! {
        /// Mean over the frame of the squared deviation of the counts of waves over their variance plus one. `power` is a buffer of
        /// a plane.
        fn photons(&self, waves: &[T], power: &mut [T], mag: &[T]) -> f64 = photons_inlined;
    }

    #[inline(always)]
    fn photons_inlined(&self, waves: &[T], power: &mut [T], mag: &[T]) -> f64 {
        let [lines, length] = self.detector();
        if !self.alone() {
            self.intensity(waves, power);
            return self.photons_of(power, mag);
        }
        let ([re, im], scale) = (planes(waves), Row::splat(self.scale() * self.scale()));
        let all = sum!(lines, length, |i| {
            let (a, b) = (Row::load(&re[i..]), Row::load(&im[i..]));
            photon_error(Row::load(&mag[i..]), (a * a + b * b) * scale)
        });
        all / self.counted()
    }

    per_isa! {
        /// Error of the likelihood from intensities as they are counted.
        fn photons_of(&self, power: &[T], mag: &[T]) -> f64 = photons_of_inlined;
    }

    #[inline(always)]
    fn photons_of_inlined(&self, power: &[T], mag: &[T]) -> f64 {
        let [lines, length] = self.detector();
        sum!(lines, length, |i| photon_error(Row::load(&mag[i..]), Row::load(&power[i..]))) / self.counted()
    }

    per_isa! {
        /// Puts the measured moduli to waves, as far as `bound` does not let the deviation through, with the factor
        /// that the way back needs. Gives the mean squared deviation. `power` is a buffer of a plane.
        fn constrain(&self, waves: &mut [T], power: &mut [T], mag: &[T], valid: f64, bound: f64) -> f64 = constrain_inlined;
    }

    #[inline(always)]
    fn constrain_inlined(&self, waves: &mut [T], power: &mut [T], mag: &[T], valid: f64, bound: f64) -> f64 {
        let ([lines, length], alone) = (self.detector(), self.alone());
        let scale = Row::splat(self.scale() * self.scale());
        let error = if alone {
            let [re, im] = planes(waves);
            sum!(lines, length, |i| {
                let (a, b) = (Row::load(&re[i..]), Row::load(&im[i..]));
                let af = ((a * a + b * b) * scale).sqrt();
                af.store(&mut power[i..]);
                deviation(Row::load(&mag[i..]), af)
            })
        } else {
            self.intensity(waves, power);
            sum!(lines, length, |i| {
                let af = Row::load(&power[i..]).sqrt();
                af.store(&mut power[i..]);
                deviation(Row::load(&mag[i..]), af)
            })
        };
        let error = error / valid.max(1.0);
        let relax = relaxation(error, bound);
        let (within, relax, guard) = (relax >= 1.0, Row::from_f64(relax), Row::from_f64(GUARD));
        let [re, im] = planes_mut(waves);
        for i in (0..self.bins.plane()).step_by(PAD) {
            let factor = if within { Row::ONE } else { modulus_factor(Row::load(&mag[i..]), Row::load(&power[i..]), relax, guard) };
            let factor = factor * scale;
            if alone {
                (Row::load(&re[i..]) * factor).store(&mut re[i..]);
                (Row::load(&im[i..]) * factor).store(&mut im[i..]);
            } else {
                factor.store(&mut power[i..]);
            }
        }
        if !alone {
            self.apply(waves, power);
        }
        error
    }
}

impl<T: Number> CpuStages<T> {
    /// The Fourier step over all own views.
    pub(super) fn fourier(&mut self, rule: &Projection) {
        let Self { fixed, views, shifts, state, exit, errors, .. } = self;
        let fixed = &*fixed;
        let size = fixed.exits() * 2 * fixed.shape.stored();
        let spectra = fixed.spectra(&state.probe);
        let plain = ViewInputs { probe: &state.probe, object: &state.object };
        fixed.cpu.install(|| {
            each_task((chunks_mut(exit, size), items_mut(errors)), |slot, (exit, errors)| {
                let (j, scratch) = (fixed.own.start + slot, &mut *fixed.scratch());
                let mut own = std::mem::take(&mut scratch.own);
                let (ViewInputs { probe, object }, view) = fixed.seen(plain, &spectra, (views[j], shifts[j]), &mut own, scratch);
                let (mag, [valid, noise]) = (fixed.moduli(j), fixed.valid(j));
                let bound = rule.bound + rule.noise * noise;
                *errors = T::with(fixed.isa, FourierStep { fixed, rule, probe, object, view, mag, valid, bound, exit, scratch });
                scratch.own = own;
            });
        });
    }

    /// Exit waves of the present probe and object.
    pub(super) fn exits(&mut self) -> Result<()> {
        let Self { fixed, views, shifts, all, state, exit, folder, .. } = self;
        let fixed = &*fixed;
        let (stored, plane) = (fixed.shape.stored(), fixed.shape.plane());
        let len = fixed.own.len() * fixed.exits() * 2 * stored;
        if exit.len() != len {
            *exit = Large::zeros(len, folder.as_deref())?;
        }
        let spectra = fixed.spectra(&state.probe);
        let plain = ViewInputs { probe: &state.probe, object: &state.object };
        fixed.cpu.install(|| {
            each((chunks_mut(exit, fixed.exits() * 2 * stored), items(&*all)), |_, (exit, [j, _])| {
                let j = *j as usize;
                let scratch = &mut *fixed.scratch();
                let mut own = std::mem::take(&mut scratch.own);
                let (ViewInputs { probe, object }, view) = fixed.seen(plain, &spectra, (views[j], shifts[j]), &mut own, scratch);
                fixed.products(probe, object, &view, &mut scratch.product);
                for (to, from) in exit.chunks_exact_mut(stored).zip(scratch.product.chunks_exact(plane)) {
                    to.copy_from_slice(&from[..stored]);
                }
                scratch.own = own;
            });
        });
        Ok(())
    }
}
