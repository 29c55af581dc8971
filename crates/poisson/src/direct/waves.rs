//! Groups of modes that go from part to part while others are worked on.

use std::ops::Range;

use super::line::WIDTH;
use crate::grid::Grid;

/// Groups for each part: with so many, parts wait for the first group and after the last one for an eighth of the time.
const GROUPS: usize = 8;

/// Modes of a row that one task eliminates: whole blocks of tables. Plane grids have one row, which is to make enough groups.
pub(super) const RANGE_MODES: usize = 4 * WIDTH;

/// Neighbouring ranges of modes, numbered row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) ranges: Range<usize>,
    /// Modes of a row, and of a range of them: the last one of a row may have fewer.
    pub(super) row: usize,
    pub(super) width: usize,
}

impl Group {
    /// All modes of some rows.
    pub(super) fn whole(row: usize, rows: usize, width: usize) -> Self {
        Self { ranges: 0..row.div_ceil(width) * rows, row, width }
    }

    /// Row of a range, and its modes in that row.
    pub(super) fn range(&self, range: usize) -> (usize, Range<usize>) {
        let a_row = self.row.div_ceil(self.width);
        let (row, piece) = (range / a_row, range % a_row);
        (row, piece * self.width..self.row.min((piece + 1) * self.width))
    }

    /// Modes of all its ranges.
    pub(super) fn modes(&self) -> Range<usize> {
        let [(row, first), (last_row, last)] = [self.ranges.start, self.ranges.end - 1].map(|range| self.range(range));
        row * self.row + first.start..last_row * self.row + last.end
    }
}

/// The groups of `rows` rows of `row` modes each where there are so many parts.
pub(super) fn groups(row: usize, rows: usize, parts: usize) -> Vec<Group> {
    let all = Group::whole(row, rows, RANGE_MODES);
    let (count, each) = (all.ranges.end, all.ranges.end.div_ceil(GROUPS * parts).max(1));
    (0..count).step_by(each).map(|begin| Group { ranges: begin..count.min(begin + each), ..all.clone() }).collect()
}

/// Messages of a solve from a part of a run on the CPU to a part beside it.
pub(crate) struct Sent {
    /// Groups of modes, each a message.
    pub(crate) groups: usize,
    /// Values in all of them.
    pub(crate) carried: usize,
    /// Values of a plane of the solution.
    pub(crate) plane: usize,
    /// True if the first plane is beside the last one.
    pub(crate) around: bool,
    /// Values of the constant mode, which all tell all; 0 if it is like any other.
    pub(crate) column: usize,
}

impl Sent {
    /// The messages where there are so many parts.
    pub(crate) fn new(grid: &Grid, parts: usize) -> Self {
        let grid = super::axis_swap::grid(grid, crate::estimate::axis_to_swap(grid, false));
        let axes = super::ordered(&grid);
        let ([row, rows], around) = ([axes[0], axes[1]].map(|axis| axis.unknowns().len()), axes[2].periodic());
        Self {
            groups: groups(row, rows, parts).len(),
            carried: row * rows * if around { 2 } else { 1 },
            plane: axes[0].nodes * axes[1].nodes,
            around,
            column: if grid.singular() { axes[2].nodes } else { 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_each_other_and_have_every_mode() {
        for (row, rows) in [(1, 1), (63, 1), (64, 1), (2047, 1), (65, 9), (257, 255)] {
            for parts in 2..9 {
                let (groups, mut next) = (groups(row, rows, parts), 0);
                assert!(groups.len() <= GROUPS * parts);
                for group in &groups {
                    let modes = group.modes();
                    assert_eq!(modes.start, next);
                    let of_ranges: usize = group.ranges.clone().map(|range| group.range(range).1.len()).sum();
                    assert_eq!(of_ranges, modes.len());
                    next = modes.end;
                }
                assert_eq!(next, row * rows, "{row} {rows} {parts}");
            }
        }
    }
}
