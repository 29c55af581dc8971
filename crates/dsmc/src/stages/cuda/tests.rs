//! Every kernel through the compiler, for the kinds of runs that differ most.

use std::path::Path;

use serde_json::json;
use zellige_engine::cuda::Properties;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::links::Links;
use zellige_engine::profile::Profiler;
use zellige_engine::sim::{Environment, Solver};

use super::program::{KernelConfig, copies, recipes};
use super::{new_with, tiling};
use crate::model::{Model, Scheme};
use crate::particles::Particles;
use crate::setup::Initial;
use crate::stages::SURFACE_SUMS;

const PLAIN: KernelConfig = KernelConfig {
    species: 1,
    components: 3,
    shift: [4, 3],
    capacity: 1536,
    threads: 256,
    resident: 4,
    lanes: 2,
    rotates: false,
    modes: 0,
    scheme: Scheme::Ntc,
    tagged: false,
    nearest: false,
    bodies: [false; 2],
    weighted: false,
    follows: false,
    along_z: false,
    brief: true,
    crowded: false,
    recorded: true,
    mirrors: false,
    values: [15, 15],
    layers: 1,
    parts: false,
};

/// A pack serves a run on all GPUs of a host as well.
#[test]
fn programs_are_those_of_one_part_and_of_several() {
    let table = json!({ "dt": 1e-6, "steps": 2, "particles_per_cell": 4, "species": [{ "name": "Ar" }],
        "grid": { "cells": [16, 16], "size": [1.0, 1.0] }, "gas": { "density": 1e20, "temperature": 300.0 } });
    let environment = Environment::new(Device::Cpu(Cpu::new(1).unwrap()), ".", 1);
    let config = serde_json::from_value(table).unwrap();
    let programs = crate::Dsmc::programs(&config, &environment, &Properties::usual("sm_90").unwrap()).unwrap();
    let of = |value: &str| programs.iter().filter(|p| p.defines.contains(&("PARTS".to_owned(), value.to_owned()))).count();
    // One that copies for Python is of one part, and one of any run.
    assert_eq!([of("0"), of("1"), programs.len()], [4, 3, 8]);
}

#[test]
fn kernels_compile() {
    let everything = KernelConfig {
        scheme: Scheme::Majorant,
        rotates: true,
        modes: 1,
        species: 3,
        bodies: [true; 2],
        follows: true,
        tagged: true,
        nearest: true,
        weighted: true,
        along_z: true,
        crowded: true,
        recorded: false,
        ..PLAIN
    };
    let pairing = KernelConfig {
        scheme: Scheme::Pairing,
        rotates: true,
        modes: 4,
        species: 2,
        bodies: [true, false],
        shift: [2, 0],
        lanes: 32,
        brief: false,
        ..PLAIN
    };
    let small = KernelConfig { shift: [2, 1], capacity: 512, threads: 64, resident: 16, lanes: 8, ..PLAIN };
    let full = KernelConfig { shift: [0; 2], lanes: 32, layers: 3, recorded: false, mirrors: true, ..PLAIN };
    let in_parts = KernelConfig { parts: true, ..everything };
    let plane = KernelConfig { components: 2, follows: true, ..PLAIN };
    for config in [everything, in_parts, pairing, plane, small, KernelConfig { weighted: true, ..small }, full] {
        recipes(&config).iter().for_each(zellige_engine::testing::compiles);
        zellige_engine::testing::compiles(&copies(&config));
    }
    // Parts of a run.
    let part = KernelConfig { parts: true, recorded: false, ..PLAIN };
    let molecules = KernelConfig { tagged: true, rotates: true, modes: 2, bodies: [true; 2], follows: true, species: 2, ..part };
    let full = KernelConfig { parts: true, ..full };
    for config in [part, molecules, KernelConfig { weighted: true, ..part }, full] {
        recipes(&config).iter().for_each(zellige_engine::testing::compiles);
    }
    // Flights do not depend on how pairs are chosen.
    for config in [
        KernelConfig { scheme: Scheme::None, lanes: 1, ..PLAIN },
        KernelConfig { tagged: true, nearest: true, lanes: 1, along_z: true, ..PLAIN },
        PLAIN,
    ] {
        zellige_engine::testing::compiles(&recipes(&config)[0]);
    }
}

