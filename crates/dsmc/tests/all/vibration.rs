//! Molecules with several modes of vibration: the equilibrium to which they relax, by energies and by the population of every
//! level; what averages make of them; what the input may say of them. Seed 20261121.

use std::path::Path;

use crate::common::{K, argon, close, flow, near, run};
use zellige_dsmc::config::{Config, ModeConfig, SpeciesConfig, Value, VibrationConfig};
use zellige_dsmc::flow::Flow;
use zellige_dsmc::gas::vibration::Vibration;
use zellige_dsmc::model::{Partner, Scheme, ZDefinition};
use zellige_dsmc::particles::Particles;
use zellige_dsmc::sampling::{first_mode, modes, width};

/// A hot gas whose internal modes begin cold. Half a collision a step: nothing differs from position to position.
fn hot(species: SpeciesConfig, temperature: f64) -> Config {
    let mut config = argon(8, 100.0);
    config.dt = 1.4e-8;
    config.species = vec![species];
    config.collisions.vibration = true;
    // The cells of some of these gases are wider than the free path: nothing is to be seen of it.
    config.collisions.partner = Partner::Random;
    config.initial.temperature = Some(Value::Number(1.5 * temperature));
    config.initial.internal_temperature = Some(0.5 * temperature);
    config
}

/// The temperature at which `n` molecules with translation, `rotation` freedoms and this vibration have the energy, K.
fn equilibrium(vibration: &Vibration, rotation: u32, energy: f64) -> f64 {
    let (mut low, mut high) = (1.0_f64, 1e6);
    for _ in 0..100 {
        let t = (low * high).sqrt();
        let e = 0.5 * (3.0 + f64::from(rotation) + vibration.freedom(t)) * t;
        if e < energy { low = t } else { high = t }
    }
    low
}

/// Number of molecules at each level of mode `m`.
fn populations(p: &Particles, vibration: &Vibration, m: usize) -> [f64; 256] {
    let mut found = [0.0; 256];
    p.level.iter().for_each(|word| found[vibration.level(*word, m) as usize] += 1.0);
    found
}

/// Squared deviations of populations of the levels of mode `m` from `C(q + d - 1, d - 1) x^q (1 - x)^d`, `x = exp(-theta/T)`, each
/// by its expectation; and their number less one. Levels with fewer than ten molecules expected are taken together.
fn deviations(found: &[f64; 256], vibration: &Vibration, m: usize, temperature: f64) -> (f64, f64) {
    let (mode, n) = (vibration.modes()[m], found.iter().sum::<f64>());
    let (x, d) = ((-mode.theta / temperature).exp(), mode.degeneracy);
    let (mut sum, mut count, mut states) = (0.0, 0.0, 1.0);
    let (mut left, mut rest) = (n, n);
    for (q, there) in found.iter().enumerate() {
        let expected = n * states * x.powi(q as i32) * (1.0 - x).powi(d as i32);
        if expected < 10.0 && left < 0.5 * n {
            break;
        }
        sum += (there - expected).powi(2) / expected;
        count += 1.0;
        (left, rest) = (left - expected, rest - there);
        states *= (q as f64 + f64::from(d)) / (q as f64 + 1.0);
    }
    (sum + (rest - left).powi(2) / left.max(1.0), count)
}

/// Translation, rotation (by their energies) and each mode (by its mean level), K.
fn temperatures(gas: &mut Flow) -> Vec<f64> {
    let (p, species) = (gas.stages.particles().unwrap(), gas.model.species[0].clone());
    let n = p.len() as f64;
    let square: f64 = p.velocity.iter().flatten().map(|v| f64::from(*v).powi(2)).sum();
    let mut all = vec![species.mass * square / (3.0 * K * n)];
    all.push(p.rotation.iter().map(|e| f64::from(*e)).sum::<f64>() * 2.0 / (n * f64::from(species.rotation)));
    for m in 0..species.vibration.modes().len() {
        let level = p.level.iter().map(|w| f64::from(species.vibration.level(*w, m))).sum::<f64>() / n;
        all.push(species.vibration.mode_temperature(m, level));
    }
    all
}

