//! A probe from the frames themselves.
//!
//! A lens puts the image of its pupil on a far detector. The mean of many frames shows it, central stop and all, with what the
//! sample scatters beside it: its root is the modulus of the probe's transform. What it lacks is the phase, of which defocus is
//! most. A defocused wave makes each frame a magnified hologram of the sample, and where the sample moves by `d` the hologram moves
//! by `d / (lambda z)`: the defocus is the one at which neighbouring frames agree.

use std::collections::{BTreeMap, BTreeSet};

use num_complex::Complex;
use zellige_engine::error::Result;
use zellige_engine::ops::fft::{Direction, Plan, Shape};
use zellige_engine::parallel::{chunks, map};

use crate::engines::middle_first;
use crate::model::Model;
use crate::propagation::{fresnel, signed};
use crate::relay::Relay;
use crate::scan::Beam;

type C = Complex<f64>;

/// Light fainter than this part of the pupil's brightness is the sample's.
const FAINT: f64 = 0.1;
/// Cells along each axis that the pupil is summed to for the search, and those that keep it apart from its copies.
const CELLS: usize = 64;
const ROOM: usize = 2 * CELLS;
/// Cells of the smallest pupil in which holograms can be told apart.
const SMALLEST: usize = 12;
/// Frames that the search begins from, and neighbours of each.
const FRAMES: usize = 48;
const NEIGHBOURS: usize = 3;
/// Correlation of neighbours below which no defocus is seen, and how far it must stand out of its own median over all defoci: scans
/// in focus leave up to 0.1 and 2.5 times.
const LEAST: f64 = 0.11;
const OUTSTANDING: f64 = 3.5;

/// Beginning of the note on a probe that starts so, before the method.
pub(crate) const TOLD: &str = "from the mean frame";

/// Bytes that [`wave`] takes at the most for a probe of this model: correlations of all pairs and transforms of those at hand,
/// or the waves and sums over frames.
pub(crate) fn memory(model: &Model, threads: u64) -> u64 {
    let mut views: BTreeMap<u32, usize> = BTreeMap::new();
    model.views.iter().for_each(|view| *views.entry(view.probe).or_default() += 1);
    let begun_from = views.values().map(|n| n.div_ceil(stride(*n))).max().unwrap_or(0);
    let room = (ROOM * ROOM) as u64;
    // Those of frames that other parts of a run have.
    let elsewhere = if model.share.is_alone() { 0 } else { (begun_from * (NEIGHBOURS + 1)) as u64 * 16 * room };
    let search = elsewhere + (begun_from * NEIGHBOURS) as u64 * 8 * room + threads * (NEIGHBOURS as u64 + 3) * 16 * room;
    search.max(80 * (model.modes[0] * model.pixels()) as u64)
}

/// Stride of the views from which the search begins, by their number.
fn stride(views: usize) -> usize {
    views.div_ceil(FRAMES).max(1)
}

/// A wave in the sample plane `[ny][nx]` of any power, for the probe number `probe`, and the assumed defocus.
pub(crate) fn wave(model: &Model, beam: &Beam, probe: u32, defocus: Option<f64>) -> Result<(Vec<C>, String)> {
    let views: Vec<usize> = (0..model.views.len()).filter(|j| model.views[*j].probe == probe).collect();
    let pupil = Pupil::of(model, &views)?;
    let (z, told) = match defocus {
        Some(z) => (z, format!("defocus {z:.3e} m")),
        None => match found(model, beam, &views, &pupil)? {
            Some(z) => (z, format!("defocus {z:.3e} m, by which neighbouring frames agree best")),
            None => (0.0, "in focus: neighbouring frames show no defocus".to_owned()),
        },
    };
    let ([ny, nx], [by, bx]) = (model.frame, model.bin);
    let [rows, columns] = model.detector();
    // The frequency of a wave's pixel on the detector: its pixels are as wide as some of the waves'.
    let at =
        |i: usize, n: usize, b: usize, counted: usize| ((signed(i, n) / b as f64).round() as isize).rem_euclid(counted as isize) as usize;
    let amplitude = |i: usize| pupil.light[at(i / nx, ny, by, rows) * columns + at(i % nx, nx, bx, columns)].sqrt();
    let kernel = fresnel(beam.wavelength, z, [ny, nx], model.pixel);
    let mut wave: Vec<C> = kernel.iter().enumerate().map(|(i, k)| k * amplitude(i)).collect();
    Plan::new(Shape::frames(ny, nx, 1)).run(&mut wave, Direction::Inverse);
    Ok((middle_first(&wave, [ny, nx]), told))
}

