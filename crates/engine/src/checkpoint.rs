//! Checkpoints: named, typed sections in one file with a checksum, written whole or not at all.
//!
//! Layout, little-endian: magic `ZLGCKPT\n`, format version (u32), solver name (u32 length, UTF-8); then sections, each
//! kind (u8), name (u16 length, UTF-8), payload length in bytes (u64), payload; kind 0 ends the list. The last 32 bytes
//! are the BLAKE3 hash of all before them. Arrays are streamed on both ways: neither side holds a second copy.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Serialize, de::DeserializeOwned};

use crate::error::{Error, Result};
use crate::files::Pending;
use crate::links::Links;

#[cfg(target_endian = "big")]
compile_error!("checkpoints are written as they lie in memory, which must be little-endian");

const MAGIC: &[u8; 8] = b"ZLGCKPT\n";
/// Version of the layout above. The sections inside belong to their solver.
pub const VERSION: u32 = 1;
const HASH: u64 = 32;
const FORMAT: &str = "checkpoint";
/// Names and the solver's name are short; longer ones mean a damaged file.
const NAME_LIMIT: usize = 1024;
/// Bytes hashed and written at a time: stays in the cache between the two.
const CHUNK: usize = 1 << 16;

/// Type of the content of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum SectionType {
    U64 = 1,
    F64 = 2,
    Bytes = 3,
    F32s = 4,
    F64s = 5,
    Json = 6,
}

impl SectionType {
    fn from_code(code: u8) -> Option<Self> {
        [Self::U64, Self::F64, Self::Bytes, Self::F32s, Self::F64s, Self::Json].into_iter().find(|k| *k as u8 == code)
    }

    /// Bytes per element.
    fn size(self) -> u64 {
        match self {
            Self::U64 | Self::F64 | Self::F64s => 8,
            Self::F32s => 4,
            Self::Bytes | Self::Json => 1,
        }
    }
}

/// Writes named sections into a new checkpoint; [`Writer::finish`] gives the file its name.
///
/// A write that fails is remembered, and ends in [`Writer::finish`]: the state is gone through to its end all the same, as other
/// parts of the run do at the same time.
#[derive(Debug)]
pub struct Writer {
    /// The file; none at the parts of a run that write nothing.
    pending: Option<Pending>,
    path: PathBuf,
    failed: Option<Error>,
    hash: blake3::Hasher,
    names: BTreeSet<String>,
    written: u64,
}

impl Writer {
    /// Begins the checkpoint `path` of the solver `solver`. What stood there stays until [`Writer::finish`].
    pub fn create(path: impl AsRef<Path>, solver: &str) -> Result<Self> {
        let path = path.as_ref();
        let mut writer = Self::empty(path, Some(Pending::create(path)?));
        writer.put(MAGIC);
        writer.put(&VERSION.to_le_bytes());
        writer.put(&(solver.len() as u32).to_le_bytes());
        writer.put(solver.as_bytes());
        Ok(writer)
    }

    /// Begins a checkpoint of a run in parts: the first one writes it, whose file may fail to be created until
    /// [`Writer::finish`], and the others nothing.
    pub fn of_parts(links: &Links, path: impl AsRef<Path>, solver: &str) -> Self {
        let path = path.as_ref();
        if !links.is_first() {
            return Self::empty(path, None);
        }
        Self::create(path, solver).unwrap_or_else(|error| Self { failed: Some(error), ..Self::empty(path, None) })
    }

    fn empty(path: &Path, pending: Option<Pending>) -> Self {
        Self { pending, path: path.to_owned(), failed: None, hash: blake3::Hasher::new(), names: BTreeSet::new(), written: 0 }
    }

    fn put(&mut self, bytes: &[u8]) {
        let Some(pending) = self.pending.as_mut().filter(|_| self.failed.is_none()) else { return };
        for chunk in bytes.chunks(CHUNK) {
            self.hash.update(chunk);
            if let Err(e) = pending.out().write_all(chunk) {
                self.failed = Some(Error::file("write", pending.path(), e));
                return;
            }
        }
        self.written += bytes.len() as u64;
    }

