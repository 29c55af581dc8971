//! Scans from their files, or made: what is wrong with one is said with the key of its file.

use std::path::Path;

use zellige_engine::device::host_must_hold;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::links::Links;

use super::shared;
use crate::config::{Config, ProbeStart, ScanConfig};
use crate::data::{self, LoadExtent};
use crate::scan::Scan;
use crate::share::Share;

/// All scans of the input.
pub fn scans(config: &Config, folder: &Path, seed: u64) -> Result<Vec<Scan>> {
    of_depth(config, folder, seed, |_| LoadExtent::Whole)
}

/// All scans of the input as a part of a run has them: with its own frames, as far as these can be read or made alone.
pub fn scans_of_part(config: &Config, folder: &Path, seed: u64, links: &Links) -> Result<Vec<Scan>> {
    if links.is_alone() {
        return scans(config, folder, seed);
    }
    let counts: Vec<usize> = planned(config, folder, seed)?.iter().map(|scan| scan.positions.len()).collect();
    let all = counts.iter().sum();
    let own = Share::even(links, all)?.own(all);
    of_depth(config, folder, seed, |number| {
        let first: usize = counts[..number].iter().sum();
        let within = |at: usize| at.clamp(first, first + counts[number]) - first;
        LoadExtent::Some { first: within(own.start), last: within(own.end) }
    })
}

/// All scans of the input without their frames and masks.
pub fn planned(config: &Config, folder: &Path, seed: u64) -> Result<Vec<Scan>> {
    of_depth(config, folder, seed, |_| LoadExtent::Plan)
}

fn of_depth(config: &Config, folder: &Path, seed: u64, depth: impl Fn(usize) -> LoadExtent) -> Result<Vec<Scan>> {
    let names = config.scan_names();
    // Probes and objects that are shared have the name of their first scan.
    let (probe_of, _) = shared(config.scan.iter().map(|s| s.probe.clone()));
    let (object_of, _) = shared(config.scan.iter().map(|s| s.object.clone()));
    let owner = |of: &[usize], i: usize| &names[of.iter().position(|n| *n == of[i]).unwrap_or(i)][..];
    let load = |(i, scan): (usize, &ScanConfig)| {
        let name = &names[i];
        room_for(scan, name)?;
        let names = [&name[..], owner(&probe_of, i), owner(&object_of, i)];
        let loaded = data::load_among(scan, names, folder, seed, depth(i)).and_then(|loaded| {
            usable(config, scan, &loaded, folder)?;
            Ok(loaded)
        });
        loaded.map_err(|error| of_scan(error, scan, &format!("ptycho.scan[{i}]"), folder))
    };
    config.scan.iter().enumerate().map(load).collect()
}

/// Probe and object of a file that nothing can begin with are refused where they come from: they would end as an error of the
/// engine, or as none.
fn usable(config: &Config, entry: &ScanConfig, scan: &Scan, folder: &Path) -> Result<()> {
    let Some(file) = entry.read.start.as_ref().or(entry.file.as_ref()) else { return Ok(()) };
    let probe = ("probe", &scan.probe, config.probe.start != ProbeStart::File, "start = \"data\"");
    for (what, image, left_alone, key) in [probe, ("object", &scan.object, config.object.ignore_file, "ignore_file = true")] {
        let Some(image) = image.as_ref().filter(|_| !left_alone) else { continue };
        let [_, rows, columns] = image.shape;
        let message = match image.values.iter().position(|v| !v.is_finite()) {
            Some(i) => {
                let at = [i / (rows * columns), i / columns % rows, i % columns];
                format!("pixel {at:?} (mode, row, column) of its {what} is not a finite number")
            }
            None if image.values.iter().take(rows * columns).all(|v| v.norm_sqr() == 0.0) => format!("its {what} is zero everywhere"),
            None => continue,
        };
        let hint = if entry.arrays.is_some() {
            format!("without `{what}` one is made")
        } else {
            format!("`{key}` under [ptycho.{what}] starts without it")
        };
        return Err(Error::format(folder.join(file), "scan", format!("{message}; {hint}")));
    }
    Ok(())
}

/// A simulated scan that no memory of the host holds is refused before it is made.
fn room_for(scan: &ScanConfig, name: &str) -> Result<()> {
    let Some(made) = &scan.simulate else { return Ok(()) };
    // The moduli alone, which every run holds or maps.
    let pixels = made.size.both().map(|n| n as u64);
    let needed = (made.frames as u64).saturating_mul(pixels[0] * pixels[1] * size_of::<f32>() as u64);
    host_must_hold(needed, format!("the {} frames of the simulated scan `{name}`", made.frames))
}

/// The key that names the file which could not be read.
fn of_scan(error: Error, scan: &ScanConfig, key: &str, folder: &Path) -> Error {
    // No file is to blame.
    if let (Error::Format { message, .. }, true) = (&error, scan.arrays.is_some()) {
        return Error::input("the scan", Problem::new("", format!("of the arrays given, {message}")));
    }
    let (Error::File { path, .. } | Error::Format { path, .. } | Error::Content { path, .. }) = &error else { return error };
    let object = scan.simulate.as_ref().map(|s| &s.object);
    let named = [
        ("file", scan.file.as_ref()),
        ("read.positions_file", scan.read.positions_file.as_ref()),
        ("read.mask_file", scan.read.mask_file.as_ref()),
        ("read.start", scan.read.start.as_ref()),
        ("simulate.object.image", object.and_then(|o| o.image.as_ref())),
        ("simulate.object.absorption_image", object.and_then(|o| o.absorption_image.as_ref())),
    ];
    match named.iter().find(|(_, file)| file.is_some_and(|file| folder.join(file) == *path)) {
        Some((name, _)) => error.of_key(format!("{key}.{name}")),
        // Target of a link in a file.
        None => error,
    }
}
