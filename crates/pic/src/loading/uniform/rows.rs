//! Rows of cells of a uniform start on the CPU: particles are written where they stay, some pairs at a time, and nothing else is
//! kept of them. They are, bit for bit, those of a [`Batch`](super::super::Batch), in its order.

use zellige_engine::real::{Isa, RealScalar};
use zellige_engine::rng::Philox;

use super::{COLD, GAUSSIAN, RELATIVISTIC, UniformSource};
use crate::loading::Source;
use crate::loading::lanes::{Work, on};
use crate::loading::random::{OfPairs, SOME, normals_of_pairs, offsets_of_pairs};
use crate::loading::relativistic::{Momenta, draw};
use crate::relativistic::{Frame, NUMBERS_OF_A_PARTICLE, frame_of};
use crate::sampling::Stream;

/// Maker of the rows of a species.
pub(crate) struct UniformRows<'a> {
    source: UniformSource,
    offsets: &'a [[f64; 2]],
    moved: u64,
    isa: Isa,
}

/// A row of cells to be filled.
pub(crate) struct RowOfCells<'a, T> {
    /// Its first cell.
    pub(crate) first: [u32; 2],
    /// Number of cells.
    pub(crate) cells: usize,
    /// Offsets and momenta of the particles: one of each cell, then the next one of each, and so on.
    pub(crate) numbers: [&'a mut [T]; 5],
    /// Their cells.
    pub(crate) keys: &'a mut [u8],
    /// Their tags; empty where there are none.
    pub(crate) tags: &'a mut [u64],
}

impl Source<'_> {
    /// Maker of rows where they are all that becomes of the same few numbers.
    pub(crate) fn uniform_rows(&self) -> Option<UniformRows<'_>> {
        let (source, offsets) = self.uniform_source()?;
        // Others are refused with their place. The longest normal number of 32 random bits is 6.8; momenta of a relativistic gas are
        // below a hundred temperatures, and products of three such numbers are numbers.
        let relativistic = source.heat == RELATIVISTIC;
        let longest =
            |width: f64, drift: f64| if relativistic { (100.0 * width).max(drift.abs()).powi(3) } else { 7.0 * width + drift.abs() };
        let sound = |(width, drift): (&f64, &f64)| *width >= 0.0 && longest(*width, *drift).is_finite();
        source.width.iter().zip(&source.drift).all(sound).then_some(UniformRows { source, offsets, moved: self.moved, isa: self.isa })
    }
}

impl UniformRows<'_> {
    /// Number of particles in a row of so many cells.
    pub(crate) fn len(&self, cells: usize) -> usize {
        cells * self.source.per_cell()
    }

    /// Fills a row.
    pub(crate) fn fill<T: RealScalar>(&self, row: RowOfCells<'_, T>) {
        on(self.isa, Filling { rows: self, row });
    }
}

struct Filling<'a, 'b, T> {
    rows: &'a UniformRows<'a>,
    row: RowOfCells<'b, T>,
}

/// Cells of a row, a register's worth or more, and pairs of particles of all of them.
#[derive(Clone, Copy)]
struct Block {
    /// Cells of the row, and particles of each.
    cells: usize,
    each: usize,
    /// First cell, and how many.
    from: usize,
    width: usize,
}

impl Block {
    /// Writes values of `pairs` pairs of each cell, from pair `first` on: one pair of each cell after the other.
    #[inline(always)]
    fn put<T: RealScalar>(self, first: usize, pairs: usize, values: &OfPairs, to: &mut [T]) {
        for pair in 0..pairs {
            for (odd, values) in values.iter().enumerate() {
                let k = 2 * (first + pair) + odd;
                if k < self.each {
                    let (from, to) = (&values[pair * self.width..][..self.width], &mut to[k * self.cells + self.from..][..self.width]);
                    for c in 0..self.width {
                        to[c] = T::from_f64(from[c]);
                    }
                }
            }
        }
    }
}

