//! From the input to numbers: everything in normalised units, expressions compiled, every value looked at.
//!
//! [`Model`] is what a run is made of before anything is allocated; [`crate::loading`] puts the particles in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::expr::Expr;

use crate::config::profile::Density;
use crate::config::species::{FileParticles, PerCell, Positions, Spread};
use crate::config::{COORDINATES, Config, FieldValues, Preset, SpeciesConfig, Units, Value};
use crate::grid::{ABOVE, BELOW, Grid};
use crate::loading::{Bounds, Listed};
use crate::particles::Species;
use crate::samples::Samples;
use crate::stages::{Component, Precision, Setup};

/// A function of position: input units in, normalised units out.
#[derive(Debug, Clone)]
pub enum Profile {
    /// Constant value.
    Number(f64),
    /// An expression of `x` and `y`, divided by a unit.
    Expression(Expr, f64),
    /// A shape in a space of this many dimensions, divided by a unit.
    Shape(Preset, usize, f64),
    /// The array of a file, divided by a unit.
    Samples(Arc<Samples>, f64),
}

impl Profile {
    /// A value of the input at `path`, in units of `unit`; files are relative to `folder`.
    pub fn new(config: &Config, folder: &Path, path: &str, value: &Value, unit: f64) -> Result<Self> {
        Ok(match value {
            Value::Number(x) => Self::Number(x / unit),
            Value::Expression(text) => {
                let expression = config.expression(path, text, &COORDINATES).map_err(|p| input(&absolute(path), p))?;
                // An expression without variables costs nothing per particle.
                expression.constant().map_or(Self::Expression(expression, unit), |x| Self::Number(x / unit))
            }
            Value::File(file) => Self::Samples(Arc::new(Samples::read(config, &absolute(path), file, folder)?), unit),
        })
    }

    /// The value at a position in the input's units.
    pub fn at(&self, position: [f64; 2]) -> f64 {
        match self {
            Self::Number(x) => *x,
            Self::Expression(expression, unit) => expression.eval(&position) / unit,
            Self::Shape(preset, dimensions, unit) => preset.at(position, *dimensions) / unit,
            Self::Samples(samples, unit) => samples.at(position) / unit,
        }
    }

    /// True if it is certainly zero everywhere.
    pub fn is_zero(&self) -> bool {
        matches!(self, Self::Number(0.0))
    }
}

/// Part of the particles that there is room for besides where a window moves: what it brings is put in before what it leaves behind
/// is counted.
const SPARE: usize = 16;

/// A path in the solver's table as the input file has it.
pub(crate) fn absolute(path: &str) -> String {
    format!("pic.{path}")
}

/// An error about the key `path`.
pub(crate) fn input(path: &str, mut problem: Problem) -> Error {
    path.clone_into(&mut problem.path);
    Error::input("the input", problem)
}

/// Initial load of a species.
#[derive(Debug, Clone)]
pub struct Load {
    /// Its number, which its random numbers hang on.
    pub number: usize,
    /// Description of it for the stages.
    pub species: Species,
    /// Particles per cell at the reference density.
    pub per_cell: usize,
    /// Particles per cell along each axis, for regular positions.
    pub lattice: [usize; 2],
    /// Density, `n_0`.
    pub density: Profile,
    /// Density that `per_cell` is meant for, `n_0`.
    pub reference: f64,
    /// True if the density has but one value: then each particle of equal weight exists or not.
    pub flat: bool,
    /// Positions of particles in a cell.
    pub positions: Positions,
    /// True if momenta are of a low-discrepancy sequence over the domain.
    pub quiet: bool,
    /// Mean momentum.
    pub drift: [Profile; 3],
    /// Spread of the momenta.
    pub heat: ThermalSpread,
    /// True if the mean of the spread is subtracted.
    pub corrected: bool,
    /// The particles themselves, where they are those of a file. Density, drift and spread are then theirs.
    pub listed: Option<Arc<Listed>>,
}

/// Spread of the momenta about the drift.
#[derive(Debug, Clone)]
pub enum ThermalSpread {
    /// Not at all.
    Cold,
    /// Gaussian, standard deviation per component.
    Gaussian([Profile; 3]),
    /// Gaussian by temperature in `m c^2` of the species.
    Temperature(Profile),
    /// Maxwell-Juttner by temperature in `m c^2` of the species.
    MaxwellJuttner(Profile),
}

