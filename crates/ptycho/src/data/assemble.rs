//! Steps common to all formats: from raw frames, positions and geometry to a scan, with every check.

use std::path::Path;

use zellige_engine::error::{Error, Result};
use zellige_engine::links::Links;
use zellige_io::tensor::{Elements, Tensor};

use super::pipeline::{InvalidValues, Pipeline, StoredFrames};
use super::{FramesInMemory, Geometry, LoadExtent, RawScan, UnreadFrames};
use crate::config::ScanConfig;
use crate::scan::{Beam, Frames, HC, Mask, Propagation, Scan, Truth};

/// Raw values read at once.
const BLOCK: usize = 1 << 21;
/// Bytes that they take: of 8 as they are at the most, and in single precision.
pub(crate) const BLOCK_BYTES: u64 = 12 * BLOCK as u64;
/// Largest frame, pixels.
const MOST_PIXELS: usize = 1 << 28;
/// Error messages name this as the format.
const FORMAT: &str = "scan";

/// Makes a scan of what a reader found in `path`.
pub(super) fn assemble(mut raw: RawScan, config: &ScanConfig, name: &str, path: &Path, depth: LoadExtent) -> Result<Scan> {
    let content_error = |message: String| Error::format(path, FORMAT, message);
    let read = &config.read;
    let (rebin, every) = (config.rebin.unwrap_or(1), config.every.unwrap_or(1).max(1));
    if raw.count == 0 {
        return Err(content_error("it holds no frames".into()));
    }
    if raw.shape[0].saturating_mul(raw.shape[1]) > MOST_PIXELS {
        return Err(content_error(format!("its frames have {} x {} pixels, at most {MOST_PIXELS} are read", raw.shape[0], raw.shape[1])));
    }
    if raw.positions.len() != raw.count {
        return Err(content_error(format!("it has {} frames, but {} positions", raw.count, raw.positions.len())));
    }
    if let Some(j) = raw.positions.iter().position(|p| !p.iter().all(|v| v.is_finite())) {
        return Err(content_error(format!("the position of frame {j} is not a number: {:?}", raw.positions[j])));
    }
    let beam = beam(&raw, config, rebin).map_err(content_error)?;
    let turned = read.orientation & 4 != 0;
    let full = if turned { [raw.shape[1], raw.shape[0]] } else { raw.shape };
    let shape = config.crop.unwrap_or(full).map(|n| n / rebin / 2 * 2);
    if shape.contains(&0) {
        return Err(content_error(format!("frames of {} x {} pixels are too small", raw.shape[0], raw.shape[1])));
    }
    let interpreted = resized(full, config.crop, rebin, shape);
    let middle = raw.shape.map(|n| (n / 2) as f64);
    let center = read.center.or(raw.center).unwrap_or(middle);
    if (0..2).any(|d| !(0.0..raw.shape[d] as f64).contains(&center[d])) {
        return Err(content_error(format!(
            "the optical axis {center:?} lies outside frames of {} x {} pixels; `read.center` gives another one",
            raw.shape[0], raw.shape[1]
        )));
    }
    let mut pipeline = Pipeline::new(path.into(), raw.shape, shape, center, rebin, read.orientation);
    let size = raw.shape[0] * raw.shape[1];
    let mut notes = std::mem::take(&mut raw.notes);
    // A mask of one frame is part of the pipeline; one of each frame goes along.
    let each = raw.mask.take_if(|m| m.len() != size);
    if let Some(mask) = &raw.mask {
        pipeline.bad = mask.iter().map(|v| !v).collect();
    }
    if let Some(each) = &each
        && each.len() != size * raw.count
    {
        return Err(content_error(format!("its mask has {} pixels, for frames of {size}", each.len())));
    }
    for (name, plane) in [("dark", &raw.dark), ("flat", &raw.flat)] {
        if plane.as_ref().is_some_and(|p| p.len() != size) {
            return Err(content_error(format!("its {name} frame has {} pixels, frames have {size}", plane.as_ref().map_or(0, Vec::len))));
        }
    }
    if let Some(flat) = &raw.flat {
        pipeline.bad.iter_mut().zip(flat).for_each(|(bad, f)| *bad |= !(*f > 0.0 && f.is_finite()));
    }
    (pipeline.dark, pipeline.flat, pipeline.gain) = (raw.dark.take(), raw.flat.take(), read.gain as f32);
    pipeline.oddities = InvalidValues::of(read);
    if depth != LoadExtent::Plan {
        detector_gaps(&mut raw, &mut pipeline, &mut notes)?;
        if let Some(times) = read.hot {
            mask_hot_pixels(&mut raw, &mut pipeline, times, &mut notes)?;
        }
    }
    notes.extend(interpreted);
    let dark = pipeline.dark.iter().flatten().zip(&pipeline.bad);
    if let Some((i, dark)) = dark.enumerate().find_map(|(i, (dark, bad))| (!bad && !(0.0..4e9).contains(dark)).then_some((i, *dark))) {
        let what = if dark.is_nan() { "is not a number".to_owned() } else { format!("has {dark} counts") };
        let at = [i / raw.shape[1], i % raw.shape[1]];
        return Err(content_error(format!("pixel {at:?} of its dark frame {what}; mask it (`mask`), or correct it")));
    }

    let count = raw.count.div_ceil(every);
    let mut positions: Vec<[f64; 2]> = raw.positions.iter().step_by(every).copied().collect();
    if let (Some(refined), Some(start)) = (raw.refined.take(), &read.start) {
        notes.extend(moved(&mut positions, &refined, beam.resolution(shape), start));
    }
    let mask = match &each {
        None => Mask::Common(pipeline.mask(None)),
        Some(each) => Mask::Each(each.chunks_exact(size).step_by(every).flat_map(|m| pipeline.mask(Some(m))).collect()),
    };
    let mut mask = checked(mask, pipeline.pixels(), every).map_err(content_error)?;
    let beam_notes = check_geometry(&beam, shape, &positions);
    notes.extend(beam_notes.map_err(content_error)?);
    let frames = if depth == LoadExtent::Plan {
        Frames::Planned(count)
    } else if config.streams() || matches!(depth, LoadExtent::Some { .. }) && each.is_none() {
        // A part of a run reads its own frames from there.
        if each.is_some() {
            return Err(content_error("a mask for each frame cannot be combined with `stream`".into()));
        }
        Frames::Stored(Box::new(StoredFrames { frames: raw.frames, pipeline, count, every }))
    } else {
        let mut frames = whole(raw.frames.as_mut(), &pipeline, each.as_deref(), raw.count, every)?;
        frames.mask_odd(&mut mask, pipeline.pixels());
        notes.extend(pipeline.oddities.notes(&Links::default())?);
        frames
    };
    let truth = raw.truth.take().filter(|t| read.orientation == 0 && truth_applies(t, (shape, &beam), raw.shape, raw.count));
    let truth = truth.map(|t| Truth { positions: t.positions.into_iter().step_by(every).collect(), ..t });
    Ok(Scan { name: name.into(), frames, shape, mask, positions, beam, probe: raw.probe, object: raw.object, truth, notes })
}

