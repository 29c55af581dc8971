//! The likelihood's gradient and its expansion along a direction. Views go in chunks of a fixed number: their waves are computed by
//! all threads, then summed in the order of the views.

use zellige_engine::error::Result;
use zellige_engine::large::Aligned;
use zellige_engine::parallel::{chunks_mut, items, map_tasks};
use zellige_engine::real::{Real, select};

use super::fft::PAD;
use super::lanes::{Lanes, Number, Work};
use super::object_sums::ObjectSums;
use super::overlap::{ViewList, Waves};
use super::shift::ViewInputs;
use super::view::{Row, product, sum};
use super::{CpuStages, FixedData, Pair, Scratch, blocks};
use crate::model::View;
use crate::physics::gaussian_weight;
use crate::stages::{Likelihood, Noise};

/// Views of a chunk: in one part their waves are held at once, and what they add to a probe's gradient is summed by itself first.
const CHUNK: usize = 64;
/// Added to the modelled counts under Poisson's noise, as PtyPy does.
const FLOOR: f64 = 1e-6;

/// `ln x!` for whole and other numbers above zero, Stirling's series from 8 on.
fn ln_factorial(counts: f64) -> f64 {
    let (mut x, mut shift) = (counts + 1.0, 0.0);
    while x < 8.0 {
        shift += x.ln();
        x += 1.0;
    }
    let series = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * x * x)) / (x * x)) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - shift
}

/// A view's gradient wave.
struct Gradient<'a, T> {
    fixed: &'a FixedData<T>,
    rule: &'a Likelihood,
    probe: &'a [T],
    object: &'a [T],
    view: View,
    mag: &'a [T],
    /// Poisson's constant.
    constant: f64,
    /// `[K][2][ny][sx]`.
    out: &'a mut [T],
    scratch: &'a mut Scratch<T>,
}

impl<T: Number> Work<T> for Gradient<'_, T> {
    /// Value, its constant included, and the factor of the brightness.
    type Out = [f64; 2];

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) -> [f64; 2] {
        let Self { fixed, rule, probe, object, view, mag, constant, out, scratch } = self;
        let Scratch { workspace, product, wave, one, two, plane: [power, ..], .. } = scratch;
        let (size, stored) = (2 * fixed.shape.plane(), 2 * fixed.shape.stored());
        fixed.products(probe, object, &view, product);
        for (from, to) in product.chunks_exact(size).zip(wave.chunks_exact_mut(size)) {
            fixed.propagate(from, to, two, workspace);
        }
        fixed.intensity(wave, power);
        let factor = if rule.floating { fixed.brightness(rule.noise, power, mag) } else { 1.0 };
        // Factors of each wave: derivative by the intensity, factor of the transforms, brightness where it counts.
        let scale = fixed.scale().to_f64().powi(2) * if rule.floating_left_out { 1.0 } else { factor };
        let (scale, brightness) = (Row::<T>::from_f64(scale), Row::<T>::from_f64(factor));
        let [lines, length] = fixed.detector();
        let value = match rule.noise {
            Noise::Gaussian => sum!(lines, length, |i| {
                let m = Row::load(&mag[i..]);
                let off = Row::load(&power[i..]) * brightness - m * m;
                let weighed = gaussian_weight(m) * off;
                (weighed * scale * Row::TWO).store(&mut power[i..]);
                weighed * off
            }),
            Noise::Poisson => {
                let value = poisson(&power[..mag.len()], mag, factor) + constant;
                for i in (0..mag.len()).step_by(PAD) {
                    let m = Row::load(&mag[i..]);
                    let model = Row::load(&power[i..]) * brightness + Row::from_f64(FLOOR);
                    let slope = (Row::ONE - m * m / model) * scale;
                    select(m.lt(Row::ZERO), Row::ZERO, slope).store(&mut power[i..]);
                }
                value
            }
            Noise::Euclid => sum!(lines, length, |i| {
                let m = Row::load(&mag[i..]);
                let af = (Row::load(&power[i..]) * brightness).sqrt();
                let off = select(m.lt(Row::ZERO), Row::ZERO, af - m);
                let slope = select(af.gt(Row::ZERO), off / af, Row::ZERO);
                (slope * scale).store(&mut power[i..]);
                off * off
            }),
        };
        fixed.apply(wave, power);
        for (k, out) in out.chunks_exact_mut(stored).enumerate() {
            fixed.back(&wave[k * size..(k + 1) * size], one, two, workspace);
            for plane in 0..2 {
                let from = &one[plane * fixed.shape.plane()..];
                out[plane * stored / 2..(plane + 1) * stored / 2].copy_from_slice(&from[..stored / 2]);
            }
        }
        [value, factor]
    }
}

