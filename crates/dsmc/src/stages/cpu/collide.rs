//! The collisions of a tile's cells.
//!
//! No time counter and majorant frequency: of the pairs of species a and b in a cell, `N_a N_b W (sigma g)max dt/V` are
//! attempted (half of `N (N - 1)` within a species), rounded at random or as Poisson's number, and each collides with the
//! probability `sigma g/(sigma g)max`. The maximum begins high, rises at once where it was exceeded, and falls slowly towards
//! what was seen, but only when enough attempts have been seen. Pairing: all particles in disjoint random pairs, each colliding
//! with the probability `(N - 1) W sigma g dt/V` (times `N/(N - 1)` for odd N), in so many rounds that no probability exceeds
//! 1.
//!
//! Every number is drawn for (cell, attempt), so the result does not depend on threads.
//!
//! The partner of the first particle is any of the cell, any that it has not just collided with, or the nearest of these.

use std::sync::Arc;

use super::exchange::{Modes, exchange};
use super::math::{Stream, power, turn};
use super::store::{Columns, Tiling, local};
use super::tile::{Majorant, Scratch, Tile};
use crate::gas::millikan::{Chances, collision_number};
use crate::gas::vibration::MODES;
use crate::geometry::Geometry;
use crate::model::{Model, Partner, Scheme, ZDefinition, purpose};
use crate::physics::{Vec3, deflected, difference, directed, in_plane, moved};
use crate::walls::BOLTZMANN;
use zellige_engine::rng::{open_f32, uniform_f32};

/// Cross-sections times speeds are kept times this, so that single precision has room: they are about 1e-16 m^3/s.
pub(in crate::stages) const SCALE: f64 = 1e16;
/// Most probable speeds of a relative motion that the first maximum is for.
const FAST: f64 = 5.0;

/// Pairs of species with a <= b.
pub(in crate::stages) fn pair_count(species: usize) -> usize {
    species * (species + 1) / 2
}

/// Constants of single collisions of two species, in single precision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kinetics {
    pub(super) species: [usize; 2],
    /// `sigma g = rate (g^2)^power`, times [`SCALE`].
    pub(super) rate: f32,
    pub(super) power: f32,
    /// 1/alpha; 1 means isotropic.
    pub(super) soft: f32,
    /// Parts of the relative velocity that each gets: `m_b/(m_a + m_b)`, `m_a/(m_a + m_b)`.
    share: [f32; 2],
    /// Energy of the relative motion over k: `thermal g^2`, K.
    pub(super) thermal: f32,
    /// 5/2 - omega.
    pub(super) pool: f32,
    pub(super) inelastic: bool,
    /// Index in [`Table::chances`] of each mode of both by Millikan and White, or -1.
    pub(super) chances: ChanceTables,
}

/// Everything that collisions of a run need.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) scheme: Scheme,
    pub(super) pairs: Vec<Kinetics>,
    pub(super) modes: Vec<Modes>,
    pub(super) jeans: bool,
    /// True if velocities have no part along z.
    pub(super) planar: bool,
    /// `[a * species + b]`: index in `pairs`, and whether a comes second there.
    pub(super) lookup: Vec<usize>,
    pub(super) seed: u64,
    geometry: Arc<Geometry>,
    /// Squared lengths of the cell's edges over that of the first, if partners are nearest neighbours.
    pub(super) nearest: Option<[f32; 2]>,
    /// True if particles keep their last partner.
    pub(super) tagged: bool,
    pub(super) chances: Vec<Chances>,
}

impl Table {
    pub(super) fn new(model: &Model) -> Self {
        let n = model.species.len();
        let c = &model.collisions;
        let modes: Vec<Modes> = model.species.iter().map(Modes::new).collect();
        let (mut pairs, mut lookup) = (Vec::new(), vec![0; n * n]);
        let (chances, relaxing) = relaxing(model);
        for a in 0..n {
            for b in a..n {
                let pair = model.pair(a, b);
                lookup[a * n + b] = pairs.len();
                lookup[b * n + a] = pairs.len();
                let mass = model.species[a].mass + model.species[b].mass;
                pairs.push(Kinetics {
                    species: [a, b],
                    rate: (pair.rate * SCALE) as f32,
                    power: (1.0 - pair.scatter.omega) as f32,
                    soft: if model.planar() { 1.0 } else { (1.0 / pair.scatter.alpha) as f32 },
                    share: [model.species[b].mass / mass, model.species[a].mass / mass].map(|x| x as f32),
                    thermal: (0.5 * pair.reduced_mass / BOLTZMANN) as f32,
                    pool: (2.5 - pair.scatter.omega) as f32,
                    inelastic: modes[a].any() || modes[b].any(),
                    chances: relaxing[pairs.len()],
                });
            }
        }
        Self {
            scheme: c.scheme,
            pairs,
            modes,
            jeans: c.z_definition == ZDefinition::Jeans,
            planar: model.planar(),
            lookup,
            seed: model.seed,
            geometry: model.geometry.clone(),
            tagged: c.partner.tagged(),
            nearest: (c.partner == Partner::NearestNeighbour).then(|| across(model)),
            chances,
        }
    }
}

