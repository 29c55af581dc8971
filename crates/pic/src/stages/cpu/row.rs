//! The pass over a tile in registers: linear shapes, every pusher, equal or own weights.
//!
//! Row by row of the tile's cells: fields become a table of polynomials ([`super::table`]); groups of particles are pushed and
//! moved, and those that stay in their cell deposited; those that do not are listed and deposited in a second pass, in up to
//! three pieces. Eight currents per cell are added up in the first cache and become nodes' currents at the end of the tile.
//! Particles that change row change places with those that come the other way once both rows have been done.

use zellige_engine::real::{Real, RealScalar};

use super::advance::Pass;
use super::exchange::Outbox;
use super::lanes::{Lanes, MOST, any, prefetch};
use super::store::{Band, COLUMNS, Row};
use super::table::{Table, fill, interpolate};
use super::window::Window;
use crate::particles::Pusher;
use crate::physics::{Vec3, add, boris, gamma, higuera_cary, kinetic_energy, segment_current, vay};
use crate::shapes::{border, crossed};

/// Particles whose crossings are listed together.
const BLOCK: usize = 1024;
/// Bits of a listed crossing: place in the block, column, steps in x and y plus one.
const COLUMN: u32 = 12;
const STEP_X: u32 = 16;
const STEP_Y: u32 = 18;
/// Currents of a cell, as [`crate::physics::Currents`] has them.
const CURRENTS: usize = 8;

/// Memory that one thread works in.
#[derive(Debug)]
pub(super) struct Scratch<T> {
    table: Box<Table<T>>,
    /// Currents per cell of the tile and one around it.
    cells: Vec<Cell<T>>,
    crossers: Vec<u32>,
    /// Those of them that leave the tile.
    leavers: Vec<u32>,
    /// Movers to the row above and below, and slots that have become free, of two rows by turns.
    movers: [Movers; 2],
    /// Energy and momentum by lanes.
    sums: [[T; MOST]; 4],
}

/// Slots of a row.
#[derive(Debug, Default)]
struct Movers {
    up: Vec<u32>,
    down: Vec<u32>,
    holes: Vec<u32>,
}

/// The currents of a cell.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
struct Cell<T>([T; CURRENTS]);

impl<T: RealScalar> Default for Scratch<T> {
    fn default() -> Self {
        Self {
            table: Box::default(),
            cells: Vec::new(),
            crossers: vec![0; BLOCK + 2 * MOST],
            leavers: Vec::new(),
            movers: Default::default(),
            sums: [[T::ZERO; MOST]; 4],
        }
    }
}

/// A row's columns in memory.
struct Columns<T> {
    v: [*mut T; COLUMNS],
    cells: *mut u8,
    len: usize,
}

/// What is the same for all groups of a row.
struct Context<'a, T> {
    columns: Columns<T>,
    /// The next row's, to be fetched in time.
    next: Columns<T>,
    table: *const T,
    cells: *mut T,
    /// Place of the row's first cell in `cells`, and the distance of rows, in cells.
    base: u32,
    stride: u32,
    reach: [T; 2],
    /// Columns of the tile; what a step in y must be above to stay in the tile: upwards, downwards.
    width: T,
    limits: [T; 2],
    pusher: Pusher,
    weighted: bool,
    measure: bool,
    sums: *mut [T; MOST],
    row: std::marker::PhantomData<&'a mut Row<T>>,
}

impl<T: RealScalar> Columns<T> {
    fn of(row: &mut Row<T>) -> Self {
        let len = row.len();
        let columns = row.columns_mut();
        Self { v: columns.v.map(<[T]>::as_mut_ptr), cells: columns.cells.as_mut_ptr(), len }
    }

    fn none() -> Self {
        Self { v: [std::ptr::null_mut(); COLUMNS], cells: std::ptr::null_mut(), len: 0 }
    }
}