impl<T: RealScalar> Work for Filling<'_, '_, T> {
    #[inline(always)]
    fn run(self) {
        let Self { rows: UniformRows { source, offsets: regular, moved, .. }, row } = self;
        let (cells, each) = (row.cells, source.per_cell());
        if cells == 0 {
            return; // a tile that a window has not reached
        }
        let (column, number) = (u64::from(row.first[0]) + moved, Stream::first(row.first[1] as usize));
        for keys in row.keys[..cells * each].chunks_exact_mut(cells) {
            for (c, key) in keys.iter_mut().enumerate() {
                *key = c as u8;
            }
        }
        for (k, tags) in row.tags.chunks_exact_mut(cells).take(each).enumerate() {
            for (c, tag) in tags.iter_mut().enumerate() {
                *tag = source.tag(column + c as u64, row.first[1], k as u64);
            }
        }
        let [s, t, x, y, z] = row.numbers;
        let random = source.random != 0;
        if !random {
            for (offset, (s, t)) in regular.iter().zip(s.chunks_exact_mut(cells).zip(t.chunks_exact_mut(cells))) {
                s.fill(T::from_f64(offset[0]));
                t.fill(T::from_f64(offset[1]));
            }
        }
        if source.line != 0 {
            t[..cells * each].fill(T::ZERO);
        }
        if source.heat == COLD {
            for (to, drift) in [&mut *x, &mut *y, &mut *z].into_iter().zip(source.drift) {
                to[..cells * each].fill(T::from_f64(0.0 + drift));
            }
        }
        let (places, momenta) = (Philox::new(source.place, source.seed), Philox::new(source.momentum, source.seed));
        let (mut columns, mut within, mut numbers) = ([0; SOME], [0; SOME], [0; SOME]);
        let (mut offsets, mut normals) = ([[[0.0; SOME]; 2]; 2], [[[0.0; SOME]; 2]; 3]);
        for from in (0..cells).step_by(SOME) {
            let block = Block { cells, each, from, width: SOME.min(cells - from) };
            // Narrow rows have several pairs of each cell done together.
            let together = SOME / block.width;
            for p in 0..SOME {
                columns[p] = column + (from + p % block.width) as u64;
                within[p] = (p / block.width) as u64;
            }
            for first in (0..each.div_ceil(2)).step_by(together) {
                let pairs = together.min(each.div_ceil(2) - first);
                let some = pairs * block.width;
                if random {
                    for p in 0..SOME {
                        numbers[p] = number + first as u64 + within[p];
                    }
                    offsets_of_pairs(places, &columns, &numbers, some, &mut offsets);
                    block.put(first, pairs, &offsets[0], s);
                    if source.line == 0 {
                        block.put(first, pairs, &offsets[1], t);
                    }
                }
                if source.heat == GAUSSIAN {
                    for p in 0..SOME {
                        numbers[p] = number + 2 * (first as u64 + within[p]);
                    }
                    normals_of_pairs(momenta, &columns, &numbers, some, [source.width, source.drift], &mut normals);
                    block.put(first, pairs, &normals[0], x);
                    block.put(first, pairs, &normals[1], y);
                    block.put(first, pairs, &normals[2], z);
                }
            }
        }
        if source.heat == RELATIVISTIC {
            let [drift_x, drift_y, drift_z] = source.drift;
            let gas = (source.width[0], frame_of(drift_x, drift_y, drift_z));
            draw(
                momenta,
                cells * each,
                gas.1.momentum > 0.0,
                &mut OfRow { cells: cells as u64, column, cell: 0, number, gas, u: [x, y, z] },
            );
        }
    }
}

/// Particles of a row of cells whose momenta are drawn.
struct OfRow<'a, T> {
    cells: u64,
    /// Column of the first cell.
    column: u64,
    /// Cell of the next particle, and its first number.
    cell: u64,
    number: u64,
    gas: (f64, Frame),
    u: [&'a mut [T]; 3],
}

