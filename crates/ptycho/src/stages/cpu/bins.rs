//! Pixels that were counted, where the waves at the detector are sampled more finely.
//!
//! A plane of the waves' pixels becomes one of the counted pixels in place, and back: the smaller one lies at the beginning of the
//! larger one's buffer, so that sums may be written upwards and copies downwards over what was read already.

use super::fft::{PAD, Shape};
use super::lanes::Number;
use super::store::detector;
use super::view::Row;

/// The detector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bins {
    /// Lines of the waves' plane that are one line of the detector, and numbers of a line that are one number.
    of: [usize; 2],
    /// Lines and length of the waves' plane, padding included.
    fine: [usize; 2],
    /// Lines and length of the detector's plane, padding included.
    counted: [usize; 2],
    /// Lines and numbers of a line of the detector's without padding.
    inside: [usize; 2],
    /// Shape of the frame as it was counted.
    pub(crate) shape: Shape,
}

impl Bins {
    /// Describes waves of `frame` rows and columns, of which `bin` rows and columns are counted as one pixel.
    pub(crate) fn new(frame: [usize; 2], bin: [usize; 2], far: bool) -> Self {
        let shape = Shape::new([0, 1].map(|d| frame[d] / bin[d]));
        let turned = |[y, x]: [usize; 2]| if far { [x, y] } else { [y, x] };
        Self {
            of: turned(bin),
            fine: detector(Shape::new(frame), far),
            counted: detector(shape, far),
            inside: turned([shape.ny, shape.nx]),
            shape,
        }
    }

    /// Returns true if pixels of the waves are counted one by one.
    #[inline(always)]
    pub(crate) fn single(&self) -> bool {
        self.of == [1, 1]
    }

    /// Lines of the detector's plane and their length.
    #[inline(always)]
    pub(crate) fn lines(&self) -> [usize; 2] {
        self.counted
    }

    /// Numbers of the detector's plane.
    #[inline(always)]
    pub(crate) fn plane(&self) -> usize {
        self.counted[0] * self.counted[1]
    }

    /// Sums over bins; nothing in the padding.
    #[inline(always)]
    pub(crate) fn sum<T: Number>(&self, plane: &mut [T]) {
        if self.single() {
            return;
        }
        let ([lines, each], [_, long], [_, short], [count, length]) = (self.of, self.fine, self.counted, self.inside);
        for line in 0..count {
            let first = line * lines * long;
            for other in 1..lines {
                let (to, from) = plane[first..].split_at_mut(other * long);
                for i in (0..long).step_by(PAD) {
                    (Row::load(&to[i..]) + Row::load(&from[i..])).store(&mut to[i..]);
                }
            }
            for i in 0..length {
                let mut sum = plane[first + i * each];
                for j in 1..each {
                    sum += plane[first + i * each + j];
                }
                plane[line * short + i] = sum;
            }
            plane[line * short + length..(line + 1) * short].fill(T::ZERO);
        }
        plane[count * short..self.plane()].fill(T::ZERO);
    }

    /// Copies every number to all of its bin; nothing in the padding.
    #[inline(always)]
    pub(crate) fn spread<T: Number>(&self, plane: &mut [T]) {
        if self.single() {
            return;
        }
        let ([lines, each], [_, long], [_, short], [count, length]) = (self.of, self.fine, self.counted, self.inside);
        plane[count * lines * long..].fill(T::ZERO);
        for line in (0..count).rev() {
            let first = line * lines * long;
            for i in (0..length).rev() {
                let value = plane[line * short + i];
                plane[first + i * each..first + (i + 1) * each].fill(value);
            }
            plane[first + length * each..first + long].fill(T::ZERO);
            for other in 1..lines {
                plane.copy_within(first..first + long, first + other * long);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::cpu::store::{from_detector, to_detector};

    /// Value in the padding, which must not matter.
    const RUBBISH: f64 = 7.0;

    #[test]
    fn bins_keep_every_photon_and_give_each_pixel_its_own() {
        for (counted, bin) in
            [([8, 6], [2, 2]), ([5, 7], [3, 3]), ([16, 20], [1, 2]), ([12, 18], [3, 1]), ([7, 33], [4, 2]), ([1, 1], [5, 3])]
        {
            let frame = [0, 1].map(|d| counted[d] * bin[d]);
            for far in [true, false] {
                let (bins, shape) = (Bins::new(frame, bin, far), Shape::new(frame));
                // Whole numbers: sums are exact.
                let values: Vec<f64> = (0..frame[0] * frame[1]).map(|i| (i * 37 % 101) as f64).collect();
                let mut plane = to_detector(&values, shape, far, RUBBISH);
                bins.sum(&mut plane);
                let found = from_detector(&plane[..bins.plane()], bins.shape, far);
                assert_eq!(plane[..bins.plane()].iter().sum::<f64>(), values.iter().sum::<f64>(), "{counted:?} {bin:?} {far}");
                for (i, found) in found.iter().enumerate() {
                    let (y, x) = (i / counted[1] * bin[0], i % counted[1] * bin[1]);
                    let rows = (y..y + bin[0]).flat_map(|y| (x..x + bin[1]).map(move |x| y * frame[1] + x));
                    assert_eq!(*found, rows.map(|i| values[i]).sum::<f64>(), "{counted:?} {bin:?} {far} {i}");
                }
                bins.spread(&mut plane);
                let back = from_detector(&plane, shape, far);
                for (i, back) in back.iter().enumerate() {
                    assert_eq!(*back, found[i / frame[1] / bin[0] * counted[1] + i % frame[1] / bin[1]], "{counted:?} {bin:?} {far} {i}");
                }
                assert_eq!(plane.iter().sum::<f64>(), back.iter().sum::<f64>(), "padding of {counted:?} {bin:?} {far}");
            }
        }
    }
}