/// Poisson's value but for its constant, in doubles: `I - n ln I`.
fn poisson<T: Number>(power: &[T], mag: &[T], factor: f64) -> f64 {
    let mut all = 0.0;
    for (power, mag) in power.iter().zip(mag) {
        let m = mag.to_f64();
        if m >= 0.0 {
            let model = power.to_f64() * factor + FLOOR;
            all += model - m * m * model.ln();
        }
    }
    all
}

impl<T: Number> FixedData<T> {
    /// The factor of a frame's brightness that fits best.
    #[inline(always)]
    fn brightness(&self, noise: Noise, power: &[T], mag: &[T]) -> f64 {
        let [lines, length] = self.detector();
        let mut both = [0.0; 2];
        for (i, both) in both.iter_mut().enumerate() {
            *both = sum!(lines, length, |at| {
                let (m, p) = (Row::load(&mag[at..]), Row::load(&power[at..]));
                let other = if i == 0 { m * m } else { p };
                match noise {
                    Noise::Gaussian => gaussian_weight(m) * p * other,
                    Noise::Poisson => select(m.lt(Row::ZERO), Row::ZERO, other),
                    // Of moduli: their ratio squared below.
                    Noise::Euclid => select(m.lt(Row::ZERO), Row::ZERO, p.sqrt() * other.sqrt()),
                }
            });
        }
        let ratio = both[0] / both[1];
        match (noise, ratio.is_finite()) {
            (_, false) => 1.0,
            (Noise::Euclid, _) => ratio * ratio,
            _ => ratio,
        }
    }
}

/// A view's expansion along the direction.
struct LineExpansion<'a, T> {
    fixed: &'a FixedData<T>,
    noise: Noise,
    state: ViewInputs<'a, T>,
    direction: ViewInputs<'a, T>,
    view: View,
    mag: &'a [T],
    factor: f64,
    scratch: &'a mut Scratch<T>,
}

impl<T: Number> Work<T> for LineExpansion<'_, T> {
    type Out = [f64; 2];

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) -> [f64; 2] {
        let Self { fixed, noise, state, direction, view, mag, factor, scratch } = self;
        let Scratch { workspace, product: waves, wave, one, two, more, plane: [a0, a1, a2], .. } = scratch;
        let size = 2 * fixed.shape.plane();
        let storage = fixed.storages[view.object as usize];
        for plane in [&mut *a0, a1, a2] {
            plane.fill(T::ZERO);
        }
        let scale = fixed.scale() * fixed.scale() * T::from_f64(factor);
        for p in 0..fixed.modes[0] {
            let probes = [state.probe, direction.probe].map(|probe| fixed.probe(probe, view.probe, p));
            for o in 0..fixed.modes[1] {
                let objects = [state.object, direction.object].map(|object| storage.layer(object, o));
                // Three waves: P O, P dO + dP O, dP dO. The rooms of one mode are used again for the next.
                let first = &mut wave[..size];
                product(fixed, probes[0], objects[0], &storage, &view, &mut waves[..size]);
                fixed.propagate(&waves[..size], first, two, workspace);
                product(fixed, probes[0], objects[1], &storage, &view, &mut waves[..size]);
                product(fixed, probes[1], objects[0], &storage, &view, one);
                for i in (0..size).step_by(PAD) {
                    (Row::load(&waves[i..]) + Row::load(&one[i..])).store(&mut waves[i..]);
                }
                let [second, third] = fixed.pair(more);
                fixed.propagate(&waves[..size], second, two, workspace);
                product(fixed, probes[1], objects[1], &storage, &view, &mut waves[..size]);
                fixed.propagate(&waves[..size], third, two, workspace);
                add_powers([first, second, third], [&mut *a0, &mut *a1, &mut *a2], scale);
            }
        }
        for plane in [&mut *a0, a1, a2] {
            fixed.bins.sum(plane);
        }
        expand(fixed, noise, [a0, a1, a2], mag)
    }
}

