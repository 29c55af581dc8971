//! The store, the sort and the exchange on random domains: nothing is lost, everything ends where it belongs, in an order
//! that threads have no say in.

use proptest::prelude::*;

use super::*;
use crate::device::Cpu;

type P = Particle<f32, 4, u32, 3, u16>;
type S = Store<f32, 4, u32, 3, u16>;

/// Kinds of particles.
const KINDS: usize = 3;
const LAYOUT: Layout<3> = Layout { width: 3, words: [true, false, true], kinds: KINDS, spare: 16 };

/// A particle whose columns all tell its number.
fn particle(tag: u32) -> P {
    P { v: [tag as f32, -(tag as f32), 0.5, 1.0], words: [tag, 0, !tag], key: 0 }
}

/// Kind of the particle of this tag.
fn kind(tag: u32) -> usize {
    (tag * 7 + tag / 5) as usize % KINDS
}

fn filled(tiling: Tiling, cells: &[(usize, usize)]) -> S {
    let mut store = S::new(tiling, LAYOUT, cells.len());
    for (k, (i, j)) in cells.iter().enumerate() {
        store.insert(i % tiling.cells[0], j % tiling.cells[1], kind(k as u32), particle(k as u32));
    }
    store
}

/// Every particle is whole and lies in a cell of the domain; the tags are 0 to `n`, each once.
fn assert_whole(store: &S, n: usize) {
    let mut seen = vec![false; n];
    for (location, of, p) in store.iter() {
        let [i, j] = store.tiling.cell(location);
        let tag = p.words[0];
        assert_eq!(store.tiling.locate(i, j), location);
        assert_eq!((P { key: 0, ..p }, of), (particle(tag), kind(tag)));
        assert!(!std::mem::replace(&mut seen[tag as usize], true), "{tag} is there twice");
    }
    assert!(seen.iter().all(|s| *s));
}

fn tilings() -> impl Strategy<Value = Tiling> {
    let ways = prop_oneof![Just(None), (0usize..50).prop_map(Some)];
    ([1usize..60, 1usize..60], [1usize..40, 1usize..40], 1usize..50, ways).prop_map(|(c, t, d, way)| {
        let tiling = Tiling::new(c, t).with_depth(d);
        way.map_or(tiling, |cells| tiling.moving().moved(cells))
    })
}

fn loads() -> impl Strategy<Value = Vec<(usize, usize)>> {
    // A part of them crowded into a few cells, so that rows have to grow.
    prop::collection::vec(prop_oneof![(0usize..60, 0usize..60), (0usize..2, 0usize..2)], 0..800)
}

type Boxes = Vec<Outbox<f32, usize, 4, u32, 3, u16>>;

/// Takes every particle that is to go out of its tile, `step` cells round the domain where its tag says so, from all tiles at once.
/// Free slots are closed, or left where `holes` says so.
fn leave(store: &mut S, step: [usize; 2], every: u32, holes: bool) -> Boxes {
    let tiling = store.tiling;
    let mut outboxes: Boxes = (0..tiling.len()).map(|_| Outbox::default()).collect();
    for (t, (tile, out)) in store.tiles.iter_mut().zip(&mut outboxes).enumerate() {
        for r in 0..tile.rows.len() {
            let row = &mut tile.rows[r];
            let mut k = 0;
            while k < row.len() {
                let mut p = row.get(k);
                if p.key.is_hole() || p.words[0] % every != 0 {
                    k += 1;
                    continue;
                }
                let (cell, kind) = LAYOUT.cell_and_kind(p.key);
                if holes {
                    row.keys_mut()[k] = u16::MAX;
                } else {
                    row.swap_remove(k);
                }
                let at = tiling.cell(Location { tile: t as u32, row: r as u16, cell });
                let [i, j] = [0, 1].map(|a| (at[a] + step[a]) % tiling.cells[a]);
                let location = tiling.locate(i, j);
                p.key = LAYOUT.key(location.cell, kind);
                out.push(location, p);
                out.tally += 1;
            }
        }
        out.seal();
        assert_eq!(out.tally, out.len());
    }
    outboxes
}

