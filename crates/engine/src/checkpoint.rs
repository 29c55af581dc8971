//! Checkpoints: named, typed sections in one file with checksums, written whole or not at all.
//!
//! Layout, little-endian: magic `ZLGCKPT\n`, format version (u32), solver name (u32 length, UTF-8); then sections, each
//! kind (u8), name (u16 length, UTF-8), payload length in bytes (u64), payload; kind 0 ends the list. This body is cut into
//! blocks of [`BLOCK`] bytes, the last one shorter. The BLAKE3 hashes of all blocks follow, then the length of the body (u64), and
//! the hash of those hashes and that length.
//!
//! A block is written and read by itself, so the parts of a run write one file side by side ([`Writer::joined`]), of the same bytes
//! whatever their number, and each reads what it needs alone ([`Reader::values_from`]). Arrays are streamed both ways: neither side
//! holds a second copy.

mod owned;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use self::owned::own_ranges;
pub use self::reader::Reader;
pub use self::writer::Writer;

#[cfg(target_endian = "big")]
compile_error!("checkpoints are written as they lie in memory, which must be little-endian");

const MAGIC: &[u8; 8] = b"ZLGCKPT\n";
/// Version of the layout above. The sections inside belong to their solver.
pub const VERSION: u32 = 2;
const FORMAT: &str = "checkpoint";
/// Names and the solver's name are short; longer ones mean a damaged file.
const NAME_LIMIT: usize = 1024;
/// Bytes of a block: few checksums, and pieces as file systems of many hosts like them.
pub const BLOCK: u64 = 1 << 20;

/// BLAKE3 hash.
type Hash = [u8; 32];

/// Bytes behind the hashes of the blocks: the length of the body and a hash.
const TRAILER: u64 = 8 + size_of::<Hash>() as u64;

/// Hash of the end of a file: of the hashes of its blocks, and the length of its body.
fn seal(hashes: &[Hash], body: u64) -> Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(hashes.as_flattened()).update(&body.to_le_bytes());
    hasher.finalize().into()
}

/// Type of the content of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SectionType {
    /// A count.
    U64 = 1,
    /// A number.
    F64 = 2,
    /// Bytes, and whole numbers of any length.
    Bytes = 3,
    /// Numbers in single precision.
    F32s = 4,
    /// Numbers in double precision.
    F64s = 5,
    /// Text.
    Json = 6,
}

impl SectionType {
    fn from_code(code: u8) -> Option<Self> {
        [Self::U64, Self::F64, Self::Bytes, Self::F32s, Self::F64s, Self::Json].into_iter().find(|k| *k as u8 == code)
    }

    /// Bytes per element.
    fn size(self) -> u64 {
        match self {
            Self::U64 | Self::F64 | Self::F64s => 8,
            Self::F32s => 4,
            Self::Bytes | Self::Json => 1,
        }
    }
}

/// Element of an array in a checkpoint.
pub trait Element: bytemuck::Pod {
    /// Type of the sections of such arrays.
    const TYPE: SectionType;
}

impl Element for f32 {
    const TYPE: SectionType = SectionType::F32s;
}

impl Element for f64 {
    const TYPE: SectionType = SectionType::F64s;
}

macro_rules! as_bytes {
    ($($number:ty)*) => {$(
        impl Element for $number {
            const TYPE: SectionType = SectionType::Bytes;
        }
    )*};
}
as_bytes!(u8 u16 u32 u64);
