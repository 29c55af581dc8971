//! Detection of the steady state of a flow: the trend of its contents and of the loads on its walls.
//!
//! While the start is looked for, the sums of successive blocks of samples are reduced to a few numbers each: number, momentum and
//! energy of up to sixteen regions of the domain, and force and heat on every side and body. A look takes the second half of all
//! blocks so far, cuts it into ten batches, and compares the mean of the first five with that of the last five: with `s` the
//! standard deviation of the batches about the mean of their half,
//!
//! ```text
//! z = (mean of the last five - mean of the first five) / (s sqrt(2/5))
//! ```
//!
//! and the measure is the mean of `z^2` over all numbers, over 8/6, which is what Student's t with 8 degrees of freedom has when
//! nothing drifts: then it is 1. The flow counts as steady after two looks in a row with a measure of at most `LIMIT`. Batches
//! shorter than the memory of the gas make `s` too small and the measure too large, so the start comes too late rather than too
//! early. The batches grow with the run: from a tenth of a twentieth of what has passed.

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::error::Result;
use zellige_engine::links::Links;

use crate::model::Model;
use crate::stages::SURFACE_SUMS;

/// Blocks of a run.
const BLOCKS: u64 = 400;
/// Batches of a look, half of them on each side.
const BATCHES: usize = 10;
/// Blocks between looks, and before the first one.
const EVERY: usize = 10;
const FIRST: usize = 40;
/// Largest measure of a steady flow: with some twenty independent numbers its standard deviation is near 0.5.
const LIMIT: f64 = 2.0;
/// Looks in a row that must pass.
const IN_A_ROW: u64 = 2;
/// Regions along an axis: of a plane and of a line.
const REGIONS: [usize; 2] = [4, 16];

/// Start of the averages as found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyStart {
    /// First step of the averages.
    pub step: u64,
    /// True if the flow was found steady; otherwise time was up.
    pub steady: bool,
    /// The measure of the last look; NaN without one.
    pub measure: f64,
}

/// The search for the start.
#[derive(Debug, Clone)]
pub struct Search {
    /// Samples of a block.
    pub block: u64,
    /// Samples of the block under way.
    current: u64,
    /// Step at which the averages begin whatever is found.
    deadline: u64,
    /// Numbers of a block.
    width: usize,
    /// `[block][width]`.
    series: Vec<f64>,
    passed: u64,
    measure: f64,
    /// The end of the search.
    pub found: Option<SteadyStart>,
}

impl Search {
    /// Of a run of `steps` steps with a sample every `every`.
    pub fn new(model: &Model, steps: u64, every: u64) -> Self {
        let [x, y] = regions(model);
        let sums = vec![0.0; x * y * model.species.len() * model.collisions.sums()];
        let width = reduce(model, &sums, &vec![0.0; surfaces(model) * SURFACE_SUMS]).len();
        let block = (steps / every).div_ceil(BLOCKS).max(1);
        Self { block, current: 0, deadline: steps - steps / 4, width, series: Vec::new(), passed: 0, measure: f64::NAN, found: None }
    }

    /// Counts a sample; says whether a block is full.
    pub fn count(&mut self) -> bool {
        self.current += 1;
        self.current == self.block
    }

    /// Takes the sums of a full block: those of regions and of surfaces. `step` is the next step.
    pub(super) fn take(&mut self, model: &Model, sums: &[f64], surfaces: &[f64], step: u64) {
        self.current = 0;
        self.add(&reduce(model, sums, surfaces), step);
    }

    /// Takes what the first part has found, at the others.
    pub(super) fn follow(&mut self, links: &Links) -> Result<()> {
        let found = self.found.map_or([f64::NAN; 2], |f| [f.step as f64, f64::from(u8::from(f.steady))]);
        let mut values = [self.measure, found[0], found[1]];
        links.first_values(&mut values)?;
        let [measure, step, steady] = values;
        (self.current, self.measure) = (0, measure);
        self.found = step.is_finite().then_some(SteadyStart { step: step as u64, steady: steady > 0.5, measure });
        Ok(())
    }