/// Adds `|f|^2`, `2 Re(f a*)` and `2 Re(f b*) + |a|^2` of the waves f, a and b, scaled.
#[inline(always)]
#[allow(clippy::needless_pass_by_value)] // planes to write to
fn add_powers<T: Number>(waves: [&[T]; 3], to: [&mut [T]; 3], scale: T) {
    let half = waves[0].len() / 2;
    let scale = Row::splat(scale);
    for i in (0..half).step_by(PAD) {
        let (f0, f1) = (Row::load(&waves[0][i..]), Row::load(&waves[0][half + i..]));
        let (a0, a1) = (Row::load(&waves[1][i..]), Row::load(&waves[1][half + i..]));
        let (b0, b1) = (Row::load(&waves[2][i..]), Row::load(&waves[2][half + i..]));
        let sums = [f0 * f0 + f1 * f1, Row::TWO * (f0 * a0 + f1 * a1), Row::TWO * (f0 * b0 + f1 * b1) + (a0 * a0 + a1 * a1)];
        for j in 0..3 {
            (Row::load(&to[j][i..]) + scale * sums[j]).store(&mut to[j][i..]);
        }
    }
}

/// Coefficients of the first and second order from those of the intensity, in doubles.
#[inline(always)]
fn expand<T: Number>(fixed: &FixedData<T>, noise: Noise, [a0, a1, a2]: [&[T]; 3], mag: &[T]) -> [f64; 2] {
    let [lines, length] = fixed.detector();
    let mut both = [0.0; 2];
    for line in 0..lines {
        let mut part = [Row::<T>::ZERO; 2];
        for i in (line * length..(line + 1) * length).step_by(PAD) {
            let (i0, i1, i2) = (Row::load(&a0[i..]), Row::load(&a1[i..]), Row::load(&a2[i..]));
            let m = Row::load(&mag[i..]);
            let valid = m.ge(Row::ZERO);
            let [b1, b2] = match noise {
                Noise::Gaussian => {
                    let (w, off) = (gaussian_weight(m), i0 - m * m);
                    [w * Row::TWO * off * i1, w * (i1 * i1 + Row::TWO * off * i2)]
                }
                Noise::Poisson => {
                    let i0 = i0 + Row::from_f64(FLOOR);
                    let (slope, ratio) = (Row::ONE - m * m / i0, i1 / i0);
                    [i1 * slope, i2 * slope + Row::HALF * (m * m) * (ratio * ratio)]
                }
                Noise::Euclid => {
                    let lit = i0.gt(Row::ZERO);
                    let part = select(lit, m / i0.sqrt(), Row::ZERO);
                    let curve = select(lit, part * i1 * i1 / (Row::from_f64(4.0) * i0), Row::ZERO);
                    [(Row::ONE - part) * i1, (Row::ONE - part) * i2 + curve]
                }
            };
            part[0] += select(valid, b1, Row::ZERO);
            part[1] += select(valid, b2, Row::ZERO);
        }
        both = [both[0] + super::view::total(part[0]), both[1] + super::view::total(part[1])];
    }
    both
}

