//! What a GPU tells without being waited for, and what comes from it in pieces: as the processor tells it.

use serde_json::json;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Row, Values};
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing;
use zellige_pic::Pic;
use zellige_pic::grid::{FieldSide, ParticleSide};
use zellige_pic::stages::cuda::new_with;
use zellige_pic::stages::{Component, Setup, Stages, cpu};
use zellige_pic::step::step;

use crate::common::{electrons, setup, thermal, walls};
use crate::physics::config;

/// Cells of the box out of a component over all corners.
fn picked(setup: &Setup, values: &[f64], scale: f64) -> Vec<f32> {
    (0..setup.grid.cells[1]).flat_map(|j| values[setup.grid.row(j as isize)].iter().map(|v| (v * scale) as f32)).collect()
}

/// What a record holds is what stands between the guards of a component, and of the charge of all species.
fn records_of_fields_are_what_stands_there(setup: &Setup, mut stages: Box<dyn Stages>) {
    for k in 0..setup.species.len() {
        stages.inject(k, &thermal(setup.grid.cells, 4, 0.1, 3 + k as u64)).unwrap();
    }
    for k in 0..3 {
        step(stages.as_mut(), &setup.species, &[], k, false, &mut Profiler::off()).unwrap();
    }
    for component in Component::ALL {
        let expected = picked(setup, &stages.component(component).unwrap(), 1.7);
        // Nothing changes across a line, and so not what stands along it.
        let still = setup.grid.dimensions == 1 && component == Component::Bx;
        assert!(still || expected.iter().any(|v| *v != 0.0), "{component:?}");
        assert!(stages.cells(component, 1.7).unwrap() == Values::F32(expected), "{component:?}");
    }
    let mut rho = vec![0.0; setup.grid.len()];
    for k in 0..setup.species.len() {
        rho.iter_mut().zip(stages.charge(k, false).unwrap()).for_each(|(sum, r)| *sum += r);
    }
    let all: Vec<usize> = (0..setup.species.len()).collect();
    let Values::F32(found) = stages.charge_cells(&all, 1.7).unwrap() else { panic!("single precision") };
    let expected = picked(setup, &rho, 1.7);
    // Folded sums may be rounded in another order.
    assert!(found.len() == expected.len() && found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= f32::EPSILON * b.abs().max(1.0)));
}

fn several() -> Vec<Setup> {
    let mut all = Vec::new();
    for cells in [[70, 37], [300, 1]] {
        for closed in [false, true] {
            let mut given = setup(cells);
            given.species = vec![electrons(4), electrons(4)];
            given.expected = vec![4 * cells[0] * cells[1]; 2];
            if closed {
                walls(&mut given, 0, FieldSide::Pec, ParticleSide::Reflect);
            }
            all.push(given);
        }
    }
    all
}

#[test]
fn records_of_fields_are_what_stands_there_on_the_processor() {
    for given in several() {
        let stages = cpu::new(&given, &Cpu::new(2).unwrap()).unwrap();
        records_of_fields_are_what_stands_there(&given, stages);
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn records_of_fields_are_what_stands_there_on_a_gpu() {
    let Some(cuda) = testing::gpu() else { return };
    for given in several() {
        records_of_fields_are_what_stands_there(&given, new_with(&given, &cuda, |kind| kind).unwrap());
    }
}

/// Measurements that were asked for are those that others wait for, each of its own step, though the next one is under way.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn answers_are_those_of_their_steps() {
    let Some(cuda) = testing::gpu() else { return };
    let mut given = setup([64, 40]);
    (given.species, given.expected) = (vec![electrons(4)], vec![4 * 64 * 40]);
    let [mut asks, mut waits] = [0, 1].map(|_| {
        let mut stages = new_with(&given, &cuda, |kind| kind).unwrap();
        stages.inject(0, &thermal([64, 40], 4, 0.1, 3)).unwrap();
        stages
    });
    let mut found = Vec::new();
    for k in 0..6 {
        step(asks.as_mut(), &given.species, &[], k, true, &mut Profiler::off()).unwrap();
        assert!(asks.ask().unwrap());
        if k > 0 {
            found.push(asks.answer().unwrap());
        }
        step(asks.as_mut(), &given.species, &[], 100 + k, false, &mut Profiler::off()).unwrap();
    }
    found.push(asks.answer().unwrap());
    for (k, found) in found.iter().enumerate() {
        step(waits.as_mut(), &given.species, &[], k as u64, true, &mut Profiler::off()).unwrap();
        let there = waits.energies().unwrap();
        // Sums in double precision, of particles in an order that may differ.
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-10 * a.abs().max(1e-3);
        assert!(near(found.kinetic[0], there.kinetic[0]) && found.count == there.count, "{k}: {found:?} {there:?}");
        assert!((0..3).all(|c| near(found.electric[c], there.electric[c]) && near(found.magnetic[c], there.magnetic[c])), "{k}");
        step(waits.as_mut(), &given.species, &[], 100 + k as u64, false, &mut Profiler::off()).unwrap();
    }
    assert!(found.windows(2).all(|w| w[0].kinetic != w[1].kinetic));
}

fn rows(device: Device) -> (Vec<Row>, Vec<f64>, Vec<f64>) {
    let text = json!({
        "dt": 0.05, "steps": 41, "grid": { "cells": [64], "size": [6.4] },
        "species": [{ "name": "electrons", "particles_per_cell": 16, "momentum": { "thermal": 0.05, "drift": ["1e-2*sin(2*pi*x/lx)", 0, 0] } }],
        "diagnostics": { "energies_every": 3 },
    });
    let environment = Environment { device, folder: ".".into(), seed: 5 };
    let mut pic = Pic::setup(&config(text), &environment).unwrap();
    let mut rows = Vec::new();
    while pic.outcome().is_none() {
        pic.step(&mut Profiler::off()).unwrap();
        rows.push(pic.row().unwrap());
    }
    let series = &pic.diagnostics().series;
    (rows, series.column("time").to_vec(), series.column("kinetic").to_vec())
}

/// Rows of a small plasma on a GPU show the measurement before the last one, those of the processor the last one; in the end both have all.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn rows_of_small_plasmas_are_one_measurement_behind() {
    let Some(cuda) = testing::gpu() else { return };
    let (here, there) = (rows(Device::Cpu(Cpu::new(1).unwrap())), rows(Device::Cuda(cuda)));
    assert_eq!(here.1, there.1);
    assert!(here.1.len() == 15 && here.2.iter().zip(&there.2).all(|(a, b)| (a - b).abs() < 1e-5 * a));
    let at = |rows: &[Row], k: usize| rows[k].0[0].value;
    for k in 0..40_usize {
        // Measured in steps 0, 3, 6 and so on, and in the last one.
        let behind = k.saturating_sub(3);
        assert_eq!(at(&there.0, k), at(&here.0, behind), "after step {k}");
    }
    assert_eq!(at(&there.0, 40), at(&here.0, 40));
}
