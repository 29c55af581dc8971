//! Momentum and energy of the particles of a tile, in lanes: one by one the additions wait for each other, and an audit of a large
//! gas took longer than two of its steps.

use super::store::{Columns, HOLE};
use crate::model::Model;
use crate::stages::Totals;
use crate::walls::BOLTZMANN;

const LANES: usize = 8;

/// Adds the particles in the first `n` slots, of one real molecule each, or of so many as their cell's weight among `weights` says.
pub(super) fn add(model: &Model, columns: &Columns<'_>, n: usize, weights: &[f32], sum: &mut Totals) {
    let species = &model.species;
    let mut momentum = [[0.0_f64; LANES]; 3];
    let (mut energy, mut internal, mut count) = ([0.0_f64; LANES], [0.0_f64; LANES], 0_u64);
    for first in (0..n).step_by(LANES) {
        let slots = first..(first + LANES).min(n);
        // Holes have no mass.
        let mut mass = [0.0_f64; LANES];
        for (l, key) in columns.key[slots.clone()].iter().enumerate() {
            if *key != HOLE {
                let kind = if species.len() == 1 { &species[0] } else { &species[usize::from(*key) % species.len()] };
                let weight = weights.get(usize::from(*key) / species.len()).map_or(1.0, |w| f64::from(*w));
                mass[l] = weight * kind.mass;
                count += 1;
                let level = columns.level.get(first + l).copied().unwrap_or(0);
                let own = f64::from(columns.rotation.get(first + l).copied().unwrap_or(0.0)) + kind.vibration.energy(level);
                internal[l] += weight * own;
            }
        }
        let mut square = [0.0_f64; LANES];
        for (momentum, v) in momentum.iter_mut().zip(&columns.v) {
            let mut of = [0.0_f32; LANES];
            of[..slots.len()].copy_from_slice(&v[slots.clone()]);
            for l in 0..LANES {
                let v = f64::from(of[l]);
                momentum[l] += mass[l] * v;
                square[l] += v * v;
            }
        }
        for l in 0..LANES {
            energy[l] += mass[l] * square[l];
        }
    }
    sum.particles += count;
    for (to, lanes) in sum.momentum.iter_mut().zip(&momentum) {
        *to += lanes.iter().sum::<f64>();
    }
    sum.translation += 0.5 * energy.iter().sum::<f64>();
    sum.internal += BOLTZMANN * internal.iter().sum::<f64>();
}

#[cfg(test)]
mod tests {
    use super::super::store::{ParticleState, Row, layout};
    use super::*;
    use crate::config::{Config, SpeciesConfig};

    #[test]
    fn sums_are_those_of_the_particles_one_by_one() {
        let mut config = Config::new(vec![4], vec![1e-3], "O2", 1e20, 300.0);
        config.species.push(SpeciesConfig::named("He"));
        config.species[0].z_vibration = Some(50.0);
        config.collisions.vibration = true;
        let model = Model::new(&config, std::path::Path::new(""), 1).unwrap();
        for n in [0_usize, 1, 7, 8, 9, 61] {
            let mut row = Row::new(layout(&model), n);
            let mut expected = Totals::default();
            for i in 0..n {
                let v = [i as f32, 3.0 - i as f32, 0.5 * i as f32];
                let (rotation, level) = (10.0 * i as f32, (i % 3) as u32);
                let key = if i % 5 == 2 { HOLE } else { i as u16 };
                row.push(&ParticleState { x: 0.1, y: 0.2, v, rotation, level, tag: 0 }.with_key(key));
                if key != HOLE {
                    let kind = &model.species[i % 2];
                    expected.particles += 1;
                    for c in 0..3 {
                        expected.momentum[c] += kind.mass * f64::from(v[c]);
                    }
                    expected.translation += 0.5 * kind.mass * v.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>();
                    expected.internal += BOLTZMANN * (f64::from(rotation) + kind.vibration.energy(level));
                }
            }
            let mut found = Totals::default();
            add(&model, &Columns::of(&mut row), n, &[], &mut found);
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-13 * b.abs();
            assert!(found.particles == expected.particles && near(found.translation, expected.translation), "{n}: {found:?} {expected:?}");
            assert!(near(found.internal, expected.internal) && (0..3).all(|c| near(found.momentum[c], expected.momentum[c])), "{n}");
        }
    }
}
