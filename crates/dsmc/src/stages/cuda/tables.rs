//! Tables of the kernels: molecules, pairs, walls, the bodies, injections.

use bytemuck::Zeroable;
use zellige_engine::cuda::{Argument, Buffer, BufferOf, Pool};
use zellige_engine::error::Result;

use super::arguments::{self, Beam, Face, Kinetics, Line, Modes, Molecule, Part, Segment, Wall};
use super::tiling::Tiling;
use crate::gas::Relaxation;
use crate::gas::millikan::Chances;
use crate::geometry::{Piece, Reference};
use crate::grid::Side;
use crate::model::{Edge, Model, Scheme};
use crate::stages::cpu::collide;
use crate::walls::inflow::Stream;
use crate::walls::subsonic::SubsonicBoundary;
use crate::walls::{BOLTZMANN, Model as WallModel};

/// Tables on the device.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) pairs: BufferOf<Kinetics>,
    pub(super) modes: BufferOf<Modes>,
    /// Chances of vibration by Millikan and White: `[table][point]`.
    pub(super) chances: Buffer<f32>,
    pub(super) lookup: Buffer<u32>,
    /// By tile and cell.
    pub(super) rate: Buffer<f32>,
    pub(super) divided: Buffer<u32>,
    pub(super) parts: BufferOf<Part>,
    pub(super) outline: Buffer<[i32; 2]>,
    pub(super) reach: Buffer<u8>,
    /// [`Model::relative`] by tile and cell of the whole domain; empty where all are 1.
    pub(super) weights: Buffer<f32>,
    /// [`crate::stages::factors`].
    pub(super) factor: Buffer<f64>,
    /// Mass by species, characteristic temperature (K) by mode and species.
    pub(super) mass: Buffer<f64>,
    pub(super) theta: Buffer<f64>,
    pub(super) walls: BufferOf<Wall>,
    pub(super) molecules: BufferOf<Molecule>,
    pub(super) slots: Buffer<u32>,
    pub(super) first: Buffer<u32>,
    pub(super) pieces: BufferOf<Piece>,
    pub(super) references: BufferOf<Reference>,
    pub(super) segments: BufferOf<Segment>,
    pub(super) inside: Buffer<u8>,
    pub(super) faces: BufferOf<Face>,
    pub(super) beams: BufferOf<Beam>,
    pub(super) given: BufferOf<arguments::SubsonicBoundary>,
    pub(super) volume: Buffer<f64>,
    pub(super) memory: Buffer<f64>,
    pub(super) follow_first: Buffer<u32>,
    pub(super) follow: Buffer<[u32; 2]>,
    pub(super) lines: BufferOf<Line>,
    pub(super) fractions: Buffer<f64>,
    /// Numbers of the averages beside sides that follow the gas within, of those of this part.
    pub(super) followed: Vec<u32>,
    /// The most that comes through faces in a step. What follows the gas within may bring more: it is watched.
    pub(super) bound: u64,
}

