//! Programs that a reconstruction takes on a GPU, told before anything is set up there.

use zellige_engine::cuda::{Properties, Recipe};
use zellige_engine::device::Device;

use crate::config::{Compatibility, Config, EngineConfig, EngineName, NoiseName};
use crate::engines;
use crate::model::Model;
use crate::stages::Noise;
use crate::stages::cuda::{KernelConfig, Needed, recipes_for};
use crate::streaming;

/// Programs of all engines of the input.
pub(crate) fn programs(config: &Config, model: &Model, device: &Device, gpu: &Properties) -> Vec<Recipe> {
    let [budget, _] = streaming::memory_budgets(config, device, 1);
    let atomic = budget.object_update.choose(budget.deterministic, model, gpu.multiprocessors).atomic;
    let parts = !model.share.is_alone();
    let streamed = match device {
        Device::Cuda(gpu) => !parts && budget.streaming_plan(model, gpu).is_some(),
        Device::Cpu(_) => budget.allowance.is_some(),
    };
    let kernel_config = KernelConfig { atomic: atomic && !streamed, ..KernelConfig::of(model, gpu, budget.demand.double) };
    let ptypy = config.compatibility == Compatibility::Ptypy;
    let engines = config.engine.iter().flat_map(|engine| needed(engine, ptypy));
    let needed: Vec<Needed> = engines.chain(streamed.then_some(Needed::Streaming)).chain(parts.then_some(Needed::Parts)).collect();
    let copies = zellige_engine::ops::plane::copier::recipe();
    recipes_for(&kernel_config, &needed).into_iter().chain([copies]).collect()
}

fn needed(engine: &EngineConfig, ptypy: bool) -> Vec<Needed> {
    let noise = match engine.noise.unwrap_or_default() {
        NoiseName::Gaussian => Noise::Gaussian,
        NoiseName::Poisson => Noise::Poisson,
        NoiseName::Euclid => Noise::Euclid,
    };
    let stages = match engine.name {
        EngineName::Dm | EngineName::Raar => None,
        EngineName::Ml => Some(Needed::Likelihood(noise)),
        EngineName::Epie | EngineName::Rpie | EngineName::Sdr | EngineName::Lsqml => Some(Needed::Sweeps),
    };
    let positions = engine.positions.is_some().then_some(Needed::Positions);
    let smooth = engine.object_smooth.or(engine.smooth_gradient).is_some();
    let supports = (smooth || engines::supports(engine, ptypy).iter().any(Option::is_some)).then_some(Needed::Supports);
    let wavefield = (engine.wavefield_preconditioner == Some(true)).then_some(Needed::Wavefield);
    [stages, positions, supports, wavefield].into_iter().flatten().collect()
}
