//! Compiled kernels on disk, so that a second start compiles nothing.
//!
//! A file is named by the hash of what the machine code is made of (source, options, kernels, architecture), so that it is found
//! where there is no compiler, and begins with the hash of its content: a torn or altered file is noticed, removed and built anew.
//! It holds the compiler's version: code of a compiler that is newer than the driver is not taken, but built anew. Files are
//! written under a temporary name and renamed, so two processes may fill the cache at once. `ZELLIGE_CACHE` names another folder;
//! `ZELLIGE_CACHE=off` switches the cache off.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::library;
use super::nvrtc::{Cubin, Image};
use super::pack::{self, Pack};

const MAGIC: &[u8; 8] = b"ZLGKRN2\n";

/// The folder of the cache, where there is one, and the pack behind it.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    folder: Option<PathBuf>,
    pack: bool,
}

impl Cache {
    /// Builds the cache that the environment asks for.
    pub(super) fn from_environment() -> Self {
        Self { pack: true, ..Self::without_pack() }
    }

    /// Builds the cache that the environment asks for, without the programs of a pack.
    pub(super) fn without_pack() -> Self {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let folder = match std::env::var_os("ZELLIGE_CACHE") {
            Some(value) if value == "off" => None,
            Some(value) if !value.is_empty() => Some(PathBuf::from(value).join("kernels")),
            _ => absolute("XDG_CACHE_HOME")
                .or_else(|| absolute("HOME").map(|h| h.join(".cache")))
                .map(|base| base.join("zellige").join("kernels")),
        };
        Self { folder, pack: false }
    }

    /// Builds a cache in `folder`.
    #[cfg(test)]
    pub(super) fn at(folder: &Path) -> Self {
        Self { folder: Some(folder.to_owned()), pack: false }
    }

    /// The folder, `None` when the cache is off.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The name of everything in `parts`; the length of each goes in, so that no two lists run together.
    pub(super) fn key<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    fn file(&self, key: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(format!("{key}.kernel")))
    }

    /// Returns true if there is an entry for `key`; it may turn out damaged when it is read.
    pub(super) fn has(&self, key: &str) -> bool {
        self.pack().is_some_and(|pack| pack.has(key)) || self.file(key).is_some_and(|file| file.exists())
    }

    fn pack(&self) -> Option<&'static Pack> {
        pack::found().filter(|_| self.pack)
    }

    /// Returns the program stored under `key` in the cache or the pack, if it is intact and the driver accepts it.
    pub(super) fn get(&self, key: &str) -> Option<Cubin> {
        self.read(key).or_else(|| self.pack()?.get(key))
    }

    fn read(&self, key: &str) -> Option<Cubin> {
        let file = self.file(key)?;
        let bytes = std::fs::read(&file).ok()?;
        let cubin = decode(&bytes);
        if cubin.is_none() {
            tracing::warn!("`{}` in the kernel cache is damaged and is built anew", file.display());
            std::fs::remove_file(&file).ok();
        }
        cubin.filter(suits)
    }

    /// Stores `cubin`. A cache that cannot be written is no reason to stop: the kernels are compiled again next time.
    pub(super) fn put(&self, key: &str, cubin: &Cubin) {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let Some(file) = self.file(key) else { return };
        let temporary = file.with_extension(format!("{}-{}.tmp", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed)));
        let written = file
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&temporary, encode(cubin)))
            .and_then(|()| std::fs::rename(&temporary, &file));
        if let Err(error) = written {
            std::fs::remove_file(&temporary).ok();
            tracing::warn!("the kernel cache `{}` cannot be written: {error}", file.display());
        }
    }
}

/// Returns true if the driver loads images of this compiler: it accepts those of its own major version and of earlier ones.
pub(super) fn suits(cubin: &Cubin) -> bool {
    library::driver_version().is_none_or(|driver| cubin.compiler.0 <= driver.0)
}

