//! Files that the parts of a run write side by side.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Links;
use crate::error::{Error, Result};
use crate::files::Pending;
use crate::notice;

/// File that the first part has begun under a temporary name, as it tells the others, which open it to write at places of it. A
/// temporary name is that of one file anywhere ([`crate::files::Pending`]): a host with a folder of its own does not find it there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SharedFile {
    #[serde(with = "any_path")]
    path: PathBuf,
    #[serde(with = "any_path")]
    temporary: PathBuf,
    host: Option<String>,
}

/// Paths as their bytes, which need not be text.
mod any_path {
    use serde::{Deserializer, Serializer};

    use super::{Deserialize, OsStrExt, OsString, OsStringExt, Path, PathBuf, Serialize};

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> std::result::Result<S::Ok, S::Error> {
        path.as_os_str().as_bytes().serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> std::result::Result<PathBuf, D::Error> {
        Vec::deserialize(from).map(|bytes| OsString::from_vec(bytes).into())
    }
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

impl Links {
    /// Returns true if all parts can write into the folder of the first part, which names it. It is asked once in a run; a part
    /// that cannot is told.
    ///
    /// # Errors
    /// Another part has failed.
    pub fn share_folder(&self, folder: Option<&Path>) -> Result<bool> {
        if let Some(known) = self.1.shares_folder.get() {
            return Ok(*known);
        }
        let probe = folder.filter(|_| self.is_first()).and_then(|folder| Pending::create(folder.join("parts")).ok());
        let file = self.first_says(probe.as_ref().map(|probe| SharedFile::new(self, probe.path(), probe.temporary())))?;
        // If the first part itself cannot write, its next file says why.
        let Some(file) = file else { return Ok(false) };
        let seen = file.open().is_ok();
        let all: Vec<(bool, Option<String>)> = self.all_say(&(seen, self.host()))?;
        let unseen = all.iter().position(|(seen, _)| !seen);
        if let (Some(part), Some(folder), true) = (unseen, folder, self.is_first()) {
            let on = all[part].1.as_ref().map_or_else(String::new, |host| format!(" on {host}"));
            notice::tell(&format!(
                "all results go through part 0: part {part}{on} cannot write into `{}`; name a folder that all hosts of the run share with \
                 `-o DIR`",
                folder.display()
            ));
        }
        Ok(*self.1.shares_folder.get_or_init(|| unseen.is_none()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::inside;

    #[test]
    fn folders_of_all_parts_are_found_out() {
        use std::os::unix::ffi::OsStrExt;

        let folder = tempfile::tempdir().unwrap();
        // A name that is no text.
        let named = folder.path().join(std::ffi::OsStr::from_bytes(b"r\xff"));
        std::fs::create_dir(&named).unwrap();
        let asked = |folder: Option<&Path>| {
            // The others need not know its name, and it is asked once.
            inside::run(3, |links| {
                let first = links.share_folder(folder.filter(|_| links.is_first()))?;
                Ok((first, links.share_folder(None)?))
            })
        };
        assert_eq!(asked(Some(&named)).unwrap(), [(true, true); 3]);
        assert_eq!(std::fs::read_dir(&named).unwrap().count(), 0);
        assert_eq!(asked(Some(&folder.path().join("none"))).unwrap(), [(false, false); 3]);
        assert_eq!(asked(None).unwrap(), [(false, false); 3]);
    }

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
