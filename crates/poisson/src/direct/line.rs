//! The tridiagonal systems along the last axis, one for each mode of the transformed axes.
//!
//! With the rows divided by `-1 / h^2` and halved at a Neumann end, a mode of eigenvalue `lambda` (a sum over the
//! transformed axes) leaves, with `delta = -lambda h^2 >= 0`,
//!
//! ```text
//! -u_{l-1} + (2 + delta) u_l - u_{l+1} = b_l          Neumann end: (1 + delta / 2) u_0 - u_1 = b_0 / 2
//! ```
//!
//! solved by elimination without pivoting (the matrix is symmetric and positive definite):
//! `m_l = 1 / (2 + delta - m_{l-1})`, `g_l = m_l (b_l + g_{l-1})`, then `u_l = g_l + m_l u_{l+1}`.
//!
//! For smooth modes `delta` is far below 1 and drowns in the rounding of `2 + delta`, and that of `m_l` would shift the
//! eigenvalue, all rows alike. So the tables are made from `d_l = 1 - m_l = (delta + d_{l-1}) / (1 + delta + d_{l-1})`,
//! which keeps its digits, and hold `m_l` with what its rounding left out, `e_l`: a product is `m_l s + e_l s`.
//!
//! The `m_l` fall to a fixed point, within rounding after `~ 18 / sqrt(delta)` rows. They are tabled up to there, for
//! [`WIDTH`] neighbouring modes at a time: a few rows for most modes, so that the tables are a small fraction of the grid
//! and no division is left in the solve.
//!
//! A periodic axis is closed through its node 0: it is eliminated last, the others see it through `q_l = m_l q_{l-1}`,
//! which decays likewise, and its pivot is `2 sinh(theta) tanh(n theta / 2)` with `2 + delta = 2 cosh(theta)`.

use super::transform::Scalar;
use crate::grid::{Axis, Bc};

/// Modes that share a table.
pub(super) const WIDTH: usize = 16;

/// Units of rounding within which a multiplier counts as its fixed point: what the recursion's own rounding leaves.
const SETTLED: f64 = 8.0;

/// The tables of [`WIDTH`] neighbouring modes.
struct Block<T> {
    /// Multipliers of rows 0 .. , the last one being the fixed point.
    steps: Vec<Step<T>>,
    /// Periodic: `q` of rows 1 .. without the term of the last row, until it is negligible.
    closure: Vec<[T; WIDTH]>,
    /// Neumann: multiplier of the last row. Periodic: one over the pivot of node 0. Zero where the system is singular.
    last: [T; WIDTH],
}

/// The multipliers of a row.
struct Step<T> {
    /// Rounded.
    m: [T; WIDTH],
    /// Rounding error of `m`.
    e: [T; WIDTH],
}

impl<T: Scalar> Step<T> {
    /// Builds the multipliers from `d = 1 - m` and `m`, each with all its digits.
    fn new(d: &[f64; WIDTH], m: &[f64; WIDTH]) -> Self {
        let rounded: [T; WIDTH] = std::array::from_fn(|k| T::of(if d[k] < 0.5 { 1.0 - d[k] } else { m[k] }));
        let e = std::array::from_fn(|k| {
            let r = rounded[k].to_f64();
            T::of(if d[k] < 0.5 { (1.0 - r) - d[k] } else { m[k] - r })
        });
        Self { m: rounded, e }
    }
}

/// The systems of all modes of a plane.
pub(super) struct Lines<T> {
    blocks: Vec<Block<T>>,
    /// First row eliminated and one past the last: the unknowns, without node 0 of a periodic axis.
    rows: std::ops::Range<usize>,
    lo: Bc,
    hi: Bc,
}

/// Rate of decay: `2 + delta = 2 cosh(theta)`.
fn theta(delta: f64) -> f64 {
    2.0 * (0.5 * delta.sqrt()).asinh()
}

impl<T: Scalar> Lines<T> {
    /// The systems along `axis` for stretches of modes; `delta(stretch)` lists them, one per mode.
    pub(super) fn new(axis: &Axis, stretches: impl Iterator<Item = Vec<f64>>) -> Self {
        let unknowns = axis.unknowns();
        let rows = usize::from(axis.periodic()).max(unknowns.start)..unknowns.end;
        let mut blocks = Vec::new();
        for deltas in stretches {
            blocks.extend(deltas.chunks(WIDTH).map(|chunk| Block::new(axis, rows.len(), chunk)));
        }
        Self { blocks, rows, lo: axis.lo, hi: axis.hi }
    }