/// Mean of the frames, and what of it is the pupil.
struct Pupil {
    /// Counts, without holes, in the order of the transform.
    mean: Vec<f64>,
    /// Counts beyond the sample's: falls to 0 towards the edge.
    light: Vec<f64>,
}

impl Pupil {
    fn of(model: &Model, views: &[usize]) -> Result<Self> {
        let [rows, columns] = model.detector();
        // Rows on all cores, each over the frames in their order: counts, and the number of frames that have some.
        let mut sums = Relay::zeros((0..rows).map(|_| 2 * columns));
        let (share, own) = (&model.share, model.own());
        let parts = share.parts_of(views.iter().copied());
        sums.add(
            share,
            |_| &parts,
            |row, sums| {
                let (sums, counts) = sums.split_at_mut(columns);
                for j in views.iter().filter(|j| own.contains(j)) {
                    let frame = &model.moduli(*j)[row * columns..][..columns];
                    for ((sum, count), m) in sums.iter_mut().zip(&mut *counts).zip(frame).filter(|(_, m)| **m >= 0.0) {
                        *sum += f64::from(*m).powi(2);
                        *count += 1.0;
                    }
                }
            },
        )?;
        let row = |sums: &[f64]| {
            let (sums, counts) = sums.split_at(columns);
            sums.iter().zip(counts).map(|(sum, n)| (*n > 0.0).then(|| sum / n)).collect::<Vec<Option<f64>>>()
        };
        let mut mean: Vec<Option<f64>> = sums.sums().iter().flat_map(|sums| row(sums)).collect();
        fill(&mut mean, [rows, columns]);
        let mean: Vec<f64> = mean.into_iter().map(Option::unwrap_or_default).collect();
        // A soft edge, and less of the noise.
        let soft = blurred(&mean, [rows, columns]);
        let (sum, square) = soft.iter().fold((0.0, 0.0), |(a, b), v| (a + v, b + v * v));
        let faint = FAINT * square / f64::max(sum, f64::MIN_POSITIVE);
        let light = soft.iter().map(|v| (v - faint).max(0.0)).collect();
        Ok(Self { mean, light })
    }
}

/// Fills holes from their surroundings, ring by ring from their edge.
fn fill(mean: &mut [Option<f64>], [rows, columns]: [usize; 2]) {
    loop {
        let before = mean.to_vec();
        if before.iter().all(Option::is_some) || before.iter().all(Option::is_none) {
            return;
        }
        for (i, value) in mean.iter_mut().enumerate().filter(|(_, v)| v.is_none()) {
            let around = (0..9)
                .filter_map(|k| before[(i / columns + rows + k / 3 - 1) % rows * columns + (i % columns + columns + k % 3 - 1) % columns]);
            let (sum, count) = around.fold((0.0, 0), |(s, n), v| (s + v, n + 1));
            *value = (count > 0).then(|| sum / f64::from(count));
        }
    }
}

/// Means over three by three pixels, weights 1 2 1.
fn blurred(mean: &[f64], [rows, columns]: [usize; 2]) -> Vec<f64> {
    let along = |v: &[f64], i: usize, before: usize, after: usize| 0.25 * (v[before] + 2.0 * v[i] + v[after]);
    let row = |i: usize, by: usize| (i / columns + rows + by - 1) % rows * columns + i % columns;
    let column = |i: usize, by: usize| i / columns * columns + (i % columns + columns + by - 1) % columns;
    let once: Vec<f64> = (0..mean.len()).map(|i| along(mean, i, row(i, 0), row(i, 2))).collect();
    (0..mean.len()).map(|i| along(&once, i, column(i, 0), column(i, 2))).collect()
}

/// The part of the detector that the pupil lies on, in cells.
struct Window {
    /// Pixels of a cell, along each axis.
    cell: usize,
    /// Cells along its longer side.
    extent: usize,
    /// Cell of each pixel that counts, in the order of the transform.
    of: Vec<Option<u32>>,
}

