//! NPZ, NumPy's archive of arrays: a ZIP of NPY files, stored (`numpy.savez`) or deflated (`numpy.savez_compressed`).

use std::fs::File;
use std::io::{BufReader, Cursor};
use std::path::{Path, PathBuf};

use zellige_engine::device::host_memory_free;
use zellige_engine::error::{Error, Result};
use zellige_engine::files::atomic_write;

use crate::npy;
use crate::tensor::Tensor;
use crate::zip::{self, Fault, Member};

const FORMAT: &str = "NPZ";
/// Bytes of a member that are unpacked to learn its shape.
const HEAD: u64 = 4096;

/// An archive that is open.
pub struct Archive {
    path: PathBuf,
    file: BufReader<File>,
    members: Vec<Member>,
}

impl Archive {
    /// Opens an archive and reads its directory.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let (file, length) = zip::open(&path).map_err(|e| Error::file("read", &path, e))?;
        let mut file = BufReader::with_capacity(1 << 18, file);
        let members = zip::directory(&mut file, length).map_err(|fault| told(&path, fault))?;
        Ok(Self { path, file, members })
    }

    /// Names of the arrays.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|m| bare(&m.name))
    }

    /// Returns true if there is an array of this name.
    pub fn has(&self, name: &str) -> bool {
        self.names().any(|n| n == name)
    }

    /// Names and shapes of all arrays, for messages.
    pub fn listing(&mut self) -> String {
        let names: Vec<String> = self.names().map(str::to_owned).collect();
        let shown = names.iter().map(|n| match self.shape(n) {
            Ok(shape) => format!("`{n}` {shape:?}"),
            Err(_) => format!("`{n}`"),
        });
        let shown: Vec<String> = shown.collect();
        if shown.is_empty() { "none".into() } else { shown.join(", ") }
    }

    fn member(&self, name: &str) -> Result<Member> {
        let found = self.members.iter().find(|m| bare(&m.name) == name).cloned();
        found.ok_or_else(|| Error::Content { path: self.path.clone(), message: format!("it has no array `{name}`") })
    }

    /// Shape of an array.
    pub fn shape(&mut self, name: &str) -> Result<Vec<usize>> {
        let member = self.member(name)?;
        let head = zip::read(&mut self.file, &member, HEAD).map_err(|fault| told(&self.path, fault))?;
        npy::shape(&head).map_err(|m| Error::format(&self.path, FORMAT, format!("array `{name}`: {m}")))
    }

    /// Reads an array. A missing one is an error that lists those there.
    pub fn read(&mut self, name: &str) -> Result<Tensor> {
        if !self.has(name) {
            let message = format!("it has no array `{name}` (arrays: {})", self.listing());
            return Err(Error::Content { path: self.path.clone(), message });
        }
        let member = self.member(name)?;
        // Its bytes and its values are in memory together.
        let (needed, free) = (member.size.saturating_mul(2), host_memory_free().unwrap_or(u64::MAX));
        if needed > free {
            let what = format!("array `{name}` of `{}`, unpacked", self.path.display());
            return Err(Error::TooLarge { device: "the host".into(), what, requested: needed, memory: free });
        }
        let bytes = zip::read(&mut self.file, &member, u64::MAX).map_err(|fault| told(&self.path, fault))?;
        npy::tensor(&bytes).map_err(|m| Error::format(&self.path, FORMAT, format!("array `{name}`: {m}")))
    }

    /// Reads an array if it exists.
    pub fn maybe(&mut self, name: &str) -> Result<Option<Tensor>> {
        if self.has(name) { self.read(name).map(Some) } else { Ok(None) }
    }
}

fn bare(name: &str) -> &str {
    name.strip_suffix(".npy").unwrap_or(name)
}

fn told(path: &Path, fault: Fault) -> Error {
    match fault {
        Fault::System(e) => Error::file("read", path, e),
        Fault::Content(message) => Error::format(path, FORMAT, message),
    }
}

/// Reads every array of an archive in memory, by name: for data from elsewhere.
pub fn from_bytes(bytes: &[u8]) -> Result<Vec<(String, Tensor)>, String> {
    let mut input = Cursor::new(bytes);
    let text = |fault| match fault {
        Fault::System(e) => e.to_string(),
        Fault::Content(message) => message,
    };
    let members = zip::directory(&mut input, bytes.len() as u64).map_err(text)?;
    let mut found = Vec::with_capacity(members.len());
    for member in &members {
        let data = zip::read(&mut input, member, u64::MAX).map_err(text)?;
        found.push((bare(&member.name).to_owned(), npy::tensor(&data)?));
    }
    Ok(found)
}

/// Writes an archive, deflated or stored.
pub fn write(path: impl AsRef<Path>, arrays: &[(&str, &Tensor)], deflate: bool) -> Result<()> {
    atomic_write(path, |out| {
        let mut archive = zip::Writer::new(out);
        for (name, tensor) in arrays {
            archive.add(&format!("{name}.npy"), &npy::bytes(tensor), deflate)?;
        }
        archive.finish()
    })
}

#[cfg(test)]
mod tests;
