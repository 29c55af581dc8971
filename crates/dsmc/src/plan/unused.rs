//! Keys of the input that have no effect, and averages that cannot be what was asked for: warnings of the plan.

use crate::config::sides::SideConfig;
use crate::config::{AUTO, Config, WallConfig, WallModel};
use crate::grid::Side;
use crate::model::Model;

/// Of a checked input and its model.
pub(crate) fn unused_keys(config: &Config, model: &Model) -> Vec<String> {
    let mut all = Vec::new();
    for axis in 0..model.grid.dimensions {
        for (side, path) in [false, true].map(|upper| config.boundary.side(Side { axis, upper })) {
            let SideConfig::Wall(w) = side else { continue };
            wall(&format!("{path}.wall"), &w.wall, &mut all);
            let [v, name] = [w.wall.velocity[axis].to_string(), ["x", "y"][axis].to_owned()];
            if w.wall.model != WallModel::Specular && w.wall.velocity[axis] != 0.0 {
                all.push(format!(
                    "`dsmc.{path}.wall.velocity`: its part along {name}, {v} m/s, points out of the wall's plane and does nothing on that side"
                ));
            }
        }
    }
    for (i, body) in config.bodies.iter().enumerate() {
        wall(&format!("bodies[{i}].wall"), &body.wall, &mut all);
        body.walls.iter().for_each(|(kind, own)| wall(&format!("bodies[{i}].walls.{kind}"), own, &mut all));
    }
    species(config, model, &mut all);
    for (i, source) in model.sources.iter().enumerate() {
        let late = source.schedule.iter().filter(|e| e.0 >= config.steps);
        let (entries, particles) = late.fold((0, 0), |(n, sum), e| (n + 1, sum + e.1));
        if entries > 0 {
            all.push(format!(
                "`dsmc.sources[{i}]`: {entries} entries of the schedule with {particles} particles are for steps after the last, {}: they will \
                 not come",
                config.steps - 1
            ));
        }
    }
    batches(config, &mut all);
    // `boundary.all` stands on four sides.
    let mut said = std::collections::HashSet::new();
    all.retain(|text| said.insert(text.clone()));
    all
}

/// Keys that the model of a wall does not know.
fn wall(path: &str, wall: &WallConfig, all: &mut Vec<String>) {
    let usual = WallConfig::diffuse(300.0, [0.0; 3]);
    let specular = wall.model == WallModel::Specular;
    let (name, diffuse, cll) = match wall.model {
        WallModel::Specular => ("specular", false, false),
        WallModel::Diffuse => ("diffuse", true, false),
        WallModel::Cll => ("cll", false, true),
    };
    for (key, unused) in [
        ("temperature", specular && wall.temperature != usual.temperature),
        ("velocity", specular && wall.velocity != usual.velocity),
        ("accommodation", !diffuse && wall.accommodation != usual.accommodation),
        ("normal", !cll && wall.normal != usual.normal),
        ("tangential", !cll && wall.tangential != usual.tangential),
    ] {
        if unused {
            all.push(format!("`dsmc.{path}.{key}` does nothing on a wall of the model `{name}`"));
        }
    }
}

/// Collision numbers of modes that molecules do not have, or that are not computed.
fn species(config: &Config, model: &Model, all: &mut Vec<String>) {
    for (i, (given, found)) in config.species.iter().zip(&model.species).enumerate() {
        let at = |key: &str| format!("`dsmc.species[{i}].{key}` does nothing: {}", given.name);
        if given.z_rotation.is_some() && found.rotation == 0 {
            let why = if config.collisions.rotation { "does not rotate" } else { "may not rotate, `collisions.rotation` is false" };
            all.push(format!("{} {why}", at("z_rotation")));
        }
        if given.z_vibration.is_some() && found.vibration.is_empty() {
            let why =
                if config.collisions.vibration { "has no vibration" } else { "does not vibrate without `collisions.vibration = true`" };
            all.push(format!("{} {why}", at("z_vibration")));
        }
    }
}

/// Fewer samples than batches.
fn batches(config: &Config, all: &mut Vec<String>) {
    let (s, start) = (&config.sampling, config.sampling_start());
    if start == AUTO || start >= config.steps {
        return;
    }
    let samples = (config.steps - start).div_ceil(s.every.max(1));
    if samples < s.batches && s.window.is_none() {
        let left = if samples < 2 { "there will be no error bars".to_owned() } else { format!("there will be {samples} batches of one") };
        all.push(format!(
            "`dsmc.sampling.batches` is {}, and from step {start} to the end there are {samples} samples: {left}; more `steps`, or fewer batches",
            s.batches
        ));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{SideConfig, SourceConfig, ZConfig};

    fn said(config: &Config) -> Vec<String> {
        unused_keys(config, &Model::new(config, Path::new(""), 1).unwrap())
    }

    #[test]
    fn keys_that_do_nothing_are_named_once() {
        let mut config = Config::new(vec![10, 10], vec![1e-4; 2], "Ar", 1e20, 300.0);
        config.steps = 200;
        assert_eq!(said(&config), [""; 0]);
        let wall = WallConfig { normal: 0.5, ..WallConfig::diffuse(300.0, [0.0; 3]) };
        config.boundary.all = Some(wall.into());
        assert_eq!(said(&config), ["`dsmc.boundary.all.wall.normal` does nothing on a wall of the model `diffuse`"]);
        config.boundary.all = Some(WallConfig { model: WallModel::Specular, ..WallConfig::diffuse(350.0, [0.0; 3]) }.into());
        assert!(said(&config)[0].contains("wall.temperature` does nothing"));
        config.boundary.all = None;
        config.boundary.y = Some(SideConfig::from(WallConfig::diffuse(300.0, [5.0, 7.0, 0.0])));
        assert!(said(&config).len() == 1 && said(&config)[0].contains("boundary.y.wall.velocity`: its part along y, 7 m/s"));
        config.boundary.y = None;
        (config.species[0].z_rotation, config.species[0].z_vibration) = (Some(ZConfig::Number(5.0)), Some(9.0));
        let found = said(&config);
        assert!(found.len() == 2 && found[0].contains("Ar does not rotate") && found[1].contains("Ar does not vibrate"), "{found:?}");
        (config.species[0].z_rotation, config.species[0].z_vibration) = (None, None);
        let source = SourceConfig {
            line: Some([[2e-5, 2e-5], [2e-5, 4e-5]]),
            direction: Some([1.0, 0.0]),
            temperature: Some(300.0),
            schedule: vec![[0, 5], [199, 5], [200, 7]],
            ..SourceConfig::default()
        };
        config.sources.push(source);
        assert!(said(&config)[0].contains("1 entries of the schedule with 7 particles are for steps after the last, 199"));
        config.sources.clear();
        config.sampling.batches = 200;
        assert!(said(&config)[0].contains("there are 100 samples: there will be 100 batches of one"));
        (config.sampling.batches, config.sampling.start) = (2, Some(199));
        assert!(said(&config)[0].contains("no error bars"));
    }
}
