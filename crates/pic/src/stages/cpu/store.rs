//! The store of one species: the engine's tiles of rows, a row of particles for each row of cells.
//!
//! A row holds columns of numbers (`s`, `t`, `ux`, `uy`, `uz`, and `weight` where the species has one) and the cell's column in the
//! tile in a byte: 21 bytes a particle in single precision; a word for the tag where the species has them. The store is kept in
//! place: inside a row the order is free, and nothing is ever sorted.

use zellige_engine::error::Result;
use zellige_engine::parallel::{items, map, map_tasks, threads};
use zellige_engine::real::{Isa, RealScalar};
use zellige_engine::tiles::{self, Layout};
pub(super) use zellige_engine::tiles::{Location, Tiling};

use crate::loading::lanes::{Work, on};
use crate::loading::{Batch, RowOfCells, Source};
use crate::particles::{Particles, Species};
use crate::stages::Visit;

/// Columns of numbers in a row of a species with equal weights.
pub(super) const PLAIN: usize = 5;
/// Columns at most: the last one is the weight.
pub(super) const COLUMNS: usize = 6;

/// One particle out of its row: `s`, `t`, `ux`, `uy`, `uz`, weight.
pub(super) type Particle<T> = tiles::Particle<T, COLUMNS>;
/// Particles in one row of a tile's cells.
pub(super) type Row<T> = tiles::Row<T, COLUMNS>;
/// The columns of a row, to be worked on.
type Columns<'a, T> = tiles::Columns<'a, T, COLUMNS>;
/// A rectangle of cells and its particles.
pub(super) type Tile<T> = tiles::Tile<T, COLUMNS>;
/// Some rows of a tile.
pub(super) type Band<'a, T> = tiles::Band<'a, T, COLUMNS>;
/// All particles of a species.
pub(super) type Store<T> = tiles::Store<T, COLUMNS>;

/// An empty store for a species, with room for `expected` particles spread evenly over all tiles, of which it `owns` some.
pub(super) fn store<T: RealScalar>(tiling: Tiling, species: &Species, expected: usize, owns: impl Fn(usize) -> bool + Sync) -> Store<T> {
    let layout = Layout { words: [species.tagged], ..Layout::new(if species.weighted { COLUMNS } else { PLAIN }) };
    Store::of_part(tiling, layout, expected, owns)
}

/// Puts those particles in that lie in tiles which the store `owns`, in their order. Cells and columns have been checked.
pub(super) fn insert<T: RealScalar>(store: &mut Store<T>, p: &Particles, owns: impl Fn(usize) -> bool) {
    for k in 0..p.len() {
        let [i, j] = [p.i[k] as usize, p.j[k] as usize];
        if !owns(store.tiling.locate(i, j).tile as usize) {
            continue;
        }
        let weight = p.weight.get(k).copied().unwrap_or(1.0);
        let v = [p.s[k], p.t[k], p.u[0][k], p.u[1][k], p.u[2][k], weight].map(T::from_f64);
        let tag = p.tag.get(k).copied().unwrap_or(0);
        store.insert(i, j, 0, Particle { v, words: [tag], key: 0 });
    }
}

/// Writes the numbers and cells of a batch to the columns of a row, of which the first `width` are held.
struct BatchWriter<'a, 'b, T> {
    batch: &'a Batch,
    width: usize,
    columns: &'a mut Columns<'b, T>,
}

impl<T: RealScalar> Work for BatchWriter<'_, '_, T> {
    #[inline(always)]
    fn run(self) {
        let (batch, n) = (self.batch, self.batch.len());
        let from = [&batch.s, &batch.t, &batch.u[0], &batch.u[1], &batch.u[2], &batch.weight];
        for c in 0..self.width {
            let (to, from) = (&mut self.columns.v[c][..n], &from[c][..n]);
            for k in 0..n {
                to[k] = T::from_f64(from[k]);
            }
        }
        let (keys, cells) = (&mut self.columns.keys[..n], &batch.cell[..n]);
        for k in 0..n {
            keys[k] = cells[k] as u8;
        }
    }
}

