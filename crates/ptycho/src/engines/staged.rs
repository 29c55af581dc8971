//! Stages as the profiler sees them: by events of the GPU where the stages run on one, with what they must move at least.

use zellige_engine::profile::Profiler;
use zellige_engine::sim::Cost;

use crate::model::Model;
use crate::stages::Stages;

/// Amounts of data that stages move.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DataSizes {
    /// Values of all waves of all views.
    pub values: f64,
    /// Pixels of all frames as they were counted.
    pub counted: f64,
    /// Views.
    pub views: f64,
    /// Operations of a transform, a value.
    pub transform: f64,
    /// Bytes of a number.
    pub number: f64,
}

impl DataSizes {
    /// Amounts of data of a model.
    pub fn of(model: &Model) -> Self {
        let views = model.views.len() as f64;
        Self {
            values: views * (model.pixels() * model.exits()) as f64,
            counted: views * model.counted() as f64,
            views,
            transform: 5.0 * (model.pixels() as f64).log2(),
            number: 4.0,
        }
    }

    /// Cost of a stage by bytes per value of the waves in single precision, passes over the moduli and number of transforms.
    pub(super) fn cost(&self, bytes: f64, moduli: f64, transforms: f64) -> Cost {
        Cost {
            bytes: bytes * self.number / 4.0 * self.values + 4.0 * moduli * self.counted,
            flops: transforms * self.transform * self.values,
            items: self.views,
        }
    }
}

/// `work` as one call of the stage `name`.
pub(crate) fn staged<R>(
    profiler: &mut Profiler,
    stages: &mut dyn Stages,
    name: &'static str,
    cost: Cost,
    work: impl FnOnce(&mut dyn Stages) -> R,
) -> R {
    match stages.cuda() {
        Some(cuda) => profiler.stage_on(&cuda, name, cost, || work(stages)),
        None => profiler.stage(name, cost, || work(stages)),
    }
}
