//! Reading options of a file, where its format leaves a choice.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::error::Problem;

use crate::scan::Propagation;
use crate::simulate::Pair;

/// Formats of scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileFormat {
    /// NumPy's archive.
    Npz,
    /// PtyPy's data.
    Ptyd,
    /// CXI, and NeXus' NXcxi_ptycho.
    Cxi,
    /// HDF5, by dataset paths.
    Hdf5,
}

/// Reading options of a file, which take precedence over what it says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReadConfig {
    /// Format; default by ending and content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<FileFormat>,
    /// Dataset of the frames: `[n][rows][columns]`, or `[a][b][rows][columns]` for a raster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<String>,
    /// Dataset of the positions: `[n][2]` or more, y (slow) before x unless `swap`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions: Option<String>,
    /// Dataset of y positions, one per frame or raster row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions_y: Option<String>,
    /// Dataset of x positions, one per frame or raster column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions_x: Option<String>,
    /// File of the positions, if another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions_file: Option<PathBuf>,
    /// Metres in one unit of the positions.
    pub positions_unit: f64,
    /// Reads x before y in the positions.
    pub swap: bool,
    /// Reverses positions along y, x: true where larger numbers move the view up (left).
    pub flip: [bool; 2],
    /// Dataset of the mask: rows and columns, or one per frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask: Option<String>,
    /// File of the mask, if another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask_file: Option<PathBuf>,
    /// Mark of a valid pixel in the mask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask_valid: Option<MaskValid>,
    /// Dataset of the dark frame to subtract: one, or several to average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dark: Option<String>,
    /// Dataset of the pixels' response, by which frames are divided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flat: Option<String>,
    /// Detector counts per photon.
    pub gain: f64,
    /// Treatment of negative counts, which are reported.
    pub negative: Negative,
    /// Treatment of values that are no counts (not a number, all bits set), which are reported.
    pub invalid: Invalid,
    /// Counts from which a pixel is saturated and masked in that frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saturated: Option<f64>,
    /// Masks pixels that count this many times more than those around them in each of 16 frames spread over the scan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hot: Option<f64>,
    /// Photon energy, keV.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<f64>,
    /// Distance from sample to detector, m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// Pixel of the detector, m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pixel: Option<Pair<f64>>,
    /// Far or near field; default as in the file, else far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propagation: Option<Propagation>,
    /// Row and column of the optical axis in the file's frames, pixels; default as in the file, else the middle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub center: Option<[f64; 2]>,
    /// Orientation of frames: 1 mirrors columns, 2 mirrors rows, 4 exchanges rows and columns first; sums combine.
    #[schemars(range(max = 7))]
    pub orientation: u8,
    /// Leaves the frames in the file and reads them in blocks.
    pub stream: bool,
    /// Results (`.ptyr`, or `.npz` with `probe` and `object`) that the run starts from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<PathBuf>,
    /// Also takes the refined positions of `start`.
    pub start_positions: bool,
    /// Label of the scan in `start`, where it has several; default the scan's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_label: Option<String>,
}

/// Interpretation of a negative count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Negative {
    /// Zero counts.
    #[default]
    Zero,
    /// The pixel is masked.
    Mask,
    /// Error.
    Refuse,
}

/// Treatment of a value that is no count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Invalid {
    /// The pixel is masked.
    #[default]
    Mask,
    /// Error.
    Refuse,
}

/// Mark of a valid pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MaskValid {
    /// Anything but 0.
    Nonzero,
    /// 0; others are faults.
    Zero,
}

impl Default for ReadConfig {
    fn default() -> Self {
        Self {
            format: None,
            frames: None,
            positions: None,
            positions_y: None,
            positions_x: None,
            positions_file: None,
            positions_unit: 1.0,
            swap: false,
            flip: [false; 2],
            mask: None,
            mask_file: None,
            mask_valid: None,
            dark: None,
            flat: None,
            gain: 1.0,
            negative: Negative::Zero,
            invalid: Invalid::Mask,
            saturated: None,
            hot: None,
            energy: None,
            distance: None,
            pixel: None,
            propagation: None,
            center: None,
            orientation: 0,
            stream: false,
            start: None,
            start_positions: true,
            start_label: None,
        }
    }
}

impl ReadConfig {
    /// Returns true if no option is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Finds every problem of the table, paths relative to it.
    pub fn check(&self) -> Vec<Problem> {
        let mut faults = Vec::new();
        let mut positive = |path: &str, value: Option<f64>, low: f64, high: f64| {
            if let Some(v) = value.filter(|v| !(*v >= low && *v <= high)) {
                faults.push(Problem::new(path, format!("the value is {v:e}")).allowed(format!("{low:e} to {high:e}")));
            }
        };
        positive("positions_unit", Some(self.positions_unit), 1e-15, 1e3);
        positive("gain", Some(self.gain), 1e-12, 1e12);
        positive("saturated", self.saturated, 1.0, 4e9);
        positive("hot", self.hot, 1.0, 1e9);
        positive("energy", self.energy, 1e-6, 1e6);
        positive("distance", self.distance, 1e-9, 1e6);
        for p in self.pixel.iter().flat_map(|p| p.both()) {
            positive("pixel", Some(p), 1e-12, 1.0);
        }
        if self.positions.is_some() && (self.positions_y.is_some() || self.positions_x.is_some()) {
            faults.push(
                Problem::new("positions", "positions are named twice").hint("either `positions`, or `positions_y` and `positions_x`"),
            );
        }
        for (key, file, what) in [
            ("mask", self.mask_file.is_some(), self.mask.is_some()),
            ("positions", self.positions_file.is_some(), self.positions.is_some() || self.positions_y.is_some()),
        ] {
            if file && !what {
                let message = format!("the dataset of its {key} is not given");
                faults.push(Problem::new(format!("{key}_file"), message).hint(format!("name it: `{key} = \"PATH\"`")));
            }
        }
        if self.swap && self.positions_y.is_some() {
            let problem = Problem::new("swap", "`positions_y` and `positions_x` say which is which");
            faults.push(problem.hint("leave it out, or exchange the two"));
        }
        if self.frames.is_some() && self.format == Some(FileFormat::Ptyd) {
            let problem = Problem::new("frames", "frames of a .ptyd are in its chunks");
            faults.push(problem.hint("leave it out, or `format = \"hdf5\"`"));
        }
        if self.start_label.is_some() && self.start.is_none() {
            faults
                .push(Problem::new("start_label", "there is no file of results to select from").hint("name it: `start = \"result.ptyr\"`"));
        }
        if self.positions_y.is_some() != self.positions_x.is_some() {
            faults.push(Problem::new("positions_y", "one of `positions_y` and `positions_x` is missing"));
        }
        faults
    }
}
