//! Most memory of the host that a run has at once, told from its input: what is alive in each part of it, value by value. A process takes [`FLOOR`] besides.

use zellige_engine::device::Device;
use zellige_engine::parallel;

use crate::config::{Config, Precision};
use crate::model::Model;
use crate::simulate::SimulateConfig;
use crate::stages::{self, Room};
use crate::{data, setup, start};

/// What a process takes before it has anything: its code, the input, tables of the file formats. Measured on x86-64 Linux, with one thread: 10 to 13 MiB.
pub const FLOOR: u64 = 12 << 20;

/// What reading scans from files leaves with the process, of blocks of frames and of the readers: measured, 10 to 15 MiB.
const LEFT: u64 = 12 << 20;

/// Gives the system back what was freed and the C library keeps for later, where that is glibc: tens of megabytes after a scan was read. Takes a millisecond or so.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it has no condition, and moves nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Bytes at the most on the processor, half-scans and results included; nothing of what is mapped from files. `compared`: some scan has a truth.
pub(crate) fn of(config: &Config, model: &Model, device: &Device, room: &Room, compared: bool) -> u64 {
    let double = config.precision == Precision::F64;
    let threads = device.threads() as u64;
    let pixels = (model.views.len() * model.counted()) as u64;
    let moduli = 4 * pixels;
    let mapped = room.folder_for(model, double).map_or(0, |_| stages::mapped(model, room.demand.waves, double));
    let rooms = threads * stages::cpu::room(model, room.demand.likelihood, double);
    let mut held = moduli + stages::held(model, &room.demand, double) + rooms - mapped;
    if config.frc {
        // Each half of the views, but whole objects and probes.
        let half = Model { views: model.views.iter().step_by(2).copied().collect(), ..stages::without_frames(model) };
        held += moduli + 2 * (stages::held(&half, &room.demand, double) + rooms) - mapped;
    }
    if config.output.local_errors {
        held = held.saturating_add(config.iterations().saturating_mul(12 * model.views.len() as u64));
    }
    held = held.saturating_add(if compared { truths(config, model) } else { 0 });
    if config.scan.iter().any(|s| s.simulate.is_none()) {
        held = held.saturating_add(LEFT);
    }
    let moment = stages::passing(model, &room.demand, double).max(at_end(config, model, compared));
    // Loops before the stages are there go over all cores.
    let cores = parallel::threads() as u64;
    making(config, model, cores).max(setting_up(config, model, cores)).max(held.saturating_add(moment))
}

/// What scans were made from, which objects and probes are compared with.
fn truths(config: &Config, model: &Model) -> u64 {
    let modes = config.scan.iter().map(|s| s.simulate.as_ref().map_or(1, |made| made.illumination.modes)).sum::<usize>();
    8 * (model.object_len() / model.modes[1] + modes * model.pixels()) as u64
}

/// While scans are made or read: counts of all, and what the largest takes for a moment.
fn making(config: &Config, model: &Model, threads: u64) -> u64 {
    let layer = (model.object_len() / model.modes[1]) as u64;
    let made = config.scan.iter().filter_map(|s| s.simulate.as_ref());
    let moment = made.map(|made| SimulateConfig::memory(made, layer, threads)).max().unwrap_or(0);
    let read = if config.scan.iter().any(|s| s.simulate.is_none() && !s.read.stream) { data::BLOCK_BYTES } else { 0 };
    counts(config, model) + moment.max(read)
}

/// Counts as scans hold them: of 16 bits where they are whole, in single precision where there is no noise; nothing where they stay in their file.
fn counts(config: &Config, model: &Model) -> u64 {
    let ends = model.scans.iter().skip(1).map(|s| s.1).chain([model.views.len()]);
    let of = |((scan, (_, first)), last): ((&crate::config::ScanConfig, &(String, usize)), usize)| {
        let bytes = match &scan.simulate {
            Some(made) if !made.noise => 4,
            None if scan.read.stream => 0,
            _ => 2,
        };
        bytes * ((last - first) * model.counted()) as u64
    };
    config.scan.iter().zip(&model.scans).zip(ends).map(of).sum()
}

/// While moduli are made of counts, and probes of moduli.
fn setting_up(config: &Config, model: &Model, threads: u64) -> u64 {
    let found = if model.begins.iter().any(|told| told.starts_with(start::mean::TOLD)) {
        start::mean::memory(model.modes[0] * model.pixels(), threads)
    } else {
        0
    };
    let block = (setup::BLOCK.max(model.counted()) * size_of::<f32>()) as u64;
    let waves = 16 * (2 * model.object_len() + 2 * model.probe_len()) as u64;
    counts(config, model) + 4 * (model.views.len() * model.counted()) as u64 + block.max(found).max(waves)
}

/// Bytes that making the results takes for a moment, beside the state of the engines.
fn at_end(config: &Config, model: &Model, compared: bool) -> u64 {
    let [object, probe] = [model.object_len(), model.probe_len()].map(|n| n as u64);
    // Arrays in single precision, once more for each archive; two pictures.
    let files = 1 + config.output.files.len() as u64;
    let written = 8 * files * (object + probe) + 8 * object / model.modes[1] as u64;
    let state = 16 * (object + probe);
    // Of each object what was lit, in doubles and as numbers to be sorted, and phases without a plane.
    let shown = 16 * probe + 32 * object / model.modes[1] as u64;
    let compared = if compared {
        let seen = (0..model.storages.len()).map(|number| crate::halves::compared(model, number) as u64);
        let seen = seen.sum::<u64>();
        // Both on the same pixels, and three more to bring them together beside the state; copies of both for their rings.
        (80 * seen + state).max(112 * seen)
    } else {
        0
    };
    written + compared.max(state + shown)
}
