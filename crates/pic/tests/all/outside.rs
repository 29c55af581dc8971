//! Fields and particles that are set from outside between steps: to what they were, which changes nothing, on both devices.

use serde_json::{Value, json};
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Entries, GivenValues, Record, Table, Values};
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing;
use zellige_pic::Pic;

use crate::physics::config;

const STEPS: u64 = 24;

fn table(cells: &[usize], change: &dyn Fn(&mut Value)) -> Value {
    let size: Vec<f64> = cells.iter().map(|n| 0.1 * *n as f64).collect();
    let species = |name: &str, charge: f64| {
        json!({ "name": name, "charge": charge, "particles_per_cell": 3, "positions": "random",
            "momentum": { "drift": [0.05, 0.1, -0.2 * charge], "thermal": 0.1 } })
    };
    let mut table = json!({ "dt": 0.05, "steps": 1000, "grid": { "cells": cells, "size": size },
        "species": [species("a", -1.0), species("b", 1.0)],
        "diagnostics": { "fields": [{ "what": ["ex", "ey", "ez", "bx", "by", "bz"] }], "phase_space": [] } });
    change(&mut table);
    table
}

/// Boxes, walls, shapes, precisions and weights; a window that moves.
fn cases() -> Vec<(&'static str, Value)> {
    let walls = |t: &mut Value| t["boundary"] = json!({ "all": { "fields": "pec", "particles": "reflect" } });
    let absorbing = |t: &mut Value| t["boundary"] = json!({ "x": { "fields": "absorbing", "particles": "absorb" } });
    let weights = |t: &mut Value| t["species"][0]["density"] = json!("1 + 0.5*sin(2*pi*x/lx)");
    vec![
        ("periodic", table(&[48, 40], &|_| ())),
        ("line", table(&[64], &|_| ())),
        ("conductors", table(&[48, 40], &walls)),
        ("absorbing", table(&[48, 40], &absorbing)),
        ("double precision", table(&[48, 40], &|t| t["precision"] = json!("f64"))),
        ("quadratic", table(&[48, 40], &|t| t["order"] = json!(2))),
        ("weights", table(&[48, 40], &weights)),
    ]
}

fn doubles(values: &Values) -> Vec<f64> {
    match values {
        Values::F32(values) => values.iter().map(|v| f64::from(*v)).collect(),
        Values::F64(values) => values.clone(),
    }
}

fn columns(table: &Table) -> Vec<(String, Vec<f64>)> {
    let values = |entries: &Entries| match entries {
        Entries::Each(values) => doubles(values),
        Entries::Whole(values) => values.iter().map(|v| *v as f64).collect(),
        Entries::Same(value) => vec![*value; table.len],
    };
    table.columns.iter().map(|column| (column.name(), values(&column.values))).collect()
}

/// Particles in an order of their own: that within a cell is free on a GPU.
fn lines(columns: &[(String, Vec<f64>)]) -> Vec<Vec<u64>> {
    let mut lines: Vec<Vec<u64>> =
        (0..columns[0].1.len()).map(|k| columns.iter().map(|(_, values)| values[k].to_bits()).collect()).collect();
    lines.sort_unstable();
    lines
}

/// Components of E and B by their names, with their shapes.
type Fields = Vec<(String, Vec<usize>, Vec<f64>)>;

fn fields(pic: &mut Pic) -> Fields {
    let mut out = Vec::new();
    for record in pic.records().unwrap() {
        let Record::Mesh(mesh) = record else { continue };
        for i in 0..mesh.components.len() {
            let field = mesh.field(i);
            if field.name.starts_with("E_") || field.name.starts_with("B_") {
                out.push((field.name.clone(), field.shape(), doubles(&field.values)));
            }
        }
    }
    out
}

fn steps(pic: &mut Pic, n: u64) {
    for _ in 0..n {
        pic.step(&mut Profiler::off()).unwrap();
    }
}

/// Sets all to what it was halfway.
fn set_to_itself(pic: &mut Pic) {
    for (name, shape, values) in fields(pic) {
        pic.set_field(&name, &shape, GivenValues::Real(&values)).unwrap();
    }
    for species in ["a", "b"] {
        let table = pic.particles(species).unwrap().unwrap();
        pic.set_particles(species, &columns(&table)).unwrap();
    }
}

