//! Lists that sums over views go by: which views touch each tile of the objects, and the parts that sums of the probes are taken
//! in.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use zellige_device_macro::device;
use zellige_engine::parallel::{chunks, each, map, owned};

use super::program::{TEAM, TILE_COLUMNS, TILE_ROWS, crowd, pair};
use super::sections::{DEVICES, cuts};
use crate::model::{Model, View};

/// Tile of an object, and the range of its visits.
#[device]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub(super) struct Tile {
    storage: u32,
    row: i32,
    col: i32,
    begin: u32,
    end: u32,
    /// First of the visits in which a section begins, the first section left out, and their number.
    pub(super) cut: u32,
    pub(super) cuts: u32,
}

impl Tile {
    /// Range of its visits.
    pub(super) fn visits(&self) -> (u32, u32) {
        (self.begin, self.end)
    }
}

/// View that touches a tile.
#[device]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub(super) struct Visit {
    view: u32,
    /// Corner of the view as seen from the tile's: row and column, 16 bits each.
    corner: i32,
}

impl Visit {
    /// Number of the view.
    pub(super) fn view(self) -> u32 {
        self.view
    }
}

/// Views of one set of probes whose sums are taken together, in the order of the list.
#[device]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub(super) struct Part {
    probe: u32,
    begin: u32,
    end: u32,
}

impl Part {
    /// Range of the list of views.
    pub(super) fn listed(&self) -> (u32, u32) {
        (self.begin, self.end)
    }
}

/// Tile rows that are worked on together, and the numbers of their tiles.
struct Band {
    rows: Range<usize>,
    columns: usize,
    first: usize,
}

impl Band {
    /// Gives the tiles of the band that a view touches, counted from its first, row by row.
    fn each_touched(&self, view: &View, frame: [usize; 2], mut take: impl FnMut(usize)) {
        let [rows, columns] = span(view, frame);
        for i in rows.start.max(self.rows.start)..rows.end.min(self.rows.end) {
            let first = (i - self.rows.start) * self.columns;
            (first + columns.start..first + columns.end).for_each(&mut take);
        }
    }

    fn tiles(&self) -> usize {
        self.rows.len() * self.columns
    }
}

/// Rows and columns of the tiles that a view touches.
fn span(view: &View, frame: [usize; 2]) -> [Range<usize>; 2] {
    let (corner, size) = ([view.row as usize, view.col as usize], [TILE_ROWS, TILE_COLUMNS]);
    [0, 1].map(|a| corner[a] / size[a]..(corner[a] + frame[a] - 1) / size[a] + 1)
}

/// Bands of all objects, the first one of each, and their rows: about a hundred bands, none so thin that views lie in many.
fn bands(model: &Model) -> (Vec<Band>, Vec<usize>, usize) {
    let grids: Vec<[usize; 2]> =
        model.storages.iter().map(|s| [s.shape[0].div_ceil(TILE_ROWS), s.shape[1].div_ceil(TILE_COLUMNS)]).collect();
    let all: usize = grids.iter().map(|g| g[0]).sum();
    let height = all.div_ceil(128).max(model.frame[0].div_ceil(TILE_ROWS));
    let (mut bands, mut first_band, mut first) = (Vec::new(), Vec::new(), 0);
    for [rows, columns] in grids {
        first_band.push(bands.len());
        for start in (0..rows).step_by(height) {
            let band = Band { rows: start..(start + height).min(rows), columns, first };
            first += band.tiles();
            bands.push(band);
        }
    }
    (bands, first_band, height)
}

/// Pieces of a slice, as long as each band has of something.
fn split<T>(mut all: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    lengths.map(|n| all.split_off_mut(..n).unwrap_or_default()).collect()
}

/// Tiles of all objects, cut by sections, with the views that touch each, and the cuts ([`cuts`]).
pub(super) fn tiles(model: &Model, views: &[View]) -> (Vec<Tile>, Vec<Visit>, Vec<u32>) {
    let (mut tiles, visits) = visited(model, views);
    let cuts = cuts(&mut tiles, &visits, views.len());
    (tiles, visits, cuts)
}

