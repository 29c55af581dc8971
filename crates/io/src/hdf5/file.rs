//! An HDF5 file that is open for reading: its datasets by path, through soft and external links, whole or in parts, with the type
//! they have in the file. Deflate, LZ4, bitshuffle with LZ4, Blosc, shuffle and checksums are unpacked; virtual datasets are read
//! through. What the library cannot read (user-defined links, other filters) is an error that says so.

use std::path::{Path, PathBuf};

use num_complex::Complex;
use rust_hdf5::{ByteOrder, DatatypeMessage, H5Dataset, H5File, Hdf5Error, LinkClass, StorageLayout};
use zellige_engine::error::{Error, Result};

use super::storage::{self, Slab};
use super::{DENSEST, FORMAT, guarded};
use crate::tensor::{Elements, Tensor};

/// Bytes of a dataset from several files that are read at once.
const WHOLE: u64 = 1 << 36;
/// Bytes of a chunk at most: its length has 32 bits in the format.
const LARGEST_CHUNK: u64 = u32::MAX as u64;

/// A file that is open.
pub struct File {
    path: PathBuf,
    length: u64,
    inner: H5File,
}

/// A dataset that is read in parts. It keeps its file open.
pub struct DatasetPart {
    path: PathBuf,
    name: String,
    dataset: H5Dataset,
    datatype: DatatypeMessage,
    shape: Vec<usize>,
}

impl File {
    /// Opens a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let length = std::fs::metadata(&path).map_err(|e| Error::file("read", &path, e))?.len();
        storage::whole(&path)?;
        let inner = guarded(&path, "read", || H5File::options().best_effort_locking().open(&path))?;
        Ok(Self { path, length, inner })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error about what a sound file holds, or lacks.
    pub fn content_error(&self, message: impl Into<String>) -> Error {
        Error::Content { path: self.path.clone(), message: message.into() }
    }

    /// The error that a dataset is not there; it lists those that are.
    pub fn lacks(&self, name: &str) -> Error {
        self.content_error(format!("it has no dataset `{name}` (datasets: {})", self.listing()))
    }

    fn dataset(&self, name: &str) -> Result<Option<H5Dataset>> {
        let name = name.trim_matches('/');
        let found = guarded(&self.path, "read", || match self.inner.dataset(name) {
            Ok(dataset) => Ok(Ok(dataset)),
            Err(error @ (Hdf5Error::NotFound(_) | Hdf5Error::DanglingLink { .. } | Hdf5Error::ExternalFileNotFound { .. })) => {
                Ok(Err(error))
            }
            Err(error) => Err(error),
        })?;
        match found {
            Ok(dataset) => Ok(Some(dataset)),
            Err(Hdf5Error::NotFound(_)) => Ok(None),
            Err(Hdf5Error::DanglingLink { link, target }) => {
                Err(self.content_error(format!("the link `{link}` leads to `{target}`, which is not there")))
            }
            Err(Hdf5Error::ExternalFileNotFound { link, file, .. }) => {
                Err(self.content_error(format!("the link `{link}` leads into the file `{file}`, which cannot be opened")))
            }
            Err(other) => Err(self.content_error(other.to_string())),
        }
    }

    /// The dataset, or an error that lists those there.
    fn demanded(&self, name: &str) -> Result<H5Dataset> {
        self.dataset(name)?.ok_or_else(|| self.lacks(name))
    }

    /// Returns true if a dataset can be reached by this path.
    pub fn has(&self, name: &str) -> Result<bool> {
        Ok(self.dataset(name)?.is_some())
    }

    /// The datasets with their shapes.
    pub fn datasets(&self) -> Vec<(String, Vec<usize>)> {
        let names = self.inner.dataset_names();
        names.into_iter().filter_map(|n| self.shape(&n).ok().flatten().map(|shape| (n, shape))).collect()
    }

