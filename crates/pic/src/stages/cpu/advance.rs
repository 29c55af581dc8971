//! Gather, push, move and deposit of the particles of one tile, one at a time: any order, weight and pusher, in either
//! precision. The reference for the rows of registers in [`super::row`], and their way for quadratic paths to another corner.

use zellige_engine::real::RealScalar;

use super::exchange::Outbox;
use super::store::{Band, COLUMNS, Tile};
use super::walls::Walls;
use super::window::Window;
use crate::grid::{ABOVE, BELOW, Grid};
use crate::particles::Pusher;
use crate::physics::{Vec3, add, boris, gamma, higuera_cary, kinetic_energy, segment_current, vay};
use crate::shapes::{Weights, across_row, border, crossed, linear, nearest, quadratic};

/// Position at which particles of a line begin each step across it, and the part of their way that they go: nothing depends on the
/// position there, and from a quarter of the cell by less than an eighth none of them reaches a border or another nearest corner,
/// so that none goes to another cell, or round the domain, for it. Steps are shorter than a cell at the speed of light, `dt < h`.
pub(super) const MIDST: f64 = 0.25;
/// See above; a power of two, so that nothing is rounded in it.
pub(super) const ACROSS: f64 = 0.125;

/// Data that all tiles share in the pass of a species.
#[derive(Debug)]
pub(super) struct PassContext<'a, T> {
    pub(super) grid: &'a Grid,
    /// `Ex Ey Ez Bx By Bz` as particles feel them.
    pub(super) fields: [&'a [T]; 6],
    /// `q dt / (2 m)`: what fields are multiplied by.
    pub(super) alpha: T,
    /// `dt / h` per axis: cells per step at the speed of light.
    pub(super) reach: [T; 2],
    /// Current of a macro-particle: `q h/dt` per cell of displacement in x and y, `q` per unit of velocity in z.
    pub(super) charge: [T; 3],
    /// True if the domain is one cell wide in y: see [`MIDST`].
    pub(super) line: bool,
    pub(super) pusher: Pusher,
    pub(super) walls: Walls,
    /// True if particles have weights of their own.
    pub(super) weighted: bool,
    /// True if energy and momentum are summed.
    pub(super) measure: bool,
}

/// Weights of up to three nodes from `first` on, counted from a particle's cell.
#[derive(Debug, Clone, Copy)]
struct Stencil<T> {
    first: isize,
    w: [T; 3],
}

/// Weights for a component that sits at half cells of an axis (`half`) or at corners.
#[inline(always)]
fn stencil<T: RealScalar, const ORDER: u32>(s: T, half: bool) -> Stencil<T> {
    if half {
        let w = if ORDER == 1 { linear(s) } else { quadratic(s) };
        return Stencil { first: -1, w: [w.below, w.middle, w.above] };
    }
    if ORDER == 1 {
        return Stencil { first: 0, w: [T::HALF - s, T::HALF + s, T::ZERO] };
    }
    let upper = nearest(s);
    let w = quadratic(s + T::HALF - upper);
    Stencil { first: if s < T::ZERO { -1 } else { 0 }, w: [w.below, w.middle, w.above] }
}

impl<T: RealScalar> PassContext<'_, T> {
    /// `alpha E` and `alpha B` at offset `(s, t)` in cell `(i, j)`.
    #[inline(always)]
    fn gather<const ORDER: u32>(&self, i: usize, j: usize, s: T, t: T) -> (Vec3<T>, Vec3<T>) {
        let x = [stencil::<T, ORDER>(s, false), stencil::<T, ORDER>(s, true)];
        let y = [stencil::<T, ORDER>(t, false), stencil::<T, ORDER>(t, true)];
        let pitch = self.grid.across();
        let at = |component: usize, x: &Stencil<T>, y: &Stencil<T>| {
            let mut sum = T::ZERO;
            let begin = self.grid.index(i as isize + x.first, j as isize + if self.line { 0 } else { y.first });
            for (row, wy) in y.w.iter().enumerate() {
                let f = &self.fields[component][begin + row * pitch..][..3];
                sum += *wy * (x.w[0] * f[0] + x.w[1] * f[1] + x.w[2] * f[2]);
            }
            self.alpha * sum
        };
        let e = Vec3 { x: at(0, &x[1], &y[0]), y: at(1, &x[0], &y[1]), z: at(2, &x[0], &y[0]) };
        let b = Vec3 { x: at(3, &x[0], &y[1]), y: at(4, &x[1], &y[0]), z: at(5, &x[1], &y[1]) };
        (e, b)
    }

    #[inline(always)]
    fn push(&self, u: Vec3<T>, e: Vec3<T>, b: Vec3<T>) -> Vec3<T> {
        match self.pusher {
            Pusher::Boris => boris(u, e, b),
            Pusher::Vay => vay(u, e, b),
            Pusher::HigueraCary => higuera_cary(u, e, b),
        }
    }
}

