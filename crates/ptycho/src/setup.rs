//! Conversion of scans and the input to arrays.

use std::collections::BTreeMap;
use std::ops::Range;

use num_complex::Complex;
use zellige_engine::device::host_memory;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::links::Links;
use zellige_engine::parallel::{self, chunks, chunks_mut, map};
use zellige_engine::text::bytes;

use crate::config::{Config, PositionMethod, ProbeStart};
use crate::engines::corner_first;
use crate::model::{MASKED, Model, Power, State, Storage, Transfer};
use crate::scan::{Frames, Mask, Propagation, Scan};
use crate::share::Share;
use crate::{data, propagation, start};

mod files;
mod positions;
mod probes;

pub use files::{planned, scans, scans_of_part};
use positions::positions;

/// Pixels around what the views see where positions are refined, unless the input says otherwise.
const REFINED_MARGIN: usize = 8;
/// Sample pixels outside this range are a mistake in units, metres.
const PIXELS: std::ops::RangeInclusive<f64> = 1e-13..=1e-2;
/// Pixels read at a time.
pub(crate) const BLOCK: usize = 1 << 20;

/// Objects that no memory of the host holds are refused before they are made: mostly a length or an energy in another unit.
fn room_for_objects(first: &Scan, storages: &[Storage], modes: usize, pixel: [f64; 2]) -> Result<()> {
    // The start is made in double precision and put behind that of the objects before it: twice a complex number for a moment.
    const BYTES: u64 = 2 * size_of::<Complex<f64>>() as u64;
    let layer = |s: &Storage| (s.shape[0] as u64).saturating_mul(s.shape[1] as u64);
    let pixels = storages.iter().map(layer).fold(0, u64::saturating_add);
    let needed = pixels.saturating_mul(BYTES * modes as u64);
    if needed <= host_memory() {
        return Ok(());
    }
    let largest = storages.iter().max_by_key(|s| layer(s)).map_or([0; 2], |s| s.shape);
    let message = format!(
        "the positions span {} x {} pixels of {:.3e} x {:.3e} m, which would take {} of memory, more than the {} of this machine",
        largest[0],
        largest[1],
        pixel[0],
        pixel[1],
        bytes(needed as f64),
        bytes(host_memory() as f64)
    );
    let hint = format!("look at the units of the positions (metres), {}", data::units(&first.beam));
    Err(of_named(&first.name, Problem::new("", message).hint(hint)))
}

fn wrong(scan: &str, message: impl Into<String>) -> Error {
    of_named(scan, Problem::new("", message))
}

/// A problem of a scan, named where it stays: the command line puts the input's name in place of the origin.
pub(crate) fn of_named(scan: &str, problem: Problem) -> Error {
    Error::input("ptycho", Problem { message: format!("scan `{scan}`: {}", problem.message), ..problem })
}

/// Numbers of the words by which scans share something: their own where they have none.
fn shared(words: impl Iterator<Item = Option<String>>) -> (Vec<usize>, usize) {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut next = 0;
    let mut number = |word: Option<String>| {
        if let Some(number) = word.as_ref().and_then(|w| known.get(w)) {
            return *number;
        }
        if let Some(word) = word {
            known.insert(word, next);
        }
        next += 1;
        next - 1
    };
    let numbers: Vec<usize> = words.map(&mut number).collect();
    let count = numbers.iter().max().map_or(0, |n| n + 1);
    (numbers, count)
}

/// The problem. Frames are taken out of the scans.
pub fn model(config: &Config, scans: &mut [Scan], seed: u64) -> Result<Model> {
    model_of_part(config, scans, seed, &Links::default())
}

