//! Scans from files: NPZ, PtyPy's `.ptyd`, CXI with NXcxi_ptycho, and any HDF5 file by the paths of its datasets.
//!
//! A reader (`npz`, `ptyd`, `cxi`, `paths`) finds the raw frames, the positions and the geometry; what is common to all
//! (optical axis, cropping, summing of pixels, orientation, dark and flat frames, masks, checks) is in `assemble`, for whole
//! scans as for frames that stay in the file and are read in blocks.

mod assemble;
mod config;
mod cxi;
mod memory;
mod npz;
mod paths;
mod pipeline;
mod ptyd;
mod start;
pub mod write;

use std::path::Path;

use zellige_engine::error::{Error, Problem, Result};
use zellige_io::hdf5;
use zellige_io::npz::Archive;
use zellige_io::tensor::{Elements, Tensor};

pub(crate) use assemble::{BLOCK_BYTES, check_geometry, units};
pub use config::{FileFormat, Invalid, MaskValid, Negative, ReadConfig};
pub use memory::{CallersCounts, ScanArrays, UnreadCounts};

use crate::config::ScanConfig;
use crate::scan::{Image, Propagation, Scan, Truth};
use crate::simulate;

/// The scan of an entry of `[[ptycho.scan]]`, read or made, cropped and summed as the entry says. Relative paths are looked for in
/// `folder`.
pub fn load(config: &ScanConfig, name: &str, folder: &Path, seed: u64) -> Result<Scan> {
    load_among(config, [name; 3], folder, seed, LoadExtent::Whole)
}

/// Extent to which a scan is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadExtent {
    /// Geometry, positions and start: neither frames nor masks are read or made.
    Plan,
    /// All of it.
    Whole,
    /// All but frames before `first` and from `last` on, where these can be left out.
    Some {
        /// First frame.
        first: usize,
        /// One past the last.
        last: usize,
    },
}

/// The scan of the first name, whose probe and object are those of the scans of the other two, which is what an earlier run's
/// results call them.
pub(crate) fn load_among(config: &ScanConfig, names: [&str; 3], folder: &Path, seed: u64, depth: LoadExtent) -> Result<Scan> {
    let name = names[0];
    match (&config.file, &config.simulate) {
        (Some(file), _) => {
            let path = folder.join(file);
            let raw = match &config.arrays {
                Some(arrays) => arrays.raw(depth)?,
                None => open(&path, &config.read, names, folder, depth)?,
            };
            assemble::assemble(raw, config, name, &path, depth)
        }
        (None, Some(made)) => {
            let plain = config.crop.is_none() && config.rebin.is_none_or(|r| r == 1) && config.every.is_none_or(|e| e == 1);
            let scan = match depth {
                LoadExtent::Plan => simulate::planned(made, name, folder, seed)?,
                LoadExtent::Some { first, last } if plain => simulate::simulate_some(made, name, folder, seed, first..last)?,
                _ => simulate::simulate(made, name, folder, seed)?,
            };
            if plain { Ok(scan) } else { assemble::crop(scan, config, name, depth) }
        }
        (None, None) => Err(Error::input("ptycho.scan", Problem::new("file", "no source of frames is given"))),
    }
}

/// Data and geometry found by a reader.
struct RawScan {
    /// Frames as they are in the file.
    frames: Box<dyn RawFrames>,
    /// Number of frames.
    count: usize,
    /// Rows and columns.
    shape: [usize; 2],
    /// Metres, `[y, x]`.
    positions: Vec<[f64; 2]>,
    /// Valid pixels: of one frame, or of all.
    mask: Option<Vec<bool>>,
    dark: Option<Vec<f32>>,
    flat: Option<Vec<f32>>,
    geometry: Geometry,
    /// Row and column of the optical axis.
    center: Option<[f64; 2]>,
    probe: Option<Image>,
    object: Option<Image>,
    /// Positions of the views at the end of an earlier run, as many as it had frames.
    refined: Option<Vec<[f64; 2]>>,
    /// Truth of a simulated scan.
    truth: Option<Truth>,
    /// Contents of the file, listed where it lacks something that must be known.
    listing: Option<String>,
    /// Observations that the user should know of.
    notes: Vec<String>,
}

/// Geometry stated in a file.
#[derive(Debug, Clone, Copy, Default)]
struct Geometry {
    /// Metres.
    wavelength: Option<f64>,
    distance: Option<f64>,
    pixel: Option<[f64; 2]>,
    propagation: Option<Propagation>,
}

impl Geometry {
    /// Sample to detector: what the input says, else the file, else far.
    fn propagation(&self, read: &ReadConfig) -> Propagation {
        read.propagation.or(self.propagation).unwrap_or_default()
    }
}

/// Reads how waves propagate according to a file, in PtyPy's words. Another word is an error unless the input states the
/// propagation.
fn propagation(file: &hdf5::File, name: &str, read: &ReadConfig) -> Result<Option<Propagation>> {
    let Some(word) = file.text(name)?.filter(|_| read.propagation.is_none()) else { return Ok(None) };
    match word.trim() {
        "farfield" | "far" => Ok(Some(Propagation::Far)),
        "nearfield" | "near" => Ok(Some(Propagation::Near)),
        other => {
            let message =
                format!("its `{name}` is `{other}`, neither `farfield` nor `nearfield`; say which: `read = {{ propagation = \"near\" }}`");
            Err(file.content_error(message))
        }
    }
}

