//! Writing of checkpoints, by one part or by all parts of a run side by side.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{BLOCK, Element, FORMAT, Hash, MAGIC, NAME_LIMIT, SectionType, TRAILER, VERSION, seal};
use crate::error::{Error, Result};
use crate::files::Pending;
use crate::links::{Links, SharedFile, values};

/// Writes named sections into a new checkpoint; [`Writer::finish`] gives the file its name.
///
/// In a run in parts all call the same methods in the same order. Sections are those of the first part, whatever the others give,
/// but for [`Writer::joined`]. A write that fails is remembered, and ends in [`Writer::finish`]: the state is gone through to its
/// end all the same, as other parts of the run do at the same time.
#[derive(Debug)]
pub struct Writer {
    links: Links,
    path: PathBuf,
    /// The file under its temporary name, at the first part.
    pending: Option<Pending>,
    /// Handle of it, at every part.
    file: File,
    failed: Option<Error>,
    names: BTreeSet<String>,
    /// Length of the body so far, up to date at the first part and within [`Writer::joined`].
    at: u64,
    /// Bytes of the block that is not full yet, at the first part.
    open: Vec<u8>,
    /// Numbers and hashes of the blocks that this part has written.
    hashes: Vec<(u64, Hash)>,
}

/// Bytes hashed and written at a time: stays in the cache between the two.
const CHUNK: usize = 1 << 17;

/// Values of a part within a section, in bytes.
#[derive(Debug, Clone)]
struct Piece {
    range: Range<u64>,
    part: usize,
}

impl Writer {
    /// Begins the checkpoint `path` of the solver `solver`. What stood there stays until [`Writer::finish`].
    pub fn create(path: impl AsRef<Path>, solver: &str) -> Result<Self> {
        Self::of_parts(&Links::default(), path, solver)
    }

    /// Begins a checkpoint of a run in parts: the first one creates the file, and the others open it.
    ///
    /// # Errors
    /// It is the same at all parts: one cannot write, or does not see the file of the first part.
    pub fn of_parts(links: &Links, path: impl AsRef<Path>, solver: &str) -> Result<Self> {
        let path = path.as_ref();
        let pending = links.follow_first(links.is_first().then(|| Pending::create(path)).transpose())?;
        let begun = links.first_says(pending.as_ref().map(|pending| SharedFile::new(links, path, pending.temporary())))?;
        let nameless = || Error::file("open", path, io::Error::other("the first part has begun no file"));
        let file = links.together(begun.ok_or_else(nameless).and_then(|begun| begun.open()))?;
        let (links, path) = (links.clone(), path.to_owned());
        let (names, hashes) = (BTreeSet::new(), Vec::new());
        let mut writer = Self { links, path, pending, file, failed: None, names, at: 0, open: Vec::new(), hashes };
        writer.put(MAGIC);
        writer.put(&VERSION.to_le_bytes());
        writer.put(&(solver.len() as u32).to_le_bytes());
        writer.put(solver.as_bytes());
        Ok(writer)
    }

    /// Takes more bytes of the body, at the first part.
    fn put(&mut self, mut bytes: &[u8]) {
        let mut number = self.at / BLOCK;
        self.at += bytes.len() as u64;
        if !self.links.is_first() {
            return;
        }
        while !bytes.is_empty() {
            if self.open.is_empty()
                && let Some((block, rest)) = bytes.split_at_checked(BLOCK as usize)
            {
                self.write_block(number, block);
                (number, bytes) = (number + 1, rest);
                continue;
            }
            let (more, rest) = bytes.split_at(bytes.len().min(BLOCK as usize - self.open.len()));
            self.open.extend_from_slice(more);
            bytes = rest;
            if self.open.len() == BLOCK as usize {
                let block = std::mem::take(&mut self.open);
                self.write_block(number, &block);
                self.open = block;
                self.open.clear();
                number += 1;
            }
        }
    }

    /// Writes a block to its place.
    fn write_block(&mut self, number: u64, block: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        let (mut hasher, mut at) = (blake3::Hasher::new(), number * BLOCK);
        for chunk in block.chunks(CHUNK) {
            hasher.update(chunk);
            if let Err(e) = self.file.write_all_at(chunk, at) {
                self.failed = Some(Error::file("write", &self.path, e));
                return;
            }
            at += chunk.len() as u64;
        }
        self.hashes.push((number, hasher.finalize().into()));
    }

    /// Makes all writes of this part fail from now on.
    #[cfg(test)]
    pub(super) fn deny_writes(&mut self) {
        self.file = File::open(&self.path).unwrap();
    }

    /// Begins a section.
    fn head(&mut self, kind: SectionType, name: &str, length: u64) -> Result<()> {
        if name.is_empty() || name.len() > NAME_LIMIT || !self.names.insert(name.to_owned()) {
            return Err(Error::format(&self.path, FORMAT, format!("section name `{name}` is empty, too long or taken")));
        }
        self.put(&[kind as u8]);
        self.put(&(name.len() as u16).to_le_bytes());
        self.put(name.as_bytes());
        self.put(&length.to_le_bytes());
        Ok(())
    }