/// A path in one step: from offset `a` in a cell to `b`, measured in the cell `by` further.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path<T> {
    pub(super) a: [T; 2],
    pub(super) delta: [T; 2],
    pub(super) b: [T; 2],
    pub(super) by: [T; 2],
}

/// Advances the particles of a tile, or of a band of its rows, by one step and adds their current to `window`. Those that leave
/// their row, for another one of the tile too, go to `out`.
pub(super) fn advance_tile<T: RealScalar, const ORDER: u32>(
    pass: &PassContext<'_, T>,
    tile: &mut Band<'_, T>,
    window: &mut Window<T>,
    out: &mut Outbox<T>,
) {
    for r in 0..tile.rows.len() {
        let j = tile.corner[1] + r;
        let row = &mut tile.rows[r];
        let mut k = 0;
        while k < row.len() {
            let mut p = row.get(k);
            let (i, column) = (tile.corner[0] + usize::from(p.key), isize::from(p.key));
            let [s, t, ux, uy, uz, weight] = p.v;
            let t = if pass.line { T::from_f64(MIDST) } else { t };
            let (e, b) = pass.gather::<ORDER>(i, j, s, t);
            let u = Vec3 { x: ux, y: uy, z: uz };
            if pass.measure {
                let w = weight.to_f64();
                out.tally.kinetic += w * kinetic_energy(add(u, e)).to_f64();
                for (sum, u) in out.tally.momentum.iter_mut().zip([ux, uy, uz]) {
                    *sum += w * u.to_f64();
                }
            }
            let u = pass.push(u, e, b);
            let v = T::ONE / gamma(u);
            let delta = [u.x * v * pass.reach[0], u.y * v * pass.reach[1]];
            let by = [crossed(s + delta[0]), crossed(t + delta[1])];
            let end = [s + delta[0] - by[0], t + delta[1] - by[1]];
            p.v = [end[0], end[1], u.x, u.y, u.z, weight];
            let q = [weight * pass.charge[0], weight * pass.charge[1], weight * pass.charge[2] * (u.z * v)];
            let path = Path { a: [s, t], delta, b: end, by };
            if ORDER == 1 {
                deposit_split(window, column, r as isize, path, q);
            } else {
                deposit_esirkepov(window, column, r as isize, path, q);
            }
            let [di, dj] = by.map(|b| b.to_f64() as isize);
            if di == 0 && dj == 0 {
                row.set(k, &p);
                k += 1;
                continue;
            }
            row.swap_remove(k);
            let cell = [i as isize + di, j as isize + dj];
            if let Some(place) = pass.walls.settle(cell, &mut p, &mut out.tally) {
                p.key = place.cell;
                out.push(place, p);
            } else if ORDER == 2 {
                let outside = [0, 1].map(|a| cell[a] < 0 || cell[a] >= pass.grid.cells[a] as isize);
                vanish(window, [column + di, r as isize + dj], end, by, outside, q);
            }
        }
    }
    out.seal();
}

/// Order 1: the path is cut where it meets borders of cells, into at most three pieces that stay in one cell each.
#[inline(always)]
fn deposit_split<T: RealScalar>(window: &mut Window<T>, i: isize, j: isize, path: Path<T>, q: [T; 3]) {
    let Path { a, delta, b, by } = path;
    let part = [border(a[0], delta[0], by[0]), border(a[1], delta[1], by[1])];
    // In the order in which they are met; each entry is the axis.
    let order = if part[0] <= part[1] { [0, 1] } else { [1, 0] };
    let (mut cell, mut from, mut begin) = ([i, j], a, T::ZERO);
    for axis in order {
        if by[axis] == T::ZERO {
            continue;
        }
        // Offsets are counted from the centre of the cell that this piece is in.
        let moved = [T::from_f64((cell[0] - i) as f64), T::from_f64((cell[1] - j) as f64)];
        let mut to = [0, 1].map(|k| a[k] + delta[k] * part[axis] - moved[k]);
        to[axis] = T::HALF * by[axis];
        segment(window, cell, from, to, [q[0], q[1], q[2] * (part[axis] - begin)]);
        from = to;
        from[axis] = -to[axis];
        begin = part[axis];
        cell[axis] += by[axis].to_f64() as isize;
    }
    segment(window, cell, from, b, [q[0], q[1], q[2] * (T::ONE - begin)]);
}

/// A piece of a path inside one cell.
#[inline(always)]
fn segment<T: RealScalar>(window: &mut Window<T>, cell: [isize; 2], a: [T; 2], b: [T; 2], q: [T; 3]) {
    let c = segment_current(a[0], a[1], b[0], b[1], q[0], q[1], q[2]);
    let (low, pitch) = (window.at(cell[0], cell[1]), window.pitch);
    let [jx, jy, jz] = &mut window.j;
    jx[low] += c.x_lower;
    jx[low + pitch] += c.x_upper;
    jy[low] += c.y_left;
    jy[low + 1] += c.y_right;
    jz[low] += c.z00;
    jz[low + 1] += c.z10;
    jz[low + pitch] += c.z01;
    jz[low + pitch + 1] += c.z11;
}

