//! PtyPy's `.ptyd`: `meta/{energy (keV), distance (m), psize (m), center, ...}` and `chunks/N/{data, positions, weights}`, the
//! chunks in the file or behind external links (`save = "link"`). Of `info`, which PtyPy keeps for the record, `propagation` is
//! read (`farfield`, `nearfield`): 0.9 has it with the input instead.

use std::path::Path;

use zellige_engine::error::Result;
use zellige_io::hdf5::{DatasetPart, File};
use zellige_io::tensor::Elements;

use super::{Geometry, LoadExtent, RawFrames, RawScan, ReadConfig, frames_shape, pairs, paths, propagation};
use crate::scan::HC;

/// Frames of several chunks.
struct ChunkedFrames {
    /// First frame and dataset of each.
    parts: Vec<(usize, DatasetPart)>,
    count: usize,
}

impl RawFrames for ChunkedFrames {
    fn read(&mut self, first: usize, count: usize) -> Result<Elements> {
        let mut all: Option<Elements> = None;
        for (k, (begin, part)) in self.parts.iter().enumerate() {
            let end = self.parts.get(k + 1).map_or(self.count, |p| p.0);
            let (from, to) = (first.max(*begin), (first + count).min(end));
            if from >= to {
                continue;
            }
            let shape = part.shape();
            let found = part.read(&[from - begin, 0, 0], &[to - from, shape[1], shape[2]])?;
            all = Some(match all {
                None => found,
                Some(before) => paths::joined(before, found),
            });
        }
        Ok(all.unwrap_or(Elements::U16(Vec::new())))
    }
}

/// Valid pixels of the frames so far: of one where all are alike, as long as that is so.
#[derive(Default)]
struct Weights {
    valid: Vec<bool>,
    /// Number of frames that it represents, if all of these are like the one that is held.
    alike: Option<usize>,
}

impl Weights {
    /// Adds the weights of a chunk whose first frame is number `first`; earlier frames without any are valid.
    fn add(&mut self, first: usize, part: &DatasetPart, [rows, columns]: [usize; 2]) -> Result<()> {
        let (size, frames) = (rows * columns, part.shape()[0]);
        let block = (BLOCK / size).max(1);
        for at in (0..frames).step_by(block) {
            let n = block.min(frames - at);
            let read = part.read(&[at, 0, 0], &[n, rows, columns])?;
            let valid: Vec<bool> = match &read {
                Elements::U16(v) => v.iter().map(|w| *w > 0).collect(),
                Elements::I32(v) => v.iter().map(|w| *w > 0).collect(),
                Elements::F32(v) => v.iter().map(|w| *w > 0.0).collect(),
                Elements::F64(v) => v.iter().map(|w| *w > 0.0).collect(),
                Elements::Complex(v) => v.iter().map(|w| w.re > 0.0).collect(),
            };
            self.push(first + at, &valid, size);
        }
        Ok(())
    }

    fn push(&mut self, first: usize, valid: &[bool], size: usize) {
        if first == 0 {
            (self.valid, self.alike) = (valid[..size].to_vec(), Some(0));
        } else if self.valid.is_empty() {
            (self.valid, self.alike) = (vec![true; size], Some(first));
        }
        if let Some(count) = self.alike {
            if count == first && valid.chunks_exact(size).all(|m| *m == self.valid[..]) {
                self.alike = Some(count + valid.len() / size);
                return;
            }
            self.valid = self.valid.repeat(count.max(1));
            self.valid.truncate(count * size);
            self.alike = None;
        }
        self.valid.resize(first * size, true);
        self.valid.extend_from_slice(valid);
    }

    /// Returns the mask of all frames or of each; `None` if no frame had any.
    fn finished(mut self, count: usize, size: usize) -> Option<Vec<bool>> {
        match self.alike {
            Some(known) if known < count => {
                self.valid = self.valid.repeat(known);
                self.valid.resize(count * size, true);
            }
            None => self.valid.resize(if self.valid.is_empty() { 0 } else { count * size }, true),
            Some(_) => {}
        }
        (!self.valid.is_empty()).then_some(self.valid)
    }
}

/// Weights read at once.
const BLOCK: usize = 1 << 23;