    fn section(&mut self, kind: SectionType, name: &str, payload: &[u8]) -> Result<()> {
        if name.is_empty() || name.len() > NAME_LIMIT || !self.names.insert(name.to_owned()) {
            return Err(Error::format(&self.path, FORMAT, format!("section name `{name}` is empty, too long or taken")));
        }
        self.put(&[kind as u8]);
        self.put(&(name.len() as u16).to_le_bytes());
        self.put(name.as_bytes());
        self.put(&(payload.len() as u64).to_le_bytes());
        self.put(payload);
        Ok(())
    }

    /// Writes a count.
    pub fn u64(&mut self, name: &str, value: u64) -> Result<()> {
        self.section(SectionType::U64, name, &value.to_le_bytes())
    }

    /// Writes a number, bit by bit.
    pub fn f64(&mut self, name: &str, value: f64) -> Result<()> {
        self.section(SectionType::F64, name, &value.to_le_bytes())
    }

    /// Writes bytes as they are.
    pub fn bytes(&mut self, name: &str, values: &[u8]) -> Result<()> {
        self.section(SectionType::Bytes, name, values)
    }

    /// Writes an array in single precision.
    pub fn f32s(&mut self, name: &str, values: &[f32]) -> Result<()> {
        self.section(SectionType::F32s, name, bytemuck::cast_slice(values))
    }

    /// Writes an array in double precision.
    pub fn f64s(&mut self, name: &str, values: &[f64]) -> Result<()> {
        self.section(SectionType::F64s, name, bytemuck::cast_slice(values))
    }

    /// Writes anything small that serde knows. JSON turns values that are not finite into null: arrays and numbers that
    /// may hold them have their own kinds.
    pub fn json<T: Serialize>(&mut self, name: &str, value: &T) -> Result<()> {
        let text = serde_json::to_vec(value)
            .map_err(|e| Error::format(&self.path, FORMAT, format!("section `{name}` cannot be written as JSON: {e}")))?;
        self.section(SectionType::Json, name, &text)
    }

    /// Ends the list, adds the checksum and gives the file its name. Returns its size in bytes, 0 where nothing is written.
    pub fn finish(mut self) -> Result<u64> {
        self.put(&[0]);
        let hash = self.hash.finalize();
        if let Some(error) = self.failed {
            return Err(error);
        }
        let Some(mut pending) = self.pending else { return Ok(0) };
        if let Err(e) = pending.out().write_all(hash.as_bytes()) {
            return Err(Error::file("write", pending.path(), e));
        }
        pending.commit()?;
        Ok(self.written + HASH)
    }
}

/// Name, type and location of a section.
#[derive(Debug, Clone, Copy)]
struct Section {
    kind: SectionType,
    offset: u64,
    length: u64,
}

/// Reads the sections of a checkpoint whose checksum was found right.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    file: File,
    solver: String,
    sections: BTreeMap<String, Section>,
}

/// Counts and hashes the bytes read.
struct HashedReader<R> {
    inner: R,
    hash: blake3::Hasher,
    at: u64,
}

impl<R: Read> HashedReader<R> {
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.inner.read_exact(buffer)?;
        self.hash.update(buffer);
        self.at += buffer.len() as u64;
        Ok(())
    }

    fn number<const N: usize>(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.take(&mut bytes[..N])?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn text(&mut self, length: u64) -> io::Result<String> {
        if length > NAME_LIMIT as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a name of {length} bytes")));
        }
        let mut bytes = vec![0; length as usize];
        self.take(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a name that is not UTF-8"))
    }
}

impl Reader {
    /// Opens a checkpoint of the solver `solver` and verifies all of it.
    pub fn open(path: impl AsRef<Path>, solver: &str) -> Result<Self> {
        let reader = Self::open_any(path)?;
        if reader.solver != solver {
            return Err(reader.content_error(format!("it belongs to the solver `{}`, not to `{solver}`", reader.solver)));
        }
        Ok(reader)
    }

