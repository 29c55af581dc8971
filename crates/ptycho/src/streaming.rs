//! Announcements before the start of a run whose frames do not fit on the GPU.

use zellige_engine::cuda::Cuda;
use zellige_engine::device::Device;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::text::bytes;

use crate::config::Config;
use crate::memory::{MemoryBudget, ObjectUpdate};
use crate::model::Model;
use crate::stages::cuda::stream::layout::FRAMES;
use crate::stages::cuda::stream::plan;
use crate::stages::scheme::ObjectSumChoice;

/// The memory limits of a reconstruction and of a half-scan's: half-scans have half of the frames, and there are two. Each of the
/// `parts` of a run that share a host has its share of them.
pub fn memory_budgets(config: &Config, device: &Device, parts: usize) -> [MemoryBudget; 2] {
    let parts = if config.frc { [0.5, 0.25] } else { [1.0, 0.0] }.map(|share| share / parts as f64);
    let mut budgets = parts.map(|part| config.memory_budget(part));
    // Free memory is shared before anybody takes of it.
    if let (Device::Cuda(gpu), true) = (device, config.frc && config.memory.bytes().is_none()) {
        let free = gpu.memory_free().unwrap_or(gpu.memory()) as f64 * 0.9;
        budgets.iter_mut().zip(parts).for_each(|(budget, part)| budget.allowance = Some((free * part) as u64));
    }
    budgets
}

/// Bytes on the GPU, and lines of the plan where frames come and go.
pub fn outlined(config: &Config, model: &Model, gpu: &Cuda) -> Result<(u64, Vec<(String, String)>)> {
    let [budget, _] = memory_budgets(config, &Device::Cuda(gpu.clone()), 1);
    let times = if config.frc { 2 } else { 1 };
    let batch = budget.demand.largest_batch(model.views.len());
    if batch > FRAMES {
        let problem = Problem::new("engine", format!("batches of {batch} views: a GPU takes {FRAMES} at once"));
        return Err(Error::input("ptycho", problem.hint("reduce `batch` of the engine, or use `--device cpu`")));
    }
    let summed = config.engine.iter().any(|e| e.name.sums_objects());
    let scheme = |choice: &ObjectSumChoice| {
        let how = if choice.atomic { "by atomic additions, in no order" } else { "gathered by tile, in one order" };
        ("object sums".to_owned(), format!("{how}: {}", choice.why))
    };
    let Some(streaming) = budget.streaming_plan(model, gpu) else {
        let lines = if summed { vec![scheme(&budget.object_sums(model, gpu))] } else { Vec::new() };
        return Ok((times * budget.resident(model, gpu), lines));
    };
    let outline = plan::outline(model, gpu.properties(), streaming)?;
    let (layout, count) = (outline.layout, outline.layout.blocks());
    let kept = match (budget.demand.waves, streaming.half) {
        (true, true) => "frames, and waves in half precision",
        (true, false) => "frames and waves",
        (false, _) => "frames, no waves",
    };
    let blocks = match layout.streamed {
        0 => format!("{count} blocks of {} frames, all on the GPU: {kept}", layout.block),
        n => format!("{n} of {count} blocks of {} frames are streamed, the others are resident: {kept}", layout.block),
    };
    let mut lines = vec![("blocks".to_owned(), blocks)];
    if summed {
        let why = match config.object_update {
            ObjectUpdate::Atomic => "streamed blocks use it regardless of `object_update`",
            _ => "streamed blocks keep to it",
        };
        lines.push(scheme(&ObjectSumChoice { atomic: false, why: why.into() }));
    }
    if layout.streamed > 0 {
        let rates = gpu.host_rates()?;
        let [up, down] = outline.traffic.map(|n| (times * n) as f64);
        let seconds = (up / rates[0]).max(down / rates[1]);
        let [to, from] = rates.map(|r| r * 1e-9);
        lines.push((
            "copies".to_owned(),
            format!(
                "{} to the GPU and {} back an iteration (an overlap loop of one pass): {:.1} ms at the {to:.1} and {from:.1} GB/s measured",
                bytes(up),
                bytes(down),
                seconds * 1e3
            ),
        ));
        lines.push(("host".to_owned(), format!("{} of page-locked memory", bytes((times * outline.host) as f64))));
    }
    Ok((times * outline.memory, lines))
}
