//! The store, the sort and the exchange on random domains: nothing is lost, everything comes to lie where it belongs, in an order
//! that threads have no say in.

use proptest::prelude::*;

use super::*;

type P = Particle<f32, 4, 2>;
type S = Store<f32, 4, 2>;

const LAYOUT: Layout = Layout { width: 3, tagged: true };

/// A particle whose columns all tell its number.
fn particle(tag: u64) -> P {
    P { v: [tag as f32, -(tag as f32), 0.5, 1.0], bytes: [tag as u8, (tag >> 8) as u8], tag, column: 0 }
}

fn filled(mosaic: Mosaic, places: &[(usize, usize)]) -> S {
    let mut store = S::new(mosaic, LAYOUT, places.len());
    for (k, (i, j)) in places.iter().enumerate() {
        store.insert(i % mosaic.cells[0], j % mosaic.cells[1], particle(k as u64));
    }
    store
}

/// Every particle is whole and lies in a cell of the domain; the tags are 0 to `n`, each once.
fn assert_whole(store: &S, n: usize) {
    let mut seen = vec![false; n];
    for (place, p) in store.iter() {
        let [i, j] = store.mosaic.cell(place);
        assert_eq!(store.mosaic.place(i, j), place);
        assert_eq!(P { column: 0, ..p }, particle(p.tag));
        assert!(!std::mem::replace(&mut seen[p.tag as usize], true), "{} is there twice", p.tag);
    }
    assert!(seen.iter().all(|s| *s));
}

fn mosaics() -> impl Strategy<Value = Mosaic> {
    ([1usize..60, 1usize..60], [1usize..40, 1usize..40], 1usize..50).prop_map(|(c, t, d)| Mosaic::new(c, t).with_depth(d))
}

fn loads() -> impl Strategy<Value = Vec<(usize, usize)>> {
    // A part of them crowded into a few cells, so that rows have to grow.
    prop::collection::vec(prop_oneof![(0usize..60, 0usize..60), (0usize..2, 0usize..2)], 0..800)
}

