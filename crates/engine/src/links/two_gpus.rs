//! Tests of exchange by NCCL: two threads, each with a GPU, that share no memory. Streams are busy, and the host waits for none.

use std::sync::Arc;

use super::*;
use crate::cuda::Buffer;
use crate::testing;

/// Bytes of what goes: nothing, one, some, an odd number, and more than any buffer of NCCL holds.
const SIZES: [usize; 5] = [0, 1, 4096, (1 << 20) + 3, 64 << 20];
const MOST: usize = SIZES[4];
const TURNS: usize = 200;

/// Does `work` on both GPUs; says so where there are none, or no NCCL.
fn on_two_gpus(work: impl Fn(&Cuda, &Links) -> Result<()> + Sync) {
    if testing::gpu().is_none() {
        return;
    }
    if Cuda::count().unwrap() < 2 {
        println!("skipped: one GPU");
        return;
    }
    if !crate::cuda::nccl::usable() {
        println!("skipped: NCCL is not there");
        return;
    }
    let done = inside::run_on(2, inside::Memory::Apart, |links| {
        let cuda = Cuda::open(links.rank())?;
        assert!(links.between_gpus(&cuda)?.is_some());
        work(&cuda, &links)?;
        // Nobody's memory goes while another one sends.
        cuda.synchronize()?;
        links.all_say(&()).map(drop)
    });
    done.unwrap();
}

/// The byte that a part sends in a turn.
fn stamp(part: usize, turn: usize, k: usize) -> u8 {
    (1 + 7 * turn + 3 * k + 101 * part) as u8
}

/// Bytes that a part sends, on its GPU, and work that keeps the stream busy.
struct Stamps {
    bytes: Buffer<u8>,
    idle: [Buffer<u8>; 2],
}

impl Stamps {
    /// `each` of a turn.
    fn new(cuda: &Cuda, part: usize, turns: usize, each: usize) -> Result<Self> {
        let bytes: Vec<u8> = (0..turns * each).map(|k| stamp(part, k / each, k % each)).collect();
        let idle = || cuda.alloc_zeros::<u8>(MOST, "test");
        Ok(Self { bytes: cuda.buffer_from(&bytes, "test")?, idle: [idle()?, idle()?] })
    }

    /// Writes number `k` at both ends of `n` bytes at `at`, late: who does not wait for the stream sends what was there before.
    fn write(&mut self, cuda: &Cuda, k: usize, to: &Buffer<u8>, at: usize, n: usize) -> Result<()> {
        let [from, busy] = &mut self.idle;
        for _ in 0..4 {
            cuda.copy(from, 0, busy, 0, MOST)?;
        }
        if n > 0 {
            cuda.copy_to_peer(&self.bytes, k, to, at, 1)?;
            cuda.copy_to_peer(&self.bytes, k, to, at + n - 1, 1)?;
        }
        Ok(())
    }
}

/// Keeps the bytes at both ends of `n` bytes at `at` in place `k` of `kept`, without a wait of the host.
fn keep(cuda: &Cuda, from: &Buffer<u8>, at: usize, n: usize, kept: &mut Buffer<u8>, k: usize) -> Result<()> {
    if n > 0 {
        cuda.copy(from, at, kept, 2 * k, 1)?;
        cuda.copy(from, at + n - 1, kept, 2 * k + 1, 1)?;
    }
    Ok(())
}

