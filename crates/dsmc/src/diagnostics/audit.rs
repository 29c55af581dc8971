//! The audit: what must be there is there, and a closed box has the energy that it began with.

use crate::model::{Edge, Model};
use crate::stages::{Ledger, Totals};
use crate::walls::Model as WallModel;

/// Relative change of the energy of a closed box that rounding makes at random at most: about 1e-7 of a velocity in each collision.
const ENERGY_LIMIT: f64 = 1e-5;
/// Fraction of the collisions above (sigma g)max: beyond it the rate is noticeably too low.
pub(crate) const EXCEEDED_LIMIT: f64 = 1e-2;
/// Collisions from which that part is known well enough.
const MANY: u64 = 10_000;

/// True if nothing can take energy from the gas or give it some.
pub(crate) fn closed(model: &Model) -> bool {
    // Doubled and removed at random, particles keep mass and energy on average only.
    !model.weighted()
        && model.sources.is_empty()
        && model.edges.iter().all(|e| *e != Edge::Open)
        && model.walls.iter().all(|w| w.model == WallModel::Specular)
}

/// Limit of the energy error of a closed domain: beside [`ENERGY_LIMIT`] one unit in the last place of single precision for each
/// collision of a particle, as if all rounded to one side. On the CPU a collision was found to add 9e-10, by the cosine's
/// polynomial, a hundredth of that; a GPU's functions differ, but err by less than a unit. Sums are in double precision on both.
pub(crate) fn energy_limit(ledger: &Ledger, totals: &Totals) -> f64 {
    ENERGY_LIMIT + f64::from(f32::EPSILON) * 2.0 * ledger.collisions as f64 / totals.particles.max(1) as f64
}

/// Relative change of the energy since the start.
pub(crate) fn energy_change(totals: &Totals, start: &Totals) -> f64 {
    let [now, start] = [totals, start].map(|t| t.translation + t.internal);
    ((now - start) / start.max(f64::MIN_POSITIVE)).abs()
}

/// Fraction of the collisions above (sigma g)max, where it is too large.
pub(crate) fn exceeded(ledger: &Ledger) -> Option<f64> {
    let part = ledger.exceeded as f64 / ledger.collisions.max(1) as f64;
    (ledger.collisions >= MANY && part > EXCEEDED_LIMIT).then_some(part)
}

/// Message about particles or energy lost or gained; none where all is well. `start` are the totals of the start of a closed
/// domain.
pub(crate) fn lost(ledger: &Ledger, totals: &Totals, start: Option<&Totals>) -> Option<String> {
    let (there, found) = (ledger.there(), totals.particles);
    if there != found {
        let what = if there > found { "are missing" } else { "are too many" };
        let (put, gone) = (ledger.injected + ledger.copied, ledger.removed + ledger.dropped);
        return Some(format!(
            "{} particles {what}: {found} are there, and {there} must be ({put} put in or copied, {gone} left or dropped)",
            there.abs_diff(found)
        ));
    }
    let start = start?;
    let (change, limit) = (energy_change(totals, start), energy_limit(ledger, totals));
    // A change that is no number is none that is small.
    let kept = change <= limit;
    (!kept).then(|| {
        let [now, start] = [totals, start].map(|t| t.translation + t.internal);
        format!(
            "the energy of the closed box went from {start:.9e} to {now:.9e} J/m, by {change:.1e} of it; rounding makes at most {limit:.1e}"
        )
    })
}
