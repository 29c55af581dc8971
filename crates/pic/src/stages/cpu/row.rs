//! The pass over a tile in registers: both shapes, every pusher, equal or own weights.
//!
//! Row by row of the tile's cells: fields become a table of polynomials ([`super::table`]); groups of particles are pushed and
//! moved, and those that stay in their cell deposited; those that do not are listed and deposited in a second pass, in up to
//! three pieces. Eight currents per cell are added up in the first cache and become nodes' currents at the end of the tile.
//! Particles that change row change places with those that come the other way once both rows have been done.

use zellige_engine::real::{Real, RealScalar, prefetch};

use super::advance::{MIDST, PassContext, vanish};
use super::deposit::{CURRENTS, Cell, Paths, deposit_crossers, deposit_stayers, places, spread};
use super::exchange::Outbox;
use super::lanes::{Lanes, MOST};
use super::quadratic::{self, Flight};
use super::store::{Band, COLUMNS, Row};
use super::table::{Table, fill, interpolate};
use super::window::Window;
use crate::particles::Pusher;
use crate::physics::{Vec3, add, boris, higuera_cary, inverse_gamma, kinetic_energy, vay};

/// Particles whose crossings are listed together.
const BLOCK: usize = 1024;
/// Particles that are pushed before their paths are deposited: paths and particles stay in the first cache.
pub(super) const FLIGHT: usize = 64;
/// Bits of a listed crossing: place in the block, column, steps in x and y plus one.
pub(super) const COLUMN: u32 = 12;
pub(super) const STEP_X: u32 = 16;
pub(super) const STEP_Y: u32 = 18;

/// Memory that one thread works in.
#[derive(Debug)]
pub(super) struct Scratch<T> {
    table: Box<Table<T>>,
    paths: Box<Paths<T>>,
    /// Currents per cell of the tile and one around it.
    cells: Vec<Cell<T>>,
    crossers: Vec<u32>,
    /// Those of them that leave the tile.
    leavers: Vec<u32>,
    /// Movers to the row above and below, and slots that have become free, of two rows by turns.
    movers: [Movers; 2],
    /// Energy and momentum by lanes.
    sums: [[T; MOST]; 4],
    /// The row before, of whichever tile.
    last: Addresses,
}

/// Slots of a row.
#[derive(Debug, Default)]
pub(super) struct Movers {
    pub(super) up: Vec<u32>,
    pub(super) down: Vec<u32>,
    pub(super) holes: Vec<u32>,
}

impl<T: RealScalar> Default for Scratch<T> {
    fn default() -> Self {
        Self {
            table: Box::default(),
            paths: Box::default(),
            cells: Vec::new(),
            crossers: vec![0; BLOCK + 2 * MOST],
            leavers: Vec::new(),
            movers: Default::default(),
            sums: [[T::ZERO; MOST]; 4],
            last: Addresses::default(),
        }
    }
}

/// A row's columns in memory.
#[derive(Clone, Copy)]
pub(super) struct Columns<T> {
    pub(super) v: [*mut T; COLUMNS],
    pub(super) cells: *mut u8,
    pub(super) len: usize,
}

/// Addresses of the columns of a row.
#[derive(Debug, Default)]
struct Addresses {
    v: [usize; COLUMNS],
    cells: usize,
}

/// Data that all groups of a row share.
pub(super) struct Context<'a, T> {
    pub(super) columns: Columns<T>,
    /// The next row's, to be fetched in time.
    pub(super) next: Columns<T>,
    pub(super) table: *const T,
    pub(super) cells: *mut T,
    /// Place of the row's first cell in `cells`, and the distance of rows, in cells.
    pub(super) base: u32,
    pub(super) stride: u32,
    pub(super) reach: [T; 2],
    /// True if the domain is one cell wide in y.
    pub(super) line: bool,
    /// Columns of the tile; what a step in y must be above to stay in the tile: upwards, downwards.
    pub(super) width: T,
    pub(super) limits: [T; 2],
    pub(super) pusher: Pusher,
    pub(super) weighted: bool,
    pub(super) measure: bool,
    pub(super) sums: *mut [T; MOST],
    pub(super) row: std::marker::PhantomData<&'a mut Row<T>>,
}

