//! Any HDF5 file, by the paths of its datasets, as beamlines write them: frames `[n][rows][columns]` or `[a][b][rows][columns]`,
//! positions together or one dataset an axis, in the same file or in others.

use std::path::Path;

use zellige_engine::error::{Error, Problem, Result};
use zellige_io::hdf5::{DatasetPart, File};
use zellige_io::tensor::{Elements, Tensor};

use super::{Geometry, LoadExtent, MaskValid, RawFrames, RawScan, ReadConfig, frames_shape, pairs};

/// Frames of one dataset.
pub(super) struct Dataset(pub(super) DatasetPart);

impl RawFrames for Dataset {
    fn read(&mut self, first: usize, count: usize) -> Result<Elements> {
        let shape = self.0.shape().to_vec();
        match shape[..] {
            [_, rows, columns] => self.0.read(&[first, 0, 0], &[count, rows, columns]),
            [_, inner, rows, columns] => {
                // Whole rows of the raster at once, the rest piece by piece.
                let mut all: Option<Elements> = None;
                let mut next = first;
                while next < first + count {
                    let (a, b) = (next / inner, next % inner);
                    let left = first + count - next;
                    let (na, nb) = if b == 0 && left >= inner { (left / inner, inner) } else { (1, left.min(inner - b)) };
                    let part = self.0.read(&[a, b, 0, 0], &[na, nb, rows, columns])?;
                    all = Some(match all {
                        None => part,
                        Some(before) => joined(before, part),
                    });
                    next += na * nb;
                }
                Ok(all.unwrap_or(Elements::U16(Vec::new())))
            }
            _ => Ok(Elements::U16(Vec::new())),
        }
    }
}

/// One behind the other; both are of the same dataset and so of the same type.
pub(super) fn joined(a: Elements, b: Elements) -> Elements {
    match (a, b) {
        (Elements::U16(mut a), Elements::U16(b)) => {
            a.extend(b);
            Elements::U16(a)
        }
        (Elements::I32(mut a), Elements::I32(b)) => {
            a.extend(b);
            Elements::I32(a)
        }
        (Elements::F32(mut a), Elements::F32(b)) => {
            a.extend(b);
            Elements::F32(a)
        }
        (a, b) => {
            let reals = |e: Elements| Tensor { shape: vec![e.len()], elements: e }.to_reals().unwrap_or_default();
            Elements::F64([reals(a), reals(b)].concat())
        }
    }
}

/// Opens the dataset of frames: its frames, their number, rows and columns.
pub(super) fn frames(file: &File, name: &str) -> Result<(Box<dyn RawFrames>, usize, [usize; 2])> {
    let part = file.part(name)?;
    let shape = part.shape().to_vec();
    match frames_shape(&shape).filter(|_| matches!(shape.len(), 3 | 4)) {
        Some((count, frame)) => Ok((Box::new(Dataset(part)), count, frame)),
        None => Err(file.content_error(format!("the frames `{name}` are {shape:?}, not [n, rows, columns] or [a, b, rows, columns]"))),
    }
}

/// Reads a file by paths.
pub(super) fn open(path: &Path, read: &ReadConfig, folder: &Path, depth: LoadExtent) -> Result<RawScan> {
    let file = File::open(path)?;
    let missing = |key: &str| {
        let problem = Problem::new(format!("read.{key}"), format!("`{}` needs the path of its {key}", path.display()));
        Error::input("ptycho.scan", problem.hint(format!("datasets: {}", file.listing())))
    };
    let name = read.frames.as_deref().ok_or_else(|| missing("frames"))?;
    let (frames, count, shape) = frames(&file, name)?;
    if read.positions.is_none() && read.positions_y.is_none() {
        return Err(missing("positions"));
    }
    let (positions, geometry) = (Vec::new(), Geometry::default());
    let mut raw = RawScan {
        frames,
        count,
        shape,
        positions,
        mask: None,
        dark: None,
        flat: None,
        geometry,
        center: None,
        probe: None,
        object: None,
        refined: None,
        truth: None,
        listing: None,
        notes: Vec::new(),
    };
    extra(&mut raw, path, read, folder, depth)?;
    Ok(raw)
}