/// Squared lengths of a cell's edges over that of the first; 0 along axes that the grid does not have.
pub(in crate::stages) fn across(model: &Model) -> [f32; 2] {
    [0, 1].map(|d| if d < model.grid.dimensions { (model.grid.h[d] / model.grid.h[0]).powi(2) as f32 } else { 0.0 })
}

/// Numbers of the tables for the modes of both species of a pair; -1 for none.
pub(in crate::stages) type ChanceTables = [[i32; MODES]; 2];

/// Chances of vibration by Millikan and White, and their tables by pair.
pub(in crate::stages) fn relaxing(model: &Model) -> (Vec<Chances>, Vec<ChanceTables>) {
    let (n, c) = (model.species.len(), &model.collisions);
    let (mut chances, mut tables) = (Vec::new(), Vec::new());
    for (a, b) in (0..n).flat_map(|a| (a..n).map(move |b| (a, b))) {
        let pair = model.pair(a, b);
        let mut relaxing = |s: usize| {
            let kind = &model.species[s];
            let mut tables = [-1; MODES];
            for (table, mode) in tables.iter_mut().zip(kind.vibration.modes()) {
                // A collision number that was given goes before the correlation.
                if c.millikan_white && mode.z == f64::INFINITY {
                    *table = chances.len() as i32;
                    chances.push(Chances::new(mode.theta, mode.degeneracy, pair.scatter.omega, |t| collision_number(kind, pair, t)));
                }
            }
            tables
        };
        let own = relaxing(a);
        tables.push([own, if a == b { own } else { relaxing(b) }]);
    }
    (chances, tables)
}

/// Smallest part of a cell that collisions are computed for with its own volume; in smaller ones they are as rare as in this one.
const SMALLEST: f64 = 0.02;

/// Weight times step over the free volume of a cell; 0 where there is none.
pub(in crate::stages) fn rate(model: &Model, cell: usize) -> f32 {
    let fraction = model.geometry.fraction(cell);
    // Of a divided cell the smallest part: pairs in larger ones are thinned by `together`.
    let fraction = model.geometry.smallest_part(cell).unwrap_or(fraction);
    let volume = if fraction > 0.0 { model.grid.volume() * fraction.max(SMALLEST) } else { 0.0 };
    if volume > 0.0 { (model.weight_of(cell) * model.dt / volume / SCALE) as f32 } else { 0.0 }
}

/// The first maxima of all pairs: of the fastest of a hot gas that collides with another one at the fastest drift.
pub(in crate::stages) fn majorants(model: &Model) -> Vec<Majorant> {
    let n = model.species.len();
    let [temperature, drift] = model.hottest;
    let majorant = |a: usize, b: usize| {
        let pair = model.pair(a, b);
        let g = FAST * (2.0 * BOLTZMANN * temperature / pair.reduced_mass).sqrt() / std::f64::consts::SQRT_2 + 2.0 * drift;
        Majorant { sigma_g_max: (pair.sigma_g(g) * SCALE) as f32, seen: 0.0, attempts: 0.0 }
    };
    (0..n).flat_map(|a| (a..n).map(move |b| (a, b))).map(|(a, b)| majorant(a, b)).collect()
}

/// `(sigma g)max` of all pairs of species at a relative speed, m/s.
pub(in crate::stages) fn bounds_at(model: &Model, speed: f64) -> Vec<f32> {
    let n = model.species.len();
    let pairs = (0..n).flat_map(|a| (a..n).map(move |b| (a, b)));
    pairs.map(|(a, b)| (model.pair(a, b).sigma_g(speed) * SCALE) as f32).collect()
}

/// All collisions of a tile in step `step`.
#[inline(always)]
pub(super) fn collide(table: &Table, tile: &mut Tile, tiling: &Tiling, scratch: &mut Scratch, species: usize, step: u64) {
    match table.scheme {
        Scheme::None => {}
        Scheme::Ntc | Scheme::Majorant => super::attempts::attempt_collisions(table, tile, tiling, scratch, species, step),
        Scheme::Pairing => super::pairing::paired(table, tile, tiling, scratch, species, step),
    }
}

