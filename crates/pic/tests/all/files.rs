//! Densities, fields, momenta and particles of files: those of expressions, those of another run, those of NumPy and openPMD.

use std::path::Path;

use serde_json::{Value, json};
use zellige_engine::device::{Cpu, Device};
use zellige_engine::error::Error;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Pictures, Record, Values};
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing;
use zellige_io::tensor::Tensor;
use zellige_io::{Format, Stamp, npy, npz, write_records};
use zellige_pic::config::diagnostics::ParticlesConfig;
use zellige_pic::output;
use zellige_pic::particles::Particles;
use zellige_pic::stages::Component;
use zellige_pic::{Config, Pic};

fn config(table: Value) -> Config {
    let config: Config = serde_json::from_value(table).unwrap();
    assert_eq!(config.check(), []);
    config
}

fn on(table: Value, folder: &Path, device: Device) -> Result<Pic, Error> {
    Pic::setup(&config(table), &Environment::new(device, folder, 5))
}

fn pic(table: Value, folder: &Path) -> Pic {
    on(table, folder, Device::Cpu(Cpu::new(2).unwrap())).unwrap()
}

fn refusal(table: Value, folder: &Path) -> String {
    let Err(error) = on(table, folder, Device::Cpu(Cpu::new(1).unwrap())) else { panic!("it was accepted") };
    format!("{error} {}", error.hint().unwrap_or_default())
}

/// Values of a function at the centres of a lattice over 8 x 4.
fn write(folder: &Path, name: &str, count: [usize; 2], value: impl Fn(f64, f64) -> f64) {
    let centre = |k: usize, n: usize, length: f64| (k as f64 + 0.5) * length / n as f64;
    let values = (0..count[1]).flat_map(|j| (0..count[0]).map(move |i| (i, j)));
    let values = values.map(|(i, j)| value(centre(i, count[0], 8.0), centre(j, count[1], 4.0))).collect();
    npy::write(folder.join(name), &[count[1], count[0]], &Values::F64(values)).unwrap();
}

fn plane(species: Value) -> Value {
    let species = [species];
    json!({ "dt": 0.05, "steps": 4, "precision": "f64", "grid": { "cells": [32, 16], "size": [8.0, 4.0] },
        "boundary": { "all": "reflecting" }, "species": species })
}

fn particles(pic: &mut Pic) -> Particles {
    pic.plasma().stages.particles(0).unwrap()
}

/// A density, a drift and a temperature that are linear are the same from an array of any resolution, up to half a value from the
/// sides, beyond which an array is constant.
#[test]
fn linear_profiles_are_those_of_expressions() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "n.npy", [32, 16], |x, y| 1.0 + 0.1 * x + 0.05 * y);
    write(folder.path(), "u.npy", [16, 8], |x, _| 0.01 * x);
    write(folder.path(), "t.npy", [8, 4], |_, y| 0.1 + 0.02 * y);
    let file = |name: &str| json!({ "file": name });
    let species = |density: Value, drift: Value, thermal: Value| {
        json!({ "name": "e", "particles_per_cell": 4, "tagged": true, "positions": "random", "density": density,
            "momentum": { "drift": [drift, 0, 0], "thermal": [thermal, 0, 0] } })
    };
    write(folder.path(), "turned.npy", [16, 32], |x, _| x);
    let text = refusal(plane(species(file("turned.npy"), json!(0), json!(0))), folder.path());
    assert!(text.contains("that of the grid's cells transposed") && text.contains("(ny, nx) = (16, 32)"), "{text}");
    let by_files = species(file("n.npy"), file("u.npy"), file("t.npy"));
    let by_text = species(json!("1 + 0.1*x + 0.05*y"), json!("0.01*x"), json!("0.1 + 0.02*y"));
    let [a, b] = [by_files, by_text].map(|s| {
        let mut pic = pic(plane(s), folder.path());
        let weight = pic.plasma().setup.species[0].weight;
        let mut p = particles(&mut pic);
        p.weight.iter_mut().for_each(|w| *w *= weight);
        p
    });
    assert_eq!((a.len(), &a.tag, &a.s), (4 * 32 * 16, &b.tag, &b.s));
    let mut inside = 0;
    for k in (0..a.len()).filter(|k| (2..30).contains(&a.i[*k]) && (2..14).contains(&a.j[*k])) {
        inside += 1;
        // Roundings of a few operations, and the integers that weights are kept in (integers.rs).
        assert!((a.weight[k] - b.weight[k]).abs() < 1e-6, "{} and {}", a.weight[k], b.weight[k]);
        assert!((a.u[0][k] - b.u[0][k]).abs() < 1e-14, "{} and {}", a.u[0][k], b.u[0][k]);
    }
    assert_eq!(inside, 4 * 28 * 12);
}

