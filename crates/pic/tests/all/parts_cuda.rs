//! Runs in several parts on one GPU: fields, charge and particles have the bits of a run in one part. Skipped without a GPU.
//!
//! Energies of particles are summed in the order in which lists hold them, which is not the same in two runs: these agree to
//! rounding.

use serde_json::{Value, json};
use zellige_engine::device::Device;
use zellige_engine::error::Result;
use zellige_engine::sim::Environment;
use zellige_engine::testing;
use zellige_pic::particles::Particles;
use zellige_pic::stages::{Component, Ledger};

use crate::parts::{Known, Results, charged, conducting, layered, moving, moving_periodic, on, periodic, table, the_current_survives};

/// Rounding of sums over up to 10^4 particles in another order, each to 1e-16 of the whole, and of what follows from them.
const ROUNDING: f64 = 1e-11;

/// Particles in an order of their own.
fn sorted(p: &Particles) -> Vec<[u64; 9]> {
    let bits = |column: &[f64], k: usize| column.get(k).map_or(0, |v| v.to_bits());
    let one = |k: usize| {
        let [x, y, z] = [0, 1, 2].map(|c| bits(&p.u[c], k));
        let tag = p.tag.get(k).copied().unwrap_or(0);
        [p.j[k].into(), p.i[k].into(), bits(&p.s, k), bits(&p.t, k), x, y, z, bits(&p.weight, k), tag]
    };
    let mut all: Vec<_> = (0..p.len()).map(one).collect();
    all.sort_unstable();
    all
}

fn near(a: f64, b: f64, scale: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= ROUNDING * scale.abs().max(a.abs()).max(b.abs())
}

fn known(one: &Known, other: &Known, what: &str) {
    for (a, b) in one.charge.iter().zip(&other.charge) {
        let first = a.iter().zip(b).position(|(a, b)| a != b);
        assert_eq!(first, None, "{what}: charge differs at this place of {}", a.len());
    }
    let (a, b) = (&one.account, &other.account);
    // Each exact but for the energy that a window's new column brings, which blocks add up.
    assert!(near(a.ledger.energy_in, b.ledger.energy_in, 0.0), "{what}: {} and {} came in", a.ledger.energy_in, b.ledger.energy_in);
    let ledger = Ledger { energy_in: a.ledger.energy_in, ..b.ledger };
    assert_eq!((a.ledger, a.work, a.radiated), (ledger, b.work, b.radiated), "{what}: accounts");
    assert_eq!((one.energies.electric, one.energies.magnetic), (other.energies.electric, other.energies.magnetic), "{what}");
    assert_eq!(one.energies.count, other.energies.count, "{what}: count");
    let total: f64 = one.energies.kinetic.iter().sum();
    for (a, b) in one.energies.kinetic.iter().zip(&other.energies.kinetic) {
        assert!(near(*a, *b, total), "{what}: kinetic energies {a} and {b}");
    }
    assert_eq!(one.rows.len(), other.rows.len(), "{what}");
    for (a, b) in one.rows.iter().zip(&other.rows) {
        for (a, b) in a.0.iter().zip(&b.0) {
            // Changes of an energy are differences of energies.
            assert!(a.name == b.name && near(a.value, b.value, total), "{what}: {} is {} and {}", a.name, a.value, b.value);
        }
    }
}

fn compare(one: &Results, other: &Results, what: &str) {
    for (component, (a, b)) in Component::ALL.iter().zip(one.components.iter().zip(&other.components)) {
        let first = a.iter().zip(b).position(|(a, b)| a != b);
        assert_eq!(first, None, "{what}: {} differs at this place of {}", component.name(), a.len());
    }
    for (a, b) in one.particles.iter().zip(&other.particles) {
        assert!(!a.is_empty() && sorted(a) == sorted(b), "{what}: particles differ, {} and {} of them", a.len(), b.len());
    }
    known(&one.known, &other.known, what);
}

/// A run of `steps` in one part and in several on one GPU, and on other numbers of parts from the half of the last.
fn same_on_one_gpu(mut table: Value, steps: u64, parts: &[usize]) -> Option<Results> {
    testing::gpu()?;
    let open = || -> Result<Environment> { Ok(Environment::new(Device::Cuda(zellige_engine::cuda::Cuda::open(0)?), ".", 7)) };
    let folder = tempfile::tempdir().unwrap();
    table["steps"] = json!(steps);
    let go = |parts: usize, to: u64, from: Option<&std::path::Path>| on(&open, &table, parts, to, from, folder.path());
    let one = go(1, steps, None);
    for parts in parts {
        compare(&one, &go(*parts, steps, None), &format!("{parts} parts"));
    }
    let last = parts[parts.len() - 1];
    go(last, steps / 2, None);
    let checkpoint = folder.path().join(format!("of{last}.zck"));
    for parts in [1, parts[0]] {
        let rest = go(parts, steps, Some(&checkpoint));
        let known = Known { rows: one.known.rows[steps as usize / 2..].to_vec(), ..one.known.clone() };
        compare(&Results { known, ..one.clone() }, &rest, &format!("from {last} parts on {parts}"));
    }
    Some(one)
}

/// One kernel advances the fields of such a plasma; each part has few rows, and one the only neighbour on both sides.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_plasma_in_parts_of_a_gpu() {
    for order in [1, 2] {
        let mut table = table(json!({}));
        table["order"] = json!(order);
        same_on_one_gpu(table, 24, &[2, 3, 8]);
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn the_current_is_in_checkpoints_of_a_gpu() {
    if testing::gpu().is_some() {
        the_current_survives(&|| Ok(Environment::new(Device::Cuda(zellige_engine::cuda::Cuda::open(0)?), ".", 7)));
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn filters_and_diagnostics_reach_into_other_parts() {
    same_on_one_gpu(periodic(), 24, &[2, 3, 5]);
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn walls_in_parts_of_a_gpu() {
    let Some(found) = same_on_one_gpu(layered(), 26, &[2, 8]) else { return };
    assert!(found.known.account.ledger.removed > 0 && found.known.account.work != 0.0);
    for order in [1, 2] {
        same_on_one_gpu(conducting(order), 16, &[3, 4]);
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn windows_in_parts_of_a_gpu() {
    for table in [moving(1), moving(2), moving_periodic()] {
        let Some(found) = same_on_one_gpu(table, 30, &[2, 4]) else { return };
        assert!(found.known.account.ledger.injected > found.known.account.ledger.removed);
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_charged_start_in_parts_of_a_gpu() {
    for boundary in [json!({}), json!({ "y": "reflecting", "x": "periodic" })] {
        same_on_one_gpu(charged(boundary), 12, &[2, 3]);
    }
}
