//! Lists that sums over views go by: which views touch each tile of the objects, and the parts that sums of the probes are taken in.

use bytemuck::{Pod, Zeroable};

use super::program::{TEAM, TILE_COLUMNS, TILE_ROWS, crowd};
use crate::model::{Model, View};

/// `Tile` of sums.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub(super) struct Tile {
    storage: u32,
    row: i32,
    col: i32,
    begin: u32,
    end: u32,
}

impl Tile {
    /// Range of its visits.
    pub(super) fn visits(&self) -> (u32, u32) {
        (self.begin, self.end)
    }
}

/// `Visit`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub(super) struct Visit {
    view: u32,
    corner: i32,
}

impl Visit {
    /// Number of the view.
    pub(super) fn view(self) -> u32 {
        self.view
    }
}

/// `Part`.
#[repr(C)]
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

/// Tiles of all objects with the views that touch each, in the order of the views. Time and room: visits.
pub(super) fn tiles(model: &Model, views: &[View]) -> (Vec<Tile>, Vec<Visit>) {
    let size = [TILE_ROWS, TILE_COLUMNS];
    let mut tiles = Vec::new();
    let grids: Vec<(usize, [usize; 2])> = model
        .storages
        .iter()
        .enumerate()
        .map(|(storage, s)| {
            let (first, grid) = (tiles.len(), [0, 1].map(|a| s.shape[a].div_ceil(size[a])));
            for (i, j) in (0..grid[0]).flat_map(|i| (0..grid[1]).map(move |j| (i, j))) {
                let (row, col) = ((i * size[0]) as i32, (j * size[1]) as i32);
                tiles.push(Tile { storage: storage as u32, row, col, begin: 0, end: 0 });
            }
            (first, grid)
        })
        .collect();
    let touched = |view: &View| {
        let (first, grid) = grids[view.object as usize];
        let corner = [view.row as usize, view.col as usize];
        let range = [0, 1].map(|a| corner[a] / size[a]..=(corner[a] + model.frame[a] - 1) / size[a]);
        let [rows, columns] = range;
        rows.flat_map(move |i| columns.clone().map(move |j| first + i * grid[1] + j))
    };
    for t in views.iter().flat_map(touched) {
        tiles[t].end += 1;
    }
    let mut all = 0;
    for tile in &mut tiles {
        let count = tile.end;
        (tile.begin, tile.end) = (all, all);
        all += count;
    }
    let mut visits = vec![Visit { view: 0, corner: 0 }; all as usize];
    for (n, view) in views.iter().enumerate() {
        for t in touched(view) {
            let tile = &mut tiles[t];
            let (row, col) = (view.row - tile.row, view.col - tile.col);
            visits[tile.end as usize] = Visit { view: n as u32, corner: row << 16 | (col & 0xffff) };
            tile.end += 1;
        }
    }
    (tiles, visits)
}

/// Views by probe and part, the parts that their sums are taken in, and the first part of every probe (and the end): as many parts as keep a
/// device of so many multiprocessors busy.
pub(super) fn parts(model: &Model, views: &[View], multiprocessors: u32) -> (Vec<u32>, Vec<Part>, Vec<u32>) {
    let mut listed: Vec<u32> = (0..views.len() as u32).collect();
    listed.sort_by_key(|n| views[*n as usize].probe);
    let groups = (model.pixels() / 2).div_ceil(TEAM as usize);
    let wanted = ((multiprocessors * crowd(model.exits())) as usize).div_ceil(groups).max(1);
    let length = views.len().div_ceil(wanted).max(1);
    let (mut parts, mut first) = (Vec::new(), vec![0]);
    let mut begin = 0;
    for probe in 0..model.probes as u32 {
        let count = listed[begin..].iter().take_while(|n| views[**n as usize].probe == probe).count();
        // Part k has views k, k + P, k + 2 P, ..: a few views that follow each other are work for all parts.
        let (own, step) = (listed[begin..begin + count].to_vec(), count.div_ceil(length).max(1));
        let mut at = begin;
        for k in 0..step.min(count) {
            let from = at;
            for n in own[k..].iter().step_by(step) {
                listed[at] = *n;
                at += 1;
            }
            parts.push(Part { probe, begin: from as u32, end: at as u32 });
        }
        begin += count;
        first.push(parts.len() as u32);
    }
    (listed, parts, first)
}

#[cfg(test)]
pub(super) mod tests {
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
            shifts: Vec::new(),
            mag: Vec::new(),
            transfer: Transfer::Far,
            pixel: [1.0; 2],
            filter: Vec::new(),
            power: Power::default(),
            start: State::default(),
            scans: Vec::new(),
        }
    }

    #[test]
    fn every_pixel_of_every_view_is_visited_once() {
        let model = model();
        let (tiles, visits) = tiles(&model, &model.views);
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
    fn parts_hold_every_view_once_by_probe() {
        let model = model();
        let (listed, parts, first) = parts(&model, &model.views, 132);
        assert_eq!(first.len(), 3);
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
