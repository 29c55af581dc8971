//! Order by cell inside a row: a stable counting sort whose work memory fits the first caches.

use super::row::Row;
use crate::real::RealScalar;

/// Work memory of a thread that sorts rows.
#[derive(Debug, Clone, Default)]
pub struct Sorter<T> {
    /// Slot that comes to lie in slot `k`.
    from: Vec<u32>,
    values: Vec<T>,
    bytes: Vec<u8>,
    tags: Vec<u64>,
}

impl<T: RealScalar> Sorter<T> {
    /// Nothing yet; it grows with the rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds the order; returns whether anything has to move. `starts` as in [`Row::sort`].
    fn order(&mut self, cells: &[u8], starts: &mut [u32]) -> bool {
        starts.fill(0);
        let mut previous = 0;
        let mut sorted = true;
        for cell in cells {
            starts[usize::from(*cell) + 1] += 1;
            sorted &= *cell >= previous;
            previous = *cell;
        }
        for c in 1..starts.len() {
            starts[c] += starts[c - 1];
        }
        if sorted {
            return false;
        }
        self.from.resize(cells.len(), 0);
        // Each cell's place to fill next is kept where the cell's start will be: shifted by one, it is right again at the end.
        for (k, cell) in cells.iter().enumerate() {
            let next = &mut starts[usize::from(*cell)];
            self.from[*next as usize] = k as u32;
            *next += 1;
        }
        for c in (1..starts.len()).rev() {
            starts[c] = starts[c - 1];
        }
        starts[0] = 0;
        true
    }
}

/// `column[k] = column[from[k]]`.
fn permute<V: Copy>(column: &mut [V], from: &[u32], spare: &mut Vec<V>) {
    spare.clear();
    spare.extend(from.iter().map(|k| column[*k as usize]));
    column.copy_from_slice(spare);
}

impl<T: RealScalar, const N: usize, const B: usize> Row<T, N, B> {
    /// Puts the particles into the order of their cells; those of one cell keep their order. Those of cell `c` are then in the slots
    /// `starts[c]..starts[c + 1]`: `starts` has one entry more than cells, see [`super::Mosaic::cells_of_row`].
    ///
    /// # Panics
    /// Where a particle's cell is not below `starts.len() - 1`.
    pub fn sort(&mut self, starts: &mut [u32], sorter: &mut Sorter<T>) {
        if !sorter.order(self.cells(), starts) {
            return;
        }
        let Sorter { from, values, bytes, tags } = sorter;
        self.each_column(|column| permute(column, from, values));
        let len = self.len();
        let columns = self.columns_mut();
        for column in columns.bytes {
            permute(&mut column[..len], from, bytes);
        }
        permute(&mut columns.cells[..len], from, bytes);
        if !columns.tags.is_empty() {
            permute(&mut columns.tags[..len], from, tags);
        }
    }
}
