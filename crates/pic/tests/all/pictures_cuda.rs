//! Pictures of a plasma on a GPU, averaged there, against those of its records, averaged on the host. Skipped without a GPU.

use serde_json::{Value, json};
use zellige_engine::device::Device;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Mesh, Pictures, Planes, Record};
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing;
use zellige_io::picture::pixels;
use zellige_pic::Pic;

use crate::physics::config;

/// A plasma of two species with fields of all kinds, after three steps.
fn table(cells: [usize; 2], change: &dyn Fn(&mut Value)) -> Value {
    let species = |name: &str, charge: f64| {
        json!({ "name": name, "charge": charge, "particles_per_cell": 2, "positions": "random",
            "momentum": { "drift": [0.05, 0.1, -0.2 * charge], "thermal": 0.1 } })
    };
    // Of the box, of all values there are, of given ones, and one that the host counts.
    let spaces = json!([
        { "species": "a", "axes": [{ "value": "x", "bins": 90 }, { "value": "ux", "bins": 31 }] },
        { "species": "b", "axes": [{ "value": "gamma", "bins": 17 }] },
        { "species": "b", "axes": [{ "value": "uz", "bins": 9, "range": [-0.1, 0.3] }, { "value": "y", "bins": 5 }] },
        { "species": "a", "axes": [{ "value": "ux + uy", "bins": 8 }] },
    ]);
    let what = ["ex", "ey", "ez", "bx", "by", "bz", "jx", "jy", "jz", "charge", "charge.a"];
    let mut table = json!({ "dt": 0.05, "steps": 3,
        "grid": { "cells": cells, "size": [0.1 * cells[0] as f64, 0.1 * cells[1] as f64] },
        "species": [species("a", -1.0), species("b", 1.0)],
        "diagnostics": { "fields": [{ "what": what }], "phase_space": spaces } });
    change(&mut table);
    table
}

/// First pixel of a picture that is not the host's average.
fn difference(planes: &Planes, mesh: &Mesh, component: usize) -> Option<String> {
    let field = mesh.field(component);
    assert_eq!(planes.field.axes, field.axes);
    assert_eq!((&planes.field.title, planes.field.centring), (&field.title, field.centring));
    let expected = pixels(&field, &field.values, (0, 1));
    let [found] = &planes.pixels[..] else { panic!("one plane") };
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().any(|v| *v != 0.0), "{} is zero", field.name);
    let k = (0..found.len()).find(|k| found[*k] != expected[*k])?;
    Some(format!("{}, pixel {k} of {}: {:e}, not {:e}", field.name, found.len(), found[k], expected[k]))
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn pictures_made_on_a_gpu_are_those_of_the_records() {
    let walls =
        |condition: &'static str| move |t: &mut Value| t["boundary"] = json!({ "all": { "fields": condition, "particles": "reflect" } });
    let cases = [
        ("large", table([1100, 515], &|_| ())),
        ("wide", table([2048, 48], &|_| ())),
        ("conductors", table([600, 530], &walls("pec"))),
        ("magnetic walls", table([600, 530], &walls("pmc"))),
        ("double precision", table([530, 600], &|t| t["precision"] = json!("f64"))),
        ("quadratic", table([516, 40], &|t| t["order"] = json!(2))),
    ];
    let cases = cases.map(|(name, table)| (name, config(table)));
    let Some(cuda) = testing::gpu() else { return };
    let mut differences = Vec::new();
    for (name, config) in cases {
        let mut pic = Pic::setup(&config, &Environment::new(Device::Cuda(cuda.clone()), ".", 1)).unwrap();
        while pic.outcome().is_none() {
            pic.step(&mut Profiler::off()).unwrap();
        }
        // The second pictures have memory of the first ones, and both are on their way at once.
        let both = [pic.pictures().unwrap(), pic.pictures().unwrap()];
        assert!(both.iter().all(Pictures::are_coming), "{name}");
        let [first, pictures] = both.map(|pictures| pictures.records().unwrap());
        let drawn =
            |records: &[Record]| records.iter().filter(|r| matches!(r, Record::Planes(_) | Record::Field(_))).cloned().collect::<Vec<_>>();
        assert!(drawn(&first) == drawn(&pictures), "{name}: two looks at one moment");
        let records = pic.records().unwrap();
        let histograms =
            records.iter().filter(|r| matches!(r, Record::Field(_))).inspect(|r| assert!(pictures.contains(r), "{name}: {}", r.name()));
        assert_eq!(histograms.count(), 4, "{name}");
        // Of fields that are averaged only, and of the charge, which is taken anew for each of them.
        let (mut seen, mut whole) = (0, 0);
        for record in &records {
            let Record::Mesh(mesh) = record else { continue };
            for component in 0..mesh.components.len() {
                whole += 1;
                let of = |r: &Record| matches!(r, Record::Planes(p) if p.field.name == mesh.field_name(component));
                let Some(Record::Planes(planes)) = pictures.iter().find(|r| of(r)) else { panic!("{name}: no {}", mesh.name) };
                seen += 1;
                differences.extend(difference(planes, mesh, component).map(|d| format!("{name}: {d}")));
            }
        }
        assert_eq!((seen, whole), (11, 11), "{name}");
    }
    assert!(differences.is_empty(), "{differences:#?}");
}
