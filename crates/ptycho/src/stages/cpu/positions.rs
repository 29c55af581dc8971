//! Error of views at other positions.

use zellige_engine::error::Result;
use zellige_engine::parallel::{items, map_tasks};
use zellige_engine::real::{Real, select};

use super::fft::PAD;
use super::lanes::{Lanes, Number, Work};
use super::shift::{ViewInputs, add_derivative_ramp};
use super::store::{planes, planes_mut};
use super::view::{Row, product, sum, total};
use super::{CpuStages, FixedData, Scratch};
use crate::model::View;
use crate::physics::deviation;

/// Mean squared deviation of the moduli of a view.
struct Trial<'a, T> {
    fixed: &'a FixedData<T>,
    state: ViewInputs<'a, T>,
    view: View,
    mag: &'a [T],
    valid: f64,
    scratch: &'a mut Scratch<T>,
}

impl<T: Number> Work<T> for Trial<'_, T> {
    type Out = f64;

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) -> f64 {
        let Self { fixed, state, view, mag, valid, scratch } = self;
        let Scratch { workspace, product, wave, two, plane: [power, ..], .. } = scratch;
        let size = 2 * fixed.shape.plane();
        fixed.products(state.probe, state.object, &view, product);
        for (from, to) in product.chunks_exact(size).zip(wave.chunks_exact_mut(size)) {
            fixed.propagate(from, to, two, workspace);
        }
        fixed.intensity(wave, power);
        let [lines, length] = fixed.detector();
        sum!(lines, length, |i| deviation(Row::load(&mag[i..]), Row::load(&power[i..]).sqrt())) / valid.max(1.0)
    }
}

/// Derivatives with respect to the position of a view: gradient (y, x) and curvature (yy, xx, yx) of the summed squared deviation.
struct PositionSlope<'a, T> {
    fixed: &'a FixedData<T>,
    state: ViewInputs<'a, T>,
    /// Derivatives of the probe with respect to the position along both axes, where it is shifted; those of the object, on whole
    /// pixels, otherwise.
    along: Option<[&'a [T]; 2]>,
    view: View,
    mag: &'a [T],
    scratch: &'a mut Scratch<T>,
}

/// Central differences of a layer about a view's patch along rows (`d = 0`) or columns; one-sided at the edges of the storage.
#[inline(always)]
fn differences<T: Number>(fixed: &FixedData<T>, storage: &super::StoragePlanes, layer: [&[T]; 2], view: &View, d: usize, out: &mut [T]) {
    let shape = fixed.shape;
    let [height, width] = storage.shape;
    for (from, to) in layer.into_iter().zip(planes_mut(out)) {
        for y in 0..shape.ny {
            for x in 0..shape.nx {
                let (row, col) = (view.row as usize + y, view.col as usize + x);
                let (at, n, stride) = if d == 0 { (row, height, width) } else { (col, width, 1) };
                let here = row * width + col;
                let (low, high) = (usize::from(at > 0), usize::from(at + 1 < n));
                let span = T::from_f64(1.0 / (low + high).max(1) as f64);
                to[y * shape.sx + x] = (from[here + high * stride] - from[here - low * stride]) * span;
            }
        }
    }
}

