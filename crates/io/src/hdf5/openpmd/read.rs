//! Meshes of openPMD files, of this program and of others, for pictures. What a file should say and does not is named, and then
//! counted in values instead.

use std::path::Path;

use zellige_engine::error::Result;
use zellige_engine::record::{Axis, Centring, Component, Field, Mesh, Palette, UnitDimension, Values};

use super::super::attributes::Attributes;
use super::super::file::File;
use crate::tensor::{Elements, Tensor};

/// Group of the iterations, the only one that the standard allows.
const BASE: &str = "data";
/// Groups of the meshes where the file does not name its own: what most programs write.
const MESHES: [&str; 2] = ["fields", "meshes"];
/// Group of the particles where the file does not name its own.
const PARTICLES: &str = "particles";

/// Contents of an openPMD file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contents {
    /// Components of meshes: path of the dataset, and a file-safe name such as `E_x`, with the iteration where there are several.
    pub components: Vec<(String, String)>,
    /// Other things there, in words: species, components of one value.
    pub others: Vec<String>,
    /// Things that the standard asks for and that are missing, in words.
    pub lacking: Vec<String>,
}

/// Reads what an openPMD file holds; `None` where nothing says that it is one.
pub fn contents(path: impl AsRef<Path>) -> Result<Option<Contents>> {
    let path = path.as_ref();
    let (file, root) = (File::open(path)?, Attributes::of(path, "")?);
    let is_number = |n: &String| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    let has_base = file.children("")?.iter().any(|name| name == BASE);
    let iterations: Vec<String> = if has_base { file.children(BASE)?.into_iter().filter(is_number).collect() } else { Vec::new() };
    let named = |name: &str, usual: &[&str]| -> Vec<String> {
        let own = file.text_of_root(name).map(|text| text.trim_matches('/').to_owned());
        own.map_or_else(|| usual.iter().map(|u| (*u).to_owned()).collect(), |own| vec![own])
    };
    let (meshes, particles) = (named("meshesPath", &MESHES), named("particlesPath", &[PARTICLES]));
    let mut found = Contents::default();
    let mut groups = Vec::new();
    for n in &iterations {
        let base = format!("{BASE}/{n}");
        let here = file.children(&base)?;
        let with = |names: &[String]| names.iter().find(|g| here.contains(g)).map(|g| format!("{base}/{g}"));
        groups.push((n.clone(), with(&meshes), with(&particles)));
    }
    if !root.has("openPMD") && groups.iter().all(|(_, meshes, particles)| meshes.is_none() && particles.is_none()) {
        return Ok(None);
    }
    let keys = ["openPMD", "basePath", "meshesPath"].into_iter().filter(|key| !root.has(key));
    found.lacking.extend(keys.map(|key| format!("the file lacks the attribute `{key}`")));
    if iterations.is_empty() {
        found.lacking.push(format!("there is no iteration in `/{BASE}/`"));
    }
    let datasets = file.datasets();
    let several = iterations.len() > 1;
    for (n, meshes, particles) in groups {
        match meshes {
            None => found.lacking.push(format!("the iteration {n} has no group of meshes (`meshesPath`)")),
            Some(group) => {
                let inside = |name: &str| name.trim_start_matches('/').strip_prefix(&format!("{group}/")).map(str::to_owned);
                for (dataset, _) in &datasets {
                    let Some(name) = inside(dataset) else { continue };
                    let safe = name.replace('/', "_");
                    found.components.push((dataset.clone(), if several { format!("{safe}_{n:0>6}") } else { safe }));
                }
                found.others.extend(constants(path, &file, &group)?);
            }
        }
        if let Some(group) = particles {
            found.others.extend(file.children(&group)?.into_iter().map(|species| format!("particles `{species}` of iteration {n}")));
        }
    }
    Ok(Some(found))
}

