//! The fields on the GPU: E, B and J over all corners with guards, as [`crate::grid::Grid::index`] lays them out, and the
//! launches of `yee_grid.cu`, `field.cu` and `current.cu`. What is computed is in the files of `cpu/fields`.
//!
//! Nothing here waits, except what sets or reads whole arrays. A step of the fields of a periodic domain is one launch
//! (`fused_fields.cu`); elsewhere it is three, one more for the current, two more for a filter.

mod arrays;
mod gauss;
mod records;
mod snapshots;

use std::sync::Arc;

use bytemuck::Zeroable;
use zellige_engine::cuda::{Buffer, Cuda, Kernel, Mapped, Pool, Recipe};
use zellige_engine::error::Result;
use zellige_engine::links::Slabs;
use zellige_engine::ops::plane::PlaneReducer;
use zellige_engine::profile::Profiler;
use zellige_engine::sim::Cost;

use self::arrays::packed;
use self::gauss::Charge;
use self::gauss::{Corners, Work};
use self::snapshots::SnapshotList;
use super::beside::Beside;
use super::field_arguments::{FusedFields, MOST_TAPS, Taps, YeeGrid};
use super::program::FILES;
use super::{Current, early};
use crate::grid::{ABOVE, BELOW, FieldSide, Grid, ParticleSide};
use crate::stages::cpu::fields::complete_charge;
use crate::stages::layer::{Layer, Memory};
use crate::stages::part::Part;
use crate::stages::{Precision, Setup, Sheet, Smoothing};

/// Threads of a block along x and y.
const BLOCK: [u32; 2] = [64, 4];
/// Rows of nodes that a launch can have blocks for.
pub(super) const ROWS: usize = 65_535 * BLOCK[1] as usize;
/// Nodes of a block of `fused_fields.cu`: with what borders on them 64 x 12, three for each thread.
const FUSED_TILE: [u32; 2] = [61, 9];
/// Blocks of it that a multiprocessor is to hold at least, in single precision.
const FUSED_RESIDENT: u32 = 5;

/// Recipe of the kernels for a number format: also for tests, for architectures that are not at hand.
pub(super) fn recipe(precision: Precision) -> Recipe {
    let real = real_name(precision);
    let resident = if precision == Precision::F32 { FUSED_RESIDENT } else { 1 };
    let numbers = [("MOST_TAPS", MOST_TAPS as u32), ("FUSED_X", FUSED_TILE[0]), ("FUSED_Y", FUSED_TILE[1]), ("FUSED_RESIDENT", resident)];
    let mut defines = vec![("REAL".to_owned(), real.to_owned())];
    defines.extend(numbers.map(|(name, value)| (name.to_owned(), value.to_string())));
    Recipe::of_files(&format!("pic fields {real}"), FILES, &["field.cu", "fused_fields.cu", "gauss.cu"], &defines, NAMES)
}

const NAMES: &[&str] = &[
    "advance_b<false>",
    "advance_b<true>",
    "advance_e",
    "energies",
    "shift_fields",
    "shift_memory",
    "guards",
    "fold",
    "smooth",
    "put_line",
    "fused_fields",
    "charge_of",
    "smooth_charge",
    "sum_charge",
    "check_scale",
    "check_charge",
    "power",
];

/// The fields of a run.
pub(super) struct Fields {
    cuda: Cuda,
    pool: Pool,
    grid: Grid,
    precision: Precision,
    smoothing: [Smoothing; 2],
    kernels: Vec<Kernel>,
    yee: YeeGrid,
    /// Ex, Ey, Ez, Bx, By, Bz: those that are valid, and those that the fused update writes, empty where it is not used.
    advancing: [Vec<Buffer<u8>>; 2],
    /// Jx, Jy, Jz one behind the other; empty where the update is fused and nobody has asked for it.
    current: Buffer<u8>,
    /// Jx, Jy, Jz half filtered; empty without a filter.
    scratch: Buffer<u8>,
    external: Vec<Option<Buffer<u8>>>,
    /// Memory of the layers.
    psi: Vec<(Memory, Buffer<u8>)>,
    coefficients: Vec<Buffer<u8>>,
    sheet: Buffer<f64>,
    /// Energies of the rows of each component.
    energies: Mapped<f64>,
    part: Arc<Part>,
    beside: Option<Beside>,
    /// Components put aside, a list for each number.
    snapshots: Vec<SnapshotList>,
    /// None before it is looked at.
    charge: Option<Charge>,
    /// None before they are looked at.
    corners: Option<Corners>,
    /// None where it is not added up.
    work: Option<Work>,
    /// None before somebody looks.
    reducer: Option<PlaneReducer>,
}