/// Sends and delivers.
fn migrate(store: &mut S, step: [usize; 2], every: u32) -> TransferCount {
    let outboxes = leave(store, step, every, false);
    Deliveries::default().deliver(&mut store.tiles, &outboxes)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn every_cell_has_one_location(tiling in tilings()) {
        let mut seen = std::collections::HashSet::new();
        for (i, j) in (0..tiling.cells[1]).flat_map(|j| (0..tiling.cells[0]).map(move |i| (i, j))) {
            let p = tiling.locate(i, j);
            prop_assert_eq!(tiling.cell(p), [i, j]);
            prop_assert!(usize::from(p.row) < tiling.rows(p.tile as usize));
            prop_assert!(usize::from(p.cell) < tiling.cells_of_row());
            prop_assert!(seen.insert(p));
        }
        let total: usize = (0..tiling.len()).map(|t| tiling.bounds(t).1.iter().product::<usize>()).sum();
        prop_assert_eq!(total, tiling.cells[0] * tiling.cells[1]);
    }

    #[test]
    fn what_goes_in_comes_out_and_comes_to_lie_as_it_did(tiling in tilings(), load in loads()) {
        let store = filled(tiling, &load);
        prop_assert_eq!(store.len(), load.len());
        assert_whole(&store, load.len());
        let mut again = S::new(tiling, LAYOUT, 0);
        for (location, kind, p) in store.iter() {
            let [i, j] = tiling.cell(location);
            again.insert(i, j, kind, p);
        }
        prop_assert!(store.iter().eq(again.iter()));
    }

    /// Particles stay where they are, so that their cells count down.
    #[test]
    fn a_domain_moves_on_past_its_tiles(tiling in tilings(), load in loads(), cells in 1usize..100) {
        const ONE: Layout<3> = Layout { kinds: 1, ..LAYOUT };
        let tiling = tiling.moving();
        let mut store = S::new(tiling, ONE, load.len());
        for (k, (i, j)) in load.iter().enumerate() {
            store.insert(i % tiling.cells[0], j % tiling.cells[1], 0, particle(k as u32));
        }
        for way in 1..=cells {
            let width = tiling.tile[0] as u16;
            for tile in store.tiles.iter_mut().step_by(tiling.tiles[0]) {
                for row in &mut tile.rows {
                    (0..row.len()).rev().filter(|k| row.keys()[*k] % width == 0).collect::<Vec<_>>().into_iter().for_each(|k| {
                        row.swap_remove(k);
                    });
                    row.keys_mut().iter_mut().for_each(|key| *key -= 1);
                }
            }
            store.move_on(0..tiling.len());
            prop_assert_eq!(store.tiling, tiling.moved(way));
        }
        for (t, tile) in store.tiles.iter().enumerate() {
            prop_assert_eq!((tile.corner, tile.cells), store.tiling.bounds(t));
            prop_assert_eq!(tile.rows.len(), store.tiling.rows(t));
        }
        let mut found: Vec<_> = store.iter().map(|(at, _, p)| (p.words[0] as usize, store.tiling.cell(at))).collect();
        found.sort_unstable();
        let at = |(k, (i, j)): (usize, &(usize, usize))| {
            Some((k, [(i % tiling.cells[0]).checked_sub(cells)?, j % tiling.cells[1]]))
        };
        prop_assert_eq!(found, load.iter().enumerate().filter_map(at).collect::<Vec<_>>());
    }

    #[test]
    fn leavers_of_any_distance_arrive(tiling in tilings(), load in loads(), step in [0usize..60, 0usize..60], every in 1u32..5) {
        let mut store = filled(tiling, &load);
        let mut wanted: Vec<([usize; 2], u32)> = store.iter().map(|(location, _, p)| {
            let at = tiling.cell(location);
            let go = if p.words[0] % every == 0 { step } else { [0, 0] };
            ([0, 1].map(|a| (at[a] + go[a]) % tiling.cells[a]), p.words[0])
        }).collect();
        let moved = migrate(&mut store, step, every);
        prop_assert_eq!(moved.sent, moved.received);
        prop_assert_eq!(moved.sent, load.len().div_ceil(every as usize));
        assert_whole(&store, load.len());
        let mut found: Vec<_> = store.iter().map(|(location, _, p)| (tiling.cell(location), p.words[0])).collect();
        wanted.sort_unstable();
        found.sort_unstable();
        prop_assert_eq!(wanted, found);
    }

    /// Parts with every third tile hand their leavers over as messages: every tile has the particles that it has in one part, slot
    /// by slot.
    #[test]
    fn leavers_between_parts_arrive_as_in_one(tiling in tilings(), load in loads(), step in [0usize..9, 0usize..9], every in 1u32..4) {
        const PARTS: usize = 3;
        let whole = filled(tiling, &load);
        let mut one = whole.clone();
        migrate(&mut one, step, every);
        let mut parts: Vec<S> = (0..PARTS).map(|part| S::of_part(tiling, LAYOUT, 9, |tile| tile % PARTS == part)).collect();
        for (location, kind, p) in whole.iter() {
            let [i, j] = tiling.cell(location);
            parts[location.tile as usize % PARTS].insert(i, j, kind, p);
        }
        let mut messages = vec![vec![Vec::new(); PARTS]; PARTS];
        let mut outboxes: Vec<Boxes> = parts.iter_mut().map(|store| leave(store, step, every, false)).collect();
        for (part, (outboxes, messages)) in outboxes.iter_mut().zip(&mut messages).enumerate() {
            for (tile, outbox) in outboxes.iter_mut().enumerate() {
                outbox.send_away(tile as u32, |to| (to % PARTS != part).then_some(to % PARTS), messages);
            }
        }
        for (part, (store, outboxes)) in parts.iter_mut().zip(&mut outboxes).enumerate() {
            let mut from = Vec::new();
            for messages in &messages {
                Outbox::receive(outboxes, &messages[part], &mut from);
            }
            for tile in from {
                outboxes[tile].seal();
            }
            let moved = Deliveries::default().deliver(&mut store.tiles, outboxes);
            prop_assert_eq!(moved.sent, moved.received);
            let own = |store: &S| store.iter().filter(|(l, ..)| l.tile as usize % PARTS == part).collect::<Vec<_>>();
            prop_assert_eq!(store.len(), own(store).len());
            prop_assert_eq!(own(store), own(&one));
        }
    }

    #[test]
    fn rows_are_sorted_stably_and_free_slots_left_out(tiling in tilings(), load in loads(), step in [0usize..9, 0usize..9], holes: bool) {
        let mut store = filled(tiling, &load);
        let gone: usize = leave(&mut store, step, 2, holes).iter().map(Outbox::len).sum();
        let keys = tiling.cells_of_row() * KINDS;
        let (mut starts, mut destinations, mut left) = (Vec::new(), Vec::new(), 0);
        // A thread's row: what was in it is of another tile.
        let mut sorted = Row::new(LAYOUT, 0);
        for row in store.tiles.iter_mut().flat_map(|t| &mut t.rows) {
            let mut wanted: Vec<P> = (0..row.len()).map(|k| row.get(k)).filter(|p| !p.key.is_hole()).collect();
            wanted.sort_by_key(|p| p.key);
            let n = row.sort_into(keys, &mut sorted, &mut starts, &mut destinations);
            prop_assert_eq!((n, sorted.len()), (wanted.len(), wanted.len()));
            prop_assert!(sorted.capacity() >= n + LAYOUT.spare || n == 0);
            prop_assert_eq!((0..n).map(|k| sorted.get(k)).collect::<Vec<_>>(), wanted);
            prop_assert_eq!((starts.len(), starts[0], starts[keys] as usize), (keys + 1, 0, n));
            for k in 0..keys {
                prop_assert!(sorted.keys()[starts[k] as usize..starts[k + 1] as usize].iter().all(|x| usize::from(*x) == k));
            }
            left += n;
            std::mem::swap(row, &mut sorted);
        }
        prop_assert_eq!(left + gone, load.len());
    }

    /// A store that is put in order in each pass, arrivals first, holds what one does that takes them when all tiles are done.
    #[test]
    fn arrivals_may_wait_for_the_next_pass(tiling in tilings(), load in loads(), step in [0usize..60, 0usize..60]) {
        let (mut lazy, mut exact) = (filled(tiling, &load), filled(tiling, &load));
        let keys = tiling.cells_of_row() * KINDS;
        let (mut starts, mut destinations, mut sorted) = (Vec::new(), Vec::new(), Row::new(LAYOUT, 0));
        let (mut outboxes, mut post) = (Boxes::new(), Deliveries::default());
        for pass in 0..4 {
            let received: usize = (0..tiling.len()).map(|t| {
                let rows = &mut lazy.tiles[t].rows;
                let received = post.take(&outboxes, t, &tiling.near(t), rows);
                for row in rows {
                    row.sort_into(keys, &mut sorted, &mut starts, &mut destinations);
                    std::mem::swap(row, &mut sorted);
                }
                received
            }).sum();
            prop_assert_eq!(post.sent(), received);
            prop_assert_eq!(lazy.len(), load.len());
            let all = |s: &S| {
                let mut all: Vec<_> = s.iter().map(|(location, kind, p)| (tiling.cell(location), kind, p.words)).collect();
                all.sort_unstable();
                all
            };
            prop_assert_eq!(all(&lazy), all(&exact));
            outboxes = leave(&mut lazy, step, 2 + pass, true);
            post.sort(&outboxes);
            let moved = migrate(&mut exact, step, 2 + pass);
            prop_assert_eq!((moved.sent, moved.received), (post.sent(), post.sent()));
        }
    }

    #[test]
    fn near_is_mutual_and_holds_what_is_one_tile_away(tiling in tilings()) {
        for t in 0..tiling.len() {
            let near = tiling.near(t);
            prop_assert!(near.iter().all(|n| tiling.near(*n as usize).contains(&(t as u32))));
            let distance = |n: usize, a: usize| {
                let at = |t: usize| [t % tiling.tiles[0], t / tiling.tiles[0]][a];
                let d = at(t).abs_diff(at(n));
                d.min(tiling.tiles[a] - d)
            };
            for n in 0..tiling.len() {
                prop_assert_eq!(near.iter().filter(|m| **m as usize == n).count(), usize::from(distance(n, 0) <= 1 && distance(n, 1) <= 1));
            }
        }
    }

    #[test]
    fn bands_are_the_tile_cut_between_rows(tiling in tilings(), load in loads(), most in 1usize..200) {
        let mut store = filled(tiling, &load);
        for tile in &mut store.tiles {
            let lens: Vec<usize> = tile.rows.iter().map(Row::len).collect();
            let (corner, cells, count) = (tile.corner, tile.cells, tile.band_count(most));
            let (mut row, mut low, mut bands) = (0, 0, 0);
            for band in tile.bands(most, tiling.depth) {
                prop_assert_eq!((band.first, band.corner, band.cells[0]), (row, [corner[0], corner[1] + low], cells[0]));
                let load: usize = band.rows.iter().map(Row::len).sum();
                prop_assert!(load <= most || band.rows.iter().filter(|r| !r.is_empty()).count() == 1);
                row += band.rows.len();
                low += band.cells[1];
                bands += 1;
            }
            prop_assert_eq!((row, low, bands), (lens.len(), cells[1], count));
        }
    }
}