/// A run before anything is allocated.
#[derive(Debug, Clone)]
pub struct Model {
    /// Normalised units in units of the input.
    pub units: Units,
    /// The domain.
    pub grid: Grid,
    /// Steps to do.
    pub steps: u64,
    /// Time at which a window begins to move, `1/w_n`.
    pub window: Option<f64>,
    /// The species.
    pub loads: Vec<Load>,
    /// Number format.
    pub precision: Precision,
    /// Particles per species at the start, as expected, and the most of the run: a window brings more.
    pub at_start: Vec<usize>,
    /// See above.
    pub expected: Vec<usize>,
    /// Seed.
    pub seed: u64,
    /// Lower corner and size of a cell in the input's units.
    lattice: [[f64; 2]; 2],
    /// Folder of relative names of files.
    folder: PathBuf,
}

impl Model {
    /// Of a checked input, whose files are relative to `folder`.
    pub fn new(config: &Config, folder: &Path, seed: u64) -> Result<Self> {
        let (units, grid) = (config.scales(), config.domain());
        let mut model = Self {
            units,
            steps: config.step_count(),
            window: config.window.as_ref().map(|w| w.start / units.time),
            loads: Vec::new(),
            precision: config.precision,
            at_start: Vec::new(),
            expected: Vec::new(),
            seed,
            lattice: [[0, 1].map(|d| config.origin(d)), [0, 1].map(|d| config.spacing(d))],
            folder: folder.to_owned(),
            grid,
        };
        for (number, species) in config.species.iter().enumerate() {
            let (load, [at_start, most]) = match &species.particles {
                Some(particles) => model.listed(number, species, particles)?,
                None => model.load(config, number, species)?,
            };
            model.loads.push(load);
            model.at_start.push(at_start);
            model.expected.push(most);
        }
        Ok(model)
    }

    /// The position `(column, row)`, in cells from the lower corner at the start, in the input's units.
    pub fn position(&self, column: f64, row: f64) -> [f64; 2] {
        let [origin, h] = self.lattice;
        [origin[0] + column * h[0], if self.grid.dimensions == 1 { 0.0 } else { origin[1] + row * h[1] }]
    }

    /// Corner of the box at the start and lengths of a cell, in the input's units: [`Model::position`] is of them.
    pub fn lattice_units(&self) -> [[f64; 2]; 2] {
        self.lattice
    }

    /// Columns of cells that are ever in the box.
    pub fn columns(&self) -> u64 {
        let moved = self.window.map_or(0, |start| self.shifts(start, self.steps));
        self.grid.cells[0] as u64 + moved
    }

    /// Cells that a window which begins at `start` has gone after `steps` steps.
    pub fn shifts(&self, start: f64, steps: u64) -> u64 {
        let gone = (steps as f64 * self.grid.dt - start) / self.grid.h[0];
        // A multiple but for rounding counts as one.
        (gone * (1.0 + 1e-12)).max(0.0) as u64
    }

    /// Everything that a backend needs.
    pub fn setup(&self, config: &Config) -> Result<Setup> {
        let external = match &config.external {
            Some(values) => {
                let moving = self.window.is_some();
                let moves = |(name, v): (&'static str, Option<&Value>)| match v {
                    Some(Value::Expression(text)) => {
                        config.expression(name, text, &COORDINATES).is_ok_and(|e| e.uses(0)).then(|| format!("external.{name}"))
                    }
                    Some(Value::File(_)) => Some(format!("external.{name}")),
                    _ => None,
                };
                if let Some(path) = values.components().into_iter().find_map(moves).filter(|_| moving) {
                    let problem = Problem::new("", "the field depends on x and the window moves along x");
                    return Err(input(&absolute(&path), problem.hint("external fields in a moving window may depend on y only")));
                }
                self.fields(config, "external", values)?
            }
            None => Default::default(),
        };
        Ok(Setup {
            grid: self.grid.clone(),
            species: self.loads.iter().map(|l| l.species.clone()).collect(),
            expected: self.expected.iter().map(|n| if self.window.is_some() { n + n / SPARE } else { *n }).collect(),
            precision: config.precision,
            order: config.order,
            smoothing: [config.smoothing(0), config.smoothing(1)],
            absorbing_cells: config.boundary.layer,
            external,
            tile: config.tile,
            window: self.window.is_some(),
            deterministic: config.deterministic,
            seed: self.seed,
        })
    }

