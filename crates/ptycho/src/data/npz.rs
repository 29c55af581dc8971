//! Scans in NumPy's archives.
//!
//! | array | what |
//! |---|---|
//! | `intensity` (or `frames`, `data`) | `[n][rows][columns]` counts, centred |
//! | `pos_m` (or `positions`) | `[n][2]` metres, y before x; else `pos_px` times the object's pixel |
//! | `mask` | true where a pixel counts |
//! | `wavelength` (m) or `energy_keV`, `distance` (m), `det_pixel` (m) | geometry |
//! | `near_field` | 1 in the near field, 0 or left out in the far field |
//! | `probe_init` (or `probe`), `object_init` (or `object`) | to start from; the object only with `addr` |
//! | `probe_true`, `object_true`, `object_true_origin` (m), `pos_true` (m) | what a simulated scan was made from |
//!
//! With `addr` (PtyPy's table of views: per view and mode rows for probe, object, exit, frame and mask of layer, row and column)
//! the object's patches are taken from there exactly.

use std::path::Path;

use zellige_engine::error::{Error, Result};
use zellige_io::npz::Archive;
use zellige_io::tensor::Elements;

use super::{FramesInMemory, Geometry, LoadExtent, MaskValid, RawFrames, RawScan, ReadConfig, frames_shape, image, pairs};
use crate::scan::{HC, Image, Propagation, Truth};
use crate::simulate::Pair;

/// Frames of an archive, which are read when the first of them are asked for: they may be packed and then only come as a whole.
struct ArchiveFrames {
    archive: Archive,
    name: String,
    held: Option<FramesInMemory>,
}

impl RawFrames for ArchiveFrames {
    fn read(&mut self, first: usize, count: usize) -> Result<Elements> {
        let Self { archive, name, held } = self;
        let held = match held {
            Some(held) => held,
            None => held.insert(FramesInMemory(archive.read(name)?)),
        };
        held.read(first, count)
    }
}

/// Reads an archive.
pub(super) fn open(path: &Path, read: &ReadConfig, depth: LoadExtent) -> Result<RawScan> {
    let mut archive = Archive::open(path)?;
    let content_error = |message: String| Error::format(path, "NPZ scan", message);
    let asked = |name: &Option<String>, known: &[&str], archive: &Archive| match name {
        Some(name) => Some(name.clone()),
        None => known.iter().find(|k| archive.has(k)).map(|k| (*k).to_owned()),
    };
    let name = asked(&read.frames, &["intensity", "frames", "data", "diffraction"], &archive);
    let name = name.ok_or_else(|| content_error(format!("it has no `intensity` (arrays: {})", archive.listing())))?;
    let all = archive.shape(&name)?;
    let (count, shape) = frames_shape(&all).ok_or_else(|| content_error(format!("`{name}` is {all:?}, not [n, rows, columns]")))?;
    let frames = ArchiveFrames { archive: Archive::open(path)?, name, held: None };
    let number = |archive: &mut Archive, name: &str| -> Result<Option<f64>> {
        Ok(archive.maybe(name)?.and_then(|t| t.to_reals()).and_then(|v| v.first().copied()))
    };
    let mut notes = Vec::new();
    let energy = number(&mut archive, "energy_keV")?.or(number(&mut archive, "energy")?);
    let pixel = archive.maybe("det_pixel")?.or(archive.maybe("pixel")?).and_then(|t| t.to_reals());
    let geometry = Geometry {
        wavelength: number(&mut archive, "wavelength")?.or(energy.map(|e| HC / e)),
        distance: number(&mut archive, "distance")?,
        pixel: pixel.and_then(|p| p.first().map(|y| [*y, p.get(1).copied().unwrap_or(*y)])),
        propagation: number(&mut archive, "near_field")?.map(|near| if near == 0.0 { Propagation::Far } else { Propagation::Near }),
    };
    // The input's numbers go before those of the archive, also where positions are in pixels.
    let resolution = match (read.energy.map(|e| HC / e).or(geometry.wavelength), read.distance.or(geometry.distance)) {
        (Some(wavelength), Some(distance)) => read.pixel.map(Pair::both).or(geometry.pixel).map(|pixel| {
            let beam = crate::scan::Beam { wavelength, distance, pixel, propagation: geometry.propagation(read) };
            beam.resolution(shape)
        }),
        _ => None,
    };
    let arrays = Arrays { read, content_error: &content_error };
    let (positions, origin) = arrays.positions(&mut archive, count, shape, resolution)?;
    let layer = |name: Option<String>, archive: &mut Archive| name.map(|n| archive.read(&n)).transpose();
    // Arrays that the input names (mask, dark, flat, positions) are read as for the other formats.
    let mask = if read.mask.is_none() && depth == LoadExtent::Whole { archive.maybe("mask")?.and_then(|t| t.to_reals()) } else { None };
    let valid = read.mask_valid.unwrap_or(MaskValid::Nonzero);
    let mask = mask.map(|m| m.into_iter().map(|v| (v != 0.0) == (valid == MaskValid::Nonzero)).collect());
    let spacing = resolution.unwrap_or([1.0; 2]);
    let find = |names: &[&str], archive: &mut Archive| layer(asked(&None, names, archive), archive);
    let probe = find(&["probe_init", "probe"], &mut archive)?.and_then(|t| image(&t, spacing, None));
    let object = find(&["object_init", "object"], &mut archive)?;
    if object.is_some() && origin.is_none() {
        let why = "its coordinates are known from `addr` alone, and positions are not taken from there";
        notes.push(format!(
            "the object of the file is ignored: {why}; `read = {{ start = ... }}` begins with the object of an archive or .ptyr"
        ));
    }
    let object = object.zip(origin).and_then(|(t, origin)| image(&t, spacing, Some(origin)));
    let turned = read.swap || read.flip != [false; 2] || read.positions_unit != 1.0;
    let truth = if turned { None } else { truth(&mut archive, geometry, shape)? };
    Ok(RawScan {
        frames: Box::new(frames),
        count,
        shape,
        positions,
        mask,
        dark: None,
        flat: None,
        geometry,
        center: None,
        probe,
        object,
        refined: None,
        truth,
        listing: None,
        notes,
    })
}

