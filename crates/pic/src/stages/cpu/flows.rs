//! The ledger of a species: what its tiles count in every pass, entered in the order of passes and tiles.
//!
//! In several parts the counts of tiles wait for those of the others until somebody asks: no step has to.

use zellige_engine::error::Result;

use super::exchange::Tally;
use crate::particles::Species;
use crate::stages::Ledger;
use crate::stages::part::Part;

/// Passes after which counts are exchanged although nobody has asked for the ledger.
const PASSES: u64 = 1 << 12;

/// Words of a count that waits: pass, tile, particles, and three sums.
const WORDS: usize = 6;

/// A ledger, and what is still to be entered.
#[derive(Debug, Default)]
pub(super) struct Flows {
    ledger: Ledger,
    pass: u64,
    counts: Vec<[u64; WORDS]>,
    /// Pass, particles and energy that were put in, the same at all parts.
    injected: Vec<(u64, u64, f64)>,
}

/// Enters what tiles counted together in a pass.
fn enter(ledger: &mut Ledger, tally: &Tally, species: &Species, volume: f64) {
    ledger.removed += tally.removed;
    ledger.energy_in += tally.energy_in * species.macro_mass() * volume;
    ledger.energy_out += tally.energy_out * species.macro_mass() * volume;
    ledger.charge_out += tally.weight_out * species.macro_charge() * volume;
}

/// Sum of tallies in their order.
pub(super) fn summed<'a>(tallies: impl Iterator<Item = &'a Tally>) -> Tally {
    tallies.fold(Tally::default(), |mut sum, tally| {
        sum += *tally;
        sum
    })
}

impl Flows {
    /// The ledger as far as it is known here.
    pub(super) fn known(&self) -> &Ledger {
        &self.ledger
    }

    /// Takes a ledger from elsewhere.
    pub(super) fn set(&mut self, ledger: Ledger) {
        *self = Self { ledger, ..Self::default() };
    }

    /// Counts particles of all parts that were there before the first step.
    pub(super) fn begin(&mut self, particles: u64) {
        self.ledger.injected += particles;
    }

    /// Counts particles that were put in, in all parts together, and their energy.
    pub(super) fn inject(&mut self, part: &Part, particles: u64, energy: f64) {
        if part.is_alone() {
            self.ledger.injected += particles;
            self.ledger.energy_in += energy;
        } else {
            self.pass += 1;
            self.injected.push((self.pass, particles, energy));
        }
    }

    /// Counts what tiles of this part found in a pass, in their order.
    pub(super) fn count<'a>(
        &mut self,
        part: &Part,
        tallies: impl Iterator<Item = (usize, &'a Tally)>,
        species: &Species,
        volume: f64,
    ) -> Result<()> {
        if part.is_alone() {
            enter(&mut self.ledger, &summed(tallies.map(|(_, tally)| tally)), species, volume);
            return Ok(());
        }
        self.pass += 1;
        // Nothing is a sum without those that found nothing.
        let found = tallies.filter(|(_, t)| t.removed > 0 || t.energy_in != 0.0 || t.energy_out != 0.0);
        let words = |(tile, t): (usize, &Tally)| {
            let sums = [t.weight_out, t.energy_in, t.energy_out].map(f64::to_bits);
            [self.pass, tile as u64, t.removed, sums[0], sums[1], sums[2]]
        };
        self.counts.extend(found.map(words));
        if self.pass >= PASSES { self.settle(part, species, volume) } else { Ok(()) }
    }

    /// Enters what all parts have counted; they all take part.
    pub(super) fn settle(&mut self, part: &Part, species: &Species, volume: f64) -> Result<()> {
        if part.is_alone() {
            return Ok(());
        }
        let mut counts = part.joined(std::mem::take(&mut self.counts), true)?;
        counts.sort_by_key(|words| [words[0], words[1]]);
        let mut injected = std::mem::take(&mut self.injected).into_iter().peekable();
        for pass in counts.chunk_by(|a, b| a[0] == b[0]) {
            while let Some((_, particles, energy)) = injected.next_if(|i| i.0 < pass[0][0]) {
                self.ledger.injected += particles;
                self.ledger.energy_in += energy;
            }
            let mut sum = Tally::default();
            for [_, _, removed, weight_out, energy_in, energy_out] in pass {
                let [weight_out, energy_in, energy_out] = [weight_out, energy_in, energy_out].map(|bits| f64::from_bits(*bits));
                sum += Tally { removed: *removed, weight_out, energy_in, energy_out, ..Tally::default() };
            }
            enter(&mut self.ledger, &sum, species, volume);
        }
        for (_, particles, energy) in injected {
            self.ledger.injected += particles;
            self.ledger.energy_in += energy;
        }
        self.pass = 0;
        Ok(())
    }
}