impl Fields {
    /// All fields zero, on the rows of a part that `setup` has.
    pub(super) fn new(setup: &Setup, part: &Arc<Part>, cuda: &Cuda, pool: &Pool) -> Result<Self> {
        let grid = setup.grid.clone();
        let precision = setup.precision;
        let size = bytes(precision);
        let array = |n: usize| pool.alloc_zeros::<u8>(n * size, "fields");
        let mut smoothing = setup.smoothing;
        if grid.dimensions == 1 {
            smoothing[1] = Smoothing::default();
        }
        let filtered = smoothing.iter().any(|s| s.passes > 0);
        let layers = [0, 1].map(|axis| Layer::new(&grid, axis, setup.absorbing_cells));
        let mut coefficients = Vec::new();
        for layer in &layers {
            let values: Vec<f64> = layer.corner.iter().chain(&layer.half).flat_map(|c| [c.keep, c.feed, c.stretch]).collect();
            coefficients.push(pool.buffer_from(&packed(&values, precision), "coefficients of the layers")?);
        }
        let program = recipe(precision).build(cuda)?;
        let mut fields = Self {
            kernels: NAMES.iter().map(|name| program.kernel(name)).collect::<Result<_>>()?,
            yee: YeeGrid::zeroed(),
            advancing: [grid.len(), if fuses_fields(setup) { grid.len() } else { 0 }]
                .map(|n| (0..6).map(|_| array(n)).collect::<Result<Vec<_>>>())
                .into_iter()
                .collect::<Result<Vec<_>>>()?
                .try_into()
                .expect("two of them"),
            current: array(if fuses_fields(setup) { 0 } else { 3 * grid.len() })?,
            scratch: array(if filtered { 3 * grid.len() } else { 0 })?,
            external: setup
                .external
                .iter()
                .map(|values| (!values.is_empty()).then(|| pool.buffer_from(&packed(values, precision), "external fields")).transpose())
                .collect::<Result<_>>()?,
            psi: Vec::new(),
            coefficients,
            sheet: pool.alloc_zeros(grid.nodes(0).max(grid.nodes(1)), "a sheet of current")?,
            pool: pool.clone(),
            energies: cuda.mapped(6 * grid.nodes_held()[1])?,
            beside: Beside::new(
                cuda,
                pool,
                part,
                &grid,
                precision,
                if smoothing[1].passes > 0 { Taps::new(smoothing[1], 1).reach as usize } else { 0 },
            )?,
            part: part.clone(),
            snapshots: Vec::new(),
            charge: None,
            corners: None,
            work: None,
            reducer: None,
            cuda: cuda.clone(),
            grid,
            precision,
            smoothing,
        };
        fields.yee = fields.describe(&layers);
        for memory in Memory::all(&layers, &fields.grid) {
            let buffer = array(memory.len)?;
            fields.yee.psi[memory.field][memory.term][memory.side] = buffer.address();
            fields.psi.push((memory, buffer));
        }
        Ok(fields)
    }

    /// Arguments that describe the grid to kernels.
    fn describe(&self, layers: &[Layer; 2]) -> YeeGrid {
        let grid = &self.grid;
        let whole = grid.h.map(|h| grid.dt / h);
        let field_sides = grid.fields.map(|axis| {
            axis.map(|side| match side {
                FieldSide::Periodic => 0,
                FieldSide::Pec | FieldSide::Absorbing => 1,
                FieldSide::Pmc => 2,
            })
        });
        let particle_sides = grid.particles.map(|axis| {
            axis.map(|side| match side {
                ParticleSide::Periodic => 0,
                ParticleSide::Reflect | ParticleSide::Thermal => 1,
                ParticleSide::Absorb => 2,
            })
        });
        // Behind an end at which another part of the run goes on.
        let across = |side: i32, end: usize, other: i32| if grid.continues(end) { other } else { side };
        YeeGrid {
            e: [0, 1, 2].map(|c| self.advancing[0][c].address()),
            b: [3, 4, 5].map(|c| self.advancing[0][c].address()),
            j: self.three(&self.current),
            scratch: self.three(&self.scratch),
            psi: [[[0; 2]; 4]; 2],
            layer: [self.coefficients[0].address(), self.coefficients[1].address()],
            cells: grid.cells_held().map(|n| n as i32),
            nodes: grid.nodes_held().map(|n| n as i32),
            height: grid.cells[1] as i32,
            row: grid.held().start as i32,
            thick: [layers[0].cells as i32, layers[1].cells as i32],
            pitch: grid.pitch() as i32,
            fields: [field_sides[0][0], field_sides[0][1], across(field_sides[1][0], 0, 3), across(field_sides[1][1], 1, 3)],
            // Deposits beyond such an end have been handed over.
            particles: [particle_sides[0][0], particle_sides[0][1], across(particle_sides[1][0], 0, 2), across(particle_sides[1][1], 1, 2)],
            half: whole.map(|w| 0.5 * w),
            whole,
            inverse: grid.h.map(|h| 1.0 / h),
            dt: grid.dt,
        }
    }

