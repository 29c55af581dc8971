//! Vibration by Millikan and White, and partners that are near, in a gas without gradients. Seed 20261121.

use std::collections::HashSet;

use crate::common::{argon, close, flow, run, temperatures};
use zellige_dsmc::config::SpeciesConfig;
use zellige_dsmc::gas::millikan::{Chances, collision_number};
use zellige_dsmc::gas::table::{Model, find};
use zellige_dsmc::model::{Partner, Scheme};
use zellige_dsmc::particles::Particles;

/// Energy that the vibration gains in a collision of a molecule, K, in a gas at `t` whose vibration is at `own`, by the chances of
/// the table: `<P(E) (<e>_E - e)>`, `e` the level's energy before, `<e>_E` its mean after an exchange of the pool E. In units of
/// theta inside.
fn gain(chances: &Chances, theta: f64, omega: f64, t: f64, own: f64) -> f64 {
    let b = 1.5 - omega;
    let after = |e: f64| {
        let weights = (0..=e as u32).map(|q| [(e - f64::from(q)).powf(b), f64::from(q)]);
        let sums = weights.fold([0.0; 2], |s, [w, q]| [s[0] + w, s[1] + w * q]);
        sums[1] / sums[0]
    };
    // Of the relative motion in steps of a twentieth of theta, in the middle of them.
    let (h, levels, positions) = (0.05, 50, 1600);
    let afters: Vec<f64> = (0..positions + 20 * levels).map(|i| after((i as f64 + 0.5) * h)).collect();
    let (x, y) = (theta / t, theta / own);
    let (mut sum, mut norm) = (0.0, 0.0);
    for i in 0..positions {
        let motion = (i as f64 + 0.5) * h;
        let weight = motion.powf(b) * (-motion * x).exp();
        for q in 0..levels {
            let w = weight * (-(q as f64) * y).exp();
            let pool = motion + q as f64;
            sum += w * chances.at(theta * pool) * (afters[i + 20 * q] - q as f64);
            norm += w;
        }
    }
    theta * sum / norm
}

/// The vibration of a gas in which it is far colder than the translation (rotation is left out) gains what the table's chances give
/// it; that these follow Millikan and White near equilibrium is tested where the table is made.
#[test]
fn vibration_relaxes_by_the_chances_of_its_table() {
    for (name, temperature) in [("O2", 12_000.0), ("N2", 16_000.0)] {
        let mut config = argon(72, 100.0);
        config.species = vec![SpeciesConfig::named(name)];
        (config.collisions.vibration, config.collisions.rotation, config.collisions.millikan_white) = (true, false, true);
        config.gas.temperature = temperature;
        config.initial.internal_temperature = Some(0.3 * temperature);
        config.dt = 2e-9;
        let mut gas = flow(&config, 1);
        let n = gas.totals().unwrap().particles as f64;
        let (kind, pair) = (find(name, Model::Vss).unwrap(), *gas.model.pair(0, 0));
        let (theta, omega) = (kind.vibration.modes()[0].theta, pair.scatter.omega);
        let look = |gas: &mut zellige_dsmc::flow::Flow| {
            let (t, _, level) = temperatures(gas);
            (t.iter().sum::<f64>() / 3.0, theta * level)
        };
        let z = |t: f64| collision_number(&kind, &pair, t);
        let (first, begin) = look(&mut gas);
        run(&mut gas, 10);
        let collisions = 2.0 * gas.ledger().unwrap().collisions as f64 / n;
        let (last, end) = look(&mut gas);
        let own = kind.vibration.mode_temperature(0, 0.5 * (begin + end) / theta);
        let expected = gain(&Chances::new(theta, 1, omega, z), theta, omega, 0.5 * (first + last), own) * collisions;
        // Some one collision each, in which a thirtieth of half a million molecules draw another level, some seven away: 2 % of what they
        // gain. High levels, which exchange in a tenth of their collisions, have begun to fill by then: 3 %. The sum of 2 (four times) and
        // 3.
        close(name, end - begin, expected, 0.11, 0.0);
    }
}