    fn add(&mut self, numbers: &[f64], step: u64) {
        self.series.extend_from_slice(numbers);
        let blocks = self.series.len() / self.width;
        if blocks >= FIRST && blocks.is_multiple_of(EVERY) {
            self.measure = measure(&self.series, self.width);
            self.passed = if self.measure <= LIMIT { self.passed + 1 } else { 0 };
        }
        let steady = self.passed >= IN_A_ROW;
        if steady || step >= self.deadline {
            self.found = Some(SteadyStart { step, steady, measure: self.measure });
        }
    }

    /// The measure of the last look.
    pub fn measure(&self) -> f64 {
        self.measure
    }

    /// Bytes held.
    pub fn memory(&self) -> u64 {
        8 * self.series.capacity() as u64
    }

    /// Writes everything.
    pub fn save(&self, writer: &mut Writer) -> Result<()> {
        writer.f64s("steady.series", &self.series)?;
        let found = self.found.map_or([f64::NAN; 2], |f| [f.step as f64, f64::from(u8::from(f.steady))]);
        writer.f64s("steady.state", &[self.current as f64, self.passed as f64, self.measure, found[0], found[1], self.block as f64])
    }

    /// Takes everything back.
    pub fn restore(&mut self, reader: &Reader) -> Result<()> {
        let (series, state) = (reader.f64s("steady.series")?, reader.f64s("steady.state")?);
        let [current, passed, measure, step, steady, block] = state[..] else {
            return Err(reader.content_error("section `steady.state` has not 6 numbers"));
        };
        if series.len() % self.width != 0 {
            return Err(reader.content_error(format!(
                "section `steady.series` has {} numbers, a multiple of {} expected",
                series.len(),
                self.width
            )));
        }
        (self.series, self.current, self.passed, self.measure) = (series, current as u64, passed as u64, measure);
        self.block = (block as u64).max(1);
        self.found = step.is_finite().then_some(SteadyStart { step: step as u64, steady: steady > 0.5, measure });
        Ok(())
    }
}

fn surfaces(model: &Model) -> usize {
    4 + model.geometry.segments().len()
}

/// Regions along each axis.
pub(super) fn regions(model: &Model) -> [usize; 2] {
    let line = model.grid.cells[1] == 1;
    let most = REGIONS[usize::from(line)];
    [0, 1].map(|d| model.grid.cells[d].min(if line && d == 1 { 1 } else { most }))
}

/// The numbers of a block, from the sums of [`regions`], `[region][species][sum]`, and those of surfaces.
fn reduce(model: &Model, sums: &[f64], surfaces: &[f64]) -> Vec<f64> {
    let (grid, species, modes, one) = (&model.grid, &model.species, model.collisions.internal(), model.collisions.sums());
    let mut out = Vec::new();
    for sums in sums.chunks_exact(species.len() * one) {
        let mut to = [0.0; 5];
        for (kind, s) in species.iter().zip(sums.chunks_exact(one)) {
            to[0] += s[0];
            for i in 0..3 {
                to[1 + i] += kind.mass * s[1 + i];
            }
            // Translation and internal modes in one unit, J.
            let internal = s[modes] + kind.vibration.of_levels(&s[modes + 1..]);
            to[4] += 0.5 * kind.mass * (s[4] + s[5] + s[6]) + crate::walls::BOLTZMANN * internal;
        }
        out.extend(to);
    }
    let gets = |range: std::ops::Range<usize>, i: usize| range.map(|k| surfaces[k * SURFACE_SUMS + i]).sum::<f64>();
    for side in (0..4).filter(|s| model.edges[*s].is_wall() && s / 2 < grid.dimensions) {
        out.extend((1..5).map(|i| gets(side..side + 1, i)));
    }
    for body in model.geometry.bodies() {
        out.extend((1..5).map(|i| gets(4 + body.segments.start..4 + body.segments.end, i)));
    }
    out
}

