//! Compiled kernels on disk, so that a second start compiles nothing.
//!
//! A file is named by the hash of everything that the machine code depends on (source, options, kernels, architecture,
//! compiler version) and begins with the hash of its content: a torn or altered file is noticed, removed and built
//! anew. Files are written under a temporary name and renamed, so two processes may fill the cache at once.
//! `ZELLIGE_CACHE` names another folder; `ZELLIGE_CACHE=off` switches the cache off.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::nvrtc::Cubin;

const MAGIC: &[u8; 8] = b"ZLGKRN1\n";

/// The folder of the cache, where there is one.
#[derive(Debug, Clone)]
pub(super) struct Cache(Option<PathBuf>);

impl Cache {
    /// As the environment says.
    pub(super) fn from_environment() -> Self {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        Self(match std::env::var_os("ZELLIGE_CACHE") {
            Some(value) if value == "off" => None,
            Some(value) if !value.is_empty() => Some(PathBuf::from(value).join("kernels")),
            _ => absolute("XDG_CACHE_HOME")
                .or_else(|| absolute("HOME").map(|h| h.join(".cache")))
                .map(|base| base.join("zellige").join("kernels")),
        })
    }

    /// In `folder`.
    #[cfg(test)]
    pub(super) fn at(folder: &Path) -> Self {
        Self(Some(folder.to_owned()))
    }

    /// The folder, `None` when the cache is off.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.0.as_deref()
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
        self.0.as_ref().map(|folder| folder.join(format!("{key}.kernel")))
    }

    /// What was stored under `key`, if it is whole.
    pub(super) fn get(&self, key: &str) -> Option<Cubin> {
        let file = self.file(key)?;
        let bytes = std::fs::read(&file).ok()?;
        let cubin = decode(&bytes);
        if cubin.is_none() {
            tracing::warn!("`{}` in the kernel cache is damaged and is built anew", file.display());
            std::fs::remove_file(&file).ok();
        }
        cubin
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

/// Magic, checksum of the rest, number of names, the names in pairs, the image; lengths are u64, little end first.
fn encode(cubin: &Cubin) -> Vec<u8> {
    let mut body = (cubin.names.len() as u64).to_le_bytes().to_vec();
    let mut part = |bytes: &[u8]| {
        body.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        body.extend_from_slice(bytes);
    };
    for (kernel, lowered) in &cubin.names {
        part(kernel.as_bytes());
        part(lowered.as_bytes());
    }
    part(&cubin.image);
    [MAGIC.as_slice(), blake3::hash(&body).as_bytes(), &body].concat()
}

fn decode(bytes: &[u8]) -> Option<Cubin> {
    fn number(rest: &mut &[u8]) -> Option<u64> {
        let (head, tail) = rest.split_first_chunk::<8>()?;
        *rest = tail;
        Some(u64::from_le_bytes(*head))
    }
    fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        let length = usize::try_from(number(rest)?).ok()?;
        let (head, tail) = rest.split_at_checked(length)?;
        *rest = tail;
        Some(head)
    }
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();

    let body = bytes.strip_prefix(MAGIC)?;
    let (checksum, mut rest) = body.split_first_chunk::<32>()?;
    if blake3::hash(rest).as_bytes() != checksum {
        return None;
    }
    let count = number(&mut rest)?;
    let mut names = Vec::new();
    for _ in 0..count {
        names.push((text(part(&mut rest)?)?, text(part(&mut rest)?)?));
    }
    let image = part(&mut rest)?.to_vec();
    rest.is_empty().then_some(Cubin { image, names })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Cubin {
        Cubin { image: (0..=255).collect(), names: vec![("smooth<float>".into(), "_Z6smoothIfEvv".into()), ("sum".into(), "sum".into())] }
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
