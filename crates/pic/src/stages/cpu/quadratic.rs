//! Quadratic shapes in registers: interpolation by polynomials of a cell, as [`super::table`] has them for linear ones, and the
//! current of paths whose nearest nodes stay the same.
//!
//! About the centre of a cell the spline of an axis with nodes at half cells is one polynomial, `f + s f' + s^2 f"`. Where nodes
//! sit at corners the nearest one changes in the centre, value and slope go on: `f + s f' + s^2 f" + s |s| g`. Products over the
//! axes make 73 numbers for a cell.
//!
//! While its nearest corner stays the same, a particle touches six places of Jx, six of Jy and nine of Jz: 21 sums are kept
//! for each corner and become nodes' currents at the end of the tile. The others go one at a time
//! ([`super::advance::deposit_esirkepov`]).

use zellige_engine::real::{Real, RealScalar};

use super::advance::{PassContext, Path, deposit_esirkepov};
use super::deposit::{CURRENTS, Cell, Paths};
use super::lanes::Lanes;
use super::row::{COLUMN, Context, Movers, STEP_X, STEP_Y, prefetch_next};
use super::table::BY_CELL;
use super::window::Window;
use crate::physics::Vec3;
use crate::shapes::{across_row, nearest, quadratic};

/// Registers of a table.
pub(super) const VECTORS: usize = 73;
/// Sums of a corner: in three groups of eight, of which three are not used.
pub(super) const GROUPS: usize = 3;

/// Three nodes about the centre: the coefficients of 1, s and s^2.
#[inline(always)]
fn round<X: Real>(f: [X; 3]) -> [X; 3] {
    let ends = f[0] + f[2];
    [X::from_f64(0.75) * f[1] + X::from_f64(0.125) * ends, X::HALF * (f[2] - f[0]), X::HALF * ends - f[1]]
}

/// Four nodes, two on each side: the coefficients of 1, s, s^2 and s |s|.
#[inline(always)]
fn bowed<X: Real>(f: [X; 4]) -> [X; 4] {
    let (low, high) = (X::HALF * (f[0] + f[2]) - f[1], X::HALF * (f[1] + f[3]) - f[2]);
    [X::HALF * (f[1] + f[2]), f[2] - f[1], X::HALF * (low + high), X::HALF * (high - low)]
}

/// Writes the numbers of as many cells as a register holds; as [`super::table::fill`], two nodes further above and to the right.
#[inline(always)]
pub(super) unsafe fn fill_some<X: Lanes>(fields: &[&[X::Scalar]; 6], begin: usize, pitch: usize, alpha: X, table: *mut X::Scalar) {
    let mut k = 0;
    // No closures and no iterators over registers: those are not reliably inlined into functions with target features.
    macro_rules! at {
        ($p:expr, $i:expr) => {
            alpha * X::load($p.offset($i))
        };
    }
    macro_rules! round_x {
        ($p:expr) => {
            round([at!($p, -1), at!($p, 0), at!($p, 1)])
        };
    }
    macro_rules! bowed_x {
        ($p:expr) => {
            bowed([at!($p, -1), at!($p, 0), at!($p, 1), at!($p, 2)])
        };
    }
    macro_rules! put {
        ($columns:expr, $n:expr) => {
            for j in 0..$n {
                for i in 0..$columns.len() {
                    $columns[i][j].store(table.add((k + j * $columns.len() + i) * X::CELLS));
                }
            }
            k += $n * $columns.len();
        };
    }
    for component in 0..6 {
        // SAFETY: as the caller promises; 73 registers are put in all.
        unsafe {
            let p = fields[component].as_ptr().add(begin);
            let (a, b, c, d) = (p.sub(pitch), p, p.add(pitch), p.add(2 * pitch));
            match component {
                0 | 4 => {
                    let rows = [round_x!(a), round_x!(b), round_x!(c), round_x!(d)];
                    let mut columns = [[X::ZERO; 4]; 3];
                    for i in 0..3 {
                        columns[i] = bowed([rows[0][i], rows[1][i], rows[2][i], rows[3][i]]);
                    }
                    put!(columns, 4);
                }
                2 => {
                    let rows = [bowed_x!(a), bowed_x!(b), bowed_x!(c), bowed_x!(d)];
                    let mut columns = [[X::ZERO; 4]; 4];
                    for i in 0..4 {
                        columns[i] = bowed([rows[0][i], rows[1][i], rows[2][i], rows[3][i]]);
                    }
                    put!(columns, 4);
                }
                1 | 3 => {
                    let rows = [bowed_x!(a), bowed_x!(b), bowed_x!(c)];
                    let mut columns = [[X::ZERO; 3]; 4];
                    for i in 0..4 {
                        columns[i] = round([rows[0][i], rows[1][i], rows[2][i]]);
                    }
                    put!(columns, 3);
                }
                _ => {
                    let rows = [round_x!(a), round_x!(b), round_x!(c)];
                    let mut columns = [[X::ZERO; 3]; 3];
                    for i in 0..3 {
                        columns[i] = round([rows[0][i], rows[1][i], rows[2][i]]);
                    }
                    put!(columns, 3);
                }
            }
        }
    }
}