impl<T: RealScalar> Momenta for OfRow<'_, T> {
    #[inline(always)]
    fn key(&mut self, _p: usize) -> [u64; 2] {
        let key = [self.column + self.cell, self.number];
        self.cell += 1;
        if self.cell == self.cells {
            (self.cell, self.number) = (0, self.number + NUMBERS_OF_A_PARTICLE);
        }
        key
    }

    #[inline(always)]
    fn gas(&self, _p: usize) -> (f64, Frame) {
        self.gas
    }

    #[inline(always)]
    fn put(&mut self, p: usize, u: [f64; 3]) {
        for (to, u) in self.u.iter_mut().zip(u) {
            to[p] = T::from_f64(u);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::loading::Batch;
    use crate::setup::Model;

    fn config(dimensions: usize, per_cell: usize, species: &str) -> Config {
        let grid = if dimensions == 1 { r#""cells": [300], "size": [7.0]"# } else { r#""cells": [300, 9], "size": [7.0, 0.9]"# };
        let species = format!(r#"{{"name": "a", "particles_per_cell": {per_cell}{species}}}"#);
        serde_json::from_str(&format!(r#"{{"dt": 0.01, "steps": 1, "grid": {{{grid}}}, "species": [{species}]}}"#)).unwrap()
    }

    /// Fills a row of each kind by every instruction set and compares it with the batch of its cells.
    fn check<T: RealScalar>(source: &Source<'_>, tagged: bool, label: &str) {
        let mut rows = source.uniform_rows().unwrap();
        for (first, cells) in [([0_u32, 0], 16_usize), ([5, 0], 0), ([3, 0], 1), ([290, 0], 10), ([7, 0], 47), ([1, 0], 64), ([20, 0], 255)]
        {
            let mut batch = Batch::default();
            source.fill((0..cells as u32).map(|c| [first[0] + c, first[1]]), &mut batch).unwrap();
            let n = rows.len(cells);
            assert_eq!(n, batch.len(), "{label}");
            for isa in Isa::all() {
                rows.isa = isa;
                // Longer than they have to be, as columns of a row are.
                let mut numbers = [(); 5].map(|()| vec![T::from_f64(f64::NAN); n + 9]);
                let (mut keys, mut tags) = (vec![u8::MAX; n + 9], vec![0; if tagged { n } else { 0 }]);
                let to = numbers.each_mut().map(|v| &mut v[..]);
                rows.fill(RowOfCells { first, cells, numbers: to, keys: &mut keys, tags: &mut tags });
                assert_eq!(tags, batch.tag, "{label}");
                for p in 0..n {
                    let found = [0, 1, 2, 3, 4].map(|c| numbers[c][p].to_f64());
                    let expected = [batch.s[p], batch.t[p], batch.u[0][p], batch.u[1][p], batch.u[2][p]];
                    assert_eq!(
                        found,
                        expected.map(|v| T::from_f64(v).to_f64()),
                        "{label}, {isa:?}: {p} of {cells} cells from {first:?} on"
                    );
                    assert_eq!(u32::from(keys[p]), batch.cell[p], "{label}: {p}");
                }
                assert!(numbers.iter().all(|v| v[n..].iter().all(|v| v.to_f64().is_nan())) && keys[n..].iter().all(|k| *k == u8::MAX));
            }
        }
    }

    #[test]
    fn rows_have_the_bits_and_the_order_of_batches() {
        let starts = [
            "",
            r#", "momentum": {"thermal": [0.1, 0.02, 3.0], "drift": [0.5, -0.25, 1e-3]}"#,
            r#", "momentum": {"temperature": 0.3}, "tagged": true"#,
            r#", "positions": "lattice", "momentum": {"thermal": 0.1}"#,
            r#", "positions": "quiet""#,
            r#", "momentum": {"maxwell_juttner": 0.3}"#,
            r#", "momentum": {"maxwell_juttner": 2.0, "drift": [0.5, 0.0, -7.0]}, "positions": "lattice""#,
        ];
        for (dimensions, per_cell, species) in starts.into_iter().flat_map(|s| [(1, 1, s), (1, 4, s), (2, 9, s), (2, 36, s)]) {
            let config = config(dimensions, per_cell, species);
            let model = Model::new(&config, std::path::Path::new(""), 0x1234_5678_9abc).unwrap();
            let (setup, total_field) = (model.setup(&config).unwrap(), Default::default());
            let source = Source::new(&model, &setup, 0, 11, &total_field);
            let label = format!("{dimensions}, {per_cell}{species}");
            check::<f32>(&source, species.contains("tagged"), &label);
            check::<f64>(&source, species.contains("tagged"), &label);
        }
    }

    /// Starts that differ from cell to cell, or are no numbers, are left to batches, which refuse the latter with their place.
    #[test]
    fn other_starts_have_no_rows() {
        for species in [
            r#", "density": "1+x""#,
            r#", "momentum": {"temperature": "1+x"}"#,
            r#", "momentum": {"thermal": [0.1, 0.1, 1e308]}"#,
            r#", "momentum": {"maxwell_juttner": "0.3 + x"}"#,
            r#", "momentum": {"maxwell_juttner": 1e300}"#,
        ] {
            let config = config(2, 4, species);
            let model = Model::new(&config, std::path::Path::new(""), 1).unwrap();
            let (setup, total_field) = (model.setup(&config).unwrap(), Default::default());
            assert!(Source::new(&model, &setup, 0, 0, &total_field).uniform_rows().is_none(), "{species}");
        }
    }
}
