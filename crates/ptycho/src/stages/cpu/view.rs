//! Operations on one view: rows of registers.

use zellige_engine::real::{Lanes, Real};

use super::fft::{PAD, Workspace};
use super::lanes::{Isa, Number, per_isa};
use super::store::{StoragePlanes, planes, planes_mut};
use super::{FixedData, Scratch};
use crate::model::View;

/// A register's worth of numbers.
pub(super) type Row<T> = Lanes<T, PAD>;

/// Adds up the lanes.
#[inline(always)]
pub(super) fn total<T: Number>(lanes: Row<T>) -> f64 {
    let mut all = 0.0;
    for x in lanes.0 {
        all += x.to_f64();
    }
    all
}

/// `sum!(lines, length, |i| f(i))` over a plane: in registers over a line of `length`, in doubles over lines. A macro, since
/// closures are not reliably inlined into functions with target features.
macro_rules! sum {
    ($lines:expr, $length:expr, |$i:ident| $body:expr) => {{
        let (lines, length): (usize, usize) = ($lines, $length);
        let mut all = 0.0;
        for line in 0..lines {
            let mut part = crate::stages::cpu::view::Row::<T>::ZERO;
            for $i in (line * length..(line + 1) * length).step_by(crate::stages::cpu::fft::PAD) {
                part += $body;
            }
            all += crate::stages::cpu::view::total(part);
        }
        all
    }};
}
pub(super) use sum;

/// `out = P O` for a view's patch, `[ny][sx]`.
#[inline(always)]
pub(super) fn product<T: Number>(
    fixed: &FixedData<T>,
    probe: [&[T]; 2],
    object: [&[T]; 2],
    storage: &StoragePlanes,
    view: &View,
    out: &mut [T],
) {
    let sx = fixed.shape.sx;
    let [re, im] = planes_mut(out);
    for y in 0..fixed.shape.ny {
        let from = storage.at(view, y);
        let (o0, o1) = (&object[0][from..from + sx], &object[1][from..from + sx]);
        let row = y * sx..(y + 1) * sx;
        let (p0, p1) = (&probe[0][row.clone()], &probe[1][row.clone()]);
        let (re, im) = (&mut re[row.clone()], &mut im[row]);
        for x in (0..sx).step_by(PAD) {
            let (a, b) = (Row::load(&p0[x..]), Row::load(&p1[x..]));
            let (c, d) = (Row::load(&o0[x..]), Row::load(&o1[x..]));
            (a * c - b * d).store(&mut re[x..]);
            (a * d + b * c).store(&mut im[x..]);
        }
    }
}

impl<T: Number> FixedData<T> {
    per_isa! {
        /// All products of a view's modes, into `out[K][2][sy][sx]`.
        fn products(&self, probe: &[T], object: &[T], view: &View, out: &mut [T]) -> () = products_inlined;
    }

    #[inline(always)]
    fn products_inlined(&self, probe: &[T], object: &[T], view: &View, out: &mut [T]) {
        let storage = &self.storages[view.object as usize];
        let size = 2 * self.shape.plane();
        for p in 0..self.modes[0] {
            for o in 0..self.modes[1] {
                let k = p * self.modes[1] + o;
                let out = &mut out[k * size..(k + 1) * size];
                product(self, self.probe(probe, view.probe, p), storage.layer(object, o), storage, view, out);
            }
        }
    }

    /// Propagates a wave to the detector, without the factor of [`FixedData::scale`]. `one` is space for a wave; it keeps what the
    /// near field's kernel left.
    pub(super) fn propagate(&self, wave: &[T], out: &mut [T], one: &mut [T], workspace: &mut Workspace<T>) {
        let Some(kernel) = &self.near else {
            return self.plan.forward(planes(wave), planes_mut(out), workspace);
        };
        self.plan.forward(planes(wave), planes_mut(one), workspace);
        self.times(one, if self.subpixel { &workspace.near } else { kernel }, false);
        self.plan.inverse(planes(one), planes_mut(out), workspace);
    }

