//! Lines from which gas comes, by a schedule in time: a jet, a leak, a burst. The source files of the program that this one grew
//! from are read as they are.
//!
//! What comes has the distribution of a flux through the line, with the drift of the stream at any speed ratio
//! ([`crate::walls::inflow`]), and comes at a random time of its step.

use std::path::Path;

use serde::Deserialize;
use zellige_engine::config;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::files::read_text;

use crate::geometry::Geometry;
use crate::grid::Grid;
use crate::walls::BOLTZMANN;
use crate::walls::inflow::Stream;

/// Longest schedule file, bytes.
const LIMIT: u64 = 1 << 28;

/// A line that emits particles.
#[derive(Debug, Clone, PartialEq)]
pub struct LineSource {
    /// Key of the input or file, for messages.
    pub origin: String,
    /// Ends, m.
    pub ends: [[f64; 2]; 2],
    /// Unit vector along which the gas comes, not along the line.
    pub normal: [f64; 2],
    /// Temperature, K.
    pub temperature: f64,
    /// Velocity of the stream, m/s.
    pub velocity: [f64; 3],
    /// Number density of a gas whose flux comes all the time, 1/m^3; 0 for none.
    pub density: f64,
    /// Particles by step, beside that: steps rising.
    pub schedule: Vec<(u64, u64)>,
}

impl LineSource {
    /// Particles injected in a step.
    pub fn count(&self, step: u64) -> u64 {
        self.schedule.binary_search_by_key(&step, |entry| entry.0).map_or(0, |k| self.schedule[k].1)
    }

    /// Molecules of a species, a part `fraction` of all, that come all the time, 1/(m s) per metre of depth.
    pub fn steady(&self, mass: f64, fraction: f64) -> f64 {
        let stream = Stream { density: self.density * fraction, temperature: self.temperature, velocity: self.velocity, mass };
        stream.flux(self.normal) * (self.ends[1][0] - self.ends[0][0]).hypot(self.ends[1][1] - self.ends[0][1])
    }

    /// Particles that come by the schedule in all.
    pub fn total(&self) -> u64 {
        self.schedule.iter().map(|entry| entry.1).sum()
    }

    /// The cell and the offset of the position at the part `u` of the line.
    pub fn position(&self, grid: &Grid, u: f64) -> ([usize; 2], [f64; 2]) {
        let mut cell = [0; 2];
        let mut offset = [0.0; 2];
        for d in 0..2 {
            let x = self.ends[0][d] + u * (self.ends[1][d] - self.ends[0][d]);
            let at = ((x - grid.origin[d]) / grid.h[d]).clamp(0.0, grid.cells[d] as f64);
            cell[d] = (at as usize).min(grid.cells[d] - 1);
            offset[d] = at - cell[d] as f64;
        }
        (cell, offset)
    }

    /// The velocity of one of its molecules of a mass (kg), m/s.
    pub fn velocity(&self, mass: f64, uniform: &mut dyn FnMut() -> f64) -> [f64; 3] {
        Stream { density: 1.0, temperature: self.temperature, velocity: self.velocity, mass }.draw(self.normal, uniform)
    }

