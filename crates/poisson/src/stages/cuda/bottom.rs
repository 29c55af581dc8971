//! The bottom level, solved directly: the operator is a sum over the axes, so `A e = r` falls apart in the modes of each
//! axis. `e` is a product of small dense matrices and the field, two an axis: there, and back (product.cu). In the plane the
//! systems along y are solved by elimination instead (eliminate.cu), unless the axis is periodic or a system is singular.
//! Where the modes are sines, FFTs take the place of the products (sines.rs), and the level may be larger.

use zellige_device_macro::device;
use zellige_engine::cuda::{Buffer, Pool};
use zellige_engine::error::Result;

use super::arguments;
use super::data::Data;
use super::eigen::Modes;
use super::sines::{self, Sines};
use super::tables::Number;
use crate::grid::{Axis, Grid, Level};

/// Rows and columns of a block's tile and its threads.
const TILE: [usize; 2] = [16, 32];
const THREADS: u32 = 512;
/// Threads of a block that eliminates: a warp a column.
const ELIMINATING: u32 = 256;
/// Sizes that the longest axis of the bottom level may have, in the plane and in space: the largest that fits is taken.
/// Two launches an axis cost what a level's two passes cost, and replace all levels below.
const PLANE: [usize; 5] = [257, 129, 65, 33, 17];
const SPACE: [usize; 3] = [65, 33, 17];

/// `C = A B`, or `A` transformed.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Product {
    a: *const real,
    b: *const real,
    c: *mut real,
    batch_a: i64,
    batch_b: i64,
    batch_c: i64,
    /// Rows of A and C.
    m: i32,
    /// Columns of A, a multiple of 32.
    k: i32,
    /// Rows of B, zeros follow.
    rows_b: i32,
    pitch_a: i32,
    /// Of B and C.
    pitch_b: i32,
    /// Set if A is the matrix: it can be read before the kernel ahead has ended.
    modes_first: i32,
    /// 1: over `-(x + y + z)`, the eigenvalues; row and column are y and x; 2: z, and y and x together.
    scale: i32,
    pitch: i32,
    x: *const real,
    y: *const real,
    z: *const real,
}

/// Elimination along y.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Elimination {
    r: *const real,
    e: *mut real,
    /// Of y.
    weights: *const real,
    /// Eigenvalues along x.
    values: *const real,
    first: i32,
    last: i32,
    columns: i32,
    pitch: i32,
}

/// Argument of a launch, which also selects the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) enum Argument {
    Product(Product),
    Elimination(Elimination),
    Rows(Sines),
    Columns(Sines),
}

/// A launch: its argument, blocks, threads of a block and its bytes of shared memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct BottomLaunch {
    pub argument: Argument,
    pub blocks: (u32, u32, u32),
    pub threads: u32,
    pub shared: u32,
}

/// Launches and arrays that solve the bottom level.
pub(super) struct BottomSolver {
    /// The level that is solved directly; there are none below it.
    pub level: usize,
    /// The launches in order.
    pub steps: Vec<BottomLaunch>,
    _tables: Buffer<u8>,
    _fields: Vec<Buffer<u8>>,
}

/// Columns of a block that eliminates and most rows: LINE of eliminate.cu a lane.
const COLUMNS: usize = 8;
const MOST_ROWS: usize = 9 * 32;

/// Values of a row of matrices of an axis: whole tiles.
fn padded(n: usize) -> usize {
    n.next_multiple_of(TILE[1])
}

/// Bytes of shared memory of a product that sums over `k`.
fn shared(k: usize, number: Number) -> usize {
    (TILE[0] * (k + 4) + TILE[1] * k).max(THREADS as usize / 32 * TILE[0] * TILE[1]) * number.bytes()
}

/// The first level not above `from` that can be solved directly within `limit` bytes of shared memory a block and with
/// axes of at most `nodes` nodes, where that is given.
pub(super) fn level(levels: &[Level], from: usize, number: Number, limit: u32, nodes: Option<usize>) -> usize {
    let sizes: &[usize] = if levels[0].grid.dimensions() == 3 { &SPACE } else { &PLANE };
    let fits = |size: &usize| shared(padded(*size), number) <= limit as usize;
    let most = nodes.or_else(|| sizes.iter().copied().find(fits)).unwrap_or(sizes[sizes.len() - 1]);
    let small = |level: &Level| {
        let sines = sines::fit(&level.grid, number, limit);
        level.grid.nodes().iter().all(|n| *n <= if sines { nodes.unwrap_or(usize::MAX) } else { most })
    };
    let last = levels.len() - 1;
    (from..last).find(|l| small(&levels[*l])).unwrap_or(last)
}

