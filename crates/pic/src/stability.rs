//! Instabilities of a plasma on its grid, with the numbers: for warnings beforehand and for causes afterwards.

use crate::setup::{Load, Model, Profile, ThermalSpread};

/// Cells above this many Debye lengths heat the plasma (Birdsall and Langdon 1991, section 8-13: pi for linear shapes).
pub const COARSE: f64 = std::f64::consts::PI;
/// Steps above this part of the plasma period are inaccurate; from 2 on they are unstable.
pub const LONG: f64 = 0.5;

/// Thermal momentum that holds everywhere; 0 where it depends on the position.
pub fn uniform_thermal(load: &Load) -> f64 {
    match &load.heat {
        ThermalSpread::Gaussian([Profile::Number(u), ..]) => *u,
        ThermalSpread::Temperature(Profile::Number(t)) | ThermalSpread::MaxwellJuttner(Profile::Number(t)) => t.max(0.0).sqrt(),
        _ => 0.0,
    }
}

/// Mean thermal energy of a particle at a position over `m c^2`, in the frame in which the plasma rests: of the root mean square of
/// Gaussian momenta, to 2 % of a Maxwell-Juttner distribution (the energy of Mignone, Plewa and Bodo, ApJS 160 (2005) 199).
fn thermal_energy(load: &Load, position: [f64; 2]) -> f64 {
    let square: f64 = match &load.heat {
        ThermalSpread::Cold => 0.0,
        ThermalSpread::Gaussian(widths) => widths.iter().map(|w| w.at(position).powi(2)).sum(),
        ThermalSpread::Temperature(t) => 3.0 * t.at(position).max(0.0),
        ThermalSpread::MaxwellJuttner(t) => {
            let half = 1.5 * t.at(position).max(0.0);
            return half + half * half / ((1.0 + half * half).sqrt() + 1.0);
        }
    };
    square / ((1.0 + square).sqrt() + 1.0)
}

/// Temperature at a position over `m c^2`, of the first component: the pressure of a particle, `u_x^2/gamma`.
fn temperature(load: &Load, position: [f64; 2]) -> f64 {
    let square = match &load.heat {
        ThermalSpread::Cold => 0.0,
        ThermalSpread::Gaussian([width, ..]) => width.at(position).powi(2),
        ThermalSpread::Temperature(t) => t.at(position).max(0.0),
        ThermalSpread::MaxwellJuttner(t) => return t.at(position).max(0.0),
    };
    square / (1.0 + thermal_energy(load, position))
}

/// Places per axis that are looked at for what a species has in the mean.
const PLACES: usize = 256;

/// Places of the box at the start where a species is, with its density.
fn places<'a>(model: &'a Model, load: &'a Load) -> impl Iterator<Item = ([f64; 2], f64)> + 'a {
    let cells = model.grid.cells;
    let [columns, rows] = cells.map(|n| n.div_ceil(PLACES));
    let all = (0..cells[1]).step_by(rows).flat_map(move |j| (0..cells[0]).step_by(columns).map(move |i| (i, j)));
    all.map(|(i, j)| model.position(i as f64 + 0.5, j as f64 + 0.5))
        .map(|position| (position, load.density.at(position)))
        .filter(|(_, n)| *n > 0.0)
}

/// The scale of the thermal energy of mobile species that the input gives, and of their energy at rest, each particle counted with
/// its mass up to that of an electron; a window's with all that it brings in.
pub fn scales(model: &Model) -> [f64; 2] {
    let mut scales = [0.0; 2];
    for (load, most) in model.loads.iter().zip(&model.expected).filter(|(l, _)| l.species.mobile) {
        let (mut touched, mut density, mut heat) = (0.0, 0.0, 0.0);
        for (position, n) in places(model, load) {
            (touched, density, heat) = (touched + 1.0, density + n, heat + n * thermal_energy(load, position));
        }
        // Particles with weights weigh what the density says, where any was met.
        let weight = if load.species.weighted && load.listed.is_none() && touched > 0.0 { density / touched / load.reference } else { 1.0 };
        let content = *most as f64 * weight * load.species.weight * model.grid.cell_volume();
        let heat = if density > 0.0 { heat / density } else { 1.5 * uniform_thermal(load).powi(2) };
        scales = [scales[0] + content * load.species.mass * heat, scales[1] + content * load.species.mass.min(1.0)];
    }
    scales
}

