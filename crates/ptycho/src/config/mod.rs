//! The `[ptycho]` table of the input, as typed, in SI units. [`Config::check`] finds everything that is wrong with it before
//! anything is allocated; [`crate::setup`] makes a [`crate::model::Model`] of it and of the scans.
//!
//! ```toml
//! [ptycho]
//! [[ptycho.scan]]
//! file = "scan.ptyd"
//! [[ptycho.engine]]
//! name = "DM"
//! iterations = 60
//! [[ptycho.engine]]
//! name = "ML"
//! iterations = 100
//! ```

mod check;
pub mod engine;
mod late;
mod memory;

use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::error::Problem;

use crate::data::{ReadConfig, ScanArrays};
use crate::memory::{KeptData, MemoryBudget, ObjectUpdate};
use crate::output::OutputConfig;
use crate::simulate::{Pair, SimulateConfig};

pub use engine::{AffinePart, EngineConfig, EngineName, NoiseName, PositionConfig, PositionMethod};
pub use memory::{MemoryConfig, WaveStorage};

/// Ptychographic phase retrieval: object and probe from overlapping diffraction frames. SI units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Precision of the computation.
    #[serde(default)]
    pub precision: Precision,
    /// `"ptypy"` takes PtyPy's defaults for keys left out.
    #[serde(default)]
    pub compatibility: Compatibility,
    /// Sums in a fixed order on GPUs too: equal runs give equal bits.
    #[serde(default)]
    pub deterministic: bool,
    /// Summation of the object on GPUs (DM, RAAR, ML, LSQML).
    #[serde(default)]
    pub object_update: ObjectUpdate,
    /// Model pixels per detector pixel along rows and columns (1): a wider field of view in the far field, finer pixels in the
    /// near field.
    #[serde(default = "single", skip_serializing_if = "is_single")]
    pub resample: Pair<usize>,
    /// Fourier-shifts the probe to exact positions; else the nearest pixel, as in PtyPy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub subpixel: bool,
    /// Also reconstructs two half-scans, compared by Fourier ring correlation.
    #[serde(default)]
    pub frc: bool,
    /// The scans.
    #[schemars(length(min = 1))]
    pub scan: Vec<ScanConfig>,
    /// The initial probe.
    #[serde(default)]
    pub probe: ProbeConfig,
    /// The initial object.
    #[serde(default)]
    pub object: ObjectConfig,
    /// The engines, run one after another.
    #[schemars(length(min = 1))]
    pub engine: Vec<EngineConfig>,
    /// Further output.
    #[serde(default)]
    pub output: OutputConfig,
    /// Memory limits.
    #[serde(default, skip_serializing_if = "MemoryConfig::is_default")]
    pub memory: MemoryConfig,
}

pub(crate) fn single() -> Pair<usize> {
    Pair::Same(1)
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
pub(crate) fn is_single(bin: &Pair<usize>) -> bool {
    bin.both() == [1, 1]
}

/// Largest number of rows or columns of a bin.
pub(crate) const MOST_RESAMPLED: usize = 8;

/// Precision of the computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(extend("x-synonyms" = { "single": "f32", "float": "f32", "float32": "f32", "fp32": "f32", "double": "f64", "float64": "f64", "fp64": "f64" }))]
pub enum Precision {
    /// Single precision.
    #[default]
    F32,
    /// Double precision.
    F64,
}

/// Program whose defaults are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Compatibility {
    /// This program's.
    #[default]
    None,
    /// PtyPy's.
    Ptypy,
}

/// A scan: measured or simulated.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScanConfig {
    /// Name for messages and outputs; default `scan0`, `scan1`, ..
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A file of frames and positions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Frames in memory, which a caller puts in place of what the file has; its name is that of messages then.
    #[serde(skip)]
    pub arrays: Option<Arc<ScanArrays>>,
    /// Reading options.
    #[serde(skip_serializing_if = "ReadConfig::is_default")]
    pub read: ReadConfig,
    /// A scan made by the program, in place of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulate: Option<SimulateConfig>,
    /// Label of the probe, shared by scans of one label; default its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<String>,
    /// Label of the object, shared by scans of one label; default its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Rows and columns kept about the optical axis, pixels of the detector: even.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crop: Option<[usize; 2]>,
    /// Detector pixels summed to one along each axis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebin: Option<usize>,
    /// Stride of the frames used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub every: Option<usize>,
}

