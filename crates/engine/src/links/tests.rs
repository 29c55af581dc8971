use std::time::Duration;

use super::*;
use crate::cuda::{Buffer, Cuda};
use crate::testing;

/// Goes through all calls that all parts take part in.
pub(super) fn collective_calls(links: &Links) -> Result<()> {
    let (rank, size) = (links.rank(), links.size());
    let (next, before) = ((rank + 1) % size, (rank + size - 1) % size);
    if size > 1 {
        for k in 0..100_u8 {
            links.send(next, vec![rank as u8, k])?;
        }
        for k in 0..100_u8 {
            assert_eq!(links.receive(before)?, [before as u8, k]);
        }
    }
    let words = links.all_say(&format!("part {rank}"))?;
    assert_eq!(words, (0..size).map(|k| format!("part {k}")).collect::<Vec<_>>());
    let all = links.all_gather(vec![rank as u8; rank])?;
    assert!(all.len() == size && all.iter().enumerate().all(|(part, message)| *message == vec![part as u8; part]));
    assert_eq!(links.first_says((rank, 1.5))?, (0, 1.5));
    let (mut counts, mut largest) = ([1, rank as u64], [rank as f64, -(rank as f64)]);
    links.sum(&mut counts)?;
    links.max(&mut largest)?;
    assert_eq!((counts, largest), ([size as u64, (size * (size - 1) / 2) as u64], [(size - 1) as f64, 0.0]));
    let whole: Vec<u8> = (0..size as u8).collect();
    assert_eq!(links.gather(vec![rank as u8])?.concat(), if rank == 0 { whole } else { Vec::new() });
    links.must_agree("the program", "zellige")?;
    // All have the same fault, and can go on.
    let refusal = links.must_agree("the input", if rank == size - 1 { "last" } else { "others" });
    assert_eq!(refusal.is_err(), size > 1);
    Ok(())
}

#[test]
fn messages_arrive_in_their_order_and_everybody_has_the_same() {
    for parts in 1..10 {
        let done = inside::run(parts, |links| collective_calls(&links)).unwrap();
        assert_eq!(done.len(), parts);
    }
}

#[test]
fn parts_that_differ_are_named() {
    let words = ["a", "b", "a", "c"];
    let refused = inside::run(4, |links| Ok(links.must_agree("the input", words[links.rank()]).unwrap_err().to_string())).unwrap();
    for refusal in refused {
        assert!(refusal.contains("the input is not the same everywhere: part 0: `a`, but part 1: `b`, part 3: `c`"), "{refusal}");
    }
    let many = inside::run(20, |links| links.must_agree("the input", &links.rank().min(1).to_string())).unwrap_err().to_string();
    assert!(many.contains("part 8: `1` and 11 more"), "{many}");
    assert!(Links::default().must_agree("the input", "a").is_ok());
}

#[test]
fn a_part_that_fails_ends_all_others() {
    let refused = inside::run(4, |links| {
        if links.rank() == 2 {
            std::thread::sleep(Duration::from_millis(20));
            return Err(Error::input("the test", Problem::new("", "a fault")));
        }
        // Nobody will ever send this.
        links.receive(3 - links.rank().min(1)).map(drop)
    });
    let error = refused.unwrap_err();
    assert!(error.to_string().contains("a fault") && error.exit_code() == 2, "{error}");
    let panicked =
        std::panic::catch_unwind(|| inside::run(3, |links| if links.rank() == 1 { panic!("on purpose") } else { links.receive(1) }));
    assert!(panicked.is_err());
}

#[test]
fn a_part_that_there_is_not_is_refused() {
    let refused = inside::run(2, |links| links.send(2, Vec::new())).unwrap_err().to_string();
    assert!(refused.contains("no part 2 among 2"), "{refused}");
    assert!(Links::default().receive(0).is_err() && Links::default().is_alone());
}

#[test]
fn a_cut_covers_every_tile_once_and_balances() {
    for (lattice, axes) in
        [([7, 5, 1], &[0, 1][..]), ([16, 1, 1], &[0]), ([4, 4, 4], &[0, 1, 2]), ([9, 13, 1], &[1]), ([1, 40, 1], &[0, 1])]
    {
        let most: usize = axes.iter().map(|a| lattice[*a]).product();
        for parts in (1..=most).filter(|n| *n < 14 || *n == most) {
            let cut = Cut::new(lattice, axes, parts, |_| 1.0);
            let mut seen = vec![false; lattice.iter().product()];
            for part in 0..parts {
                let tiles: Vec<usize> = cut.tiles(part).collect();
                assert_eq!(tiles.len(), cut.block(part).len());
                for tile in tiles {
                    assert!(!std::mem::replace(&mut seen[tile], true) && cut.owner(tile) == part);
                    assert!(cut.block(part).contains([tile % lattice[0], tile / lattice[0] % lattice[1], tile / lattice[0] / lattice[1]]));
                }
            }
            assert!(seen.iter().all(|s| *s), "{lattice:?} {parts}");
        }
        let more = Cut::new(lattice, axes, most + 2, |_| 1.0);
        assert!((more.parts(), more.busy()) == (most + 2, most) && more.tiles(most + 1).next().is_none());
    }
    // Ten times as heavy at the left: the left part is narrow.
    let cut = Cut::new([20, 4, 1], &[0, 1], 2, |tile| if tile % 20 < 2 { 10.0 } else { 1.0 });
    assert_eq!((cut.block(0).range(0), cut.block(1).range(0)), (0..2, 2..20));
    assert_eq!(Cut::whole([3, 2, 1]), Cut::new([3, 2, 1], &[0, 1], 1, |_| 1.0));
}