/// Three weights on four nodes, of which the first is left free where `later`.
#[inline(always)]
fn on_four<T: RealScalar>(w: Weights<T>, later: bool) -> [T; 4] {
    if later { [T::ZERO, w.below, w.middle, w.above] } else { [w.below, w.middle, w.above, T::ZERO] }
}

/// Weights at the start and the end of a path on four nodes, and the first of them, counted from the path's first cell: the
/// nearest corner changes by one at most.
#[inline(always)]
fn nodes<T: RealScalar>(a: T, b: T, by: T) -> (isize, [T; 4], [T; 4]) {
    let (upper_a, upper_b) = (nearest(a), nearest(b));
    let (wa, wb) = (quadratic(a + T::HALF - upper_a), quadratic(b + T::HALF - upper_b));
    let end = by + upper_b;
    let low = upper_a.min(end);
    (low.to_f64() as isize - 1, on_four(wa, upper_a > low), on_four(wb, end > low))
}

/// Charge that has passed between four nodes towards larger coordinates, in units of `q / 2`.
#[inline(always)]
fn passed<T: RealScalar>(w0: [T; 4], w1: [T; 4], q: T) -> [T; 4] {
    let (first, second, last) = (w0[0] - w1[0], w0[1] - w1[1], w1[3] - w0[3]);
    let half = T::HALF * q;
    [half * first, half * (first + second), half * last, T::ZERO]
}

/// Order 2: Esirkepov's decomposition; the current is summed up from the nodes where the path has no weight beyond.
#[inline(always)]
pub(super) fn deposit_esirkepov<T: RealScalar>(window: &mut Window<T>, i: isize, j: isize, path: Path<T>, q: [T; 3]) {
    let (first_x, x0, x1) = nodes(path.a[0], path.b[0], path.by[0]);
    let (first_y, y0, y1) = nodes(path.a[1], path.b[1], path.by[1]);
    let (along_x, along_y) = (passed(x0, x1, q[0]), passed(y0, y1, q[1]));
    let begin = window.at(i + first_x, j + first_y);
    let pitch = window.pitch;
    let [jx, jy, jz] = &mut window.j;
    for n in 0..4 {
        // Rows of four: the compiler makes one register of each.
        let at = begin + n * pitch;
        let (jx, jy, jz) = (&mut jx[at..at + 4], &mut jy[at..at + 4], &mut jz[at..at + 4]);
        let y = y0[n] + y1[n];
        let [z0, z1] = across_row(y0[n], y1[n], q[2]);
        for m in 0..4 {
            jx[m] += along_x[m] * y;
            jy[m] += along_y[n] * (x0[m] + x1[m]);
            jz[m] += x0[m] * z0 + x1[m] * z1;
        }
    }
}

/// Order 2: a particle that an absorbing wall has taken still has weight at the corners next to the wall inside. Its path goes
/// on into the wall until that has become zero, in the middle of the first cell behind it, so that no charge is lost in sight.
#[cold]
pub(super) fn vanish<T: RealScalar>(window: &mut Window<T>, cell: [isize; 2], from: [T; 2], by: [T; 2], outside: [bool; 2], q: [T; 3]) {
    // Beyond the middle where outward times offset is positive.
    let b = [0, 1].map(|k| if outside[k] && by[k] * from[k] < T::ZERO { T::ZERO } else { from[k] });
    let delta = [b[0] - from[0], b[1] - from[1]];
    deposit_esirkepov(window, cell[0], cell[1], Path { a: from, delta, b, by: [T::ZERO; 2] }, [q[0], q[1], T::ZERO]);
}

/// Charge of a tile at the corners from `-BELOW` on, `width` a row, where a macro-particle has the charge 1.
pub(super) fn deposit_charge<T: RealScalar, const ORDER: u32>(tile: &Tile<T>, width: usize) -> Vec<f64> {
    let mut rho = vec![0.0; width * (BELOW + tile.cells[1] + ABOVE)];
    for (r, row) in tile.rows.iter().enumerate() {
        let (s, t) = (row.column(0), row.column(1));
        let weights = (row.layout().width == COLUMNS).then(|| row.column(COLUMNS - 1));
        for (k, column) in row.keys().iter().enumerate() {
            let (x, y) = (stencil::<f64, ORDER>(s[k].to_f64(), false), stencil::<f64, ORDER>(t[k].to_f64(), false));
            let weight = weights.map_or(1.0, |w| w[k].to_f64());
            let [i, j] = [x.first + isize::from(*column), y.first + r as isize];
            let low = (j + BELOW as isize) as usize * width + (i + BELOW as isize) as usize;
            let x = [weight * x.w[0], weight * x.w[1], weight * x.w[2]];
            // Two corners per axis are all that linear shapes reach. Numbers of turns that are constants: no loop is left.
            for n in 0..=ORDER as usize {
                let to = &mut rho[low + n * width..][..=ORDER as usize];
                for m in 0..=ORDER as usize {
                    to[m] += x[m] * y.w[n];
                }
            }
        }
    }
    rho
}