impl Tables {
    pub(super) fn new(model: &Model, tiling: &Tiling, pool: &Pool) -> Result<Self> {
        let (chances, relaxing) = collide::relaxing(model);
        let chances: Vec<f32> = chances.iter().flat_map(Chances::values).map(|v| *v as f32).collect();
        let (pairs, lookup) = pairs(model, &relaxing);
        let (divided, parts, outline) = divided(model, tiling);
        let (slots, first, pieces, references) = model.geometry.lists();
        let inflow = inflow(model, tiling);
        let cells = || (0..tiling.len()).flat_map(|t| (0..1 << (tiling.shift[0] + tiling.shift[1])).map(move |s| (t, s)));
        let by_cell = |t, s| tiling.cell(t, s).map(|c| model.grid.index(c));
        let bodies = !model.geometry.is_empty();
        // A particle collides with those of its layer in place of all.
        let layers = tiling.layers as f32;
        let rate: Vec<f32> = if model.collisions.scheme == Scheme::None {
            Vec::new()
        } else {
            cells().map(|(t, s)| by_cell(t, s).map_or(0.0, |c| layers * collide::rate(model, c))).collect()
        };
        let reach: Vec<u8> = cells().filter(|_| bodies).map(|(t, s)| by_cell(t, s).map_or(0, |c| model.geometry.reach(c))).collect();
        // Flights end in tiles of other parts too.
        let whole = Tiling::new(&model.grid, tiling.shift, tiling.layers as u32);
        let weight = |k: usize| whole.padded_cell(k).map_or(1.0, |cell| model.weights[model.grid.index(cell)]);
        let weights: Vec<f32> = (0..if model.weighted() { whole.padded_cells() } else { 0 }).map(weight).collect();
        let number = |from: &[f64], what: &str| pool.buffer_from(from, what);
        let theta = |m: usize| model.species.iter().map(move |s| s.vibration.modes().get(m).map_or(0.0, |mode| mode.theta));
        let up = Upload { pool };
        Ok(Self {
            pairs: up.all(&pairs)?,
            modes: up.all(&modes(model))?,
            chances: up.all(&chances)?,
            lookup: up.all(&lookup)?,
            rate: up.all(&rate)?,
            divided: up.all(&divided)?,
            parts: up.all(&parts)?,
            outline: up.all(&outline)?,
            reach: up.all(&reach)?,
            weights: up.all(&weights)?,
            factor: number(&crate::stages::factors(model), "dsmc: tables")?,
            mass: number(&model.species.iter().map(|s| s.mass).collect::<Vec<_>>(), "dsmc: tables")?,
            theta: number(&(0..model.collisions.modes).flat_map(theta).collect::<Vec<_>>(), "dsmc: tables")?,
            walls: up.all(&walls(model))?,
            molecules: up.all(&molecules(model))?,
            slots: up.all(slots)?,
            first: up.all(first)?,
            pieces: up.all(pieces)?,
            references: up.all(references)?,
            segments: up.all(&segments(model))?,
            inside: up.all(
                &(0..if bodies { model.grid.len() } else { 0 }).map(|c| u8::from(model.geometry.fraction(c) <= 0.5)).collect::<Vec<_>>(),
            )?,
            faces: up.all(&inflow.faces)?,
            beams: up.all(&inflow.beams)?,
            given: up.all(&inflow.given)?,
            volume: up.all(&inflow.volume)?,
            memory: up.all(&inflow.memory)?,
            follow_first: up.all(&inflow.follow_first)?,
            follow: up.all(&inflow.follow)?,
            lines: up.all(&lines(model))?,
            fractions: up.all(&model.fractions)?,
            followed: inflow.follow.iter().map(|[_, number]| *number).collect(),
            bound: inflow.bound,
        })
    }
}

struct Upload<'a> {
    pool: &'a Pool,
}

impl Upload<'_> {
    fn all<A: Argument + Copy>(&self, from: &[A]) -> Result<BufferOf<A>> {
        self.pool.buffer_from(&from.iter().map(|a| a.value()).collect::<Vec<_>>(), "dsmc: tables")
    }
}

/// As `stages/cpu/collide.rs` has them.
fn pairs(model: &Model, relaxing: &[collide::ChanceTables]) -> (Vec<Kinetics>, Vec<u32>) {
    let n = model.species.len();
    let (mut pairs, mut lookup) = (Vec::new(), vec![0; n * n]);
    let inelastic = |s: usize| model.species[s].rotation > 0 || !model.species[s].vibration.is_empty();
    for a in 0..n {
        for b in a..n {
            let pair = model.pair(a, b);
            lookup[a * n + b] = pairs.len() as u32;
            lookup[b * n + a] = pairs.len() as u32;
            let mass = model.species[a].mass + model.species[b].mass;
            pairs.push(Kinetics {
                rate: (pair.rate * collide::SCALE) as f32,
                power: (1.0 - pair.scatter.omega) as f32,
                soft: (1.0 / pair.scatter.alpha) as f32,
                share: [model.species[b].mass / mass, model.species[a].mass / mass].map(|x| x as f32),
                thermal: (0.5 * pair.reduced_mass / BOLTZMANN) as f32,
                pool: (2.5 - pair.scatter.omega) as f32,
                inelastic: u32::from(inelastic(a) || inelastic(b)),
                species: [a as u32, b as u32],
                chances: relaxing[pairs.len()],
            });
        }
    }
    (pairs, lookup)
}

