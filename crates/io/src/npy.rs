//! NPY, NumPy's array file: versions 1 to 3 are read (reals and integers of either byte order, C or Fortran order),
//! version 1 is written (little-endian, C order).
//!
//! The reader trusts nothing: the shape is held against the file's length before any memory is asked for.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::ops::Range;
use std::path::Path;

use zellige_engine::error::{Error, Result};
use zellige_engine::files::atomic_write;
use zellige_engine::record::Values;

use crate::Array;

mod typed;

pub use typed::{bytes, shape, tensor};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Longer headers belong to structured types, which are refused anyway.
const LONGEST_HEADER: usize = 1 << 16;
/// NumPy's own limit is 64 dimensions.
const MOST_AXES: usize = 32;
const FORMAT: &str = "NPY";

/// Reads an array; Fortran order is turned into C order, every type into `f64`.
pub fn read(path: impl AsRef<Path>) -> Result<Array> {
    opened(path.as_ref(), parse)
}

/// Reads some rows along the first axis of an array, as [`read()`] reads all. Of an array in Fortran order the whole is read.
pub fn read_rows(path: impl AsRef<Path>, rows: Range<usize>) -> Result<Array> {
    opened(path.as_ref(), |file, length| {
        let (header, kind, count) = claims(file, length)?;
        let axis = header.shape.first().copied().unwrap_or(0);
        if rows.start > rows.end || rows.end > axis {
            return Err(format!("it has {axis} rows, those asked for are {} to {}", rows.start, rows.end).into());
        }
        let row = count.checked_div(axis).unwrap_or(0);
        let range = rows.start * row..rows.end * row;
        let values = if header.fortran {
            from_fortran(&header.shape, &decode(file, kind, count)?)[range].to_vec()
        } else {
            file.seek_relative((range.start * kind.bytes) as i64).map_err(Fault::System)?;
            decode(file, kind, range.len())?
        };
        let shape = std::iter::once(rows.len()).chain(header.shape.into_iter().skip(1)).collect();
        Ok(Array { shape, values })
    })
}

/// The shape of an array that [`read()`] can read, with its type and the file's length checked, without reading its values.
pub fn shape_of(path: impl AsRef<Path>) -> Result<Vec<usize>> {
    opened(path.as_ref(), |file, length| claims(file, length).map(|(header, ..)| header.shape))
}

/// Opens a file and returns the result of `work`, which receives the reader and the length of the file in bytes.
fn opened<T>(path: &Path, work: impl FnOnce(&mut BufReader<File>, u64) -> Result<T, Fault>) -> Result<T> {
    let failed = |e| Error::file("read", path, e);
    let file = File::open(path).map_err(failed)?;
    let data = file.metadata().map_err(failed)?;
    if data.is_dir() {
        return Err(failed(std::io::ErrorKind::IsADirectory.into()));
    }
    work(&mut BufReader::with_capacity(1 << 18, file), data.len()).map_err(|fault| match fault {
        Fault::System(e) => failed(e),
        Fault::Content(message) => Error::format(path, FORMAT, message),
    })
}

/// Reads an array from memory.
pub fn from_bytes(bytes: &[u8]) -> Result<Array, String> {
    parse(&mut &*bytes, bytes.len() as u64).map_err(|fault| match fault {
        Fault::System(e) => e.to_string(),
        Fault::Content(message) => message,
    })
}

/// Writes values in C order under the given shape.
pub fn write(path: impl AsRef<Path>, shape: &[usize], values: &Values) -> Result<()> {
    let path = path.as_ref();
    let count: usize = shape.iter().product();
    if count != values.len() {
        return Err(Error::format(path, FORMAT, format!("the shape {shape:?} needs {count} values, {} were given", values.len())));
    }
    atomic_write(path, |out| {
        out.write_all(&header(descr(values), shape))?;
        crate::write_values(out, values)
    })
}

/// Lays out an array of values like those given, which are not written; returns the byte at which they begin.
pub(crate) fn lay_out(path: &Path, shape: &[usize], like: &Values) -> Result<u64> {
    let head = header(descr(like), shape);
    let length = head.len() + shape.iter().product::<usize>() * like.width();
    atomic_write(path, |out| {
        out.write_all(&head)?;
        out.flush()?;
        out.get_ref().set_len(length as u64)
    })?;
    Ok(head.len() as u64)
}

/// Writes an array in the type that it has.
pub fn write_tensor(path: impl AsRef<Path>, tensor: &crate::tensor::Tensor) -> Result<()> {
    atomic_write(path, |out| out.write_all(&bytes(tensor)))
}

fn descr(values: &Values) -> &'static str {
    match values {
        Values::F32(_) => "<f4",
        Values::F64(_) => "<f8",
    }
}

