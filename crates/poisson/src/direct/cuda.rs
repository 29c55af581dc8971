//! The direct solver on a GPU: the algorithm of `cpu.rs` as kernels (`transform.cu`, `lines.cu`) around cuFFT.
//!
//! All lines of an axis are transformed together. Rows of the last axis are packed in pairs as complex values and stay so:
//! a system along the last axis reads the two parts one after the other. In space the modes of x are transposed so that the
//! lines of the middle axis lie together. The systems are cut into segments of a few dozen rows, each in the registers of a
//! thread; what the segments hand on is composed by a scan, so that a system is read once and written once.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use num_complex::Complex;
use zellige_engine::cuda::{Buffer, Cuda, Graph, Kernel, Pool, Recipe};
use zellige_engine::error::Result;
use zellige_engine::ops::fft::{CudaPlan, CudaPlans, CudaReal, Direction, Shape};

use super::transform::{Kind, Scalar, angles, split};
use crate::grid::{Axis, Bc, Grid};

/// Threads of a block of `lines`: modes times segments.
const THREADS: usize = 256;
/// Rows that a thread keeps in registers with ease.
const LENGTH: usize = 34;

/// `f32` and `f64` with their names in C++.
pub(super) trait Real: Scalar + CudaReal {
    const NAME: &'static str;
}
impl Real for f32 {
    const NAME: &'static str = "float";
}
impl Real for f64 {
    const NAME: &'static str = "double";
}

const NAMES: [&str; 8] = ["fold", "unfold", "extend", "shrink", "lines", "centre", "pack", "turn"];

struct Kernels {
    fold: Kernel,
    unfold: Kernel,
    extend: Kernel,
    shrink: Kernel,
    lines: Kernel,
    centre: Kernel,
    pack: Kernel,
    turn: Kernel,
}

/// How the rows of the last axis are cut: segments, and rows of each.
fn cut(rows: usize) -> (usize, usize) {
    let segments = rows.div_ceil(LENGTH).next_power_of_two().min(THREADS);
    (segments, rows.div_ceil(segments).next_multiple_of(2))
}

/// Rows of the last axis that are eliminated: all unknowns but node 0 of a periodic one.
fn eliminated(last: &Axis) -> usize {
    last.unknowns().len() - usize::from(last.periodic())
}

/// What is compiled for a last axis: also by tests, for architectures that are not at hand.
pub(super) fn recipe(real: &str, last: &Axis) -> Recipe {
    let rows = eliminated(last);
    let (segments, length) = cut(rows);
    let flag = |b: bool| usize::from(b).to_string();
    let defines = [
        ("REAL", real.to_owned()),
        ("ROWS", rows.to_string()),
        ("LENGTH", length.to_string()),
        ("SEGMENTS", segments.to_string()),
        ("MODES", (THREADS / segments).to_string()),
        ("PERIODIC", flag(last.periodic())),
        ("LO_NEUMANN", flag(last.lo == Bc::Neumann)),
        ("HI_NEUMANN", flag(last.hi == Bc::Neumann)),
    ];
    let defines = defines.map(|(name, value)| (name.to_owned(), value));
    Recipe::new("poisson-direct", &[include_str!("transform.cu"), include_str!("lines.cu")], &defines, &NAMES)
}

/// The box of unknowns in the grid, as the kernels see it.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Window {
    nodes: [u32; 3],
    first: [u32; 3],
    unknowns: [u32; 3],
}

/// Some modes of all lines of an axis, and the DFT that makes them.
struct Part<T> {
    /// First mode.
    at: usize,
    /// Modes of a line.
    width: usize,
    modes: Buffer<Complex<T>>,
    fft: Arc<CudaPlan>,
    how: How<T>,
}

enum How<T> {
    /// A quarter wave, transformed where it lies.
    Quarter { rotation: Buffer<Complex<T>> },
    /// The rest: transformed in an extension.
    Rest { intervals: usize, extended: Buffer<Complex<T>> },
}

/// All lines of one axis, their modes and the way there and back.
struct Lines<T> {
    kind: i32,
    /// Nodes of a line.
    len: usize,
    count: usize,
    norm: f64,
    nodes: Buffer<Complex<T>>,
    parts: Vec<Part<T>>,
}

