//! Files that the parts of a run write side by side.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Links;
use crate::error::{Error, Result};

/// File that the first part has begun under a temporary name, as it tells the others, which open it to write at places of it. A
/// temporary name is that of one file anywhere ([`crate::files::Pending`]): a host with a folder of its own does not find it there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SharedFile {
    path: PathBuf,
    temporary: PathBuf,
    host: Option<String>,
}

impl SharedFile {
    /// The file that will be `path`, begun by this part.
    pub fn new(links: &Links, path: &Path, temporary: &Path) -> Self {
        Self { path: path.to_owned(), temporary: temporary.to_owned(), host: links.host() }
    }

    /// The name that the file will take.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file at any part, to write into it.
    ///
    /// # Errors
    /// This part does not see it, or may not write.
    pub fn open(&self) -> Result<File> {
        OpenOptions::new().write(true).open(&self.temporary).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => Error::file("open", &self.path, self.unseen()),
            _ => Error::file("write", &self.path, e),
        })
    }

    fn unseen(&self) -> io::Error {
        let of = self.host.as_ref().map_or_else(String::new, |host| format!(" on {host}"));
        io::Error::other(format!(
            "the file that part 0{of} has begun cannot be found here: name a folder that all hosts of the run share with `-o DIR` or \
             `--checkpoint-dir DIR`"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Pending;

    #[test]
    fn a_folder_that_is_not_that_of_the_first_part_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.zck");
        let pending = Pending::create(&path).unwrap();
        let begun = SharedFile { host: Some("node1".into()), ..SharedFile::new(&Links::default(), &path, pending.temporary()) };
        assert!(begun.open().is_ok());
        let told = SharedFile { temporary: folder.path().join("none"), ..begun }.open().unwrap_err().to_string();
        assert!(told.contains("part 0 on node1 has begun cannot be found here: name a folder that all hosts"), "{told}");
    }
}
