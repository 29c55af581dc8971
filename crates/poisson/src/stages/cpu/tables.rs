//! The operator and the transfers of a level as tables over rows, in the precision that uses them.
//!
//! Weights in x are tables over the row, zero outside the unknowns; those of the other axes are scalars per row. Blocks
//! in the middle of a row where nothing varies are listed apart, so that the tables need not be read there.

use std::ops::Range;

use zellige_engine::real::RealScalar;

use super::field::{Aligned, PAD, Shape};
use crate::grid::{Axis, Grid, Transfer};

/// Set of nodes that a relaxation changes. The colour of a node is the parity of the sum of its indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    /// Even nodes.
    Red,
    /// Odd nodes.
    Black,
    /// All nodes.
    All,
}

/// `table` padded by zeros to whole blocks and rounded to `T`.
fn padded<T: RealScalar>(width: usize, table: impl Iterator<Item = f64>) -> Vec<T> {
    let mut out: Vec<T> = table.map(T::from_f64).collect();
    out.resize(width.max(out.len()), T::ZERO);
    out
}

/// The operator of a level times `scale`.
#[derive(Debug)]
pub(super) struct Operator<T> {
    /// Weight of the node west of each node of a row.
    pub west: Vec<T>,
    /// Weight of the node east.
    pub east: Vec<T>,
    /// 1 on nodes of a row that can be unknowns, else 0.
    pub inside: Vec<T>,
    /// Blocks in which `west`, `east`, `inside` and the steps do not vary from block to block.
    pub uniform: Range<usize>,
    /// Weights `(lower, upper)` across the rows of a slab.
    pub rows: Vec<(T, T)>,
    /// Weights `(lower, upper)` across slabs.
    pub slabs: Vec<(T, T)>,
    /// Class of each row of a slab: rows with the same weights share a number; `None` if it holds no unknowns.
    row_kind: Vec<Option<usize>>,
    /// Class of each slab, likewise.
    slab_kind: Vec<Option<usize>>,
    /// `1 / d` of the nodes of a row by `[row kind][slab kind][even, odd, all]`, laid out as a row of a field.
    steps: Vec<Vec<[Aligned<T>; 3]>>,
    /// Control volumes in units of the cells, zero outside the unknowns: along x, across rows, across slabs.
    pub volumes: [Vec<f64>; 3],
    /// The x volumes as a table over the row.
    pub volume_x: Vec<T>,
    /// Sum of all volumes.
    pub volume: f64,
}

/// Numbers the distinct weights of an axis; nodes that are no unknowns get none.
fn kinds(axis: &Axis) -> (Vec<Option<usize>>, Vec<f64>) {
    let mut sums = Vec::new();
    let kind = (0..axis.nodes)
        .map(|i| {
            if !axis.unknowns().contains(&i) {
                return None;
            }
            let (west, east) = axis.weights(i);
            let sum = west + east;
            Some(sums.iter().position(|s| *s == sum).unwrap_or_else(|| {
                sums.push(sum);
                sums.len() - 1
            }))
        })
        .collect();
    (kind, sums)
}

impl<T: RealScalar> Operator<T> {
    pub(super) fn new(grid: &Grid, scale: f64) -> Self {
        let [x, y, z] = &grid.axes;
        let width = Shape::new(grid).width();
        let west: Vec<T> = padded(width, (0..x.nodes).map(|i| x.weights(i).0 * scale));
        let east: Vec<T> = padded(width, (0..x.nodes).map(|i| x.weights(i).1 * scale));
        let inside: Vec<T> = padded(width, (0..x.nodes).map(|i| f64::from(u8::from(x.unknowns().contains(&i)))));
        let blocks = width / PAD;
        let pair = |axis: &Axis| {
            (0..axis.nodes).map(|i| axis.weights(i)).map(|(a, b)| (T::from_f64(a * scale), T::from_f64(b * scale))).collect::<Vec<_>>()
        };
        let ((row_kind, row_sums), (slab_kind, slab_sums)) = (kinds(y), kinds(z));
        let x_sums: Vec<f64> = (0..x.nodes).map(|i| x.weights(i).0 + x.weights(i).1).collect();
        let step = |others: f64, colour: Colour| {
            let value = |i: usize| {
                let (d, in_colour) =
                    (scale * (x_sums[i] + others), colour == Colour::All || i.is_multiple_of(2) == (colour == Colour::Red));
                if in_colour && x.unknowns().contains(&i) && d > 0.0 { 1.0 / d } else { 0.0 }
            };
            let mut table = Aligned::new(width + 2 * PAD);
            let row = &mut table.get_mut()[PAD..];
            (0..x.nodes).for_each(|i| row[i] = T::from_f64(value(i)));
            table
        };
        let steps: Vec<Vec<[Aligned<T>; 3]>> = row_sums
            .iter()
            .map(|a| slab_sums.iter().map(|b| [Colour::Red, Colour::Black, Colour::All].map(|c| step(a + b, c))).collect())
            .collect();
        // A block is uniform if it equals the second one in every table; the first and the last hold the ends.
        let same = |table: &[T], b: usize| table[b * PAD..(b + 1) * PAD] == table[PAD..2 * PAD];
        let constant = |table: &[T], b: usize| table[b * PAD..(b + 1) * PAD].iter().all(|v| *v == table[PAD]);
        let uniform = |b: usize| {
            constant(&west, b)
                && constant(&east, b)
                && constant(&inside, b)
                && steps.iter().flatten().flatten().all(|table| same(&table.get()[PAD..], b))
        };
        let end = (1..blocks).find(|b| !uniform(*b)).unwrap_or(blocks.max(1));
        let volume = |axis: &Axis| -> Vec<f64> {
            (0..axis.nodes).map(|i| if axis.unknowns().contains(&i) { axis.volume(i) / axis.h } else { 0.0 }).collect()
        };
        let volumes = [x, y, z].map(volume);
        let volume = volumes.iter().map(|v| v.iter().sum::<f64>()).product();
        let volume_x = padded(width, volumes[0].iter().copied());
        Self { west, east, inside, uniform: 1..end, rows: pair(y), slabs: pair(z), row_kind, slab_kind, steps, volumes, volume_x, volume }
    }