/// Magic, checksum of the rest, the compiler's version, number of images; of each the number of names, the names in pairs, the
/// code. Numbers are u64, little end first.
pub(super) fn encode(cubin: &Cubin) -> Vec<u8> {
    let mut body = Vec::new();
    let number = |body: &mut Vec<u8>, n: u64| body.extend_from_slice(&n.to_le_bytes());
    let part = |body: &mut Vec<u8>, bytes: &[u8]| {
        number(body, bytes.len() as u64);
        body.extend_from_slice(bytes);
    };
    for n in [cubin.compiler.0 as u64, cubin.compiler.1 as u64, cubin.images.len() as u64] {
        number(&mut body, n);
    }
    for image in &cubin.images {
        number(&mut body, image.names.len() as u64);
        for (kernel, lowered) in &image.names {
            part(&mut body, kernel.as_bytes());
            part(&mut body, lowered.as_bytes());
        }
        part(&mut body, &image.code);
    }
    [MAGIC.as_slice(), blake3::hash(&body).as_bytes(), &body].concat()
}

/// Decodes an entry; `None` where anything differs from the written data.
pub(super) fn decode(bytes: &[u8]) -> Option<Cubin> {
    let body = bytes.strip_prefix(MAGIC)?;
    let (checksum, rest) = body.split_first_chunk::<32>()?;
    if blake3::hash(rest).as_bytes() != checksum {
        return None;
    }
    let mut rest = ByteReader(rest);
    let compiler = (i32::try_from(rest.number()?).ok()?, i32::try_from(rest.number()?).ok()?);
    let mut images = Vec::new();
    for _ in 0..rest.number()? {
        let mut names = Vec::new();
        for _ in 0..rest.number()? {
            names.push((rest.text()?, rest.text()?));
        }
        images.push(Image { code: rest.part()?.to_vec(), names });
    }
    rest.0.is_empty().then_some(Cubin { compiler, images })
}

/// Bytes still to be read.
struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    fn number(&mut self) -> Option<u64> {
        let (head, tail) = self.0.split_first_chunk::<8>()?;
        self.0 = tail;
        Some(u64::from_le_bytes(*head))
    }

    fn part(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        Some(head)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.part()?.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Cubin {
        let image = |names: &[(&str, &str)]| {
            let names = names.iter().map(|(kernel, lowered)| ((*kernel).into(), (*lowered).into())).collect();
            Image { code: (0..=255).collect(), names }
        };
        Cubin { compiler: (12, 9), images: vec![image(&[("smooth<float>", "_Z6smoothIfEvv"), ("sum", "sum")]), image(&[])] }
    }

    #[test]
    fn what_was_put_is_got() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(&folder.path().join("not/yet/there"));
        assert_eq!(cache.get("k"), None);
        cache.put("k", &sample());
        assert_eq!(cache.get("k"), Some(sample()));
        let left = std::fs::read_dir(cache.folder().unwrap()).unwrap().count();
        assert_eq!(left, 1, "a temporary file was left behind");
    }

    #[test]
    fn every_damaged_byte_and_every_cut_is_noticed() {
        let bytes = encode(&sample());
        for i in 0..bytes.len() {
            let mut altered = bytes.clone();
            altered[i] ^= 0x10;
            assert_eq!(decode(&altered), None, "byte {i} altered");
            assert_eq!(decode(&bytes[..i]), None, "cut at {i}");
        }
    }

    #[test]
    fn a_damaged_entry_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        std::fs::write(cache.file("k").unwrap(), b"rubbish").unwrap();
        assert_eq!(cache.get("k"), None);
        assert!(!cache.file("k").unwrap().exists());
    }

    #[test]
    fn keys_tell_lists_apart() {
        assert_ne!(Cache::key(["ab", "c"]), Cache::key(["a", "bc"]));
        assert_ne!(Cache::key(["ab"]), Cache::key(["ab", ""]));
        assert_eq!(Cache::key(["ab", "c"]), Cache::key(["ab", "c"]));
    }
}
