//! Model of a run in parts: what each has of the domain, and what goes between them in a step.

use std::ops::Range;

use zellige_engine::device::Device;
use zellige_engine::error::Result;
use zellige_engine::links::Division;
use zellige_engine::sim::Plan;

use crate::grid::{ABOVE, BELOW};
use crate::setup::{Load, Model};
use crate::stability::Motion;
use crate::stages::{self, Precision, Setup};

/// Places along an axis that are looked at for how the particles lie.
const PLACES: usize = 256;
/// Time of a cell over that of a particle, as in the forecast of a step.
const CELL: f64 = 0.9;

/// Expected particles in a cell whose centre is at `position`.
fn in_cell(load: &Load, position: [f64; 2]) -> f64 {
    let density = load.density.at(position);
    let full = if load.listed.is_some() { density / load.species.weight } else { load.per_cell as f64 * density / load.reference };
    if load.species.weighted && load.listed.is_none() && density > 0.0 { load.per_cell as f64 } else { full.max(0.0) }
}

/// Work of each part over the work of all, particles and cells at the start.
fn shares_of_work(model: &Model, shares: &[[Range<usize>; 2]]) -> Vec<f64> {
    let places = |range: &Range<usize>| range.clone().step_by(range.len().div_ceil(PLACES).max(1));
    let work = |[x, y]: &[Range<usize>; 2]| -> f64 {
        let at = |(i, j): (usize, usize)| {
            let position = model.position(i as f64 + 0.5, j as f64 + 0.5);
            CELL + model.loads.iter().map(|load| in_cell(load, position)).sum::<f64>()
        };
        let places = places(y).flat_map(|j| places(x).map(move |i| (i, j)));
        let (sum, count) = places.map(at).fold((0.0, 0.0), |(sum, count), w| (sum + w, count + 1.0));
        sum / f64::max(count, 1.0) * (x.len() * y.len()) as f64
    };
    let all: Vec<f64> = shares.iter().map(work).collect();
    let sum: f64 = all.iter().sum();
    all.into_iter().map(|w| w / sum).collect()
}

/// Division among `parts` parts on devices like `device`.
pub(crate) fn of(model: &Model, setup: &Setup, device: &Device, plan: &Plan, parts: usize) -> Result<Division> {
    let grid = &setup.grid;
    let shares = stages::shares(setup, device, parts)?;
    let of_work = shares_of_work(model, &shares.cells);
    let most = of_work.iter().copied().fold(0.0, f64::max);
    let size = if setup.precision == Precision::F32 { 4.0 } else { 8.0 };
    let all_nodes = shares.all_nodes;
    // Axis along which most leave, and cells of a side.
    let axis = usize::from(!all_nodes);
    let across = if all_nodes { 0.0 } else { grid.cells[0] as f64 };
    // Two parts that go round are beside each other twice, and still send one message.
    let others = (parts - 1) as f64;
    let partners = if all_nodes { others } else { others.min(2.0) };
    let sides = if grid.periodic(axis) && !all_nodes && parts > 1 { 2.0 } else { partners };
    let (mut bytes, mut rounds) = (0.0, 0.0);
    for load in model.loads.iter().filter(|l| l.species.mobile) {
        // Currents on the nodes of others that its particles reach, in one message with those that leave.
        let reach = (BELOW + ABOVE) as f64 / 2.0;
        let motion = Motion::new(model, load);
        let leave = (0.5 * motion.speed * grid.dt / grid.h[axis]).min(1.0);
        let in_row = of_work.len() as f64 * most * model.at_start[load.number] as f64 / grid.cells[axis] as f64;
        let particle = (5.0 + f64::from(u8::from(load.species.weighted))) * size + 5.0 + 8.0 * f64::from(u8::from(load.species.tagged));
        // With all nodes at all parts, each tells all others the currents of its tiles: on a line two rows, or four.
        let of_tiles = |[x, y]: &[usize; 2]| x * if grid.dimensions > 1 { *y } else { 2 * setup.order as usize };
        let nodes = if all_nodes { shares.reached.iter().map(of_tiles).max().unwrap_or(0) as f64 } else { reach * across };
        bytes += sides * (3.0 * nodes * size + leave * in_row * particle);
        rounds += 1.0;
    }
    // The electric field in the middle of the step, and a row of the current for each pass of its filter.
    let passes = f64::from(setup.smoothing[1].passes + u32::from(setup.smoothing[1].compensated));
    if !all_nodes {
        bytes += sides * (3.0 * (BELOW + ABOVE) as f64 / 2.0 + passes * 3.0) * across * size;
        // And deposits on guards beyond the domain.
        rounds += 2.0 + passes;
    }
    if let Device::Cuda(_) = device {
        // Currents go with all particles that leave, what all passes reach at once, and fields in each half step unless they are fused.
        rounds = 1.0 + f64::from(u8::from(passes > 0.0)) + if stages::cuda::fuses_fields(setup) { 1.0 } else { 3.0 };
    }
    let cells = (grid.cells[0] * grid.cells[1]) as f64;
    let repeated = if all_nodes { CELL * cells / (CELL * cells + plan.items as f64) } else { 0.0 };
    let fields = if all_nodes { 0.2 * plan.memory as f64 } else { 0.0 };
    Ok(Division {
        cut: shares.told(),
        imbalance: most * parts as f64,
        repeated,
        memory: (fields + (plan.memory as f64 - fields) * most) as u64,
        rounds: if parts == 1 { 0.0 } else { rounds },
        messages: partners * rounds,
        bytes,
    })
}
