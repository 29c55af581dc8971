//! The rows of a batch cut into stretches of modes, along which a task eliminates and substitutes.

use std::ops::Range;

use zellige_engine::parallel::Parts;
use zellige_engine::real::prefetch;

use super::super::line::{Lines, WIDTH};
use super::super::transform::Scalar;
use super::super::waves::Group;
use super::Solver;
use crate::isa::Work;

/// Modes of a row that one task eliminates where a part has all planes; whole blocks of tables.
const RANGE_MODES: usize = 16 * WIDTH;

/// The stretches of the planes of a batch.
pub(super) struct ModeRanges<'a, T> {
    solver: &'a Solver<T>,
    planes: SharedValues<'a, T>,
    /// Number of the first plane along the last axis, and how many there are.
    first: usize,
    count: usize,
    carry: SharedValues<'a, T>,
    border: SharedValues<'a, T>,
    group: Group,
}

/// Values that threads share, parts of which each is one thread's.
struct SharedValues<'a, T> {
    start: *mut T,
    values: std::marker::PhantomData<&'a mut [T]>,
}

// SAFETY: it is followed only as `Parts::part` allows, which gives every value to one thread.
unsafe impl<T: Send> Sync for SharedValues<'_, T> {}

impl<'a, T> SharedValues<'a, T> {
    fn new(values: &'a mut [T]) -> Self {
        Self { start: values.as_mut_ptr(), values: std::marker::PhantomData }
    }

    /// # Safety
    /// They exist, and nobody else has them.
    unsafe fn part(&self, at: usize, len: usize) -> &'a mut [T] {
        // SAFETY: the caller's.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(at), len) }
    }
}

/// The rows of a range of modes, and the values carried from row to row.
pub(super) struct ModeRange<'a, T> {
    /// First value of the first row, and from row to row.
    start: *mut T,
    stride: usize,
    first: usize,
    count: usize,
    /// First of its tables.
    block: usize,
    carry: &'a mut [T],
    border: &'a mut [T],
}

impl<'a, T: Scalar> ModeRanges<'a, T> {
    /// Takes `planes`, from number `first` on along the last axis; `carry` and `border` have a value per mode.
    pub(super) fn new(solver: &'a Solver<T>, planes: &'a mut [T], first: usize, carry: &'a mut [T], border: &'a mut [T]) -> Self {
        let all = Group::whole(solver.x.len(), solver.middle.len(), RANGE_MODES);
        Self::of_group(solver, planes, first, [carry, border], &all)
    }

    /// Takes the stretches of a group of modes alone.
    pub(super) fn of_group(
        solver: &'a Solver<T>,
        planes: &'a mut [T],
        first: usize,
        [carry, border]: [&'a mut [T]; 2],
        group: &Group,
    ) -> Self {
        let (row, rows) = (solver.x.len(), solver.middle.len());
        let modes = row * rows;
        assert!(planes.len().is_multiple_of(solver.plane()) && carry.len() == modes && border.len() == modes);
        assert!(group.row == row && group.ranges.end <= row.div_ceil(group.width) * rows);
        let count = planes.len() / solver.plane();
        let [carry, border] = [carry, border].map(SharedValues::new);
        Self { solver, planes: SharedValues::new(planes), first, count, carry, border, group: group.clone() }
    }
}

// SAFETY: stretches do not overlap; the length is that of the field.
unsafe impl<'a, T: Scalar> Parts for ModeRanges<'a, T> {
    type Part = ModeRange<'a, T>;

    fn count(&self) -> usize {
        self.group.ranges.len()
    }

    unsafe fn part(&self, i: usize) -> ModeRange<'a, T> {
        let (row, Range { start: begin, end }) = self.group.range(self.group.ranges.start + i);
        let (len, [x, middle, _]) = (self.solver.x.len(), &self.solver.unknowns);
        let at = (middle.start + row) * self.solver.nodes[0] + x.start + begin;
        let modes = row * len + begin;
        // SAFETY: the caller's; stretches are apart from one another in each plane and in the others.
        unsafe {
            ModeRange {
                start: self.planes.start.add(at),
                stride: self.solver.plane(),
                first: self.first,
                count: self.count,
                block: row * len.div_ceil(WIDTH) + begin / WIDTH,
                carry: self.carry.part(modes, end - begin),
                border: self.border.part(modes, end - begin),
            }
        }
    }
}

impl<T: Scalar> ModeRange<'_, T> {
    /// Closes a periodic axis, once all rows are eliminated.
    pub(super) fn close(self, lines: &Lines<T>) {
        lines.close(self.block, self.border);
    }

    /// The row of plane `l` of the batch, the carry and the border.
    #[inline(always)]
    fn row(&mut self, l: usize) -> (&mut [T], &mut [T], &mut [T]) {
        assert!(l < self.count);
        // SAFETY: it is there, and this stretch's alone.
        let row = unsafe { std::slice::from_raw_parts_mut(self.start.add(l * self.stride), self.carry.len()) };
        (row, self.carry, self.border)
    }
}

/// Stage: the rows of a stretch eliminated.
pub(super) struct Elimination<'a, T> {
    pub(super) lines: &'a Lines<T>,
    pub(super) mode_range: ModeRange<'a, T>,
}

impl<T: Scalar> Work for Elimination<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run(mut self) {
        for l in 0..self.mode_range.count {
            let (first, block) = (self.mode_range.first, self.mode_range.block);
            let (row, carry, border) = self.mode_range.row(l);
            self.lines.eliminate(first + l, block, row, carry, border);
        }
    }
}

/// Stage: the rows of a stretch substituted back.
pub(super) struct Substitution<'a, T> {
    pub(super) lines: &'a Lines<T>,
    pub(super) mode_range: ModeRange<'a, T>,
}

impl<T: Scalar> Work for Substitution<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run(mut self) {
        for l in (0..self.mode_range.count).rev() {
            // Rows come from memory in pieces, which the CPU does not see coming.
            if l >= 2 {
                let next = self.mode_range.start.wrapping_add((l - 2) * self.mode_range.stride);
                for line in (0..self.mode_range.carry.len()).step_by(64 / size_of::<T>()) {
                    prefetch(next.wrapping_add(line));
                }
            }
            let (first, block) = (self.mode_range.first, self.mode_range.block);
            let (row, carry, border) = self.mode_range.row(l);
            self.lines.substitute(first + l, block, row, carry, border);
        }
    }
}
