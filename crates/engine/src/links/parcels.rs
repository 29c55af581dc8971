//! Parcels of device memory for parts in other processes, in which every piece says where it belongs.
//!
//! Where all parts have NCCL and a GPU of their own, pieces go from GPU to GPU, and the host waits for none: only the head of a
//! parcel is a message. Elsewhere all goes through the memory of the hosts, each of which waits until its GPU has written it.

use std::sync::{Arc, Mutex, PoisonError};

use super::slabs::mismatch;
use super::{Links, values};
use crate::cuda::nccl::{self, Communicator, Portion};
use crate::cuda::{Cuda, Event, Memory, Pinned, Stream, library};
use crate::error::Result;
use crate::notice;

/// Numbers of a piece in the head of a parcel: buffer, first byte there, bytes.
const HEAD: usize = 3;
/// Numbers before those of the pieces: the round, and how many pieces there are.
const FRONT: usize = 2;
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
    /// Stream of the rounds on that way.
    beside: Option<Beside>,
    /// Memory that pieces come to first where there is none.
    host: Mutex<Option<Pinned<u8>>>,
}

/// A stream beside the main one, on which parcels go while that one computes.
#[derive(Debug)]
struct Beside {
    stream: Stream,
    /// Mark in the main stream behind what writes the parcels.
    ready: Event,
    /// Mark in this one behind them.
    done: Event,
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
    /// Ways to `parts`, which make theirs at the same time, as all parts do.
    pub(super) fn new(cuda: &Cuda, links: &Links, parts: &[usize]) -> Result<Self> {
        let direct = links.between_gpus(cuda)?;
        if let Some(direct) = &direct {
            direct.connect(parts)?;
        }
        Ok(Self { cuda: cuda.clone(), links: links.clone(), direct, beside: None, host: Mutex::new(None) })
    }

    /// Ways likewise, on which parcels also go in rounds: with [`announce`](Self::announce) and [`carry`](Self::carry).
    pub(super) fn in_rounds(cuda: &Cuda, links: &Links, parts: &[usize]) -> Result<Self> {
        let mut made = Self::new(cuda, links, parts)?;
        if made.direct.is_some() {
            let [ready, done] = [cuda.event_without_time()?, cuda.event_without_time()?];
            made.beside = Some(Beside { stream: cuda.side_stream()?, ready, done });
        }
        Ok(made)
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
    pub(super) fn exchange<'a>(&self, parcels: &'a [(usize, Vec<Piece>)], buffer: impl Fn(usize) -> Option<&'a Memory>) -> Result<()> {
        let from: Vec<usize> = parcels.iter().map(|(part, _)| *part).collect();
        let Some(direct) = &self.direct else {
            self.send(0, parcels)?;
            return from.iter().try_for_each(|part| self.receive(0, *part, &buffer));
        };
        self.tell(0, parcels)?;
        direct.exchange(&portions(parcels), &self.told(0, &from, buffer)?)
    }

    /// Tells each of these parts what goes to it in this round, of what the stream has written by now: an empty parcel too. It goes
    /// at once through the hosts, and with [`Self::carry`] from GPU to GPU.
    ///
    /// # Errors
    /// Another part has failed.
    pub(super) fn announce(&self, round: usize, parcels: &[(usize, Vec<Piece>)]) -> Result<()> {
        let Some(Beside { ready, .. }) = &self.beside else { return self.send(round, parcels) };
        self.cuda.record(ready)?;
        self.tell(round, parcels)
    }