/// The problem as a part of a run has it: with its own frames.
pub fn model_of_part(config: &Config, scans: &mut [Scan], seed: u64, links: &Links) -> Result<Model> {
    let mut model = outlined(config, scans, links)?;
    let (counted, own) = (model.counted(), model.own());
    // Zeros that the system makes when they are first touched, by the threads that fill them.
    let mut mag = vec![0.0; own.len() * counted];
    let mut rest = &mut mag[..];
    for (scan, (_, first)) in scans.iter_mut().zip(&model.scans) {
        let last = first + scan.positions.len();
        let range = own.start.clamp(*first, last) - first..own.end.clamp(*first, last) - first;
        let own = rest.split_off_mut(..range.len() * counted).unwrap_or_default();
        moduli(scan, &model.transfer, range, own)?;
        if let Frames::Stored(source) = &scan.frames {
            scan.notes.extend(source.notes(links)?);
        }
        lit(scan, own, counted, &model.share)?;
    }
    (model.power, model.mag) = (Power::of_parts(&mag, counted, &model.share)?, mag);
    let (probe, begins) = probes::start(config, scans, &model)?;
    (model.start, model.begins) = (State { probe, object: start_objects(config, scans, &model, seed)? }, begins);
    Ok(model)
}

/// Builds as much of the problem as is known without its frames: everything but counts, objects and a probe that is made from them.
/// The probe has one photon.
pub fn outline(config: &Config, scans: &mut [Scan], links: &Links) -> Result<Model> {
    let mut model = outlined(config, scans, links)?;
    let one = Model { power: Power { max: 1.0, ..Power::default() }, ..model.clone() };
    (model.start.probe, model.begins) = probes::start(config, scans, &one)?;
    Ok(model)
}

/// The problem without frames and start.
fn outlined(config: &Config, scans: &mut [Scan], links: &Links) -> Result<Model> {
    let Some(first) = scans.first() else {
        return Err(Error::input("ptycho", Problem::new("scan", "there is no scan")));
    };
    let bin = config.resample.both();
    let (shape, beam) = (first.shape, first.beam.parted(bin));
    // Sampling of the waves: a finer detector, which sees a wider sample plane (a finer one in the near field).
    let frame = [0, 1].map(|d| shape[d] * bin[d]);
    let pixel = beam.resolution(frame);
    alike(scans)?;
    centred(config, first)?;
    if shape.iter().any(|n| *n < 4) {
        return Err(wrong(&first.name, format!("frames of {} x {} pixels: 4 are the least", shape[0], shape[1])));
    }
    if !pixel.iter().all(|p| PIXELS.contains(p)) {
        let message = format!("the geometry gives pixels of {:e} x {:e} m in the sample plane", pixel[0], pixel[1]);
        let hint = format!("look at the units of {}", data::units(&first.beam));
        return Err(of_named(&first.name, Problem::new("", message).hint(hint)));
    }
    let (probe_of, probes) = shared(config.scan.iter().map(|s| s.probe.clone()));
    let (object_of, objects) = shared(config.scan.iter().map(|s| s.object.clone()));
    let margin = config.object.margin.unwrap_or_else(|| margin(config, pixel));
    let (views, shifts, mut storages) = positions(scans, [&probe_of, &object_of], objects, (margin, config.compatibility), (frame, pixel));
    let mut offset = 0;
    for storage in &mut storages {
        storage.offset = offset;
        offset += config.object.modes * storage.layer();
    }
    room_for_objects(&scans[0], &storages, config.object.modes, pixel)?;
    if scans[0].probe.is_none() || config.probe.start == ProbeStart::Opening {
        let beyond = start::beyond(&config.probe, &beam, frame);
        scans[0].notes.extend(beyond);
    }
    let before = scans.iter().scan(0, |first, scan| {
        let own = *first;
        *first += scan.positions.len();
        Some((scan.name.clone(), own))
    });
    let share = Share::even(links, views.len())?;
    Ok(Model {
        frame,
        bin,
        modes: [config.probe.modes, config.object.modes],
        probes,
        storages,
        views,
        subpixel: config.subpixel,
        shifts,
        mag: Vec::new(),
        share,
        transfer: propagation::transfer(&beam, frame),
        pixel,
        filter: propagation::filter(&beam, frame, bin),
        power: Power::default(),
        start: State::default(),
        begins: Vec::new(),
        scans: before.collect(),
    })
}