    /// Address of a component of E (0 to 2) or B (3 to 5); guards are valid between steps.
    pub(super) fn total_field(&self, c: usize) -> u64 {
        self.advancing[0][c].address()
    }

    /// Address of what particles feel besides, 0 where there is nothing.
    pub(super) fn external(&self, c: usize) -> u64 {
        self.external[c].as_ref().map_or(0, Buffer::address)
    }

    /// Addresses of three components in one buffer.
    fn three(&self, buffer: &Buffer<u8>) -> [u64; 3] {
        let step = (self.grid.len() * bytes(self.precision)) as u64;
        [0, 1, 2].map(|c| buffer.address() + c * step)
    }

    /// Addresses of the components of J, for which there is room from now on.
    pub(super) fn j(&mut self) -> Result<[u64; 3]> {
        if self.current.is_empty() {
            self.current = self.pool.alloc_zeros(3 * self.grid.len() * bytes(self.precision), "fields")?;
            self.yee.j = self.three(&self.current);
        }
        Ok(self.yee.j)
    }

    /// Takes the energies.
    pub(super) fn measure(&mut self, profiler: &mut Profiler) -> Result<()> {
        let cuda = self.cuda.clone();
        profiler.stage_on(&cuda, "begin", self.cost(6.0, 0.0), || {
            let rows = self.grid.nodes_held()[1] as u32;
            let launch = self.kernel("energies").launch((rows, 6), 256).arg(self.yee).arg(self.grid.cell_volume());
            // SAFETY: as declared; a sum for each row of each component.
            unsafe { launch.arg(&self.energies).run() }
        })
    }

    /// `J = 0`.
    pub(super) fn clear_current(&mut self) -> Result<()> {
        self.j()?;
        self.cuda.fill_zero(&mut self.current)
    }

    /// Completes J: guards, wall corners, filter, sheets.
    pub(super) fn current(&mut self, sheets: &[Sheet], profiler: &mut Profiler) -> Result<()> {
        self.j()?;
        let cuda = self.cuda.clone();
        let filtered = self.smoothing.iter().any(|s| s.passes > 0);
        let cost = self.cost(if filtered { 12.0 } else { 0.0 }, 0.0);
        profiler.stage_on(&cuda, "current", cost, || {
            let blocks = self.blocks(3);
            // At most 7 rows and 7 columns are near sides.
            let near = 7 * self.grid.nodes_held().iter().sum::<usize>() as u32;
            // SAFETY: as declared; the arrays of the Yee grid are those of this run.
            unsafe { early(&cuda, self.kernel("fold").launch((near.div_ceil(256), 3), 256)).arg(self.yee).run()? };
            if filtered {
                for axis in [0, 1] {
                    let mut taps = Taps::new(self.smoothing[axis], axis);
                    if let (1, Some(beside)) = (axis, &self.beside) {
                        beside.reach_current(&self.yee, &mut taps)?;
                    }
                    // SAFETY: as above; at most MOST_TAPS weights by the check of the input, asserted by the copy into them.
                    unsafe { self.kernel("smooth").launch(blocks, (BLOCK[0], BLOCK[1])).arg(self.yee).arg(taps).run()? };
                }
            }
            self.leave_out(sheets)?;
            sheets.iter().try_for_each(|sheet| self.put_line(sheet))
        })
    }

