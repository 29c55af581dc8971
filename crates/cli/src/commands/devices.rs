//! `zellige devices`: what there is, and why something is not used.

use std::fmt::Write;

use zellige_engine::device::{self, Device};
use zellige_engine::error::{Error, Result};

use crate::commands::print;
use crate::report;

/// The command.
pub(crate) fn devices(json: bool, measure: bool) -> Result<u8> {
    let inventory = device::list();
    if json {
        let mut inventory = serde_json::to_value(&inventory).map_err(|e| Error::file("write", "standard output", e.into()))?;
        for listed in inventory["devices"].as_array_mut().into_iter().flatten().filter(|d| measure && d["refusal"].is_null()) {
            listed["copy_bandwidth"] = bandwidth(listed["id"].as_str().unwrap_or_default())?.into();
        }
        let text = serde_json::to_string_pretty(&inventory).map_err(|e| Error::file("write", "standard output", e.into()))?;
        return print(&(text + "\n"));
    }
    let mut out = String::new();
    for listed in &inventory.devices {
        let memory = listed.memory.map_or_else(String::new, |m| format!(", {}", report::bytes(m as f64)));
        let detail = if listed.detail.is_empty() { String::new() } else { format!(" ({})", listed.detail) };
        let _ = writeln!(out, "{:8} {}{detail}{memory}", listed.id, listed.name);
        match &listed.refusal {
            Some(reason) => {
                let _ = writeln!(out, "         not usable: {reason}");
            }
            None if measure => {
                let bandwidth = bandwidth(&listed.id)?;
                let _ = writeln!(out, "         copies {:.1} GB/s (bytes read and written)", bandwidth / 1e9);
            }
            None => {}
        }
    }
    for library in &inventory.libraries {
        let place = library.path.as_ref().map_or_else(|| "found by the loader".into(), |p| p.display().to_string());
        let _ = match &library.refusal {
            None => writeln!(out, "{:8} {place}", library.name),
            Some(reason) => writeln!(out, "{:8} not found: {reason}", library.name),
        };
        if let (Some(_), Some(hint)) = (&library.refusal, &library.hint) {
            let _ = writeln!(out, "         {hint}");
        }
    }
    for (name, version) in &inventory.versions {
        let _ = writeln!(out, "{name}: {version}");
    }
    let cache = inventory.kernel_cache.as_ref().map_or_else(|| "off (ZELLIGE_CACHE)".into(), |p| p.display().to_string());
    let _ = writeln!(out, "compiled kernels are kept in: {cache}");
    if let Some(pack) = &inventory.kernel_pack {
        let _ = writeln!(out, "pack of kernels: {}", pack.display());
    }
    print(&out)
}

fn bandwidth(id: &str) -> Result<f64> {
    let spec = id.parse().map_err(|m: String| Error::Device { device: id.into(), message: m, hint: None })?;
    Device::open(&spec, 0)?.0.bandwidth()
}
