//! Interpolation without gathers: polynomials of the offset for each cell of a row.
//!
//! Offsets `s`, `t` are from the cell's centre. Where a component sits at corners, linear interpolation is `f + s f'` with the
//! mean and the difference of two nodes. Where it sits at half cells, the nodes are -1, 0 and 1 from the centre and it is
//! `f + s f' + |s| f"`: value, half the difference of the outer ones, and their mean less the middle one. The half of the cell
//! that the particle is in never has to be asked. Products over the axes make 37 numbers for a cell, one register each
//! for a row of cells; a particle looks its own up by its column.
//!
//! Registers that look up in two of them at once ([`Lanes::HALVES`]) have the slopes of both halves side by side instead of `f'`
//! and `f"`: `f + s g` with the `g` of the half, 26 registers looked up and 18 products added instead of 37 and 31.

use zellige_engine::real::{Real, RealScalar};

use super::lanes::Lanes;
use super::quadratic;
use crate::physics::Vec3;

/// Registers of a table.
pub(super) const VECTORS: usize = 37;
/// Numbers of a cell where a table is kept by cells, and where that one begins; twice that for quadratic shapes.
pub(super) const WIDTH: usize = 40;
pub(super) const BY_CELL: usize = VECTORS * 8 + 8;

/// Three nodes about the centre: value, slope, kink; or value, slopes of the upper and the lower half.
#[inline(always)]
fn bent<X: Lanes>(f: [X; 3]) -> [X; 3] {
    if X::HALVES {
        return [f[1], f[2] - f[1], f[1] - f[0]];
    }
    [f[1], X::HALF * (f[2] - f[0]), X::HALF * (f[2] + f[0]) - f[1]]
}

/// Two nodes at the ends: value in the centre, slope.
#[inline(always)]
fn straight<X: Real>(f: [X; 2]) -> [X; 2] {
    [X::HALF * (f[1] + f[0]), f[1] - f[0]]
}

/// Numbers `alpha f` from `p` on.
#[inline(always)]
unsafe fn scaled<X: Lanes>(p: *const X::Scalar, alpha: X) -> X {
    // SAFETY: the caller's.
    unsafe { alpha * X::load(p) }
}

/// Half cells in x.
#[inline(always)]
unsafe fn bent_x<X: Lanes>(p: *const X::Scalar, alpha: X) -> [X; 3] {
    // SAFETY: the caller's.
    unsafe { bent([scaled(p.sub(1), alpha), scaled(p, alpha), scaled(p.add(1), alpha)]) }
}

/// Corners in x.
#[inline(always)]
unsafe fn straight_x<X: Lanes>(p: *const X::Scalar, alpha: X) -> [X; 2] {
    // SAFETY: the caller's.
    unsafe { straight([scaled(p, alpha), scaled(p.add(1), alpha)]) }
}

/// Writes the numbers of a row of cells to `table`: `begin` is the place of its first cell in the arrays `fields` (Ex Ey Ez Bx By
/// Bz), `pitch` the distance of their rows, 0 on a line.
///
/// # Safety
/// The arrays reach from one row and one place before `begin` to `ORDER` rows and `X::CELLS + ORDER` places after it; `table` is a
/// [`Table`].
#[inline(always)]
pub(super) unsafe fn fill<X: Lanes, const ORDER: usize>(
    fields: &[&[X::Scalar]; 6],
    begin: usize,
    pitch: usize,
    alpha: X::Scalar,
    table: *mut X::Scalar,
) {
    debug_assert!(fields.iter().all(|f| begin + ORDER * pitch + X::CELLS + ORDER <= f.len() && begin > pitch));
    for cell in (0..X::CELLS).step_by(X::LANES) {
        // SAFETY: the caller's, for the cells from `cell` on.
        unsafe {
            if ORDER == 1 {
                fill_some(fields, begin + cell, pitch, X::splat(alpha), table.add(cell));
            } else {
                quadratic::fill_some(fields, begin + cell, pitch, X::splat(alpha), table.add(cell));
            }
        };
    }
    if X::BY_CELL {
        // SAFETY: both parts of the table are inside.
        unsafe { turn::<X, ORDER>(table) };
    }
}