    /// Checks that it can stand where it is.
    ///
    /// # Errors
    /// A line outside the domain or in a body, with the position; a direction, temperature or velocity that is none.
    pub fn check(&self, grid: &Grid, geometry: &Geometry) -> Result<(), Problem> {
        let refuse = |message: String| Err(Problem::new(&self.origin, message));
        if !self.normal.iter().all(|n| n.is_finite()) || (self.normal[0].hypot(self.normal[1]) - 1.0).abs() > 1e-9 {
            return refuse("the source has no direction".into()).map_err(|p| p.hint("give a vector into the gas"));
        }
        if !(self.temperature > 0.0 && self.temperature < 1e6) {
            return refuse(format!("the temperature of the source is {}", self.temperature))
                .map_err(|p| p.allowed("above 0 K, below 1e6 K"));
        }
        if !self.velocity.iter().all(|v| v.abs() < 3e6) {
            return refuse(format!("the velocity of the source is {:?}", self.velocity)).map_err(|p| p.allowed("below 3e6 m/s"));
        }
        for [x, y] in self.ends {
            let inside = [x, y].iter().enumerate().all(|(d, x)| {
                // A last digit of a side's position is not outside.
                let at = (x - grid.origin[d]) / grid.h[d];
                at >= -1e-9 && at <= grid.cells[d] as f64 + 1e-9
            });
            if !inside {
                return refuse(format!("the source leaves the domain at ({x}, {y})"))
                    .map_err(|p| p.hint("both ends must be in it or on its sides"));
            }
        }
        let [[ax, ay], [bx, by]] = self.ends;
        let (x, y) = (bx - ax, by - ay);
        let length = x.hypot(y);
        if length <= 0.0 {
            return refuse(format!("the source is a line of no length at ({ax}, {ay})")).map_err(|p| p.hint("give two ends that differ"));
        }
        if (x * self.normal[1] - y * self.normal[0]).abs() < 1e-9 * length {
            let along =
                format!("the gas would come along the line, direction ({}, {}), and nothing through it", self.normal[0], self.normal[1]);
            return refuse(along).map_err(|p| p.hint("a direction across the line"));
        }
        let hint = "move it off the body by a small part of a cell; it may end on one";
        if let Some((k, [x, y])) = geometry.across(self.ends) {
            let segment = geometry.segments()[k];
            let [[ax, ay], [bx, by]] = segment.ends;
            let name = &geometry.bodies()[segment.body as usize].name;
            return refuse(format!("the source lies in a body at ({x}, {y}): the segment of `{name}` from ({ax}, {ay}) to ({bx}, {by})"))
                .map_err(|p| p.hint(hint));
        }
        // It crosses none: one position is enough.
        let (cell, offset) = self.position(grid, 0.5);
        if !geometry.in_gas(cell, offset) {
            let [x, y] = grid.position(cell, offset);
            return refuse(format!("the source lies in a body at ({x}, {y})")).map_err(|p| p.hint(hint));
        }
        Ok(())
    }
}