    /// The datasets with their shapes, for messages; of very many the first forty.
    pub fn listing(&self) -> String {
        const MOST: usize = 40;
        let names = self.inner.dataset_names();
        let shown = names.iter().take(MOST).map(|n| match self.shape(n) {
            Ok(Some(shape)) => format!("`{n}` {shape:?}"),
            _ => format!("`{n}`"),
        });
        let mut shown: Vec<String> = shown.collect();
        if names.len() > MOST {
            shown.push(format!("and {} more", names.len() - MOST));
        }
        if shown.is_empty() { "none".into() } else { shown.join(", ") }
    }

    /// Names directly below a group (`""` is the root), links of every kind.
    pub fn children(&self, group: &str) -> Result<Vec<String>> {
        guarded(&self.path, "read", || {
            let root = self.inner.root_group();
            let group = group.trim_matches('/');
            if group.is_empty() { root.link_names() } else { root.group(group)?.link_names() }
        })
    }

    /// Returns the target of an external link directly below a group: the file, beside this one if the name is relative, and the
    /// path in it.
    pub fn external(&self, group: &str, name: &str) -> Result<Option<(PathBuf, String)>> {
        let class = guarded(&self.path, "read", || {
            let root = self.inner.root_group();
            let group = group.trim_matches('/');
            if group.is_empty() { root.link_class(name) } else { root.group(group)?.link_class(name) }
        })?;
        Ok(match class {
            LinkClass::External { file, path } => Some((self.path.parent().unwrap_or(Path::new("")).join(file), path)),
            _ => None,
        })
    }

    /// Refuses data packed in a way that the library cannot unpack.
    fn unpackable(&self, name: &str, dataset: &H5Dataset) -> Result<()> {
        let filters = guarded(&self.path, "read", || dataset.filters())?;
        let Some((packed, id)) = filters.iter().find_map(|f| foreign(f.id, &f.cd_values).map(|packed| (packed, f.id))) else {
            return Ok(());
        };
        let file = self.path.file_name().unwrap_or_default().to_string_lossy();
        Err(self.content_error(format!(
            "the dataset `{name}` is packed with {packed} (filter {id} of HDF5), which cannot be unpacked here; pack it anew where that filter is installed: `h5repack -f GZIP=1 {file} unpacked.h5`"
        )))
    }

    /// Shape of a dataset; none if it is not there.
    pub fn shape(&self, name: &str) -> Result<Option<Vec<usize>>> {
        Ok(self.dataset(name)?.map(|d| d.shape()))
    }