/// Carbon dioxide, methane and ammonia from far away: energy is kept, and every mode has the temperature that the energy has in
/// equilibrium, and the populations of that temperature, by every rule of exchange.
#[test]
fn several_modes_come_to_the_equilibrium_of_their_energy() {
    let with = |name: &str, z| SpeciesConfig { z_vibration: Some(z), ..SpeciesConfig::named(name) };
    let cases = [
        (with("CO2", 4.0), 2000.0, Scheme::Ntc, ZDefinition::Jeans),
        (with("CO2", 4.0), 700.0, Scheme::Pairing, ZDefinition::Particle),
        (with("CH4", 5.0), 1500.0, Scheme::Ntc, ZDefinition::Jeans),
        (with("NH3", 4.0), 1500.0, Scheme::Majorant, ZDefinition::Particle),
    ];
    for (species, hot_at, scheme, definition) in cases {
        let name = species.name.clone();
        let mut config = hot(species, hot_at);
        (config.collisions.scheme, config.collisions.z_definition) = (scheme, definition);
        let mut gas = flow(&config, 1);
        let kind = gas.model.species[0].clone();
        let begin = gas.stages.particles().unwrap();
        for m in 0..kind.vibration.modes().len() {
            let (sum, count) = deviations(&populations(&begin, &kind.vibration, m), &kind.vibration, m, 0.5 * hot_at);
            assert!(sum < count + 5.0 * (2.0 * count).sqrt(), "{name}, mode {m} at the start: {sum} of {count}");
        }
        let before = gas.totals().unwrap();
        // Fifty collisions each; the slowest mode needs some six for each factor of e.
        run(&mut gas, 100);
        let n = before.particles as f64;
        let energy = (before.translation + before.internal) / (gas.model.weight * n * K);
        let t = equilibrium(&kind.vibration, kind.rotation, energy);
        let (looks, mut means) = (8, Vec::new());
        let mut levels = vec![[0.0; 256]; kind.vibration.modes().len()];
        for _ in 0..looks {
            run(&mut gas, 16);
            let found = temperatures(&mut gas);
            let p = gas.stages.particles().unwrap();
            for (m, sum) in levels.iter_mut().enumerate() {
                sum.iter_mut().zip(populations(&p, &kind.vibration, m)).for_each(|(sum, n)| *sum += n);
            }
            means.resize(found.len(), 0.0);
            means.iter_mut().zip(found).for_each(|(mean, t)| *mean += t / f64::from(looks));
        }
        let after = gas.totals().unwrap();
        let (before, end) = (before.translation + before.internal, after.translation + after.internal);
        assert!((end / before - 1.0).abs() < 1e-5, "{name}: energy {before} {end}");
        for (i, found) in means.iter().enumerate() {
            // Of 6400 molecules a look knows translation and rotation to sqrt(2/(f N)), 1 %, a mode to sqrt(k/(c N)) by its heat
            // capacity c: 12 % and less of the stiffest here at the lowest temperature; eight looks, as good as four independent ones.
            let capacity = match i {
                0 => 1.5,
                1 => 0.5 * f64::from(kind.rotation),
                m => {
                    let mode = kind.vibration.modes()[m - 2];
                    let x = mode.theta / t;
                    f64::from(mode.degeneracy) * (x / (2.0 * (0.5 * x).sinh())).powi(2)
                }
            };
            near(
                &format!("{name} {scheme:?} {definition:?}: temperature {i} of {means:.1?}"),
                *found,
                t,
                0.003,
                (capacity * n * 4.0).sqrt().recip(),
            );
        }
        for (m, found) in levels.iter().enumerate() {
            let (sum, count) = deviations(found, &kind.vibration, m, t);
            println!("{name}, mode {m} at {t} K: {sum} of {count}");
            // Of independent looks the sum has a mean of `count` and a deviation of sqrt(2 count). Eight collisions leave a mode that exchanges
            // in every fourth about 0.15 of what it was, by which sums grow by (1 + 0.15)/(1 - 0.15).
            assert!(sum < 1.35 * (count + 5.0 * (2.0 * count).sqrt()), "{name}, mode {m} at {t} K: {sum} of {count}");
        }
    }
}