/// `alpha E` and `alpha B` of particles in the cells `cell` of the row.
///
/// # Safety
/// As [`super::table::interpolate`].
#[inline(always)]
pub(super) unsafe fn interpolate<X: Lanes>(table: *const X::Scalar, cell: X::Index, s: X, t: X) -> (Vec3<X>, Vec3<X>) {
    let (s2, t2) = (s * s, t * t);
    let (sa, ta) = (s * s.abs(), t * t.abs());
    let place = if X::BY_CELL { X::plus(X::left::<6>(cell), X::left::<4>(cell)) } else { cell };
    macro_rules! at {
        ($k:expr) => {
            X::lookup(table.add($k * X::CELLS), cell)
        };
    }
    macro_rules! four {
        ($k:expr) => {
            // SAFETY: as demanded.
            unsafe {
                if X::BY_CELL {
                    X::lookup_four(table.add(BY_CELL * 2 + $k), place)
                } else {
                    [at!($k), at!($k + 1), at!($k + 2), at!($k + 3)]
                }
            }
        };
    }
    macro_rules! round {
        ($c:expr) => {{
            let c = $c;
            s2.mul_add(c[2], s.mul_add(c[1], c[0]))
        }};
    }
    macro_rules! bowed {
        ($c:expr) => {{
            let c = $c;
            sa.mul_add(c[3], s2.mul_add(c[2], s.mul_add(c[1], c[0])))
        }};
    }
    // Twelve numbers: four rows of three.
    macro_rules! round_by_bowed {
        ($k:expr) => {{
            let (a, b, c) = (four!($k), four!($k + 4), four!($k + 8));
            let (f0, f1) = (round!([a[0], a[1], a[2]]), round!([a[3], b[0], b[1]]));
            let (f2, f3) = (round!([b[2], b[3], c[0]]), round!([c[1], c[2], c[3]]));
            ta.mul_add(f3, t2.mul_add(f2, t.mul_add(f1, f0)))
        }};
    }
    macro_rules! bowed_by_round {
        ($k:expr) => {{
            let (f0, f1, f2) = (bowed!(four!($k)), bowed!(four!($k + 4)), bowed!(four!($k + 8)));
            t2.mul_add(f2, t.mul_add(f1, f0))
        }};
    }
    let ex = round_by_bowed!(0);
    let ey = bowed_by_round!(12);
    let ez = {
        let (f0, f1, f2, f3) = (bowed!(four!(24)), bowed!(four!(28)), bowed!(four!(32)), bowed!(four!(36)));
        ta.mul_add(f3, t2.mul_add(f2, t.mul_add(f1, f0)))
    };
    let bx = bowed_by_round!(40);
    let by = round_by_bowed!(52);
    let bz = {
        let (a, b) = (four!(64), four!(68));
        // The last one has a register of its own; tables by cells are padded.
        // SAFETY: as demanded.
        let last = if X::BY_CELL { four!(72)[0] } else { unsafe { at!(72) } };
        let (f0, f1, f2) = (round!([a[0], a[1], a[2]]), round!([a[3], b[0], b[1]]), round!([b[2], b[3], last]));
        t2.mul_add(f2, t.mul_add(f1, f0))
    };
    (Vec3 { x: ex, y: ey, z: ez }, Vec3 { x: bx, y: by, z: bz })
}

