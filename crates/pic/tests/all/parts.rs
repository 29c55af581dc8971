//! Runs in several parts have the bits of a run in one: fields, particles, rows, accounts, records and checkpoints.

use std::path::{Path, PathBuf};

use crate::physics::{config, environment};
use serde_json::{Value, json};
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::error::Result;
use zellige_engine::links::{self, Links};
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Check, Record, Row};
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing::parts::model_tells_the_traffic;
use zellige_pic::Pic;
use zellige_pic::diagnostics::balance::EnergyAccount;
use zellige_pic::particles::Particles;
use zellige_pic::stages::{Component, Energies};

/// Results of a run as the first part tells them; all parts tell the same of what they all know.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Results {
    pub(crate) components: Vec<Vec<u64>>,
    pub(crate) particles: Vec<Particles>,
    pub(crate) known: Known,
    /// Names and contents, as text: a curve may have points that are no numbers.
    pub(crate) records: Vec<[String; 2]>,
    pub(crate) checkpoint: Vec<u8>,
}

/// Results that every part knows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Known {
    pub(crate) rows: Vec<Row>,
    pub(crate) account: EnergyAccount,
    pub(crate) energies: Energies,
    pub(crate) checks: Vec<Check>,
    pub(crate) charge: Vec<Vec<f64>>,
    pub(crate) message: Option<String>,
}

fn path(folder: &Path, links: &Links) -> PathBuf {
    folder.join(format!("of{}.zck", links.size()))
}

/// Steps `from` to `to` in one part of a run, from a checkpoint where there is one.
fn part(table: &Value, environment: &Environment, to: u64, from: Option<&Path>, folder: &Path) -> Result<Results> {
    let path = path(folder, &environment.links);
    let mut pic = Pic::setup(&config(table.clone()), environment)?;
    if let Some(checkpoint) = from {
        pic.restore(&Reader::open(checkpoint, "pic")?)?;
    }
    let mut rows = Vec::new();
    while pic.clock().step < to {
        pic.step(&mut Profiler::off())?;
        rows.push(pic.row()?);
    }
    let mut writer = Writer::of_parts(&environment.links, &path, "pic")?;
    pic.save(&mut writer)?;
    writer.finish()?;
    let message = pic.outcome().map(|outcome| outcome.message);
    let text = |record: Record| [record.name().to_owned(), format!("{record:?}")];
    let records = pic.records()?.into_iter().map(|record| Ok(text(record.joined(&environment.links)?)));
    let (records, checks) = (records.collect::<Result<_>>()?, pic.checks()?);
    let plasma = pic.plasma();
    let (account, energies) = (plasma.account()?, plasma.energies()?);
    let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect();
    let components = Component::ALL.iter().map(|c| Ok(bits(plasma.stages.component(*c)?))).collect::<Result<_>>()?;
    let species = 0..plasma.setup.species.len();
    let particles = species.clone().map(|s| plasma.stages.particles(s)).collect::<Result<_>>()?;
    let charge = species.map(|s| plasma.stages.charge(s, true)).collect::<Result<_>>()?;
    let known = Known { rows, account, energies, checks, charge, message };
    Ok(Results { components, particles, known, records, checkpoint: std::fs::read(path).unwrap() })
}

/// Opener of the environment of a part.
pub(crate) type Open<'a> = dyn Fn() -> Result<Environment> + Sync + 'a;

/// The run in `parts` parts on the CPU.
fn run(table: &Value, parts: usize, to: u64, from: Option<&Path>, folder: &Path) -> Results {
    on(&|| Ok(environment(1)), table, parts, to, from, folder)
}

/// The run in `parts` parts, each in an environment of its own.
pub(crate) fn on(environment: &Open<'_>, table: &Value, parts: usize, to: u64, from: Option<&Path>, folder: &Path) -> Results {
    let mut all = links::inside::run(parts, |links| part(table, &environment()?.of_part(links), to, from, folder)).unwrap();
    let first = all.remove(0);
    for (k, other) in all.iter().enumerate() {
        assert!(first.components == other.components, "fields of part {} of {parts} differ", k + 1);
        assert_eq!(first.known, other.known, "part {} of {parts}", k + 1);
    }
    first
}

/// Says what differs.
fn compare(one: &Results, other: &Results, what: &str) {
    for (component, (a, b)) in Component::ALL.iter().zip(one.components.iter().zip(&other.components)) {
        let first = a.iter().zip(b).position(|(a, b)| a != b);
        assert_eq!(first, None, "{what}: {} differs at this place of {}", component.name(), a.len());
    }
    for (a, b) in one.particles.iter().zip(&other.particles) {
        assert_eq!(a.len(), b.len(), "{what}: particles");
        assert!(a == b, "{what}: particles differ");
    }
    assert_eq!(one.known, other.known, "{what}");
    for (a, b) in one.records.iter().zip(&other.records) {
        assert!(a == b, "{what}: record {} differs", a[0]);
    }
    assert!(one == other, "{what}: checkpoints differ");
}

