//! Forecast of the memory of a streamed run, before anything is allocated.

use zellige_engine::cuda::Properties;
use zellige_engine::error::Result;

use super::layout::{DeviceMemory, Layout};
use super::{sums, tile_ranges};
use crate::memory::KeptData;
use crate::model::Model;
use crate::stages::cuda::lists;
use crate::stages::cuda::multi_pass::{GROUP, ratios};
use crate::stages::cuda::program::{KernelConfig, TEAM, TILE_ROWS};
use crate::stages::cuda::subpixel::fixed_bytes;

/// Memory settings of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamingPlan {
    /// Bytes on the device.
    pub allowance: u64,
    /// Waves are kept in half precision.
    pub half: bool,
    /// Data that the engines keep.
    pub demand: KeptData,
}

/// Forecast of the memory and traffic of a streamed run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamingForecast {
    /// The blocks.
    pub layout: Layout,
    /// Bytes.
    pub need: DeviceMemory,
    /// Bytes on the device.
    pub memory: u64,
    /// Bytes in page-locked host memory.
    pub host: u64,
    /// Bytes to and from the device in an iteration: the frames once and the waves twice up and once down (an overlap loop of one
    /// pass), or the frames twice (gradient and line), or once.
    pub traffic: [u64; 2],
}

/// The model without its frames.
pub(crate) fn without_frames(model: &Model) -> Model {
    Model {
        storages: model.storages.clone(),
        views: model.views.clone(),
        shifts: model.shifts.clone(),
        mag: Vec::new(),
        transfer: model.transfer.clone(),
        filter: model.filter.clone(),
        start: model.start.clone(),
        scans: model.scans.clone(),
        begins: Vec::new(),
        share: model.share.clone(),
        ..*model
    }
}

/// Bytes of the waves and planes of a batch of views, where frames may go in pieces (`batches.rs`), and of sub-pixel shifts.
fn batch_views(model: &Model, device: &Properties, demand: KeptData) -> usize {
    let (config, number) = (KernelConfig::of(model, device, demand.double), demand.number());
    let (group, wave) = group(model, number);
    if config.fused() {
        return shifted(model, &config, demand);
    }
    // Ratios of moduli of the Fourier step's groups, which are twice as large. Views see probes, and contribute to them.
    let own = if model.subpixel { 6 * number * model.modes[0] * model.pixels() } else { 0 };
    group * (3 * wave + (3 + 2) * number * model.counted() + own) + fixed_bytes(model, &config)
}

/// Views that pieces work on at a time, and bytes of the waves of each.
fn group(model: &Model, number: usize) -> (usize, usize) {
    let wave = 2 * number * model.pixels() * model.exits();
    ((GROUP / (2 * wave)).clamp(1, model.views.len().max(1)).min(4096), wave)
}

/// Bytes of sub-pixel shifts of frames in registers.
///
/// Positions are refined in pieces: two waves, three planes and a derivative of the probe a view.
fn shifted(model: &Model, config: &KernelConfig, demand: KeptData) -> usize {
    let number = demand.number();
    let (group, wave) = group(model, number);
    let refined = group * (2 * wave + 3 * number * model.counted() + 2 * number * model.modes[0] * model.pixels());
    fixed_bytes(model, config) + if model.subpixel && demand.positions { refined } else { 0 }
}

/// Bytes of the update of a batch of this many views: waves, planes, shifted probes, a direction as long as probe and object
/// with its norms, sums of the blocks of threads.
fn updated(model: &Model, batch: usize, number: usize) -> usize {
    if batch == 0 {
        return 0;
    }
    let pixels = model.pixels();
    let subpixel = if model.subpixel { 3 * 2 * number * model.modes[0] * pixels } else { 0 };
    let sums = 8 * pixels.div_ceil(4 * TEAM as usize);
    let whole = number * (2 * model.probe_len() + 3 * model.object_len()) + 3 * sums * model.views.len();
    whole + batch * (number * (2 * pixels * model.exits() + model.counted()) + subpixel + 5 * sums)
}

/// Bytes that do not depend on blocks: probes, objects and three more pairs of such, positions, lists, a few numbers a view, what a
/// batch takes.
fn fixed(model: &Model, device: &Properties, demand: KeptData) -> u64 {
    let number = demand.number();
    let (waves, batch) = (2 * number * (model.probe_len() + model.object_len()), demand.largest_batch(model.views.len()));
    let held = lists_and_sums(model, device.multiprocessors, number) + batch_views(model, device, demand) + updated(model, batch, number);
    (4 * waves + held + (4 << 20)) as u64
}

/// Bytes of lists of views and of sums of the probes.
fn lists_and_sums(model: &Model, multiprocessors: u32, number: usize) -> usize {
    let pixels = model.pixels();
    let tiles = [model.frame[0].div_ceil(TILE_ROWS) + 1, model.frame[1].div_ceil(32) + 1];
    let lists = model.views.len() * (8 * tiles[0] * tiles[1] + 256) + model.object_len() / 3;
    let [parts, _] = lists::probe_sums(model, multiprocessors, number);
    lists + number * (parts * pixels * (2 * model.modes[0] + 1) + 2 * model.probe_len())
}

