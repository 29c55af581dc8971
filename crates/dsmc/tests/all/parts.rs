//! Runs in several parts: the same particles, averages, rows and checkpoints, bit for bit.

use std::path::Path;

use zellige_dsmc::config::SpeciesConfig;
use zellige_dsmc::config::sides::{SideConfig, SideWord};
use zellige_dsmc::model::{Partner, Scheme};
use zellige_dsmc::{Config, Dsmc};
use zellige_engine::config::Source;
use zellige_engine::testing::parts::same_in_parts;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/dsmc");

/// An example, shortened.
fn example(name: &str) -> Config {
    let mut config = Source::read(Path::new(EXAMPLES).join(name)).unwrap().typed::<Dsmc>().unwrap().config;
    config.steps = 24;
    config.particles_per_cell = Some(4.0);
    (config.sampling.batches, config.sampling.audit) = (3, Some(5));
    config.sampling.start = Some(6);
    config
}

fn same(name: &str, config: &Config) {
    assert_eq!(config.check(), []);
    same_in_parts::<Dsmc>(name, config, Path::new(EXAMPLES), &[2, 3, 4, 8], 13);
}

#[test]
fn flows_past_bodies() {
    same("cylinder", &example("cylinder.toml"));
    same("jet", &example("jet.toml"));
}

#[test]
fn closed_flows_between_walls() {
    same("cavity", &example("cavity.toml"));
    same("couette", &example("couette.toml"));
}

/// Internal modes, a mixture, partners that remember each other, weights of cells, and averages that begin anew.
#[test]
fn molecules_with_all_that_they_carry() {
    let mut config = Config::new(vec![40, 24], vec![4e-3, 2.4e-3], "N2", 1e22, 900.0);
    (config.dt, config.steps, config.particles_per_cell) = (4e-8, 24, Some(12.0));
    config.species.push(SpeciesConfig::named("He"));
    config.species[0].fraction = 0.7;
    config.species[0].z_vibration = Some(20.0);
    config.collisions.vibration = true;
    config.collisions.partner = Partner::NearestNeighbour;
    config.sampling.window = Some(8);
    (config.sampling.start, config.sampling.batches) = (Some(0), 2);
    same("mixture", &config);
    let mut heavy = example("nozzle.toml");
    heavy.particles_per_cell = Some(10.0);
    heavy.cell_weights = Some("if(x > 0, 0.5, 1) * (1 + floor(y / 0.004))".into());
    same("nozzle", &heavy);
}

/// A gas without collisions whose steps are as long as several parts are wide, across periodic sides and between mirrors.
#[test]
fn molecules_that_fly_past_their_neighbours() {
    let mut config = Config::new(vec![96, 80], vec![9.6e-2, 8e-2], "Ar", 1e17, 300.0);
    (config.dt, config.steps, config.particles_per_cell) = (2e-4, 16, Some(4.0));
    config.collisions.scheme = Scheme::None;
    config.gas.velocity = [150.0, 40.0, 0.0];
    config.boundary.y = Some(SideConfig::Word(SideWord::Specular));
    (config.sampling.start, config.sampling.batches) = (Some(0), 4);
    assert_eq!(config.check(), []);
    // About 50 of 96 cells are flown in a step, and parts are 16 to 32 cells wide.
    same_in_parts::<Dsmc>("far", &config, Path::new(EXAMPLES), &[2, 4, 11, 16], 7);
}

/// A search for the steady state is the first part's, and its end that of all.
#[test]
fn averages_that_begin_by_themselves() {
    let mut config = example("couette.toml");
    (config.steps, config.sampling.start, config.sampling.batches) = (600, Some(u64::MAX), 4);
    config.particles_per_cell = Some(30.0);
    same_in_parts::<Dsmc>("steady", &config, Path::new(EXAMPLES), &[2, 3], 90);
}
