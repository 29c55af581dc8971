//! Reading of checkpoints: each block is verified when it is read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::de::DeserializeOwned;

use super::{BLOCK, Element, FORMAT, Hash, MAGIC, NAME_LIMIT, SectionType, TRAILER, VERSION, seal};
use crate::error::{Error, Result};

/// Name, type and location of a section.
#[derive(Debug, Clone, Copy)]
struct Section {
    kind: SectionType,
    offset: u64,
    length: u64,
}

/// Reads the sections of a checkpoint. Its list of sections and its end were found right on opening; all else is verified when it
/// is read, so that a part of a run reads and verifies its own alone.
#[derive(Debug)]
pub struct Reader {
    body: Body,
    solver: String,
    sections: BTreeMap<String, Section>,
}

/// The body of a file, in blocks with their checksums.
#[derive(Debug)]
struct Body {
    path: PathBuf,
    file: File,
    length: u64,
    hashes: Vec<Hash>,
    /// The last block that was read in pieces, with its number.
    last: Mutex<Option<(u64, Vec<u8>)>>,
}

impl Body {
    /// Opens a file, and checks its beginning and its end.
    fn open(path: &Path) -> Result<Self> {
        let failed = |e| Error::file("read", path, e);
        let invalid = |message: &str| Error::format(path, FORMAT, message);
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::Error::new(io::ErrorKind::IsADirectory, "this is a folder, not a file")));
        }
        let size = metadata.len();
        let mut head = [0; 12];
        if size < head.len() as u64 + TRAILER {
            return Err(invalid("it ends too early: it was cut off"));
        }
        file.read_exact_at(&mut head, 0).map_err(failed)?;
        let (magic, version) = head.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(invalid("it does not begin as one"));
        }
        let version = u32::from_le_bytes(std::array::from_fn(|i| version[i]));
        if version != VERSION {
            return Err(invalid(&format!("it has format version {version}, this program reads version {VERSION}")));
        }
        let mut trailer = [0; TRAILER as usize];
        file.read_exact_at(&mut trailer, size - TRAILER).map_err(failed)?;
        let (length, sealed) = trailer.split_at(8);
        let length = u64::from_le_bytes(std::array::from_fn(|i| length[i]));
        let blocks = length.div_ceil(BLOCK);
        let expected = blocks.checked_mul(size_of::<Hash>() as u64).and_then(|hashes| hashes.checked_add(length)?.checked_add(TRAILER));
        if expected != Some(size) {
            return Err(invalid("its end is not that of a whole one: it was cut off, or damaged after it was written"));
        }
        let mut hashes = vec![[0; size_of::<Hash>()]; blocks as usize];
        file.read_exact_at(hashes.as_flattened_mut(), length).map_err(failed)?;
        if seal(&hashes, length) != sealed {
            return Err(invalid("its checksums are wrong: it was damaged after it was written"));
        }
        Ok(Self { path: path.to_owned(), file, length, hashes, last: Mutex::new(None) })
    }

    /// Reads and verifies a whole block.
    fn block(&self, number: u64, block: &mut [u8]) -> Result<()> {
        let begin = number * BLOCK;
        self.file.read_exact_at(block, begin).map_err(|e| Error::file("read", &self.path, e))?;
        if self.hashes[number as usize] != *blake3::hash(block).as_bytes() {
            let end = begin + block.len() as u64;
            let message = format!("the checksum of bytes {begin} to {end} is wrong: it was damaged after it was written");
            return Err(Error::format(&self.path, FORMAT, message));
        }
        Ok(())
    }

    /// Reads bytes from `at` on, and verifies the blocks that they lie in.
    fn read(&self, mut at: u64, mut buffer: &mut [u8]) -> Result<()> {
        if at.checked_add(buffer.len() as u64).is_none_or(|end| end > self.length) {
            return Err(Error::format(&self.path, FORMAT, "it ends too early: it was cut off"));
        }
        while !buffer.is_empty() {
            let number = at / BLOCK;
            let length = (self.length - number * BLOCK).min(BLOCK) as usize;
            let first = (at - number * BLOCK) as usize;
            let (some, rest) = buffer.split_at_mut((length - first).min(buffer.len()));
            if some.len() == length {
                self.block(number, some)?;
            } else {
                let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                if last.as_ref().is_none_or(|(held, _)| *held != number) {
                    let mut block = last.take().map_or_else(Vec::new, |(_, block)| block);
                    block.resize(length, 0);
                    self.block(number, &mut block)?;
                    *last = Some((number, block));
                }
                if let Some((_, block)) = &*last {
                    some.copy_from_slice(&block[first..first + some.len()]);
                }
            }
            (at, buffer) = (at + some.len() as u64, rest);
        }
        Ok(())
    }
}