    /// Returns true if row `j` of slab `k` holds unknowns.
    pub(super) fn has_unknowns(&self, j: usize, k: usize) -> bool {
        self.row_kind[j].is_some() && self.slab_kind[k].is_some()
    }

    /// `1 / d` on the nodes of `colour` of row `j` in slab `k`, else 0; `None` if the row holds no unknowns.
    pub(super) fn step(&self, colour: Colour, j: usize, k: usize) -> Option<&[T]> {
        let tables = &self.steps[self.row_kind[j]?][self.slab_kind[k]?];
        let odd_row = (j + k) % 2 == 1;
        let table = match (colour, odd_row) {
            (Colour::Red, false) | (Colour::Black, true) => &tables[0],
            (Colour::Red, true) | (Colour::Black, false) => &tables[1],
            (Colour::All, _) => &tables[2],
        };
        Some(&table.get()[PAD..][..self.west.len()])
    }
}

/// The transfer of one axis, in the precision that uses it.
#[derive(Debug)]
pub(super) struct AxisTransfer<T> {
    /// Marks a coarsened axis.
    pub coarsened: bool,
    /// Marks a coarse axis of a single node.
    pub collapsed: bool,
    /// Coarse node at or west of each fine node.
    pub parent: Vec<usize>,
    /// Coarse node after `parent`, wrapped on a periodic axis.
    pub next: Vec<usize>,
    /// Weight of `parent`; for the axis of a row: of coarse node `i / 2`, padded.
    pub west: Vec<T>,
    /// Weight of `next`; for the axis of a row: of coarse node `i / 2 + 1`, padded.
    pub east: Vec<T>,
    /// Fine node under each coarse node.
    pub child: Vec<usize>,
    /// Restriction weights from `child - 1`, `child`, `child + 1`, zero on coarse nodes that are no unknowns; padded.
    pub restrict: [Vec<T>; 3],
}

impl<T: RealScalar> AxisTransfer<T> {
    pub(super) fn new(t: &Transfer, coarse: &Axis, width: usize, coarse_width: usize) -> Self {
        let nc = coarse.nodes;
        // A last node that is a coarse node of its own is written as the east end of the pair before it.
        let collapsed = t.coarsened && coarse.is_flat();
        let shifted = |i: usize| t.coarsened && !collapsed && t.parent[i] as usize != i / 2;
        let parent = (0..t.parent.len()).map(|i| if shifted(i) { i / 2 } else { t.parent[i] as usize }).collect::<Vec<_>>();
        let west = (0..parent.len()).map(|i| if shifted(i) { 0.0 } else { t.west[i] });
        let east = (0..parent.len()).map(|i| if shifted(i) { t.west[i] } else { t.east[i] });
        let weight =
            |slot: usize| padded(coarse_width, (0..nc).map(|c| if coarse.unknowns().contains(&c) { t.restrict[c][slot] } else { 0.0 }));
        Self {
            coarsened: t.coarsened,
            collapsed,
            next: parent.iter().map(|p| (p + 1) % nc).collect(),
            west: padded(width, west),
            east: padded(width, east),
            parent,
            child: t.child.iter().map(|c| *c as usize).collect(),
            restrict: [weight(0), weight(1), weight(2)],
        }
    }
}

/// The transfers of a level to the next coarser one: along a row, across rows, across slabs.
pub(super) fn transfers<T: RealScalar>(t: &[Transfer; 3], fine: &Grid, coarse: &Grid) -> [AxisTransfer<T>; 3] {
    let (width, coarse_width) = (Shape::new(fine).width(), Shape::new(coarse).width());
    std::array::from_fn(|role| {
        let (w, cw) = if role == 0 { (width, coarse_width) } else { (0, 0) };
        AxisTransfer::new(&t[role], &coarse.axes[role], w, cw)
    })
}
