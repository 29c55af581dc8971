//! Probe and object of an earlier reconstruction: PtyPy's `.ptyr`, or an NPZ archive.

use std::path::Path;

use zellige_engine::error::{Error, Result};
use zellige_io::hdf5::File;
use zellige_io::npz::Archive;

use super::image;
use crate::scan::Image;

/// Probe and object of a file; the first of each if there are several.
pub(super) fn read(path: &Path) -> Result<(Option<Image>, Option<Image>)> {
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npz")) {
        return archive(path);
    }
    let file = File::open(path)?;
    let find = |kind: &str| -> Result<Option<Image>> {
        let group = format!("content/{kind}");
        let Some(id) = file.children(&group).unwrap_or_default().into_iter().next() else { return Ok(None) };
        let Some(tensor) = file.maybe(&format!("{group}/{id}/data"))? else { return Ok(None) };
        let pair = |name: &str| -> Result<Option<[f64; 2]>> {
            let found = file.maybe(&format!("{group}/{id}/{name}"))?.and_then(|t| t.to_reals());
            Ok(found.and_then(|v| v.first().map(|y| [*y, v.get(1).copied().unwrap_or(*y)])))
        };
        let spacing = pair("_psize")?.unwrap_or([1.0; 2]);
        Ok(image(&tensor, spacing, pair("_origin")?))
    };
    let found = (find("probe")?, find("obj")?);
    if found.0.is_none() && found.1.is_none() {
        return Err(file.wrong(format!("it has neither `content/probe` nor `content/obj` (datasets: {})", file.listing())));
    }
    Ok(found)
}

fn archive(path: &Path) -> Result<(Option<Image>, Option<Image>)> {
    let mut archive = Archive::open(path)?;
    let spacing = archive.maybe("pixel")?.and_then(|t| t.to_reals());
    let spacing = spacing.and_then(|v| v.first().map(|y| [*y, v.get(1).copied().unwrap_or(*y)])).unwrap_or([1.0; 2]);
    let origin = archive.maybe("origin")?.and_then(|t| t.to_reals()).and_then(|v| <[f64; 2]>::try_from(v).ok());
    let probe = archive.maybe("probe")?.and_then(|t| image(&t, spacing, None));
    let object = archive.maybe("object")?.and_then(|t| image(&t, spacing, origin));
    if probe.is_none() && object.is_none() {
        let message = format!("it has neither `probe` nor `object` (arrays: {})", archive.listing());
        return Err(Error::format(path, "NPZ", message));
    }
    Ok((probe, object))
}
