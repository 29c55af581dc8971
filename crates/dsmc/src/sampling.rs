//! Averages of cells and surfaces, with error bars from the means of batches.
//!
//! The sampling time is cut into batches. The values written are those of all samples; the error bar is the standard error of the
//! mean of the batches' values, which holds whatever the correlation of neighbouring steps as long as a batch is longer than it.

use rayon::prelude::*;
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::error::Result;

use crate::model::Model;
use crate::stages::{SUMS, SURFACE_SUMS, Stages};
use crate::walls::BOLTZMANN;

/// Values of a cell.
pub const VALUES: usize = 14;
/// A value: name, title, unit, SI dimension (m, kg, s, A, K, mol, cd).
pub type Quantity = (&'static str, &'static str, &'static str, [f64; 7]);

const SPEED: [f64; 7] = [1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0];
const KELVIN: [f64; 7] = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0];
const PRESSURE: [f64; 7] = [-1.0, 1.0, -2.0, 0.0, 0.0, 0.0, 0.0];
const FLUX: [f64; 7] = [0.0, 1.0, -3.0, 0.0, 0.0, 0.0, 0.0];

/// The values of a cell, in their order.
pub const QUANTITIES: [Quantity; VALUES] = [
    ("density", "number density", "1/m^3", [-3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
    ("velocity_x", "velocity along x", "m/s", SPEED),
    ("velocity_y", "velocity along y", "m/s", SPEED),
    ("velocity_z", "velocity along z", "m/s", SPEED),
    ("temperature", "temperature", "K", KELVIN),
    ("temperature_translation", "temperature of translation", "K", KELVIN),
    ("temperature_rotation", "temperature of rotation", "K", KELVIN),
    ("temperature_vibration", "temperature of vibration", "K", KELVIN),
    ("pressure", "pressure", "Pa", PRESSURE),
    ("stress_xx", "momentum flux p_xx", "Pa", PRESSURE),
    ("stress_yy", "momentum flux p_yy", "Pa", PRESSURE),
    ("stress_xy", "momentum flux p_xy", "Pa", PRESSURE),
    ("heat_flux_x", "heat flux along x", "W/m^2", FLUX),
    ("heat_flux_y", "heat flux along y", "W/m^2", FLUX),
];

/// The values of a cell from its sums over `samples` samples. Velocities are of the mass, temperatures about it.
pub fn values(model: &Model, cell: usize, sums: &[f64], samples: u64) -> [f64; VALUES] {
    let volume = model.cell_volume(cell) * samples as f64;
    let mut out = [0.0; VALUES];
    let number: f64 = sums.chunks_exact(SUMS).map(|s| s[0]).sum();
    if volume <= 0.0 || number == 0.0 {
        return out;
    }
    let species = || model.species.iter().zip(sums.chunks_exact(SUMS)).filter(|(_, s)| s[0] > 0.0);
    let density = model.weight / volume;
    let mass: f64 = species().map(|(k, s)| k.mass * s[0]).sum();
    let total = |i: usize| species().map(|(k, s)| k.mass * s[i]).sum::<f64>();
    let u = [1, 2, 3].map(|i| total(i) / mass);
    let squares = [4, 5, 6].map(total);
    let drift: f64 = u.iter().map(|u| u * u).sum();
    let peculiar = (squares.iter().sum::<f64>() - mass * drift).max(0.0);
    // Mean and squares come from the same samples: one of them is spent on the mean.
    let unbiased = number / (number - 1.0).max(1.0);
    let translation = peculiar * unbiased / (3.0 * BOLTZMANN * number);
    let freedom: f64 = species().map(|(k, s)| f64::from(k.rotation) * s[0]).sum();
    let rotation = if freedom > 0.0 { 2.0 * species().map(|(_, s)| s[10]).sum::<f64>() / freedom } else { 0.0 };
    // An oscillator's temperature follows from its mean level; that of a mixture is weighted by numbers.
    let (mut vibration, mut weight, mut vibrational) = (0.0, 0.0, 0.0);
    for (k, s) in species().filter(|(k, _)| k.vibration > 0.0) {
        let level = s[11] / s[0];
        let t = if level > 0.0 { k.vibration / (1.0 / level).ln_1p() } else { 0.0 };
        vibration += t * s[0];
        weight += s[0];
        vibrational += if t > 0.0 { k.vibration_freedom(t) * s[0] } else { 0.0 };
    }
    vibration = if weight > 0.0 { vibration / weight } else { 0.0 };
    let all = 3.0 * number + freedom + vibrational;
    out[0] = number * density;
    out[1..4].copy_from_slice(&u);
    out[4] = (3.0 * number * translation + freedom * rotation + vibrational * vibration) / all;
    (out[5], out[6], out[7]) = (translation, rotation, vibration);
    out[8] = out[0] * BOLTZMANN * translation;
    for (i, c) in [(9, 0), (10, 1)] {
        out[i] = density * (squares[c] - mass * u[c] * u[c]) * unbiased;
    }
    let xy = total(7) - mass * u[0] * u[1];
    out[11] = density * xy * unbiased;
    // (rho/2) (<(c^2 + 2 e/m) c_i> - 2 <c_i c_j> u_j - <c^2 + 2 e/m> u_i + 2 u^2 u_i); products with z are not summed: where the
    // flow has a part along z, the work of the stresses xz and yz is left in.
    let internal: f64 = species().map(|(k, s)| 2.0 * BOLTZMANN * (s[10] + k.vibration * s[11])).sum();
    let energy = squares.iter().sum::<f64>() + internal;
    let product = |i: usize, j: usize| if i == j { squares[i] } else { total(7) };
    for (out, i) in out[12..].iter_mut().zip([0, 1]) {
        let work = product(i, 0) * u[0] + product(i, 1) * u[1] + mass * u[i] * u[2] * u[2];
        *out = 0.5 * density * (total(8 + i) - 2.0 * work - energy * u[i] + 2.0 * mass * drift * u[i]);
    }
    out
}

/// Values of a surface: flux of molecules (1/(m^2 s)), momentum per area along x, y, z (Pa) and heat (W/m^2).
pub const SURFACE_VALUES: usize = SURFACE_SUMS;

/// Mean and summed squared deviation of batches (Welford).
#[derive(Debug, Clone, Default)]
struct Spread {
    mean: Vec<f64>,
    square: Vec<f64>,
}

impl Spread {
    fn new(n: usize) -> Self {
        Self { mean: vec![0.0; n], square: vec![0.0; n] }
    }

    /// Takes batch number `count`, from 1.
    fn add(&mut self, values: &[f64], count: u64) {
        for ((mean, square), x) in self.mean.iter_mut().zip(&mut self.square).zip(values) {
            let before = x - *mean;
            *mean += before / count as f64;
            *square += before * (x - *mean);
        }
    }

    /// Standard error of the mean of `count` batches.
    fn error(&self, i: usize, count: u64) -> f64 {
        if count < 2 { f64::NAN } else { (self.square[i] / ((count - 1) * count) as f64).sqrt() }
    }
}

/// The averages of a run.
#[derive(Debug, Clone)]
pub struct Samples {
    /// First step that counts.
    pub start: u64,
    /// Steps between samples.
    pub every: u64,
    /// Samples of a batch.
    batch: u64,
    /// Samples taken, and those of the batch under way.
    pub taken: u64,
    current: u64,
    /// Batches that are done.
    pub batches: u64,
    cells: Vec<f64>,
    surfaces: Vec<f64>,
    cell_spread: Spread,
    surface_spread: Spread,
}

impl Samples {
    /// From step `start` to `steps`, in `batches` batches.
    pub fn new(model: &Model, start: u64, steps: u64, every: u64, batches: u64) -> Self {
        let samples = steps.saturating_sub(start).div_ceil(every);
        let (cells, surfaces) = (model.grid.len(), 4 + model.geometry.segments().len());
        Self {
            start,
            every,
            batch: (samples / batches).max(1),
            taken: 0,
            current: 0,
            batches: 0,
            cells: vec![0.0; cells * model.species.len() * SUMS],
            surfaces: vec![0.0; surfaces * SURFACE_SUMS],
            cell_spread: Spread::new(cells * VALUES),
            surface_spread: Spread::new(surfaces * SURFACE_VALUES),
        }
    }

    /// Whether step `step` is to be sampled.
    pub fn due(&self, step: u64) -> bool {
        step >= self.start && (step - self.start).is_multiple_of(self.every)
    }

    /// After a sampled step: closes a batch that is full.
    pub fn after(&mut self, model: &Model, stages: &mut dyn Stages) -> Result<()> {
        self.taken += 1;
        self.current += 1;
        if self.current == self.batch { self.close(model, stages) } else { Ok(()) }
    }

    fn close(&mut self, model: &Model, stages: &mut dyn Stages) -> Result<()> {
        let mut cells = vec![0.0; self.cells.len()];
        let mut surfaces = vec![0.0; self.surfaces.len()];
        stages.take_samples(&mut cells, &mut surfaces)?;
        self.batches += 1;
        let found = all_values(model, &cells, self.current);
        self.cell_spread.add(&found, self.batches);
        let found: Vec<f64> = (0..surfaces.len()).map(|i| surface_value(model, &surfaces, i, self.current * self.every)).collect();
        self.surface_spread.add(&found, self.batches);
        self.cells.iter_mut().zip(cells).for_each(|(to, from)| *to += from);
        self.surfaces.iter_mut().zip(surfaces).for_each(|(to, from)| *to += from);
        self.current = 0;
        Ok(())
    }

    /// Samples that are in closed batches.
    pub fn closed(&self) -> u64 {
        self.batches * self.batch
    }

    /// Sums of a cell, `[species][SUMS]`.
    pub fn sums(&self, model: &Model, cell: usize) -> &[f64] {
        let width = model.species.len() * SUMS;
        &self.cells[cell * width..][..width]
    }

    /// All values, `[cell][VALUES]`, of the closed batches.
    pub fn values(&self, model: &Model) -> Vec<f64> {
        all_values(model, &self.cells, self.closed())
    }

    /// Standard errors of [`Samples::values`].
    pub fn error(&self, cell: usize, value: usize) -> f64 {
        self.cell_spread.error(cell * VALUES + value, self.batches)
    }

    /// A surface's values, and their standard errors.
    pub fn surface(&self, model: &Model, surface: usize) -> [[f64; 2]; SURFACE_VALUES] {
        let mut out = [[0.0; 2]; SURFACE_VALUES];
        for (v, out) in out.iter_mut().enumerate() {
            let i = surface * SURFACE_SUMS + v;
            *out = [surface_value(model, &self.surfaces, i, self.closed() * self.every), self.surface_spread.error(i, self.batches)];
        }
        out
    }

    /// Bytes held.
    pub fn memory(&self) -> u64 {
        8 * (self.cells.len() + self.surfaces.len() + 2 * self.cell_spread.mean.len() + 2 * self.surface_spread.mean.len()) as u64
    }

    /// Writes everything; open batches are in `pending`, the sums that the stages hold.
    pub fn save(&self, writer: &mut Writer, stages: &mut dyn Stages) -> Result<()> {
        let mut pending = [vec![0.0; self.cells.len()], vec![0.0; self.surfaces.len()]];
        let [cells, surfaces] = &mut pending;
        stages.take_samples(cells, surfaces)?;
        stages.put_samples(cells, surfaces)?;
        for (name, n) in [("samples.taken", self.taken), ("samples.current", self.current), ("samples.batches", self.batches)] {
            writer.u64(name, n)?;
        }
        for (name, values) in self.columns().into_iter().zip(&pending).map(|((name, _), p)| (format!("{name}.pending"), p)) {
            writer.f64s(&name, values)?;
        }
        for (name, values) in self.columns() {
            writer.f64s(name, values)?;
        }
        Ok(())
    }

    fn columns(&self) -> [(&'static str, &Vec<f64>); 6] {
        [
            ("samples.cells", &self.cells),
            ("samples.surfaces", &self.surfaces),
            ("samples.cell_mean", &self.cell_spread.mean),
            ("samples.cell_square", &self.cell_spread.square),
            ("samples.surface_mean", &self.surface_spread.mean),
            ("samples.surface_square", &self.surface_spread.square),
        ]
    }

    /// Takes everything back.
    pub fn restore(&mut self, reader: &Reader, stages: &mut dyn Stages) -> Result<()> {
        let fit = |name: &str, n: usize| {
            let values = reader.f64s(name)?;
            if values.len() == n {
                Ok(values)
            } else {
                Err(reader.wrong(format!("section `{name}` has {} numbers, {n} expected", values.len())))
            }
        };
        self.taken = reader.u64("samples.taken")?;
        self.current = reader.u64("samples.current")?;
        self.batches = reader.u64("samples.batches")?;
        let cells = fit("samples.cells.pending", self.cells.len())?;
        let surfaces = fit("samples.surfaces.pending", self.surfaces.len())?;
        stages.put_samples(&cells, &surfaces)?;
        self.cells = fit("samples.cells", self.cells.len())?;
        self.surfaces = fit("samples.surfaces", self.surfaces.len())?;
        for (names, spread) in [("cell", &mut self.cell_spread), ("surface", &mut self.surface_spread)] {
            spread.mean = fit(&format!("samples.{names}_mean"), spread.mean.len())?;
            spread.square = fit(&format!("samples.{names}_square"), spread.square.len())?;
        }
        Ok(())
    }
}

fn all_values(model: &Model, sums: &[f64], samples: u64) -> Vec<f64> {
    let width = model.species.len() * SUMS;
    let mut out = vec![0.0; model.grid.len() * VALUES];
    out.par_chunks_mut(VALUES).zip(sums.par_chunks(width)).enumerate().for_each(|(cell, (out, sums))| {
        out.copy_from_slice(&values(model, cell, sums, samples));
    });
    out
}

/// Area of a surface, m^2 per metre of depth: a side's or a segment's length.
pub fn area(model: &Model, surface: usize) -> f64 {
    match surface.checked_sub(4) {
        None => model.grid.length(1 - surface / 2),
        Some(segment) => model.geometry.segments()[segment].length(),
    }
}

fn surface_value(model: &Model, sums: &[f64], i: usize, steps: u64) -> f64 {
    sums[i] / (area(model, i / SURFACE_SUMS) * model.dt * steps as f64)
}
