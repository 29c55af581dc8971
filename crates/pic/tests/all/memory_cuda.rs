//! Memory stated in a plan for a GPU, against the peak of a run's buffers. Skipped without a GPU.

use serde_json::{Value, json};
use zellige_engine::device::Device;
use zellige_engine::profile::Profiler;
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing;
use zellige_pic::Pic;

use crate::physics::config;

/// A warm plasma in a periodic box of `cells`, with diagnostics of its energies and of its charge.
fn warm(cells: &[usize], per_cell: u32) -> Value {
    let size: Vec<f64> = cells.iter().map(|n| 0.1 * *n as f64).collect();
    json!({
        "dt": 0.06, "steps": 12, "grid": { "cells": cells, "size": size },
        "species": [{ "name": "electrons", "particles_per_cell": per_cell, "positions": "random", "momentum": { "thermal": 0.1 } }],
        "diagnostics": { "energies_every": 4, "charge_every": 6 }
    })
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn the_plan_tells_what_a_gpu_takes() {
    let Some(cuda) = testing::gpu() else { return };
    let plane = |per_cell: u32, change: &dyn Fn(&mut Value)| {
        let mut table = warm(&[512; 2], per_cell);
        change(&mut table);
        table
    };
    let cases = [
        ("few a cell", plane(4, &|_| ())),
        ("many a cell", plane(64, &|_| ())),
        ("very many a cell", warm(&[64; 2], 4096)),
        ("a line", warm(&[100_000], 32)),
        ("quadratic", plane(16, &|t| t["order"] = json!(2))),
        ("double", plane(16, &|t| t["precision"] = json!("f64"))),
        ("weights", plane(16, &|t| t["species"][0]["density"] = json!("1 + 0.5*cos(2*pi*x/lx)"))),
        ("tags", plane(16, &|t| t["species"][0]["tagged"] = json!(true))),
        ("filter", plane(16, &|t| t["smoothing"] = json!({ "all": { "passes": 2, "compensated": true } }))),
        ("layers", plane(16, &|t| t["boundary"] = json!({ "all": "absorbing" }))),
        ("walls", plane(16, &|t| t["boundary"] = json!({ "all": { "fields": "pec", "particles": "thermal" } }))),
        (
            "window",
            plane(16, &|t| {
                t["boundary"] = json!({ "x": "absorbing" });
                t["window"] = json!({ "start": 0.0 });
            }),
        ),
        (
            "ions",
            plane(16, &|t| {
                let ions = json!({ "name": "ions", "charge": 1, "mass": 100, "particles_per_cell": 16, "positions": "random" });
                t["species"].as_array_mut().unwrap().push(ions);
            }),
        ),
    ];
    let mut off = Vec::new();
    for (what, table) in cases {
        let config = config(table);
        let environment = Environment::new(Device::Cuda(cuda.clone()), ".", 1);
        let plan = Pic::plan(&config, &environment).unwrap().memory;
        let mut pic = Pic::setup(&config, &environment).unwrap();
        while pic.outcome().is_none() {
            pic.step(&mut Profiler::off()).unwrap();
        }
        let took = pic.plasma().stages.memory_peak();
        let share = took as f64 / plan as f64;
        println!("{what}: {:.1} MiB of {:.1}, {share:.3}", took as f64 / 1048576.0, plan as f64 / 1048576.0);
        if !(0.9..1.1).contains(&share) {
            off.push(format!("{what}: {share:.3}"));
        }
    }
    assert!(off.is_empty(), "{off:?}");
}
