//! Planes of fields on the pixels of a picture: each pixel is the mean of a field over its area, so that nothing is skipped. The
//! weights are made here once; [`Plane`] takes the means on the CPU, of the rows that a part of a run has too, and [`PlaneReducer`]
//! where a field lies in a GPU's memory. [`FieldCopier`] copies fields there.

pub mod copier;
mod cuda;
mod means;

pub use self::copier::FieldCopier;
pub use self::cuda::{PlaneOnGpu, PlaneReducer, recipe};
pub use self::means::{Piece, Plane};
use crate::record::{Centring, Planes};

/// The values that make one pixel: `weights[k]` of the value `first + k`; the weights add up to one.
#[derive(Debug, Clone, PartialEq)]
pub struct PixelWeights {
    /// Number of the first value.
    pub first: usize,
    /// Weights of the values from there on.
    pub weights: Vec<f64>,
}

/// Weights of `n` values of an axis that is drawn on so many pixels. Nodes on more pixels are interpolated between.
pub fn pixel_weights(n: usize, pixels: usize, centring: Centring) -> Vec<PixelWeights> {
    let nodes = centring == Centring::Node;
    let length = if nodes { n as f64 - 1.0 } else { n as f64 };
    if length <= 0.0 {
        return (0..pixels).map(|_| PixelWeights { first: 0, weights: vec![1.0] }).collect();
    }
    let pitch = length / pixels as f64;
    (0..pixels)
        .map(|p| {
            let (from, to) = (p as f64 * pitch, (p + 1) as f64 * pitch);
            if nodes && pitch < 1.0 {
                let at = f64::midpoint(from, to);
                let first = (at as usize).min(n - 2);
                let t = at - first as f64;
                return PixelWeights { first, weights: vec![1.0 - t, t] };
            }
            // Node i owns [i - 1/2, i + 1/2], cell i owns [i, i + 1].
            let shift = if nodes { 0.5 } else { 0.0 };
            let (from, to) = (from + shift, to + shift);
            let (first, last) = ((from as usize).min(n - 1), ((to - 1e-9).max(from) as usize).min(n - 1));
            let overlap = |i: usize| (to.min(i as f64 + 1.0) - from.max(i as f64)).max(0.0);
            let sum: f64 = (first..=last).map(overlap).sum();
            PixelWeights { first, weights: (first..=last).map(|i| overlap(i) / sum).collect() }
        })
        .collect()
}

/// Pixels of a plane of `len` values in a picture of at most [`Planes::MOST`] a side, and what they are averages of: a plane that
/// fits has a pixel for each value.
pub fn picture_pixels(len: [usize; 2], centring: Centring) -> ([usize; 2], Centring) {
    let pixels = len.map(|n| n.min(Planes::MOST));
    (pixels, if pixels == len { Centring::Cell } else { centring })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn weights_add_up_to_one_and_stay_inside(n in 1usize..300, pixels in 1usize..300, nodes: bool) {
            let centring = if nodes { Centring::Node } else { Centring::Cell };
            for tap in pixel_weights(n, pixels, centring) {
                prop_assert!(tap.first + tap.weights.len() <= n);
                prop_assert!((tap.weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                prop_assert!(tap.weights.iter().all(|w| *w >= 0.0));
            }
        }
    }

    #[test]
    fn a_plane_that_fits_is_left_as_it_is() {
        for centring in [Centring::Node, Centring::Cell] {
            let (pixels, of) = picture_pixels([512, 3], centring);
            assert_eq!(pixels, [512, 3]);
            for n in pixels {
                let own = |i| PixelWeights { first: i, weights: vec![1.0] };
                assert_eq!(pixel_weights(n, n, of), (0..n).map(own).collect::<Vec<_>>());
            }
            assert_eq!(picture_pixels([513, 3], centring), ([512, 3], centring));
        }
    }
}