/// All scans have the same frames and geometry.
fn alike(scans: &[Scan]) -> Result<()> {
    let (first, rest) = (&scans[0], &scans[1..]);
    for scan in rest {
        if scan.shape != first.shape {
            let message = format!("frames of {:?} pixels, those of `{}` have {:?}", scan.shape, first.name, first.shape);
            return Err(wrong(&scan.name, message + ": `crop` makes them alike"));
        }
        let (a, b) = (scan.beam.resolution(scan.shape), first.beam.resolution(first.shape));
        // Objects are shared pixel by pixel: over some thousand pixels this is a tenth of one.
        let off = (0..2).map(|d| (a[d] / b[d] - 1.0).abs()).fold(0.0, f64::max);
        if off > 1e-4 || scan.beam.propagation != first.beam.propagation {
            let message = format!("pixels of {:e} m in the sample plane, those of `{}` are {:e} m", a[0], first.name, b[0]);
            return Err(wrong(&scan.name, message + ": reconstruct the scans one by one"));
        }
        // One kernel takes all waves to a near detector: it goes by this, and over the whole spectrum a part in 1e4 is some
        // thousandths of a turn.
        let spread = |scan: &Scan| scan.beam.wavelength * scan.beam.distance;
        if scan.beam.propagation == Propagation::Near && (spread(scan) / spread(first) - 1.0).abs() > 1e-4 {
            let of = |s: &Scan| format!("{:e} m^2 ({:.4} keV, {:e} m)", spread(s), s.beam.energy(), s.beam.distance);
            let message = format!("wavelength times distance is {}, that of `{}` is {}", of(scan), first.name, of(first));
            return Err(wrong(&scan.name, message + ": reconstruct the scans one by one"));
        }
    }
    Ok(())
}

/// Probes are centred in the far field alone: at a near detector the image of the probe would move, but the measured frames would
/// not.
fn centred(config: &Config, first: &Scan) -> Result<()> {
    let Some(i) = config.engine.iter().position(|e| e.probe_center_tolerance.is_some()) else { return Ok(()) };
    if first.beam.propagation == Propagation::Far {
        return Ok(());
    }
    let message = "the probe cannot be moved before a near detector: its image stands where it was measured";
    let problem = Problem::new(format!("engine[{i}].probe_center_tolerance"), message).allowed("scans in the far field");
    Err(Error::input("ptycho", problem.hint("leave it out")))
}

/// Pixels around what the views see.
fn margin(config: &Config, pixel: [f64; 2]) -> usize {
    let reach = |p: &crate::config::PositionConfig| {
        let limit = p.limit.map_or(REFINED_MARGIN, |limit| (limit / pixel[0].min(pixel[1])).ceil() as usize);
        if p.method == PositionMethod::Gradient { limit + 1 } else { limit }
    };
    config.engine.iter().filter_map(|e| e.positions.as_ref()).map(reach).max().unwrap_or(0).min(1 << 12)
}

/// Frames without counts, and how much is masked: a note; a scan without any counts is an error. `mag`: moduli of own frames.
fn lit(scan: &mut Scan, mag: &[f32], pixels: usize, share: &Share) -> Result<()> {
    let frames = scan.positions.len();
    let dark = map(chunks(mag, pixels), |_, frame| frame.iter().all(|m| *m <= 0.0)).into_iter().filter(|dark| *dark).count();
    let without = map(chunks(mag, 1 << 16), |_, mag| mag.iter().filter(|m| **m < 0.0).count()).into_iter().sum::<usize>();
    let [dark, without] = share.summed([dark, without])?;
    if dark == frames {
        return Err(wrong(&scan.name, format!("none of its {frames} frames has any counts in pixels that are not masked")));
    }
    if dark > 0 {
        scan.notes.push(format!("{dark} of {frames} frames have no counts in pixels that are not masked"));
    }
    let masked = without as f64 / (frames * pixels).max(1) as f64;
    if masked > 0.5 {
        scan.notes.push(format!("{:.0} % of the pixels are masked: does `mask_valid` mark the valid ones?", 100.0 * masked));
    }
    Ok(())
}

