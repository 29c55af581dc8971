//! Bad input of every kind ends in sentences that say where, what is allowed and what to do, all at once.

use serde_json::{Value, json};
use zellige_engine::device::{Cpu, Device};
use zellige_engine::error::Error;
use zellige_engine::sim::{Environment, Solver};
use zellige_pic::{Config, Pic};

fn good() -> Value {
    json!({
        "dt": 0.05, "steps": 2,
        "grid": { "cells": [16, 8], "size": [1.6, 0.8] },
        "species": [{ "name": "electrons", "particles_per_cell": 4 }]
    })
}

/// Sets the value at a JSON pointer.
fn with(pointer: &str, value: Value) -> Value {
    let mut table = good();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = if parent.is_empty() { &mut table } else { table.pointer_mut(parent).unwrap() };
    parent[key] = value;
    table
}

fn problems(table: Value) -> Vec<String> {
    let config: Config = serde_json::from_value(table).unwrap();
    config.check().iter().map(ToString::to_string).collect()
}

/// The error of setting a checked input up.
fn refusal(table: Value) -> String {
    let config: Config = serde_json::from_value(table).unwrap();
    assert_eq!(config.check(), []);
    let environment = Environment::new(Device::Cpu(Cpu::new(1).unwrap()), ".", 1);
    let error: Error = Pic::setup(&config, &environment).err().expect("this must be refused");
    error.to_string()
}

#[test]
fn what_the_text_shows_is_refused_at_once() {
    let space = |from: f64| json!({ "species": "electrons", "axes": [{ "value": "x" }], "select": format!("x > {from}") });
    assert_eq!(problems(good()), Vec::<String>::new());
    for (pointer, value, words) in [
        ("/dt", json!(0.08), "`dt`: the step 0.08 is not below the stability limit 7.071068e-2"),
        ("/dt", json!(-1.0), "`dt`: the value is -1"),
        ("/courant", json!(0.5), "both `dt` and `courant`"),
        ("/t_end", json!(3.0), "both `t_end` and `steps`"),
        ("/order", json!(3), "`order`: `3` is out of range"),
        ("/grid/cells", json!([0, 8]), "`grid.cells[0]`: `0` is out of range"),
        ("/grid/size", json!([1.6]), "1 numbers for 2 axes"),
        ("/boundary", json!({ "x_lo": "absorbing" }), "periodic on one side"),
        ("/boundary", json!({ "x": { "fields": "pec", "particles": "periodic" } }), "must both be periodic"),
        ("/boundary", json!({ "x": "absorbing" }), "absorbing layers of 32 cells do not fit into 16"),
        ("/boundary", json!({ "x": { "fields": "pec", "particles": "thermal" } }), "no temperature is given for"),
        ("/window", json!({}), "a window has new plasma in front"),
        ("/species", json!([]), "the box is empty"),
        ("/species/0/name", json!("a/b"), "cannot be part of a file's name"),
        ("/species/0/mass", json!(0.0), "`species[0].mass`: `0.0` is out of range"),
        ("/species/0/particles_per_cell", json!(0), "0 particles"),
        ("/species/0/density", json!(-1.0), "`species[0].density`: the value is -1"),
        ("/species/0/density", json!("cso(x)"), "did you mean `cos`"),
        ("/species/0/density", json!({ "slab": { "from": 2.0, "to": 1.0 } }), "the slab ends at 1"),
        ("/species/0/momentum", json!({ "thermal": 0.1, "temperature": 0.1 }), "`thermal` is given too"),
        ("/units", json!({ "density": 0.0 }), "`units.density`"),
        ("/laser", json!([{ "a0": 1.0, "position": 1.0, "fwhm": 1.0 }]), "neither `omega` nor `wavelength`"),
        (
            "/laser",
            json!([{ "a0": 1.0, "wavelength": 0.3, "position": 0.8, "fwhm": 0.3 }]),
            "a wavelength of 3.0000e-1 has 3.00 cells of 1.0000e-1",
        ),
        (
            "/laser",
            json!([{ "a0": 1.0, "omega": 6.0, "position": 1.5, "fwhm": 0.5 }]),
            "does not fit into the box: its amplitude at the upper x side is 95 %",
        ),
        (
            "/laser",
            json!([{ "a0": 1.0, "omega": 6.0, "position": 1.6, "rise": 0.1, "flat": 9.0, "fall": 1.0 }]),
            "at the lower x side is 100 %",
        ),
        ("/laser", json!([{ "a0": 1.0, "omega": 6.0, "position": 5.0, "fwhm": 0.5 }]), "the peak of the pulse is outside the box"),
        ("/laser", json!([{ "a0": 1.0, "omega": 6.0, "delay": 1.0, "fwhm": 0.5 }]), "`laser[0].delay`: it has no meaning here"),
        ("/species/0/momentum", json!({ "maxwell_juttner": 0.1, "quiet": true }), "are always random"),
        ("/diagnostics", json!({ "fields": [{ "what": ["exx"] }] }), "did you mean `ex`"),
        ("/diagnostics", json!({ "fields": [{ "what": ["charge.ions"] }] }), "there is no species `ions`"),
        ("/diagnostics", json!({ "tracks": [{ "species": "electrons", "every": 1 }] }), "carry no tags"),
        ("/diagnostics", json!({ "phase_space": [{ "species": "electrons", "axes": [{ "value": "vx" }] }] }), "vx"),
        (
            "/diagnostics",
            json!({ "phase_space": [space(0.0), space(1.0)] }),
            "`diagnostics.phase_space[1].name`: another result has the name",
        ),
        ("/diagnostics", json!({ "particles": [{ "species": "electrons" }, { "species": "electrons" }] }), "another result has the name"),
        ("/diagnostics", json!({ "spectrum": [{ "component": "ex" }, { "component": "ex" }] }), "`diagnostics.spectrum[1].component`"),
        ("/diagnostics", json!({ "mode": [{ "name": "E", "component": "ex", "mode": [1, 0] }] }), "has the name `E`"),
        ("/smoothing", json!({ "x": { "compensated": true } }), "no pass to compensate"),
    ] {
        let found = problems(with(pointer, value.clone()));
        assert!(found.iter().any(|p| p.contains(words)), "{pointer} = {value}: {found:?}");
    }
    let mut many = with("/dt", json!(1.0));
    many["species"][0]["mass"] = json!(-1.0);
    many["order"] = json!(7);
    assert_eq!(problems(many).len(), 3);
    // One mistake, one sentence, and a short one.
    let mut space = with("/boundary", json!({ "x": "absorbing", "y": "absorbing" }));
    space["grid"] = json!({ "cells": [8, 8, 8], "size": [0.8, 0.8, 0.8] });
    assert_eq!(problems(space).len(), 1);
    for (key, value) in [("dt", 0.0), ("t_end", 1e300)] {
        let mut table = good();
        table.as_object_mut().unwrap().remove("steps");
        table["t_end"] = json!(1.0);
        table[key] = json!(value);
        let found = problems(table);
        assert!(found.len() == 1 && found[0].contains(key) && found[0].len() < 120, "{found:?}");
    }
}

