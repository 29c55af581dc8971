//! The small levels, which one block does in shared memory: their tables and fields laid out, and the queue of stages
//! that fall on them (tail.cu).

use bytemuck::{Pod, Zeroable};
use zellige_engine::cuda::{Buffer, Pool};
use zellige_engine::error::Result;

use super::tables::{AxisTables, Number};
use crate::grid::{Grid, Level};

/// Operations of one launch; a longer sequence is cut.
const OPERATIONS: usize = 96;
/// Levels that an operation can name.
const LEVELS: usize = 32;
/// Nodes of the largest level that goes here: above, several blocks are faster than one.
const NODES: usize = 4500;

/// A stage on a small level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Descend { level: usize, current: bool, sweeps: u32 },
    Solve { level: usize },
    Ascend { level: usize, sweeps: u32 },
}

impl Operation {
    fn level(self) -> usize {
        match self {
            Self::Descend { level, .. } | Self::Solve { level } | Self::Ascend { level, .. } => level,
        }
    }

    fn word(self, top: usize) -> u32 {
        let level = ((self.level() - top) as u32) << 2;
        match self {
            Self::Descend { current, sweeps, .. } => level | u32::from(current) << 7 | sweeps << 8,
            Self::Solve { .. } => 1 | level,
            Self::Ascend { sweeps, .. } => 2 | level | sweeps << 8,
        }
    }
}

/// `Queue` of tail.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Queue {
    count: i32,
    resumes: i32,
    continues: i32,
    first: i32,
    operations: [u32; OPERATIONS],
}

/// `TailAxis` and `TailLevel` of tail.cu, in words.
const AXIS_WORDS: usize = 9;
const LEVEL_WORDS: usize = 3 * AXIS_WORDS + 3;

/// The small levels' layout in shared memory and their tables on the device.
pub(super) struct Tail {
    /// The first level that is done here.
    pub top: usize,
    /// Bytes of shared memory.
    pub shared: u32,
    /// Numbers at the start of shared memory: tables, fields and scratch.
    pub reals: i32,
    pub table_count: i32,
    pub int_count: i32,
    pub scratch: i32,
    pub matrix: i32,
    pub tables: Buffer<u8>,
    pub ints: Buffer<i32>,
    pub state: Buffer<u8>,
    /// The operations with their words.
    queue: Vec<(Operation, u32)>,
    /// The factor of those that are not plain; none of them asked for one yet: `None`.
    omega: Option<f64>,
}

/// The layout for the levels from `top` on.
struct Layout {
    reals: Vec<f64>,
    ints: Vec<i32>,
    tables: usize,
    matrix: usize,
    scratch: usize,
    total: usize,
}

impl Layout {
    fn new(levels: &[Level], top: usize) -> Self {
        let below = &levels[top..];
        let (mut reals, mut tables) = (Vec::new(), vec![0_i32; LEVEL_WORDS * below.len()]);
        let mut indices = Vec::new();
        let start = tables.len();
        for (l, level) in below.iter().enumerate() {
            for d in 0..3 {
                let axis = &level.grid.axes[d];
                let transfer = level.transfer.as_ref().zip(below.get(l + 1)).map(|(t, c)| (&t[d], &c.grid.axes[d]));
                let t = AxisTables::new(axis, transfer);
                let mut put = |values: &[f64]| {
                    reals.extend_from_slice(values);
                    (reals.len() - values.len()) as i32
                };
                let (w, ends, shares) = (put(&t.weights), put(&t.ends), put(&t.shares));
                let mut put = |values: &[i32]| {
                    indices.extend_from_slice(values);
                    (start + indices.len() - values.len()) as i32
                };
                let (parent, child) = (put(&t.parent), put(&t.child));
                let (unknowns, periodic) = (axis.unknowns(), i32::from(axis.periodic()));
                let words = [axis.nodes as i32, unknowns.start as i32, unknowns.end as i32, periodic, w, ends, shares, parent, child];
                tables[LEVEL_WORDS * l + AXIS_WORDS * d..][..AXIS_WORDS].copy_from_slice(&words);
            }
        }
        let matrix = reals.len();
        reals.extend(inverse(&levels[levels.len() - 1].grid));
        let table_count = reals.len();
        let mut next = table_count;
        for (l, level) in below.iter().enumerate() {
            let n = level.grid.len();
            let words = [next as i32, (next + n) as i32, i32::from(seam(&level.grid))];
            tables[LEVEL_WORDS * l + 3 * AXIS_WORDS..][..3].copy_from_slice(&words);
            next += 2 * n;
        }
        tables.extend(indices);
        // The doubles behind the integers start aligned.
        let (scratch, largest) = (next, below.iter().map(|l| l.grid.len()).max().unwrap_or(0));
        Self { reals, ints: tables, tables: table_count, matrix, scratch, total: (scratch + largest).next_multiple_of(2) }
    }

    fn bytes(&self, number: Number) -> usize {
        self.total * number.bytes() + self.ints.len() * 4
    }
}

/// Whether two nodes of one colour touch across the seam of a periodic axis.
pub(super) fn seam(grid: &Grid) -> bool {
    grid.axes.iter().any(|a| a.periodic() && !a.is_flat() && a.nodes % 2 == 1)
}

