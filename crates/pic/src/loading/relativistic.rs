//! Momenta of a relativistic gas: tries in many cells at a time, each from the stream of its cell.

use zellige_engine::error::Result;

use super::lanes::{self, Candidates, GROUP};
use super::{Batch, Source};
use crate::sampling::{Purpose, Stream};
use crate::setup::Profile;

impl Source<'_> {
    /// Momenta of a relativistic gas, seen from the box.
    pub(super) fn draw_relativistic(&self, temperature: &Profile, out: &mut Batch) -> Result<()> {
        // Indices of the particles of each cell, in their order.
        let mut of_cell = vec![Vec::new(); out.cells.len()];
        for (p, c) in out.cell.iter().enumerate() {
            of_cell[*c as usize].push(p);
        }
        let philox = self.philox(Purpose::Momentum);
        for first in (0..out.cells.len()).step_by(GROUP) {
            let cells = first..(first + GROUP).min(out.cells.len());
            let (mut tries, mut left) = (Candidates::default(), [&[][..]; GROUP]);
            for (lane, c) in cells.clone().enumerate() {
                (tries.columns[lane], tries.numbers[lane], left[lane]) = (out.columns[c], out.rows[c], &of_cell[c]);
                self.prepare(temperature, lane, &mut left[lane], &mut tries, out)?;
            }
            // A cell that has all of its particles goes on trying in vain.
            while left.iter().any(|left| !left.is_empty()) {
                lanes::relativistic(self.isa, philox, &mut tries);
                for lane in 0..cells.len() {
                    let Some((p, rest)) = left[lane].split_first().filter(|_| tries.kept[lane]) else { continue };
                    self.boost(*p, [0, 1, 2].map(|k| tries.u[k][lane]), &mut tries.numbers[lane], out);
                    left[lane] = rest;
                    self.prepare(temperature, lane, &mut left[lane], &mut tries, out)?;
                }
            }
        }
        Ok(())
    }

    /// The temperature of the next particle of a cell; those that are cold have nothing to be tried for.
    fn prepare(&self, temperature: &Profile, lane: usize, left: &mut &[usize], tries: &mut Candidates, out: &mut Batch) -> Result<()> {
        while let Some((p, rest)) = left.split_first() {
            tries.theta[lane] = self.warm(temperature.at(self.at(out, *p)), out, *p)?;
            if tries.theta[lane] > 0.0 {
                break;
            }
            self.boost(*p, [0.0; 3], &mut tries.numbers[lane], out);
            *left = rest;
        }
        Ok(())
    }

    /// Gives a particle the momentum `u` at rest, seen from the box; `number` of its cell's stream goes on by what that draws.
    fn boost(&self, p: usize, u: [f64; 3], number: &mut u64, out: &mut Batch) {
        let position = self.at(out, p);
        let mut stream = Stream::at(self.philox(Purpose::Momentum), out.draws.columns[p], *number);
        let u = stream.boosted(u, [0, 1, 2].map(|c| self.load.drift[c].at(position)));
        *number = stream.number();
        (0..3).for_each(|c| out.u[c][p] = u[c]);
    }
}
