//! Checks of the table of a simulated scan.

use zellige_engine::error::Problem;

use super::config::{ObjectKind, SimulateConfig};
use crate::config::MOST_RESAMPLED;

/// A number that must be in a range.
pub(crate) fn within(path: &str, value: f64, low: f64, high: f64, faults: &mut Vec<Problem>) {
    if !(value >= low && value <= high) {
        faults.push(Problem::new(path, format!("the value is {value:e}")).allowed(format!("{low:e} to {high:e}")));
    }
}

impl SimulateConfig {
    /// Finds every problem of the table, paths relative to it.
    pub fn check(&self) -> Vec<Problem> {
        let mut faults = zellige_engine::config::faults(self);
        for n in self.size.both() {
            if !(8..=4096).contains(&n) || n % 2 != 0 {
                faults.push(Problem::new("size", format!("{n} pixels")).allowed("even numbers from 8 to 4096"));
                break;
            }
        }
        if self.resample.both().iter().any(|n| !(1..=MOST_RESAMPLED).contains(n)) {
            let message = format!("{:?} pixels of the waves to one of the detector", self.resample.both());
            faults.push(Problem::new("resample", message).allowed("1 (off) to 8, or one number each for rows and columns"));
        }
        within("energy", self.energy, 1e-3, 1e4, &mut faults);
        within("distance", self.distance, 1e-6, 1e3, &mut faults);
        for p in self.pixel.both() {
            within("pixel", p, 1e-10, 1e-2, &mut faults);
        }
        within("photons", self.photons, 1e-3, 1e15, &mut faults);
        within("position_error", self.position_error, 0.0, 1.0, &mut faults);
        within("fluctuation", self.fluctuation, 0.0, 0.5, &mut faults);
        within("object.phase", self.object.phase.abs(), 0.0, 100.0, &mut faults);
        match (self.object.kind, &self.object.image) {
            (ObjectKind::Image, None) => {
                faults.push(Problem::new("object.image", "a picture is required, but none is named").hint("`image = \"FILE.png\"`"));
            }
            (ObjectKind::Cells | ObjectKind::Star, Some(_)) => {
                faults.push(Problem::new("object.image", "a picture is named, but not asked for").hint("`kind = \"image\"`"));
            }
            _ => {}
        }
        if let Some(step) = self.pattern.step {
            within("pattern.step", step, 1e-12, 1.0, &mut faults);
        }
        let shortest = self.size.both().into_iter().min().unwrap_or(0) as f64;
        within("detector.beamstop", self.detector.beamstop, 0.0, shortest, &mut faults);
        within("detector.dead", self.detector.dead, 0.0, 0.5, &mut faults);
        within("detector.background", self.detector.background, 0.0, 1e9, &mut faults);
        within("detector.spread", self.detector.spread, 0.0, shortest / 4.0, &mut faults);
        let nested = self.illumination.check().into_iter();
        faults.extend(nested.map(|p| Problem { path: format!("illumination.{}", p.path), ..p }));
        faults
    }
}
