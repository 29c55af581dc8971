//! Propagation from the sample to counts.

use std::ops::Range;

use num_complex::Complex;
use zellige_engine::ops::fft::{Direction, Plan, Shape};
use zellige_engine::parallel::{chunks, chunks_mut, each, indices, items, items_mut, map, position};
use zellige_engine::rng::Philox;

use super::coherence;
use super::config::{DetectorConfig, SimulateConfig};
use super::illumination::signed;
use super::noise;
use crate::scan::{Beam, Frames, Image, Mask, Propagation};

type C = Complex<f64>;

/// Values of a block of waves: 16 MiB, and as much again while they are transformed.
const BLOCK: usize = 1 << 20;

/// Bytes that making frames takes at the most beside the counts: waves of an extended source and their transforms, random ground of
/// the sample and its transforms, or the sample with a block of waves, of their means and of counts.
pub(super) fn memory(config: &SimulateConfig, sample: u64, threads: u64) -> u64 {
    let ([size, bin], modes) = ([config.size.both(), config.resample.both()], config.illumination.modes as u64);
    let (counts, wave) = ((size[0] * size[1]) as u64, (size[0] * bin[0] * size[1] * bin[1]) as u64);
    // A transform holds a frame for each of its parts.
    let parts = if threads == 1 { 1 } else { 4 * threads };
    let of = |waves: u64| 16 * wave * (waves + waves.min(parts));
    let block = (BLOCK as u64 / (wave * modes)).clamp(1, config.frames.max(1) as u64);
    let frames = 16 * sample + of(block * modes) + (2 * 16 * modes + 12 * block) * counts;
    (of(coherence::members(config.illumination.blur.both())) + 32 * wave).max(48 * sample).max(frames)
}

/// Geometry and beam that frames are made from.
pub(super) struct FrameGeometry<'a> {
    pub(super) config: &'a SimulateConfig,
    /// Beam of the waves, as are shape and spacing.
    pub(super) beam: Beam,
    pub(super) shape: [usize; 2],
    /// Rows and columns of the waves that a pixel of the detector counts.
    pub(super) bin: [usize; 2],
    pub(super) spacing: [f64; 2],
    pub(super) probe: &'a Image,
    pub(super) sample: &'a [C],
    pub(super) grid: [usize; 2],
    pub(super) origin: [f64; 2],
    pub(super) mask: &'a Mask,
    pub(super) seed: u64,
}

/// Pixels that count.
pub(super) fn mask(detector: &DetectorConfig, shape: [usize; 2], seed: u64) -> Mask {
    if detector.beamstop == 0.0 && detector.dead == 0.0 {
        return Mask::All;
    }
    let philox = Philox::new(noise::DEAD, seed);
    let valid = |i: usize| {
        let (y, x) = ((i / shape[1]) as f64 - (shape[0] / 2) as f64, (i % shape[1]) as f64 - (shape[1] / 2) as f64);
        y.hypot(x) >= 0.5 * detector.beamstop && philox.uniforms(0, i as u64)[0] >= detector.dead
    };
    Mask::Common((0..shape[0] * shape[1]).map(valid).collect())
}

/// A frame's patch: its first pixel in the sample, and the sub-pixel remainder of the position, in pixels.
fn in_object(view: &FrameGeometry, position: [f64; 2]) -> ([usize; 2], [f64; 2]) {
    let at = [0, 1].map(|d| (position[d] - view.origin[d]) / view.spacing[d] - (view.shape[d] / 2) as f64);
    (at.map(|v| v.round() as usize), at.map(|v| v - v.round()))
}

/// Returns true if a position has no sub-pixel remainder.
fn whole(rest: [f64; 2]) -> bool {
    rest.iter().all(|r| r.abs() < 1e-6)
}