/// Reads one value after the other.
struct Cursor<'a> {
    body: &'a Body,
    at: u64,
}

impl Cursor<'_> {
    fn take(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.body.read(self.at, buffer)?;
        self.at += buffer.len() as u64;
        Ok(())
    }

    fn number<const N: usize>(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.take(&mut bytes[..N])?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn text(&mut self, length: u64) -> Result<String> {
        let invalid = |message: String| Error::format(&self.body.path, FORMAT, message);
        if length > NAME_LIMIT as u64 {
            return Err(invalid(format!("a name of {length} bytes")));
        }
        let mut bytes = vec![0; length as usize];
        self.body.read(self.at, &mut bytes)?;
        self.at += length;
        String::from_utf8(bytes).map_err(|_| invalid("a name that is not UTF-8".into()))
    }
}

impl Reader {
    /// Opens a checkpoint of the solver `solver`.
    pub fn open(path: impl AsRef<Path>, solver: &str) -> Result<Self> {
        let reader = Self::open_any(path)?;
        if reader.solver != solver {
            return Err(reader.content_error(format!("it belongs to the solver `{}`, not to `{solver}`", reader.solver)));
        }
        Ok(reader)
    }

    /// Opens a checkpoint of any solver.
    pub fn open_any(path: impl AsRef<Path>) -> Result<Self> {
        let body = Body::open(path.as_ref())?;
        let (solver, sections) = scan(&body)?;
        Ok(Self { body, solver, sections })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.body.path
    }

    /// The solver that wrote it.
    pub fn solver(&self) -> &str {
        &self.solver
    }

    /// The beginning of the seal on all checksums: the same for files of the same content.
    pub fn seal(&self) -> String {
        let beginning = seal(&self.body.hashes, self.body.length).iter().take(8).fold(0, |all, byte| (all << 8) | u64::from(*byte));
        format!("{beginning:016x}")
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
        Error::format(&self.body.path, FORMAT, message)
    }

    /// A sound checkpoint that does not fit this run.
    pub fn mismatch(&self, message: impl Into<String>) -> Error {
        Error::Content { path: self.body.path.clone(), message: message.into() }
    }

    fn find(&self, name: &str, kind: SectionType) -> Result<Section> {
        match self.sections.get(name) {
            None => Err(self.content_error(format!("section `{name}` is missing"))),
            Some(s) if s.kind != kind => Err(self.content_error(format!("section `{name}` is {:?}, expected {kind:?}", s.kind))),
            Some(s) => Ok(*s),
        }
    }

