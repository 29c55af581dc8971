//! Probe and object of an earlier reconstruction: PtyPy's `.ptyr`, which may hold some of several scans, or an NPZ archive.

use std::path::Path;

use zellige_engine::error::{Error, Result};
use zellige_io::hdf5::File;
use zellige_io::npz::Archive;

use super::{image, pairs};
use crate::output::{POSITIONS, plain};
use crate::scan::Image;

/// Initial probe and object of a scan.
pub(super) struct InitialImages {
    pub(super) probe: Option<Image>,
    pub(super) object: Option<Image>,
    /// Metres, `[y, x]`, of a file of a scan of this name.
    pub(super) positions: Option<Vec<[f64; 2]>>,
    /// Observations that the user should know of.
    pub(super) notes: Vec<String>,
}

/// Probe, object and positions of a file. Where it has several, those of the scans `label` or, if none is asked for, of the scans
/// in `names` (of the positions, of the probe, of the object); the first with a note if there are none of these names.
pub(super) fn read(path: &Path, label: Option<&str>, names: [&str; 3]) -> Result<InitialImages> {
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npz")) {
        if let Some(label) = label {
            let message = format!("it has no scans to choose `{label}` from: `start_label` is for .ptyr files");
            return Err(Error::format(path, "NPZ", message));
        }
        return archive(path);
    }
    let file = File::open(path)?;
    let mut notes = Vec::new();
    let mut find = |kind: &str, name: &str| -> Result<Option<Image>> {
        let group = format!("content/{kind}");
        let ids = file.children(&group).unwrap_or_default();
        let Some(id) = chosen(&ids, label.unwrap_or(name), label.is_some()) else { return Ok(None) };
        if label.is_none() && ids.len() > 1 && !named(id, name) {
            let what = if kind == "obj" { "objects" } else { "probes" };
            let all = ids.join("`, `");
            notes.push(format!(
                "`{}` has {} {what} (`{all}`), none of a scan `{name}`: it starts from the first; `read = {{ start_label = ... }}` names another",
                path.display(),
                ids.len()
            ));
        }
        let Some(tensor) = file.maybe(&format!("{group}/{id}/data"))? else { return Ok(None) };
        let pair = |name: &str| -> Result<Option<[f64; 2]>> {
            let found = file.maybe(&format!("{group}/{id}/{name}"))?.and_then(|t| t.to_reals());
            Ok(found.and_then(|v| v.first().map(|y| [*y, v.get(1).copied().unwrap_or(*y)])))
        };
        let spacing = pair("_psize")?.unwrap_or([1.0; 2]);
        Ok(image(&tensor, spacing, pair("_origin")?))
    };
    let (probe, object) = (find("probe", names[1])?, find("obj", names[2])?);
    if probe.is_some() || object.is_some() {
        let missing = [("probe", probe.is_none()), ("object", object.is_none())].into_iter().find(|(_, none)| *none);
        if let Some((what, _)) = missing {
            let of = label.map_or_else(String::new, |label| format!(" of a scan `{label}`, which may have shared that of another"));
            notes.push(format!("`{}` has no {what}{of}: a start is made in its place", path.display()));
        }
        let positions = positions(&file, label.unwrap_or(names[0]))?;
        return Ok(InitialImages { probe, object, positions, notes });
    }
    let ids = ["probe", "obj"].map(|kind| file.children(&format!("content/{kind}")).unwrap_or_default()).concat();
    Err(match label {
        Some(label) if !ids.is_empty() => {
            file.content_error(format!("it has no probe or object of a scan `{label}`; `start_label` may be {}", ids.join(", ")))
        }
        _ => file.content_error(format!("it has neither `content/probe` nor `content/obj` (datasets: {})", file.listing())),
    })
}

/// Reads the positions of a scan's views: by its name as this program stores them, or by that of its object as PtyPy does.
fn positions(file: &File, name: &str) -> Result<Option<Vec<[f64; 2]>>> {
    for group in [POSITIONS, "content/positions"] {
        let names = file.children(group).unwrap_or_default();
        if let Some(found) = names.iter().find(|id| named(id, name) || **id == plain(name)) {
            return Ok(file.maybe(&format!("{group}/{found}"))?.and_then(|t| pairs(&t)));
        }
    }
    Ok(None)
}

/// The storage of a scan; if it must not be so, the first where none is.
fn chosen<'a>(ids: &'a [String], name: &str, must: bool) -> Option<&'a String> {
    ids.iter().find(|id| named(id, name)).or(if must { None } else { ids.first() })
}

/// Returns true if a storage belongs to a scan: by its own name, or as PtyPy and this program derive one from the scan's.
fn named(id: &str, name: &str) -> bool {
    let of = |name: &str| format!("S{name}G00");
    id == name || id == of(name) || id == of(&plain(name))
}

fn archive(path: &Path) -> Result<InitialImages> {
    let mut archive = Archive::open(path)?;
    let pixel = archive.maybe("pixel")?.and_then(|t| t.to_reals()).and_then(|v| v.first().map(|y| [*y, v.get(1).copied().unwrap_or(*y)]));
    let origin = archive.maybe("origin")?.and_then(|t| t.to_reals()).and_then(|v| <[f64; 2]>::try_from(v).ok());
    let probe = archive.maybe("probe")?.and_then(|t| image(&t, pixel.unwrap_or([1.0; 2]), None));
    let found = archive.maybe("object")?;
    let lacks = "`object` needs `pixel` and `origin` (coordinates of its first pixel) beside it, metres, y before x";
    let unplaced = found.is_some() && (pixel.is_none() || origin.is_none());
    let object = found.zip(pixel.zip(origin)).and_then(|(t, (pixel, origin))| image(&t, pixel, Some(origin)));
    if probe.is_none() && object.is_none() {
        let why = if unplaced { format!("its {lacks}") } else { "it has neither `probe` nor `object`".into() };
        let message = format!("{why} (arrays: {})", archive.listing());
        return Err(Error::format(path, "NPZ", message));
    }
    let notes = if unplaced { vec![format!("the object of `{}` is ignored: {lacks}", path.display())] } else { Vec::new() };
    Ok(InitialImages { probe, object, positions: None, notes })
}