/// Moves, then writes fields and particles as openPMD; what reads them goes on from the same state.
fn goes_on(units: &Value, weighting: &str) {
    let folder = tempfile::tempdir().unwrap();
    let si = units.is_object();
    let length = if si { 5.314e-6 } else { 1.0 };
    let density = if si { json!("1e24*(1 + 0.5*cos(2*pi*x/lx))") } else { json!("1 + 0.5*cos(2*pi*x/lx)") };
    let mut table = json!({ "courant": 0.5, "steps": 6, "precision": "f64", "units": units,
        "grid": { "cells": [32, 16], "size": [8.0 * length, 4.0 * length], "origin": [-length, 2.0 * length] },
        "species": [{ "name": "e", "particles_per_cell": 4, "positions": "random", "weighting": weighting, "density": density,
            "momentum": { "thermal": 0.1 } }],
        "initial": { "poisson": true } });
    let mut first = pic(table.clone(), folder.path());
    while first.outcome().is_none() {
        first.step(&mut Profiler::off()).unwrap();
    }
    let described = config(table.clone());
    let mut pictures = Pictures::default();
    let names = ["ex", "ey", "ez", "bx", "by", "bz"].map(String::from);
    output::fields(&described, first.plasma(), &names, true, true, &mut pictures).unwrap();
    let mut records = pictures.records().unwrap();
    let all = ParticlesConfig { species: "e".into(), select: None, limit: 1 << 20, every: None };
    records.push(Record::Table(output::particles(&described, first.plasma(), &all).unwrap()));
    write_records(folder.path(), &records, &[Format::Hdf5], Stamp { step: 6, time: Some(1.0), numbered: true }).unwrap();
    let of = |path: &str| format!("openpmd/data_000006.h5:/data/6/{path}");
    table["initial"] = json!({ "fields": {
        "ex": { "file": of("fields/E/x") }, "ey": { "file": of("fields/E/y") }, "ez": { "file": of("fields/E/z") },
        "bx": { "file": of("fields/B/x") }, "by": { "file": of("fields/B/y") }, "bz": { "file": of("fields/B/z") } } });
    table["species"][0] = json!({ "name": "e", "tagged": true,
        "particles": { "file": of("particles/e"), "half_step_behind": true } });
    let mut second = pic(table.clone(), folder.path());
    let sum = |pic: &mut Pic| {
        let charge = pic.plasma().stages.charge(0, false).unwrap();
        let fields = Component::ALL[..6].iter().map(|c| pic.plasma().stages.component(*c).unwrap()).collect::<Vec<_>>();
        (charge, fields)
    };
    let largest = |values: &[f64]| values.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    let near = |a: &[f64], b: &[f64], tolerance: f64, what: &str| {
        let scale = largest(a);
        assert!(scale > 1e-3, "{what}: nothing is there");
        let worst = a.iter().zip(b).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
        assert!(worst <= tolerance * scale, "{what}: {worst} of {scale}");
    };
    for step in 0..3 {
        let ((rho_a, fields_a), (rho_b, fields_b)) = (sum(&mut first), sum(&mut second));
        // Positions and weights have roundings of their units, and charges are integers (integers.rs).
        near(&rho_a, &rho_b, 1e-7, "charge");
        let scale = fields_a.iter().map(|f| largest(f)).fold(0.0, f64::max);
        for (a, b) in fields_a.iter().zip(&fields_b) {
            let worst = a.iter().zip(b).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
            // The units' factor and back.
            assert!(worst <= if step == 0 { 1e-14 } else { 1e-7 } * scale, "fields at step {step}: {worst} of {scale}");
        }
        let energy = |pic: &mut Pic| {
            pic.plasma().advance(true, &mut Profiler::off()).unwrap();
            pic.plasma().energies().unwrap().kinetic[0]
        };
        let (a, b) = (energy(&mut first), energy(&mut second));
        assert!((a / b - 1.0).abs() < 1e-9, "kinetic energies {a} and {b}");
    }
    // The file says what its particles are.
    for key in ["mass", "charge"] {
        let mut other = table.clone();
        other["species"][0][key] = json!(2.0);
        let text = refusal(other, folder.path());
        assert!(text.contains(&format!("the `{key}` of `data/6/particles/e` is")) && text.contains("that of the species"), "{text}");
    }
    if si {
        let bare = json!({ "steps": 6, "grid": { "cells": [32, 16], "size": [8.0, 4.0] }, "species": table["species"] });
        let text = refusal(bare, folder.path());
        assert!(text.contains("has SI units") && text.contains("`pic.units`"), "{text}");
    }
    // Numbers in the file are the tags.
    let mut tags = particles(&mut second).tag;
    tags.sort_unstable();
    assert!(tags.iter().copied().eq(1..=tags.len() as u64));
}

