//! The direct solver on a GPU: the algorithm of `cpu.rs` as kernels (`transform.cu`, `lines.cu`) around cuFFT.
//!
//! All lines of an axis of all systems of a batch are transformed together. Rows of the last axis are packed in pairs as
//! complex values and stay so: a system along the last axis reads the two parts one after the other. In space the modes of x
//! are transposed so that the lines of the middle axis lie together. The systems are cut into segments of some rows, each
//! in the registers of a thread; what the segments hand on is composed by a scan, so that a system is read once and
//! written once. A batch in the plane is a middle axis that nothing is done along.

use bytemuck::Zeroable;
use num_complex::Complex;
use zellige_device_macro::device_source;
use zellige_engine::cuda::{Buffer, Coming, Cuda, Files, Graph, Kernel, Mapped, Pool, Properties, Recipe};
use zellige_engine::cuda_files;
use zellige_engine::error::Result;
use zellige_engine::large::zeros;
use zellige_engine::ops::fft::{CudaPlans, CudaReal};
use zellige_engine::ops::plane::{PlaneOnGpu, PlaneReducer};
use zellige_engine::parallel::{chunks, chunks_mut, each};
use zellige_engine::record::Centring;

use self::arguments::{Field, LEVELS, LineLayout, Modes};
use self::axis::Lines;
use super::transform::{Scalar, TransformType, angles};
use crate::grid::{Axis, Bc, Grid};
use crate::physics::PHYSICS;
use crate::stages::Norms;

mod arguments;
pub(super) mod axis;
mod borrowed;

/// Largest number of threads of a block of `lines`: modes times segments.
const THREADS: usize = 512;
/// Values that a thread of the host rounds in a row.
const PIECE: usize = 1 << 16;
/// Threads that hide the latency of short lines.
const FEW: usize = 128;
/// Values up to which a solve is rehearsed at set-up: 0.2 ms at most.
const REHEARSED: usize = 1 << 22;
/// Rows that a thread keeps in registers with ease.
const LENGTH: usize = 18;

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

/// Segments that the rows of the last axis are cut into, rows of each, and modes of a block.
fn cut(rows: usize) -> [usize; 3] {
    let segments = rows.div_ceil(LENGTH).next_power_of_two().min(THREADS);
    // Four modes lie in the 64 or 32 bytes that a row pair is fetched by; a block is a warp at least.
    let modes = (THREADS / segments).min(4).max(FEW / segments).clamp(1, 32);
    [segments, rows.div_ceil(segments).next_multiple_of(2), modes]
}

/// Rows of the last axis that are eliminated: all unknowns but node 0 of a periodic one.
fn eliminated(last: &Axis) -> usize {
    last.unknowns().len() - usize::from(last.periodic())
}

/// Columns of x in a tile of `residual`, and its rows along the last axis.
fn tile(axes: [&Axis; 3]) -> [usize; 2] {
    [if axes[1].is_flat() { 256 } else { 32 }, if axes[2].nodes > 2000 { 32 } else { 16 }]
}

/// Bytes of shared memory for the multipliers of a block of `lines`, beside its 1 KiB of sums; 0 where `shared` is too small.
fn waiting<T>(last: &Axis, shared: u32) -> u32 {
    let bytes = cut(eliminated(last)).iter().product::<usize>() * size_of::<T>();
    if bytes + 1024 <= shared as usize { bytes as u32 } else { 0 }
}

/// Source files.
const FILES: &Files = cuda_files!["extend.cu", "lines.cu", "residual.cu", "segments.cu", "split.cu", "transform.cu"; "physics.cuh" => PHYSICS,
    "transform.cuh" => &device_source![arguments::Split, arguments::Transform],
    "line_layout.cuh" => &device_source![arguments::LineLayout],
    "modes.cuh" => &device_source![arguments::Modes],
    "field.cuh" => &device_source![arguments::Field],
];