fn modes(model: &Model) -> Vec<Modes> {
    let modes = |s: &crate::gas::Species| {
        let (z_rotation, t_star) = match s.z_rotation {
            Relaxation::Constant(z) => (z as f32, 0.0),
            Relaxation::Parker { z_inf, t_star } => (z_inf as f32, t_star as f32),
        };
        let mut all = Modes { rotation: s.rotation, count: s.vibration.modes().len() as u32, z_rotation, t_star, ..Modes::zeroed() };
        for (m, mode) in s.vibration.modes().iter().enumerate() {
            (all.theta[m], all.degeneracy[m], all.z[m]) = (mode.theta as f32, mode.degeneracy as f32, mode.z as f32);
        }
        all
    };
    model.species.iter().map(modes).collect()
}

/// For each tile and cell the first of its parts with their number in the upper eight bits; the parts; their outlines.
fn divided(model: &Model, tiling: &Tiling) -> (Vec<u32>, Vec<Part>, Vec<[i32; 2]>) {
    let cells = tiling.len() << (tiling.shift[0] + tiling.shift[1]);
    let (mut table, mut parts, mut outlines) = (Vec::new(), vec![Part { fraction: 0.0, first: 0, count: 0 }], Vec::new());
    for (cell, all) in model.geometry.divided().filter(|(cell, _)| tiling.owns(model.grid.cell(*cell))) {
        table.resize(cells, 0);
        let (tile, slot) = tiling.tile_and_slot(model.grid.cell(cell));
        table[(tile << (tiling.shift[0] + tiling.shift[1])) + slot] = parts.len() as u32 | (all.len() as u32) << 24;
        for (fraction, outline) in all {
            parts.push(Part { fraction: fraction as f32, first: outlines.len() as u32, count: outline.len() as u32 });
            outlines.extend(outline);
        }
    }
    (table, parts, outlines)
}

fn walls(model: &Model) -> Vec<Wall> {
    let wall = |w: &crate::walls::Wall| {
        let (model, normal, tangential) = match w.model {
            WallModel::Specular => (0, 0.0, 0.0),
            WallModel::Diffuse { accommodation } => (1, accommodation, 1.0),
            WallModel::Cll { normal, tangential } => (2, normal, tangential),
        };
        Wall { model, temperature: w.temperature, velocity: w.velocity, normal, tangential }
    };
    model.walls.iter().map(wall).collect()
}

fn molecules(model: &Model) -> Vec<Molecule> {
    let molecule = |s: &crate::gas::Species| {
        let (thermal, count) = (2.0 * BOLTZMANN / s.mass, s.vibration.modes().len() as u32);
        let mut all = Molecule { mass: s.mass, thermal, rotation: s.rotation, count, ..Molecule::zeroed() };
        for (m, mode) in s.vibration.modes().iter().enumerate() {
            (all.theta[m], all.degeneracy[m]) = (mode.theta, mode.degeneracy);
        }
        all
    };
    model.species.iter().map(molecule).collect()
}

fn segments(model: &Model) -> Vec<Segment> {
    let grid = &model.grid;
    let one = |s: &crate::geometry::Segment| {
        let (middle, per_metre) = (s.middle(), s.per_metre());
        let middle = [0, 1].map(|d| (middle[d] - grid.origin[d]) / grid.h[d]);
        let per_cell = [0, 1].map(|d| per_metre[d] * grid.h[d]);
        Segment { normal: s.normal, middle, per_cell, wall: s.wall }
    };
    model.geometry.segments().iter().map(one).collect()
}

