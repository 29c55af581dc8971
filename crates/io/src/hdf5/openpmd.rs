//! openPMD 1.1.0: one file an iteration, meshes under `/data/N/fields`, particle species under `/data/N/particles`, as
//! openPMD-viewer and openPMD-api open them. <https://github.com/openPMD/openPMD-standard/blob/1.1.0/STANDARD.md>
//!
//! Values stand as computed; `unitSI` leads to SI units. Positions of particles are absolute, their `positionOffset` is 0.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rust_hdf5::{DatatypeMessage, H5Dataset, H5Group, H5Type, Hdf5Error};
use zellige_engine::error::{Error, Result};
use zellige_engine::record::{Axis, Column, Entries, Mesh, Method, Note, Slot, Table, UnitDimension, Values};

use super::address::Holes;
use super::{FORMAT, FixedText, begin};

mod read;

pub use read::{Contents, contents, read_field};

/// Iteration of a run that a file holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Iteration {
    /// Step.
    pub step: u64,
    /// Physical time in the run's unit.
    pub time: f64,
    /// Length of a step in the run's unit.
    pub dt: f64,
}

/// Part of a file name that is replaced by the step, as `iterationFormat` says it.
const FILE_FORMAT: &str = "data_%06T";

/// The name of the file of a step.
pub fn file_name(step: u64) -> String {
    format!("data_{step:06}.h5")
}

/// The bit of `openPMDextension` for ED-PIC.
const ED_PIC: u32 = 1;
const LENGTH: UnitDimension = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];

/// Writes meshes and particles of one iteration into one file. With the `method` that they were computed by, which has all tables
/// for species, the file follows the extension ED-PIC.
pub fn write(path: impl AsRef<Path>, iteration: Iteration, meshes: &[&Mesh], tables: &[&Table], method: Option<&Method>) -> Result<()> {
    let meshes: Vec<_> = meshes.iter().map(|mesh| (*mesh, None)).collect();
    let tables: Vec<_> = tables.iter().map(|table| (*table, None)).collect();
    lay_out(path.as_ref(), iteration, &meshes, &tables, method).map(drop)
}

/// Writes a file as [`write()`] does, whole but for the values of shares, whose places it returns; records come with their numbers
/// among these.
pub(crate) fn lay_out(
    path: &Path,
    iteration: Iteration,
    meshes: &[(&Mesh, Option<usize>)],
    tables: &[(&Table, Option<usize>)],
    method: Option<&Method>,
) -> Result<Vec<Slot>> {
    let wrong = |message: String| Error::format(path, FORMAT, message);
    for (mesh, _) in meshes {
        check_mesh(mesh).map_err(wrong)?;
    }
    for (table, _) in tables {
        check_table(table).map_err(wrong)?;
    }
    let mut holes = Holes::default();
    let pending = begin(path, |file| {
        let root = file.root_group();
        text(&root, "openPMD", "1.1.0")?;
        whole(&root, "openPMDextension", if method.is_some() { ED_PIC } else { 0 })?;
        text(&root, "basePath", "/data/%T/")?;
        text(&root, "meshesPath", "fields/")?;
        text(&root, "particlesPath", "particles/")?;
        text(&root, "iterationEncoding", "fileBased")?;
        text(&root, "iterationFormat", FILE_FORMAT)?;
        text(&root, "software", "zellige")?;
        text(&root, "softwareVersion", env!("CARGO_PKG_VERSION"))?;
        text(&root, "date", &date(SystemTime::now()))?;
        let data = file.create_group("data")?.create_group(&iteration.step.to_string())?;
        real(&data, "time", iteration.time)?;
        real(&data, "dt", iteration.dt)?;
        let time_si = meshes.first().map(|m| m.0.time_si).or(tables.first().map(|t| t.0.time_si)).unwrap_or(1.0);
        real(&data, "timeUnitSI", time_si)?;
        let fields = data.create_group("fields")?;
        if let Some(method) = method {
            notes(&fields, &method.fields)?;
        }
        for (mesh, share) in meshes {
            write_mesh(&fields, mesh, *share, method.is_some(), &mut holes)?;
        }
        let particles = data.create_group("particles")?;
        for (table, share) in tables {
            let species = write_species(&particles, table, *share, &mut holes)?;
            if let Some((_, said)) = method.and_then(|m| m.species.iter().find(|s| s.0 == table.name)) {
                notes(&species, said)?;
            }
        }
        Ok(())
    })?;
    let slots = holes.slots(pending.temporary())?;
    pending.commit()?;
    Ok(slots)
}