impl<T: Number> CpuStages<T> {
    /// Gradient into the given pair; value.
    pub(super) fn likelihood_gradient(&mut self, rule: &Likelihood, gradient: &mut Pair<T>) -> Result<f64> {
        let Self { fixed, views, shifts, all, adders, state, errors, factors, constants, .. } = self;
        let fixed = &*fixed;
        if rule.noise == Noise::Poisson && constants.is_empty() {
            // `sum ln n!` of each own frame: as expensive as a transform, and always the same.
            let one = |_, [j, _]: &[u32; 2]| {
                let valid = fixed.moduli(*j as usize).iter().map(|m| m.to_f64()).filter(|m| *m >= 0.0);
                valid.map(|m| ln_factorial(m * m)).sum()
            };
            *constants = fixed.cpu.install(|| map_tasks(items(all), one));
        }
        gradient.probe.fill(T::ZERO);
        gradient.object.fill(T::ZERO);
        let size = fixed.exits() * 2 * fixed.shape.stored();
        let blocks = blocks(&fixed.share, all, CHUNK);
        let mut waves = vec![T::ZERO; blocks.iter().map(|block| block.len()).max().unwrap_or(0) * size];
        let mut sums = rule.object.then(|| ObjectSums::zeros(fixed));
        let pixels = fixed.counted();
        let spectra = fixed.spectra(&state.probe);
        let mut values = Vec::with_capacity(all.len());
        for block in blocks {
            let own = fixed.all_shifted(&spectra, views, shifts, block);
            let found: Vec<[f64; 2]> = fixed.cpu.install(|| {
                let one = |at: usize, ([j, slot], out): (&[u32; 2], &mut [T])| {
                    let j = *j as usize;
                    let (constant, scratch) = (constants.get(*slot as usize).copied().unwrap_or(0.0), &mut *fixed.scratch());
                    let (ViewInputs { probe, object }, view) = fixed.own_or(state, &own, at, (views[j], shifts[j]), scratch);
                    let mag = fixed.moduli(j);
                    T::with(fixed.isa, Gradient { fixed, rule, probe, object, view, mag, constant, out, scratch })
                };
                map_tasks((items(block), chunks_mut(&mut waves, size)), one)
            });
            for ([_, slot], [here, factor]) in block.iter().zip(&found) {
                values.push(*here);
                errors[*slot as usize] = [0.0, here / pixels, 0.0];
                factors[*slot as usize] = *factor;
            }
            let list: Vec<[u32; 2]> = block.iter().enumerate().map(|(at, [j, _])| [*j, at as u32]).collect();
            let waves = Waves { views, exit: &waves, own: fixed.subpixel, share: &fixed.share };
            if let Some(sums) = &mut sums {
                sums.add(fixed, waves, &list, if fixed.subpixel { &own } else { &state.probe }, adders)?;
            }
            if rule.probe {
                for (set, gradient) in gradient.probe.chunks_exact_mut(fixed.probe_len()).enumerate() {
                    fixed.probe_gradient(waves, shifts, &list, set, &state.object, gradient)?;
                }
            }
        }
        if let Some(sums) = sums {
            sums.each(fixed, &mut gradient.object, |rows, [a, b, _]| {
                rows.re.copy_from_slice(a);
                rows.im.copy_from_slice(b);
            });
        }
        let mut value = 0.0;
        for here in fixed.share.gathered(values)? {
            value += here;
        }
        if rule.smoothness > 0.0 {
            value += self.smoothness(rule.smoothness, rule.object.then_some(gradient));
        }
        Ok(value)
    }