impl ScanConfig {
    /// Returns true if frames are read in blocks from where they lie: a file, or the memory of a caller.
    pub(crate) fn streams(&self) -> bool {
        // Masks of each frame go along with frames that are held.
        self.read.stream || self.arrays.as_ref().is_some_and(|arrays| !arrays.masks_each())
    }
}

/// The probe to start from, brought to the measured brightness. Where the scan has none it is made from the mean frame in the far
/// field, and lights the whole field in the near field. Shape, size, focal length, central stop or soft edge select an opening
/// instead. A simulated scan starts with the wave that its optics should give (no aberrations, no roughness, coherent light) where
/// these, `defocus` and `start` are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProbeConfig {
    /// Modes: 1 for coherent light.
    #[schemars(range(min = 1, max = 64))]
    pub modes: usize,
    /// Origin of the initial probe.
    pub start: ProbeStart,
    /// Shape of the opening.
    pub shape: ProbeShape,
    /// Diameter or edge of the opening, m; default half of the frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<f64>,
    /// Focal length of a lens filling the opening, m; default no lens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focal_length: Option<f64>,
    /// Diameter of a central stop (of a zone plate), m; default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub central_stop: Option<f64>,
    /// Width of the edges of opening and stop, m; default a pixel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft_edge: Option<f64>,
    /// Distance of the sample behind opening or focus, m; default estimated for a start from data, 0 for an opening.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defocus: Option<f64>,
    /// Power of each further mode relative to the first.
    pub mode_power: f64,
    /// Photons of a frame; default those of the brightest frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub photons: Option<f64>,
}

impl ProbeConfig {
    /// Keys of the opening that are set.
    pub(crate) fn opening(&self) -> Vec<&'static str> {
        let set = [
            ("shape", self.shape != ProbeShape::default()),
            ("size", self.size.is_some()),
            ("focal_length", self.focal_length.is_some()),
            ("central_stop", self.central_stop.is_some()),
            ("soft_edge", self.soft_edge.is_some()),
        ];
        set.into_iter().filter_map(|(key, set)| set.then_some(key)).collect()
    }
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self {
            modes: 1,
            start: ProbeStart::File,
            shape: ProbeShape::Round,
            size: None,
            focal_length: None,
            central_stop: None,
            soft_edge: None,
            defocus: None,
            mode_power: 0.1,
            photons: None,
        }
    }
}

/// Origin of an initial probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProbeStart {
    /// The scan's file, else the data or an opening.
    #[default]
    File,
    /// The mean frame (far field).
    Data,
    /// An opening (keys below).
    Opening,
}

/// Shape of an opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProbeShape {
    /// A disc.
    #[default]
    Round,
    /// A rectangle.
    Square,
}

/// The initial object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ObjectConfig {
    /// Modes: 1 unless the sample moved during an exposure.
    #[schemars(range(min = 1, max = 16))]
    pub modes: usize,
    /// Ignores the object in the scan's file.
    pub ignore_file: bool,
    /// Modulus to start from.
    pub fill: f64,
    /// Margin around what the views see, pixels; position refinement needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<usize>,
}

impl Default for ObjectConfig {
    fn default() -> Self {
        Self { modes: 1, ignore_file: false, fill: 1.0, margin: None }
    }
}

impl Config {
    /// An input of one scan file and one engine.
    pub fn new(scan: ScanConfig, engine: EngineConfig) -> Self {
        Self {
            precision: Precision::F32,
            compatibility: Compatibility::None,
            deterministic: false,
            object_update: ObjectUpdate::Auto,
            resample: single(),
            subpixel: false,
            frc: false,
            scan: vec![scan],
            probe: ProbeConfig::default(),
            object: ObjectConfig::default(),
            engine: vec![engine],
            output: OutputConfig::default(),
            memory: MemoryConfig::default(),
        }
    }

    /// Finds every problem that can be seen without allocating anything, paths relative to this table.
    pub fn check(&self) -> Vec<Problem> {
        check::all(self)
    }