/// The frames `some`.
pub(super) fn frames(view: &FrameGeometry, positions: &[[f64; 2]], some: Range<usize>) -> Frames {
    let [rows, columns] = view.shape;
    let pixels = rows * columns;
    let [height, width] = view.counted();
    let counts = height * width;
    let [down, along] = sources(view);
    let modes = probe_modes(view);
    let block = (BLOCK / (pixels * modes.len())).clamp(1, positions.len().max(1));
    let mut plan = Plan::new(Shape::frames(rows, columns, block * modes.len()));
    let mut waves = vec![C::default(); block * modes.len() * pixels];
    let (mut means, mut counted) = (vec![0.0; block * counts], vec![0.0f32; block * counts]);
    let mut detector = (view.config.detector.spread > 0.0).then(|| {
        let [rows, columns] = view.counted();
        Plan::new(Shape::frames(rows, columns, 1))
    });
    let mut found = FrameBuffer::new(some.len() * counts, view.config.noise);
    let light = Philox::new(noise::LIGHT, view.seed);
    let mut planned = block;
    for (number, together) in positions.chunks(block).enumerate() {
        // Blocks are those of all frames, whichever of them are made.
        let (begin, end) = (number * block, number * block + together.len());
        let (first, last) = (some.start.clamp(begin, end), some.end.clamp(begin, end));
        let part = &positions[first..last];
        if part.is_empty() {
            continue;
        }
        if part.len() != planned {
            planned = part.len();
            plan = Plan::new(Shape::frames(rows, columns, planned * modes.len()));
        }
        let waves = &mut waves[..part.len() * modes.len() * pixels];
        let whole = together.iter().all(|&p| whole(in_object(view, p).1));
        exit_waves(view, &modes, (part, whole), waves, &mut plan);
        propagate(view, part, waves, &mut plan);
        let means = &mut means[..part.len() * counts];
        // A row of a frame at a time: of large frames there are few.
        each(chunks_mut(means, width), |row, line| {
            let (i, row) = (row / height, row % height);
            let waves = &waves[i * modes.len() * pixels..(i + 1) * modes.len() * pixels];
            let lamp = (1.0 + view.config.fluctuation * light.normals(0, (first + i) as u64)[0]).max(0.02);
            for (value, column) in line.iter_mut().zip(&along) {
                let from = down[row] + column;
                let mut sum = 0.0;
                for y in 0..view.bin[0] {
                    for at in from + y * columns..from + y * columns + view.bin[1] {
                        let mut one = 0.0;
                        for wave in waves.chunks_exact(pixels) {
                            one += wave[at].norm_sqr();
                        }
                        sum += one;
                    }
                }
                *value = lamp * sum / pixels as f64 + view.config.detector.background;
            }
        });
        if let Some(plan) = &mut detector {
            means.chunks_mut(counts).for_each(|mean| spread(view, mean, plan));
        }
        let counted = &mut counted[..part.len() * counts];
        if view.config.noise {
            noise::counts(Philox::new(noise::COUNTS, view.seed), (first * counts) as u64, means, counted);
        } else {
            each((items_mut(counted), items(means)), |_, (c, m)| *c = *m as f32);
        }
        if let Mask::Common(valid) = view.mask {
            each(chunks_mut(counted, counts), |_, frame| frame.iter_mut().zip(valid).for_each(|(c, v)| *c = if *v { *c } else { 0.0 }));
        }
        found.push(counted);
    }
    found.finish()
}

/// The probe's modes with the quadratic phase of the sample plane, which the far field needs.
fn probe_modes(view: &FrameGeometry) -> Vec<Vec<C>> {
    let [_, rows, columns] = view.probe.shape;
    let lz = view.beam.wavelength * view.beam.distance;
    let modes = view.probe.values.chunks_exact(rows * columns);
    let wide = |i: usize, v: &Complex<f32>| {
        let y = ((i / columns) as f64 - (rows / 2) as f64) * view.spacing[0];
        let x = ((i % columns) as f64 - (columns / 2) as f64) * view.spacing[1];
        let phase = if view.beam.propagation == Propagation::Far { std::f64::consts::PI * (x * x + y * y) / lz } else { 0.0 };
        let phase = phase + view.tilt(i);
        C::new(f64::from(v.re), f64::from(v.im)) * C::from_polar(1.0, phase)
    };
    modes.map(|mode| map(indices(mode.len()), |_, i| wide(i, &mode[i]))).collect()
}

/// Probe times sample for every mode of every frame. Where positions are not whole pixels the probe is moved by the remainder, in
/// Fourier space.
fn exit_waves(view: &FrameGeometry, modes: &[Vec<C>], (positions, whole): (&[[f64; 2]], bool), waves: &mut [C], plan: &mut Plan<f64>) {
    let [rows, columns] = view.shape;
    // Line by line: of large waves there are few.
    let of = |line: usize| (line / rows, line % rows);
    each(chunks_mut(waves, columns), |line, to| {
        let (k, row) = of(line);
        to.copy_from_slice(&modes[k % modes.len()][row * columns..][..columns]);
    });
    if !whole {
        plan.run(waves, Direction::Forward);
        each(chunks_mut(waves, columns), |line, to| {
            let (k, row) = of(line);
            shift(view, row, to, in_object(view, positions[k / modes.len()]).1, 1.0 / (rows * columns) as f64);
        });
        plan.run(waves, Direction::Inverse);
    }
    each(chunks_mut(waves, columns), |line, to| {
        let (k, row) = of(line);
        let ([top, left], _) = in_object(view, positions[k / modes.len()]);
        let start = (top + row) * view.grid[1] + left;
        to.iter_mut().zip(&view.sample[start..start + columns]).for_each(|(w, o)| *w *= o);
    });
}

/// A row of the transform of a wave as that of the wave moved by `rest` pixels, times `factor`.
fn shift(view: &FrameGeometry, row: usize, line: &mut [C], rest: [f64; 2], factor: f64) {
    let [rows, columns] = view.shape;
    for (column, v) in line.iter_mut().enumerate() {
        let turns = rest[0] * signed(row, rows) / rows as f64 + rest[1] * signed(column, columns) / columns as f64;
        *v *= C::from_polar(factor, -std::f64::consts::TAU * turns);
    }
}

