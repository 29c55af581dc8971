//! VTU and VTP, VTK's unstructured grids and lines: [`Patches`] with all their values in one file, XML with the arrays appended as
//! raw binary after a 64-bit length, as ParaView, VisIt and VTK read it.

use std::io::Write;
use std::path::Path;

use zellige_engine::error::{Error, Result};
use zellige_engine::files::atomic_write;
use zellige_engine::record::Patches;

use crate::vti::escape;

/// VTK's numbers of shapes.
const TRIANGLE: u8 = 5;
const POLYGON: u8 = 7;
const QUAD: u8 = 9;

fn segments(patches: &Patches) -> bool {
    sides(patches).all(|n| n == 2)
}

/// Numbers of corners of the patches.
fn sides(patches: &Patches) -> impl Iterator<Item = usize> {
    let mut from = 0;
    patches.ends.iter().map(move |end| (*end as usize).saturating_sub(std::mem::replace(&mut from, *end as usize)))
}

/// Checks that the parts of the patches are consistent; the error describes the mismatch.
fn check(patches: &Patches) -> Result<(), String> {
    let (n, corners) = (patches.ends.len(), patches.corners.len());
    if patches.ends.last().map_or(0, |e| *e as usize) != corners || !patches.ends.is_sorted() {
        return Err(format!("the ends of {n} patches do not part {corners} corners"));
    }
    if let Some(c) = patches.corners.iter().find(|c| **c as usize >= patches.points.len()) {
        return Err(format!("a corner is point {c} of {}", patches.points.len()));
    }
    if let Some(k) = sides(patches).position(|s| s < 2) {
        return Err(format!("patch {k} has fewer than two corners"));
    }
    match patches.values.iter().find(|v| v.values.len() != n * v.components) {
        Some(v) => Err(format!("`{}` has {} values for {n} patches of {} each", v.name, v.values.len(), v.components)),
        None => Ok(()),
    }
}

/// Shapes of the patches: a quadrilateral is one for VTK only where no corner points inwards.
fn shapes(patches: &Patches) -> Vec<u8> {
    let mut from = 0;
    let shape = |end: &u32| {
        let corners = &patches.corners[std::mem::replace(&mut from, *end as usize)..*end as usize];
        let at = |k: usize| patches.points[corners[k % corners.len()] as usize];
        let turn = |k: usize| {
            let (a, b, c) = (at(k), at(k + 1), at(k + 2));
            (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0])
        };
        match corners.len() {
            3 => TRIANGLE,
            4 if (0..4).all(|k| turn(k) > 0.0) => QUAD,
            _ => POLYGON,
        }
    };
    patches.ends.iter().map(shape).collect()
}

/// An array of the appended part, with its line of the header.
struct Block {
    head: String,
    bytes: Vec<u8>,
}

impl Block {
    fn new(kind: &str, name: &str, components: usize, bytes: Vec<u8>) -> Self {
        let several = if components > 1 { format!(" NumberOfComponents=\"{components}\"") } else { String::new() };
        Self { head: format!("type=\"{kind}\" Name=\"{}\"{several}", escape(name)), bytes }
    }
}

fn bytes<const N: usize>(values: impl Iterator<Item = [u8; N]>) -> Vec<u8> {
    values.flatten().collect()
}