    /// Reason for which an input is not shared out over parts of a run.
    pub fn only_in_one_part(&self) -> Option<&'static str> {
        // Frames of a batch begin with the same object and probe: parts have theirs at the same time.
        let in_turn = |e: &EngineConfig| match e.name {
            EngineName::Epie | EngineName::Rpie | EngineName::Sdr => e.batch.unwrap_or(1) <= 1,
            EngineName::Lsqml => e.batch.is_some_and(|batch| batch <= 1),
            EngineName::Dm | EngineName::Raar | EngineName::Ml => false,
        };
        if self.engine.iter().any(in_turn) {
            return Some(
                "frames that come one after the other, each with what those before have left, are no work for several parts: ask for \
                 a larger `batch` (ePIE, rPIE and SDR take one frame at a time where it is left out)",
            );
        }
        None
    }

    /// Reason for which parts of a run of an input are on CPUs only.
    pub fn parts_only_on_cpu(&self) -> Option<&'static str> {
        if self.object_update == ObjectUpdate::Atomic {
            return Some("`object_update = \"atomic\"` adds in no order, and parts take frames in theirs");
        }
        if self.memory.exit_waves == WaveStorage::F16 {
            return Some("exit waves in half precision (`memory.exit_waves`) are for frames that one part streams");
        }
        let limited = self.memory.bytes().is_some();
        limited.then_some("a limit of memory (`memory.device`) has one part stream frames there, and parts hold theirs")
    }

    /// Updates and refinements that would begin after the last iteration of their engine.
    pub fn never(&self) -> Vec<String> {
        late::never(self)
    }

    /// Memory limits of a run, for the fraction `part` of the requested memory.
    pub fn memory_budget(&self, part: f64) -> MemoryBudget {
        let some = |which: fn(EngineName) -> bool| self.engine.iter().any(|e| which(e.name));
        let goes = |e: &&EngineConfig| matches!(e.name, EngineName::Epie | EngineName::Rpie | EngineName::Sdr | EngineName::Lsqml);
        let largest = |which: fn(&EngineConfig) -> bool| {
            let batches = self.engine.iter().filter(goes).filter(|e| which(e)).map(|e| e.batch.unwrap_or(1));
            batches.max().unwrap_or(0)
        };
        let demand = KeptData {
            waves: some(EngineName::keeps_exits),
            likelihood: some(|e| e == EngineName::Ml),
            sequence: some(|e| matches!(e, EngineName::Epie | EngineName::Rpie)),
            // SDR may keep no waves either: without a reflection.
            batches: [largest(|_| true), largest(|e| e.name.keeps_exits())],
            positions: self.engine.iter().any(|e| e.positions.is_some()),
            default_batch: self.engine.iter().any(|e| e.name == EngineName::Lsqml && e.batch.is_none()),
            double: self.precision == Precision::F64,
        };
        let allowance = self.memory.bytes().map(|bytes| (bytes as f64 * part) as u64);
        MemoryBudget {
            allowance,
            half: self.memory.exit_waves == WaveStorage::F16,
            demand,
            folder: self.memory.scratch.clone(),
            object_update: self.object_update,
            deterministic: self.deterministic,
        }
    }

    /// Names of the scans: as given, or by their number.
    pub(crate) fn scan_names(&self) -> Vec<String> {
        self.scan.iter().enumerate().map(|(i, s)| s.name.clone().unwrap_or_else(|| format!("scan{i}"))).collect()
    }

    /// Scans in the memory of a caller, and names of them in a checkpoint.
    pub(crate) fn callers_arrays(&self) -> impl Iterator<Item = (String, &ScanArrays)> {
        self.scan.iter().enumerate().filter_map(|(i, scan)| scan.arrays.as_deref().map(|arrays| (format!("arrays.{i}"), arrays)))
    }

    /// Checks whether a run with the engines `before` may continue with these, and names the obstacle otherwise: the last of them
    /// may get another number of iterations, and others may follow it.
    pub(crate) fn goes_on(&self, before: &[EngineConfig]) -> Result<(), String> {
        const MAY: &str = "a resumed run may have other iterations of its last engine, and further engines after it";
        if self.engine.len() < before.len() {
            return Err(format!(
                "the checkpoint belongs to an input of {} engines, this one has {}: {MAY}",
                before.len(),
                self.engine.len()
            ));
        }
        for (i, (then, now)) in before.iter().zip(&self.engine).enumerate() {
            let iterations = if i + 1 == before.len() { now.iterations } else { then.iterations };
            if (EngineConfig { iterations, ..then.clone() }) != *now {
                return Err(format!("the checkpoint belongs to another input: engine[{i}] ({}) differs; {MAY}", then.name.as_str()));
            }
        }
        Ok(())
    }

    /// Iterations of all engines.
    pub fn iterations(&self) -> u64 {
        self.engine.iter().map(EngineConfig::iterations).sum()
    }
}