impl Window {
    fn of(pupil: &Pupil, shape: [usize; 2]) -> Option<Self> {
        let [rows, columns] = shape;
        let centred = |i: usize, n: usize| (i + n / 2) % n;
        let position = |i: usize| [centred(i / columns, rows), centred(i % columns, columns)];
        let lit = || (0..rows * columns).filter(|i| pupil.light[*i] > 0.0).map(position);
        let first = [0, 1].map(|d| lit().map(|p| p[d]).min().unwrap_or(0));
        let last = [0, 1].map(|d| lit().map(|p| p[d]).max().unwrap_or(0));
        let span = (last[0] + 1 - first[0]).max(last[1] + 1 - first[1]);
        let cell = span.div_ceil(CELLS);
        let index = |p: [usize; 2]| ((p[0] - first[0]) / cell * ROOM + (p[1] - first[1]) / cell) as u32;
        let of = (0..rows * columns).map(|i| (pupil.light[i] > 0.0).then(|| index(position(i)))).collect();
        // A handful of cells is the image of a pinhole, or none at all.
        Some(Self { cell, extent: span.div_ceil(cell), of }).filter(|w| w.extent >= SMALLEST)
    }

    /// Deviation of a frame from the mean, in units of its noise: white, so that all cells carry the same information.
    fn beside(&self, mag: &[f32], pupil: &Pupil) -> Vec<C> {
        let inside =
            || mag.iter().zip(&pupil.mean).zip(&self.of).filter_map(|((m, mean), cell)| Some((m, mean, (*cell)?)).filter(|_| *m >= 0.0));
        let (own, all) = inside().fold((0.0, 0.0), |(a, b), (m, mean, _)| (a + f64::from(*m).powi(2), b + mean));
        let factor = own / f64::max(all, f64::MIN_POSITIVE);
        let mut cells = vec![C::default(); ROOM * ROOM];
        for (m, mean, cell) in inside() {
            cells[cell as usize] += (f64::from(*m).powi(2) - factor * mean) / mean.max(f64::MIN_POSITIVE).sqrt();
        }
        cells
    }
}

/// The defocus at which neighbouring frames agree best, if there is one.
fn found(model: &Model, beam: &Beam, views: &[usize], pupil: &Pupil) -> Result<Option<f64>> {
    let Some(window) = Window::of(pupil, model.detector()) else { return Ok(None) };
    let pairs = pairs(model, views);
    let elsewhere = beside_elsewhere(model, &window, pupil, &pairs)?;
    Ok(agreeing(model, beam, (&window, pupil), &pairs, &elsewhere))
}

/// Pairs of views with the move from the first to the second, metres.
type Pairs = [(usize, usize, [f64; 2])];

/// Deviations from the mean of those frames of the pairs that other parts of the run have.
fn beside_elsewhere(model: &Model, window: &Window, pupil: &Pupil, pairs: &Pairs) -> Result<BTreeMap<usize, Vec<C>>> {
    if model.share.is_alone() {
        return Ok(BTreeMap::new());
    }
    let own = model.own();
    let all: BTreeSet<usize> = pairs.iter().flat_map(|(j, k, _)| [*j, *k]).collect();
    let cells = all.iter().filter(|j| own.contains(j)).flat_map(|j| window.beside(model.moduli(*j), pupil)).collect();
    let cells = model.share.gathered(cells)?;
    let of_frames = all.into_iter().zip(cells.chunks_exact(ROOM * ROOM));
    Ok(of_frames.filter(|(j, _)| !own.contains(j)).map(|(j, cells)| (j, cells.to_vec())).collect())
}

