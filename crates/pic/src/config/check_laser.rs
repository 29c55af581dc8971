//! Everything that is wrong with a pulse, and what is likely to go wrong: resolution, room in the box, start.

use zellige_engine::error::Problem;

use super::check::{above, not};
use super::laser::{LaserConfig, LaserDirection, LaserSource};
use super::{Config, Units};
use crate::grid::FieldSide;
use crate::laser::Envelope;

/// Cells of a wavelength below which a pulse is refused: light is slower than a tenth below c on them, and stands still at two.
const FEWEST_CELLS: f64 = 4.0;
/// Cells of a wavelength below which it is said.
const FEW_CELLS: f64 = 8.0;
/// Part of the peak amplitude at a side of x, or at time 0, above which it is said; ten times as much in the box is refused.
const CUT: f64 = 0.01;
/// Limit at a side of y, where beams are often cut on purpose.
const CUT_ACROSS: f64 = 0.05;

pub(super) fn lasers(config: &Config, sound: bool, faults: &mut Vec<Problem>) {
    for (i, l) in config.laser.iter().enumerate() {
        let before = faults.len();
        keys(config, i, l, faults);
        if sound && faults.len() == before {
            room(config, i, l, faults);
        }
    }
}

/// Values that cannot be, or do not go together.
fn keys(config: &Config, i: usize, l: &LaserConfig, faults: &mut Vec<Problem>) {
    let at = |key: &str| format!("laser[{i}].{key}");
    match (l.omega, l.wavelength) {
        (Some(omega), None) => drop(above(&at("omega"), omega, 0.0, faults)),
        (None, Some(length)) => drop(above(&at("wavelength"), length, 0.0, faults)),
        (Some(_), Some(_)) => faults.push(Problem::new(at("wavelength"), "`omega` is given too").hint("leave one of them out")),
        (None, None) => faults.push(Problem::new(at("omega"), "neither `omega` nor `wavelength` is given")),
    }
    let parts = [l.rise, l.flat, l.fall];
    match (l.fwhm, parts.iter().any(Option::is_some)) {
        (Some(fwhm), false) => drop(above(&at("fwhm"), fwhm, 0.0, faults)),
        (Some(_), true) => faults.push(Problem::new(at("fwhm"), "`rise`, `flat` or `fall` is given too").hint("leave one of them out")),
        (None, false) => {
            let fault = Problem::new(at("fwhm"), "nothing says how long the pulse is");
            faults.push(fault.hint("give `fwhm`, or `rise`, `flat`, `fall`"));
        }
        (None, true) => {
            for (key, part) in ["rise", "flat", "fall"].iter().zip(parts) {
                if part.is_some_and(|p| !(p.is_finite() && p >= 0.0)) {
                    faults.push(not(at(key), "the value is negative or not finite", "finite and at least 0"));
                }
            }
        }
    }
    if let Some(waist) = l.waist {
        above(&at("waist"), waist, 0.0, faults);
    }
    for (key, value) in [("position", l.position), ("delay", l.delay), ("antenna", l.antenna), ("phase", Some(l.phase))] {
        if value.is_some_and(|x| !x.is_finite()) {
            faults.push(not(at(key), "the value is not finite", "finite numbers"));
        }
    }
    if l.focus.iter().flatten().any(|x| !x.is_finite()) {
        faults.push(not(at("focus"), "a coordinate is not finite", "finite numbers"));
    }
    let (here, other, what) = match l.source {
        LaserSource::Box => ("position", "delay", "where the pulse stands at the start"),
        LaserSource::Antenna => ("delay", "position", "when the pulse passes the antenna"),
    };
    let [given, foreign] = if l.source == LaserSource::Box { [l.position, l.delay] } else { [l.delay, l.position] };
    if given.is_none() {
        faults.push(Problem::new(at(here), format!("nothing says {what}")).hint(format!("give `{here}`")));
    }
    if foreign.is_some() {
        faults.push(Problem::new(at(other), format!("it has no meaning here: `{here}` says {what}")).hint(format!("write `{here}`")));
    }
    if l.source == LaserSource::Box && l.antenna.is_some() {
        let fault = Problem::new(at("antenna"), "the pulse is in the box at the start, so that there is no antenna");
        faults.push(fault.hint("`source = \"antenna\"`, or leave it out"));
    }
    if l.source == LaserSource::Antenna && config.boundary.side(0, 0).fields == FieldSide::Periodic {
        let fault = Problem::new(at("source"), "an antenna radiates both ways, and a periodic box does not absorb the half that goes out");
        faults.push(fault.hint("`boundary.x = \"absorbing\"`"));
    }
}

/// Length of a wave in the input's units.
fn wavelength(l: &LaserConfig, units: &Units) -> f64 {
    l.wavelength.or(l.omega.map(|omega| std::f64::consts::TAU / omega * units.length / units.time)).unwrap_or(f64::INFINITY)
}

/// The envelope in the input's units: of length in the box, of time from an antenna.
fn envelope(l: &LaserConfig) -> Envelope {
    let part = |v: Option<f64>| v.unwrap_or(0.0);
    l.fwhm.map_or(Envelope::Ramps { rise: part(l.rise), flat: part(l.flat), fall: part(l.fall) }, |fwhm| Envelope::Gaussian { fwhm })
}

