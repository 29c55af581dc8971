//! From the input to a [`Model`].

use std::path::Path;
use std::sync::Arc;

use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::expr::Expr;

use crate::config::sides::{SideConfig, SideWall, SideWord, WallConfig};
use crate::config::{Config, GasConfig, ReferenceConfig, SourceConfig, Value};
use crate::gas::Species;
use crate::geometry::{Geometry, Outlines, read};
use crate::grid::{Grid, Side};
use crate::model::{Collisions, Edge, Gas, Model, Partner};
use crate::plan::forecast::bearable;
use crate::species::all_species;
use crate::start::loading::State;
use crate::start::source::{self, LineSource};
use crate::walls::subsonic::SubsonicBoundary;
use crate::walls::{BOLTZMANN, Model as WallModel, Wall, temperatures};

/// Most particles of a run: no machine holds as many.
const PARTICLES: f64 = 1e11;
/// Most particles of a cell: numbers of its attempts have 24 bits, those of the particles of a tile 28.
const IN_A_CELL: f64 = 1e7;

/// Weights of cells: beyond, a particle that goes from one to another would become as many as a tile has.
const WEIGHTS: (f64, f64) = (1e-3, 1e3);

/// A problem of a key of the input.
pub(crate) fn input(path: &str, mut problem: Problem) -> Error {
    problem.path = format!("dsmc.{path}");
    Error::input("the input", problem)
}

/// A number or an expression, ready to be evaluated.
#[derive(Debug, Clone)]
enum Profile {
    Number(f64),
    Expression(Expr),
}

impl Profile {
    fn new(config: &Config, path: &str, value: Option<&Value>, otherwise: f64) -> Result<Self> {
        Ok(match value {
            None => Self::Number(otherwise),
            Some(Value::Number(x)) => Self::Number(*x),
            Some(Value::Expression(text)) => {
                let expression = config.expression(path, text).map_err(|p| input(path, p))?;
                expression.constant().map_or(Self::Expression(expression), Self::Number)
            }
        })
    }

    fn at(&self, position: [f64; 2]) -> f64 {
        match self {
            Self::Number(x) => *x,
            Self::Expression(expression) => expression.eval(&position),
        }
    }
}

/// The gas at the start.
#[derive(Debug, Clone)]
pub struct Initial {
    density: Profile,
    temperature: Profile,
    temperatures: Option<[f64; 3]>,
    internal: Option<f64>,
    velocity: [Profile; 3],
}

impl Initial {
    /// Of a checked input.
    pub fn new(config: &Config) -> Result<Self> {
        let (i, gas) = (&config.initial, &config.gas);
        let velocity = |c: usize| {
            let value = i.velocity.as_ref().map(|v| &v[c]);
            Profile::new(config, &format!("initial.velocity[{c}]"), value, gas.velocity[c])
        };
        Ok(Self {
            density: Profile::new(config, "initial.density", i.density.as_ref(), gas.density)?,
            temperature: Profile::new(config, "initial.temperature", i.temperature.as_ref(), gas.temperature)?,
            temperatures: i.temperatures,
            internal: i.internal_temperature,
            velocity: [velocity(0)?, velocity(1)?, velocity(2)?],
        })
    }

    /// True if it may move along z somewhere.
    pub(crate) fn along_z(&self) -> bool {
        !matches!(self.velocity[2], Profile::Number(0.0))
    }

    /// The gas at a position.
    pub fn at(&self, position: [f64; 2]) -> State {
        let temperature = self.temperatures.unwrap_or_else(|| [self.temperature.at(position); 3]);
        State {
            density: self.density.at(position),
            temperature,
            internal: self.internal.unwrap_or(temperature.iter().sum::<f64>() / 3.0),
            velocity: [0, 1, 2].map(|c| self.velocity[c].at(position)),
        }
    }
}

/// A file that cannot be read as a problem of its key; other errors as they are.
pub(crate) fn unreadable(key: &str, error: Error) -> Error {
    error.of_key(format!("dsmc.{key}"))
}

