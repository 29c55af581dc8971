//! Model of a run in parts: boxes of tiles, and the particles that leave them in a step.

use zellige_engine::device::Device;
use zellige_engine::links::{Block, Division};
use zellige_engine::sim::Plan;

use super::{cpu, cuda};
use crate::model::Model;
use crate::walls::BOLTZMANN;

/// Bytes of a particle on its way: position, velocity and keys, with the tile that it is for.
const PARTICLE: f64 = 34.0;

/// Division among `parts` parts, each on a device like this one.
pub(crate) fn of(model: &Model, plan: &Plan, device: &Device, parts: usize) -> Division {
    let (cut, tile) = match device {
        Device::Cpu(_) => cpu::cut(model, parts),
        Device::Cuda(gpu) => cuda::cut(model, gpu.properties(), parts),
    };
    let free = |block: &Block| -> f64 {
        let cells = |axis: usize| block.lower[axis] * tile[axis]..(block.upper[axis] * tile[axis]).min(model.grid.cells[axis]);
        cells(1).flat_map(|j| cells(0).map(move |i| [i, j])).map(|cell| model.geometry.fraction(model.grid.index(cell))).sum()
    };
    let blocks: Vec<Block> = (0..parts).map(|part| cut.block(part)).collect();
    let work: Vec<f64> = blocks.iter().map(free).collect();
    let all: f64 = work.iter().sum();
    let most = work.iter().copied().fold(0.0, f64::max);
    // Through a side between cells go n v/4 of a gas at rest, or what its drift carries.
    let [temperature, drift] = model.hottest;
    let lightest = model.species.iter().map(|s| s.mass).fold(f64::INFINITY, f64::min);
    let mean = (8.0 * BOLTZMANN * temperature / (std::f64::consts::PI * lightest)).sqrt();
    let gone = |axis: usize| ((0.25 * mean + 0.5 * drift) * model.dt / model.grid.h[axis]).min(1.0);
    let in_cell = model.expected / all.max(1.0);
    let sent = |block: &Block| -> f64 {
        let side = |axis: usize| {
            let [lower, upper] = [block.lower[axis], block.upper[axis]];
            let open = usize::from(lower > 0) + usize::from(upper < cut.lattice()[axis]);
            (open * block.range(1 - axis).len() * tile[1 - axis]) as f64 * gone(axis)
        };
        (side(0) + side(1)) * in_cell * PARTICLE
    };
    // On CPUs messages are handed on; on GPUs any two parts have slabs, which go whole, with room for several times what leaves.
    let (halvings, leavers) = ((parts as f64).log2().ceil(), blocks.iter().map(sent).fold(0.0, f64::max));
    let (rounds, messages, bytes) = match device {
        Device::Cpu(_) => (halvings, halvings, leavers),
        Device::Cuda(_) => (f64::from(u8::from(parts > 1)), parts as f64 - 1.0, cuda::ROOM as f64 * leavers),
    };
    let words = |block: &Block| {
        let side = |axis: usize| {
            format!("{}-{}", block.lower[axis] * tile[axis], (block.upper[axis] * tile[axis]).min(model.grid.cells[axis]) - 1)
        };
        format!("{} x {}", side(0), side(1))
    };
    // Of more parts than tiles the last ones have none.
    let busy: Vec<&Block> = blocks.iter().filter(|block| !block.is_empty()).collect();
    let shown: Vec<String> = busy.iter().take(4).map(|block| words(block)).collect();
    let more = if busy.len() > 4 { format!(", and {} more", busy.len() - 4) } else { String::new() };
    let idle = if parts > busy.len() { format!("; {} of {parts} parts have none", parts - busy.len()) } else { String::new() };
    Division {
        cut: format!("boxes of cells {}{more}{idle}", shown.join(", ")),
        imbalance: most * parts as f64 / all,
        repeated: 0.0,
        memory: (plan.memory as f64 * most / all) as u64,
        rounds,
        messages,
        bytes,
    }
}
