//! The greatest `sum_o |O|^2` of whole objects, kept up to date while views change parts of them: maxima of a few pixels of a row
//! each, and of every row, of which a view looks through its own alone.

use std::ops::Range;

use super::FixedData;
use super::lanes::Number;
use super::store::StoragePlanes;
use crate::model::View;

/// Pixels of a row that have a maximum of their own.
const BLOCK: usize = 16;

/// Maxima of every object.
pub(super) struct Greatest<T>(Vec<Maxima<T>>);

struct Maxima<T> {
    /// `[rows][blocks of a row]`.
    blocks: Vec<T>,
    rows: Vec<T>,
}

impl<T: Number> Greatest<T> {
    pub(super) fn new(fixed: &FixedData<T>, object: &[T]) -> Self {
        let maxima = |storage: &StoragePlanes| {
            let [height, width] = storage.shape;
            let across = width.div_ceil(BLOCK);
            let mut maxima = Maxima { blocks: vec![T::ZERO; height * across], rows: vec![T::ZERO; height] };
            maxima.look(storage, fixed.modes[1], object, 0..height, 0..across);
            maxima
        };
        Self(fixed.storages.iter().map(maxima).collect())
    }

    /// Looks again where a view has changed its object.
    #[inline(always)]
    pub(super) fn changed(&mut self, fixed: &FixedData<T>, object: &[T], view: &View) {
        let (row, col) = (view.row as usize, view.col as usize);
        let blocks = col / BLOCK..(col + fixed.shape.nx).div_ceil(BLOCK);
        let storage = &fixed.storages[view.object as usize];
        self.0[view.object as usize].look(storage, fixed.modes[1], object, row..row + fixed.shape.ny, blocks);
    }

    /// The greatest value of an object.
    #[inline(always)]
    pub(super) fn of(&self, object: u32) -> T {
        largest(&self.0[object as usize].rows)
    }
}

impl<T: Number> Maxima<T> {
    #[inline(always)]
    fn look(&mut self, storage: &StoragePlanes, modes: usize, object: &[T], rows: Range<usize>, blocks: Range<usize>) {
        let width = storage.shape[1];
        let across = width.div_ceil(BLOCK);
        for y in rows {
            let own = &mut self.blocks[y * across..(y + 1) * across];
            for block in blocks.clone() {
                let (start, end) = (block * BLOCK, width.min((block + 1) * BLOCK));
                let mut seen = [T::ZERO; BLOCK];
                for o in 0..modes {
                    let [re, im] = storage.layer(object, o).map(|plane| &plane[y * width + start..y * width + end]);
                    for ((seen, re), im) in seen.iter_mut().zip(re).zip(im) {
                        *seen += *re * *re + *im * *im;
                    }
                }
                let mut half = BLOCK / 2;
                while half > 0 {
                    for x in 0..half {
                        seen[x] = if seen[x] > seen[x + half] { seen[x] } else { seen[x + half] };
                    }
                    half /= 2;
                }
                own[block] = seen[0];
            }
            self.rows[y] = largest(own);
        }
    }
}

/// The largest of values that are not negative.
#[inline(always)]
fn largest<T: Number>(values: &[T]) -> T {
    let mut largest = T::ZERO;
    for value in values {
        largest = if *value > largest { *value } else { largest };
    }
    largest
}