/// Writes patches as cells (`.vtu`) or as lines (`.vtp`), in single precision but for the places, with units in an array of texts
/// and, where given, the time.
///
/// # Errors
/// Lists that do not fit together, and what the system refuses.
pub fn write(path: impl AsRef<Path>, patches: &Patches, time: Option<f64>) -> Result<()> {
    let path = path.as_ref();
    check(patches).map_err(|m| Error::format(path, "VTU", format!("`{}`: {m}", patches.name)))?;
    let lines = segments(patches);
    let (kind, cells) = if lines { ("PolyData", "Lines") } else { ("UnstructuredGrid", "Cells") };
    let places = patches.points.iter().flat_map(|p| [p[0], p[1], 0.0]).map(f64::to_le_bytes);
    let points = [Block::new("Float64", "Points", 3, bytes(places))];
    let mut corners = vec![
        Block::new("Int64", "connectivity", 1, bytes(patches.corners.iter().map(|c| i64::from(*c).to_le_bytes()))),
        Block::new("Int64", "offsets", 1, bytes(patches.ends.iter().map(|e| i64::from(*e).to_le_bytes()))),
    ];
    if !lines {
        corners.push(Block::new("UInt8", "types", 1, shapes(patches)));
    }
    let values: Vec<Block> = patches
        .values
        .iter()
        .map(|v| Block::new("Float32", &v.name, v.components, bytes(v.values.iter().map(|x| x.to_le_bytes()))))
        .collect();
    let mut at = 0;
    atomic_write(path, |out| {
        writeln!(out, "<?xml version=\"1.0\"?>")?;
        writeln!(out, "<VTKFile type=\"{kind}\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">")?;
        writeln!(out, "  <{kind}>\n    <FieldData>")?;
        if let Some(t) = time {
            writeln!(out, "      <DataArray type=\"Float64\" Name=\"TimeValue\" NumberOfTuples=\"1\" format=\"ascii\">{t:e}</DataArray>")?;
        }
        let units = patches.values.iter().map(|v| format!("{} [{}]", v.name, v.unit));
        let texts: Vec<String> = std::iter::once(patches.title.clone()).chain(units).collect();
        writeln!(out, "      <DataArray type=\"String\" Name=\"units\" NumberOfTuples=\"{}\" format=\"ascii\">", texts.len())?;
        for text in texts {
            let codes: Vec<String> = text.bytes().map(|b| b.to_string()).collect();
            writeln!(out, "        {} 0", codes.join(" "))?;
        }
        writeln!(out, "      </DataArray>\n    </FieldData>")?;
        let (n, m) = (patches.points.len(), patches.ends.len());
        if lines {
            let others = "NumberOfVerts=\"0\" NumberOfStrips=\"0\" NumberOfPolys=\"0\"";
            writeln!(out, "    <Piece NumberOfPoints=\"{n}\" {others} NumberOfLines=\"{m}\">")?;
        } else {
            writeln!(out, "    <Piece NumberOfPoints=\"{n}\" NumberOfCells=\"{m}\">")?;
        }
        for (section, blocks) in [("Points", &points[..]), (cells, &corners), ("CellData", &values)] {
            writeln!(out, "      <{section}>")?;
            for block in blocks {
                writeln!(out, "        <DataArray {} format=\"appended\" offset=\"{at}\"/>", block.head)?;
                at += 8 + block.bytes.len();
            }
            writeln!(out, "      </{section}>")?;
        }
        writeln!(out, "    </Piece>\n  </{kind}>")?;
        write!(out, "  <AppendedData encoding=\"raw\">\n   _")?;
        for block in points.iter().chain(&corners).chain(&values) {
            out.write_all(&(block.bytes.len() as u64).to_le_bytes())?;
            out.write_all(&block.bytes)?;
        }
        write!(out, "\n  </AppendedData>\n</VTKFile>\n")
    })
}

#[cfg(test)]
mod tests {
    use zellige_engine::record::PatchValues;

    use super::*;

    /// A square, a triangle, a dart whose fourth corner points inwards.
    fn sample() -> Patches {
        Patches {
            name: "gas".into(),
            title: "cells < 3".into(),
            points: vec![[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 0.5], [0.5, 3.0], [0.5, 1.5]],
            corners: vec![0, 1, 2, 3, 1, 4, 2, 3, 6, 2, 5],
            ends: vec![4, 7, 11],
            values: vec![
                PatchValues { name: "density".into(), unit: "1/m^3".into(), components: 1, values: vec![1.0, 2.0, f32::NAN] },
                PatchValues { name: "velocity".into(), unit: "m/s".into(), components: 3, values: (0..9u8).map(f32::from).collect() },
            ],
        }
    }

    /// The appended arrays by their names.
    fn arrays(file: &[u8]) -> Vec<(String, Vec<u8>)> {
        const MARK: &[u8] = b"encoding=\"raw\">\n   _";
        let data = file.windows(MARK.len()).position(|w| w == MARK).unwrap();
        let (head, data) = (std::str::from_utf8(&file[..data]).unwrap(), &file[data + MARK.len()..]);
        let entries = head.lines().filter(|l| l.contains("format=\"appended\""));
        entries
            .map(|l| {
                let value = |key: &str| l.split_once(&format!("{key}=\"")).unwrap().1.split_once('"').unwrap().0.to_owned();
                let at: usize = value("offset").parse().unwrap();
                let length = u64::from_le_bytes(data[at..at + 8].try_into().unwrap()) as usize;
                (value("Name"), data[at + 8..at + 8 + length].to_vec())
            })
            .collect()
    }

    #[test]
    fn arrays_stand_where_the_header_says() {
        let folder = tempfile::tempdir().unwrap();
        let (patches, path) = (sample(), folder.path().join("gas.vtu"));
        assert!(!segments(&patches));
        write(&path, &patches, Some(2.5)).unwrap();
        let file = std::fs::read(&path).unwrap();
        let found = arrays(&file);
        let get = |name: &str| &found.iter().find(|f| f.0 == name).unwrap().1;
        let longs = |name: &str| get(name).as_chunks::<8>().0.iter().map(|b| i64::from_le_bytes(*b)).collect::<Vec<_>>();
        assert_eq!(longs("connectivity"), [0, 1, 2, 3, 1, 4, 2, 3, 6, 2, 5]);
        assert_eq!((longs("offsets"), get("types").as_slice()), (vec![4, 7, 11], &[QUAD, TRIANGLE, POLYGON][..]));
        let reals: Vec<f64> = get("Points").as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
        assert!(reals.len() == 21 && reals[12..15] == [2.0, 0.5, 0.0]);
        assert_eq!((get("density").len(), get("velocity").len()), (12, 36));
        let text = String::from_utf8_lossy(&file);
        assert!(text.contains("NumberOfPoints=\"7\" NumberOfCells=\"3\"") && text.contains("2.5e0</DataArray>"));
    }

    #[test]
    fn segments_are_lines_and_what_does_not_fit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wall.vtp");
        let walls = Patches { corners: vec![0, 1, 1, 2], ends: vec![2, 4], values: Vec::new(), ..sample() };
        assert!(segments(&walls));
        write(&path, &walls, None).unwrap();
        assert!(String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains("NumberOfLines=\"2\""));
        for (broken, expected) in [
            (Patches { ends: vec![4, 7], ..sample() }, "do not part 11 corners"),
            (Patches { ends: vec![4, 10, 11], ..sample() }, "patch 2 has fewer than two corners"),
            (Patches { points: vec![[0.0; 2]; 6], ..sample() }, "a corner is point 6 of 6"),
            (Patches { ends: vec![4, 11], ..sample() }, "`density` has 3 values for 2 patches"),
        ] {
            let message = write(&path, &broken, None).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
