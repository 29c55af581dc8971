//! Inputs of the program that this one grew from: a file with the tables `grid`, `physics` and `init` at the top becomes one with
//! the table `dsmc`. Beside them may stand `geometry` (a file), `source` and `schedule` (a file or a list of files), which that
//! program took on its command line as `-g`, `-s` and `-S`, as `zellige dsmc convert` does.
//!
//! What it computed is kept: argon of hard spheres, mirrors on all sides and bodies. What it computed wrongly is not: a gas in a
//! plane has three components of velocity, cut cells their own volume, collisions new random numbers in every step, and a source
//! the distribution of a flux. Who wants to see what a gas of two components does asks for it: `velocity_components: 2` under
//! `physics`, or `--set physics.velocity_components=2` ([`crate::planar`]).

use serde::Deserialize;
use serde_json::{Map, Value, json};
use zellige_engine::error::Problem;

/// Note on such an input.
pub const NOTE: &str = "an input of the older form, read as argon of hard spheres between mirrors; a velocity has three components unless `physics.velocity_components` is 2";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Grid {
    nx: u64,
    ny: u64,
    lx: f64,
    ly: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Physics {
    dt: f64,
    total_steps: u64,
    velocity_components: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Init {
    temp: f64,
    density: f64,
    particle_weight: f64,
}

/// A table of the file.
fn table<'a, T: Deserialize<'a>>(top: &'a Map<String, Value>, key: &str, problems: &mut Vec<Problem>) -> Option<T> {
    T::deserialize(&top[key]).map_err(|e| problems.push(Problem::new(key, e.to_string()))).ok()
}

/// A file or a list of files under a key; `None` where something else stands there.
fn named_files(value: Option<&Value>) -> Option<Vec<String>> {
    match value {
        None => Some(Vec::new()),
        Some(Value::String(one)) => Some(vec![one.clone()]),
        Some(Value::Array(all)) => all.iter().map(|v| v.as_str().map(str::to_owned)).collect(),
        Some(_) => None,
    }
}

/// The files that an input of the older form names under `geometry`, `source` or `schedule`.
pub fn files(value: &Value, key: &str) -> Vec<String> {
    named_files(value.get(key)).unwrap_or_default()
}

/// True if an input is of the older form.
pub fn is_older(value: &Value) -> bool {
    let top = value.as_object();
    top.is_some_and(|top| !top.contains_key("dsmc") && ["grid", "physics", "init"].iter().all(|key| top.contains_key(*key)))
}

/// Turns the older form into the table `dsmc`; says whether it was that form.
///
/// # Errors
/// What is missing or unknown in it.
pub fn adopt(value: &mut Value) -> Result<bool, Vec<Problem>> {
    let Some(top) = value.as_object().filter(|_| is_older(value)) else { return Ok(false) };
    let mut problems = Vec::new();
    let known = ["grid", "physics", "init", "geometry", "source", "schedule", "run", "output"];
    for key in top.keys().filter(|key| !known.contains(&key.as_str())) {
        problems.push(Problem::new(key, format!("`{key}` is unknown in an input of the older form")).allowed(known.join(", ")));
    }
    let grid = table::<Grid>(top, "grid", &mut problems);
    let physics = table::<Physics>(top, "physics", &mut problems);
    let init = table::<Init>(top, "init", &mut problems);
    let [bodies, sources, schedules] = ["geometry", "source", "schedule"].map(|key| {
        named_files(top.get(key)).unwrap_or_else(|| {
            problems.push(Problem::new(key, "this is no file").allowed("a file, or a list of files"));
            Vec::new()
        })
    });
    if !schedules.is_empty() && schedules.len() != sources.len() {
        let message = format!("{} schedules for {} sources", schedules.len(), sources.len());
        problems
            .push(Problem::new("schedule", message).hint("a schedule for each source in their order, or none where all have their own"));
    }
    let (Some(grid), Some(physics), Some(init), true) = (grid, physics, init, problems.is_empty()) else { return Err(problems) };
    // An empty start needs a density of its own: it shapes the store, and is that of ten particles in a cell.
    let cell = grid.lx * grid.ly / (grid.nx.max(1) * grid.ny.max(1)) as f64;
    let density = if init.density > 0.0 { init.density } else { 10.0 * init.particle_weight / cell };
    let named = |k: usize| if bodies.len() == 1 { "body".to_owned() } else { format!("body_{}", k + 1) };
    let body = |(k, file): (usize, &String)| json!({ "name": named(k), "file": file, "wall": { "model": "specular" } });
    let source = |(k, file): (usize, &String)| match schedules.get(k) {
        Some(schedule) => json!({ "file": file, "schedule_file": schedule }),
        None => json!({ "file": file }),
    };
    let mut dsmc = json!({
        "dt": physics.dt,
        "steps": physics.total_steps,
        "weight": init.particle_weight,
        "grid": { "cells": [grid.nx, grid.ny], "size": [grid.lx, grid.ly] },
        "gas": { "density": density, "temperature": init.temp },
        "species": [{ "name": "Ar", "mass": 6.6335e-26, "diameter": 4.17e-10, "omega": 0.5, "alpha": 1.0 }],
        "boundary": { "all": "specular" },
        "bodies": bodies.iter().enumerate().map(body).collect::<Vec<_>>(),
        "sources": sources.iter().enumerate().map(source).collect::<Vec<_>>(),
    });
    if let Some(components) = physics.velocity_components {
        dsmc["velocity_components"] = json!(components);
    }
    if init.density <= 0.0 {
        dsmc["initial"] = json!({ "density": 0.0 });
    }
    let mut whole = Map::new();
    whole.insert("dsmc".into(), dsmc);
    for key in ["run", "output"] {
        if let Some(table) = top.get(key) {
            whole.insert(key.into(), table.clone());
        }
    }
    *value = Value::Object(whole);
    Ok(true)
}