/// Sources and constants of the program for a grid on such a GPU.
pub(super) fn recipe_on<T: Real>(grid: &Grid, gpu: &Properties) -> Recipe {
    let (axes, shared) = (super::ordered(grid), gpu.shared_per_block);
    recipe(T::NAME, axes, axes[..2].iter().all(|a| axis::fits::<T>(a, shared)), waiting::<T>(axes[2], shared) > 0)
}

/// Sources and constants of the program for a grid: used also by tests, for architectures that are not at hand. `fits`: lines to be
/// transformed lie in shared memory; `waits`: so do the multipliers of systems.
pub(super) fn recipe(real: &str, axes: [&Axis; 3], fits: bool, waits: bool) -> Recipe {
    let last = axes[2];
    let rows = eliminated(last);
    let [segments, length, modes] = cut(rows);
    let [columns, steps] = tile(axes);
    let flag = |b: bool| usize::from(b).to_string();
    let defines = [
        ("REAL", real.to_owned()),
        ("FITS", flag(fits)),
        ("WAITING", flag(waits)),
        ("MIDDLE", flag(!axes[1].is_flat())),
        ("TILE_X", columns.to_string()),
        ("ROW_STEPS", steps.to_string()),
        ("ROWS", rows.to_string()),
        ("LENGTH", length.to_string()),
        ("SEGMENTS", segments.to_string()),
        ("MODES", modes.to_string()),
        ("PERIODIC", flag(last.periodic())),
        ("LO_NEUMANN", flag(last.lo == Bc::Neumann)),
        ("HI_NEUMANN", flag(last.hi == Bc::Neumann)),
    ];
    let defines = defines.map(|(name, value)| (name.to_owned(), value));
    let names = [&axis::Kernels::NAMES[..], &["transpose", "lines", "centre", "residual", "finish", "from_double", "to_double"]].concat();
    Recipe::of_files("poisson-direct", FILES, &["transform.cu", "extend.cu", "lines.cu", "residual.cu"], &defines, &names)
}

/// Additional task of [`Solver::residual`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResidualTask {
    Norms,
    Relax,
    NormsAndCopy,
}

struct Kernels {
    axis: axis::Kernels,
    transpose: Kernel,
    lines: Kernel,
    centre: Kernel,
    residual: Kernel,
    finish: Kernel,
    from_double: Kernel,
    to_double: Kernel,
}

/// Bytes of a [`Solver`] of one right-hand side in numbers of `bytes` bytes, but for the workspace of its DFTs and small tables.
pub(super) fn memory(grid: &Grid, shared: u32, bytes: u64) -> u64 {
    let axes = super::ordered(grid);
    let unknowns = axes.map(|a| a.unknowns().len() as u64);
    let fits = axes[..2].iter().all(|a| axis::line(a) as u64 * 2 * bytes <= u64::from(shared));
    let held = |d: usize| (axis::held(axes[d]) + if fits { 0 } else { axis::line(axes[d]) }) as u64;
    // Two lines of the last axis are one of complex numbers.
    let pairs = unknowns[2].div_ceil(2);
    let x = pairs * unknowns[1] * held(0);
    let middle = if axes[1].is_flat() { 0 } else { pairs * unknowns[0] * (held(1) + unknowns[1]) };
    // Solution, right-hand side and the solution after a sweep.
    (3 * grid.len() as u64 + 2 * (x + middle)) * bytes
}

