//! The Coherent X-ray Imaging database's format (F. R. N. C. Maia, Nature Methods 9 (2012) 854) and NeXus' NXcxi_ptycho, which has
//! the same names: `entry_1/{data_1/{data, translation}, instrument_1/{source_1/energy, beam_1/energy, detector_1/{distance,
//! x_pixel_size, mask, ...}}}`.
//!
//! `translation` is where the sample went, in metres or by its attribute `units`, x first. The view goes the other way, and rows
//! and columns of frames run as the detector's `basis_vectors` say; where these are missing rows run along -y and columns along -x,
//! as in most files, so that a larger translation moves the view down and right. Neither format says how waves propagate:
//! `detector_1/propagation` (`farfield`, `nearfield`) is this program's own.

use std::path::Path;

use zellige_engine::error::Result;
use zellige_io::hdf5::File;
use zellige_io::tensor::Tensor;

use super::{Geometry, LoadExtent, MaskValid, RawScan, ReadConfig, image, paths, propagation};
use crate::scan::HC;

/// Joules in a kiloelectronvolt.
const KEV: f64 = 1.602_176_634e-16;
/// Bit of a mask that marks a bad pixel only for masks of other programs: pixels that are fine but shadowed stay valid.
const HARMLESS: u32 = 0x1000;

/// The group of the first entry that holds ptychographic data.
pub(super) fn entry(file: &File) -> Result<Option<String>> {
    for group in file.children("")? {
        if (group.starts_with("entry") || group == "data") && data(file, &group)?.is_some() {
            return Ok(Some(group));
        }
    }
    Ok(None)
}

