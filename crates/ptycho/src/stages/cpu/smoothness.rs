//! Differences of neighbours in objects, which the likelihood's regularisation holds small.

use super::lanes::Number;
use super::{CpuStages, Pair};

impl<T: Number> CpuStages<T> {
    /// `2 a sum |d|^2` over the differences d of neighbours along both axes (forward and backward ones, hence the 2); its
    /// derivative by the conjugates is added to `gradient`.
    pub(super) fn smoothness(&self, a: f64, gradient: Option<&mut Pair<T>>) -> f64 {
        let mut value = 0.0;
        let mut gradient = gradient;
        for storage in &self.fixed.storages {
            for o in 0..self.fixed.modes[1] {
                for half in 0..2 {
                    let plane = storage.layer(&self.state.object, o)[half];
                    let mut out = gradient.as_deref_mut().map(|g| {
                        let [re, im] = storage.layer_mut(&mut g.object, o);
                        if half == 0 { re } else { im }
                    });
                    neighbours(storage.shape, |i, j| {
                        let d = plane[j].to_f64() - plane[i].to_f64();
                        value += d * d;
                        if let Some(out) = &mut out {
                            let slope = T::from_f64(2.0 * a * d);
                            out[i] -= slope;
                            out[j] += slope;
                        }
                    });
                }
            }
        }
        2.0 * a * value
    }

    /// First and second order of the same along a direction.
    pub(super) fn smoothness_line(&self, a: f64, direction: &Pair<T>) -> [f64; 2] {
        let mut both = [0.0; 2];
        for storage in &self.fixed.storages {
            for o in 0..self.fixed.modes[1] {
                for half in 0..2 {
                    let (plane, along) = (storage.layer(&self.state.object, o)[half], storage.layer(&direction.object, o)[half]);
                    neighbours(storage.shape, |i, j| {
                        let d = plane[j].to_f64() - plane[i].to_f64();
                        let h = along[j].to_f64() - along[i].to_f64();
                        both[0] += d * h;
                        both[1] += h * h;
                    });
                }
            }
        }
        [4.0 * a * both[0], 2.0 * a * both[1]]
    }
}

/// Visits every pair of neighbours along rows and columns.
fn neighbours([height, width]: [usize; 2], mut work: impl FnMut(usize, usize)) {
    for y in 0..height {
        for x in 0..width {
            let i = y * width + x;
            if x + 1 < width {
                work(i, i + 1);
            }
            if y + 1 < height {
                work(i, i + width);
            }
        }
    }
}