/// Writes the table a second time, the numbers of each cell side by side.
#[inline(always)]
unsafe fn turn<X: Lanes, const ORDER: usize>(table: *mut X::Scalar) {
    let vectors = if ORDER == 1 { VECTORS } else { quadratic::VECTORS };
    for k in 0..vectors {
        for cell in 0..X::CELLS {
            // SAFETY: the caller's.
            unsafe { *table.add(ORDER * (BY_CELL + cell * WIDTH) + k) = *table.add(k * X::CELLS + cell) };
        }
    }
}

/// As [`fill`], for as many cells as a register holds.
#[inline(always)]
unsafe fn fill_some<X: Lanes>(fields: &[&[X::Scalar]; 6], begin: usize, pitch: usize, alpha: X, table: *mut X::Scalar) {
    let mut k = 0;
    // No closures and no iterators over registers: those are not reliably inlined into functions with target features.
    macro_rules! put {
        ($($v:expr),*) => {$(
            $v.store(table.add(k * X::CELLS));
            k += 1;
        )*};
    }
    for component in 0..6 {
        // SAFETY: as `fill` demands; 37 registers are put in all.
        unsafe {
            let p = fields[component].as_ptr().add(begin);
            let (below, above) = (p.sub(pitch), p.add(pitch));
            match component {
                0 | 4 => {
                    let (a, b) = (bent_x(p, alpha), bent_x(above, alpha));
                    let rows = [straight([a[0], b[0]]), straight([a[1], b[1]]), straight([a[2], b[2]])];
                    put!(rows[0][0], rows[1][0], rows[2][0]);
                    put!(rows[0][1], rows[1][1], rows[2][1]);
                }
                2 => {
                    let (a, b) = (straight_x(p, alpha), straight_x(above, alpha));
                    let rows = [straight([a[0], b[0]]), straight([a[1], b[1]])];
                    put!(rows[0][0], rows[1][0]);
                    put!(rows[0][1], rows[1][1]);
                }
                1 | 3 => {
                    let (a, b, c) = (straight_x(below, alpha), straight_x(p, alpha), straight_x(above, alpha));
                    let rows = [bent([a[0], b[0], c[0]]), bent([a[1], b[1], c[1]])];
                    put!(rows[0][0], rows[1][0]);
                    if X::HALVES {
                        put!(rows[0][1], rows[0][2]);
                        put!(rows[1][1], rows[1][2]);
                    } else {
                        put!(rows[0][1], rows[1][1]);
                        put!(rows[0][2], rows[1][2]);
                    }
                }
                _ => {
                    let (a, b, c) = (bent_x(below, alpha), bent_x(p, alpha), bent_x(above, alpha));
                    let rows = [bent([a[0], b[0], c[0]]), bent([a[1], b[1], c[1]]), bent([a[2], b[2], c[2]])];
                    put!(rows[0][0], rows[1][0], rows[2][0]);
                    if X::HALVES {
                        put!(rows[0][1], rows[0][2]);
                        put!(rows[1][1], rows[2][1], rows[1][2], rows[2][2]);
                    } else {
                        put!(rows[0][1], rows[1][1], rows[2][1]);
                        put!(rows[0][2], rows[1][2], rows[2][2]);
                    }
                }
            }
        }
    }
}

