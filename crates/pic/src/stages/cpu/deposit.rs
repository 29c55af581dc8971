//! The current of a tile's particles in registers: eight currents per cell are added up in the first cache and become nodes'
//! currents at the end of the tile. Paths that stay in one cell come from [`super::row`], those that do not are cut at the
//! borders into up to three pieces here.

use zellige_engine::real::{Real, RealScalar};

use super::advance::PassContext;
use super::lanes::{Lanes, MOST, any};
use super::row::{COLUMN, Context, FLIGHT, Movers, STEP_X, STEP_Y, displacement, prefetch_next};
use super::window::Window;
use crate::physics::{Vec3, segment_current};
use crate::shapes::border;

/// Currents of a cell, as [`crate::physics::Currents`] has them.
pub(super) const CURRENTS: usize = 8;

/// The currents of a cell.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Cell<T>(pub(super) [T; CURRENTS]);

/// Paths of particles that stayed in their cell; where they end is in the row.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Paths<T> {
    /// Offsets at the start.
    pub(super) from: [[T; FLIGHT]; 2],
    /// Weights, 0 for those that did not stay, and weights times velocities in z (quadratic shapes: velocities alone).
    pub(super) q: [T; FLIGHT],
    pub(super) qz: [T; FLIGHT],
    /// Starts of the currents of their cells or corners.
    pub(super) places: [u32; FLIGHT],
}

impl<T: RealScalar> Default for Paths<T> {
    fn default() -> Self {
        let zero = [T::ZERO; FLIGHT];
        Self { from: [zero; 2], q: zero, qz: zero, places: [0; FLIGHT] }
    }
}

/// Adds the current of pieces of paths in the cells whose currents begin at `places`.
#[inline(always)]
unsafe fn deposit<X: Lanes>(c: &Context<'_, X::Scalar>, places: *const u32, from: [X; 2], to: [X; 2], q: X, qz: X) {
    let j = segment_current(from[0], from[1], to[0], to[1], q, q, qz);
    // SAFETY: places are those of cells of the tile or next to it, for lanes without charge too.
    unsafe { X::add_to_cells([j.x_lower, j.x_upper, j.y_left, j.y_right, j.z00, j.z10, j.z01, j.z11], c.cells, places) };
}

/// Starts of the currents of the cells `at` of the row.
#[inline(always)]
pub(super) fn places<X: Lanes>(c: &Context<'_, X::Scalar>, at: X::Index) -> X::Index {
    X::left::<3>(X::plus(at, X::every(c.base)))
}

/// Adds the current of pieces of paths in the cells `at`.
#[inline(always)]
unsafe fn deposit_at<X: Lanes>(c: &Context<'_, X::Scalar>, at: X::Index, from: [X; 2], to: [X; 2], q: X, qz: X) {
    #[repr(align(64))]
    struct CurrentOffsets([u32; MOST]);
    let mut memory = CurrentOffsets([0; MOST]);
    // SAFETY: room for more than a register; `at` are cells of the tile or next to it.
    unsafe {
        X::store_index(places::<X>(c, at), memory.0.as_mut_ptr());
        deposit(c, memory.0.as_ptr(), from, to, q, qz);
    }
}

/// Deposits the paths of particles that stayed in their cell, those of the slots `slots`.
#[inline(always)]
pub(super) unsafe fn deposit_stayers<X: Lanes>(c: &Context<'_, X::Scalar>, paths: &Paths<X::Scalar>, slots: std::ops::Range<usize>) {
    let mut at = 0;
    while slots.start + at < slots.end {
        prefetch_next::<X, 2>(c, slots.start + at);
        // SAFETY: rows and paths have room for whole registers. What is listed as crossing has no charge here.
        unsafe {
            let from = [X::load(paths.from[0].as_ptr().add(at)), X::load(paths.from[1].as_ptr().add(at))];
            let to = [X::load(c.columns.v[0].add(slots.start + at)), X::load(c.columns.v[1].add(slots.start + at))];
            let (q, qz) = (X::load(paths.q.as_ptr().add(at)), X::load(paths.qz.as_ptr().add(at)));
            deposit(c, paths.places.as_ptr().add(at), from, to, q, qz);
        }
        at += X::LANES;
    }
}

