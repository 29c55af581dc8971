//! Values of a cell from its sums: of the gas as a whole, and of each species of a mixture.

use zellige_engine::parallel::{chunks, chunks_mut, each};

use crate::gas::Species;
use crate::gas::vibration::MODES;
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
    let mut out = [0.0; VALUES - 1];
    let (one, modes, along_z) = (model.collisions.sums(), model.collisions.internal(), model.collisions.along_z);
    // In plain loops: this is done for every cell whenever a batch is closed. Sums by masses, of all species; numbers; degrees of freedom of rotation
    // and its energy.
    let (mut by_mass, mut number, mut freedom, mut rotational) = ([0.0; MOMENTS + ALONG_Z], 0.0, 0.0, 0.0);
    // An oscillator's temperature follows from its mean level; that of a mixture is weighted by numbers.
    let (mut vibration, mut weight, mut vibrational) = (0.0, 0.0, 0.0);
    for (k, s) in kinds.iter().zip(sums.chunks_exact(one)).filter(|(_, s)| s[0] > 0.0) {
        number += s[0];
        for (to, from) in by_mass[..modes].iter_mut().zip(&s[..modes]) {
            *to += k.mass * from;
        }
        freedom += f64::from(k.rotation) * s[0];
        rotational += s[modes];
        if !k.vibration.is_empty() {
            let t = vibration_temperature(model, k, s);
            vibration += t * s[0];
            weight += s[0];
            vibrational += if t > 0.0 { k.vibration.freedom(t) * s[0] } else { 0.0 };
        }
    }
    if volume <= 0.0 || number == 0.0 {
        return out;
    }
    let density = model.weight_of(cell) / volume;
    let [mass, along @ ..] = by_mass;
    let [x, y, z, xx, yy, zz, xy, flux_x, flux_y, ..] = along;
    let u = [x / mass, y / mass, z / mass];
    let squares = [xx, yy, zz];
    let drift: f64 = u.iter().map(|u| u * u).sum();
    let peculiar = (squares.iter().sum::<f64>() - mass * drift).max(0.0);
    // Mean and squares come from the same samples: one of them is spent on the mean.
    let unbiased = number / (number - 1.0).max(1.0);
    let components = model.components as f64;
    let translation = peculiar * unbiased / (components * BOLTZMANN * number);
    let rotation = if freedom > 0.0 { 2.0 * rotational / freedom } else { 0.0 };
    vibration = if weight > 0.0 { vibration / weight } else { 0.0 };
    let all = components * number + freedom + vibrational;
    out[0] = number * density;
    out[1..4].copy_from_slice(&u);
    out[4] = (components * number * translation + freedom * rotation + vibrational * vibration) / all;
    (out[5], out[6], out[7]) = (translation, rotation, vibration);
    out[8] = out[0] * BOLTZMANN * translation;
    for (i, c) in [(9, 0), (10, 1)] {
        out[i] = density * (squares[c] - mass * u[c] * u[c]) * unbiased;
    }
    out[11] = density * (xy - mass * u[0] * u[1]) * unbiased;
    // Products with z are summed where something moves along it; elsewhere their mean is that of the gas as a whole, but for noise.
    let with_z = |i: usize| if along_z { by_mass[MOMENTS + i] } else { mass * u[i] * u[2] };
    let products = [[xx, xy, with_z(0)], [xy, yy, with_z(1)]];
    let energy = squares.iter().sum::<f64>() + internal_energy(model, kinds, sums);
    for (i, (flux, products)) in [flux_x, flux_y].into_iter().zip(products).enumerate() {
        out[12 + i] = 0.5 * density * heat(flux, products, energy, mass, u, i);
    }
    out
}

/// Twice the energy of internal modes in sums, in the unit of their squares by masses.
fn internal_energy(model: &Model, kinds: &[Species], sums: &[f64]) -> f64 {
    let modes = model.collisions.internal();
    let each = kinds.iter().zip(sums.chunks_exact(model.collisions.sums()));
    each.map(|(k, s)| 2.0 * BOLTZMANN * (s[modes] + k.vibration.of_levels(&s[modes + 1..]))).sum()
}

/// Component `i` of twice the heat flux, from sums by masses: `<(c^2 + 2 e/m) c_i> - 2 <c_i c_j> u_j - <c^2 + 2 e/m> u_i + 2 u^2
/// u_i`.
fn heat(flux: f64, products: [f64; 3], energy: f64, mass: f64, u: [f64; 3], i: usize) -> f64 {
    let work: f64 = products.iter().zip(u).map(|(p, u)| p * u).sum();
    let drift: f64 = u.iter().map(|u| u * u).sum();
    flux - 2.0 * work - energy * u[i] + 2.0 * mass * drift * u[i]
}

/// The values [`WITH_Z`] of some species of a cell together, `sums` being theirs.
fn values_with_z(model: &Model, kinds: &[Species], cell: usize, sums: &[f64], samples: u64) -> [f64; WITH_Z.len()] {
    let volume = model.cell_volume(cell) * samples as f64;
    let species = || kinds.iter().zip(sums.chunks_exact(model.collisions.sums()));
    let number: f64 = species().map(|(_, s)| s[0]).sum();
    if volume <= 0.0 || number == 0.0 {
        return [0.0; WITH_Z.len()];
    }
    let total = |i: usize| species().map(|(k, s)| k.mass * s[i]).sum::<f64>();
    let mass = total(0);
    let density = model.weight_of(cell) / volume;
    let scale = density * number / (number - 1.0).max(1.0);
    let [zz, xz, yz] = [(6, 3), (10, 1), (11, 2)].map(|(product, i)| scale * (total(product) - total(i) * total(3) / mass));
    let energy = total(4) + total(5) + total(6) + internal_energy(model, kinds, sums);
    let products = [total(10), total(11), total(6)];
    [zz, xz, yz, 0.5 * density * heat(total(12), products, energy, mass, [1, 2, 3].map(|i| total(i) / mass), 2)]
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

/// All values of all cells, `[cell][width]`.
pub(super) fn all_values(model: &Model, sums: &[f64], samples: u64) -> Vec<f64> {
    let (from, width) = (model.species.len() * model.collisions.sums(), width(model));
    let mut out = vec![0.0; model.grid.len() * width];
    each((chunks_mut(&mut out, width), chunks(sums, from)), |cell, (out, sums)| cell_values(model, cell, sums, samples, out));
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