impl<T: Number> Work<T> for PositionSlope<'_, T> {
    type Out = [f64; 5];

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) -> [f64; 5] {
        let Self { fixed, state, along, view, mag, scratch } = self;
        let Scratch { workspace, product: waves, wave, one, two, more, plane: [power, dy, dx], .. } = scratch;
        let size = 2 * fixed.shape.plane();
        let storage = fixed.storages[view.object as usize];
        let scale = Row::splat(fixed.scale() * fixed.scale());
        for plane in [&mut *power, dy, dx] {
            plane.fill(T::ZERO);
        }
        // The patch of differences is a storage of its own.
        let patch = super::StoragePlanes { shape: [fixed.shape.ny, fixed.shape.sx], offset: 0, plane: fixed.shape.plane(), ..storage };
        let corner = View { row: 0, col: 0, ..view };
        for p in 0..fixed.modes[0] {
            let probe = fixed.probe(state.probe, view.probe, p);
            for o in 0..fixed.modes[1] {
                let layer = storage.layer(state.object, o);
                let first = &mut wave[..size];
                product(fixed, probe, layer, &storage, &view, &mut waves[..size]);
                fixed.propagate(&waves[..size], first, two, workspace);
                let [second, spectrum, _] = &mut *more;
                let (second, near) = (&mut second[..size], fixed.subpixel && !fixed.far());
                if near {
                    spectrum[..size].copy_from_slice(two);
                }
                for (d, to) in [&mut *dy, dx].into_iter().enumerate() {
                    if let Some(along) = along {
                        product(fixed, fixed.probe(along[d], 0, p), layer, &storage, &view, &mut waves[..size]);
                    } else {
                        differences(fixed, &storage, layer, &view, d, one);
                        product(fixed, probe, planes(one), &patch, &corner, &mut waves[..size]);
                    }
                    if near {
                        // The frame, which is shifted back, moves with the position as well.
                        fixed.plan.forward(planes(&waves[..size]), planes_mut(two), workspace);
                        fixed.times(two, &workspace.near, false);
                        add_derivative_ramp(fixed.shape, &spectrum[..size], two, d);
                        fixed.plan.inverse(planes(two), planes_mut(second), workspace);
                    } else {
                        fixed.propagate(&waves[..size], second, two, workspace);
                    }
                    let half = size / 2;
                    for i in (0..half).step_by(PAD) {
                        let dot = Row::load(&first[i..]) * Row::load(&second[i..])
                            + Row::load(&first[half + i..]) * Row::load(&second[half + i..]);
                        (Row::load(&to[i..]) + scale * dot).store(&mut to[i..]);
                        if d == 0 {
                            let (a, b) = (Row::load(&first[i..]), Row::load(&first[half + i..]));
                            (Row::load(&power[i..]) + scale * (a * a + b * b)).store(&mut power[i..]);
                        }
                    }
                }
            }
        }
        for plane in [&mut *power, dy, dx] {
            fixed.bins.sum(plane);
        }
        let [lines, length] = fixed.detector();
        let mut all = [0.0; 5];
        for line in 0..lines {
            let mut part = [Row::<T>::ZERO; 5];
            for i in (line * length..(line + 1) * length).step_by(PAD) {
                let m = Row::load(&mag[i..]);
                let af = Row::load(&power[i..]).sqrt();
                let counts = m.ge(Row::ZERO) & af.gt(Row::ZERO);
                let inverse = select(counts, Row::ONE / af, Row::ZERO);
                // Derivatives of the modulus.
                let (y, x) = (Row::load(&dy[i..]) * inverse, Row::load(&dx[i..]) * inverse);
                let off = select(counts, af - m, Row::ZERO) * Row::TWO;
                for (part, value) in part.iter_mut().zip([off * y, off * x, Row::TWO * y * y, Row::TWO * x * x, Row::TWO * y * x]) {
                    *part += value;
                }
            }
            for (all, part) in all.iter_mut().zip(part) {
                *all += total(part);
            }
        }
        all
    }
}

impl<T: Number> CpuStages<T> {
    /// Errors of all views, moved.
    pub(super) fn trials(&self, moved: &[[i32; 2]]) -> Result<Vec<f64>> {
        let Self { fixed, views, shifts, all, state, .. } = self;
        let spectra = fixed.spectra(&state.probe);
        let plain = ViewInputs { probe: &state.probe, object: &state.object };
        let one = |_, [j, _]: &[u32; 2]| {
            let j = *j as usize;
            let view = View { row: views[j].row + moved[j][0], col: views[j].col + moved[j][1], ..views[j] };
            let (mag, valid, scratch) = (fixed.moduli(j), fixed.valid(j)[0], &mut *fixed.scratch());
            let mut own = std::mem::take(&mut scratch.own);
            let (state, view) = fixed.seen(plain, &spectra, (view, shifts[j]), &mut own, scratch);
            let error = T::with(fixed.isa, Trial { fixed, state, view, mag, valid, scratch });
            scratch.own = own;
            error
        };
        fixed.share.gathered(fixed.cpu.install(|| map_tasks(items(all), one)))
    }

    /// Derivatives of all views.
    pub(super) fn slopes(&self) -> Result<Vec<[f64; 5]>> {
        let Self { fixed, views, shifts, all, state, .. } = self;
        let spectra = fixed.spectra(&state.probe);
        let plain = ViewInputs { probe: &state.probe, object: &state.object };
        let one = |_, [j, _]: &[u32; 2]| {
            let (j, view) = (*j as usize, &views[*j as usize]);
            let scratch = &mut *fixed.scratch();
            scratch.need(2);
            let mut own = std::mem::take(&mut scratch.own);
            let (state, seen) = fixed.seen(plain, &spectra, (*view, shifts[j]), &mut own, scratch);
            let mut along = [Vec::new(), Vec::new()];
            if fixed.subpixel {
                for (d, along) in along.iter_mut().enumerate() {
                    along.resize(fixed.probe_len(), T::ZERO);
                    fixed.shifted(&spectra, view, shifts[j], Some(d), along, scratch);
                }
            }
            let derivatives = fixed.subpixel.then(|| along.each_ref().map(|a| &a[..]));
            let slope = PositionSlope { fixed, state, along: derivatives, view: seen, mag: fixed.moduli(j), scratch };
            let found = T::with(fixed.isa, slope);
            scratch.own = own;
            found
        };
        fixed.share.gathered(fixed.cpu.install(|| map_tasks(items(all), one)))
    }
}