/// Components that have one value everywhere, which stands in an attribute.
fn constants(path: &Path, file: &File, group: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for mesh in file.children(group)? {
        let mesh = format!("{group}/{mesh}");
        // A dataset has no children.
        let components = file.children(&mesh).unwrap_or_default().into_iter().map(|c| format!("{mesh}/{c}"));
        for object in std::iter::once(mesh.clone()).chain(components) {
            if let Some(value) = Attributes::of(path, &object)?.real("value") {
                found.push(format!("`{object}`, {value} everywhere"));
            }
        }
    }
    Ok(found)
}

/// Unit of an SI dimension, as a text: of common quantities by name, of others by base units; empty where there is none.
fn unit(dimension: &UnitDimension) -> String {
    const KNOWN: [(UnitDimension, &str); 6] = [
        ([1.0, 1.0, -3.0, -1.0, 0.0, 0.0, 0.0], "V/m"),
        ([0.0, 1.0, -2.0, -1.0, 0.0, 0.0, 0.0], "T"),
        ([-2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], "A/m^2"),
        ([-3.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0], "C/m^3"),
        ([2.0, 1.0, -3.0, -1.0, 0.0, 0.0, 0.0], "V"),
        ([-3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "1/m^3"),
    ];
    if let Some((_, name)) = KNOWN.iter().find(|(known, _)| known == dimension) {
        return (*name).to_owned();
    }
    let power = |(name, p): (&str, &f64)| if *p == 1.0 { name.to_owned() } else { format!("{name}^{p}") };
    let parts = ["m", "kg", "s", "A", "K", "mol", "cd"].into_iter().zip(dimension).filter(|(_, p)| **p != 0.0).map(power);
    parts.collect::<Vec<_>>().join(" ")
}

/// Reads a component of a mesh in SI units, as far as the file says them, with the keys that it lacks.
pub fn read_field(path: impl AsRef<Path>, dataset: &str) -> Result<(Field, Vec<String>)> {
    let (path, dataset) = (path.as_ref(), dataset.trim_matches('/'));
    let file = File::open(path)?;
    let Tensor { shape, elements } = file.read(dataset)?;
    let parent = dataset.rsplit_once('/').map_or("", |(group, _)| group);
    let own = Attributes::of(path, dataset)?;
    // A scalar is a dataset with all keys, a component of a vector has those of its mesh on the group.
    let scalar = own.has("gridSpacing") || own.has("axisLabels");
    let mesh = if scalar { own.clone() } else { Attributes::of(path, parent)? };
    let words = |name: &str| mesh.words(name);
    let first_fastest = words("dataOrder").is_some_and(|order| order.first().is_some_and(|o| o == "F"));
    // x first, as axes here: attributes stand in the order of the indices.
    let along = |mut values: Vec<f64>| {
        if !first_fastest {
            values.reverse();
        }
        values
    };
    let mut lacking = Vec::new();
    let mut wanted = |name: &str, found: Option<Vec<f64>>| {
        if found.is_none() {
            lacking.push(name.to_owned());
        }
        found
    };
    let spacing = wanted("gridSpacing", mesh.reals("gridSpacing")).map(along);
    let origin = wanted("gridGlobalOffset", mesh.reals("gridGlobalOffset")).map(along);
    let grid_unit = wanted("gridUnitSI", mesh.reals("gridUnitSI")).map_or(1.0, |v| v[0]);
    let position = wanted("position", own.reals("position")).map(along).unwrap_or_default();
    let factor = wanted("unitSI", own.reals("unitSI")).map_or(1.0, |v| v[0]);
    let dimension: Option<UnitDimension> = wanted("unitDimension", mesh.reals("unitDimension")).and_then(|v| v.try_into().ok());
    let labels = words("axisLabels").map(|mut labels| {
        if !first_fastest {
            labels.reverse();
        }
        labels
    });
    if labels.is_none() {
        lacking.push("axisLabels".into());
    }
    let dimension = dimension.unwrap_or_default();
    // A quantity without a dimension is one of a run without units, whose lengths have none either.
    let metres = mesh.has("gridUnitSI") && dimension != [0.0; 7];
    let axis = |(k, len): (usize, &usize)| {
        let at = |values: &Option<Vec<f64>>| values.as_ref().and_then(|v| v.get(k).copied());
        // More axes than the grid has are those of modes, as of a cylinder.
        let beyond = labels.as_ref().is_some_and(|l| k >= l.len());
        let name = labels.as_ref().and_then(|l| l.get(k).cloned());
        let name = name.unwrap_or_else(|| if beyond { "mode".into() } else { format!("{} index", ["x", "y", "z", "w"][k.min(3)]) });
        let spaced = at(&spacing).filter(|h| *h > 0.0);
        Axis {
            name,
            unit: if metres && spaced.is_some() { "m".into() } else { String::new() },
            origin: if spaced.is_some() { at(&origin).unwrap_or(0.0) * grid_unit } else { 0.0 },
            spacing: spaced.map_or(1.0, |h| h * grid_unit),
            len: *len,
        }
    };
    let axes: Vec<Axis> = shape.iter().rev().enumerate().map(axis).collect();
    let values = match elements {
        Elements::F32(v) if factor == 1.0 => Values::F32(v),
        // The real part, where modes or a field in frequencies are complex.
        Elements::Complex(v) => Values::F64(v.iter().map(|v| f64::from(v.re) * factor).collect()),
        other => Values::F64(other.into_reals().unwrap_or_default().into_iter().map(|v| v * factor).collect()),
    };
    let leaf = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let position = (0..axes.len()).map(|k| position.get(k).copied().unwrap_or(0.0)).collect();
    let (name, component) = if scalar { (leaf(dataset), String::new()) } else { (leaf(parent), leaf(dataset)) };
    let components = vec![Component { name: component, position, values }];
    let whole = Mesh {
        title: name.clone(),
        name,
        unit: unit(&dimension),
        dimension,
        unit_si: 1.0,
        axes,
        length_si: 1.0,
        time_si: 1.0,
        time_offset: 0.0,
        components,
        share: None,
        palette: Palette::Sequential,
    };
    let field = whole.field(0);
    let title = field.name.clone();
    Ok((Field { title, centring: Centring::Node, ..field }, lacking))
}

#[cfg(test)]
mod tests {
    use rust_hdf5::H5File;

    use super::*;
    use crate::hdf5::openpmd::{Iteration, write};
    use crate::samples;

    #[test]
    fn meshes_that_were_written_are_found_with_their_axes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data_000120.h5");
        let (mesh, scalar, table) = (samples::mesh(), samples::density(), samples::species());
        write(&path, Iteration { step: 120, time: 6.0, dt: 0.05 }, &[&mesh, &scalar], &[&table], None).unwrap();
        let found = contents(&path).unwrap().unwrap();
        let mut names: Vec<&str> = found.components.iter().map(|c| c.1.as_str()).collect();
        names.sort_unstable();
        assert_eq!((names, found.lacking.len()), (vec!["E_x", "E_y", "rho"], 0), "{found:?}");
        assert_eq!(found.others, ["particles `electrons` of iteration 120"]);
        for (i, component) in ["x", "y"].iter().enumerate() {
            let (field, lacking) = read_field(&path, &format!("/data/120/fields/E/{component}")).unwrap();
            assert_eq!((&field.axes.len(), lacking.len()), (&2, 0));
            for (a, b) in field.axes.iter().zip(mesh.field(i).axes) {
                assert_eq!((&a.name, a.len), (&b.name, b.len));
                for (si, own) in [(a.origin, b.origin), (a.spacing, b.spacing)] {
                    assert!((si - own * mesh.length_si).abs() <= 4.0 * f64::EPSILON * si.abs(), "{a:?} {b:?}");
                }
            }
            let last = field.values.len() - 1;
            assert_eq!(field.values.get(last), mesh.components[i].values.get(last) * mesh.unit_si);
        }
    }

    /// An array with y as its fastest axis is none to be read as one with x there.
    #[test]
    fn an_array_says_which_axis_is_its_fastest() {
        let folder = tempfile::tempdir().unwrap();
        let mut mesh = samples::density();
        let source = |mesh: &Mesh| {
            write(folder.path().join("m.h5"), Iteration { step: 1, time: 1.0, dt: 1.0 }, &[mesh], &[], None).unwrap();
            let file = std::path::Path::new("m.h5:/data/1/fields/rho");
            crate::source::SourceFile::new("density.file", file, folder.path()).unwrap().placement()
        };
        assert_eq!(source(&mesh).unwrap().labels.unwrap(), ["x", "y"]);
        mesh.axes[0].name = "y".into();
        mesh.axes[1].name = "x".into();
        let text = source(&mesh).unwrap_err().to_string();
        assert!(text.contains("has y as its fastest axis"), "{text}");
        // Another plane is taken as it stands.
        mesh.axes[0].name = "z".into();
        assert_eq!(source(&mesh).unwrap().labels.unwrap(), ["z", "x"]);
    }

    /// A file of another program: nothing but groups and numbers, in an order of its own.
    #[test]
    fn keys_that_are_missing_are_named_and_counted_in_values() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.h5");
        let file = H5File::create(&path).unwrap();
        let group = file.create_group("data").unwrap().create_group("5").unwrap().create_group("meshes").unwrap();
        let rho = group.new_dataset::<f32>().shape([2, 3]).create("rho").unwrap();
        rho.write_raw(&[0f32, 1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let b = group.create_group("B").unwrap();
        b.set_attr_array_numeric("gridSpacing", &[2.0f64, 0.5]).unwrap();
        b.set_attr_numeric("gridUnitSI", &1e-6f64).unwrap();
        b.set_attr_array_numeric("unitDimension", &[0.0f64, 1.0, -2.0, -1.0, 0.0, 0.0, 0.0]).unwrap();
        b.set_attr_typed("dataOrder", rust_hdf5::DatatypeMessage::fixed_string_utf8(1), b"F".to_vec()).unwrap();
        let z = b.new_dataset::<f64>().shape([2, 3]).create("z").unwrap();
        z.write_raw(&[1.0f64; 6]).unwrap();
        z.new_attr::<f64>().shape([1]).create("unitSI").unwrap().write_array(&[10.0]).unwrap();
        file.close().unwrap();
        let found = contents(&path).unwrap().unwrap();
        assert!(found.lacking.iter().any(|l| l.contains("`openPMD`")) && found.components.len() == 2, "{found:?}");
        let (field, lacking) = read_field(&path, "data/5/meshes/rho").unwrap();
        assert_eq!((field.axes[0].len, field.axes[0].spacing, field.axes[0].name.as_str()), (3, 1.0, "x index"));
        assert_eq!(lacking, ["gridSpacing", "gridGlobalOffset", "gridUnitSI", "position", "unitSI", "unitDimension", "axisLabels"]);
        let (field, lacking) = read_field(&path, "data/5/meshes/B/z").unwrap();
        assert_eq!((field.name.as_str(), field.unit.as_str(), field.values.get(0)), ("B_z", "T", 10.0));
        // The first index is the fastest there: the first spacing is that of x.
        assert_eq!(field.axes.iter().map(|a| a.spacing).collect::<Vec<_>>(), [2e-6, 0.5e-6]);
        assert_eq!(lacking, ["gridGlobalOffset", "position", "axisLabels"]);
    }

    #[test]
    fn a_file_without_the_groups_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plain.h5");
        let file = H5File::create(&path).unwrap();
        file.new_dataset::<f32>().shape([2]).create("a").unwrap().write_raw(&[0f32, 1.0]).unwrap();
        file.close().unwrap();
        assert_eq!(contents(&path).unwrap(), None);
    }
}