/// Kinds of memory of parts.
const BOTH: [inside::Memory; 2] = [inside::Memory::Shared, inside::Memory::Apart];

/// Slabs of parts on one GPU: in a ring, where numbers keep two places of a pair apart; by themselves and two along with each
/// other, of which the first part of a line has one place fewer; by copies and by messages.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn slabs_come_to_their_places() {
    if testing::gpu().is_none() {
        return;
    }
    for (parts, memory) in [2, 3].into_iter().flat_map(|parts| BOTH.map(|memory| (parts, memory))) {
        let found = inside::run_on(parts, memory, |links| {
            let cuda = Cuda::open(0)?;
            let (own, bytes) = (links.rank(), 4096);
            let [below, above] = [(own + parts - 1) % parts, (own + 1) % parts];
            // Place 0 is at the lower end, whose other end is the lower neighbour's place 1.
            let ring = [Place { part: below, theirs: 1, bytes }, Place { part: above, theirs: 0, bytes }];
            let lower = (own > 0).then(|| Place { part: below, theirs: usize::from(own > 1), bytes: 64 });
            let upper = (own + 1 < parts).then_some(Place { part: above, theirs: 0, bytes: 64 });
            let line: Vec<Place> = lower.into_iter().chain(upper).collect();
            let slabs = Slabs::new(&cuda, &cuda.pool(), &links, &ring, "test")?;
            let along = Slabs::new(&cuda, &cuda.pool(), &links, &line, "test")?;
            let (mut seen, mut seen_along) = (Vec::new(), Vec::new());
            for turn in 0..25_u8 {
                let write = |slabs: &Slabs, k: usize, bytes: usize, value: u8| {
                    let words = cuda.buffer_from(&vec![value; bytes], "test")?;
                    cuda.copy_to_peer(&words, 0, slabs.outgoing(k), slabs.half() * bytes, bytes)
                };
                let read = |slabs: &Slabs, k: usize, bytes: usize| {
                    let begin = (1 - slabs.half()) * bytes;
                    assert_eq!(slabs.last(k), slabs.incoming(k).address() + begin as u64);
                    let came = cuda.download_range(slabs.incoming(k), begin..begin + bytes)?;
                    assert!(came.iter().all(|byte| *byte == came[0]));
                    Ok::<_, Error>(came[0])
                };
                (0..2).try_for_each(|k| write(&slabs, k, bytes, 100 * own as u8 + 2 * turn + k as u8))?;
                // In two turns of three.
                if turn % 3 == 0 {
                    slabs.exchange()?;
                } else {
                    (0..line.len()).try_for_each(|k| write(&along, k, 64, 80 * own as u8 + turn))?;
                    slabs.exchange_with(&[&along])?;
                    for k in 0..line.len() {
                        seen_along.push((line[k].part, turn, read(&along, k, 64)?));
                    }
                }
                for k in 0..2 {
                    seen.push(read(&slabs, k, bytes)?);
                }
            }
            // Nobody's slab goes while another writes to it.
            links.all_say(&())?;
            Ok((seen, seen_along))
        });
        for (own, (seen, seen_along)) in found.unwrap().into_iter().enumerate() {
            let [below, above] = [(own + parts - 1) % parts, (own + 1) % parts].map(|part| 100 * part as u8);
            let expected: Vec<u8> = (0..25).flat_map(|turn| [below + 2 * turn + 1, above + 2 * turn]).collect();
            assert_eq!(seen, expected, "part {own} of {parts}, {memory:?}");
            assert_eq!(seen_along.len(), 16 * (usize::from(own > 0) + usize::from(own + 1 < parts)));
            assert!(seen_along.iter().all(|(part, turn, value)| *value == 80 * *part as u8 + turn), "part {own} of {parts}, {memory:?}");
        }
    }
}