/// The source file, as typed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    total_particles: Option<u64>,
    geometry: Ends,
    direction: Direction,
    velocity: Velocity,
    schedule: Option<Vec<Entry>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ends {
    start_x: f64,
    start_y: f64,
    end_x: f64,
    end_y: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Direction {
    x: f64,
    y: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Velocity {
    temperature: Option<f64>,
    thermal_vel: Option<f64>,
    #[serde(rename = "bulk_velocity")]
    bulk: Option<f64>,
    stream_x: Option<f64>,
    stream_y: Option<f64>,
    stream_z: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    timestep: u64,
    count: u64,
}

/// A fault of a file's text with its line.
fn in_words(problem: &Problem) -> String {
    let position = problem.position.map_or(String::new(), |(line, column)| format!("line {line}, column {column}: "));
    format!("{position}{}", Problem { position: None, ..problem.clone() })
}

/// Reads a source file (YAML) and, where the schedule is not in it, a schedule file. `mass` is that of a molecule, kg, for files
/// that give a thermal speed in place of a temperature.
///
/// # Errors
/// [`Error::File`], or [`Error::Format`] with what is missing, twice there or unknown.
pub fn read(path: impl AsRef<Path>, schedule: Option<&Path>, mass: f64) -> Result<LineSource> {
    let path = path.as_ref();
    let wrong = |message: String| Error::format(path, "source", message);
    // A fault in its text is one of this file, not of the input that names it.
    let source = config::Source::read(path).map_err(|e| match e {
        Error::Input { problems, .. } => wrong(problems.iter().map(in_words).collect::<Vec<_>>().join("; ")),
        e => e,
    })?;
    let file: File = serde_json::from_value(source.value).map_err(|e| wrong(e.to_string()))?;
    let size = file.direction.x.hypot(file.direction.y);
    let normal = [file.direction.x / size, file.direction.y / size];
    let v = &file.velocity;
    let temperature = match (v.temperature, v.thermal_vel) {
        (Some(t), None) => t,
        (None, Some(c)) => mass * c * c / BOLTZMANN,
        _ => return Err(wrong("`velocity` needs `temperature` or `thermal_vel`, one of the two".into())),
    };
    let stream = [v.stream_x, v.stream_y, v.stream_z];
    let velocity = match v.bulk {
        Some(bulk) if stream.iter().all(Option::is_none) => [bulk * normal[0], bulk * normal[1], 0.0],
        Some(_) => return Err(wrong("`velocity` has both `bulk_velocity` and `stream_x`, `stream_y` or `stream_z`".into())),
        None => stream.map(|v| v.unwrap_or(0.0)),
    };
    let mut entries = match (file.schedule, schedule) {
        (Some(entries), None) => entries.into_iter().map(|e| (e.timestep, e.count)).collect(),
        (None, Some(path)) => read_schedule(path)?,
        (Some(_), Some(_)) => return Err(wrong("it has a schedule, and a schedule file is given too".into())),
        (None, None) => return Err(wrong("it has no `schedule`, and no schedule file is given".into())),
    };
    entries.sort_unstable();
    if let Some(twice) = entries.windows(2).find(|w| w[0].0 == w[1].0) {
        return Err(wrong(format!("step {} is in the schedule twice", twice[0].0)));
    }
    let total = entries.iter().try_fold(0_u64, |sum, e| sum.checked_add(e.1));
    let total = total.ok_or_else(|| wrong("the schedule has more particles than can be counted".into()))?;
    if let Some(said) = file.total_particles.filter(|said| *said != total) {
        return Err(wrong(format!("`total_particles` is {said}, but the schedule has {total}")));
    }
    let g = &file.geometry;
    let ends = [[g.start_x, g.start_y], [g.end_x, g.end_y]];
    Ok(LineSource { origin: path.display().to_string(), ends, normal, temperature, velocity, density: 0.0, schedule: entries })
}

/// Reads a schedule file: a step and a number of particles a line.
fn read_schedule(path: &Path) -> Result<Vec<(u64, u64)>> {
    let text = read_text(path, "schedule", LIMIT)?;
    let mut entries = Vec::new();
    for (k, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let numbers: Vec<Option<u64>> = line.split_whitespace().map(|w| w.parse().ok()).collect();
        let [Some(step), Some(count)] = numbers[..] else {
            return Err(Error::format(path, "schedule", format!("line {} is `{line}`, not a step and a count", k + 1)));
        };
        entries.push((step, count));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Gas, Outlines, Shape};

    const GOOD: &str = "# a source\ntotal_particles: 30\ngeometry:\n  start_x: 0.0\n  start_y: 0.1\n  end_x: 0.0\n  end_y: 0.2\n\
        direction:\n  x: 2.0\n  y: 0.0\nvelocity:\n  temperature: 432.4\n  stream_x: 500.0\n  stream_y: 0.0\n";
    const SCHEDULE: &str = "# step count\n0 10\n20 15\n10 5\n";

    fn write(text: &str, schedule: &str) -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let paths = [("source.yaml", text), ("schedule.dat", schedule)].map(|(name, text)| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        });
        let [a, b] = paths;
        (folder, a, b)
    }

    #[test]
    fn source_files_are_read_as_they_are() {
        let (_folder, path, schedule) = write(GOOD, SCHEDULE);
        let source = read(&path, Some(&schedule), 6.63e-26).unwrap();
        assert_eq!((source.normal, source.temperature, source.velocity), ([1.0, 0.0], 432.4, [500.0, 0.0, 0.0]));
        assert_eq!((source.total(), source.count(0), source.count(10), source.count(11), source.count(20)), (30, 10, 5, 0, 15));
        // The schedule in the file, a speed along the direction, and the standard deviation of the thermal speeds.
        let text = GOOD.replace("temperature: 432.4\n  stream_x: 500.0\n  stream_y: 0.0", "thermal_vel: 300.0\n  bulk_velocity: -20.0");
        let text = text + "schedule:\n  - {timestep: 3, count: 30}\n";
        let (_folder, path, _) = write(&text, "");
        let source = read(&path, None, 6.63e-26).unwrap();
        assert_eq!((source.velocity, source.count(3)), ([-20.0, 0.0, 0.0], 30));
        assert!((source.temperature - 6.63e-26 * 9e4 / BOLTZMANN).abs() < 1e-9);
    }

    #[test]
    fn broken_source_files_are_refused() {
        for (text, schedule, expected) in [
            (GOOD.replace("end_y", "endy"), SCHEDULE, "unknown field `endy`"),
            (GOOD.replace("  end_y: 0.2\n", ""), SCHEDULE, "missing field `end_y`"),
            (GOOD.replace("  temperature: 432.4\n", ""), SCHEDULE, "needs `temperature` or `thermal_vel`"),
            (GOOD.replace("stream_y", "bulk_velocity"), SCHEDULE, "both `bulk_velocity` and"),
            (GOOD.replace("30", "31"), SCHEDULE, "`total_particles` is 31, but the schedule has 30"),
            (GOOD.into(), "0 10\n0 20\n", "step 0 is in the schedule twice"),
            (GOOD.into(), "0 10\n1\n", "line 2 is `1`, not a step and a count"),
            (GOOD.into(), "0 -10\n", "line 1 is `0 -10`"),
            (GOOD.to_owned() + "schedule: []\n", SCHEDULE, "a schedule file is given too"),
        ] {
            let (_folder, path, schedule) = write(&text, schedule);
            let message = read(&path, Some(&schedule), 6.63e-26).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}\n  is not\n{expected}");
        }
        let (_folder, path, schedule) = write("geometry:\n  start_x: 0.0\n  end_x: [0.1, 0.\n", SCHEDULE);
        let error = read(&path, Some(&schedule), 6.63e-26).unwrap_err();
        assert!(matches!(&error, Error::Format { path: file, .. } if *file == path) && error.to_string().contains("line "), "{error}");
        let (_folder, path, _) = write(GOOD, "");
        assert!(read(&path, None, 6.63e-26).unwrap_err().to_string().contains("no schedule file is given"));
    }

    #[test]
    fn thin_bodies_across_a_source_are_seen_and_ends_may_touch() {
        let grid = Grid { cells: [40, 30], h: [0.01, 0.01], origin: [0.0; 2], dimensions: 2 };
        let vertices = vec![[0.2, 0.1], [0.2012, 0.1], [0.2012, 0.2], [0.2, 0.2]];
        let thin = Shape::Polygon { vertices }.curve("b", "b", Gas::Outside, 0).unwrap();
        let geometry = Geometry::new(&grid, [false; 2], &Outlines::new(&[thin], &grid).unwrap());
        let source = |ends: [[f64; 2]; 2]| LineSource {
            origin: "sources[0]".into(),
            ends,
            normal: [0.6, 0.8],
            temperature: 300.0,
            velocity: [0.0; 3],
            density: 0.0,
            schedule: vec![(0, 1)],
        };
        let problem = source([[0.19, 0.15], [0.21, 0.15]]).check(&grid, &geometry).unwrap_err();
        assert!(problem.message.contains("in a body at (0.2, 0.15): the segment of `b` from (0.2, 0.2) to (0.2, 0.1)"), "{problem}");
        for ends in [[[0.1, 0.15], [0.2, 0.15]], [[0.2012, 0.1], [0.3, 0.05]], [[0.1999, 0.25], [0.1999, 0.0]]] {
            source(ends).check(&grid, &geometry).unwrap();
        }
        assert!(source([[0.1, 0.15], [0.2001, 0.15]]).check(&grid, &geometry).is_err());
    }

    #[test]
    fn sources_that_stand_wrong_are_refused_with_the_position() {
        let grid = Grid { cells: [10, 10], h: [0.1, 0.1], origin: [0.0; 2], dimensions: 2 };
        let circle = Shape::Circle { centre: [0.5, 0.5], radius: 0.2, segments: 40 }.curve("c", "c", Gas::Outside, 0).unwrap();
        let geometry = Geometry::new(&grid, [false; 2], &Outlines::new(&[circle], &grid).unwrap());
        let good = LineSource {
            origin: "sources[0]".into(),
            ends: [[0.0, 0.1], [0.0, 0.3]],
            normal: [1.0, 0.0],
            temperature: 300.0,
            velocity: [0.0; 3],
            density: 0.0,
            schedule: vec![(0, 1)],
        };
        good.check(&grid, &geometry).unwrap();
        assert_eq!(good.position(&grid, 0.5), ([0, 2], [0.0, 0.0]));
        for (source, expected) in [
            (LineSource { ends: [[0.0, 0.1], [0.0, 1.3]], ..good.clone() }, "leaves the domain at (0, 1.3)"),
            (
                LineSource { ends: [[0.1, 0.5], [0.9, 0.5]], normal: [0.0, 1.0], ..good.clone() },
                "lies in a body at (0.3, 0.5): the segment of `c` from",
            ),
            (LineSource { ends: [[0.45, 0.5], [0.55, 0.55]], ..good.clone() }, "lies in a body at (0.5"),
            (LineSource { ends: [[0.2, 0.1], [0.2, 0.1]], ..good.clone() }, "a line of no length at (0.2, 0.1)"),
            (LineSource { ends: [[0.2, 0.1], [0.3, 0.1]], ..good.clone() }, "the gas would come along the line"),
            (LineSource { normal: [f64::NAN; 2], ..good.clone() }, "no direction"),
            (LineSource { temperature: 0.0, ..good.clone() }, "the temperature of the source is 0"),
            (LineSource { velocity: [f64::INFINITY, 0.0, 0.0], ..good.clone() }, "the velocity of the source"),
        ] {
            let problem = source.check(&grid, &geometry).unwrap_err();
            assert!(problem.message.contains(expected), "{problem}");
        }
    }
}