/// Reads the data that the input names besides the frames, of any format; positions, including those of the format itself, are
/// oriented as the input says.
pub(super) fn extra(raw: &mut RawScan, path: &Path, read: &ReadConfig, folder: &Path, depth: LoadExtent) -> Result<()> {
    let at = |other: &Option<std::path::PathBuf>| other.as_ref().map_or_else(|| path.to_owned(), |f| folder.join(f));
    let source = at(&read.positions_file);
    if let Some(name) = &read.positions {
        let file = Table::open(&source)?;
        let tensor = file.read(name)?;
        let found = pairs(&tensor)
            .ok_or_else(|| file.content_error(format!("the positions `{name}` are {:?}, not [{}, 2]", tensor.shape, raw.count)))?;
        raw.positions = found;
    } else if let (Some(y), Some(x)) = (&read.positions_y, &read.positions_x) {
        let file = Table::open(&source)?;
        let (ty, tx) = (file.read(y)?, file.read(x)?);
        let (vy, vx) = (ty.to_reals().unwrap_or_default(), tx.to_reals().unwrap_or_default());
        raw.positions = axes(&vy, &vx, raw.count).ok_or_else(|| {
            file.content_error(format!("the positions `{y}` {:?} and `{x}` {:?} do not fit {} frames", ty.shape, tx.shape, raw.count))
        })?;
    }
    for p in &mut raw.positions {
        if read.swap {
            p.swap(0, 1);
        }
        *p = [0, 1].map(|d| p[d] * read.positions_unit * if read.flip[d] { -1.0 } else { 1.0 });
    }
    if depth == LoadExtent::Plan {
        return Ok(());
    }
    if let Some(name) = &read.mask {
        let values = Table::open(&at(&read.mask_file))?.read(name)?.to_reals().unwrap_or_default();
        let nonzero = read.mask_valid.unwrap_or(MaskValid::Nonzero) == MaskValid::Nonzero;
        raw.mask = Some(values.into_iter().map(|v| (v != 0.0) == nonzero).collect());
    }
    let plane = |name: &Option<String>| -> Result<Option<Vec<f32>>> {
        let Some(name) = name else { return Ok(None) };
        let values = Table::open(path)?.read(name)?.to_reals().unwrap_or_default();
        Ok(Some(mean(&values, raw.shape[0] * raw.shape[1])))
    };
    let (dark, flat) = (plane(&read.dark)?, plane(&read.flat)?);
    (raw.dark, raw.flat) = (dark.or(raw.dark.take()), flat.or(raw.flat.take()));
    Ok(())
}

/// A file of small arrays: HDF5 or NPZ.
enum Table {
    Hdf5(File),
    Npz(std::cell::RefCell<zellige_io::npz::Archive>, std::path::PathBuf),
}

impl Table {
    fn open(path: &Path) -> Result<Self> {
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npz")) {
            return Ok(Self::Npz(std::cell::RefCell::new(zellige_io::npz::Archive::open(path)?), path.into()));
        }
        File::open(path).map(Self::Hdf5)
    }

    fn read(&self, name: &str) -> Result<Tensor> {
        match self {
            Self::Hdf5(file) => file.read(name),
            Self::Npz(archive, _) => archive.borrow_mut().read(name),
        }
    }

    fn content_error(&self, message: String) -> Error {
        match self {
            Self::Hdf5(file) => file.content_error(message),
            Self::Npz(_, path) => Error::format(path, "NPZ", message),
        }
    }
}

/// Mean of frames of `size` pixels.
pub(super) fn mean(values: &[f64], size: usize) -> Vec<f32> {
    let frames = (values.len() / size.max(1)).max(1);
    if frames * size != values.len() {
        return values.iter().map(|v| *v as f32).collect();
    }
    (0..size).map(|i| (values.iter().skip(i).step_by(size).sum::<f64>() / frames as f64) as f32).collect()
}

/// Positions from one array an axis: one a frame each, or one a row and one a column of a raster.
pub(super) fn axes(y: &[f64], x: &[f64], count: usize) -> Option<Vec<[f64; 2]>> {
    if y.len() == count && x.len() == count {
        return Some(y.iter().zip(x).map(|(y, x)| [*y, *x]).collect());
    }
    if y.len() * x.len() == count {
        return Some(y.iter().flat_map(|y| x.iter().map(move |x| [*y, *x])).collect());
    }
    // One axis is written for each frame, the other for each row or column only.
    if x.len() == count && !y.is_empty() && count.is_multiple_of(y.len()) {
        let inner = count / y.len();
        return Some(x.iter().enumerate().map(|(i, x)| [y[i / inner], *x]).collect());
    }
    if y.len() == count && !x.is_empty() && count.is_multiple_of(x.len()) {
        return Some(y.iter().enumerate().map(|(i, y)| [*y, x[i % x.len()]]).collect());
    }
    None
}