/// The bodies of the input, their walls behind those of the sides.
fn bodies(
    config: &Config,
    folder: &Path,
    grid: &Grid,
    edges: [Edge; 4],
    walls: &mut Vec<Wall>,
) -> Result<(Geometry, Vec<String>, Vec<ReferenceConfig>)> {
    let refused = |mut problems: Vec<Problem>| {
        for p in &mut problems {
            p.path = format!("dsmc.{}", p.path);
        }
        Error::Input { origin: "the input".into(), problems }
    };
    // A file has several bodies: the entries that they are of.
    let (mut curves, mut entries) = (Vec::new(), Vec::new());
    for (i, body) in config.bodies.iter().enumerate() {
        let (wall, path) = (walls.len() as u32, format!("bodies[{i}]"));
        walls.push(body.wall.wall());
        let types: Vec<_> = body.walls.keys().zip(wall + 1..).map(|(kind, number)| (kind.as_str(), number)).collect();
        walls.extend(body.walls.values().map(WallConfig::wall));
        let first = curves.len();
        if let Some(shape) = &body.outline {
            curves.push(shape.curve(&body.name, &format!("{path}.outline"), body.gas, wall).map_err(refused)?);
        }
        if let Some(file) = &body.file {
            let label = read::Label { name: &body.name, origin: &path, gas: body.gas, wall, types: &types };
            let file = folder.join(file);
            curves.extend(read::read(&file, grid, label).map_err(|e| unreadable(&format!("{path}.file"), e))?);
        }
        if let Some(problem) = body.reference.and_then(|r| r.fault()) {
            return Err(input(&format!("{path}.reference"), problem));
        }
        if let Some(length) = body.max_segment_length {
            for curve in &mut curves[first..] {
                *curve = curve.divided(length).map_err(|p| input(&format!("{path}.max_segment_length"), p))?;
            }
        }
        entries.resize(curves.len(), i);
    }
    let outlines = Outlines::new(&curves, grid).map_err(refused)?;
    let periodic = [edges[0] == Edge::Periodic, edges[2] == Edge::Periodic];
    let mut geometry = Geometry::new(grid, periodic, &outlines);
    if (0..grid.len()).all(|c| geometry.fraction(c) <= 0.0) {
        return Err(refused(vec![Problem::new("bodies", "the bodies leave no room for the gas").hint("is `gas = \"inside\"` meant?")]));
    }
    let references = entries.iter().map(|i| config.bodies[*i].reference.unwrap_or_default()).collect();
    heat(config, &entries, &mut geometry, walls)?;
    Ok((geometry, outlines.notes, references))
}

/// A wall on a side; where its temperature is an expression, a wall for each cell along it.
fn wall_of(config: &Config, grid: &Grid, side: Side, given: &SideWall, walls: &mut Vec<Wall>) -> Result<Edge> {
    let (first, wall, along) = (walls.len() as u32, given.wall.wall(), 1 - side.axis);
    let Some(text) = &given.temperature else {
        walls.push(wall);
        return Ok(Edge::Wall(first));
    };
    let path = format!("{}.temperature", config.boundary.side(side).1);
    let expression = config.along(&path, text).map_err(|p| input(&path, p))?;
    for k in 0..grid.cells[along] {
        let (mut cell, mut offset) = ([k; 2], [0.5; 2]);
        (cell[side.axis], offset[side.axis]) = if side.upper { (grid.cells[side.axis] - 1, 1.0) } else { (0, 0.0) };
        let [x, y] = grid.position(cell, offset);
        let temperature = expression.eval(&[x, y, (k as f64 + 0.5) * grid.h[along]]);
        if !(temperature > 0.0 && temperature.is_finite()) {
            let problem = Problem::new("", format!("the temperature of the wall is {temperature} at ({x}, {y})"));
            return Err(input(&path, problem.allowed("above 0 K everywhere on the wall")));
        }
        walls.push(Wall { temperature, ..wall });
    }
    Ok(Edge::Walls(first))
}

