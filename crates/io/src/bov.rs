//! BOV, a brick of values: a text header that VisIt and ParaView read, beside a file of raw little-endian values.
//!
//! Readers differ in what they accept, so the header always gives three sizes (1 for a missing axis) and a relative name
//! of the data file.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use zellige_engine::error::{Error, Result};
use zellige_engine::files::{atomic_write, read_text};
use zellige_engine::record::{Axis, Centring, Field, Values};

const FORMAT: &str = "BOV";
/// Headers are a few lines.
const LARGEST: u64 = 1 << 16;

/// Writes `path` (the header, ending in `.bov`) and the values beside it under the ending `.raw`.
pub fn write(path: impl AsRef<Path>, field: &Field, time: Option<f64>) -> Result<()> {
    let path = path.as_ref();
    crate::check_field(path, FORMAT, field)?;
    let data = path.with_extension("raw");
    let name = data.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // The header comes last: where it stands, its data is complete.
    atomic_write(&data, |out| crate::write_values(out, &field.values))?;
    let three = |f: &dyn Fn(&Axis) -> String, missing: &str| {
        let part = |i: usize| field.axes.get(i).map_or_else(|| missing.to_owned(), f);
        format!("{} {} {}", part(0), part(1), part(2))
    };
    let nodes = field.centring == Centring::Node;
    let size = |a: &Axis| if nodes { a.len.saturating_sub(1).max(1) } else { a.len } as f64 * a.spacing;
    let (format, centring) = (
        match field.values {
            Values::F32(_) => "FLOAT",
            Values::F64(_) => "DOUBLE",
        },
        if nodes { "nodal" } else { "zonal" },
    );
    atomic_write(path, |out| {
        writeln!(
            out,
            "# {}{}",
            field.title.replace('\n', " "),
            if field.unit.is_empty() { String::new() } else { format!(" [{}]", field.unit) }
        )?;
        writeln!(out, "TIME: {}", time.unwrap_or(0.0))?;
        writeln!(out, "DATA_FILE: {name}")?;
        writeln!(out, "DATA_SIZE: {}", three(&|a| a.len.to_string(), "1"))?;
        writeln!(out, "DATA_FORMAT: {format}")?;
        writeln!(out, "VARIABLE: {}", field.name)?;
        writeln!(out, "DATA_ENDIAN: LITTLE")?;
        writeln!(out, "CENTERING: {centring}")?;
        writeln!(out, "BRICK_ORIGIN: {}", three(&|a| a.origin.to_string(), "0"))?;
        writeln!(out, "BRICK_SIZE: {}", three(&|a| size(a).to_string(), "1"))?;
        writeln!(out, "BYTE_OFFSET: 0")
    })
}

/// Reads a header and its data back.
pub fn read(path: impl AsRef<Path>) -> Result<Field> {
    let path = path.as_ref();
    let text = read_text(path, FORMAT, LARGEST)?;
    let wrong = |message: String| Error::format(path, FORMAT, message);
    let header = Header::parse(&text).map_err(wrong)?;
    let data = path.with_file_name(&header.data);
    let bytes = std::fs::read(&data).map_err(|e| Error::file("read", &data, e))?;
    header.field(&bytes).map_err(wrong)
}

struct Header {
    data: String,
    name: String,
    sizes: Vec<usize>,
    double: bool,
    big: bool,
    nodes: bool,
    origin: Vec<f64>,
    extent: Vec<f64>,
    offset: usize,
}

