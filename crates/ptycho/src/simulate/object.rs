//! The sample: thickness maps from 0 to 1, and what they do to a wave.

use std::f64::consts::TAU;
use std::path::Path;

use num_complex::Complex;
use zellige_engine::error::Result;
use zellige_engine::parallel::{chunks_mut, each, items, items_mut, map};
use zellige_engine::rng::Philox;
use zellige_io::Array;

use super::config::{ObjectConfig, ObjectKind};
use super::noise;

/// Transmission of the sample on a grid of `shape`, of which a frame covers `frame`; pictures are looked for in `folder`.
pub(super) fn transmission(
    config: &ObjectConfig,
    shape: [usize; 2],
    frame: [usize; 2],
    folder: &Path,
    seed: u64,
) -> Result<Vec<Complex<f64>>> {
    let (thick, dark) = match (config.kind, &config.image) {
        (ObjectKind::Star, _) => (star(shape), None),
        (ObjectKind::Image, Some(image)) => {
            let read = |path: &Path| zellige_io::picture::read_grey(&folder.join(path)).map(|a| covering(&a, shape));
            (read(image)?, config.absorption_image.as_deref().map(read).transpose()?)
        }
        (ObjectKind::Cells | ObjectKind::Image, _) => (cells(shape, frame, seed), None),
    };
    let dark = dark.as_ref().unwrap_or(&thick);
    Ok(drawn(shape, |i| Complex::from_polar(1.0 - config.absorption * dark[i], config.phase * thick[i])))
}

/// The value of each pixel.
fn drawn<T: Clone + Default + Send>(shape: [usize; 2], value: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let mut all = vec![T::default(); shape[0] * shape[1]];
    each(chunks_mut(&mut all, shape[1]), |row, line| {
        line.iter_mut().zip(row * shape[1]..).for_each(|(to, i)| *to = value(i));
    });
    all
}

/// 1 on the near side of an edge, 0 on the far side, `distance` pixels from it.
fn side(distance: f64) -> f64 {
    (0.5 - distance).clamp(0.0, 1.0)
}

/// Rough ground on two scales, soft discs, rings and bars, sized by the frame so that each frame sees some of them.
fn cells(shape: [usize; 2], frame: [usize; 2], seed: u64) -> Vec<f64> {
    let unit = 0.25 * frame[0].min(frame[1]) as f64;
    let coarse = noise::smooth(shape, [0.5 * unit; 2], seed, noise::OBJECT);
    let fine = noise::smooth(shape, [(0.03 * unit).max(0.8); 2], seed, noise::OBJECT + 1);
    let count = (1.6 * (shape[0] * shape[1]) as f64 / (unit * unit)).ceil() as usize;
    let philox = Philox::new(noise::SHAPES, seed);
    // Rows, column, radius, kind, angle, thickness.
    let shapes: Vec<[f64; 6]> = (0..count as u64)
        .map(|i| {
            let ([a, b], [c, d], [e, f]) = (philox.uniforms(0, i), philox.uniforms(1, i), philox.uniforms(2, i));
            [a * shape[0] as f64, b * shape[1] as f64, unit * (0.12 + 0.5 * c * c), d, e * TAU, 0.25 + 0.45 * f]
        })
        .collect();
    let mut all = map((items(&coarse), items(&fine)), |_, (c, f)| 0.22 + 0.10 * c + 0.035 * f);
    each(chunks_mut(&mut all, shape[1]), |row, line| {
        for &[y, x, radius, kind, angle, thick] in &shapes {
            let dy = row as f64 - y;
            let reach = radius * 1.3 + 2.0;
            if dy.abs() > reach {
                continue;
            }
            let (first, last) = ((x - reach).max(0.0) as usize, ((x + reach).max(0.0) as usize + 1).min(line.len()));
            for (column, value) in line.iter_mut().enumerate().take(last).skip(first) {
                let dx = column as f64 - x;
                let distance = dx.hypot(dy);
                *value += thick
                    * if kind < 0.55 {
                        // A ball: as thick as its chord.
                        (1.0 - (distance / radius).powi(2)).max(0.0).sqrt()
                    } else if kind < 0.8 {
                        side((distance - 0.8 * radius).abs() - 0.15 * radius)
                    } else {
                        let (along, across) = (dx * angle.cos() + dy * angle.sin(), dy * angle.cos() - dx * angle.sin());
                        side(along.abs() - radius) * side(across.abs() - 0.18 * radius)
                    };
            }
        }
    });
    // Squeezed softly into 0 to 1.
    each(items_mut(&mut all), |_, v| *v = 0.5 + 0.5 * (1.6 * (*v - 0.5)).tanh());
    all
}

