//! Memory limits of a run.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Memory limits of a run: frames and waves beyond them are streamed in blocks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryConfig {
    /// Memory on the device, e.g. `"2 GiB"`; default nine tenths of a GPU's free memory. The rest is streamed from page-locked
    /// host memory, on the CPU from mapped files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Folder of the mapped files; default the system's temporary folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scratch: Option<PathBuf>,
    /// Precision of kept exit waves.
    pub exit_waves: WaveStorage,
}

/// Precision of kept exit waves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WaveStorage {
    /// Single precision.
    #[default]
    F32,
    /// Half the memory and copies, 11 bits; on GPUs.
    F16,
}

impl MemoryConfig {
    /// Returns true if no limit is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Bytes of `device`; `None` if it was left out or is no size.
    pub fn bytes(&self) -> Option<u64> {
        self.device.as_deref().and_then(size)
    }
}

/// Bytes of `2 GiB`, `512MB`, `1.5e9`.
pub(super) fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let unit = text.find(|c: char| c.is_ascii_alphabetic() && c != 'e' && c != 'E').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let factor = match unit.trim().to_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => f64::from(1 << 20),
        "gib" => f64::from(1 << 30),
        "tib" => 1024.0 * f64::from(1 << 30),
        _ => return None,
    };
    let bytes = number.trim().parse::<f64>().ok()? * factor;
    (1.0..1e18).contains(&bytes).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in
            [("2 GiB", Some(2 << 30)), ("512MB", Some(512_000_000)), ("1.5e9", Some(1_500_000_000)), ("1.5 kib", Some(1536))]
        {
            assert_eq!(size(text), bytes, "{text}");
        }
        for text in ["", "GiB", "2 GB/s", "-1 GB", "0", "inf", "nan B", "1e30"] {
            assert_eq!(size(text), None, "{text}");
        }
    }
}