    /// Components of a table of fields that are not zero, in normalised units, with their paths.
    pub fn profiles(&self, config: &Config, table: &str, values: &FieldValues) -> Result<Vec<(Component, Profile, String)>> {
        let mut out = Vec::new();
        for (component, (name, value)) in Component::ALL.into_iter().zip(values.components()) {
            let Some(value) = value else { continue };
            let path = format!("{table}.{name}");
            let unit = if (component as usize) < 3 { self.units.electric } else { self.units.magnetic };
            let profile = Profile::new(config, &self.folder, &path, value, unit)?;
            if !profile.is_zero() {
                out.push((component, profile, path));
            }
        }
        Ok(out)
    }

    /// Six components over all corners with guards, in normalised units; empty where they are zero. Periodic guards hold the
    /// copies.
    pub fn fields(&self, config: &Config, table: &str, values: &FieldValues) -> Result<[Vec<f64>; 6]> {
        let mut out: [Vec<f64>; 6] = Default::default();
        let grid = &self.grid;
        for (component, profile, path) in self.profiles(config, table, values)? {
            let mut values = vec![0.0; grid.len()];
            for j in -(BELOW as isize)..(grid.cells[1] + ABOVE) as isize {
                for i in -(BELOW as isize)..(grid.cells[0] + ABOVE) as isize {
                    values[grid.index(i, j)] = self.value(&profile, component, &path, [i, j], 0)?;
                }
            }
            out[component as usize] = values;
        }
        Ok(out)
    }

    /// A profile at the point of a component in a cell of the box, which has moved by `moved` cells.
    pub(crate) fn value(&self, profile: &Profile, component: Component, path: &str, cell: [isize; 2], moved: u64) -> Result<f64> {
        let grid = &self.grid;
        let wrapped = |d: usize| if grid.periodic(d) { cell[d].rem_euclid(grid.cells[d] as isize) } else { cell[d] } as f64;
        let stagger = component.stagger();
        let position = self.position(wrapped(0) + moved as f64 + stagger[0], wrapped(1) + stagger[1]);
        let value = profile.at(position);
        if value.is_finite() {
            return Ok(value);
        }
        let message = format!("the value at x = {}, y = {} is {value}", position[0], position[1]);
        let problem = Problem::new("", message).allowed("finite numbers");
        Err(input(&absolute(path), problem.hint("`if(condition, value, otherwise)` keeps an expression away from a pole")))
    }