/// A scan in memory, cut as the entry says.
pub(super) fn crop(scan: Scan, config: &ScanConfig, name: &str, depth: LoadExtent) -> Result<Scan> {
    let count = scan.positions.len();
    let held = |elements| Box::new(FramesInMemory(Tensor { shape: vec![count, scan.shape[0], scan.shape[1]], elements }));
    let frames: Box<dyn super::RawFrames> = match scan.frames {
        Frames::Counts(v) => held(Elements::U16(v)),
        Frames::Real(v) => held(Elements::F32(v)),
        Frames::Planned(_) => Box::new(UnreadFrames),
        Frames::Stored(_) => return Ok(scan),
    };
    let raw = RawScan {
        frames,
        count,
        shape: scan.shape,
        positions: scan.positions,
        mask: match scan.mask {
            Mask::All => None,
            Mask::Common(m) | Mask::Each(m) => Some(m),
        },
        dark: None,
        flat: None,
        geometry: Geometry {
            wavelength: Some(scan.beam.wavelength),
            distance: Some(scan.beam.distance),
            pixel: Some(scan.beam.pixel),
            propagation: Some(scan.beam.propagation),
        },
        center: None,
        probe: scan.probe,
        object: scan.object,
        refined: None,
        truth: None,
        listing: None,
        notes: Vec::new(),
    };
    let config = ScanConfig { read: super::ReadConfig::default(), ..config.clone() };
    assemble(raw, &config, name, Path::new(name), depth)
}