    fn section(&mut self, kind: SectionType, name: &str, payload: &[u8]) -> Result<()> {
        self.head(kind, name, payload.len() as u64)?;
        self.put(payload);
        Ok(())
    }

    /// Writes a count.
    pub fn u64(&mut self, name: &str, value: u64) -> Result<()> {
        self.section(SectionType::U64, name, &value.to_le_bytes())
    }

    /// Writes a number, bit by bit.
    pub fn f64(&mut self, name: &str, value: f64) -> Result<()> {
        self.section(SectionType::F64, name, &value.to_le_bytes())
    }

    /// Writes bytes as they are.
    pub fn bytes(&mut self, name: &str, values: &[u8]) -> Result<()> {
        self.section(SectionType::Bytes, name, values)
    }

    /// Writes an array in single precision.
    pub fn f32s(&mut self, name: &str, values: &[f32]) -> Result<()> {
        self.section(SectionType::F32s, name, bytemuck::cast_slice(values))
    }

    /// Writes an array in double precision.
    pub fn f64s(&mut self, name: &str, values: &[f64]) -> Result<()> {
        self.section(SectionType::F64s, name, bytemuck::cast_slice(values))
    }

    /// Writes anything small that serde knows. JSON turns values that are not finite into null: arrays and numbers that
    /// may hold them have their own kinds.
    pub fn json<T: Serialize>(&mut self, name: &str, value: &T) -> Result<()> {
        let text = serde_json::to_vec(value)
            .map_err(|e| Error::format(&self.path, FORMAT, format!("section `{name}` cannot be written as JSON: {e}")))?;
        self.section(SectionType::Json, name, &text)
    }

    /// Writes an array of which each part of the run has some values: slices, each with the number of its first value. All of them
    /// together are the array. A part writes whole blocks, of which others send it what they have.
    pub fn joined<V: Element>(&mut self, name: &str, own: &[(usize, &[V])]) -> Result<()> {
        let own: Vec<(u64, &[u8])> = own.iter().map(|(first, v)| ((first * size_of::<V>()) as u64, bytemuck::cast_slice(v))).collect();
        let own: Vec<(u64, &[u8])> = own.into_iter().filter(|(_, bytes)| !bytes.is_empty()).collect();
        let mut message = vec![self.at];
        message.extend(own.iter().flat_map(|(first, bytes)| [*first, first + bytes.len() as u64]));
        let all: Vec<Vec<u64>> = self.links.all_gather(bytemuck::cast_slice(&message).to_vec())?.iter().map(|m| values(m)).collect();
        self.at = all[0][0];
        let ranges = |(part, list): (usize, &Vec<u64>)| -> Vec<Piece> {
            list[1..].as_chunks::<2>().0.iter().map(|[begin, end]| Piece { range: *begin..*end, part }).collect()
        };
        let mut pieces: Vec<Piece> = all.iter().enumerate().flat_map(ranges).collect();
        pieces.sort_unstable_by_key(|piece| piece.range.start);
        let mut length = 0;
        for piece in &pieces {
            if piece.range.start != length {
                return Err(Error::format(&self.path, FORMAT, format!("pieces of section `{name}` do not fit together at byte {length}")));
            }
            length = piece.range.end;
        }
        self.head(V::TYPE, name, length)?;
        if self.links.is_alone() {
            let mut own = own;
            own.sort_unstable_by_key(|(first, _)| *first);
            for (_, bytes) in own {
                self.put(bytes);
            }
            return Ok(());
        }
        self.share(&pieces, &own, length)
    }

