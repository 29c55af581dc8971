//! VTI, VTK's image data: XML with the values appended as raw binary after a 64-bit length, as ParaView, VisIt and VTK
//! read it; and PVD, ParaView's list of such files over time.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use zellige_engine::error::{Error, Result};
use zellige_engine::files::{atomic_write, read_text};
use zellige_engine::record::{Axis, Centring, Field, Values};

const FORMAT: &str = "VTI";
const PVD: &str = "PVD";

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn unescape(text: &str) -> String {
    text.replace("&quot;", "\"").replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")
}

/// End of a file.
const TAIL: &[u8] = b"\n  </AppendedData>\n</VTKFile>\n";

/// Writes one field as point data (nodes) or cell data, with its title and unit and, where given, its time.
pub fn write(path: impl AsRef<Path>, field: &Field, time: Option<f64>) -> Result<()> {
    let path = path.as_ref();
    crate::check_field(path, FORMAT, field)?;
    let marks = (field.values.extremes().unknown > 0).then(|| field.values.marks(mark(field)));
    atomic_write(path, |out| {
        out.write_all(&head(field, &field.values, marks.is_some(), time)?)?;
        crate::write_values(out, &field.values)?;
        if let Some(marks) = &marks {
            out.write_all(&(marks.len() as u64).to_le_bytes())?;
            out.write_all(marks)?;
        }
        out.write_all(TAIL)
    })
}

/// Writes a file as [`write()`] does, of a field without its values, whose type is that of `like`: whole but for them and, if some
/// are not finite (`marked`), for the marks of these. Returns the bytes at which both begin.
pub(crate) fn lay_out(path: &Path, field: &Field, like: &Values, marked: bool, time: Option<f64>) -> Result<(u64, Option<u64>)> {
    let head = head(field, like, marked, time).map_err(|e| Error::file("write", path, e))?;
    let count = field.axes.iter().map(|a| a.len).product::<usize>() as u64;
    let (at, bytes) = (head.len() as u64, count * like.width() as u64);
    atomic_write(path, |out| {
        out.write_all(&head)?;
        out.seek(SeekFrom::Start(at + bytes))?;
        if marked {
            out.write_all(&count.to_le_bytes())?;
            out.seek(SeekFrom::Start(at + bytes + 8 + count))?;
        }
        out.write_all(TAIL)
    })?;
    Ok((at, marked.then_some(at + bytes + 8)))
}

/// VTK's mark of a hidden value, a cell or a point: where it is not finite, as inside of bodies.
pub(crate) fn mark(field: &Field) -> u8 {
    if field.centring == Centring::Node { 2 } else { 32 }
}

/// Beginning of a file, up to the values.
fn head(field: &Field, like: &Values, marked: bool, time: Option<f64>) -> io::Result<Vec<u8>> {
    let nodes = field.centring == Centring::Node;
    let three = |f: &dyn Fn(&Axis) -> String, missing: &str| {
        let parts: Vec<String> = (0..3).map(|i| field.axes.get(i).map_or_else(|| missing.to_owned(), f)).collect();
        parts.join(" ")
    };
    let extent = three(&|a| format!("0 {}", if nodes { a.len - 1 } else { a.len }), "0 0");
    let (origin, spacing) = (three(&|a| a.origin.to_string(), "0"), three(&|a| a.spacing.to_string(), "1"));
    let kind = if like.width() == 4 { "Float32" } else { "Float64" };
    let (place, name) = (if nodes { "PointData" } else { "CellData" }, escape(&field.name));
    let bytes = field.axes.iter().map(|a| a.len).product::<usize>() * like.width();
    let mut out = Vec::new();
    writeln!(out, "<?xml version=\"1.0\"?>")?;
    writeln!(out, "<VTKFile type=\"ImageData\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">")?;
    writeln!(out, "  <ImageData WholeExtent=\"{extent}\" Origin=\"{origin}\" Spacing=\"{spacing}\">")?;
    writeln!(out, "    <FieldData>")?;
    if let Some(time) = time {
        writeln!(out, "      <DataArray type=\"Float64\" Name=\"TimeValue\" NumberOfTuples=\"1\" format=\"ascii\">{time:e}</DataArray>")?;
    }
    for (name, text) in [("title", &field.title), ("unit", &field.unit)] {
        let codes: Vec<String> = text.bytes().map(|b| b.to_string()).collect();
        writeln!(
            out,
            "      <DataArray type=\"String\" Name=\"{name}\" NumberOfTuples=\"1\" format=\"ascii\">{} 0</DataArray>",
            codes.join(" ")
        )?;
    }
    writeln!(out, "    </FieldData>")?;
    writeln!(out, "    <Piece Extent=\"{extent}\">")?;
    writeln!(out, "      <{place} Scalars=\"{name}\">")?;
    writeln!(out, "        <DataArray type=\"{kind}\" Name=\"{name}\" format=\"appended\" offset=\"0\"/>")?;
    if marked {
        let offset = 8 + bytes;
        writeln!(out, "        <DataArray type=\"UInt8\" Name=\"vtkGhostType\" format=\"appended\" offset=\"{offset}\"/>")?;
    }
    writeln!(out, "      </{place}>")?;
    writeln!(out, "    </Piece>")?;
    writeln!(out, "  </ImageData>")?;
    write!(out, "  <AppendedData encoding=\"raw\">\n   _")?;
    out.extend((bytes as u64).to_le_bytes());
    Ok(out)
}

/// Reads a file that [`write()`] wrote.
pub fn read(path: impl AsRef<Path>) -> Result<Field> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|e| Error::file("read", path, e))?;
    parse(&bytes).map_err(|message| Error::format(path, FORMAT, message))
}