    /// Returns true if the axis is periodic.
    pub(super) fn periodic(&self) -> bool {
        self.lo == Bc::Periodic
    }

    /// Bytes of the tables.
    pub(super) fn memory(&self) -> u64 {
        let rows: usize = self.blocks.iter().map(|b| 2 * b.steps.len() + b.closure.len() + 1).sum();
        (rows * WIDTH * size_of::<T>()) as u64
    }

    /// Eliminates row `l` of the modes of `block` and the following ones: `row` becomes `g_l`. `carry` holds `g_{l-1}`, zero
    /// at first, and `border` the right-hand side of a periodic node 0.
    #[inline(always)]
    pub(super) fn eliminate(&self, l: usize, block: usize, row: &mut [T], carry: &mut [T], border: &mut [T]) {
        if l < self.rows.start {
            border.copy_from_slice(row);
            return;
        }
        let blocks = &self.blocks[block..];
        if self.halved(l) {
            for b in row.iter_mut() {
                *b *= T::HALF;
            }
        }
        if self.lo == Bc::Periodic {
            for (((b, g), border), tables) in row.chunks(WIDTH).zip(carry.chunks(WIDTH)).zip(border.chunks_mut(WIDTH)).zip(blocks) {
                if let Some(q) = self.closure(tables, l) {
                    for (((b, g), border), q) in b.iter().zip(g).zip(border).zip(&q) {
                        *border += *q * (*b + *g);
                    }
                }
            }
        }
        if self.hi == Bc::Neumann && l + 1 == self.rows.end {
            for ((row, carry), tables) in row.chunks_mut(WIDTH).zip(carry.chunks(WIDTH)).zip(blocks) {
                for ((b, g), m) in row.iter_mut().zip(carry).zip(&tables.last) {
                    *b = *m * (*b + *g);
                }
            }
            return;
        }
        self.each_block(l, row, carry, blocks, false);
    }

    /// Substitutes row `l` back: `row` becomes `u_l`. `carry` holds `u_{l+1}`, zero at first, and `border` what
    /// [`Lines::close`] made of it.
    #[inline(always)]
    pub(super) fn substitute(&self, l: usize, block: usize, row: &mut [T], carry: &mut [T], border: &[T]) {
        if l < self.rows.start {
            row.copy_from_slice(border);
            return;
        }
        let blocks = &self.blocks[block..];
        if self.lo == Bc::Periodic {
            for ((g, u0), tables) in row.chunks_mut(WIDTH).zip(border.chunks(WIDTH)).zip(blocks) {
                if let Some(q) = self.closure(tables, l) {
                    for ((g, u0), q) in g.iter_mut().zip(u0).zip(&q) {
                        *g += *q * *u0;
                    }
                }
            }
        }
        if l + 1 == self.rows.end {
            carry.copy_from_slice(row);
            return;
        }
        self.each_block(l, row, carry, blocks, true);
    }

    /// Periodic: turns the eliminated right-hand side of node 0 into its value.
    pub(super) fn close(&self, block: usize, border: &mut [T]) {
        if self.lo == Bc::Periodic {
            for (border, tables) in border.chunks_mut(WIDTH).zip(&self.blocks[block..]) {
                for (s, inverse) in border.iter_mut().zip(tables.last) {
                    *s *= inverse;
                }
            }
        }
    }

    /// The inner rows of both ways; `back`: substituted.
    #[inline(always)]
    fn each_block(&self, l: usize, row: &mut [T], carry: &mut [T], blocks: &[Block<T>], back: bool) {
        let (rows, row_rest) = row.as_chunks_mut::<WIDTH>();
        let (carries, carry_rest) = carry.as_chunks_mut::<WIDTH>();
        for ((row, carry), tables) in rows.iter_mut().zip(carries).zip(blocks) {
            let Step { m, e } = self.step(tables, l);
            *row = all(*row, *carry, *m, *e, back);
            *carry = *row;
        }
        if let Some(tables) = blocks.get(rows.len()) {
            let Step { m, e } = self.step(tables, l);
            for (k, (row, carry)) in row_rest.iter_mut().zip(carry_rest).enumerate() {
                *row = next(*row, *carry, m[k], e[k], back);
                *carry = *row;
            }
        }
    }