    fn scalar(&self, name: &str, kind: SectionType) -> Result<[u8; 8]> {
        let section = self.find(name, kind)?;
        let mut bytes = [0; 8];
        self.body.read(section.offset, &mut bytes)?;
        Ok(bytes)
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
        self.body.read(section.offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Number of values of an array.
    pub fn count<V: Element>(&self, name: &str) -> Result<usize> {
        let length = self.find(name, V::TYPE)?.length as usize;
        if !length.is_multiple_of(size_of::<V>()) {
            return Err(self.content_error(format!("section `{name}` has {length} bytes, which are not whole values")));
        }
        Ok(length / size_of::<V>())
    }

    /// Reads all values of an array.
    pub fn values<V: Element>(&self, name: &str) -> Result<Vec<V>> {
        let mut values = vec![V::zeroed(); self.count::<V>(name)?];
        self.values_from(name, 0, &mut values)?;
        Ok(values)
    }

    /// Reads values of an array from number `first` on, as many as `values` holds: a part of a run reads its own alone.
    pub fn values_from<V: Element>(&self, name: &str, first: usize, values: &mut [V]) -> Result<()> {
        let (section, count) = (self.find(name, V::TYPE)?, self.count::<V>(name)?);
        if first.checked_add(values.len()).is_none_or(|last| last > count) {
            let message = format!("section `{name}` has {count} values, expected {} from {first} on: the input has changed", values.len());
            return Err(self.content_error(message));
        }
        self.body.read(section.offset + (first * size_of::<V>()) as u64, bytemuck::cast_slice_mut(values))
    }

    /// Reads the values of some ranges one after the other; none of an empty array, which a column may be that nothing needs.
    pub fn picked<V: Element>(&self, name: &str, ranges: &[Range<usize>]) -> Result<Vec<V>> {
        if self.count::<V>(name)? == 0 {
            return Ok(Vec::new());
        }
        let mut values = vec![V::zeroed(); ranges.iter().map(Range::len).sum()];
        let mut rest = &mut values[..];
        for range in ranges {
            let (some, behind) = rest.split_at_mut(range.len());
            self.values_from(name, range.start, some)?;
            rest = behind;
        }
        Ok(values)
    }

    /// Reads bytes.
    pub fn bytes(&self, name: &str) -> Result<Vec<u8>> {
        self.values(name)
    }

    /// Reads an array in single precision.
    pub fn f32s(&self, name: &str) -> Result<Vec<f32>> {
        self.values(name)
    }

    /// Reads an array in double precision.
    pub fn f64s(&self, name: &str) -> Result<Vec<f64>> {
        self.values(name)
    }

    fn array_into<V: Element>(&self, name: &str, values: &mut [V]) -> Result<()> {
        let found = self.count::<V>(name)?;
        if found != values.len() {
            let message = format!("section `{name}` has {found} values, expected {}: the input has changed", values.len());
            return Err(self.content_error(message));
        }
        self.values_from(name, 0, values)
    }

    /// Reads an array in single precision into `values`; the lengths must agree.
    pub fn f32s_into(&self, name: &str, values: &mut [f32]) -> Result<()> {
        self.array_into(name, values)
    }

    /// Reads an array in double precision into `values`; the lengths must agree.
    pub fn f64s_into(&self, name: &str, values: &mut [f64]) -> Result<()> {
        self.array_into(name, values)
    }

    /// Reads what [`super::Writer::json`] wrote.
    pub fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let section = self.find(name, SectionType::Json)?;
        let mut text = vec![0; section.length as usize];
        self.body.read(section.offset, &mut text)?;
        serde_json::from_slice(&text).map_err(|e| self.content_error(format!("section `{name}`: {e}")))
    }
}

/// Goes from section to section: the solver's name, and where sections are.
fn scan(body: &Body) -> Result<(String, BTreeMap<String, Section>)> {
    let invalid = |message: String| Error::format(&body.path, FORMAT, message);
    let mut input = Cursor { body, at: MAGIC.len() as u64 + 4 };
    let length = input.number::<4>()?;
    let solver = input.text(length)?;
    let mut sections = BTreeMap::new();
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
        if length > body.length.saturating_sub(offset) {
            return Err(invalid("it ends too early: it was cut off".into()));
        }
        let scalar = matches!(kind, SectionType::U64 | SectionType::F64);
        if !length.is_multiple_of(kind.size()) || (scalar && length != kind.size()) {
            return Err(invalid(format!("section `{name}` has {length} bytes, which is not a {kind:?}")));
        }
        input.at += length;
        if sections.insert(name.clone(), Section { kind, offset, length }).is_some() {
            return Err(invalid(format!("section `{name}` is there twice")));
        }
    }
    if input.at != body.length {
        return Err(invalid(format!("{} bytes follow its end", body.length - input.at)));
    }
    Ok((solver, sections))
}