/// `alpha E` and `alpha B` of particles in the cells `cell` of the row.
///
/// # Safety
/// `table` was filled by [`fill`] for registers of [`Lanes::CELLS`] numbers, `cell` is below that.
#[inline(always)]
pub(super) unsafe fn interpolate<X: Lanes>(table: *const X::Scalar, cell: X::Index, s: X, t: X) -> (Vec3<X>, Vec3<X>) {
    if X::HALVES {
        // SAFETY: as demanded.
        return unsafe { interpolate_halves(table, cell, s, t) };
    }
    let (sa, ta) = (s.abs(), t.abs());
    let place = if X::BY_CELL { X::plus(X::left::<5>(cell), X::left::<3>(cell)) } else { cell };
    macro_rules! four {
        ($k:expr) => {
            // SAFETY: as demanded; not used where the table is not kept so.
            if X::BY_CELL { unsafe { X::lookup_four(table.add(BY_CELL + $k), place) } } else { [X::ZERO; 4] }
        };
    }
    let fours = [four!(0), four!(4), four!(8), four!(12), four!(16), four!(20), four!(24), four!(28), four!(32), four!(36)];
    macro_rules! at {
        ($k:expr) => {
            // SAFETY: as demanded.
            if X::BY_CELL { fours[$k >> 2][$k & 3] } else { unsafe { X::lookup(table.add($k * X::CELLS), cell) } }
        };
    }
    macro_rules! bent {
        ($k:expr) => {
            sa.mul_add(at!($k + 2), s.mul_add(at!($k + 1), at!($k)))
        };
    }
    macro_rules! straight {
        ($k:expr) => {
            s.mul_add(at!($k + 1), at!($k))
        };
    }
    let ex = t.mul_add(bent!(3), bent!(0));
    let ey = ta.mul_add(straight!(10), t.mul_add(straight!(8), straight!(6)));
    let ez = t.mul_add(straight!(14), straight!(12));
    let bx = ta.mul_add(straight!(20), t.mul_add(straight!(18), straight!(16)));
    let by = t.mul_add(bent!(25), bent!(22));
    let bz = ta.mul_add(bent!(34), t.mul_add(bent!(31), bent!(28)));
    (Vec3 { x: ex, y: ey, z: ez }, Vec3 { x: bx, y: by, z: bz })
}

/// [`interpolate`] from slopes of halves.
#[inline(always)]
unsafe fn interpolate_halves<X: Lanes>(table: *const X::Scalar, cell: X::Index, s: X, t: X) -> (Vec3<X>, Vec3<X>) {
    let (by_s, by_t) = (s.half(cell), t.half(cell));
    macro_rules! one {
        ($k:expr) => {
            // SAFETY: as demanded.
            unsafe { X::lookup(table.add($k * X::CELLS), cell) }
        };
    }
    macro_rules! two {
        ($k:expr, $half:expr) => {
            // SAFETY: as demanded; the lower half's numbers follow the upper one's.
            unsafe { X::lookup_half(table.add($k * X::CELLS), $half) }
        };
    }
    macro_rules! bent {
        ($k:expr) => {
            s.mul_add(two!($k + 1, by_s), one!($k))
        };
    }
    macro_rules! straight {
        ($k:expr) => {
            s.mul_add(one!($k + 1), one!($k))
        };
    }
    let ex = t.mul_add(bent!(3), bent!(0));
    let ey = t.mul_add(s.mul_add(two!(10, by_t), two!(8, by_t)), straight!(6));
    let ez = t.mul_add(straight!(14), straight!(12));
    let bx = t.mul_add(s.mul_add(two!(20, by_t), two!(18, by_t)), straight!(16));
    let by = t.mul_add(bent!(25), bent!(22));
    // Four quarters of a cell.
    let twist = X::select(t.lt(X::ZERO), two!(35, by_s), two!(33, by_s));
    let bz = t.mul_add(s.mul_add(twist, two!(31, by_t)), bent!(28));
    (Vec3 { x: ex, y: ey, z: ez }, Vec3 { x: bx, y: by, z: bz })
}

/// A table in memory, large enough for any register.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(super) struct Table<T>(pub(super) [T; 2 * WIDTH * 16]);

impl<T: RealScalar> Default for Table<T> {
    fn default() -> Self {
        Self([T::ZERO; 2 * WIDTH * 16])
    }
}
