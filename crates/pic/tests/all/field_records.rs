//! Records of fields, which come from where they lie some rows at a time: what stands between the guards.

use std::time::Duration;

use serde_json::json;
use zellige_engine::device::Cpu;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Record, Values};
use zellige_engine::sim::Solver;
use zellige_engine::testing;
use zellige_pic::grid::{FieldSide, ParticleSide};
use zellige_pic::stages::cuda::new_with;
use zellige_pic::stages::{Component, Setup, Stages, cpu};
use zellige_pic::step::step;

use crate::common::{electrons, setup, thermal, walls};
use crate::physics::start;

/// Cells of the box out of a component over all corners.
fn picked(setup: &Setup, values: &[f64], scale: f64) -> Vec<f32> {
    (0..setup.grid.cells[1]).flat_map(|j| values[setup.grid.row(j as isize)].iter().map(|v| (v * scale) as f32)).collect()
}

/// Records hold the values between the guards of a component, and of the charge of all species.
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
fn records_of_fields_are_those_of_the_cpu() {
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

/// Fields and their components, in the order in which they come.
fn meshes(records: &[Record]) -> Vec<String> {
    let mesh = |record: &Record| match record {
        Record::Mesh(mesh) => Some(format!("{} {}", mesh.name, mesh.components.iter().map(|c| c.name.as_str()).collect::<String>())),
        _ => None,
    };
    records.iter().filter_map(mesh).collect()
}

/// Components of one field in two lists of their own schedules: a file that has the name of both has all of them.
#[test]
fn components_of_one_field_in_several_lists_are_written_together() {
    let mut pic = start(
        json!({ "dt": 0.05, "steps": 4, "grid": { "cells": [16, 8], "size": [1.6, 0.8] },
            "species": [{ "name": "e", "particles_per_cell": 4 }],
            "diagnostics": { "phase_space": [], "fields": [
                { "what": ["ex", "charge"], "every": 1 }, { "what": ["ey", "ex", "bz"], "every": 2 }, { "what": ["charge", "ez"] }] } }),
        1,
    );
    // At the start all schedules are due.
    assert_eq!(meshes(&pic.due(Duration::ZERO).unwrap()), ["E xy", "B z", "rho "]);
    for step in 1..=4 {
        pic.step(&mut Profiler::off()).unwrap();
        let expected = if step % 2 == 0 { vec!["E xy", "B z", "rho "] } else { vec!["E x", "rho "] };
        assert_eq!(meshes(&pic.due(Duration::ZERO).unwrap()), expected, "step {step}");
    }
    assert_eq!(meshes(&pic.records().unwrap()), ["E xyz", "B z", "rho "]);
}