/// Compares all that was kept with what the other one sent: `expected` of each place, nothing where none went.
fn compare(cuda: &Cuda, kept: &Buffer<u8>, expected: impl Fn(usize) -> Option<u8>) -> Result<()> {
    for (k, pair) in cuda.download(kept)?.chunks_exact(2).enumerate() {
        let byte = expected(k).unwrap_or(0);
        assert_eq!(pair, [byte; 2], "cuda:{}, place {k}", cuda.ordinal());
    }
    Ok(())
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs two GPUs")]
fn slabs_go_by_nccl() {
    on_two_gpus(|cuda, links| {
        let other = 1 - links.rank();
        for (halves, size) in [1, 2].into_iter().flat_map(|halves| SIZES.map(|size| (halves, size))) {
            // Two places in common, the second a byte longer.
            let places = [0, 1].map(|k| Place { part: other, theirs: k, bytes: size + k });
            let make = if halves == 1 { Slabs::new } else { Slabs::in_turn };
            let slabs = make(cuda, &cuda.pool(), links, &places, "test")?;
            let turns = TURNS / 5;
            let (mut stamps, mut kept) = (Stamps::new(cuda, links.rank(), turns, 2)?, cuda.alloc_zeros::<u8>(4 * turns, "test")?);
            for turn in 0..turns {
                for (k, place) in places.iter().enumerate() {
                    stamps.write(cuda, 2 * turn + k, slabs.outgoing(k), slabs.half() * place.bytes, place.bytes)?;
                }
                slabs.exchange()?;
                for (k, place) in places.iter().enumerate() {
                    let begin = (halves - 1 - slabs.half()) * place.bytes;
                    keep(cuda, slabs.incoming(k), begin, place.bytes, &mut kept, 2 * turn + k)?;
                }
            }
            compare(cuda, &kept, |k| (places[k % 2].bytes > 0).then(|| stamp(other, k / 2, k % 2)))?;
        }
        Ok(())
    });
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs two GPUs")]
fn copies_go_by_nccl() {
    on_two_gpus(|cuda, links| {
        let (own, other) = (links.rank(), 1 - links.rank());
        let buffer = cuda.alloc_zeros::<u8>(2 * MOST, "test")?;
        let copies = Copies::new(cuda, links, &[0, 1], &[&buffer])?;
        let (mut stamps, mut kept) = (Stamps::new(cuda, own, TURNS, 1)?, cuda.alloc_zeros::<u8>(2 * TURNS, "test")?);
        // The parts send different sizes in a turn.
        let size = |part: usize, turn: usize| SIZES[(turn + 2 * part) % SIZES.len()];
        for turn in 0..TURNS {
            let bytes = size(own, turn);
            stamps.write(cuda, turn, &buffer, own * MOST, bytes)?;
            copies.exchange(&[CopyTo { part: other, buffer: 0, from: own * MOST, to: own * MOST, bytes }])?;
            keep(cuda, &buffer, other * MOST, size(other, turn), &mut kept, turn)?;
        }
        compare(cuda, &kept, |turn| (size(other, turn) > 0).then(|| stamp(other, turn, 0)))
    });
}

/// Rounds in which the first part sends, both send at once, the second one sends, and nobody does.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs two GPUs")]
fn ways_go_by_nccl() {
    on_two_gpus(|cuda, links| {
        let (own, other) = (links.rank(), 1 - links.rank());
        let from = cuda.alloc_zeros::<u8>(MOST, "test")?;
        let mut ways = Ways::new(cuda, links, 4)?;
        let opened = ways.open(Arc::new(cuda.alloc_zeros::<u8>(MOST, "test")?))?;
        // A round of each kind, and at the end all settle with a word of both.
        let sends = |part: usize, round: usize| [part == 0, true, part == 1, false, true][round];
        let size = |part: usize, turn: usize, round: usize| SIZES[(turn + round + 2 * part) % SIZES.len()];
        let (mut stamps, mut kept) = (Stamps::new(cuda, own, TURNS, 5)?, cuda.alloc_zeros::<u8>(10 * TURNS, "test")?);
        for turn in 0..TURNS {
            for round in 0..5 {
                let bytes = size(own, turn, round);
                if sends(own, round) {
                    stamps.write(cuda, 5 * turn + round, &from, 0, bytes)?;
                    ways.copy(&from, 0, &opened, other, 0, bytes)?;
                }
                let parts = |sends: bool| if sends { vec![other] } else { Vec::new() };
                if round < 4 {
                    ways.post(&parts(sends(own, round)))?;
                    ways.hear(&parts(sends(other, round)))?;
                } else {
                    ways.settle()?;
                }
                if sends(other, round) {
                    keep(cuda, opened.own(), 0, size(other, turn, round), &mut kept, 5 * turn + round)?;
                }
            }
        }
        let came = |k: usize| sends(other, k % 5) && size(other, k / 5, k % 5) > 0;
        compare(cuda, &kept, |k| came(k).then(|| stamp(other, k / 5, k % 5)))
    });
}
