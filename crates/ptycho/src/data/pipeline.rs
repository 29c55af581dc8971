//! Pipeline from the pixels of a file to those of a scan: the raw pixels of each pixel, and what is subtracted and divided.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use zellige_engine::error::{Error, Result};
use zellige_engine::links::Links;
use zellige_engine::parallel::{self, chunks, chunks_mut};
use zellige_io::tensor::Elements;

use super::{Invalid, Negative, RawFrames, ReadConfig};
use crate::scan::Source;

/// A raw pixel that is not there.
const NOWHERE: u32 = u32::MAX;

/// Values from here on are no counts: they have all bits set.
const NONE: f32 = 4e9;

/// Treatment of values that are no counts or cannot be relied on; they are counted.
pub(super) struct InvalidValues {
    negative: Negative,
    invalid: Invalid,
    saturated: f32,
    /// Negative, no counts, saturated.
    found: [AtomicU64; 3],
}

impl InvalidValues {
    /// Follows the options of the input.
    pub(super) fn of(read: &ReadConfig) -> Self {
        let saturated = read.saturated.map_or(NONE, |s| s as f32).min(NONE);
        Self { negative: read.negative, invalid: read.invalid, saturated, found: Default::default() }
    }

    /// The count that is meant, not a number where the pixel is masked in its frame; none where it is refused.
    #[cold]
    fn interpreted(&self, value: f32) -> Option<f32> {
        let (kind, interpreted) = match value {
            v if v.is_nan() || !(-NONE..NONE).contains(&v) => (1, (self.invalid == Invalid::Mask).then_some(f32::NAN)),
            v if v >= self.saturated => (2, Some(f32::NAN)),
            _ => match self.negative {
                Negative::Zero => (0, Some(0.0)),
                Negative::Mask => (0, Some(f32::NAN)),
                Negative::Refuse => (0, None),
            },
        };
        self.found[kind].fetch_add(1, Ordering::Relaxed);
        interpreted
    }

    /// Describes the values found by all parts of a run, with their numbers.
    pub(super) fn notes(&self, links: &Links) -> Result<Vec<String>> {
        let mut found = self.found.each_ref().map(|n| n.load(Ordering::Relaxed));
        links.sum(&mut found)?;
        let [negative, invalid, saturated] = found;
        let interpreted = if self.negative == Negative::Zero { "taken for 0" } else { "masked where they are" };
        let lines = [
            (negative, format!("negative counts are {interpreted} (`read.negative`)")),
            (invalid, "values that are no counts (not a number, or all bits set) are masked where they are (`read.invalid`)".into()),
            (saturated, format!("counts of {} or more are masked where they are (`read.saturated`)", self.saturated)),
        ];
        Ok(lines.into_iter().filter(|(n, _)| *n > 0).map(|(n, text)| format!("{n} {text}")).collect())
    }
}

/// Raw pixels of each pixel, and the corrections applied to them.
pub(super) struct Pipeline {
    /// The file, for messages.
    pub(super) path: PathBuf,
    pub(super) raw_shape: [usize; 2],
    /// Rows and columns of the scan's frames.
    pub(super) shape: [usize; 2],
    /// Raw pixels of each pixel, `parts` of them.
    map: Vec<u32>,
    parts: usize,
    /// Raw pixels that never count.
    pub(super) bad: Vec<bool>,
    pub(super) dark: Option<Vec<f32>>,
    pub(super) flat: Option<Vec<f32>>,
    pub(super) gain: f32,
    pub(super) oddities: InvalidValues,
}

impl Pipeline {
    /// Frames of `shape` around `center` of the raw ones, `rebin` squared raw pixels to a pixel, turned as `orientation` says.
    pub(super) fn new(path: PathBuf, raw_shape: [usize; 2], shape: [usize; 2], center: [f64; 2], rebin: usize, orientation: u8) -> Self {
        let axis = center.map(|c| c.round() as i64);
        let mut map = Vec::with_capacity(shape[0] * shape[1] * rebin * rebin);
        let offset = |i: usize, n: usize, part: usize| (i as i64 - (n / 2) as i64) * rebin as i64 + part as i64 - (rebin as i64 - 1) / 2;
        for (row, column) in (0..shape[0]).flat_map(|r| (0..shape[1]).map(move |c| (r, c))) {
            for (i, j) in (0..rebin).flat_map(|i| (0..rebin).map(move |j| (i, j))) {
                let (mut dy, mut dx) = (offset(row, shape[0], i), offset(column, shape[1], j));
                dy = if orientation & 2 != 0 { -dy } else { dy };
                dx = if orientation & 1 != 0 { -dx } else { dx };
                if orientation & 4 != 0 {
                    (dy, dx) = (dx, dy);
                }
                let (y, x) = (axis[0] + dy, axis[1] + dx);
                let inside = (0..raw_shape[0] as i64).contains(&y) && (0..raw_shape[1] as i64).contains(&x);
                map.push(if inside { (y * raw_shape[1] as i64 + x) as u32 } else { NOWHERE });
            }
        }
        let bad = vec![false; raw_shape[0] * raw_shape[1]];
        Self {
            path,
            raw_shape,
            shape,
            map,
            parts: rebin * rebin,
            bad,
            dark: None,
            flat: None,
            gain: 1.0,
            oddities: InvalidValues::of(&ReadConfig::default()),
        }
    }