/// Frames as they are in a file.
trait RawFrames: Send {
    /// `count` frames from `first` on.
    fn read(&mut self, first: usize, count: usize) -> Result<Elements>;
}

/// Frames that a plan asks nothing of.
struct UnreadFrames;

impl RawFrames for UnreadFrames {
    fn read(&mut self, _: usize, _: usize) -> Result<Elements> {
        unreachable!("a plan reads no frames")
    }
}

/// Frames in memory.
struct FramesInMemory(Tensor);

impl RawFrames for FramesInMemory {
    fn read(&mut self, first: usize, count: usize) -> Result<Elements> {
        let pixels = self.0.shape.iter().rev().take(2).product::<usize>();
        let range = first * pixels..(first + count) * pixels;
        Ok(match &self.0.elements {
            Elements::U16(v) => Elements::U16(v[range].to_vec()),
            Elements::I32(v) => Elements::I32(v[range].to_vec()),
            Elements::F32(v) => Elements::F32(v[range].to_vec()),
            Elements::F64(v) => Elements::F64(v[range].to_vec()),
            Elements::Complex(v) => Elements::Complex(v[range].to_vec()),
        })
    }
}

fn open(path: &Path, read: &ReadConfig, names: [&str; 3], folder: &Path, depth: LoadExtent) -> Result<RawScan> {
    let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    let format = match (read.format, ending.as_str()) {
        (Some(format), _) => format,
        (None, _) if read.frames.is_some() && ending != "npz" => FileFormat::Hdf5,
        (None, "npz") => FileFormat::Npz,
        (None, "ptyd") => FileFormat::Ptyd,
        (None, "cxi") => FileFormat::Cxi,
        (None, _) => guess(path)?,
    };
    let mut raw = match format {
        FileFormat::Npz => npz::open(path, read, depth)?,
        FileFormat::Ptyd => ptyd::open(path, read, depth)?,
        FileFormat::Cxi => cxi::open(path, read, depth)?,
        FileFormat::Hdf5 => paths::open(path, read, folder, depth)?,
    };
    if format != FileFormat::Hdf5 {
        paths::extra(&mut raw, path, read, folder, depth)?;
    }
    let Geometry { wavelength, distance, pixel, .. } = raw.geometry;
    if read.energy.is_none() && wavelength.is_none()
        || read.distance.is_none() && distance.is_none()
        || read.pixel.is_none() && pixel.is_none()
    {
        raw.listing = Some(if format == FileFormat::Npz { Archive::open(path)?.listing() } else { hdf5::File::open(path)?.listing() });
    }
    if let Some(file) = &read.start {
        let start = start::read(&folder.join(file), read.start_label.as_deref(), names)?;
        (raw.probe, raw.object, raw.refined) = (start.probe, start.object, start.positions.filter(|_| read.start_positions));
        // Notes on the file's own object no longer hold.
        raw.notes = start.notes;
    }
    Ok(raw)
}

/// The format of a file whose ending says nothing.
fn guess(path: &Path) -> Result<FileFormat> {
    let head = std::fs::File::open(path).and_then(|mut f| {
        let mut head = [0; 4];
        std::io::Read::read_exact(&mut f, &mut head).map(|()| head)
    });
    let head = head.map_err(|e| Error::file("read", path, e))?;
    if &head == b"PK\x03\x04" {
        return Ok(FileFormat::Npz);
    }
    let file = hdf5::File::open(path)?;
    let groups = file.children("")?;
    if groups.iter().any(|g| g == "chunks") && groups.iter().any(|g| g == "meta") {
        return Ok(FileFormat::Ptyd);
    }
    if cxi::entry(&file)?.is_some() {
        return Ok(FileFormat::Cxi);
    }
    let message = format!(
        "it is neither a .ptyd nor a CXI file; give the paths: `read = {{ frames = \"PATH\", positions = \"PATH\" }}` (datasets: {})",
        file.listing()
    );
    Err(file.content_error(message))
}

/// Rows and columns of the last two axes, and the number of frames before them.
fn frames_shape(shape: &[usize]) -> Option<(usize, [usize; 2])> {
    match shape {
        [before @ .., rows, columns] if !before.is_empty() && *rows > 0 && *columns > 0 => {
            Some((before.iter().product(), [*rows, *columns]))
        }
        _ => None,
    }
}

/// Positions from an array of `[n][2]` or wider.
fn pairs(tensor: &Tensor) -> Option<Vec<[f64; 2]>> {
    let (width, values) = (*tensor.shape.last()?, tensor.to_reals()?);
    (width >= 2).then(|| values.chunks_exact(width).map(|p| [p[0], p[1]]).collect())
}

/// An image of one or more layers from an array of two or more axes.
fn image(tensor: &Tensor, spacing: [f64; 2], origin: Option<[f64; 2]>) -> Option<Image> {
    let (layers, [rows, columns]) = match tensor.shape[..] {
        [rows, columns] => (1, [rows, columns]),
        _ => frames_shape(&tensor.shape)?,
    };
    let origin = origin.unwrap_or([-((rows / 2) as f64) * spacing[0], -((columns / 2) as f64) * spacing[1]]);
    Some(Image { shape: [layers, rows, columns], values: tensor.to_complex(), origin, spacing })
}