/// A planned problem in the number type `T`.
pub(super) struct Solver<T> {
    cuda: Cuda,
    pool: Pool,
    workspace: u64,
    kernels: Kernels,
    window: Window,
    x: Lines<T>,
    middle: Option<Lines<T>>,
    /// `delta` of the modes of x and of the middle axis.
    deltas: [Buffer<f64>; 2],
    flat: Buffer<f64>,
    scale: f64,
    /// Singular problems: place of the constant mode among the outer and the inner modes of `lines`.
    zero: Option<[usize; 2]>,
    /// Modes of a block of `lines`.
    modes: usize,
    means: Buffer<f64>,
    u: Buffer<T>,
    f: Buffer<T>,
    graph: Option<Graph>,
}

impl<T: Real> Lines<T> {
    fn new(axis: &Axis, count: usize, pool: &Pool, plans: &mut CudaPlans) -> Result<Self> {
        let (kind, n, len) = (Kind::of(axis), axis.intervals(), axis.unknowns().len());
        let (quarters, rest) = split(kind, n);
        let buffer = |values: usize| pool.alloc_zeros::<Complex<T>>(values * count, "direct solver: lines of an axis");
        let (mut parts, mut at) = (Vec::new(), 0);
        for m in quarters {
            let turn = |d: usize| Complex::from_polar(0.5, -std::f64::consts::PI * d as f64 / (2 * m) as f64);
            let rotation: Vec<_> = (0..=m / 2).map(turn).map(|z| Complex::new(T::of(z.re), T::of(z.im))).collect();
            let how = How::Quarter { rotation: pool.buffer_from(&rotation, "direct solver: rotations")? };
            parts.push(Part { at, width: m, modes: buffer(m)?, fft: plans.get::<T>(Shape::lines(m, count))?, how });
            at += m;
        }
        let points = if kind == Kind::Fourier { n } else { 2 * rest };
        if len > at {
            let how = How::Rest { intervals: rest, extended: buffer(points)? };
            parts.push(Part { at, width: len - at, modes: buffer(len - at)?, fft: plans.get::<T>(Shape::lines(points, count))?, how });
        }
        let kind = match kind {
            Kind::Sine => 0,
            Kind::Cosine => 1,
            Kind::Quarter { mirrored } => 2 + i32::from(mirrored),
            Kind::Fourier | Kind::Flat => 4,
        };
        Ok(Self { kind, len, count, norm: 2.0 / n as f64, nodes: buffer(len)?, parts })
    }

    /// The modes of all lines times `scale`; the nodes are used up.
    fn forward(&mut self, kernels: &Kernels, scale: f64) -> Result<()> {
        let scale = T::of(scale * self.norm);
        let (len, count, kind) = (self.len as u32, self.count as u32, self.kind);
        for part in &mut self.parts {
            let m = part.width as u32;
            match &mut part.how {
                How::Quarter { rotation } => {
                    let launch = kernels.fold.launch(blocks(part.width / 2 + 1, self.count), 256);
                    let launch = launch.arg(&mut self.nodes).arg(&mut part.modes).arg(&*rotation).arg(m).arg(len).arg(count).arg(kind);
                    // SAFETY: `count` lines of `len` nodes and of `m` modes; the rotations cover 0 ..= m / 2.
                    unsafe { launch.plain(scale).run()? };
                    part.fft.run(&mut part.modes, Direction::Forward)?;
                }
                How::Rest { intervals, extended } => {
                    let (n, blocks) = (*intervals as u32, blocks(*intervals + 1, self.count));
                    let launch = kernels.extend.launch(blocks, 256).arg(&self.nodes).arg(&mut *extended);
                    // SAFETY: the nodes left of each line, n intervals, fit into its extension.
                    unsafe { launch.arg(n).arg(len).arg(count).arg(kind).arg(0_i32).plain(T::ONE).run()? };
                    part.fft.run(extended, Direction::Forward)?;
                    let launch = kernels.shrink.launch(blocks, 256).arg(&*extended).arg(&mut part.modes);
                    // SAFETY: `m` modes of each line are written.
                    unsafe { launch.arg(n).arg(m).arg(count).arg(kind).arg(0_i32).plain(scale * T::HALF).plain(T::HALF).run()? };
                }
            }
        }
        Ok(())
    }