impl<T: RealScalar> Columns<T> {
    fn of(row: &mut Row<T>) -> Self {
        let len = row.len();
        let columns = row.columns_mut();
        Self { v: columns.v.map(<[T]>::as_mut_ptr), cells: columns.keys.as_mut_ptr(), len }
    }

    fn none() -> Self {
        Self { v: [std::ptr::null_mut(); COLUMNS], cells: std::ptr::null_mut(), len: 0 }
    }

    /// Expected start of the next row, the first one of another tile, which is not at hand: as far from this one as this one from
    /// the one before, `last`, since rows were made one after the other. For prefetching only: if it is wrong nothing is lost. With
    /// it come the addresses of this one.
    fn behind(&self, last: &Addresses) -> (Self, Addresses) {
        fn by<V>(at: usize, last: usize) -> *mut V {
            std::ptr::without_provenance_mut(at.wrapping_add(at.wrapping_sub(last)))
        }
        let (v, cells) = (std::array::from_fn(|c| self.v[c].addr()), self.cells.addr());
        let mut next = Self { v: [std::ptr::null_mut(); COLUMNS], cells: by(cells, last.cells), len: 0 };
        for c in 0..COLUMNS {
            next.v[c] = by(v[c], last.v[c]);
        }
        (next, Addresses { v, cells })
    }
}

/// Displacements in cells of a step, and the velocity in z.
#[inline(always)]
pub(super) fn displacement<X: Real>(u: Vec3<X>, reach: [X::Scalar; 2]) -> [X; 3] {
    let inverse = inverse_gamma(u);
    // The products with `reach` need not wait for the root.
    [u.x * X::splat(reach[0]) * inverse, u.y * X::splat(reach[1]) * inverse, u.z * inverse]
}

/// Asks for the cache lines of two columns of the next row that lie as those from slot `k` on do in this one; `N` is 0 where
/// particles are pushed, 1 where they are moved, 2 where they are deposited. A core has 16 lines or so under way at a time, and
/// all columns at once would have to wait for each other.
#[inline(always)]
pub(super) fn prefetch_next<X: Lanes, const N: usize>(c: &Context<'_, X::Scalar>, k: usize) {
    if k.is_multiple_of(64 / size_of::<X::Scalar>()) {
        prefetch(c.next.v[2 * N].wrapping_add(k));
        if N < 2 {
            prefetch(c.next.v[2 * N + 1].wrapping_add(k));
        } else {
            prefetch(c.next.cells.wrapping_add(k));
        }
    }
}

/// Changes the momenta of the particles from slot `k` on.
///
/// Pushing, moving ([`shift`]) and depositing ([`deposit_stayers`]) are loops of their own: the chains of operations, which are
/// long, then fit several times into what a processor looks ahead, and their numbers into registers.
#[inline(always)]
unsafe fn push<X: Lanes, const ORDER: usize>(c: &Context<'_, X::Scalar>, k: usize) {
    let [ps, pt, px, py, pz, pw] = c.columns.v;
    prefetch_next::<X, 0>(c, k);
    // SAFETY: rows have room for whole registers.
    unsafe {
        // Slots behind the last particle hold old numbers.
        let cell = X::both(X::load_cells(c.columns.cells.add(k)), X::every(X::CELLS as u32 - 1));
        let (s, t) = (X::load(ps.add(k)), X::load(pt.add(k)));
        let (e, b) = if ORDER == 1 { interpolate::<X>(c.table, cell, s, t) } else { quadratic::interpolate::<X>(c.table, cell, s, t) };
        let u = Vec3 { x: X::load(px.add(k)), y: X::load(py.add(k)), z: X::load(pz.add(k)) };
        if c.measure {
            let weight = if c.weighted { X::load(pw.add(k)) } else { X::ONE };
            measure(c, X::first(c.columns.len - k), weight, u, e);
        }
        let u = match c.pusher {
            Pusher::Boris => boris(u, e, b),
            Pusher::Vay => vay(u, e, b),
            Pusher::HigueraCary => higuera_cary(u, e, b),
        };
        u.x.store(px.add(k));
        u.y.store(py.add(k));
        u.z.store(pz.add(k));
    }
}