impl Header {
    fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
        let entries: HashMap<&str, &str> = lines
            .map(|l| l.split_once(':').map(|(k, v)| (k.trim(), v.trim())).ok_or_else(|| format!("the line `{l}` is not `KEY: value`")))
            .collect::<Result<_, _>>()?;
        let get = |key: &str| entries.get(key).copied().ok_or_else(|| format!("the key `{key}` is missing"));
        let choice = |key: &str, default: &'static str, allowed: [&'static str; 2]| {
            let word = entries.get(key).copied().unwrap_or(default);
            let found = allowed.iter().position(|a| a.eq_ignore_ascii_case(word));
            found.map(|i| i == 1).ok_or_else(|| format!("`{key}` is `{word}` (allowed: {}, {})", allowed[0], allowed[1]))
        };
        fn three<T: std::str::FromStr>(key: &str, text: &str) -> Result<Vec<T>, String> {
            let parts: Option<Vec<T>> = text.split_whitespace().map(|w| w.parse().ok()).collect();
            parts.filter(|p| p.len() == 3).ok_or_else(|| format!("`{key}` is `{text}`, expected three numbers"))
        }
        Ok(Self {
            data: get("DATA_FILE")?.to_owned(),
            name: get("VARIABLE")?.to_owned(),
            sizes: three("DATA_SIZE", get("DATA_SIZE")?)?,
            double: choice("DATA_FORMAT", "FLOAT", ["FLOAT", "DOUBLE"])?,
            big: choice("DATA_ENDIAN", "LITTLE", ["LITTLE", "BIG"])?,
            nodes: choice("CENTERING", "nodal", ["zonal", "nodal"])?,
            origin: three("BRICK_ORIGIN", entries.get("BRICK_ORIGIN").unwrap_or(&"0 0 0"))?,
            extent: three("BRICK_SIZE", entries.get("BRICK_SIZE").unwrap_or(&"1 1 1"))?,
            offset: entries.get("BYTE_OFFSET").map_or(Ok(0), |v| v.parse().map_err(|_| format!("`BYTE_OFFSET` is `{v}`")))?,
        })
    }

    fn field(&self, bytes: &[u8]) -> Result<Field, String> {
        let word = if self.double { 8 } else { 4 };
        let needed = self.sizes.iter().try_fold(word, |n: usize, &m| n.checked_mul(m)).ok_or("`DATA_SIZE` is beyond any memory")?;
        let bytes = bytes.get(self.offset..).unwrap_or_default();
        if bytes.len() != needed || needed == 0 {
            return Err(format!("`DATA_SIZE` {:?} needs {needed} bytes, `{}` has {}", self.sizes, self.data, bytes.len()));
        }
        let used = (1..3).rev().find(|&i| self.sizes[i] > 1).unwrap_or(0) + 1;
        let axis = |i: usize| {
            let len = self.sizes[i];
            let intervals = if self.nodes { (len - 1).max(1) } else { len };
            Axis::bare(i, self.origin[i], self.extent[i] / intervals as f64, len)
        };
        let centring = if self.nodes { Centring::Node } else { Centring::Cell };
        let values = crate::read_values(bytes, self.double, self.big);
        Ok(Field::bare(&self.name, (0..used).map(axis).collect(), centring, values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        for field in samples::fields() {
            let path = folder.path().join(format!("{}.bov", field.name));
            write(&path, &field, Some(0.5)).unwrap();
            samples::assert_same(&field, &read(&path).unwrap());
        }
    }

    #[test]
    fn the_header_is_what_readers_expect() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("u.bov");
        write(&path, &samples::plane(), None).unwrap();
        let expected = "# potential u [V]\nTIME: 0\nDATA_FILE: u.raw\nDATA_SIZE: 5 3 1\nDATA_FORMAT: FLOAT\nVARIABLE: u\n\
             DATA_ENDIAN: LITTLE\nCENTERING: nodal\nBRICK_ORIGIN: -1 0.25 0\nBRICK_SIZE: 2 3 1\nBYTE_OFFSET: 0\n";
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    }

    #[test]
    fn damage_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("u.bov");
        write(&path, &samples::plane(), None).unwrap();
        let whole = std::fs::read_to_string(&path).unwrap();
        for (from, to, message) in [
            ("5 3 1", "5 4 1", "needs 80 bytes, `u.raw` has 60"),
            ("5 3 1", "5 3", "expected three numbers"),
            ("FLOAT", "SHORT", "`DATA_FORMAT` is `SHORT` (allowed: FLOAT, DOUBLE)"),
            ("VARIABLE: u\n", "", "the key `VARIABLE` is missing"),
            ("TIME: 0", "TIME", "is not `KEY: value`"),
            ("5 3 1", "99999999999 99999999999 99", "beyond any memory"),
        ] {
            std::fs::write(&path, whole.replace(from, to)).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        std::fs::write(&path, whole.replace("u.raw", "v.raw")).unwrap();
        assert!(matches!(read(&path), Err(Error::File { action: "read", .. })));
    }
}