/// The dataset of the frames.
fn data(file: &File, entry: &str) -> Result<Option<String>> {
    for name in ["data_1/data", "instrument_1/detector_1/data", "data/data", "instrument/detector/data"] {
        let name = format!("{entry}/{name}");
        if file.has(&name)? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Reads a file.
pub(super) fn open(path: &Path, read: &ReadConfig, depth: LoadExtent) -> Result<RawScan> {
    let file = File::open(path)?;
    let Some(entry) = entry(&file)? else {
        return Err(file.content_error(format!("it has no `entry_1/data_1/data` (datasets: {})", file.listing())));
    };
    let name = match &read.frames {
        Some(name) => name.clone(),
        None => data(&file, &entry)?.unwrap_or_default(),
    };
    let (frames, count, shape) = paths::frames(&file, &name)?;
    let first = |names: &[&str]| -> Result<Option<f64>> {
        for name in names {
            if let Some(value) = length(&file, &format!("{entry}/{name}"), read.energy.is_some())? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    };
    let detector = format!("{entry}/instrument_1/detector_1");
    let [y, x] = ["y", "x"].map(|d| length(&file, &format!("{detector}/{d}_pixel_size"), read.pixel.is_some()));
    let (y, x) = (y?, x?);
    let geometry = Geometry {
        wavelength: energy(&file, &entry)?
            .map(|e| HC / e)
            .or(first(&["instrument_1/source_1/wavelength", "instrument_1/beam_1/incident_wavelength"])?),
        distance: length(&file, &format!("{detector}/distance"), read.distance.is_some())?.map(f64::abs),
        pixel: y.or(x).zip(x.or(y)).map(|(y, x)| [y, x]),
        propagation: propagation(&file, &format!("{detector}/propagation"), read)?,
    };
    let positions =
        if read.positions.is_some() || read.positions_y.is_some() { Vec::new() } else { positions(&file, &entry, count, read)? };
    let size = shape[0] * shape[1];
    let plane = |name: &str| if depth == LoadExtent::Plan { Ok(None) } else { file.maybe(&format!("{detector}/{name}")) };
    let mask = plane("mask")?.or(plane("pixel_mask")?).and_then(|t| t.to_reals());
    let mask = mask.map(|m| match read.mask_valid {
        Some(MaskValid::Nonzero) => m.into_iter().map(|v| v != 0.0).collect(),
        _ => m.into_iter().map(|v| v as u32 & !HARMLESS == 0).collect(),
    });
    let dark = plane("data_dark")?.and_then(|t| t.to_reals()).map(|v| paths::mean(&v, size));
    let centre = |name: &str, d: usize| -> Result<Option<f64>> {
        let name = format!("{detector}/{name}");
        let Some(value) = file.number(&name)?.filter(|_| read.center.is_none()) else { return Ok(None) };
        let units = file.attribute(&name, "units")?.unwrap_or_default();
        let length = match units.to_lowercase().trim() {
            "pixel" | "pixels" | "px" => return Ok(Some(value)),
            // Pixels, or metres as NeXus has it.
            "" if value.abs() >= 1.0 => return Ok(Some(value)),
            _ => value * metres(&file, &name, false)?,
        };
        Ok(Some(geometry.pixel.map_or(value, |p| length / p[d])))
    };
    let center = centre("beam_center_y", 0)?.zip(centre("beam_center_x", 1)?).map(|(y, x)| [y, x]);
    let mut probe = None;
    if let (Geometry { wavelength: Some(wavelength), distance: Some(distance), pixel: Some(pixel), .. }, Some(tensor)) =
        (geometry, file.maybe(&format!("{entry}/instrument_1/source_1/illumination"))?)
    {
        let beam = crate::scan::Beam { wavelength, distance, pixel, propagation: geometry.propagation(read) };
        probe = image(&tensor, beam.resolution(shape), None);
    }
    Ok(RawScan {
        frames,
        count,
        shape,
        positions,
        mask,
        dark,
        flat: None,
        geometry,
        center,
        probe,
        object: None,
        refined: None,
        truth: None,
        listing: None,
        notes: Vec::new(),
    })
}

/// Photon energy, keV: joules in CXI, whatever the attribute `units` says in NeXus.
fn energy(file: &File, entry: &str) -> Result<Option<f64>> {
    for name in ["instrument_1/beam_1/energy", "instrument_1/beam_1/incident_beam_energy", "instrument_1/source_1/energy"] {
        let name = format!("{entry}/{name}");
        let Some(value) = file.number(&name)? else { continue };
        let units = file.attribute(&name, "units")?.unwrap_or_default();
        let kev = match units.to_lowercase().trim() {
            "ev" => value * 1e-3,
            "kev" => value,
            "j" | "joule" | "joules" => value / KEV,
            // Without a unit: no beam has 1e-10 keV, none has 1e-10 J.
            _ if value < 1e-10 => value / KEV,
            _ if value > 150.0 => value * 1e-3,
            _ => value,
        };
        // The energy of the ring, gigaelectronvolts, is not that of the photons.
        if kev > 0.0 && kev < 1e4 {
            return Ok(Some(kev));
        }
    }
    Ok(None)
}

/// Metres in the unit that a dataset names, metres if it names none. A value that the input gives instead (`told`) takes
/// precedence.
fn metres(file: &File, name: &str, told: bool) -> Result<f64> {
    let units = if told { None } else { file.attribute(name, "units")? };
    Ok(match units.unwrap_or_default().to_lowercase().trim() {
        "" | "m" | "meter" | "meters" | "metre" | "metres" => 1.0,
        "cm" | "centimeter" | "centimeters" | "centimetre" | "centimetres" => 1e-2,
        "mm" | "millimeter" | "millimeters" | "millimetre" | "millimetres" => 1e-3,
        // The micro sign and the Greek letter.
        "um" | "\u{b5}m" | "\u{3bc}m" | "micron" | "microns" | "micrometer" | "micrometers" | "micrometre" | "micrometres" => 1e-6,
        "nm" | "nanometer" | "nanometers" | "nanometre" | "nanometres" => 1e-9,
        "\u{e5}" | "a" | "angstrom" | "angstroms" => 1e-10,
        "pm" | "picometer" | "picometers" | "picometre" | "picometres" => 1e-12,
        other => {
            let known = "m, cm, mm, um (micron), nm, angstrom or pm";
            return Err(file.content_error(format!("`{name}` is in `{other}`, not in {known}; give it in metres under `read`")));
        }
    })
}

/// A length, metres.
fn length(file: &File, name: &str, told: bool) -> Result<Option<f64>> {
    file.number(name)?.map(|value| Ok(value * metres(file, name, told)?)).transpose()
}

/// Positions of the view from the translations of the sample.
fn positions(file: &File, entry: &str, count: usize, read: &ReadConfig) -> Result<Vec<[f64; 2]>> {
    // A unit that the input names goes before the file's.
    let told = read.positions_unit != 1.0;
    let detector = format!("{entry}/instrument_1/detector_1");
    let names =
        [format!("{entry}/data_1/translation"), format!("{entry}/sample_1/geometry_1/translation"), format!("{detector}/translation")];
    for name in names {
        let Some(tensor) = file.maybe(&name)? else { continue };
        let (width, values) = (tensor.shape.last().copied().unwrap_or(0), tensor.to_reals().unwrap_or_default());
        if width < 2 || values.len() != count * width {
            return Err(file.content_error(format!("`{name}` is {:?}, for {count} frames", tensor.shape)));
        }
        let basis = match file.maybe(&format!("{detector}/basis_vectors"))? {
            Some(b) => Some(b),
            None => file.maybe(&format!("{detector}/geometry_1/basis_vectors"))?,
        };
        let basis = basis.filter(|b| b.shape == [2, 3]).and_then(|b| b.to_reals());
        let along = |d: usize| match &basis {
            Some(b) => {
                let v = [b[3 * d], b[3 * d + 1]];
                let norm = v[0].hypot(v[1]).max(f64::MIN_POSITIVE);
                [-v[0] / norm, -v[1] / norm]
            }
            None => [[0.0, 1.0], [1.0, 0.0]][d],
        };
        let (rows, columns, unit) = (along(0), along(1), metres(file, &name, told)?);
        let position = |t: &[f64]| [rows, columns].map(|d| unit * (d[0] * t[0] + d[1] * t[1]));
        return Ok(values.chunks_exact(width).map(position).collect());
    }
    // NeXus: one dataset a motor.
    for (y, x) in [("sample_1/transformations/y", "sample_1/transformations/x"), ("data/y", "data/x")] {
        let [y, x] = [y, x].map(|motor| format!("{entry}/{motor}"));
        let units = [metres(file, &y, told), metres(file, &x, told)];
        if let (Some(y), Some(x)) = (file.maybe(&y)?, file.maybe(&x)?) {
            let [uy, ux] = units;
            let (uy, ux) = (uy?, ux?);
            let all = |t: &Tensor, unit: f64| t.to_reals().unwrap_or_default().into_iter().map(|v| v * unit).collect::<Vec<f64>>();
            let (vy, vx) = (all(&y, uy), all(&x, ux));
            return paths::axes(&vy, &vx, count)
                .ok_or_else(|| file.content_error(format!("positions {:?} and {:?} for {count} frames", y.shape, x.shape)));
        }
    }
    Err(file.content_error(format!("it has no `{entry}/data_1/translation` (datasets: {})", file.listing())))
}