fn check_mesh(mesh: &Mesh) -> Result<(), String> {
    let count = mesh.axes.iter().try_fold(1_usize, |n, a| n.checked_mul(a.len));
    for component in &mesh.components {
        let (name, values) = (&component.name, component.values.len());
        let fits = |count: usize| count > 0 && mesh.share.map_or(values == count, |first| first + values <= count);
        if !(1..=3).contains(&mesh.axes.len()) || !count.is_some_and(fits) {
            return Err(format!("the component `{name}` of `{}` has {values} values for {} axes of {count:?}", mesh.name, mesh.axes.len()));
        }
        if component.position.len() != mesh.axes.len() || !component.position.iter().all(|p| (0.0..1.0).contains(p)) {
            return Err(format!("the component `{name}` of `{}` sits at {:?} in its cell", mesh.name, component.position));
        }
    }
    let scalar = mesh.components.iter().any(|c| c.name.is_empty());
    if mesh.components.is_empty() || (scalar && mesh.components.len() > 1) {
        return Err(format!("`{}` has {} components, not all with names", mesh.name, mesh.components.len()));
    }
    Ok(())
}

fn check_table(table: &Table) -> Result<(), String> {
    let fits = |lines: usize| table.share.map_or(lines == table.len, |first| first + lines <= table.len);
    for column in &table.columns {
        if let Some(len) = column.values.lines().filter(|n| !fits(*n)) {
            return Err(format!("the column `{}` of `{}` has {len} values of {}", column.name(), table.name, table.len));
        }
    }
    Ok(())
}

/// A group or a dataset: what attributes are put on.
trait Node {
    fn scalar(&self, name: &str, datatype: DatatypeMessage, value: Vec<u8>) -> Result<(), Hdf5Error>;
    fn reals(&self, name: &str, values: &[f64]) -> Result<(), Hdf5Error>;
    fn words(&self, name: &str, values: &[FixedText]) -> Result<(), Hdf5Error>;
}

impl Node for H5Group {
    fn scalar(&self, name: &str, datatype: DatatypeMessage, value: Vec<u8>) -> Result<(), Hdf5Error> {
        self.set_attr_typed(name, datatype, value)
    }

    fn reals(&self, name: &str, values: &[f64]) -> Result<(), Hdf5Error> {
        self.set_attr_array_numeric(name, values)
    }

    fn words(&self, name: &str, values: &[FixedText]) -> Result<(), Hdf5Error> {
        self.set_attr_array_numeric(name, values)
    }
}

impl Node for H5Dataset {
    fn scalar(&self, name: &str, datatype: DatatypeMessage, value: Vec<u8>) -> Result<(), Hdf5Error> {
        self.set_attr_typed(name, datatype, value)
    }

    fn reals(&self, name: &str, values: &[f64]) -> Result<(), Hdf5Error> {
        super::set_array(self, name, values)
    }

    fn words(&self, name: &str, values: &[FixedText]) -> Result<(), Hdf5Error> {
        super::set_array(self, name, values)
    }
}

/// A text of fixed length: readers of openPMD fail on others.
fn text(node: &dyn Node, name: &str, text: &str) -> Result<(), Hdf5Error> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    node.scalar(name, DatatypeMessage::fixed_string_utf8(bytes.len() as u32), bytes)
}