/// A mixture in which the word of levels means something else for each species: averages of all together, of each, and of each
/// mode.
#[test]
fn averages_of_a_mixture_have_one_temperature() {
    let mut config = hot(SpeciesConfig { z_vibration: Some(5.0), fraction: 0.5, ..SpeciesConfig::named("CO2") }, 2000.0);
    config.species.push(SpeciesConfig { z_vibration: Some(5.0), fraction: 0.3, ..SpeciesConfig::named("N2") });
    config.species.push(SpeciesConfig { fraction: 0.2, ..SpeciesConfig::named("Ar") });
    (config.grid.cells, config.grid.size) = (vec![6, 6], vec![6e-5; 2]);
    config.particles_per_cell = Some(350.0);
    (config.initial.temperature, config.initial.internal_temperature) = (Some(Value::Number(2000.0)), None);
    config.steps = 250;
    config.sampling.start = Some(50);
    let mut gas = flow(&config, 1);
    run(&mut gas, config.steps);
    let (values, width) = (gas.all_values(), width(&gas.model));
    assert_eq!((modes(&gas.model).count(), width), (3, first_mode(&gas.model) + 3));
    let mean = |q: usize| values.chunks_exact(width).map(|v| v[q]).sum::<f64>() / 36.0;
    // All of the mixture, then by species translation and vibration of CO2 and N2, then the modes of CO2. Equilibrium stays as it is; the
    // temperature of 12600 molecules is set at the start, to 0.6 %, and N2's stiff vibration is known by its few levels to 1 %.
    const ONE: usize = zellige_dsmc::sampling::OF_SPECIES.len();
    let (species, modes) = (zellige_dsmc::sampling::VALUES, first_mode(&gas.model));
    for q in [4, 5, 6, 7, species + 5, species + 7, species + ONE + 5, modes, modes + 1, modes + 2] {
        close(&format!("value {q}"), mean(q), 2000.0, 0.02, 0.0);
    }
    close("vibration of nitrogen", mean(species + ONE + 7), 2000.0, 0.04, 0.0);
    assert!(mean(species + 2 * ONE + 7) == 0.0, "argon does not vibrate");
    // The gas as a whole from its particles: what averages have of internal energy is what there is.
    let t = gas.totals().unwrap();
    let all: f64 =
        gas.model.species.iter().zip(&gas.model.fractions).map(|(s, f)| f * (f64::from(s.rotation) + s.vibration.freedom(2000.0))).sum();
    close("internal energy", t.internal / (gas.model.weight * t.particles as f64), 0.5 * all * K * 2000.0, 0.02, 0.0);
}