/// 1 where the nearest corner is the upper one.
#[inline(always)]
fn upper<X: Lanes>(s: X) -> X {
    nearest(s)
}

/// Mask of paths whose nearest corner at the end is another one.
#[inline(always)]
pub(super) fn turns<X: Lanes>(s: [X; 2], end: [X; 2]) -> X::Mask {
    (s[0].lt(X::ZERO) ^ end[0].lt(X::ZERO)) | (s[1].lt(X::ZERO) ^ end[1].lt(X::ZERO))
}

/// Starts of the sums of the corners that are nearest to `(s, t)` in the cells `cell` of the row.
#[inline(always)]
pub(super) fn places<X: Lanes>(c: &Context<'_, X::Scalar>, cell: X::Index, s: X, t: X) -> X::Index {
    let rows = X::splat(X::Scalar::from_f64(f64::from(c.stride)));
    let corner = X::plus(X::plus(cell, X::every(c.base)), rows.mul_add(upper(t), upper(s)).whole());
    X::plus(X::left::<3>(corner), X::left::<4>(corner))
}

/// Deposits the paths of particles whose nearest corner stayed the same, those of the slots `slots`.
#[inline(always)]
pub(super) unsafe fn deposit_stayers<X: Lanes>(c: &Context<'_, X::Scalar>, paths: &Paths<X::Scalar>, slots: std::ops::Range<usize>) {
    let mut at = 0;
    while slots.start + at < slots.end {
        prefetch_next::<X, 2>(c, slots.start + at);
        // SAFETY: rows and paths have room for whole registers. What is listed as crossing has no charge here.
        unsafe {
            let s0 = X::load(paths.from[0].as_ptr().add(at));
            let t0 = X::load(paths.from[1].as_ptr().add(at));
            let s1 = X::load(c.columns.v[0].add(slots.start + at));
            let t1 = X::load(c.columns.v[1].add(slots.start + at));
            let q = X::load(paths.q.as_ptr().add(at));
            let qz = q * X::load(paths.qz.as_ptr().add(at));
            let (to_x, to_y) = (X::HALF - upper(s0), X::HALF - upper(t0));
            let (x0, x1) = (quadratic(s0 + to_x), quadratic(s1 + to_x));
            let (y0, y1) = (quadratic(t0 + to_y), quadratic(t1 + to_y));
            let (half, places) = (X::HALF * q, paths.places.as_ptr().add(at));
            // Charge that has passed a point towards larger x is lost by the nodes below and gained by those above.
            let (left, right) = (half * (x0.below - x1.below), half * (x1.above - x0.above));
            let (down, up) = (half * (y0.below - y1.below), half * (y1.above - y0.above));
            let y = [y0.below + y1.below, y0.middle + y1.middle, y0.above + y1.above];
            let x = [x0.below + x1.below, x0.middle + x1.middle, x0.above + x1.above];
            let first = [left * y[0], right * y[0], left * y[1], right * y[1], left * y[2], right * y[2], down * x[0], up * x[0]];
            X::add_to_cells(first, c.cells, places);
            let (below, middle, above) =
                (across_row(y0.below, y1.below, qz), across_row(y0.middle, y1.middle, qz), across_row(y0.above, y1.above, qz));
            macro_rules! z {
                ($m:ident, $n:ident) => {
                    x0.$m.mul_add($n[0], x1.$m * $n[1])
                };
            }
            let second =
                [down * x[1], up * x[1], down * x[2], up * x[2], z!(below, below), z!(middle, below), z!(above, below), z!(below, middle)];
            X::add_to_cells(second, c.cells.add(CURRENTS), places);
            let third =
                [z!(middle, middle), z!(above, middle), z!(below, above), z!(middle, above), z!(above, above), X::ZERO, X::ZERO, X::ZERO];
            X::add_to_cells(third, c.cells.add(2 * CURRENTS), places);
        }
        at += X::LANES;
    }
}