fn unchanged(device: &Device) {
    let mut differences = Vec::new();
    for (name, table) in cases() {
        let config = config(table);
        let run = |touch: bool| {
            let mut pic = Pic::setup(&config, &Environment::new(device.clone(), ".", 1)).unwrap();
            steps(&mut pic, STEPS / 2);
            if touch {
                set_to_itself(&mut pic);
            }
            steps(&mut pic, STEPS / 2);
            let particles: Vec<_> = ["a", "b"].into_iter().map(|s| lines(&columns(&pic.particles(s).unwrap().unwrap()))).collect();
            let failed: Vec<_> = pic.checks().unwrap().into_iter().filter(|check| !check.ok).collect();
            (fields(&mut pic), particles, failed)
        };
        let (expected, found) = (run(false), run(true));
        assert!(expected.0.iter().any(|(_, _, values)| values.iter().any(|v| *v != 0.0)), "{name}: no fields");
        if expected.0 != found.0 || expected.1 != found.1 {
            differences.push(format!("{name}: fields {}, particles {}", expected.0 == found.0, expected.1 == found.1));
        }
        assert_eq!((expected.2, found.2), (Vec::new(), Vec::new()), "{name}: checks");
    }
    assert!(differences.is_empty(), "{differences:#?}");
}

#[test]
fn what_is_set_to_what_it_was_changes_nothing() {
    unchanged(&Device::Cpu(Cpu::new(2).unwrap()));
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn what_is_set_to_what_it_was_changes_nothing_on_a_gpu() {
    let Some(cuda) = testing::gpu() else { return };
    unchanged(&Device::Cuda(cuda));
}

/// Particles taken away and put in are no loss, and a field that is set is there, guards included: on a GPU as on the CPU.
fn changed(device: &Device) -> (Fields, usize) {
    let config = config(table(&[48, 40], &|_| ()));
    let mut pic = Pic::setup(&config, &Environment::new(device.clone(), ".", 1)).unwrap();
    steps(&mut pic, 4);
    let table = pic.particles("a").unwrap().unwrap();
    // Those of the left half.
    let all = columns(&table);
    let kept: Vec<usize> = (0..table.len).filter(|k| all[0].1[*k] < 2.4).collect();
    let few: Vec<_> = all.iter().map(|(name, values)| (name.clone(), kept.iter().map(|k| values[*k]).collect())).collect();
    assert!(kept.len() > table.len / 3 && kept.len() < 2 * table.len / 3);
    pic.set_particles("a", &few).unwrap();
    let values: Vec<f64> = (0..48 * 40).map(|k| (k % 48) as f64 / 48.0).collect();
    pic.set_field("B_z", &[40, 48], GivenValues::Real(&values)).unwrap();
    let there = fields(&mut pic).into_iter().find(|(name, ..)| name == "B_z").unwrap();
    assert_eq!(there.2, values.iter().map(|v| f64::from(*v as f32)).collect::<Vec<_>>());
    // Continuity is that from here on, though charge without a field was taken away.
    pic.plasma().check_charge().unwrap();
    steps(&mut pic, 8);
    pic.plasma().check_charge().unwrap();
    assert!(pic.checks().unwrap().iter().any(|check| check.name.contains("continuity")));
    assert!(pic.checks().unwrap().iter().all(|check| check.ok), "{:?}", pic.checks().unwrap());
    let left = pic.particles("a").unwrap().unwrap().len;
    assert_eq!(left, kept.len());
    (fields(&mut pic), left)
}

#[test]
fn what_is_changed_goes_on_as_changed() {
    changed(&Device::Cpu(Cpu::new(2).unwrap()));
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn what_is_changed_goes_on_as_changed_on_a_gpu() {
    let Some(cuda) = testing::gpu() else { return };
    let (here, there) = (changed(&Device::Cpu(Cpu::new(2).unwrap())), changed(&Device::Cuda(cuda)));
    assert_eq!(here.1, there.1);
    // Single precision after eight steps; fields are of order 0.1 to 1.
    for ((name, _, a), (_, _, b)) in here.0.iter().zip(&there.0) {
        let most = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(most < 2e-5, "{name}: {most}");
    }
}