    /// Reads a dataset whole.
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let dataset = self.demanded(name)?;
        let shape = dataset.shape();
        self.claimed(name, &dataset, &shape, WHOLE)?;
        self.elsewhere(name, &dataset)?;
        self.unpackable(name, &dataset)?;
        let datatype = guarded(&self.path, "read", || dataset.datatype())?;
        let bytes = guarded(&self.path, "read", || dataset.read_raw_bytes())?;
        let elements = decode(&bytes, &datatype).map_err(|m| self.content_error(format!("dataset `{name}`: {m}")))?;
        if elements.len() != shape.iter().product::<usize>() {
            return Err(self.content_error(format!("the dataset `{name}` holds {} values for {shape:?}", elements.len())));
        }
        let slab = Slab { start: &vec![0; shape.len()], count: &shape, bytes: &bytes, width: dataset.element_size() };
        storage::written(&self.path, name, &dataset, &slab)?;
        Ok(Tensor { shape, elements })
    }

    /// A dataset, and each of its chunks, must not claim more than its file can hold. What lies elsewhere (virtual datasets, links,
    /// external storage) must not claim more than `elsewhere` bytes.
    fn claimed(&self, name: &str, dataset: &H5Dataset, shape: &[usize], elsewhere: u64) -> Result<()> {
        let bytes = |shape: &[usize]| shape.iter().try_fold(dataset.element_size().max(1) as u64, |n, &m| n.checked_mul(m as u64));
        let own = self.inner.dataset_names().iter().any(|n| n.trim_matches('/') == name.trim_matches('/'));
        let layout = guarded(&self.path, "read", || dataset.storage_layout())?;
        let limit = match layout {
            StorageLayout::Contiguous | StorageLayout::Compact if own && dataset.external_files().is_ok_and(|f| f.is_empty()) => {
                self.length
            }
            StorageLayout::Chunked if own => self.length.saturating_mul(DENSEST),
            _ => elsewhere,
        };
        if bytes(shape).is_none_or(|b| b > limit) {
            return Err(self.content_error(format!(
                "the dataset `{name}` claims the shape {shape:?}, more than the {} bytes of the file can hold: it was never written, or the file is damaged",
                self.length
            )));
        }
        match dataset.chunk_dims() {
            Some(chunk) if bytes(&chunk).is_none_or(|b| b > limit.min(LARGEST_CHUNK)) => Err(Error::format(
                &self.path,
                FORMAT,
                format!("the dataset `{name}` claims chunks of {chunk:?}, more than the file can hold: it is damaged"),
            )),
            _ => Ok(()),
        }
    }

    /// Data in other files, through an external link or a virtual dataset, must be there whole: the library takes what it does not
    /// find for the fill value.
    fn elsewhere(&self, name: &str, dataset: &H5Dataset) -> Result<()> {
        let (group, leaf) = name.trim_matches('/').rsplit_once('/').unwrap_or(("", name.trim_matches('/')));
        if let Ok(Some((file, _))) = self.external(group, leaf) {
            storage::whole(&file)?;
        }
        if !matches!(guarded(&self.path, "read", || dataset.storage_layout())?, StorageLayout::Virtual) {
            return Ok(());
        }
        let folder = self.path.parent().unwrap_or(Path::new(""));
        for source in guarded(&self.path, "read", || dataset.virtual_mappings())? {
            // Numbered sources (`%b`) go on as far as there are files; the own file was looked at when it was opened.
            let file = folder.join(&source.source_file_name);
            if source.source_file_name == "." || source.source_file_name.contains('%') {
                continue;
            }
            if !file.is_file() {
                let file = file.display();
                return Err(self.content_error(format!("the virtual dataset `{name}` takes values from `{file}`, which is not there")));
            }
            storage::whole(&file)?;
        }
        Ok(())
    }

    /// Reads a dataset if it exists.
    pub fn maybe(&self, name: &str) -> Result<Option<Tensor>> {
        if self.has(name)? { self.read(name).map(Some) } else { Ok(None) }
    }

    /// A single number, if it exists: a scalar, or the first of several.
    pub fn number(&self, name: &str) -> Result<Option<f64>> {
        let Some(tensor) = self.maybe(name)? else { return Ok(None) };
        let first = tensor.to_reals().and_then(|v| v.first().copied());
        first.map(Some).ok_or_else(|| self.content_error(format!("the dataset `{name}` is no number")))
    }

    /// A text, if it exists and is one.
    pub fn text(&self, name: &str) -> Result<Option<String>> {
        let Some(dataset) = self.dataset(name)? else { return Ok(None) };
        Ok(guarded(&self.path, "read", || Ok(dataset.read_strings_lossy().ok()))?.and_then(|v| v.into_iter().next()))
    }

    /// A text attribute of a dataset, if it exists and is one.
    pub fn attribute(&self, name: &str, attribute: &str) -> Result<Option<String>> {
        let Some(dataset) = self.dataset(name)? else { return Ok(None) };
        guarded(&self.path, "read", || Ok(dataset.attr(attribute).and_then(|a| a.read_string()).ok()))
    }

    /// A text attribute of the file itself, if it exists and is one.
    pub fn text_of_root(&self, attribute: &str) -> Option<String> {
        guarded(&self.path, "read", || Ok(self.inner.attr_string(attribute).ok())).ok().flatten()
    }

    /// A dataset to be read in parts.
    pub fn part(&self, name: &str) -> Result<DatasetPart> {
        let dataset = self.demanded(name)?;
        let shape = dataset.shape();
        self.claimed(name, &dataset, &shape, u64::MAX)?;
        self.elsewhere(name, &dataset)?;
        self.unpackable(name, &dataset)?;
        let datatype = guarded(&self.path, "read", || dataset.datatype())?;
        if let Err(message) = decode(&[], &datatype) {
            return Err(self.content_error(format!("dataset `{name}`: {message}")));
        }
        Ok(DatasetPart { path: self.path.clone(), name: name.to_owned(), dataset, datatype, shape })
    }
}