/// A run of `steps` in 1, 2, 3, 4 and 8 parts, and on 1 and 3 from the half of four.
fn same_in_parts(mut table: Value, steps: u64) -> Results {
    let folder = tempfile::tempdir().unwrap();
    table["steps"] = json!(steps);
    let one = run(&table, 1, steps, None, folder.path());
    for parts in [2, 3, 4, 8] {
        compare(&one, &run(&table, parts, steps, None, folder.path()), &format!("{parts} parts"));
    }
    let half = tempfile::tempdir().unwrap();
    run(&table, 4, steps / 2, None, half.path());
    let checkpoint = half.path().join("of4.zck");
    for parts in [1, 3] {
        let rest = run(&table, parts, steps, Some(&checkpoint), folder.path());
        let known = Known { rows: one.known.rows[steps as usize / 2..].to_vec(), ..one.known.clone() };
        compare(&Results { known, ..one.clone() }, &rest, &format!("from 4 parts on {parts}"));
    }
    one
}

fn electrons() -> Value {
    json!({ "name": "electrons", "particles_per_cell": 6, "positions": "random", "momentum": { "thermal": 0.2, "drift": [0.1, 0.15, 0.05] } })
}

/// Rows of 4 and 5 tiles, 34 cells high: a part of eight has 4 rows, the last one 6.
pub(crate) fn table(boundary: Value) -> Value {
    let mut table = json!({
        "dt": 0.06, "order": 1, "tile": [8, 4],
        "grid": { "cells": [37, 34], "size": [3.7, 3.4] },
        "species": [electrons()],
        "diagnostics": { "energies_every": 3, "charge_every": 4 }
    });
    table["boundary"] = boundary;
    table
}

/// Quadratic shapes, the filter with several passes, two species of which one has weights, modes, spectra and tracks.
pub(crate) fn periodic() -> Value {
    let mut table = table(json!({}));
    table["order"] = json!(2);
    table["smoothing"] = json!({ "all": { "passes": 3, "compensated": true } });
    table["species"][0]["tagged"] = json!(true);
    let ions = json!({ "name": "ions", "charge": 1, "mass": 20, "particles_per_cell": 4, "weighting": "variable",
        "density": "1 + 0.5*sin(2*pi*y/ly)*cos(2*pi*x/lx)", "momentum": { "thermal": 0.1 } });
    table["species"].as_array_mut().unwrap().push(ions);
    table["diagnostics"]["tracks"] = json!([{ "species": "electrons", "limit": 5, "every": 4 }]);
    table["diagnostics"]["mode"] = json!([{ "name": "m", "component": "ey", "mode": [1, 2], "every": 3 }]);
    table["diagnostics"]["spectrum"] = json!([{ "component": "ex" }, { "component": "bz", "every": 2 }]);
    table["diagnostics"]["particles"] = json!([{ "species": "ions", "limit": 100, "select": "ux > 0" }]);
    table
}

/// A part sends what others have begun a block with, and no more: the first one never holds all.
#[test]
fn a_part_writes_its_particles_itself() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = table(json!({}));
    table["steps"] = json!(1);
    table["grid"] = json!({ "cells": [160, 120], "size": [16.0, 12.0] });
    table["species"][0]["particles_per_cell"] = json!(60);
    let sent = links::inside::run(3, |links| {
        let mut pic = Pic::setup(&config(table.clone()), &environment(1).of_part(links.clone()))?;
        let before = links.traffic();
        let mut writer = Writer::of_parts(&links, folder.path().join("state.zck"), "pic")?;
        pic.save(&mut writer)?;
        writer.finish()?;
        let particles = pic.plasma().stages.own_particles(0)?.len() as u64;
        Ok([links.traffic().since(before).bytes, particles])
    });
    // Two words and five numbers a particle; less than a block for each of these columns and for each component.
    for [bytes, particles] in sent.unwrap() {
        assert!(bytes < 13 << 20 && particles * 48 > 18_000_000, "{bytes} bytes sent of {particles} particles");
    }
}