/// Tiles of all objects with the views that touch each, in the order of the views, whatever the number of threads: views are sorted
/// by band, and bands by tile, each by a thread of its own. Time and memory: visits.
fn visited(model: &Model, views: &[View]) -> (Vec<Tile>, Vec<Visit>) {
    let (bands, first_band, height) = bands(model);
    let mut tiles = Vec::with_capacity(bands.iter().map(Band::tiles).sum());
    for (storage, s) in model.storages.iter().enumerate() {
        let grid = [s.shape[0].div_ceil(TILE_ROWS), s.shape[1].div_ceil(TILE_COLUMNS)];
        for (i, j) in (0..grid[0]).flat_map(|i| (0..grid[1]).map(move |j| (i, j))) {
            let (row, col) = ((i * TILE_ROWS) as i32, (j * TILE_COLUMNS) as i32);
            tiles.push(Tile { storage: storage as u32, row, col, ..Tile::zeroed() });
        }
    }
    // Views of each band, by the pieces of the scan that threads have taken.
    let piece = views.len().div_ceil(64).max(1 << 12);
    let sorted: Vec<Vec<Vec<u32>>> = map(chunks(views, piece), |number, part| {
        let mut of = vec![Vec::new(); bands.len()];
        for (n, view) in part.iter().enumerate() {
            let ([rows, _], first) = (span(view, model.frame), first_band[view.object as usize]);
            for band in rows.start / height..=(rows.end - 1) / height {
                of[first + band].push((number * piece + n) as u32);
            }
        }
        of
    });
    let of_band = |b: usize| sorted.iter().flat_map(move |of| of[b].iter().copied());
    each(owned(split(&mut tiles, bands.iter().map(Band::tiles))), |b, tiles| {
        for n in of_band(b) {
            bands[b].each_touched(&views[n as usize], model.frame, |t| tiles[t].end += 1);
        }
    });
    let mut all = 0;
    for tile in &mut tiles {
        let count = tile.end;
        (tile.begin, tile.end) = (all, all);
        all += count;
    }
    let mut visits = vec![Visit { view: 0, corner: 0 }; all as usize];
    let begin = |b: usize| bands.get(b).and_then(|band| tiles.get(band.first)).map_or(all, |tile| tile.begin);
    let lengths: Vec<usize> = (0..bands.len()).map(|b| (begin(b + 1) - begin(b)) as usize).collect();
    let visits_of = split(&mut visits, lengths.into_iter());
    let tiles_of = split(&mut tiles, bands.iter().map(Band::tiles));
    each((owned(tiles_of), owned(visits_of)), |b, (tiles, visits)| {
        let first = tiles.first().map_or(0, |tile| tile.begin);
        for n in of_band(b) {
            let view = &views[n as usize];
            bands[b].each_touched(view, model.frame, |t| {
                let tile = &mut tiles[t];
                let (row, col) = (view.row - tile.row, view.col - tile.col);
                visits[(tile.end - first) as usize] = Visit { view: n, corner: row << 16 | (col & 0xffff) };
                tile.end += 1;
            });
        }
    });
    (tiles, visits)
}

/// Tiles of all objects, and how many visits there are, about.
pub(in crate::stages) fn crowding(model: &Model) -> (usize, usize) {
    let (bands, ..) = bands(model);
    let visits = |v: &View| span(v, model.frame).map(|range| range.len()).iter().product::<usize>();
    let visits = map(chunks(&model.views, 1 << 14), |_, views| views.iter().map(visits).sum::<usize>());
    (bands.iter().map(Band::tiles).sum(), visits.into_iter().sum())
}

/// Number of the parts that sums of the probes are taken in, and of their bundles ([`parts`]).
pub(crate) fn probe_sums(model: &Model, multiprocessors: u32, number: usize) -> [usize; 2] {
    let (_, parts, bundles, _) = parts(model, &model.views, multiprocessors, number);
    [parts.len(), bundles.len() - 1]
}