    /// Has the parcels go that were announced in this round, and puts the pieces of those of the parts `from` into the buffers of
    /// these numbers; the stream waits for both. A parcel comes in the round in which it goes: so nobody waits for a part that
    /// itself waits.
    ///
    /// # Errors
    /// Another part has failed, or is in another round.
    pub(super) fn carry<'a>(
        &self,
        round: usize,
        parcels: &'a [(usize, Vec<Piece>)],
        from: &[usize],
        buffer: impl Fn(usize) -> Option<&'a Memory>,
    ) -> Result<()> {
        let (Some(direct), Some(Beside { stream, ready, done })) = (&self.direct, &self.beside) else {
            return from.iter().try_for_each(|part| self.receive(round, *part, &buffer));
        };
        let (out, back) = (portions(parcels), self.told(round, from, buffer)?);
        if out.is_empty() && back.is_empty() {
            return Ok(());
        }
        stream.wait_for(ready)?;
        direct.exchange_beside(stream, &out, &back)?;
        stream.record(done)?;
        self.cuda.wait_for(done)
    }

    /// Tells each of these parts the pieces that come to it from GPU to GPU.
    fn tell(&self, round: usize, parcels: &[(usize, Vec<Piece>)]) -> Result<()> {
        parcels.iter().try_for_each(|(part, pieces)| self.links.send(*part, head(round, pieces)))
    }

    /// Places of all that comes from these parts, as they tell.
    fn told<'a>(&self, round: usize, from: &[usize], buffer: impl Fn(usize) -> Option<&'a Memory>) -> Result<Vec<Portion<'a>>> {
        let mut back = Vec::new();
        for part in from {
            let message = self.links.receive(*part)?;
            let (pieces, data) = read(round, &message).ok_or_else(|| mismatch(*part))?;
            for [number, at, bytes] in pieces {
                let memory = buffer(number).filter(|memory| data.is_empty() && memory.has(at, bytes)).ok_or_else(|| mismatch(*part))?;
                back.push(Portion { part: *part, memory, at, bytes });
            }
        }
        Ok(back)
    }

    /// Sends a parcel to each of these parts through the hosts.
    fn send(&self, round: usize, parcels: &[(usize, Vec<Piece>)]) -> Result<()> {
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
            let mut message = head(round, pieces);
            message.extend_from_slice(data);
            self.links.send(*part, message)?;
        }
        Ok(())
    }

    /// Waits for the next parcel of another part through the hosts, and puts its pieces into the buffers of these numbers.
    fn receive<'a>(&self, round: usize, part: usize, buffer: impl Fn(usize) -> Option<&'a Memory>) -> Result<()> {
        let message = self.links.receive(part)?;
        let wrong = || mismatch(part);
        let (pieces, mut rest) = read(round, &message).ok_or_else(wrong)?;
        for [number, to, bytes] in pieces {
            let (data, behind) = rest.split_at_checked(bytes).ok_or_else(wrong)?;
            rest = behind;
            let memory = buffer(number).filter(|memory| memory.has(to, bytes)).ok_or_else(wrong)?;
            self.cuda.host_to_memory(data, memory, to)?;
        }
        if rest.is_empty() { Ok(()) } else { Err(mismatch(part)) }
    }
}

/// Bytes of these parcels, by where they go.
fn portions(parcels: &[(usize, Vec<Piece>)]) -> Vec<Portion<'_>> {
    let pieces = parcels.iter().flat_map(|(part, pieces)| pieces.iter().map(|piece| (*part, piece)));
    pieces.map(|(part, Piece { memory, at, bytes, .. })| Portion { part, memory, at: *at, bytes: *bytes }).collect()
}

/// Head of a parcel: the round, the number of pieces, and of each the buffer, the first byte there, and the bytes.
fn head(round: usize, pieces: &[Piece]) -> Vec<u8> {
    let numbers = pieces.iter().flat_map(|piece| [piece.buffer, piece.to, piece.bytes]);
    [round, pieces.len()].into_iter().chain(numbers).flat_map(|number| (number as u64).to_le_bytes()).collect()
}

/// The pieces in the head of a message of this round, and what is behind it.
fn read(round: usize, message: &[u8]) -> Option<(Vec<[usize; HEAD]>, &[u8])> {
    let (front, rest) = message.split_at_checked(FRONT * NUMBER)?;
    let front = values::<u64>(front);
    let (head, data) = rest.split_at_checked((front[1] as usize).checked_mul(HEAD * NUMBER)?).filter(|_| front[0] == round as u64)?;
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
        let whole = message(&[4, 2, 7, 16, 3, 1, 0, 2], b"abcde");
        assert_eq!(read(4, &whole), Some((vec![[7, 16, 3], [1, 0, 2]], &b"abcde"[..])));
        assert_eq!(read(5, &whole), None, "of another round");
        assert_eq!(read(3, &head(3, &[])), Some((Vec::new(), &[][..])));
        for wrong in [&whole[..15], &whole[..63], &message(&[4, u64::MAX, 1, 2, 3], b""), &message(&[4, u64::MAX / 24], b"")] {
            assert_eq!(read(4, wrong), None);
        }
    }
}