/// Square roots of the counts of the frames `own` in the order of the transform; masked pixels are [`MASKED`].
pub(crate) fn moduli(scan: &mut Scan, transfer: &Transfer, own: Range<usize>, mag: &mut [f32]) -> Result<()> {
    let pixels = scan.shape[0] * scan.shape[1];
    let count = scan.positions.len();
    if scan.frames.len(pixels) != count {
        return Err(wrong(&scan.name, format!("{} frames and {count} positions", scan.frames.len(pixels))));
    }
    let far = matches!(transfer, Transfer::Far);
    // Source of each pixel of a frame.
    let from: Vec<u32> = (0..pixels as u32).collect();
    let from = if far { corner_first(&from, scan.shape) } else { from };
    let block = (BLOCK / pixels).max(1).min(own.len()).max(1);
    let mut counts = vec![0.0; block * pixels];
    for (first, to) in own.step_by(block).zip(mag.chunks_mut(block * pixels)) {
        let counts = &mut counts[..to.len()];
        scan.frames.read(first, pixels, counts)?;
        // A row at a time: of large frames there are few.
        let columns = scan.shape[1];
        let fault = parallel::first(chunks_mut(to, columns), |row, to| {
            let at = row * columns % pixels;
            let (j, counts) = (first + row * columns / pixels, &counts[row * columns - at..][..pixels]);
            for (to, i) in to.iter_mut().zip(&from[at..]) {
                let i = *i as usize;
                let valid = match &scan.mask {
                    Mask::All => true,
                    Mask::Common(mask) => mask[i],
                    Mask::Each(mask) => mask[j * pixels + i],
                };
                if !valid || counts[i].is_nan() {
                    *to = MASKED;
                    continue;
                }
                if !(counts[i].is_finite() && counts[i] >= 0.0) {
                    let place = format!("frame {j}, row {}, column {}", i / scan.shape[1], i % scan.shape[1]);
                    return Some(format!("{} counts at {place}: mask such pixels", counts[i]));
                }
                *to = counts[i].sqrt();
            }
            None
        });
        let unseen =
            |j: usize, to: &[f32]| to.iter().all(|m| *m == MASKED).then(|| format!("every pixel of frame {} is masked", first + j));
        let fault = fault.or_else(|| parallel::first(chunks(to, pixels), unseen));
        if let Some(message) = fault {
            return Err(wrong(&scan.name, message));
        }
    }
    Ok(())
}

/// All storages: the image of the first scan that has one.
fn start_objects(config: &Config, scans: &mut [Scan], model: &Model, seed: u64) -> Result<Vec<Complex<f64>>> {
    let (object_of, _) = shared(config.scan.iter().map(|s| s.object.clone()));
    let (views, storages, frame, pixel) = (&model.views, &model.storages, model.frame, model.pixel);
    let c = &config.object;
    let mut all = Vec::new();
    for (number, storage) in storages.iter().enumerate() {
        let mut own = scans.iter_mut().zip(&object_of).filter(|(s, o)| **o == number && s.object.is_some()).map(|(s, _)| s);
        let scan = own.next().filter(|_| !c.ignore_file);
        let image = scan.as_ref().and_then(|s| s.object.as_ref());
        all.extend(start::object(image, storage.shape, storage.origin, pixel, c.modes, c.fill, seed));
        let Some(scan) = scan else { continue };
        let Some(image) = &scan.object else { continue };
        let seen = views.iter().filter(|v| v.object as usize == number).map(|v| [v.row, v.col].map(|i| i as usize));
        let covered = start::covered(image, storage, pixel, frame, seen);
        if covered == 0.0 {
            let end = [0, 1].map(|d| image.origin[d] + image.shape[1 + d] as f64 * image.spacing[d]);
            let [y, x] = [0, 1].map(|d| format!("{:.3e} to {:.3e} m", image.origin[d], end[d]));
            let message = format!("no frame covers the object of its file, which reaches from {y} in y and {x} in x");
            let hint = "look at the units and the origin of its coordinates; `ignore_file = true` under [ptycho.object] starts without it";
            return Err(of_named(&scan.name, Problem::new("", message).hint(hint)));
        }
        // A rim of a pixel or so is rounding of positions.
        if covered < 0.99 {
            let part = 100.0 * (1.0 - covered);
            scan.notes.push(format!(
                "{part:.0} % of the area of the frames lies outside the object of its file: there it starts at `object.fill` = {}",
                c.fill
            ));
        }
    }
    Ok(all)
}