/// Number of a cell in the grid, which its random numbers hang on.
#[inline(always)]
pub(super) fn cell_number(tile: &Tile, tiling: &Tiling, slot: usize) -> u32 {
    let [i, j] = local(tiling, slot);
    ((tile.corner[1] + j) * tiling.cells[0] + tile.corner[0] + i) as u32
}

/// True if two particles of a divided cell are in the same part, thinned by the smallest part's volume over that of theirs: the
/// rate of attempted collisions is that of the smallest part.
#[inline(never)]
pub(super) fn together(table: &Table, columns: &Columns<'_>, cell: u32, tiling: &Tiling, at: [usize; 2], step: u64, number: u64) -> bool {
    let home = [cell as usize % tiling.cells[0], cell as usize / tiling.cells[0]];
    let part = |i: usize| table.geometry.part_at(home, [f64::from(columns.x[i]), f64::from(columns.y[i])]);
    let ((first, fraction), (second, _)) = (part(at[0]), part(at[1]));
    let least = table.geometry.smallest_part(cell as usize).unwrap_or(fraction).max(SMALLEST);
    first == second && Stream::new(purpose::PART, table.seed, step, number).open() * fraction.max(SMALLEST) < least
}

#[inline(always)]
pub(super) fn velocity(columns: &Columns<'_>, i: usize) -> Vec3<f32> {
    Vec3 { x: columns.v[0][i], y: columns.v[1][i], z: columns.v[2][i] }
}

/// Two particles collide: internal energies first, then the direction. `g` is the relative velocity, `words` are for the direction.
#[inline(always)]
pub(super) fn hit(
    table: &Table,
    pair: &Kinetics,
    columns: &mut Columns<'_>,
    at: [usize; 2],
    g: Vec3<f32>,
    g2: f32,
    words: [u32; 2],
    step: u64,
    number: u64,
) {
    let speed = if pair.inelastic { exchange(table, pair, columns, at, g2, step, number) } else { g2.sqrt() };
    let (se, ce) = turn(uniform_f32(words[1]));
    let u = open_f32(words[0]);
    let after = if table.planar {
        in_plane(speed, ce, se)
    } else if pair.soft == 1.0 {
        directed(speed, 2.0 * u - 1.0, ce, se)
    } else {
        deflected(g, speed, 2.0 * power(u, pair.soft) - 1.0, ce, se)
    };
    change(columns, pair, at, difference(after, g));
}

/// The relative velocity of two particles changes: the first gets `m_b/(m_a + m_b)` of it, the second the rest, backwards.
#[inline(always)]
pub(super) fn change(columns: &mut Columns<'_>, pair: &Kinetics, at: [usize; 2], change: Vec3<f32>) {
    let (v, w) = (moved(velocity(columns, at[0]), pair.share[0], change), moved(velocity(columns, at[1]), -pair.share[1], change));
    (columns.v[0][at[0]], columns.v[1][at[0]], columns.v[2][at[0]]) = (v.x, v.y, v.z);
    (columns.v[0][at[1]], columns.v[1][at[1]], columns.v[2][at[1]]) = (w.x, w.y, w.z);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{BodyConfig, Config, WallConfig};
    use crate::geometry::{Gas, Shape};

    /// Particles of a cell that a body cuts collide in what is left of it.
    #[test]
    fn a_cut_cell_has_the_rate_of_its_free_volume() {
        let mut config = Config::new(vec![16; 2], vec![1.6e-4; 2], "Ar", 7e22, 273.15);
        (config.dt, config.particles_per_cell) = (1e-8, Some(10.0));
        config.bodies.push(BodyConfig {
            name: "disc".into(),
            outline: Some(Shape::Circle { centre: [8.3e-5, 7.6e-5], radius: 3.3e-5, segments: 60 }),
            file: None,
            gas: Gas::Outside,
            wall: WallConfig::diffuse(273.15, [0.0; 3]),
            max_segment_length: None,
            temperature: None,
            walls: std::collections::BTreeMap::default(),
            reference: None,
        });
        let model = Model::new(&config, Path::new("."), 1).unwrap();
        let (mut cut, mut within) = (0, 0);
        for cell in 0..model.grid.len() {
            let (fraction, found) = (model.geometry.fraction(cell), f64::from(rate(&model, cell)));
            if fraction <= 0.0 {
                assert_eq!(found, 0.0);
                within += 1;
            } else if fraction > SMALLEST {
                // Cells are squares of 1e-5 m.
                let expected = model.weight * 1e-8 / (1e-10 * fraction) / SCALE;
                assert!((found / expected - 1.0).abs() < 1e-6, "{fraction}: {found}, not {expected}");
                cut += usize::from(fraction < 1.0);
            }
        }
        assert!(cut > 20 && within > 10, "{cut} cut cells, {within} inside");
    }
}