    #[inline(always)]
    fn step<'a>(&self, tables: &'a Block<T>, l: usize) -> &'a Step<T> {
        &tables.steps[(l - self.rows.start).min(tables.steps.len() - 1)]
    }

    #[inline(always)]
    fn halved(&self, l: usize) -> bool {
        (self.lo == Bc::Neumann && l == self.rows.start) || (self.hi == Bc::Neumann && l + 1 == self.rows.end)
    }

    /// `q_l`, or `None` where it is negligible. The last row is a neighbour of node 0 once more.
    #[inline(always)]
    fn closure(&self, tables: &Block<T>, l: usize) -> Option<[T; WIDTH]> {
        let stored = tables.closure.get(l - self.rows.start).copied();
        if l + 1 < self.rows.end {
            return stored;
        }
        let (step, mut q) = (self.step(tables, l), stored.unwrap_or([T::ZERO; WIDTH]));
        for k in 0..WIDTH {
            q[k] += step.m[k];
        }
        Some(q)
    }
}

/// [`next`] of every mode of a block. By value: arrays that might overlap would be worked on one by one.
#[inline(always)]
fn all<T: Scalar>(value: [T; WIDTH], carry: [T; WIDTH], m: [T; WIDTH], e: [T; WIDTH], back: bool) -> [T; WIDTH] {
    let mut out = [T::ZERO; WIDTH];
    for k in 0..WIDTH {
        out[k] = next(value[k], carry[k], m[k], e[k], back);
    }
    out
}

/// `g_l` of `b_l` and `g_{l-1}`, or (`back`) `u_l` of `g_l` and `u_{l+1}`.
#[inline(always)]
fn next<T: Scalar>(value: T, carry: T, m: T, e: T, back: bool) -> T {
    if back {
        m * carry + (e * carry + value)
    } else {
        let s = value + carry;
        m * s + e * s
    }
}

impl<T: Scalar> Block<T> {
    fn new(axis: &Axis, rows: usize, deltas: &[f64]) -> Self {
        let eps = if size_of::<T>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let mut delta = [deltas[deltas.len() - 1]; WIDTH];
        delta[..deltas.len()].copy_from_slice(deltas);
        let limit = delta.map(|d| -(-theta(d)).exp_m1());
        // One over the pivot after a row with `d`.
        let multipliers = |d: &[f64; WIDTH]| -> [f64; WIDTH] { std::array::from_fn(|k| 1.0 / (1.0 + delta[k] + d[k])) };
        let next = |d: &[f64; WIDTH]| -> [f64; WIDTH] { std::array::from_fn(|k| (delta[k] + d[k]) / (1.0 + delta[k] + d[k])) };
        let (mut d, mut before, mut steps) = ([1.0; WIDTH], limit, Vec::new());
        for row in 0..rows {
            before = d;
            let halved = row == 0 && axis.lo == Bc::Neumann;
            let m = if halved { delta.map(|d| 1.0 / (1.0 + 0.5 * d)) } else { multipliers(&d) };
            d = if halved { delta.map(|d| 0.5 * d / (1.0 + 0.5 * d)) } else { next(&d) };
            let close = |a: f64, b: f64| (a - b).abs() <= SETTLED * eps * b;
            let settled = (0..WIDTH).all(|k| close(d[k], limit[k]) && close(m[k], (-theta(delta[k])).exp()));
            if settled {
                steps.push(Step::new(&limit, &delta.map(|d| (-theta(d)).exp())));
                before = limit;
                break;
            }
            steps.push(Step::new(&d, &m));
        }
        let mut last = [0.0; WIDTH];
        if axis.periodic() {
            let n = axis.nodes as f64;
            last = delta.map(|d| if d > 0.0 { 1.0 / (2.0 * theta(d).sinh() * (0.5 * n * theta(d)).tanh()) } else { 0.0 });
        } else if axis.hi == Bc::Neumann {
            let singular = |k: usize| delta[k] == 0.0 && axis.lo == Bc::Neumann;
            last = std::array::from_fn(|k| if singular(k) { 0.0 } else { 1.0 / (0.5 * delta[k] + before[k]) });
        }
        let (mut closure, mut q, mut d) = (Vec::new(), [1.0; WIDTH], [1.0; WIDTH]);
        while axis.periodic() && closure.len() < rows && q.iter().any(|q| *q > 1e-3 * eps) {
            let m = multipliers(&d);
            d = next(&d);
            for k in 0..WIDTH {
                q[k] = if d[k] < 0.5 { q[k] - d[k] * q[k] } else { q[k] * m[k] };
            }
            closure.push(q.map(T::of));
        }
        Self { steps, closure, last: last.map(T::of) }
    }
}