/// Gives the flow of an inlet to what bodies leave open of its side: what would enter through them does not.
fn narrow(config: &Config, grid: &Grid, geometry: &Geometry, given: &mut [Option<(SubsonicBoundary, f64)>; 4]) -> Result<()> {
    if geometry.is_empty() {
        return Ok(());
    }
    for side in Side::ALL {
        let Some((SubsonicBoundary::Flow { flux, .. }, _)) = &mut given[side.index()] else { continue };
        let cells = grid.cells[1 - side.axis];
        let face = |k: usize| {
            let mut cell = [k; 2];
            cell[side.axis] = if side.upper { grid.cells[side.axis] - 1 } else { 0 };
            geometry.open_part(cell, side)
        };
        let open = (0..cells).map(face).sum::<f64>() / cells as f64;
        if open <= 0.0 {
            let problem = Problem::new("", "bodies cover the whole side, and no gas can enter through it");
            let path = format!("{}.inlet.mass_flow", config.boundary.side(side).1);
            return Err(input(&path, problem.hint("leave a part of the side free, or make it a wall")));
        }
        *flux /= open;
    }
    Ok(())
}

/// Gives segments of bodies whose temperature is an expression walls of their own.
fn heat(config: &Config, entries: &[usize], geometry: &mut Geometry, walls: &mut Vec<Wall>) -> Result<()> {
    for (number, entry) in entries.iter().enumerate() {
        let range = geometry.bodies()[number].segments.clone();
        let Some(text) = &config.bodies[*entry].temperature else { continue };
        let path = format!("bodies[{entry}].temperature");
        let expression = config.along(&path, text).map_err(|p| input(&path, p))?;
        let along = temperatures(geometry, number, &expression).map_err(|p| input(&path, p))?;
        for (k, temperature) in range.zip(along) {
            let own = walls[geometry.segments()[k].wall as usize];
            geometry.set_wall(k, walls.len() as u32);
            walls.push(Wall { temperature, ..own });
        }
    }
    Ok(())
}

/// A file of a source that cannot be read: under which of its two keys it stands.
fn unread_source(s: &SourceConfig, path: &str, folder: &Path, error: Error) -> Error {
    let (Error::File { path: file, .. } | Error::Format { path: file, .. } | Error::Content { path: file, .. }) = &error else {
        return error;
    };
    let key = if s.schedule_file.as_ref().is_some_and(|f| folder.join(f) == *file) { "schedule_file" } else { "file" };
    unreadable(&format!("{path}.{key}"), error)
}

/// The sources of the input.
fn sources(config: &Config, folder: &Path, species: &[Species], grid: &Grid, geometry: &Geometry) -> Result<Vec<LineSource>> {
    let mut all = Vec::new();
    for (i, s) in config.sources.iter().enumerate() {
        let path = format!("sources[{i}]");
        let mut source = if let Some(file) = &s.file {
            let schedule = s.schedule_file.as_ref().map(|f| folder.join(f));
            source::read(folder.join(file), schedule.as_deref(), species[0].mass).map_err(|e| unread_source(s, &path, folder, e))?
        } else {
            let (Some(ends), Some([x, y]), Some(temperature)) = (s.line, s.direction, s.temperature) else {
                return Err(input(&path, Problem::new("", "the source is not whole")));
            };
            let mut schedule: Vec<(u64, u64)> = s.schedule.iter().map(|e| (e[0], e[1])).collect();
            schedule.sort_unstable();
            let normal = [x / x.hypot(y), y / x.hypot(y)];
            let density = s.density.unwrap_or(0.0);
            LineSource { origin: String::new(), ends, normal, temperature, velocity: s.velocity, density, schedule }
        };
        source.origin.clear();
        source.check(grid, geometry).map_err(|p| input(&path, p))?;
        source.origin = path;
        all.push(source);
    }
    Ok(all)
}