/// Matrices of an axis, rows padded with zeros: forward and backward, transposed for x, which stands on the right.
fn matrices(axis: &Axis, modes: &Modes, transposed: bool) -> [Vec<f64>; 2] {
    let (n, pitch) = (axis.nodes, padded(axis.nodes));
    [&modes.forward, &modes.backward].map(|matrix| {
        let mut out = vec![0.0; pitch * pitch];
        for (q, v) in matrix.iter().enumerate() {
            let (row, column) = if transposed { (q % n, q / n) } else { (q / n, q % n) };
            out[row * pitch + column] = *v;
        }
        out
    })
}

/// `values` in the format of the kernels.
fn table(pool: &Pool, number: Number, values: &[f64]) -> Result<Buffer<u8>> {
    let bytes = match number {
        Number::F32 => bytemuck::cast_slice::<f32, u8>(&values.iter().map(|v| *v as f32).collect::<Vec<_>>()).to_vec(),
        Number::F64 => bytemuck::cast_slice::<f64, u8>(values).to_vec(),
    };
    pool.buffer_from(&bytes, "poisson bottom: modes")
}

/// A field of the bottom level, of zeros.
fn field(pool: &Pool, number: Number, argument: &arguments::Level) -> Result<Buffer<u8>> {
    pool.alloc_zeros::<u8>(argument.values() * number.bytes(), "poisson bottom: field")
}

impl BottomSolver {
    /// Builds the solver of the bottom level where the modes are sines.
    fn of_sines(
        pool: &Pool,
        (level, grid): (usize, &Grid),
        argument: &arguments::Level,
        number: Number,
        (r, e): (u64, u64),
    ) -> Result<Self> {
        let (values, solution_omega) = sines::tables(grid);
        let (tables, between) = (table(pool, number, &values)?, field(pool, number, argument)?);
        let places = solution_omega.map(|at| tables.address() + (at * number.bytes()) as u64);
        let steps = sines::steps(grid, argument, number, [r, between.address(), e], places);
        Ok(Self { level, steps, _tables: tables, _fields: vec![between] })
    }

    /// Makes the tables of `grid`, the level of number `level`, and the launches that take `r` to `e`, within `limit` bytes of
    /// shared memory a block.
    pub(super) fn new(
        pool: &Pool,
        (level, grid): (usize, &Grid),
        argument: &arguments::Level,
        (number, limit): (Number, u32),
        (r, e): (u64, u64),
    ) -> Result<Self> {
        if sines::fit(grid, number, limit) {
            return Self::of_sines(pool, (level, grid), argument, number, (r, e));
        }
        let axes: Vec<usize> = (0..3).filter(|d| !grid.axes[*d].is_flat()).collect();
        let mut values: Vec<f64> = Vec::new();
        let mut put = |v: &[f64]| {
            values.extend_from_slice(v);
            // Whole pieces of 16 bytes.
            values.resize(values.len().next_multiple_of(4), 0.0);
            ((values.len() - v.len().next_multiple_of(4)) * number.bytes()) as u64
        };
        let (mut eigenvalues, mut tables) = ([0; 3], [[0; 2]; 3]);
        for (d, axis) in grid.axes.iter().enumerate() {
            let modes = Modes::new(axis);
            // Columns of the field beyond the last node hold zeros, which are divided as well.
            let mut ones = modes.values.clone();
            ones.resize(padded(axis.nodes), 1.0);
            eigenvalues[d] = put(&ones);
            if axes.contains(&d) {
                tables[d] = matrices(axis, &modes, d == 0).map(|m| put(&m));
            }
        }
        let buffer = table(pool, number, &values)?;
        let fields = vec![field(pool, number, argument)?, field(pool, number, argument)?];
        let start = buffer.address();
        let [x, y, z] = eigenvalues.map(|at| start + at);

        let (pitch, plane) = (argument.pitch as usize, argument.plane as usize);
        let [_, ny, nz] = grid.nodes();
        let passes = axes.len();
        let last = &grid.axes[1];
        let eliminates = axes == [0, 1] && !last.periodic() && !grid.singular() && last.nodes <= MOST_ROWS;
        let order = axes.iter().map(|d| (*d, 0)).chain(axes.iter().map(|d| (*d, 1))).filter(|(d, _)| !eliminates || *d == 0);
        let count = if eliminates { 2 } else { 2 * passes };
        let mut from = r;
        let mut steps = Vec::new();
        for (s, (d, back)) in order.enumerate() {
            if eliminates && s == 1 {
                let to = fields[1].address();
                let along = &argument.y;
                let elimination = Elimination {
                    r: from,
                    e: to,
                    weights: along.w,
                    values: x,
                    first: along.first,
                    last: along.last,
                    columns: grid.axes[0].nodes as i32,
                    pitch: pitch as i32,
                };
                let blocks = (grid.axes[0].nodes.div_ceil(COLUMNS) as u32, 1, 1);
                steps.push(BottomLaunch { argument: Argument::Elimination(elimination), blocks, threads: ELIMINATING, shared: 0 });
                from = to;
            }
            let to = if s + 1 == count { e } else { fields[s % 2].address() };
            let (matrix, n) = (start + tables[d][back], grid.axes[d].nodes);
            let k = grid.axes[d].unknowns().end.next_multiple_of(TILE[1]);
            let scale = if eliminates || s + 1 != passes {
                0
            } else if d == 2 {
                2
            } else {
                1
            };
            let common = Product {
                a: matrix,
                b: from,
                c: to,
                batch_a: 0,
                batch_b: 0,
                batch_c: 0,
                m: n as i32,
                k: k as i32,
                rows_b: n as i32,
                pitch_a: padded(n) as i32,
                pitch_b: pitch as i32,
                modes_first: 1,
                scale,
                pitch: pitch as i32,
                x,
                y,
                z,
            };
            // Columns, rows and batches of the result; nodes beyond the unknowns stay zero.
            let [columns, rows] = [0, 1].map(|d| grid.axes[d].unknowns().end);
            let (product, extent) = match d {
                0 => {
                    let (m, pitch) = ((ny * nz) as i32, pitch as i32);
                    (
                        Product { a: from, b: matrix, m, rows_b: k as i32, pitch_a: pitch, modes_first: 0, ..common },
                        [columns, if nz == 1 { rows } else { ny * nz }, 1],
                    )
                }
                1 => (Product { batch_b: plane as i64, batch_c: plane as i64, ..common }, [columns, rows, nz]),
                _ => (Product { pitch_b: plane as i32, ..common }, [plane, nz, 1]),
            };
            let blocks = (extent[0].div_ceil(TILE[1]) as u32, extent[1].div_ceil(TILE[0]) as u32, extent[2] as u32);
            steps.push(BottomLaunch { argument: Argument::Product(product), blocks, threads: THREADS, shared: shared(k, number) as u32 });
            from = to;
        }
        Ok(Self { level, steps, _tables: buffer, _fields: fields })
    }