/// Sends from every tile to every tile: the order in a row is that of the senders and of their entries, or of the senders named
/// first.
#[test]
fn the_order_is_that_of_the_senders() {
    let tiling = Tiling::new([50, 30], [16, 16]);
    let mut store = Store::<f32, 5>::new(tiling, Layout { words: [true], ..Layout::new(5) }, 0);
    let mut outboxes: Vec<Outbox<f32, (), 5>> = (0..tiling.len()).map(|_| Outbox::default()).collect();
    for (from, outbox) in outboxes.iter_mut().enumerate() {
        for k in 0..3 {
            for (j, i) in (0..30).step_by(16).flat_map(|j| (0..50).step_by(16).map(move |i| (j, i))) {
                let location = Location { row: 2, ..tiling.locate(i, j) };
                outbox.push(location, Particle { v: [0.0; 5], words: [(10 * from + k) as u64], key: 1 });
            }
        }
        outbox.seal();
    }
    let mut post = Deliveries::default();
    assert_eq!(post.deliver(&mut store.tiles, &outboxes), TransferCount { sent: 8 * 8 * 3, received: 8 * 8 * 3 });
    let by = |senders: &[u64]| senders.iter().flat_map(|from| (0..3).map(move |k| 10 * from + k)).collect::<Vec<u64>>();
    for tile in &mut store.tiles {
        assert_eq!(tile.rows[2].word(0), by(&[0, 1, 2, 3, 4, 5, 6, 7]));
        tile.rows[2].clear();
    }
    assert_eq!(post.take(&outboxes, 4, &[7, 4, 1], &mut store.tiles[4].rows), 24);
    assert_eq!(store.tiles[4].rows[2].word(0), by(&[7, 4, 1, 0, 2, 3, 5, 6]));
}