    /// Adds a line to J, or puts it into E or B.
    fn put_line(&mut self, sheet: &Sheet) -> Result<()> {
        let cuda = self.cuda.clone();
        let (first, nodes) = (self.grid.held().start, self.grid.nodes_held()[1]);
        // Of a line along y its nodes here; one across y at its node, where that is here.
        let (values, node) = if sheet.axis == 0 {
            (&sheet.values[first.min(sheet.values.len())..(first + nodes).min(sheet.values.len())], sheet.node)
        } else {
            let here = (first..first + nodes).contains(&sheet.node);
            (if here { &sheet.values[..] } else { &[] }, sheet.node.wrapping_sub(first))
        };
        if values.is_empty() {
            return Ok(());
        }
        cuda.upload(&mut self.sheet, values)?;
        let count = values.len() as u32;
        let (component, axis) = (sheet.component as i32, sheet.axis as i32);
        assert!(sheet.node < self.grid.nodes(sheet.axis) && sheet.values.len() <= self.grid.nodes(1 - sheet.axis), "a sheet lies inside");
        let launch = self.kernel("put_line").launch(count.div_ceil(256), 256);
        // SAFETY: as declared; the line lies inside.
        unsafe { launch.arg(self.yee).arg(&self.sheet).arg(count).arg(component).arg(axis).arg(node as i32).run() }
    }

    /// From time n to n + 1: B half a step, E a step, B half a step.
    pub(super) fn field(&mut self, profiler: &mut Profiler) -> Result<()> {
        let cuda = self.cuda.clone();
        // 11 operations for each half step of B, 17 for E.
        let cost = self.cost(30.0, 39.0);
        profiler.stage_on(&cuda, "field", cost, || {
            self.add_work()?;
            for name in ["advance_b<false>", "advance_e", "advance_b<true>"] {
                // SAFETY: as declared.
                unsafe { early(&cuda, self.kernel(name).launch(self.blocks(1), (BLOCK[0], BLOCK[1]))).arg(self.yee).run()? };
                self.fill_from_beside()?;
            }
            self.add_work()
        })
    }

    /// True if one kernel does all that happens to the fields in a step without antennas.
    pub(super) fn fuses_fields(&self) -> bool {
        self.advancing[1].first().is_some_and(|b| !b.is_empty())
    }

    /// From time n to n + 1 in one kernel: J is in the integers `sums`; `clear` is zero afterwards.
    pub(super) fn fused_fields(
        &mut self,
        sums: &Buffer<i64>,
        clear: &Buffer<i64>,
        current: Current,
        profiler: &mut Profiler,
    ) -> Result<()> {
        let cuda = self.cuda.clone();
        let length = self.grid.len();
        assert!(sums.len() == 3 * length && clear.len() == 3 * length, "three components of integers");
        let three = |of: &Vec<Buffer<u8>>, first: usize| [0, 1, 2].map(|c| of[first + c].address());
        let fused_fields = FusedFields {
            e: three(&self.advancing[1], 0),
            b: three(&self.advancing[1], 3),
            sums: sums.address(),
            clear: clear.address(),
            length: length as i64,
            scale: current.scales,
            more: i32::from(current.more),
        };
        // 48 bytes of integers besides; operations as in `field`.
        let cost = self.cost(12.0 + 48.0 / bytes(self.precision) as f64, 45.0);
        let cells = self.grid.cells_held();
        let [x, y] = [0, 1].map(|axis| (cells[axis] as u32).div_ceil(FUSED_TILE[axis]));
        profiler.stage_on(&cuda, "field", cost, || {
            // SAFETY: as declared; both sets of arrays have all nodes with guards.
            unsafe { early(&cuda, self.kernel("fused_fields").launch((x, y), 256)).arg(self.yee).arg(fused_fields).run() }
        })?;
        self.advancing.swap(0, 1);
        for c in 0..3 {
            self.yee.e[c] = self.advancing[0][c].address();
            self.yee.b[c] = self.advancing[0][3 + c].address();
        }
        if self.beside.is_none() {
            return Ok(());
        }
        profiler.stage_on(&cuda, "parts", Cost::default(), || self.fill_from_beside())
    }

    /// Fills guards of E and B at the ends where another part goes on.
    fn fill_from_beside(&self) -> Result<()> {
        self.beside.as_ref().map_or(Ok(()), |beside| beside.fill(&self.yee))
    }

    /// Completes integer sums with what other parts have deposited: three components, on all nodes here. Guards of `clear` become
    /// zero, which nothing else does. Slabs of `along` go with them.
    pub(super) fn complete_sums(&self, sums: &Buffer<i64>, clear: Option<&Buffer<i64>>, along: &[&Slabs]) -> Result<()> {
        self.beside.as_ref().map_or(Ok(()), |beside| beside.complete(&self.yee, sums, clear, along))
    }

