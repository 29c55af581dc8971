//! Checks that a file holds what it claims. The library fills whatever it does not find with zeros (or the dataset's fill value):
//! chunks that a cut took away, chunks that a damaged index leads past the end of the file to, and chunks that nobody ever wrote.
//! As data of a computation they are all the same silent mistake.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use rust_hdf5::{FillValue, H5Dataset, Hdf5Error, StorageLayout};
use zellige_engine::error::{Error, Result};

use super::{FORMAT, guarded};

const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";
/// The filter that adds a checksum to a chunk.
const FLETCHER32: u16 = 3;
/// Bytes of a superblock up to the end of its addresses, in every version.
const SUPERBLOCK: usize = 96;

/// Refuses a file that ends before the end that its superblock states (HDF5 file format specification 3.0, section II).
///
/// # Errors
/// The file cannot be read, or was cut off.
pub(super) fn whole(path: &Path) -> Result<()> {
    let read = |e| Error::file("read", path, e);
    let mut file = File::open(path).map_err(read)?;
    let length = file.metadata().map_err(read)?.len();
    let mut start = 0;
    while start < length {
        let mut block = [0; SUPERBLOCK];
        file.seek(SeekFrom::Start(start)).map_err(read)?;
        let mut filled = 0;
        while filled < SUPERBLOCK {
            match file.read(&mut block[filled..]).map_err(read)? {
                0 => break,
                n => filled += n,
            }
        }
        if block.starts_with(&SIGNATURE) {
            return match stated_end(&block) {
                Some(end) if end > length => {
                    let message = format!("it was cut off: {length} bytes are there of {end}");
                    Err(Error::format(path, FORMAT, message))
                }
                _ => Ok(()),
            };
        }
        // Behind a user block, the superblock stands at 512, 1024, 2048, ...
        start = if start == 0 { 512 } else { start.saturating_mul(2) };
    }
    // Not such a file at all: the library says so.
    Ok(())
}