/// A planned problem in the number type `T`, for one or more right-hand sides.
pub(super) struct Solver<T> {
    cuda: Cuda,
    pool: Pool,
    kernels: Kernels,
    systems: usize,
    nodes: usize,
    layout: LineLayout,
    field: Field,
    x: Lines<T>,
    /// Lines of the middle axis, and the modes of x in them.
    middle: Option<(Lines<T>, Buffer<Complex<T>>)>,
    /// `delta` of the modes of x and of the middle axis.
    deltas: [Buffer<f64>; 2],
    flat: Buffer<f64>,
    scale: f64,
    /// Singular problems: index of the constant mode among the outer and the inner modes of `lines`.
    zero: Option<[usize; 2]>,
    /// Modes and threads of a block of `lines`.
    block: [u32; 2],
    /// Bytes of shared memory for the multipliers of a block.
    waiting: u32,
    means: Buffer<f64>,
    u: Buffer<T>,
    f: Buffer<T>,
    /// Result of a sweep.
    relaxed: Buffer<T>,
    active: Buffer<u8>,
    partial: Buffer<f64>,
    norms: Mapped<f64>,
    /// Launches of a solve: none while it is set up.
    solve: Option<Graph>,
    polish: Option<Graph>,
    /// None before somebody looks.
    reducer: Option<PlaneReducer>,
}

impl<T: Real> Solver<T> {
    pub(super) fn new(grid: &Grid, systems: usize, cuda: &Cuda) -> Result<Self> {
        let axes = super::ordered(grid);
        let shared = cuda.properties().shared_per_block;
        let waiting = waiting::<T>(axes[2], shared);
        let fits = axes[..2].iter().all(|a| axis::fits::<T>(a, shared));
        let program = recipe_on::<T>(grid, cuda.properties()).build(cuda)?;
        let kernel = |name| program.kernel(name);
        let kernels = Kernels {
            axis: axis::Kernels::new(&program)?,
            transpose: kernel("transpose")?,
            lines: kernel("lines")?,
            centre: kernel("centre")?,
            residual: kernel("residual")?,
            finish: kernel("finish")?,
            from_double: kernel("from_double")?,
            to_double: kernel("to_double")?,
        };
        let unknowns = axes.map(|a| a.unknowns().len());
        let (pool, mut plans) = (cuda.pool(), CudaPlans::new(cuda)?);
        let pairs = unknowns[2].div_ceil(2);
        let x = Lines::new(axes[0], pairs * systems * unknowns[1], fits, &pool, &mut plans)?;
        let middle = if axes[1].is_flat() {
            None
        } else {
            let count = pairs * systems * x.len;
            let lines = pool.alloc_zeros(count * unknowns[1], "direct solver: lines of the middle axis")?;
            Some((Lines::new(axes[1], count, fits, &pool, &mut plans)?, lines))
        };
        let field = field(grid, axes);
        let layout = LineLayout {
            grid: 0,
            lines: 0,
            first: field.first,
            system: field.system,
            last: field.last,
            middle: field.middle as u32,
            rows: unknowns[1] as u32,
            middles: (systems * unknowns[1]) as u32,
            end: unknowns[2] as u32,
        };
        let [dx, dm] = super::deltas(axes, axis::SMALL);
        let table = |v: &[f64]| pool.buffer_from(v, "direct solver: eigenvalues");
        let constant =
            |d: usize| angles(TransformType::of(axes[d]), axes[d].intervals(), axis::SMALL).iter().position(|p| *p == 0.0).unwrap_or(0);
        let [segments, _, modes] = cut(eliminated(axes[2]));
        let blocks = field.tiles.iter().product::<u32>() as usize;
        let values = grid.len() * systems;
        let mut solver = Self {
            kernels,
            systems,
            nodes: grid.len(),
            layout,
            field,
            middle,
            x,
            deltas: [table(&dx)?, table(&dm)?],
            flat: table(&[0.0])?,
            scale: -axes[2].h * axes[2].h,
            zero: grid.singular().then(|| if axes[1].is_flat() { [0, constant(0)] } else { [constant(0), constant(1)] }),
            block: [modes as u32, (modes * segments) as u32],
            waiting,
            means: pool.alloc_zeros(2 * systems, "direct solver: means")?,
            u: pool.alloc_zeros(values, "direct solver: solution")?,
            f: pool.alloc_zeros(values, "direct solver: right-hand side")?,
            relaxed: pool.alloc_zeros(values, "direct solver: solution after a sweep")?,
            active: pool.buffer_from(&vec![1; systems], "direct solver: systems at work")?,
            partial: pool.alloc_zeros(3 * blocks * systems, "direct solver: sums")?,
            norms: cuda.mapped(3 * systems)?,
            solve: None,
            polish: None,
            reducer: None,
            cuda: cuda.clone(),
            pool,
        };
        // At set-up, since it loads kernels, cuFFT's too: a first solve took twice as long as the next.
        let mut graph = cuda.capture(|| solver.enqueue())?;
        graph.load()?;
        solver.solve = Some(graph);
        if values <= REHEARSED {
            // Of zeros. First launches take the host several times as long as later ones, as long as a small solve takes.
            solver.solve()?;
            solver.measure()?;
        }
        Ok(solver)
    }