/// Returns true if frames that were cropped or summed, or another geometry, leave a truth its pixels: a truth with other pixels is
/// not compared.
fn truth_applies(truth: &Truth, (shape, beam): ([usize; 2], &Beam), raw: [usize; 2], count: usize) -> bool {
    // Waves may have been finer than the detector, which the near field shows.
    let bin = |d: usize| if beam.propagation == Propagation::Near { truth.probe.shape[1 + d] / shape[d] } else { 1 };
    let pixel = beam.resolution(shape);
    let alike = (0..2).all(|d| (truth.object.spacing[d] * bin(d) as f64 / pixel[d] - 1.0).abs() < 1e-6);
    shape == raw && alike && truth.positions.len() == count
}

/// Takes the positions that an earlier run has found, and says how far they are from those of the scan. Positions that are
/// unchanged are left alone to the last bit.
fn moved(positions: &mut [[f64; 2]], refined: &[[f64; 2]], pixel: [f64; 2], start: &Path) -> Option<String> {
    const SAME: f64 = 1e-6;
    let from = start.display();
    if refined.len() != positions.len() {
        let (found, here) = (refined.len(), positions.len());
        return Some(format!("the {found} positions of `{from}` are ignored, since there are {here} frames here"));
    }
    let far = |(a, b): (&[f64; 2], &[f64; 2])| ((a[0] - b[0]) / pixel[0]).hypot((a[1] - b[1]) / pixel[1]);
    let most = positions.iter().zip(refined).map(|(a, b)| far((a, b))).fold(0.0, f64::max);
    if most <= SAME {
        return None;
    }
    positions.copy_from_slice(refined);
    let hint = "`start_positions = false` leaves them alone";
    Some(format!("positions are those of `{from}`, up to {most:.2} pixels from those of the scan; {hint}"))
}

/// Describes a change of the shape of frames that was not requested.
fn resized(full: [usize; 2], crop: Option<[usize; 2]>, rebin: usize, shape: [usize; 2]) -> Option<String> {
    let size = |n: [usize; 2]| format!("{} x {}", n[0], n[1]);
    let used = shape.map(|n| n * rebin);
    match crop {
        Some(crop) if (0..2).any(|d| crop[d] > full[d]) => {
            let message = "what `crop` takes beyond them is masked";
            Some(format!("frames of {} pixels are widened to {}: {message}", size(full), size(crop)))
        }
        _ if used == crop.unwrap_or(full) => None,
        _ => {
            let into = if rebin == 1 { String::new() } else { format!(", summed to {}", size(shape)) };
            let before = size(crop.unwrap_or(full));
            Some(format!("of {before} pixels, {} are used{into}: rows and columns have to be even", size(used)))
        }
    }
}

fn beam(raw: &RawScan, config: &ScanConfig, rebin: usize) -> Result<Beam, String> {
    let (read, geometry) = (&config.read, &raw.geometry);
    let there = raw.listing.as_ref().map_or_else(String::new, |listing| format!(" (there are: {listing})"));
    let lacks = |what: &str, key: &str| format!("it does not say the {what}; give it: `read = {{ {key} = ... }}`{there}");
    let wavelength = read.energy.map(|e| HC / e).or(geometry.wavelength).ok_or_else(|| lacks("photon energy", "energy"))?;
    let distance = read.distance.or(geometry.distance).ok_or_else(|| lacks("distance of the detector", "distance"))?;
    let pixel = read.pixel.map(crate::simulate::Pair::both).or(geometry.pixel).ok_or_else(|| lacks("pixel of the detector", "pixel"))?;
    let pixel = if read.orientation & 4 != 0 { [pixel[1], pixel[0]] } else { pixel };
    for (what, value) in [("wavelength", wavelength), ("distance", distance), ("pixel", pixel[0]), ("pixel", pixel[1])] {
        if !(value > 0.0 && value.is_finite()) {
            return Err(format!("its {what} is {value:e} m"));
        }
    }
    Ok(Beam { wavelength, distance, pixel: pixel.map(|p| p * rebin as f64), propagation: geometry.propagation(read) })
}

/// Frames that are examined to find hot pixels.
const LOOKED_AT: usize = 16;