/// Bytes of blocks with waves or without, `bytes` a pixel of the frames.
pub(super) fn need(
    model: &Model,
    device: &Properties,
    bytes: u64,
    waves: bool,
    StreamingPlan { half, demand, .. }: StreamingPlan,
) -> DeviceMemory {
    let (counted, values) = (model.counted() as u64, (model.pixels() * model.exits()) as u64);
    let complex = 2 * demand.number() as u64;
    let wave = match (waves, half) {
        (false, _) => 0,
        (true, true) => 4 * values,
        (true, false) => complex * values,
    };
    // Probes as the views of a block see them, and directions of ML.
    let own = if model.subpixel { (model.modes[0] * model.pixels()) as u64 * complex * if waves { 1 } else { 2 } } else { 0 };
    let work = 4 * counted + complex * values + own + if waves && half { complex * values } else { 0 };
    // The updates of a batch stay for the engines after it.
    let fixed = fixed(model, device, demand);
    DeviceMemory { fixed, raw: bytes * counted, wave, work, batch: demand.batch(waves, model.views.len()) }
}

/// Blocks within the allowance.
pub(super) fn layout(model: &Model, need: &DeviceMemory, multiprocessors: u32, streaming: &StreamingPlan) -> Result<(Layout, u64)> {
    let tiles = lists::tiles(model, &model.views);
    let (listed, parts, ..) = lists::parts(model, &model.views, multiprocessors, streaming.demand.number());
    let sums = |block: usize| {
        let layout = Layout { views: model.views.len().max(1), block, streamed: 0 };
        let lists = tile_ranges::tile_ranges(&tiles, &layout.bounds());
        let operations = tile_ranges::pieces(&listed, &parts, &layout.bounds()).iter().map(Vec::len).sum::<usize>();
        let [slot, section] = [sums::slot_bytes, sums::section_bytes].map(|bytes| bytes(model.modes[1], streaming.demand.number()));
        let joined = lists.sectioned.places.len() as u64;
        lists.slots as u64 * slot + joined * (section + 16) + (32 * lists.list.len() + 16 * operations) as u64
    };
    let layout = Layout::new(need, model.views.len(), streaming.allowance, sums)?;
    Ok((layout, sums(layout.block)))
}

/// Bytes of a run that holds everything on the device.
pub fn resident(model: &Model, device: &Properties, demand: KeptData) -> u64 {
    let (values, number) = ((model.pixels() * model.exits()) as u64, demand.number());
    let complex = 2 * number as u64;
    let waves = match demand {
        KeptData { waves: true, .. } => 2 * complex * values,
        KeptData { likelihood: true, .. } => complex * values,
        _ => 0,
    };
    // Probes as all views see them, and directions of ML.
    let own = complex * (model.pixels() * model.modes[0]) as u64 * if demand.likelihood { 2 } else { 1 };
    let waves = waves + if model.subpixel && (demand.waves || demand.likelihood) { own } else { 0 };
    let frame = if demand.sequence { 8 } else { 4 } * model.counted() as u64;
    let batch = demand.largest_batch(model.views.len());
    let lists = lists_and_sums(model, device.multiprocessors, number);
    // Waves of a batch as parts of a run tell them to each other: of this one and of the one before, and all in order.
    let told = if model.share.is_alone() { 0 } else { 3 * 2 * number * model.pixels() * model.exits() * batch };
    let kept = lists + updated(model, batch, number) + told + at_once(model, device, demand) + (1 << 20);
    let pairs = if demand.likelihood { 4 } else { 1 };
    let held = pairs * complex * (model.probe_len() + model.object_len()) as u64;
    held + kept as u64 + model.views.len() as u64 * (frame + waves)
}

/// Bytes of what views hold together where frames are not in registers: ratios of moduli of the Fourier step's group, and the waves
/// and planes of a likelihood or of probes between pixels.
fn at_once(model: &Model, device: &Properties, demand: KeptData) -> usize {
    let (config, views, number) = (KernelConfig::of(model, device, demand.double), model.views.len(), demand.number());
    if config.fused() {
        // Planes of the threads that refine positions, 512 a multiprocessor.
        let planes = if demand.positions && !model.subpixel { 4 * 96 * 512 * device.multiprocessors as usize } else { 0 };
        return planes + shifted(model, &config, demand);
    }
    let (group, wave) = group(model, number);
    let batches = match (demand.likelihood, model.subpixel) {
        (true, true) => group * (4 * wave + 2 * number * model.counted()),
        (true, false) => group * (3 * wave + number * model.counted()),
        (false, true) => group * (wave + number * model.counted()),
        (false, false) => 0,
    };
    batches + fixed_bytes(model, &config) + number * ratios(&config, views)
}

/// Forecasts a run within `streaming`; where some engines keep waves and others none, the blocks are those with waves.
pub fn outline(model: &Model, device: &Properties, streaming: StreamingPlan) -> Result<StreamingForecast> {
    let (demand, bytes) = (streaming.demand, super::keep::bytes_of_pixel(&model.mag));
    let blocks = |waves: bool| {
        let need = need(model, device, bytes, waves, streaming);
        let (layout, sums) = layout(model, &need, device.multiprocessors, &streaming)?;
        Ok((need, layout, layout.memory(&need, sums)))
    };
    let (need, layout, mut memory) = blocks(demand.waves)?;
    if demand.waves && demand.without_waves() {
        // Refused now, and not when the first engine without waves begins.
        memory = memory.max(blocks(false)?.2);
    }
    let (raw, waves) = match demand {
        KeptData { waves: true, .. } => (1, [2, 1]),
        KeptData { likelihood: true, .. } => (2, [0, 0]),
        _ => (1, [0, 0]),
    };
    let host = model.views.len() as u64 * need.raw + (layout.streamed * layout.block) as u64 * need.wave;
    Ok(StreamingForecast { layout, need, memory, host, traffic: layout.traffic(&need, raw, waves) })
}