    pub(super) fn memory(&self) -> u64 {
        self.pool.allocated() + self.x.workspace() + self.middle.as_ref().map_or(0, |(m, _)| m.workspace())
    }

    pub(super) fn cuda(&self) -> &Cuda {
        &self.cuda
    }

    pub(super) fn load(&mut self, system: usize, u: &[f64], f: &[f64], grid: &Grid) -> Result<()> {
        let mut folded: Vec<T> = zeros(f.len());
        let rounded = |from: &[f64], to: &mut [T]| {
            let line = |_, (from, to): (&[f64], &mut [T])| from.iter().zip(to).for_each(|(from, to)| *to = T::of(*from));
            each((chunks(from, PIECE), chunks_mut(to, PIECE)), line);
        };
        rounded(f, &mut folded);
        super::fold_boundary(grid, u, &(0..grid.len()), |node, value| folded[node] -= T::of(value));
        let at = system * self.nodes;
        self.cuda.upload_at(&mut self.f, at, &folded)?;
        rounded(u, &mut folded);
        self.cuda.upload_at(&mut self.u, at, &folded)
    }

    pub(super) fn solution(&self, system: usize) -> Result<Vec<f64>> {
        let own = system * self.nodes..(system + 1) * self.nodes;
        let (found, mut solution) = (self.cuda.download_range(&self.u, own)?, zeros(self.nodes));
        each((chunks(&found, PIECE), chunks_mut(&mut solution, PIECE)), |_, (from, to): (&[T], &mut [f64])| {
            from.iter().zip(to).for_each(|(from, to)| *to = from.to_f64());
        });
        Ok(solution)
    }

    /// Pixels of the solution, as [`crate::stages::Stages::picture`] gives them.
    pub(super) fn picture(&mut self, len: &[usize], double_in_record: bool) -> Result<Vec<Coming<f32>>> {
        let strides: Vec<usize> = (0..len.len()).map(|axis| len[..axis].iter().product()).collect();
        let mut plane = PlaneOnGpu::new(&self.u, size_of::<T>() == size_of::<f64>(), [len[0], len[1]], Centring::Node);
        let reducer = PlaneReducer::of(&mut self.reducer, &self.cuda, &self.pool)?;
        plane.double_in_record = double_in_record;
        reducer.planes(&plane, len, &strides)
    }

    /// The means that were taken off the right-hand sides of a singular problem. Waits.
    pub(super) fn removed(&self) -> Result<Vec<f64>> {
        if self.zero.is_none() {
            return Ok(vec![0.0; self.systems]);
        }
        Ok(self.cuda.download_range(&self.means, 0..self.systems)?.into_iter().map(|mean| mean / self.scale).collect())
    }

    /// Enqueues the solution of the loaded problem.
    pub(super) fn solve(&mut self) -> Result<()> {
        let Some(graph) = &mut self.solve else { unreachable!("recorded at set-up") };
        // SAFETY: buffers, plans and kernels of the graph are those of `self`.
        unsafe { graph.launch() }
    }

