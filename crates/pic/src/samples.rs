//! Arrays of files as functions of position: linear between their values, zero outside.

use std::path::Path;

use zellige_engine::error::{Error, Result};
use zellige_io::source::{SourceFile, tuple};

use crate::config::Config;
use crate::config::profile::FileProfile;

/// Distance from a value, in units of the spacing, below which a position is that of the value: values read at the points
/// that they were written for are bitwise identical, although positions have roundings.
const SAME: f64 = 1e-6;

/// Values of a regular lattice; lengths are those of the input.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    /// Number of values per axis.
    count: [usize; 2],
    /// Position of the first value.
    origin: [f64; 2],
    spacing: [f64; 2],
    /// Axes along which the lattice repeats.
    periodic: [bool; 2],
    /// x fastest.
    values: Vec<f64>,
}

impl Samples {
    /// Reads the array that the key `path` of the input names; relative to `folder`.
    ///
    /// # Errors
    /// A file that cannot be read, an array with another number of axes, values that are not finite.
    pub fn read(config: &Config, path: &str, profile: &FileProfile, folder: &Path) -> Result<Self> {
        let file = SourceFile::new(format!("{path}.file"), &profile.file, folder)?;
        let (shape, dimensions) = (file.shape()?, config.dimensions());
        if shape.len() != dimensions || shape.contains(&0) {
            let expected = if dimensions == 1 { "(nx)" } else { "(ny, nx)" };
            let problem = file.problem(format!("has the shape {}, expected {expected}", tuple(&shape)));
            return Err(Error::input(
                "the input",
                problem.hint("arrays are in C order with x fastest, with an axis for each of the grid's"),
            ));
        }
        let count = [shape[dimensions - 1], if dimensions == 1 { 1 } else { shape[0] }];
        let placement = file.placement()?;
        let cells = &config.grid.cells;
        if dimensions == 2 && cells[0] != cells[1] && shape == cells[..] && profile.spacing.is_none() && placement.spacing.is_none() {
            let problem = file.problem(format!("has the shape {}, that of the grid's cells transposed", tuple(&shape)));
            let expected = format!("(ny, nx) = ({}, {})", cells[1], cells[0]);
            return Err(Error::input("the input", problem.allowed(expected).hint("if its values have another spacing, give `spacing`")));
        }
        let named = |own: &Option<Vec<f64>>, of_file: Option<Vec<f64>>| own.clone().or(of_file).filter(|v| v.len() == dimensions);
        let spacing = named(&profile.spacing, placement.spacing);
        let position = placement.position.filter(|v| v.len() == dimensions);
        let given = profile.origin.clone();
        let corner = placement.origin.filter(|v| v.len() == dimensions);
        let (mut origin, mut distance) = ([0.0; 2], [1.0, f64::INFINITY]);
        for d in 0..dimensions {
            distance[d] = spacing.as_ref().map_or(config.grid.size[d] / count[d] as f64, |s| s[d]);
            let inside = position.as_ref().map_or(0.5, |p| p[d]);
            origin[d] = match (&given, &corner) {
                (Some(origin), _) => origin[d],
                (None, Some(corner)) => corner[d] + inside * distance[d],
                (None, None) => config.origin(d) + inside * distance[d],
            };
        }
        let grid = config.domain();
        let periodic = [0, 1].map(|d| {
            let length = count[d] as f64 * distance[d];
            d < dimensions && grid.periodic(d) && (length / config.grid.size[d] - 1.0).abs() < SAME
        });
        let scale = profile.scale.or(placement.unit_si).unwrap_or(1.0);
        let values = file.array()?.values.into_iter().map(|v| v * scale).collect();
        Ok(Self { count, origin, spacing: distance, periodic, values })
    }

    /// Values of the cells of a lattice of their own, the first at the centre `origin`.
    pub(crate) fn of_cells(count: [usize; 2], origin: [f64; 2], spacing: [f64; 2], values: Vec<f64>) -> Self {
        Self { count, origin, spacing, periodic: [false; 2], values }
    }

    /// The value at a position: linear between values, up to half a spacing beyond the last one that of the last one, zero
    /// elsewhere.
    pub fn at(&self, position: [f64; 2]) -> f64 {
        let mut corners = [[(0, 0.0); 2]; 2];
        for d in 0..2 {
            let Some(two) = self.neighbours(d, position[d]) else { return 0.0 };
            corners[d] = two;
        }
        let along = |row: usize| -> f64 {
            corners[0].iter().filter(|(_, share)| *share != 0.0).map(|(i, share)| share * self.values[row * self.count[0] + i]).sum()
        };
        corners[1].iter().filter(|(_, share)| *share != 0.0).map(|(j, share)| share * along(*j)).sum()
    }

    /// The values beside a position along axis `d`, with their shares.
    fn neighbours(&self, d: usize, position: f64) -> Option<[(usize, f64); 2]> {
        let n = self.count[d];
        if n == 1 {
            // A line has no second axis; a single row or column is the same across its own width.
            let inside = (position - self.origin[d]).abs() <= (0.5 + SAME) * self.spacing[d];
            return inside.then_some([(0, 1.0), (0, 0.0)]);
        }
        let mut place = (position - self.origin[d]) / self.spacing[d];
        let nearest = place.round();
        if (place - nearest).abs() < SAME {
            place = nearest;
        }
        if self.periodic[d] {
            let below = place.floor();
            let share = place - below;
            let wrapped = |k: f64| k.rem_euclid(n as f64) as usize % n;
            return Some([(wrapped(below), 1.0 - share), (wrapped(below + 1.0), share)]);
        }
        // An edge of the grid is an edge of the array but for rounding.
        if !(-0.5 - SAME..=n as f64 - 0.5 + SAME).contains(&place) {
            return None;
        }
        let place = place.clamp(0.0, (n - 1) as f64);
        let below = place as usize;
        Some([(below, 1.0 - place.fract()), ((below + 1).min(n - 1), place.fract())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(periodic: bool) -> Samples {
        let values = (0..12).map(|k| f64::from(k % 4) + 10.0 * f64::from(k / 4)).collect();
        Samples { count: [4, 3], origin: [0.5, 1.0], spacing: [1.0, 2.0], periodic: [periodic; 2], values }
    }

    #[test]
    fn values_are_linear_between_and_zero_outside() {
        let samples = plane(false);
        assert_eq!(samples.at([2.5, 3.0]), 12.0);
        assert_eq!(samples.at([2.75, 4.0]), 17.25);
        // Half a spacing beyond the last value is still the array's, more is not.
        assert_eq!([samples.at([0.0, 0.0]), samples.at([4.0, 6.0])], [0.0, 23.0]);
        assert_eq!([samples.at([-0.1, 1.0]), samples.at([4.1, 5.0]), samples.at([3.5, 6.1])], [0.0; 3]);
        // At the points of the values there are no roundings.
        let thin =
            Samples { count: [3, 1], origin: [0.1, 0.0], spacing: [0.1, f64::INFINITY], periodic: [false; 2], values: vec![1.0, 0.3, 7.0] };
        assert_eq!([0.1, 0.2, 0.1 + 0.1 + 0.1].map(|x| thin.at([x, 5.0])), [1.0, 0.3, 7.0]);
    }

    #[test]
    fn a_periodic_lattice_repeats() {
        let samples = plane(true);
        assert_eq!([samples.at([4.0, 1.0]), samples.at([0.0, 1.0])], [1.5, 1.5]);
        assert_eq!([samples.at([0.5, 6.0]), samples.at([4.5, 13.0])], [10.0, 0.0]);
    }
}