/// The address of the end of the file; none where the version is not known.
fn stated_end(block: &[u8; SUPERBLOCK]) -> Option<u64> {
    // Position of the first address, width of an address, and how many addresses stand before that of the end.
    let (first, width, before) = match block[8] {
        0 => (24, block[13], 2),
        1 => (28, block[13], 2),
        2 | 3 => (12, block[9], 2),
        _ => return None,
    };
    let width = usize::from(width);
    let bytes = block.get(first + before * width..first + (before + 1) * width).filter(|b| matches!(b.len(), 2 | 4 | 8))?;
    Some(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

/// A box of a dataset that was read.
pub(super) struct Slab<'a> {
    /// First value along each axis.
    pub start: &'a [usize],
    /// Number of values along each axis.
    pub count: &'a [usize],
    /// The values as they lie in the file, `width` bytes each.
    pub bytes: &'a [u8],
    /// Bytes of a value.
    pub width: usize,
}

/// Refuses values that were never written, or that a damaged index lost: chunks of nothing but the fill value are looked up in the
/// index. Chunks that hold anything else were found, and cost one look at their values; but where chunks have checksums, which the
/// library leaves out, each is held against its own.
///
/// # Errors
/// A chunk is not there.
pub(super) fn written(path: &Path, name: &str, dataset: &H5Dataset, slab: &Slab<'_>) -> Result<()> {
    if slab.bytes.is_empty() || !matches!(guarded(path, "read", || dataset.storage_layout())?, StorageLayout::Chunked) {
        return Ok(());
    }
    let Some(chunk) = dataset.chunk_dims().filter(|c| c.len() == slab.count.len() && c.iter().all(|&n| n > 0)) else { return Ok(()) };
    let fill = match guarded(path, "read", || dataset.fill_value())? {
        FillValue::UserDefined(value) if value.len() == slab.width => value,
        _ => vec![0; slab.width],
    };
    let checked = guarded(path, "read", || dataset.filters())?.last().is_some_and(|f| f.id == FLETCHER32);
    let first: Vec<usize> = slab.start.iter().zip(&chunk).map(|(s, c)| s / c).collect();
    let end: Vec<usize> = (0..chunk.len()).map(|d| (slab.start[d] + slab.count[d]).div_ceil(chunk[d])).collect();
    let (mut at, mut lost, mut total) = (first.clone(), Vec::new(), 0_usize);
    loop {
        total += 1;
        if checked || holds_only(&fill, slab, &at, &chunk) {
            match stored(path, dataset, &at)? {
                None => lost.push(at.clone()),
                Some(bytes) if checked && !sums_up(&bytes) => {
                    let from: Vec<usize> = at.iter().zip(&chunk).map(|(n, c)| n * c).collect();
                    let message = format!("the checksum of the chunk at {from:?} of the dataset `{name}` does not fit: it is damaged");
                    return Err(Error::format(path, FORMAT, message));
                }
                Some(_) => {}
            }
        }
        // The next chunk, the last axis fastest.
        let Some(axis) = (0..at.len()).rev().find(|&d| at[d] + 1 < end[d]) else { break };
        at[axis] += 1;
        at[axis + 1..].copy_from_slice(&first[axis + 1..]);
    }
    let Some(one) = lost.first() else { return Ok(()) };
    let from: Vec<usize> = one.iter().zip(&chunk).map(|(n, c)| n * c).collect();
    Err(Error::Content {
        path: path.to_owned(),
        message: format!(
            "of the dataset `{name}`, {} of {total} chunks hold no data, the first at {from:?}: they were never written, or the file is damaged; \
             where the fill value is meant, store it (in Python: `d = file[\"{name}\"]; d[...] = d[...]`)",
            lost.len()
        ),
    })
}

/// Returns true if the part of a chunk that lies in the slab holds the fill value alone.
fn holds_only(fill: &[u8], slab: &Slab<'_>, at: &[usize], chunk: &[usize]) -> bool {
    let axes = at.len();
    let range = |d: usize| {
        let low = (at[d] * chunk[d]).max(slab.start[d]) - slab.start[d];
        let high = ((at[d] + 1) * chunk[d]).min(slab.start[d] + slab.count[d]) - slab.start[d];
        low..high
    };
    let ranges: Vec<_> = (0..axes).map(range).collect();
    let mut place: Vec<usize> = ranges.iter().map(|r| r.start).collect();
    let row = ranges[axes - 1].len() * slab.width;
    loop {
        let flat = place.iter().zip(slab.count).fold(0, |flat, (p, n)| flat * n + p) * slab.width;
        if !slab.bytes[flat..flat + row].chunks_exact(slab.width).all(|value| value == fill) {
            return false;
        }
        let Some(axis) = (0..axes - 1).rev().find(|&d| place[d] + 1 < ranges[d].end) else { return true };
        place[axis] += 1;
        for d in axis + 1..axes {
            place[d] = ranges[d].start;
        }
    }
}

/// The bytes of a chunk as they lie in the file; none if the index does not lead to any.
fn stored(path: &Path, dataset: &H5Dataset, at: &[usize]) -> Result<Option<Vec<u8>>> {
    guarded(path, "read", || match dataset.read_chunk_raw_at(at) {
        Ok((bytes, _)) => Ok(Some(bytes).filter(|b| !b.is_empty())),
        Err(Hdf5Error::NotFound(name)) => Err(Hdf5Error::NotFound(name)),
        Err(_) => Ok(None),
    })
}

/// Returns true if the last four bytes of a chunk are the checksum of those before, in either byte order: early versions of HDF5 on
/// little-endian machines wrote the other one.
fn sums_up(bytes: &[u8]) -> bool {
    let Some((data, sum)) = bytes.split_last_chunk::<4>() else { return false };
    let right = fletcher32(data);
    let swapped = (right & 0x00ff_00ff) << 8 | (right & 0xff00_ff00) >> 8;
    [right, swapped].contains(&u32::from_le_bytes(*sum))
}

/// Fletcher's checksum over 16-bit words, high byte first (HDF5 file format specification, filter 3).
fn fletcher32(data: &[u8]) -> u32 {
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    let (mut low, mut high) = (0_u32, 0_u32);
    // This many words do not overflow 32 bits.
    for block in data.chunks(720) {
        for word in block.chunks(2) {
            low += u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0));
            high += low;
        }
        (low, high) = (fold(low), fold(high));
    }
    fold(high) << 16 | fold(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_format() {
        for (data, sum) in [(&b""[..], 0), (b"hi", 0x6869_6869), (b"abc", 0x25c5_c462), (b"hello world", 0xfc27_91ce)] {
            assert_eq!(fletcher32(data), sum);
        }
    }
}