    /// A species and the number of particles that are to be expected at the start, and at most.
    fn load(&self, config: &Config, number: usize, s: &SpeciesConfig) -> Result<(Load, [usize; 2])> {
        let units = &self.units;
        let at = |key: &str| format!("species[{number}].{key}");
        let profile = |key: &str, v: &Value, unit: f64| Profile::new(config, &self.folder, &at(key), v, unit);
        let density = match &s.density {
            None => Profile::Number(1.0),
            Some(Density::Number(n)) => Profile::Number(n / units.density),
            Some(Density::Expression(text)) => profile("density", &Value::Expression(text.clone()), units.density)?,
            Some(Density::File(file)) => profile("density", &Value::File(file.clone()), units.density)?,
            Some(Density::Preset(preset)) => Profile::Shape(*preset, self.grid.dimensions, units.density),
        };
        let (most, cells) = self.survey(&density, &absolute(&at("density")))?;
        if most == 0.0 {
            let problem = Problem::new("", format!("the density of `{}` is zero in every cell of the box", s.name));
            return Err(input(&absolute(&at("density")), problem.hint("is the shape inside the grid?")));
        }
        let reference = s.reference_density.map_or(most, |n| n / units.density);
        let flat = match &density {
            Profile::Number(_) => true,
            Profile::Shape(preset, ..) => preset.is_flat(),
            Profile::Expression(..) | Profile::Samples(..) => false,
        } && (most / reference - 1.0).abs() < 1e-12;
        let weighted = s.weighted();
        let given = s.particles_per_cell.unwrap_or(PerCell::Number(0));
        let per_cell = given.total();
        // Of a flat density each cell's particles are there or not; the edges' share is at most that of full cells.
        let count = |cells: Cells| {
            if weighted || flat { cells.touched * per_cell } else { (cells.sum / reference * per_cell as f64).ceil() as usize }
        };
        let expected = cells.map(count);
        let temperature = |key: &str, v: &Value| profile(key, v, units.temperature * s.mass);
        let m = &s.momentum;
        let mut drift = [Profile::Number(0.0), Profile::Number(0.0), Profile::Number(0.0)];
        for (c, v) in m.drift.iter().flatten().enumerate() {
            drift[c] = profile(&format!("momentum.drift[{c}]"), v, 1.0)?;
        }
        let heat = match (&m.thermal, &m.temperature, &m.maxwell_juttner) {
            (Some(thermal), ..) => {
                let [x, y, z] = thermal.components().map(|(v, key)| profile(&format!("momentum.{key}"), &v, 1.0));
                ThermalSpread::Gaussian([x?, y?, z?])
            }
            (None, Some(v), _) => ThermalSpread::Temperature(temperature("momentum.temperature", v)?),
            (None, None, Some(v)) => ThermalSpread::MaxwellJuttner(temperature("momentum.maxwell_juttner", v)?),
            (None, None, None) => ThermalSpread::Cold,
        };
        let own = match m.spread() {
            Some(Spread::Momentum(u)) => u,
            Some(Spread::Temperature(t)) => (t / units.temperature / s.mass).sqrt(),
            None => 0.0,
        };
        let species = species(s, reference / per_cell as f64, weighted, own);
        let lattice = match given {
            // One row of cells holds all rows of a lattice.
            PerCell::Lattice([nx, ny]) if self.grid.dimensions == 1 => [nx * ny, 1],
            other => other.lattice(self.grid.h, self.grid.dimensions),
        };
        let (positions, corrected) = (s.positions, m.corrected);
        let quiet = m.quiet.unwrap_or(positions == Positions::Quiet);
        let listed = None;
        Ok((
            Load { number, species, per_cell, lattice, density, reference, flat, positions, quiet, drift, heat, corrected, listed },
            expected,
        ))
    }

    /// A species whose particles are those of a file, and how many are in the box at the start, and at most.
    fn listed(&self, number: usize, s: &SpeciesConfig, particles: &FileParticles) -> Result<(Load, [usize; 2])> {
        let (units, grid, path) = (&self.units, &self.grid, absolute(&format!("species[{number}].particles")));
        let cell = units.density * grid.cell_volume() * units.length.powi(grid.dimensions as i32);
        let cells = [self.columns() as usize, grid.cells[1]];
        let (lattice, dimensions, mass, charge, si) = (self.lattice, grid.dimensions, s.mass, s.charge, units.si);
        let bounds = Bounds { lattice, cells, dimensions, mass, charge, si, cell, path: &path };
        let listed = Listed::read(particles, &bounds, &self.folder)?;
        let columns = listed.of_columns();
        let at_start: usize = columns[..grid.cells[0]].iter().sum();
        if listed.is_empty() || at_start == 0 && self.window.is_none() {
            let problem = Problem::new("", format!("no particle of `{}` is in the box", particles.file.display()));
            return Err(input(
                &format!("{path}.file"),
                problem.hint("are positions in the units of the input, and the axes the right ones?"),
            ));
        }
        let (mut now, mut most) = (at_start, at_start);
        for (gone, come) in columns.iter().zip(&columns[grid.cells[0]..]) {
            now = now + come - gone;
            most = most.max(now);
        }
        let (mean, equal) = listed.mean();
        let moments = listed.moments();
        let [origin, h] = self.lattice;
        let centre = [0, 1].map(|d| origin[d] + 0.5 * h[d]);
        let spacing = [h[0], if grid.dimensions == 1 { f64::INFINITY } else { h[1] }];
        let load = Load {
            number,
            species: species(s, mean, !equal, moments[0][1]),
            per_cell: listed.fullest(),
            lattice: [1; 2],
            density: Profile::Samples(Arc::new(Samples::of_cells(cells, centre, spacing, listed.densities())), 1.0),
            reference: mean * listed.fullest() as f64,
            flat: false,
            positions: Positions::Random,
            quiet: false,
            drift: moments.map(|[mean, _]| Profile::Number(mean)),
            heat: ThermalSpread::Gaussian(moments.map(|[_, spread]| Profile::Number(spread))),
            corrected: false,
            listed: Some(Arc::new(listed)),
        };
        Ok((load, [at_start, most]))
    }

