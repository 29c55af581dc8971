//! Values of a cell from its sums: of the gas as a whole, and of each species of a mixture.

use zellige_engine::parallel::{chunks, chunks_mut, each};

use super::formulae::{CellSums, values_along_z, values_of_sums};
use crate::gas::Species;
use crate::gas::vibration::MODES;
use crate::grid::Rectangle;
use crate::model::Model;
use crate::stages::{ALONG_Z, MOMENTS};
use crate::walls::BOLTZMANN;

/// Values of a cell.
pub const VALUES: usize = 15;
/// A value: name, title, unit, SI dimension (m, kg, s, A, K, mol, cd).
pub type Quantity = (&'static str, &'static str, &'static str, [f64; 7]);

const SPEED: [f64; 7] = [1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0];
const KELVIN: [f64; 7] = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0];
const PRESSURE: [f64; 7] = [-1.0, 1.0, -2.0, 0.0, 0.0, 0.0, 0.0];
const FLUX: [f64; 7] = [0.0, 1.0, -3.0, 0.0, 0.0, 0.0, 0.0];

/// The values of a cell, in their order.
pub const QUANTITIES: [Quantity; VALUES] = [
    ("density", "number density", "1/m^3", [-3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
    ("velocity_x", "x component of the velocity", "m/s", SPEED),
    ("velocity_y", "y component of the velocity", "m/s", SPEED),
    ("velocity_z", "z component of the velocity", "m/s", SPEED),
    ("temperature", "temperature", "K", KELVIN),
    ("temperature_translation", "temperature of translation", "K", KELVIN),
    ("temperature_rotation", "temperature of rotation", "K", KELVIN),
    ("temperature_vibration", "temperature of vibration", "K", KELVIN),
    ("pressure", "pressure", "Pa", PRESSURE),
    ("stress_xx", "momentum flux p_xx", "Pa", PRESSURE),
    ("stress_yy", "momentum flux p_yy", "Pa", PRESSURE),
    ("stress_xy", "momentum flux p_xy", "Pa", PRESSURE),
    ("heat_flux_x", "x component of the heat flux", "W/m^2", FLUX),
    ("heat_flux_y", "y component of the heat flux", "W/m^2", FLUX),
    ("free_path", "mean free path", "m", [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
];

/// Further values of a cell where something moves along z, behind all others: of the gas, then of each species of a mixture.
/// Elsewhere `stress_zz` is three times the pressure less the other two, and the others are 0.
pub const WITH_Z: [Quantity; 4] = [
    ("stress_zz", "momentum flux p_zz", "Pa", PRESSURE),
    ("stress_xz", "momentum flux p_xz", "Pa", PRESSURE),
    ("stress_yz", "momentum flux p_yz", "Pa", PRESSURE),
    ("heat_flux_z", "z component of the heat flux", "W/m^2", FLUX),
];

/// Values of each species of a mixture, in their order; they stand behind those of the cell. They are those of the gas but for the
/// free path, all about the species' own mean velocity.
pub const OF_SPECIES: [Quantity; VALUES - 1] = {
    let mut of = [QUANTITIES[0]; VALUES - 1];
    let mut q = 0;
    while q < of.len() {
        of[q] = QUANTITIES[q];
        q += 1;
    }
    of
};

/// Base of an average.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// Over time: an empty sample counts as none.
    Time,
    /// Over the particles of a line: of the gas, or of a species of a mixture.
    Particles(usize),
}

/// Lines of a cell: the gas, and each species of a mixture.
pub(super) fn lines(model: &Model) -> usize {
    let species = model.species.len();
    if species > 1 { 1 + species } else { 1 }
}

/// Base of the average of each value of a cell.
pub(super) fn bases(model: &Model) -> Vec<Base> {
    let mut all = Vec::with_capacity(width(model));
    let add = |all: &mut Vec<Base>, of: &[Quantity], line: usize| {
        all.extend(of.iter().map(|q| if q.3 == SPEED || q.3 == KELVIN { Base::Particles(line) } else { Base::Time }));
    };
    add(&mut all, &QUANTITIES, 0);
    (1..lines(model)).for_each(|line| add(&mut all, &OF_SPECIES, line));
    all.extend(modes(model).map(|(s, _)| Base::Particles(if model.species.len() > 1 { 1 + s } else { 0 })));
    all.resize(width(model), Base::Time);
    all
}

/// Index of the temperature of translation of a line among the values of a cell.
pub fn translation(line: usize) -> usize {
    line.checked_sub(1).map_or(5, |s| VALUES + s * OF_SPECIES.len() + 5)
}

/// Values of all species of a cell, which a pure gas does not have.
fn species_width(model: &Model) -> usize {
    let species = model.species.len();
    if species > 1 { species * OF_SPECIES.len() } else { 0 }
}

/// Species and number of each mode of vibration whose temperature is a value of its own: of species with several.
pub fn modes(model: &Model) -> impl Iterator<Item = (usize, usize)> + '_ {
    let several = model.species.iter().enumerate().filter(|(_, s)| s.vibration.modes().len() > 1);
    several.flat_map(|(s, kind)| (0..kind.vibration.modes().len()).map(move |m| (s, m)))
}

/// Index of the first of them among the values of a cell.
pub fn first_mode(model: &Model) -> usize {
    VALUES + species_width(model)
}

/// Index of the first of [`WITH_Z`] among the values of a cell.
pub fn first_with_z(model: &Model) -> usize {
    first_mode(model) + modes(model).count()
}

/// Values of a cell with those of its species, of modes of vibration where a species has several, and of [`WITH_Z`].
pub fn width(model: &Model) -> usize {
    first_with_z(model) + if model.collisions.along_z { WITH_Z.len() * lines(model) } else { 0 }
}

/// Temperature of a species' vibration by its energy, from the sums, K.
fn vibration_temperature(model: &Model, kind: &Species, sums: &[f64]) -> f64 {
    let mut levels = [0.0; MODES];
    levels.iter_mut().zip(&sums[model.collisions.internal() + 1..]).for_each(|(level, sum)| *level = sum / sums[0]);
    kind.vibration.temperature(&levels)
}

/// The values of a cell from its sums over `samples` samples. Velocities are of the mass, temperatures about it.
pub fn values(model: &Model, cell: usize, sums: &[f64], samples: u64) -> [f64; VALUES] {
    let mut out = [0.0; VALUES];
    let number: f64 = sums.chunks_exact(model.collisions.sums()).map(|s| s[0]).sum();
    out[..VALUES - 1].copy_from_slice(&values_of(model, &model.species, cell, sums, samples));
    if out[0] > 0.0 {
        out[14] = free_path(model, sums, number, out[0], out[5]);
    }
    out
}

/// The values of one species of a cell from its own sums. All are about its own velocity, so that where species drift against each
/// other they do not add up to the mixture's.
pub fn species_values(model: &Model, cell: usize, species: usize, sums: &[f64], samples: u64) -> [f64; OF_SPECIES.len()] {
    values_of(model, &model.species[species..=species], cell, sums, samples)
}

/// Those of some species together, `sums` being theirs.
fn values_of(model: &Model, kinds: &[Species], cell: usize, sums: &[f64], samples: u64) -> [f64; VALUES - 1] {
    let volume = model.cell_volume(cell) * samples as f64;
    let s = cell_sums(model, kinds, sums);
    if volume <= 0.0 || s.number == 0.0 {
        return [0.0; VALUES - 1];
    }
    let v = values_of_sums(s, model.weight_of(cell) / volume, model.components as f64, model.collisions.along_z);
    let motion = [v.density, v.ux, v.uy, v.uz, v.temperature, v.translation, v.rotation];
    let [a, b, c, d, e, f, g] = motion;
    [a, b, c, d, e, f, g, v.vibration, v.pressure, v.xx, v.yy, v.xy, v.heat_x, v.heat_y]
}

/// Sums over some species together, `sums` being those of each.
fn cell_sums(model: &Model, kinds: &[Species], sums: &[f64]) -> CellSums<f64> {
    let (one, modes, along_z) = (model.collisions.sums(), model.collisions.internal(), model.collisions.along_z);
    // In plain loops: this is done for every cell whenever a batch is closed.
    let (mut out, mut by_mass) = (CellSums::default(), [0.0; MOMENTS + ALONG_Z]);
    for (k, s) in kinds.iter().zip(sums.chunks_exact(one)).filter(|(_, s)| s[0] > 0.0) {
        out.number += s[0];
        for (to, from) in by_mass[..modes].iter_mut().zip(&s[..modes]) {
            *to += k.mass * from;
        }
        out.freedom += f64::from(k.rotation) * s[0];
        out.rotational += s[modes];
        // An oscillator's temperature follows from its mean level; that of a mixture is weighted by numbers.
        if !k.vibration.is_empty() {
            let t = vibration_temperature(model, k, s);
            out.vibration += t * s[0];
            out.vibrating += s[0];
            out.vibrational += if t > 0.0 { k.vibration.freedom(t) * s[0] } else { 0.0 };
        }
        out.internal += 2.0 * BOLTZMANN * (s[modes] + k.vibration.of_levels(&s[modes + 1..]));
    }
    let [mass, x, y, z, xx, yy, zz, xy, flux_x, flux_y, with_z @ ..] = by_mass;
    let [xz, yz, flux_z] = if along_z { with_z } else { [0.0; ALONG_Z] };
    CellSums { mass, x, y, z, xx, yy, zz, xy, flux_x, flux_y, xz, yz, flux_z, ..out }
}

/// The values [`WITH_Z`] of some species of a cell together, `sums` being theirs.
fn values_with_z(model: &Model, kinds: &[Species], cell: usize, sums: &[f64], samples: u64) -> [f64; WITH_Z.len()] {
    let volume = model.cell_volume(cell) * samples as f64;
    let s = cell_sums(model, kinds, sums);
    if volume <= 0.0 || s.number == 0.0 {
        return [0.0; WITH_Z.len()];
    }
    let v = values_along_z(s, model.weight_of(cell) / volume);
    [v.zz, v.xz, v.yz, v.heat_z]
}

/// Mean free path in a gas of the composition of `sums`, m: the mean speed of each species by the rate of its collisions with all,
/// weighted by numbers. Infinite where nothing is known of the temperature.
fn free_path(model: &Model, sums: &[f64], number: f64, density: f64, temperature: f64) -> f64 {
    if temperature <= 0.0 {
        return f64::INFINITY;
    }
    let part = |s: usize| sums[s * model.collisions.sums()] / number;
    let all = 0..model.species.len();
    let rate = |a: usize| all.clone().map(|b| density * part(b) * model.mean_rate(a, b, temperature)).sum::<f64>();
    let speed = |a: usize| model.mean_speed(a, temperature);
    all.clone().filter(|a| part(*a) > 0.0).map(|a| part(a) * speed(a) / rate(a)).sum()
}

/// All values of the cells of an area, `[cell][width]`.
pub(super) fn all_values(model: &Model, area: Rectangle, sums: &[f64], samples: u64) -> Vec<f64> {
    let (from, width) = (model.species.len() * model.collisions.sums(), width(model));
    let mut out = vec![0.0; area.len() * width];
    each((chunks_mut(&mut out, width), chunks(sums, from)), |k, (out, sums)| {
        cell_values(model, model.grid.index(area.cell(k)), sums, samples, out);
    });
    out
}

/// All values of a cell.
pub(super) fn cell_values(model: &Model, cell: usize, sums: &[f64], samples: u64, out: &mut [f64]) {
    let one = model.collisions.sums();
    out[..VALUES].copy_from_slice(&values(model, cell, sums, samples));
    let (out, with_z) = out.split_at_mut(first_with_z(model));
    if model.collisions.along_z {
        for (line, out) in with_z.chunks_exact_mut(WITH_Z.len()).enumerate() {
            let range = line.checked_sub(1).map_or(0..model.species.len(), |s| s..s + 1);
            let sums = &sums[range.start * one..range.end * one];
            out.copy_from_slice(&values_with_z(model, &model.species[range], cell, sums, samples));
        }
    }
    let (by_species, by_mode) = out[VALUES..].split_at_mut(species_width(model));
    for (s, out) in by_species.chunks_exact_mut(OF_SPECIES.len()).enumerate() {
        out.copy_from_slice(&species_values(model, cell, s, &sums[s * one..(s + 1) * one], samples));
    }
    for (out, (s, m)) in by_mode.iter_mut().zip(modes(model)) {
        let sums = &sums[s * one..];
        *out = if sums[0] > 0.0 {
            model.species[s].vibration.mode_temperature(m, sums[model.collisions.internal() + 1 + m] / sums[0])
        } else {
            0.0
        };
    }
}