/// Joins the lists of several parts of a tile to one outbox: entries keep the order of the parts.
#[test]
fn boxes_of_parts_are_put_together() {
    let tiling = Tiling::new([40, 10], [10, 10]);
    let send = |out: &mut Outbox<f32, (), 1>, tile: u32, tag: u64| {
        out.push(Location { tile, row: 0, cell: 0 }, Particle { v: [0.0], words: [tag], key: 0 });
    };
    let mut outboxes: Vec<Outbox<f32, (), 1>> = (0..4).map(|_| Outbox::default()).collect();
    let mut part = Outbox::default();
    for (tile, tag) in [(3, 1), (1, 2), (3, 3)] {
        send(&mut outboxes[0], tile, tag);
        send(&mut part, tile, 10 + tag);
    }
    part.seal();
    outboxes[0].append(&mut part);
    outboxes.iter_mut().for_each(Outbox::seal);
    assert!(part.is_empty() && outboxes[0].iter().map(|p| p.words[0]).eq([1, 2, 3, 11, 12, 13]));
    let mut store = Store::<f32, 1>::new(tiling, Layout { words: [true], ..Layout::new(1) }, 0);
    assert_eq!(Deliveries::default().deliver(&mut store.tiles, &outboxes), TransferCount { sent: 6, received: 6 });
    assert_eq!([1, 3].map(|t: usize| store.tiles[t].rows[0].word(0).to_vec()), [vec![2, 12], vec![1, 3, 11, 13]]);
}