/// Deposits listed particles, which have moved to another cell: the path is cut at the first border, and at the second one where
/// both axes are crossed. Those that leave the row are listed again: by their slots, or as they stand where they leave the tile.
#[inline(always)]
pub(super) unsafe fn deposit_crossers<X: Lanes>(
    c: &Context<'_, X::Scalar>,
    first: usize,
    list: *mut u32,
    listed: usize,
    movers: &mut Movers,
    leavers: &mut Vec<u32>,
) {
    for v in [&mut movers.up, &mut movers.down, &mut *leavers] {
        v.reserve(listed + MOST);
    }
    // SAFETY: the lists have room for a register more; behind the first one's end stands an entry that is in order.
    unsafe {
        X::store_index(X::every(*list), list.add(listed));
        for g in (0..listed).step_by(X::LANES) {
            let valid = X::first(listed - g);
            let entry = X::load_index(list.add(g));
            let slot = X::both(entry, X::every((1 << COLUMN) - 1));
            let cell = X::both(X::right::<COLUMN>(entry), X::every(15));
            let minus_one = X::every(u32::MAX);
            let di = X::plus(X::both(X::right::<STEP_X>(entry), X::every(3)), minus_one);
            let dj = X::plus(X::both(X::right::<STEP_Y>(entry), X::every(3)), minus_one);
            macro_rules! column {
                ($k:expr) => {
                    X::gather(c.columns.v[$k].add(first), slot)
                };
            }
            let (s1, t1) = (column!(0), column!(1));
            let [dx, dy, vz] = displacement(Vec3 { x: column!(2), y: column!(3), z: column!(4) }, c.reach);
            let q = if c.weighted { column!(5) } else { X::ONE }.keep(valid);
            let qz = q * vz;
            let (by_x, by_y) = (X::real(di), X::real(dj));
            let (s0, t0) = (s1 + by_x - dx, t1 + by_y - dy);
            let (in_x, in_y) = (by_x.abs().gt(X::ZERO), by_y.abs().gt(X::ZERO));
            let column = X::real(cell) + by_x;
            let inside = X::ZERO.le(column) & column.lt(X::splat(c.width)) & valid;
            let (up, down) = (inside & by_y.gt(X::splat(c.limits[0])), inside & by_y.lt(X::splat(c.limits[1])));
            let leaves = (in_y | !inside) & !(up | down) & valid;
            let from = X::plus(slot, X::every(first as u32));
            for (v, mask, i) in [(&mut movers.up, up, from), (&mut movers.down, down, from), (&mut *leavers, leaves, entry)] {
                let n = v.len();
                let more = X::list(mask, i, v.as_mut_ptr().add(n));
                v.set_len(n + more);
            }
            let (part_x, part_y) = (border(s0, dx, by_x), border(t0, dy, by_y));
            let x_first = in_x & part_x.le(part_y);
            let y_first = in_y & !x_first;
            let both = in_x & in_y;
            let one = part_x.min(part_y);
            let two = X::select(both, part_x.max(part_y), X::ONE);
            // The first piece, up to a border.
            let end = [X::select(x_first, X::HALF * by_x, dx.mul_add(one, s0)), X::select(y_first, X::HALF * by_y, dy.mul_add(one, t0))];
            deposit_at(c, cell, [s0, t0], end, q, qz * one);
            // The second one, up to the other border or to the end.
            let moved = [by_x.keep(x_first), by_y.keep(y_first)];
            let begin = [end[0] - moved[0], end[1] - moved[1]];
            let (x_second, y_second) = (both & y_first, both & x_first);
            let far = [X::select(both, dx.mul_add(two, s0) - moved[0], s1), X::select(both, dy.mul_add(two, t0) - moved[1], t1)];
            let end = [X::select(x_second, X::HALF * by_x, far[0]), X::select(y_second, X::HALF * by_y, far[1])];
            let rows = X::splat(X::Scalar::from_f64(f64::from(c.stride)));
            let next = X::plus(cell, rows.mul_add(moved[1], moved[0]).whole());
            deposit_at(c, next, begin, end, q, qz * (two - one));
            if any(both & valid) {
                let begin = [end[0] - by_x.keep(x_second), end[1] - by_y.keep(y_second)];
                let last = X::plus(cell, rows.mul_add(by_y, by_x).whole());
                deposit_at(c, last, begin, [s1, t1], q.keep(both), qz.keep(both) * (X::ONE - two));
            }
        }
    }
}

/// From currents per cell to currents at nodes.
#[inline(always)]
pub(super) fn spread<T: RealScalar>(pass: &PassContext<'_, T>, cells: &[Cell<T>], stride: usize, size: [usize; 2], window: &mut Window<T>) {
    let [qx, qy, qz] = pass.charge;
    let pitch = window.pitch;
    for r in if pass.line { 1..2 } else { 0..size[1] + 2 } {
        let begin = window.at(-1, r as isize - 1);
        let [jx, jy, jz] = &mut window.j;
        let row = &cells[r * stride..][..size[0] + 2];
        for (at, Cell(c)) in (begin..).zip(row) {
            jx[at] += qx * c[0];
            jx[at + pitch] += qx * c[1];
            jy[at] += qy * c[2];
            jy[at + 1] += qy * c[3];
            jz[at] += qz * c[4];
            jz[at + 1] += qz * c[5];
            jz[at + pitch] += qz * c[6];
            jz[at + pitch + 1] += qz * c[7];
        }
    }
}