/// Displacements in cells of a step, and the velocity in z.
#[inline(always)]
fn displacement<X: Real>(u: Vec3<X>, reach: [X::Scalar; 2]) -> [X; 3] {
    let inverse = gamma(u).recip();
    [u.x * (inverse * X::splat(reach[0])), u.y * (inverse * X::splat(reach[1])), u.z * inverse]
}

/// Adds the current of a piece of path in cell `at`.
#[inline(always)]
unsafe fn deposit<X: Lanes>(c: &Context<'_, X::Scalar>, at: X::Index, from: [X; 2], to: [X; 2], q: X, qz: X) {
    #[repr(align(64))]
    struct Places([u32; MOST]);
    let mut places = Places([0; MOST]);
    let j = segment_current(from[0], from[1], to[0], to[1], q, q, qz);
    let values = [j.x_lower, j.x_upper, j.y_left, j.y_right, j.z00, j.z10, j.z01, j.z11];
    // SAFETY: `at` is a cell of the tile or next to it, for lanes without charge too.
    unsafe {
        X::store_index(X::left::<3>(X::plus(at, X::every(c.base))), places.0.as_mut_ptr());
        X::add_to_cells(values, c.cells, places.0.as_ptr());
    }
}

/// Pushes and moves the particles from slot `k` on, deposits those that stay in their cell and lists the others at `list`; `first`
/// is the slot where the block begins. Returns how many were listed. `USUAL`: the pusher is Boris' and nothing is measured; with
/// that known the form of two registers has little code.
#[inline(always)]
unsafe fn group<X: Lanes, const USUAL: bool>(c: &Context<'_, X::Scalar>, k: usize, first: usize, list: *mut u32) -> usize {
    let [ps, pt, px, py, pz, pw] = c.columns.v;
    // SAFETY: rows have room for whole groups.
    unsafe {
        for k in (k..k + X::LANES).step_by(64 / size_of::<X::Scalar>()) {
            for p in &c.next.v[..5] {
                prefetch(p.wrapping_add(k));
            }
        }
        prefetch(c.next.cells.wrapping_add(k));
        let valid = X::first(c.columns.len - k);
        // Slots behind the last particle hold old numbers.
        let cell = X::both(X::load_cells(c.columns.cells.add(k)), X::every(X::CELLS as u32 - 1));
        let (s, t) = (X::load(ps.add(k)), X::load(pt.add(k)));
        let (e, b) = interpolate::<X>(c.table, cell, s, t);
        let u = Vec3 { x: X::load(px.add(k)), y: X::load(py.add(k)), z: X::load(pz.add(k)) };
        let weight = if c.weighted { X::load(pw.add(k)) } else { X::ONE };
        if !USUAL && c.measure {
            measure(c, valid, weight, u, e);
        }
        let u = match c.pusher {
            Pusher::Vay if !USUAL => vay(u, e, b),
            Pusher::HigueraCary if !USUAL => higuera_cary(u, e, b),
            _ => boris(u, e, b),
        };
        u.x.store(px.add(k));
        u.y.store(py.add(k));
        u.z.store(pz.add(k));
        let [dx, dy, vz] = displacement(u, c.reach);
        let (s1, t1) = (s + dx, t + dy);
        let (by_x, by_y) = (crossed(s1), crossed(t1));
        (s1 - by_x).store(ps.add(k));
        (t1 - by_y).store(pt.add(k));
        let (di, dj) = (by_x.whole(), by_y.whole());
        X::store_cells(X::plus(cell, di), c.columns.cells.add(k));
        let leaves = (s1.abs().gt(X::HALF) | t1.abs().gt(X::HALF)) & valid;
        let q = weight.keep(valid & !leaves);
        deposit(c, cell, [s, t], [s1, t1], q, q * vz);
        let steps = X::plus(X::left::<STEP_X>(di), X::left::<STEP_Y>(dj));
        let place = X::plus(X::iota(), X::every((k - first) as u32 + (1 << STEP_X) + (1 << STEP_Y)));
        X::list(leaves, X::plus(X::plus(place, X::left::<COLUMN>(cell)), steps), list)
    }
}

