//! The Coherent X-ray Imaging database's format (F. R. N. C. Maia, Nature Methods 9 (2012) 854) and NeXus' NXcxi_ptycho, which has the same names:
//! `entry_1/{data_1/{data, translation}, instrument_1/{source_1/energy, beam_1/energy, detector_1/{distance, x_pixel_size, mask, ...}}}`.
//!
//! `translation` is where the sample went, in metres, x first. The view goes the other way, and rows and columns of frames run as the
//! detector's `basis_vectors` say; where these are missing rows run along -y and columns along -x, as in most files, so that a
//! larger translation moves the view down and right. Neither format says how waves propagate: `detector_1/propagation` (`farfield`, `nearfield`) is this
//! program's own.

use std::path::Path;

use zellige_engine::error::Result;
use zellige_io::hdf5::File;

use super::{Geometry, MaskValid, Raw, ReadConfig, image, paths, propagation};
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
pub(super) fn open(path: &Path, read: &ReadConfig) -> Result<Raw> {
    let file = File::open(path)?;
    let Some(entry) = entry(&file)? else {
        return Err(file.wrong(format!("it has no `entry_1/data_1/data` (datasets: {})", file.listing())));
    };
    let name = match &read.frames {
        Some(name) => name.clone(),
        None => data(&file, &entry)?.unwrap_or_default(),
    };
    let (frames, count, shape) = paths::frames(&file, &name)?;
    let first = |names: &[&str]| -> Result<Option<f64>> {
        for name in names {
            if let Some(value) = file.number(&format!("{entry}/{name}"))? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    };
    let detector = format!("{entry}/instrument_1/detector_1");
    let (y, x) = (file.number(&format!("{detector}/y_pixel_size"))?, file.number(&format!("{detector}/x_pixel_size"))?);
    let geometry = Geometry {
        wavelength: energy(&file, &entry)?
            .map(|e| HC / e)
            .or(first(&["instrument_1/source_1/wavelength", "instrument_1/beam_1/incident_wavelength"])?),
        distance: file.number(&format!("{detector}/distance"))?.map(f64::abs),
        pixel: y.or(x).zip(x.or(y)).map(|(y, x)| [y, x]),
        propagation: propagation(&file, &format!("{detector}/propagation"), read)?,
    };
    let positions = if read.positions.is_some() || read.positions_y.is_some() { Vec::new() } else { positions(&file, &entry, count)? };
    let size = shape[0] * shape[1];
    let mask = file.maybe(&format!("{detector}/mask"))?.or(file.maybe(&format!("{detector}/pixel_mask"))?).and_then(|t| t.to_reals());
    let mask = mask.map(|m| match read.mask_valid {
        Some(MaskValid::Nonzero) => m.into_iter().map(|v| v != 0.0).collect(),
        _ => m.into_iter().map(|v| v as u32 & !HARMLESS == 0).collect(),
    });
    let dark = file.maybe(&format!("{detector}/data_dark"))?.and_then(|t| t.to_reals()).map(|v| paths::mean(&v, size));
    let (cy, cx) = (file.number(&format!("{detector}/beam_center_y"))?, file.number(&format!("{detector}/beam_center_x"))?);
    let center = cy.zip(cx).map(|(y, x)| {
        // Pixels, or metres as NeXus has it.
        let scale = |v: f64, d: usize| geometry.pixel.filter(|_| v.abs() < 1.0).map_or(v, |p| v / p[d]);
        [scale(y, 0), scale(x, 1)]
    });
    let mut probe = None;
    if let (Geometry { wavelength: Some(wavelength), distance: Some(distance), pixel: Some(pixel), .. }, Some(tensor)) =
        (geometry, file.maybe(&format!("{entry}/instrument_1/source_1/illumination"))?)
    {
        let beam = crate::scan::Beam { wavelength, distance, pixel, propagation: geometry.propagation(read) };
        probe = image(&tensor, beam.resolution(shape), None);
    }
    Ok(Raw { frames, count, shape, positions, mask, dark, flat: None, geometry, center, probe, object: None, notes: Vec::new() })
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

/// Positions of the view from the translations of the sample.
fn positions(file: &File, entry: &str, count: usize) -> Result<Vec<[f64; 2]>> {
    let detector = format!("{entry}/instrument_1/detector_1");
    let names =
        [format!("{entry}/data_1/translation"), format!("{entry}/sample_1/geometry_1/translation"), format!("{detector}/translation")];
    for name in names {
        let Some(tensor) = file.maybe(&name)? else { continue };
        let (width, values) = (tensor.shape.last().copied().unwrap_or(0), tensor.to_reals().unwrap_or_default());
        if width < 2 || values.len() != count * width {
            return Err(file.wrong(format!("`{name}` is {:?}, for {count} frames", tensor.shape)));
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
        let (rows, columns) = (along(0), along(1));
        let place = |t: &[f64]| [rows[0] * t[0] + rows[1] * t[1], columns[0] * t[0] + columns[1] * t[1]];
        return Ok(values.chunks_exact(width).map(place).collect());
    }
    // NeXus: one dataset a motor.
    for (y, x) in [("sample_1/transformations/y", "sample_1/transformations/x"), ("data/y", "data/x")] {
        let pair = (file.maybe(&format!("{entry}/{y}"))?, file.maybe(&format!("{entry}/{x}"))?);
        if let (Some(y), Some(x)) = pair {
            let (vy, vx) = (y.to_reals().unwrap_or_default(), x.to_reals().unwrap_or_default());
            return paths::axes(&vy, &vx, count)
                .ok_or_else(|| file.wrong(format!("positions {:?} and {:?} for {count} frames", y.shape, x.shape)));
        }
    }
    Err(file.wrong(format!("it has no `{entry}/data_1/translation` (datasets: {})", file.listing())))
}
