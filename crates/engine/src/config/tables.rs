//! The tables that all solvers share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Problem;
use crate::schedule::Schedule;

/// Settings of a run: device, threads, seed and limits. Each can be given on the command line instead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    /// `auto` (the fastest that works), `cpu`, `cuda` or `cuda:N`; `zellige devices` lists them.
    pub device: String,
    /// Threads on the CPU; 0 uses every core.
    #[schemars(range(max = 4096))]
    pub threads: usize,
    /// Seed of all random numbers.
    #[schemars(range(max = 9_223_372_036_854_775_807_u64))]
    pub seed: u64,
    /// Wall time after which the run saves a checkpoint and stops: `"30 s"`, `"5 min"`, `"2 h"`.
    pub wall_time: Option<Schedule>,
    /// Schedule of checkpoints besides those on a signal: `100`, `"10 min"`, `"0.5 t"`, `"never"`. Default every ten minutes,
    /// removed at the end.
    pub checkpoint_every: Option<Schedule>,
    /// Schedule of the rows of scalars; default every step, of a gas every twentieth and fifty in a short run.
    pub rows_every: Option<Schedule>,
    /// Folder of relative data files, relative to the input's folder, its default.
    pub data_folder: Option<String>,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self { device: "auto".into(), threads: 0, seed: 1, wall_time: None, checkpoint_every: None, rows_every: None, data_folder: None }
    }
}

impl RunConfig {
    /// Finds the problems that the types do not show.
    pub(super) fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let index = self.device.strip_prefix("cuda:").map(str::parse::<usize>);
        if !matches!(self.device.as_str(), "auto" | "cpu" | "cuda") && !matches!(index, Some(Ok(_))) {
            let message = format!("`{}` is not a device", self.device);
            problems.push(
                Problem::new("run.device", message).allowed("auto, cpu, cuda, cuda:0, cuda:1, ..").hint("`zellige devices` lists them"),
            );
        }
        if let Some(limit) = self.wall_time
            && !matches!(limit, Schedule::Wall(_))
        {
            let message = format!("`{limit}` is not a wall time");
            problems.push(
                Problem::new("run.wall_time", message)
                    .allowed("`\"30 s\"`, `\"5 min\"`, `\"2 h\"`")
                    .hint("a bare number counts steps: add the unit"),
            );
        }
        problems
    }
}

/// A format that results are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("x-synonyms" = { "numpy": "npy", "h5": "hdf5", "openpmd": "hdf5", "hdf": "hdf5", "vtk": "vti", "paraview": "vti", "picture": "png", "image": "png" }))]
pub enum FileFormat {
    /// NumPy array.
    Npy,
    /// Raw values.
    Bov,
    /// VTK image.
    Vti,
    /// VTK cut cells and walls.
    Vtu,
    /// HDF5, openPMD.
    Hdf5,
    /// Text.
    Csv,
    /// Pictures.
    Png,
}

/// Output of a run: content, folder and schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutputConfig {
    /// Results folder, relative to the working folder; default named after the input.
    pub folder: Option<String>,
    /// Formats, besides CSV of curves and rows.
    pub formats: Vec<FileFormat>,
    /// Schedule of results besides those at the end: `100`, `"0.5 t"`, `"10 min"`.
    pub every: Option<Schedule>,
}

impl Default for OutputConfig {
    fn default() -> Self {
        Self { folder: None, formats: vec![FileFormat::Hdf5, FileFormat::Png], every: None }
    }
}

impl OutputConfig {
    /// Finds the problems that the types do not show.
    pub(super) fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.folder.as_deref().is_some_and(|f| f.trim().is_empty()) {
            problems.push(Problem::new("output.folder", "the name of the folder is empty"));
        }
        for (i, format) in self.formats.iter().enumerate() {
            if self.formats[..i].contains(format) {
                problems.push(Problem::new(format!("output.formats[{i}]"), format!("`{}` is there twice", name(*format))));
            }
        }
        problems
    }
}

/// The name in the input.
fn name(format: FileFormat) -> String {
    serde_json::to_value(format).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}