impl DatasetPart {
    /// Shape of the dataset.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Values from `start` on, `count` of them along each axis.
    pub fn read(&self, start: &[usize], count: &[usize]) -> Result<Elements> {
        let bytes = guarded(&self.path, "read", || self.raw(start, count))?;
        let slab = Slab { start, count, bytes: &bytes, width: self.dataset.element_size() };
        storage::written(&self.path, &self.name, &self.dataset, &slab)?;
        decode(&bytes, &self.datatype).map_err(|m| Error::format(&self.path, FORMAT, m))
    }

    fn raw(&self, start: &[usize], count: &[usize]) -> Result<Vec<u8>, Hdf5Error> {
        // The library turns values into the order of this machine; what it cannot turn is decoded from the whole.
        let native = |order: ByteOrder, bytes: Vec<u8>, width: usize| match order {
            ByteOrder::LittleEndian => bytes,
            ByteOrder::BigEndian => bytes.chunks_exact(width).flat_map(|v| v.iter().rev().copied().collect::<Vec<_>>()).collect(),
        };
        let order = order(&self.datatype);
        Ok(match self.dataset.element_size() {
            1 => self.dataset.read_slice::<u8>(start, count)?,
            2 => native(order, bytemuck::cast_slice(&self.dataset.read_slice::<u16>(start, count)?).to_vec(), 2),
            4 => native(order, bytemuck::cast_slice(&self.dataset.read_slice::<u32>(start, count)?).to_vec(), 4),
            8 => native(order, bytemuck::cast_slice(&self.dataset.read_slice::<u64>(start, count)?).to_vec(), 8),
            other => return Err(Hdf5Error::TypeMismatch(format!("values of {other} bytes are not read in parts"))),
        })
    }
}

/// Returns the name of a filter that cannot be undone here; `values` are its parameters.
fn foreign(id: u16, values: &[u32]) -> Option<&'static str> {
    Some(match id {
        // Deflate, shuffle, checksum, szip, n-bit, scale and offset, LZF, LZ4.
        1..=6 | 32000 | 32004 => return None,
        // The seventh parameter is the compressor.
        32001 => match values.get(6) {
            Some(5) => "Blosc with Zstandard",
            _ => return None,
        },
        // The fifth parameter is what comes behind the shuffling: nothing, or LZ4.
        32008 => match values.get(4) {
            Some(3) => "bitshuffle with Zstandard",
            _ => return None,
        },
        307 => "bzip2",
        32013 => "ZFP",
        32015 => "Zstandard",
        32017 | 32024 => "SZ",
        32019 => "JPEG",
        32026 => "Blosc2",
        _ => "a filter of its own",
    })
}

fn order(datatype: &DatatypeMessage) -> ByteOrder {
    match datatype {
        DatatypeMessage::FixedPoint { byte_order, .. }
        | DatatypeMessage::FloatingPoint { byte_order, .. }
        | DatatypeMessage::BitField { byte_order, .. } => *byte_order,
        _ => ByteOrder::LittleEndian,
    }
}

/// Returns true for the 80-bit reals of x86 (`long double`, of which `openPMD-api` makes the attributes of Python's lists).
fn extended(datatype: &DatatypeMessage) -> bool {
    matches!(
        datatype,
        DatatypeMessage::FloatingPoint {
            byte_order: ByteOrder::LittleEndian,
            mantissa_location: 0,
            mantissa_size: 64,
            exponent_location: 64,
            exponent_size: 15,
            sign_location: 79,
            ..
        }
    )
}