impl Tail {
    /// Puts as many levels here as fit into `shared` bytes.
    pub(super) fn new(pool: &Pool, levels: &[Level], number: Number, shared: u32) -> Result<Self> {
        let last = levels.len() - 1;
        let fits = |top: usize| {
            levels.len() - top <= LEVELS && levels[top].grid.len() <= NODES && Layout::new(levels, top).bytes(number) <= shared as usize
        };
        let top = (0..last).find(|top| fits(*top)).unwrap_or(last);
        let layout = Layout::new(levels, top);
        let tables = match number {
            Number::F32 => bytemuck::cast_slice::<f32, u8>(&layout.reals.iter().map(|v| *v as f32).collect::<Vec<_>>()).to_vec(),
            Number::F64 => bytemuck::cast_slice::<f64, u8>(&layout.reals).to_vec(),
        };
        Ok(Self {
            top,
            shared: layout.bytes(number) as u32,
            reals: layout.total as i32,
            table_count: layout.tables as i32,
            int_count: layout.ints.len() as i32,
            scratch: layout.scratch as i32,
            matrix: layout.matrix as i32,
            tables: pool.buffer_from(&tables, "poisson tail: tables")?,
            ints: pool.buffer_from(&layout.ints, "poisson tail: tables")?,
            state: pool.alloc_zeros(layout.scratch * number.bytes(), "poisson tail: state")?,
            queue: Vec::new(),
            omega: None,
        })
    }

    /// Whether anything is queued.
    pub(super) fn waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether operations with the factor `omega` cannot join what is queued. A cycle has one factor beside 1, so this
    /// only happens between cycles.
    pub(super) fn parts(&self, omega: f64) -> bool {
        omega != 1.0 && self.omega.is_some_and(|queued| queued != omega)
    }

    /// Adds `operation`; `omega` is the relaxation factor, which a solve does not use.
    pub(super) fn push(&mut self, operation: Operation, omega: Option<f64>) {
        let plain = omega == Some(1.0);
        if let Some(omega) = omega.filter(|_| !plain) {
            self.omega = Some(omega);
        }
        self.queue.push((operation, operation.word(self.top) | u32::from(plain) << 31));
    }

    /// Empties the queue: the level whose residual goes in and whose correction comes out, the relaxation factor and
    /// the launches. `None` if nothing is queued.
    pub(super) fn take(&mut self) -> Option<(usize, f64, Vec<Queue>)> {
        let queued = std::mem::take(&mut self.queue);
        let first = queued.first()?.0.level();
        let pieces = queued.len().div_ceil(OPERATIONS);
        let launches = queued.chunks(OPERATIONS).enumerate().map(|(i, part)| {
            let mut operations = [0; OPERATIONS];
            for (word, (_, queued)) in operations.iter_mut().zip(part) {
                *word = *queued;
            }
            let (resumes, continues) = (i32::from(i > 0), i32::from(i + 1 < pieces));
            Queue { count: part.len() as i32, resumes, continues, first: (first - self.top) as i32, operations }
        });
        let launches = launches.collect();
        Some((first, self.omega.take().unwrap_or(1.0), launches))
    }
}

/// The inverse of the coarsest level's operator as a dense matrix over its nodes (at most 27); rows and columns of nodes
/// that are no unknowns are zero. On a singular level it takes the weighted mean off the right-hand side and gives the
/// solution without mean: the inverse of A bordered by ones and by the volumes.
fn inverse(grid: &Grid) -> Vec<f64> {
    let nodes = grid.nodes();
    let split = |q: usize| [q % nodes[0], q / nodes[0] % nodes[1], q / (nodes[0] * nodes[1])];
    let unknown = |q: usize| (0..3).all(|d| grid.axes[d].unknowns().contains(&split(q)[d]));
    let unknowns: Vec<usize> = (0..grid.len()).filter(|q| unknown(*q)).collect();
    let (n, singular) = (unknowns.len(), grid.singular());
    let size = n + usize::from(singular);
    // [A | I], reduced row by row.
    let mut a = vec![vec![0.0; 2 * size]; size];
    for (row, q) in unknowns.iter().enumerate() {
        let at = split(*q);
        for d in (0..3).filter(|d| !grid.axes[*d].is_flat()) {
            let (axis, (west, east)) = (&grid.axes[d], grid.axes[d].weights(at[d]));
            for (weight, step) in [(west, axis.nodes - 1), (east, 1)] {
                let mut other = at;
                other[d] = (at[d] + step) % axis.nodes;
                let index = other[0] + nodes[0] * (other[1] + nodes[1] * other[2]);
                if let Some(column) = unknowns.iter().position(|u| *u == index).filter(|_| weight != 0.0) {
                    a[row][column] += weight;
                }
            }
            a[row][row] -= west + east;
        }
        if singular {
            a[row][n] = 1.0;
            a[n][row] = (0..3).map(|d| grid.axes[d].volume(at[d])).product();
        }
    }
    for row in 0..size {
        a[row][size + row] = 1.0;
    }
    for c in 0..size {
        let pivot = (c..size).max_by(|p, q| a[*p][c].abs().total_cmp(&a[*q][c].abs())).unwrap_or(c);
        a.swap(c, pivot);
        let scale = 1.0 / a[c][c];
        a[c].iter_mut().for_each(|v| *v *= scale);
        let row = a[c].clone();
        for (_, other) in a.iter_mut().enumerate().filter(|(r, _)| *r != c) {
            let factor = other[c];
            other.iter_mut().zip(&row).for_each(|(v, p)| *v -= factor * p);
        }
    }
    let mut matrix = vec![0.0; grid.len() * grid.len()];
    for (row, q) in unknowns.iter().enumerate() {
        for (column, p) in unknowns.iter().enumerate() {
            matrix[q * grid.len() + p] = a[row][size + column];
        }
    }
    matrix
}
