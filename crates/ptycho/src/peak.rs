//! Peak host memory of a run, computed from its input: what is alive in each part of it, value by value, and what any
//! process has.

use zellige_engine::device::Device;

use crate::config::Config;
use crate::memory::MemoryBudget;
use crate::model::Model;
use crate::simulate::SimulateConfig;
use crate::stages;
use crate::{data, setup, solver, start};

/// Memory of a process besides its arrays: a run of nine frames of 16 x 16 pixels has 14.2 MiB (x86-64 Linux), 13 of them pages of
/// the program that it executed.
const FLOOR: u64 = 14 << 20;

/// Returns memory of freed small arrays that the C library keeps for later to the system, where that is glibc. Takes a millisecond
/// or so.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it has no condition, and moves nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Bytes at the most on the CPU, half-scans and results included; mapped files excluded. `truths`: modes of the
/// truths of scans, with which objects and probes are compared.
pub(crate) fn of(config: &Config, model: &Model, device: &Device, budget: &MemoryBudget, truths: &[usize]) -> u64 {
    let threads = device.threads() as u64;
    let own = model.own().len();
    let pixels = (own * model.counted()) as u64;
    let moduli = 4 * pixels;
    let mapped = budget.folder_for(model).map_or(0, |_| stages::mapped(model, &budget.demand));
    // A thread that never has a view does not touch its scratch memory.
    let scratch = threads.min(own as u64) * stages::cpu::scratch_bytes(model, &budget.demand);
    let mut held = moduli + stages::held(model, &budget.demand) + scratch - mapped;
    if config.frc {
        // Each half of the views, but whole objects and probes.
        let views = model.views.iter().step_by(2).copied().collect();
        let half = Model { views, share: model.share.of_kept(|j| j % 2 == 0), ..stages::without_frames(model) };
        held += moduli + 2 * (stages::held(&half, &budget.demand) + scratch) - mapped;
    }
    if config.output.local_errors {
        held = held.saturating_add(config.iterations().saturating_mul(12 * model.views.len() as u64));
    }
    held = held.saturating_add(if truths.is_empty() { 0 } else { of_truths(model, truths) });
    let moment = stages::passing(model, &budget.demand).max(at_end(config, model, threads, truths));
    let most = making(config, model, threads).max(setting_up(config, model, threads)).max(held.saturating_add(moment));
    FLOOR.saturating_add(most)
}

/// Memory of the truths of scans.
fn of_truths(model: &Model, truths: &[usize]) -> u64 {
    8 * (model.object_len() / model.modes[1] + truths.iter().sum::<usize>() * model.pixels()) as u64
}

/// While scans are made or read: counts of all, and what the largest takes for a moment.
fn making(config: &Config, model: &Model, threads: u64) -> u64 {
    let layer = (model.object_len() / model.modes[1]) as u64;
    let made = config.scan.iter().filter_map(|s| s.simulate.as_ref());
    let moment = made.map(|made| SimulateConfig::memory(made, layer, threads)).max().unwrap_or(0);
    let read = if config.scan.iter().any(|s| s.simulate.is_none() && !s.streams()) { data::BLOCK_BYTES } else { 0 };
    counts(config, model) + moment.max(read)
}

/// Counts as scans hold them: of 16 bits where they are whole, in single precision where there is no noise; nothing where they stay
/// in their file.
fn counts(config: &Config, model: &Model) -> u64 {
    let ends = model.scans.iter().skip(1).map(|s| s.1).chain([model.views.len()]);
    let of = |((scan, (_, first)), last): ((&crate::config::ScanConfig, &(String, usize)), usize)| {
        let bytes = match &scan.simulate {
            Some(made) if !made.noise => 4,
            None if scan.streams() => 0,
            _ => 2,
        };
        let own = model.own();
        bytes * ((own.end.clamp(*first, last) - own.start.clamp(*first, last)) * model.counted()) as u64
    };
    config.scan.iter().zip(&model.scans).zip(ends).map(of).sum()
}

/// While moduli are made of counts, and probes of moduli.
fn setting_up(config: &Config, model: &Model, threads: u64) -> u64 {
    let found = if model.begins.iter().any(|told| told.starts_with(start::mean::TOLD)) { start::mean::memory(model, threads) } else { 0 };
    let block = (setup::BLOCK.max(model.counted()) * size_of::<f32>()) as u64;
    let waves = 16 * (2 * model.object_len() + 2 * model.probe_len()) as u64;
    counts(config, model) + 4 * (model.own().len() * model.counted()) as u64 + block.max(found).max(waves)
}

/// Bytes that making the results takes for a moment, beside the state of the engines.
fn at_end(config: &Config, model: &Model, threads: u64, truths: &[usize]) -> u64 {
    let [object, probe] = [model.object_len(), model.probe_len()].map(|n| n as u64);
    // Arrays in single precision, once more for each archive; two pictures.
    let files = 1 + config.output.files.len() as u64;
    let written = 8 * files * (object + probe) + 8 * object / model.modes[1] as u64;
    let state = 16 * (object + probe);
    // Of each object what was lit, in doubles and as numbers to be sorted, and phases without a plane.
    let shown = 16 * probe + 32 * object / model.modes[1] as u64;
    let (mut moment, mut comparisons) = (written + state + shown, 0);
    if let Some(modes) = truths.iter().max() {
        let seen = (0..model.storages.len()).map(|number| crate::half_sets::compared_pixels(model, number) as u64);
        let seen = seen.sum::<u64>();
        // Both on the same pixels, and three more to bring them together beside the state; copies of both for their rings.
        moment = moment.max(written + (80 * seen + state).max(112 * seen));
        comparisons = 32 * seen;
        if model.modes[0].max(*modes) > 1 {
            // Mixed states in doubles, and a mode of each that is looked at, beside the state.
            moment = moment.max(comparisons + state + 16 * ((model.modes[0] + modes + 2) * model.pixels()) as u64);
        }
    }
    // Modelled frames are looked at, one a thread.
    let frames = threads.min(solver::LOOKED_AT as u64).min(model.views.len() as u64) * 8 * model.counted() as u64;
    moment.max(comparisons + frames)
}