    /// Puts a sweep of the systems that are `active` on the stream, `omega` over the diagonal, with the norms after it.
    pub(super) fn polish(&mut self, active: &[bool], omega: f64) -> Result<()> {
        self.activate(active)?;
        let mut graph = match self.polish.take() {
            Some(graph) => graph,
            None => self.cuda.clone().capture(|| {
                self.residual(ResidualTask::Relax, omega)?;
                self.residual(ResidualTask::NormsAndCopy, 0.0)
            })?,
        };
        // SAFETY: as in `solve`.
        unsafe { graph.launch()? };
        self.polish = Some(graph);
        Ok(())
    }

    /// Puts the norms of all systems on the stream.
    pub(super) fn measure(&mut self) -> Result<()> {
        self.activate(&vec![true; self.systems])?;
        self.residual(ResidualTask::Norms, 0.0)
    }

    /// The norms that were measured last. Waits.
    pub(super) fn norms(&self) -> Result<Vec<Norms>> {
        self.cuda.synchronize()?;
        let at = |i: usize| self.norms.get(i);
        Ok((0..self.systems).map(|s| Norms { l2: at(3 * s), max: at(3 * s + 1), u_l2: at(3 * s + 2) }).collect())
    }

    fn activate(&mut self, active: &[bool]) -> Result<()> {
        if self.systems == 1 {
            return Ok(()); // a system alone is always at work
        }
        let flags: Vec<u8> = active.iter().map(|a| u8::from(*a)).collect();
        self.cuda.upload(&mut self.active, &flags)
    }

    fn residual(&mut self, what: ResidualTask, omega: f64) -> Result<()> {
        let blocks: u32 = self.field.tiles.iter().product();
        let (from, to) = match what {
            ResidualTask::NormsAndCopy => (&self.relaxed, &mut self.u),
            ResidualTask::Norms | ResidualTask::Relax => (&self.u, &mut self.relaxed),
        };
        let launch = self.kernels.residual.launch((blocks, self.systems as u32), 256).arg(from).arg(&self.f).arg(to).arg(self.field);
        let launch = launch.arg(what as i32).arg(omega).arg(&self.active).arg(&mut self.partial);
        // SAFETY: the field is that of the grid, which all arrays cover once a system; a block has its own place in `partial`.
        unsafe { launch.run()? };
        if what != ResidualTask::Relax {
            let launch = self.kernels.finish.launch(self.systems as u32, 256).arg(&self.partial).arg(blocks).arg(&self.active);
            // SAFETY: three values a system in the host's memory, read after waiting.
            unsafe { launch.arg(self.field.volume).arg(&self.norms).run()? };
        }
        Ok(())
    }

    fn enqueue(&mut self) -> Result<()> {
        let from = LineLayout { grid: self.f.address(), ..self.layout };
        self.x.forward(&self.kernels.axis, from, self.scale)?;
        if self.middle.is_some() {
            self.transpose(false)?;
        }
        if let Some((middle, lines)) = &mut self.middle {
            middle.forward(&self.kernels.axis, LineLayout { lines: lines.address(), ..LineLayout::zeroed() }, 1.0)?;
        }
        self.lines()?;
        if let Some((middle, lines)) = &mut self.middle {
            middle.backward(&self.kernels.axis, LineLayout { lines: lines.address(), ..LineLayout::zeroed() })?;
            self.transpose(true)?;
        }
        let to = LineLayout { grid: self.u.address(), ..self.layout };
        self.x.backward(&self.kernels.axis, to)
    }

    /// Transposes between the modes of x and the lines of the middle axis.
    fn transpose(&mut self, back: bool) -> Result<()> {
        let Some((_, lines)) = &mut self.middle else { return Ok(()) };
        let rows = self.layout.rows;
        let planes = (self.x.count / rows as usize) as u32;
        let plane = self.x.len as u64 * u64::from(rows);
        for part in &mut self.x.parts {
            let width = part.width as u32;
            let (own, there) = (u64::from(rows) * u64::from(width), lines.from(part.at * rows as usize));
            let tiles = |rows: u32, columns: u32| (planes, columns.div_ceil(32), rows.div_ceil(32));
            // SAFETY: a plane of the part is rows x width, its transpose lies in the plane of lines from its first mode on.
            unsafe {
                if back {
                    let launch = self.kernels.transpose.launch(tiles(width, rows), (32, 8)).arg(there).arg(plane);
                    launch.arg(&mut part.modes).arg(own).arg(width).arg(rows).run()?;
                } else {
                    let launch = self.kernels.transpose.launch(tiles(rows, width), (32, 8)).arg(&part.modes).arg(own);
                    launch.arg(there).arg(plane).arg(rows).arg(width).run()?;
                }
            }
        }
        Ok(())
    }