/// Several warps to a cell, one warp, and several where nothing fits into shared memory.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn teams_give_the_bits_of_warps() {
    let Some(cuda) = zellige_engine::testing::gpu() else { return };
    let mut config = crate::bench::config("dsmc/dense-cells").unwrap();
    (config.grid.cells, config.grid.size, config.particles_per_cell) = (vec![6, 5], vec![6e-5, 5e-5], Some(300.0));
    let model = Model::new(&config, Path::new(""), 1).unwrap();
    let teams = tiling::kernel_config(&model, cuda.properties());
    assert!(teams.cells() == 1 && teams.threads > 32 && teams.lanes == 32);
    let (initial, mut particles) = (Initial::new(&config).unwrap(), Particles::default());
    crate::start::loading::fill(&model, &|position| initial.at(position), None, |part| {
        particles.append(part);
        Ok(())
    })
    .unwrap();
    let runs = [teams, KernelConfig { threads: 32, ..teams }, KernelConfig { capacity: 64, ..teams }].map(|kernels| {
        let mut gas = new_with(&model, &cuda, kernels, &Links::default()).unwrap();
        gas.insert(&particles).unwrap();
        (0..100).for_each(|step| gas.advance(step, step >= 50, &mut Profiler::off()).unwrap());
        let mut cells = vec![0.0; model.grid.len() * model.collisions.sums()];
        gas.take_samples(&mut cells, &mut [0.0; 4 * SURFACE_SUMS]).unwrap();
        (gas.ledger().unwrap(), gas.particles().unwrap(), cells)
    });
    assert!(runs[0] == runs[1], "{:?}, {:?}", runs[0].0, runs[1].0);
    assert!(runs[0] == runs[2], "{:?}, {:?}", runs[0].0, runs[2].0);
    assert!(runs[0].0.collisions > 10_000);
}

/// With a body, open sides, samples from some step on, and more injected particles than there is room for at first; and once
/// with tiles of which most do not fit into shared memory, more than are begun first.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn recorded_steps_give_the_bits_of_single_launches() {
    let Some(cuda) = zellige_engine::testing::gpu() else { return };
    let mut config = crate::bench::config("dsmc/cylinder-50m").unwrap();
    (config.grid.cells, config.dt) = (vec![80, 60], 2e-6);
    let model = Model::new(&config, Path::new(""), 1).unwrap();
    let kernels = tiling::kernel_config(&model, cuda.properties());
    assert!(kernels.recorded);
    let (initial, mut particles) = (Initial::new(&config).unwrap(), Particles::default());
    crate::start::loading::fill(&model, &|position| initial.at(position), None, |part| {
        particles.append(part);
        Ok(())
    })
    .unwrap();
    let least = KernelConfig { capacity: 64, ..kernels };
    let runs = [(kernels, true), (kernels, false), (least, false)].map(|(kernels, recorded)| {
        let mut gas = new_with(&model, &cuda, KernelConfig { recorded, ..kernels }, &Links::default()).unwrap();
        if recorded {
            gas.insert(&particles).unwrap();
        } else {
            // Tile by tile, as a run is loaded: the same particles in the same slots.
            let cells = gas.order().unwrap();
            gas.insert(&crate::start::loading::fill_cells(&model, &|position| initial.at(position), cells.len(), |k| cells[k] as usize))
                .unwrap();
        }
        (0..300).for_each(|step| gas.advance(step, step >= 70, &mut Profiler::off()).unwrap());
        let mut cells = vec![0.0; model.grid.len() * model.collisions.sums()];
        let mut surfaces = vec![0.0; (4 + model.geometry.segments().len()) * SURFACE_SUMS];
        gas.take_samples(&mut cells, &mut surfaces).unwrap();
        (gas.ledger().unwrap(), gas.particles().unwrap(), cells, surfaces)
    });
    assert!(runs[0] == runs[1], "{:?}, {:?}", runs[0].0, runs[1].0);
    assert!(runs[0] == runs[2], "{:?}, {:?}", runs[0].0, runs[2].0);
    assert!(runs[0].0.collisions > 0 && runs[0].3.iter().any(|v| *v != 0.0));
}