/// The attribute `name` of the first `tag` at or after the start of `text`.
fn attribute<'a>(text: &'a str, tag: &str, name: &str) -> Result<&'a str, String> {
    let missing = || format!("`<{tag} {name}=...>` is missing");
    let start = text.find(&format!("<{tag} ")).ok_or_else(missing)?;
    let inside = &text[start..];
    let inside = &inside[..inside.find('>').ok_or_else(missing)?];
    let value = inside.split_once(&format!(" {name}=\"")).ok_or_else(missing)?.1;
    Ok(value.split_once('"').ok_or_else(missing)?.0)
}

fn numbers<T: std::str::FromStr>(text: &str, count: usize, what: &str) -> Result<Vec<T>, String> {
    let parts: Option<Vec<T>> = text.split_whitespace().map(|w| w.parse().ok()).collect();
    parts.filter(|p| p.len() == count).ok_or_else(|| format!("`{what}` is `{text}`, expected {count} numbers"))
}

fn text_entry(xml: &str, name: &str) -> Option<String> {
    let (_, after) = xml.split_once(&format!("Name=\"{name}\""))?;
    let (codes, _) = after.split_once('>')?.1.split_once('<')?;
    let bytes: Vec<u8> = codes.split_whitespace().map_while(|c| c.parse().ok().filter(|b| *b != 0)).collect();
    String::from_utf8(bytes).ok()
}

fn parse(bytes: &[u8]) -> Result<Field, String> {
    const MARK: &[u8] = b"<AppendedData encoding=\"raw\">";
    let split = bytes.windows(MARK.len()).position(|w| w == MARK).ok_or("it has no raw appended data")?;
    let xml = std::str::from_utf8(&bytes[..split]).map_err(|e| format!("its header is not text: {e}"))?;
    for (name, expected) in [("type", "ImageData"), ("byte_order", "LittleEndian"), ("header_type", "UInt64")] {
        let found = attribute(xml, "VTKFile", name)?;
        if found != expected {
            return Err(format!("its {name} is `{found}`, expected `{expected}`"));
        }
    }
    let extent: Vec<usize> = numbers(attribute(xml, "ImageData", "WholeExtent")?, 6, "WholeExtent")?;
    let origin: Vec<f64> = numbers(attribute(xml, "ImageData", "Origin")?, 3, "Origin")?;
    let spacing: Vec<f64> = numbers(attribute(xml, "ImageData", "Spacing")?, 3, "Spacing")?;
    let piece = &xml[xml.find("<Piece ").ok_or("`<Piece>` is missing")?..];
    let (name, kind) = (attribute(piece, "DataArray", "Name")?, attribute(piece, "DataArray", "type")?);
    let double = match kind {
        "Float32" => false,
        "Float64" => true,
        other => return Err(format!("its values are `{other}` (allowed: Float32, Float64)")),
    };
    let nodes = piece.contains("<PointData");
    let lengths: Vec<usize> = (0..3)
        .map(|i| extent[2 * i + 1].checked_sub(extent[2 * i]).and_then(|n| n.checked_add(usize::from(nodes))))
        .collect::<Option<_>>()
        .ok_or("`WholeExtent` runs backwards")?;
    let used = (1..3).rev().find(|&i| lengths[i] > usize::from(nodes)).unwrap_or(0) + 1;
    let needed = lengths[..used].iter().try_fold(if double { 8 } else { 4 }, |n: usize, &m| n.checked_mul(m));
    let data = &bytes[split + MARK.len()..];
    let start = data.iter().position(|&b| b == b'_').ok_or("the `_` before its data is missing")? + 1;
    let length = data.get(start..start + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes).ok_or("it ends before its data")?;
    let data = &data[start + 8..];
    let needed = needed
        .filter(|&n| n > 0 && n as u64 == length && n <= data.len())
        .ok_or_else(|| format!("the extent {extent:?} needs {needed:?} bytes, the header says {length}, {} are there", data.len()))?;
    let axes = (0..used).map(|i| Axis::bare(i, origin[i], spacing[i], lengths[i])).collect();
    let centring = if nodes { Centring::Node } else { Centring::Cell };
    let mut field = Field::bare(unescape(name), axes, centring, crate::read_values(&data[..needed], double, false));
    field.title = text_entry(xml, "title").unwrap_or(field.title);
    field.unit = text_entry(xml, "unit").unwrap_or_default();
    Ok(field)
}

