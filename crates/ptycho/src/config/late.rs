//! Updates and refinements that an engine would begin only after its last iteration.

use super::Config;
use super::engine::{EngineConfig, EngineName};

/// Updates and refinements that never happen, in words.
pub(super) fn never(config: &Config) -> Vec<String> {
    config.engine.iter().enumerate().flat_map(|(i, engine)| of(i, engine)).collect()
}

fn of(number: usize, engine: &EngineConfig) -> Vec<String> {
    // Default where it is not the first iteration.
    let second = matches!(engine.name, EngineName::Dm | EngineName::Raar | EngineName::Ml).then_some(2);
    let starts = [
        ("probe_update_start", "updates the probe", engine.probe_update_start.or(second)),
        ("object_update_start", "updates the object", engine.object_update_start),
        ("positions.start", "refines positions", engine.positions.as_ref().map(|p| p.start)),
    ];
    let late = starts.into_iter().filter_map(|(key, what, start)| Some((key, what, start.filter(|s| *s >= engine.iterations())?)));
    late.map(|(key, what, start)| {
        let (name, iterations) = (engine.name.as_str(), engine.iterations());
        format!("engine[{number}] ({name}) never {what}: `{key}` is {start}, counted from 0, and it ends after {iterations}")
    })
    .collect()
}