    /// Writes the blocks of a section of `length` bytes that begins here. Bytes that the first part has in an open block are the
    /// first piece, and those of a last block that is not full go there. Blocks are gone through in their order by all, so that a
    /// part that waits for others is not waited for by them.
    fn share(&mut self, pieces: &[Piece], own: &[(u64, &[u8])], length: u64) -> Result<()> {
        let (begin, rank) = (self.at, self.links.rank());
        let end = begin + length;
        self.at = end;
        let held = begin / BLOCK * BLOCK..begin;
        let open = std::iter::once(Piece { range: held.clone(), part: 0 }).filter(|piece| !piece.range.is_empty());
        let placed = pieces.iter().map(|p| Piece { range: begin + p.range.start..begin + p.range.end, part: p.part });
        let pieces: Vec<Piece> = open.chain(placed).collect();
        let open = std::mem::take(&mut self.open);
        let mut own: Vec<(u64, &[u8])> = own.iter().map(|(first, bytes)| (begin + first, *bytes)).collect();
        if !open.is_empty() {
            own.push((held.start, &open));
        }
        own.sort_unstable_by_key(|(first, _)| *first);
        let mut next = 0;
        for number in held.start / BLOCK..end.div_ceil(BLOCK) {
            let block = number * BLOCK..((number + 1) * BLOCK).min(end);
            let whole = block.end - block.start == BLOCK;
            while pieces[next].range.end <= block.start {
                next += 1;
            }
            let inside: Vec<Piece> = pieces[next..].iter().take_while(|p| p.range.start < block.end).map(|p| p.within(&block)).collect();
            let mut parts: Vec<usize> = inside.iter().map(|piece| piece.part).collect();
            parts.sort_unstable();
            parts.dedup();
            // In turns: each writes about as much as it has.
            let owner = if whole { parts[number as usize % parts.len()] } else { 0 };
            if rank != owner {
                if parts.contains(&rank) {
                    let mine = inside.iter().filter(|piece| piece.part == rank).map(|piece| slice_of(&own, &piece.range));
                    self.links.send(owner, mine.collect::<Vec<_>>().concat())?;
                }
                continue;
            }
            if let [piece] = &inside[..]
                && whole
                && piece.part == rank
            {
                self.write_block(number, slice_of(&own, &piece.range));
                continue;
            }
            let others: Vec<usize> = parts.into_iter().filter(|part| *part != rank).collect();
            let messages = others.iter().map(|part| self.links.receive(*part)).collect::<Result<Vec<_>>>()?;
            let mut rest: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
            let mut joined = Vec::with_capacity(BLOCK as usize);
            for piece in &inside {
                match others.iter().position(|part| *part == piece.part) {
                    None => joined.extend_from_slice(slice_of(&own, &piece.range)),
                    Some(from) => {
                        let (bytes, behind) = rest[from].split_at((piece.range.end - piece.range.start) as usize);
                        joined.extend_from_slice(bytes);
                        rest[from] = behind;
                    }
                }
            }
            if whole {
                self.write_block(number, &joined);
            } else {
                self.open = joined;
            }
        }
        Ok(())
    }

    /// Ends the list, adds the checksums and gives the file its name once all parts have written theirs. Returns its size in bytes.
    ///
    /// # Errors
    /// One part could not write: all have an error, and what stood there stays.
    pub fn finish(mut self) -> Result<u64> {
        self.put(&[0]);
        if self.links.is_first() {
            let (number, block) = ((self.at - 1) / BLOCK, std::mem::take(&mut self.open));
            if !block.is_empty() {
                self.write_block(number, &block);
            }
        } else if let Err(e) = self.file.sync_all() {
            self.failed.get_or_insert(Error::file("write", &self.path, e));
        }
        let written = self.failed.take().map_or(Ok(()), Err);
        self.links.together(written)?;
        let own: Vec<u8> = self.hashes.iter().flat_map(|(number, hash)| [&number.to_le_bytes()[..], hash].concat()).collect();
        let all = self.links.gather(own)?;
        let finished = if self.links.is_first() { self.close(&all) } else { Ok(0) };
        let size = self.links.together(finished)?;
        self.links.first_says(size)
    }

    /// Adds the checksums of all blocks, and gives the file its name.
    fn close(&mut self, all: &[Vec<u8>]) -> Result<u64> {
        let blocks = self.at.div_ceil(BLOCK);
        let mut hashes: Vec<Option<Hash>> = vec![None; blocks as usize];
        for entry in all.iter().flat_map(|part| part.as_chunks::<{ 8 + size_of::<Hash>() }>().0) {
            let (number, hash) = entry.split_at(8);
            let number = u64::from_le_bytes(std::array::from_fn(|i| number[i]));
            hashes[number as usize] = Some(std::array::from_fn(|i| hash[i]));
        }
        let Some(hashes) = hashes.into_iter().collect::<Option<Vec<Hash>>>() else {
            return Err(Error::format(&self.path, FORMAT, "a block was written by no part"));
        };
        let mut end = hashes.as_flattened().to_vec();
        end.extend(self.at.to_le_bytes());
        end.extend(seal(&hashes, self.at));
        self.file.write_all_at(&end, self.at).and_then(|()| self.file.sync_all()).map_err(|e| Error::file("write", &self.path, e))?;
        self.pending.take().map_or(Ok(()), Pending::commit)?;
        Ok(self.at + size_of_val(&hashes[..]) as u64 + TRAILER)
    }
}

impl Piece {
    /// The values within a block.
    fn within(&self, block: &Range<u64>) -> Self {
        Self { range: self.range.start.max(block.start)..self.range.end.min(block.end), part: self.part }
    }
}

/// Bytes of a range that lies in one of some slices, which are in order, each with its place.
fn slice_of<'a>(own: &[(u64, &'a [u8])], range: &Range<u64>) -> &'a [u8] {
    let (first, bytes) = own[own.partition_point(|(first, _)| *first <= range.start) - 1];
    &bytes[(range.start - first) as usize..(range.end - first) as usize]
}