/// Such a number, rounded: 64 bits of the mantissa with its leading one, 15 of the exponent, the sign.
fn of_extended(bytes: &[u8]) -> f64 {
    let mantissa = bytes[..8].iter().rev().fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
    let head = u16::from_le_bytes([bytes[8], bytes[9]]);
    let exponent = i32::from(head & 0x7fff);
    let size = match (exponent, mantissa << 1) {
        (0x7fff, 0) => f64::INFINITY,
        (0x7fff, _) => f64::NAN,
        _ => mantissa as f64 * 2.0_f64.powi(exponent - 16383 - 63),
    };
    if head & 0x8000 == 0 { size } else { -size }
}

/// Bytes of a file as values.
pub(super) fn decode(bytes: &[u8], datatype: &DatatypeMessage) -> Result<Elements, String> {
    let big = order(datatype) == ByteOrder::BigEndian;
    let word = |v: &[u8]| {
        let mut word = [0u8; 8];
        for (k, &b) in v.iter().enumerate() {
            word[if big { v.len() - 1 - k } else { k }] = b;
        }
        u64::from_le_bytes(word)
    };
    let words = |width: usize| bytes.chunks_exact(width).map(word);
    Ok(match datatype {
        DatatypeMessage::FixedPoint { size, signed, .. } => match (size, signed) {
            (1 | 2, false) => Elements::U16(words(*size as usize).map(|v| v as u16).collect()),
            (1, true) => Elements::I32(words(1).map(|v| i32::from(v as u8 as i8)).collect()),
            (2, true) => Elements::I32(words(2).map(|v| i32::from(v as u16 as i16)).collect()),
            (4, true) => Elements::I32(words(4).map(|v| v as u32 as i32).collect()),
            (4, false) => Elements::F64(words(4).map(|v| v as f64).collect()),
            (8, true) => Elements::F64(words(8).map(|v| v as i64 as f64).collect()),
            (8, false) => Elements::F64(words(8).map(|v| v as f64).collect()),
            _ => return Err(format!("integers of {size} bytes are not supported")),
        },
        DatatypeMessage::BitField { size: 1, .. } => Elements::U16(words(1).map(|v| v as u16).collect()),
        DatatypeMessage::Enum { base, .. } => return decode(bytes, base),
        DatatypeMessage::FloatingPoint { size, .. } => match size {
            4 => Elements::F32(words(4).map(|v| f32::from_bits(v as u32)).collect()),
            8 => Elements::F64(words(8).map(f64::from_bits).collect()),
            10..=16 if extended(datatype) => Elements::F64(bytes.chunks_exact(*size as usize).map(of_extended).collect()),
            _ => return Err(format!("real numbers of {size} bytes are not supported")),
        },
        DatatypeMessage::Compound { size, members } => {
            let parts: Vec<&DatatypeMessage> = members.iter().map(|m| &m.datatype).collect();
            let width = |d: &DatatypeMessage| match d {
                DatatypeMessage::FloatingPoint { size: size @ (4 | 8), byte_order: ByteOrder::LittleEndian, .. } => Some(*size),
                _ => None,
            };
            let sound = match parts[..] {
                [a, b] => width(a).filter(|w| width(b) == Some(*w) && *size == 2 * w && (members[0].offset, members[1].offset) == (0, *w)),
                _ => None,
            };
            let Some(width) = sound else {
                return Err("records other than complex numbers (two reals) are not supported".into());
            };
            let real = |v: &[u8]| {
                let word = word(v);
                if width == 4 { f32::from_bits(word as u32) } else { f64::from_bits(word) as f32 }
            };
            let width = width as usize;
            Elements::Complex(bytes.chunks_exact(2 * width).map(|v| Complex::new(real(&v[..width]), real(&v[width..]))).collect())
        }
        other => return Err(format!("values of the type {other} are not supported")),
    })
}

#[cfg(test)]
mod tests;