/// Sends every particle by `(di, dj)` cells round the domain where its tag says so, from all tiles at once.
fn migrate(store: &mut S, step: [usize; 2], every: u64) -> Moved {
    let mosaic = store.mosaic;
    let mut outboxes: Vec<Outbox<f32, usize, 4, 2>> = (0..mosaic.len()).map(|_| Outbox::default()).collect();
    for (t, (tile, out)) in store.tiles.iter_mut().zip(&mut outboxes).enumerate() {
        for r in 0..tile.rows.len() {
            let row = &mut tile.rows[r];
            let mut k = 0;
            while k < row.len() {
                let p = row.get(k);
                if p.tag % every != 0 {
                    k += 1;
                    continue;
                }
                let p = row.swap_remove(k);
                let at = mosaic.cell(Place { tile: t as u32, row: r as u16, column: p.column });
                let [i, j] = [0, 1].map(|a| (at[a] + step[a]) % mosaic.cells[a]);
                out.push(mosaic.place(i, j), p);
                out.tally += 1;
            }
        }
        out.seal();
        assert_eq!(out.tally, out.len());
    }
    deliver(&mut store.tiles, &outboxes)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn every_cell_has_one_place(mosaic in mosaics()) {
        let mut seen = std::collections::HashSet::new();
        for (i, j) in (0..mosaic.cells[1]).flat_map(|j| (0..mosaic.cells[0]).map(move |i| (i, j))) {
            let p = mosaic.place(i, j);
            prop_assert_eq!(mosaic.cell(p), [i, j]);
            prop_assert!(usize::from(p.row) < mosaic.rows(p.tile as usize));
            prop_assert!(usize::from(p.column) < mosaic.cells_of_row());
            prop_assert!(seen.insert(p));
        }
        let total: usize = (0..mosaic.len()).map(|t| mosaic.bounds(t).1.iter().product::<usize>()).sum();
        prop_assert_eq!(total, mosaic.cells[0] * mosaic.cells[1]);
    }

    #[test]
    fn what_goes_in_comes_out_and_comes_to_lie_as_it_did(mosaic in mosaics(), load in loads()) {
        let store = filled(mosaic, &load);
        prop_assert_eq!(store.len(), load.len());
        assert_whole(&store, load.len());
        let mut again = S::new(mosaic, LAYOUT, 0);
        for (place, p) in store.iter() {
            let [i, j] = mosaic.cell(place);
            again.insert(i, j, p);
        }
        prop_assert!(store.iter().eq(again.iter()));
    }

    #[test]
    fn leavers_of_any_distance_arrive(mosaic in mosaics(), load in loads(), step in [0usize..60, 0usize..60], every in 1u64..5) {
        let mut store = filled(mosaic, &load);
        let mut wanted: Vec<([usize; 2], u64)> = store.iter().map(|(place, p)| {
            let at = mosaic.cell(place);
            let go = if p.tag % every == 0 { step } else { [0, 0] };
            ([0, 1].map(|a| (at[a] + go[a]) % mosaic.cells[a]), p.tag)
        }).collect();
        let moved = migrate(&mut store, step, every);
        prop_assert_eq!(moved.sent, moved.received);
        prop_assert_eq!(moved.sent, load.len().div_ceil(every as usize));
        assert_whole(&store, load.len());
        let mut found: Vec<_> = store.iter().map(|(place, p)| (mosaic.cell(place), p.tag)).collect();
        wanted.sort_unstable();
        found.sort_unstable();
        prop_assert_eq!(wanted, found);
    }

    #[test]
    fn rows_are_sorted_stably(mosaic in mosaics(), load in loads(), step in [0usize..9, 0usize..9]) {
        let mut store = filled(mosaic, &load);
        migrate(&mut store, step, 2);
        let mut sorter = Sorter::new();
        let mut starts = vec![7; mosaic.cells_of_row() + 1];
        for row in store.tiles.iter_mut().flat_map(|t| &mut t.rows) {
            let mut wanted: Vec<(u8, u64)> = row.cells().iter().copied().zip(row.tags().iter().copied()).collect();
            wanted.sort_by_key(|w| w.0);
            row.sort(&mut starts, &mut sorter);
            prop_assert_eq!(row.cells().iter().copied().zip(row.tags().iter().copied()).collect::<Vec<_>>(), wanted);
            prop_assert_eq!(starts[0], 0);
            prop_assert_eq!(*starts.last().unwrap() as usize, row.len());
            for c in 0..mosaic.cells_of_row() {
                prop_assert!(row.cells()[starts[c] as usize..starts[c + 1] as usize].iter().all(|x| usize::from(*x) == c));
            }
        }
        assert_whole(&store, load.len());
    }

    #[test]
    fn bands_are_the_tile_cut_between_rows(mosaic in mosaics(), load in loads(), most in 1usize..200) {
        let mut store = filled(mosaic, &load);
        for tile in &mut store.tiles {
            let lens: Vec<usize> = tile.rows.iter().map(Row::len).collect();
            let (corner, cells, count) = (tile.corner, tile.cells, tile.band_count(most));
            let (mut row, mut low, mut bands) = (0, 0, 0);
            for band in tile.bands(most, mosaic.depth) {
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

/// From every tile to every tile: the order in a row is that of the senders, and of their entries.
#[test]
fn the_order_is_that_of_the_senders() {
    let mosaic = Mosaic::new([50, 30], [16, 16]);
    let mut store = Store::<f32, 5>::new(mosaic, Layout { width: 5, tagged: true }, 0);
    let mut outboxes: Vec<Outbox<f32, (), 5>> = (0..mosaic.len()).map(|_| Outbox::default()).collect();
    for (from, outbox) in outboxes.iter_mut().enumerate() {
        for k in 0..3 {
            for (j, i) in (0..30).step_by(16).flat_map(|j| (0..50).step_by(16).map(move |i| (j, i))) {
                let place = Place { row: 2, ..mosaic.place(i, j) };
                outbox.push(place, Particle { v: [0.0; 5], bytes: [], tag: (10 * from + k) as u64, column: 1 });
            }
        }
        outbox.seal();
    }
    assert_eq!(deliver(&mut store.tiles, &outboxes), Moved { sent: 8 * 8 * 3, received: 8 * 8 * 3 });
    let expected: Vec<u64> = (0..8).flat_map(|from| (0..3).map(move |k| 10 * from + k)).collect();
    for tile in &store.tiles {
        assert_eq!(tile.rows[2].tags(), expected);
    }
}

/// One, two and seven threads leave every particle in the same slot, also where one tile holds nearly everything.
#[test]
fn threads_do_not_matter() {
    let mosaic = Mosaic::new([70, 45], [16, 8]);
    let places: Vec<_> = (0..20_000usize).map(|k| if k % 3 == 0 { (k * 7 % 70, k * 11 % 45) } else { (3, 5) }).collect();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut store = filled(mosaic, &places);
            for step in [[1, 0], [17, 40], [0, 1]] {
                let moved = migrate(&mut store, step, 2);
                assert_eq!((moved.sent, moved.received), (10_000, 10_000));
            }
            store.iter().map(|(place, p)| (place, p.tag)).collect::<Vec<_>>()
        })
    };
    let one = run(1);
    assert!(run(2) == one && run(7) == one);
}

/// Everything in one row: it grows, by quarters, and what comes out is what went in, also after holes were filled.
#[test]
fn a_row_grows_and_keeps_its_particles() {
    let mut row = Row::<f32, 6>::new(Layout { width: 6, tagged: true }, 0);
    let particle = |k: usize| Particle { v: [k as f32; 6], bytes: [], tag: k as u64, column: (k % 7) as u8 };
    for k in 0..1000 {
        row.push(&particle(k));
    }
    for k in 0..1000 {
        assert_eq!(row.get(k), particle(k));
    }
    let mut left: Vec<u64> = (0..400).map(|_| row.swap_remove(300).tag).collect();
    left.extend_from_slice(row.tags());
    left.sort_unstable();
    assert_eq!(left, (0..1000).collect::<Vec<_>>());
    assert!(row.capacity() <= 1312, "grows by quarters: {}", row.capacity());
}

/// A column that is not held costs nothing and reads as 1, tags that are not held as 0.
#[test]
fn columns_that_are_not_held_cost_nothing() {
    let full = Row::<f64, 6, 1>::new(Layout { width: 6, tagged: true }, 320);
    let mut bare = Row::<f64, 6, 1>::new(Layout { width: 5, tagged: false }, 320);
    assert_eq!(full.memory() - bare.memory(), 320 * 16);
    bare.push(&Particle { v: [3.0; 6], bytes: [9], tag: 4, column: 2 });
    assert_eq!(bare.get(0), Particle { v: [3.0, 3.0, 3.0, 3.0, 3.0, 1.0], bytes: [9], tag: 0, column: 2 });
    assert!(bare.tags().is_empty() && bare.columns_mut().v[5].is_empty());
}