/// A Siemens star of 36 spokes with rings left out, in a frame.
fn star(shape: [usize; 2]) -> Vec<f64> {
    let spokes = 36.0;
    let reach = 0.5 * shape[0].min(shape[1]) as f64;
    drawn(shape, |i| {
        let (y, x) = ((i / shape[1]) as f64 - 0.5 * shape[0] as f64, (i % shape[1]) as f64 - 0.5 * shape[1] as f64);
        let (r, angle) = (x.hypot(y), y.atan2(x));
        // Distance to the nearest edge of a spoke, in pixels along the circle.
        let spoke = side(-(spokes * angle).sin().asin() * r / spokes);
        let rings = (1..4).map(|k| side((r - 0.2 * f64::from(k) * reach).abs() - 0.008 * reach)).fold(0.0, f64::max);
        let within = side(r - 0.86 * reach);
        let border = side((r - 0.93 * reach).abs() - 0.02 * reach);
        (spoke * (1.0 - rings) * within).max(border)
    })
}

/// A picture drawn so large that it covers `shape`, bilinearly, the middle in the middle.
fn covering(picture: &Array, shape: [usize; 2]) -> Vec<f64> {
    let (rows, columns) = (picture.shape[0], picture.shape[1]);
    let zoom = (rows as f64 / shape[0] as f64).min(columns as f64 / shape[1] as f64);
    let position = |i: usize, n: usize, m: usize| {
        let at = (i as f64 + 0.5 - 0.5 * n as f64) * zoom + 0.5 * m as f64 - 0.5;
        let at = at.clamp(0.0, (m - 1) as f64);
        (at as usize, (at as usize + 1).min(m - 1), at.fract())
    };
    drawn(shape, |i| {
        let (r0, r1, fr) = position(i / shape[1], shape[0], rows);
        let (c0, c1, fc) = position(i % shape[1], shape[1], columns);
        let at = |r: usize, c: usize| picture.values[r * columns + c];
        (at(r0, c0) * (1.0 - fc) + at(r0, c1) * fc) * (1.0 - fr) + (at(r1, c0) * (1.0 - fc) + at(r1, c1) * fc) * fr
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_fill_their_range() {
        for kind in [ObjectKind::Cells, ObjectKind::Star] {
            let config = ObjectConfig { kind, phase: -1.2, absorption: 0.4, ..ObjectConfig::default() };
            let found = transmission(&config, [200, 240], [64, 64], Path::new("."), 3).unwrap();
            let amplitudes = found.iter().map(|v| v.norm());
            let (low, high) = amplitudes.fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), v| (a.min(v), b.max(v)));
            assert!((0.6 - 1e-12..0.7).contains(&low) && (0.9..=1.0 + 1e-12).contains(&high), "{kind:?}: {low} {high}");
            assert!(found.iter().all(|v| (-1.2001..=0.0001).contains(&v.arg())));
        }
    }

    #[test]
    fn a_picture_covers_the_sample_and_keeps_its_shape() {
        // A ramp along x of 4 x 8 pixels on 8 x 8: the middle half of the columns, twice as large.
        let ramp = Array { shape: vec![4, 8], values: (0..32).map(|i| f64::from(i % 8)).collect() };
        let found = covering(&ramp, [8, 8]);
        let row: Vec<f64> = (0..8).map(|c| 2.0 + 0.5 * f64::from(c) - 0.25).collect();
        assert!(found.chunks(8).all(|line| line.iter().zip(&row).all(|(a, b)| (a - b).abs() < 1e-12)), "{:?}", &found[..8]);
    }
}