/// The measure of the second half of a series; 1 on average where nothing drifts.
fn measure(series: &[f64], width: usize) -> f64 {
    let blocks = series.len() / width;
    let size = blocks / 2 / BATCHES;
    let first = blocks - size * BATCHES;
    let (mut sum, mut count) = (0.0, 0.0);
    for i in 0..width {
        let mut means = [0.0; BATCHES];
        for (b, mean) in means.iter_mut().enumerate() {
            *mean = (0..size).map(|k| series[(first + b * size + k) * width + i]).sum::<f64>() / size as f64;
        }
        const HALF: usize = BATCHES / 2;
        let middle = [0, HALF].map(|from| means[from..from + HALF].iter().sum::<f64>() / HALF as f64);
        let scatter: f64 = means.iter().enumerate().map(|(b, m)| (m - middle[b / HALF]).powi(2)).sum();
        let difference = middle[1] - middle[0];
        // Constant quantities, as the number in a closed domain or the momentum along a mirror, say nothing; rounding of sums
        // neither.
        if difference.abs() <= 1e-12 * middle[0].abs() {
            continue;
        }
        let variance = scatter / (BATCHES - 2) as f64 * (2.0 / HALF as f64);
        sum += if variance > 0.0 { difference * difference / variance } else { f64::INFINITY };
        count += 1.0;
    }
    let freedom = (BATCHES - 2) as f64;
    if count > 0.0 { sum / count * (freedom - 2.0) / freedom } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use zellige_engine::rng::Philox;

    use super::*;

    const WIDTH: usize = 20;

    /// Noise with a memory of `memory` blocks about a transient `amplitude exp(-t/tau)`; the block in which the search ends.
    fn ends(seed: u64, amplitude: f64, tau: f64, memory: f64) -> (usize, bool) {
        let mut search =
            Search { block: 1, current: 0, deadline: 300, width: WIDTH, series: Vec::new(), passed: 0, measure: f64::NAN, found: None };
        let (philox, keep) = (Philox::new(1, seed), (-1.0 / memory).exp());
        let mut state = [0.0; WIDTH];
        for t in 0.. {
            let mut numbers = [0.0; WIDTH];
            for i in 0..WIDTH {
                let [a, _] = philox.normals(t, i as u64);
                state[i] = keep * state[i] + (1.0 - keep * keep).sqrt() * a;
                // Half of the numbers know of the transient.
                numbers[i] = 100.0 + state[i] + if i % 2 == 0 { amplitude * (-(t as f64) / tau).exp() } else { 0.0 };
            }
            search.add(&numbers, t + 1);
            if let Some(found) = search.found {
                return (found.step as usize, found.steady);
            }
        }
        unreachable!()
    }

    #[test]
    fn a_flow_that_is_steady_from_the_start_is_found_at_the_second_look() {
        let ended: Vec<usize> = (0..40).map(|seed| ends(seed, 0.0, 1.0, 0.3).0).collect();
        // The measure of 20 independent numbers is above 2 in about 3 % of the looks.
        assert!(ended.iter().filter(|e| **e == FIRST + EVERY).count() >= 33, "{ended:?}");
        assert!(ended.iter().all(|e| *e <= 100), "{ended:?}");
    }

    #[test]
    fn a_transient_is_waited_for_until_the_noise_hides_it() {
        for (seed, tau) in (0..40).map(|s| (s, [10.0, 20.0, 30.0][s as usize % 3])) {
            let (end, steady) = ends(seed, 50.0, tau, 1.0);
            // Remainder of the transient after the search ends, against the noise of a single block, 1: a tenth of it would be seen
            // in means of the ten batches or more that follow.
            let left = 50.0 * (-(end as f64) / tau).exp();
            assert!(steady && left < 0.35, "seed {seed}, tau {tau}: {left} left at block {end}");
            assert!((end as f64) < 60.0 + 9.0 * tau, "seed {seed}, tau {tau}: only at block {end}");
        }
    }

    #[test]
    fn a_drift_that_does_not_end_is_told() {
        assert_eq!(ends(1, 1000.0, 400.0, 1.0), (300, false));
    }
}
