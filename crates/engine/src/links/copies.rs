//! Buffers of device memory that several parts have, and copies from one part's into the others'.
//!
//! As with [`super::Slabs`] the host waits for no GPU within a process. Slabs have places of their own; here nothing is copied
//! twice.

use std::any::Any;

use super::Links;
use super::meeting::{Mark, Meeting};
use super::parcels::{Parcels, Piece};
use super::slabs::mismatch;
use crate::cuda::{Buffer, Cuda, Memory};
use crate::error::Result;

/// Copy of bytes of a buffer to another part's buffer of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyTo {
    /// The other part.
    pub part: usize,
    /// Number of the buffer.
    pub buffer: usize,
    /// First byte here.
    pub from: usize,
    /// First byte there.
    pub to: usize,
    /// Bytes.
    pub bytes: usize,
}

/// Buffers of one part, and its way to those of the others.
#[derive(Debug)]
pub struct Copies {
    // Dropped before the memory that its stream copies to.
    way: Way,
    own: Vec<Memory>,
}

/// Way to other parts.
#[derive(Debug)]
enum Way {
    /// Within a process: to their buffers.
    Near { meeting: Meeting, theirs: Vec<(usize, Vec<Memory>)> },
    /// To other processes, of which these are the numbers.
    Far { parcels: Parcels, others: Vec<usize> },
}

impl Copies {
    /// Copies among `parts` and this one, which all call this alike, of `buffers`, which all have in this order.
    pub fn new(cuda: &Cuda, links: &Links, parts: &[usize], buffers: &[&Buffer<u8>]) -> Result<Self> {
        let own: Vec<Memory> = buffers.iter().map(|buffer| buffer.memory().clone()).collect();
        let others = || parts.iter().copied().filter(|part| *part != links.rank());
        if !links.shares_memory() {
            let others: Vec<usize> = others().collect();
            return Ok(Self { way: Way::Far { parcels: Parcels::new(cuda, links, &others)?, others }, own });
        }
        let mut meeting = Meeting::new(cuda, links)?;
        // Zeros are there before anybody writes.
        cuda.synchronize()?;
        for part in others() {
            let card: Box<dyn Any + Send> = Box::new((meeting.mark(), own.clone()));
            links.hand(part, card)?;
        }
        let mut theirs = Vec::new();
        for part in others() {
            let card = links.take(part)?.downcast::<(Mark, Vec<Memory>)>().map_err(|_| mismatch(part))?;
            let (mark, memory) = *card;
            if memory.len() != own.len() {
                return Err(mismatch(part));
            }
            meeting.join(part, mark)?;
            theirs.push((part, memory));
        }
        Ok(Self { way: Way::Near { meeting, theirs }, own })
    }

    /// Makes `copies`, as the stream has written their sources by now; what is put on the stream afterwards finds those of the
    /// others to here. All parts call this alike, each with its own copies. Does not wait for the device, unless others are
    /// processes.
    ///
    /// # Errors
    /// Another part has failed.
    ///
    /// # Panics
    /// Where bytes do not lie in a buffer.
    pub fn exchange(&self, copies: &[CopyTo]) -> Result<()> {
        match &self.way {
            Way::Near { meeting, theirs } => meeting.hold(|cuda| {
                copies.iter().try_for_each(|copy| {
                    let (_, theirs) = theirs.iter().find(|(part, _)| *part == copy.part).ok_or_else(|| mismatch(copy.part))?;
                    cuda.copy_memory(&self.own[copy.buffer], copy.from, &theirs[copy.buffer], copy.to, copy.bytes)
                })
            }),
            Way::Far { parcels, others } => {
                if let Some(copy) = copies.iter().find(|copy| !others.contains(&copy.part)) {
                    return Err(mismatch(copy.part));
                }
                let piece = |copy: &CopyTo| {
                    let CopyTo { buffer, from, to, bytes, .. } = *copy;
                    Piece { memory: self.own[buffer].clone(), at: from, bytes, buffer, to }
                };
                let to = |part: &usize| (*part, copies.iter().filter(|copy| copy.part == *part).map(piece).collect());
                parcels.exchange(&others.iter().map(to).collect::<Vec<_>>(), |buffer| self.own.get(buffer))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::inside;
    use crate::testing;

    /// Copies among three parts on one GPU, of one buffer of two, to places of their own.
    #[test]
    #[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
    fn copies_come_to_the_buffers_of_the_same_number() {
        if testing::gpu().is_none() {
            return;
        }
        copies_come(inside::Memory::Shared);
        copies_come(inside::Memory::Apart);
    }

    fn copies_come(memory: inside::Memory) {
        let (parts, bytes) = (3, 4096);
        let found = inside::run_on(parts, memory, |links| {
            let cuda = Cuda::open(0)?;
            let (own, pool) = (links.rank(), cuda.pool());
            let [untouched, mut buffer] = [pool.alloc_zeros::<u8>(8, "test")?, pool.alloc_zeros::<u8>(parts * bytes, "test")?];
            let copies = Copies::new(&cuda, &links, &[0, 1, 2], &[&untouched, &buffer])?;
            let to = |part| CopyTo { part, buffer: 1, from: own * bytes, to: own * bytes + 1, bytes: bytes - 1 };
            let mut seen = Vec::new();
            for turn in 0..25_u8 {
                cuda.upload_at(&mut buffer, own * bytes, &vec![100 * own as u8 + turn; bytes])?;
                copies.exchange(&(0..parts).filter(|part| *part != own).map(to).collect::<Vec<_>>())?;
                let all = cuda.download(&buffer)?;
                seen.push([0, 1, 2].map(|part| (all[part * bytes], all[part * bytes + 1], all[(part + 1) * bytes - 1])));
            }
            Ok((seen, cuda.download(&untouched)?))
        });
        for (own, (seen, untouched)) in found.unwrap().into_iter().enumerate() {
            assert_eq!(untouched, [0; 8]);
            for (turn, all) in seen.into_iter().enumerate() {
                let value = |part: usize| 100 * part as u8 + turn as u8;
                let expected = [0, 1, 2].map(|part| (if part == own { value(part) } else { 0 }, value(part), value(part)));
                assert_eq!(all, expected, "part {own}, turn {turn}, {memory:?}");
            }
        }
    }
}
