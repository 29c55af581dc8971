use std::ops::Range;

use zellige_engine::links::{Links, inside};
use zellige_engine::record::{Entries, Lead, follow};
use zellige_engine::testing::alike;

use super::*;
use crate::samples;

const STAMP: Stamp = Stamp { step: 7, time: Some(3.5), numbered: true };
/// Formats that parts write side by side.
const FORMATS: [Format; 4] = [Format::Npy, Format::Vti, Format::Hdf5, Format::Png];

/// Places of some of `count` values: of parts that have more the higher they are, but for the second, which has none.
fn own(links: &Links, count: usize) -> Range<usize> {
    let weight = |part: usize| if part == 1 { 0 } else { part + 1 };
    let before = |part: usize| count * (0..part).map(weight).sum::<usize>() / (0..links.size()).map(weight).sum::<usize>();
    before(links.rank())..before(links.rank() + 1)
}

fn some(values: &Values, range: &Range<usize>) -> Values {
    match values {
        Values::F32(v) => Values::F32(v[range.clone()].to_vec()),
        Values::F64(v) => Values::F64(v[range.clone()].to_vec()),
    }
}

/// A species of some particles.
fn species(count: usize) -> Table {
    let mut table = samples::species();
    table.len = count;
    for column in &mut table.columns {
        column.values = match &column.values {
            Entries::Each(Values::F32(_)) => Entries::Each(Values::F32((0..count).map(|k| k as f32 / 3.0).collect())),
            Entries::Each(Values::F64(_)) => Entries::Each(Values::F64((0..count).map(|k| -1.0 / (k + 1) as f64).collect())),
            Entries::Whole(_) => Entries::Whole((0..count as u64).map(|k| k.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()),
            Entries::Same(value) => Entries::Same(*value),
        };
    }
    table
}

/// Records of which this part has a share.
fn records(links: &Links) -> Vec<Record> {
    let (mut table, mut mesh, mut density, mut field) = (species(1009), samples::mesh(), samples::density(), samples::plane());
    // VTK's images mark it.
    if let Values::F32(values) = &mut density.components[0].values {
        values[7] = f32::NAN;
    }
    if !links.is_alone() {
        // Rows of three or four values.
        for mesh in [&mut mesh, &mut density] {
            let row = mesh.axes[0].len;
            let rows = own(links, mesh.axes[1..].iter().map(|axis| axis.len).product());
            let range = rows.start * row..rows.end * row;
            mesh.share = Some(range.start);
            mesh.components.iter_mut().for_each(|component| component.values = some(&component.values, &range));
        }
        let (row, rows) = (field.axes[0].len, own(links, field.axes[1].len));
        let range = rows.start * row..rows.end * row;
        (field.share, field.values) = (Some(range.start), some(&field.values, &range));
        let range = own(links, table.len);
        table.share = Some(range.start);
        for column in &mut table.columns {
            match &mut column.values {
                Entries::Each(values) => *values = some(values, &range),
                Entries::Whole(values) => *values = values[range.clone()].to_vec(),
                Entries::Same(_) => {}
            }
        }
    }
    let mut ions = samples::species();
    ions.name = "ions".into();
    vec![
        Record::Mesh(mesh),
        Record::Table(ions),
        Record::Table(table),
        Record::Field(field),
        Record::Mesh(density),
        Record::Method(samples::method()),
        Record::Curve(samples::curve()),
    ]
}

/// Writes the records of one part, as a run does.
fn write_part(links: &Links, folder: &Path, records: Vec<Record>) -> Result<()> {
    if links.is_alone() {
        return write_moments(folder, &[Moment { records, stamp: STAMP }], &FORMATS, &|| Ok(())).1;
    }
    if !links.is_first() {
        return follow(links, &records);
    }
    let moment = Moment { records, stamp: STAMP };
    let lead = Lead::new(links);
    write_shares(folder, &moment, &FORMATS, &|| Ok(()), &lead).1.and(lead.end())
}

/// Files below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            all.extend(files(&entry.path()).into_iter().map(|(path, bytes)| (Path::new(&entry.file_name()).join(path), bytes)));
            continue;
        }
        all.insert(entry.file_name().into(), std::fs::read(entry.path()).unwrap());
    }
    all
}