    /// Moves all fields one cell towards lower x; lines of E and B in `ahead` go in.
    pub(super) fn shift(&mut self, ahead: &[Sheet], profiler: &mut Profiler) -> Result<()> {
        let cuda = self.cuda.clone();
        profiler.stage_on(&cuda, "shift fields", self.cost(18.0, 0.0), || {
            // SAFETY: as declared; a block a row, nine arrays.
            unsafe { self.kernel("shift_fields").launch((self.grid.rows() as u32, 9), 256).arg(self.yee).run()? };
            ahead.iter().try_for_each(|line| self.put_line(line))?;
            for (memory, buffer) in &self.psi {
                let launch = self.kernel("shift_memory").launch((memory.len / memory.row) as u32, 256);
                // SAFETY: as declared; rows fill the buffer.
                unsafe { launch.arg(buffer).arg(memory.row as i32).arg(i32::from(memory.moves_down())).run()? };
            }
            self.fill_guards()?;
            self.fill_from_beside()
        })
    }

    /// Guards of E and B from the nodes inside.
    fn fill_guards(&self) -> Result<()> {
        // SAFETY: as declared.
        unsafe { self.kernel("guards").launch(self.blocks(1), (BLOCK[0], BLOCK[1])).arg(self.yee).run() }
    }

    /// `1/2 E^2` and `1/2 B^2` per component, of the last measured step: after a wait for it.
    pub(super) fn energies(&self) -> Result<[f64; 6]> {
        let rows = self.grid.nodes_held()[1];
        let own = (0..6).map(|c| (c * rows..(c + 1) * rows).map(|k| self.energies.get(k)).collect()).collect();
        let all = self.part.lists_of_rows(&self.grid, own)?;
        Ok(std::array::from_fn(|c| all[c].iter().fold(0.0, |sum, row| sum + row)))
    }

    /// Charge density of deposits over the whole domain made whole, as [`crate::stages::cpu::fields::FieldSet::complete_charge`].
    pub(super) fn complete_charge(&self, rho: &[f64], smoothed: bool) -> Result<Vec<f64>> {
        let mut rho = rho.to_vec();
        complete_charge(&self.grid.whole(), if smoothed { self.smoothing } else { <[Smoothing; 2]>::default() }, &mut rho)?;
        Ok(rho)
    }

    fn kernel(&self, name: &str) -> &Kernel {
        let number = NAMES.iter().position(|n| *n == name).expect("the kernel is in the list");
        &self.kernels[number]
    }

    fn blocks(&self, components: u32) -> (u32, u32, u32) {
        let nodes = self.grid.nodes_held();
        let [x, y] = [0, 1].map(|axis| (nodes[axis] as u32).div_ceil(BLOCK[axis]));
        (x, y, components)
    }

    /// Bytes of a number.
    pub(super) fn real(&self) -> f64 {
        bytes(self.precision) as f64
    }

    fn cost(&self, values: f64, flops: f64) -> Cost {
        let cells = self.grid.cells_held().iter().product::<usize>() as f64;
        Cost { bytes: values * bytes(self.precision) as f64 * cells, flops: flops * cells, items: cells }
    }
}

/// True if a step of the fields is one kernel: periodic, without a filter.
pub(crate) fn fuses_fields(setup: &Setup) -> bool {
    let periodic =
        (0..2).all(|axis| setup.grid.periodic(axis)) && setup.grid.particles.iter().flatten().all(|s| *s == ParticleSide::Periodic);
    periodic && setup.smoothing.iter().all(|s| s.passes == 0)
}

/// Name of the numbers in kernels.
pub(super) fn real_name(precision: Precision) -> &'static str {
    if precision == Precision::F32 { "float" } else { "double" }
}

/// Bytes of a number.
pub(super) fn bytes(precision: Precision) -> usize {
    if precision == Precision::F32 { 4 } else { 8 }
}

const _: () = assert!(BELOW == 2 && ABOVE == 3, "yee_grid.cu counts on it");

#[cfg(test)]
#[path = "field_twins.rs"]
mod twins;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_compile() {
        for precision in [Precision::F32, Precision::F64] {
            zellige_engine::testing::compiles(&recipe(precision));
            zellige_engine::testing::compiles(&crate::stages::cuda::beside::recipe(precision));
        }
    }

    #[test]
    fn passes_become_one_filter() {
        let taps = Taps::new(Smoothing { passes: 2, compensated: false }, 0);
        assert_eq!((taps.count, &taps.weight[..3]), (3, &[0.375, 0.25, 0.0625][..]));
        let taps = Taps::new(Smoothing { passes: 32, compensated: true }, 1);
        let sum: f64 = taps.weight[0] + 2.0 * taps.weight[1..].iter().sum::<f64>();
        assert!(taps.count == 34 && (sum - 1.0).abs() < 1e-14);
    }
}