/// A chunk: in the file itself, or in one of its own behind a link. The path is that of its group.
fn chunk(file: &File, number: &str) -> Result<Option<(File, String)>> {
    let Some((other, path)) = file.external("chunks", number)? else {
        return Ok(Some((File::open(file.path())?, format!("chunks/{number}"))));
    };
    // PtyPy writes the path as it was on its machine; the chunk lies beside the file.
    let beside = other.file_name().map(|n| file.path().with_file_name(n));
    let found = [Some(other.clone()), beside].into_iter().flatten().find(|p| p.is_file());
    match found {
        Some(found) => Ok(Some((File::open(found)?, path.trim_matches('/').to_owned()))),
        None => Err(file.content_error(format!("its chunk {number} lies in `{}`, which is not there", other.display()))),
    }
}

/// Reads a file of prepared data.
pub(super) fn open(path: &Path, read: &ReadConfig, depth: LoadExtent) -> Result<RawScan> {
    let file = File::open(path)?;
    let groups = file.children("")?;
    if !groups.iter().any(|g| g == "chunks") {
        return Err(file.content_error(format!("it has no group `chunks` (there are: {})", groups.join(", "))));
    }
    let mut numbers: Vec<(usize, String)> = file.children("chunks")?.into_iter().filter_map(|n| Some((n.parse().ok()?, n))).collect();
    numbers.sort();
    let (mut parts, mut positions, mut count) = (Vec::new(), Vec::new(), 0);
    let mut mask = Weights::default();
    let mut frame: Option<[usize; 2]> = None;
    for (_, number) in &numbers {
        let Some((file, group)) = chunk(&file, number)? else { continue };
        let name = |key: &str| if group.is_empty() { key.to_owned() } else { format!("{group}/{key}") };
        let part = file.part(&name("data"))?;
        let shape = part.shape().to_vec();
        let Some((n, size)) = frames_shape(&shape).filter(|_| shape.len() == 3) else {
            return Err(file.content_error(format!("`{}` is {shape:?}, not [n, rows, columns]", name("data"))));
        };
        if *frame.get_or_insert(size) != size {
            return Err(file.content_error(format!("frames of chunk {number} are {size:?}, those before {frame:?}")));
        }
        let position = file.read(&name("positions"))?;
        let position =
            pairs(&position).ok_or_else(|| file.content_error(format!("`{}` is {:?}, not [{n}, 2]", name("positions"), position.shape)))?;
        let weights = name("weights");
        if depth == LoadExtent::Whole && file.shape(&weights)?.is_some_and(|w| w == shape) {
            mask.add(count, &file.part(&weights)?, size)?;
        }
        positions.extend(position);
        parts.push((count, part));
        count += n;
    }
    let Some(shape) = frame else {
        return Err(file.content_error("it holds no chunks"));
    };
    let mut mask = mask.finished(count, shape[0] * shape[1]);
    if mask.is_none() && depth == LoadExtent::Whole {
        for name in ["meta/weight2d", "info/weight2d"] {
            if let Some(weights) = file.maybe(name)?.filter(|w| w.shape == shape) {
                mask = Some(weights.to_reals().unwrap_or_default().iter().map(|w| *w > 0.0).collect());
            }
        }
    }
    let pair = |name: &str| -> Result<Option<[f64; 2]>> {
        let found = file.maybe(name)?.and_then(|t| t.to_reals());
        Ok(found.and_then(|v| v.first().map(|y| [*y, v.get(1).copied().unwrap_or(*y)])))
    };
    let geometry = Geometry {
        wavelength: file.number("meta/energy")?.filter(|e| *e > 0.0).map(|e| HC / e),
        distance: file.number("meta/distance")?,
        pixel: pair("meta/psize")?,
        propagation: propagation(&file, "info/propagation", read)?,
    };
    // A word such as `fftshift` means the middle.
    let center = if file.text("meta/center")?.is_some() { None } else { pair("meta/center")? };
    let frames = Box::new(ChunkedFrames { parts, count });
    Ok(RawScan {
        frames,
        count,
        shape,
        positions,
        mask,
        dark: None,
        flat: None,
        geometry,
        center,
        probe: None,
        object: None,
        refined: None,
        truth: None,
        listing: None,
        notes: Vec::new(),
    })
}