fn lines(model: &Model) -> Vec<Line> {
    let grid = &model.grid;
    let line = |s: &crate::start::source::LineSource| {
        let at = |end: usize, d: usize| (s.ends[end][d] - grid.origin[d]) / grid.h[d];
        Line { ends: [at(0, 0), at(0, 1), at(1, 0), at(1, 1)], normal: s.normal, temperature: s.temperature, velocity: s.velocity }
    };
    model.sources.iter().map(line).collect()
}

/// Injection through open sides.
struct Inflow {
    faces: Vec<Face>,
    beams: Vec<Beam>,
    given: Vec<arguments::SubsonicBoundary>,
    volume: Vec<f64>,
    memory: Vec<f64>,
    follow_first: Vec<u32>,
    follow: Vec<[u32; 2]>,
    bound: u64,
}

fn inflow(model: &Model, tiling: &Tiling) -> Inflow {
    let grid = &model.grid;
    let nothing = arguments::SubsonicBoundary { what: 0, value: 0.0, temperature: 0.0 };
    let none = Beam { density: 0.0, temperature: 1.0, velocity: [0.0; 3], mass: 1.0, mean: 0.0 };
    let mut all = Inflow {
        faces: Vec::new(),
        beams: vec![none; 4 * model.species.len()],
        given: vec![nothing; 4],
        volume: Vec::new(),
        memory: Vec::new(),
        follow_first: Vec::new(),
        follow: Vec::new(),
        bound: 0,
    };
    let mut following: Vec<(usize, [u32; 2])> = Vec::new();
    for side in Side::ALL.into_iter().filter(|s| model.edges[s.index()] == Edge::Open && s.axis < grid.dimensions) {
        let Some(gas) = &model.inflow[side.index()] else { continue };
        let n = grid.cells[1 - side.axis];
        for (s, species) in model.species.iter().enumerate() {
            let density = gas.density * gas.fractions[s];
            let beam = Stream { density, temperature: gas.temperature, velocity: gas.velocity, mass: species.mass };
            let mean = beam.flux(side.normal()) * grid.h[1 - side.axis] * model.dt / model.weight;
            all.beams[side.index() * model.species.len() + s] =
                Beam { density, temperature: gas.temperature, velocity: gas.velocity, mass: species.mass, mean };
            // Cell weights: by the least of them.
            let least = model.weights.iter().copied().fold(f32::MAX, f32::min);
            let mean = if model.weighted() { mean / f64::from(least) } else { mean };
            // A side that follows the gas within may let in more than at the start.
            let most = if model.given[side.index()].is_some() { 4.0 * mean + 16.0 } else { mean + 1.0 };
            all.bound += n as u64 * most as u64;
        }
        if let Some((given, _)) = model.given[side.index()] {
            all.given[side.index()] = match given {
                SubsonicBoundary::Outlet { pressure } => arguments::SubsonicBoundary { value: pressure, ..nothing },
                SubsonicBoundary::Inlet { pressure, temperature } => arguments::SubsonicBoundary { what: 1, value: pressure, temperature },
                SubsonicBoundary::Flow { flux, temperature } => arguments::SubsonicBoundary { what: 2, value: flux, temperature },
            };
        }
        for along in 0..n {
            let mut cell = [along; 2];
            cell[side.axis] = if side.upper { grid.cells[side.axis] - 1 } else { 0 };
            let mut follow = u32::MAX;
            if let Some((_, memory)) = model.given[side.index()] {
                follow = all.volume.len() as u32;
                if tiling.owns(cell) {
                    let (tile, slot) = tiling.tile_and_slot(cell);
                    following.push((tile, [slot as u32, follow]));
                }
                all.volume.push(model.weight_of(grid.index(cell)) / model.cell_volume(grid.index(cell)));
                all.memory.push(memory);
            }
            all.faces.push(Face { cell: cell.map(|c| c as i32), side: side.index() as u32, follow });
        }
    }
    following.sort_unstable();
    if !all.volume.is_empty() {
        let before = |tile: usize| following.partition_point(|f| f.0 < tile) as u32;
        all.follow_first = (0..=tiling.len()).map(before).collect();
        all.follow = following.iter().map(|f| f.1).collect();
    }
    all
}
