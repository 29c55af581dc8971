//! Tests of exchange by NCCL: threads, each with a GPU, that share no memory. Streams are busy, and the host waits for none.

use std::sync::Arc;

use super::*;
use crate::cuda::Buffer;
use crate::testing;

/// Bytes of what goes: nothing, one, some, an odd number, and more than any buffer of NCCL holds.
const SIZES: [usize; 5] = [0, 1, 4096, (1 << 20) + 3, 64 << 20];
const MOST: usize = SIZES[4];
const TURNS: usize = 200;

/// Parts at most: enough for a ring of sends, and for one that two others wait for.
const PARTS: usize = 4;

/// Does `work` on two to four GPUs; says so where there are none, or no NCCL.
fn on_gpus(work: impl Fn(&Cuda, &Links) -> Result<()> + Sync) {
    if testing::gpu().is_none() {
        return;
    }
    let parts = Cuda::count().unwrap().min(PARTS);
    if parts < 2 {
        println!("skipped: one GPU");
        return;
    }
    if !crate::cuda::nccl::usable() {
        println!("skipped: NCCL is not there");
        return;
    }
    let done = inside::run_on(parts, inside::Memory::Apart, |links| {
        let cuda = Cuda::open(links.rank())?;
        assert!(links.between_gpus(&cuda)?.is_some());
        work(&cuda, &links)?;
        // Nobody's memory goes while another one sends.
        cuda.synchronize()?;
        links.all_say(&()).map(drop)
    });
    done.unwrap();
    println!("by NCCL on {parts} GPUs");
}

/// Numbers of the other parts.
fn others(links: &Links) -> Vec<usize> {
    (0..links.size()).filter(|part| *part != links.rank()).collect()
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

/// Slabs, a second time along with others; any two parts have two places in common, the second a byte longer.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs two GPUs")]
fn slabs_go_by_nccl() {
    on_gpus(|cuda, links| {
        let (own, others) = (links.rank(), others(links));
        for (along, size) in [false, true].into_iter().flat_map(|along| SIZES.map(|size| (along, size))) {
            let place = |other: usize, k: usize| Place { part: other, theirs: 2 * (own - usize::from(other < own)) + k, bytes: size + k };
            let places: Vec<Place> = others.iter().flat_map(|other| [place(*other, 0), place(*other, 1)]).collect();
            let slabs = Slabs::new(cuda, &cuda.pool(), links, &places, "test")?;
            let first: Vec<Place> = places.iter().map(|place| Place { bytes: 8, ..*place }).collect();
            let first = Slabs::new(cuda, &cuda.pool(), links, &first, "test")?;
            let (turns, count) = (TURNS / 5, places.len());
            let (mut stamps, mut kept) = (Stamps::new(cuda, own, turns, 2)?, cuda.alloc_zeros::<u8>(2 * count * turns, "test")?);
            for turn in 0..turns {
                for (k, place) in places.iter().enumerate() {
                    stamps.write(cuda, 2 * turn + k % 2, slabs.outgoing(k), slabs.half() * place.bytes, place.bytes)?;
                }
                if along {
                    first.exchange_with(&[&slabs])?;
                } else {
                    slabs.exchange()?;
                }
                for (k, place) in places.iter().enumerate() {
                    let begin = (1 - slabs.half()) * place.bytes;
                    keep(cuda, slabs.incoming(k), begin, place.bytes, &mut kept, count * turn + k)?;
                }
            }
            compare(cuda, &kept, |k| {
                let Place { part, bytes, .. } = places[k % count];
                (bytes > 0).then(|| stamp(part, k / count, k % 2))
            })?;
        }
        Ok(())
    });
}

/// Bytes that a part sends in a turn: not those of another part.
fn size(part: usize, turn: usize) -> usize {
    SIZES[(turn + 2 * part) % SIZES.len()]
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs two GPUs")]
fn copies_go_by_nccl() {
    on_gpus(|cuda, links| {
        let (own, parts, others) = (links.rank(), links.size(), others(links));
        let buffer = cuda.alloc_zeros::<u8>(parts * MOST, "test")?;
        let copies = Copies::new(cuda, links, &others, &[&buffer])?;
        let (mut stamps, mut kept) = (Stamps::new(cuda, own, TURNS, 1)?, cuda.alloc_zeros::<u8>(2 * parts * TURNS, "test")?);
        for turn in 0..TURNS {
            let (at, bytes) = (own * MOST, size(own, turn));
            stamps.write(cuda, turn, &buffer, at, bytes)?;
            let all: Vec<CopyTo> = others.iter().map(|part| CopyTo { part: *part, buffer: 0, from: at, to: at, bytes }).collect();
            copies.exchange(&all)?;
            others.iter().try_for_each(|part| keep(cuda, &buffer, part * MOST, size(*part, turn), &mut kept, parts * turn + part))?;
        }
        compare(cuda, &kept, |k| (k % parts != own && size(k % parts, k / parts) > 0).then(|| stamp(k % parts, k / parts, 0)))
    });
}

/// Rounds in which all send to higher numbers, to all at once, to lower numbers, and to nobody; then all settle with a word to all.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs two GPUs")]
fn ways_go_by_nccl() {
    const ROUNDS: usize = 5;
    on_gpus(|cuda, links| {
        let (own, parts, others) = (links.rank(), links.size(), others(links));
        let from = cuda.alloc_zeros::<u8>(MOST, "test")?;
        let mut ways = Ways::new(cuda, links, 4)?;
        let opened = ways.open(Arc::new(cuda.alloc_zeros::<u8>(parts * MOST, "test")?))?;
        let sends = |round: usize, from: usize, to: usize| from != to && [from < to, true, from > to, false, true][round];
        let kept = cuda.alloc_zeros::<u8>(2 * parts * ROUNDS * TURNS, "test")?;
        let (mut stamps, mut kept) = (Stamps::new(cuda, own, TURNS, ROUNDS)?, kept);
        for (turn, round) in (0..TURNS).flat_map(|turn| (0..ROUNDS).map(move |round| (turn, round))) {
            let to: Vec<usize> = others.iter().copied().filter(|other| sends(round, own, *other)).collect();
            let heard: Vec<usize> = others.iter().copied().filter(|other| sends(round, *other, own)).collect();
            let bytes = size(own, turn + round);
            stamps.write(cuda, ROUNDS * turn + round, &from, 0, bytes)?;
            for part in &to {
                ways.copy(&from, 0, &opened, *part, own * MOST, bytes);
            }
            if round < ROUNDS - 1 {
                ways.post(&to)?;
                ways.hear(&heard)?;
            } else {
                ways.settle()?;
            }
            for part in heard {
                let place = parts * (ROUNDS * turn + round) + part;
                keep(cuda, opened.own(), part * MOST, size(part, turn + round), &mut kept, place)?;
            }
        }
        compare(cuda, &kept, |k| {
            let (part, round, turn) = (k % parts, k / parts % ROUNDS, k / parts / ROUNDS);
            (sends(round, part, own) && size(part, turn + round) > 0).then(|| stamp(part, turn, round))
        })
    });
}