/// Propagates waves to the detector, near or far field, up to a factor that leaves `sum |w|^2` times the number of pixels.
fn propagate(view: &FrameGeometry, positions: &[[f64; 2]], waves: &mut [C], plan: &mut Plan<f64>) {
    plan.run(waves, Direction::Forward);
    if view.beam.propagation == Propagation::Far {
        return;
    }
    let [rows, columns] = view.shape;
    let turn = -std::f64::consts::PI * view.beam.wavelength * view.beam.distance;
    let kernel: Vec<C> = map(indices(rows * columns), |_, i| {
        let ky = signed(i / columns, rows) / (rows as f64 * view.spacing[0]);
        let kx = signed(i % columns, columns) / (columns as f64 * view.spacing[1]);
        C::from_polar(1.0 / ((rows * columns) as f64).sqrt(), turn * (ky * ky + kx * kx))
    });
    let modes = waves.len() / (rows * columns) / positions.len().max(1);
    each(chunks_mut(waves, columns), |line, wave| {
        let (k, row) = (line / rows, line % rows);
        wave.iter_mut().zip(&kernel[row * columns..]).for_each(|(w, k)| *w *= k);
        // The probe was moved in the frame, which stands where the detector is: back.
        let rest = in_object(view, positions[k / modes]).1;
        if !whole(rest) {
            shift(view, row, wave, rest.map(|r| -r), 1.0);
        }
    });
    plan.run(waves, Direction::Inverse);
}

/// Index of the first value of the transform that belongs to a pixel of the centred frame, as the parts that its row and its column
/// add.
fn sources(view: &FrameGeometry) -> [Vec<usize>; 2] {
    let (counted, bin) = (view.counted(), view.bin);
    let stride = [bin[0] * view.shape[1], bin[1]];
    [0, 1].map(|d| {
        let n = counted[d];
        let of = |i: usize| match view.beam.propagation {
            Propagation::Near => i,
            Propagation::Far => (i + n - n / 2) % n,
        };
        (0..n).map(|i| of(i) * stride[d]).collect()
    })
}

impl FrameGeometry<'_> {
    /// Rows and columns of a frame as it is counted.
    fn counted(&self) -> [usize; 2] {
        [0, 1].map(|d| self.shape[d] / self.bin[d])
    }

    /// The phase by which the far field is shifted so that the middle of the first pixels that are counted together lies on the
    /// optical axis.
    fn tilt(&self, i: usize) -> f64 {
        if self.bin == [1, 1] || self.beam.propagation == Propagation::Near {
            return 0.0;
        }
        let at = [i / self.shape[1], i % self.shape[1]];
        let turns = |d: usize| (self.bin[d] - 1) as f64 * (at[d] as f64 - (self.shape[d] / 2) as f64) / (2 * self.shape[d]) as f64;
        std::f64::consts::TAU * (turns(0) + turns(1))
    }
}

/// A point of the detector spread into a Gaussian.
fn spread(view: &FrameGeometry, mean: &mut [f64], plan: &mut Plan<f64>) {
    let [rows, columns] = view.counted();
    let mut plane: Vec<C> = map(indices(mean.len()), |_, i| C::from(mean[i]));
    plan.run(&mut plane, Direction::Forward);
    let width = 2.0 * (std::f64::consts::PI * view.config.detector.spread).powi(2);
    each(items_mut(&mut plane), |i, v| {
        let k2 = (signed(i / columns, rows) / rows as f64).powi(2) + (signed(i % columns, columns) / columns as f64).powi(2);
        *v *= (-width * k2).exp() / (rows * columns) as f64;
    });
    plan.run(&mut plane, Direction::Inverse);
    mean.iter_mut().zip(&plane).for_each(|(m, v)| *m = v.re.max(0.0));
}

/// Frames as they come: 16 bits as long as they fit. Zeros that the system makes when they are first touched, by the threads that
/// fill them.
struct FrameBuffer {
    counts: Vec<u16>,
    real: Vec<f32>,
    whole: bool,
    /// Values that have come.
    filled: usize,
}

impl FrameBuffer {
    /// Room for `values` in all.
    fn new(values: usize, whole: bool) -> Self {
        let [counts, real] = if whole { [values, 0] } else { [0, values] };
        Self { counts: vec![0; counts], real: vec![0.0; real], whole, filled: 0 }
    }

    fn push(&mut self, values: &[f32]) {
        if self.whole && position(values, |v| *v > f32::from(u16::MAX)).is_some() {
            self.whole = false;
            let counts = std::mem::take(&mut self.counts);
            self.real = vec![0.0; counts.len()];
            put(&mut self.real, &counts, f32::from);
        }
        let own = self.filled..self.filled + values.len();
        if self.whole {
            put(&mut self.counts[own], values, |v| v as u16);
        } else {
            put(&mut self.real[own], values, |v| v);
        }
        self.filled += values.len();
    }

    fn finish(self) -> Frames {
        if self.whole { Frames::Counts(self.counts) } else { Frames::Real(self.real) }
    }
}

/// Puts `of` each value into `to`, on all cores.
fn put<V: Copy + Sync, T: Send>(to: &mut [T], values: &[V], of: impl Fn(V) -> T + Sync) {
    const PIECE: usize = 1 << 14;
    each((chunks_mut(to, PIECE), chunks(values, PIECE)), |_, (to, from)| {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = of(*from));
    });
}