fn header(descr: &str, shape: &[usize]) -> Vec<u8> {
    let mut tuple = String::from("(");
    for n in shape {
        let _ = write!(tuple, "{n}, ");
    }
    let tuple = if shape.len() == 1 { tuple.trim_end() } else { tuple.trim_end_matches(", ") };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple}), }}");
    // Magic, version and length take 10 bytes; the data starts at a multiple of 64.
    let total = (10 + text.len() + 1).next_multiple_of(64);
    text.push_str(&" ".repeat(total - 10 - text.len() - 1));
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

#[derive(Debug)]
enum Fault {
    System(std::io::Error),
    Content(String),
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self::Content(message)
    }
}

fn take<const N: usize>(input: &mut impl Read, what: &str) -> Result<[u8; N], Fault> {
    let mut bytes = [0; N];
    fill(input, &mut bytes, what)?;
    Ok(bytes)
}

fn fill(input: &mut impl Read, bytes: &mut [u8], what: &str) -> Result<(), Fault> {
    input.read_exact(bytes).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => Fault::Content(format!("the file ends within {what}")),
        _ => Fault::System(e),
    })
}

/// Magic bytes, version and dictionary; the second number is where the data begins.
fn head(input: &mut impl Read) -> Result<(Header, u64), Fault> {
    let magic: [u8; 6] = take(input, "the magic bytes")?;
    if &magic != MAGIC {
        return Err(format!("it starts with {magic:02x?}, expected {MAGIC:02x?} (`\\x93NUMPY`)").into());
    }
    let [major, minor] = take(input, "the version")?;
    let (prefix, header_length) = match major {
        1 => (10, usize::from(u16::from_le_bytes(take(input, "the header's length")?))),
        2 | 3 => (12, u32::from_le_bytes(take(input, "the header's length")?) as usize),
        _ => return Err(format!("its version is {major}.{minor}, expected 1.0, 2.0 or 3.0").into()),
    };
    if header_length > LONGEST_HEADER {
        return Err(format!("its header claims {header_length} bytes, at most {LONGEST_HEADER} are read").into());
    }
    let mut text = vec![0; header_length];
    fill(input, &mut text, "the header")?;
    let text = std::str::from_utf8(&text).map_err(|e| format!("the header is not text: {e}"))?;
    Ok((Header::parse(text)?, prefix + header_length as u64))
}

/// The header, its type and the number of its values, held against the `length` of the file.
fn claims(input: &mut impl Read, length: u64) -> Result<(Header, ElementType, usize), Fault> {
    let (header, begin) = head(input)?;
    let kind = ElementType::parse(&header.descr)?;
    let count = header.shape.iter().try_fold(1u64, |n, &m| n.checked_mul(m as u64));
    let needed = count.and_then(|n| n.checked_mul(kind.bytes as u64));
    let present = length.saturating_sub(begin);
    match needed {
        Some(needed) if needed == present => {}
        Some(needed) => {
            return Err(
                format!("the shape {:?} of `{}` needs {needed} bytes of data, {present} are there", header.shape, header.descr).into()
            );
        }
        None => return Err(format!("the shape {:?} is beyond any memory", header.shape).into()),
    }
    Ok((header, kind, count.unwrap_or(0) as usize))
}

fn parse(input: &mut impl Read, length: u64) -> Result<Array, Fault> {
    let (header, kind, count) = claims(input, length)?;
    let values = decode(input, kind, count)?;
    let values = if header.fortran { from_fortran(&header.shape, &values) } else { values };
    Ok(Array { shape: header.shape, values })
}

fn decode(input: &mut impl Read, kind: ElementType, count: usize) -> Result<Vec<f64>, Fault> {
    let mut values = Vec::with_capacity(count);
    let mut chunk = vec![0u8; (count * kind.bytes).min(1 << 18)];
    while values.len() < count {
        let bytes = ((count - values.len()) * kind.bytes).min(chunk.len());
        fill(input, &mut chunk[..bytes], "the data")?;
        values.extend(chunk[..bytes].chunks_exact(kind.bytes).map(|v| kind.value(v)));
    }
    Ok(values)
}