/// Amplitude at the lower and the upper x side of the pulse at the start, over its peak, and whether the peak is inside.
fn ends(config: &Config, l: &LaserConfig) -> ([f64; 2], bool) {
    let position = l.position.unwrap_or(0.0);
    let sign = if l.direction == LaserDirection::Right { 1.0 } else { -1.0 };
    let sides = [config.origin(0), config.origin(0) + config.grid.size[0]];
    let envelope = envelope(l);
    // Light that is further on was emitted earlier.
    let peak = position - sign * if let Envelope::Ramps { rise, .. } = envelope { rise } else { 0.0 };
    (sides.map(|x| envelope.at(sign * (position - x))), (sides[0]..=sides[1]).contains(&peak))
}

/// Amplitude at the y side that is nearer to the axis of a beam, over that on the axis, at the start.
fn edge(config: &Config, l: &LaserConfig) -> f64 {
    let (Some(waist), 2) = (l.waist, config.dimensions()) else { return 0.0 };
    let (from, size) = (config.origin(1), config.grid.size[1]);
    let begin = match (l.source, l.direction) {
        (LaserSource::Box, _) => l.position.unwrap_or(0.0),
        (LaserSource::Antenna, LaserDirection::Right) => l.antenna.unwrap_or(config.origin(0)),
        (LaserSource::Antenna, LaserDirection::Left) => l.antenna.unwrap_or(config.origin(0) + config.grid.size[0]),
    };
    let focus = l.focus.unwrap_or([begin, from + 0.5 * size]);
    let rayleigh = std::f64::consts::PI * waist * waist / wavelength(l, &config.scales());
    let radius = waist * f64::hypot(1.0, (begin - focus[0]) / rayleigh);
    let distance = (focus[1] - from).min(from + size - focus[1]).max(0.0);
    (-(distance / radius).powi(2)).exp()
}

/// Checks that the grid resolves the waves and the domain holds the pulse.
fn room(config: &Config, i: usize, l: &LaserConfig, faults: &mut Vec<Problem>) {
    let at = |key: &str| format!("laser[{i}].{key}");
    let (h, length) = (config.spacing(0), wavelength(l, &config.scales()));
    if length < FEWEST_CELLS * h {
        let key = if l.wavelength.is_some() { "wavelength" } else { "omega" };
        let fault = Problem::new(at(key), format!("a wavelength of {length:.4e} has {:.2} cells of {h:.4e}", length / h));
        faults.push(
            fault
                .allowed(format!("at least {FEWEST_CELLS} cells; 16 or more are usual"))
                .hint(format!("cells of {:.2e}, or a longer wave", length / 16.0)),
        );
    }
    if l.source != LaserSource::Box {
        return;
    }
    let (ends, inside) = ends(config, l);
    let most = ends[0].max(ends[1]);
    if most > 10.0 * CUT || !inside {
        let where_ = ["lower", "upper"][usize::from(ends[1] > ends[0])];
        let message = if inside {
            format!("the pulse does not fit into the box: its amplitude at the {where_} x side is {:.0} % of the peak's", 100.0 * most)
        } else {
            "the peak of the pulse is outside the box".to_owned()
        };
        let hint = "move it, shorten it, make the box longer, or emit it with `source = \"antenna\"`";
        faults.push(Problem::new(at("position"), message).allowed(format!("at most {:.0} %", 1000.0 * CUT)).hint(hint));
    }
}

/// Warnings about the pulses, with the numbers.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let mut out = Vec::new();
    let units = config.scales();
    for (i, l) in config.laser.iter().enumerate() {
        let cells = wavelength(l, &units) / config.spacing(0);
        if cells < FEW_CELLS {
            out.push(format!("laser {i} has {cells:.1} cells a wavelength: its waves are slow on the grid; 16 or more are usual"));
        }
        let percent = |part: f64| format!("{:.2} %", 100.0 * part);
        match l.source {
            LaserSource::Box => {
                let [lower, upper] = ends(config, l).0;
                if lower.max(upper) > CUT {
                    let (part, side) = (percent(lower.max(upper)), if upper > lower { "upper" } else { "lower" });
                    out.push(format!("laser {i} is cut at the {side} x side, where its amplitude is {part} of the peak's"));
                }
            }
            LaserSource::Antenna => {
                let delay = l.delay.unwrap_or(0.0);
                let begin = envelope(l).at(-delay);
                if begin > CUT {
                    let hint = "a larger `delay` lets it rise from nothing";
                    out.push(format!("laser {i} starts abruptly with {} of its amplitude at time 0; {hint}", percent(begin)));
                }
                let end = config.step_count() as f64 * config.domain().dt * units.time;
                if delay > end {
                    out.push(format!("laser {i} passes its antenna at t = {delay:.4e}, after the end of the run at {end:.4e}"));
                }
            }
        }
        let edge = edge(config, l);
        if edge > CUT_ACROSS {
            out.push(format!("laser {i} is cut at a y side, where its amplitude is {} of that on its axis", percent(edge)));
        }
    }
    out
}
