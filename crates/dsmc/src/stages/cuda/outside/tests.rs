//! The kernels on the CPU: what they copy has the bits of records, and what they put comes back.

use std::path::Path;

use serde_json::{Value, json};
use zellige_engine::cuda::Properties;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Record, Values};
use zellige_engine::testing::host::Host;

use super::super::arguments::{Columns, Store};
use super::super::batch_arguments::{Batches, Shown};
use super::super::batches::{molecules, rates, speeds};
use super::super::outside_arguments::{Given, Outside};
use super::super::program::{KernelConfig, copies};
use super::super::tiling::{self, Tiling};
use crate::config::Config;
use crate::flow::Flow;
use crate::output;
use crate::sampling::{self, FILLED};
use crate::stages::Wanted;

/// A flow past a body at rest, after some batches.
fn flow(species: &Value, more: &Value) -> (Config, Flow) {
    let mut table = json!({ "dt": 2e-7, "steps": 40, "particles_per_cell": 9, "species": species, "sampling": { "start": 10, "batches": 5 },
        "grid": { "cells": [13, 9], "size": [0.013, 0.009] }, "gas": { "density": 3e21, "temperature": 1400.0, "velocity": [400.0, 0.0, 0.0] },
        "boundary": { "all": "stream" } });
    more.as_object().unwrap().iter().for_each(|(key, value)| table[key] = value.clone());
    let config: Config = serde_json::from_value(table).unwrap();
    let mut flow = Flow::new(&config, Path::new(""), 1, &Device::Cpu(Cpu::new(1).unwrap())).unwrap();
    (0..config.steps).for_each(|_| flow.advance(&mut Profiler::off()).unwrap());
    (config, flow)
}

fn mixture() -> Value {
    json!([{ "name": "N2", "fraction": 0.7 }, { "name": "Ar", "fraction": 0.3 }])
}

fn layout(flow: &Flow) -> (KernelConfig, Tiling) {
    let config = tiling::kernel_config(&flow.model, &Properties::usual("sm_90").unwrap());
    (config, Tiling::new(&flow.model.grid, config.shift, config.layers))
}

/// The kernels for the CPU, whose header has not all types of CUDA.
fn compiled(config: &KernelConfig) -> Option<Host> {
    let mut recipe = copies(config);
    recipe.sources.insert(0, "struct int2 {\n    int x, y;\n};\n".into());
    Host::compile(&recipe)
}

/// Averages as they lie on a device.
struct OnDevice {
    all: Vec<f64>,
    square: Vec<f64>,
    filled: Vec<u32>,
    volume: Vec<f64>,
    relative: Vec<f32>,
}

fn on_device(flow: &Flow, config: &KernelConfig, tiling: &Tiling) -> OnDevice {
    let (model, samples) = (&*flow.model, &flow.samples);
    let (species, cells, stride) = (model.species.len(), tiling.padded_cells(), tiling.len() * config.keys());
    let (kept, sums, width) = (model.collisions.kept(), model.collisions.sums(), sampling::width(model));
    let lines = sampling::sections::lines(model);
    let (square, filled) = samples.scatter();
    let mut found = OnDevice {
        all: vec![0.0; kept * stride],
        square: vec![0.0; width * cells],
        filled: vec![0; lines * cells],
        volume: vec![0.0; cells],
        relative: vec![1.0; cells],
    };
    for cell in 0..model.grid.len() {
        let (at, c) = (tiling.tile_and_slot(model.grid.cell(cell)), tiling.padded_index(model.grid.cell(cell)));
        for (s, of_species) in samples.sums(model, cell).chunks_exact(sums).enumerate() {
            (0..kept).for_each(|q| found.all[q * stride + at.0 * config.keys() + at.1 * species + s] = of_species[q]);
        }
        (0..width).for_each(|q| found.square[q * cells + c] = square[cell * width + q]);
        (0..lines).for_each(|line| found.filled[line * cells + c] = filled[cell * lines + line] as u32);
        (found.volume[c], found.relative[c]) = (model.cell_volume(cell), model.relative(cell) as f32);
    }
    found
}