/// Masks pixels whose least count in frames all over the scan is more than `times` the median of those around them, and a count
/// besides.
fn mask_hot_pixels(raw: &mut RawScan, pipeline: &mut Pipeline, times: f64, notes: &mut Vec<String>) -> Result<()> {
    let [rows, columns] = raw.shape;
    let interpreted = raw.count.min(LOOKED_AT);
    let mut least = vec![f64::INFINITY; rows * columns];
    for k in 0..interpreted {
        let frame = raw.frames.read(k * raw.count / interpreted, 1)?;
        let counts = Tensor { shape: vec![rows, columns], elements: frame }.to_reals().unwrap_or_default();
        // `min` passes over what is not a number.
        least.iter_mut().zip(counts).for_each(|(least, v)| *least = least.min(v));
    }
    let around = |i: usize| -> f64 {
        let (y, x) = (i / columns, i % columns);
        let mut near = Vec::with_capacity(8);
        for at in
            (y.saturating_sub(1)..(y + 2).min(rows)).flat_map(|r| (x.saturating_sub(1)..(x + 2).min(columns)).map(move |c| r * columns + c))
        {
            if at != i && !pipeline.bad[at] {
                near.push(least[at]);
            }
        }
        near.sort_unstable_by(f64::total_cmp);
        near.get(near.len() / 2).copied().unwrap_or(0.0)
    };
    let found: Vec<usize> = (0..least.len()).filter(|i| !pipeline.bad[*i] && least[*i] > times * around(*i).max(0.0) + 1.0).collect();
    for i in &found {
        pipeline.bad[*i] = true;
    }
    if !found.is_empty() {
        notes.push(format!("{} hot pixels of the detector, of {times} times the counts around them: masked (`read.hot`)", found.len()));
    }
    Ok(())
}

/// Pixels that no photon can have counted in the first frame and the last: gaps of the detector. They are masked. A negative number
/// stands for a gap where it is the same in both: others are noise.
fn detector_gaps(raw: &mut RawScan, pipeline: &mut Pipeline, notes: &mut Vec<String>) -> Result<()> {
    let first = raw.frames.read(0, 1)?;
    let last = raw.frames.read(raw.count - 1, 1)?;
    let none = |i: usize| match (&first, &last) {
        (Elements::I32(a), Elements::I32(b)) => a[i] < 0 && a[i] == b[i] || [a[i], b[i]] == [i32::MAX; 2],
        (Elements::F32(a), Elements::F32(b)) => is_detector_gap(f64::from(a[i]), f64::from(b[i])),
        (Elements::F64(a), Elements::F64(b)) => is_detector_gap(a[i], b[i]),
        _ => false,
    };
    // 65535 in both is what a detector of 16 bits writes there.
    let full = |elements: &Elements, i: usize| matches!(elements, Elements::U16(v) if v[i] == u16::MAX);
    let mut found = 0;
    for i in 0..pipeline.bad.len() {
        if !pipeline.bad[i] && (none(i) || full(&first, i) && full(&last, i)) {
            pipeline.bad[i] = true;
            found += 1;
        }
    }
    if found > 0 {
        notes.push(format!("{found} pixels of the detector hold no counts (negative, not a number, or all bits set): masked"));
    }
    Ok(())
}

/// Returns true if the values of a pixel in two frames are those of a detector gap.
fn is_detector_gap(first: f64, last: f64) -> bool {
    let none = |v: f64| !(f64::NEG_INFINITY..4e9).contains(&v) || v == f64::NEG_INFINITY;
    none(first) && none(last) || first < 0.0 && first == last
}

/// The mask in its shortest form; a frame without any valid pixel is an error.
fn checked(mask: Mask, pixels: usize, every: usize) -> Result<Mask, String> {
    match mask {
        Mask::Common(m) if m.iter().all(|v| *v) => Ok(Mask::All),
        Mask::Common(m) if !m.contains(&true) => Err("every pixel is masked (`mask_valid` says what marks a valid one)".into()),
        Mask::Each(m) => match m.chunks_exact(pixels).position(|m| !m.contains(&true)) {
            Some(j) => Err(format!("every pixel of frame {} is masked", j * every)),
            None => Ok(Mask::Each(m)),
        },
        other => Ok(other),
    }
}

/// Energy, distance and detector pixel with their values and units, for messages.
pub(crate) fn units(beam: &Beam) -> String {
    let [y, x] = beam.pixel;
    let pixel = if y == x { format!("{y:e} m") } else { format!("{y:e} m by {x:e} m") };
    format!("energy ({:.4} keV), distance ({} m) and detector pixel ({pixel})", beam.energy(), beam.distance)
}