    /// The nodes of all lines; the modes are used up.
    fn backward(&mut self, kernels: &Kernels) -> Result<()> {
        let (len, count, kind) = (self.len as u32, self.count as u32, self.kind);
        for part in self.parts.iter_mut().rev() {
            let m = part.width as u32;
            match &mut part.how {
                How::Quarter { rotation } => {
                    part.fft.run(&mut part.modes, Direction::Forward)?;
                    let launch = kernels.unfold.launch(blocks(part.width / 2 + 1, self.count), 256);
                    let launch = launch.arg(&mut self.nodes).arg(&part.modes).arg(&*rotation).arg(m).arg(len).arg(count).arg(kind);
                    // SAFETY: as for `fold`.
                    unsafe { launch.run()? };
                }
                How::Rest { intervals, extended } => {
                    let (n, blocks) = (*intervals as u32, blocks(*intervals + 1, self.count));
                    let launch = kernels.extend.launch(blocks, 256).arg(&part.modes).arg(&mut *extended);
                    // SAFETY: as in `forward`, modes in the place of nodes.
                    unsafe { launch.arg(n).arg(m).arg(count).arg(kind).arg(1_i32).plain(T::TWO).run()? };
                    part.fft.run(extended, Direction::Forward)?;
                    let launch = kernels.shrink.launch(blocks, 256).arg(&*extended).arg(&mut self.nodes);
                    // SAFETY: as in `forward`, nodes in the place of modes.
                    unsafe { launch.arg(n).arg(len).arg(count).arg(kind).arg(1_i32).plain(T::HALF).plain(T::ONE).run()? };
                }
            }
        }
        Ok(())
    }
}

/// Blocks of 256 threads for `places` of `lines` lines.
fn blocks(places: usize, lines: usize) -> u32 {
    (places * lines).div_ceil(256) as u32
}

impl<T: Real> Solver<T> {
    pub(super) fn new(grid: &Grid, cuda: &Cuda) -> Result<Self> {
        let axes = super::ordered(grid);
        let program = recipe(T::NAME, axes[2]).build(cuda)?;
        let kernel = |name| program.kernel(name);
        let kernels = Kernels {
            fold: kernel("fold")?,
            unfold: kernel("unfold")?,
            extend: kernel("extend")?,
            shrink: kernel("shrink")?,
            lines: kernel("lines")?,
            centre: kernel("centre")?,
            pack: kernel("pack")?,
            turn: kernel("turn")?,
        };
        let unknowns = axes.map(Axis::unknowns);
        let window = Window {
            nodes: axes.map(|a| a.nodes as u32),
            first: unknowns.clone().map(|u| u.start as u32),
            unknowns: unknowns.clone().map(|u| u.len() as u32),
        };
        let (pool, mut plans) = (cuda.pool(), CudaPlans::new(cuda)?);
        let pairs = unknowns[2].len().div_ceil(2);
        let x = Lines::new(axes[0], pairs * unknowns[1].len(), &pool, &mut plans)?;
        let middle = if axes[1].is_flat() { None } else { Some(Lines::new(axes[1], pairs * x.len, &pool, &mut plans)?) };
        let parts = x.parts.iter().chain(middle.iter().flat_map(|m| &m.parts));
        let workspace = parts.map(|p| p.fft.workspace()).sum();
        let [dx, dm] = super::deltas(axes);
        let table = |v: &[f64]| pool.buffer_from(v, "direct solver: eigenvalues");
        let constant = |d: usize| angles(Kind::of(axes[d]), axes[d].intervals()).iter().position(|p| *p == 0.0).unwrap_or(0);
        Ok(Self {
            workspace,
            kernels,
            window,
            middle,
            x,
            deltas: [table(&dx)?, table(&dm)?],
            flat: table(&[0.0])?,
            scale: -axes[2].h * axes[2].h,
            zero: grid.singular().then(|| if axes[1].is_flat() { [0, constant(0)] } else { [constant(0), constant(1)] }),
            modes: THREADS / cut(eliminated(axes[2])).0,
            means: pool.alloc_zeros(2, "direct solver: means")?,
            u: pool.alloc_zeros(grid.len(), "direct solver: solution")?,
            f: pool.alloc_zeros(grid.len(), "direct solver: right-hand side")?,
            graph: None,
            cuda: cuda.clone(),
            pool,
        })
    }

    pub(super) fn memory(&self) -> u64 {
        self.pool.held() + self.workspace
    }

    pub(super) fn load(&mut self, u: &[f64], f: &[f64], grid: &Grid) -> Result<()> {
        let mut folded: Vec<T> = f.iter().map(|f| T::of(*f)).collect();
        super::fold_boundary(grid, u, |node, value| folded[node] -= T::of(value));
        self.cuda.upload(&mut self.f, &folded)?;
        u.iter().zip(&mut folded).for_each(|(u, to)| *to = T::of(*u));
        self.cuda.upload(&mut self.u, &folded)
    }