    /// Coefficients along the direction.
    pub(super) fn likelihood_line(&mut self, rule: &Likelihood, direction: &Pair<T>) -> Result<[f64; 2]> {
        let Self { fixed, views, shifts, all, state, factors, .. } = self;
        let fixed = &*fixed;
        let spectra = [&state.probe, &direction.probe].map(|probe| fixed.spectra(probe));
        let plain = [state, direction].map(|pair| ViewInputs { probe: &pair.probe, object: &pair.object });
        let parts: Vec<[f64; 2]> = fixed.cpu.install(|| {
            let one = |_, [j, slot]: &[u32; 2]| {
                let (j, scratch) = (*j as usize, &mut *fixed.scratch());
                scratch.need(2);
                let (mut own, mut other, at) = (std::mem::take(&mut scratch.own), Aligned::default(), (views[j], shifts[j]));
                let (state, view) = fixed.seen(plain[0], &spectra[0], at, &mut own, scratch);
                let (direction, _) = fixed.seen(plain[1], &spectra[1], at, &mut other, scratch);
                let (mag, factor, noise) = (fixed.moduli(j), factors[*slot as usize], rule.noise);
                let both = T::with(fixed.isa, LineExpansion { fixed, noise, state, direction, view, mag, factor, scratch });
                scratch.own = own;
                both
            };
            map_tasks(items(all), one)
        });
        let parts = fixed.share.gathered(parts)?;
        let mut both = parts.iter().fold([0.0; 2], |all, part| [all[0] + part[0], all[1] + part[1]]);
        if rule.smoothness > 0.0 {
            let along = self.smoothness_line(rule.smoothness, direction);
            both = [both[0] + along[0], both[1] + along[1]];
        }
        Ok(both)
    }
}

impl<T: Number> FixedData<T> {
    /// Adds what the listed own views give to the gradient of probe number `set`: the sums of chunks of all views, one by one.
    fn probe_gradient(
        &self,
        waves: Waves<T>,
        shifts: &[[f64; 2]],
        list: &[[u32; 2]],
        set: usize,
        object: &[T],
        gradient: &mut [T],
    ) -> Result<()> {
        let views = waves.views;
        let chunk = |number: usize| {
            let all = number * CHUNK..views.len().min((number + 1) * CHUNK);
            let before = |end: usize| list.partition_point(|[j, _]| (*j as usize) < end);
            let own = &list[before(all.start)..before(all.end)];
            ViewList { own, parts: self.share.parts_of(all.filter(|j| views[*j].probe as usize == set)) }
        };
        // In one part the views of one chunk are listed.
        let lists: Vec<ViewList> = match list.first() {
            Some([j, _]) if self.share.is_alone() => vec![chunk(*j as usize / CHUNK)],
            _ => (0..views.len().div_ceil(CHUNK)).map(chunk).collect(),
        };
        if self.subpixel {
            for steps in self.returned(waves, shifts, &lists, set, object, None)? {
                gradient.iter_mut().zip(steps).for_each(|(gradient, step)| *gradient += step);
            }
            return Ok(());
        }
        for sums in self.probe_sums(waves, &lists, set, object)?.chunks_exact(self.band_lengths().count()) {
            self.each_band(gradient, sums, |re, im, [a, b, _]| {
                for i in 0..re.len() {
                    re[i] += a[i];
                    im[i] += b[i];
                }
            });
        }
        Ok(())
    }

    /// The first two of the further buffers, one wave each.
    #[inline(always)]
    fn pair<'a>(&self, more: &'a mut [Aligned<T>; 3]) -> [&'a mut [T]; 2] {
        let size = 2 * self.shape.plane();
        let [a, b, _] = more;
        [&mut a[..size], &mut b[..size]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_of_factorials_are_those_of_products() {
        let mut exact = 0.0_f64;
        for n in 1..=30 {
            exact += f64::from(n).ln();
            // Stirling's next term at 8 is 1/(1680 x^7): 3e-10.
            assert!((ln_factorial(f64::from(n)) - exact).abs() < 1e-9, "{n}");
        }
        assert!(ln_factorial(0.0).abs() < 1e-9);
    }
}