/// Motion of a species at the start, in the mean over its particles.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Motion {
    /// Sum of the densities at the places that are looked at: to add species up.
    pub content: f64,
    /// Momentum of the drift without its sign, `gamma v/c` per component.
    pub drift: [f64; 3],
    /// Velocity of the drift, `c`.
    pub velocity: [f64; 3],
    /// Speed of the drift and of the thermal motion along an axis together, `c`.
    pub speed: f64,
    /// `gamma` of the drift alone.
    pub bulk: f64,
    /// `gamma` of the thermal motion alone.
    pub thermal: f64,
    /// Temperature over `m c^2`.
    pub temperature: f64,
}

impl Motion {
    /// Of a species of `model`. One that is nowhere in the box at the start is at rest.
    pub fn new(model: &Model, load: &Load) -> Self {
        let mut sum = Self::default();
        for (position, n) in places(model, load) {
            let u = [0, 1, 2].map(|c| load.drift[c].at(position));
            let bulk = (1.0 + u.iter().map(|u| u * u).sum::<f64>()).sqrt();
            let (thermal, temperature) = (1.0 + thermal_energy(load, position), temperature(load, position));
            // A relativistic gas is boosted as a whole, a Gaussian is shifted: each of its particles has its thermal momentum too.
            let gamma =
                if matches!(load.heat, ThermalSpread::MaxwellJuttner(_)) { bulk } else { (bulk * bulk + thermal * thermal - 1.0).sqrt() };
            for c in 0..3 {
                sum.drift[c] += n * u[c].abs();
                sum.velocity[c] += n * u[c] / gamma;
            }
            sum.speed += n * ((bulk * bulk - 1.0).max(0.0).sqrt() / gamma + (temperature / thermal).sqrt());
            (sum.content, sum.bulk) = (sum.content + n, sum.bulk + n * bulk);
            (sum.thermal, sum.temperature) = (sum.thermal + n * thermal, sum.temperature + n * temperature);
        }
        let one = |v: f64| if sum.content > 0.0 { v / sum.content } else { 0.0 };
        Self {
            content: sum.content,
            drift: sum.drift.map(one),
            velocity: sum.velocity.map(one),
            speed: one(sum.speed),
            bulk: one(sum.bulk).max(1.0),
            thermal: one(sum.thermal).max(1.0),
            temperature: one(sum.temperature),
        }
    }
}

/// The plasma frequency of a species, squared, with the mass that its particles have as they move: the frequency at rest of a
/// plasma that drifts, which no wave in the box exceeds.
pub fn square_frequency(load: &Load, motion: &Motion) -> f64 {
    load.reference * load.species.charge * load.species.charge / load.species.mass / (motion.bulk * motion.thermal)
}

/// The Debye length of a species on its own, in the frame in which it rests; none where it is cold or its warmth depends on the
/// position.
pub fn debye(load: &Load, motion: &Motion) -> Option<f64> {
    // Temperature over density and charge: the thermal motion's `gamma` is in the temperature.
    let length = (motion.temperature / motion.thermal / square_frequency(load, motion)).sqrt();
    (uniform_thermal(load) > 0.0 && length > 0.0 && length.is_finite()).then_some(length)
}

/// The plasma frequency of all species times the step.
pub fn step(model: &Model) -> f64 {
    let mobile = model.loads.iter().filter(|l| l.species.mobile);
    mobile.map(|load| square_frequency(load, &Motion::new(model, load))).sum::<f64>().sqrt() * model.grid.dt
}

/// The largest side of a cell.
pub fn cell(model: &Model) -> f64 {
    model.grid.h[..model.grid.dimensions].iter().copied().fold(0.0, f64::max)
}

/// A ratio as people are told of it: that of a plasma next to cold has no digits to be read.
pub(crate) fn ratio(x: f64) -> String {
    if x < 1e4 { format!("{x:.1}") } else { format!("{x:.0e}") }
}

/// Probable cause of energy that grew without bound, and the fix.
pub fn cause(model: &Model) -> String {
    let step = step(model);
    let ratio = |load: &Load| debye(load, &Motion::new(model, load)).map_or(0.0, |length| cell(model) / length);
    if step > 1.0 {
        format!(
            "the plasma frequency times the step is {step:.2}, unstable from 2 on and with less where the plasma is compressed; a smaller `dt` helps"
        )
    } else if let Some((load, ratio)) =
        model.loads.iter().filter(|l| l.species.mobile).map(|load| (load, ratio(load))).find(|(_, ratio)| *ratio > COARSE)
    {
        format!(
            "a cell is {} Debye lengths of `{}` wide, which heats it; smaller cells, `order = 2` or `smoothing` help",
            self::ratio(ratio),
            load.species.name
        )
    } else {
        "the last rows show which energy grew; a smaller `dt`, finer cells, `smoothing` or `precision = \"f64\"` keep a scheme stable"
            .into()
    }
}
