//! Parcels of device memory for parts in other processes, in which every piece says where it belongs.
//!
//! Where parts exchange and all have NCCL and a GPU of their own, pieces go from GPU to GPU, and the host waits for none. All
//! else goes as messages through the memory of the hosts, for which each waits until its GPU has written what goes.

use std::sync::{Arc, Mutex, PoisonError};

use super::slabs::mismatch;
use super::{Links, values};
use crate::cuda::nccl::{self, Communicator, Portion};
use crate::cuda::{Cuda, Memory, Pinned, library};
use crate::error::Result;
use crate::notice;

/// Numbers of a piece in the head of a parcel: buffer, first byte there, bytes.
const HEAD: usize = 3;
/// Bytes of a number.
const NUMBER: usize = size_of::<u64>();

/// Bytes of a buffer here, and the buffer and first byte there to which they go.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) memory: Memory,
    pub(super) at: usize,
    pub(super) bytes: usize,
    pub(super) buffer: usize,
    pub(super) to: usize,
}

/// Way of the parcels of a part.
#[derive(Debug)]
pub(super) struct Parcels {
    cuda: Cuda,
    links: Links,
    /// Way from GPU to GPU, where there is one.
    direct: Option<Arc<Communicator>>,
    /// Memory that pieces come to first where there is none.
    host: Mutex<Option<Pinned<u8>>>,
}

/// Joins the GPUs of all parts, which call this at the same time; says why not where they stay apart.
pub(super) fn join(cuda: &Cuda, links: &Links) -> Result<Option<Communicator>> {
    let version = library::nccl().1.filter(|_| nccl::usable());
    let all: Vec<(Option<String>, [u8; 16])> = links.all_say(&(version.clone(), cuda.unique_id()?))?;
    let mut gpus: Vec<_> = all.iter().map(|(_, gpu)| gpu).collect();
    gpus.sort_unstable();
    let shared = gpus.windows(2).any(|pair| pair[0] == pair[1]);
    let why = match &version {
        _ if shared => "two of them are on one GPU",
        _ if all.iter().any(|(other, _)| *other != all[0].0) => "not all have the same version of NCCL",
        None if library::nccl_is_off() => "`ZELLIGE_NCCL` is `off`",
        None => "NCCL is not used: `zellige devices` says why",
        Some(_) => "",
    };
    if !why.is_empty() {
        if links.is_first() {
            notice::tell(&format!("parts exchange through the memory of their hosts: {why}"));
        }
        return Ok(None);
    }
    let id = if links.is_first() { nccl::identifier(cuda) } else { Ok(Vec::new()) };
    let id = links.follow_first(id)?;
    let id = links.broadcast(id)?;
    Communicator::new(cuda, &id, links.rank(), links.size()).map(Some)
}

impl Parcels {
    /// Ways to all other parts, which make theirs at the same time.
    pub(super) fn new(cuda: &Cuda, links: &Links) -> Result<Self> {
        Ok(Self { cuda: cuda.clone(), links: links.clone(), direct: links.between_gpus(cuda)?, host: Mutex::new(None) })
    }

    /// Way from GPU to GPU, where there is one: for pieces that both ends know.
    pub(super) fn direct(&self) -> Option<&Communicator> {
        self.direct.as_deref()
    }