fn real(node: &dyn Node, name: &str, value: f64) -> Result<(), Hdf5Error> {
    node.scalar(name, f64::hdf5_type(), value.to_ne_bytes().to_vec())
}

fn whole(node: &dyn Node, name: &str, value: u32) -> Result<(), Hdf5Error> {
    node.scalar(name, u32::hdf5_type(), value.to_ne_bytes().to_vec())
}

/// A dataset, without values where these are not `here`.
pub(super) fn dataset(group: &H5Group, name: &str, shape: &[usize], values: &Values, here: bool) -> Result<H5Dataset, Hdf5Error> {
    let dataset = match values {
        Values::F32(_) => group.new_dataset::<f32>().shape(shape).create(name)?,
        Values::F64(_) => group.new_dataset::<f64>().shape(shape).create(name)?,
    };
    match values {
        Values::F32(v) if here => dataset.write_raw(v)?,
        Values::F64(v) if here => dataset.write_raw(v)?,
        _ => {}
    }
    Ok(dataset)
}

/// Writes the description of a numerical method as attributes. Sides stand in the order of `axisLabels`: the slowest axis first.
fn notes(node: &dyn Node, notes: &[(&'static str, Note)]) -> Result<(), Hdf5Error> {
    for (name, note) in notes {
        match note {
            Note::Text(value) => text(node, name, value)?,
            Note::Number(value) => real(node, name, *value)?,
            Note::Sides(axes) => node.words(name, &axes.iter().rev().flatten().map(|word| FixedText::new(word)).collect::<Vec<_>>())?,
        }
    }
    Ok(())
}

/// Writes a mesh, of which only the places of values are made if it is a share.
fn write_mesh(fields: &H5Group, mesh: &Mesh, share: Option<usize>, extended: bool, holes: &mut Holes) -> Result<(), Hdf5Error> {
    // Slowest axis first, as the arrays are.
    let axes: Vec<&Axis> = mesh.axes.iter().rev().collect();
    let shape: Vec<usize> = axes.iter().map(|a| a.len).collect();
    let about_mesh = |node: &dyn Node| -> Result<(), Hdf5Error> {
        text(node, "geometry", "cartesian")?;
        text(node, "dataOrder", "C")?;
        node.words("axisLabels", &axes.iter().map(|a| FixedText::new(&a.name)).collect::<Vec<_>>())?;
        node.reals("gridSpacing", &axes.iter().map(|a| a.spacing).collect::<Vec<_>>())?;
        node.reals("gridGlobalOffset", &axes.iter().map(|a| a.origin).collect::<Vec<_>>())?;
        real(node, "gridUnitSI", mesh.length_si)?;
        node.reals("unitDimension", &mesh.dimension)?;
        if extended {
            // Values stand as computed.
            text(node, "fieldSmoothing", "none")?;
        }
        real(node, "timeOffset", mesh.time_offset)
    };
    let about_component = |node: &dyn Node, position: &[f64]| -> Result<(), Hdf5Error> {
        real(node, "unitSI", mesh.unit_si)?;
        node.reals("position", &position.iter().rev().copied().collect::<Vec<_>>())
    };
    let mut written = |group: &H5Group, name: &str, number: usize, values: &Values| {
        if let Some(share) = share {
            holes.add(group, name, shape.iter().product::<usize>() * values.width(), share, number);
        }
        dataset(group, name, &shape, values, share.is_none())
    };
    if let [only] = &mesh.components[..]
        && only.name.is_empty()
    {
        let node = written(fields, &mesh.name, 0, &only.values)?;
        about_mesh(&node)?;
        return about_component(&node, &only.position);
    }
    let group = fields.create_group(&mesh.name)?;
    about_mesh(&group)?;
    for (number, component) in mesh.components.iter().enumerate() {
        about_component(&written(&group, &component.name, number, &component.values)?, &component.position)?;
    }
    Ok(())
}

/// Writes a species, of which only the places of values are made if it is a share.
fn write_species(particles: &H5Group, table: &Table, share: Option<usize>, holes: &mut Holes) -> Result<H5Group, Hdf5Error> {
    let species = particles.create_group(&table.name)?;
    let mut record: Option<(&str, H5Group)> = None;
    for (number, column) in table.columns.iter().enumerate() {
        let mut written = |group: &H5Group, name: &str| {
            let node = entries(group, name, column, table.len, share.is_none())?;
            if let (Some(share), Some((_, width))) = (share.filter(|_| table.len > 0), column.values.bytes()) {
                holes.add(group, name, table.len * width, share, number);
            }
            Ok::<_, Hdf5Error>(node)
        };
        if column.component.is_empty() {
            let node = written(&species, &column.quantity)?;
            about_record(&*node, column)?;
            continue;
        }
        let group = match record.take() {
            Some((name, group)) if name == column.quantity => group,
            _ => {
                let group = species.create_group(&column.quantity)?;
                about_record(&group, column)?;
                group
            }
        };
        written(&group, &column.component)?;
        record = Some((&column.quantity, group));
    }
    // The standard wants an offset with every position: none here.
    let offset = species.create_group("positionOffset")?;
    let like = Column {
        quantity: "positionOffset".into(),
        component: String::new(),
        unit: String::new(),
        dimension: LENGTH,
        unit_si: table.length_si,
        weighting_power: 0.0,
        macro_weighted: false,
        time_offset: 0.0,
        values: Entries::Same(0.0),
    };
    about_record(&offset, &like)?;
    for column in table.columns.iter().filter(|c| c.quantity == "position") {
        entries(&offset, &column.component, &like, table.len, true)?;
    }
    Ok(species)
}

fn about_record(node: &dyn Node, column: &Column) -> Result<(), Hdf5Error> {
    node.reals("unitDimension", &column.dimension)?;
    real(node, "timeOffset", column.time_offset)?;
    real(node, "weightingPower", column.weighting_power)?;
    whole(node, "macroWeighted", u32::from(column.macro_weighted))
}

/// A dataset, without values where these are not `here`, or a group that says that all values are the same, as it does of no value
/// too: HDF5 has no dataset without values.
fn entries(group: &H5Group, name: &str, column: &Column, len: usize, here: bool) -> Result<Box<dyn Node>, Hdf5Error> {
    let none = Entries::Same(0.0);
    let values = match &column.values {
        Entries::Each(_) | Entries::Whole(_) if len == 0 => &none,
        values => values,
    };
    match values {
        Entries::Each(values) => {
            let node = dataset(group, name, &[len], values, here)?;
            real(&node, "unitSI", column.unit_si)?;
            Ok(Box::new(node))
        }
        Entries::Whole(values) => {
            let node = group.new_dataset::<u64>().shape([len]).create(name)?;
            if here {
                node.write_raw(values)?;
            }
            real(&node, "unitSI", column.unit_si)?;
            Ok(Box::new(node))
        }
        Entries::Same(value) => {
            let node = group.create_group(name)?;
            real(&node, "value", *value)?;
            node.set_attr_array_numeric("shape", &[len as u64])?;
            real(&node, "unitSI", column.unit_si)?;
            Ok(Box::new(node))
        }
    }
}

/// `2026-01-31 12:00:00 +0000`, the standard's form.
fn date(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days to a date of the Gregorian calendar, years beginning in March (H. Hinnant, "chrono-compatible low-level date
    // algorithms", civil_from_days), for days after 1970.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} +0000", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rust_hdf5::H5File;

    use super::*;
    use crate::hdf5::attributes::Attributes;
    use crate::samples;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, want) in [
            (0, "1970-01-01 00:00:00 +0000"),
            (951_782_399, "2000-02-28 23:59:59 +0000"),
            (951_782_400, "2000-02-29 00:00:00 +0000"),
            (4_107_542_400, "2100-03-01 00:00:00 +0000"),
            (1_767_225_599, "2025-12-31 23:59:59 +0000"),
        ] {
            assert_eq!(date(UNIX_EPOCH + Duration::from_secs(seconds)), want);
        }
    }

    #[test]
    fn the_tree_is_that_of_the_standard() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file_name(120));
        let (mesh, scalar, table) = (samples::mesh(), samples::density(), samples::species());
        write(&path, Iteration { step: 120, time: 6.0, dt: 0.05 }, &[&mesh, &scalar], &[&table], Some(&samples::method())).unwrap();
        let mut names: Vec<String> = super::super::list(&path).unwrap().into_iter().map(|f| f.0).collect();
        names.sort();
        let base = "data/120";
        let want = ["fields/E/x", "fields/E/y", "fields/rho", "particles/electrons/momentum/x", "particles/electrons/position/x"];
        let mut want: Vec<String> =
            want.iter().chain(&["particles/electrons/id", "particles/electrons/weighting"]).map(|n| format!("{base}/{n}")).collect();
        want.sort();
        assert_eq!(names.iter().map(|n| n.trim_start_matches('/')).collect::<Vec<_>>(), want);
        let x = super::super::read(&path, &format!("{base}/fields/E/x")).unwrap();
        assert_eq!((x.shape, x.values.len()), (vec![3, 4], 12));
        let file = H5File::open(&path).unwrap();
        let dataset = file.dataset(&format!("{base}/fields/E/x")).unwrap();
        assert_eq!(dataset.attr("position").unwrap().read_numeric_as::<f64>().unwrap(), [0.0, 0.5]);
        let id = file.dataset(&format!("{base}/particles/electrons/id")).unwrap();
        assert_eq!(id.read_raw::<u64>().unwrap(), [1, 1 << 53, (1 << 53) + 1]);
        let group = file.root_group();
        assert_eq!(group.attr_string("openPMD").unwrap(), "1.1.0");
    }

    /// A species of which nothing is left has constant records without an entry: HDF5 has no dataset of that length.
    #[test]
    fn a_species_without_particles_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h5");
        let mut table = samples::species();
        table.len = 0;
        for column in &mut table.columns {
            match &mut column.values {
                Entries::Each(values) => *values = Values::F64(Vec::new()),
                Entries::Whole(values) => values.clear(),
                Entries::Same(_) => {}
            }
        }
        let iteration = Iteration { step: 0, time: 0.0, dt: 0.1 };
        write(&path, iteration, &[], &[&table], None).unwrap();
        let x = Attributes::of(&path, "data/0/particles/electrons/position/x").unwrap();
        assert_eq!((x.reals("shape").unwrap(), x.real("value")), (vec![0.0], Some(0.0)));
        // Constants stay what they are.
        for column in table.columns.iter().filter(|c| matches!(c.values, Entries::Same(_))) {
            let Entries::Same(value) = column.values else { continue };
            let of = Attributes::of(&path, &format!("data/0/particles/electrons/{}", column.quantity)).unwrap();
            assert_eq!(of.real("value"), Some(value), "{}", column.quantity);
        }
        assert!(table.columns.iter().any(|c| matches!(c.values, Entries::Same(_))));
        // Parts that have a share of nothing have no place for it.
        assert_eq!(lay_out(&path, iteration, &[], &[(&table, Some(0))], None).unwrap(), []);
    }

    #[test]
    fn what_does_not_fit_is_refused_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h5");
        let iteration = Iteration { step: 0, time: 0.0, dt: 0.1 };
        let (mut short, mut outside, mut table) = (samples::mesh(), samples::mesh(), samples::species());
        short.axes[0].len += 1;
        outside.components[0].position[0] = 1.0;
        table.len += 1;
        for (meshes, tables, part) in [
            (vec![&short], vec![], "has 12 values for 2 axes"),
            (vec![&outside], vec![], "sits at [1.0, 0.0] in its cell"),
            (vec![], vec![&table], "the column `position_x` of `electrons` has 3 values of 4"),
        ] {
            let error = write(&path, iteration, &meshes, &tables, None).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