#[test]
fn parts_write_the_bytes_that_one_writes() {
    let written = |parts: usize| {
        let folder = tempfile::tempdir().unwrap();
        inside::run(parts, |links| write_part(&links, folder.path(), records(&links))).unwrap();
        files(folder.path())
    };
    let one = written(1);
    assert_eq!(
        one.keys().map(|path| path.to_str().unwrap()).collect::<Vec<_>>(),
        [
            "E_x.pvd",
            "E_x_000007.npy",
            "E_x_000007.png",
            "E_x_000007.vti",
            "E_y.pvd",
            "E_y_000007.npy",
            "E_y_000007.png",
            "E_y_000007.vti",
            "openpmd/data_000007.h5",
            "residual_000007.csv",
            "residual_000007.png",
            "results_000007.h5",
            "rho.pvd",
            "rho_000007.npy",
            "rho_000007.png",
            "rho_000007.vti",
            "u.pvd",
            "u_000007.npy",
            "u_000007.png",
            "u_000007.vti"
        ]
    );
    for parts in [2, 3, 4] {
        let found = written(parts);
        let other: Vec<_> =
            one.iter().filter(|(path, bytes)| !found.get(*path).is_some_and(|found| alike(found, bytes))).map(|(path, _)| path).collect();
        assert!(other.is_empty() && found.len() == one.len(), "{parts} parts write other {other:?}");
    }
}

#[test]
fn large_records_are_shared_in_formats_that_can_be_laid_out() {
    let mesh = |len: usize| {
        let mut mesh = samples::mesh();
        // One of two parts has half of two components in single precision.
        mesh.axes.iter_mut().zip([1024, len]).for_each(|(axis, len)| axis.len = len);
        mesh.components.iter_mut().for_each(|component| component.values = Values::F32(vec![0.0; 512 * len]));
        Record::Mesh(mesh)
    };
    let field = |len: usize| {
        let mut field = samples::plane();
        field.axes.iter_mut().zip([1024, len]).for_each(|(axis, len)| axis.len = len);
        Record::Field(Field { values: Values::F32(vec![0.0; 512 * len]), share: Some(0), ..field })
    };
    let table = |len: usize| Record::Table(Table { len, share: Some(0), ..samples::species() });
    for (record, format, taken) in [
        (mesh(512), Format::Npy, true),
        (mesh(512), Format::Hdf5, true),
        (mesh(511), Format::Npy, false),
        (mesh(512), Format::Vti, true),
        // Twice as many bytes as the pixels of its picture have, or no more.
        (mesh(16384), Format::Png, true),
        (mesh(512), Format::Png, false),
        (mesh(16384), Format::Bov, false),
        (table(1 << 17), Format::Hdf5, true),
        (table(1 << 16), Format::Hdf5, false),
        (table(1 << 17), Format::Npy, false),
        (Record::Field(samples::plane()), Format::Npy, false),
        (field(1024), Format::Npy, true),
        (field(1023), Format::Hdf5, false),
        (field(1024), Format::Bov, false),
        (Record::Curve(samples::curve()), Format::Npy, false),
    ] {
        assert_eq!(takes_share(&record, &[format]), taken, "{} as {}", record.name(), format.name());
        assert!(!takes_share(&record, &[format, Format::Csv]) && !takes_share(&record, &[]));
    }
}

#[test]
fn a_part_without_the_records_is_named_and_no_file_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let failed = inside::run(3, |links| {
        let mut records = records(&links);
        if links.rank() == 2 {
            records.clear();
        }
        Ok(write_part(&links, folder.path(), records).unwrap_err().to_string())
    });
    let told = failed.unwrap();
    assert!(told.iter().all(|message| message.contains("does not have all records")), "{told:?}");
    assert!(told[..2].iter().all(|message| message.starts_with("part 2 ended the run")), "{told:?}");
    assert!(files(folder.path()).is_empty());
}