#[test]
fn a_run_goes_on_from_the_openpmd_file_of_another() {
    goes_on(&json!("normalised"), "variable");
    goes_on(&json!("normalised"), "equal");
    goes_on(&json!({ "density": 1e24 }), "variable");
}

fn cloud(folder: &Path, name: &str, columns: &[(&str, Vec<f64>)]) {
    let tensors: Vec<_> = columns.iter().map(|(name, values)| (*name, Tensor::reals(&[values.len()], values.clone()))).collect();
    let arrays: Vec<_> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
    npz::write(folder.join(name), &arrays, false).unwrap();
}

/// Particles of NumPy: in their cells, with their momenta and weights; what lies outside is told of.
#[test]
fn particles_of_numpy() {
    let folder = tempfile::tempdir().unwrap();
    let x = vec![0.125, 3.9, 8.0, 4.0, 9.0, -1.0];
    let columns = [("x", x), ("y", vec![0.1, 4.0, 2.0, 2.0, 1.0, 1.0]), ("uz", vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])];
    let weights = [("weight", vec![0.5, 1.0, 1.0, 1.0, 1.0, 1.0])];
    cloud(folder.path(), "beam.npz", &[&columns[..], &weights[..]].concat());
    let beam = json!({ "name": "beam", "particles": { "file": "beam.npz" }, "tagged": true });
    let environment = Environment::new(Device::Cpu(Cpu::new(1).unwrap()), folder.path(), 5);
    let plan = Pic::plan(&config(plane(beam.clone())), &environment).unwrap();
    assert!(plan.warnings.iter().any(|w| w.contains("2 of the 6 particles of `beam`")), "{:?}", plan.warnings);
    assert_eq!(plan.items, 4);
    let mut pic = pic(plane(beam), folder.path());
    let (p, weight, volume) = (particles(&mut pic), pic.plasma().setup.species[0].weight, 0.25 * 0.25);
    let mut found: Vec<_> = (0..p.len()).map(|k| (p.tag[k], [p.i[k], p.j[k]], p.s[k], p.u[2][k], p.weight[k] * weight * volume)).collect();
    found.sort_by_key(|p| p.0);
    let expected = [(1, [0, 0], 0.0, 1.0, 0.5), (2, [15, 15], 0.1, 2.0, 1.0), (3, [31, 8], 0.5, 3.0, 1.0), (4, [16, 8], -0.5, 4.0, 1.0)];
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!((found.0, found.1, found.3), (expected.0, expected.1, expected.3));
        assert!((found.2 - expected.2).abs() < 1e-12 && (found.4 - expected.4).abs() < 1e-6, "{found:?}");
    }
    // One weight for all, in the input.
    cloud(folder.path(), "bare.npz", &columns);
    let mut bare = plane(json!({ "name": "beam", "particles": { "file": "bare.npz", "weight": 3.0 } }));
    let p = self::pic(bare.clone(), folder.path()).plasma().setup.species[0].clone();
    assert!(!p.weighted && (p.weight * volume / 3.0 - 1.0).abs() < 1e-12);
    bare["species"][0]["particles"] = json!({ "file": "bare.npz" });
    assert!(refusal(bare, folder.path()).contains("no array `weight` (arrays: `x` [6]"));
}

/// Particles of a file that lie ahead of a window come in when it reaches them.
#[test]
fn a_window_reaches_particles_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let x: Vec<f64> = (0..40).map(|k| 0.26 + 0.5 * f64::from(k)).collect();
    cloud(folder.path(), "line.npz", &[("weight", vec![1e-9; 40]), ("x", x)]);
    let table = json!({ "courant": 0.9, "t_end": 6.0, "precision": "f64", "window": {}, "boundary": { "x": "absorbing", "layer": 4 },
        "grid": { "cells": [80], "size": [8.0] }, "species": [{ "name": "e", "particles": { "file": "line.npz" } }] });
    let mut pic = pic(table, folder.path());
    assert_eq!(particles(&mut pic).len(), 16);
    while pic.outcome().is_none() {
        pic.step(&mut Profiler::off()).unwrap();
    }
    let (moved, p) = (pic.plasma().moved as f64, particles(&mut pic));
    let mut x: Vec<f64> = (0..p.len()).map(|k| 0.1 * (moved + f64::from(p.i[k]) + 0.5 + p.s[k])).collect();
    x.sort_by(f64::total_cmp);
    // At rest in next to no field, from the lower end of the window to its upper one.
    assert!(x.len() == 16 && x.iter().all(|x| ((x - 0.26) / 0.5 - ((x - 0.26) / 0.5).round()).abs() < 1e-6), "{x:?}");
}