/// Reorders values whose first index runs fastest into C order.
fn from_fortran<T: Copy>(shape: &[usize], values: &[T]) -> Vec<T> {
    let mut strides = vec![1; shape.len()];
    for axis in 1..shape.len() {
        strides[axis] = strides[axis - 1] * shape[axis - 1];
    }
    let mut index = vec![0; shape.len()];
    let mut out = Vec::with_capacity(values.len());
    for _ in 0..values.len() {
        out.push(values[index.iter().zip(&strides).map(|(i, s)| i * s).sum::<usize>()]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}

/// An element type.
#[derive(Debug, Clone, Copy)]
struct ElementType {
    class: u8,
    bytes: usize,
    big: bool,
}

impl ElementType {
    fn parse(descr: &str) -> Result<Self, String> {
        let refused =
            || format!("its type `{descr}` is not supported (allowed: `<f4`, `<f8`, `<i1` to `<i8`, `<u1` to `<u8`, `>` for big-endian)");
        let [order, class, digit] = descr.as_bytes() else { return Err(refused()) };
        let bytes = usize::from(digit.wrapping_sub(b'0'));
        let fits = match class {
            b'f' => matches!(bytes, 4 | 8),
            b'i' | b'u' => matches!(bytes, 1 | 2 | 4 | 8),
            b'b' => bytes == 1,
            _ => false,
        };
        let ordered = matches!(order, b'<' | b'>' | b'=') || (*order == b'|' && bytes == 1);
        if !fits || !ordered {
            return Err(refused());
        }
        Ok(Self { class: *class, bytes, big: *order == b'>' })
    }

    fn value(self, bytes: &[u8]) -> f64 {
        let mut word = [0u8; 8];
        for (k, &b) in bytes.iter().enumerate() {
            word[if self.big { bytes.len() - 1 - k } else { k }] = b;
        }
        let raw = u64::from_le_bytes(word);
        match (self.class, self.bytes) {
            (b'f', 4) => f64::from(f32::from_bits(raw as u32)),
            (b'f', _) => f64::from_bits(raw),
            (b'i', n) => {
                let unused = 64 - 8 * n as u32;
                (((raw << unused) as i64) >> unused) as f64
            }
            _ => raw as f64,
        }
    }
}

#[derive(Debug)]
struct Header {
    descr: String,
    fortran: bool,
    shape: Vec<usize>,
}

impl Header {
    /// Parses the dictionary with exactly the keys `descr`, `fortran_order` and `shape`, in any order.
    fn parse(text: &str) -> Result<Self, String> {
        let mut cursor = Cursor { text, at: 0 };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        cursor.expect('{')?;
        while !cursor.accept('}') {
            let key = cursor.string()?;
            cursor.expect(':')?;
            let known = match key.as_str() {
                "descr" => descr.replace(cursor.string()?).is_none(),
                "fortran_order" => fortran.replace(cursor.boolean()?).is_none(),
                "shape" => shape.replace(cursor.tuple()?).is_none(),
                _ => return Err(format!("the header has an unknown key `{key}` (allowed: `descr`, `fortran_order`, `shape`)")),
            };
            if !known {
                return Err(format!("the header has the key `{key}` twice"));
            }
            if !cursor.accept(',') {
                cursor.expect('}')?;
                break;
            }
        }
        cursor.end()?;
        let missing = |key: &str| format!("the header lacks the key `{key}`");
        Ok(Self {
            descr: descr.ok_or_else(|| missing("descr"))?,
            fortran: fortran.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl Cursor<'_> {
    fn rest(&mut self) -> &str {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
        &self.text[self.at..]
    }

    fn accept(&mut self, c: char) -> bool {
        let found = self.rest().starts_with(c);
        self.at += if found { c.len_utf8() } else { 0 };
        found
    }

    fn fail<T>(&mut self, expected: &str) -> Result<T, String> {
        let found = self.rest().chars().next().map_or("its end".into(), |c| format!("`{}`", c.escape_default()));
        Err(format!("the header has {found} at byte {}, expected {expected}", self.at))
    }

    fn expect(&mut self, c: char) -> Result<(), String> {
        if self.accept(c) { Ok(()) } else { self.fail(&format!("`{c}`")) }
    }

    fn string(&mut self) -> Result<String, String> {
        let Some(quote) = self.rest().chars().next().filter(|c| matches!(c, '\'' | '"')) else {
            return self.fail("a quoted text (structured types are not supported)");
        };
        let start = self.at + 1;
        let Some(length) = self.text[start..].find(quote) else { return self.fail("a closing quote") };
        self.at = start + length + 1;
        Ok(self.text[start..start + length].to_owned())
    }

    fn boolean(&mut self) -> Result<bool, String> {
        for (word, value) in [("True", true), ("False", false)] {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        self.fail("`True` or `False`")
    }

    fn tuple(&mut self) -> Result<Vec<usize>, String> {
        let mut shape = Vec::new();
        self.expect('(')?;
        while !self.accept(')') {
            let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
            let word = &self.text[self.at..self.at + digits];
            match word.parse::<usize>() {
                Ok(n) => shape.push(n),
                Err(_) if digits > 0 => return Err(format!("the shape has the length {word}, beyond any memory")),
                Err(_) => return self.fail("a length"),
            }
            self.at += digits;
            if shape.len() > MOST_AXES {
                return Err(format!("the shape has more than {MOST_AXES} axes"));
            }
            if !self.accept(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(shape)
    }

    fn end(&mut self) -> Result<(), String> {
        if self.rest().is_empty() { Ok(()) } else { self.fail("nothing more") }
    }
}

#[cfg(test)]
mod tests;
