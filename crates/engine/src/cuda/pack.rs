//! Packs of kernels: machine code made where there is no GPU, in one file that lies beside the binary.
//!
//! `ZELLIGE_KERNELS` names another file. Entries have the names of the [`cache`](super::cache): what was made of other sources or
//! options is never found. The list of entries has a checksum, and so has each entry; where one is wrong, a notice says so, and the
//! kernels are compiled instead.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Once, OnceLock};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};

use super::cache::{Cache, decode, encode, suits};
use super::compiling;
use super::nvrtc::Cubin;
use super::program::Recipe;
use crate::error::{Error, Result};
use crate::{files, notice};

const MAGIC: &[u8; 8] = b"ZLGPACK1";
/// The file that is looked for beside the binary.
const NAME: &str = "zellige.kernels";

/// A program in a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    key: String,
    program: String,
    arch: String,
    offset: u64,
    length: u64,
}

/// An open pack.
#[derive(Debug)]
pub(super) struct Pack {
    path: PathBuf,
    /// Offset of the first entry in the file, in bytes.
    base: u64,
    entries: Vec<Entry>,
    damaged: Once,
}

/// The pack in use, if there is one.
pub(super) fn found() -> Option<&'static Pack> {
    static FOUND: OnceLock<Option<Pack>> = OnceLock::new();
    FOUND.get_or_init(look).as_ref()
}

/// File of the pack in use.
pub fn kernel_pack() -> Option<&'static Path> {
    found().map(|pack| pack.path.as_path())
}

fn look() -> Option<Pack> {
    let named = std::env::var_os("ZELLIGE_KERNELS").filter(|v| !v.is_empty()).map(PathBuf::from);
    let beside = || Some(std::env::current_exe().ok()?.parent()?.join(NAME)).filter(|path| path.is_file());
    let path = named.or_else(beside)?;
    let opened = Pack::open(&path);
    if let Err(why) = &opened {
        notice::tell(&format!("the pack of kernels `{}` is not used: {why}; kernels are compiled instead", path.display()));
    }
    opened.ok()
}

impl Pack {
    fn open(path: &Path) -> std::result::Result<Self, String> {
        let (damaged, word) = (|| "it is damaged".to_owned(), |e: std::io::Error| e.to_string());
        let mut file = File::open(path).map_err(word)?;
        let length = file.metadata().map_err(word)?.len();
        let mut head = [0; 48];
        file.read_exact(&mut head).map_err(|_| damaged())?;
        let (magic, rest) = head.split_at(8);
        let (checksum, size) = rest.split_at(32);
        if magic != MAGIC {
            return Err("it is none, or one of another version".into());
        }
        let size = u64::from_le_bytes(size.try_into().map_err(|_| damaged())?);
        let base = size.checked_add(48).filter(|base| *base <= length).ok_or_else(damaged)?;
        let mut list = vec![0; size as usize];
        file.read_exact(&mut list).map_err(word)?;
        if blake3::hash(&list).as_bytes() != checksum {
            return Err(damaged());
        }
        let entries = serde_json::from_slice(&list).map_err(|_| damaged())?;
        Ok(Self { path: path.to_owned(), base, entries, damaged: Once::new() })
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// Returns the program stored under `key`, if it is intact and the driver accepts it.
    pub(super) fn get(&self, key: &str) -> Option<Cubin> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        let cubin = self.read(entry);
        if cubin.is_none() {
            let path = self.path.display();
            let told = format!("`{}` in the pack of kernels `{path}` is damaged; kernels are compiled instead", entry.program);
            self.damaged.call_once(|| notice::tell(&told));
        }
        cubin.filter(suits)
    }

    fn read(&self, entry: &Entry) -> Option<Cubin> {
        let mut file = File::open(&self.path).ok()?;
        file.seek(SeekFrom::Start(self.base.checked_add(entry.offset)?)).ok()?;
        let mut bytes = Vec::new();
        DeflateDecoder::new(file.take(entry.length)).read_to_end(&mut bytes).ok()?;
        decode(&bytes)
    }
}

/// Writes a pack of `programs`, each for an architecture (`sm_90`), to `path`: from the cache where it has them, compiled
/// otherwise. Needs NVRTC, but no GPU. Returns the number of programs; duplicates count once.
pub fn write_pack(path: &Path, programs: &[(String, Recipe)]) -> Result<usize> {
    pack(path, programs, &Cache::without_pack())
}