/// A run that is taken up at its end has the current of its last step, in one part and in two.
pub(crate) fn the_current_survives(open: &Open<'_>) {
    let mut table = table(json!({ "x": "reflecting" }));
    table["steps"] = json!(6);
    table["smoothing"] = json!({ "all": { "passes": 1 } });
    table["diagnostics"]["fields"] = json!([{ "what": ["ex", "jx", "jz"] }]);
    table["diagnostics"]["spectrum"] = json!([{ "component": "jy" }]);
    let [before, after] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    for parts in [1, 2] {
        let one = on(open, &table, parts, 6, None, before.path());
        let again = on(open, &table, 3 - parts, 6, Some(&before.path().join(format!("of{parts}.zck"))), after.path());
        assert!(one.components[6..].iter().flatten().any(|v| f64::from_bits(*v) != 0.0));
        assert!(one.components == again.components, "fields from {parts} parts");
        let shown =
            |found: &Results| found.records.iter().filter(|r| r[0] == "J" || r[0].starts_with("spectrum")).cloned().collect::<Vec<_>>();
        assert_eq!(shown(&one).len(), 2, "{:?}", one.records.iter().map(|r| &r[0]).collect::<Vec<_>>());
        assert_eq!(shown(&one), shown(&again), "from {parts} parts");
    }
}

#[test]
fn the_current_is_in_checkpoints() {
    the_current_survives(&|| Ok(environment(1)));
}

#[test]
fn a_periodic_plasma() {
    let found = same_in_parts(periodic(), 24);
    assert!(found.known.energies.electric.iter().all(|e| *e > 0.0));
}

/// Linear shapes in double precision, all kinds of walls, and layers on the sides that parts share.
pub(crate) fn layered() -> Value {
    let mut table = table(json!({ "layer": 5, "x": { "fields": "pmc", "particles": "thermal" }, "y": "absorbing" }));
    table["precision"] = json!("f64");
    table["initial"] = json!({ "fields": { "bz": "0.3*exp(-((x-1.5)^2 + (y-1.2)^2)/0.2)" } });
    table
}

#[test]
fn walls_and_layers() {
    let found = same_in_parts(layered(), 26);
    assert!(found.known.account.ledger.removed > 0 && found.known.account.ledger.energy_in > 0.0);
    assert!(found.known.account.work != 0.0);
}

/// Conductors, with the filter of the current.
pub(crate) fn conducting(order: u32) -> Value {
    let mut table = table(json!({
        "x_lo": "reflecting", "x_hi": { "fields": "pec", "particles": "absorb" }, "y_lo": { "fields": "pec", "particles": "thermal" },
        "y_hi": { "fields": "pmc", "particles": "reflect" }
    }));
    table["order"] = json!(order);
    table["smoothing"] = json!({ "all": { "passes": 2 } });
    table
}

#[test]
fn conductors() {
    for order in [1, 2] {
        same_in_parts(conducting(order), 16);
    }
}

/// A window with an antenna in layers on all sides; fields of the start come in ahead.
pub(crate) fn moving(order: u32) -> Value {
    let mut table = table(json!({ "layer": 4, "all": "absorbing" }));
    table["order"] = json!(order);
    table["window"] = json!({ "start": 0.3 });
    table["initial"] = json!({ "fields": { "by": "0.1 + 0.05*sin(y)" } });
    table["external"] = json!({ "bz": "0.2*cos(y)" });
    table["laser"] = json!([{ "a0": 0.5, "omega": 4.0, "source": "antenna", "antenna": 0.8, "delay": 0.5, "fwhm": 1.0, "waist": 1.0,
        "polarisation": 45 }]);
    table["species"][0]["weighting"] = json!("variable");
    table
}

#[test]
fn a_window() {
    for order in [1, 2] {
        let found = same_in_parts(moving(order), 30);
        assert!(found.known.account.ledger.injected > found.known.account.ledger.removed);
    }
}

/// A window between periodic sides.
pub(crate) fn moving_periodic() -> Value {
    let mut table = table(json!({ "layer": 4, "x": "absorbing" }));
    table["window"] = json!({ "start": 0.0 });
    table["laser"] =
        json!([{ "a0": 0.5, "omega": 4.0, "source": "antenna", "antenna": 0.8, "delay": 0.5, "fwhm": 1.0, "polarisation": 30 }]);
    table
}

#[test]
fn a_window_that_is_periodic_across() {
    same_in_parts(moving_periodic(), 30);
}

/// A start from a charge that is not neutral, the momenta half a step back, and an external field.
pub(crate) fn charged(boundary: Value) -> Value {
    let mut table = table(boundary);
    table["initial"] = json!({ "poisson": true });
    table["external"] = json!({ "by": "0.2*sin(2*pi*y/ly)" });
    table["species"][0]["density"] = json!("1 + 0.3*cos(2*pi*y/ly)");
    table
}

#[test]
fn a_start_from_its_charge() {
    for boundary in [json!({}), json!({ "y": "reflecting", "x": "periodic" })] {
        same_in_parts(charged(boundary), 12);
    }
}

