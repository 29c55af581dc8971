//! Energy between the relative motion of a pair and the internal modes of its molecules.

use super::collide::{Kinetics, Table};
use super::math::Stream;
use super::store::Columns;
use crate::gas::Species;
use crate::gas::vibration::{HIGHEST, MODES};
use crate::model::purpose;
use crate::physics::{level_taken, levels_taken, rotor_share, top_takes};
use zellige_engine::rng::open_f32;

/// Internal modes of a species.
#[derive(Debug, Clone, Copy)]
pub(super) struct Modes {
    pub(super) rotation: u32,
    pub(super) z_rotation: crate::gas::Relaxation,
    /// The modes of the vibration, so many.
    pub(super) oscillators: [Oscillator; MODES],
    pub(super) count: usize,
}

/// A mode of vibration.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Oscillator {
    theta: f32,
    degeneracy: f32,
    z: f32,
}

impl Modes {
    pub(super) fn new(species: &Species) -> Self {
        let mut all =
            Self { rotation: species.rotation, z_rotation: species.z_rotation, oscillators: [Oscillator::default(); MODES], count: 0 };
        for mode in species.vibration.modes() {
            all.oscillators[all.count] = Oscillator { theta: mode.theta as f32, degeneracy: mode.degeneracy as f32, z: mode.z as f32 };
            all.count += 1;
        }
        all
    }

    /// True if a collision may change anything of it.
    pub(super) fn any(&self) -> bool {
        self.rotation > 0 || self.count > 0
    }
}

/// Larsen and Borgnakke's exchange, one mode of one particle after the other. Returns the new relative speed.
#[inline(never)]
pub(super) fn exchange(table: &Table, pair: &Kinetics, columns: &mut Columns<'_>, at: [usize; 2], g2: f32, step: u64, number: u64) -> f32 {
    let mut stream = Stream::new(purpose::INTERNAL, table.seed, step, number);
    let mut uniform = || open_f32(stream.word());
    let mut energy = pair.thermal * g2;
    let (b, freedom) = (pair.pool - 1.0, 2.0 * pair.pool);
    for ((i, s), chances) in at.into_iter().zip(pair.species).zip(pair.chances) {
        let modes = &table.modes[s];
        // Energies for the collision number and for the exchange are the same, so that detailed balance holds.
        // Of several modes each has a byte of the word.
        let several = modes.count > 1;
        let most = HIGHEST[usize::from(several)] as f32;
        for m in 0..modes.count {
            let Oscillator { theta, degeneracy, z } = modes.oscillators[m];
            let (word, shift) = (columns.level[i], 8 * m as u32);
            let level = if several { word >> shift & 0xFF } else { word };
            let pool = energy + level as f32 * theta;
            let draw = uniform();
            let chance = if chances[m] >= 0 {
                table.chances[chances[m] as usize].at(f64::from(pool)) as f32
            } else if !table.jeans {
                1.0 / z
            } else if draw * freedom * z < 1.001 * (freedom + 2.0 * degeneracy) {
                let x = theta / (2.0 * pool / freedom);
                (freedom + degeneracy * (2.0 * x / x.exp_m1().max(1e-30))) / (freedom * z)
            } else {
                // An oscillator has no more than two degrees of freedom: most draws are refused without asking how many.
                0.0
            };
            if draw < chance {
                let highest = (pool / theta).min(most);
                let level = loop {
                    let level = ((highest + 1.0).floor() * uniform()).floor().min(highest.floor());
                    let taken = if degeneracy > 1.0 {
                        levels_taken(level, pool / theta, degeneracy, uniform(), b)
                    } else {
                        level_taken(level * theta, pool, uniform(), b)
                    };
                    if taken {
                        break level;
                    }
                };
                columns.level[i] = if several { word & !(0xFF << shift) | (level as u32) << shift } else { level as u32 };
                energy = (pool - level * theta).max(0.0);
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