/// Moves the particles from slot `k` on, writes the paths of those that stay in their cell to `paths` from `to` on and lists the
/// others at `list`; `first` is the slot where the block begins. Returns how many were listed.
#[inline(always)]
unsafe fn shift<X: Lanes, const ORDER: usize>(
    c: &Context<'_, X::Scalar>,
    k: usize,
    first: usize,
    list: *mut u32,
    paths: &mut Paths<X::Scalar>,
    to: usize,
) -> usize {
    let [ps, pt, px, py, pz, pw] = c.columns.v;
    prefetch_next::<X, 1>(c, k);
    // SAFETY: rows and paths have room for whole registers.
    unsafe {
        let valid = X::first(c.columns.len - k);
        let cell = X::both(X::load_cells(c.columns.cells.add(k)), X::every(X::CELLS as u32 - 1));
        let s = X::load(ps.add(k));
        let t = if c.line { X::from_f64(MIDST) } else { X::load(pt.add(k)) };
        let u = Vec3 { x: X::load(px.add(k)), y: X::load(py.add(k)), z: X::load(pz.add(k)) };
        let weight = if c.weighted { X::load(pw.add(k)) } else { X::ONE };
        let [dx, dy, vz] = displacement(u, c.reach);
        let (s1, t1) = (s + dx, t + dy);
        let (by_x, by_y) = (s1.crossed(), t1.crossed());
        let end = [s1 - by_x, t1 - by_y];
        end[0].store(ps.add(k));
        end[1].store(pt.add(k));
        let (di, dj) = (by_x.whole(), by_y.whole());
        X::store_cells(X::plus(cell, di), c.columns.cells.add(k));
        let mut leaves = by_x.either(by_y) & valid;
        if ORDER == 2 {
            leaves = (leaves | quadratic::turns([s, t], end)) & valid;
        }
        let q = weight.keep(valid & !leaves);
        s.store(paths.from[0].as_mut_ptr().add(to));
        t.store(paths.from[1].as_mut_ptr().add(to));
        q.store(paths.q.as_mut_ptr().add(to));
        let places = if ORDER == 1 {
            (q * vz).store(paths.qz.as_mut_ptr().add(to));
            places::<X>(c, cell)
        } else {
            vz.store(paths.qz.as_mut_ptr().add(to));
            quadratic::places::<X>(c, cell, s, t)
        };
        X::store_index(places, paths.places.as_mut_ptr().add(to));
        let steps = X::plus(X::left::<STEP_X>(di), X::left::<STEP_Y>(dj));
        let place = X::plus(X::iota(), X::every((k - first) as u32 + (1 << STEP_X) + (1 << STEP_Y)));
        X::list(leaves, X::plus(X::plus(place, X::left::<COLUMN>(cell)), steps), list)
    }
}

/// Adds up energy after half the kick and momentum before it.
#[inline(always)]
fn measure<X: Lanes>(c: &Context<'_, X::Scalar>, valid: X::Mask, weight: X, u: Vec3<X>, e: Vec3<X>) {
    let w = weight.keep(valid);
    // No iterator over registers: those are not reliably inlined into functions with target features.
    macro_rules! sum {
        ($n:expr, $v:expr) => {
            // SAFETY: four times MOST numbers.
            unsafe {
                let sum = c.sums.add($n).cast::<X::Scalar>();
                w.mul_add($v, X::load(sum)).store(sum);
            }
        };
    }
    sum!(0, kinetic_energy(add(u, e)));
    sum!(1, u.x);
    sum!(2, u.y);
    sum!(3, u.z);
}

/// Exchanges the particles that go from row `low` to the one above it and back: by pairs, then the rest into free slots.
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