/// Views of a part of the probes' sums from which on one more of them costs less than a twentieth.
const MANY: usize = 48;

/// Views by probe and part, the parts that their sums are taken in, the first part of every bundle of these (and the end), and the
/// first bundle of every probe (and the end): of a device of so many multiprocessors, where a number takes so many bytes.
///
/// Parts are at most as many as a device has under way at once (one block more would be waited for by all), or that times two, four
/// or [`DEVICES`], each in a bundle of its own, whose sums are added up first: where a run has as many parts, each tells the others
/// one sum.
pub(super) fn parts(model: &Model, views: &[View], multiprocessors: u32, number: usize) -> (Vec<u32>, Vec<Part>, Vec<u32>, Vec<u32>) {
    let mut listed: Vec<u32> = (0..views.len() as u32).collect();
    // In the order of the views for each probe.
    listed.sort_by_key(|n| views[*n as usize].probe);
    let groups = (model.pixels() / pair(model.frame, number)).div_ceil(TEAM as usize);
    let at_once = ((multiprocessors * crowd(model.exits(), number)) as usize / groups).max(1);
    let (mut parts, mut bundles, mut first) = (Vec::new(), vec![0], vec![0]);
    let mut begin = 0;
    for probe in 0..model.probes as u32 {
        let count = listed[begin..].iter().take_while(|n| views[**n as usize].probe == probe).count();
        let number = |times: usize| (at_once * times * count / views.len().max(1)).max(1);
        let times = (1..=DEVICES.ilog2()).rev().map(|power| 1 << power).find(|times| count >= MANY * number(*times));
        let times = times.unwrap_or(1);
        let number = number(times).min(count);
        // Views that follow each other: a part of a run, or a block of frames, adds to few parts of the sums.
        let bound = |k: usize| (begin + k * count / number) as u32;
        parts.extend((0..number).map(|k| Part { probe, begin: bound(k), end: bound(k + 1) }));
        begin += count;
        let before = parts.len() - number;
        bundles.extend((1..=times).map(|bundle| (before + bundle * number / times) as u32));
        bundles.dedup();
        first.push(bundles.len() as u32 - 1);
    }
    (listed, parts, bundles, first)
}

#[cfg(test)]
pub(super) mod tests {
    use zellige_engine::device::Cpu;

    use super::*;
    use crate::model::{Power, State, Storage, Transfer};

    pub(in crate::stages::cuda) fn model() -> Model {
        let views = (0..40_i32)
            .map(|i| View { probe: (i % 3 == 1).into(), object: (i % 2) as u32, row: 7 * (i / 4) % 30, col: 11 * i % 50 })
            .collect();
        let storage = |offset| Storage { shape: [64, 90], offset, origin: [0.0; 2] };
        Model {
            frame: [20, 36],
            modes: [1, 1],
            probes: 2,
            storages: vec![storage(0), storage(64 * 90)],
            views,
            subpixel: false,
            shifts: Vec::new(),
            bin: [1, 1],
            mag: Vec::new(),
            transfer: Transfer::Far,
            pixel: [1.0; 2],
            filter: Vec::new(),
            power: Power::default(),
            start: State::default(),
            begins: Vec::new(),
            scans: Vec::new(),
            share: crate::share::Share::default(),
        }
    }

    /// A larger one, with views in four sections.
    pub(in crate::stages::cuda) fn sectioned() -> Model {
        let mut model = model();
        model.storages.iter_mut().for_each(|s| (s.shape[0], s.offset) = (140, s.offset / 64 * 140));
        model.views = (0..2100_i32).map(|i| View { probe: 0, object: (i % 2) as u32, row: i / 20, col: 11 * i % 54 }).collect();
        model
    }