    /// Pixels of a frame.
    pub(super) fn pixels(&self) -> usize {
        self.shape[0] * self.shape[1]
    }

    /// Returns true if counts stay whole numbers.
    pub(super) fn whole(&self) -> bool {
        self.dark.is_none() && self.flat.is_none() && self.gain == 1.0
    }

    /// Valid pixels, where `more` are the valid ones of the raw frame besides `bad`.
    pub(super) fn mask(&self, more: Option<&[bool]>) -> Vec<bool> {
        let sound = |i: &u32| *i != NOWHERE && !self.bad[*i as usize] && more.is_none_or(|m| m[*i as usize]);
        self.map.chunks_exact(self.parts).map(|part| part.iter().all(sound)).collect()
    }

    /// Frames from raw ones; `first` is the number of the first, for messages. Not a number where a pixel is masked in this frame
    /// alone.
    pub(super) fn run(&self, raw: &Elements, first: usize, masked: Option<&[bool]>, into: &mut [f32]) -> Result<()> {
        match raw {
            Elements::U16(v) => self.pixels_of(v, |v| f32::from(*v), first, masked, into),
            Elements::I32(v) => self.pixels_of(v, |v| *v as f32, first, masked, into),
            Elements::F32(v) => self.pixels_of(v, |v| *v, first, masked, into),
            Elements::F64(v) => self.pixels_of(v, |v| *v as f32, first, masked, into),
            Elements::Complex(_) => Err(Error::format(&self.path, "scan", "its frames are complex numbers")),
        }
    }

    fn pixels_of<T: Sync>(
        &self,
        raw: &[T],
        real: impl Fn(&T) -> f32 + Sync,
        first: usize,
        masked: Option<&[bool]>,
        into: &mut [f32],
    ) -> Result<()> {
        let size = self.raw_shape[0] * self.raw_shape[1];
        let limit = self.oddities.saturated;
        let fault = parallel::first((chunks_mut(into, self.pixels()), chunks(raw, size)), |j, (frame, raw)| {
            for (value, parts) in frame.iter_mut().zip(self.map.chunks_exact(self.parts)) {
                *value = 0.0;
                for &i in parts {
                    let at = i as usize;
                    if i == NOWHERE || self.bad[at] || masked.is_some_and(|m| !m[j * size + at]) {
                        continue;
                    }
                    let mut v = real(&raw[at]);
                    // As the file has it: a dark frame makes no counts of what is none.
                    if !(0.0..limit).contains(&v) {
                        match self.oddities.interpreted(v) {
                            Some(interpreted) => v = interpreted,
                            None => return Some((j, at, v)),
                        }
                    }
                    if let Some(dark) = &self.dark {
                        // Not `max`, which would make 0 of what is not a number.
                        v = if v < dark[at] { 0.0 } else { v - dark[at] };
                    }
                    if let Some(flat) = &self.flat {
                        v /= flat[at];
                    }
                    *value += v / self.gain;
                }
            }
            None
        });
        let Some((j, at, value)) = fault else { return Ok(()) };
        let (row, column) = (at / self.raw_shape[1], at % self.raw_shape[1]);
        let what = if value.is_nan() { "is not a number".into() } else { format!("has {value} counts") };
        let message = format!(
            "pixel [{row}, {column}] of frame {} {what}, and not in every frame, as a gap of the detector would; mask it (`mask`), or let `negative` and `invalid` of `read` say what it is taken for",
            first + j
        );
        Err(Error::format(&self.path, "scan", message))
    }
}

/// Frames that stay in their file.
pub(super) struct StoredFrames {
    pub(super) frames: Box<dyn RawFrames>,
    pub(super) pipeline: Pipeline,
    /// Number of frames, every `every`-th of the file's.
    pub(super) count: usize,
    pub(super) every: usize,
}

impl Source for StoredFrames {
    fn len(&self) -> usize {
        self.count
    }

    fn notes(&self, links: &Links) -> Result<Vec<String>> {
        self.pipeline.oddities.notes(links)
    }