fn pack(path: &Path, programs: &[(String, Recipe)], cache: &Cache) -> Result<usize> {
    let mut named: Vec<(String, &String, &Recipe)> = Vec::new();
    for (arch, recipe) in programs {
        let key = recipe.key(arch);
        if named.iter().all(|(known, ..)| *known != key) {
            named.push((key, arch, recipe));
        }
    }
    // All cores work on what is missing while the first ones are packed.
    for (key, arch, recipe) in named.iter().filter(|(key, ..)| !cache.has(key)) {
        compiling::begin(vec![(key.clone(), (*recipe).clone())], arch, cache);
    }
    let (mut entries, mut blobs) = (Vec::new(), Vec::new());
    for (key, arch, recipe) in named {
        let cubin = recipe.cubin(arch, cache)?;
        let offset = blobs.len() as u64;
        let mut encoder = DeflateEncoder::new(&mut blobs, Compression::best());
        encoder.write_all(&encode(&cubin)).and_then(|()| encoder.finish().map(|_| ())).map_err(|e| Error::file("write", path, e))?;
        let length = blobs.len() as u64 - offset;
        entries.push(Entry { key, program: recipe.name.clone(), arch: arch.clone(), offset, length });
    }
    let list = serde_json::to_vec(&entries).map_err(|e| Error::file("write", path, e.into()))?;
    files::atomic_write(path, |out| {
        out.write_all(MAGIC)?;
        out.write_all(blake3::hash(&list).as_bytes())?;
        out.write_all(&(list.len() as u64).to_le_bytes())?;
        out.write_all(&list)?;
        out.write_all(&blobs)
    })?;
    Ok(entries.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pack_gives_what_was_put_in_and_nothing_that_is_damaged() {
        if !crate::testing::compiler() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (path, cache) = (folder.path().join("p.kernels"), Cache::at(&folder.path().join("cache")));
        let recipe = |value: &str| {
            let source = "extern \"C\" __global__ void k(int* x) { *x = VALUE; }\nextern \"C\" __global__ void l(int* x) { *x = -VALUE; }";
            Recipe::new("packed", &[source], &[("VALUE".into(), value.into())], &["k", "l"])
        };
        let programs = [("sm_80", "1"), ("sm_90", "1"), ("sm_90", "2"), ("sm_90", "1")].map(|(arch, v)| (arch.to_owned(), recipe(v)));
        assert_eq!(pack(&path, &programs, &cache).unwrap(), 3);
        let opened = Pack::open(&path).unwrap();
        for (arch, recipe) in &programs {
            let cubin = opened.get(&recipe.key(arch)).unwrap();
            assert_eq!((cubin.images.len(), Some(&cubin)), (2, cache.get(&recipe.key(arch)).as_ref()));
            assert!(cubin.images.iter().all(|image| image.code.starts_with(b"\x7fELF")));
        }
        // Other constants and architectures are not in it.
        assert!(opened.get(&recipe("3").key("sm_90")).is_none() && opened.get(&recipe("2").key("sm_80")).is_none());
        // Each byte counts: of the list for all entries, of an entry for this one.
        let bytes = std::fs::read(&path).unwrap();
        let whole: Vec<Cubin> = programs.iter().map(|(arch, r)| opened.get(&r.key(arch)).unwrap()).collect();
        let (mut noticed, mut tried) = (0, 0);
        for at in (0..bytes.len()).step_by(7).chain(0..64) {
            let mut altered = bytes.clone();
            altered[at] ^= 0x10;
            std::fs::write(&path, &altered).unwrap();
            let Ok(pack) = Pack::open(&path) else { continue };
            assert!(at as u64 >= opened.base, "byte {at} of the list altered");
            let got: Vec<_> = programs.iter().map(|(arch, r)| pack.get(&r.key(arch))).collect();
            noticed += usize::from(got.iter().any(Option::is_none));
            tried += 1;
            assert!(got.iter().zip(&whole).all(|(got, whole)| got.as_ref().is_none_or(|g| g == whole)), "byte {at}");
        }
        // But for the few bits that decompress to the same: those that fill up a last byte, lengths of codes that nothing uses.
        assert!(tried > 100 && 50 * (tried - noticed) <= tried, "{noticed} of {tried}");
        for length in [0, 20, 60, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let got = Pack::open(&path).ok().and_then(|pack| pack.get(&programs[2].1.key("sm_90")));
            assert!(got.is_none(), "cut at {length}");
        }
    }
}