    #[test]
    fn every_pixel_of_every_view_is_visited_once() {
        let model = model();
        let (tiles, visits, _) = tiles(&model, &model.views);
        let mut seen = vec![0; model.views.len()];
        for tile in &tiles {
            let list = &visits[tile.begin as usize..tile.end as usize];
            assert!(list.windows(2).all(|w| w[0].view < w[1].view));
            for visit in list {
                let view = &model.views[visit.view as usize];
                let (row, col) = (visit.corner >> 16, i32::from(visit.corner as i16));
                assert_eq!((tile.storage, tile.row + row, tile.col + col), (view.object, view.row, view.col));
                for (y, x) in (0..TILE_ROWS as i32).flat_map(|y| (0..TILE_COLUMNS as i32).map(move |x| (y - row, x - col))) {
                    seen[visit.view as usize] += i32::from((0..20).contains(&y) && (0..36).contains(&x));
                }
            }
        }
        assert!(seen.iter().all(|n| *n == 20 * 36), "{seen:?}");
    }

    #[test]
    fn lists_do_not_depend_on_threads() {
        let mut model = model();
        // More than one piece of the scan, and more than one band.
        model.storages.iter_mut().for_each(|s| (s.shape[0], s.offset) = (700, s.offset / 64 * 700));
        model.views = (0..20_000_i32).map(|i| View { probe: 0, object: (i % 2) as u32, row: 37 * i % 680, col: 11 * i % 54 }).collect();
        let on = |threads| Cpu::new(threads).unwrap().install(|| tiles(&model, &model.views));
        let (tiles, visits, cuts) = on(1);
        assert!((tiles.clone(), visits.clone(), cuts) == on(3));
        // Tiles of a view: those of a plain sort.
        let mut begin = 0;
        for tile in &tiles {
            let touches = |v: &View| {
                let near = |at: i32, edge: i32, frame: i32, size: usize| at < edge + size as i32 && edge < at + frame;
                v.object == tile.storage && near(v.row, tile.row, 20, TILE_ROWS) && near(v.col, tile.col, 36, TILE_COLUMNS)
            };
            let expected: Vec<u32> = (0..).zip(&model.views).filter(|(_, v)| touches(v)).map(|(n, _)| n).collect();
            assert_eq!(tile.begin, begin);
            assert!(visits[tile.begin as usize..tile.end as usize].iter().map(|v| v.view).eq(expected));
            begin = tile.end;
        }
        assert_eq!(begin as usize, visits.len());
    }

    /// Seconds that the lists of a million views take: run by hand with `--ignored --nocapture`.
    #[test]
    #[ignore = "a measurement"]
    fn times() {
        let mut model = model();
        (model.frame, model.storages) = ([16, 16], vec![Storage { shape: [1717, 1717], offset: 0, origin: [0.0; 2] }]);
        let at = |i: u32| (f64::from(i) * 1.7) as i32;
        model.views = (0..1_000_000).map(|n| View { probe: 0, object: 0, row: at(n / 1000), col: at(n % 1000) }).collect();
        for threads in [1, 2, 4, 8, 16] {
            let pool = Cpu::new(threads).unwrap();
            let begin = std::time::Instant::now();
            let (tiles, visits, _) = pool.install(|| tiles(&model, &model.views));
            let first = begin.elapsed().as_secs_f64();
            let (_, parts, ..) = pool.install(|| parts(&model, &model.views, 132, 4));
            let all = begin.elapsed().as_secs_f64();
            println!(
                "{threads:2} threads: {first:.3} s for {} visits of {} tiles, {:.3} s for {} parts",
                visits.len(),
                tiles.len(),
                all - first,
                parts.len()
            );
        }
    }

    #[test]
    fn parts_hold_every_view_once_by_probe() {
        let model = model();
        let (listed, parts, bundles, first) = parts(&model, &model.views, 132, 4);
        assert_eq!(first.len(), 3);
        let first: Vec<u32> = first.iter().map(|bundle| bundles[*bundle as usize]).collect();
        let mut seen = vec![0; model.views.len()];
        for (i, part) in parts.iter().enumerate() {
            let probe = (first[1] as usize <= i) as u32;
            assert_eq!(part.probe, probe);
            for n in &listed[part.begin as usize..part.end as usize] {
                assert_eq!(model.views[*n as usize].probe, probe);
                seen[*n as usize] += 1;
            }
        }
        assert!(seen.iter().all(|n| *n == 1));
    }
}