#[test]
fn files_that_do_not_fit_are_refused_with_what_would() {
    let folder = tempfile::tempdir().unwrap();
    npy::write(folder.path().join("line.npy"), &[32], &Values::F64(vec![1.0; 32])).unwrap();
    npy::write(folder.path().join("nan.npy"), &[2, 2], &Values::F64(vec![1.0, f64::NAN, 1.0, 1.0])).unwrap();
    cloud(folder.path(), "short.npz", &[("x", vec![1.0; 3]), ("y", vec![1.0; 2]), ("weight", vec![1.0; 3])]);
    cloud(folder.path(), "far.npz", &[("x", vec![100.0]), ("y", vec![1.0]), ("weight", vec![1.0])]);
    cloud(folder.path(), "zero.npz", &[("x", vec![1.0]), ("y", vec![1.0]), ("weight", vec![0.0])]);
    let density = |file: &str| plane(json!({ "name": "e", "particles_per_cell": 4, "density": { "file": file } }));
    let cloud = |file: &str| plane(json!({ "name": "e", "particles": { "file": file } }));
    for (table, texts) in [
        (density("line.npy"), ["pic.species[0].density.file", "shape (32), expected (ny, nx)"]),
        (density("nan.npy"), ["NaN at index (0, 1)", "finite numbers"]),
        (density("n.txt"), ["of no known type", "`NAME.npy`, `NAME.h5:/path/to/dataset`"]),
        (density("absent.npy"), ["pic.species[0].density.file", "cannot read"]),
        (cloud("short.npz"), ["2 values of `y` for 3 particles", "pic.species[0].particles.file"]),
        (cloud("far.npz"), ["no particle of `far.npz` is in the box", "units of the input"]),
        (cloud("zero.npz"), ["0 as `weight` of particle 0", "above 0"]),
        (cloud("beam.csv"), ["of no known type", "numpy.savez"]),
    ] {
        let told = refusal(table, folder.path());
        assert!(texts.iter().all(|t| told.contains(t)), "{told}");
    }
    let both: Config =
        serde_json::from_value(plane(json!({ "name": "e", "particles_per_cell": 4, "particles": { "file": "a.npz" } }))).unwrap();
    assert!(both.check()[0].to_string().contains("leave `particles_per_cell` out"));
    let neither: Config = serde_json::from_value(plane(json!({ "name": "e" }))).unwrap();
    assert!(neither.check()[0].to_string().contains("nothing says how many particles `e` has"));
    let bad = json!({ "name": "e", "particles_per_cell": 4, "density": { "file": "n.npy", "spacing": [0.0, 1.0], "scale": 1.0 } });
    let spacing: Config = serde_json::from_value(plane(bad)).unwrap();
    assert!(spacing.check()[0].to_string().contains("2 finite numbers above 0"));
}

/// A GPU takes particles and profiles of files as a CPU does.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_gpu_takes_particles_of_files() {
    let Some(cuda) = testing::gpu() else { return };
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "n.npy", [32, 16], |x, y| 1.0 + 0.1 * x + 0.05 * y);
    let at = |seed: u64, k: u64| (k.wrapping_mul(seed) % 7919) as f64 / 7919.0;
    let of = |seed: u64, length: f64| (0..20_000).map(|k| length * at(seed, k)).collect::<Vec<f64>>();
    let columns =
        [("x", of(2741, 8.0)), ("y", of(3571, 4.0)), ("ux", of(4397, 0.2)), ("weight", of(5153, 1e-3).iter().map(|w| w + 1e-4).collect())];
    cloud(folder.path(), "cloud.npz", &columns);
    for species in [
        json!({ "name": "e", "tagged": true, "particles": { "file": "cloud.npz" } }),
        json!({ "name": "e", "tagged": true, "particles_per_cell": 9, "density": { "file": "n.npy" }, "momentum": { "thermal": 0.1 } }),
    ] {
        let [host, gpu] = [Device::Cpu(Cpu::new(2).unwrap()), Device::Cuda(cuda.clone())].map(|device| {
            let p = particles(&mut on(plane(species.clone()), folder.path(), device).unwrap());
            let number = |k: usize| [p.s[k], p.t[k], p.u[0][k]].map(f64::to_bits);
            let mut all: Vec<_> = (0..p.len()).map(|k| (p.tag[k], [p.i[k], p.j[k]], number(k), p.weight[k].to_bits())).collect();
            all.sort_unstable();
            all
        });
        assert!(host.len() > 4000 && host.len() == gpu.len());
        for (a, b) in host.iter().zip(&gpu) {
            assert_eq!((a.0, a.1, a.2), (b.0, b.1, b.2));
            // Weights are integers of a unit that follows the heaviest particle (integers.rs).
            assert!((f64::from_bits(a.3) / f64::from_bits(b.3) - 1.0).abs() < 1e-5);
        }
    }
}