/// Advances the particles of a tile, or of a band of its rows, by one step and adds their current to `window`. Those that leave
/// the tile go to `out`.
///
/// # Safety
/// The CPU has the instructions of `X`; the tile is not wider than [`Lanes::CELLS`].
#[inline(always)]
pub(super) unsafe fn advance_rows<X: Lanes, const ORDER: usize>(
    pass: &PassContext<'_, X::Scalar>,
    tile: &mut Band<'_, X::Scalar>,
    window: &mut Window<X::Scalar>,
    out: &mut Outbox<X::Scalar>,
    scratch: &mut Scratch<X::Scalar>,
) {
    let zero = X::Scalar::ZERO;
    let (corner, [width, height]) = (tile.corner, tile.cells);
    debug_assert!(width <= X::CELLS);
    // Linear shapes have currents of a cell and of one around the tile, quadratic ones of corners.
    let (stride, groups) = if ORDER == 1 { (X::CELLS + 2, 1) } else { (X::CELLS + 3, quadratic::GROUPS) };
    // Old numbers behind the last particle of a row may point to any column of the next row.
    let (none, rows) = (Cell([zero; CURRENTS]), groups * stride);
    if pass.line {
        // Currents of particles without charge are not read.
        scratch.cells.resize(rows * (height + 3), none);
        scratch.cells[ORDER * rows..(ORDER + 1) * rows].fill(none);
    } else {
        scratch.cells.clear();
        scratch.cells.resize(rows * (height + 3), none);
    }
    let limit = |more: bool| if more { X::Scalar::HALF } else { X::Scalar::TWO };
    for r in 0..height {
        let place = pass.grid.index(corner[0] as isize, (corner[1] + r) as isize);
        let len = tile.rows[r].len();
        if len > 0 {
            // SAFETY: guards are wide enough, the table is large enough.
            unsafe { fill::<X, ORDER>(&pass.fields, place, pass.grid.across(), pass.alpha, scratch.table.0.as_mut_ptr()) };
        }
        // In two dimensions the rows of another tile are not as far from these as these from each other: nothing is fetched there.
        let behind = if pass.line {
            let (behind, last) = Columns::of(&mut tile.rows[r]).behind(&scratch.last);
            scratch.last = last;
            behind
        } else {
            Columns::none()
        };
        for first in (0..len).step_by(BLOCK) {
            let (columns, next) = match &mut tile.rows[r..] {
                [row, next, ..] => (Columns::of(row), Columns::of(next)),
                [row] => (Columns::of(row), behind),
                [] => return,
            };
            let c = Context {
                columns,
                next,
                table: scratch.table.0.as_ptr(),
                cells: scratch.cells.as_mut_ptr().cast(),
                base: ((r + 1) * stride + 1) as u32,
                stride: stride as u32,
                reach: pass.reach,
                line: pass.line,
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
                while k < last {
                    let begin = k;
                    let end = last.min(begin + FLIGHT);
                    while k < end {
                        push::<X, ORDER>(&c, k);
                        k += X::LANES;
                    }
                    k = begin;
                    while k < end {
                        listed += shift::<X, ORDER>(&c, k, first, list.add(listed), &mut scratch.paths, k - begin);
                        k += X::LANES;
                    }
                    if ORDER == 1 {
                        deposit_stayers::<X>(&c, &scratch.paths, begin..k.min(last));
                        continue;
                    }
                    quadratic::deposit_stayers::<X>(&c, &scratch.paths, begin..k.min(last));
                    let flight = Flight { begin, first, row: r, cells: [width, height] };
                    let (paths, crossers, leavers) = (&scratch.paths, std::slice::from_raw_parts(list, listed), &mut scratch.leavers);
                    quadratic::deposit_crossers(&c, pass.charge, paths, flight, crossers, movers, leavers, window);
                    listed = 0;
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
                let end = [p.v[0], p.v[1]];
                if let Some(place) = pass.walls.settle(cell, &mut p, &mut out.tally) {
                    p.key = place.cell;
                    out.push(place, p);
                } else if ORDER == 2 {
                    let outside = [0, 1].map(|a| cell[a] < 0 || cell[a] >= pass.grid.cells[a] as isize);
                    let by = [entry >> STEP_X & 3, entry >> STEP_Y & 3].map(|d| X::Scalar::from_f64(f64::from(d) - 1.0));
                    let q = [p.v[5] * pass.charge[0], p.v[5] * pass.charge[1], zero];
                    vanish(window, [column, r as isize + step], end, by, outside, q);
                }
            }
            if pass.measure {
                for (n, sums) in scratch.sums.iter_mut().enumerate() {
                    // Of the lanes that there are; no iterator, which may be a call here.
                    let mut sum = 0.0;
                    for v in &mut sums[..X::LANES] {
                        sum += v.to_f64();
                        *v = zero;
                    }
                    *if n == 0 { &mut out.tally.kinetic } else { &mut out.tally.momentum[n - 1] } += sum;
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
    if ORDER == 1 {
        spread(pass, &scratch.cells, stride, [width, height], window);
    } else {
        quadratic::spread(pass, &scratch.cells, stride, [width, height], window);
    }
    out.seal();
}
