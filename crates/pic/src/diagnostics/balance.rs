//! The balance of energy of a run, beside what of it can change.
//!
//! A closed box keeps `fields + kinetic + out - in` with what particles take along through sides. Where fields go out and in as
//! well, through layers, a window or an antenna, particles keep `kinetic + out - in - work`, with the work `sum dt integral J.E`
//! that the fields do on them: numerical heating shows in either.
//!
//! A difference is judged by what can change: the thermal energy that the input gives, and what fields have held or done so far.
//! The energy of a drift is not in it, nor is there more of it than there was at the start and came in since: after a blow-up it
//! has no bound.

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::error::{Error, Result};

use crate::plasma::{EnergyAccounts, Plasma};
use crate::stability;
use crate::stages::{Ledger, Precision};

/// Ratio of the energy to the initial and injected energy above which a run has diverged.
const BLOWN_UP: f64 = 100.0;
/// Energy of a particle of a cold plasma, over `m c^2` of an electron, below which nothing is judged: of rounding in single
/// precision.
const COLD: f64 = 1e-10;
/// Rounding of momenta in a run, over their last digit: differences of so much of all energy are not judged.
const ROUNDING: f64 = 30.0;

/// Account at the start of a step: belongs to the energies that it measures.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EnergyAccount {
    /// Flows through sides and the window, summed over species.
    pub ledger: Ledger,
    /// Work of the fields on particles, where it is added up.
    pub work: f64,
    /// Energy that antennas radiate where nothing comes back to them.
    pub radiated: f64,
}

/// Sums of a run so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Balance {
    thermal: f64,
    floor: f64,
    /// Part of all energy that is rounding.
    eps: f64,
    /// Conserved energy and all energy at the first measurement.
    first: Option<[f64; 2]>,
    /// Most energy of the fields, most work, and the largest difference.
    most: [f64; 3],
    /// Energy that can change, as of the last measurement.
    reference: f64,
    /// Largest relative difference before the last change from outside.
    before: f64,
}

impl Balance {
    /// Before the first measurement.
    pub fn new(plasma: &Plasma) -> Self {
        let model = &plasma.model;
        let eps = if model.precision == Precision::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let [thermal, rest] = stability::scales(model);
        // A drift that a field from outside turns is not one.
        let turned = plasma.setup.external[3..].iter().any(|component| !component.is_empty());
        let thermal = if turned { f64::NAN } else { thermal };
        let floor = (COLD * rest).max(f64::MIN_POSITIVE);
        Self { thermal, floor, eps: ROUNDING * eps, first: None, most: [0.0; 3], reference: floor, before: 0.0 }
    }

    /// Begins anew with the next measurement: the state was changed from outside.
    pub fn begin_anew(&mut self) {
        self.before = self.worst();
        (self.first, self.most, self.thermal) = (None, [0.0; 3], f64::NAN);
    }

    /// Change of what is kept, relative to what can change: of the `fields` and `kinetic` energies that `step` measured, with what
    /// it began with.
    pub fn change(&mut self, plasma: &Plasma, step: u64, fields: f64, kinetic: f64, account: &EnergyAccount) -> Result<f64> {
        let EnergyAccount { ledger, work, radiated } = account;
        let accounts = plasma.accounts();
        let kept = kinetic + ledger.energy_out - ledger.energy_in + if accounts == EnergyAccounts::Work { -work } else { fields };
        let [first, all] = *self.first.get_or_insert([kept, fields + kinetic]);
        // Any motion may be heat after a change from outside, and in a magnetic field from outside.
        if self.thermal.is_nan() {
            self.thermal = kinetic;
        }
        let difference = kept - first;
        self.most = [self.most[0].max(fields), self.most[1].max(work.abs()), self.most[2].max(difference.abs())];
        let available = all + ledger.energy_in + radiated;
        let there = fields + kinetic;
        // External electric fields give without bound.
        let bounded = plasma.setup.external[..3].iter().all(Vec::is_empty);
        if !there.is_finite() || (bounded && there > BLOWN_UP * available.max(self.floor)) {
            let times = there / available.max(self.floor);
            let found = if times.is_finite() {
                format!("{times:.3e} times the content at the start and the injected energy")
            } else {
                there.to_string()
            };
            let message = format!("it is {found}: {}", plasma.cause());
            return Err(Error::Numerics { what: "the energy of fields and particles".into(), place: format!("step {step}"), message });
        }
        self.reference = (self.thermal + self.most[0] + self.most[1] + self.eps * available).min(available).max(self.floor);
        Ok(if accounts == EnergyAccounts::Open { 0.0 } else { difference / self.reference })
    }

    /// The largest difference of the run beside what could change in it.
    pub fn worst(&self) -> f64 {
        self.before.max(self.most[2] / self.reference)
    }

    /// For a checkpoint.
    pub fn save(&self, writer: &mut Writer) -> Result<()> {
        let first = self.first.map_or(Vec::new(), |f| f.to_vec());
        writer.f64s("balance.first", &first)?;
        writer.f64("balance.reference", self.reference)?;
        writer.f64s("balance.changed", &[self.thermal, self.before])?;
        writer.f64s("balance.most", &self.most)
    }

    /// From a checkpoint.
    pub fn restore(&mut self, reader: &Reader) -> Result<()> {
        self.first = <[f64; 2]>::try_from(reader.f64s("balance.first")?).ok();
        self.reference = reader.f64("balance.reference")?;
        let mut changed = [0.0; 2];
        reader.f64s_into("balance.changed", &mut changed)?;
        [self.thermal, self.before] = changed;
        reader.f64s_into("balance.most", &mut self.most)
    }
}