/// Numbers that go from each part to the next, many times without a wait of the host.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn ways_keep_their_order() {
    if testing::gpu().is_none() {
        return;
    }
    for (parts, memory) in [2, 3, 5].into_iter().flat_map(|parts| BOTH.map(|memory| (parts, memory))) {
        let found = inside::run_on(parts, memory, |links| {
            let cuda = Cuda::open(0)?;
            let (own, last) = (links.rank(), parts - 1);
            let pool = cuda.pool();
            let mut kept = pool.alloc_zeros::<u64>(40, "test")?;
            let mut ways = Ways::new(&cuda, &links, 3)?;
            let opened = ways.open(Arc::new(pool.alloc_zeros::<u64>(1 << 16, "test")?))?;
            for turn in 0..40 {
                // From the first to the last in as many rounds as there are ways between; those behind leave out the last ones.
                for _ in 1..own {
                    ways.post(&[])?;
                    ways.hear(&[])?;
                }
                if own > 0 {
                    ways.post(&[])?;
                    ways.hear(&[own - 1])?;
                }
                // The number that came is to be seen here: a part that is ahead must not have changed it.
                cuda.copy(opened.own(), 0, &mut kept, turn, 1)?;
                let fresh: Buffer<u64> = pool.buffer_from(&vec![(turn * parts + own) as u64; 1 << 12], "test")?;
                if own < last {
                    ways.copy(&fresh, 0, &opened, own + 1, 0, 1 << 12);
                    ways.post(&[own + 1])?;
                    ways.hear(&[])?;
                }
                ways.settle()?;
            }
            links.all_say(&())?;
            cuda.download(&kept)
        });
        for (own, seen) in found.unwrap().into_iter().enumerate() {
            let expected: Vec<u64> = (0..40).map(|turn| if own == 0 { 0 } else { turn * parts as u64 + own as u64 - 1 }).collect();
            assert_eq!(seen, expected, "part {own} of {parts}, {memory:?}");
        }
    }
}

/// Numbers that go beside to all others, each there behind the second time at which all settle, and not changed before it is read.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn copies_beside_come_in_time() {
    if testing::gpu().is_none() {
        return;
    }
    const N: usize = 1 << 18;
    for (parts, memory) in [2, 3, 5].into_iter().flat_map(|parts| BOTH.map(|memory| (parts, memory))) {
        let found = inside::run_on(parts, memory, |links| {
            let cuda = Cuda::open(0)?;
            let own = links.rank();
            let pool = cuda.pool();
            let mut kept = pool.alloc_zeros::<u64>(20 * parts, "test")?;
            let mut ways = Ways::new(&cuda, &links, 3)?;
            let opened = ways.open(Arc::new(pool.alloc_zeros::<u64>(parts * N, "test")?))?;
            for turn in 0..20 {
                let fresh: Buffer<u64> = pool.buffer_from(&vec![(turn * parts + own) as u64; N], "test")?;
                for other in ways.others() {
                    ways.copy_beside(&fresh, 0, &opened, other, own * N, N);
                }
                ways.settle()?;
                ways.settle()?;
                for other in ways.others() {
                    cuda.copy(opened.own(), (other + 1) * N - 1, &mut kept, turn * parts + other, 1)?;
                }
            }
            links.all_say(&())?;
            cuda.download(&kept)
        });
        for (own, seen) in found.unwrap().into_iter().enumerate() {
            let expected: Vec<u64> = (0..20 * parts).map(|k| if k % parts == own { 0 } else { k as u64 }).collect();
            assert_eq!(seen, expected, "part {own} of {parts}, {memory:?}");
        }
    }
}

/// Words out of turn are errors of all kinds of ways, not waits without end.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn ways_refuse_words_of_another_round() {
    if testing::gpu().is_none() {
        return;
    }
    for memory in BOTH {
        let found = inside::run_on(2, memory, |links| {
            let cuda = Cuda::open(0)?;
            let mut ways = Ways::new(&cuda, &links, 3)?;
            assert!(ways.hear(&[]).unwrap_err().to_string().contains("a round ends that has not begun"));
            ways.post(&[])?;
            assert!(ways.post(&[]).unwrap_err().to_string().contains("a round has not ended"));
            assert!(ways.settle().unwrap_err().to_string().contains("a round has not ended"));
            ways.hear(&[])?;
            if links.is_first() {
                // In round 2, where the other one hears it in round 3.
                ways.post(&[1])?;
                ways.hear(&[])?;
                return Ok(None);
            }
            ways.post(&[])?;
            ways.hear(&[])?;
            ways.post(&[])?;
            Ok(ways.hear(&[0]).err().map(|error| error.to_string()))
        });
        let refusal = found.unwrap().swap_remove(1);
        assert!(refusal.as_ref().is_some_and(|text| text.contains("part 0 does not exchange what this one does")), "{refusal:?}");
    }
}