/// One, two and seven threads leave every particle in the same slot, also where one tile holds nearly everything.
#[test]
fn threads_do_not_matter() {
    let tiling = Tiling::new([70, 45], [16, 8]);
    let cells: Vec<_> = (0..20_000usize).map(|k| if k % 3 == 0 { (k * 7 % 70, k * 11 % 45) } else { (3, 5) }).collect();
    let run = |threads: usize| {
        Cpu::new(threads).unwrap().install(|| {
            let mut store = filled(tiling, &cells);
            for step in [[1, 0], [17, 40], [0, 1]] {
                let moved = migrate(&mut store, step, 2);
                assert_eq!((moved.sent, moved.received), (10_000, 10_000));
            }
            store.iter().map(|(location, _, p)| (location, p.words[0])).collect::<Vec<_>>()
        })
    };
    let one = run(1);
    assert!(run(2) == one && run(7) == one);
}

/// Everything in one row: it grows, by eighths, and what comes out is what went in, also after holes were filled.
#[test]
fn a_row_grows_and_keeps_its_particles() {
    let mut row = Row::<f32, 6>::new(Layout { words: [true], ..Layout::new(6) }, 0);
    let particle = |k: usize| Particle { v: [k as f32; 6], words: [k as u64], key: (k % 7) as u8 };
    for k in 0..1000 {
        row.push(&particle(k));
    }
    for k in 0..1000 {
        assert_eq!(row.get(k), particle(k));
    }
    let mut left: Vec<u64> = (0..400).map(|_| row.swap_remove(300).words[0]).collect();
    left.extend_from_slice(row.word(0));
    left.sort_unstable();
    assert_eq!(left, (0..1000).collect::<Vec<_>>());
    assert!(row.capacity() <= 1152, "grows by eighths: {}", row.capacity());
}

/// A column that is not held costs nothing and reads as 1, or 0 where it is one of words.
#[test]
fn columns_that_are_not_held_cost_nothing() {
    let full = Row::<f64, 6>::new(Layout { words: [true], ..Layout::new(6) }, 320);
    let mut bare = Row::<f64, 6>::new(Layout::new(5), 320);
    assert_eq!(full.memory() - bare.memory(), 320 * 16);
    bare.push(&Particle { v: [3.0; 6], words: [4], key: 2 });
    assert_eq!(bare.get(0), Particle { v: [3.0, 3.0, 3.0, 3.0, 3.0, 1.0], words: [0], key: 2 });
    assert!(bare.word(0).is_empty() && bare.columns_mut().v[5].is_empty());
}

/// Sorts more columns of numbers than are moved in one loop.
#[test]
fn all_columns_are_sorted() {
    let mut row = Row::<f64, 9, u32, 2, u8>::new(Layout { words: [false, true], ..Layout::new(9) }, 0);
    for k in 0..100 {
        row.push(&Particle { v: std::array::from_fn(|c| (10 * k + c) as f64), words: [0, k as u32], key: (k * 37 % 50) as u8 });
    }
    let mut wanted: Vec<_> = (0..100).map(|k| row.get(k)).collect();
    wanted.sort_by_key(|p| p.key);
    let mut sorted = Row::new(row.layout(), 0);
    assert_eq!(row.sort_into(50, &mut sorted, &mut Vec::new(), &mut Vec::new()), 100);
    assert_eq!((0..100).map(|k| sorted.get(k)).collect::<Vec<_>>(), wanted);
}