    /// Opens a checkpoint of any solver and verifies all of it.
    pub fn open_any(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |e| Error::file("read", path, e);
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::Error::new(io::ErrorKind::IsADirectory, "this is a folder, not a file")));
        }
        let input = HashedReader { inner: BufReader::with_capacity(1 << 18, &file), hash: blake3::Hasher::new(), at: 0 };
        let (solver, sections) = scan(input, metadata.len()).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => Error::format(path, FORMAT, "it ends too early: it was cut off"),
            io::ErrorKind::InvalidData => Error::format(path, FORMAT, e.to_string()),
            _ => failed(e),
        })?;
        Ok(Self { path: path.to_owned(), file, solver, sections })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The solver that wrote it.
    pub fn solver(&self) -> &str {
        &self.solver
    }

    /// Returns true if there is a section of this name.
    pub fn has(&self, name: &str) -> bool {
        self.sections.contains_key(name)
    }

    /// Names of all sections, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sections.keys().map(String::as_str)
    }

    /// An error about the content of this checkpoint, for solvers whose sections do not fit.
    pub fn content_error(&self, message: impl Into<String>) -> Error {
        Error::format(&self.path, FORMAT, message)
    }

    /// A sound checkpoint that does not fit this run.
    pub fn mismatch(&self, message: impl Into<String>) -> Error {
        Error::Content { path: self.path.clone(), message: message.into() }
    }

    fn find(&self, name: &str, kind: SectionType) -> Result<Section> {
        match self.sections.get(name) {
            None => Err(self.content_error(format!("section `{name}` is missing"))),
            Some(s) if s.kind != kind => Err(self.content_error(format!("section `{name}` is {:?}, expected {kind:?}", s.kind))),
            Some(s) => Ok(*s),
        }
    }

    fn fill(&self, section: Section, buffer: &mut [u8]) -> Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(section.offset)).and_then(|_| file.read_exact(buffer)).map_err(|e| Error::file("read", &self.path, e))
    }

    fn scalar(&self, name: &str, kind: SectionType) -> Result<[u8; 8]> {
        let section = self.find(name, kind)?;
        let mut bytes = [0; 8];
        self.fill(section, &mut bytes)?;
        Ok(bytes)
    }

    fn array<T: bytemuck::Pod>(&self, name: &str, kind: SectionType) -> Result<Vec<T>> {
        let section = self.find(name, kind)?;
        let mut values = vec![T::zeroed(); (section.length / kind.size()) as usize];
        self.fill(section, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    fn array_into<T: bytemuck::Pod>(&self, name: &str, kind: SectionType, values: &mut [T]) -> Result<()> {
        let section = self.find(name, kind)?;
        let found = section.length / kind.size();
        if found != values.len() as u64 {
            return Err(
                self.content_error(format!("section `{name}` has {found} values, expected {}: the input has changed", values.len()))
            );
        }
        self.fill(section, bytemuck::cast_slice_mut(values))
    }

    /// Reads a count.
    pub fn u64(&self, name: &str) -> Result<u64> {
        Ok(u64::from_le_bytes(self.scalar(name, SectionType::U64)?))
    }

    /// Reads a number.
    pub fn f64(&self, name: &str) -> Result<f64> {
        Ok(f64::from_le_bytes(self.scalar(name, SectionType::F64)?))
    }

    /// Reads a section of any type as it lies in the file.
    pub fn raw(&self, name: &str) -> Result<Vec<u8>> {
        let section = self.sections.get(name).ok_or_else(|| self.content_error(format!("section `{name}` is missing")))?;
        let mut bytes = vec![0; section.length as usize];
        self.fill(*section, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads bytes.
    pub fn bytes(&self, name: &str) -> Result<Vec<u8>> {
        self.array(name, SectionType::Bytes)
    }

    /// Number of bytes that [`Reader::bytes`] reads.
    pub fn bytes_len(&self, name: &str) -> Result<u64> {
        Ok(self.find(name, SectionType::Bytes)?.length)
    }

    /// Reads bytes from number `first` on, as many as `values` holds: a part of a run keeps its own alone.
    pub fn bytes_from(&self, name: &str, first: u64, values: &mut [u8]) -> Result<()> {
        let section = self.find(name, SectionType::Bytes)?;
        if first.checked_add(values.len() as u64).is_none_or(|last| last > section.length) {
            return Err(self.content_error(format!("section `{name}` has {} bytes: the input has changed", section.length)));
        }
        self.fill(Section { offset: section.offset + first, ..section }, values)
    }

    /// Reads an array in single precision.
    pub fn f32s(&self, name: &str) -> Result<Vec<f32>> {
        self.array(name, SectionType::F32s)
    }

    /// Reads an array in double precision.
    pub fn f64s(&self, name: &str) -> Result<Vec<f64>> {
        self.array(name, SectionType::F64s)
    }

    /// Reads an array in single precision into `values`; the lengths must agree.
    pub fn f32s_into(&self, name: &str, values: &mut [f32]) -> Result<()> {
        self.array_into(name, SectionType::F32s, values)
    }

    /// Reads an array in double precision into `values`; the lengths must agree.
    pub fn f64s_into(&self, name: &str, values: &mut [f64]) -> Result<()> {
        self.array_into(name, SectionType::F64s, values)
    }

    /// Reads what [`Writer::json`] wrote.
    pub fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let text: Vec<u8> = self.array(name, SectionType::Json)?;
        serde_json::from_slice(&text).map_err(|e| self.content_error(format!("section `{name}`: {e}")))
    }
}

/// Reads the file once: finds its sections and checks that it is as it was written.
fn scan<R: Read>(mut input: HashedReader<R>, size: u64) -> io::Result<(String, BTreeMap<String, Section>)> {
    let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    let mut magic = [0; 8];
    input.take(&mut magic)?;
    if &magic != MAGIC {
        return Err(invalid("it does not begin as one".into()));
    }
    let version = input.number::<4>()?;
    if version != u64::from(VERSION) {
        return Err(invalid(format!("it has format version {version}, this program reads version {VERSION}")));
    }
    let length = input.number::<4>()?;
    let solver = input.text(length)?;
    let mut sections = BTreeMap::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        let code = input.number::<1>()?;
        if code == 0 {
            break;
        }
        let at = input.at;
        let kind = SectionType::from_code(code as u8).ok_or_else(|| invalid(format!("unknown section kind {code} at byte {at}")))?;
        let length = input.number::<2>()?;
        let name = input.text(length)?;
        let length = input.number::<8>()?;
        let offset = input.at;
        if length > size.saturating_sub(offset) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let scalar = matches!(kind, SectionType::U64 | SectionType::F64);
        if !length.is_multiple_of(kind.size()) || (scalar && length != kind.size()) {
            return Err(invalid(format!("section `{name}` has {length} bytes, which is not a {kind:?}")));
        }
        let mut left = length;
        while left > 0 {
            let part = left.min(CHUNK as u64) as usize;
            input.take(&mut chunk[..part])?;
            left -= part as u64;
        }
        if sections.insert(name.clone(), Section { kind, offset, length }).is_some() {
            return Err(invalid(format!("section `{name}` is there twice")));
        }
    }
    let expected = input.hash.finalize();
    let mut found = [0; HASH as usize];
    input.inner.read_exact(&mut found)?;
    // `blake3::Hash` compares in constant time, which does no harm here.
    if expected != found {
        return Err(invalid("its checksum is wrong: it was damaged after it was written".into()));
    }
    if input.at + HASH != size {
        return Err(invalid(format!("{} bytes follow its end", size - input.at - HASH)));
    }
    Ok((solver, sections))
}

#[cfg(test)]
mod tests;