/// Puts what `source` makes into the cells of an empty tile.
pub(super) fn fill<T: RealScalar>(tile: &mut Tile<T>, source: &Source<'_>, batch: &mut Batch) -> Result<()> {
    let [x, y] = tile.corner.map(|c| c as u32);
    let uniform_rows = source.uniform_rows();
    for (r, row) in tile.rows.iter_mut().enumerate() {
        if let Some(rows) = &uniform_rows {
            row.set_len(rows.len(tile.cells[0]));
            let Columns { v: [s, t, ux, uy, uz, _], words: [tags], keys } = row.columns_mut();
            let first = [x, y + r as u32];
            rows.fill(RowOfCells { first, cells: tile.cells[0], numbers: [s, t, ux, uy, uz], keys, tags });
            continue;
        }
        let columns = 0..tile.cells[0] as u32;
        source.fill(columns.map(|c| [x + c, y + r as u32]), batch)?;
        let n = batch.len();
        row.set_len(n);
        let held = row.layout();
        let mut columns = row.columns_mut();
        on(Isa::best(), BatchWriter { batch, width: held.width, columns: &mut columns });
        if held.words[0] {
            columns.words[0][..n].copy_from_slice(&batch.tag[..n]);
        }
    }
    Ok(())
}

/// A row with its lowest cell.
pub(super) type PlacedRow<'a, T> = ([usize; 2], &'a Row<T>);

/// Particles that are told at a time.
pub(super) const PORTION: usize = 1 << 16;

/// Particles of some rows with their lowest cells: row by row, in the order of their slots.
fn collected<T: RealScalar>(rows: &[PlacedRow<'_, T>]) -> Particles {
    let n = rows.iter().map(|(_, row)| row.len()).sum();
    let mut p = Particles { i: Vec::with_capacity(n), j: Vec::with_capacity(n), ..Particles::default() };
    for to in [&mut p.s, &mut p.t].into_iter().chain(&mut p.u) {
        to.reserve_exact(n);
    }
    for ([i, j], row) in rows {
        p.i.extend(row.keys().iter().map(|c| (i + usize::from(*c)) as u32));
        p.j.extend(std::iter::repeat_n(*j as u32, row.len()));
        let into = |to: &mut Vec<f64>, k| to.extend(row.column(k).iter().map(|v| v.to_f64()));
        into(&mut p.s, 0);
        into(&mut p.t, 1);
        for c in 0..3 {
            into(&mut p.u[c], 2 + c);
        }
        if row.layout().width == COLUMNS {
            into(&mut p.weight, 5);
        }
        p.tag.extend_from_slice(row.word(0));
    }
    p
}

/// All particles: tile by tile, row by row, in the order of their slots. Put into an empty store of the same tiles they
/// come to lie as they did.
pub(super) fn export<T: RealScalar>(store: &Store<T>) -> Particles {
    collected(&store.rows().collect::<Vec<_>>())
}

/// Rows with their lowest cells, about `size` particles together: what `part` makes of them goes to `join` in their order.
pub(super) fn portions<T: RealScalar>(
    store: &Store<T>,
    size: usize,
    part: &(impl Fn(&[PlacedRow<'_, T>]) -> Vec<f64> + Sync),
    join: &mut (dyn FnMut(Vec<f64>) + Send),
) {
    let rows: Vec<_> = store.rows().filter(|(_, row)| !row.is_empty()).collect();
    let mut left = size;
    let portions: Vec<_> = rows
        .chunk_by(|(_, row), _| {
            left = left.saturating_sub(row.len());
            let goes_on = left > 0;
            left = if goes_on { left } else { size };
            goes_on
        })
        .collect();
    // Results of some of them are joined before the next ones are begun: they may be as large as the particles.
    for some in portions.chunks(4 * threads()) {
        map_tasks(items(some), |_, rows| part(rows)).into_iter().for_each(&mut *join);
    }
}

/// All particles in portions, as [`crate::stages::Stages::visit`] gives them.
pub(super) fn visit<T: RealScalar>(store: &Store<T>, part: Visit<'_>, join: &mut (dyn FnMut(Vec<f64>) + Send)) {
    portions(store, PORTION, &|rows| part(collected(rows)), join);
}

/// Particles by their tags, as [`crate::stages::Stages::follow`] gives them.
pub(super) fn follow<T: RealScalar>(store: &Store<T>, tags: &[u64]) -> Vec<[f64; 5]> {
    let rows: Vec<_> = store.rows().collect();
    let found = map(items(&rows), |_, ([i, j], row)| {
        let slots = row.word(0).iter().enumerate().filter_map(|(k, tag)| Some((k, tags.binary_search(tag).ok()?)));
        let point = |k: usize| {
            let v = row.get(k).v.map(RealScalar::to_f64);
            [(i + usize::from(row.keys()[k])) as f64 + 0.5 + v[0], *j as f64 + 0.5 + v[1], v[2], v[3], v[4]]
        };
        slots.map(|(k, slot)| (slot, point(k))).collect::<Vec<_>>()
    });
    let mut out = vec![[f64::NAN; 5]; tags.len()];
    found.into_iter().flatten().for_each(|(slot, point)| out[slot] = point);
    out
}
