//! JSON, for summaries: numbers that are not finite become `null`, which is all that JSON has for them.

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use zellige_engine::error::{Error, Result};
use zellige_engine::files::{atomic_write, read_text};

const FORMAT: &str = "JSON";

/// Writes a value, indented.
pub fn write(path: impl AsRef<Path>, value: &impl Serialize) -> Result<()> {
    atomic_write(path, |out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        writeln!(out)
    })
}

/// Reads a value back.
pub fn read(path: impl AsRef<Path>) -> Result<serde_json::Value> {
    let path = path.as_ref();
    serde_json::from_str(&read_text(path, FORMAT, 1 << 26)?).map_err(|e| Error::format(path, FORMAT, e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order_and_nan_is_null() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.json");
        write(&path, &serde_json::json!({ "status": "converged", "a": f64::NAN, "b": [1.5, 2] })).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.find("status") < text.find("\"a\": null"), "{text}");
        assert_eq!(read(&path).unwrap()["b"][0], 1.5);
        std::fs::write(&path, "{").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("is not a valid JSON file"));
    }
}