/// Writes the list of files over time; the names are relative to the folder of `path`.
pub fn write_series(path: impl AsRef<Path>, entries: &[(f64, String)]) -> Result<()> {
    atomic_write(path, |out| {
        writeln!(out, "<?xml version=\"1.0\"?>")?;
        writeln!(out, "<VTKFile type=\"Collection\" version=\"1.0\" byte_order=\"LittleEndian\">")?;
        writeln!(out, "  <Collection>")?;
        for (time, file) in entries {
            writeln!(out, "    <DataSet timestep=\"{time}\" group=\"\" part=\"0\" file=\"{}\"/>", escape(file))?;
        }
        writeln!(out, "  </Collection>\n</VTKFile>")
    })
}

/// Reads a list that [`write_series`] wrote.
pub fn read_series(path: impl AsRef<Path>) -> Result<Vec<(f64, String)>> {
    let path = path.as_ref();
    let text = read_text(path, PVD, 1 << 26)?;
    let wrong = |message: String| Error::format(path, PVD, message);
    if !text.contains("type=\"Collection\"") {
        return Err(wrong("it is not a collection".into()));
    }
    let entry = |part: &str| {
        let time = numbers(attribute(part, "DataSet", "timestep")?, 1, "timestep")?;
        Ok((time[0], unescape(attribute(part, "DataSet", "file")?)))
    };
    text.match_indices("<DataSet ").map(|(at, _)| entry(&text[at..]).map_err(wrong)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use proptest::prelude::*;

    use super::*;
    use crate::samples;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        for field in samples::fields() {
            let path = folder.path().join(format!("{}.vti", field.name));
            write(&path, &field, Some(1.5)).unwrap();
            let back = read(&path).unwrap();
            samples::assert_same(&field, &back);
            assert_eq!((&back.title, &back.unit), (&field.title, &field.unit));
        }
    }

    #[test]
    fn what_is_not_known_is_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("u.vti");
        let mut field = samples::plane();
        field.centring = Centring::Cell;
        let Values::F32(values) = &mut field.values else { panic!("the sample is in single precision") };
        values[1] = f32::NAN;
        let n = values.len();
        write(&path, &field, None).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let end = bytes.len() - "\n  </AppendedData>\n</VTKFile>\n".len();
        let mut expected = vec![0; n];
        expected[1] = 32;
        assert_eq!(bytes[end - n..end], expected);
        let back = read(&path).unwrap();
        assert!(back.values.get(1).is_nan() && back.values.get(0).to_bits() == field.values.get(0).to_bits());
    }

    #[test]
    fn a_series_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("u.pvd");
        let entries = vec![(0.0, "u_000000.vti".to_owned()), (0.125, "u_&1.vti".to_owned())];
        write_series(&path, &entries).unwrap();
        assert_eq!(read_series(&path).unwrap(), entries);
    }

    proptest! {
        /// Damage one byte of a sound file or cut it off: a field or an error, never a panic.
        #[test]
        fn damage_ends_in_an_answer(at in 0usize..900, to: u8, keep in 0usize..1200) {
            static SOUND: OnceLock<Vec<u8>> = OnceLock::new();
            let sound = SOUND.get_or_init(|| {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("u.vti");
                write(&path, &samples::plane(), None).unwrap();
                std::fs::read(&path).unwrap()
            });
            let mut bytes = sound.clone();
            let at = at % bytes.len();
            bytes[at] = to;
            bytes.truncate(keep);
            let _ = parse(&bytes);
        }
    }
}