/// Adds up energy after half the kick and momentum before it.
#[inline(always)]
unsafe fn measure<X: Lanes>(c: &Context<'_, X::Scalar>, valid: X::Mask, weight: X, u: Vec3<X>, e: Vec3<X>) {
    let w = weight.keep(valid);
    for (n, v) in [kinetic_energy(add(u, e)), u.x, u.y, u.z].into_iter().enumerate() {
        // SAFETY: four times MOST numbers.
        unsafe {
            let sum = c.sums.add(n).cast::<X::Scalar>();
            w.mul_add(v, X::load(sum)).store(sum);
        }
    }
}

/// Deposits listed particles, which have moved to another cell: the path is cut at the first border, and at the second one where
/// both axes are crossed. Those that leave the row are listed again: by their slots, or as they stand where they leave the tile.
#[inline(always)]
unsafe fn deposit_crossers<X: Lanes>(
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
            deposit(c, cell, [s0, t0], end, q, qz * one);
            // The second one, up to the other border or to the end.
            let moved = [by_x.keep(x_first), by_y.keep(y_first)];
            let begin = [end[0] - moved[0], end[1] - moved[1]];
            let (x_second, y_second) = (both & y_first, both & x_first);
            let far = [X::select(both, dx.mul_add(two, s0) - moved[0], s1), X::select(both, dy.mul_add(two, t0) - moved[1], t1)];
            let end = [X::select(x_second, X::HALF * by_x, far[0]), X::select(y_second, X::HALF * by_y, far[1])];
            let rows = X::splat(X::Scalar::from_f64(f64::from(c.stride)));
            let next = X::plus(cell, rows.mul_add(moved[1], moved[0]).whole());
            deposit(c, next, begin, end, q, qz * (two - one));
            if any(both & valid) {
                let begin = [end[0] - by_x.keep(x_second), end[1] - by_y.keep(y_second)];
                let last = X::plus(cell, rows.mul_add(by_y, by_x).whole());
                deposit(c, last, begin, [s1, t1], q.keep(both), qz.keep(both) * (X::ONE - two));
            }
        }
    }
}

/// Exchanges the particles that go from row `low` to the one above it and back: by pairs, then what is left over into free slots.
fn exchange<T: RealScalar>(low: &mut Row<T>, high: &mut Row<T>, below: &mut Movers, above: &mut Movers) {
    let n = below.up.len().min(above.down.len());
    low.swap(&below.up[..n], high, &above.down[..n]);
    for slot in below.up.drain(..).skip(n) {
        high.fill(&mut above.holes, &low.get(slot as usize));
        below.holes.push(slot);
    }
    for slot in above.down.drain(..).skip(n) {
        low.fill(&mut below.holes, &high.get(slot as usize));
        above.holes.push(slot);
    }
}