/// Nearest-neighbour partners collide as often as any, and take the same moments with them; they have tags, and few of them
/// collide again at once.
#[test]
fn partners_of_choice_collide_as_often() {
    let (near, fresh) = (Partner::NearestNeighbour, Partner::Fresh);
    let near = [(Scheme::Ntc, 10.0, near), (Scheme::Ntc, 60.0, near), (Scheme::Majorant, 20.0, near)];
    for (scheme, per_cell, partner) in near.into_iter().chain([(Scheme::Ntc, 4.0, fresh), (Scheme::Majorant, 20.0, fresh)]) {
        let mut config = argon((20_000.0_f64 / per_cell).sqrt() as usize, per_cell);
        config.collisions.scheme = scheme;
        config.collisions.partner = partner;
        config.initial.temperatures = Some([400.0, 210.0, 210.0]);
        let mut gas = flow(&config, 1);
        run(&mut gas, 60);
        let (before, steps) = (gas.ledger().unwrap(), 150);
        run(&mut gas, steps);
        let after = gas.ledger().unwrap();
        let found = (after.collisions - before.collisions) as f64;
        let n = gas.totals().unwrap().particles as f64;
        let density = n * gas.model.weight / (gas.model.grid.volume() * gas.model.grid.len() as f64);
        let temperature = gas.totals().unwrap().translation / (1.5 * crate::common::K * n * gas.model.weight);
        let expected = 0.5 * n * density * gas.model.pair(0, 0).mean_rate(temperature) * gas.model.dt * steps as f64;
        close(&format!("{scheme:?}, {partner:?} with {per_cell} in a cell"), found, expected, 0.006, expected.sqrt().recip());
        // The anisotropy is gone after about 30 collisions each.
        let ([x, y, z], ..) = temperatures(&mut gas);
        assert!((x - 0.5 * (y + z)).abs() < 4.0 * 273.15 * (3.0 / n).sqrt(), "{x} {y} {z}");
        let tags = gas.stages.particles().unwrap().tag;
        let mut sorted: Vec<u32> = tags.iter().copied().filter(|t| *t != 0).collect();
        sorted.sort_unstable();
        // Two particles have a tag, or one if the other has collided since; never three.
        assert!(sorted.len() as f64 > 0.9 * n && sorted.windows(3).all(|w| w[0] != w[2]), "{} tags", sorted.len());
    }
}

/// Six particles in a cell of their own: of two that share a tag one may collide with another, which leaves the tag with the other
/// one, but not the two with each other, after which neither has it. Random partners would do that in a tenth of the
/// collisions or more.
#[test]
fn fresh_partners_are_never_the_last_ones() {
    let mut config = argon(1, 6.0);
    config.collisions.partner = Partner::Fresh;
    let mut gas = flow(&config, 1);
    let holders = |gas: &mut zellige_dsmc::flow::Flow, tag: u32| gas.stages.particles().unwrap().tag.iter().filter(|t| **t == tag).count();
    let mut seen = 0;
    for _ in 0..2000 {
        let before = gas.stages.particles().unwrap().tag;
        assert_eq!(before.len(), 6);
        let collisions = gas.ledger().unwrap().collisions;
        run(&mut gas, 1);
        if gas.ledger().unwrap().collisions != collisions + 1 {
            continue;
        }
        let pairs: Vec<u32> = before.iter().copied().filter(|t| *t != 0 && before.iter().filter(|o| *o == t).count() == 2).collect();
        seen += usize::from(!pairs.is_empty());
        assert!(pairs.iter().all(|tag| holders(&mut gas, *tag) > 0), "the same two collided again");
    }
    assert!(seen > 300, "{seen}");
}

/// A million particles in a cell, each word of 32 bits that chooses the first of a pair with 4096 values left for the second: a
/// second word chooses among all. With collision partners that may not be the last ones a GPU has the whole cell in one tile.
#[test]
fn partners_of_a_crowd_are_all_of_it() {
    for partner in [Partner::Random, Partner::Fresh] {
        let n = 1 << 20;
        let mut config = argon(1, f64::from(n));
        (config.collisions.partner, config.dt) = (partner, 2e-9);
        let mut gas = flow(&config, 1);
        let bits = |p: &Particles| -> HashSet<[u32; 3]> { (0..p.len()).map(|i| [0, 1, 2].map(|c| p.velocity[c][i].to_bits())).collect() };
        let before = bits(&gas.stages.particles().unwrap());
        run(&mut gas, 1);
        let changed = gas.stages.particles().unwrap();
        let changed = bits(&changed).difference(&before).count() as f64;
        let collisions = gas.stages.ledger().unwrap().collisions as f64;
        // Of 2 C draws out of N, 2 C^2/N come again, 2 % here; of 4096 second ones a fifth of C at most would be new.
        println!("{partner:?}: {collisions} collisions, {changed} particles changed");
        assert!((10_000.0..40_000.0).contains(&collisions), "{collisions}");
        let expected = f64::from(n) * (1.0 - (-2.0 * collisions / f64::from(n)).exp());
        // Standard deviation of the number of distinct ones: less than the root of those that come again.
        assert!(
            (changed - expected).abs() < 6.0 * (2.0 * collisions * collisions / f64::from(n)).sqrt(),
            "{partner:?}: {changed} of {expected}"
        );
    }
}