/// Implausible geometry: certain faults are errors, doubtful values notes.
pub(crate) fn check_geometry(beam: &Beam, shape: [usize; 2], positions: &[[f64; 2]]) -> Result<Vec<String>, String> {
    let mut notes = Vec::new();
    let pixel = beam.resolution(shape);
    let field = [0, 1].map(|d| shape[d] as f64 * pixel[d]);
    let geometry = !pixel.iter().all(|p| (1e-12..1e-3).contains(p)) || beam.pixel.iter().any(|p| *p > 1e-2) || beam.energy() > 1e3;
    if geometry && beam.energy() <= 1e3 {
        notes.push(format!("the pixel of the object is {:.3e} m by {:.3e} m: are {} in these units?", pixel[0], pixel[1], units(beam)));
    }
    if beam.energy() > 1e3 {
        notes.push(format!("an energy of {:.4} keV: is it in eV? The pixel of the object is {:.3e} m with it", beam.energy(), pixel[0]));
    }
    let edge = |d: usize, f: fn(f64, f64) -> f64| positions.iter().map(|p| p[d]).reduce(f).unwrap_or(0.0);
    let extent = [0, 1].map(|d| edge(d, f64::max) - edge(d, f64::min));
    let wide: f64 = (0..2).map(|d| extent[d] / pixel[d] + shape[d] as f64).product();
    if wide > 3e10 {
        let span = format!("positions span {:.3e} m by {:.3e} m, {wide:.1e} pixels of {:.3e} m", extent[0], extent[1], pixel[0]);
        let positions = "are positions in metres (of a file: `read = { positions_unit = 1e-6 }` for micrometres)?";
        let optics = format!("are {}, which set the pixel, in these units?", units(beam));
        // Faults of a single value come first.
        let [first, second] = if geometry { [&optics[..], positions] } else { [positions, &optics[..]] };
        return Err(format!("{span}: {first} And {second}"));
    }
    if positions.len() > 1 && (0..2).all(|d| extent[d] < 0.5 * pixel[d]) {
        notes.push(format!("all positions lie within half a pixel ({:.3e} m): are they in metres?", pixel[0]));
    }
    let step = (extent[0] * extent[1] / positions.len() as f64).sqrt();
    if positions.len() > 8 && step > field[0].max(field[1]) {
        notes.push(format!(
            "neighbouring positions are about {step:.3e} m apart, a frame covers {:.3e} m: nothing overlaps (units?)",
            field[1]
        ));
    }
    Ok(notes)
}

/// All frames, as counts of 16 bits if they are such.
fn whole(frames: &mut dyn super::RawFrames, pipeline: &Pipeline, each: Option<&[bool]>, count: usize, every: usize) -> Result<Frames> {
    let size = pipeline.raw_shape[0] * pipeline.raw_shape[1];
    let block = if every == 1 { (BLOCK / size).max(1) } else { 1 };
    let pixels = pipeline.pixels();
    let all = count.div_ceil(every) * pixels;
    let (mut counts, mut real) = (Vec::new(), None);
    if pipeline.whole() {
        counts.reserve_exact(all);
    } else {
        real = Some(Vec::with_capacity(all));
    }
    let mut part = Vec::new();
    let mut first = 0;
    while first < count {
        let n = block.min(count - first);
        let raw = frames.read(first, n)?;
        part.resize(n * pixels, 0.0);
        pipeline.run(&raw, first, each.map(|m| &m[first * size..]), &mut part)?;
        if real.is_none() && !part.iter().all(|v| *v <= f32::from(u16::MAX) && v.fract() == 0.0) {
            let mut wider = Vec::with_capacity(all);
            wider.extend(std::mem::take(&mut counts).into_iter().map(f32::from));
            real = Some(wider);
        }
        match &mut real {
            Some(real) => real.extend_from_slice(&part),
            None => counts.extend(part.iter().map(|v| *v as u16)),
        }
        first += if every == 1 { n } else { every };
    }
    Ok(real.map_or(Frames::Counts(counts), Frames::Real))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gap has the same negative number in all frames; counts below a dark frame are negative by chance.
    #[test]
    fn a_gap_is_negative_alike() {
        assert!(is_detector_gap(-1.0, -1.0) && is_detector_gap(f64::NAN, f64::NAN) && is_detector_gap(4294967295.0, 4294967295.0));
        assert!(
            !is_detector_gap(-1.0, -2.0) && !is_detector_gap(-1.0, 3.0) && !is_detector_gap(0.0, 0.0) && !is_detector_gap(f64::NAN, 1.0)
        );
    }
}