    /// Largest density over every cell that is ever in the box, and what the box holds at the start and at most. Each cell is
    /// looked at in its centre and near its corners, so that a thin target is not missed.
    fn survey(&self, density: &Profile, path: &str) -> Result<(f64, [Cells; 2])> {
        let [nx, ny] = self.grid.cells;
        if let Profile::Number(n) = density {
            // An expression without x and y may still have no value.
            if !(n.is_finite() && *n >= 0.0) {
                return Err(bad_density(path, *n, self.position(0.5, 0.5)));
            }
            return Ok((*n, [Cells { touched: nx * ny, sum: n * (nx * ny) as f64 }; 2]));
        }
        let probes: &[[f64; 2]] = if self.grid.dimensions == 1 {
            &[[0.5, 0.5], [0.01, 0.5], [0.99, 0.5]]
        } else {
            &[[0.5, 0.5], [0.01, 0.01], [0.99, 0.01], [0.01, 0.99], [0.99, 0.99]]
        };
        let (mut most, mut columns) = (0.0_f64, vec![Cells::default(); self.columns() as usize]);
        for j in 0..ny {
            for (i, column) in columns.iter_mut().enumerate() {
                let mut here = 0.0_f64;
                for (p, probe) in probes.iter().enumerate() {
                    let position = self.position(i as f64 + probe[0], j as f64 + probe[1]);
                    let n = density.at(position);
                    if !(n.is_finite() && n >= 0.0) {
                        return Err(bad_density(path, n, position));
                    }
                    here = here.max(n);
                    if p == 0 {
                        column.sum += n;
                    }
                }
                most = most.max(here);
                column.touched += usize::from(here > 0.0);
            }
        }
        let start = columns[..nx].iter().fold(Cells::default(), |all, c| all.plus(c, 1.0));
        let (mut now, mut fullest) = (start, start);
        for (old, new) in columns.iter().zip(&columns[nx..]) {
            now = now.plus(new, 1.0).plus(old, -1.0);
            fullest = Cells { touched: fullest.touched.max(now.touched), sum: fullest.sum.max(now.sum) };
        }
        Ok((most, [start, fullest]))
    }
}

/// A species for the stages; `thermal` is the thermal momentum of its walls where the input gives none.
fn species(s: &SpeciesConfig, weight: f64, weighted: bool, thermal: f64) -> Species {
    Species {
        name: s.name.clone(),
        charge: s.charge,
        mass: s.mass,
        weight,
        weighted,
        tagged: s.tagged,
        mobile: s.mobile,
        pusher: s.pusher,
        wall_thermal: [[s.wall_thermal.unwrap_or(thermal); 2]; 2],
    }
}

/// Sums of a density over some cells.
#[derive(Debug, Clone, Copy, Default)]
struct Cells {
    /// Cells that have some of it.
    touched: usize,
    /// Sum of the densities in the centres.
    sum: f64,
}

impl Cells {
    /// With others, or without them where `sign` is -1.
    fn plus(self, other: &Self, sign: f64) -> Self {
        let touched = if sign > 0.0 { self.touched + other.touched } else { self.touched - other.touched };
        Self { touched, sum: self.sum + sign * other.sum }
    }
}

/// A density that cannot be, and where.
pub(crate) fn bad_density(path: &str, value: f64, position: [f64; 2]) -> Error {
    let problem =
        Problem::new("", format!("the density at x = {}, y = {} is {value}", position[0], position[1])).allowed("finite, 0 or more");
    input(path, problem.hint("`max(0, ..)` cuts negative values off, `if(condition, value, 0)` keeps away from a pole"))
}