    /// Floating-point operations a node.
    pub(super) fn flops(&self) -> f64 {
        let of = |step: &BottomLaunch| match step.argument {
            Argument::Product(product) => 2.0 * f64::from(product.k),
            Argument::Elimination(_) => 5.0,
            Argument::Rows(sines) => sines.flops(),
            Argument::Columns(sines) => 2.0 * sines.flops(),
        };
        self.steps.iter().map(of).sum()
    }
}

impl Data {
    /// `A e = r` on the bottom level.
    pub(super) fn solve_bottom(&self) -> Result<()> {
        self.bottom.steps.iter().try_for_each(|step| self.solve_step(step.argument, step))
    }

    /// `A u = r` on the bottom level, `u` being zero on its unknowns, where its solution has the format of corrections and its last
    /// step leaves held nodes as they are; whether that is so.
    pub(super) fn solve_bottom_at_once(&self) -> Result<bool> {
        let Some((last, before)) = self.bottom.steps.split_last() else { return Ok(false) };
        match last.argument {
            Argument::Rows(sines) if self.inner == self.outer => {
                before.iter().try_for_each(|step| self.solve_step(step.argument, step))?;
                let u = self.levels[self.bottom.level].u();
                self.solve_step(Argument::Rows(sines.to(u)), last)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn solve_step(&self, argument: Argument, step: &BottomLaunch) -> Result<()> {
        let kernel = match argument {
            Argument::Product(_) => &self.kernels.product,
            Argument::Elimination(_) => &self.kernels.eliminate,
            Argument::Rows(_) => &self.kernels.sines_rows,
            Argument::Columns(_) => &self.kernels.sines_columns,
        };
        let launch = self.overlapping(kernel.launch(step.blocks, step.threads)).shared(step.shared);
        // SAFETY: the argument of the kernel, made for this level's fields; what it keeps fits the shared memory asked for.
        unsafe {
            match argument {
                Argument::Product(product) => launch.arg(product).run(),
                Argument::Elimination(elimination) => launch.arg(elimination).run(),
                Argument::Rows(sines) | Argument::Columns(sines) => launch.arg(sines).run(),
            }
        }
    }
}