/// Advances the particles of a tile, or of a band of its rows, by one step and adds their current to `window`; `X` is one register, `Y` what groups are
/// worked on in. Those that leave the tile go to `out`.
///
/// # Safety
/// The processor has the instructions of `X` and `Y`, which have the same [`Lanes::CELLS`]; the tile is not wider than those.
#[inline(always)]
pub(super) unsafe fn advance_rows<X: Lanes, Y: Lanes<Scalar = X::Scalar>>(
    pass: &Pass<'_, X::Scalar>,
    tile: &mut Band<'_, X::Scalar>,
    window: &mut Window<X::Scalar>,
    out: &mut Outbox<X::Scalar>,
    scratch: &mut Scratch<X::Scalar>,
) {
    let zero = X::Scalar::ZERO;
    let (corner, [width, height]) = (tile.corner, tile.cells);
    debug_assert!(width <= X::CELLS && X::CELLS == Y::CELLS);
    let stride = X::CELLS + 2;
    scratch.cells.clear();
    // Old numbers behind the last particle of a row may point to any column of the next row.
    scratch.cells.resize(stride * (height + 3), Cell([zero; CURRENTS]));
    let limit = |more: bool| if more { X::Scalar::HALF } else { X::Scalar::TWO };
    let usual = pass.pusher == Pusher::Boris && !pass.measure;
    for r in 0..height {
        let place = pass.grid.index(corner[0] as isize, (corner[1] + r) as isize);
        let len = tile.rows[r].len();
        if len > 0 {
            // SAFETY: guards are wide enough, the table is large enough.
            unsafe { fill::<X>(&pass.fields, place, pass.grid.pitch(), pass.alpha, scratch.table.0.as_mut_ptr()) };
        }
        for first in (0..len).step_by(BLOCK) {
            let (row, next) = match &mut tile.rows[r..] {
                [row, next, ..] => (row, Columns::of(next)),
                [row] => (row, Columns::none()),
                [] => return,
            };
            let c = Context {
                columns: Columns::of(row),
                next,
                table: scratch.table.0.as_ptr(),
                cells: scratch.cells.as_mut_ptr().cast(),
                base: ((r + 1) * stride + 1) as u32,
                stride: stride as u32,
                reach: pass.reach,
                width: X::Scalar::from_f64(width as f64),
                // Steps are whole: 1/2 lets them pass, 2 does not.
                limits: [limit(r + 1 < height), -limit(r > 0)],
                pusher: pass.pusher,
                weighted: pass.weighted,
                measure: pass.measure,
                sums: scratch.sums.as_mut_ptr(),
                row: std::marker::PhantomData,
            };
            let (list, last) = (scratch.crossers.as_mut_ptr(), len.min(first + BLOCK));
            let (mut k, mut listed) = (first, 0);
            let movers = &mut scratch.movers[r % 2];
            // SAFETY: all slots are below the capacity of the row, which is a multiple of two registers.
            unsafe {
                while Y::LANES > X::LANES && usual && k + X::LANES < last {
                    listed += group::<Y, true>(&c, k, first, list.add(listed));
                    k += Y::LANES;
                }
                while k < last {
                    listed += group::<X, false>(&c, k, first, list.add(listed));
                    k += X::LANES;
                }
                if listed > 0 {
                    deposit_crossers::<X>(&c, first, list, listed, movers, &mut scratch.leavers);
                }
            }
            for entry in scratch.leavers.drain(..) {
                let column = (entry >> COLUMN & 15) as isize + (entry >> STEP_X & 3) as isize - 1;
                let step = (entry >> STEP_Y & 3) as isize - 1;
                let slot = first + (entry & ((1 << COLUMN) - 1)) as usize;
                movers.holes.push(slot as u32);
                let mut p = tile.rows[r].get(slot);
                let cell = [corner[0] as isize + column, corner[1] as isize + r as isize + step];
                if let Some(place) = pass.walls.settle(cell, &mut p, &mut out.tally) {
                    p.column = place.column;
                    out.push(place, p);
                }
            }
            if pass.measure {
                for (n, sums) in scratch.sums.iter_mut().enumerate() {
                    let sum: f64 = sums.iter().map(|v| v.to_f64()).sum();
                    *if n == 0 { &mut out.tally.kinetic } else { &mut out.tally.momentum[n - 1] } += sum;
                    sums.fill(zero);
                }
            }
        }
        if let [.., low, high] = &mut tile.rows[..=r] {
            let [even, odd] = &mut scratch.movers;
            let (below, above) = if r % 2 == 0 { (odd, even) } else { (even, odd) };
            exchange(low, high, below, above);
            low.close(&mut below.holes);
        }
    }
    if let Some(last) = tile.rows.last_mut() {
        last.close(&mut scratch.movers[(height - 1) % 2].holes);
    }
    spread(pass, &scratch.cells, stride, [width, height], window);
    out.seal();
}

/// From currents per cell to currents at nodes.
#[inline(always)]
fn spread<T: RealScalar>(pass: &Pass<'_, T>, cells: &[Cell<T>], stride: usize, size: [usize; 2], window: &mut Window<T>) {
    let [qx, qy, qz] = pass.charge;
    let pitch = window.pitch;
    for r in 0..size[1] + 2 {
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
