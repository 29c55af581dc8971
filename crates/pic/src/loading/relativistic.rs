//! Momenta of a relativistic gas: tries in many cells at a time, each from the stream of its cell.

use zellige_engine::error::Result;

use super::lanes::{self, Candidates, GROUP};
use super::{Batch, Source};
use crate::sampling::{Purpose, Stream};
use crate::setup::Profile;

/// Particles of each cell of a batch, in their order.
struct OfCells {
    /// Place in the list of the first one of each cell, and the end.
    first: Vec<usize>,
    particles: Vec<u32>,
}

impl OfCells {
    fn new(batch: &Batch) -> Self {
        let mut first = vec![0; batch.cells.len() + 1];
        batch.cell.iter().for_each(|c| first[*c as usize + 1] += 1);
        (1..first.len()).for_each(|c| first[c] += first[c - 1]);
        let (mut next, mut particles) = (first.clone(), vec![0; batch.len()]);
        for (p, c) in batch.cell.iter().enumerate() {
            particles[next[*c as usize]] = p as u32;
            next[*c as usize] += 1;
        }
        Self { first, particles }
    }

    fn of(&self, cell: usize) -> &[u32] {
        &self.particles[self.first[cell]..self.first[cell + 1]]
    }
}

/// Temperature and drift of a gas.
struct Gas<'a> {
    temperature: &'a Profile,
    /// Both where they are numbers, the first one above 0.
    numbers: Option<(f64, [f64; 3])>,
}

impl Source<'_> {
    /// Momenta of a relativistic gas, seen from the box.
    pub(super) fn draw_relativistic(&self, temperature: &Profile, out: &mut Batch) -> Result<()> {
        let [x, y, z] = &self.load.drift;
        let numbers = match (temperature, x, y, z) {
            (Profile::Number(t), Profile::Number(x), Profile::Number(y), Profile::Number(z)) if !out.is_empty() => {
                Some((self.warm(*t, out, 0)?, [*x, *y, *z])).filter(|(theta, _)| *theta > 0.0)
            }
            _ => None,
        };
        let (gas, of_cells, philox) = (Gas { temperature, numbers }, OfCells::new(out), self.philox(Purpose::Momentum));
        for first in (0..out.cells.len()).step_by(GROUP) {
            let cells = first..(first + GROUP).min(out.cells.len());
            let (mut tries, mut left) = (Candidates::default(), [&[][..]; GROUP]);
            for (lane, c) in cells.clone().enumerate() {
                (tries.columns[lane], tries.numbers[lane], left[lane]) = (out.columns[c], out.rows[c], of_cells.of(c));
                self.prepare(&gas, lane, &mut left[lane], &mut tries, out)?;
            }
            // A cell that has all of its particles goes on trying in vain.
            while left.iter().any(|left| !left.is_empty()) {
                lanes::relativistic(self.isa, philox, &mut tries);
                for lane in 0..cells.len() {
                    let Some((p, rest)) = left[lane].split_first().filter(|_| tries.kept[lane]) else { continue };
                    let u = [tries.u[0][lane], tries.u[1][lane], tries.u[2][lane]];
                    self.boost(&gas, *p as usize, u, &mut tries.numbers[lane], out);
                    left[lane] = rest;
                    self.prepare(&gas, lane, &mut left[lane], &mut tries, out)?;
                }
            }
        }
        Ok(())
    }

    /// The temperature of the next particle of a cell; those that are cold have nothing to be tried for.
    fn prepare(&self, gas: &Gas<'_>, lane: usize, left: &mut &[u32], tries: &mut Candidates, out: &mut Batch) -> Result<()> {
        if let Some((theta, _)) = gas.numbers {
            tries.theta[lane] = theta;
            return Ok(());
        }
        while let Some((p, rest)) = left.split_first() {
            let p = *p as usize;
            tries.theta[lane] = self.warm(gas.temperature.at(self.at(out, p)), out, p)?;
            if tries.theta[lane] > 0.0 {
                break;
            }
            self.boost(gas, p, [0.0; 3], &mut tries.numbers[lane], out);
            *left = rest;
        }
        Ok(())
    }

    /// Gives a particle the momentum `u` at rest, seen from the box; `number` of its cell's stream goes on by what that draws.
    fn boost(&self, gas: &Gas<'_>, p: usize, u: [f64; 3], number: &mut u64, out: &mut Batch) {
        let drift = match gas.numbers {
            Some((_, drift)) => drift,
            None => {
                let position = self.at(out, p);
                [0, 1, 2].map(|c| self.load.drift[c].at(position))
            }
        };
        let mut stream = Stream::at(self.philox(Purpose::Momentum), out.draws.columns[p], *number);
        let u = stream.boosted(u, drift);
        *number = stream.number();
        (0..3).for_each(|c| out.u[c][p] = u[c]);
    }
}