/// The defocus at which the frames of pairs agree best, if there is one.
fn agreeing(
    model: &Model,
    beam: &Beam,
    (window, pupil): (&Window, &Pupil),
    pairs: &Pairs,
    elsewhere: &BTreeMap<usize, Vec<C>>,
) -> Option<f64> {
    let shape = Shape::frames(ROOM, ROOM, 1);
    let transformed = |mut cells: Vec<C>, direction: Direction| {
        Plan::new(shape).run(&mut cells, direction);
        cells
    };
    let beside = |j: usize| elsewhere.get(&j).cloned().unwrap_or_else(|| window.beside(model.moduli(j), pupil));
    let spectrum = |j: usize| transformed(beside(j), Direction::Forward);
    let mut there = vec![C::default(); ROOM * ROOM];
    window.of.iter().flatten().for_each(|cell| there[*cell as usize] = C::new(1.0, 0.0));
    // sum_q a(q) b(q + s) for every shift s.
    let correlated = |a: &[C], b: &[C]| -> Vec<f64> {
        let product = a.iter().zip(b).map(|(a, b)| a.conj() * b).collect();
        transformed(product, Direction::Inverse).iter().map(|v| v.re).collect()
    };
    let mask = transformed(there, Direction::Forward);
    let overlap = correlated(&mask, &mask);
    // Of the frames around one at a time: transforms of all would be the most that reading a scan takes.
    let around: Vec<_> = pairs.chunk_by(|a, b| a.0 == b.0).collect();
    let found = map(chunks(&around, 1), |_, around| {
        let own = spectrum(around[0][0].0);
        let strength = |j: usize, spectrum: &[C]| (j, spectrum.iter().map(C::norm_sqr).sum::<f64>());
        let mut strengths = vec![strength(around[0][0].0, &own)];
        let agreement = around[0].iter().map(|(_, other, _)| {
            let spectrum = spectrum(*other);
            strengths.push(strength(*other, &spectrum));
            correlated(&own, &spectrum)
        });
        (agreement.collect::<Vec<_>>(), strengths)
    });
    let strengths: BTreeMap<usize, f64> = found.iter().flat_map(|(_, strengths)| strengths.iter().copied()).collect();
    let power: f64 = strengths.values().sum::<f64>() / strengths.len().max(1) as f64;
    let agreement: Vec<Vec<f64>> = found.into_iter().flat_map(|(agreement, _)| agreement).collect();

    // Trials of u = 1 / (lambda z): a move by d shifts the hologram by -d u, in cells by this a metre.
    let field = [0, 1].map(|d| model.frame[d] as f64 * model.pixel[d]);
    let scale = field.map(|f| f / window.cell as f64);
    let mut steps: Vec<f64> = pairs.iter().map(|(_, _, d)| (d[0] * scale[0]).hypot(d[1] * scale[1])).collect();
    steps.sort_by(f64::total_cmp);
    let step = *steps.get(steps.len() / 2)?;
    // From a probe that is half as wide again as the field to holograms that hardly overlap, in quarters of a cell.
    let extent = window.extent as f64;
    let least = extent / (1.5 * scale[0].max(scale[1]) * field[0].max(field[1]));
    let (most, trials) = (0.8 * extent / step, (0.8 * extent / 0.25) as usize);
    let at = |k: usize| least + (most - least) * k as f64 / trials as f64;
    let score = |u: f64| {
        let (mut sum, mut weight) = (0.0, 0.0);
        for ((_, _, d), map) in pairs.iter().zip(&agreement) {
            let shift = [0, 1].map(|i| -d[i] * u * scale[i]);
            let over = between(&overlap, shift);
            if over > 0.2 * overlap[0] {
                sum += between(map, shift);
                weight += over;
            }
        }
        if weight > 0.0 { sum / weight * overlap[0] / power.max(f64::MIN_POSITIVE) } else { 0.0 }
    };
    let scores: Vec<(f64, f64)> =
        [-1.0, 1.0].iter().flat_map(|sign| (0..=trials).map(move |k| sign * at(k))).map(|u| (u, score(u))).collect();
    let (u, best) = scores.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let mut sizes: Vec<f64> = scores.iter().map(|(_, s)| s.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let clear = best > LEAST && best > OUTSTANDING * sizes[sizes.len() / 2];
    tracing::debug!("defocus from the frames: 1/(lambda z) {u:e} with a correlation of {best:.3}, median {:.3}", sizes[sizes.len() / 2]);
    // The distance of the detector bends the wave as well.
    let curvature = beam.wavelength * u - 1.0 / beam.distance;
    (clear && curvature != 0.0).then(|| 1.0 / curvature)
}

/// Pairs of views of one object with the move from the first to the second, metres: the nearest ones of some that stand evenly
/// among all.
fn pairs(model: &Model, views: &[usize]) -> Vec<(usize, usize, [f64; 2])> {
    let position = |j: usize| {
        let (view, shift) = (&model.views[j], model.shifts[j]);
        [(f64::from(view.row) + shift[0]) * model.pixel[0], (f64::from(view.col) + shift[1]) * model.pixel[1]]
    };
    let mut pairs = Vec::new();
    for j in views.iter().step_by(stride(views.len())) {
        let own = position(*j);
        let mut others: Vec<(f64, usize, [f64; 2])> = views
            .iter()
            .filter(|k| model.views[**k].object == model.views[*j].object)
            .map(|k| {
                let other = position(*k);
                let by = [other[0] - own[0], other[1] - own[1]];
                (by[0].hypot(by[1]), *k, by)
            })
            // A repeated position carries no information.
            .filter(|(far, ..)| *far > 0.5 * model.pixel[0].min(model.pixel[1]))
            .collect();
        others.sort_by(|a, b| a.0.total_cmp(&b.0));
        pairs.extend(others.into_iter().take(NEIGHBOURS).map(|(_, k, by)| (*j, k, by)));
    }
    pairs
}

/// A value between the four nearest cells, around the edges.
fn between(map: &[f64], [y, x]: [f64; 2]) -> f64 {
    let cell = |v: f64| (v.floor() as isize).rem_euclid(ROOM as isize) as usize;
    let (y0, x0, fy, fx) = (cell(y), cell(x), y - y.floor(), x - x.floor());
    let (y1, x1) = ((y0 + 1) % ROOM, (x0 + 1) % ROOM);
    let row = |y: usize| map[y * ROOM + x0] * (1.0 - fx) + map[y * ROOM + x1] * fx;
    row(y0) * (1.0 - fy) + row(y1) * fy
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills what a beam stop hides from the surrounding pixels, also across the corner of the transform's order; a frame of holes
    /// stays one.
    #[test]
    fn holes_are_filled_from_around() {
        let shape = [8, 10];
        let hidden = |i: usize| [0, 1, 7].contains(&(i / 10)) && [0, 1, 9].contains(&(i % 10));
        let mut mean: Vec<Option<f64>> = (0..80).map(|i| (!hidden(i)).then_some(if i / 10 < 4 { 2.0 } else { 4.0 })).collect();
        fill(&mut mean, shape);
        // Row 1 has rows of 2 beside it, row 7 rows of 4; row 0 is between them.
        let at = |y: usize, x: usize| mean[y * 10 + x].unwrap();
        assert!(at(1, 0) < 3.0 && at(7, 0) > 3.0 && (2.0..=4.0).contains(&at(0, 0)), "{mean:?}");
        let mut none = vec![None; 80];
        fill(&mut none, shape);
        assert!(none.iter().all(Option::is_none));
    }

    /// A masked pixel in the middle of the pupil leaves no hole in it.
    #[test]
    fn the_pupil_has_no_holes_of_masks() {
        let [rows, columns] = [16, 16];
        let disc = |i: usize| signed(i / columns, rows).hypot(signed(i % columns, columns)) < 5.0;
        let masked = |i: usize| signed(i / columns, rows).hypot(signed(i % columns, columns)) < 2.5;
        let mag = (0..rows * columns).map(|i| if masked(i) { crate::model::MASKED } else { 3.0 * f32::from(u8::from(disc(i))) }).collect();
        let model = Model { mag, ..blank([rows, columns]) };
        let pupil = Pupil::of(&model, &[0]).unwrap();
        assert!((pupil.light[0] / pupil.light[3] - 1.0).abs() < 0.2, "{} beside {}", pupil.light[0], pupil.light[3]);
    }

    fn blank(frame: [usize; 2]) -> Model {
        Model {
            frame,
            bin: [1, 1],
            modes: [1, 1],
            probes: 1,
            storages: Vec::new(),
            views: vec![crate::model::View::default()],
            subpixel: false,
            shifts: vec![[0.0; 2]],
            mag: Vec::new(),
            transfer: crate::model::Transfer::Far,
            pixel: [1e-8; 2],
            filter: Vec::new(),
            power: crate::model::Power::default(),
            start: crate::model::State::default(),
            begins: Vec::new(),
            scans: Vec::new(),
            share: crate::share::Share::default(),
        }
    }
}