/// Location of a flight of particles: its first slot, that of its block, its row, and the tile's columns and rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    pub(super) begin: usize,
    pub(super) first: usize,
    pub(super) row: usize,
    pub(super) cells: [usize; 2],
}

/// Deposits listed particles one at a time and lists those again that leave their row: by their slots, or as they stand where
/// they leave the tile. Inlined, so that it is compiled for the instructions of the pass that it belongs to.
#[inline(always)]
pub(super) unsafe fn deposit_crossers<T: RealScalar>(
    c: &Context<'_, T>,
    charge: [T; 3],
    paths: &Paths<T>,
    flight: Flight,
    listed: &[u32],
    movers: &mut Movers,
    leavers: &mut Vec<u32>,
    window: &mut Window<T>,
) {
    for &entry in listed {
        let slot = flight.first + (entry & ((1 << COLUMN) - 1)) as usize;
        let column = (entry >> COLUMN & 15) as isize;
        let (di, dj) = ((entry >> STEP_X & 3) as isize - 1, (entry >> STEP_Y & 3) as isize - 1);
        let k = slot - flight.begin;
        // SAFETY: listed slots are those of particles.
        let (b, weight) = unsafe {
            let weight = if c.weighted { *c.columns.v[5].add(slot) } else { T::ONE };
            ([*c.columns.v[0].add(slot), *c.columns.v[1].add(slot)], weight)
        };
        let by = [T::from_f64(di as f64), T::from_f64(dj as f64)];
        let path = Path { a: [paths.from[0][k], paths.from[1][k]], delta: [T::ZERO; 2], b, by };
        deposit_esirkepov(
            window,
            column,
            flight.row as isize,
            path,
            [weight * charge[0], weight * charge[1], weight * charge[2] * paths.qz[k]],
        );
        let inside = (0..flight.cells[0] as isize).contains(&(column + di));
        let row = flight.row as isize + dj;
        if !inside || !(0..flight.cells[1] as isize).contains(&row) {
            leavers.push(entry);
        } else if dj != 0 {
            if dj > 0 { &mut movers.up } else { &mut movers.down }.push(slot as u32);
        }
    }
}

/// From sums of corners to currents at nodes.
pub(super) fn spread<T: RealScalar>(pass: &PassContext<'_, T>, cells: &[Cell<T>], stride: usize, size: [usize; 2], window: &mut Window<T>) {
    let [qx, qy, qz] = pass.charge;
    let pitch = window.pitch;
    // On a line the upper corner is the nearest one: advance.rs.
    for r in if pass.line { 1..2 } else { 0..size[1] + 1 } {
        for i in 0..=size[0] {
            let at = GROUPS * ((r + 1) * stride + 1 + i);
            let [Cell(a), Cell(b), Cell(c)] = cells[at..at + GROUPS] else { continue };
            // The lowest of the nine nodes.
            let low = window.at(i as isize - 1, r as isize - 1);
            let [jx, jy, jz] = &mut window.j;
            for n in 0..3 {
                jx[low + n * pitch] += qx * a[2 * n];
                jx[low + n * pitch + 1] += qx * a[2 * n + 1];
            }
            for (m, [down, up]) in [[a[6], a[7]], [b[0], b[1]], [b[2], b[3]]].into_iter().enumerate() {
                jy[low + m] += qy * down;
                jy[low + m + pitch] += qy * up;
            }
            for (n, z) in [[b[4], b[5], b[6]], [b[7], c[0], c[1]], [c[2], c[3], c[4]]].into_iter().enumerate() {
                for (m, z) in z.into_iter().enumerate() {
                    jz[low + n * pitch + m] += qz * z;
                }
            }
        }
    }
}