/// Every average and every error has the bits of the records, but for powers of the temperature.
fn averages_have_the_bits_of_records(species: &Value, more: &Value) {
    let (_, flow) = flow(species, more);
    let (model, (config, tiling)) = (&*flow.model, layout(&flow));
    let Some(host) = compiled(&config) else { return };
    let mut device = on_device(&flow, &config, &tiling);
    let (molecules, rates, speeds) = (molecules(model), rates(model), speeds(model));
    let batches = flow.samples.batches;
    assert!(batches > 1);
    let argument = Batches {
        fresh: 0,
        all: device.all.as_mut_ptr() as u64,
        square: device.square.as_mut_ptr() as u64,
        filled: device.filled.as_mut_ptr() as u64,
        volume: device.volume.as_ptr() as u64,
        relative: device.relative.as_ptr() as u64,
        molecules: molecules.as_ptr() as u64,
        rates: rates.as_ptr() as u64,
        speeds: speeds.as_ptr() as u64,
        stride: (tiling.len() * config.keys()) as u64,
        cells: tiling.padded_cells() as u64,
        count: (batches + 1) as f64,
        samples: (flow.samples.closed() / batches) as f64,
        weight: model.weight,
    };
    // SAFETY: the parameters of the kernel, whose threads stay within the lists.
    let show = unsafe { host.kernel::<unsafe extern "C" fn(Batches, Shown, *mut f64)>("show") };
    let mut seen = 0;
    for record in output::records(&flow) {
        let Record::Field(field) = record else { continue };
        let Some(Wanted { value, line, needs, error, by_particles }) = output::wanted_of(&flow, &field.name) else {
            assert!(field.name.starts_with("mach") || field.name.starts_with("knudsen"), "{}", field.name);
            continue;
        };
        let shown = Shown {
            value: value as u32,
            line: line as u32,
            needs,
            error: u32::from(error),
            by_particles: u32::from(by_particles),
            filled: FILLED.min(batches) as u32,
            cells: tiling.cells.map(|n| n as u32),
            tiles: tiling.tiles[0] as u32,
        };
        let mut found = vec![0.0; model.grid.len()];
        let out = found.as_mut_ptr();
        // SAFETY: as above.
        host.launch([found.len().div_ceil(128) as u32, 1, 1], [128, 1, 1], &|| unsafe { show(argument, shown, out) });
        let Values::F64(wanted) = field.values else { panic!() };
        // Powers of the temperature are made of a table of two.
        let close = |a: f64, b: f64| field.name == "free_path" && (a - b).abs() <= 1e-12 * b.abs();
        for (cell, (a, b)) in found.iter().zip(&wanted).enumerate() {
            assert!(a.to_bits() == b.to_bits() || close(*a, *b), "{} of cell {cell}: {a:e} where {b:e} is recorded", field.name);
        }
        seen += usize::from(wanted.iter().any(|v| v.is_finite()));
    }
    assert!(seen > 20, "{seen} fields with values");
}

#[test]
fn averages_of_a_mixture_past_a_body_have_the_bits_of_records() {
    let outline = json!({ "shape": "polygon", "vertices": [[0.004, 0.002], [0.0085, 0.0042], [0.004, 0.0055]] });
    let body = json!([{ "name": "wedge", "outline": outline, "wall": { "temperature": 500.0 } }]);
    averages_have_the_bits_of_records(&mixture(), &json!({ "bodies": body }));
}

#[test]
fn averages_of_modes_and_weights_have_the_bits_of_records() {
    averages_have_the_bits_of_records(&json!([{ "name": "CO2" }]), &json!({ "cell_weights": "1+floor(400*y)" }));
}