    pub(super) fn solution(&self) -> Result<Vec<f64>> {
        Ok(self.cuda.download(&self.u)?.into_iter().map(T::to_f64).collect())
    }

    /// Solves what was loaded; the mean that was taken off the right-hand side of a singular problem.
    pub(super) fn solve(&mut self) -> Result<f64> {
        let mut graph = match self.graph.take() {
            Some(graph) => graph,
            None => self.cuda.clone().capture(|| self.enqueue())?,
        };
        // SAFETY: buffers, plans and kernels of the graph are those of `self`.
        unsafe { graph.launch()? };
        self.graph = Some(graph);
        if self.zero.is_none() {
            self.cuda.synchronize()?;
            return Ok(0.0);
        }
        Ok(self.cuda.download(&self.means)?[0] / self.scale)
    }

    fn enqueue(&mut self) -> Result<()> {
        let pack = |solver: &mut Self, inverse: i32| {
            let grid = if inverse == 0 { &mut solver.f } else { &mut solver.u };
            let launch = solver.kernels.pack.launch(blocks(solver.x.len, solver.x.count), 256).arg(grid).arg(&mut solver.x.nodes);
            // SAFETY: the window lies in the grid; the lines hold the pairs of rows of its unknowns.
            unsafe { launch.plain(solver.window).arg(inverse).run() }
        };
        pack(self, 0)?;
        self.x.forward(&self.kernels, self.scale)?;
        if self.middle.is_some() {
            self.turn(false)?;
        }
        if let Some(middle) = &mut self.middle {
            middle.forward(&self.kernels, 1.0)?;
        }
        self.lines()?;
        if let Some(middle) = &mut self.middle {
            middle.backward(&self.kernels)?;
            self.turn(true)?;
        }
        self.x.backward(&self.kernels)?;
        pack(self, 1)
    }

    /// Transposes between the modes of x and the lines of the middle axis.
    fn turn(&mut self, back: bool) -> Result<()> {
        let Some(middle) = &mut self.middle else { return Ok(()) };
        let (rows, pairs) = (self.window.unknowns[1], self.window.unknowns[2].div_ceil(2));
        let plane = self.x.len as u64 * u64::from(rows);
        for part in &mut self.x.parts {
            let width = part.width as u32;
            let (own, there) = (u64::from(rows) * u64::from(width), middle.nodes.from(part.at * rows as usize));
            let tiles = |rows: u32, columns: u32| (columns.div_ceil(32), rows.div_ceil(32), pairs);
            // SAFETY: a plane of the part is rows x width, its transpose lies in the plane of lines from its first mode on.
            unsafe {
                if back {
                    let launch = self.kernels.turn.launch(tiles(width, rows), (32, 8)).arg(there).arg(plane);
                    launch.arg(&mut part.modes).arg(own).arg(width).arg(rows).run()?;
                } else {
                    let launch = self.kernels.turn.launch(tiles(rows, width), (32, 8)).arg(&part.modes).arg(own);
                    launch.arg(there).arg(plane).arg(rows).arg(width).run()?;
                }
            }
        }
        Ok(())
    }

    /// The systems of all modes.
    fn lines(&mut self) -> Result<()> {
        let (last, outer_count, outer, inner) = match &mut self.middle {
            Some(middle) => (middle, self.x.len, &self.deltas[0], &self.deltas[1]),
            None => (&mut self.x, 1, &self.flat, &self.deltas[0]),
        };
        for part in &mut last.parts {
            let places = part.width * outer_count;
            let zero =
                self.zero.and_then(|[o, k]| (part.at..part.at + part.width).contains(&k).then(|| (o * part.width + k - part.at) as u32));
            let centre = |modes: &mut Buffer<Complex<T>>, mean: usize| match zero {
                // SAFETY: one place of the part; the means hold two values.
                Some(place) => unsafe {
                    self.kernels.centre.launch(1, 256).arg(modes).arg(place).arg(places as u32).arg(self.means.from(mean)).run()
                },
                None => Ok(()),
            };
            centre(&mut part.modes, 0)?;
            let launch = self.kernels.lines.launch(places.div_ceil(self.modes) as u32, THREADS as u32);
            let launch = launch.arg(&mut part.modes).arg(outer).arg(inner.from(part.at)).arg(part.width as u32).arg(places as u32);
            // SAFETY: the part holds all row pairs of its places; the tables cover its modes.
            unsafe { launch.run()? };
            centre(&mut part.modes, 1)?;
        }
        Ok(())
    }
}