    fn read(&mut self, first: usize, into: &mut [f32]) -> Result<()> {
        let pixels = self.pipeline.pixels();
        let count = into.len() / pixels;
        if self.every == 1 {
            let raw = self.frames.read(first, count)?;
            return self.pipeline.run(&raw, first, None, into);
        }
        for (j, frame) in into.chunks_exact_mut(pixels).enumerate() {
            let number = (first + j) * self.every;
            let raw = self.frames.read(number, 1)?;
            self.pipeline.run(&raw, number, None, frame)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(pipeline: &Pipeline, raw: Vec<f32>) -> Vec<f32> {
        let mut into = vec![0.0; pipeline.pixels()];
        pipeline.run(&Elements::F32(raw), 0, None, &mut into).unwrap();
        into
    }

    /// The optical axis lies on pixel [rows / 2, columns / 2] however frames are turned.
    #[test]
    fn the_axis_stays_in_the_middle() {
        for orientation in 0..8 {
            let shape = if orientation & 4 != 0 { [8, 6] } else { [6, 8] };
            let pipeline = Pipeline::new("f".into(), [6, 8], shape, [2.0, 5.0], 1, orientation);
            let mut raw = vec![0.0; 48];
            raw[2 * 8 + 5] = 7.0;
            raw[2 * 8 + 6] = 3.0;
            raw[3 * 8 + 5] = 2.0;
            let found = run(&pipeline, raw);
            let (rows, columns) = (shape[0] / 2, shape[1] / 2);
            let at = |dy: i32, dx: i32| found[(rows as i32 + dy) as usize * shape[1] + (columns as i32 + dx) as usize];
            assert_eq!(at(0, 0), 7.0, "{orientation}");
            let (right, below) = if orientation & 4 != 0 { (2.0, 3.0) } else { (3.0, 2.0) };
            let (x, y) = (if orientation & 1 != 0 { -1 } else { 1 }, if orientation & 2 != 0 { -1 } else { 1 });
            assert_eq!((at(0, x), at(y, 0)), (right, below), "{orientation}");
        }
    }

    #[test]
    fn pixels_are_summed_and_what_is_outside_is_masked() {
        let pipeline = Pipeline::new("f".into(), [6, 6], [4, 4], [3.0, 3.0], 2, 0);
        let found = run(&pipeline, vec![1.0; 36]);
        assert_eq!(found[2 * 4 + 2], 4.0);
        let mask = pipeline.mask(None);
        assert_eq!(mask.iter().filter(|v| **v).count(), 4);
        assert!(found.iter().zip(&mask).all(|(v, m)| !m || *v == 4.0));
    }

    /// Negative counts, values that are none and saturated ones, by each word of the input; a pixel that is summed of several is
    /// masked with one of them.
    #[test]
    fn oddities_are_taken_as_the_input_says() {
        let raw = vec![3.0, -2.0, f32::NAN, 5e9, 100.0, 99.0, f32::INFINITY, 0.0, -1.0];
        let interpreted = |read: ReadConfig| {
            let mut pipeline = Pipeline::new("f".into(), [3, 3], [3, 3], [1.0, 1.0], 1, 0);
            pipeline.oddities = InvalidValues::of(&read);
            let mut into = vec![0.0; 9];
            let result = pipeline.run(&Elements::F32(raw.clone()), 0, None, &mut into).map_err(|e| e.to_string());
            (into, result, pipeline.oddities.notes(&Links::default()).unwrap())
        };
        let (into, result, notes) = interpreted(ReadConfig::default());
        result.unwrap();
        let masked: Vec<usize> = (0..9).filter(|i| into[*i].is_nan()).collect();
        assert_eq!((masked, into[1], into[8], into[4]), (vec![2, 3, 6], 0.0, 0.0, 100.0));
        assert!(
            notes.len() == 2 && notes[0].starts_with("2 negative counts are taken for 0") && notes[1].starts_with("3 values"),
            "{notes:?}"
        );
        let (into, result, notes) = interpreted(ReadConfig { negative: Negative::Mask, saturated: Some(100.0), ..ReadConfig::default() });
        result.unwrap();
        let masked: Vec<usize> = (0..9).filter(|i| into[*i].is_nan()).collect();
        assert_eq!(masked, [1, 2, 3, 4, 6, 8]);
        assert!(notes[2].starts_with("1 counts of 100 or more"), "{notes:?}");
        let (_, result, _) = interpreted(ReadConfig { negative: Negative::Refuse, ..ReadConfig::default() });
        assert!(result.unwrap_err().contains("pixel [0, 1] of frame 0 has -2 counts"));
        let summed = Pipeline::new("f".into(), [4, 4], [2, 2], [1.0, 1.0], 2, 0);
        let mut raw = vec![1.0; 16];
        raw[5] = f32::NAN;
        assert_eq!(run(&summed, raw).iter().filter(|v| v.is_nan()).count(), 1);
    }

    #[test]
    fn corrections_and_faults() {
        let mut pipeline = Pipeline::new("f".into(), [4, 4], [4, 4], [2.0, 2.0], 1, 0);
        pipeline.dark = Some(vec![2.0; 16]);
        pipeline.flat = Some(vec![0.5; 16]);
        pipeline.gain = 4.0;
        assert_eq!(run(&pipeline, vec![10.0; 16]), vec![4.0; 16]);
        let mut raw = vec![1.0; 16];
        raw[5] = f32::NAN;
        assert!(run(&pipeline, raw.clone())[5].is_nan());
        pipeline.oddities = InvalidValues::of(&ReadConfig { invalid: Invalid::Refuse, ..ReadConfig::default() });
        let error = pipeline.run(&Elements::F32(raw.clone()), 30, None, &mut [0.0; 16]).unwrap_err().to_string();
        assert!(error.contains("pixel [1, 1] of frame 30 is not a number"), "{error}");
        pipeline.bad[5] = true;
        assert_eq!(run(&pipeline, raw)[5], 0.0);
    }
}