    /// Sends a parcel to each of these parts, of what the stream has written by now, and puts the pieces of theirs into the buffers
    /// of these numbers, behind what is on the stream. All of them call this alike.
    ///
    /// # Errors
    /// Another part has failed.
    pub(super) fn exchange<'a>(&self, parcels: &[(usize, Vec<Piece>)], buffer: impl Fn(usize) -> Option<&'a Memory>) -> Result<()> {
        let Some(direct) = &self.direct else {
            self.send(parcels)?;
            return parcels.iter().try_for_each(|(part, _)| self.receive(*part, &buffer));
        };
        for (part, pieces) in parcels {
            self.links.send(*part, head(pieces))?;
        }
        let (mut out, mut back) = (Vec::new(), Vec::new());
        for (part, pieces) in parcels {
            out.extend(pieces.iter().map(|Piece { memory, at, bytes, .. }| Portion { part: *part, memory, at: *at, bytes: *bytes }));
            let message = self.links.receive(*part)?;
            let (pieces, data) = read(&message).ok_or_else(|| mismatch(*part))?;
            for [number, at, bytes] in pieces {
                let memory = buffer(number).filter(|memory| data.is_empty() && memory.has(at, bytes)).ok_or_else(|| mismatch(*part))?;
                back.push(Portion { part: *part, memory, at, bytes });
            }
        }
        direct.exchange(&out, &back)
    }

    /// Sends a parcel to each of these parts, of what the stream has written by now: an empty one too.
    ///
    /// # Errors
    /// Another part has failed.
    pub(super) fn send(&self, parcels: &[(usize, Vec<Piece>)]) -> Result<()> {
        let all: usize = parcels.iter().flat_map(|(_, pieces)| pieces).map(|piece| piece.bytes).sum();
        let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        let host: &mut [u8] = match &mut *host {
            Some(host) if host.len() >= all => host,
            host => host.insert(self.cuda.pinned(all.next_power_of_two(), "parcels between parts")?),
        };
        if all > 0 {
            let mut room = &mut *host;
            for piece in parcels.iter().flat_map(|(_, pieces)| pieces) {
                let (to, rest) = room.split_at_mut(piece.bytes);
                // SAFETY: the memory is kept and left alone until the stream was waited for, below or by who drops it.
                unsafe { self.cuda.memory_to_host(&piece.memory, piece.at, to)? };
                room = rest;
            }
            self.cuda.synchronize()?;
        }
        let mut rest = &*host;
        for (part, pieces) in parcels {
            let bytes: usize = pieces.iter().map(|piece| piece.bytes).sum();
            let (data, behind) = rest.split_at(bytes);
            rest = behind;
            let mut message = head(pieces);
            message.extend_from_slice(data);
            self.links.send(*part, message)?;
        }
        Ok(())
    }

    /// Waits for the next parcel of another part, and puts its pieces into the buffers of these numbers, behind what is on the
    /// stream.
    ///
    /// # Errors
    /// Another part has failed.
    pub(super) fn receive<'a>(&self, part: usize, buffer: impl Fn(usize) -> Option<&'a Memory>) -> Result<()> {
        let message = self.links.receive(part)?;
        let wrong = || mismatch(part);
        let (pieces, mut rest) = read(&message).ok_or_else(wrong)?;
        for [number, to, bytes] in pieces {
            let (data, behind) = rest.split_at_checked(bytes).ok_or_else(wrong)?;
            rest = behind;
            let memory = buffer(number).filter(|memory| memory.has(to, bytes)).ok_or_else(wrong)?;
            self.cuda.host_to_memory(data, memory, to)?;
        }
        if rest.is_empty() { Ok(()) } else { Err(mismatch(part)) }
    }
}

/// Head of a parcel: the number of pieces, and of each the buffer, the first byte there, and the bytes.
fn head(pieces: &[Piece]) -> Vec<u8> {
    let numbers = pieces.iter().flat_map(|piece| [piece.buffer, piece.to, piece.bytes]);
    std::iter::once(pieces.len()).chain(numbers).flat_map(|number| (number as u64).to_le_bytes()).collect()
}

/// The pieces in the head of a message, and what is behind it.
fn read(message: &[u8]) -> Option<(Vec<[usize; HEAD]>, &[u8])> {
    let (count, rest) = message.split_at_checked(NUMBER)?;
    let (head, data) = rest.split_at_checked((values::<u64>(count)[0] as usize).checked_mul(HEAD * NUMBER)?)?;
    Some((values::<[u64; HEAD]>(head).into_iter().map(|piece| piece.map(|number| number as usize)).collect(), data))
}

impl Drop for Parcels {
    fn drop(&mut self) {
        // Copies to the host memory, which goes next, where one of them failed.
        let _ = self.cuda.synchronize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parcels_that_say_too_much_are_refused() {
        let message = |numbers: &[u64], data: &[u8]| [bytemuck::cast_slice(numbers), data].concat();
        let whole = message(&[2, 7, 16, 3, 1, 0, 2], b"abcde");
        assert_eq!(read(&whole), Some((vec![[7, 16, 3], [1, 0, 2]], &b"abcde"[..])));
        assert_eq!(read(&head(&[])), Some((Vec::new(), &[][..])));
        for wrong in [&whole[..7], &whole[..55], &message(&[u64::MAX, 1, 2, 3], b""), &message(&[u64::MAX / 24], b"")] {
            assert_eq!(read(wrong), None);
        }
    }
}
