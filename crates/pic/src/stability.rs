//! What makes a plasma unstable on its lattice, with the numbers: for warnings beforehand and for causes afterwards.

use crate::setup::{Heat, Load, Model, Profile};

/// Cells above so many Debye lengths heat the plasma (Birdsall and Langdon 1991, section 8-13: pi for linear shapes).
pub const COARSE: f64 = std::f64::consts::PI;
/// Steps above this part of the plasma period are inaccurate; from 2 on they are unstable.
pub const LONG: f64 = 0.5;

/// Thermal momentum that holds everywhere; 0 where it depends on the place.
pub fn uniform_thermal(load: &Load) -> f64 {
    match &load.heat {
        Heat::Gaussian([Profile::Number(u), ..]) => *u,
        Heat::Temperature(Profile::Number(t)) | Heat::MaxwellJuttner(Profile::Number(t)) => t.max(0.0).sqrt(),
        _ => 0.0,
    }
}

/// Thermal energy of a particle at a place over `m c^2`, about: of the root mean square of its momentum.
fn thermal_gamma(load: &Load, place: [f64; 2]) -> f64 {
    let square = match &load.heat {
        Heat::Cold => 0.0,
        Heat::Gaussian(widths) => widths.iter().map(|w| w.at(place).powi(2)).sum(),
        Heat::Temperature(t) | Heat::MaxwellJuttner(t) => 3.0 * t.at(place).max(0.0),
    };
    square / ((1.0 + square).sqrt() + 1.0)
}

/// Places per axis that are looked at for the scale of an energy.
const PLACES: usize = 256;

/// The scale of the thermal energy of mobile species that the input gives, and of their energy at rest, each particle counted with its
/// mass up to that of an electron; a window's with all that it brings in.
pub fn scales(model: &Model) -> [f64; 2] {
    let cells = model.grid.cells;
    let mut scales = [0.0; 2];
    for (load, most) in model.loads.iter().zip(&model.expected).filter(|(l, _)| l.species.mobile) {
        let (mut touched, mut density, mut heat) = (0.0, 0.0, 0.0);
        let [columns, rows] = cells.map(|n| n.div_ceil(PLACES));
        for (i, j) in (0..cells[1]).step_by(rows).flat_map(|j| (0..cells[0]).step_by(columns).map(move |i| (i, j))) {
            let place = model.place(i as f64 + 0.5, j as f64 + 0.5);
            let n = load.density.at(place);
            if n > 0.0 {
                (touched, density, heat) = (touched + 1.0, density + n, heat + n * thermal_gamma(load, place));
            }
        }
        // Particles with weights weigh what the density says, where any was met.
        let weight = if load.species.weighted && touched > 0.0 { density / touched / load.reference } else { 1.0 };
        let content = *most as f64 * weight * load.species.weight * model.grid.cell_volume();
        let heat = if density > 0.0 { heat / density } else { 1.5 * uniform_thermal(load).powi(2) };
        scales = [scales[0] + content * load.species.mass * heat, scales[1] + content * load.species.mass.min(1.0)];
    }
    scales
}

/// The plasma frequency of a species, squared.
pub fn square_frequency(load: &Load) -> f64 {
    load.reference * load.species.charge * load.species.charge / load.species.mass
}

/// The Debye length of a species on its own; none where it is cold or its warmth depends on the place.
pub fn debye(load: &Load) -> Option<f64> {
    let length = uniform_thermal(load) / square_frequency(load).sqrt();
    (length > 0.0 && length.is_finite()).then_some(length)
}

/// The plasma frequency of all species times the step.
pub fn step(model: &Model) -> f64 {
    model.loads.iter().filter(|l| l.species.mobile).map(square_frequency).sum::<f64>().sqrt() * model.grid.dt
}

/// The largest side of a cell.
pub fn cell(model: &Model) -> f64 {
    model.grid.h[..model.grid.dimensions].iter().copied().fold(0.0, f64::max)
}

/// What has probably made the energy grow without bound, and what to try.
pub fn cause(model: &Model) -> String {
    let step = step(model);
    let coarse = |load: &&Load| !matches!(load.heat, Heat::Cold) && debye(load).is_some_and(|length| cell(model) > COARSE * length);
    if step > 1.0 {
        format!(
            "the plasma frequency times the step is {step:.2}, unstable from 2 on and with less where the plasma is compressed; a smaller `dt` helps"
        )
    } else if let Some(load) = model.loads.iter().filter(|l| l.species.mobile).find(coarse) {
        let ratio = cell(model) / debye(load).unwrap_or(f64::INFINITY);
        format!(
            "a cell is {ratio:.1} Debye lengths of `{}` wide, which heats it; smaller cells, `order = 2` or `smoothing` help",
            load.species.name
        )
    } else {
        "the last rows show which energy grew; a smaller `dt`, finer cells, `smoothing` or `precision = \"f64\"` keep a scheme stable"
            .into()
    }
}