/// Particles of a species in their order among those of others, tile by tile; velocities in both precisions.
#[test]
fn particles_come_and_velocities_go() {
    let (_, mut flow) = flow(&mixture(), &json!({}));
    let (config, tiling) = layout(&flow);
    let Some(host) = compiled(&config) else { return };
    let (p, grid) = (flow.stages.particles().unwrap(), flow.model.grid.clone());
    let of = |k: usize| tiling.tile_and_slot(grid.cell(p.cell[k] as usize));
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by_key(|k| of(*k).0);
    let mut first = vec![0_u32; tiling.len() + 1];
    for k in &order {
        first[of(*k).0 + 1] += 1;
    }
    (0..tiling.len()).for_each(|t| first[t + 1] += first[t]);
    let species = config.species;
    let mut key: Vec<u16> = order.iter().map(|k| (of(*k).1 * species + usize::from(p.species[*k])) as u16).collect();
    let arranged = |column: &[f32]| order.iter().map(|k| column[*k]).collect::<Vec<f32>>();
    let (mut offset, mut velocity) = (p.offset.each_ref().map(|c| arranged(c)), p.velocity.each_ref().map(|c| arranged(c)));
    let mut expected = velocity.clone();
    let [x, y] = offset.each_mut().map(|c| c.as_mut_ptr() as u64);
    let [vx, vy, vz] = velocity.each_mut().map(|c| c.as_mut_ptr() as u64);
    let now = Columns { x, y, vx, vy, vz, rotation: 0, level: 0, key: key.as_mut_ptr() as u64, tag: 0 };
    let store = Store { now, first: first.as_mut_ptr() as u64, tiles: tiling.tiles.map(|n| n as i32), ..bytemuck::Zeroable::zeroed() };
    let tiles = tiling.len() as u32;
    // SAFETY: the parameters of the kernels, whose threads stay within the columns.
    let (count, read, put, fastest) = unsafe {
        (
            host.kernel::<unsafe extern "C" fn(Store, u32, *mut u32)>("count_species"),
            host.kernel::<unsafe extern "C" fn(Store, Outside)>("read_species"),
            host.kernel::<unsafe extern "C" fn(Store, Given, *mut u32)>("put_velocities"),
            host.kernel::<unsafe extern "C" fn(Store, *mut f64)>("fastest_of_tiles"),
        )
    };
    for s in 0..species {
        let own: Vec<usize> = order.iter().copied().filter(|k| usize::from(p.species[*k]) == s).collect();
        let mut counts = vec![0_u32; tiling.len()];
        let to = counts.as_mut_ptr();
        // SAFETY: as above.
        host.launch([tiles, 1, 1], [256, 1, 1], &|| unsafe { count(store, s as u32, to) });
        assert_eq!(counts.iter().sum::<u32>() as usize, own.len());
        let firsts: Vec<u64> = counts.iter().scan(0, |sum, n| Some(std::mem::replace(sum, *sum + u64::from(*n)))).collect();
        let mut columns = vec![vec![f64::NAN; own.len()]; 5];
        let [x, y, vx, vy, vz] = std::array::from_fn(|k| columns[k].as_mut_ptr() as u64);
        let (firsts, species) = (firsts.as_ptr() as u64, s as u32);
        let outside = Outside { firsts, position: [x, y], velocity: [vx, vy, vz], origin: grid.origin, h: grid.h, species };
        // SAFETY: as above.
        host.launch([tiles, 1, 1], [256, 1, 1], &|| unsafe { read(store, outside) });
        for (n, k) in own.iter().enumerate() {
            let [x, y] = grid.position(grid.cell(p.cell[*k] as usize), [0, 1].map(|d| f64::from(p.offset[d][*k])));
            let wanted = [x, y, p.velocity[0][*k].into(), p.velocity[1][*k].into(), p.velocity[2][*k].into()];
            assert_eq!(std::array::from_fn::<f64, 5, _>(|c| columns[c][n]), wanted, "particle {n} of species {s}");
        }
        // All of them slower, then one of them faster than ever.
        let slower: Vec<f32> = own.iter().map(|k| 0.5 * p.velocity[0][*k]).collect();
        let mut fast: Vec<f64> = slower.iter().map(|v| f64::from(*v)).collect();
        let put = |given: Given| {
            let mut faster = 0_u32;
            let flag = &raw mut faster;
            // SAFETY: as above.
            host.launch([tiles, 1, 1], [256, 1, 1], &|| unsafe { put(store, given, flag) });
            faster
        };
        assert_eq!(put(Given { firsts, single: [slower.as_ptr() as u64, 0, 0], wide: [0; 3], species }), 0);
        let last = fast.len() - 1;
        fast[last] = 9e4;
        assert_eq!(put(Given { firsts, single: [0; 3], wide: [fast.as_ptr() as u64, 0, 0], species }), 1);
        let mut largest = vec![0.0; tiling.len()];
        let to = largest.as_mut_ptr();
        // SAFETY: as above.
        host.launch([tiles, 1, 1], [256, 1, 1], &|| unsafe { fastest(store, to) });
        let (n, k) = (order.iter().position(|k| *k == own[last]).unwrap(), own[last]);
        let speed = (9e4_f64.powi(2) + f64::from(p.velocity[1][k]).powi(2) + f64::from(p.velocity[2][k]).powi(2)).sqrt();
        assert_eq!(largest.into_iter().fold(0.0, f64::max), speed);
        order
            .iter()
            .enumerate()
            .filter(|(_, k)| usize::from(p.species[**k]) == s)
            .for_each(|(at, k)| expected[0][at] = 0.5 * p.velocity[0][*k]);
        expected[0][n] = 9e4;
        assert!(velocity == expected, "species {s}");
        // The next species finds none that is faster still.
        (velocity[0][n], expected[0][n]) = (0.0, 0.0);
    }
}