/// On a line parts have tiles, and the fields of all of it.
#[test]
fn a_line() {
    for (order, boundary) in [(1, json!({})), (2, json!({ "layer": 6, "x": "absorbing" })), (1, json!({ "x": "reflecting" }))] {
        let mut table = table(boundary);
        table["order"] = json!(order);
        table["tile"] = json!([5, 4]);
        table["grid"] = json!({ "cells": [61], "size": [6.1] });
        table["smoothing"] = json!({ "all": { "passes": 1 } });
        table["initial"] = json!({ "poisson": true });
        table["species"][0]["tagged"] = json!(true);
        table["diagnostics"]["tracks"] = json!([{ "species": "electrons", "limit": 5, "every": 4 }]);
        same_in_parts(table, 20);
    }
}

/// A window that moves along a line past two of its tiles: their particles are then another part's.
#[test]
fn a_window_on_a_line() {
    for order in [1, 2] {
        let mut table = moving(order);
        table["tile"] = json!([5, 4]);
        table["grid"] = json!({ "cells": [61], "size": [6.1] });
        table["boundary"] = json!({ "x": "absorbing", "layer": 4 });
        table["initial"] = json!({ "fields": { "by": "0.1 + 0.05*sin(x)" } });
        table["external"] = json!({ "bz": "0.2" });
        table["laser"][0].as_object_mut().unwrap().remove("waist");
        let found = same_in_parts(table, 30);
        assert!(found.known.account.ledger.injected > found.known.account.ledger.removed);
    }
}

/// A window as wide as a tile: the last of two tiles has no cells before it has moved.
#[test]
fn a_narrow_window() {
    let folder = tempfile::tempdir().unwrap();
    for (cells, size, parts) in [(json!([16]), json!([1.6]), [2, 2]), (json!([16, 8]), json!([1.6, 0.8]), [3, 4])] {
        let mut table = moving(1);
        let plane = cells.as_array().unwrap().len() > 1;
        table["steps"] = json!(30);
        table["tile"] = json!([16, 4]);
        table["grid"] = json!({ "cells": cells, "size": size });
        table["boundary"] = json!({ "x": "absorbing", "layer": 4 });
        table["laser"][0].as_object_mut().unwrap().remove("waist");
        for key in if plane { &[][..] } else { &["initial", "external"] } {
            table.as_object_mut().unwrap().remove(*key);
        }
        let one = run(&table, 1, 30, None, folder.path());
        for parts in parts {
            compare(&one, &run(&table, parts, 30, None, folder.path()), &format!("{cells} in {parts} parts"));
        }
    }
}

/// In a plane of four rows of tiles, the last one too low for a part, up to three parts have rows; more have tiles, and the fields
/// of all of it.
#[test]
fn flat_planes() {
    for (name, mut table) in [
        ("periodic", periodic()),
        ("layered", layered()),
        ("conducting", conducting(1)),
        ("quadratic", conducting(2)),
        ("moving", moving(2)),
        ("moving between periodic sides", moving_periodic()),
        ("charged", charged(json!({}))),
        ("charged between walls", charged(json!({ "y": "reflecting", "x": "periodic" }))),
    ] {
        println!("{name}");
        table["grid"] = json!({ "cells": [37, 14], "size": [3.7, 1.4] });
        if table["boundary"].get("layer").is_some() {
            table["boundary"]["layer"] = json!(4);
        }
        same_in_parts(table, 22);
    }
}

/// More parts than tiles are refused, with the most that there may be.
#[test]
fn refusals_say_why() {
    let mut table = table(json!({}));
    table["steps"] = json!(1);
    table["grid"] = json!({ "cells": [20, 5], "size": [2.0, 0.5] });
    let folder = tempfile::tempdir().unwrap();
    let error =
        links::inside::run(9, |links| part(&table, &environment(1).of_part(links), 1, None, folder.path())).unwrap_err().to_string();
    assert!(error.contains("9 parts") && error.contains("1 to 6"), "{error}");
}

/// Messages as a dry run tells them are those that parts send. The model knows the particles of the start and mean speeds.
#[test]
fn the_model_tells_the_traffic() {
    let grid = |cells: Value, size: Value| {
        json!({ "dt": 0.06, "steps": 20, "grid": { "cells": cells, "size": size }, "species": [electrons()],
        "diagnostics": { "energies_every": 1000, "charge_every": 1000 } })
    };
    let mut smooth = grid(json!([64, 200]), json!([6.4, 20.0]));
    smooth["smoothing"] = json!({ "y": { "passes": 2, "compensated": true } });
    for (name, table) in [
        ("plane", grid(json!([200, 200]), json!([20.0, 20.0]))),
        ("smoothed", smooth),
        ("line", grid(json!([2000]), json!([200.0]))),
        ("flat", grid(json!([400, 5]), json!([40.0, 0.5]))),
    ] {
        model_tells_the_traffic::<Pic>(name, &config(table), Path::new("."), &[2, 4], 10, [1.3, 1.6]);
    }
}
