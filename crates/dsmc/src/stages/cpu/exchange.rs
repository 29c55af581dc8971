//! Energy between the relative motion of a pair and the internal modes of its molecules.

use super::collide::{Kinetics, Table};
use super::math::Stream;
use super::store::Columns;
use crate::model::purpose;
use crate::physics::{level_taken, rotor_share, top_takes};
use zellige_engine::rng::open_f32;

/// Internal modes of a species.
#[derive(Debug, Clone, Copy)]
pub(super) struct Modes {
    pub(super) rotation: u32,
    pub(super) z_rotation: crate::gas::Relaxation,
    pub(super) theta: f32,
    pub(super) z_vibration: crate::gas::Relaxation,
}

/// Larsen and Borgnakke's exchange, one mode of one particle after the other. Returns the new relative speed.
#[inline(never)]
pub(super) fn exchange(table: &Table, pair: &Kinetics, columns: &mut Columns, at: [usize; 2], g2: f32, step: u64, number: u64) -> f32 {
    let mut stream = Stream::new(purpose::INTERNAL, table.seed, step, number);
    let mut uniform = || open_f32(stream.word());
    let mut energy = pair.thermal * g2;
    let (b, freedom) = (pair.pool - 1.0, 2.0 * pair.pool);
    for ((i, s), chances) in at.into_iter().zip(pair.species).zip(pair.chances) {
        let modes = &table.modes[s];
        // What the collision number is taken at and what the exchange keeps are the same, so that detailed balance holds.
        if modes.theta > 0.0 {
            let pool = energy + f32::from(columns.level[i]) * modes.theta;
            let z = modes.z_vibration.at(f64::from(2.0 * pool / freedom)) as f32;
            let draw = uniform();
            let chance = if let Some(c) = chances {
                table.chances[c].at(f64::from(pool)) as f32
            } else if !table.jeans {
                1.0 / z
            } else if draw * freedom * z < 1.001 * (freedom + 2.0) {
                let x = modes.theta / (2.0 * pool / freedom);
                (freedom + 2.0 * x / x.exp_m1().max(1e-30)) / (freedom * z)
            } else {
                // An oscillator has no more than two degrees of freedom: most draws are refused without asking how many.
                0.0
            };
            if draw < chance {
                let highest = (pool / modes.theta).min(65_000.0);
                loop {
                    let level = ((highest + 1.0).floor() * uniform()).floor().min(highest.floor());
                    if level_taken(level * modes.theta, pool, uniform(), b) {
                        columns.level[i] = level as u16;
                        energy = (pool - level * modes.theta).max(0.0);
                        break;
                    }
                }
            }
        }
        if modes.rotation > 0 {
            let pool = energy + columns.rotation[i];
            let zeta = modes.rotation as f32;
            let z = modes.z_rotation.at(f64::from(2.0 * pool / (freedom + zeta))) as f32;
            let chance = if table.jeans { (freedom + zeta) / (freedom * z) } else { 1.0 / z };
            if uniform() < chance {
                let own = if modes.rotation == 2 {
                    rotor_share(pool, uniform(), 1.0 / pair.pool)
                } else {
                    loop {
                        let x = uniform();
                        if top_takes(x, uniform(), b) {
                            break pool * x;
                        }
                    }
                };
                columns.rotation[i] = own;
                energy = (pool - own).max(0.0);
            }
        }
    }
    (energy / pair.thermal).sqrt()
}