/// Reads the truth that a simulated scan was made from, as written with it: `object_true` with `object_true_origin`, `probe_true`,
/// `pos_true`.
fn truth(archive: &mut Archive, geometry: Geometry, shape: [usize; 2]) -> Result<Option<Truth>> {
    let Geometry { wavelength: Some(wavelength), distance: Some(distance), pixel: Some(pixel), propagation } = geometry else {
        return Ok(None);
    };
    let (Some(object), Some(probe)) = (archive.maybe("object_true")?, archive.maybe("probe_true")?) else { return Ok(None) };
    let origin = archive.maybe("object_true_origin")?.and_then(|t| t.to_reals()).and_then(|v| <[f64; 2]>::try_from(v).ok());
    let positions = archive.maybe("pos_true")?.and_then(|t| pairs(&t));
    let beam = crate::scan::Beam { wavelength, distance, pixel, propagation: propagation.unwrap_or_default() };
    let Some(probe) = image(&probe, beam.resolution(shape), None) else { return Ok(None) };
    // Waves that were finer than the detector have finer pixels in the near field.
    let finer = [0, 1].map(|d| if beam.propagation == Propagation::Near { (probe.shape[1 + d] / shape[d]).max(1) } else { 1 });
    let spacing = [0, 1].map(|d| beam.resolution(shape)[d] / finer[d] as f64);
    let object = origin.and_then(|origin| image(&object, spacing, Some(origin)));
    let probe = Image { origin: [0, 1].map(|d| -((probe.shape[1 + d] / 2) as f64) * spacing[d]), spacing, ..probe };
    Ok(object.zip(positions).map(|(object, positions)| Truth { probe, object, positions }))
}

struct Arrays<'a> {
    read: &'a ReadConfig,
    content_error: &'a dyn Fn(String) -> Error,
}

impl Arrays<'_> {
    /// Positions as the archive has them (none where the input names others), and the coordinates of the object's first pixel if
    /// the archive says where views lie in it.
    #[allow(clippy::type_complexity)]
    fn positions(
        &self,
        archive: &mut Archive,
        count: usize,
        shape: [usize; 2],
        resolution: Option<[f64; 2]>,
    ) -> Result<(Vec<[f64; 2]>, Option<[f64; 2]>)> {
        let resolution_known =
            || resolution.ok_or_else(|| (self.content_error)("positions in pixels need wavelength, distance and det_pixel".into()));
        if self.read.positions.is_some() || self.read.positions_y.is_some() {
            return Ok((Vec::new(), None));
        }
        if archive.has("addr") {
            if self.read.swap || self.read.flip != [false; 2] || self.read.positions_unit != 1.0 {
                let message = "its views lie in the object as `addr` says: `positions_unit`, `flip` and `swap` are for positions that `read.positions` names";
                return Err((self.content_error)(format!("{message} (arrays: {})", archive.listing())));
            }
            let addresses = archive.read("addr")?;
            let &[views, modes, 5, 3] = &addresses.shape[..] else {
                return Err((self.content_error)(format!("`addr` is {:?}, not [views, modes, 5, 3]", addresses.shape)));
            };
            if modes == 0 {
                return Err((self.content_error)("`addr` has no modes".into()));
            }
            let (values, pixel) = (addresses.to_reals().unwrap_or_default(), resolution_known()?);
            let start = |j: usize| [values[j * modes * 15 + 4], values[j * modes * 15 + 5]];
            let half = shape.map(|n| (n / 2) as f64);
            let position = |j: usize| [0, 1].map(|d| (start(j)[d] + half[d]) * pixel[d]);
            return Ok(((0..views).map(position).collect(), Some([0.0; 2])));
        }
        if let Some(name) = ["pos_m", "positions", "translation"].iter().find(|k| archive.has(k)) {
            let tensor = archive.read(name)?;
            let found = pairs(&tensor).ok_or_else(|| (self.content_error)(format!("`{name}` is {:?}, not [{count}, 2]", tensor.shape)))?;
            return Ok((found, None));
        }
        if archive.has("pos_px") {
            let pixel = resolution_known()?;
            let found = pairs(&archive.read("pos_px")?).ok_or_else(|| (self.content_error)(format!("`pos_px` is not [{count}, 2]")))?;
            // Exchanged later, with all others.
            let pixel = if self.read.swap { [pixel[1], pixel[0]] } else { pixel };
            return Ok((found.into_iter().map(|p| [0, 1].map(|d| p[d] * pixel[d])).collect(), None));
        }
        Err((self.content_error)(format!("it has no positions: `pos_m`, `positions` or `pos_px` (arrays: {})", archive.listing())))
    }
}