#[test]
fn a_plan_looks_at_constants_too() {
    let config: Config = serde_json::from_value(with("/species/0/density", json!("sqrt(-1)"))).unwrap();
    let environment = Environment::new(Device::Cpu(Cpu::new(1).unwrap()), ".", 1);
    assert!(Pic::plan(&config, &environment).expect_err("this must be refused").to_string().contains("is NaN"));
    let mut pulse = with("/boundary", json!({ "layer": 4, "x": "absorbing" }));
    pulse["laser"] = json!([{ "a0": 1.0, "omega": 10.0, "source": "antenna", "delay": 1.0, "fwhm": 1.0 }]);
    let config: Config = serde_json::from_value(pulse).unwrap();
    let warnings = Pic::plan(&config, &environment).unwrap().warnings;
    for words in ["has 6.3 cells a wavelength", "starts abruptly with 25.00 % of its amplitude at time 0", "after the end of the run"] {
        assert!(warnings.iter().any(|w| w.contains(words)), "{words}: {warnings:?}");
    }
    let mode = json!([{ "name": "late", "component": "ex", "mode": [1, 0], "fit": [5.0, 6.0] }]);
    let config: Config = serde_json::from_value(with("/diagnostics", json!({ "mode": mode }))).unwrap();
    let plan = Pic::plan(&config, &environment).unwrap();
    assert!(plan.warnings.iter().any(|w| w.contains("`late` is fitted from t = 5 to 6")), "{:?}", plan.warnings);
}

#[test]
fn what_only_the_values_show_is_refused_with_its_place() {
    for (density, words) in [
        (json!("x - 0.5"), "the density at x = 0.05"),
        (json!("1/(x - x)"), "is inf"),
        (json!("log(-x - 1)"), "is NaN"),
        (json!("sqrt(-1)"), "is NaN"),
        (json!({ "sphere": { "centre": [9.0, 9.0], "radius": 1.0 } }), "zero in every cell"),
    ] {
        let message = refusal(with("/species/0/density", density));
        assert!(message.contains("pic.species[0].density") && message.contains(words), "{message}");
    }
    let message = refusal(with("/species/0/momentum", json!({ "thermal": "x - 1" })));
    assert!(message.contains("thermal momentum at x = "), "{message}");
    let message = refusal(with("/external", json!({ "bz": "1/(y - y)" })));
    assert!(message.contains("pic.external.bz"), "{message}");
}

#[test]
fn absurd_memory_is_refused_with_the_number() {
    let mut table = with("/grid", json!({ "cells": [65536, 65536], "size": [6553.6, 6553.6] }));
    table["species"][0]["particles_per_cell"] = json!(100_000);
    let message = refusal(table);
    assert!(message.contains("out of memory") && message.contains("iB asked for particles and fields"), "{message}");
}