/// Molecules of a particle in each cell over those of `weight`; empty where all are the same.
fn weights(config: &Config, grid: &Grid) -> Result<Vec<f32>> {
    let Some(text) = &config.cell_weights else { return Ok(Vec::new()) };
    let expression = config.expression("cell_weights", text).map_err(|p| input("cell_weights", p))?;
    let all = (0..grid.len()).map(|cell| {
        let position = grid.position(grid.cell(cell), [0.5; 2]);
        let weight = expression.eval(&position);
        if !(WEIGHTS.0..=WEIGHTS.1).contains(&weight) {
            let problem = Problem::new("", format!("at x = {}, y = {} a cell's weight would be {weight}", position[0], position[1]));
            let allowed = format!("{:e} to {:e}", WEIGHTS.0, WEIGHTS.1);
            return Err(input(
                "cell_weights",
                problem.allowed(allowed).hint("it is taken times `weight`: 1 where particles are as they are given"),
            ));
        }
        Ok(weight as f32)
    });
    let all: Vec<f32> = all.collect::<Result<_>>()?;
    Ok(if all.iter().all(|w| *w == 1.0) { Vec::new() } else { all })
}

impl Model {
    /// Of a checked input. Files are looked for in `folder`.
    pub fn new(config: &Config, folder: &Path, seed: u64) -> Result<Self> {
        let grid = config.domain();
        let (species, pairs) = all_species(config, folder)?;
        let whole: f64 = config.species.iter().map(|s| s.fraction).sum();
        let fractions: Vec<f64> = config.species.iter().map(|s| s.fraction / whole).collect();
        let gas =
            |g: &GasConfig| Gas { density: g.density, temperature: g.temperature, velocity: g.velocity, fractions: fractions.clone() };
        let mean_mass: f64 = species.iter().zip(&fractions).map(|(s, f)| s.mass * f).sum();
        let mut walls = Vec::new();
        let mut inflow = [const { None }; 4];
        let mut given = [None; 4];
        let mut edges = [Edge::Periodic; 4];
        for side in Side::ALL.into_iter().filter(|s| s.axis < grid.dimensions) {
            edges[side.index()] = match config.boundary.side(side).0 {
                SideConfig::Word(SideWord::Periodic) => Edge::Periodic,
                SideConfig::Word(SideWord::Vacuum) => Edge::Open,
                SideConfig::Word(SideWord::Stream) => {
                    inflow[side.index()] = Some(gas(&config.gas));
                    Edge::Open
                }
                SideConfig::Inflow(g) => {
                    inflow[side.index()] = Some(gas(&g.inflow));
                    Edge::Open
                }
                SideConfig::Outlet(o) => {
                    inflow[side.index()] = Some(gas(&config.gas));
                    given[side.index()] = Some((SubsonicBoundary::Outlet { pressure: o.outlet.pressure }, o.outlet.memory));
                    Edge::Open
                }
                SideConfig::Inlet(i) => {
                    let (i, temperature) = (&i.inlet, i.inlet.temperature);
                    let first = i.pressure.map_or(config.gas.density, |p| p / (BOLTZMANN * temperature));
                    inflow[side.index()] = Some(Gas { density: first, temperature, ..gas(&config.gas) });
                    let flux = i.mass_flow.unwrap_or(0.0) / (mean_mass * grid.length(1 - side.axis));
                    let what = i
                        .pressure
                        .map_or(SubsonicBoundary::Flow { flux, temperature }, |pressure| SubsonicBoundary::Inlet { pressure, temperature });
                    given[side.index()] = Some((what, i.memory));
                    Edge::Open
                }
                SideConfig::Word(SideWord::Specular) => {
                    walls.push(Wall { model: WallModel::Specular, temperature: 0.0, velocity: [0.0; 3] });
                    Edge::Wall(walls.len() as u32 - 1)
                }
                SideConfig::Wall(w) => wall_of(config, &grid, side, &w, &mut walls)?,
            };
        }
        let (geometry, notes, references) = bodies(config, folder, &grid, edges, &mut walls)?;
        narrow(config, &grid, &geometry, &mut given)?;
        let sources = sources(config, folder, &species, &grid, &geometry)?;
        let per_cell = config.gas.density * grid.volume();
        let weight = config.weight.unwrap_or_else(|| per_cell / config.particles_per_cell.unwrap_or(10.0));
        let c = &config.collisions;
        let mut collisions = Collisions {
            scheme: c.scheme,
            pairs,
            z_definition: c.z_definition,
            rotation: species.iter().any(|s| s.rotation > 0),
            modes: species.iter().map(|s| s.vibration.modes().len()).max().unwrap_or(0),
            vibration: species.iter().any(|s| !s.vibration.is_empty()),
            partner: c.partner,
            along_z: false,
            millikan_white: c.millikan_white,
        };
        let components = config.velocity_components as usize;
        if let Some(s) = species.iter().position(|s| components == 2 && (s.rotation > 0 || !s.vibration.is_empty())) {
            let message = format!("`velocity_components` is 2, and {} rotates or vibrates", species[s].name);
            let problem = Problem::new("", message).allowed("atoms, or molecules without internal modes");
            return Err(input("velocity_components", problem.hint("`collisions.rotation = false` and `collisions.vibration = false`")));
        }
        let gases = || inflow.iter().flatten();
        let speed = |v: [f64; 3]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let initial = Initial::new(config)?;
        let (mut hottest, mut fastest) = (config.gas.temperature, speed(config.gas.velocity));
        let heated = gases().map(|g| g.temperature).chain(sources.iter().map(|s| s.temperature));
        for t in walls.iter().map(|w| w.temperature).chain(heated) {
            hottest = hottest.max(t);
        }
        let blown = gases().map(|g| g.velocity).chain(sources.iter().map(|s| s.velocity));
        for v in walls.iter().map(|w| w.velocity).chain(blown) {
            fastest = fastest.max(speed(v));
            collisions.along_z |= v[2] != 0.0;
        }
        collisions.along_z |= initial.along_z();
        let weights = weights(config, &grid)?;
        let relative = |cell: usize| weights.get(cell).map_or(1.0, |w| f64::from(*w));
        let (mut most, mut dense) = (0.0_f64, 0.0_f64);
        let (mut particles, mut thick) = (0.0, gases().map(|g| g.density).fold(0.0, f64::max));
        for cell in 0..grid.len() {
            let position = grid.position(grid.cell(cell), [0.5; 2]);
            let state = initial.at(position);
            let mean = state.temperature[..components].iter().sum::<f64>() / components as f64;
            let sound = state.density.is_finite() && state.density >= 0.0 && mean.is_finite() && mean >= 0.0 && speed(state.velocity) < 1e8;
            if !sound {
                let u = state.velocity;
                let message = format!(
                    "at x = {}, y = {} the gas would have a density of {:e} 1/m^3, {} K and ({}, {}, {}) m/s",
                    position[0], position[1], state.density, mean, u[0], u[1], u[2]
                );
                let problem = Problem::new("", message).allowed("finite numbers, density and temperature 0 or more");
                return Err(input("initial", problem.hint("`max(0, ..)` cuts negative values off")));
            }
            hottest = hottest.max(state.temperature.into_iter().fold(0.0, f64::max));
            fastest = fastest.max(speed(state.velocity));
            most = most.max(state.density / relative(cell));
            thick = thick.max(state.density);
            dense = dense.max(config.gas.density / relative(cell));
            particles += state.density * grid.volume() * geometry.fraction(cell) / (weight * relative(cell));
        }
        if particles > PARTICLES || most.max(dense) * grid.volume() / weight > IN_A_CELL {
            let allowed = format!("at most {PARTICLES:e}, and {IN_A_CELL:e} in a cell");
            let problem = Problem::new("", format!("{particles:.3e} particles are asked for")).allowed(allowed);
            return Err(input("weight", problem.hint("a larger `weight`, or fewer `particles_per_cell`")));
        }
        let mut model = Self {
            geometry: Arc::new(geometry),
            notes,
            references,
            sources,
            per_cell: (most.max(dense) * grid.volume() / weight).max(1.0),
            grid,
            walls,
            edges,
            inflow,
            given,
            species,
            fractions,
            collisions,
            components,
            dt: config.dt,
            weight,
            weights: weights.into(),
            hottest: [hottest, fastest],
            expected: particles,
            seed,
        };
        bearable(&model, thick).map_err(|p| input("dt", p))?;
        if c.partner == Partner::Auto {
            model.collisions.partner = model.partner(config.gas.density, config.gas.temperature);
        }
        Ok(model)
    }
}