    /// The systems of all modes.
    fn lines(&mut self) -> Result<()> {
        // Modes of the axis before the last one, within those of x, within the systems.
        let (last, within, outer, inner) = match &mut self.middle {
            Some((middle, _)) => (middle, self.x.len, &self.deltas[0], &self.deltas[1]),
            None => (&mut self.x, 1, &self.flat, &self.deltas[0]),
        };
        let count = within * self.systems;
        let mut modes = Modes { part: [0; LEVELS + 1], at: [0; LEVELS + 2], count: last.parts.len() as u32, outer: count as u32 };
        for (k, part) in last.parts.iter().enumerate() {
            (modes.part[k], modes.at[k], modes.at[k + 1]) = (part.modes.address(), part.at as u32, (part.at + part.width) as u32);
        }
        let zero = self.zero.and_then(|[o, k]| {
            let part = last.parts.iter().find(|p| (p.at..p.at + p.width).contains(&k))?;
            Some((part.modes.address(), part.width * count, o * part.width + k - part.at, within * part.width))
        });
        let centre = |mean: usize| match zero {
            Some((part, plane, first, step)) => {
                let launch = self.kernels.centre.launch(self.systems as u32, 256).arg(part).arg(plane as u64).arg(first as u64);
                // SAFETY: one mode of the part for each system; the means hold two values of each.
                unsafe { launch.arg(step as u64).arg(self.means.from(mean)).run() }
            }
            None => Ok(()),
        };
        centre(0)?;
        let places = last.len * count;
        let launch =
            self.kernels.lines.launch(places.div_ceil(self.block[0] as usize) as u32, self.block[1]).shared(self.waiting).arg(modes);
        // SAFETY: the parts hold all row pairs of their modes; the tables cover these.
        unsafe { launch.arg(outer).arg(within as u32).arg(inner).run()? };
        centre(self.systems)
    }
}

/// The box of unknowns with its conditions.
fn field(grid: &Grid, axes: [&Axis; 3]) -> Field {
    let stride = [axes[1].nodes * axes[0].nodes, axes[0].nodes];
    let unknowns = axes.map(Axis::unknowns);
    let first = unknowns[0].start + unknowns[1].start * stride[1] + unknowns[2].start * stride[0];
    let side = |bc: Bc| match bc {
        Bc::Dirichlet => 0,
        Bc::Neumann => 1,
        Bc::Periodic => 2,
    };
    let [columns, steps] = tile(axes);
    let count = unknowns.map(|u| u.len());
    let volume = axes.iter().zip(count).map(|(a, n)| {
        let ends = if a.is_flat() { 0 } else { [a.lo, a.hi].into_iter().filter(|bc| *bc == Bc::Neumann).count() };
        n as f64 - 0.5 * ends as f64
    });
    Field {
        first: first as u64,
        system: grid.len() as u64,
        middle: stride[1] as u64,
        last: stride[0] as u64,
        n: count.map(|n| n as u32),
        tiles: [count[0].div_ceil(columns), count[1].div_ceil(256 / columns), count[2].div_ceil(steps)].map(|n| n as u32),
        lo: axes.map(|a| side(a.lo)),
        hi: axes.map(|a| side(a.hi)),
        weight: axes.map(|a| if a.is_flat() { 0.0 } else { 1.0 / (a.h * a.h) }),
        volume: volume.product(),
    }
}