/// Modes by the input, by SPARTA's files, and what is refused.
#[test]
fn modes_come_from_the_input_or_from_files() {
    let mode = |theta, degeneracy, z| ModeConfig { theta, degeneracy, z };
    let mut config = Config::new(vec![1], vec![1.0], "CO2", 1e20, 300.0);
    config.collisions.vibration = true;
    let vibration = |config: &Config, folder: &Path| {
        assert_eq!(config.check(), []);
        let model = zellige_dsmc::model::Model::new(config, folder, 1).map_err(|e| e.to_string())?;
        Ok::<_, String>(model.species[0].vibration.modes().iter().map(|m| (m.theta.round(), m.degeneracy, m.z)).collect::<Vec<_>>())
    };
    let here = Path::new("");
    assert!(vibration(&config, here).unwrap_err().contains("`dsmc.species[0].z_vibration`"));
    config.collisions.millikan_white = true;
    let open = f64::INFINITY;
    assert_eq!(vibration(&config, here).unwrap(), [(960.0, 2, open), (1918.0, 1, open), (3380.0, 1, open)]);
    config.collisions.millikan_white = false;
    config.species[0].z_vibration = Some(30.0);
    config.species[0].vibration = Some(VibrationConfig::Modes(vec![mode(900.0, 2, Some(10.0)), mode(3000.0, 1, None)]));
    assert_eq!(vibration(&config, here).unwrap(), [(900.0, 2, 10.0), (3000.0, 1, 30.0)]);
    config.species[0].vibration = Some(VibrationConfig::Single(1000.0));
    assert_eq!(vibration(&config, here).unwrap(), [(1000.0, 1, 30.0)]);
    for (modes, text) in [
        (vec![mode(900.0, 5, None), mode(3000.0, 1, None)], "`5` is out of range"),
        (vec![mode(90.0, 1, None), mode(3000.0, 1, None)], "the value is 9e1"),
        ((1..6).map(|k| mode(500.0 * f64::from(k), 1, None)).collect(), "at most 4"),
    ] {
        config.species[0].vibration = Some(VibrationConfig::Modes(modes));
        let faults = config.check();
        assert!(faults.iter().any(|f| f.path.starts_with("species[0].vibration") && f.message.contains(text)), "{faults:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("a.species", "CO2 44.01 7.31E-26 2 0.125 8 1.9e-5 959.66 1.0 0.0\n");
    write("a.vss", "CO2 5.54e-10 0.93 273.15 1.61\n");
    write("a.vib", "CO2 4 959.66 1.9e-5 1 959.66 1.9e-5 1 1918.7 1e-4 1 3382.1 1e-3 1\n");
    write("b.vib", "CO2 2 959.66 1.9e-5 1 1918.7 1e-4 1\n");
    config.species[0] = SpeciesConfig::named("CO2");
    (config.species_file, config.vss_file) = (Some("a.species".into()), Some("a.vss".into()));
    assert!(vibration(&config, folder.path()).unwrap_err().contains("4 modes of vibration"));
    config.vibration_file = Some("a.vib".into());
    assert_eq!(vibration(&config, folder.path()).unwrap(), [(960.0, 2, 1.0 / 1.9e-5), (1919.0, 1, 1.0 / 1e-4), (3382.0, 1, 1.0 / 1e-3)]);
    config.vibration_file = Some("b.vib".into());
    assert!(vibration(&config, folder.path()).unwrap_err().contains("4 modes in the species file and 2"));
    config.vibration_file = Some("c.vib".into());
    let said = vibration(&config, folder.path()).unwrap_err();
    assert!(said.contains("`dsmc.vibration_file`: cannot read") && said.contains("folder of the input file"), "{said}");
}

/// Oscillators alone or three alike relax with the collision number of Jeans' equation: near equilibrium
/// `d ln(T - Tv)/d(collisions per particle) = -(1 + C/(3/2))/Z`, `C` their heat capacity.
#[test]
fn oscillators_relax_at_the_rate_asked_for_whatever_their_degeneracy() {
    for degeneracy in [1, 3] {
        let mut config = argon(50, 100.0);
        let mode = ModeConfig { theta: 1500.0, degeneracy, z: Some(10.0) };
        config.species = vec![SpeciesConfig { vibration: Some(VibrationConfig::Modes(vec![mode])), ..SpeciesConfig::named("N2") }];
        (config.collisions.vibration, config.collisions.rotation) = (true, false);
        config.initial.temperature = Some(Value::Number(3300.0));
        config.initial.internal_temperature = Some(2700.0);
        config.dt = 2.5e-9;
        let mut gas = flow(&config, 1);
        let (kind, n) = (gas.model.species[0].clone(), gas.totals().unwrap().particles as f64);
        let difference = |gas: &mut Flow| {
            let (t, _, level) = crate::common::temperatures(gas);
            let t = t.iter().sum::<f64>() / 3.0;
            (t - kind.vibration.mode_temperature(0, level), t)
        };
        let (first, _) = difference(&mut gas);
        run(&mut gas, 20);
        let (last, t) = difference(&mut gas);
        let found = (last / first).ln() / (2.0 * gas.ledger().unwrap().collisions as f64 / n);
        let expected = -(1.0 + kind.vibration.modes()[0].capacity(t) / 1.5) / 10.0;
        let sigma = t * (5.0 / 3.0 / n).sqrt() / last / (last / first).ln().abs();
        // Fast collisions are more frequent, and freedoms are those of the pool, not of the temperature: 13 % for three alike.
        close(&format!("degeneracy {degeneracy}"), found, expected, 0.15, sigma);
    }
}