    /// Back from the detector.
    pub(super) fn back(&self, wave: &[T], out: &mut [T], one: &mut [T], workspace: &mut Workspace<T>) {
        let Some(kernel) = &self.near else {
            return self.plan.inverse(planes(wave), planes_mut(out), workspace);
        };
        self.plan.forward(planes(wave), planes_mut(one), workspace);
        self.times(one, if self.subpixel { &workspace.near } else { kernel }, true);
        self.plan.inverse(planes(one), planes_mut(out), workspace);
    }

    per_isa! {
        /// `wave *= kernel`, or its conjugate.
        fn times(&self, wave: &mut [T], kernel: &[T], conjugate: bool) -> () = times_inlined;
    }

    #[inline(always)]
    #[allow(clippy::unused_self)] // as `per_isa` calls it
    fn times_inlined(&self, wave: &mut [T], kernel: &[T], conjugate: bool) {
        let [re, im] = planes_mut(wave);
        let [c, s] = planes(kernel);
        let sign = Row::splat(if conjugate { -T::ONE } else { T::ONE });
        for i in (0..c.len()).step_by(PAD) {
            let (a, b) = (Row::load(&re[i..]), Row::load(&im[i..]));
            let (c, s) = (Row::load(&c[i..]), Row::load(&s[i..]) * sign);
            (a * c - b * s).store(&mut re[i..]);
            (a * s + b * c).store(&mut im[i..]);
        }
    }

    /// Lines of the detector's plane, as it was counted, and their length.
    #[inline(always)]
    pub(super) fn detector(&self) -> [usize; 2] {
        self.bins.lines()
    }

    /// Pixels of a frame as it was counted.
    #[inline(always)]
    pub(super) fn counted(&self) -> f64 {
        (self.bins.shape.ny * self.bins.shape.nx) as f64
    }

    per_isa! {
        /// Intensities of the waves `[K][2][..]` in a buffer for a plane of the waves, scaled, summed over the bins: the detector's
        /// plane at its beginning.
        fn intensity(&self, waves: &[T], out: &mut [T]) -> () = intensity_inlined;
    }

    #[inline(always)]
    fn intensity_inlined(&self, waves: &[T], out: &mut [T]) {
        let plane = self.shape.plane();
        let scale = Row::splat(self.scale() * self.scale());
        for (k, wave) in waves.chunks_exact(2 * plane).enumerate() {
            let (re, im) = wave.split_at(plane);
            for i in (0..plane).step_by(PAD) {
                let (a, b) = (Row::load(&re[i..]), Row::load(&im[i..]));
                let here = (a * a + b * b) * scale;
                let before = if k == 0 { Row::ZERO } else { Row::load(&out[i..]) };
                (before + here).store(&mut out[i..]);
            }
        }
        self.bins.sum(out);
    }

    per_isa! {
        /// Multiplies every plane of `waves` by the factors of the detector's plane at the beginning of `factors`, which are spread
        /// over the bins.
        fn apply(&self, waves: &mut [T], factors: &mut [T]) -> () = apply_inlined;
    }

    #[inline(always)]
    fn apply_inlined(&self, waves: &mut [T], factors: &mut [T]) {
        self.bins.spread(factors);
        for half in waves.chunks_exact_mut(self.shape.plane()) {
            for i in (0..half.len()).step_by(PAD) {
                (Row::load(&half[i..]) * Row::load(&factors[i..])).store(&mut half[i..]);
            }
        }
    }

    /// Moduli of an own view.
    pub(super) fn moduli(&self, j: usize) -> &[T] {
        let slot = j - self.own.start;
        &self.mag[slot * self.bins.plane()..(slot + 1) * self.bins.plane()]
    }

    /// Pixels of an own view that count, and the mean variance of their moduli.
    pub(super) fn valid(&self, j: usize) -> [f64; 2] {
        self.valid[j - self.own.start]
    }
}

impl<T: Number> Scratch<T> {
    /// Sees to it that the further waves are there.
    pub(super) fn need(&mut self, waves: usize) {
        for more in &mut self.more[..waves] {
            more.need(self.wave.len());
        }
    }
}
